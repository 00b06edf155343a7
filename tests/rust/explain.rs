//! Explanations of a packing: the cases that both languages must answer alike.

#![allow(clippy::unwrap_used)] // a case that cannot be read fails its test

mod cases;

use budgeteer::presets::{agentic_rag, context_gate, context_router, retrieval_service};
use budgeteer::{
    Chunk, Corpus, Dedupe, Encoding, ErrorKind, Estimate, Order, Overflow, Packer, Packing,
    Ranking, Selection, Template, TokenCounter, Units,
};
use cases::{cases, list, number};
use proptest::prelude::*;
use serde_json::{Value, json};

fn chunk(value: &Value) -> Chunk {
    let text = |field: &str| value[field].as_str().unwrap_or_default();
    let mut chunk = Chunk::new(text("text")).title(text("title")).source(text("source"));
    chunk.score = value["score"].as_f64();
    if let Some(id) = value["id"].as_str() {
        chunk = chunk.id(id);
    }
    if let Some(kind) = value["kind"].as_str() {
        chunk = chunk.kind(kind).authority(text("authority"));
    }
    chunk
}

fn overflow(name: &Value) -> Overflow {
    match name.as_str().unwrap() {
        "skip" | "drop" => Overflow::Skip,
        "stop" => Overflow::Stop,
        "truncate_end" => Overflow::TruncateEnd,
        _ => Overflow::TruncateMiddle,
    }
}

fn packer(case: &Value) -> Packer {
    let max_tokens = number(&case["max_tokens"]);
    let options = &case["options"];
    match case["preset"].as_str() {
        Some("context_gate") => context_gate(max_tokens, number(&options["max_docs"])),
        Some("agentic_rag") => {
            agentic_rag(max_tokens).reserve_tokens(number(&options["buffer_tokens"]))
        }
        Some("context_router") => {
            context_router(max_tokens).overflow(overflow(&options["truncation"]))
        }
        Some(_) => retrieval_service(max_tokens),
        None => with_options(Packer::new(max_tokens), options),
    }
}

fn with_options(packer: Packer, options: &Value) -> Packer {
    let name = |field: &str| options[field].as_str();
    let mut packer = packer
        .reserve_tokens(number(&options["reserve_tokens"]))
        .ranking(match name("ranking").unwrap() {
            "lexical" => Ranking::Lexical,
            "bm25" => Ranking::Bm25,
            "keyword" => Ranking::Keyword,
            "input" => Ranking::Input,
            _ => Ranking::Score,
        })
        .overflow(overflow(&options["overflow"]))
        .dedupe(match name("dedupe") {
            Some("exact") => Dedupe::Exact,
            Some(_) => Dedupe::Near,
            None => Dedupe::Off,
        })
        .units(if name("units") == Some("chunk") { Units::Chunk } else { Units::Sentence })
        .selection(match name("selection") {
            Some("coverage") => Selection::Coverage,
            _ => Selection::Rank,
        })
        .order(match name("order").unwrap() {
            "rank" => Order::Rank,
            "input" => Order::Input,
            "edges" => Order::Edges,
            _ => Order::Document,
        })
        .template(match name("template").unwrap() {
            "plain" => Template::plain(),
            "tagged" => Template::tagged(),
            "markdown" => Template::markdown(),
            "xml" => Template::xml(),
            _ => Template::json(),
        });
    packer = match name("counter").unwrap() {
        "chars_div4" => packer.estimate(Estimate::CharsDiv4),
        "words" => packer.estimate(Estimate::Words),
        "o200k_base" => packer.counter(Encoding::O200k),
        "cl100k_base" => packer.counter(Encoding::Cl100k),
        _ => packer.counter(|text: &str| text.chars().count()),
    };
    if let Some(notice) = name("notice") {
        packer = packer.notice(notice);
    }
    if let Some(count) = options["max_chunks"].as_u64() {
        packer = packer.max_chunks(usize::try_from(count).unwrap());
    }
    if let Some(score) = options["min_score"].as_f64() {
        packer = packer.min_score(score);
    }
    packer
}

