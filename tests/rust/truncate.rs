//! Cut texts: the cases that Python must answer alike, and laws that hold for
//! every text.
#![allow(clippy::unwrap_used)] // an unexpected value fails its test

#[path = "cases.rs"]
mod cases;

use std::borrow::Cow;
use std::sync::atomic::AtomicBool;

use budgeteer::{Claude, Encoding, Estimate, Exact, Keep, Text, grapheme_boundaries, truncate};
use cases::{cases, list, number};
use proptest::prelude::*;
use serde_json::Value;

static NEVER: AtomicBool = AtomicBool::new(false);

#[allow(clippy::unnecessary_wraps)] // as `truncate` asks it
fn chars(text: Text<'_>) -> Result<u64, ()> {
    Ok(text.chars() as u64)
}

/// Returns the counter of that encoding, or else the reconstruction of Claude 3.
fn exact(name: &str) -> Exact {
    let encoding = Encoding::ALL.iter().find(|encoding| encoding.name() == name);
    encoding.map_or_else(|| Exact::new(Claude::V3), |&encoding| Exact::new(encoding))
}

/// Returns `text` cut with the counter of that name; "len" counts code points.
fn cut<'a>(counter: &str, text: &'a str, most: u64, keep: Keep, marker: &str) -> Cow<'a, str> {
    let (whole, marker) = (Text::from(text), Text::from(marker));
    let cut = match counter {
        "len" => truncate(whole, most, keep, marker, chars).unwrap(),
        "words" => Estimate::Words.truncate(whole, most, keep, marker),
        "chars_div4" => Estimate::CharsDiv4.truncate(whole, most, keep, marker),
        name => exact(name).truncate(whole, most, keep, marker, &NEVER),
    };
    cut.map_or(Cow::Borrowed(text), |cut| Cow::Owned(String::from_utf8(cut).unwrap()))
}

fn are_those_of_python(file_kind: &str) {
    let cases = cases("truncate.json", file_kind);
    assert!(list(&cases).len() > 10);
    for case in list(&cases) {
        let part = |part: &Value| part[0].as_str().unwrap().repeat(number(&part[1]));
        let text: String = list(&case["parts"]).iter().map(part).collect();
        let keep = match case["keep"].as_str().unwrap() {
            "start" => Keep::Start,
            "end" => Keep::End,
            _ => Keep::Both,
        };
        let (counter, marker) = (case["counter"].as_str().unwrap(), &case["marker"]);
        for expected in list(&case["cuts"]) {
            let most = expected[0].as_u64().unwrap();
            let found = cut(counter, &text, most, keep, marker.as_str().unwrap());
            assert_eq!(expected[1], *found, "{most} of {case}");
        }
    }
}

#[test]
fn short_texts() {
    are_those_of_python("short");
}

/// Texts of which not all is looked at.
#[test]
fn long_texts() {
    are_those_of_python("long");
}

/// Texts that lose more and more, as they count more than their parts.
#[test]
fn stubborn_texts() {
    are_those_of_python("stubborn");
}

fn keeps() -> impl Strategy<Value = Keep> {
    prop::sample::select(vec![Keep::Start, Keep::End, Keep::Both])
}

/// Code points, lone surrogates among them, in runs that are longer than what
/// is looked at.
fn codes() -> impl Strategy<Value = Vec<u32>> {
    let code = prop_oneof![
        4 => prop::sample::select(vec![0x20, 0x61, 0x41, 0x31, 0xA, 0xD, 0x7E, 0x7F, 0x80, 0x301]),
        2 => prop::sample::select(vec![
            0x4DFF, 0x4E00, 0x9FFF, 0xA000, 0x7FF, 0x800, 0xFFFF, 0x1_0000, 0x1_F1F7, 0x200D,
        ]),
        1 => 0xD7FE_u32..0xE002,
        1 => prop::sample::select(vec![0xD83C_u32, 0xDDF7, 0xDBFF, 0xDC00, 0xDFFF]),
    ];
    let run = (code, prop::sample::select(vec![1_usize, 1, 1, 1, 1, 2, 3, 300]));
    prop::collection::vec(run, 0..30).prop_map(|runs| {
        runs.into_iter().flat_map(|(code, times)| std::iter::repeat_n(code, times)).collect()
    })
}

/// Returns the encoding of [`Text::Utf8`].
fn utf8(codes: &[u32]) -> Vec<u8> {
    let mut utf8 = Vec::new();
    Text::Ucs4(codes).write_utf8(&mut utf8);
    utf8
}

