//! What the scripts about vocabularies do with tokenizers.
//!
//! ```sh
//! cargo run --release --example tokenizer_tool --features vocabularies -- pack FILE OUT
//! cargo run --release --example tokenizer_tool --features vocabularies -- count NAME
//! ```
//!
//! `pack` writes the vocabulary of a file in the form that `rust/vocab` holds.
//! `count` counts with an encoding, or with a file. It reads lines, each a JSON
//! array of texts, and answers each with a JSON array: a number for each text, or
//! what differs where not all ways to count it agree.

use std::error::Error;
use std::io::{self, BufRead as _, Write as _};
use std::{env, fs};

use budgeteer::{Encoding, Exact, TokenCounter as _, Tokenizer};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match *arguments.as_slice() {
        ["pack", file, out] => {
            Ok(fs::write(out, Tokenizer::open(file)?.vocabulary().expect("it merges").pack())?)
        }
        ["count", name] => count(open(name)?),
        _ => Err("the arguments are: pack FILE OUT, or: count NAME".into()),
    }
}

/// Returns the encoding of that name, or else the tokenizer in that file.
fn open(name: &str) -> Result<Tokenizer, budgeteer::Error> {
    match Encoding::ALL.iter().find(|encoding| encoding.name() == name) {
        Some(&encoding) => Ok(encoding.into()),
        None => Tokenizer::open(name),
    }
}

fn count(tokenizer: Tokenizer) -> Result<(), Box<dyn Error>> {
    let kept = Exact::new(tokenizer);
    let fresh = kept.clone().without_cache();
    for line in io::stdin().lock().lines() {
        let texts: Vec<String> = serde_json::from_str(&line?)?;
        let counts: Value = texts.iter().map(|text| count_each_way(&kept, &fresh, text)).collect();
        let mut out = io::stdout().lock();
        writeln!(out, "{counts}")?;
        out.flush()?;
    }
    Ok(())
}

/// Returns the count of a text, or the counts that differ.
fn count_each_way(kept: &Exact, fresh: &Exact, text: &str) -> Value {
    let count = fresh.count(text);
    let cached = kept.count(text);
    let again = kept.count(text);
    let limit = fresh.count_till_limit(text, count);
    let below = count.checked_sub(1).and_then(|below| fresh.count_till_limit(text, below));
    if cached == count && again == count && limit == Some(count) && below.is_none() {
        return json!(count);
    }
    json!(format!(
        "{count} cached {cached} and {again}, within a limit {limit:?}, beyond one {below:?}"
    ))
}
