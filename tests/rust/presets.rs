//! Presets: the examples of their documents, and laws for every input.

mod cases;

use std::collections::BTreeSet;

use budgeteer::presets::{
    agentic_rag, citations, context_gate, context_router, estimate_citation_tokens, gate_bundle,
    retrieval_service, sources_footer,
};
use budgeteer::{
    Chunk, Dedupe, Encoding, Estimate, Overflow, Packer, Ranking, Reason, Selection, TokenCounter,
    Units,
};
use cases::{cases, list, number};
use proptest::prelude::*;
use serde_json::json;

fn artifact(id: &str, kind: &str, authority: &str, priority: f64, content: &str) -> Chunk {
    Chunk::new(content).id(id).kind(kind).authority(authority).priority(priority)
}

fn bundle() -> Vec<Chunk> {
    vec![
        artifact(
            "sys",
            "system",
            "system",
            10.0,
            "You are a focused retrieval assistant. Always cite sources.",
        ),
        artifact(
            "task",
            "task",
            "developer",
            8.0,
            "Answer the user's question based only on retrieved documents.",
        ),
        artifact(
            "doc1",
            "document",
            "tool",
            5.0,
            "The capital of France is Paris. It is known for the Eiffel Tower.",
        ),
        artifact(
            "doc2",
            "document",
            "tool",
            4.0,
            "France uses the Euro as its currency. The capital city is Paris.",
        ),
        artifact(
            "doc3",
            "document",
            "tool",
            1.0,
            "This is a verbose marketing paragraph with little relevant information about travel offers.",
        ),
        artifact("user", "message", "user", 2.0, "What is the capital of France?"),
    ]
}

/// The document's bundle is gated as the document prints it, at both budgets.
#[test]
fn bundle_of_the_document() -> Result<(), budgeteer::Error> {
    for (budget, kept, dropped) in [
        (120, &[0, 1, 5, 2, 3][..], &[(4, Reason::OutOfScope)][..]),
        (
            60,
            &[0, 1],
            &[
                (4, Reason::OutOfScope),
                (5, Reason::Budget),
                (2, Reason::Budget),
                (3, Reason::Budget),
            ],
        ),
    ] {
        let packing = gate_bundle(&bundle(), budget, 3)?;
        assert_eq!(kept, packing.kept.iter().map(|kept| kept.index).collect::<Vec<_>>());
        let out: Vec<_> = packing.dropped.iter().map(|out| (out.index, out.reason)).collect();
        assert_eq!(dropped, out);
    }
    Ok(())
}

/// An artifact weighs what its authority and its kind do together. The heaviest
/// comes first.
#[test]
fn weights_of_artifacts() -> Result<(), budgeteer::Error> {
    let authorities = ["system", "developer", "user", "tool", "other", "nobody"];
    let kinds = ["system", "task", "message", "document", "tool_output", "poem", "other"];
    let artifacts: Vec<_> = authorities
        .iter()
        .flat_map(|authority| {
            kinds.map(|kind| artifact(&format!("{authority} {kind}"), kind, authority, 3.0, "tea"))
        })
        .collect();
    let packing = gate_bundle(&artifacts, 10_000, artifacts.len())?;
    let of_authorities = [1000.0, 800.0, 600.0, 400.0, 200.0, 0.0];
    let of_kinds = [120.0, 100.0, 60.0, 50.0, 40.0, 0.0, 10.0];
    let weights = of_authorities.map(|authority| of_kinds.map(|kind| authority + kind)).concat();
    let mut heaviest: Vec<usize> = (0..weights.len()).collect();
    heaviest.sort_by(|&one, &other| f64::total_cmp(&weights[other], &weights[one]));
    assert_eq!(heaviest, packing.kept.iter().map(|kept| kept.index).collect::<Vec<_>>());
    Ok(())
}

/// A document beyond the cap is dropped by the cap, also if one that did not
/// fit used it up.
#[test]
fn considered_documents_use_the_cap_up() -> Result<(), budgeteer::Error> {
    let long = "tea ".repeat(100);
    let packing = context_gate(20, 1).pack("tea", &[long.as_str(), "green tea"])?;
    let reasons: Vec<_> = packing.dropped.iter().map(|dropped| dropped.reason).collect();
    assert_eq!([Reason::Budget, Reason::Cap], *reasons);
    Ok(())
}

