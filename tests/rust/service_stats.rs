//! The figures of a service.
#![allow(clippy::unwrap_used)] // an unexpected value fails its test

mod service_support;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use budgeteer::service::{BoxError, LlmSettings, RetrievalService, Retriever};
use budgeteer::{Chunk, Encoding, Message, Overflow, Packer, Ranking, Reason, TokenCounter, Units};
use service_support::{Fake, chunks, service_of, settings, text_of};

/// Figures that one thread takes while others add are counted once each.
#[test]
fn given_threads_when_taking_the_stats_then_nothing_is_lost() {
    let service = service_of(chunks(&["tea"]));
    let told = Mutex::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..50 {
                    service.retrieve("q").unwrap();
                    *told.lock().unwrap() += service.take_stats().answered;
                }
            });
        }
    });

    assert_eq!(400, *told.lock().unwrap() + service.stats().answered);
    assert_eq!(0, service.stats().requests);
}

/// The figures say how often the budget cut, how much, and how much a larger
/// one would have kept; and such a budget keeps that much.
#[test]
fn given_cuts_when_asking_for_stats_then_the_budgets_told_are_true() {
    let texts = || vec![Chunk::new(text_of(300)); 5];
    let small = settings().context_window(1_000).max_output_tokens(0);
    let service = RetrievalService::new(Fake::new(texts()), small).unwrap();
    let kept = service.retrieve("q").unwrap().packing;
    assert!(service.retrieve(&text_of(2_000)).is_err());

    let stats = service.stats();

    assert_eq!((2, 1, 1, 1), (stats.requests, stats.answered, stats.rejected, stats.cut));
    assert_eq!(kept.total_tokens as u64, stats.retrieved_tokens);
    assert_eq!(
        (2, 600, true),
        (stats.dropped_chunks, stats.dropped_tokens, stats.is_dropped_exact)
    );
    assert!((stats.cut_rate() - 1.0).abs() < f64::EPSILON);
    let next = *stats.next_budgets.first_key_value().unwrap().0;
    let everything = stats.budget_for(1.0).unwrap();
    for (budget, count) in [(next, 4), (everything, 5)] {
        let packer = Packer::new(budget).ranking(Ranking::Input).dedupe(false);
        let wide = service_of(texts()).packer(packer);
        assert_eq!(count, wide.retrieve("q").unwrap().packing.kept.len());
    }
}

/// The rate is of all answers, and a budget is told for a share of them.
#[test]
fn given_answers_that_fit_and_one_that_does_not_when_asking_for_stats_then_shares_are_of_all() {
    struct OfThatSize;
    impl Retriever for OfThatSize {
        fn retrieve(&self, query: &str, _: usize) -> Result<Vec<Chunk>, BoxError> {
            Ok(vec![Chunk::new(text_of(query.parse()?))])
        }
    }
    let service = RetrievalService::new(OfThatSize, settings()).unwrap().packer(Packer::new(600));
    for size in ["100", "900", "100"] {
        service.retrieve(size).unwrap();
    }

    let stats = service.stats();

    assert!((stats.cut_rate() - 1.0 / 3.0).abs() < f64::EPSILON);
    assert_eq!([Some(104), Some(960)], [0.6, 1.0].map(|share| stats.budget_for(share)));
}

/// An answer with a cut chunk is one that the budget cut.
#[test]
fn given_a_cut_chunk_when_asking_for_stats_then_its_rest_is_in_them() {
    let text: Vec<_> = (0..40).map(|n| format!("Sentence {n} is about green tea.")).collect();
    let text = text.join(" ");
    let whole = Encoding::Cl100k.count(&text);
    for units in [Units::Chunk, Units::Sentence] {
        let packer = Packer::new(100).ranking(Ranking::Input).overflow(Overflow::TruncateEnd);
        let service = service_of(chunks(&[&text])).packer(packer.units(units));

        let packing = service.retrieve("tea").unwrap().packing;
        let stats = service.stats();

        assert!(packing.kept[0].was_cut && packing.dropped.is_empty());
        assert_eq!((1, 1, 1), (stats.cut, stats.kept_chunks, stats.cut_chunks));
        let rest = (whole - packing.kept[0].token_count) as u64;
        let dropped = (stats.dropped_chunks, stats.dropped_tokens, stats.is_dropped_exact);
        assert_eq!((0, rest, true), dropped);
        assert_eq!(stats.next_budgets, stats.full_budgets);
        let (&budget, _) = stats.full_budgets.first_key_value().unwrap();
        assert!((whole..=whole + whole / 8).contains(&budget), "{whole} {budget}");
    }
}

