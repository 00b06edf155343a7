//! The cache of counts of whole texts, for the process. Of a text whose counting
//! stopped at a limit, it has the limit.
//!
//! The key of a text is a keyed 128-bit hash of its stored form, so no text is
//! kept. Each process draws its hash key anew: nobody outside can make two
//! texts collide. `BUDGETEER_COUNT_CACHE_MB` says how much is kept.
//!
//! No thread waits long for a lock here. Another thread may hold it for ever:
//! one that held it when the process forked. Then the text is counted as if it
//! were new.
#![allow(clippy::cast_possible_truncation)] // of hashes, and of lengths and counts that fit

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, TryLockError};
use std::time::Duration;

use highway::{HighwayHash, HighwayHasher, Key};

use crate::once::Once;
use crate::text::Text;

/// The number of shards, each with a lock.
const SHARDS: usize = 64;

/// The bytes of a place in a table: a hash, a count and a byte of the table's
/// own.
const PLACE_BYTES: usize = size_of::<(Print, u64)>() + 1;

/// The bytes that all counts of an encoding may take where nobody says.
const MAX_BYTES: u64 = 32 << 20;

/// Returns the bytes that all counts of an encoding may take: those MiB that
/// `BUDGETEER_COUNT_CACHE_MB` says, if that is a whole number, else 32.
fn max_bytes() -> u64 {
    static MAX: OnceLock<u64> = OnceLock::new();
    *MAX.get_or_init(|| {
        let set = std::env::var("BUDGETEER_COUNT_CACHE_MB").ok();
        set.and_then(|set| bytes_of(&set)).unwrap_or(MAX_BYTES)
    })
}

/// Returns the bytes of so many MiB, None if it is no whole number.
fn bytes_of(mebibytes: &str) -> Option<u64> {
    if mebibytes.is_empty() || !mebibytes.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // What does not fit is more memory than there is.
    Some(mebibytes.parse().unwrap_or(u64::MAX).saturating_mul(1 << 20))
}

/// Returns the entries that each half of a shard may have. A table has a power
/// of two of places, and seven of eight are filled.
fn max_entries(max_bytes: u64) -> usize {
    let places = max_bytes / (PLACE_BYTES * SHARDS * 2) as u64;
    places.checked_ilog2().map_or(0, |bits| ((1_u64 << bits) / 8 * 7) as usize)
}

/// The hash of a text. As a `u128` it would be aligned, and take a third more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Print {
    low: u64,
    high: u64,
}

impl Hash for Print {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.low);
    }
}

/// A hasher that returns the hash of a text as it is.
#[derive(Clone, Copy, Debug, Default)]
struct Taken(u64);

impl Hasher for Taken {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let (start, _) = bytes.split_at(8);
        self.0 = u64::from_ne_bytes(start.try_into().expect("there are eight"));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// What is known of the count of a text: a count, or with [`MORE`] a number that
/// it exceeds.
type Table = HashMap<Print, u64, BuildHasherDefault<Taken>>;

/// Marks a number that a count exceeds.
const MORE: u64 = 1 << 63;

/// What is known of the count of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    Count(u64),
    /// The count is more than that.
    MoreThan(u64),
}

impl Known {
    fn of_stored(stored: u64) -> Self {
        if stored & MORE == 0 { Self::Count(stored) } else { Self::MoreThan(stored & !MORE) }
    }

    fn stored(self) -> u64 {
        match self {
            // No text has so many tokens.
            Self::Count(count) => count & !MORE,
            Self::MoreThan(limit) => limit.min(MORE - 1) | MORE,
        }
    }

    /// Returns whether this tells whether the count is at most `limit`.
    fn tells(self, limit: u64) -> bool {
        match self {
            Self::Count(_) => true,
            Self::MoreThan(known) => known >= limit,
        }
    }
}

/// A part of the counts. An entry that is used moves to the young half. When
/// that is full it becomes the old half, and the old one is forgotten.
#[derive(Debug, Default)]
struct Shard {
    young: Table,
    old: Table,
}

/// How well a cache did, and how large it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheInfo {
    /// How many texts were in the cache.
    pub hits: u64,
    /// How many texts had to be counted.
    pub misses: u64,
    /// The number of counts in the cache now.
    pub entries: u64,
    /// The bytes that they take, about.
    pub bytes: u64,
    /// The bytes that the cache takes at most.
    pub max_bytes: u64,
}

