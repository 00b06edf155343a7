//! Many calls at once: rows of a table, each a call of its own.

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use crate::threads::{extra, share};

/// The fewest and the most rows that a thread takes at a time.
const FEW_ROWS: usize = 16;
const MANY_ROWS: usize = 4_096;

/// Into about how many parts the rows of a table of some size are divided.
const PARTS: usize = 64;

/// Does `work` for all of `count` rows, some at a time: in several threads, if
/// there are more rows than a thread takes. Returns the results in the order of
/// the rows. How they are divided depends on nothing but their number. Once
/// `stop` is set no more are taken.
pub fn share_rows<R: Send>(
    count: usize,
    stop: &AtomicBool,
    work: impl Fn(Range<usize>) -> R + Sync,
) -> Vec<R> {
    let size = count.div_ceil(PARTS).clamp(FEW_ROWS, MANY_ROWS);
    let extra = extra(count.div_ceil(size).saturating_sub(1));
    let blocks = (0..count).step_by(size).map(|first| first..count.min(first + size));
    share(&mut vec![(); 1 + extra.count()], blocks, stop, |(), rows| work(rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every row is in one block, and the blocks are in order.
    #[test]
    fn all_rows_once() {
        for count in [0, 1, 16, 17, 1_000, 5_000, 300_000] {
            let blocks = share_rows(count, &AtomicBool::new(false), |rows| rows);
            assert!(blocks.iter().cloned().flatten().eq(0..count), "{count} rows");
            assert!(blocks.iter().all(|rows| rows.len() <= MANY_ROWS));
        }
    }
}
