//! What a service costs beside packing: 500 scored chunks of 800 characters
//! into the window of a model, in one thread and in several at once.
//!
//! Run with `cargo bench --bench service`.

use budgeteer::presets::retrieval_service;
use budgeteer::service::{BoxError, LlmSettings, RetrievalService};
use budgeteer::{Chunk, Packing};
use divan::{Bencher, black_box};

const THREADS: [usize; 2] = [1, 8];

const QUERY: &str = "What is the policy for work from another country?";

const WORDS: [&str; 8] =
    ["remote ", "work ", "policy, ", "the ", "country ", "approval\n", "days ", "Überstunden "];

fn main() {
    divan::main();
}

/// The same chunks in each run, the best first.
fn chunks() -> Vec<Chunk> {
    let chunk = |i: u32| {
        let words = (0..130).map(|n| WORDS[((i * 31 + n * (n + i)) % 8) as usize]);
        Chunk::new(words.collect::<String>()).score(1.0 - f64::from(i) / 1_000.0)
    };
    (0..500).map(chunk).collect()
}

fn service() -> RetrievalService {
    let nothing = |_: &str, _: usize| Ok::<_, BoxError>(Vec::new());
    RetrievalService::new(nothing, LlmSettings::new("gpt-4o").context_window(12_000))
        .expect("gpt-4o is known")
        .system_prompt("Answer from the context.")
}

/// The packing alone, with the service's budget.
#[divan::bench(threads = THREADS)]
fn pack(bencher: Bencher<'_, '_>) {
    let (chunks, service) = (chunks(), service());
    let budget = service.plan(QUERY).expect("there is room").budget();
    let packer = retrieval_service(budget);
    let pack = || -> Packing { packer.pack(QUERY, black_box(&chunks)).expect("all have scores") };
    bencher.bench(pack);
}

/// All that a request costs but for the search: budget, packing, messages,
/// figures, statistics.
#[divan::bench(threads = THREADS)]
fn answer(bencher: Bencher<'_, '_>) {
    let (chunks, service) = (chunks(), service());
    bencher.with_inputs(|| chunks.clone()).bench_values(|chunks| {
        let plan = service.plan(black_box(QUERY)).expect("there is room");
        plan.answer(chunks).expect("all have scores")
    });
}

/// A query that leaves nothing is refused.
#[divan::bench]
fn refuse(bencher: Bencher<'_, '_>) {
    let (query, service) = ("policy ".repeat(12_000), service());
    bencher.bench(|| service.retrieve(black_box(&query)).expect_err("there is no room"));
}
