//! Exact counts equal those of two other implementations, `tiktoken-rs` and
//! `bpe-openai`.
//!
//! As far as is known, both count as tiktoken does for every `&str`: their
//! patterns are worded differently, but split alike. `tiktoken-rs` panics, like
//! tiktoken, where its regular expression backtracks too far, which takes more
//! than half a million spaces. `bpe-openai` never does.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use budgeteer::{Encoding, Exact, Text, TokenCounter};
use proptest::prelude::*;
use tiktoken_rs::CoreBPE;

const ENCODINGS: [Encoding; 2] = [Encoding::Cl100k, Encoding::O200k];

fn tiktoken(encoding: Encoding) -> &'static CoreBPE {
    match encoding {
        Encoding::Cl100k => tiktoken_rs::cl100k_base_singleton(),
        _ => tiktoken_rs::o200k_base_singleton(),
    }
}

fn bpe(encoding: Encoding) -> &'static bpe_openai::Tokenizer {
    match encoding {
        Encoding::Cl100k => bpe_openai::cl100k_base(),
        _ => bpe_openai::o200k_base(),
    }
}

/// Every way to count a text gives the count of both others.
fn assert_counts(text: &str) {
    for encoding in ENCODINGS {
        let expected = tiktoken(encoding).encode_ordinary(text).len();
        assert_eq!(expected, bpe(encoding).count(text), "the others differ at {text:?}");
        assert_counted(encoding, text, expected);
    }
}

fn assert_counted(encoding: Encoding, text: &str, expected: usize) {
    let kept = Exact::new(encoding);
    let fresh = kept.without_cache();
    assert_eq!(expected, fresh.count(text), "{encoding:?} of {text:?}");
    assert_eq!(expected, kept.count(text), "{encoding:?} of {text:?}, remembered");
    assert_eq!(expected, encoding.count(text), "{encoding:?} of {text:?}, by itself");
    for counter in [fresh, kept] {
        assert_eq!(Some(expected), counter.count_till_limit(text, expected));
        assert_eq!(Some(expected), counter.count_till_limit(text, usize::MAX));
        if let Some(below) = expected.checked_sub(1) {
            assert_eq!(None, counter.count_till_limit(text, below), "{encoding:?} of {text:?}");
        }
    }
}

