//! For tests: whether hashes spread.

/// Checks that each of so many bits of a key changes about half of its hash, and
/// that about half of all bits are 1. `hash` gets the number of a key, and which of
/// its bits is another one.
pub(super) fn check_spread(bits: usize, hash: impl Fn(u64, Option<usize>) -> u64) {
    const KEYS: u64 = 64;
    let all = || 0..KEYS;
    for bit in 0..bits {
        let changed = all().map(|key| (hash(key, None) ^ hash(key, Some(bit))).count_ones());
        let mean = f64::from(changed.sum::<u32>()) / 64.0;
        assert!(mean > 24.0, "bit {bit} changes {mean} of 64");
    }
    let ones: u32 = all().map(|key| hash(key, None).count_ones()).sum();
    let share = f64::from(ones) / (64.0 * 64.0);
    assert!((0.45..0.55).contains(&share), "{share} of the bits are 1");
}
