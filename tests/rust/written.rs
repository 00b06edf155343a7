//! Templates and prompts that are functions: the cases that both languages must
//! answer alike, and the law.

#![allow(clippy::unwrap_used)] // a case that cannot be read fails its test

mod cases;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use budgeteer::presets::{agentic_rag, context_gate, context_router};
use budgeteer::{
    Chunk, Corpus, Dedupe, Document, Encoding, ErrorKind, Estimate, KeptChunk, Order, Overflow,
    Packer, Packing, Ranking, Template, TokenCounter, Units,
};
use cases::{cases, list, number};
use proptest::prelude::*;
use serde_json::{Value, json};

fn write(name: &str, chunk: &dyn Document) -> String {
    let text = chunk.text();
    match name {
        "titled" => format!("{}: {text}", chunk.title()),
        "upper" => text.to_uppercase(),
        "even" => if text.len() % 2 == 1 { "" } else { text }.to_owned(),
        "twice" => format!("{text}\n{text}\n"),
        "start" => text[..text.len().min(12)].to_owned(),
        _ => unreachable!("{name} is no writer"),
    }
}

fn render(name: &str, chunks: &[&Chunk]) -> String {
    let joined =
        |glue: &str| chunks.iter().map(|chunk| chunk.text.clone()).collect::<Vec<_>>().join(glue);
    match name {
        "listed" => {
            let rows = chunks.iter().zip(1..);
            let rows = rows.map(|(c, n)| format!("{n}. source: {}, {}", c.title, c.text));
            let rows = rows.collect::<Vec<_>>().join("\n");
            format!("Read this.\n{rows}\nWhat is tea?")
        }
        "joined" => joined("\n"),
        "starts" => {
            let starts = chunks.iter().map(|chunk| &chunk.text[..chunk.text.len().min(12)]);
            starts.collect::<Vec<_>>().join("\n")
        }
        "twice" => format!("Two: {} and {}", joined(" / "), joined("; ")),
        "same" => "always the same".into(),
        "counted" => format!("{} chunks", chunks.len()),
        "falling" => "tea ".repeat(12_usize.saturating_sub(chunks.len())) + &joined(" "),
        "squares" => "tea ".repeat(chunks.len().pow(2) / 3) + &joined(" "),
        "rounded" => "rye ".repeat((7 - chunks.len() % 7) % 7 * 9) + &joined(" "),
        _ => unreachable!("{name} is no prompt"),
    }
}

fn packer(case: &Value) -> Packer {
    let options = &case["options"];
    let name = |field: &str| options[field].as_str();
    let mut packer = Packer::new(number(&case["max_tokens"]))
        .overflow(if name("overflow") == Some("stop") { Overflow::Stop } else { Overflow::Skip })
        .order(match name("order").unwrap() {
            "rank" => Order::Rank,
            "input" => Order::Input,
            "edges" => Order::Edges,
            _ => Order::Document,
        })
        .dedupe(match name("dedupe") {
            None => Dedupe::Off,
            Some("near") => Dedupe::Near,
            Some(_) => Dedupe::Exact,
        });
    if let Some(notice) = name("notice") {
        packer = packer.notice(notice);
    }
    if let Some(most) = options["max_chunks"].as_u64() {
        packer = packer.max_chunks(usize::try_from(most).unwrap());
    }
    match name("counter").unwrap() {
        "chars_div4" => packer.estimate(Estimate::CharsDiv4),
        "words" => packer.estimate(Estimate::Words),
        "cl100k_base" => packer.counter(Encoding::Cl100k),
        _ => packer.counter(Encoding::O200k),
    }
}