/// The cache of one encoding.
#[derive(Debug)]
pub(crate) struct Cache {
    shards: [Mutex<Shard>; SHARDS],
    hits: AtomicU64,
    misses: AtomicU64,
    /// The entries that each half of a shard may have.
    max_entries: usize,
    max_bytes: u64,
}

/// How many times a lock is tried that another thread holds for a moment.
const TRIES: usize = 100;

/// How many times it is tried, with a rest in between, by calls that need all
/// shards.
const LONG_TRIES: usize = 50;
const REST: Duration = Duration::from_millis(1);

/// Returns the hash under which the count of a text is cached.
pub(crate) fn hash(text: Text<'_>) -> Print {
    static KEY: Once<Key> = Once::new();
    let key = KEY.get(|| {
        let random = RandomState::new();
        Key([0, 1, 2, 3].map(|word: u64| random.hash_one(word)))
    });
    let mut hasher = HighwayHasher::new(*key);
    let kind = match text {
        Text::Ascii(units) | Text::Utf8(units) => {
            hasher.append(units);
            0
        }
        Text::Latin1(units) => {
            hasher.append(units);
            1
        }
        Text::Ucs2(units) => {
            append(&mut hasher, units, u16::to_ne_bytes);
            2
        }
        Text::Ucs4(units) => {
            append(&mut hasher, units, u32::to_ne_bytes);
            3
        }
    };
    hasher.append(&[kind]);
    let [low, high] = hasher.finalize128();
    Print { low, high }
}

/// Feeds wider units to a hasher, some at a time.
fn append<U: Copy, const N: usize>(
    hasher: &mut HighwayHasher,
    units: &[U],
    bytes: impl Fn(U) -> [u8; N],
) {
    let mut buffer = [0; 1024];
    for units in units.chunks(1024 / N) {
        let (places, _) = buffer.as_chunks_mut::<N>();
        for (place, &unit) in places.iter_mut().zip(units) {
            *place = bytes(unit);
        }
        hasher.append(&buffer[..N * units.len()]);
    }
}

impl Cache {
    /// Returns an empty cache, as large as the environment says.
    pub(crate) fn new() -> Self {
        Self::of_size(max_bytes())
    }

    fn of_size(max_bytes: u64) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            max_entries: max_entries(max_bytes),
            max_bytes,
        }
    }

    /// Returns whether it keeps anything.
    pub(crate) fn keeps(&self) -> bool {
        self.max_entries > 0
    }

    /// Returns what is known of the count of the text with that hash. It is a
    /// hit if that tells whether the count is at most `limit`.
    pub(crate) fn get(&self, hash: Print, limit: u64) -> Option<Known> {
        let max = self.max_entries;
        let known =
            self.shard(hash).and_then(|mut shard| shard.get(hash, max)).map(Known::of_stored);
        let is_hit = known.is_some_and(|known| known.tells(limit));
        let looks = if is_hit { &self.hits } else { &self.misses };
        looks.fetch_add(1, Ordering::Relaxed);
        known
    }

    /// Keeps what is known of the count of the text with that hash, unless more
    /// is known already.
    pub(crate) fn insert(&self, hash: Print, known: Known) {
        let max = self.max_entries;
        if let Some(mut shard) = self.shard(hash) {
            if let Known::MoreThan(limit) = known
                && shard.get(hash, max).is_some_and(|stored| Known::of_stored(stored).tells(limit))
            {
                return; // another thread was here meanwhile
            }
            shard.insert(hash, known.stored(), max);
        }
    }

    /// Returns what is known of the count of the text with that hash, and
    /// changes no figure.
    #[cfg(test)]
    pub(crate) fn peek(&self, hash: Print) -> Option<Known> {
        let max = self.max_entries;
        self.shard(hash).and_then(|mut shard| shard.get(hash, max)).map(Known::of_stored)
    }

    /// Forgets all counts, and sets the figures to 0.
    pub(crate) fn clear(&self) {
        for shard in &self.shards {
            if let Some(mut shard) = wait(shard) {
                *shard = Shard::default();
            }
        }
        self.hits.store(0, Ordering::Relaxed);
        self.misses.store(0, Ordering::Relaxed);
    }

    pub(crate) fn info(&self) -> CacheInfo {
        let (mut entries, mut bytes) = (0, 0);
        for shard in self.shards.iter().filter_map(wait) {
            entries += shard.young.len() + shard.old.len();
            bytes += shard.bytes(self.max_entries);
        }
        CacheInfo {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            entries: entries as u64,
            bytes: bytes as u64,
            max_bytes: self.max_bytes,
        }
    }

    /// Returns the shard of that hash, or None where another thread keeps its
    /// lock.
    fn shard(&self, hash: Print) -> Option<MutexGuard<'_, Shard>> {
        let shard = &self.shards[hash.high as usize % SHARDS];
        (0..TRIES).find_map(|_| {
            let shard = take(shard);
            if shard.is_none() {
                std::hint::spin_loop();
            }
            shard
        })
    }
}

