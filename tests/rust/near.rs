//! Texts that nearly repeat a kept one: four fifths of all runs of five terms
//! are in both, or the kept one has all of them.
#![allow(clippy::unwrap_used)] // an unexpected value fails its test

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::atomic::AtomicBool;

use budgeteer::pipeline::{self, Counting, Host, Plan, Subject, Tag};
use budgeteer::{Dedupe, Documents, Estimate, Packer, Ranking, Reason};
use proptest::prelude::*;

/// Terms, each in the ways in which it is written.
const TERMS: [&[&str]; 24] = [
    &["a", "A"],
    &["b", "B"],
    &["c"],
    &["d"],
    &["e"],
    &["f"],
    &["\u{e9}", "\u{c9}"],
    &["\u{f6}", "\u{d6}"],
    &["x\u{e9}", "X\u{c9}"],
    &["x\u{f6}"],
    &["\u{7eff}\u{8336}"],
    &["\u{8336}\u{7eff}"],
    &["tea", "Tea", "TEA"],
    &["kelvin", "Kelvin", "\u{212a}elvin"],
    &["0"],
    &["00"],
    &["oxidise", "Oxidise"],
    &["oxidised", "OXIDISED"],
    &["oxidisedx"],
    &["xoxidised"],
    &["aaaaaaaaxbbbbbbbbbbb"],
    &["aaaaaaaaybbbbbbbbbbb"],
    &["\u{e9}aaaaaaaxbbbbbbbbbbb"],
    &["\u{e9}aaaaaaaybbbbbbbbbbb"],
];

const BETWEEN: [&str; 5] = [" ", "  ", ", ", "\n", "-"];

type Shingles<'a> = BTreeSet<&'a [usize]>;

fn shingles(terms: &[usize]) -> Shingles<'_> {
    terms.windows(terms.len().clamp(1, 5)).collect()
}

fn resembles(new: &Shingles<'_>, kept: &Shingles<'_>) -> bool {
    5 * new.intersection(kept).count() >= 4 * new.union(kept).count()
}

/// The definition: the first kept text with a resemblance of at least 0.8, else
/// the first that has all of it.
fn expected(new: &Shingles<'_>, kept: &[(usize, Shingles<'_>)]) -> Option<usize> {
    let resembling = kept.iter().find(|(_, kept)| resembles(new, kept));
    resembling.or_else(|| kept.iter().find(|(_, kept)| new.is_subset(kept))).map(|kept| kept.0)
}

/// Asserts that the texts, in which `say` writes the terms, repeat those that
/// the definition says.
fn assert_found(texts: &[Vec<usize>], say: impl Fn(usize, usize) -> String) {
    let said: Vec<String> = texts
        .iter()
        .map(|terms| terms.iter().enumerate().map(|(at, &term)| say(at, term)).collect())
        .collect();
    let packer = Packer::new(1 << 24).ranking(Ranking::Input).dedupe(Dedupe::Near);
    let packing = packer.estimate(Estimate::CharsDiv4).pack("", &said).unwrap();
    let mut found = vec![None; texts.len()];
    for dropped in &packing.dropped {
        assert_eq!(Reason::Duplicate, dropped.reason);
        found[dropped.index] = dropped.duplicate_of;
    }
    let mut kept = Vec::new();
    for (index, terms) in texts.iter().enumerate() {
        let terms = shingles(terms);
        let of = expected(&terms, &kept);
        assert_eq!(of, found[index], "{index} of {said:?}");
        if of.is_none() {
            kept.push((index, terms));
        }
    }
}

