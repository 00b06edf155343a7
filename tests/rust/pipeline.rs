//! The pipeline: its plans are used again, and it reads an index in place of the
//! texts.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use budgeteer::pipeline::{self, Call, Counting, Factor, Host, Plan, Policy, Subject, Tag};
use budgeteer::{
    B, Bm25, Documents, DroppedColumns, Encoding, ErrorKind, Estimate, Exact, Hybrid, Index, K1,
    K3, Lexical, MinScore, Order, Overflow, RankBy, Ranking, Stemming, Stored, Template, Weights,
};
use proptest::prelude::*;

/// A host without a counter of its own. It writes down what each piece of work costs.
#[derive(Default)]
struct Program(Vec<usize>);

impl Host for Program {
    type Error = Infallible;

    fn count(&mut self, _: Subject<'_>) -> Result<u64, Infallible> {
        unreachable!("nothing is counted by the host")
    }

    fn tag(&mut self, index: usize) -> Result<Tag, Infallible> {
        let source = format!("source {}", index % 3).into_bytes();
        Ok(Tag { source, ..Tag::of_text(index) })
    }

    fn write(&mut self, _: usize) -> Result<Vec<u8>, Infallible> {
        unreachable!("no template is a function")
    }

    fn cite(&mut self, index: usize) -> Result<u64, Infallible> {
        Ok(index as u64 % 5)
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

fn rows(columns: &DroppedColumns) -> Vec<(u32, budgeteer::Reason, u64, u64)> {
    columns.iter().map(|row| (row.index, row.reason, row.needed, row.available)).collect()
}

/// Asserts that packing with the index gives the same as packing without.
fn assert_same(
    plan: &Plan,
    budget: u64,
    query: &str,
    batch: &impl budgeteer::Batch,
    index: &Index,
) {
    let call = &plan.call(query.into(), budget);
    let Ok(expected) = pipeline::run(call, batch, &mut Program::default());
    let Ok(found) =
        pipeline::run_indexed(call, batch, &Arc::new(index.clone()), &mut Program::default());
    assert_eq!(expected.text(call, batch), found.text(call, batch));
    assert_eq!(expected.total_tokens, found.total_tokens);
    assert_eq!(expected.scores(), found.scores());
    assert_eq!(expected.signals(), found.signals());
    assert_eq!(expected.duplicates(), found.duplicates());
    let measures = index.measures(&plan.counting);
    let dropped = found.dropped_of(measures);
    assert_eq!(rows(expected.dropped()), rows(&dropped));
}

fn plan(counting: Counting, overflow: Overflow) -> Plan {
    Plan { overflow, ..Plan::new(counting) }
}

proptest! {
    /// An index packs alike however it was made, in memory or from a file.
    #[test]
    fn an_index_packs_as_its_texts(
        seed in 0_usize..1_000,
        size in prop_oneof![0_usize..9, 130_usize..900],
        split in 0_usize..1_000,
        budget in prop_oneof![0_u64..40, 0_u64..2_000],
        counting in prop_oneof![
            Just(Counting::Estimate(Estimate::CharsDiv4)),
            Just(Counting::Estimate(Estimate::Words)),
            Just(Counting::Estimate(Estimate::CharsPerToken(0.7))),
            Just(Counting::Exact(Exact::new(Encoding::O200k), Factor::ONE)),
            (0.5..2.5).prop_map(|factor| {
                Counting::Exact(Exact::new(Encoding::O200k), Factor::new(factor))
            }),
        ],
        overflow in prop_oneof![
            Just(Overflow::Skip),
            Just(Overflow::Stop),
            Just(Overflow::TruncateEnd),
            Just(Overflow::TruncateMiddle),
        ],
        max_chunks in prop_oneof![Just(None), (0_u64..200).prop_map(Some)],
        min_score in prop_oneof![
            Just(None),
            Just(Some(MinScore::At(0.5))),
            Just(Some(MinScore::Auto)),
        ],
        is_hybrid in prop::bool::weighted(0.25),
        (k1, b) in prop_oneof![2 => Just((K1, B)), 1 => (0.0..5.0, 0.0..=1.0)],
        (stemming, k3, signals) in (
            prop_oneof![2 => Just(Some("english")), 1 => Just(None), 1 => Just(Some("german"))],
            prop_oneof![2 => Just(K3), 1 => Just(0.0), 1 => 0.0..9.0],
            any::<(bool, bool, bool)>(),
        ),
        order in prop_oneof![
            Just(Order::Rank),
            Just(Order::Input),
            Just(Order::Document),
            Just(Order::Edges),
        ],
        template in prop_oneof![2 => Just(Template::plain()), 1 => Just(Template::xml())],
        has_notice in prop::bool::weighted(0.3),
        is_cited in prop::bool::weighted(0.3),
    ) {
        let words = ["green", "tea", "Tea.", "\u{7eff}\u{8336}", "caf\u{e9}", "policy", "rye\n"];
        let text = |i: usize| {
            let length = (i * 31 + seed) % 17 * ((i * 7 + seed) % 5);
            let word = |j: usize| words[(i * j + seed) % words.len()];
            (0..length).map(word).collect::<Vec<_>>().join(" ")
        };
        let texts: Vec<String> = (0..size).map(text).collect();
        let batch = Documents::new(&texts);
        let first = Index::new(&Documents::new(&texts[..split.min(size)]));
        let index = first.extended(&batch);
        let notice = vec!["Left out: ".to_owned(), ".".to_owned()];
        let bm25 = Bm25 { k1, b, stemming: stemming.and_then(Stemming::of), ..Bm25::default() };
        let (headings, links, feedback) = signals;
        let lexical = Lexical { bm25, k3, headings, links, feedback, statistics: None };
        let ranking = if is_hybrid {
            let weights = Weights { bm25: 1.0, embedding: 0.0, score: 0.0 };
            Hybrid { weights, bm25: lexical, ..Hybrid::default() }.into()
        } else {
            RankBy::from(lexical)
        };
        let may_cite = !matches!(counting, Counting::Exact(_, factor) if factor != Factor::ONE);
        let plan = Plan {
            max_chunks,
            min_score,
            ranking,
            order,
            template,
            notice: has_notice.then_some(notice),
            policy: if is_cited && may_cite { Policy::Cite } else { Policy::None },
            ..plan(counting, overflow)
        };
        assert_same(&plan, budget, "green tea \u{8336}", &batch, &index);
        assert_same(&plan, budget, "green tea \u{8336}", &batch, &index);

        let folder = std::env::temp_dir().join(format!("budgeteer-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("corpus");
        index.save(&path, &batch, |_| b"record").unwrap();
        let stored = Stored::open(&path).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_same(&plan, budget, "green tea \u{8336}", &stored, stored.index());
        prop_assert!((0..size).all(|i| stored.record(i) == b"record"));
    }
}

#[test]
fn errors_have_kinds() {
    let missing = Stored::open("/nowhere/at/all").unwrap_err();
    assert_eq!(ErrorKind::Io(std::io::ErrorKind::NotFound), missing.kind());
    let expected = std::fs::metadata("/nowhere/at/all").unwrap_err();
    assert!(expected.raw_os_error().is_some());
    assert_eq!(expected.raw_os_error(), missing.os_error());

    let path = std::env::temp_dir().join(format!("budgeteer-foreign-{}", std::process::id()));
    std::fs::write(&path, "something else").unwrap();
    let foreign = Stored::open(&path).unwrap_err();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(ErrorKind::Corpus, foreign.kind());
    assert_eq!("the file is no corpus", foreign.to_string());
}

/// One plan serves calls of several threads with different queries, and gives
/// the same results as a plan made for each call.
#[test]
fn a_plan_is_used_again_and_again() {
    let texts: Vec<String> = (0..300).map(|i| format!("tea number {} <{i}>", i % 7)).collect();
    let batch = Documents::new(&texts);
    let made = || Plan {
        template: Template::xml(),
        notice: Some(vec!["Left out: ".into(), ".".into()]),
        ..plan(Counting::Estimate(Estimate::CharsDiv4), Overflow::TruncateEnd)
    };
    let shared = made();
    std::thread::scope(|scope| {
        for budget in [0, 9, 60, 600] {
            let (batch, shared) = (&batch, &shared);
            scope.spawn(move || {
                for number in 0..7 {
                    let (query, plan) = (format!("number {number}"), made());
                    let fresh = plan.call((*query).into(), budget);
                    let again = shared.call((*query).into(), budget);
                    let Ok(expected) = pipeline::run(&fresh, batch, &mut Program::default());
                    let Ok(found) = pipeline::run(&again, batch, &mut Program::default());
                    assert_eq!(expected.text(&fresh, batch), found.text(&again, batch));
                    assert_eq!(rows(expected.dropped()), rows(found.dropped()));
                }
            });
        }
    });
}

/// The template of a call replaces that of the plan wherever the text is
/// measured, arranged or assembled.
#[test]
fn a_call_brings_its_own_template() {
    let texts = ["green tea", "rye <bread>", "black tea"];
    let batch = Documents::new(&texts);
    let plain = plan(Counting::Estimate(Estimate::CharsDiv4), Overflow::Skip);
    let xml = Plan { template: Template::xml(), ..plain.clone() };
    for budget in [0, 10, 20, 30, 99] {
        let query = "tea".into();
        let own = Call { template: Some(&xml.template), ..plain.call(query, budget) };
        let expected = xml.call(query, budget);
        let Ok(one) = pipeline::run(&own, &batch, &mut Program::default());
        let Ok(other) = pipeline::run(&expected, &batch, &mut Program::default());
        assert_eq!(other.text(&expected, &batch), one.text(&own, &batch));
        assert_eq!(other.total_tokens, one.total_tokens);
        assert!(one.text(&own, &batch).len().div_ceil(4) as u64 <= budget);
    }
}

/// Queries take an index by reference: threads share it while another is made.
#[test]
fn threads_share_an_index() {
    let texts: Vec<String> = (0..2_000).map(|i| format!("tea number {}", i % 700)).collect();
    let batch = Documents::new(&texts);
    let index = Index::new(&batch);
    let counting = Counting::Exact(Exact::new(Encoding::O200k), Factor::ONE);
    std::thread::scope(|scope| {
        for number in 0..4 {
            let (batch, index) = (&batch, &index);
            let counting = &counting;
            scope.spawn(move || {
                for budget in [0, 20, 300] {
                    let plan = plan(counting.clone(), Overflow::Skip);
                    assert_same(&plan, budget, &format!("tea {number}"), batch, index);
                }
            });
        }
        assert_eq!(2_000, index.extended(&batch).len());
    });
}

/// The host is told before many chunks are counted: as many as are likely to be kept, if a token has
/// four code points. Counting one takes as long as reading eight.
#[test]
fn the_host_is_told_before_many_chunks_are_counted() {
    // All have as many code points, and every third has a token more.
    let name = |i: usize| if i.is_multiple_of(3) { format!("{i:02}!") } else { format!("{i:03}") };
    let text = |i: usize| format!("{} {}", name(i), "internationalization ".repeat(99));
    let mut texts: Vec<String> = (0..39).map(text).collect();
    let chars = texts[0].len();
    // A repetition, and a chunk with more words than tokens are left.
    texts.extend([text(0), "a ".repeat(15_000)]);
    texts.extend((39..47).map(text));
    let exact = Exact::new(Encoding::O200k);
    let costs = |max_chunks, budget| {
        let counting = Counting::Exact(exact.clone(), Factor::ONE);
        let ranking = Ranking::Input.into();
        let plan = Plan { max_chunks, ranking, ..plan(counting, Overflow::Skip) };
        let (batch, mut host) = (Documents::new(&texts), Program::default());
        let Ok(outcome) = pipeline::run(&plan.call("".into(), budget), &batch, &mut host);
        for kept in outcome.kept() {
            let counted = exact.count_text(
                texts[kept.index as usize].as_str().into(),
                u64::MAX,
                &AtomicBool::new(false),
            );
            assert_eq!(counted, Some(kept.tokens));
        }
        (host.0, outcome.kept().len())
    };
    let (reading, _) = costs(None, 0);
    for (max_chunks, budget, kept, counted) in [
        (None, 8_192, 40, &[][..]),
        (None, 8_193, 40, &[16]),
        (None, 20_000, 47, &[39, 8]),
        (Some(45), 20_000, 45, &[39, 6]),
        (Some(3), 20_000, 3, &[3]),
    ] {
        let counting = counted.iter().map(|count| 8 * chars * count);
        let expected = reading.iter().copied().chain(counting).collect();
        assert_eq!((expected, kept), costs(max_chunks, budget));
    }
}

/// An index packs as its texts where chunks are counted ahead, too.
#[test]
fn an_index_packs_as_its_texts_into_many_tokens() {
    let text = |i: usize| format!("{i:03}{}", " internationalization".repeat(i * 7 % 50));
    let texts: Vec<String> = (0..800).map(text).collect();
    let batch = Documents::new(&texts);
    let counting = Counting::Exact(Exact::new(Encoding::O200k), Factor::ONE);
    let plan = plan(counting, Overflow::Skip);
    assert_same(&plan, 30_000, "internationalization", &batch, &Index::new(&batch));
}

/// Where a query's words are in many chunks only some scores are added up: the best, and those of
/// chunks that may still fit. An index packs as its texts there, too.
#[test]
fn an_index_of_frequent_words_packs_as_its_texts() {
    let words = ["green", "tea", "leaf", "policy", "rye", "bread", "cup", "water", "of", "mild"];
    let text_of = |i: usize| {
        let i = if i.is_multiple_of(11) { i % 500 } else { i };
        let word = |j: usize| words[(i * 7 + i / 13 * j + j * j) % words.len()];
        let words: Vec<_> = (0..=i * 31 % 17).map(word).collect();
        format!("{} {}", words.join(" "), "!".repeat(i % 3))
    };
    let texts: Vec<String> = (0..9_000).map(text_of).collect();
    let batch = Documents::new(&texts);
    let index = Index::new(&batch);
    let estimate = Counting::Estimate(Estimate::CharsDiv4);
    let exact = Counting::Exact(Exact::new(Encoding::O200k), Factor::ONE);
    let rankings =
        [Lexical::default().into(), RankBy::from(Bm25::default()), Ranking::Keyword.into()];
    let query = "green tea leaf policy rye bread";
    for (nth, ranking) in rankings.into_iter().cycle().take(12).enumerate() {
        let counting = if nth % 2 == 0 { &estimate } else { &exact };
        let plan = Plan {
            ranking,
            max_chunks: [None, None, Some(5), Some(300)][nth % 4],
            min_score: [None, Some(MinScore::At(0.5)), None][nth / 3 % 3],
            ..plan(counting.clone(), if nth == 8 { Overflow::Stop } else { Overflow::Skip })
        };
        for budget in [9, 700, 9_000] {
            assert_same(&plan, budget, query, &batch, &index);
        }
    }
}
