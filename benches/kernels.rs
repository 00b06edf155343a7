//! The kernels one by one, for `scripts/check_kernels.py`, which counts the
//! instructions of [`counted`]: `kernels NAME` runs one of them, `kernels` prints
//! their names.
//!
//! The texts of all rounds are made before the first.

use std::collections::BTreeMap;
use std::env;
use std::hint::black_box;
use std::io::{self, Write};
use std::rc::Rc;

use budgeteer::{
    Bm25, Corpus, Dedupe, Encoding, Exact, Lexical, OutputOptions, Overflow, Packer, RankBy,
    Stemming, TokenCounter, Units, Vectors, batch_bm25_scores, batch_keyword_scores,
    batch_lexical_scores, cosine_scores, fit_output,
};
use serde_json::Value;

use strings::{Random, Strings, Wide};

mod strings;

const TEXTS: &str = include_str!("kernels_texts.json");

/// The chunks of a round, and the characters of each.
const CHUNKS: usize = 100;
const CHARS: usize = 800;

/// Two rounds to fill caches, and two that are counted.
const ROUNDS: usize = 4;

/// The lines, rows or files of an output, and the words of each.
const LINES: usize = 1_000;
const WORDS: usize = 8;

const DIMENSIONS: usize = 256;

/// A question in a language, and sentences to make chunks of.
struct Language {
    query: String,
    sentences: Vec<String>,
}

impl Language {
    fn all() -> BTreeMap<String, Self> {
        let texts: BTreeMap<String, Value> = serde_json::from_str(TEXTS).expect("it is JSON");
        let text = |value: &Value| value.as_str().expect("a string").to_owned();
        let of = |value: &Value| Self {
            query: text(&value["query"]),
            sentences: value["sentences"].as_array().expect("a list").iter().map(text).collect(),
        };
        texts.iter().map(|(name, value)| (name.clone(), of(value))).collect()
    }

    /// `CHUNKS` chunks, each of sentences in an order of its own. Another seed
    /// makes others.
    fn chunks(&self, seed: usize) -> Vec<String> {
        let mut random = Random(u32::try_from(seed).expect("it is small"));
        let mut chunk = || {
            let mut text = String::new();
            while text.chars().count() < CHARS {
                text.push_str(&self.sentences[random.below(self.sentences.len())]);
            }
            text.chars().take(CHARS).collect()
        };
        (0..CHUNKS).map(|_| chunk()).collect()
    }

    /// So many short chunks of words, of which some are frequent and some rare.
    fn short_chunks(&self, count: usize) -> Vec<String> {
        let all = self.sentences.concat();
        let words: Vec<_> = all.split_whitespace().collect();
        let mut random = Random(1);
        let mut word = || {
            let most = 1 + random.below(words.len());
            words[random.below(most)]
        };
        let chunks = (0..count).map(|at| (0..8 + at % 32).map(|_| word()).collect::<Vec<_>>());
        chunks.map(|words| words.join(" ")).collect()
    }

    /// A query of so many words of the sentences.
    fn query_of(&self, words: usize) -> String {
        let all = self.sentences.concat();
        all.split_whitespace().cycle().take(words).collect::<Vec<_>>().join(" ")
    }
}

/// Returns a log with an error in each fifty lines, of so many words each.
fn log_of(words: &str) -> String {
    let line = |(at, said): (usize, String)| {
        let level = if at % 50 == 7 { "ERROR" } else { "INFO" };
        format!("2026-01-02 12:{:02}:{:02} {level} {said} {}\n", at / 60 % 60, at % 60, at * 7_919)
    };
    lines_of(words).enumerate().map(line).collect()
}

/// Returns an array of objects.
fn rows_of(words: &str) -> String {
    let row = |(at, said): (usize, String)| {
        serde_json::json!({"id": at, "score": at * 7_919 % 1_000, "body": said}).to_string()
    };
    format!("[{}]", lines_of(words).enumerate().map(row).collect::<Vec<_>>().join(","))
}

/// Returns a diff of files with a hunk each.
fn diff_of(words: &str) -> String {
    let file = |(at, said): (usize, String)| {
        format!("--- a/{at}.py\n+++ b/{at}.py\n@@ -1,2 +1,2 @@\n {said}\n-{said}\n+{said}s\n")
    };
    lines_of(words).enumerate().map(file).collect()
}

fn lines_of(words: &str) -> impl Iterator<Item = String> {
    let words: Vec<_> = words.split(' ').collect();
    words.chunks(WORDS).map(|words| words.join(" ")).collect::<Vec<_>>().into_iter()
}

fn strings_of(texts: &[String]) -> Strings {
    Strings(texts.iter().map(|text| Wide::new(text.chars().map(u32::from))).collect())
}

/// Makes the text of an output.
type Text = fn(&Language) -> String;

/// What a kernel does in the round of this number.
type Round = Box<dyn FnMut(usize)>;

/// The kernels by name: each call makes the texts, and what a round does.
type Kernels = BTreeMap<String, Box<dyn Fn() -> Round>>;

fn add<R: FnMut(usize) + 'static>(
    kernels: &mut Kernels,
    name: String,
    make: impl Fn() -> R + 'static,
) {
    let known = kernels.insert(name, Box::new(move || Box::new(make())));
    assert!(known.is_none(), "each kernel has a name of its own");
}

fn add_counts(kernels: &mut Kernels, languages: &BTreeMap<String, Rc<Language>>) {
    for (name, language) in languages {
        for encoding in [Encoding::Cl100k, Encoding::O200k] {
            let language = language.clone();
            add(kernels, format!("count {} {name}", encoding.name()), move || {
                let texts = language.chunks(0);
                let counter = Exact::new(encoding).without_cache();
                move |_| {
                    black_box(texts.iter().map(|text| counter.count(text)).sum::<usize>());
                }
            });
        }
    }
}

