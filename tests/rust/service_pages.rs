//! How many pages of a retriever the service reads.
#![allow(clippy::unwrap_used)] // an unexpected value fails its test

mod service_support;

use budgeteer::presets::context_gate;
use budgeteer::service::{BoxError, LlmSettings, Pages, RetrievalService, Retriever};
use budgeteer::{Chunk, Dedupe, Estimate, Overflow, Packer, Ranking, Selection, Units};
use service_support::{Fake, chunks, reversed, settings, text_of};

/// Returns ten chunks of a hundred tokens a page, without end.
struct Paged(Fake);

impl Retriever for Paged {
    fn retrieve(&self, _: &str, _: usize) -> Result<Vec<Chunk>, BoxError> {
        unreachable!("it has pages")
    }

    fn pages<'a>(&'a self, query: &'a str) -> Option<Pages<'a>> {
        Some(Box::new(std::iter::repeat_with(move || self.0.retrieve(query, 10))))
    }
}

/// Pages are read while there is room, and a page of which nothing fits is the
/// last.
#[test]
fn given_pages_when_retrieving_then_they_are_read_until_the_budget_is_full() {
    let fake = Fake::new(vec![Chunk::new(text_of(100)); 10]);
    let settings = settings().max_output_tokens(0);
    let service = RetrievalService::new(Paged(fake.clone()), settings.clone()).unwrap();
    assert_eq!(40, service.retrieve("q").unwrap().packing.kept.len());
    assert_eq!(5, fake.calls());

    // A larger window has more of them, and a packer's own bound fewer.
    let asked = || (service.retrieve("q").unwrap().chunks.len(), fake.calls());
    service.set_settings(settings.context_window(8_192)).unwrap();
    assert_eq!((90, 5 + 9), asked());
    let read = |packer: Packer| {
        let large = RetrievalService::new(Paged(fake.clone()), service.settings());
        large.unwrap().packer(packer.reserve_tokens(100)).retrieve("q").unwrap().chunks.len()
    };
    let in_order = || Packer::new(500).ranking(Ranking::Input);
    assert_eq!(10, read(in_order().dedupe(false)));
    // A text that is packed only once takes its room once. Then a page adds
    // nothing.
    assert_eq!(20, read(in_order()));
    // The number of chunks read is the number kept.
    let large = || Packer::new(9_000).ranking(Ranking::Score).dedupe(false);
    assert_eq!([10, 20], [7, 11].map(|count| read(large().max_chunks(count))));

    let empty = Fake::new(chunks(&[]));
    let service = RetrievalService::new(Paged(empty.clone()), service.settings()).unwrap();
    assert_eq!((0, 1), (service.retrieve("q").unwrap().chunks.len(), empty.calls()));
}

/// Where chunks compete, the service reads the number that it asks a retriever
/// without pages for; more only where they fit and nothing else limits the kept
/// chunks.
#[test]
fn given_chunks_that_compete_when_reading_pages_then_as_many_as_the_limit_are_read() {
    struct Distinct;

    impl Retriever for Distinct {
        fn retrieve(&self, _: &str, _: usize) -> Result<Vec<Chunk>, BoxError> {
            unreachable!("it has pages")
        }

        fn pages<'a>(&'a self, _: &'a str) -> Option<Pages<'a>> {
            let chunk = |n: usize| Chunk::new(format!("{n} is about a green tea")).score(1.0);
            let page = move |start: usize| Ok((start..start + 10).map(chunk).collect());
            Some(Box::new((0..).step_by(10).map(page)))
        }
    }

    let settings = || LlmSettings::default().context_window(1_000_000).counter(Estimate::Words);
    let service = || RetrievalService::new(Distinct, settings()).unwrap().limit(35);
    let read = |packer| service().packer(packer).retrieve("tea").unwrap().chunks.len();
    let scored = |tokens| Packer::new(tokens).ranking(Ranking::Score);
    assert_eq!(10, read(scored(60).dedupe(false)) - read(scored(59)));
    // Ranked again, packed in part, compared with each other, or reranked: 6
    // tokens each.
    for packer in [
        Packer::new(60),
        scored(60).dedupe(Dedupe::Near),
        scored(60).selection(Selection::Coverage),
        scored(15).units(Units::Sentence),
        scored(60).min_score(0.5),
        context_gate(60, 2),
    ] {
        assert_eq!(40, read(packer.clone()), "{packer:?}");
        assert_eq!(40, read(packer.reserve_tokens(10)));
    }
    let reranked = service().packer(scored(60)).reranker(reversed).retrieve("tea").unwrap();
    assert_eq!((40, "30 is"), (reranked.chunks.len(), &reranked.chunks[9].text[..5]));
    // The rest of four times the budget is 600 tokens: a page has 60.
    assert_eq!(110, read(scored(150).units(Units::Sentence)));
    assert_eq!(110, read(Packer::new(600)));
    assert_eq!(40, read(Packer::new(600).max_chunks(99)));
    assert_eq!(40, read(scored(600).min_score(0.5)));
    assert_eq!(40, read(context_gate(600, 99)));
}

/// Where chunks compete, repetitions take no room, and no page is read beyond
/// the limit for them.
#[test]
fn given_repeats_that_compete_when_reading_pages_then_they_end_at_the_limit() {
    let read_of = |first: usize, others: usize, packer| {
        let tokens = [first].into_iter().chain([others; 9]);
        let fake = Fake::new(tokens.map(text_of).map(Chunk::new));
        let service = RetrievalService::new(Paged(fake), settings()).unwrap();
        service.limit(15).packer(packer).retrieve("q").unwrap().chunks.len()
    };
    let read = |packer| read_of(100, 100, packer);

    assert_eq!(20, read(Packer::new(3_000)));
    assert_eq!(40, read(Packer::new(3_000).dedupe(false)));
    assert_eq!(20, read(Packer::new(500).dedupe(false)));
    // A chunk that does not fit is not skipped: the best may be behind.
    assert_eq!(20, read_of(100, 1, Packer::new(90).dedupe(false).overflow(Overflow::Skip)));
}

/// Reading ends also for texts that count 0.
#[test]
fn given_pages_of_nothing_when_retrieving_then_they_end() {
    let fake = Fake::new(vec![Chunk::new(""); 10]);
    let service = RetrievalService::new(Paged(fake), settings()).unwrap();

    assert_eq!(100_000, service.retrieve("q").unwrap().chunks.len());
}
