//! Files that are no tokenizers, or hostile ones: each is refused or counts, at
//! once and in bounded memory.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use budgeteer::{ErrorKind, Exact, TokenCounter as _, Tokenizer};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// The most time for a file of a few kilobytes, without optimizations.
const MOST_TIME: Duration = Duration::from_secs(1);

const TEXTS: [&str; 5] = [
    "",
    "The teapot's  table.",
    "\u{4e2d}\u{6587} 1234\n\n\t!?",
    "e\u{301}\u{2581}\0",
    "  aaaaaaaa",
];

fn files() -> Vec<Vec<u8>> {
    let folder: PathBuf =
        [env!("CARGO_MANIFEST_DIR"), "../../tests/cases/tokenizers"].iter().collect();
    let entries = fs::read_dir(folder).expect("it is there");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("it is read").path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("it is read")).collect()
}

/// A change of a file.
#[derive(Clone, Debug)]
enum Change {
    Cut(Index),
    Byte(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    /// A part, set in somewhere else.
    Copy(Index, Index, usize),
    /// The end of another file.
    Splice(Index, Index, Index),
}

fn change() -> impl Strategy<Value = Change> {
    let words = [
        *b"\"\"",
        *b"[]",
        *b"{}",
        *b"[{",
        *b"}]",
        *b"\\u",
        *b"-1",
        *b"99",
        *b"1e",
        *b"\xFF\xFF",
        *b"\xF0\x9F",
        *b"\x7F\x00",
        *b", ",
        *b": ",
        *b"(?",
        *b"+)",
        *b"*+",
    ];
    let place = any::<Index>;
    prop_oneof![
        1 => place().prop_map(Change::Cut),
        4 => (place(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        2 => (place(), vec(any::<u8>(), 1..9)).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        3 => (place(), select(words.to_vec())).prop_map(|(at, word)| Change::Insert(at, word.to_vec())),
        3 => (place(), 1_usize..200).prop_map(|(at, length)| Change::Remove(at, length)),
        3 => (place(), place(), 1_usize..200).prop_map(|(from, to, length)| Change::Copy(from, to, length)),
        1 => (place(), place(), place()).prop_map(|(other, from, at)| Change::Splice(other, from, at)),
    ]
}

fn apply(change: &Change, file: &mut Vec<u8>, all: &[Vec<u8>]) {
    if file.is_empty() {
        return;
    }
    let size = file.len();
    match change {
        Change::Cut(at) => file.truncate(at.index(size)),
        Change::Byte(at, byte) => file[at.index(size)] = *byte,
        Change::Insert(at, bytes) => {
            let at = at.index(size);
            drop(file.splice(at..at, bytes.iter().copied()));
        }
        Change::Remove(at, length) => {
            let at = at.index(size);
            drop(file.drain(at..(at + length).min(size)));
        }
        Change::Copy(from, to, length) => {
            let (from, to) = (from.index(size), to.index(size));
            let part = file[from..(from + length).min(size)].to_vec();
            drop(file.splice(to..to, part));
        }
        Change::Splice(other, from, at) => {
            let other = &all[other.index(all.len())];
            file.truncate(at.index(size));
            file.extend_from_slice(&other[from.index(other.len())..]);
        }
    }
}

/// Reads a file and counts with it. Returns whether it is a tokenizer.
fn try_out(content: &[u8]) -> bool {
    let start = Instant::now();
    let read = Tokenizer::parse("some file", content);
    let is_one = read.is_ok();
    match read {
        Err(error) => {
            assert_eq!(ErrorKind::Tokenizer, error.kind());
            let message = error.to_string();
            assert!(message.starts_with("the file ") || message.starts_with("the tokenizer "));
        }
        Ok(tokenizer) => {
            let exact = Exact::new(tokenizer);
            for text in TEXTS {
                let count = exact.count(text);
                // A space may be put in front, and bytes are tokens at most.
                assert!(count <= 3 * text.len() + 1, "{count} of {text:?}");
                assert_eq!(text.is_empty(), count == 0, "{text:?}");
            }
        }
    }
    assert!(start.elapsed() < MOST_TIME, "it took {:?}", start.elapsed());
    is_one
}

/// Returns the most bytes of memory that the process has had, where the system
/// says it.
fn peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// A file with some changes is refused or counts.
    #[test]
    fn changed_files(which in any::<Index>(), changes in vec(change(), 1..6)) {
        let all = files();
        let mut file = all[which.index(all.len())].clone();
        for change in &changes {
            apply(change, &mut file, &all);
        }
        try_out(&file);
        prop_assert!(peak().is_none_or(|bytes| bytes < 256 << 20));
    }

    /// Bytes are refused.
    #[test]
    fn any_bytes(content in vec(any::<u8>(), 0..600)) {
        try_out(&content);
    }
}

/// Not all that is read here is refused.
#[test]
fn files_as_they_are() {
    let read = files().iter().filter(|file| try_out(file)).count();
    assert!((15..files().len()).contains(&read), "{read}");
}

/// A tokenizer that splits by that pattern.
fn with_pattern(pattern: &str) -> String {
    let folder: PathBuf =
        [env!("CARGO_MANIFEST_DIR"), "../../tests/cases/tokenizers"].iter().collect();
    let file = fs::read_to_string(folder.join("pattern.json")).expect("it is there");
    let known = serde_json::json!(r"[\p{L}\p{N}_]+|[^\p{L}\p{N}_\s]+|\s+").to_string();
    assert!(file.contains(&known));
    file.replace(&known, &serde_json::json!(pattern).to_string())
}

/// A pattern that never ends is given up: no text takes long, or counts less
/// than it has.
#[test]
fn patterns_that_take_long() {
    for pattern in [
        r"(a+)+\1b",
        r"(?=(a+)+b)a",
        r"(a|aa)+(?!a)b",
        r"((a*)*)*\2$",
        r"(?:(?=a)a*)*b",
        r"\p{L}{1000}{1000}",
        r"((((((((((a{9}){9}){9}){9}){9}){9}){9}){9}){9}){9})",
        r"(?<!a)(?<=b)\w",
        r"(",
        "",
        r"\b",
        r"$",
        r"a*",
    ] {
        let start = Instant::now();
        if let Ok(tokenizer) = Tokenizer::parse("pattern", with_pattern(pattern).as_bytes()) {
            let exact = Exact::new(tokenizer);
            for text in ["a".repeat(40), "a".repeat(2_000), "\u{e9}a".repeat(50)] {
                assert!(exact.count(&text) > 0, "{pattern}");
            }
        }
        assert!(start.elapsed() < 10 * MOST_TIME, "{pattern} took {:?}", start.elapsed());
    }
}

/// Returns the character of a byte-level vocabulary that stands for a byte.
fn level(byte: u8) -> char {
    match byte {
        0x21..=0x7E | 0xA1..=0xAC | 0xAE.. => char::from(byte),
        0..=0x20 => char::from_u32(0x100 + u32::from(byte)).expect("it is a letter"),
        0x7F..=0xA0 => char::from_u32(0x121 + u32::from(byte) - 0x7F).expect("it is a letter"),
        0xAD => '\u{143}',
    }
}

/// Merges that are found by hashes alike are refused: they would take long.
#[test]
fn merges_that_share_their_places() {
    let mix = |left: u64, right: u64| {
        let mixed = (left << 32 | right).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93)
    };
    let mut tokens: Vec<String> = (0..=255).map(|byte| level(byte).to_string()).collect();
    let mut merges = Vec::new();
    let mut merge = |tokens: &mut Vec<String>, left: usize, right: usize| {
        merges.push([tokens[left].clone(), tokens[right].clone()]);
        tokens.push([&*tokens[left], &*tokens[right]].concat());
    };
    // No token is a right byte in front of a left one, so that any two may merge.
    for (left, right) in (0x3F..0x7F).flat_map(|left| (0xAE..0xEA).map(move |right| (left, right)))
    {
        merge(&mut tokens, left, right);
    }
    let pairs = tokens.len();
    for left in 256..pairs {
        for right in 256..pairs {
            if mix(left as u64, right as u64) >> 52 == 0 {
                merge(&mut tokens, left, right);
            }
        }
    }
    assert!(tokens.len() > pairs + 3_000);
    let vocab: serde_json::Map<String, serde_json::Value> =
        tokens.into_iter().zip(0..).map(|(token, nth)| (token, serde_json::json!(nth))).collect();
    let file = serde_json::json!({
        "model": {"type": "BPE", "vocab": vocab, "merges": merges},
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
    });
    let error = Tokenizer::parse("crowded", file.to_string().as_bytes()).expect_err("it is slow");
    assert_eq!("the file is damaged: its tokens take too long to tell apart", error.to_string());
}

/// Files that say little and mean much are refused.
#[test]
fn files_that_would_grow() {
    // Each token is twice the one before.
    let mut bytes: Vec<String> = Vec::new();
    bytes.extend((0..=255).map(|byte| level(byte).to_string()));
    let doubled: Vec<String> = (0..14).map(|nth| "a".repeat(1 << nth)).collect();
    let vocab: serde_json::Map<String, serde_json::Value> = (0..)
        .zip(bytes.iter().chain(&doubled[1..]))
        .map(|(number, token)| (token.clone(), serde_json::json!(number)))
        .collect();
    let merges: Vec<_> = doubled[..13].iter().map(|token| [token, token]).collect();
    let file = serde_json::json!({
        "model": {"type": "BPE", "vocab": vocab, "merges": merges},
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
    });
    let error =
        Tokenizer::parse("doubled", file.to_string().as_bytes()).expect_err("it is too long");
    assert_eq!("the file is damaged: its tokens are too long", error.to_string());

    let many = r#"{"config":{"pattern":"a","default_vocab_size":18446744073709551615,
        "default_num_special_tokens":0},"vocab":[{"rank":0,"token_bytes":"YQ=="}]}"#;
    assert!(!try_out(many.as_bytes()));
    let fewer = many.replace(r#"tokens":0"#, r#"tokens":18446744073709551615"#);
    assert!(!try_out(fewer.as_bytes()));
    // A length that reaches beyond the file.
    assert!(!try_out(b"\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"));
}

