//! How the texts of a large batch are shared among threads.

use std::ops::Range;

use crate::threads::{Extra, extra};

/// From this many code points on, texts are read by several threads: one more
/// for each so many. That is some milliseconds' work.
const PARALLEL_CHARS: usize = 4_000_000;

/// The most threads that read beside the calling one: memory is not faster for
/// more.
const MOST_EXTRA: usize = 7;

/// About how many code points a thread takes at a time, before it looks whether
/// to go on.
const BLOCK_CHARS: usize = 200_000;

/// How the texts of a batch are shared among threads.
#[derive(Debug)]
pub(crate) struct Sharing {
    extra: Extra,
    /// The number of texts that a thread takes at a time.
    size: usize,
}

impl Sharing {
    /// Shares `count` texts of `chars` code points in all, where that pays.
    pub(crate) fn of(count: usize, chars: usize) -> Self {
        let extra = extra((chars / PARALLEL_CHARS).min(MOST_EXTRA));
        let size = if chars < PARALLEL_CHARS { count } else { count / (chars / BLOCK_CHARS) };
        let size = size.max(1);
        Self { extra, size }
    }

    /// Returns what each thread reads with: `reader` and others like it.
    pub(crate) fn readers<R>(&self, reader: R, another: impl Fn(&R) -> R) -> Vec<R> {
        let mut readers = Vec::with_capacity(self.threads());
        readers.push(reader);
        for _ in 0..self.extra.count() {
            readers.push(another(&readers[0]));
        }
        readers
    }

    /// Returns how many threads read.
    pub(crate) fn threads(&self) -> usize {
        1 + self.extra.count()
    }

    /// Returns the number of texts that a thread takes at a time.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Returns some of the places, as many at a time as a thread takes.
    pub(crate) fn blocks(
        &self,
        places: Range<usize>,
    ) -> impl Iterator<Item = Range<usize>> + Send + use<> {
        let (size, end) = (self.size, places.end);
        places.step_by(size).map(move |from| from..end.min(from.saturating_add(size)))
    }
}
