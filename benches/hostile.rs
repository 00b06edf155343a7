//! Texts that are made to be slow, for `scripts/check_hostile.py`, which counts
//! the instructions of [`measured`]: `hostile OPERATION CHARS` does an operation
//! with each text at that length and at twice that, `hostile` prints the names
//! of the operations.

use std::env;
use std::hint::black_box;
use std::io::{self, Write};
use std::sync::atomic::AtomicBool;

#[cfg(feature = "claude")]
use budgeteer::Claude;
use budgeteer::{
    Bm25, Corpus, Dedupe, Encoding, Estimate, Exact, Keep, Lexical, OutputKind, OutputOptions,
    Overflow, Packer, RankBy, Stemming, Text, TokenCounter, Tokenizer, Units, batch_bm25_scores,
    batch_keyword_scores, batch_lexical_scores, fit_output, keywords, sentence_spans,
};

use strings::{Random, Strings, Wide};

mod strings;

/// The code points of a piece, where a text is made into many.
const PIECE: usize = 64;

/// A text of this many code points. Of another number it is another text, where
/// it is random: the tables of pretokens know nothing of it.
type Pattern = fn(usize) -> Vec<u32>;

const PATTERNS: [(&str, Pattern); 12] = [
    ("equal characters", |size| cycle("a", size)),
    ("whitespace", |size| cycle(" ", size)),
    ("random letters", |size| random(size, &[('a', 'z')])),
    ("random Han", |size| random(size, &[('\u{4e00}', '\u{9fff}')])),
    // Of all classes, so that they must be sorted, behind one letter.
    ("combining marks", |size| {
        let mut codes = random(size, &[('\u{300}', '\u{36f}'), ('\u{591}', '\u{5af}')]);
        codes[0] = u32::from('e');
        codes
    }),
    ("joiners and flags", |size| {
        let mut codes = cycle("\u{1f469}\u{200d}", size / 2);
        codes.extend(random(size - size / 2, &[('\u{1f1e6}', '\u{1f1ff}')]));
        codes
    }),
    ("nested brackets", |size| {
        let mut codes = cycle("[", size / 2);
        codes.extend(cycle("]", size - size / 2));
        codes
    }),
    ("words that miss", |size| cycle("x-x-x-x-x-x-x-x-x-x-x-x-x-x-x-y", size)),
    ("alternating case", |size| {
        let upper = |(at, code): (usize, u32)| if at % 2 == 0 { code } else { code - 32 };
        random(size, &[('a', 'z')]).into_iter().enumerate().map(upper).collect()
    }),
    ("line ends", |size| cycle("\r\n", size)),
    ("surrogates", |size| {
        let mut random = seeded(size);
        let mut code = || match random.below(4) {
            0 => 0xd800 + random.below(0x400),
            1 => 0xdc00 + random.below(0x400),
            2 => random.below(0x20),
            _ => 0xfff0 + random.below(0x10),
        };
        (0..size).map(|_| u32::try_from(code()).expect("it is small")).collect()
    }),
    ("log and diff", |size| {
        let mut random = seeded(size);
        let mut text = String::new();
        while text.len() < size {
            let (a, b) = (random.below(1_000), random.below(100_000));
            let line = match random.below(4) {
                0 => format!("@@ -{a},1 +{b},1 @@\n-old {a}\n+new {b}\n"),
                1 => format!("--- a/{a}.py\n+++ b/{a}.py\n@@ -1 +1 @@\n"),
                2 => format!("12:30:{} ERROR worker-{a} lost {b}\n", a % 60),
                _ => format!("12:30:{} INFO worker-{a} done in {b} ms\n", a % 60),
            };
            text.push_str(&line);
        }
        text.chars().take(size).map(u32::from).collect()
    }),
];

fn cycle(part: &str, size: usize) -> Vec<u32> {
    part.chars().cycle().take(size).map(u32::from).collect()
}

/// Another sequence for each size.
fn seeded(size: usize) -> Random {
    Random(u32::try_from(size).expect("texts are not that long"))
}

/// `size` code points of these ranges.
fn random(size: usize, ranges: &[(char, char)]) -> Vec<u32> {
    let mut random = seeded(size);
    let all: Vec<u32> =
        ranges.iter().flat_map(|&(first, last)| first..=last).map(u32::from).collect();
    (0..size).map(|_| all[random.below(all.len())]).collect()
}

/// A text in the forms that operations take.
struct Subject {
    text: Wide,
    string: String,
    /// The text in pieces.
    pieces: Strings,
    strings: Vec<String>,
    /// Words that the text nearly has.
    query: String,
}