/// Texts, most of which are others with a change.
fn texts() -> impl Strategy<Value = Vec<Vec<usize>>> {
    let text = prop::collection::vec(0..TERMS.len(), 1..40);
    let change =
        (any::<prop::sample::Index>(), 0..5_u8, any::<prop::sample::Index>(), 0..TERMS.len());
    (prop::collection::vec(text, 1..4), prop::collection::vec(change, 0..14)).prop_map(
        |(mut texts, changes)| {
            for (index, change, place, term) in changes {
                let mut text = index.get(&texts).clone();
                let at = place.index(text.len());
                match change {
                    0 => drop(text.pop()),
                    1 => text.push(term),
                    2 => drop(text.drain(..at)),
                    3 => text.truncate(at + 1),
                    _ => text[at] = term,
                }
                if !text.is_empty() {
                    texts.push(text);
                }
            }
            texts
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The first kept text by the definition is found, however its terms are
    /// written.
    #[test]
    fn the_first_is_found(texts in texts(), salt in 0_usize..99) {
        assert_found(&texts, |at, term| {
            let written = TERMS[term];
            let between = BETWEEN[(at * 7 + salt) % BETWEEN.len()];
            format!("{}{between}", written[(at * salt) % written.len()])
        });
    }
}

/// No two terms are taken for one, and all ways to write a term are.
#[test]
fn single_terms() {
    let texts: Vec<_> = (0..TERMS.len()).map(|term| vec![term]).collect();
    assert_found(&texts, |_, term| TERMS[term][0].to_owned());
    for (term, written) in TERMS.iter().enumerate().filter(|(_, written)| written.len() > 1) {
        for way in &written[1..] {
            let said = [written[0].to_owned(), format!("{way}.")];
            let packer = Packer::new(99).ranking(Ranking::Input).dedupe(Dedupe::Near);
            let packing = packer.estimate(Estimate::CharsDiv4).pack("", &said).unwrap();
            assert_eq!(1, packing.kept.len(), "{term}");
        }
    }
}

/// Terms of two times eight letters that differ in the same place of both
/// halves are not taken for one.
#[test]
fn halves_of_terms_do_not_make_up_for_each_other() {
    let texts: Vec<_> = (0..100).map(|term| vec![term]).collect();
    assert_found(&texts, |_, term| {
        let (first, pair) = (["1", "q"][term % 2], term / 2);
        format!("{first}{pair:07}{first}{pair:07}")
    });
}

fn number(at: usize, term: usize) -> String {
    format!("{}{term}", if at == 0 { "" } else { " " })
}

/// More runs of terms than there is room for at first, and behind each forty
/// texts some that nearly repeat one of all before.
#[test]
fn many_texts() {
    let mut texts: Vec<Vec<usize>> = Vec::new();
    for i in 0..120 {
        // Some runs are in several texts.
        let mut text: Vec<usize> = (i * 200..i * 200 + 160).collect();
        text.extend(100_000 + i % 7..100_040);
        texts.push(text);
        if i % 40 == 39 {
            for at in 0..10 {
                let mut near = texts[at * i / 10].clone();
                near.truncate(200 - 4 * at);
                near[0] = 200_000;
                texts.push(near);
            }
        }
    }
    assert_found(&texts, number);
}

/// What two texts have together is in none of both.
#[test]
fn parts_of_two_texts() {
    let text = |from: usize, to: usize| (from..to).collect::<Vec<_>>();
    assert_found(&[text(0, 6), text(2, 10), text(0, 10)], number);
    // All of the third is in some text before, and the fourth is much like it.
    let fourth = [text(0, 39), vec![99]].concat();
    assert_found(&[text(0, 20), text(16, 40), text(0, 40), fourth], number);
}

/// Texts of many terms.
#[test]
fn long_texts() {
    let text = |from: usize| (from..from + 50_000).collect::<Vec<_>>();
    assert_found(&[text(0), text(100_000), text(100_001), text(1)], number);
}

/// A text is compared with the first 4096 kept ones.
#[test]
fn the_first_kept_are_compared() {
    let mut texts: Vec<String> = (0..4_098).map(|i| format!("tea {i}")).collect();
    texts.extend([4_095, 4_096, 4_097, 0].map(|i| format!("Tea, {i}")));
    let packer = Packer::new(1 << 24).ranking(Ranking::Input).dedupe(Dedupe::Near);
    let packing = packer.estimate(Estimate::Words).pack("", &texts).unwrap();
    let found: Vec<_> =
        packing.dropped.iter().map(|dropped| (dropped.index, dropped.duplicate_of)).collect();
    assert_eq!(vec![(4_098, Some(4_095)), (4_101, Some(0))], found);
}

/// A chunk that leaves for the notice is not kept, so what nearly repeats it is
/// no duplicate.
#[test]
fn what_nearly_repeats_a_chunk_that_left_is_no_duplicate() {
    let packer = Packer::new(6).estimate(Estimate::Words).ranking(Ranking::Input);
    let packer = packer.dedupe(Dedupe::Near).notice("Left out: {count}");
    let chunks = ["a a a", "b b", "c c c c c c c", "d d d d d d d", "B, b"];
    let packing = packer.pack("", &chunks).unwrap();
    assert_eq!("a a a\n\nLeft out: 4", packing.text);
    assert!(packing.dropped.iter().all(|dropped| dropped.reason == Reason::Budget));
}

/// A host that writes down what each piece of work costs.
#[derive(Default)]
struct Program(Vec<usize>);

impl Host for Program {
    type Error = Infallible;

    fn count(&mut self, _: Subject<'_>) -> Result<u64, Infallible> {
        unreachable!("nothing is counted by the host")
    }

    fn tag(&mut self, index: usize) -> Result<Tag, Infallible> {
        Ok(Tag::of_text(index))
    }

    fn write(&mut self, _: usize) -> Result<Vec<u8>, Infallible> {
        unreachable!("no template is a function")
    }

    fn cite(&mut self, _: usize) -> Result<u64, Infallible> {
        unreachable!("nothing is cited")
    }

    fn work<R: Send>(
        &mut self,
        cost: usize,
        work: impl FnOnce(&AtomicBool) -> R + Send,
    ) -> Result<R, Infallible> {
        self.0.push(cost);
        Ok(work(&AtomicBool::new(false)))
    }
}

/// The host is told what it costs to compare texts once that is much: 16 for each
/// code point, 1 for each rare run that a kept text shares, and 128 for each text
/// that may be like it.
#[test]
fn the_host_is_told_what_comparing_costs() {
    let long = |letter: &str| letter.repeat(1 << 19);
    let told = |first: &[&str]| {
        let mut texts: Vec<String> = first.iter().map(|&text| text.to_owned()).collect();
        texts.extend([long("x"), long("y"), long("z")]);
        let counting = Counting::Estimate(Estimate::CharsDiv4);
        let ranking = Ranking::Input.into();
        let plan = Plan { ranking, dedupe: Dedupe::Near, ..Plan::new(counting) };
        let (batch, mut host) = (Documents::new(&texts), Program::default());
        let Ok(_) = pipeline::run(&plan.call("".into(), 1 << 24), &batch, &mut host);
        let chars: usize = first.iter().map(|text| text.len()).sum();
        host.0
            .split_off(host.0.len() - texts.len())
            .into_iter()
            .map(move |cost| if cost == 0 { 0 } else { cost - 16 * (chars + 2 * (1 << 19)) })
            .collect::<Vec<_>>()
    };
    assert_eq!(vec![0, 0, 0], told(&[]));
    let letters = "a b c d e f g h i j k l m n o p q r s t";
    let numbers = "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19";
    let both = format!("{letters} {numbers} z");
    for (first, more) in [
        (&["tea"][..], 0),
        (&["tea rye", "Tea, rye"], 1 + 128),
        // Of two runs one is listed; too many of the other text are in neither.
        (&["a b c d e f", "a b c d e f u v w x y z"], 0),
        // All runs are in one of both, and the rarest is looked for in all.
        (&["a b c d e f", "c d e f g h i j", "a b c d e f g h i j"], 1 + 1 + 1),
        // Of sixteen runs four are listed. Of a text with both and five runs more
        // eight are, with all that are new: the last text has four of those.
        (&[letters, numbers, &both, "q r s t 0 1 2 3"], 4 + 4 + (4 + 128 + 1)),
    ] {
        let mut expected = vec![0; first.len() + 3];
        expected[first.len() + 1] = more;
        assert_eq!(expected, told(first), "{first:?}");
    }
}
