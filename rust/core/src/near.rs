//! Finding a kept text that a text nearly repeats.
//!
//! Two texts are compared by their shingles: all runs of five terms. The
//! decision is exact, on the whole sets of shingles; there are no sketches.
//! Only texts that may be kept are looked at, and they are compared only with
//! those of the first kept texts that have enough rare shingles in common with
//! them.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};

use self::lists::{Filter, Lists, MOST_LINKS, Sets};
use crate::terms::{end_of, fold, lower, visit_pairs};
use crate::text::letters::UNSPACED;
use crate::text::{Cursor, OTHER, Text};

mod lists;

/// The number of terms of a shingle; all terms where a text has fewer.
const SHINGLE: usize = 5;

/// How many kept texts a text is compared with: the first ones, which are the
/// best. The reference has the same number.
const MOST_KEPT: u32 = 1 << 12;

/// How many terms are read between two looks at `stop`.
const TERMS: usize = 1 << 12;

/// Reading a code point takes as long here as reading this many elsewhere, and
/// so does looking at a candidate.
const READING: usize = 16;
const COMPARING: usize = 128;

/// Texts are compared one after another, and each takes little. The cost is
/// reported when it has become this large.
const TOLD: usize = 16 << 20;

/// Lowercases the ASCII of a folded text; 0 for a separator of words.
static LOWERED: [u8; 256] = {
    let mut lowered = [0; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        if byte.is_ascii_alphanumeric() {
            lowered[byte as usize] = byte.to_ascii_lowercase();
        }
        byte += 1;
    }
    lowered[OTHER as usize] = OTHER;
    lowered
};

/// The shingles of the kept texts, which leave in reverse order.
#[derive(Debug)]
pub(crate) struct Near {
    /// Keys differ from call to call, so nobody can write texts whose shingles
    /// collide. No result depends on the key.
    key: u64,
    factor: u64,
    kept: Sets,
    /// A filter of the shingles that some kept text has.
    filter: Filter,
    /// For each kept text, the shingles that were rarest when it was added, and
    /// which texts have them. There is one more of them than may be missing in
    /// a text that resembles it.
    rare: Sets,
    lists: Lists,
    /// All shingles, once a text may be a part of a kept one.
    all: Option<Lists>,
    /// The shingles of the text that was read last, sorted, each once.
    read: Vec<u64>,
    spent: usize,
    scratch: Scratch,
}

#[derive(Debug, Default)]
struct Scratch {
    folded: Vec<u8>,
    lowered: Vec<u8>,
    terms: Vec<u64>,
    /// The shingles of it that no kept text has; no more than are needed to
    /// decide.
    missing: Vec<u64>,
    rare: Vec<(u32, u64)>,
    candidates: Vec<u32>,
    /// For each kept text, how many of its listed shingles were found; 0 but
    /// while a text is looked for.
    shared: Vec<u32>,
}

impl Default for Near {
    fn default() -> Self {
        let random = RandomState::new();
        Self {
            key: random.hash_one(0_u8),
            // The differences of its powers are odd but for a few low bits.
            factor: random.hash_one(1_u8) & !7 | 3,
            kept: Sets::default(),
            filter: Filter::default(),
            rare: Sets::default(),
            lists: Lists::default(),
            all: None,
            read: Vec::new(),
            spent: 0,
            scratch: Scratch::default(),
        }
    }
}

impl Near {
    /// Returns the cost of finding a text, in code points read, with the cost
    /// so far that was not reported. Returns 0 while that is little.
    pub(crate) fn cost(&mut self, text: Text<'_>) -> usize {
        self.spent += text.chars().saturating_mul(READING);
        if self.spent < TOLD { 0 } else { std::mem::take(&mut self.spent) }
    }