impl Subject {
    fn new(codes: &[u32]) -> Self {
        let string = |codes: &[u32]| -> String {
            codes.iter().map(|&code| char::from_u32(code).unwrap_or('\u{fffd}')).collect()
        };
        let wide = |codes: &[u32]| Wide::new(codes.iter().copied());
        Self {
            text: wide(codes),
            string: string(codes),
            pieces: Strings(codes.chunks(PIECE).map(wide).collect()),
            strings: codes.chunks(PIECE).map(string).collect(),
            query: format!("green tea {}q", string(&codes[..codes.len().min(40)])),
        }
    }

    /// The pieces as an array of JSON.
    fn json(&self) -> String {
        serde_json::to_string(&self.strings).expect("strings are JSON")
    }

    /// The pieces as the lines of one hunk.
    fn diff(&self) -> String {
        let lines: Vec<_> = self
            .strings
            .iter()
            .map(|line| format!("+{}\n", line.replace(['\r', '\n'], " ")))
            .collect();
        format!("--- a/x\n+++ b/x\n@@ -0,0 +1,{} @@\n{}", lines.len(), lines.concat())
    }
}

/// About half the tokens of `text`, of which the first sixteenth is counted.
/// All of it would be remembered, a shorter text to a larger part than a longer.
fn half(text: &str, counter: &impl TokenCounter) -> usize {
    let start: String = text.chars().take(text.chars().count() / 16).collect();
    8 * counter.count(&start)
}

/// What is measured of an operation.
type Work = Box<dyn Fn()>;

/// The name of an operation, and what makes its work from a text: that is not
/// measured.
type Operation = (String, Box<dyn Fn(Subject) -> Work>);

fn operation(name: String, make: impl Fn(Subject) -> Work + 'static) -> Operation {
    (name, Box::new(make))
}

/// The counters that are in this program. None remembers a text.
fn exact_counters() -> Vec<(&'static str, Exact)> {
    let one = |name, tokenizer: Tokenizer| (name, Exact::new(tokenizer).without_cache());
    #[allow(unused_mut, reason = "there may be no others")]
    let mut all: Vec<_> =
        Encoding::ALL.iter().map(|&encoding| one(encoding.name(), encoding.into())).collect();
    #[cfg(feature = "claude")]
    all.extend(Claude::ALL.map(|claude| one(claude.name(), claude.into())));
    all
}

const ESTIMATES: [(&str, Estimate); 2] =
    [("chars_div4", Estimate::CharsDiv4), ("words", Estimate::Words)];

const KEEPS: [(&str, Keep); 3] = [("start", Keep::Start), ("end", Keep::End), ("both", Keep::Both)];

static NEVER: AtomicBool = AtomicBool::new(false);

fn counts() -> Vec<Operation> {
    let exact = exact_counters().into_iter().map(|(name, exact)| {
        operation(format!("count {name}"), move |subject| {
            let exact = exact.clone();
            Box::new(move || {
                black_box(exact.count_text(subject.text.text(), u64::MAX, &NEVER));
            })
        })
    });
    let estimates = ESTIMATES.into_iter().map(|(name, estimate)| {
        operation(format!("count {name}"), move |subject| {
            Box::new(move || {
                black_box(estimate.count_text(subject.text.text(), &mut Vec::new()));
            })
        })
    });
    exact.chain(estimates).collect()
}

fn cuts() -> Vec<Operation> {
    let marker = || Text::from(" [...]");
    let mut all = Vec::new();
    for (keep_name, keep) in KEEPS {
        for (name, exact) in exact_counters() {
            all.push(operation(format!("truncate {keep_name} {name}"), move |subject| {
                let exact = exact.clone();
                let limit = half(&subject.string, &exact) as u64;
                Box::new(move || {
                    black_box(exact.truncate(subject.text.text(), limit, keep, marker(), &NEVER));
                })
            }));
        }
        for (name, estimate) in ESTIMATES {
            all.push(operation(format!("truncate {keep_name} {name}"), move |subject| {
                let limit = half(&subject.string, &estimate) as u64;
                Box::new(move || {
                    black_box(estimate.truncate(subject.text.text(), limit, keep, marker()));
                })
            }));
        }
    }
    all
}

fn scores() -> Vec<Operation> {
    let mut all = Vec::new();
    for ranking in ["keyword", "bm25", "lexical"] {
        for many in [false, true] {
            let name =
                format!("score {ranking} {}", if many { "many chunks" } else { "one chunk" });
            all.push(operation(name, move |subject| {
                let Subject { text, pieces, query, .. } = subject;
                let batch = if many { pieces } else { Strings(vec![text]) };
                let mut lexical = Lexical::default();
                lexical.bm25.stemming = Stemming::of("english");
                Box::new(move || {
                    let query = Text::from(query.as_str());
                    black_box(match ranking {
                        "keyword" => batch_keyword_scores(query, &batch),
                        "bm25" => batch_bm25_scores(query, &batch, &Bm25::default()),
                        _ => batch_lexical_scores(query, &batch, &lexical),
                    });
                })
            }));
        }
    }
    all.push(operation("split sentences".to_owned(), |subject| {
        Box::new(move || {
            black_box(sentence_spans(subject.text.text()));
        })
    }));
    all.push(operation("find keywords".to_owned(), |subject| {
        Box::new(move || {
            black_box(keywords(subject.text.text()));
        })
    }));
    all
}

