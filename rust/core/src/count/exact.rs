//! Counting a text with an encoding.

use std::sync::atomic::{AtomicBool, Ordering};

use super::blocks::{self, BLOCK, Classify, Starts};
use super::bpe::Bpe;
use super::lookup::Lookup;
use super::pretokenize::deepseek::DeepSeek;
use super::pretokenize::gpt2::Gpt2;
use super::pretokenize::{Cl100k, Llama3, O200k, Pattern, Qwen2, Qwen35, Tekken};
#[cfg(feature = "claude")]
use super::tokenizer::Kind;
use super::tokenizer::{Model, Split};
use crate::text::Text;
use crate::text::classes::Classes;

/// A flag that nobody ever sets.
pub(crate) static GO_ON: AtomicBool = AtomicBool::new(false);

/// How many code points are encoded at once where a text is not UTF-8. That
/// fits the nearest cache.
const WINDOW: usize = 4096;

/// The smallest window.
const SMALL_WINDOW: usize = 128;

/// Works with the pattern of a tokenizer, for a normalized text.
macro_rules! with_pattern {
    ($model:expr, $text:expr, |$pattern:ident| $work:expr) => {
        match &$model.split {
            Split::Cl100k => with_pattern!(@ $pattern, Cl100k, $work),
            Split::O200k => with_pattern!(@ $pattern, O200k, $work),
            Split::Llama3 => with_pattern!(@ $pattern, Llama3, $work),
            Split::Qwen2 => with_pattern!(@ $pattern, Qwen2, $work),
            Split::Qwen35 => with_pattern!(@ $pattern, Qwen35, $work),
            Split::Tekken => with_pattern!(@ $pattern, Tekken, $work),
            Split::Gpt2 => with_pattern!(@ $pattern, Gpt2, $work),
            Split::DeepSeek => with_pattern!(@ $pattern, DeepSeek, $work),
            Split::Pieces(pieces) => with_pattern!(@ $pattern, (pieces, $model.bpe.joins()), $work),
            #[cfg(feature = "files")]
            Split::Patterns(patterns) => {
                let ends = patterns.split($text);
                with_pattern!(@ $pattern, &ends, $work)
            }
        }
    };
    (@ $pattern:ident, $value:expr, $work:expr) => {{
        let $pattern = $value;
        $work
    }};
}

/// Returns the number of tokens of `text` if it is at most `limit`, else None.
/// The result means nothing once `stop` is set.
pub(crate) fn count_text(
    model: &Model,
    text: Text<'_>,
    limit: u64,
    stop: &AtomicBool,
) -> Option<u64> {
    let counter = Counter { model, limit, stop };
    match text {
        Text::Ascii(bytes) => counter.count(bytes, 0),
        Text::Utf8(bytes) => match text.scalars() {
            Some(scalars) => counter.count(&scalars, 0),
            None => counter.count(bytes, 0),
        },
        _ if !model.is_exact() => {
            let mut utf8 = Vec::new();
            text.write_scalars_till(&mut utf8, stop);
            counter.count(&utf8, 0)
        }
        _ => counter.count_windows(text),
    }
}

/// Counts one text.
struct Counter<'a> {
    model: &'a Model,
    limit: u64,
    stop: &'a AtomicBool,
}

