//! Answers a question from the Markdown files of a folder: which chunks fit the model's window, and
//! the messages to send.
//!
//! `cargo run --example retrieval_service --features tracing -- examples/handbook "What is the remote work policy?"`
//!
//! The model is that of `BUDGETEER_LLM_MODEL` and the variables beside it. With the feature `tracing`
//! the spans and events of the request are on standard error.

use std::env;
use std::error::Error;
use std::io::{self, Write};

use budgeteer::service::{FolderRetriever, LlmSettings, RetrievalService};

fn main() -> Result<(), Box<dyn Error>> {
    #[cfg(feature = "tracing")]
    tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(false)
        .with_span_events(tracing_subscriber::fmt::format::FmtSpan::CLOSE)
        .init();

    let mut arguments = env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| "examples/handbook".into());
    let question = arguments.next().unwrap_or_else(|| "What is the remote work policy?".into());

    let settings = match env::var_os("BUDGETEER_LLM_MODEL") {
        Some(_) => LlmSettings::from_env()?,
        None => LlmSettings::new("gpt-4o").context_window(600).max_output_tokens(200),
    };
    let service = RetrievalService::new(FolderRetriever::new(folder)?, settings)?
        .system_prompt("Answer from the context. Say so where it does not answer.");
    let result = service.retrieve(&question)?;

    let mut out = io::stdout().lock();
    let tokens = result.tokens;
    writeln!(
        out,
        "{}: {} + {} of {} tokens; {} of {} chunks fit, {} tokens are free",
        result.model,
        tokens.input,
        tokens.output,
        tokens.context_window,
        result.packing.kept.len(),
        result.chunks.len(),
        tokens.remaining,
    )?;
    for (chunk, kept) in result.kept() {
        let id = chunk.id.as_deref().unwrap_or_default();
        writeln!(out, "- {id} ({}): {} tokens", chunk.title, kept.token_count)?;
    }
    for message in &result.messages {
        writeln!(out, "\n[{}]\n{}", message.role(), message.text())?;
    }
    if let Some(budget) = service.stats().budget_for(1.0) {
        writeln!(out, "\nA budget of {budget} tokens would keep every chunk.")?;
    }
    Ok(())
}
