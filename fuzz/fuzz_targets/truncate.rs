//! A cut is within its limit, keeps a start or an end of the text or both around
//! the marker, and splits no grapheme cluster.
#![no_main]

use budgeteer::{Estimate, Exact, Keep, Text, TokenCounter as _, Tokenizer, truncate};
use budgeteer_fuzz::NEVER;
use budgeteer_fuzz::counters::Counter;
use budgeteer_fuzz::cuts::assert_cut;
use budgeteer_fuzz::words::Words;
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

#[derive(Debug, Arbitrary)]
struct Input {
    text: [Words; 3],
    marker: Option<Words>,
    keep: u8,
    most: u8,
    counter: Counter,
}

fuzz_target!(|input: Input| {
    let text: String = input.text.iter().map(|Words(text)| &**text).collect();
    let marker = input.marker.as_ref().map_or("", |Words(marker)| marker);
    let keep = [Keep::Start, Keep::End, Keep::Both][usize::from(input.keep % 3)];
    let (counter, most) = (input.counter.make(), usize::from(input.most));
    let count = |text: Text<'_>| {
        let mut utf8 = Vec::new();
        text.write_utf8(&mut utf8);
        let text = String::from_utf8(utf8).expect("it is UTF-8");
        Ok::<_, ()>(counter.count(&text) as u64)
    };
    let assert_holds = |cut: Option<Vec<u8>>| {
        let Some(cut) = cut else {
            assert!(counter.count(&text) <= most);
            return;
        };
        let cut = String::from_utf8(cut).expect("it is UTF-8");
        assert!(counter.count(&text) > most);
        if !cut.is_empty() {
            assert!(counter.count(&cut) <= most, "{cut:?} is over {most}");
        }
        assert_cut(&text, &cut, keep, marker);
    };
    let (text, marker, most) = (text.as_str().into(), marker.into(), most as u64);
    assert_holds(truncate(text, most, keep, marker, count).expect("it counts"));
    match input.counter {
        Counter::CharsDiv4 => assert_holds(Estimate::CharsDiv4.truncate(text, most, keep, marker)),
        Counter::Words => assert_holds(Estimate::Words.truncate(text, most, keep, marker)),
        Counter::Encoding(number) => {
            let encoding =
                budgeteer::Encoding::ALL[usize::from(number) % budgeteer::Encoding::ALL.len()];
            assert_holds(Exact::new(encoding).truncate(text, most, keep, marker, &NEVER));
        }
        Counter::Claude(number) => {
            let claude = budgeteer::Claude::ALL[usize::from(number) % 3];
            let exact = Exact::new(Tokenizer::from(claude));
            assert_holds(exact.truncate(text, most, keep, marker, &NEVER));
        }
        _ => {}
    }
});
