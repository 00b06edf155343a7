//! The fewest pieces that cover a string of symbols.

use std::sync::atomic::{AtomicBool, Ordering};

use super::tables::{self, Tables, WORD_BEGIN};
use super::trie::Trie;

/// How many places behind the current one are kept. It is more than the bytes
/// of the longest piece.
const RING: usize = 256;

/// After how many places the caller may stop it.
const PATIENCE: usize = 1 << 14;

impl Tables {
    /// Returns the fewest tokens that cover the symbols: characters, and
    /// markers as single bytes.
    pub(super) fn tile(&self, symbols: &[u8]) -> u64 {
        self.tile_till(symbols, &AtomicBool::new(false))
    }

    /// Like [`Tables::tile`]. The result means nothing once `stop` is set.
    pub(super) fn tile_till(&self, symbols: &[u8], stop: &AtomicBool) -> u64 {
        // By place, the tokens up to there, or `u32::MAX` inside of a character.
        let mut best = [u32::MAX; RING];
        best[0] = 0;
        for at in 0..symbols.len() {
            let here = std::mem::replace(&mut best[at % RING], u32::MAX);
            if here == u32::MAX {
                continue;
            }
            if at % PATIENCE == 0 && at > 0 && stop.load(Ordering::Relaxed) {
                break;
            }
            let rest = &symbols[at..];
            let mut reach = |length: usize, cost: u32| {
                let there = &mut best[(at + length) % RING];
                *there = (*there).min(here.saturating_add(cost));
            };
            if rest[0] < 0x80 || rest[0] >= WORD_BEGIN {
                reach(1, 1);
            } else {
                let (code, width) = decode(symbols, at);
                reach(width, u32::try_from(tables::cost(self.bits(code))).unwrap_or(4));
            }
            let mut place = Trie::ROOT;
            for (length, &byte) in (1..).zip(rest) {
                let Some(next) = self.trie.next(place, byte) else { break };
                place = next;
                if self.trie.ends(place) {
                    if length == symbols.len() {
                        return 1;
                    }
                    reach(length, 1);
                }
            }
        }
        best[symbols.len() % RING].into()
    }
}

/// Returns the character that starts at `at`, which is inside of `text`, and
/// its width in bytes.
#[inline]
pub(super) fn decode(text: &[u8], at: usize) -> (u32, usize) {
    let byte = |step: usize| u32::from(text.get(at + step).copied().unwrap_or(0) & 0x3F);
    let first = u32::from(text[at]);
    let (code, width) = match first {
        0..0x80 => (first, 1),
        0x80..0xE0 => ((first & 0x1F) << 6 | byte(1), 2),
        0xE0..0xF0 => ((first & 0xF) << 12 | byte(1) << 6 | byte(2), 3),
        _ => ((first & 7) << 18 | byte(1) << 12 | byte(2) << 6 | byte(3), 4),
    };
    (code, width.min(text.len() - at))
}

/// Returns the character that ends before `at`, or 0 if there is none.
pub(super) fn decode_before(text: &[u8], at: usize) -> u32 {
    let start = text[..at].iter().rposition(|&byte| byte & 0xC0 != 0x80);
    start.map_or(0, |start| decode(text, start).0)
}
