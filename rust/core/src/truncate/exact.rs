//! Cutting under an exact counter.

use std::sync::atomic::AtomicBool;

use super::{Cut, Keep, Piece};
use crate::count::Exact;
use crate::count::exact::{count_text, end_of_tokens};
use crate::text::Text;

/// So many times a piece that is still over loses one cluster; after that,
/// twice as many each time.
const SINGLE_TRIES: usize = 8;

impl Exact {
    /// Returns `text` cut to at most `max_tokens` tokens, the marker included; or
    /// None where it fits as it is. The answer means nothing once `stop` is set.
    ///
    /// Like [`truncate`](crate::truncate), but each token of the text is looked
    /// at once: a piece ends where a token does, or the cluster before, and is
    /// made shorter where what is left still counts more.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::atomic::AtomicBool;
    ///
    /// use budgeteer::{Encoding, Exact, Keep};
    ///
    /// let exact = Exact::new(Encoding::O200k);
    /// let never = AtomicBool::new(false);
    /// let cut = exact.truncate("A long sentence.".into(), 2, Keep::Start, "".into(), &never);
    /// assert_eq!(cut, Some(b"A long".to_vec()));
    /// ```
    #[must_use]
    pub fn truncate(
        self,
        text: Text<'_>,
        max_tokens: u64,
        keep: Keep,
        marker: Text<'_>,
        stop: &AtomicBool,
    ) -> Option<Vec<u8>> {
        if self.count_text(text, max_tokens, stop).is_some() {
            return None;
        }
        let cut = Cut::new(text, keep, marker);
        let best = self.cut(&cut, max_tokens, stop);
        Some(best.map_or_else(Vec::new, |piece| cut.utf8(piece.head, piece.tail)))
    }

    /// Returns a long piece of at most `max_tokens` tokens.
    pub(crate) fn cut(self, cut: &Cut<'_>, max_tokens: u64, stop: &AtomicBool) -> Option<Piece> {
        let encoding = self.encoding();
        let count = |text: Text<'_>, limit| count_text(encoding, text, limit, stop);
        let room = max_tokens - count(cut.marker, max_tokens)?;
        let most = cut.chars.saturating_sub(cut.marker.chars());
        let tokens = usize::try_from(room).unwrap_or(usize::MAX);
        let head_tokens = cut.keep.head(tokens) as u64;
        let mut utf8 = Vec::new();
        cut.text.write_scalars(&mut utf8);
        let head = end_of_tokens(encoding, &utf8, head_tokens);
        let tail = if cut.keep == Keep::Start {
            utf8.len()
        } else {
            let all = count(Text::from_utf8(&utf8), u64::MAX)?;
            end_of_tokens(encoding, &utf8, all.saturating_sub(room - head_tokens))
        };
        let (mut head, mut tail) = cut.text.places_of(head, tail.max(head));
        // Never longer than the text.
        if head + (cut.chars - tail) > most {
            let most_head = cut.keep.head(most);
            head = head.min(most_head);
            tail = tail.max(cut.chars - (most - most_head));
        }
        (head, tail) = (cut.last_boundary(head), cut.next_boundary(tail));

        let mut tries = 0;
        let mut clusters = 1;
        while head > 0 || tail < cut.chars {
            let piece = cut.utf8(head, tail);
            if let Some(tokens) = count(Text::from_utf8(&piece), max_tokens) {
                return Some(Piece { head, tail, tokens });
            }
            tries += 1;
            if tries > SINGLE_TRIES {
                clusters *= 2;
            }
            for _ in 0..clusters {
                if head > 0 && head >= cut.chars - tail {
                    head = cut.last_boundary(head - 1);
                } else if tail < cut.chars {
                    tail = cut.next_boundary(tail + 1);
                }
            }
        }
        None
    }
}

impl Text<'_> {
    /// Returns the last place, in code points, that is not behind the byte
    /// `head` of what [`Text::write_scalars`] writes, and the first that is not
    /// in front of the byte `tail`.
    fn places_of(&self, head: usize, tail: usize) -> (usize, usize) {
        let (mut places, mut bytes) = (0, 0);
        let (mut last, mut next) = (0, (tail == 0).then_some(0));
        let mut was_high = false;
        self.for_each(|code| {
            let is_low = code & !0x3FF == 0xDC00;
            // The second of a pair makes four bytes of the three that stand
            // for the first alone.
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
        });
        (last, next.unwrap_or(places))
    }
}
