//! Blocks with AVX2.
#![allow(unsafe_code)] // vector instructions

use std::arch::x86_64::{
    __m256i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_min_epu8, _mm256_movemask_epi8,
    _mm256_or_si256, _mm256_set1_epi8, _mm256_sub_epi8,
};

use super::{BLOCK, Classify, Sets};

/// AVX2, known to be there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// # Safety
    ///
    /// The processor must have AVX2.
    pub(crate) unsafe fn assume() -> Self {
        Self(())
    }
}

impl Classify for Avx2 {
    #[inline(always)]
    #[allow(clippy::inline_always)] // into a function compiled for AVX2
    fn sets(self, block: &[u8; BLOCK]) -> Sets {
        // SAFETY: the value of this type tells that the processor has it.
        unsafe { sets(block) }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn sets(block: &[u8; BLOCK]) -> Sets {
    // SAFETY: two times 32 bytes are read, and there are 64.
    let halves = unsafe {
        let start: *const __m256i = block.as_ptr().cast();
        [_mm256_loadu_si256(start), _mm256_loadu_si256(start.add(1))]
    };
    let all = |byte: u8| _mm256_set1_epi8(byte.cast_signed());
    let join = |masks: [i32; 2]| {
        u64::from(masks[0].cast_unsigned()) | u64::from(masks[1].cast_unsigned()) << 32
    };
    let is = |byte: u8| {
        join(halves.map(|half| _mm256_movemask_epi8(_mm256_cmpeq_epi8(half, all(byte)))))
    };
    // The comparison is unsigned: a byte below `first` wraps around.
    let from = |halves: [__m256i; 2], first: u8, count: u8| {
        join(halves.map(|half| {
            let place = _mm256_sub_epi8(half, all(first));
            let is_in = _mm256_cmpeq_epi8(place, _mm256_min_epu8(place, all(count - 1)));
            _mm256_movemask_epi8(is_in)
        }))
    };
    let letters = from(halves.map(|half| _mm256_or_si256(half, all(0x20))), b'a', 26);
    let lower = from(halves, b'a', 26);
    let newlines = is(b'\n') | is(b'\r');
    let white = from(halves, b'\t', 5);
    Sets {
        upper: letters & !lower,
        lower,
        digits: from(halves, b'0', 10),
        spaces: is(b' '),
        tabs: white & !newlines,
        newlines,
        apostrophes: is(b'\''),
        slashes: is(b'/'),
        controls: from(halves, 0, 32) & !white | is(0x7F),
        others: join(halves.map(|half| _mm256_movemask_epi8(half))),
    }
}
