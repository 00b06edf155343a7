//! What packing a corpus looks at, and that it packs as its chunks are packed.
#![cfg(feature = "o200k")]

use budgeteer_vocab::Encoding;

use super::*;
use crate::chunk::Documents;
use crate::count::{Estimate, Exact};
use crate::plan::watching::Watching;
use crate::plan::{MinScore, Overflow};
use crate::ranking::{Bm25, Ranking};
use crate::score::lexical::batch_lexical_scores;

const QUERY: &str = "green tea number of all the teas that are sold in the small shop";

/// Chunks of several lengths, each fifth of which repeats another.
fn texts(count: usize) -> Vec<String> {
    let text = |at: usize| {
        let at = if at % 5 == 4 { at / 5 } else { at };
        let about = "of all the teas that are sold in the small shop ".repeat(at * 7 % 4);
        format!("Tea number {at}, {about}is green.")
    };
    (0..count).map(text).collect()
}

fn plan(counting: Counting) -> Plan {
    Plan { ranking: Ranking::Bm25.into(), ..Plan::new(counting) }
}

fn exact() -> Plan {
    plan(Counting::Exact(Exact::new(Encoding::O200k), Factor::ONE))
}

fn estimate() -> Plan {
    plan(Counting::Estimate(Estimate::CharsDiv4))
}

/// Packs a corpus, which must do the same as packing its chunks. Returns how
/// many chunks were kept, how many others were looked at, of how many the count
/// is known then, and how often the ranking was searched.
fn looked_at(plan: &Plan, batch: &impl Batch, index: &Index, budget: u64) -> [usize; 4] {
    let own: Vec<f64> = (0_u32..).take(batch.len()).map(|at| f64::from(at * 37 % 101)).collect();
    let has_own = matches!(plan.ranking, RankBy::Score | RankBy::Recency);
    let keys = if has_own { &own[..] } else { &[] };
    let call = Call { keys, ..plan.call(QUERY.into(), budget) };
    let (mut host, index) = (Watching::default(), Arc::new(index.clone()));
    let found = run_indexed(&call, batch, &index, &mut host).unwrap();
    let all = run(&call, batch, &mut Watching::default()).unwrap();
    let told = |outcome: &Outcome| {
        let kept: Vec<_> = outcome.kept().collect();
        let (scores, tokens) = (outcome.kept_scores(), outcome.total_tokens);
        format!("{kept:?} {scores:?} {tokens}")
    };
    assert!(host.asked.is_empty());
    assert_eq!(told(&all), told(&found));
    assert_eq!((all.scores(), all.least()), (found.scores(), found.least()));
    let dropped = found.dropped_of(index.measures(&plan.counting));
    assert_eq!(format!("{:?}", all.dropped()), format!("{dropped:?}"));
    let counted = match &plan.counting {
        Counting::Exact(exact, _) => {
            let bounds = index.bounds(exact);
            (0..batch.len()).filter(|&at| bounds.is_exact(at)).count()
        }
        _ => 0,
    };
    let searches = host.work.iter().filter(|&&cost| cost == 4 * batch.len()).count();
    [found.kept().len(), found.dropped().index.len(), counted, searches]
}

/// Packs chunks with each of some changes of the plan, under an exact counter and
/// under an estimate.
fn looked_at_by(
    changes: &[fn(&mut Plan)],
    count: usize,
    budget: u64,
) -> Vec<([usize; 4], [usize; 4])> {
    let texts = texts(count);
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let batch = Documents::new(&texts);
    let index = Index::new(&batch);
    let of = |change: fn(&mut Plan), mut plan: Plan| {
        change(&mut plan);
        looked_at(&plan, &batch, &index, budget)
    };
    changes.iter().map(|&change| (of(change, exact()), of(change, estimate()))).collect()
}

const CHANGES: [fn(&mut Plan); 8] = [
    |_| (),
    |plan| plan.max_chunks = Some(10),
    |plan| plan.max_chunks = Some(300),
    |plan| plan.overflow = Overflow::Stop,
    |plan| (plan.overflow, plan.max_chunks) = (Overflow::Stop, Some(10)),
    |plan| plan.overflow = Overflow::TruncateEnd,
    |plan| plan.dedupe = Dedupe::Off,
    |plan| plan.min_score = Some(MinScore::At(1.0)),
];

/// However short chunks are, the host may end the packing after some of them.
#[test]
fn many_short_chunks_are_watched() {
    let texts: Vec<String> = (0..5_000).map(|at| format!("{at}")).collect();
    for plan in [exact(), estimate()] {
        let mut host = Watching::default();
        run(&plan.call(QUERY.into(), 20), &Documents::new(&texts), &mut host).unwrap();
        assert_eq!(4, host.work.iter().filter(|&&cost| cost == 0).count());
    }
}

