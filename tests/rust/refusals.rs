//! Counters and orders that make no sense are refused wherever that can be told.
#![allow(clippy::unwrap_used)] // an unexpected value fails its test

use budgeteer::presets::context_router;
use budgeteer::service::{ChunkRetriever, LlmSettings, RetrievalService};
use budgeteer::window::{Negotiator, model_limits, trim_messages};
use budgeteer::{
    Basis, Bm25, Calibration, Chunk, Corpus, Encoding, ErrorKind, Estimate, Hybrid, Layout,
    Lexical, Message, Order, OutputOptions, Overflow, Packer, Ranking, Scaled, Section, Template,
    TokenCounter, Trim, Vectors, Weights, fit_output,
};

/// A factor that is no number to multiply with counts nothing.
#[test]
fn an_impossible_factor_makes_no_counter() {
    for factor in [f64::NAN, f64::INFINITY, -1.0, 0.0, 100.1] {
        assert!(model_limits("gpt-4o").calibration(factor).counter().is_none());
    }
}

/// A ratio that is out of range is an error wherever one can be told.
#[test]
fn an_impossible_ratio_is_refused() {
    let messages = [Message::new("user", "tea ".repeat(999))];
    for ratio in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
        let estimate = Estimate::CharsPerToken(ratio);
        let errors = [
            trim_messages(&messages, 10, &estimate, Trim::default()).unwrap_err(),
            Layout::new(100).section(Section::text("a", "tea")).fit(&estimate).unwrap_err(),
            fit_output("tea", 10, &estimate, OutputOptions::default()).unwrap_err(),
            Scaled::new(estimate, 1.5).unwrap_err(),
            Negotiator::new(model_limits("gpt-4o")).counter(&estimate).negotiate(9).unwrap_err(),
        ];
        assert!(errors.iter().all(|error| error.kind() == ErrorKind::InvalidArgument));
        assert!(TokenCounter::count(&estimate, "tea") >= 1);
    }
}

/// An impossible ratio is refused under what bills teach too.
#[test]
fn an_impossible_ratio_is_refused_when_corrected() {
    let calibration = Calibration::new();
    calibration.observe("acme-7b", 1_000, 1_500).unwrap();
    for ratio in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
        let counter = calibration.counter("acme-7b", Estimate::CharsPerToken(ratio));
        let errors = [
            Packer::new(10).counter(counter).pack("tea", &["tea"]).unwrap_err(),
            Layout::new(100).section(Section::text("a", "tea")).fit(&counter).unwrap_err(),
            fit_output("tea", 10, &counter, OutputOptions::default()).unwrap_err(),
        ];
        assert!(errors.iter().all(|error| error.kind() == ErrorKind::InvalidArgument));
    }
}

/// What counts rest on, for each kind of counter.
#[test]
fn counters_say_what_they_rest_on() {
    let scaled = |factor| Scaled::new(Encoding::O200k, factor).unwrap();
    assert_eq!(Basis::Exact, Encoding::O200k.basis());
    assert_eq!([Basis::Exact, Basis::Factor], [1.0, 1.5].map(|factor| scaled(factor).basis()));
    assert_eq!(Basis::Estimate, Estimate::CharsDiv4.basis());
    assert_eq!(Basis::Callable, (|text: &str| text.len()).basis());
}

/// Factors of factors neither overflow nor go on for ever.
#[test]
fn tiny_factors_are_limits_like_any() {
    let tiny = Scaled::new(Scaled::new(Encoding::O200k, 0.01).unwrap(), 0.01).unwrap();
    let packing = Packer::new(usize::MAX).counter(tiny).pack("", &["hello"]).unwrap();
    assert_eq!((1, "hello"), (packing.total_tokens, &*packing.text));
}

/// A notice is a format string with the number left out, as in Python.
#[test]
fn notices_are_format_strings() {
    let chunks = ["Green tea.", "Rye bread and butter with jam."];
    let pack = |notice: &str| Packer::new(10).notice(notice).pack("tea", &chunks);
    assert_eq!("Green tea.\n\n{1} {count}", pack("{{{count}}} {{count}}").unwrap().text);
    for notice in ["", "{cuont}", "left {count", "}", "{}"] {
        let error = pack(notice).unwrap_err();
        assert_eq!(ErrorKind::InvalidArgument, error.kind());
        assert!(error.to_string().starts_with("notice must not be empty, and have no"), "{error}");
    }
}