/// A gate with a least score or a most of chunks says so, and not what the gate
/// does.
#[test]
fn options_of_a_gate_are_explained() -> Result<(), budgeteer::Error> {
    let packing = context_gate(120, 3).min_score(0.9).pack("green tea", &["green bread", "rye"])?;
    let explained = [packing.explain(Some(0))?, packing.explain(Some(1))?];
    assert_eq!("Chunk 0 (score 0.50) was dropped: its score is below min_score.", explained[0]);
    assert!(explained[1].ends_with("it shares no keyword with the question."), "{explained:?}");
    let chunks = ["green tea", "green tea leaf"];
    let packing = context_gate(120, 3).max_chunks(1).pack("green tea", &chunks)?;
    assert!(packing.explain(Some(1))?.ends_with("max_chunks was reached with 1 chunk kept."));
    Ok(())
}

/// Two artifacts must not have the same identifier, and none a NaN priority.
#[test]
fn malformed_bundles() {
    let twice = [Chunk::new("a").id("x"), Chunk::new("b"), Chunk::new("c").id("x")];
    let error = gate_bundle(&twice, 120, 3).unwrap_err();
    assert_eq!("artifacts[2] must not have the id of artifacts[0]", error.to_string());
    let error = gate_bundle(&[Chunk::new("a").priority(f64::NAN)], 120, 3).unwrap_err();
    assert_eq!("chunks[0].priority must be a number, not NaN", error.to_string());
}

/// The first chunk that does not fit ends the packing, whatever would fit
/// behind.
#[test]
fn retrieval_service_stops() -> Result<(), budgeteer::Error> {
    let chunks = [
        Chunk::new("Rye.").score(0.1),
        Chunk::new("Tea is a drink that is made of leaves.").score(0.5),
        Chunk::new("Tea.").score(0.9),
    ];
    let packing = retrieval_service(4).pack("", &chunks)?;
    assert_eq!("Tea.", packing.text);
    Ok(())
}

/// The router's preset packs the same as Python's, which packs the same as the
/// original program.
#[test]
fn context_router_is_that_of_python() -> Result<(), budgeteer::Error> {
    for case in list(&cases("presets.json", "context_router")) {
        let text = |value: &serde_json::Value| value.as_str().expect("a string").to_owned();
        let read = |chunk: &serde_json::Value| Chunk {
            mtime: chunk["mtime"].as_f64().expect("a number"),
            ..Chunk::new(text(&chunk["text"])).title(text(&chunk["title"]))
        };
        let chunks: Vec<Chunk> = list(&case["chunks"]).iter().map(read).collect();
        let options = &case["options"];
        let packer = context_router(number(&case["max_tokens"]))
            .reserve_tokens(number(&options["reserve_tokens"]))
            .estimate(match options["estimator"].as_str() {
                Some("chars_div4") => Estimate::CharsDiv4,
                _ => Estimate::Words,
            })
            .ranking(match options["ranking"].as_str() {
                Some("relevance") => Ranking::Keyword,
                Some("recency") => Ranking::Recency,
                _ => Ranking::Input,
            })
            .overflow(match options["truncation"].as_str() {
                Some("drop") => Overflow::Skip,
                Some("truncate_end") => Overflow::TruncateEnd,
                _ => Overflow::TruncateMiddle,
            });
        let packing = packer.pack(&text(&case["query"]), &chunks)?;
        let answer = &case["answer"];
        assert_eq!(text(&answer["text"]), packing.text, "{case}");
        assert_eq!(number(&answer["total_tokens"]), packing.total_tokens, "{case}");
        assert_eq!(number(&answer["budget_tokens"]), packing.budget_tokens, "{case}");
        let kept = packing.kept.iter();
        let kept =
            kept.map(|kept| json!([kept.index, kept.token_count, kept.was_cut, kept.text()]));
        assert_eq!(*list(&answer["kept"]), *kept.collect::<Vec<_>>(), "{case}");
        let dropped = packing.dropped.iter().map(|dropped| {
            let reason = if dropped.reason == Reason::Budget { "budget" } else { "another" };
            json!([dropped.index, reason, dropped.needed_tokens, dropped.available_tokens])
        });
        assert_eq!(*list(&answer["dropped"]), *dropped.collect::<Vec<_>>(), "{case}");
        let scores = list(&answer["scores"]).iter().map(|score| text(score).parse().ok());
        assert!(scores.eq(packing.kept.iter().map(|kept| kept.score)), "{case}");
    }
    Ok(())
}