impl Counter<'_> {
    /// Adds the tokens of UTF-8 to `count`.
    fn count(&self, text: &[u8], count: u64) -> Option<u64> {
        let Self { model, limit, stop } = *self;
        #[cfg(feature = "claude")]
        if let Kind::Claude(claude) = &model.kind {
            return claude.tokens(text, limit, stop);
        }
        let merging = model.merging()?;
        let text = &*merging.normalized(text, stop);
        let task = Task { bpe: &merging.bpe, classes: Classes::get(), text, limit, stop };
        merging.with_lookup(|lookup| {
            with_pattern!(merging, text, |pattern| task.count(pattern, lookup, count))
        })
    }

    /// Counts a text that is not UTF-8 in windows, each from one safe split to
    /// the next.
    fn count_windows(&self, text: Text<'_>) -> Option<u64> {
        let chars = text.chars();
        // Where the limit is near, little is read: a token has four code points
        // on average.
        let window = self.limit.saturating_mul(8).clamp(SMALL_WINDOW as u64, WINDOW as u64);
        let window = usize::try_from(window).unwrap_or(WINDOW);
        let (mut from, mut size) = (0, window);
        let mut count = 0;
        let mut utf8 = Vec::with_capacity(3 * chars.min(WINDOW));
        while from < chars && !self.stop.load(Ordering::Relaxed) {
            let to = chars.min(from + size);
            let split = if to == chars {
                Some(chars)
            } else {
                (from + size / 2..to).rev().find(|&at| {
                    let is_safe = self.model.is_safe_split(text.code(at - 1), text.code(at));
                    // Any place will do once it stops.
                    is_safe || at % WINDOW == 0 && self.stop.load(Ordering::Relaxed)
                })
            };
            let Some(split) = split else {
                size *= 2;
                continue;
            };
            utf8.clear();
            text.slice(from, split).write_scalars_till(&mut utf8, self.stop);
            count = self.count(&utf8, count)?;
            (from, size) = (split, window);
        }
        (count <= self.limit).then_some(count)
    }
}

/// Counts one UTF-8 text, on any processor.
#[derive(Clone, Copy)]
struct Task<'a> {
    bpe: &'a Bpe,
    classes: &'a Classes,
    text: &'a [u8],
    limit: u64,
    stop: &'a AtomicBool,
}

