//! What became of the chunks.

use std::collections::HashMap;

use crate::chunk::Batch;
use crate::count::Factor;
use crate::text::Text;

/// Why a chunk is not in the packed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// It scores below the minimum.
    OutOfScope,
    /// Its text is empty.
    Empty,
    /// The maximum number of chunks was reached.
    Cap,
    /// A kept chunk has the same or nearly the same text: see
    /// [`Dedupe`](crate::Dedupe).
    Duplicate,
    /// It did not fit.
    Budget,
}

/// A kept chunk, by rank.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// Its place in the input.
    pub index: u32,
    /// The tokens of its text alone, after any cut.
    pub tokens: u64,
    /// The tokens set aside for citing it.
    pub citation: u64,
}

/// A dropped chunk, in the order in which that was decided.
#[derive(Clone, Copy, Debug)]
pub struct Dropped {
    /// Its place in the input.
    pub index: u32,
    /// Why it was dropped.
    pub reason: Reason,
    /// Under [`Reason::Budget`], the tokens that it would have added, or a
    /// lower bound.
    pub needed: u64,
    /// Under [`Reason::Budget`], the tokens that were left.
    pub available: u64,
}

/// All dropped chunks in the order in which that was decided, as columns: a
/// million of them take no more memory than their figures.
#[derive(Clone, Debug, Default)]
pub struct DroppedColumns {
    /// [`Dropped::index`] of each.
    pub index: Vec<u32>,
    /// [`Dropped::reason`] of each.
    pub reason: Vec<Reason>,
    /// [`Dropped::needed`] of each.
    pub needed: Vec<u64>,
    /// [`Dropped::available`] of each.
    pub available: Vec<u64>,
}

impl DroppedColumns {
    pub(crate) fn reserve(&mut self, count: usize) {
        self.index.reserve_exact(count);
        self.reason.reserve_exact(count);
        self.needed.reserve_exact(count);
        self.available.reserve_exact(count);
    }

    pub(crate) fn push(&mut self, dropped: Dropped) {
        let Dropped { index, reason, needed, available } = dropped;
        self.index.push(index);
        self.reason.push(reason);
        self.needed.push(needed);
        self.available.push(available);
    }

    /// Multiplies the tokens of a chunk that did not fit.
    pub(crate) fn scale(&mut self, factor: Factor) {
        let needed = self.needed.iter_mut().zip(&mut self.available);
        for ((needed, available), reason) in needed.zip(&self.reason) {
            if *reason == Reason::Budget {
                (*needed, *available) = (factor.of(*needed), factor.left(*available));
            }
        }
    }

    /// Returns the rows.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Dropped> {
        (0..self.index.len()).map(|place| Dropped {
            index: self.index[place],
            reason: self.reason[place],
            needed: self.needed[place],
            available: self.available[place],
        })
    }
}

/// The frame of a kept chunk, and its text if that is escaped or written by the
/// caller's function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame {
    /// The text in front.
    pub(crate) front: Vec<u8>,
    /// The text behind.
    pub(crate) back: Vec<u8>,
    /// The text of the chunk as it is escaped or written, if it is.
    pub(crate) escaped: Option<Vec<u8>>,
    /// The source of the chunk, and its position there; NaN for unknown.
    pub(crate) source: Vec<u8>,
    pub(crate) position: f64,
}

impl Frame {
    /// Returns the text that the caller's function has written.
    pub(crate) fn written(&self) -> Text<'_> {
        Text::from_utf8(self.escaped.as_deref().unwrap_or_default())
    }
}

/// The text of a kept chunk with its frame. All of it is encoded as in
/// [`Text::Utf8`].
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// The text in front.
    pub front: &'a [u8],
    /// The chunk.
    pub index: usize,
    /// The text of the chunk, if it was cut, escaped or written.
    pub changed: Option<&'a [u8]>,
    /// Whether something of its text was left out.
    pub was_cut: bool,
    /// The text behind.
    pub back: &'a [u8],
}

impl<'a> Part<'a> {
    /// Returns the text of the chunk as it stands in the packed text.
    pub fn body<B: Batch>(&self, batch: &'a B) -> Text<'a> {
        self.changed.map_or_else(|| batch.text(self.index), Text::from_utf8)
    }
}

/// What became of the chunks so far.
#[derive(Debug, Default)]
pub(crate) struct Admitted {
    pub(crate) kept: Vec<Kept>,
    /// The frame of each kept chunk; empty where there are none.
    pub(crate) frames: Vec<Frame>,
    pub(crate) dropped: DroppedColumns,
    /// The dropped duplicates, each with the kept chunk that it repeats.
    pub(crate) duplicates: Vec<(u32, u32)>,
    /// The chunks that were cut, each with the rest of its text: at most one,
    /// except under [`Policy::SumOfParts`](crate::plan::Policy::SumOfParts).
    pub(crate) cuts: Vec<(u32, Vec<u8>)>,
    /// Whether there is no notice, as the best chunk needs its room.
    pub(crate) notice_yields: bool,
}

impl Admitted {
    /// Returns how many dropped chunks the notice tells of; 0 where there is none.
    pub(crate) fn noticed(&self) -> usize {
        if self.notice_yields { 0 } else { self.dropped.index.len() }
    }

    /// Returns what stands in the text for the kept chunk at `place`.
    pub(crate) fn part(&self, place: usize) -> Part<'_> {
        let Kept { index, .. } = self.kept[place];
        let cut = self.cuts.iter().find(|(cut, _)| *cut == index);
        let frame = self.frames.get(place);
        let escaped = frame.and_then(|frame| frame.escaped.as_deref());
        Part {
            front: frame.map_or(&[], |frame| &frame.front),
            index: index as usize,
            changed: cut.map(|(_, piece)| piece.as_slice()).or(escaped),
            was_cut: cut.is_some(),
            back: frame.map_or(&[], |frame| &frame.back),
        }
    }

    /// Drops duplicates of a chunk that left for the same reason as that chunk.
    /// `left` has the figures of each chunk that left.
    pub(crate) fn drop_repeated(&mut self, left: &HashMap<u32, (u64, u64)>) {
        let Self { dropped, duplicates, .. } = self;
        // Both lists are in the order of the decisions.
        let mut repeated = std::mem::take(duplicates).into_iter();
        for place in 0..dropped.index.len() {
            if dropped.reason[place] != Reason::Duplicate {
                continue;
            }
            let Some((index, original)) = repeated.next() else { break };
            if let Some(&(needed, available)) = left.get(&original) {
                dropped.reason[place] = Reason::Budget;
                dropped.needed[place] = needed;
                dropped.available[place] = available;
            } else {
                duplicates.push((index, original));
            }
        }
    }
}
