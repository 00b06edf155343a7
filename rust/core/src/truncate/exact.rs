//! Cutting under an exact counter.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Cut, Keep};
use crate::count::Exact;
use crate::count::exact::{count_text, end_of_tokens};
use crate::text::Text;

/// The number of bytes of a long token. Hardly any is longer.
const LONGEST_TOKEN: usize = 128;

/// How many code points are looked at beyond those that can stay.
const SLACK: usize = 256;

/// How many times a piece that is still over loses one cluster. After that, it
/// loses twice as many each time.
const SINGLE_TRIES: usize = 8;

impl Exact {
    /// Returns `text` cut to at most `max_tokens` tokens, the marker included;
    /// or None where it fits as it is. The result means nothing once `stop` is
    /// set.
    ///
    /// Like [`truncate`](crate::truncate), but looks at each token of the text
    /// once: a piece ends at the end of a token, or at the cluster before. It
    /// is made shorter where it still counts more.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "o200k")] {
    /// use std::sync::atomic::AtomicBool;
    ///
    /// use budgeteer::{Encoding, Exact, Keep};
    ///
    /// let exact = Exact::new(Encoding::O200k);
    /// let never = AtomicBool::new(false);
    /// let cut = exact.truncate("A long sentence.".into(), 2, Keep::Start, "".into(), &never);
    /// assert_eq!(cut, Some(b"A long".to_vec()));
    /// # }
    /// ```
    #[must_use]
    pub fn truncate(
        &self,
        text: Text<'_>,
        max_tokens: u64,
        keep: Keep,
        marker: Text<'_>,
        stop: &AtomicBool,
    ) -> Option<Vec<u8>> {
        if self.count_text(text, max_tokens, stop).is_some() {
            return None;
        }
        let best = self.cut(text, max_tokens, keep, marker, stop);
        Some(best.map_or_else(Vec::new, |(_, piece)| piece))
    }

    /// Returns a long piece of at most `max_tokens` tokens: its count, and the
    /// piece, encoded as in [`Text::Utf8`]; None where nothing is left.
    pub(crate) fn cut(
        &self,
        text: Text<'_>,
        max_tokens: u64,
        keep: Keep,
        marker: Text<'_>,
        stop: &AtomicBool,
    ) -> Option<(u64, Vec<u8>)> {
        let model = self.model();
        if !model.is_exact() {
            return self.cut_by_count(text, max_tokens, keep, marker, stop);
        }
        let count = |text: Text<'_>, limit| count_text(model, text, limit, stop);
        let room = max_tokens - count(marker, max_tokens)?;
        let chars = text.chars();
        let most = chars.saturating_sub(marker.chars());
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let head_tokens = keep.head(room);

        // No more of the text is looked at than may stay.
        let reach = room.saturating_mul(LONGEST_TOKEN).saturating_add(SLACK);
        let front = text.slice(0, if keep == Keep::End { 0 } else { chars.min(reach) });
        let back = if keep == Keep::Start {
            chars
        } else {
            text.last_plain_pair(chars.saturating_sub(reach))
        };
        let behind = text.slice(back, chars);
        let front_cut = Cut::new(front, keep, marker, stop);
        let back_cut = Cut::new(behind, keep, marker, stop);

        let is_stopped = || stop.load(Ordering::Relaxed);
        let mut utf8 = Vec::with_capacity(front.chars());
        front.write_scalars_till(&mut utf8, stop);
        let end = end_of_tokens(model, &utf8, head_tokens as u64, stop);
        if is_stopped() {
            return None;
        }
        let (mut head, _) = front.places_of(end, end, stop);
        let mut tail = chars;
        if keep != Keep::Start {
            utf8.clear();
            behind.write_scalars_till(&mut utf8, stop);
            let all = count(Text::from_utf8(&utf8), u64::MAX)?;
            let left_out = all.saturating_sub((room - head_tokens) as u64);
            let end = end_of_tokens(model, &utf8, left_out, stop);
            if is_stopped() {
                return None;
            }
            tail = (back + behind.places_of(end, end, stop).1).max(head);
        }
        // The piece is never longer than the text.
        if head + (chars - tail) > most {
            let most_head = keep.head(most);
            head = head.min(most_head);
            tail = tail.max(chars - (most - most_head));
        }
        let next_boundary = |at: usize| back + back_cut.next_boundary(at - back);
        head = front_cut.last_boundary(head);
        tail = if tail == chars { chars } else { next_boundary(tail) };

        let mut tries = 0;
        let mut clusters = 1;
        while head > 0 || tail < chars {
            let mut piece = Vec::new();
            text.slice(0, head).write_utf8(&mut piece);
            marker.write_utf8(&mut piece);
            text.slice(tail, chars).write_utf8(&mut piece);
            if let Some(tokens) = count(Text::from_utf8(&piece), max_tokens) {
                return Some((tokens, piece));
            }
            if is_stopped() {
                break;
            }
            tries += 1;
            if tries > SINGLE_TRIES {
                clusters *= 2;
            }
            for _ in 0..clusters {
                if head > 0 && head >= chars - tail {
                    head = front_cut.last_boundary(head - 1);
                } else if tail < chars {
                    tail = next_boundary(tail + 1);
                }
            }
        }
        None
    }
}