impl Task<'_> {
    fn count<P: Pattern>(self, pattern: P, lookup: &mut Lookup, count: u64) -> Option<u64> {
        #[cfg(target_arch = "x86_64")]
        if !cfg!(feature = "portable") && P::RULES.is_some() {
            use super::blocks::avx2::Avx2;
            use super::blocks::avx512::Avx512;

            #[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2,lzcnt,popcnt")]
            fn compiled512<P: Pattern>(
                task: Task<'_>,
                pattern: P,
                classify: Avx512,
                lookup: &mut Lookup,
                count: u64,
            ) -> Option<u64> {
                task.count_blocks(pattern, classify, lookup, count)
            }

            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            fn compiled2<P: Pattern>(
                task: Task<'_>,
                pattern: P,
                classify: Avx2,
                lookup: &mut Lookup,
                count: u64,
            ) -> Option<u64> {
                task.count_blocks(pattern, classify, lookup, count)
            }

            if is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("popcnt")
            {
                if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
                    // SAFETY: these were just detected.
                    #[allow(unsafe_code)]
                    return unsafe { compiled512(self, pattern, Avx512::assume(), lookup, count) };
                }
                // SAFETY: these were just detected.
                #[allow(unsafe_code)]
                return unsafe { compiled2(self, pattern, Avx2::assume(), lookup, count) };
            }
        }
        self.count_one_by_one(pattern, lookup, count)
    }

    /// Counts with the characters looked at one by one.
    fn count_one_by_one<P: Pattern>(
        self,
        pattern: P,
        lookup: &mut Lookup,
        mut count: u64,
    ) -> Option<u64> {
        let mut at = 0;
        while at < self.text.len() {
            let end = pattern.end(self.classes, self.text, at);
            let tokens = self.pretoken(lookup, at, end);
            count += tokens as u64;
            if count > self.limit || self.stop.load(Ordering::Relaxed) {
                return None;
            }
            at = end;
        }
        (count <= self.limit).then_some(count)
    }

    /// Returns the number of tokens of a pretoken.
    #[inline(always)]
    #[allow(clippy::inline_always)] // compiled anew for each set of instructions
    fn pretoken(self, lookup: &mut Lookup, at: usize, end: usize) -> usize {
        let Self { bpe, text, stop, .. } = self;
        match end - at {
            1 => 1,
            2 => bpe.count_two([text[at], text[at + 1]]),
            _ => lookup.count_in(bpe, text, at, end, stop),
        }
    }

    /// Returns whether one of the next bytes is not ASCII: a block would be
    /// short.
    #[inline(always)]
    #[allow(clippy::inline_always)] // compiled anew for each set of instructions
    fn is_wide(self, at: usize) -> bool {
        match self.text[at..].first_chunk() {
            Some(next) => u32::from_le_bytes(*next) & 0x8080_8080 != 0,
            None => self.text[at..].first().is_some_and(|byte| !byte.is_ascii()),
        }
    }

    #[inline(always)]
    #[allow(clippy::inline_always)] // compiled anew for each set of instructions
    fn count_blocks<P: Pattern, C: Classify>(
        self,
        pattern: P,
        classify: C,
        lookup: &mut Lookup,
        mut count: u64,
    ) -> Option<u64> {
        /// How many bytes can be read behind the last byte of a block.
        const PADDING: usize = 16;
        let Some(rules) = P::RULES else {
            return self.count_one_by_one(pattern, lookup, count); // it never comes here
        };
        let Self { bpe, classes, text, limit, stop } = self;
        let mut padded;
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            let bytes = if let Some(bytes) = rest.first_chunk::<{ BLOCK + PADDING }>() {
                bytes
            } else {
                padded = [0; BLOCK + PADDING];
                padded[..rest.len()].copy_from_slice(rest);
                &padded
            };
            let block = bytes.first_chunk().expect("the padding comes on top");
            let length = rest.len().min(BLOCK);
            let Starts { bits, end } =
                blocks::starts(rules, classify.sets(block), block, length, rest.len() == length);
            // Where a pretoken starts, or the last one ends. A pretoken of one
            // byte is a token, and one of two bytes is looked up in a table of
            // bits: neither takes a place in the cache.
            let bounds = match end {
                Some(end) if end < BLOCK => bits | 1 << end,
                _ => bits,
            };
            let last = 63 - bounds.leading_zeros() as usize;
            let heads = bounds & !(1 << last);
            let mut tokens = (heads & bounds >> 1).count_ones() as usize;
            let mut twos = heads & !(bounds >> 1) & bounds >> 2;
            while twos != 0 {
                let start = twos.trailing_zeros() as usize;
                twos &= twos - 1;
                tokens += bpe.count_two([bytes[start], bytes[start + 1]]);
            }
            let mut others = heads & !(bounds >> 1) & !(bounds >> 2);
            while others != 0 {
                let start = others.trailing_zeros();
                others &= others - 1;
                let length = (bounds >> start >> 1).trailing_zeros() as usize + 1;
                // SAFETY: the pretoken starts in the block and ends there, and
                // behind the block there are 16 bytes more.
                #[allow(unsafe_code)]
                let piece = unsafe {
                    lookup.count_at(bpe, bytes.as_ptr().add(start as usize), length, stop)
                };
                tokens += piece;
            }
            let mut start = last;
            if end == Some(BLOCK) {
                tokens += lookup.count(bpe, &bytes[start..BLOCK], stop);
                start = BLOCK;
            }
            at += start;
            while start == 0 || self.is_wide(at) {
                let end = pattern.end(classes, text, at);
                tokens += self.pretoken(lookup, at, end);
                start = end - at;
                at = end;
            }
            count += tokens as u64;
            if count > limit || stop.load(Ordering::Relaxed) {
                return None;
            }
        }
        (count <= limit).then_some(count)
    }
}

/// Returns where the first `tokens` tokens of a text end, in bytes of UTF-8.
/// The result means nothing once `stop` is set.
pub(crate) fn end_of_tokens(model: &Model, text: &[u8], tokens: u64, stop: &AtomicBool) -> usize {
    // Of other models it is not known which tokens a text has.
    let Some(merging) = model.merging() else { return 0 };
    let normalized = &*merging.normalized(text, stop);
    let end = merging.with_lookup(|lookup| {
        with_pattern!(merging, normalized, |pattern| {
            end_of(pattern, &merging.bpe, lookup, normalized, tokens, stop)
        })
    });
    merging.end_before_normalizing(text, normalized, end, stop)
}

