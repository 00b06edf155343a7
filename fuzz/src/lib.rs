//! What the fuzz targets share: texts, counters, chunks, and slow, plain oracles.
//!
//! Each target in `fuzz_targets/` states the law that it checks. Inputs are
//! small: a law that breaks does so on a few bytes.

pub mod chunks;
pub mod claude;
pub mod counters;
pub mod cuts;
pub mod families;
pub mod json;
pub mod words;

use std::sync::atomic::AtomicBool;

use budgeteer::{Exact, Text, TokenCounter as _};

/// A flag that nobody sets.
pub static NEVER: AtomicBool = AtomicBool::new(false);

/// Asserts that every way to count a text gives `expected`: with a cache and
/// without, within a limit and beyond one, and in each form a text is stored in.
pub fn assert_counted(exact: &Exact, text: &str, expected: usize) {
    let fresh = exact.without_cache();
    let wide: Vec<u16> = text.encode_utf16().collect();
    let wider: Vec<u32> = text.chars().map(u32::from).collect();
    let narrow: Option<Vec<u8>> =
        text.chars().map(|one| u8::try_from(u32::from(one)).ok()).collect();
    let mut stored = vec![Text::from(text), Text::Ucs2(&wide), Text::Ucs4(&wider)];
    stored.extend(narrow.as_deref().map(Text::Latin1));
    for stored in stored {
        for counter in [&fresh, exact, exact] {
            let count = |limit: usize| {
                let count = counter.count_text(stored, limit as u64, &NEVER)?;
                usize::try_from(count).ok()
            };
            let name = exact.tokenizer().name();
            assert_eq!(Some(expected), count(usize::MAX), "{name} of {stored:?}");
            assert_eq!(Some(expected), count(expected), "{name} of {stored:?}, its limit");
            if let Some(below) = expected.checked_sub(1) {
                assert_eq!(None, count(below), "{name} of {stored:?}, below");
            }
        }
    }
    assert_eq!(expected, fresh.count(text));
}
