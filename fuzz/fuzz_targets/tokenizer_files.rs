//! Any bytes are a tokenizer or an error that says why not; a tokenizer counts
//! every text the same in all ways, and cuts it within the limit.
//!
//! An input that begins with the byte 0xFF has the fields of a `tokenizer.json`
//! behind it, which `made` writes; any other is the file itself.
#![no_main]

use budgeteer::{ErrorKind, Exact, Keep, TokenCounter as _, Tokenizer};
use budgeteer_fuzz::cuts::assert_cut;
use budgeteer_fuzz::words::Words;
use budgeteer_fuzz::{NEVER, assert_counted};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json};

/// The most bytes of a token that is made: they could double with each.
const LONGEST: usize = 128;

const TEXTS: [&str; 5] = [
    "The teapot's 1234 tables.\n\n  stand  there",
    "\u{2581}the\u{2581} e\u{301}é İ 茶 🫖\u{200d} \u{fffd}\r\n\t",
    "aaaaaaaaaaaaaaaa bbbb abab",
    "don't WE'LL",
    "",
];

fuzz_target!(|data: &[u8]| {
    let _ = run(data);
});

fn run(data: &[u8]) -> Result<()> {
    let (content, text) = match data.split_first() {
        Some((0xFF, fields)) => {
            let mut input = Unstructured::new(fields);
            let Words(text) = input.arbitrary()?;
            (made(&mut input)?.to_string().into_bytes(), text)
        }
        _ => (
            data.to_vec(),
            String::from_utf8_lossy(&data[data.len().saturating_sub(64)..]).into_owned(),
        ),
    };
    let tokenizer = match Tokenizer::parse("fuzzed", &content) {
        Ok(tokenizer) => tokenizer,
        Err(error) => {
            assert_eq!(ErrorKind::Tokenizer, error.kind());
            assert!(error.to_string().len() < 600, "a message is short");
            return Ok(());
        }
    };
    let exact = Exact::new(tokenizer);
    for text in TEXTS.into_iter().chain([&*text]) {
        let count = exact.without_cache().count(text);
        assert_counted(&exact, text, count);
        for keep in [Keep::Start, Keep::End, Keep::Both] {
            let most = count / 2;
            let cut = exact.truncate(text.into(), most as u64, keep, "..".into(), &NEVER);
            let Some(cut) = cut else { continue };
            let cut = String::from_utf8(cut).expect("it is UTF-8");
            assert!(exact.count(&cut) <= most, "{cut:?} of {text:?} to {most}");
            assert_cut(text, &cut, keep, "..");
        }
    }
    Ok(())
}

/// Returns a `tokenizer.json`, mostly of what is known.
fn made(input: &mut Unstructured<'_>) -> Result<Value> {
    let mut vocab = Map::new();
    let is_bytes: bool = input.arbitrary()?;
    if input.ratio(7, 8)? {
        for byte in 0..=255_u8 {
            let name = if is_bytes { shown(byte) } else { format!("<0x{byte:02X}>") };
            vocab.insert(name, vocab.len().into());
        }
    }
    for letter in "abehot \u{2581}\u{120}é茶".chars() {
        let rank = vocab.len();
        vocab.entry(letter.to_string()).or_insert(rank.into());
    }
    let mut merges = Vec::new();
    for _ in 0..input.int_in_range(0..=24_u8)? {
        let names: Vec<String> = vocab.keys().cloned().collect();
        let mut name = || -> Result<String> {
            // The last names are the merged ones and the letters.
            let back = usize::from(input.arbitrary::<u8>()?) % names.len().max(1);
            Ok(names.get(names.len().saturating_sub(back + 1)).cloned().unwrap_or_default())
        };
        let (left, right) = (name()?, name()?);
        let rank = vocab.len();
        let is_short = left.len() + right.len() <= LONGEST;
        if is_short && input.ratio(15, 16)? {
            vocab.entry(format!("{left}{right}")).or_insert(rank.into());
        }
        merges.push(json!([left, right]));
    }
    let one = |input: &mut Unstructured<'_>, known: &[Value]| -> Result<Value> {
        let place = usize::from(input.arbitrary::<u8>()?) % (known.len() + 1);
        Ok(known.get(place).cloned().unwrap_or_default())
    };
    let normalizers = [
        json!({"type": "NFC"}),
        json!({"type": "Replace", "pattern": {"String": " "}, "content": "\u{2581}"}),
        json!({"type": "Prepend", "prepend": "\u{2581}"}),
        json!({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u{2581}"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "\u{2581}"}]}),
    ];
    let pattern = *input.choose(&[
        r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        r"\p{N}{1,3}",
        r"\s+",
        r"(a|b)*c?",
        r"(?i:'s)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}",
        "(",
        "",
        "(?=a)",
    ])?;
    let behavior = *input.choose(&["Isolated", "Removed", "MergedWithPrevious", "Contiguous"])?;
    let invert: bool = input.arbitrary()?;
    let split = json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior,
        "invert": invert});
    let level = json!({"type": "ByteLevel", "add_prefix_space": input.arbitrary::<bool>()?,
        "trim_offsets": true, "use_regex": input.arbitrary::<bool>()?});
    let splitters = [
        level.clone(),
        split.clone(),
        json!({"type": "Digits", "individual_digits": invert}),
        json!({"type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": "first",
            "split": invert}),
        json!({"type": "Sequence", "pretokenizers": [split, level]}),
    ];
    Ok(json!({
        "version": "1.0",
        "added_tokens": [],
        "normalizer": one(input, &normalizers)?,
        "pre_tokenizer": one(input, &splitters)?,
        "model": {
            "type": "BPE",
            "dropout": null,
            "unk_token": input.arbitrary::<bool>()?.then_some("<unk>"),
            "fuse_unk": input.arbitrary::<bool>()?,
            "byte_fallback": !is_bytes,
            "ignore_merges": input.arbitrary::<bool>()?,
            "vocab": vocab,
            "merges": merges,
        },
    }))
}

/// Returns how byte-level BPE shows a byte.
fn shown(byte: u8) -> String {
    let is_shown = |byte: &u8| matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..);
    if is_shown(&byte) {
        return char::from(byte).to_string();
    }
    let place = (0..byte).filter(|byte| !is_shown(byte)).count();
    char::from_u32(256 + u32::try_from(place).expect("it is small")).expect("it is one").to_string()
}
