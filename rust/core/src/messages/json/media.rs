//! The tokens of audio, documents and files: by published rules, or at most
//! this much.

use miniz_oxide::inflate::{TINFLStatus, decompress_to_vec_zlib_with_limit};
use serde_json::Value;

use crate::images::{Detail, from_base64, image_tokens};

/// What the type of a part of audio or video names.
const TIMED: [&str; 2] = ["audio", "video"];

/// What the type of a part with pages names.
const PAGED: [&str; 2] = ["document", "file"];

/// The fewest tokens of a part of unknown type that names one of these, as it
/// may only refer to its content: about two dense pages of a PDF, or eight
/// minutes of speech.
const LEAST: usize = 5_000;

/// Of base64 that is 12 bytes. Speech at the lowest usual rate, 750 bytes a
/// second, then counts 62 tokens a second, and the models that say take 10 to
/// 32. Of video they take at most 290 tokens a second, which has 12,500 bytes at
/// a low rate.
const CHARS_PER_TOKEN: usize = 16;

/// Tokens of a second of audio, by a part of the model's name: the guides of
/// Google and OpenAI.
const AUDIO: [(&str, f64); 2] = [("gemini", 32.0), ("gpt", 10.0)];

/// Tokens of a page of a PDF: Google's guides to documents and media
/// resolution, 2025-11.
const PAGES: [(&str, usize); 2] = [("gemini-3", 560), ("gemini", 258)];

/// The most tokens of the text of a page, which other makers take beside its
/// image: Anthropic's guide to PDF says 1500 to 3000.
const PAGE_TEXT: usize = 3_000;

/// The pixels of a letter page at 150 dots per inch.
const PAGE: (u64, u64) = (1_275, 1_650);

/// The bytes of a PDF that are looked at, their characters in base64, and the
/// bytes of one stream in it.
const PDF_MOST: usize = 1 << 26;
const CHARS_MOST: usize = PDF_MOST * 4 / 3;
const STREAM_MOST: usize = 1 << 22;

/// Returns the tokens of a part that is neither text nor an image: by a
/// published rule, at most so many, or an estimate that errs high. `kind` is
/// what says its kind, and `shown` has it as JSON. None where `count` returns
/// it.
pub(in crate::messages) fn tokens(
    kind: &str,
    part: Option<&Value>,
    shown: &str,
    model: &str,
    count: impl FnOnce(&str) -> Option<usize>,
) -> Option<usize> {
    if let Some((tokens, _)) = part.and_then(|part| of_file(kind, part, model)) {
        return Some(tokens);
    }
    if names(kind, TIMED) {
        return Some(LEAST.max(shown.chars().count().div_ceil(CHARS_PER_TOKEN)));
    }
    let least = if names(kind, PAGED) { LEAST } else { 0 };
    count(shown).map(|tokens| tokens.max(least))
}

/// Returns whether these tokens are by a published rule.
pub(in crate::messages) fn is_known(kind: &str, part: Option<&Value>, model: &str) -> bool {
    part.and_then(|part| of_file(kind, part, model)).is_some_and(|(_, is_known)| is_known)
}

/// Returns the tokens of audio or a PDF whose length is in its data, and
/// whether they are by a published rule; None for anything else.
fn of_file(kind: &str, part: &Value, model: &str) -> Option<(usize, bool)> {
    if !names(kind, TIMED) && !names(kind, PAGED) {
        return None;
    }
    let data = data_of(part)?;
    let named = model.to_lowercase();
    if data.starts_with(b"RIFF") && data.get(8..12) == Some(b"WAVE") {
        let (_, rate) = AUDIO.iter().find(|(name, _)| named.contains(name))?;
        return seconds(&data).map(|seconds| (whole((seconds * rate).ceil()), true));
    }
    let pages = if data.starts_with(b"%PDF") { pdf_pages(&data)? } else { return None };
    if let Some((_, each)) = PAGES.iter().find(|(name, _)| named.contains(name)) {
        return Some((pages.saturating_mul(*each), true));
    }
    let each = PAGE_TEXT.saturating_add(image_tokens(Some(PAGE), Detail::High, model));
    Some((pages.saturating_mul(each), false))
}

fn names(kind: &str, words: [&str; 2]) -> bool {
    words.iter().any(|word| kind.contains(word))
}

/// Returns the bytes that a part has in base64; None if it only refers to them.
fn data_of(part: &Value) -> Option<Vec<u8>> {
    let fields = part.as_object()?;
    let inner = fields.values().filter_map(Value::as_object);
    let mut texts = std::iter::once(fields).chain(inner).flat_map(|fields| {
        ["data", "file_data"].into_iter().filter_map(|key| fields.get(key)?.as_str())
    });
    let text = texts.find(|text| !text.is_empty())?;
    let text = match text.strip_prefix("data:") {
        Some(text) => text.split_once(',').map_or("", |(_, data)| data),
        None => text,
    };
    from_base64(text, CHARS_MOST)
}

/// Returns the length of a WAV file in seconds; None if it has no usual header.
fn seconds(wave: &[u8]) -> Option<f64> {
    if wave.get(12..16) != Some(b"fmt ") || wave.len() < 44 {
        return None;
    }
    let rate = u32::from_le_bytes(wave[28..32].try_into().ok()?);
    let bytes = u32::try_from(wave.len()).ok()?;
    (rate > 0).then(|| f64::from(bytes) / f64::from(rate))
}

