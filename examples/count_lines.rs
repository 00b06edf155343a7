//! Scratch.
use budgeteer::{Exact, TokenCounter, Tokenizer};
use std::io::{BufRead, Write};
use std::time::Instant;
fn main() {
    let path = std::env::args().nth(1).unwrap();
    let start = Instant::now();
    let t = match Tokenizer::open(&path) {
        Ok(t) => t,
        Err(e) => {
            eprintln!("{e}");
            std::process::exit(1)
        }
    };
    eprintln!("open {:?}", start.elapsed());
    let exact = Exact::new(t).without_cache();
    let out = std::io::stdout();
    let mut out = std::io::BufWriter::new(out.lock());
    for line in std::io::stdin().lock().lines() {
        let text: String = serde_json::from_str(&line.unwrap()).unwrap();
        writeln!(out, "{}", exact.count(&text)).unwrap();
    }
}
