//! What became of the chunks.

use std::collections::HashMap;

use crate::chunk::Batch;
use crate::text::Text;

/// Why a chunk is not in the packed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// It scores below the minimum.
    OutOfScope,
    /// Its text is empty.
    Empty,
    /// As many chunks as allowed were kept.
    Cap,
    /// A kept chunk has the same text, or nearly: see [`Dedupe`](crate::Dedupe).
    Duplicate,
    /// It did not fit.
    Budget,
}

/// A chunk that is in, by rank.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// Its place in the input.
    pub index: u32,
    /// Tokens of its text alone, cut where it was cut.
    pub tokens: u64,
    /// Tokens set aside for citing it.
    pub citation: u64,
}

/// A chunk that is not in, in the order in which that was decided.
#[derive(Clone, Copy, Debug)]
pub struct Dropped {
    /// Its place in the input.
    pub index: u32,
    /// Why it is not in.
    pub reason: Reason,
    /// Under [`Reason::Budget`], what it would have added, or a lower bound.
    pub needed: u64,
    /// Under [`Reason::Budget`], what was left.
    pub available: u64,
}

/// All chunks that are not in, in the order in which that was decided, as
/// columns: a million of them take no more than their figures.
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

/// What stands around the text of a kept chunk, and what becomes of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame {
    /// What stands in front of the text.
    pub(crate) front: Vec<u8>,
    /// What stands behind it.
    pub(crate) back: Vec<u8>,
    /// The text as it is escaped, if anything is.
    pub(crate) escaped: Option<Vec<u8>>,
    /// Where the chunk comes from, and where it stands there, NaN for unknown.
    pub(crate) source: Vec<u8>,
    pub(crate) position: f64,
}

/// What stands in the text for a kept chunk. All is encoded as in
/// [`Text::Utf8`].
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// What stands in front of the text.
    pub front: &'a [u8],
    /// The chunk.
    pub index: usize,
    /// What stands for its text, where that was cut or escaped.
    pub changed: Option<&'a [u8]>,
    /// Whether something of its text was left out.
    pub was_cut: bool,
    /// What stands behind the text.
    pub back: &'a [u8],
}

impl<'a> Part<'a> {
    /// Returns what stands for the text of the chunk.
    pub fn body<B: Batch>(&self, batch: &'a B) -> Text<'a> {
        self.changed.map_or_else(|| batch.text(self.index), Text::from_utf8)
    }
}

/// What became of the chunks so far.
#[derive(Debug, Default)]
pub(crate) struct Admitted {
    pub(crate) kept: Vec<Kept>,
    /// What stands around each kept chunk; empty where nothing does.
    pub(crate) frames: Vec<Frame>,
    pub(crate) dropped: DroppedColumns,
    /// Dropped duplicates, and the kept chunk that each one repeats.
    pub(crate) duplicates: Vec<(u32, u32)>,
    /// The index of each chunk that was cut, and what stands for what is left of
    /// it: one at most, but where parts are summed up.
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

    /// Lets what repeated a chunk that left go for the same reason. `left` has
    /// the figures of each that left.
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
