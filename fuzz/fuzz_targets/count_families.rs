//! The other published encodings count as their packages define it, by a regex
//! and one merge after another.
#![no_main]

use budgeteer::Exact;
use budgeteer_fuzz::words::lossy;
use budgeteer_fuzz::{assert_counted, families};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = lossy(data);
    for family in families::all() {
        assert_counted(&Exact::new(family.encoding()), &text, family.count(&text));
    }
});
