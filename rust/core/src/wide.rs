//! Loops that the compiler turns into wider instructions where the processor
//! has them.

/// Calls `$function` compiled for AVX-512 or AVX2 if the processor has it, else
/// compiled for what every processor of the target has.
///
/// `$function` must be `#[inline(always)]`, to be compiled in the caller.
macro_rules! with_widest {
    ($function:ident $(::<$unit:ident>)? ($($argument:ident: $type:ty),*) $(-> $result:ty)?) => {{
        #[cfg(target_arch = "x86_64")]
        if !cfg!(feature = "portable") && is_x86_feature_detected!("avx2") {
            #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
            fn compiled512$(<$unit: Unit>)?($($argument: $type),*) $(-> $result)? {
                $function($($argument),*)
            }
            #[target_feature(enable = "avx2")]
            fn compiled2$(<$unit: Unit>)?($($argument: $type),*) $(-> $result)? {
                $function($($argument),*)
            }
            let has_all = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl");
            // SAFETY: the features of the one that is called were just detected.
            #[allow(unsafe_code)]
            return unsafe {
                if has_all { compiled512($($argument),*) } else { compiled2($($argument),*) }
            };
        }
        $function($($argument),*)
    }};
}

pub(crate) use with_widest;
