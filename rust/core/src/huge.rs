//! Large tables of zeros, in large pages where the system has them.
//!
//! Accesses to a table of megabytes go everywhere in it. Each page of four
//! kilobytes costs a look into the page tables at first, and again once it is
//! forgotten. Pages of two megabytes save most of these looks.
#![allow(unsafe_code)] // memory of its own alignment

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// The size of a large page.
const PAGE: usize = 2 << 20;

/// A number that is 0 if all its bytes are 0.
///
/// # Safety
///
/// Every pattern of bytes must be a value of the type, and it must need no
/// drop.
pub(crate) unsafe trait Number: Copy {}

// SAFETY: integers.
unsafe impl Number for u8 {}
// SAFETY: an integer.
unsafe impl Number for u32 {}
// SAFETY: an integer.
unsafe impl Number for u64 {}
// SAFETY: an integer.
unsafe impl Number for u128 {}

/// A slice of numbers, at first all 0. Its length never changes.
#[derive(Debug)]
pub(crate) struct Table<T: Number> {
    start: NonNull<T>,
    length: usize,
}

// SAFETY: it owns its numbers as a boxed slice does.
unsafe impl<T: Number + Send> Send for Table<T> {}
// SAFETY: it owns its numbers as a boxed slice does.
unsafe impl<T: Number + Sync> Sync for Table<T> {}

impl<T: Number> Table<T> {
    /// Returns a table of `length` numbers, which must be at least 1.
    pub(crate) fn new(length: usize) -> Self {
        let layout = Self::layout(length);
        assert!(layout.size() > 0, "a table is never empty");
        // SAFETY: the size is not 0, as was just checked; all writes are inside
        // of the allocation.
        unsafe {
            let Some(start) = NonNull::new(alloc(layout).cast::<T>()) else {
                handle_alloc_error(layout)
            };
            #[cfg(target_os = "linux")]
            if layout.align() == PAGE {
                // This is advice: nothing is lost if the system ignores it.
                libc::madvise(start.as_ptr().cast(), layout.size(), libc::MADV_HUGEPAGE);
            }
            start.as_ptr().write_bytes(0, length);
            Self { start, length }
        }
    }

    /// Returns the layout: a large table starts and ends at a page.
    fn layout(length: usize) -> Layout {
        let layout = Layout::array::<T>(length).expect("tables have some megabytes");
        if layout.size() < PAGE / 2 {
            return layout;
        }
        layout.align_to(PAGE).expect("that is a power of two").pad_to_align()
    }
}

impl<T: Number> Deref for Table<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `length` numbers were allocated and written.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl<T: Number> DerefMut for Table<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: `length` numbers were allocated and written, and nobody else
        // refers to them.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl<T: Number> Drop for Table<T> {
    fn drop(&mut self) {
        // SAFETY: it was allocated with that layout.
        unsafe { dealloc(self.start.as_ptr().cast(), Self::layout(self.length)) }
    }
}

/// Tells the processor that the memory at `address` is read soon.
#[inline]
pub(crate) fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint for the cache, allowed at every address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_zeros_that_may_be_written() {
        for length in [1, 1000, PAGE, PAGE + 1] {
            let mut table = Table::<u32>::new(length);
            assert_eq!(length, table.len());
            assert!(table.iter().all(|&number| number == 0));
            table[length - 1] = 7;
            assert_eq!(7, table[length - 1]);
        }
    }

    /// A gigabyte of them does not stay, whatever other tests take meanwhile.
    #[test]
    #[cfg(target_os = "linux")]
    fn tables_that_are_dropped_take_no_memory() {
        let size = || {
            let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
            pages.split(' ').next().and_then(|pages| pages.parse::<u64>().ok()).expect("a number")
        };
        let before = size();
        (0..256).for_each(|_| drop(Table::<u32>::new(1 << 20)));
        assert!(size() < before + 3 * (1 << 16), "pages of 4 KiB");
    }

    #[test]
    fn large_tables_are_whole_pages() {
        let layout = |length| {
            let layout = Table::<u32>::layout(length);
            (layout.size(), layout.align())
        };
        let half = PAGE / 2 / 4;
        assert_eq!((4 * (half - 1), 4), layout(half - 1));
        assert_eq!([(PAGE, PAGE), (2 * PAGE, PAGE)], [half, 2 * half + 1].map(layout));
    }
}