/// Returns the packing as JSON, with spans in characters, as Python has them.
fn in_characters(packing: &Packing) -> Value {
    let mut json = serde_json::to_string(packing).unwrap().parse::<Value>().unwrap();
    for (row, kept) in json["kept"].as_array_mut().unwrap().iter_mut().zip(&packing.kept) {
        let span = kept.span.clone().expect("it is there");
        assert_eq!(json!([span.start, span.end]), row["span"]);
        let chars = |end: usize| packing.text[..end].chars().count();
        row["span"] = json!([chars(span.start), chars(span.end)]);
    }
    json
}

/// A packing has Python's sentences, figures and JSON.
#[test]
fn packings() {
    for case in list(&cases("explain.json", "packings")) {
        let chunks: Vec<Chunk> = list(&case["chunks"]).iter().map(chunk).collect();
        let packing = packer(case).pack(case["query"].as_str().unwrap(), &chunks).unwrap();
        let answer = &case["answer"];
        assert_eq!(answer["packing"], in_characters(&packing), "{case}");
        assert_eq!(number(&answer["dropped_count"]), packing.dropped_count());
        let tokens = packing.dropped_total_tokens(&chunks);
        assert_eq!(number(&answer["dropped_total_tokens"]), tokens, "{case}");
        let explained: Vec<String> =
            (0..chunks.len()).map(|index| packing.explain(Some(index)).unwrap()).collect();
        assert_eq!(answer["explained"], json!(explained), "{case}");
        assert_eq!(answer["summary"], json!(packing.explain(None).unwrap()), "{case}");
    }
}

/// Where joined texts count more than their sum, the same chunks leave.
#[test]
fn joints() {
    for case in list(&cases("explain.json", "joints")) {
        let texts: Vec<&str> =
            list(&case["texts"]).iter().map(|text| text.as_str().unwrap()).collect();
        let per_line = number(&case["per_line"]);
        let counter = move |text: &str| text.len() + per_line * text.matches('\n').count();
        let packer = with_options(Packer::new(number(&case["max_tokens"])), &case["options"]);
        let packing = packer.counter(counter).pack("tea", &texts).unwrap();
        let kept = packing.kept.iter();
        let kept = kept.map(|kept| json!([kept.index, kept.token_count, kept.was_cut]));
        let dropped = packing.dropped.iter();
        let dropped =
            dropped.map(|one| json!([one.index, one.needed_tokens, one.available_tokens]));
        let answer = json!({
            "text": packing.text,
            "total_tokens": packing.total_tokens,
            "kept": kept.collect::<Vec<_>>(),
            "dropped": dropped.collect::<Vec<_>>(),
        });
        assert_eq!(case["answer"], answer, "{case}");
    }
}

/// An index beyond the chunks is refused with Python's message.
#[test]
fn refusals() {
    for case in list(&cases("explain.json", "refusals")) {
        let chunks = vec!["tea"; number(&case["chunks"])];
        let packing = Packer::new(9).pack("", &chunks).unwrap();
        let error = packing.explain(Some(number(&case["index"]))).unwrap_err();
        assert_eq!(ErrorKind::InvalidArgument, error.kind());
        assert_eq!(case["error"].as_str().unwrap(), error.to_string());
    }
}

/// A tokenizer of the caller's own.
struct Own;

impl TokenCounter for Own {
    fn count(&self, text: &str) -> usize {
        text.len()
    }

    fn is_exact(&self) -> bool {
        true
    }
}