/// Returns a number of tokens, which is whole and not below 0.
fn whole(tokens: f64) -> usize {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    let tokens = tokens as usize;
    tokens
}

/// Returns the number of pages of a PDF; None if none is found or too much is
/// packed in it.
///
/// Objects that are compressed together are looked into; an encrypted file
/// shows none.
fn pdf_pages(pdf: &[u8]) -> Option<usize> {
    let (mut pages, mut left) = (pages_in(pdf), Some(PDF_MOST));
    let mut at = 0;
    while let Some(start) = next_stream(pdf, at) {
        at = start;
        let most = left?; // made to be large: what is left may have any number
        let plain = match decompress_to_vec_zlib_with_limit(&pdf[start..], STREAM_MOST) {
            Ok(plain) => plain,
            Err(error) => match error.status {
                TINFLStatus::HasMoreOutput
                | TINFLStatus::NeedsMoreInput
                | TINFLStatus::FailedCannotMakeProgress => error.output,
                _ => continue,
            },
        };
        left = most.checked_sub(plain.len()).filter(|&left| left > 0);
        pages += pages_in(&plain);
    }
    (pages > 0).then_some(pages)
}

/// Returns the number of objects that are a page.
fn pages_in(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    let mut pages = 0;
    while let Some(at) = memchr::memmem::find(rest, b"/Type") {
        rest = &rest[at + 5..];
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
        let name = &rest[rest.iter().take_while(|byte| is_space(byte)).count()..];
        let after = name.strip_prefix(b"/Page").map(<[u8]>::first);
        pages += usize::from(after.is_some_and(|next| !next.is_some_and(u8::is_ascii_alphabetic)));
    }
    pages
}

/// Returns where the next stream of objects after a place begins.
fn next_stream(pdf: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += memchr::memmem::find(&pdf[at..], b"/ObjStm")? + 7;
        if pdf.get(at).is_some_and(|&next| next.is_ascii_alphanumeric() || next == b'_') {
            continue;
        }
        let near = &pdf[at..pdf.len().min(at + 200 + 8)];
        let found = memchr::memmem::find_iter(near, b"stream").find_map(|place| {
            let end = match near.get(place + 6..)? {
                [b'\n', ..] => place + 7,
                [b'\r', b'\n', ..] => place + 8,
                _ => return None,
            };
            (place <= 200).then_some(end)
        });
        if let Some(end) = found {
            return Some(at + end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sound_has_as_many_seconds_as_its_rate_says() {
        let wave = |length: usize, rate: u32| {
            let mut wave = vec![0; length];
            wave[12..16].copy_from_slice(b"fmt ");
            wave[28..32].copy_from_slice(&rate.to_le_bytes());
            seconds(&wave)
        };
        assert_eq!([Some(1.0), None, None], [wave(44, 44), wave(43, 44), wave(44, 0)]);
        assert_eq!(None, seconds(&[0; 50]));
    }

    #[test]
    fn a_file_is_what_it_begins_with() {
        let of =
            |kind: &str, data: &str| of_file(kind, &serde_json::json!({"data": data}), "gemini-2");
        // "%PDF-1.4WAVE /Type /Page ", and 44 bytes that are a second.
        let pdf = "JVBERi0xLjRXQVZFIC9UeXBlIC9QYWdlIA==";
        let wave = "UklGRiAgICBXQVZFZm10IAAAAAAAAAAAAAAAACwAAAAAAAAAAAAAAAAAAAA=";
        let video = "UklGRiAgICBBVkkgZm10IAAAAAAAAAAAAAAAACwAAAAAAAAAAAAAAAAAAAA=";
        assert_eq!(Some((258, true)), of("document", pdf));
        assert_eq!(Some((32, true)), of("input_audio", wave));
        assert_eq!([None, None], [of("image", wave), of("input_audio", video)]);
    }

    #[test]
    fn a_stream_of_objects_begins_behind_its_line_end() {
        fn after(pdf: &str) -> Option<&str> {
            next_stream(pdf.as_bytes(), 0).map(|at| &pdf[at..])
        }

        assert_eq!(Some("DATA"), after("xx/ObjStm<<>>stream\nDATA"));
        assert_eq!(Some("DATA"), after("/ObjStm<<>>stream\r\nDATA"));
        assert_eq!(Some("MORE"), after("/ObjStm<<>>stream DATA stream\nMORE"));
        assert_eq!(Some("MORE"), after("/ObjStmX stream\nDATA /ObjStm stream\nMORE"));
        assert_eq!(Some("MORE"), after("/ObjStm_ stream\nDATA /ObjStm stream\nMORE"));
        assert_eq!(None, after("/ObjStm<<>> no line end behind stream"));
        let far = |between: usize| {
            after(&["/ObjStm", &" ".repeat(between), "stream\r\nDATA"].concat()).is_some()
        };
        assert_eq!([true, true, false], [199, 200, 201].map(far));
        assert_eq!(None, next_stream(b"/ObjStm stream\nDATA", 3));
    }
}
