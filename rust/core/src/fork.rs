//! A value that all threads of a process share and may replace. It also works
//! in a process that was forked while another thread used it.
//!
//! A lock of the standard library that was held at the fork would be held for
//! ever in the child: its holder does not exist there.
#![allow(unsafe_code)] // the value is only reached under the lock

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A value that is read often and replaced rarely.
#[derive(Debug)]
pub(crate) struct Shared<T> {
    /// The process in which a thread uses the value; 0 for none.
    holder: AtomicU32,
    /// Whether a value was ever set: if not, no lock is needed.
    is_set: AtomicBool,
    value: UnsafeCell<Option<Arc<T>>>,
}

// SAFETY: only the thread that `holder` is held for reaches the value.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

/// Releases the lock.
struct Release<'a>(&'a AtomicU32);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}

impl<T: Send + Sync> Shared<T> {
    pub(crate) const fn new() -> Self {
        let value = UnsafeCell::new(None);
        Self { holder: AtomicU32::new(0), is_set: AtomicBool::new(false), value }
    }

    /// Returns the value, if one was set.
    pub(crate) fn get(&self) -> Option<Arc<T>> {
        if !self.is_set.load(Ordering::Acquire) {
            return None;
        }
        let _release = self.hold();
        // SAFETY: this thread holds the lock.
        unsafe { (*self.value.get()).clone() }
    }

    /// Replaces the value with the result of `change`.
    pub(crate) fn update(&self, change: impl FnOnce(Option<&T>) -> T) {
        let release = self.hold();
        // SAFETY: this thread holds the lock, and `change` can only reach the
        // value by the reference that it gets.
        let value = unsafe { &mut *self.value.get() };
        let new = Arc::new(change(value.as_deref()));
        // One word is written: a fork sees either the old value or the new one.
        let old = value.replace(new);
        self.is_set.store(true, Ordering::Release);
        drop(release);
        drop(old);
    }

    fn hold(&self) -> Release<'_> {
        let process = std::process::id();
        loop {
            // The holder was in the process that forked this one: it is not
            // here.
            let holder = self.holder.load(Ordering::Relaxed);
            if holder != process
                && self
                    .holder
                    .compare_exchange(holder, process, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                return Release(&self.holder);
            }
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_among_threads() {
        static SHARED: Shared<Vec<u32>> = Shared::new();
        assert_eq!(None, SHARED.get());
        std::thread::scope(|scope| {
            for thread in 0..8 {
                scope.spawn(move || {
                    for i in 0..50 {
                        SHARED.update(|old| {
                            let mut new = old.cloned().unwrap_or_default();
                            new.push(thread * 50 + i);
                            new
                        });
                        assert!(SHARED.get().is_some_and(|all| !all.is_empty()));
                    }
                });
            }
        });
        let mut all = SHARED.get().unwrap().to_vec();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..400));
    }

    #[test]
    fn a_holder_that_is_gone_is_not_waited_for() {
        static SHARED: Shared<u32> = Shared::new();
        SHARED.holder.store(std::process::id() ^ 1, Ordering::Relaxed);
        SHARED.update(|old| old.map_or(7, |old| old + 1));
        assert_eq!(Some(7), SHARED.get().as_deref().copied());
    }

    #[test]
    fn a_panic_lets_go_of_it() {
        static SHARED: Shared<u32> = Shared::new();
        let panicked = std::panic::catch_unwind(|| SHARED.update(|_| panic!("on purpose")));
        assert!(panicked.is_err());
        SHARED.update(|old| old.map_or(1, |old| old + 1));
        assert_eq!(Some(1), SHARED.get().as_deref().copied());
    }
}
