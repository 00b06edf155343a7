//! Packs the Markdown files of a folder for a question.
//!
//! `cargo run --example pack -- examples/handbook "What is the remote work policy?" 120`

use std::error::Error;
use std::io::Write;
use std::{env, fs, io};

use budgeteer::{Chunk, Packer, Template};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| "examples/handbook".into());
    let question = arguments.next().unwrap_or_else(|| "What is the remote work policy?".into());
    let max_tokens = arguments.next().map_or(Ok(120), |number| number.parse())?;

    let mut paths: Vec<_> =
        fs::read_dir(&folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    paths.sort();
    let mut chunks = Vec::new();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|end| end == "md")) {
        for section in fs::read_to_string(path)?.split("\n## ") {
            let title = section.lines().next().unwrap_or_default().trim_start_matches('#').trim();
            chunks.push(Chunk::new(section).title(title).id(title));
        }
    }

    let packing = Packer::new(max_tokens).template(Template::tagged()).pack(&question, &chunks)?;
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{} of {} tokens: {} of {} chunks\n\n{}",
        packing.total_tokens,
        packing.budget_tokens,
        packing.kept.len(),
        chunks.len(),
        packing.text
    )?;
    Ok(())
}
