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
        let extra = extra(more_for(chars));
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

/// Returns how many threads more pay for so many code points.
fn more_for(chars: usize) -> usize {
    (chars / PARALLEL_CHARS).min(MOST_EXTRA)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_more_reads_each_so_many_characters() {
        let numbers = [0, 3_999_999, 4_000_000, 8_000_000, 11_999_999, 40_000_000, 400_000_000];
        assert_eq!([0, 0, 1, 2, 2, 7, 7], numbers.map(more_for));
    }

    #[test]
    fn a_thread_takes_as_many_texts_as_have_a_block_of_characters() {
        let size = |count, chars| Sharing::of(count, chars).size();
        assert_eq!([1, 500], [size(0, 0), size(500, 3_999_999)]);
        assert_eq!([25, 25, 12], [4_000_000, 4_199_999, 8_200_000].map(|chars| size(500, chars)));
        assert_eq!(1, size(3, 80_000_000));
    }

    #[test]
    fn each_thread_has_a_reader() {
        let sharing = Sharing { extra: extra(0), size: 2 };
        assert_eq!((1, vec![7]), (sharing.threads(), sharing.readers(7, |one| one + 1)));
        assert_eq!(vec![3..5, 5..7, 7..8], sharing.blocks(3..8).collect::<Vec<_>>());
        let large = Sharing::of(500, 80_000_000);
        assert_eq!(large.threads(), large.readers(0, |one| one + 1).len());
        assert!((1..=MOST_EXTRA + 1).contains(&large.threads()));
    }
}
