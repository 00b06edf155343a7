//! Sentences, stems and stopwords in Rust: the cases that both languages must
//! answer alike.

#![allow(clippy::unwrap_used)] // a case that cannot be read fails its test

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use budgeteer::{
    Bm25, Chunk, Corpus, Dedupe, Encoding, ErrorKind, Estimate, Lexical, Overflow, Packer, RankBy,
    Ranking, Reason, Selection, Stemming, Stopwords, Template, Text, Units, sentence_spans,
};
use serde_json::Value;

fn cases(kind: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/sentences.json");
    let mut cases: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    serde_json::from_value(cases[kind].take()).unwrap()
}

fn number(value: &Value) -> Option<usize> {
    value.as_u64().map(|number| usize::try_from(number).unwrap())
}

#[test]
fn spans() {
    for case in cases("spans") {
        let text = case["text"].as_str().unwrap();
        let expected: Vec<usize> = serde_json::from_value(case["spans"].clone()).unwrap();
        assert_eq!(expected, sentence_spans(text.into()), "{text}");
    }
}

fn packer(case: &Value) -> Packer {
    let name = |field: &str| case[field].as_str();
    let stopwords = match &case["stopwords"] {
        Value::Null => Stopwords::none(),
        Value::String(language) => Stopwords::of(language).unwrap(),
        words => {
            let words = words.as_array().unwrap().iter();
            Stopwords::words(words.map(|word| Text::from(word.as_str().unwrap())))
        }
    };
    let stemming = name("stemming").map(|language| Stemming::of(language).unwrap());
    let bm25 = Bm25 { stemming, stopwords, ..Bm25::default() };
    let mut packer = Packer::new(number(&case["max_tokens"]).unwrap())
        .dedupe(name("dedupe").is_some())
        .units(if name("units") == Some("sentence") { Units::Sentence } else { Units::Chunk })
        .template(match name("template") {
            Some("plain") => Template::plain(),
            Some("tagged") => Template::tagged(),
            _ => Template::xml(),
        })
        .overflow(match name("overflow") {
            Some("skip") => Overflow::Skip,
            Some("stop") => Overflow::Stop,
            Some("truncate_end") => Overflow::TruncateEnd,
            _ => Overflow::TruncateMiddle,
        })
        .ranking(match name("ranking") {
            Some("lexical") => {
                Lexical { bm25, k3: case["k3"].as_f64().unwrap(), ..Lexical::default() }.into()
            }
            Some("bm25") => RankBy::from(bm25),
            Some("keyword") => Ranking::Keyword.into(),
            _ => Ranking::Input.into(),
        });
    packer = match name("counter") {
        Some("chars_div4") => packer.estimate(Estimate::CharsDiv4),
        Some("words") => packer.estimate(Estimate::Words),
        Some("o200k_base") => packer.counter(Encoding::O200k),
        _ => packer.counter(Encoding::Cl100k),
    };
    if let Some(notice) = name("notice") {
        packer = packer.notice(notice);
    }
    if let Some(count) = number(&case["max_chunks"]) {
        packer = packer.max_chunks(count);
    }
    if let Some(score) = case["min_score"].as_f64() {
        packer = packer.min_score(score);
    }
    packer
}

#[test]
fn packings() {
    for case in cases("packings") {
        let chunks = case["chunks"].as_array().unwrap().iter().map(|chunk| {
            let made = Chunk::new(chunk["text"].as_str().unwrap());
            let made = made.title(chunk["title"].as_str().unwrap());
            match chunk["id"].as_str() {
                Some(id) => made.id(id),
                None => made,
            }
        });
        let chunks: Vec<Chunk> = chunks.collect();
        let packing = packer(&case).pack(case["query"].as_str().unwrap(), &chunks).unwrap();
        let answer = &case["answer"];
        assert_eq!(answer["text"].as_str().unwrap(), packing.text, "{case}");
        assert_eq!(number(&answer["total_tokens"]), Some(packing.total_tokens), "{case}");
        let kept = packing.kept.iter().map(|kept| (kept.index, kept.token_count, kept.was_cut));
        let expected: Vec<(usize, usize, bool)> =
            serde_json::from_value(answer["kept"].clone()).unwrap();
        assert_eq!(expected, kept.collect::<Vec<_>>(), "{case}");
        let reason = |reason: Reason| match reason {
            Reason::OutOfScope => "out_of_scope",
            Reason::Empty => "empty",
            Reason::Cap => "cap",
            Reason::Duplicate => "duplicate",
            _ => "budget",
        };
        let dropped = packing.dropped.iter().map(|dropped| {
            let why = reason(dropped.reason).to_owned();
            (dropped.index, why, dropped.needed_tokens, dropped.available_tokens)
        });
        let expected: Vec<(usize, String, usize, usize)> =
            serde_json::from_value(answer["dropped"].clone()).unwrap();
        assert_eq!(expected, dropped.collect::<Vec<_>>(), "{case}");
        let expected = answer["scores"].as_array().unwrap().iter();
        let expected: Vec<Option<f64>> =
            expected.map(|score| score.as_str().unwrap().parse().ok()).collect();
        let scores: Vec<_> = packing.kept.iter().map(|kept| kept.score).collect();
        assert_eq!(expected, scores, "{case}");
    }
}

