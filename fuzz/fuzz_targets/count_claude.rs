//! The counts for Claude are the fewest pieces that cover the text as ctok
//! writes it.
#![no_main]

use budgeteer::{Claude, Exact, Tokenizer};
use budgeteer_fuzz::words::lossy;
use budgeteer_fuzz::{assert_counted, claude};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = lossy(data);
    for generation in Claude::ALL {
        let exact = Exact::new(Tokenizer::from(generation));
        assert_counted(&exact, &text, claude::count(generation, &text));
    }
});
