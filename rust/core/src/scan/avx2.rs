//! The scan on 32 bytes at once.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m256i, _mm_loadu_si128, _mm256_and_si256, _mm256_andnot_si256, _mm256_broadcastsi128_si256,
    _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8,
    _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_srli_epi16, _mm256_storeu_si256,
};

use super::Scanner;
use super::kernel::{self, ByteTable, Lanes, MAX_WIDTH};
use super::tally::{self, Tally, TermScanner};

struct Avx2;

// SAFETY of every block below: the trait's callers guarantee AVX2; loads and
// stores are unaligned, of memory that the trait's contract makes valid.
#[allow(clippy::inline_always)] // the instructions are only at hand in the caller
impl Lanes for Avx2 {
    type Bytes = __m256i;

    const WIDTH: usize = 32;

    #[inline(always)]
    unsafe fn splat(byte: u8) -> __m256i {
        // SAFETY: see the impl.
        unsafe { _mm256_set1_epi8(byte.cast_signed()) }
    }

    type Table = (__m256i, __m256i);

    #[inline(always)]
    unsafe fn table(table: &ByteTable) -> Self::Table {
        let load = |table: &[u8; 16]| {
            // SAFETY: see the impl.
            unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast())) }
        };
        (load(&table.low), load(&table.high))
    }

    #[inline(always)]
    unsafe fn load(start: *const u8) -> __m256i {
        // SAFETY: see the impl.
        unsafe { _mm256_loadu_si256(start.cast()) }
    }

    #[inline(always)]
    unsafe fn store(bytes: __m256i, to: &mut [u8; MAX_WIDTH]) {
        // SAFETY: see the impl; `to` has 64 bytes.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), bytes) }
    }

    #[inline(always)]
    unsafe fn look_up((low, high): Self::Table, bytes: __m256i) -> __m256i {
        // SAFETY: see the impl.
        unsafe {
            let nibble = _mm256_set1_epi8(15);
            let low = _mm256_shuffle_epi8(low, _mm256_and_si256(bytes, nibble));
            let shifted = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), nibble);
            _mm256_and_si256(low, _mm256_shuffle_epi8(high, shifted))
        }
    }

    #[inline(always)]
    unsafe fn and(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: see the impl.
        unsafe { _mm256_and_si256(a, b) }
    }

    #[inline(always)]
    unsafe fn both_nonzero(a: __m256i, b: __m256i) -> u64 {
        // SAFETY: see the impl.
        unsafe {
            let zero = _mm256_setzero_si256();
            let either = _mm256_or_si256(_mm256_cmpeq_epi8(a, zero), _mm256_cmpeq_epi8(b, zero));
            u64::from(!_mm256_movemask_epi8(either).cast_unsigned())
        }
    }

    #[inline(always)]
    unsafe fn nonzero_or_high(a: __m256i, bytes: __m256i) -> u64 {
        // SAFETY: see the impl.
        unsafe {
            let zero = _mm256_cmpeq_epi8(a, _mm256_setzero_si256());
            // One mask of both: the compiler takes two masks apart bit by bit.
            let low = _mm256_andnot_si256(bytes, zero);
            u64::from(!_mm256_movemask_epi8(low).cast_unsigned())
        }
    }
}

/// Scans as [`Scanner::scan`] does, on a processor with AVX2.
pub(super) fn scan(scanner: &Scanner, folded: &[u8], found: u64) -> u64 {
    #[target_feature(enable = "avx2")]
    fn with_avx2(scanner: &Scanner, folded: &[u8], found: u64) -> u64 {
        // SAFETY: this function has AVX2.
        unsafe { kernel::scan::<Avx2>(scanner, folded, found) }
    }
    // SAFETY: this method is chosen only where AVX2 was detected.
    unsafe { with_avx2(scanner, folded, found) }
}

/// Scans as [`TermScanner::scan`] does, on a processor with AVX2.
pub(super) fn scan_terms(scanner: &TermScanner, folded: &[u8], tally: &mut Tally) {
    #[target_feature(enable = "avx2,popcnt")]
    fn with_avx2(scanner: &TermScanner, folded: &[u8], tally: &mut Tally) {
        // SAFETY: this function has AVX2.
        unsafe { tally::scan::<Avx2>(scanner, folded, tally) }
    }
    // SAFETY: this method is chosen only where both were detected.
    unsafe { with_avx2(scanner, folded, tally) }
}

/// Makes bits as [`bits`](super::wanted::bits) does, with these
/// instructions.
pub(super) fn bits(table: &ByteTable, folded: &[u8], high: bool, out: &mut Vec<u64>) {
    #[target_feature(enable = "avx2")]
    fn compiled(table: &ByteTable, folded: &[u8], high: bool, out: &mut Vec<u64>) {
        // SAFETY: this function has the instructions.
        unsafe {
            if high {
                kernel::bits::<Avx2, true>(table, folded, out);
            } else {
                kernel::bits::<Avx2, false>(table, folded, out);
            }
        }
    }
    // SAFETY: this method is chosen only where they were detected.
    unsafe { compiled(table, folded, high, out) }
}
