//! Cutting a text at the ends of grapheme clusters.

use std::borrow::Cow;
use std::convert::Infallible;

use unicode_segmentation::UnicodeSegmentation;

use crate::count::exact::GO_ON;
use crate::count::{Estimate, Native, TokenCounter};
use crate::text::Text;

mod exact;

/// Which part of a text a cut keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Its start.
    Start,
    /// Its end.
    End,
    /// Both; the middle is cut out.
    Both,
}

impl Keep {
    /// Returns how many of `size` units the start gets. It gets the odd one
    /// too.
    fn head(self, size: usize) -> usize {
        match self {
            Self::Start => size,
            Self::End => 0,
            Self::Both => size - size / 2,
        }
    }
}

/// Returns the places where grapheme clusters end, in code points, with 0 and
/// the length.
#[must_use]
pub fn grapheme_boundaries(text: Text<'_>) -> Vec<usize> {
    let mut string = String::with_capacity(text.chars());
    // A surrogate stands alone, like the line separator that replaces it.
    text.for_each(|code| string.push(char::from_u32(code).unwrap_or('\u{2028}')));
    let mut at = 0;
    let mut boundaries = vec![0];
    boundaries.extend(string.graphemes(true).map(|cluster| {
        at += cluster.chars().count();
        at
    }));
    boundaries
}

/// A text, and the pieces of it that a cut may leave.
#[derive(Debug)]
pub(crate) struct Cut<'a> {
    text: Text<'a>,
    chars: usize,
    keep: Keep,
    marker: Text<'a>,
    /// None for ASCII, where the only cluster of two bytes is a line end.
    boundaries: Option<Vec<usize>>,
}

/// A piece that a cut leaves: the code points up to `head`, the marker, and the
/// code points from `tail` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) head: usize,
    pub(crate) tail: usize,
    pub(crate) tokens: u64,
}

impl<'a> Cut<'a> {
    pub(crate) fn new(text: Text<'a>, keep: Keep, marker: Text<'a>) -> Self {
        let boundaries = match text {
            Text::Ascii(_) => None,
            _ => Some(grapheme_boundaries(text)),
        };
        Self { text, chars: text.chars(), keep, marker, boundaries }
    }

    /// Returns the longest piece that counts at most `max_tokens` tokens.
    ///
    /// It is never longer than the text. The bisection assumes that a longer
    /// piece counts no less. Where that is not so, the piece still fits, but a
    /// longer one might have fitted too.
    pub(crate) fn longest<E>(
        &self,
        max_tokens: u64,
        mut count: impl FnMut(usize, usize) -> Result<u64, E>,
    ) -> Result<Option<Piece>, E> {
        let mut best = None;
        let (mut low, mut high) = (0, self.chars.saturating_sub(self.marker.chars()));
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            let Some((head, tail)) = self.ends(middle) else {
                low = middle;
                continue;
            };
            let tokens = count(head, tail)?;
            if tokens <= max_tokens {
                low = middle;
                best = Some(Piece { head, tail, tokens });
            } else {
                high = middle - 1;
            }
        }
        Ok(best)
    }

    /// Returns where the head ends and the tail begins when at most `size` code
    /// points stay, or None where nothing would stay.
    fn ends(&self, size: usize) -> Option<(usize, usize)> {
        let head = self.keep.head(size);
        let tail = self.chars - (size - head);
        let (head, tail) = (self.last_boundary(head), self.next_boundary(tail));
        (head > 0 || tail < self.chars).then_some((head, tail))
    }

    /// Returns the last place up to `at` where a cluster ends.
    fn last_boundary(&self, at: usize) -> usize {
        match &self.boundaries {
            Some(boundaries) => boundaries[boundaries.partition_point(|&end| end <= at) - 1],
            None => at - usize::from(self.splits_line_end(at)),
        }
    }

    /// Returns the first place from `at` on where a cluster ends.
    fn next_boundary(&self, at: usize) -> usize {
        match &self.boundaries {
            Some(boundaries) => boundaries[boundaries.partition_point(|&end| end < at)],
            None => at + usize::from(self.splits_line_end(at)),
        }
    }

    fn splits_line_end(&self, at: usize) -> bool {
        let Text::Ascii(bytes) = self.text else {
            unreachable!("only ASCII goes without boundaries");
        };
        at > 0 && bytes[at - 1..].starts_with(b"\r\n")
    }

    /// Returns the measure of a piece.
    pub(crate) fn measure(
        &self,
        estimate: Estimate,
        head: usize,
        tail: usize,
        scratch: &mut Vec<u8>,
    ) -> u64 {
        if estimate == Estimate::Words {
            scratch.clear();
            self.text.slice(0, head).fold_onto(scratch);
            self.marker.fold_onto(scratch);
            self.text.slice(tail, self.chars).fold_onto(scratch);
            estimate.measure_folded(scratch)
        } else {
            (head + self.marker.chars() + self.chars - tail) as u64
        }
    }

    /// Returns a piece, encoded as in [`Text::Utf8`].
    pub(crate) fn utf8(&self, head: usize, tail: usize) -> Vec<u8> {
        let mut piece = Vec::new();
        self.text.slice(0, head).write_utf8(&mut piece);
        self.marker.write_utf8(&mut piece);
        self.text.slice(tail, self.chars).write_utf8(&mut piece);
        piece
    }
}

