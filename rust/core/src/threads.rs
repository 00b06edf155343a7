//! How many threads work for the process.
//!
//! There is no pool. Threads are made for a large batch and end with it, so a
//! forked child never waits for one.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, TryLockError};
use std::thread;

/// The number of threads at work beside the callers, and their process: a child
/// that is forked meanwhile has none of them.
static AT_WORK: Mutex<(u32, usize)> = Mutex::new((0, 0));

/// Returns how many threads may work at once: `BUDGETEER_NUM_THREADS` if that
/// is a number from 1 on, else the number of processors.
fn limit() -> usize {
    static LIMIT: OnceLock<usize> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let set = std::env::var("BUDGETEER_NUM_THREADS").ok();
        set.as_deref()
            .and_then(stated)
            .unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from))
    })
}

/// Returns a number of threads that is from 1 on.
fn stated(set: &str) -> Option<usize> {
    set.parse().ok().filter(|&threads| threads > 0)
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

/// Does `work` for each of `tasks`, in the calling thread and in one more for
/// each further worker, as far as they can be started. Each takes the next task
/// when it is done with one. Returns the results in the order of the tasks.
/// Once `stop` is set no more are taken.
///
/// A panic of any thread goes on in the calling one, when all have ended.
pub(crate) fn share<W: Send, T, R: Send>(
    workers: &mut [W],
    tasks: impl Iterator<Item = T> + Send,
    stop: &AtomicBool,
    work: impl Fn(&mut W, T) -> R + Sync,
) -> Vec<R> {
    let (first, others) = workers.split_first_mut().expect("the calling thread works too");
    if others.is_empty() {
        let tasks = tasks.take_while(|_| !stop.load(Ordering::Relaxed));
        return tasks.map(|task| work(first, task)).collect();
    }
    let tasks = Mutex::new(tasks.enumerate());
    let next = || tasks.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = |worker: &mut W| {
        let mut done = Vec::new();
        while !stop.load(Ordering::Relaxed)
            && let Some((place, task)) = next()
        {
            done.push((place, work(worker, task)));
        }
        done
    };
    let mut done = thread::scope(|scope| {
        let start = |worker| thread::Builder::new().spawn_scoped(scope, || run(worker)).ok();
        let threads: Vec<_> = others.iter_mut().map_while(start).collect();
        let mut done = run(first);
        for thread in threads {
            done.extend(thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|&(place, _)| place);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_number_of_threads_is_from_one_on() {
        let numbers = ["1", "2", "64", "0", "-1", "", "many"].map(stated);
        assert_eq!([Some(1), Some(2), Some(64), None, None, None, None], numbers);
    }

    /// Waits for permits that other tests have.
    fn wait_for(wanted: usize, count: usize) -> Extra {
        let begun = Instant::now();
        loop {
            let extra = extra(wanted);
            if extra.count() == count {
                return extra;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "{extra:?}, not {count}");
            drop(extra);
            thread::yield_now();
        }
    }

    #[test]
    fn no_more_threads_are_permitted_than_there_are_processors() {
        let set = std::env::var("BUDGETEER_NUM_THREADS").ok().and_then(|set| set.parse().ok());
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let most = set.filter(|&set| set > 0).unwrap_or(processors) - 1;
        drop(wait_for(1, most.min(1)));
        for _ in 0..2 {
            let all = wait_for(usize::MAX, most);
            assert_eq!((most, 0), (all.count(), extra(1).count()));
        }
        assert_eq!(0, extra(0).count());
    }

    /// It has none of the threads that its parent was running. That is tested in
    /// a process of its own, as other tests have permits meanwhile.
    #[test]
    fn a_forked_child_is_given_threads() {
        const ALONE: &str = "BUDGETEER_TEST_ALONE";
        if std::env::var_os(ALONE).is_none() {
            let program = std::env::current_exe().expect("it has a path");
            let name = "threads::tests::a_forked_child_is_given_threads";
            let mut command = Command::new(program);
            let done = command.args(["--exact", name]).env(ALONE, "1").output();
            let done = done.expect("it starts");
            let said = String::from_utf8_lossy(&done.stdout);
            assert!(done.status.success() && said.contains("1 passed"), "{said}");
            return;
        }
        let most = limit() - 1;
        let parents = wait_for(usize::MAX, most);
        AT_WORK.lock().expect("no thread panics with it").0 = 0;
        drop(wait_for(usize::MAX, most));
        AT_WORK.lock().expect("no thread panics with it").0 = 0;
        drop(parents); // which is not at work here
        drop(wait_for(usize::MAX, most));
    }

    #[test]
    fn results_come_in_the_order_of_the_tasks() {
        for workers in 1..5 {
            let mut done = vec![0; workers];
            let work = |done: &mut usize, task: usize| {
                *done += 1;
                task * task
            };
            let squares = share(&mut done, 0..1000, &AtomicBool::new(false), work);
            assert!(squares.into_iter().eq((0..1000).map(|task| task * task)));
            assert_eq!(1000, done.iter().sum::<usize>());
        }
    }

    /// Two tasks that wait for one another end: two threads do them.
    #[test]
    fn each_worker_has_its_thread() {
        let both = Barrier::new(2);
        let work = |(): &mut (), _| both.wait().is_leader();
        let leads = share(&mut [(), ()], 0..2, &AtomicBool::new(false), work);
        assert_eq!(1, leads.into_iter().filter(|&leads| leads).count());
    }

    #[test]
    fn a_flag_stops_all_threads() {
        for workers in [1, 3] {
            let stop = AtomicBool::new(false);
            let begun = AtomicUsize::new(0);
            let work = |(): &mut (), _| {
                if begun.fetch_add(1, Ordering::Relaxed) == 10 {
                    stop.store(true, Ordering::Relaxed);
                }
            };
            share(&mut vec![(); workers], 0..1_000_000, &stop, work);
            assert!(begun.into_inner() < 1_000);
        }
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        for workers in [1, 3] {
            let panicked = std::panic::catch_unwind(|| {
                let work = |(): &mut (), task| assert!(task != 50, "on purpose");
                share(&mut vec![(); workers], 0..100, &AtomicBool::new(false), work);
            });
            let panic = panicked.expect_err("a task panics");
            assert_eq!(Some(&"on purpose"), panic.downcast_ref());
        }
    }
}