/// A preset admits whole chunks only, and so does every option that compares or
/// chooses them.
#[test]
fn some_packers_pack_chunks() {
    let packers = [
        budgeteer::presets::agentic_rag(99),
        Packer::new(99).dedupe(Dedupe::Near),
        Packer::new(99).selection(Selection::Coverage),
    ];
    let corpus = Corpus::new(["Tea."]);
    for packer in packers {
        let packer = packer.units(Units::Sentence);
        let answers = [packer.pack("tea", &["Tea."]), packer.pack_corpus("tea", &corpus)];
        for answer in answers {
            assert_eq!(ErrorKind::InvalidArgument, answer.unwrap_err().kind());
        }
    }
}

/// A corpus packs the same sentences as its chunks.
#[test]
fn a_corpus() {
    let chunks = ["Tea is old. Green tea is not. So is silk.", "Rye. Tea of rye. Bread of rye."];
    let corpus = Corpus::new(chunks);
    for budget in 0..20 {
        let packer = Packer::new(budget).units(Units::Sentence);
        let packing = packer.pack("green tea", &chunks).unwrap();
        assert_eq!(packing, packer.pack_corpus("green tea", &corpus).unwrap());
    }
}

/// A notice that yields to the best sentence also yields to it behind a chunk of
/// higher rank that has room beside it.
#[test]
fn a_notice_yields_to_the_best_sentence() {
    let best = "Kiwi bread dry leaf pot steam leaf tea cup.";
    let chunks = ["Roll.", best, "Pot pot bread cup. Dry green.", "Green tea roll cup cold."];
    let packer = Packer::new(14)
        .counter(Estimate::Words)
        .ranking(Ranking::Input)
        .template(Template::markdown())
        .notice("Left out: {count}.")
        .units(Units::Sentence);
    let packing = packer.pack("kiwi", &chunks).unwrap();
    let expected = format!("## [document:0]\n\nRoll.\n\n## [document:1]\n\n{best}");
    assert_eq!(expected, packing.text);
}

/// Under a caller's own counter the text is never over, and where everything
/// fits all chunks are whole.
#[test]
fn own_counter() {
    let chunks = ["Tea is old. Green tea is not. So is silk.", "Rye. Tea of rye."];
    for budget in 0..80 {
        let packer = Packer::new(budget).counter(str::len).units(Units::Sentence);
        let packing = packer.pack("green tea", &chunks).unwrap();
        assert_eq!(packing.text.len(), packing.total_tokens);
        assert!(packing.total_tokens <= budget);
        assert_eq!(chunks.len(), packing.kept.len() + packing.dropped.len());
        for kept in &packing.kept {
            let whole =
                chunks[kept.index] == &packing.text[kept.span.clone().expect("it is there")];
            assert_eq!(whole, !kept.was_cut);
        }
        assert_eq!(budget > 58, packing.kept.iter().filter(|kept| !kept.was_cut).count() == 2);
    }
}

/// The sentences of a chunk are scored among each other, whatever is known of a
/// collection that the chunks are from.
#[test]
fn sentences_know_of_no_collection() {
    let texts: Vec<String> = (0..9).map(|at| format!("Tea {at}.")).chain(["Rye.".into()]).collect();
    let known = Corpus::new(texts).statistics(&Bm25::default()).unwrap();
    let lexical = Lexical { statistics: Some(Arc::new(known)), ..Bm25::default().into() };
    let packer = Packer::new(3).counter(Estimate::Words).ranking(lexical).units(Units::Sentence);
    let packing = packer.pack("tea rye", &["Tea is green. Rye is old."]).unwrap();
    assert_eq!("Tea is green.", packing.text);
}

/// How many sentences fit is found from few tries, whatever the budget: a caller's own
/// counter is asked so often, and of so many characters.
#[test]
fn few_texts_are_counted() {
    let sentence = |at: usize| {
        let words = ["green", "tea", "of", "the", "hill", "rye"];
        let words: Vec<_> = (0..2 + at * 7 % 11).map(|nth| words[(at + nth * nth) % 6]).collect();
        format!("Line {at} {}.", words.join(" "))
    };
    let chunk = |at: usize| {
        let sentences: Vec<_> = (at * 10..).take(1 + at * 5 % 9).map(sentence).collect();
        sentences.join(" ")
    };
    let chunks: Vec<String> = (0..60).map(chunk).collect();
    let asked = |packer: Packer| {
        let log: Arc<Mutex<Vec<usize>>> = Arc::default();
        let own = Arc::clone(&log);
        let packer = packer.units(Units::Sentence).counter(move |text: &str| {
            own.lock().unwrap().push(text.len());
            text.split_whitespace().count()
        });
        packer.pack("green tea of the hill", &chunks).unwrap();
        let log = log.lock().unwrap();
        (log.len(), log.iter().sum::<usize>())
    };
    let mut found = Vec::new();
    for budget in [3, 8, 30, 100, 250, 700, 2_000, 5_000] {
        for notice in [None, Some("Left out: {count}.")] {
            let packer = Packer::new(budget).ranking(Ranking::Bm25);
            found.push(asked(match notice {
                Some(notice) => packer.notice(notice),
                None => packer,
            }));
        }
    }
    let expected = [
        [(67, 12_245), (67, 12_245)],
        [(67, 12_275), (70, 12_365)],
        [(75, 13_265), (80, 13_824)],
        [(99, 16_862), (102, 17_002)],
        [(73, 15_595), (107, 20_026)],
        [(125, 26_715), (129, 26_890)],
        [(143, 63_153), (178, 95_925)],
        [(61, 23_996), (63, 24_140)],
    ];
    assert_eq!(expected.concat(), found);
}
