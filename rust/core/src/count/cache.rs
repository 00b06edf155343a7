//! The cache of counts of whole texts, for the process. Of a text whose counting
//! stopped at a limit, it has the limit.
//!
//! The key of a text is a keyed 128-bit hash of its stored form, so no text is
//! kept. Each process draws its hash key anew: nobody outside can make two
//! texts collide.
//!
//! No thread waits long for a lock here. Another thread may hold it for ever:
//! one that held it when the process forked. Then the text is counted as if it
//! were new.
#![allow(clippy::cast_possible_truncation)] // of hashes, and of lengths and counts that fit

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use highway::{HighwayHash, HighwayHasher, Key};

use crate::once::Once;
use crate::text::Text;

/// The number of shards, each with a lock.
const SHARDS: usize = 64;

/// The bytes that an entry takes in a half full table: a hash, a count and a
/// byte of the table's own, twice.
const ENTRY_BYTES: usize = 2 * (16 + 8 + 1);

/// The bytes that all counts of an encoding may take.
const MAX_BYTES: usize = 32 << 20;

/// The entries that each half of a shard may have.
const MAX_ENTRIES: usize = MAX_BYTES / ENTRY_BYTES / SHARDS / 2;

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

    fn write_u128(&mut self, hash: u128) {
        self.0 = hash as u64;
    }
}

/// What is known of the count of a text: a count, or with [`MORE`] a number that
/// it exceeds.
type Table = HashMap<u128, u64, BuildHasherDefault<Taken>>;

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
}

/// How many times a lock is tried that another thread holds for a moment.
const TRIES: usize = 100;

/// How many times it is tried, with a rest in between, by calls that need all
/// shards.
const LONG_TRIES: usize = 50;
const REST: Duration = Duration::from_millis(1);

/// Returns the hash under which the count of a text is cached.
pub(crate) fn hash(text: Text<'_>) -> u128 {
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
    u128::from(low) | u128::from(high) << 64
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
    pub(crate) fn new() -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// Returns what is known of the count of the text with that hash. It is a
    /// hit if that tells whether the count is at most `limit`.
    pub(crate) fn get(&self, hash: u128, limit: u64) -> Option<Known> {
        let known = self.shard(hash).and_then(|mut shard| shard.get(hash)).map(Known::of_stored);
        let is_hit = known.is_some_and(|known| known.tells(limit));
        let looks = if is_hit { &self.hits } else { &self.misses };
        looks.fetch_add(1, Ordering::Relaxed);
        known
    }

    /// Keeps what is known of the count of the text with that hash, unless more
    /// is known already.
    pub(crate) fn insert(&self, hash: u128, known: Known) {
        if let Some(mut shard) = self.shard(hash) {
            if let Known::MoreThan(limit) = known
                && shard.get(hash).is_some_and(|stored| Known::of_stored(stored).tells(limit))
            {
                return; // another thread was here meanwhile
            }
            shard.insert(hash, known.stored());
        }
    }

    /// Returns what is known of the count of the text with that hash, and
    /// changes no figure.
    #[cfg(test)]
    pub(crate) fn peek(&self, hash: u128) -> Option<Known> {
        self.shard(hash).and_then(|mut shard| shard.get(hash)).map(Known::of_stored)
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
        let entries = self
            .shards
            .iter()
            .filter_map(wait)
            .map(|shard| (shard.young.len() + shard.old.len()) as u64);
        let entries = entries.sum();
        CacheInfo {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            entries,
            bytes: entries * ENTRY_BYTES as u64,
            max_bytes: MAX_BYTES as u64,
        }
    }

    /// Returns the shard of that hash, or None where another thread keeps its
    /// lock.
    fn shard(&self, hash: u128) -> Option<MutexGuard<'_, Shard>> {
        let shard = &self.shards[(hash >> 64) as usize % SHARDS];
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
    fn get(&mut self, hash: u128) -> Option<u64> {
        let young = self.young.get(&hash).copied();
        young.or_else(|| {
            let stored = self.old.remove(&hash)?;
            self.insert(hash, stored);
            Some(stored)
        })
    }

    fn insert(&mut self, hash: u128, stored: u64) {
        if self.young.len() >= MAX_ENTRIES {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(hash, stored);
    }
}
