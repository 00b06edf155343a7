//! The scan on 64 bytes at once.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m512i, _mm_loadu_si128, _mm512_and_si512, _mm512_broadcast_i32x4, _mm512_loadu_si512,
    _mm512_mask_test_epi8_mask, _mm512_movepi8_mask, _mm512_permutex2var_epi8, _mm512_set1_epi8,
    _mm512_shuffle_epi8, _mm512_srli_epi16, _mm512_storeu_si512, _mm512_test_epi8_mask,
};

use super::Scanner;
use super::kernel::{self, ByteTable, Lanes, MAX_WIDTH};
use super::tally::{self, Tally, TermScanner};

struct Avx512;

// SAFETY of every block below: the trait's callers guarantee AVX-512 F and BW;
// loads and stores are unaligned, of memory that the trait's contract makes
// valid.
#[allow(clippy::inline_always)] // the instructions are only at hand in the caller
impl Lanes for Avx512 {
    type Bytes = __m512i;

    const WIDTH: usize = 64;

    #[inline(always)]
    unsafe fn splat(byte: u8) -> __m512i {
        // SAFETY: see the impl.
        unsafe { _mm512_set1_epi8(byte.cast_signed()) }
    }

    type Table = (__m512i, __m512i);

    #[inline(always)]
    unsafe fn table(table: &ByteTable) -> Self::Table {
        let load = |table: &[u8; 16]| {
            // SAFETY: see the impl.
            unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128(table.as_ptr().cast())) }
        };
        (load(&table.low), load(&table.high))
    }

    #[inline(always)]
    unsafe fn load(start: *const u8) -> __m512i {
        // SAFETY: see the impl.
        unsafe { _mm512_loadu_si512(start.cast()) }
    }

    #[inline(always)]
    unsafe fn store(bytes: __m512i, to: &mut [u8; MAX_WIDTH]) {
        // SAFETY: see the impl; `to` has 64 bytes.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), bytes) }
    }

    #[inline(always)]
    unsafe fn look_up((low, high): Self::Table, bytes: __m512i) -> __m512i {
        // SAFETY: see the impl.
        unsafe {
            let nibble = _mm512_set1_epi8(15);
            let low = _mm512_shuffle_epi8(low, _mm512_and_si512(bytes, nibble));
            let shifted = _mm512_and_si512(_mm512_srli_epi16::<4>(bytes), nibble);
            _mm512_and_si512(low, _mm512_shuffle_epi8(high, shifted))
        }
    }

    #[inline(always)]
    unsafe fn and(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: see the impl.
        unsafe { _mm512_and_si512(a, b) }
    }

    #[inline(always)]
    unsafe fn both_nonzero(a: __m512i, b: __m512i) -> u64 {
        // SAFETY: see the impl.
        unsafe { _mm512_mask_test_epi8_mask(_mm512_test_epi8_mask(b, b), a, a) }
    }

    #[inline(always)]
    unsafe fn nonzero_or_high(a: __m512i, bytes: __m512i) -> u64 {
        // SAFETY: see the impl.
        unsafe { _mm512_test_epi8_mask(a, a) | _mm512_movepi8_mask(bytes) }
    }
}

/// The same, except that bytes are looked up whole.
struct Avx512Vbmi;

// SAFETY of every block below: as above, and the trait's callers guarantee
// AVX-512 VBMI as well.
#[allow(clippy::inline_always)] // the instructions are only at hand in the caller
impl Lanes for Avx512Vbmi {
    type Bytes = __m512i;
    type Table = (__m512i, __m512i);

    const WIDTH: usize = Avx512::WIDTH;

    #[inline(always)]
    unsafe fn splat(byte: u8) -> __m512i {
        // SAFETY: see the impl.
        unsafe { Avx512::splat(byte) }
    }

    #[inline(always)]
    unsafe fn table(table: &ByteTable) -> Self::Table {
        let (low, high) = table.all.split_at(64);
        // SAFETY: see the impl; both halves have 64 bytes.
        unsafe { (Avx512::load(low.as_ptr()), Avx512::load(high.as_ptr())) }
    }

    #[inline(always)]
    unsafe fn load(start: *const u8) -> __m512i {
        // SAFETY: see the impl.
        unsafe { Avx512::load(start) }
    }

