//! What BM25 makes of the lengths of chunks.

/// The longest chunk whose norm is looked up.
const LONGEST: usize = 1 << 10;

/// The norms of the lengths of chunks.
#[derive(Debug)]
pub(super) struct Norms<'a> {
    lengths: &'a [u32],
    /// The norm of each short length.
    known: Vec<f64>,
    average: f64,
    k1: f64,
    b: f64,
}

impl<'a> Norms<'a> {
    pub(super) fn new(lengths: &'a [u32], average: f64, k1: f64, b: f64, longest: u32) -> Self {
        let mut norms = Self { lengths, known: Vec::new(), average, k1, b };
        let count = LONGEST.min(longest as usize + 1);
        norms.known = (0..).take(count).map(|length| norms.compute(length)).collect();
        norms
    }

    pub(super) fn lengths(&self) -> &'a [u32] {
        self.lengths
    }

    /// Reads the lengths of the chunks of a window, all at once: a list that asks
    /// for one here and there waits for memory each time.
    pub(super) fn fetch(&self, start: u32, end: u32) {
        let lengths = &self.lengths[start as usize..end as usize];
        let each_line = lengths.iter().step_by(16);
        std::hint::black_box(each_line.fold(0, |all, length| all | length));
    }

    /// Returns the norms of the chunks of a window.
    pub(super) fn near(&self, start: u32, end: u32) -> Near<'_> {
        Near { lengths: &self.lengths[start as usize..end as usize], ..self.all() }
    }

    fn all(&self) -> Near<'_> {
        Near { norms: self, lengths: self.lengths, known: &self.known, most: self.k1 + 1.0 }
    }

    fn compute(&self, length: u32) -> f64 {
        self.k1 * ((1.0 - self.b) + self.b * (f64::from(length) / self.average))
    }

    #[inline]
    pub(super) fn of_length(&self, length: u32) -> f64 {
        self.all().of_length(length)
    }

    /// Returns what a term counts that occurs so often in a chunk of that norm.
    #[inline]
    pub(super) fn saturated(&self, count: u32, norm: f64) -> f64 {
        self.all().saturated(count, norm)
    }

    /// Returns what a term counts that occurs so often in a chunk; None if there
    /// is no such chunk, as a damaged file's list may name any.
    #[inline]
    pub(super) fn part(&self, count: u32, chunk: u32) -> Option<f64> {
        self.all().part(count, chunk as usize)
    }

    /// Returns the norm of a chunk; None if there is no such chunk, as a damaged
    /// file's list may name any.
    #[inline]
    pub(super) fn of(&self, chunk: u32) -> Option<f64> {
        self.all().of(chunk as usize)
    }
}

/// The norms of the chunks of a window: what is asked for often, beside each
/// other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Near<'a> {
    norms: &'a Norms<'a>,
    lengths: &'a [u32],
    known: &'a [f64],
    /// What a term counts at most.
    most: f64,
}

impl Near<'_> {
    /// Returns what [`Norms::part`] does for the chunk at a place of the window.
    #[inline]
    pub(super) fn part(self, count: u32, at: usize) -> Option<f64> {
        self.of(at).map(|norm| self.saturated(count, norm))
    }

    #[inline]
    fn of(self, at: usize) -> Option<f64> {
        self.lengths.get(at).map(|&length| self.of_length(length))
    }

    #[inline]
    fn of_length(self, length: u32) -> f64 {
        match self.known.get(length as usize) {
            Some(&norm) => norm,
            None => self.norms.compute(length),
        }
    }

    #[inline]
    fn saturated(self, count: u32, norm: f64) -> f64 {
        let count = f64::from(count);
        (count * self.most) / (count + norm)
    }
}