fn add_scores(kernels: &mut Kernels, languages: &BTreeMap<String, Rc<Language>>) {
    let mut queries = Vec::new();
    for (name, language) in languages {
        queries.push((name.clone(), language.query.clone(), language));
        if name == "english" || name == "russian" {
            queries.extend([3, 32, 100].map(|words| {
                (format!("{name}, {words} words"), language.query_of(words), language)
            }));
        }
    }
    for (name, query, language) in queries {
        for ranking in ["keyword", "bm25", "lexical"] {
            let (query, language) = (query.clone(), language.clone());
            add(kernels, format!("score {ranking} {name}"), move || {
                let (query, texts) = (query.clone(), strings_of(&language.chunks(0)));
                let mut lexical = Lexical::default();
                lexical.bm25.stemming = Stemming::of("english");
                move |_| {
                    let query = query.as_str().into();
                    black_box(match ranking {
                        "keyword" => batch_keyword_scores(query, &texts),
                        "bm25" => batch_bm25_scores(query, &texts, &Bm25::default()),
                        _ => batch_lexical_scores(query, &texts, &lexical),
                    });
                }
            });
        }
    }
}

fn add_packs(kernels: &mut Kernels, language: &Rc<Language>) {
    const LIMIT: usize = 1_600;
    let lexical = || Packer::new(LIMIT).counter(Encoding::O200k);
    let keyword = || lexical().ranking(RankBy::Keyword);
    let packers = [
        ("estimate", Packer::new(LIMIT).ranking(RankBy::Keyword)),
        ("keyword", keyword()),
        ("lexical", lexical()),
        ("near", keyword().dedupe(Dedupe::Near)),
        ("sentences", keyword().units(Units::Sentence)),
        ("truncate", keyword().overflow(Overflow::TruncateEnd)),
    ];
    for (name, packer) in packers {
        let packer = Rc::new(packer);
        for new in [false, true] {
            let (packer, language) = (packer.clone(), language.clone());
            let name = format!("pack {name}{}", if new { ", new texts" } else { "" });
            add(kernels, name, move || {
                let texts: Vec<_> =
                    (0..ROUNDS).map(|round| language.chunks(round * usize::from(new))).collect();
                let (packer, query) = (packer.clone(), language.query.clone());
                move |round| {
                    black_box(packer.pack(&query, &texts[round]).expect("it fits"));
                }
            });
        }
    }
}

fn add_others(kernels: &mut Kernels, languages: &BTreeMap<String, Rc<Language>>) {
    let language = languages["english"].clone();
    add(kernels, "index a corpus".to_owned(), move || {
        let texts: Vec<_> = (0..10).flat_map(|seed| language.chunks(seed)).collect();
        move |_| {
            black_box(Corpus::new(&texts));
        }
    });
    let language = languages["english"].clone();
    add(kernels, "pack a corpus".to_owned(), move || {
        let corpus = Corpus::new(language.short_chunks(20_000));
        let query = language.query_of(24);
        let packers = [300, 1_000, 3_000].map(Packer::new);
        move |_| {
            for packer in &packers {
                black_box(packer.pack_corpus(&query, &corpus).expect("it fits"));
            }
        }
    });
    let outputs: [(_, Text); 6] = [
        ("english", |language| language.chunks(0).concat()),
        ("english, a log", |language| log_of(&language.query_of(LINES * WORDS))),
        ("english, a table", |language| rows_of(&language.query_of(LINES * WORDS))),
        ("english, a diff", |language| diff_of(&language.query_of(LINES * WORDS))),
        ("code", |language| language.chunks(0).concat()),
        ("json", |language| language.chunks(0).concat()),
    ];
    for (name, text) in outputs {
        let language = languages[name.split(", ").next().unwrap_or(name)].clone();
        add(kernels, format!("fit an output of {name}"), move || {
            let text = text(&language);
            let counter = Exact::new(Encoding::O200k);
            move |_| {
                let fitted = fit_output(&text, 2_000, &counter, OutputOptions::default());
                black_box(fitted.expect("it fits"));
            }
        });
    }
    add(kernels, "cosine scores".to_owned(), || {
        let mut random = Random(0);
        let mut number = || f32::from(u16::try_from(random.below(2_001)).unwrap_or(0)) - 1_000.0;
        let query: Vec<_> = (0..DIMENSIONS).map(|_| number()).collect();
        let chunks: Vec<_> = (0..CHUNKS * DIMENSIONS).map(|_| number()).collect();
        move |_| {
            let vectors = Vectors::new(&query, &chunks).expect("they have one size");
            black_box(cosine_scores(vectors).expect("they are finite"));
        }
    });
}

fn main() {
    let languages = Language::all();
    let languages = languages.into_iter().map(|(name, one)| (name, Rc::new(one))).collect();
    let mut kernels = Kernels::new();
    add_counts(&mut kernels, &languages);
    add_scores(&mut kernels, &languages);
    add_packs(&mut kernels, &languages["english"]);
    add_others(&mut kernels, &languages);
    let arguments: Vec<_> = env::args().skip(1).filter(|one| !one.starts_with("--")).collect();
    let [name] = &arguments[..] else {
        for name in kernels.keys() {
            writeln!(io::stdout(), "{name}").expect("it can be written");
        }
        return;
    };
    let mut round = kernels[name]();
    for number in 0..ROUNDS / 2 {
        round(number);
    }
    for number in ROUNDS / 2..ROUNDS {
        counted(&mut round, number);
    }
}

/// Has its name in the program: what is done outside is not counted.
#[inline(never)]
fn counted(round: &mut Round, number: usize) {
    round(number);
}
