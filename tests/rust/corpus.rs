//! Corpora in Rust: an index is read in the place of the texts.

use std::convert::Infallible;
use std::sync::atomic::AtomicBool;

use budgeteer::pipeline::{self, Counting, Host, Plan, Subject, Tag};
use budgeteer::{
    Documents, DroppedColumns, Encoding, ErrorKind, Estimate, Exact, Hybrid, Index, Order,
    Overflow, Ranking, Stored, Template,
};
use proptest::prelude::*;

/// A program without a counter of its own.
struct Program;

impl Host for Program {
    type Error = Infallible;

    fn count(&mut self, _: Subject<'_>) -> Result<u64, Infallible> {
        unreachable!("nothing is counted by the host")
    }

    fn tag(&mut self, index: usize) -> Result<Tag, Infallible> {
        let source = format!("source {}", index % 3).into_bytes();
        Ok(Tag { source, ..Tag::of_text(index) })
    }

    fn cite(&mut self, index: usize) -> Result<u64, Infallible> {
        Ok(index as u64 % 5)
    }

    fn work<R: Send>(
        &mut self,
        _: usize,
        work: impl FnOnce(&AtomicBool) -> R + Send,
    ) -> Result<R, Infallible> {
        Ok(work(&AtomicBool::new(false)))
    }
}

fn rows(columns: &DroppedColumns) -> Vec<(u32, budgeteer::Reason, u64, u64)> {
    columns.iter().map(|row| (row.index, row.reason, row.needed, row.available)).collect()
}

/// Asserts that packing by the index is packing.
fn assert_same(plan: &Plan<'_>, query: &str, batch: &impl budgeteer::Batch, index: &Index) {
    let Ok(expected) = pipeline::run(plan, query.into(), batch, &mut Program);
    let Ok(found) = pipeline::run_indexed(plan, query.into(), batch, index, &mut Program);
    assert_eq!(expected.text(plan, batch), found.text(plan, batch));
    assert_eq!(expected.total_tokens, found.total_tokens);
    assert_eq!(expected.scores, found.scores);
    assert_eq!(expected.duplicates(), found.duplicates());
    let measures = index.measures(plan.counting);
    let dropped = found.dropped_of(plan.ranking, plan.keys, plan.min_score, measures);
    assert_eq!(rows(expected.dropped()), rows(&dropped));
}

static PLAIN: Template = Template::plain();

fn plan(budget: u64, counting: Counting, overflow: Overflow) -> Plan<'static> {
    Plan {
        budget,
        counting,
        ranking: Ranking::Bm25,
        keys: &[],
        hybrid: Hybrid { bm25: 1.0, embedding: 0.0, score: 0.0, ..Hybrid::default() },
        min_score: None,
        overflow,
        max_chunks: None,
        dedupe: true,
        order: Order::Rank,
        previous: &[],
        template: &PLAIN,
        notice: None,
        sum_of_parts: false,
        is_cited: false,
        gate: None,
    }
}

proptest! {
    /// However an index was made, in memory or from a file, it packs alike.
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
            Just(Counting::Exact(Exact::new(Encoding::O200k))),
        ],
        overflow in prop_oneof![
            Just(Overflow::Skip),
            Just(Overflow::Stop),
            Just(Overflow::TruncateEnd),
            Just(Overflow::TruncateMiddle),
        ],
        max_chunks in prop_oneof![Just(None), (0_u64..200).prop_map(Some)],
        min_score in prop_oneof![Just(None), Just(Some(0.5))],
        ranking in prop_oneof![3 => Just(Ranking::Bm25), 1 => Just(Ranking::Hybrid)],
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
        let notice = ["Left out: ".to_owned(), ".".to_owned()];
        let plan = Plan {
            max_chunks,
            min_score,
            ranking,
            order,
            template: &template,
            notice: has_notice.then_some(&notice),
            is_cited,
            ..plan(budget, counting, overflow)
        };
        assert_same(&plan, "green tea \u{8336}", &batch, &index);
        assert_same(&plan, "green tea \u{8336}", &batch, &index);

        let folder = std::env::temp_dir().join(format!("budgeteer-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("corpus");
        index.save(&path, &batch, |_| b"record").unwrap();
        let stored = Stored::open(&path).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_same(&plan, "green tea \u{8336}", &stored, stored.index());
        prop_assert!((0..size).all(|i| stored.record(i) == b"record"));
    }
}

#[test]
fn errors_have_kinds() {
    let missing = Stored::open("/nowhere/at/all").unwrap_err();
    assert_eq!(ErrorKind::Io(std::io::ErrorKind::NotFound), missing.kind());
    assert!(missing.os_error().is_some());

    let path = std::env::temp_dir().join(format!("budgeteer-foreign-{}", std::process::id()));
    std::fs::write(&path, "something else").unwrap();
    let foreign = Stored::open(&path).unwrap_err();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(ErrorKind::Corpus, foreign.kind());
    assert_eq!("the file is no corpus", foreign.to_string());
}

/// Queries take an index by reference: threads share it, while another is made.
#[test]
fn threads_share_an_index() {
    let texts: Vec<String> = (0..2_000).map(|i| format!("tea number {}", i % 700)).collect();
    let batch = Documents::new(&texts);
    let index = Index::new(&batch);
    let counting = Counting::Exact(Exact::new(Encoding::O200k));
    std::thread::scope(|scope| {
        for number in 0..4 {
            let (batch, index) = (&batch, &index);
            scope.spawn(move || {
                for budget in [0, 20, 300] {
                    let plan = plan(budget, counting, Overflow::Skip);
                    assert_same(&plan, &format!("tea {number}"), batch, index);
                }
            });
        }
        assert_eq!(2_000, index.extended(&batch).len());
    });
}