/// Asserts that a list and a corpus of the chunks of a case are packed as
/// Python packs them.
fn assert_answered(case: &Value, chunks: Vec<Chunk>, packer: &Packer) {
    let query = case["query"].as_str().unwrap();
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

fn explained(packing: &Packing, count: usize) -> Vec<String> {
    (0..count).map(|index| packing.explain(Some(index)).unwrap()).collect()
}

fn chunks_of(case: &Value) -> Vec<Chunk> {
    let text = |chunk: &Value, field: &str| chunk[field].as_str().unwrap().to_owned();
    let rows = list(&case["chunks"]).iter();
    rows.map(|row| Chunk::new(text(row, "text")).title(text(row, "title"))).collect()
}

/// Templates that are functions pack as Python's.
#[test]
fn templates() {
    for case in list(&cases("written.json", "templates")) {
        let options = &case["options"];
        let text = |field: &str| options[field].as_str().unwrap().to_owned();
        let name = text("function");
        let template = Template::by(move |_, chunk| write(&name, chunk))
            .separator(text("separator"))
            .header(text("header"))
            .footer(text("footer"));
        assert_answered(case, chunks_of(case), &packer(case).template(template));
    }
}

/// Prompts pack as Python's.
#[test]
fn prompts() {
    for case in list(&cases("written.json", "prompts")) {
        let name = case["options"]["function"].as_str().unwrap().to_owned();
        let chunks = chunks_of(case);
        let own = chunks.clone();
        let packer = packer(case).prompt(move |kept| {
            render(&name, &kept.iter().map(|&index| &own[index]).collect::<Vec<_>>())
        });
        assert_answered(case, chunks, &packer);
    }
}

/// The same sets of chunks are tried until a prompt fits.
#[test]
fn searches() {
    for case in list(&cases("written.json", "searches")) {
        let row = |(place, words): (usize, &Value)| {
            Chunk::new(vec!["tea"; number(words)].join(" ")).title(place.to_string())
        };
        let chunks: Vec<Chunk> = list(&case["words"]).iter().enumerate().map(row).collect();
        let (name, own) = (case["function"].as_str().unwrap().to_owned(), chunks.clone());
        let made: Arc<Mutex<Vec<[usize; 2]>>> = Arc::default();
        let log = Arc::clone(&made);
        let options = json!({"counter": case["counter"], "order": "rank"});
        let packer = packer(&json!({"options": options, "max_tokens": case["max_tokens"]}));
        let packer = packer.ranking(Ranking::Input).prompt(move |kept| {
            log.lock().unwrap().push([kept.len(), kept.iter().sum()]);
            render(&name, &kept.iter().map(|&index| &own[index]).collect::<Vec<_>>())
        });
        let packing = packer.pack("", &chunks).unwrap();
        let kept: Vec<usize> = packing.kept.iter().map(|kept| kept.index).collect();
        let made = made.lock().unwrap().clone();
        let found = json!({"made": made, "total_tokens": packing.total_tokens, "kept": kept});
        assert_eq!(case["answer"], found, "{case}");
    }
}

/// A prompt that is over without a chunk keeps none, not even one that counts nothing.
#[test]
fn a_prompt_may_have_no_room() {
    let packer = Packer::new(3).counter(|text: &str| text.matches('x').count());
    let packing = packer.prompt(|_| "xxxx".into()).pack("tea", &["Tea.", "Rye."]).unwrap();
    assert_eq!(
        ("", 0, 0, 2),
        (&*packing.text, packing.total_tokens, packing.kept.len(), packing.dropped.len())
    );
}

/// What fits with no chunk at all is sent without one.
#[test]
fn a_prompt_may_have_room_for_no_chunk() {
    let packer = Packer::new(12).counter(|text: &str| text.split_whitespace().count());
    let render = |kept: &[usize]| if kept.is_empty() { "tea".into() } else { "tea ".repeat(99) };
    let packing = packer.prompt(render).pack("tea", &["Tea.", "Rye."]).unwrap();
    assert_eq!(("tea", 1, 0), (&*packing.text, packing.total_tokens, packing.kept.len()));
}

/// The first text that is made is sent if it fits and no other does.
#[test]
fn a_prompt_may_fit_only_with_all_chunks() {
    let packer = Packer::new(20).counter(|text: &str| text.len());
    let render = |kept: &[usize]| "x".repeat([0, 21, 20][kept.len()]);
    let packing = packer.prompt(render).pack("tea", &["green tea", "black tea"]).unwrap();
    assert_eq!((20, 2), (packing.total_tokens, packing.kept.len()));
}

/// Documents stay together, in the order of their positions, whatever is
/// written for them.
#[test]
fn what_is_written_is_in_the_order_of_the_documents() {
    let chunk = |text: &str, source: &str, position: f64| Chunk {
        position: Some(position),
        ..Chunk::new(text).source(source)
    };
    let chunks = [chunk("d", "b", 2.0), chunk("a", "a", 1.0), chunk("c", "b", 1.0)];
    let template = Template::by(|_, chunk| chunk.text().to_uppercase()).separator(" ");
    let packer = Packer::new(9).counter(Estimate::Words).ranking(Ranking::Input);
    let packer = packer.template(template).order(Order::Document);
    assert_eq!("C D A", packer.pack("", &chunks).unwrap().text);
}

/// Without text there are 0 tokens, whatever a counter says of it, with chunks and without.
#[test]
fn an_empty_prompt_has_no_tokens() {
    for budget in [2, 40] {
        let packer = Packer::new(budget).counter(|_: &str| 3);
        let packing = packer.prompt(|_| String::new()).pack("tea", &["Tea.", "Rye."]).unwrap();
        assert_eq!(("", 0), (&*packing.text, packing.total_tokens));
    }
}

/// What Python refuses is refused.
#[test]
fn refusals() {
    let refused = cases("written.json", "refusals");
    for (kind, options) in refused.as_object().unwrap() {
        for (name, is_refused) in options.as_object().unwrap() {
            let packer = match &**name {
                "truncate_end" => Packer::new(9).overflow(Overflow::TruncateEnd),
                "stop" => Packer::new(9).overflow(Overflow::Stop),
                "sentence" => Packer::new(9).units(Units::Sentence),
                "notice" => Packer::new(9).notice("left out"),
                "sticky" => Packer::new(9).order(Order::Sticky),
                "edges" => Packer::new(9).order(Order::Edges),
                "agentic_rag" => agentic_rag(9),
                "context_router" => context_router(9),
                _ => context_gate(9, 3),
            };
            let packer = match &**kind {
                "template" => packer.template(Template::by(|_, chunk| chunk.text().into())),
                _ => packer.template(Template::plain()).prompt(|_| String::new()),
            };
            let result = packer.pack("tea", &["tea"]);
            assert_eq!(is_refused.as_bool().unwrap(), result.is_err(), "{kind} {name}");
            if let Err(error) = result {
                assert_eq!(ErrorKind::InvalidArgument, error.kind());
            }
        }
    }
    let templated = Packer::new(9).template(Template::tagged()).prompt(|_| String::new());
    assert!(templated.pack("tea", &["tea"]).is_err());
}

/// A packing of a prompt is no previous one, as it has no order to keep.
#[test]
fn previous() {
    let first = Packer::new(9).prompt(|_| String::new()).pack("tea", &["tea"]).unwrap();
    let packer = Packer::new(9).order(Order::Sticky);
    assert!(packer.pack_after(&first, "tea", &["tea"]).is_err());
}

/// A template equals itself and its clones, and no other.
#[test]
fn equality() {
    let template = Template::by(|index, _| index.to_string());
    assert_eq!(template, template.clone());
    assert_ne!(template, Template::by(|index, _| index.to_string()));
    assert!(format!("{template:?}").contains("Written(..)"));
}

/// Nothing is written where the header leaves no token.
#[test]
fn a_header_may_take_all_tokens() {
    let template = Template::by(|_, _| unreachable!("no token is left"));
    let packer = Packer::new(4).counter(|text: &str| text.len()).template(template.header("Tea:"));
    let packing = packer.pack("tea", &["Green tea."]).unwrap();
    assert_eq!(("", 0), (&*packing.text, packing.dropped[0].available_tokens));
}

fn counted(text: &str, kind: usize) -> usize {
    match kind {
        0 => text.len(),
        1 => text.split_whitespace().count(),
        2 => text.len() + 7 * text.matches('\n').count(),
        _ => Encoding::O200k.count(text),
    }
}

proptest! {
    /// The text is what was written, joined, and its count is within the
    /// budget, under every counter. Each chunk is written once at most.
    #[test]
    fn templates_keep_the_law(
        texts in prop::collection::vec("[a-d \\n]{0,40}", 0..9),
        budget in 0..120_usize,
        kind in 0..4_usize,
        writer in prop::sample::select(vec!["upper", "even", "twice", "start"]),
        separator in prop::sample::select(vec!["\n\n", "", "'", "\n"]),
    ) {
        let asked: Arc<Mutex<Vec<usize>>> = Arc::default();
        let log = Arc::clone(&asked);
        let template = Template::by(move |index, chunk| {
            log.lock().unwrap().push(index);
            write(writer, chunk)
        });
        let packer = Packer::new(budget).template(template.separator(separator).header("H\n"));
        let packer = if kind == 3 {
            packer.counter(Encoding::O200k)
        } else {
            packer.counter(move |text: &str| counted(text, kind))
        };
        let packing = packer.pack("a b", &texts).unwrap();
        prop_assert_eq!(counted(&packing.text, kind), packing.total_tokens);
        prop_assert!(packing.total_tokens <= budget);
        let kept: Vec<_> = packing.kept.iter().map(KeptChunk::text).collect();
        if !kept.is_empty() {
            prop_assert_eq!(format!("H\n{}", kept.join(separator)), &*packing.text);
        }
        for kept in &packing.kept {
            prop_assert_eq!(write(writer, &&*texts[kept.index]), kept.text());
            prop_assert_eq!(&packing.text[kept.span.clone().unwrap()], kept.text());
        }
        let mut asked = asked.lock().unwrap().clone();
        asked.sort_unstable();
        let count = asked.len();
        asked.dedup();
        prop_assert_eq!(count, asked.len());
    }

    /// The text is what the prompt makes of the kept chunks, and its count is
    /// within the budget, under every counter. It is made nine times at most.
    #[test]
    fn prompts_keep_the_law(
        texts in prop::collection::vec("[a-d \\n]{0,40}", 0..9),
        budget in 0..120_usize,
        kind in 0..4_usize,
        name in prop::sample::select(vec!["listed", "joined", "starts", "twice", "falling"]),
    ) {
        let chunks: Vec<Chunk> = texts.into_iter().map(Chunk::new).collect();
        let own = chunks.clone();
        let of = move |kept: &[usize]| {
            render(name, &kept.iter().map(|&index| &own[index]).collect::<Vec<_>>())
        };
        let (made, log) = (of.clone(), Arc::new(AtomicUsize::new(0)));
        let calls = Arc::clone(&log);
        let packer = Packer::new(budget).prompt(move |kept| {
            calls.fetch_add(1, Ordering::Relaxed);
            made(kept)
        });
        let packer = if kind == 3 {
            packer.counter(Encoding::O200k)
        } else {
            packer.counter(move |text: &str| counted(text, kind))
        };
        let packing = packer.pack("a b", &chunks).unwrap();
        prop_assert!(log.load(Ordering::Relaxed) <= 9);
        prop_assert!(packing.total_tokens <= budget);
        prop_assert_eq!(counted(&packing.text, kind), packing.total_tokens);
        let kept: Vec<usize> = packing.kept.iter().map(|kept| kept.index).collect();
        let is_over = counted(&of(&[]), kind) > budget;
        prop_assert_eq!(if is_over { String::new() } else { of(&kept) }, packing.text.clone());
        for kept in &packing.kept {
            prop_assert_eq!(&chunks[kept.index].text, kept.text());
            if let Some(span) = kept.span.clone() {
                prop_assert_eq!(&packing.text[span], kept.text());
            }
        }
    }
}