fn packs() -> Vec<Operation> {
    type Make = fn(usize) -> Packer;
    let cases: [(&str, bool, Make); 6] = [
        ("many chunks", true, Packer::new),
        ("by keyword", true, |limit| Packer::new(limit).ranking(RankBy::Keyword)),
        ("by estimate", true, |limit| Packer::new(limit).estimate(Estimate::CharsDiv4)),
        ("near-duplicates", true, |limit| Packer::new(limit).dedupe(Dedupe::Near)),
        ("sentences", false, |limit| Packer::new(limit).units(Units::Sentence)),
        ("one chunk, cut", false, |limit| Packer::new(limit).overflow(Overflow::TruncateMiddle)),
    ];
    let mut all: Vec<_> = cases
        .into_iter()
        .map(|(name, many, make)| {
            operation(format!("pack {name}"), move |subject| {
                let Subject { string, strings, query, .. } = subject;
                let packer = make(half(&string, &Exact::new(Encoding::O200k).without_cache()));
                let chunks = if many { strings } else { vec![string] };
                Box::new(move || {
                    black_box(packer.pack(&query, &chunks).expect("it fits"));
                })
            })
        })
        .collect();
    all.push(operation("pack a corpus".to_owned(), |subject| {
        let Subject { strings, query, .. } = subject;
        let packer = Packer::new(2_000);
        Box::new(move || {
            let corpus = Corpus::new(&strings);
            black_box(packer.pack_corpus(&query, &corpus).expect("it fits"));
        })
    }));
    all
}

fn outputs() -> Vec<Operation> {
    let kinds = [
        ("auto", OutputKind::Auto),
        ("text", OutputKind::Text),
        ("log", OutputKind::Log),
        ("diff", OutputKind::Diff),
        ("JSON", OutputKind::Json),
        ("table", OutputKind::Table),
    ];
    let mut all = Vec::new();
    for (name, kind) in kinds {
        for asked in [false, true] {
            let name = format!("fit {name}{}", if asked { ", with a query" } else { "" });
            all.push(operation(name, move |subject| {
                let text = match kind {
                    OutputKind::Json => subject.json(),
                    OutputKind::Table => {
                        let rows =
                            subject.strings.iter().map(|row| format!("{{\"a\":{}}}", json(row)));
                        format!("[{}]", rows.collect::<Vec<_>>().join(","))
                    }
                    OutputKind::Diff => subject.diff(),
                    _ => subject.string,
                };
                // An estimate remembers nothing. A draft that is like the last one would cost
                // less by an encoding, as long as the tables hold all its pretokens.
                let counter = Estimate::CharsDiv4;
                let limit = half(&text, &counter);
                let query = subject.query;
                Box::new(move || {
                    let query = asked.then_some(query.as_str());
                    let options = OutputOptions { kind, query, ..OutputOptions::default() };
                    black_box(fit_output(&text, limit, &counter, options)).ok();
                })
            }));
        }
    }
    all
}

fn json(text: &str) -> String {
    serde_json::to_string(text).expect("a string is JSON")
}

/// Does `work`. What is in here is counted.
#[inline(never)]
fn measured(work: &dyn Fn()) {
    work();
    black_box(()); // else this would be a jump, whose end callgrind does not see
}

fn main() {
    let operations = [counts(), cuts(), scores(), packs(), outputs()].into_iter().flatten();
    let arguments: Vec<_> = env::args().skip(1).filter(|one| !one.starts_with("--")).collect();
    let mut out = io::stdout();
    let [wanted, chars] = &arguments[..] else {
        for (name, _) in operations {
            writeln!(out, "{name}").expect("it can be written");
        }
        return;
    };
    let chars: usize = chars.parse().expect("the characters are a number");
    let (_, make) =
        { operations }.find(|(name, _)| name == wanted).expect("there is one of that name");
    for (_, pattern) in PATTERNS {
        make(Subject::new(&pattern(1_000)))(); // fills the tables that all share
    }
    for (name, pattern) in PATTERNS {
        for size in [chars, 2 * chars] {
            let work = make(Subject::new(&pattern(size)));
            measured(&*work);
            writeln!(out, "{name}").expect("it can be written");
        }
    }
}
