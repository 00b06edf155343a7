//! A value that is made once per process. It also works in a process that was
//! forked while another thread was making it.
//!
//! In such a child the standard library's type would wait for ever for a thread
//! that does not exist there.
#![allow(unsafe_code)] // the value never moves and is never freed

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::time::Duration;

/// How long a thread sleeps between looks whether another one has made the
/// value.
const LOOK: Duration = Duration::from_micros(200);

/// A value that the first thread that needs it makes.
#[derive(Debug)]
pub(crate) struct Once<T: 'static> {
    value: AtomicPtr<T>,
    /// The process in which a thread makes the value; 0 for none.
    maker: AtomicU32,
}

/// Lets another thread try if making the value panicked.
struct Release<'a>(&'a AtomicU32);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}

impl<T: Send + Sync> Once<T> {
    pub(crate) const fn new() -> Self {
        Self { value: AtomicPtr::new(std::ptr::null_mut()), maker: AtomicU32::new(0) }
    }

    /// Returns the value. `make` makes it if there is none yet.
    #[inline]
    pub(crate) fn get(&'static self, make: impl FnOnce() -> T) -> &'static T {
        // SAFETY: the stored pointer was leaked by `make_it`, whose writes this
        // load sees.
        match unsafe { self.value.load(Ordering::Acquire).as_ref() } {
            Some(value) => value,
            None => self.make_it(make),
        }
    }

    #[cold]
    fn make_it(&'static self, make: impl FnOnce() -> T) -> &'static T {
        let process = std::process::id();
        loop {
            // SAFETY: as in `get`.
            if let Some(value) = unsafe { self.value.load(Ordering::Acquire).as_ref() } {
                return value;
            }
            // The maker was in the process that forked this one: it is not
            // here.
            let maker = self.maker.load(Ordering::Acquire);
            if maker == process {
                std::thread::sleep(LOOK);
                continue;
            }
            let taken =
                self.maker.compare_exchange(maker, process, Ordering::AcqRel, Ordering::Relaxed);
            if taken.is_ok() {
                break;
            }
        }
        let _release = Release(&self.maker);
        // Another thread may have made the value since the looks above.
        // SAFETY: as in `get`.
        if let Some(value) = unsafe { self.value.load(Ordering::Acquire).as_ref() } {
            return value;
        }
        let value = Box::leak(Box::new(make()));
        self.value.store(value, Ordering::Release);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_makes_it_for_all() {
        static ONCE: Once<u64> = Once::new();
        let calls = AtomicU32::new(0);
        let make = || {
            calls.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(5));
            7
        };
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| assert_eq!(7, *ONCE.get(make)));
            }
        });
        assert_eq!(1, calls.load(Ordering::Relaxed));
    }

    #[test]
    fn a_maker_that_is_gone_is_not_waited_for() {
        static ONCE: Once<u64> = Once::new();
        static PANICKED: Once<u64> = Once::new();
        ONCE.maker.store(std::process::id() ^ 1, Ordering::Relaxed);
        assert_eq!(7, *ONCE.get(|| 7));
        let panicked = std::panic::catch_unwind(|| PANICKED.get(|| panic!("on purpose")));
        assert!(panicked.is_err());
        assert_eq!(7, *PANICKED.get(|| 7));
    }
}
