//! The retrieval service: the cases that Python must answer alike.
#![allow(clippy::unwrap_used)] // an unexpected value fails its test

mod cases;

use std::path::Path;

use budgeteer::service::{
    BoxError, FolderRetriever, LlmSettings, Pages, RetrievalService, Retriever, ServiceStats,
};
use budgeteer::{Chunk, Order, Overflow, Packer, Ranking, Reason, Template};
use cases::{cases, list, number};
use serde_json::{Value, json};

/// Returns the chunks of a case, in pages if the page size is not 0.
struct Fixed {
    chunks: Vec<Chunk>,
    page: usize,
}

impl Retriever for Fixed {
    fn retrieve(&self, _: &str, limit: usize) -> Result<Vec<Chunk>, BoxError> {
        Ok(self.chunks.iter().take(limit).cloned().collect())
    }

    fn pages<'a>(&'a self, _: &'a str) -> Option<Pages<'a>> {
        let starts = (0..self.chunks.len() + self.page).step_by(self.page.max(1));
        let page = |start: usize| self.chunks.iter().skip(start).take(self.page);
        let pages = starts.map(move |start| Ok(page(start).cloned().collect()));
        (self.page > 0).then(|| Box::new(pages) as Pages<'a>)
    }
}

/// Returns the text of a case, which may be given as a number of tokens.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| "tea".to_owned() + &" tea".repeat(number(value) - 1), Into::into)
}

fn retriever(chunks: &Value, page: usize) -> Fixed {
    let read = |chunk: &Value| {
        let score = chunk["score"].as_f64();
        let title = chunk["title"].as_str().unwrap();
        Chunk { score, ..Chunk::new(text(&chunk["text"])).title(title) }
    };
    Fixed { chunks: list(chunks).iter().map(read).collect(), page }
}

fn packer(options: &Value) -> Packer {
    let mut packer = Packer::new(number(&options["max_tokens"]));
    packer = packer.ranking(match options["ranking"].as_str().unwrap() {
        "input" => Ranking::Input,
        "lexical" => Ranking::Lexical,
        "bm25" => Ranking::Bm25,
        "keyword" => Ranking::Keyword,
        "score" => Ranking::Score,
        other => panic!("{other}"),
    });
    packer = packer.overflow(match options["overflow"].as_str().unwrap() {
        "skip" => Overflow::Skip,
        "stop" => Overflow::Stop,
        "truncate_end" => Overflow::TruncateEnd,
        "truncate_middle" => Overflow::TruncateMiddle,
        other => panic!("{other}"),
    });
    packer = match options["template"].as_str() {
        Some("tagged") => packer.template(Template::tagged()),
        Some("xml") => packer.template(Template::xml()),
        Some("markdown") => packer.template(Template::markdown()),
        _ => packer,
    };
    if let Some(count) = options["max_chunks"].as_u64() {
        packer = packer.max_chunks(usize::try_from(count).unwrap());
    }
    if let Some(tokens) = options["reserve_tokens"].as_u64() {
        packer = packer.reserve_tokens(usize::try_from(tokens).unwrap());
    }
    packer.order(Order::Rank)
}

fn service(case: &Value) -> RetrievalService {
    let page = number(&case["pages"]);
    let mut retrievers = list(&case["retrievers"]).iter().map(|chunks| retriever(chunks, page));
    let settings = LlmSettings::from_json(&case["settings"]).unwrap();
    let mut service = RetrievalService::new(retrievers.next().unwrap(), settings)
        .unwrap()
        .system_prompt(text(&case["system_prompt"]));
    for retriever in retrievers {
        service = service.retriever(retriever);
    }
    if !case["packer"].is_null() {
        service = service.packer(packer(&case["packer"]));
    }
    if case["reverses"] == true {
        service = service.reranker(|_: &str, chunks: Vec<Chunk>| {
            Ok::<_, BoxError>(chunks.into_iter().rev().collect())
        });
    }
    service
}

fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::OutOfScope => "out_of_scope",
        Reason::Empty => "empty",
        Reason::Cap => "cap",
        Reason::Duplicate => "duplicate",
        Reason::Budget => "budget",
        other => panic!("{other:?}"),
    }
}

fn stats(stats: &ServiceStats) -> Value {
    json!({
        "requests": stats.requests,
        "answered": stats.answered,
        "rejected": stats.rejected,
        "failed": stats.failed,
        "timed_out": stats.timed_out,
        "cancelled": stats.cancelled,
        "cut": stats.cut,
        "kept_chunks": stats.kept_chunks,
        "cut_chunks": stats.cut_chunks,
        "retrieved_tokens": stats.retrieved_tokens,
        "dropped_chunks": stats.dropped_chunks,
        "dropped_tokens": stats.dropped_tokens,
        "is_dropped_exact": stats.is_dropped_exact,
        "next_budgets": stats.next_budgets.iter().collect::<Vec<_>>(),
        "full_budgets": stats.full_budgets.iter().collect::<Vec<_>>(),
        "cut_rate": stats.cut_rate(),
    })
}

/// The same settings, prompt, query and chunks give the same budget, kept
/// chunks, messages and figures.
#[test]
fn requests_are_answered_as_in_python() {
    for case in list(&cases("service.json", "requests")) {
        let service = service(case);
        let answer = match service.retrieve(&text(&case["query"])) {
            Err(error) => json!({"error": error.to_string()}),
            Ok(result) => {
                let tokens = result.tokens;
                let message = |(role, text): (&str, &str)| match text.chars().count() {
                    count @ 401.. => json!([role, count]),
                    _ => json!([role, text]),
                };
                let messages = result.messages.iter();
                let dropped = result.packing.dropped.iter();
                json!({
                    "model": result.model,
                    "tokens": {
                        "system": tokens.system,
                        "query": tokens.query,
                        "retrieved": tokens.retrieved,
                        "budget": tokens.budget,
                        "overhead": tokens.overhead,
                        "remaining": tokens.remaining,
                        "input": tokens.input,
                        "output": tokens.output,
                        "context_window": tokens.context_window,
                        "is_exact": tokens.is_exact,
                    },
                    "messages": messages.map(|it| message((it.role(), &it.text()))).collect::<Vec<_>>(),
                    "kept": result.kept().map(|(_, kept)| kept.index).collect::<Vec<_>>(),
                    "dropped": dropped.map(|it| json!([it.index, reason(it.reason)])).collect::<Vec<_>>(),
                    "stats": stats(&service.stats()),
                })
            }
        };
        assert_eq!(case["answer"], answer, "{case}");
    }
}

/// The same variables and models give the same figures and counts.
#[test]
fn settings_are_those_of_python() {
    for case in list(&cases("service.json", "settings")) {
        let variable = |name: &str| case["variables"][name].as_str().map(str::to_owned);
        let limits = LlmSettings::from_variables("", variable).and_then(|it| it.limits()).ok();
        let answer = limits.map(|limits| {
            json!({
                "name": limits.name,
                "context_window": limits.context_window,
                "max_input_tokens": limits.max_input_tokens,
                "max_output_tokens": limits.max_output_tokens,
                "is_exact": limits.counter().is_exact(),
                "tokens": limits.counter().count("What is 緑茶? It's green tea."),
            })
        });
        assert_eq!(case["limits"], json!(answer), "{case}");
    }
}

/// The same sections are found in the same files.
#[test]
fn folders_are_searched_as_in_python() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/handbook");
    let retriever = FolderRetriever::with_name(folder, "handbook").unwrap();
    for case in list(&cases("service.json", "folder")) {
        let found = retriever.retrieve(case["query"].as_str().unwrap(), 5).unwrap();
        let rows = found.iter().map(|it| json!([it.id, it.source, it.title, it.score, it.text]));
        assert_eq!(case["found"], json!(rows.collect::<Vec<_>>()), "{case}");
    }
}