/// Under the next budget the cut chunk is whole, under the full one all are.
#[test]
fn given_a_cut_and_dropped_chunks_when_asking_for_stats_then_the_budgets_told_are_true() {
    let texts = || [60, 90, 30, 40].map(text_of).map(Chunk::new).to_vec();
    let packer = |tokens| Packer::new(tokens).ranking(Ranking::Input).dedupe(false);
    let service = service_of(texts()).packer(packer(100).overflow(Overflow::TruncateEnd));

    let packing = service.retrieve("q").unwrap().packing;
    let stats = service.stats();

    assert_eq!((1, 1, 2), (stats.cut, stats.cut_chunks, stats.dropped_chunks));
    let rest = (90 - packing.kept[1].token_count) as u64;
    assert_eq!(30 + 40 + rest, stats.dropped_tokens);
    let (&next, _) = stats.next_budgets.first_key_value().unwrap();
    for (budget, count) in [(next, 2), (stats.budget_for(1.0).unwrap(), 4)] {
        let wide = service_of(texts()).packer(packer(budget));
        assert_eq!(count, wide.retrieve("q").unwrap().packing.kept.len());
    }
}

/// Tokens of a dropped chunk beyond 4,096 are not counted.
#[test]
fn given_a_long_chunk_when_asking_for_stats_then_they_are_no_longer_exact() {
    let texts = [text_of(60), text_of(9_000)].map(Chunk::new).to_vec();
    let service = service_of(texts).packer(Packer::new(100).overflow(Overflow::Stop));
    service.retrieve("q").unwrap();

    let stats = service.stats();

    assert_eq!((4_096, false), (stats.dropped_tokens, stats.is_dropped_exact));
}

/// Where the messages cost more with every context, all chunks are dropped for
/// the budget.
#[test]
fn given_a_builder_with_no_room_for_any_chunk_when_retrieving_then_all_are_dropped() {
    let settings = settings().context_window(1_000).max_output_tokens(100);
    let service = RetrievalService::new(Fake::new(chunks(&["one two", "three"])), settings)
        .unwrap()
        .message_builder(|_, context, query| {
            let many = if context.len() > 1 { 2_000 } else { 1 };
            vec![Message::user(format!("{context} {query}{}", " tea".repeat(many)))]
        });

    let result = service.retrieve("q").unwrap();
    let stats = service.stats();

    assert_eq!("", result.packing.text);
    assert!(result.packing.dropped.iter().all(|item| item.reason == Reason::Budget));
    assert!(result.tokens.input + result.tokens.output <= result.tokens.context_window);
    assert_eq!((1, 2, 3), (stats.cut, stats.dropped_chunks, stats.dropped_tokens));
}

/// Where texts count 0 until they are joined, no chunk is kept, as none is in
/// the messages.
#[test]
fn given_a_counter_that_takes_texts_for_nothing_when_retrieving_then_none_is_kept() {
    let counter = |text: &str| match text.len() {
        0..50 => 1,
        50..61 => 0,
        _ => 1_000,
    };
    let settings = LlmSettings::default().context_window(100).max_output_tokens(0);
    let retriever = Fake::new(vec![Chunk::new("a".repeat(60)); 3]);
    let service = RetrievalService::new(retriever, settings.counter(counter)).unwrap();

    let result = service.retrieve("q").unwrap();

    assert_eq!(("", 0), (&*result.packing.text, result.packing.kept.len()));
    assert_eq!([Message::user("q")], *result.messages);
}

/// In every snapshot the cut answers are among the answered requests.
#[test]
fn given_threads_when_asking_for_stats_then_each_snapshot_has_whole_requests() {
    let packer = Packer::new(700).dedupe(false);
    let service = service_of(vec![Chunk::new(text_of(300)); 5]).packer(packer);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let stats = service.stats();
                assert_eq!(stats.answered, stats.cut);
                assert_eq!(2 * stats.answered, stats.kept_chunks);
            }
        });
        let asking: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| (0..200).for_each(|_| drop(service.retrieve("q").unwrap()))))
            .collect();
        for thread in asking {
            thread.join().unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });

    assert_eq!(400, service.stats().cut);
}