    /// Returns the place of the first kept text that `text` resembles, or else
    /// the first that contains it. Returns anything if `stop` is set.
    pub(crate) fn find(&mut self, text: Text<'_>, stop: &AtomicBool) -> Option<u32> {
        self.read(text, stop);
        let Self { kept, filter, lists, read, scratch, .. } = self;
        // At most a fifth of its shingles are missing in a text that it
        // resembles.
        let most = read.len() / 5;
        filter.prefetch(&read[..read.len().min(most + 1)]);
        let missing = &mut scratch.missing;
        missing.clear();
        for &shingle in read.iter() {
            if !filter.may_have(shingle) {
                missing.push(shingle);
                if missing.len() > most {
                    return None;
                }
            }
        }
        if read.is_empty() {
            return None;
        }
        let Scratch { candidates, shared, .. } = scratch;
        candidates.clear();
        shared.resize(kept.len() as usize, 0);
        lists.prefetch(read);
        let mut links = 0_usize;
        for &shingle in read.iter() {
            for place in lists.places(shingle) {
                links += 1;
                if shared[place as usize] == 0 {
                    candidates.push(place);
                }
                shared[place as usize] += 1;
            }
        }
        candidates.retain(|&place| {
            let (kept, shared) = (kept.get(place as usize), &mut shared[place as usize]);
            // All that are not listed may be in common, too.
            let most = kept.len() - listed(kept.len()) + std::mem::take(shared) as usize;
            most >= enough(read.len(), kept.len())
        });
        candidates.sort_unstable();
        self.spent += links + candidates.len().saturating_mul(COMPARING);
        let resembles = |&place: &u32| {
            !stop.load(Ordering::Relaxed) && resembles(read, kept.get(place as usize))
        };
        let found = scratch.candidates.iter().copied().find(resembles);
        if found.is_none() && scratch.missing.is_empty() { self.find_whole(stop) } else { found }
    }

    /// Returns the place of the first kept text that has all shingles read
    /// last.
    fn find_whole(&mut self, stop: &AtomicBool) -> Option<u32> {
        let Self { kept, read, scratch, .. } = self;
        let all = self.all.get_or_insert_with(|| {
            let mut all = Lists::default();
            (0..kept.len()).for_each(|place| all.push(place, kept, kept.get(place as usize)));
            all
        });
        let length = |shingle: &&u64| all.get(**shingle).map_or(0, |link| link.length);
        let &rarest = read.iter().min_by_key(length)?;
        scratch.candidates.clear();
        scratch.candidates.extend(all.places(rarest));
        self.spent = self.spent.saturating_add(scratch.candidates.len());
        let contains = |&place: &u32| {
            !stop.load(Ordering::Relaxed) && contains(kept.get(place as usize), read)
        };
        scratch.candidates.iter().rev().copied().find(contains)
    }

    /// Adds the text that was found last.
    pub(crate) fn push(&mut self) {
        let Self { kept, filter, rare, lists, all, read, scratch, .. } = self;
        // Memory runs out before there are so many links.
        if kept.len() >= MOST_KEPT || kept.shingles.len() + read.len() > MOST_LINKS {
            read.clear(); // no text will be found to repeat this one
        }
        let place = kept.len();
        let most = listed(read.len());
        if scratch.missing.len() == most {
            rare.push(scratch.missing.iter().copied());
        } else {
            let listed = |shingle: u64| 1 + lists.get(shingle).map_or(0, |link| link.length);
            let length = |shingle| if filter.may_have(shingle) { listed(shingle) } else { 0 };
            scratch.rare.clear();
            scratch.rare.extend(read.iter().map(|&shingle| (length(shingle), shingle)));
            if most < read.len() {
                scratch.rare.select_nth_unstable(most);
            }
            rare.push(scratch.rare[..most].iter().map(|&(_, shingle)| shingle));
        }
        lists.push(place, rare, rare.get(place as usize));
        filter.push(kept, read);
        kept.push(read.iter().copied());
        if let Some(all) = all {
            all.push(place, kept, read);
        }
    }

    /// Removes the text that was added last.
    pub(crate) fn pop(&mut self) {
        let Self { kept, rare, lists, all, .. } = self;
        let Some(last) = kept.len().checked_sub(1) else { return };
        lists.pop(rare.get(last as usize));
        rare.pop();
        if let Some(all) = all {
            all.pop(kept.get(last as usize));
        }
        kept.pop();
    }

