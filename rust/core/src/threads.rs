//! How many threads work for the process.
//!
//! There is no pool. Threads are made for a large batch and end with it, so a
//! forked child never waits for one.

use std::sync::{Mutex, OnceLock, PoisonError, TryLockError};

/// The number of threads at work beside the callers, and their process: a child
/// that is forked meanwhile has none of them.
static AT_WORK: Mutex<(u32, usize)> = Mutex::new((0, 0));

/// Returns how many threads may work at once: `BUDGETEER_NUM_THREADS` if that
/// is a number from 1 on, else the number of processors.
fn limit() -> usize {
    static LIMIT: OnceLock<usize> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let set = std::env::var("BUDGETEER_NUM_THREADS").ok().and_then(|set| set.parse().ok());
        set.filter(|&threads| threads > 0)
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    })
}

/// A permit for this number of threads, until it is dropped.
#[derive(Debug)]
pub(crate) struct Extra(usize);

impl Extra {
    pub(crate) fn count(&self) -> usize {
        self.0
    }
}

impl Drop for Extra {
    fn drop(&mut self) {
        if self.0 > 0 {
            let mut at_work = AT_WORK.lock().unwrap_or_else(PoisonError::into_inner);
            if at_work.0 == std::process::id() {
                at_work.1 -= self.0;
            }
        }
    }
}

/// Returns a permit for at most `wanted` threads beside the calling one.
pub(crate) fn extra(wanted: usize) -> Extra {
    if wanted == 0 || limit() == 1 {
        return Extra(0);
    }
    // If another thread holds the lock, or held it when the process forked, no
    // threads are given.
    let mut at_work = match AT_WORK.try_lock() {
        Ok(at_work) => at_work,
        Err(TryLockError::Poisoned(at_work)) => at_work.into_inner(),
        Err(TryLockError::WouldBlock) => return Extra(0),
    };
    let process = std::process::id();
    if at_work.0 != process {
        *at_work = (process, 0);
    }
    let count = wanted.min((limit() - 1).saturating_sub(at_work.1));
    at_work.1 += count;
    Extra(count)
}