impl Exact {
    /// Does what [`Exact::cut`] does where it is not known which tokens a text
    /// has: pieces are counted.
    fn cut_by_count(
        &self,
        text: Text<'_>,
        max_tokens: u64,
        keep: Keep,
        marker: Text<'_>,
        stop: &AtomicBool,
    ) -> Option<(u64, Vec<u8>)> {
        let cut = Cut::new(text, keep, marker, stop);
        let count = |head, tail| {
            let piece = cut.utf8(head, tail);
            let counted = count_text(self.model(), Text::from_utf8(&piece), max_tokens, stop);
            if stop.load(Ordering::Relaxed) {
                return Err(());
            }
            Ok(counted.unwrap_or(u64::MAX))
        };
        let best = cut.longest(max_tokens, count).unwrap_or_default()?;
        Some((best.tokens, cut.utf8(best.head, best.tail)))
    }
}

impl Text<'_> {
    /// Returns the last place up to `from` that is between two characters that
    /// are clusters whatever stands beside them; 0 if there is none.
    fn last_plain_pair(&self, from: usize) -> usize {
        let is_plain = |code: u32| matches!(code, 0xA | 0x20..=0x7E | 0x4E00..=0x9FFF);
        if !matches!(self, Self::Utf8(_)) {
            let from = from.min(self.chars().saturating_sub(1));
            let is_pair = |&at: &usize| is_plain(self.code(at - 1)) && is_plain(self.code(at));
            return (1..=from).rev().find(is_pair).unwrap_or(0);
        }
        let (mut place, mut last) = (0, 0);
        let mut was_plain = false;
        self.for_each(|code| {
            let plain = is_plain(code);
            if plain && was_plain && place <= from {
                last = place;
            }
            was_plain = plain;
            place += 1;
        });
        last
    }

    /// Returns two places in code points, for bytes in the output of
    /// [`Text::write_scalars`]: the last one that is not behind the byte
    /// `head`, and the first one that is not in front of the byte `tail`.
    fn places_of(self, head: usize, tail: usize, stop: &AtomicBool) -> (usize, usize) {
        let (mut places, mut bytes) = (0, 0);
        let (mut last, mut next) = (0, (tail == 0).then_some(0));
        let mut was_high = false;
        let mut visit = |code| {
            let is_low = code & !0x3FF == 0xDC00;
            // The second of a pair makes it four bytes; the first alone made
            // three.
            bytes += match code {
                0..0x80 => 1,
                0x80..0x800 => 2,
                _ if is_low && was_high => 1,
                0x800..0x1_0000 => 3,
                _ => 4,
            };
            was_high = code & !0x3FF == 0xD800;
            places += 1;
            if bytes <= head {
                last = places;
            }
            if bytes >= tail {
                next.get_or_insert(places);
            }
        };
        self.parts(stop).for_each(|part| part.for_each(&mut visit));
        (last, next.unwrap_or(places))
    }
}
