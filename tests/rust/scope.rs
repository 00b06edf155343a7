//! The cut-off that is found from the scores: the cases that both languages
//! must answer alike, and what is refused.

#![allow(clippy::unwrap_used)] // a case that cannot be read fails its test

mod cases;

use budgeteer::{
    Bm25, Chunk, Corpus, Encoding, ErrorKind, Estimate, Lexical, MinScore, Overflow, Packer,
    Packing, RankBy, Ranking, Units,
};
use cases::{cases, list, number};
use serde_json::{Value, json};

fn packer(case: &Value) -> Packer {
    let options = &case["options"];
    let name = |field: &str| options[field].as_str().unwrap();
    let part = |field: &str| options["parts"][field].as_bool().unwrap();
    let ranking: RankBy = match name("ranking") {
        "bm25" => Bm25::default().into(),
        _ => Lexical {
            headings: part("headings"),
            links: part("links"),
            feedback: part("feedback"),
            ..Lexical::default()
        }
        .into(),
    };
    let packer = Packer::new(number(&case["max_tokens"]))
        .ranking(ranking)
        .min_score(MinScore::Auto)
        .units(if name("units") == "chunk" { Units::Chunk } else { Units::Sentence })
        .overflow(match name("overflow") {
            "skip" => Overflow::Skip,
            "stop" => Overflow::Stop,
            _ => Overflow::TruncateEnd,
        });
    match name("counter") {
        "chars_div4" => packer.estimate(Estimate::CharsDiv4),
        _ => packer.counter(Encoding::O200k),
    }
}

fn explained(packing: &Packing, count: usize) -> Vec<String> {
    (0..count).map(|index| packing.explain(Some(index)).unwrap()).collect()
}

/// A packing is Python's, and says what Python's does; a corpus packs what its
/// chunks do.
#[test]
fn packings() {
    for case in list(&cases("scope.json", "packings")) {
        let text = |chunk: &Value, field: &str| chunk[field].as_str().unwrap().to_owned();
        let chunks = list(&case["chunks"]).iter();
        let chunks = chunks.map(|row| Chunk::new(text(row, "text")).title(text(row, "title")));
        let chunks: Vec<Chunk> = chunks.collect();
        let (packer, query) = (packer(case), case["query"].as_str().unwrap());
        let packing = packer.pack(query, &chunks).unwrap();
        // All texts are ASCII, so that spans are the same in both languages.
        let found = serde_json::to_string(&packing).unwrap().parse::<Value>().unwrap();
        assert_eq!(case["answer"]["packing"], found, "{case}");
        let said = explained(&packing, chunks.len());
        assert_eq!(case["answer"]["explained"], json!(said), "{case}");
        let corpus = Corpus::new(chunks);
        let indexed = packer.pack_corpus(query, &corpus).unwrap();
        assert_eq!(packing, indexed, "{case}");
        assert_eq!(said, explained(&indexed, corpus.chunks().len()), "{case}");
    }
}

/// The rankings that Python refuses are refused.
#[test]
fn refusals() {
    let refused = cases("scope.json", "refusals");
    let refusal = |name: &str| {
        let ranking = match name {
            "lexical" => Lexical::default().into(),
            "bm25" => Bm25::default().into(),
            "keyword" => RankBy::from(Ranking::Keyword),
            "recency" => Ranking::Recency.into(),
            "input" => Ranking::Input.into(),
            "score" => Ranking::Score.into(),
            "embedding" => Ranking::Embedding.into(),
            _ => Ranking::Hybrid.into(),
        };
        Packer::new(9).ranking(ranking)
    };
    for (name, is_refused) in refused.as_object().unwrap() {
        let packed = refusal(name).min_score(MinScore::Auto).pack("tea", &["tea"]);
        assert_eq!(is_refused.as_bool().unwrap(), packed.is_err(), "{name}");
        if let Err(error) = packed {
            assert_eq!(ErrorKind::InvalidArgument, error.kind());
            assert!(error.to_string().starts_with("min_score must be a number"), "{error}");
        }
    }
}

/// A number is taken as it is, and NaN is refused.
#[test]
fn numbers() {
    let packer = Packer::new(9).ranking(Ranking::Keyword);
    let packing = packer.clone().min_score(0.5).pack("tea", &["tea", "rye"]).unwrap();
    assert_eq!(1, packing.kept.len());
    assert_eq!(MinScore::At(0.5), 0.5.into());
    // Chunks that score 0 are in scope from 0 down, in a corpus too.
    let chunks = ["tea", "rye", "oat"];
    for (least, kept) in [(-1.0, 3), (0.0, 3), (0.1, 1)] {
        let packer = Packer::new(9).min_score(least);
        let packing = packer.pack("tea", &chunks).unwrap();
        assert_eq!(kept, packing.kept.len());
        assert_eq!(packing, packer.pack_corpus("tea", &Corpus::new(chunks)).unwrap());
    }
    let error = packer.min_score(f64::NAN).pack("tea", &["tea"]).unwrap_err();
    assert_eq!("min_score must be a number, not NaN", error.to_string());
}
