//! Blocks with AVX-512.
#![allow(unsafe_code)] // vector instructions

use std::arch::x86_64::{
    _mm512_cmpeq_epi8_mask, _mm512_cmplt_epu8_mask, _mm512_loadu_si512, _mm512_movepi8_mask,
    _mm512_or_si512, _mm512_set1_epi8, _mm512_sub_epi8,
};

use super::{BLOCK, Classify, Sets};

/// AVX-512, known to be there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx512(());

impl Avx512 {
    /// # Safety
    ///
    /// The processor must have AVX-512 F and BW.
    pub(crate) unsafe fn assume() -> Self {
        Self(())
    }
}

impl Classify for Avx512 {
    #[inline(always)]
    #[allow(clippy::inline_always)] // into a function compiled for AVX-512
    fn sets(self, block: &[u8; BLOCK]) -> Sets {
        // SAFETY: the value of this type tells that the processor has it.
        unsafe { sets(block) }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn sets(block: &[u8; BLOCK]) -> Sets {
    // SAFETY: 64 bytes are read, and there are 64.
    let bytes = unsafe { _mm512_loadu_si512(block.as_ptr().cast()) };
    let all = |byte: u8| _mm512_set1_epi8(byte.cast_signed());
    let is = |byte: u8| _mm512_cmpeq_epi8_mask(bytes, all(byte));
    // The comparison is unsigned: a byte below `first` wraps around.
    let from = |bytes, first: u8, count: u8| {
        _mm512_cmplt_epu8_mask(_mm512_sub_epi8(bytes, all(first)), all(count))
    };
    let letters = from(_mm512_or_si512(bytes, all(0x20)), b'a', 26);
    let lower = from(bytes, b'a', 26);
    let newlines = is(b'\n') | is(b'\r');
    let white = from(bytes, b'\t', 5);
    Sets {
        upper: letters & !lower,
        lower,
        digits: from(bytes, b'0', 10),
        spaces: is(b' '),
        tabs: white & !newlines,
        newlines,
        apostrophes: is(b'\''),
        slashes: is(b'/'),
        controls: from(bytes, 0, 32) & !white | is(0x7F),
        others: _mm512_movepi8_mask(bytes),
    }
}