/// Returns the content of a lock, unless the lock is held.
fn take(shard: &Mutex<Shard>) -> Option<MutexGuard<'_, Shard>> {
    match shard.try_lock() {
        Ok(shard) => Some(shard),
        Err(TryLockError::Poisoned(shard)) => Some(shard.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Returns the content of a lock. Waits as long as another thread may
/// reasonably hold it: a thread that a fork left behind holds it for ever.
fn wait(shard: &Mutex<Shard>) -> Option<MutexGuard<'_, Shard>> {
    (0..LONG_TRIES).find_map(|_| {
        let shard = take(shard);
        if shard.is_none() {
            std::thread::sleep(REST);
        }
        shard
    })
}

impl Shard {
    fn get(&mut self, hash: Print, max_entries: usize) -> Option<u64> {
        let young = self.young.get(&hash).copied();
        young.or_else(|| {
            let stored = self.old.remove(&hash)?;
            self.insert(hash, stored, max_entries);
            Some(stored)
        })
    }

    fn insert(&mut self, hash: Print, stored: u64, max_entries: usize) {
        if self.young.len() >= max_entries {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(hash, stored);
    }

    /// Returns the bytes that the tables take. What became old was full; since
    /// then some of its entries may have moved.
    fn bytes(&self, max_entries: usize) -> usize {
        let old = if self.old.capacity() == 0 { 0 } else { max_entries };
        let places = |entries: usize| (entries * 8).div_ceil(7);
        (places(self.young.capacity()) + places(old)) * PLACE_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_of_mebibytes() {
        for (set, bytes) in [("0", 0), ("00", 0), ("1", 1 << 20), ("032", 32 << 20)] {
            assert_eq!(Some(bytes), bytes_of(set));
        }
        assert_eq!(Some(u64::MAX), bytes_of(&"9".repeat(99)));
        for bad in ["", "-1", "+1", "1.0", " 1", "1 ", "x", "\u{662}"] {
            assert_eq!(None, bytes_of(bad), "{bad}");
        }
    }

    /// However many texts there are, the tables take no more than was said, and
    /// more than a third of it.
    #[test]
    fn tables_stay_below_their_bytes() {
        for mebibytes in [1, 2, 3, 5] {
            let max = mebibytes << 20;
            let cache = Cache::of_size(max);
            for i in 0..300_000_u64 {
                let high = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
                let hash = Print { low: high.rotate_left(32), high: high >> 40 };
                cache.insert(hash, Known::Count(i));
                assert_eq!(Some(Known::Count(i)), cache.get(hash, u64::MAX));
            }
            let shards = cache.shards.iter().filter_map(wait);
            let places = shards.map(|shard| shard.young.capacity() + shard.old.capacity());
            let bytes = (places.sum::<usize>() * 8 / 7 * PLACE_BYTES) as u64;
            assert!(bytes <= max, "{bytes} of {max}");
            assert!(bytes > max / 3, "{bytes} of {max}");
            assert!((bytes..=max).contains(&cache.info().bytes));
        }
    }

    #[test]
    fn nothing_keeps_nothing() {
        let cache = Cache::of_size(0);
        assert!(!cache.keeps());
        assert!(Cache::of_size(1 << 20).keeps());
        assert_eq!((0, 0), (cache.info().bytes, cache.info().max_bytes));
    }
}
