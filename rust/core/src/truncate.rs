//! Cutting a text at the ends of grapheme clusters, or between words where words
//! are what is counted.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::count::exact::GO_ON;
use crate::count::{Estimate, Native, TokenCounter};
use crate::text::{LOOK, Text, is_space};

mod boundaries;
mod exact;

pub(crate) use boundaries::Boundaries;
pub use boundaries::grapheme_boundaries;

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

/// A text, and the pieces of it that a cut may leave.
#[derive(Debug)]
pub(crate) struct Cut<'a> {
    text: Text<'a>,
    chars: usize,
    keep: Keep,
    marker: Text<'a>,
    /// None for ASCII, where the only cluster of two bytes is a line end.
    boundaries: Option<Boundaries>,
    /// None unless words are counted.
    words: Option<Words>,
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
    /// Returns the cut. It means nothing once `stop` is set.
    pub(crate) fn new(text: Text<'a>, keep: Keep, marker: Text<'a>, stop: &AtomicBool) -> Self {
        let boundaries = match text {
            Text::Ascii(_) => None,
            _ => Some(Boundaries::of(text, stop)),
        };
        Self { text, chars: text.chars(), keep, marker, boundaries, words: None }
    }

    /// Returns the cut for an estimate: where words are counted, none is cut.
    pub(crate) fn for_estimate(
        estimate: Estimate,
        text: Text<'a>,
        keep: Keep,
        marker: Text<'a>,
        stop: &AtomicBool,
    ) -> Self {
        if estimate != Estimate::Words {
            return Self::new(text, keep, marker, stop);
        }
        let words = Some(Words::new(text, keep, marker, stop));
        Self { text, chars: text.chars(), keep, marker, boundaries: None, words }
    }

    /// Returns the longest piece that counts at most `max_tokens` tokens.
    ///
    /// It is never longer than the text, but where words are counted: there the
    /// marker may have more characters than the words that it stands for. The
    /// bisection assumes that a longer piece counts no less. Where that is not
    /// so, the piece still fits, but a longer one might have fitted too. Between
    /// words, longer is of more words.
    pub(crate) fn longest<E>(
        &self,
        max_tokens: u64,
        mut count: impl FnMut(usize, usize) -> Result<u64, E>,
    ) -> Result<Option<Piece>, E> {
        let mut best = None;
        let most = match &self.words {
            Some(words) => words.heads.len() + words.tails.len() - 2,
            None => self.chars.saturating_sub(self.marker.chars()),
        };
        let (mut low, mut high) = (0, most);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            let ends = match &self.words {
                Some(words) => words.most_even(middle),
                None => self.ends(middle),
            };
            let Some((head, tail)) = ends else {
                // With so many words nothing is cut out; so few characters
                // are no cluster.
                match self.words {
                    Some(_) => high = middle - 1,
                    None => low = middle,
                }
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
            Some(boundaries) => boundaries.last(at),
            None => at - usize::from(self.splits_line_end(at)),
        }
    }

    /// Returns the first place from `at` on where a cluster ends.
    fn next_boundary(&self, at: usize) -> usize {
        match &self.boundaries {
            Some(boundaries) => boundaries.next(at),
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

/// The places where a text may be cut so that all its words are whole.
#[derive(Debug)]
struct Words {
    /// 0, and where the head ends behind each of its words.
    heads: Vec<usize>,
    /// The length, and where the tail begins with each more of its words.
    tails: Vec<usize>,
}

impl Words {
    fn new(text: Text<'_>, keep: Keep, marker: Text<'_>, stop: &AtomicBool) -> Self {
        let (boundaries, chars) = (Boundaries::of(text, stop), text.chars());
        let mut spaces = Vec::with_capacity(chars);
        for part in text.parts(stop) {
            part.for_each(|code| spaces.push(is_space(code)));
        }
        if stop.load(Ordering::Relaxed) {
            return Self { heads: vec![0], tails: vec![chars] };
        }
        let goes_on = |at: &usize| !at.is_multiple_of(LOOK) || !stop.load(Ordering::Relaxed);
        // A word must not run on into the marker, nor the head into the tail.
        let (before, behind) =
            marker.ends().map_or((keep == Keep::Both, false), |(first, last)| {
                (!is_space(first), !is_space(last))
            });
        let (mut heads, mut tails) = (vec![0], vec![chars]);
        if keep != Keep::End {
            let clusters = (1..chars).take_while(goes_on).filter(|&at| boundaries.has(at));
            heads.extend(ends_of_words(clusters, &spaces, before));
        }
        if keep != Keep::Start {
            let clusters = (1..chars).rev().take_while(goes_on).filter(|&at| boundaries.has(at));
            let clusters = clusters.map(|at| chars - at);
            spaces.reverse();
            tails.extend(ends_of_words(clusters, &spaces, behind).map(|at| chars - at));
        }
        Self { heads, tails }
    }

    /// Returns the piece of that many words with the most even ends, or None if
    /// nothing would be cut out. The start gets the odd word.
    fn most_even(&self, words: usize) -> Option<(usize, usize)> {
        let first = words.saturating_sub(self.tails.len() - 1);
        let last = words.min(self.heads.len() - 1);
        let ends = |of_head: usize| (self.heads[of_head], self.tails[words - of_head]);
        let even = words - words / 2;
        (first..=last)
            .filter(|&of_head| ends(of_head).0 < ends(of_head).1)
            .min_by_key(|of_head| of_head.abs_diff(even))
            .map(ends)
    }
}

/// Returns the first place behind each word but the last at which a cluster ends
/// and no word goes on. With `runs_on`, whitespace must stand in front of the
/// place; else it may stand behind it.
fn ends_of_words(
    clusters: impl Iterator<Item = usize>,
    spaces: &[bool],
    runs_on: bool,
) -> impl Iterator<Item = usize> {
    let (mut last, mut has_word) = (0, false);
    clusters.filter(move |&at| {
        has_word |= spaces[last..at].contains(&false);
        last = at;
        let ends = has_word && (spaces[at - 1] || !runs_on && spaces[at]);
        has_word &= !ends;
        ends
    })
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
    let cut = Cut::new(text, keep, marker, &GO_ON);
    let best =
        cut.longest(max_tokens, |head, tail| count(Text::from_utf8(&cut.utf8(head, tail))))?;
    Ok(Some(best.map_or_else(Vec::new, |piece| cut.utf8(piece.head, piece.tail))))
}

impl Estimate {
    /// Returns `text` cut to at most `max_tokens` tokens, the marker included;
    /// or None where it fits as it is.
    ///
    /// Like [`truncate`], but [`Estimate::Words`] cuts between words: no word is
    /// left in part, and none runs on into the marker. As many words stay as
    /// fit, so that the piece may have more characters than the text where the
    /// marker is longer than what it stands for.
    ///
    /// # Examples
    ///
    /// ```
    /// use budgeteer::{Estimate, Keep};
    ///
    /// let text = "Green tea is not oxidised.";
    /// let cut = Estimate::Words.truncate(text.into(), 4, Keep::Both, " [...] ".into());
    /// assert_eq!(cut, Some(b"Green tea [...] oxidised.".to_vec()));
    /// ```
    #[must_use]
    pub fn truncate(
        self,
        text: Text<'_>,
        max_tokens: u64,
        keep: Keep,
        marker: Text<'_>,
    ) -> Option<Vec<u8>> {
        self.truncate_till(text, max_tokens, keep, marker, &GO_ON)
    }

    /// Does what [`Estimate::truncate`] does. The result means nothing once
    /// `stop` is set.
    #[doc(hidden)]
    #[must_use]
    pub fn truncate_till(
        self,
        text: Text<'_>,
        max_tokens: u64,
        keep: Keep,
        marker: Text<'_>,
        stop: &AtomicBool,
    ) -> Option<Vec<u8>> {
        let mut scratch = Vec::new();
        if self.count_text(text, &mut scratch) <= max_tokens {
            return None;
        }
        let cut = Cut::for_estimate(self, text, keep, marker, stop);
        let best = cut.longest(max_tokens, |head, tail| {
            if stop.load(Ordering::Relaxed) {
                return Err(());
            }
            Ok(self.tokens(cut.measure(self, head, tail, &mut scratch)))
        });
        let best = best.unwrap_or_default();
        Some(best.map_or_else(Vec::new, |piece| cut.utf8(piece.head, piece.tail)))
    }
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
    let cut = match counter.native() {
        Some(Native::Exact(exact, factor)) => {
            exact.truncate(whole, factor.within(limit), keep, marker, &GO_ON)
        }
        Some(Native::Estimate(estimate)) => estimate.truncate(whole, limit, keep, marker),
        None => {
            let mut utf8 = Vec::new();
            let count = |piece: Text<'_>| {
                utf8.clear();
                piece.write_utf8(&mut utf8);
                Ok(counter.count(&String::from_utf8_lossy(&utf8)) as u64)
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
    fn words_stay_whole() {
        let cut = |text: &str, max_tokens, keep, marker: &str| {
            let cut = Estimate::Words.truncate(text.into(), max_tokens, keep, marker.into());
            cut.map(|bytes| String::from_utf8(bytes).unwrap())
        };
        let text = "Green tea is not oxidised.";
        assert_eq!(Some("Green tea is"), cut(text, 3, Keep::Start, "").as_deref());
        assert_eq!(Some("Green tea ..."), cut(text, 3, Keep::Start, "...").as_deref());
        assert_eq!(Some("... not oxidised."), cut(text, 3, Keep::End, "...").as_deref());
        assert_eq!(Some("Green tea oxidised."), cut(text, 3, Keep::Both, "").as_deref());
        // As many words stay as fit, even beside a marker longer than those that go.
        let short = "a bbb c d eeeeeeee f";
        assert_eq!(Some("a bbb [...] eeeeeeee f"), cut(short, 5, Keep::Both, " [...]").as_deref());
        assert_eq!(Some("a bbb c d [...]"), cut(short, 5, Keep::Start, " [...]").as_deref());
        assert_eq!(Some(""), cut(text, 0, Keep::Start, "").as_deref());
        assert_eq!(None, cut(text, 5, Keep::Both, "..."));
    }

    #[test]
    fn nothing_is_left_where_the_marker_does_not_fit() {
        assert_eq!(Some(""), cut("abcdef", 2, Keep::Start, " [...]").as_deref());
    }
}
