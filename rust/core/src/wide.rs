//! Loops that the compiler turns into wider instructions where the processor
//! has them.

/// Calls `$function` compiled for AVX2 if the processor has it, else compiled
/// for what every processor of the target has.
///
/// `$function` must be `#[inline(always)]`, to be compiled in the caller.
macro_rules! with_avx2 {
    ($function:ident $(::<$unit:ident>)? ($($argument:ident: $type:ty),*) $(-> $result:ty)?) => {{
        #[cfg(target_arch = "x86_64")]
        if !cfg!(feature = "portable") && is_x86_feature_detected!("avx2") {
            #[target_feature(enable = "avx2")]
            fn compiled$(<$unit: Unit>)?($($argument: $type),*) $(-> $result)? {
                $function($($argument),*)
            }
            // SAFETY: AVX2 was just detected.
            #[allow(unsafe_code)]
            return unsafe { compiled($($argument),*) };
        }
        $function($($argument),*)
    }};
}

pub(crate) use with_avx2;