/// A copy that stops drops all behind the first that does not fit, and each
/// once.
#[test]
fn context_router_stops() -> Result<(), budgeteer::Error> {
    let packer = context_router(2).ranking(Ranking::Input).overflow(Overflow::Stop);
    let packing = packer.pack("", &["tea", "a long text", "", "rye"])?;
    assert_eq!("tea", packing.text);
    let dropped = packing.dropped.iter();
    let dropped = dropped.map(|one| (one.index, one.needed_tokens, one.available_tokens));
    assert_eq!(vec![(1, 3, 1), (2, 0, 1), (3, 0, 1)], dropped.collect::<Vec<_>>());
    Ok(())
}

/// A copy of a preset refuses the options that would do nothing in it.
#[test]
fn copies_refuse_what_those_of_python_refuse() {
    for case in list(&cases("presets.json", "refusals")) {
        let packer = match case[0].as_str() {
            Some("agentic_rag") => agentic_rag(9),
            Some("context_gate") => context_gate(9, 3),
            Some("context_router") => context_router(9),
            _ => retrieval_service(9),
        };
        let packer = match case[1].as_str() {
            Some("chars_div4") => packer.estimate(Estimate::CharsDiv4),
            Some("words") => packer.estimate(Estimate::Words),
            Some("o200k_base") => packer.counter(Encoding::O200k),
            _ => packer.counter(|text: &str| text.len()),
        };
        let packer = match (case[2].as_str(), case[3].as_str()) {
            (Some("overflow"), Some("truncate_end")) => packer.overflow(Overflow::TruncateEnd),
            (Some("overflow"), _) => packer.overflow(Overflow::TruncateMiddle),
            (Some("ranking"), Some("bm25")) => packer.ranking(Ranking::Bm25),
            (Some("ranking"), _) => packer.ranking(Ranking::Score),
            (Some("max_chunks"), _) => packer.max_chunks(2),
            (Some("dedupe"), _) => packer.dedupe(Dedupe::Near),
            _ => packer.selection(Selection::Coverage),
        };
        assert_eq!(case[4], packer.pack("tea", &["tea"]).is_err(), "{case}");
    }
}

/// Under a counter that is not an estimate the router's preset keeps its
/// budget. It packs no sentences.
#[test]
fn context_router_holds_otherwise() {
    let chunks = ["Green tea.", "Green tea is mild, and dark tea is not."];
    for max_tokens in 0..20 {
        let packer = context_router(max_tokens).overflow(Overflow::TruncateEnd);
        let packing = packer.counter(Encoding::O200k).pack("tea", &chunks).expect("it packs");
        assert_eq!(Encoding::O200k.count(&packing.text), packing.total_tokens);
        assert!(packing.total_tokens <= max_tokens);
    }
    assert!(context_router(9).units(Units::Sentence).pack("tea", &chunks).is_err());
}

/// A footer names each source once, and as many as fit: into the tokens of the citations and the
/// reserve, and with the text and a blank line into all tokens.
#[test]
fn a_footer_names_as_many_sources_as_fit() -> Result<(), budgeteer::Error> {
    let chunk = |text: &str, source: &str, id: &str| Chunk::new(text).source(source).id(id);
    let chunks = [
        chunk("a", "First; source", "1"),
        chunk("b", "Second; source", "2"),
        chunk("c", "Third source", "3"),
        chunk("d", "", ""),
        chunk("e", "First;  source\n", "1"),
    ];
    let names = ["First, source 1", "Second, source 2", "Third source 3"];
    let footers = [
        names.join("; "),
        format!("{}; and 1 more", names[..2].join("; ")),
        format!("{}; and 2 more", names[0]),
    ];
    let limits = (40..160).flat_map(|all| (0..30).map(move |some| (all, some)));
    let mut seen = BTreeSet::new();
    for ((max_tokens, reserve), count) in limits.flat_map(|limit| [(limit, 3), (limit, 5)]) {
        let chunks = &chunks[..count];
        let counter = |text: &str| text.len();
        let packer = agentic_rag(max_tokens).reserve_tokens(reserve).counter(counter);
        let packing = packer.pack("", chunks)?;
        if packing.kept.len() < chunks.len() {
            continue;
        }
        for (chunk, citation) in chunks.iter().zip(citations(&packing, chunks)) {
            assert_eq!((&*chunk.source, chunk.id.as_deref()), (citation.source, citation.id));
        }
        let cited: usize = packing.kept.iter().map(|kept| kept.citation_tokens).sum();
        assert_eq!(estimate_citation_tokens(chunks, &counter), cited);
        let room = (cited + reserve).min(max_tokens - packing.total_tokens - "\n\n".len());
        let footer = footers.iter().map(|names| format!("Sources: {names}"));
        let footer = footer.into_iter().find(|footer| footer.len() <= room);
        let footer = footer.unwrap_or_default();
        seen.insert(footer.len());
        assert_eq!(footer, sources_footer(&packer, &packing, chunks));
    }
    assert!(seen.len() > 1, "there is always room for all");
    Ok(())
}