/// An order that repeats a previous packing is refused where there is none, and
/// a previous packing under any other order.
#[test]
fn previous_packings_and_their_order_go_together() {
    let packer = || Packer::new(50);
    let sticky = || packer().order(Order::Sticky);
    let chunks = ["Green tea.", "Rye bread."];
    let first = packer().pack("tea", &chunks).unwrap();
    let corpus = Corpus::new(chunks.to_vec());
    assert!(sticky().pack_after(&first, "bread", &chunks).is_ok());
    assert!(sticky().pack_corpus_after(&first, "bread", &corpus).is_ok());
    let section = Section::chunks("context", "tea", &chunks, sticky()).grow(1.0);
    let service = RetrievalService::new(
        ChunkRetriever::new([Chunk::new("Tea.")]),
        LlmSettings::new("gpt-4o"),
    );
    let service = service.unwrap().packer(sticky());
    let said = [
        packer().pack_after(&first, "bread", &chunks).unwrap_err().to_string(),
        packer().pack_corpus_after(&first, "bread", &corpus).unwrap_err().to_string(),
        Layout::new(50).section(section).fit(&Encoding::O200k).unwrap_err().to_string(),
        service.retrieve("tea").unwrap_err().to_string(),
    ];
    assert!(said.iter().all(|error| error.contains("order must ")), "{said:?}");
}

/// A ranking that lacks vectors says which calls take them, and one that takes
/// none, which rankings do.
#[test]
fn vectors_and_the_ranking_go_together() {
    let chunks = ["Green tea.", "Rye bread."];
    let vectors = Vectors::new(&[1.0], &[1.0, 0.5]).unwrap();
    for ranking in [Ranking::Embedding, Ranking::Hybrid] {
        let packer = Packer::new(50).ranking(ranking);
        assert!(packer.pack_with_vectors("tea", &chunks, vectors).is_ok());
        let error = packer.pack("tea", &chunks).unwrap_err();
        assert_eq!(ErrorKind::InvalidArgument, error.kind());
        assert!(error.to_string().contains("Packer::pack_with_vectors"), "{error}");
        let corpus = Corpus::new(chunks.to_vec());
        assert_eq!(error, packer.pack_corpus("tea", &corpus).unwrap_err());
    }
    let error = Packer::new(50).pack_with_vectors("tea", &chunks, vectors).unwrap_err();
    assert!(error.to_string().contains("must not be given"), "{error}");
}

/// The one packer that overruns its budget is named where a section packs with
/// it.
#[test]
fn a_router_that_overruns_its_section_is_told_so() {
    let chunks = ["x y z ".repeat(30), "a b".into()];
    let router = context_router(15).overflow(Overflow::TruncateEnd);
    let fit = |packer: Packer| {
        let section = Section::chunks("context", "x", &chunks, packer).grow(1.0);
        Layout::new(20).section(section).fit(&Estimate::CharsDiv4)
    };
    let error = fit(router).unwrap_err();
    assert_eq!(ErrorKind::InvalidArgument, error.kind());
    assert!(error.to_string().contains("context_router overruns its budget"), "{error}");
    let allocation = fit(Packer::new(15).overflow(Overflow::TruncateEnd)).unwrap();
    assert!(allocation.total_tokens <= 20);
}

/// A separator for a template that has its own would do nothing.
#[test]
fn templates_of_a_fixed_style_take_no_separator() {
    let packed = |template: Template| Packer::new(50).template(template).pack("tea", &["a", "b"]);
    let fixed = [
        Template::plain(),
        Template::tagged(),
        Template::markdown(),
        Template::xml(),
        Template::json(),
    ];
    for template in fixed {
        assert!(packed(template.clone().header("<").footer(">")).is_ok());
        let error = packed(template.separator(" | ")).unwrap_err();
        assert_eq!(ErrorKind::InvalidArgument, error.kind());
        assert!(error.to_string().starts_with("separator must not be set"), "{error}");
    }
    let format = Template::format("{text}").unwrap();
    let by = Template::by(|_, chunk| chunk.text().to_owned());
    for template in [format, by] {
        assert_eq!("a | b", packed(template.separator(" | ")).unwrap().text);
    }
}

/// Options of a score that a hybrid ranking does not weigh would do nothing.
#[test]
fn a_hybrid_takes_options_of_words_only_where_they_weigh() {
    let packed = |bm25: Lexical, weight: f64| {
        let weights = Weights { bm25: weight, embedding: 0.0, score: 1.0 };
        let hybrid = Hybrid { weights, bm25, ..Hybrid::default() };
        Packer::new(50).ranking(hybrid).pack("tea", &["tea"])
    };
    for options in [Bm25 { k1: 2.0, ..Bm25::default() }.into(), Lexical::default()] {
        assert!(packed(options.clone(), 1.0).is_ok());
        let error = packed(options, 0.0).unwrap_err();
        assert_eq!(ErrorKind::InvalidArgument, error.kind());
        let expected = "bm25 must be Bm25::default() where weights.bm25 is 0";
        assert_eq!(expected, error.to_string());
    }
    assert!(packed(Bm25::default().into(), 0.0).is_ok());
}

/// The error of a weight is not taken for one of the options of a score.
#[test]
fn a_weight_that_is_out_of_range_is_named() {
    let weights = Weights { bm25: -1.0, ..Weights::default() };
    let hybrid = Hybrid { weights, ..Hybrid::default() };
    let error = Packer::new(50).ranking(hybrid).pack("tea", &["tea"]).unwrap_err();
    assert_eq!("weights.bm25 must be from 0 to 1000000, not -1", error.to_string());
}
