//! `OpenAI`'s encodings count as tiktoken-rs counts.
#![no_main]

use budgeteer::{Encoding, Exact};
use budgeteer_fuzz::assert_counted;
use budgeteer_fuzz::words::lossy;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = lossy(data);
    for (encoding, oracle) in [
        (Encoding::Cl100k, tiktoken_rs::cl100k_base_singleton()),
        (Encoding::O200k, tiktoken_rs::o200k_base_singleton()),
    ] {
        assert_counted(&Exact::new(encoding), &text, oracle.encode_ordinary(&text).len());
    }
});
