//! The cache of counts of whole texts, for the process.
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

type Table = HashMap<u128, u64, BuildHasherDefault<Taken>>;

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

    /// Returns the count of the text with that hash, if it is in the cache.
    pub(crate) fn get(&self, hash: u128) -> Option<u64> {
        let count = self.shard(hash).and_then(|mut shard| {
            let young = shard.young.get(&hash).copied();
            young.or_else(|| {
                let count = shard.old.remove(&hash)?;
                shard.insert(hash, count);
                Some(count)
            })
        });
        let looks = if count.is_some() { &self.hits } else { &self.misses };
        looks.fetch_add(1, Ordering::Relaxed);
        count
    }

    /// Keeps the count of the text with that hash.
    pub(crate) fn insert(&self, hash: u128, count: u64) {
        if let Some(mut shard) = self.shard(hash) {
            shard.insert(hash, count);
        }
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
    fn insert(&mut self, hash: u128, count: u64) {
        if self.young.len() >= MAX_ENTRIES {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(hash, count);
    }
}