    /// Reads the shingles of `text`.
    fn read(&mut self, text: Text<'_>, stop: &AtomicBool) {
        self.hash_terms(text, stop);
        let Self { factor, read, scratch, .. } = self;
        let join = |hash: u64, &term: &u64| hash.wrapping_mul(*factor).wrapping_add(term);
        read.clear();
        if scratch.terms.len() < SHINGLE {
            read.extend(scratch.terms.iter().copied().reduce(|hash, term| join(hash, &term)));
        } else {
            let windows = scratch.terms.windows(SHINGLE);
            read.extend(windows.map(|terms| terms.iter().fold(0, join)));
        }
        read.sort_unstable();
        read.dedup();
    }

    /// Hashes the terms of `text`; ends early if `stop` is set.
    fn hash_terms(&mut self, text: Text<'_>, stop: &AtomicBool) {
        let Self { key, factor, scratch: Scratch { folded, lowered, terms, .. }, .. } = self;
        #[allow(clippy::cast_possible_truncation)] // both halves are used
        let mix = |hash: u64, word: u64| {
            let product = u128::from(hash ^ word) * u128::from(*factor);
            (product >> 64) as u64 ^ product as u64
        };
        let hash = |term: &[u8]| {
            let words = term.chunks(8);
            let word = |word: &[u8]| word.iter().fold(0, |all, &byte| all << 8 | u64::from(byte));
            words.fold(*key, |hash, part| mix(hash, word(part)))
        };
        let folded = if let Text::Ascii(bytes) = text {
            bytes
        } else {
            fold(text, folded);
            folded
        };
        terms.clear();
        let mut cursor = Cursor::new(text);
        let mut at = 0;
        let mut look = TERMS;
        while at < folded.len() {
            let start = at;
            let (mut all, mut word, mut hashed) = (0, 0_u64, *key);
            while let Some(&byte) = folded.get(at)
                && LOWERED[byte as usize] != 0
            {
                let byte = LOWERED[byte as usize];
                all |= byte;
                word = word << 8 | u64::from(byte);
                at += 1;
                if (at - start) % 8 == 0 {
                    hashed = mix(hashed, std::mem::take(&mut word));
                }
            }
            if at == start {
                if folded[at] == UNSPACED {
                    at = end_of(folded, at, |byte| byte == UNSPACED);
                    visit_pairs(cursor.slice(start, at), lowered, &mut |term| {
                        terms.push(hash(term));
                    });
                } else {
                    at += 1;
                }
            } else if all < OTHER {
                if word != 0 {
                    hashed = mix(hashed, word);
                }
                terms.push(hashed);
            } else {
                lowered.clear();
                lower(cursor.slice(start, at), lowered);
                terms.push(hash(lowered));
            }
            if terms.len() >= look {
                look = terms.len() + TERMS;
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        }
    }
}

/// Returns how many shingles of a text are listed that has so many.
fn listed(shingles: usize) -> usize {
    (shingles / 5 + 1).min(shingles)
}

/// Returns how many elements of two sets of these sizes must be in both.
fn enough(new: usize, kept: usize) -> usize {
    // In whole numbers: c / (n + k - c) >= 4/5.
    (4 * (new + kept)).div_ceil(9)
}

/// Returns whether four fifths of the elements of two sets are in both.
fn resembles(new: &[u64], kept: &[u64]) -> bool {
    let enough = enough(new.len(), kept.len());
    if enough > new.len().min(kept.len()) {
        return false;
    }
    let mut common = 0;
    let mut rest = kept;
    for (left, shingle) in (1..=new.len()).rev().zip(new) {
        if common + left < enough {
            return false;
        }
        let skipped = rest.iter().take_while(|&other| other < shingle).count();
        rest = &rest[skipped..];
        common += usize::from(rest.first() == Some(shingle));
    }
    common >= enough
}

/// Returns whether `kept` has all elements of `new`.
fn contains(kept: &[u64], new: &[u64]) -> bool {
    new.len() <= kept.len() && new.iter().all(|shingle| kept.binary_search(shingle).is_ok())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::count::exact::GO_ON;
    use crate::terms::for_each_term;

    fn shingles(text: &str) -> BTreeSet<Vec<String>> {
        let (mut folded, mut terms) = (Vec::new(), Vec::new());
        fold(text.into(), &mut folded);
        for_each_term(text.into(), &folded, &mut Vec::new(), |term| {
            terms.push(String::from_utf8(term.to_vec()).unwrap());
        });
        if terms.len() < SHINGLE {
            return if terms.is_empty() { BTreeSet::new() } else { [terms].into() };
        }
        terms.windows(SHINGLE).map(<[String]>::to_vec).collect()
    }

    /// The definition: the first text with a resemblance of at least 0.8, else
    /// the first that contains all shingles.
    fn expected(new: &str, kept: &[&str]) -> Option<usize> {
        let new = shingles(new);
        let kept: Vec<_> = kept.iter().map(|kept| shingles(kept)).collect();
        let resembles = |kept: &BTreeSet<_>| {
            !new.is_empty() && 5 * new.intersection(kept).count() >= 4 * new.union(kept).count()
        };
        let contains = |kept: &BTreeSet<_>| !new.is_empty() && new.is_subset(kept);
        kept.iter().position(resembles).or_else(|| kept.iter().position(contains))
    }

    fn texts() -> impl Strategy<Value = Vec<String>> {
        static TERMS: [&str; 9] = [
            "tea",
            "Tea",
            "rye,",
            "green",
            "İx",
            "e\u{301}t",
            "绿茶很好",
            "longer-than8",
            "\u{212A}",
        ];
        let text = prop::collection::vec(prop::sample::select(&TERMS[..]), 0..30);
        let part = prop::collection::vec((any::<prop::sample::Index>(), 0..3_usize), 0..12);
        (prop::collection::vec(text, 1..4), part).prop_map(|(texts, parts)| {
            let mut texts: Vec<Vec<&str>> = texts;
            for (index, change) in parts {
                let mut text = texts[index.index(texts.len())].clone();
                match change {
                    0 => drop(text.pop()),
                    1 => text.push("more"),
                    _ => drop(text.drain(..text.len() / 2)),
                }
                texts.push(text);
            }
            texts.into_iter().map(|text| text.join(" ")).collect()
        })
    }

    proptest! {
        /// Always finds the first kept text by the definition, also when some
        /// texts have left.
        #[test]
        fn the_first_is_found(texts in texts(), popped in any::<u32>()) {
            let mut near = Near::default();
            let mut kept: Vec<&str> = Vec::new();
            for (turn, text) in texts.iter().enumerate() {
                if popped >> (turn % 32) & 1 == 1 && kept.pop().is_some() {
                    near.pop();
                }
                let found = near.find(text.as_str().into(), &GO_ON);
                prop_assert_eq!(expected(text, &kept), found.map(|place| place as usize));
                near.push();
                kept.push(text);
            }
        }
    }

    /// The bits of a shingle are set as often as not: they choose places as they
    /// are. With one key alone, one product of a short term may lean to one side.
    #[test]
    fn bits_are_even() {
        let mut set = [0_u32; 64];
        for _key in 0..64 {
            let mut near = Near::default();
            for term in 0..1_000 {
                near.find(term.to_string().as_str().into(), &GO_ON);
                for (bit, set) in set.iter_mut().enumerate() {
                    *set += u32::from(near.read[0] >> bit & 1 == 1);
                }
            }
        }
        assert!(set.iter().all(|set| (450 * 64..550 * 64).contains(set)), "{set:?}");
    }

    /// The same terms make the same shingles however a text is stored.
    #[test]
    fn storages_agree() {
        let text = "The K\u{212A}elvin naïve 日本茶 longer-than-eight9 İstanbul e\u{301}t ΟΔΟΣ";
        let wide: Vec<u32> = text.chars().map(u32::from).collect();
        let mut near = Near::default();
        near.find(text.into(), &GO_ON);
        near.push();
        let read = near.read.clone();
        assert_eq!(Some(0), near.find(Text::Ucs4(&wide), &GO_ON));
        assert_eq!(read, near.read);
    }
}
