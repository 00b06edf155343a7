//! The scan on 16 bytes at once.
#![allow(unsafe_code)]

use std::arch::aarch64::{
    uint8x16_t, vaddv_u8, vandq_u8, vcgeq_u8, vdupq_n_u8, vget_high_u8, vget_lane_u64, vget_low_u8,
    vld1q_u8, vorrq_u8, vqtbl1q_u8, vreinterpret_u64_u8, vreinterpretq_u16_u8, vshrn_n_u16,
    vshrq_n_u8, vst1q_u8, vtstq_u8,
};

use super::Scanner;
use super::kernel::{self, ByteTable, Lanes, MAX_WIDTH};
use super::tally::{self, Tally, TermScanner};

struct Neon;

// SAFETY of every block below: the trait's callers guarantee NEON; loads and
// stores are of memory that the trait's contract makes valid.
#[allow(clippy::inline_always)] // the instructions are only at hand in the caller
impl Lanes for Neon {
    type Bytes = uint8x16_t;

    const WIDTH: usize = 16;

    #[inline(always)]
    unsafe fn splat(byte: u8) -> uint8x16_t {
        // SAFETY: see the impl.
        unsafe { vdupq_n_u8(byte) }
    }

    type Table = (uint8x16_t, uint8x16_t);

    #[inline(always)]
    unsafe fn table(table: &ByteTable) -> Self::Table {
        let load = |table: &[u8; 16]| {
            // SAFETY: see the impl.
            unsafe { vld1q_u8(table.as_ptr()) }
        };
        (load(&table.low), load(&table.high))
    }

    #[inline(always)]
    unsafe fn load(start: *const u8) -> uint8x16_t {
        // SAFETY: see the impl.
        unsafe { vld1q_u8(start) }
    }

    #[inline(always)]
    unsafe fn store(bytes: uint8x16_t, to: &mut [u8; MAX_WIDTH]) {
        // SAFETY: see the impl; `to` has 64 bytes.
        unsafe { vst1q_u8(to.as_mut_ptr(), bytes) }
    }

    #[inline(always)]
    unsafe fn look_up((low, high): Self::Table, bytes: uint8x16_t) -> uint8x16_t {
        // SAFETY: see the impl.
        unsafe {
            let low = vqtbl1q_u8(low, vandq_u8(bytes, vdupq_n_u8(15)));
            vandq_u8(low, vqtbl1q_u8(high, vshrq_n_u8::<4>(bytes)))
        }
    }

    #[inline(always)]
    unsafe fn and(a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        // SAFETY: see the impl.
        unsafe { vandq_u8(a, b) }
    }

    #[inline(always)]
    unsafe fn both_nonzero(a: uint8x16_t, b: uint8x16_t) -> u64 {
        // SAFETY: see the impl.
        let mut nibbles = unsafe {
            // No instruction takes a bit of each byte: narrowing by four leaves
            // a nibble for each.
            let both = vandq_u8(vtstq_u8(a, a), vtstq_u8(b, b));
            let narrowed = vshrn_n_u16::<4>(vreinterpretq_u16_u8(both));
            vget_lane_u64::<0>(vreinterpret_u64_u8(narrowed))
        };
        let mut bits = 0;
        while nibbles != 0 {
            let place = nibbles.trailing_zeros() / 4;
            bits |= 1 << place;
            nibbles &= !(15 << (4 * place));
        }
        bits
    }

    #[inline(always)]
    unsafe fn nonzero_or_high(a: uint8x16_t, bytes: uint8x16_t) -> u64 {
        const BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
        // SAFETY: see the impl.
        unsafe {
            let set = vorrq_u8(vtstq_u8(a, a), vcgeq_u8(bytes, vdupq_n_u8(0x80)));
            // Each place of a half has a bit of its own; these are added up.
            let bits = vandq_u8(set, vld1q_u8(BITS.as_ptr()));
            u64::from(vaddv_u8(vget_low_u8(bits))) | u64::from(vaddv_u8(vget_high_u8(bits))) << 8
        }
    }
}

/// Scans as [`Scanner::scan`] does, on a processor with NEON.
pub(super) fn scan(scanner: &Scanner, folded: &[u8], found: u64) -> u64 {
    #[target_feature(enable = "neon")]
    fn with_neon(scanner: &Scanner, folded: &[u8], found: u64) -> u64 {
        // SAFETY: this function has NEON.
        unsafe { kernel::scan::<Neon>(scanner, folded, found) }
    }
    // SAFETY: this method is chosen only where NEON was detected.
    unsafe { with_neon(scanner, folded, found) }
}

/// Scans as [`TermScanner::scan`] does, on a processor with NEON.
pub(super) fn scan_terms(scanner: &TermScanner, folded: &[u8], tally: &mut Tally) {
    #[target_feature(enable = "neon")]
    fn with_neon(scanner: &TermScanner, folded: &[u8], tally: &mut Tally) {
        // SAFETY: this function has NEON.
        unsafe { tally::scan::<Neon>(scanner, folded, tally) }
    }
    // SAFETY: this method is chosen only where NEON was detected.
    unsafe { with_neon(scanner, folded, tally) }
}

/// Makes bits as [`bits`](super::wanted::bits) does, with these
/// instructions.
pub(super) fn bits(table: &ByteTable, folded: &[u8], high: bool, out: &mut Vec<u64>) {
    #[target_feature(enable = "neon")]
    fn compiled(table: &ByteTable, folded: &[u8], high: bool, out: &mut Vec<u64>) {
        // SAFETY: this function has the instructions.
        unsafe {
            if high {
                kernel::bits::<Neon, true>(table, folded, out);
            } else {
                kernel::bits::<Neon, false>(table, folded, out);
            }
        }
    }
    // SAFETY: this method is chosen only where they were detected.
    unsafe { compiled(table, folded, high, out) }
}