/// Texts of the characters that the patterns tell apart.
fn texts() -> impl Strategy<Value = String> {
    let odd = "('(s|S|\u{17f}|ll|Ve|rE|d|T|m|l)|[a-cA-C]{1,4}|[0-9\u{663}\u{b2}\u{2167}]{1,5}|[ \t\r\n]{1,4}\
               |[!/'.,<|>_-]{1,3}|[\u{1c5}\u{2b0}\u{301}\u{e9}\u{c9}\u{df}]|[日本語中文的]|[가나다한글]\
               |[\u{85}\u{a0}\u{2028}\u{3000}\u{200b}\u{1c}\u{0}]|[😀👍🏽🇩\u{200d}]){0,24}";
    prop_oneof![
        3 => odd.prop_map(|text: String| text),
        1 => any::<String>(),
        1 => "[a-z]{1,120}",
        1 => "\\PC{0,60}",
        1 => "([a-zA-Z]{1,9}('s|,|\\.|\n| )){0,40}",
        1 => ("[ \n\ta1!'A]{1,4}", 1_usize..60).prop_map(|(unit, times)| unit.repeat(times)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Any text counts alike.
    #[test]
    fn any_text(text in texts()) {
        assert_counts(&text);
    }

    /// A text set into ASCII counts alike wherever it starts.
    #[test]
    fn at_any_offset(
        text in texts(), filler in "[a-zA-Z0-9 \n!/']{1,6}", offset in 0_usize..140,
        after in 0_usize..140,
    ) {
        let mut all = filler.repeat(offset);
        all.truncate(offset);
        all += &text;
        all.extend(filler.chars().cycle().take(after));
        assert_counts(&all);
    }

    /// A text counts alike however its characters are stored.
    #[test]
    fn any_storage(text in texts(), times in prop::sample::select(vec![1, 1, 1, 40])) {
        let text = text.repeat(times);
        let latin1: Option<Vec<u8>> =
            text.chars().map(|one| u8::try_from(u32::from(one)).ok()).collect();
        // Surrogates in pairs count as the character that the pair spells.
        let ucs2: Vec<u16> = text.encode_utf16().collect();
        let ucs4: Vec<u32> = text.chars().map(u32::from).collect();
        let pairs: Vec<u32> = ucs2.iter().copied().map(u32::from).collect();
        let mut stored = vec![
            Text::from(text.as_str()), Text::Utf8(text.as_bytes()), Text::Ucs2(&ucs2),
            Text::Ucs4(&ucs4), Text::Ucs4(&pairs),
        ];
        stored.extend(latin1.as_deref().map(Text::Latin1));
        if text.is_ascii() {
            stored.push(Text::Ascii(text.as_bytes()));
        }
        for encoding in ENCODINGS {
            let expected = bpe(encoding).count(text.as_str()) as u64;
            for &text in &stored {
                assert_stored(encoding, text, expected);
            }
        }
    }

    /// A lone surrogate counts as the replacement character.
    #[test]
    fn lone_surrogates(
        units in prop::collection::vec(
            prop_oneof![0xD7FE_u16..0xE002, 0xD83C_u16..0xD83E, 0xDDE0_u16..0xDE10, 0x20_u16..0x7F, any::<u16>()],
            0..200,
        ),
    ) {
        let lossy = String::from_utf16_lossy(&units);
        let wide: Vec<u32> = units.iter().copied().map(u32::from).collect();
        let mut bytes = Vec::new();
        for &unit in &units {
            encode(unit, &mut bytes);
        }
        for encoding in ENCODINGS {
            let expected = bpe(encoding).count(lossy.as_str()) as u64;
            for text in [Text::Ucs2(&units), Text::Ucs4(&wide), Text::Utf8(&bytes)] {
                assert_stored(encoding, text, expected);
            }
        }
    }
}

fn assert_stored(encoding: Encoding, text: Text<'_>, expected: u64) {
    let never = AtomicBool::new(false);
    let kept = Exact::new(encoding);
    for counter in [kept.without_cache(), kept.clone(), kept] {
        let count = |limit| counter.count_text(text, limit, &never);
        assert_eq!(Some(expected), count(u64::MAX), "{encoding:?} of {text:?}");
        assert_eq!(Some(expected), count(expected), "{encoding:?} of {text:?}");
        if let Some(below) = expected.checked_sub(1) {
            assert_eq!(None, count(below), "{encoding:?} of {text:?}");
        }
    }
}

/// Appends the UTF-8 of a 16-bit code point, also of a surrogate.
fn encode(unit: u16, bytes: &mut Vec<u8>) {
    let byte = |mark: u16, bits: u16| (mark | bits).to_le_bytes()[0];
    match unit {
        0..0x80 => bytes.push(byte(0, unit)),
        0x80..0x800 => bytes.extend([byte(0xC0, unit >> 6), byte(0x80, unit & 0x3F)]),
        _ => bytes.extend([
            byte(0xE0, unit >> 12),
            byte(0x80, unit >> 6 & 0x3F),
            byte(0x80, unit & 0x3F),
        ]),
    }
}

/// Texts of this repository: code of two languages, prose, data.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') || name == "target" {
            continue;
        }
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// The files of this repository count alike, whole and cut in lines and halves.
#[test]
fn repository() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = Vec::new();
    files(&root, &mut paths);
    let texts: Vec<String> =
        paths.iter().filter_map(|path| fs::read_to_string(path).ok()).collect();
    assert!(texts.iter().map(String::len).sum::<usize>() > 10_000);
    for text in texts {
        let short: String = text.chars().take(20_000).collect();
        assert_counts(&short);
        for (number, line) in short.split_inclusive('\n').enumerate().step_by(7) {
            assert_counts(line);
            let middle = line.char_indices().map(|(place, _)| place).nth(number % 40);
            assert_counts(&line[middle.unwrap_or(0)..]);
        }
    }
}

/// Every character that is assigned, and some that are not, counts alike.
#[test]
fn every_character() {
    // The planes behind hardly matter.
    let step = |code: u32| if code < 0x1_0000 { 5 } else { 61 };
    let mut code = 0;
    while code < 0x11_0000 {
        let mut text = String::new();
        for _ in 0..16 {
            if let Some(one) = char::from_u32(code) {
                text.extend([
                    'x', one, 'y', ' ', one, '\n', one, ' ', 'a', one, one, 'A', one, 'b', '\n',
                ]);
            }
            code += step(code);
        }
        for encoding in ENCODINGS {
            assert_eq!(
                tiktoken(encoding).encode_ordinary(&text).len(),
                Exact::new(encoding).without_cache().count(&text),
                "{encoding:?} of {text:?}",
            );
        }
    }
}

/// Texts made to be slow count alike.
#[test]
fn hostile() {
    let size = 30_000;
    for unit in
        ["a", "aB", " ", "\n", " \n", "!", "1", "a1", "日", "\u{301}", "😀", "'s", "\u{3000}"]
    {
        let mut text = unit.repeat(size / unit.len());
        for _ in 0..2 {
            for encoding in ENCODINGS {
                let expected = bpe(encoding).count(text.as_str());
                assert_counted(encoding, &text, expected);
            }
            text.push('.');
        }
    }
}