proptest! {
    /// A text is cut alike however its characters are stored, also where they
    /// are surrogates. What is left fits, and has whole clusters of both ends.
    #[test]
    fn any_storage(
        codes in codes(), most in 0_u64..9, keep in keeps(),
        marker in prop::sample::select(vec!["", " ", "...", "1"]),
    ) {
        let bytes = utf8(&codes);
        let ucs2: Option<Vec<u16>> = codes.iter().map(|&code| u16::try_from(code).ok()).collect();
        let latin1: Option<Vec<u8>> = codes.iter().map(|&code| u8::try_from(code).ok()).collect();
        let is_ascii = codes.iter().all(|&code| code < 0x80);
        let mut stored = vec![Text::Utf8(&bytes)];
        stored.extend(ucs2.as_deref().map(Text::Ucs2));
        stored.extend(latin1.as_deref().map(Text::Latin1));
        stored.extend(is_ascii.then_some(Text::Ascii(&bytes)));
        let ends: Vec<usize> = grapheme_boundaries(Text::Ucs4(&codes))
            .into_iter()
            .map(|end| utf8(&codes[..end]).len())
            .collect();
        for name in ["o200k_base", "claude3", "words", "len"] {
            let cut = |text: Text<'_>| match name {
                "len" => truncate(text, most, keep, marker.into(), chars).unwrap(),
                "words" => Estimate::Words.truncate(text, most, keep, marker.into()),
                name => exact(name).truncate(text, most, keep, marker.into(), &NEVER),
            };
            let found = cut(Text::Ucs4(&codes));
            for &text in &stored {
                prop_assert_eq!(&found, &cut(text), "{} of {:?}", name, text);
            }
            let Some(found) = found else { continue };
            if found.is_empty() {
                continue;
            }
            let is_piece = |head: usize, tail: usize| {
                let (front, back) = (&bytes[..head], &bytes[tail..]);
                found.len() == front.len() + marker.len() + back.len()
                    && found.starts_with(front)
                    && found.ends_with(back)
                    && found[head..].starts_with(marker.as_bytes())
            };
            let last = ends.len() - 1;
            let heads = if keep == Keep::End { &ends[..1] } else { &ends };
            let tails = if keep == Keep::Start { &ends[last..] } else { &ends };
            let is_any = heads.iter().any(|&head| tails.iter().any(|&tail| is_piece(head, tail)));
            prop_assert!(is_any, "{} {:?}", name, found);
        }
    }

    /// Where only the number of tokens is known, pieces are counted, as with any
    /// counter.
    #[test]
    fn a_reconstruction_counts_pieces(
        text in "([a-c]{1,9}[ .\n]|é|\u{301}|日){0,40}", most in 0_u64..30, keep in keeps(),
        marker in prop::sample::select(vec!["", " [...]"]),
    ) {
        let claude = exact("claude3");
        let count = |piece: Text<'_>| claude.count_text(piece, u64::MAX, &NEVER).ok_or(());
        let counted = truncate(text.as_str().into(), most, keep, marker.into(), count);
        let found = claude.truncate(text.as_str().into(), most, keep, marker.into(), &NEVER);
        prop_assert_eq!(counted, Ok(found));
    }
}

/// A piece is never longer than the text, whatever the counter makes of it, and
/// a line end goes whole.
#[test]
fn no_piece_is_longer_than_its_text() {
    for (text, piece) in [("a\r\nb", "a-b"), ("ab\r\ncd", "ab-cd"), ("a\r\n\r\nb", "a\r\n-b")] {
        let mut counts = [2].into_iter().chain(std::iter::repeat(1));
        let count = |_: Text<'_>| counts.next().ok_or(());
        let found = truncate(text.into(), 1, Keep::Both, "-".into(), count).unwrap().unwrap();
        assert_eq!(piece.as_bytes(), found);
    }
}

/// Where all words but one fit, all but one stay.
#[test]
fn all_words_but_one_stay() {
    for (keep, piece) in
        [(Keep::Start, "a b c d e"), (Keep::End, "b c d e f"), (Keep::Both, "a b c e f")]
    {
        let found = Estimate::Words.truncate("a b c d e f".into(), 5, keep, "".into()).unwrap();
        assert_eq!(piece.as_bytes(), found);
    }
}

/// The end of a long text is looked at from between two plain characters on,
/// however it is stored: where digits make tokens by threes, that shows.
#[test]
fn long_numbers() {
    let cut = |text: Text<'_>, most| {
        exact("o200k_base").truncate(text, most, Keep::End, "".into(), &NEVER).unwrap()
    };
    // Of 512 digits, the last two of the tokens.
    assert_eq!(b"11111"[..], cut((&*"1".repeat(1_000)).into(), 2));
    for unit in [
        "1",
        "\u{663}11",
        "\u{663}1",
        "1\u{663}\u{663}",
        "\u{663}111\u{663}",
        "11\u{663}\u{663}\u{663}",
    ] {
        for first in ["", "\u{663}", "\u{663}\u{663}"] {
            let text = first.to_owned() + &unit.repeat(1_500 / unit.chars().count());
            let ucs2: Vec<u16> = text.encode_utf16().collect();
            for most in 1..8 {
                let found = cut(Text::Utf8(text.as_bytes()), most);
                assert_eq!(found, cut(Text::Ucs2(&ucs2), most), "{most} of {first}{unit}");
            }
        }
    }
}

/// Surrogates in a pair are cut as the character that they spell, and others as
/// the replacement character.
#[test]
fn surrogates() {
    let exact = exact("o200k_base");
    // The character is one token.
    let (high, low) = (0xD83D_u16, 0xDE02_u16);
    let unit = [high, low, 0x65E5, high, 0x65E5, low, 0xE9, high, low, 0x61, low, high, low, high];
    for first in 0..unit.len() {
        let units: Vec<u16> = unit.iter().copied().cycle().skip(first).take(30).collect();
        let wide: Vec<u32> = units.iter().copied().map(u32::from).collect();
        let spelled = String::from_utf16_lossy(&units);
        for (most, keep) in (1..12).flat_map(|most| [(most, Keep::Start), (most, Keep::End)]) {
            let cut = |text| exact.truncate(text, most, keep, "".into(), &NEVER).unwrap();
            let expected = String::from_utf8(cut((&*spelled).into())).unwrap();
            let found = cut(Text::Ucs2(&units));
            assert_eq!(found, cut(Text::Utf8(&utf8(&wide))));
            let part = |size: usize| match keep {
                Keep::End => units.len() - size..units.len(),
                _ => 0..size,
            };
            let mut parts = (0..=units.len()).map(part);
            let part = parts.find(|part| utf8(&wide[part.clone()]) == found).unwrap();
            assert_eq!(expected, String::from_utf16_lossy(&units[part]), "{most} of {spelled}");
        }
    }
}