fn end_of<P: Pattern>(
    pattern: P,
    bpe: &Bpe,
    lookup: &mut Lookup,
    text: &[u8],
    tokens: u64,
    stop: &AtomicBool,
) -> usize {
    let classes = Classes::get();
    let mut left = tokens;
    let mut at = 0;
    while at < text.len() && left > 0 && !stop.load(Ordering::Relaxed) {
        let end = pattern.end(classes, text, at);
        let count = lookup.count(bpe, &text[at..end], stop) as u64;
        if count > left {
            bpe.lengths(&text[at..end], &mut lookup.scratch, stop, |length| {
                if left > 0 {
                    left -= 1;
                    at += length;
                }
            });
            return at;
        }
        left -= count;
        at = end;
    }
    at
}

#[cfg(all(test, feature = "cl100k", feature = "o200k"))]
mod tests {
    use proptest::prelude::*;

    use budgeteer_vocab::Encoding;

    use super::*;
    use crate::count::tokenizer::Tokenizer;

    fn all() -> impl Iterator<Item = Tokenizer> {
        Encoding::ALL.iter().map(|&encoding| encoding.into())
    }

    /// A text that is not UTF-8 is counted in windows, and has as many tokens.
    #[test]
    fn windows_add_up() {
        let mut state = 7_usize;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 33
        };
        let chars: Vec<char> = "aab 1.\n\t'é\u{301}中文".chars().collect();
        let texts = (0..20).map(|kinds| {
            let few = 2 + kinds % (chars.len() - 1);
            (0..2 * WINDOW + 99).map(|_| chars[next() % few]).collect::<String>()
        });
        #[allow(unused_mut)]
        let mut tokenizers: Vec<Tokenizer> = all().collect();
        #[cfg(feature = "claude")]
        tokenizers.extend(crate::Claude::ALL.map(Tokenizer::from));
        for text in texts.collect::<Vec<_>>() {
            let units: Vec<u16> = text.encode_utf16().collect();
            for tokenizer in &tokenizers {
                let count = |text| count_text(tokenizer.model(), text, u64::MAX, &GO_ON);
                assert_eq!(count(text.as_str().into()), count(Text::Ucs2(&units)));
            }
        }
    }

    proptest! {
        #[test]
        fn no_count_is_below_the_least(
            text in "[a-cA-C1-3 \n\t!'/.sdtlvem\u{e9}\u{301}\u{3000}\u{65e5}-]{0,80}"
        ) {
            let text = Text::from(text.as_str());
            for tokenizer in all() {
                let model = tokenizer.model();
                let least = model.least(|| text.starts(), || text.chars()) as u64;
                let count = count_text(model, text, u64::MAX, &GO_ON);
                prop_assert!(Some(least) <= count, "{text:?} {tokenizer:?}");
                prop_assert_eq!(count, count_text(model, text, count.unwrap(), &GO_ON));
            }
        }

        /// A text may be counted in parts wherever it may be split.
        #[test]
        fn safe_splits_are_safe(
            text in "[a-cA1 \n\r\t!'/.stlve\u{e9}\u{301}\u{9df}\u{3000}\u{65e5}]{1,40}"
        ) {
            let codes: Vec<(usize, char)> = text.char_indices().collect();
            for tokenizer in all() {
                let model = tokenizer.model();
                let count = |text: &str| count_text(model, text.into(), u64::MAX, &GO_ON).unwrap();
                for pair in codes.windows(2) {
                    let [(_, before), (at, behind)] = [pair[0], pair[1]];
                    if model.is_safe_split(before.into(), behind.into()) {
                        let (head, tail) = text.split_at(at);
                        let parts = count(head) + count(tail);
                        prop_assert_eq!(count(&text), parts, "{:?} {:?}", head, tail);
                    }
                }
            }
        }
    }
}