/// The caller's own counter is exact where it says so, and counts what was
/// dropped; a corpus explains what its chunks do.
#[test]
fn own_counters_and_corpora() {
    let chunks = ["Green tea.", "Rye bread is dark.", "Green tea."];
    let packer = Packer::new(10).counter(|text: &str| text.len());
    let packing = packer.pack("tea", &chunks).unwrap();
    assert!(!packing.is_exact);
    assert!(Packer::new(10).counter(Own).pack("tea", &chunks).unwrap().is_exact);
    assert_eq!((2, 28), (packing.dropped_count(), packing.dropped_total_tokens(&chunks)));
    let corpus = Corpus::new(chunks);
    let indexed = packer.pack_corpus("tea", &corpus).unwrap();
    for index in [None, Some(0), Some(1), Some(2)] {
        assert_eq!(packing.explain(index), indexed.explain(index));
    }
    assert_eq!(28, indexed.dropped_total_tokens(corpus.chunks()));
    assert!(!packer.estimate(Estimate::Words).pack("tea", &chunks).unwrap().is_exact);
}

proptest! {
    /// The text of a kept chunk is its own if it was not cut. If nothing is
    /// escaped, it stands in the packed text.
    #[test]
    fn texts_are_as_packed(
        chunks in prop::collection::vec("[a-c .&<é日\n\\[\\]:\"\\\\]{0,40}", 0..9),
        max_tokens in 0_usize..40,
        template in prop::sample::select(vec![
            Template::plain(), Template::tagged(), Template::markdown(), Template::xml(),
            Template::json(),
        ]),
        overflow in prop::sample::select(vec![Overflow::TruncateEnd, Overflow::TruncateMiddle]),
    ) {
        let packer = Packer::new(max_tokens).estimate(Estimate::CharsDiv4).overflow(overflow);
        let packing = packer.clone().template(template).pack("a", &chunks).unwrap();
        for kept in &packing.kept {
            if kept.was_cut {
                prop_assert!(kept.text().contains("[...") && !chunks.iter().any(|text| text == kept.text()));
            } else {
                prop_assert_eq!(&chunks[kept.index], kept.text());
            }
            prop_assert_eq!(Estimate::CharsDiv4.count(kept.text()), kept.token_count);
        }
        let packing = packer.pack("a", &chunks).unwrap();
        for kept in &packing.kept {
            prop_assert_eq!(&packing.text[kept.span.clone().expect("it is there")], kept.text());
        }
    }
}

/// A cut chunk counts what its own text counts, as it is without escapes.
#[test]
fn escapes_do_not_count_in_a_cut_chunk() {
    let chunk = "Tea & rye & oat. ".repeat(9);
    for template in [Template::plain(), Template::xml()] {
        let packer = Packer::new(99).counter(|text: &str| text.len()).template(template);
        let packing = packer.overflow(Overflow::TruncateEnd).pack("", &[&*chunk]).unwrap();
        assert!(packing.kept[0].was_cut);
        assert_eq!(packing.kept[0].text().len(), packing.kept[0].token_count);
    }
}

/// A text that escapes make several times as long is cut to what fits, and fills most of the budget.
#[test]
fn a_cut_makes_room_for_escapes() {
    let packer = Packer::new(200).template(Template::xml()).overflow(Overflow::TruncateEnd);
    let chunk = "& < ".repeat(200);
    for packer in [
        packer.clone().estimate(Estimate::CharsDiv4),
        packer.clone().counter(Encoding::O200k),
        packer.counter(|text: &str| text.len()),
    ] {
        let packing = packer.pack("", &[&*chunk]).unwrap();
        assert!(packing.kept[0].was_cut && packing.total_tokens > 150, "{packing:?}");
    }
}

/// What the gate does not consider is told as such, also beside a cap of chunks
/// that is not reached.
#[test]
fn a_document_too_many_was_not_considered() {
    let chunks = [Chunk::new("green tea"), Chunk::new("black tea")];
    for (most, expected) in [(3, "1 document had been considered before it"), (1, "max_chunks")] {
        let packing = context_gate(100, 1).max_chunks(most).pack("tea", &chunks).unwrap();
        let found = packing.explain(Some(1)).unwrap();
        assert!(found.contains(expected), "{found}");
    }
}