/// Few chunks are looked at, and fewer are counted.
#[test]
fn few_are_looked_at() {
    let rows = vec![
        ([1, 127, 378, 3], [1, 127, 0, 2]),
        ([1, 19, 270, 3], [1, 19, 0, 2]),
        ([1, 127, 378, 3], [1, 127, 0, 2]),
        ([0, 128, 0, 2], [0, 128, 0, 2]),
        ([0, 20, 0, 2], [0, 20, 0, 2]),
        ([1, 127, 0, 2], [1, 127, 0, 2]),
        ([1, 127, 378, 3], [1, 127, 0, 2]),
        ([1, 127, 128, 2], [1, 127, 0, 2]),
    ];
    assert_eq!(rows, looked_at_by(&CHANGES, 1_000, 20));
    let rows = vec![
        ([49, 951, 954, 3], [48, 952, 0, 3]),
        ([10, 10, 20, 2], [10, 10, 0, 2]),
        ([49, 951, 954, 3], [48, 952, 0, 3]),
        ([48, 202, 0, 3], [46, 204, 0, 3]),
        ([10, 10, 0, 2], [10, 10, 0, 2]),
        ([49, 201, 0, 3], [47, 203, 0, 3]),
        ([49, 171, 470, 4], [47, 119, 0, 2]),
        ([49, 701, 704, 3], [47, 703, 0, 3]),
    ];
    assert_eq!(rows, looked_at_by(&CHANGES, 1_000, 2_000));
    let rows = vec![
        ([323, 677, 1000, 1], [309, 691, 0, 1]),
        ([10, 10, 20, 2], [10, 10, 0, 2]),
        ([300, 300, 600, 2], [300, 300, 0, 2]),
    ];
    assert_eq!(rows, looked_at_by(&CHANGES[..3], 1_000, 12_000));
}

/// Few are looked at of a corpus so large that its scores are not added up before
/// somebody asks for them.
#[test]
fn few_of_many_are_looked_at() {
    let rows = vec![
        ([49, 1197, 2502, 5], [48, 2180, 0, 5]),
        ([10, 10, 20, 2], [10, 10, 0, 2]),
        ([49, 1197, 2502, 5], [48, 2180, 0, 5]),
        ([48, 402, 0, 3], [46, 404, 0, 3]),
    ];
    assert_eq!(rows, looked_at_by(&CHANGES[..4], 6_000, 2_000));
}

/// Few are looked at where the input order, or the chunks' own scores or times, rank.
#[test]
fn few_are_looked_at_by_other_ranks() {
    let changes: [fn(&mut Plan); 5] = [
        |plan| plan.ranking = RankBy::Input,
        |plan| (plan.ranking, plan.dedupe) = (RankBy::Input, Dedupe::Off),
        |plan| (plan.ranking, plan.dedupe) = (RankBy::Score, Dedupe::Off),
        |plan| (plan.ranking, plan.min_score) = (RankBy::Score, Some(MinScore::At(90.0))),
        |plan| (plan.ranking, plan.max_chunks) = (RankBy::Recency, Some(40)),
    ];
    let rows = vec![
        ([123, 871, 731, 4], [122, 859, 0, 3]),
        ([123, 185, 731, 3], [123, 125, 0, 2]),
        ([121, 187, 730, 3], [123, 125, 0, 2]),
        ([121, 97, 218, 1], [123, 95, 0, 1]),
        ([40, 40, 80, 2], [40, 40, 0, 2]),
    ];
    assert_eq!(rows, looked_at_by(&changes, 2_000, 3_000));
}

/// From which score on chunks are in scope is told where it was found.
#[test]
fn the_least_score_in_scope() {
    let texts = ["green tea of the hill", "green tea", "rye bread"];
    let batch = Documents::new(&texts);
    let index = Arc::new(Index::new(&batch));
    let least = |min_score| {
        let plan = Plan { min_score, ..estimate() };
        let call = plan.call(QUERY.into(), 20);
        run_indexed(&call, &batch, &index, &mut Watching::default()).unwrap().least()
    };
    assert_eq!([None, None], [None, Some(MinScore::At(1.0))].map(least));
    let scores = batch_lexical_scores(QUERY.into(), &batch, &Bm25::default().into());
    let mean = (scores[0] + scores[1] + scores[2]) / 3.0;
    let found = least(Some(MinScore::Auto)).expect("it is found");
    assert!((found - 0.35 * mean).abs() < 1e-9, "{found} of {mean}");
}