fn chunks() -> impl Strategy<Value = Vec<Chunk>> {
    let name = "[a-c;, \r\n\u{2028}é日]{0,12}";
    let chunk = (
        "[a-c .é日\n]{0,60}",
        name,
        name,
        "(|\\{\"a\":[0-9]{1,9}\\})",
        prop::option::of(-2.0_f64..2.0),
    )
        .prop_map(|(text, source, id, metadata, score)| Chunk {
            score,
            ..Chunk::new(text).source(source).id(id).metadata(metadata)
        });
    prop::collection::vec(chunk, 0..30)
}

fn check(
    packer: &Packer,
    chunks: &[Chunk],
    max_tokens: usize,
    buffer: usize,
    counter: &(impl Fn(&str) -> usize + Sync),
) {
    let packing = packer.pack("", chunks).expect("scores are numbers");
    let texts: usize = packing.kept.iter().map(|kept| kept.token_count).sum();
    let cited: usize = packing.kept.iter().map(|kept| kept.citation_tokens).sum();
    assert!(packing.kept.is_empty() || max_tokens < buffer || texts + cited + buffer <= max_tokens);
    assert!(packing.kept.is_empty() || counter(&packing.text) <= packing.budget_tokens);
    for (kept, citation) in packing.kept.iter().zip(citations(&packing, chunks)) {
        assert!(!kept.was_cut);
        assert_eq!(counter(&chunks[kept.index].text), kept.token_count);
        assert_eq!(
            estimate_citation_tokens(&chunks[kept.index..=kept.index], counter),
            kept.citation_tokens
        );
        assert_eq!(chunks[kept.index].text, packing.text[citation.span.expect("it is there")]);
        assert_eq!(chunks[kept.index].source, citation.source);
    }
    let footer = sources_footer(packer, &packing, chunks);
    assert!(!footer.contains(['\r', '\n', '\u{2028}']));
    assert!(footer.is_empty() || counter(&footer) <= cited + buffer);
}

proptest! {
    /// Texts, citations and buffer stay within the budget together; the text
    /// within the budget less the buffer; and the footer within the tokens set
    /// aside.
    #[test]
    fn citations_hold(chunks in chunks(), max_tokens in 0_usize..200, buffer in 0_usize..80) {
        let packer = agentic_rag(max_tokens).reserve_tokens(buffer);
        check(&packer, &chunks, max_tokens, buffer, &|text| Estimate::CharsDiv4.count(text));
    }

    /// The same holds under a counter that neither adds up nor grows with the
    /// text.
    #[test]
    fn wild_counters_hold(chunks in chunks(), max_tokens in 0_usize..200, buffer in 0_usize..80, salt: u8) {
        let wild = move |text: &str| {
            text.bytes().fold(usize::from(salt), |sum, byte| sum * 31 % 61 + usize::from(byte) % 7)
        };
        let packer = agentic_rag(max_tokens).reserve_tokens(buffer).counter(wild);
        check(&packer, &chunks, max_tokens, buffer, &wild);
    }

    /// A gate's text stays within the budget, and each artifact is in the
    /// packing once.
    #[test]
    fn gates_hold(chunks in chunks(), max_tokens in 0_usize..99, max_docs in 0_usize..5) {
        let packing = context_gate(max_tokens, max_docs).pack("a b ab", &chunks).unwrap();
        prop_assert!(packing.text.chars().count().div_ceil(3) <= max_tokens);
        let mut all: Vec<_> = packing.kept.iter().map(|kept| kept.index).collect();
        prop_assert!(all.len() <= max_docs);
        all.extend(packing.dropped.iter().map(|dropped| dropped.index));
        all.sort_unstable();
        prop_assert!(all.into_iter().eq(0..chunks.len()));
    }
}