/// Returns `text` cut to at most `max_tokens` tokens, the marker included; or
/// None where it fits as it is.
///
/// The piece is encoded as in [`Text::Utf8`]. It never splits a grapheme
/// cluster and is never longer than the text. It is empty where not even one
/// cluster fits beside the marker.
///
/// # Errors
///
/// An error of `count`. An [`Estimate`] never fails.
///
/// # Examples
///
/// ```
/// use budgeteer::{Estimate, Keep, truncate};
///
/// let cut = truncate("A long sentence.".into(), 3, Keep::Start, " [...]".into(), |text| {
///     Ok::<_, ()>(Estimate::CharsDiv4.count_text(text, &mut Vec::new()))
/// });
/// assert_eq!(cut, Ok(Some(b"A long [...]".to_vec())));
/// ```
pub fn truncate<E>(
    text: Text<'_>,
    max_tokens: u64,
    keep: Keep,
    marker: Text<'_>,
    mut count: impl FnMut(Text<'_>) -> Result<u64, E>,
) -> Result<Option<Vec<u8>>, E> {
    if count(text)? <= max_tokens {
        return Ok(None);
    }
    let cut = Cut::new(text, keep, marker);
    let best =
        cut.longest(max_tokens, |head, tail| count(Text::from_utf8(&cut.utf8(head, tail))))?;
    Ok(Some(best.map_or_else(Vec::new, |piece| cut.utf8(piece.head, piece.tail))))
}

/// Returns `text` cut to at most `max_tokens` tokens, with any counter.
pub(crate) fn cut_to<'a>(
    text: &'a str,
    max_tokens: usize,
    keep: Keep,
    marker: &str,
    counter: &dyn TokenCounter,
) -> Cow<'a, str> {
    let (whole, marker, limit) = (Text::from(text), Text::from(marker), max_tokens as u64);
    let mut scratch = Vec::new();
    let cut = match counter.native() {
        Some(Native::Exact(exact)) => exact.truncate(whole, limit, keep, marker, &GO_ON),
        Some(Native::Estimate(estimate)) => {
            let count = |piece: Text<'_>| Ok(estimate.count_text(piece, &mut scratch));
            let Ok::<_, Infallible>(cut) = truncate(whole, limit, keep, marker, count);
            cut
        }
        None => {
            let count = |piece: Text<'_>| {
                scratch.clear();
                piece.write_utf8(&mut scratch);
                Ok(counter.count(&String::from_utf8_lossy(&scratch)) as u64)
            };
            let Ok::<_, Infallible>(cut) = truncate(whole, limit, keep, marker, count);
            cut
        }
    };
    cut.map_or(Cow::Borrowed(text), |cut| {
        Cow::Owned(String::from_utf8(cut).expect("whole characters of a string make a string"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, max_tokens: u64, keep: Keep, marker: &str) -> Option<String> {
        let count = |text: Text<'_>| Ok::<_, ()>(text.chars() as u64);
        truncate(text.into(), max_tokens, keep, marker.into(), count)
            .unwrap()
            .map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn clusters_stay_whole() {
        assert_eq!(Some("e\u{301}"), cut("e\u{301}🇷🇸🇮🇴", 3, Keep::Start, "").as_deref());
        assert_eq!(Some("🇮🇴"), cut("e\u{301}🇷🇸🇮🇴", 3, Keep::End, "").as_deref());
        assert_eq!(Some("a"), cut("a\r\nb", 2, Keep::Start, "").as_deref());
        assert_eq!(Some("b"), cut("a\r\nb", 2, Keep::End, "").as_deref());
    }

    #[test]
    fn both_ends_stay() {
        assert_eq!(Some("abc..ij"), cut("abcdefghij", 7, Keep::Both, "..").as_deref());
        assert_eq!(None, cut("abc", 3, Keep::Both, ".."));
    }

    #[test]
    fn nothing_is_left_where_the_marker_does_not_fit() {
        assert_eq!(Some(""), cut("abcdef", 2, Keep::Start, " [...]").as_deref());
    }
}