/// A model of `SentencePiece` that has one letter, and runs of line ends up to a
/// length as user-defined pieces.
fn with_runs(longest: usize) -> Vec<u8> {
    let field = |number: u8, content: &[u8]| {
        let length = u8::try_from(content.len()).expect("it is short");
        assert!(length < 0x80, "it would need two bytes");
        [&[number << 3 | 2, length], content].concat()
    };
    let piece =
        |text: &str, kind: u8| field(1, &[&field(1, text.as_bytes())[..], &[0x18, kind]].concat());
    let runs = (2..=longest).flat_map(|length| piece(&"\n".repeat(length), 4));
    let bpe_with_byte_fallback = field(2, &[0x18, 2, 0x98, 2, 1]);
    let keeps_spaces = field(3, &[0x18, 0, 0x20, 0]);
    piece("a", 1)
        .into_iter()
        .chain(runs)
        .chain(bpe_with_byte_fallback)
        .chain(keeps_spaces)
        .collect()
}

/// Pieces that are runs are more than the pieces that merge: there is room for
/// them.
#[test]
fn more_runs_than_pieces() {
    for longest in [2, 3, 32, 100] {
        let tokenizer = Tokenizer::parse("runs", &with_runs(longest)).expect("it is one");
        let text = "\n".repeat(3 * longest + 1);
        assert_eq!(4, Exact::new(tokenizer).count(&text), "{longest}");
    }
}