    #[inline(always)]
    unsafe fn store(bytes: __m512i, to: &mut [u8; MAX_WIDTH]) {
        // SAFETY: see the impl.
        unsafe { Avx512::store(bytes, to) }
    }

    #[inline(always)]
    unsafe fn look_up((low, high): Self::Table, bytes: __m512i) -> __m512i {
        // SAFETY: see the impl.
        unsafe { _mm512_permutex2var_epi8(low, bytes, high) }
    }

    #[inline(always)]
    unsafe fn and(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: see the impl.
        unsafe { Avx512::and(a, b) }
    }

    #[inline(always)]
    unsafe fn both_nonzero(a: __m512i, b: __m512i) -> u64 {
        // SAFETY: see the impl.
        unsafe { Avx512::both_nonzero(a, b) }
    }

    #[inline(always)]
    unsafe fn nonzero_or_high(a: __m512i, bytes: __m512i) -> u64 {
        // SAFETY: see the impl.
        unsafe { Avx512::nonzero_or_high(a, bytes) }
    }
}

/// Scans as [`Scanner::scan`] does, on a processor with AVX-512 F and BW.
pub(super) fn scan(scanner: &Scanner, folded: &[u8], found: u64) -> u64 {
    #[target_feature(enable = "avx512f,avx512bw")]
    fn with_avx512(scanner: &Scanner, folded: &[u8], found: u64) -> u64 {
        // SAFETY: this function has AVX-512 F and BW.
        unsafe { kernel::scan::<Avx512>(scanner, folded, found) }
    }
    // SAFETY: this method is chosen only where both were detected.
    unsafe { with_avx512(scanner, folded, found) }
}

/// Scans as [`Scanner::scan`] does, on a processor with AVX-512 F, BW and VBMI.
pub(super) fn scan_vbmi(scanner: &Scanner, folded: &[u8], found: u64) -> u64 {
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn with_avx512_vbmi(scanner: &Scanner, folded: &[u8], found: u64) -> u64 {
        // SAFETY: this function has AVX-512 F, BW and VBMI.
        unsafe { kernel::scan::<Avx512Vbmi>(scanner, folded, found) }
    }
    // SAFETY: this method is chosen only where all three were detected.
    unsafe { with_avx512_vbmi(scanner, folded, found) }
}

/// Scans as [`TermScanner::scan`] does, on a processor with AVX-512 F and BW.
pub(super) fn scan_terms(scanner: &TermScanner, folded: &[u8], tally: &mut Tally) {
    #[target_feature(enable = "avx512f,avx512bw,popcnt")]
    fn with_avx512(scanner: &TermScanner, folded: &[u8], tally: &mut Tally) {
        // SAFETY: this function has AVX-512 F and BW.
        unsafe { tally::scan::<Avx512>(scanner, folded, tally) }
    }
    // SAFETY: this method is chosen only where all were detected.
    unsafe { with_avx512(scanner, folded, tally) }
}

/// Scans as [`TermScanner::scan`] does, on a processor with AVX-512 F, BW and
/// VBMI.
pub(super) fn scan_terms_vbmi(scanner: &TermScanner, folded: &[u8], tally: &mut Tally) {
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,popcnt")]
    fn with_avx512_vbmi(scanner: &TermScanner, folded: &[u8], tally: &mut Tally) {
        // SAFETY: this function has AVX-512 F, BW and VBMI.
        unsafe { tally::scan::<Avx512Vbmi>(scanner, folded, tally) }
    }
    // SAFETY: this method is chosen only where all were detected.
    unsafe { with_avx512_vbmi(scanner, folded, tally) }
}

/// Makes bits as [`bits`](super::wanted::bits) does, with these
/// instructions.
pub(super) fn bits(table: &ByteTable, folded: &[u8], high: bool, out: &mut Vec<u64>) {
    #[target_feature(enable = "avx512f,avx512bw")]
    fn compiled(table: &ByteTable, folded: &[u8], high: bool, out: &mut Vec<u64>) {
        // SAFETY: this function has the instructions.
        unsafe {
            if high {
                kernel::bits::<Avx512, true>(table, folded, out);
            } else {
                kernel::bits::<Avx512, false>(table, folded, out);
            }
        }
    }
    // SAFETY: this method is chosen only where they were detected.
    unsafe { compiled(table, folded, high, out) }
}
