//! What is done to a text before it is counted: it is composed (NFC of Unicode
//! 15.0), some characters are removed, and all kinds of spaces, for Claude 3
//! also quotes, become those of ASCII.

use budgeteer_vocab::ClaudeCharacters as Of;
use unicode_normalization::UnicodeNormalization;

use super::tables::Tables;
use super::tile::decode;

/// A vowel sign of Thai that joins with the one behind it, and the joint of
/// both. Normalization leaves them apart.
const NIKHAHIT: u32 = 0xE4D;
const SARA_AA: u32 = 0xE32;
const SARA_AM: char = '\u{E33}';

/// How many bytes are looked at in one step.
const STEP: usize = 32;

/// What a text needs.
#[derive(Clone, Copy, PartialEq)]
enum Need {
    Nothing,
    Replacing,
    Composing,
}

/// Returns the text as it is counted. `buffer` holds it if it is not `text`.
pub(super) fn normalize<'a>(tables: &Tables, text: &'a [u8], buffer: &'a mut Vec<u8>) -> &'a [u8] {
    let need = need(tables, text);
    if need == Need::Nothing {
        return text;
    }
    buffer.clear();
    buffer.reserve(text.len());
    if need == Need::Replacing {
        replace(tables, text, buffer);
        return buffer;
    }
    // What Unicode 15.0 does not know has no decomposition there, and joins
    // with nothing.
    let unknown = |char: char| tables.bits(char.into()) & Of::UNASSIGNED != 0;
    let mut composed = String::with_capacity(text.len());
    for part in String::from_utf8_lossy(text).split_inclusive(unknown) {
        let known = part.trim_end_matches(unknown);
        composed.extend(known.nfc());
        composed.push_str(&part[known.len()..]);
    }
    replace(tables, composed.as_bytes(), buffer);
    buffer
}

#[allow(clippy::needless_bitwise_bool)] // a step becomes one wide instruction
fn need(tables: &Tables, text: &[u8]) -> Need {
    let mut need = Need::Nothing;
    let mut combining = 0;
    let mut at = 0;
    while at < text.len() {
        if text[at] < 0x80
            && let Some(step) = text[at..].first_chunk::<STEP>()
        {
            let other =
                |byte: u8| (byte.wrapping_sub(b' ') >= 0x5F) & (byte != b'\t') & (byte != b'\n');
            if !step.iter().fold(false, |any, &byte| any | other(byte)) {
                at += STEP;
                combining = 0;
                continue;
            }
        }
        // Up to the next place where the step above may go on.
        let end = text.len().min(at + STEP);
        while at < end {
            let (code, width) = decode(text, at);
            at += width;
            let bits = tables.bits(code);
            let class = bits & Of::COMBINING;
            if bits & Of::COMPOSES != 0 || class != 0 && class < combining {
                return Need::Composing;
            }
            combining = class;
            if bits & tables.replaced != 0 {
                need = Need::Replacing;
            }
        }
    }
    need
}

/// Writes the text with characters removed and replaced.
fn replace(tables: &Tables, text: &[u8], out: &mut Vec<u8>) {
    let mut copied = 0;
    let mut at = 0;
    let mut open = false;
    while at < text.len() {
        let (code, width) = decode(text, at);
        let bits = tables.bits(code);
        let joins = open && code == SARA_AA;
        if bits & tables.replaced == 0 && !joins {
            open = code == NIKHAHIT;
            at += width;
            continue;
        }
        out.extend_from_slice(&text[copied..at]);
        if joins {
            // It is the last one written: only controls may be between.
            out.truncate(out.len() - 3);
            out.extend_from_slice(SARA_AM.encode_utf8(&mut [0; 4]).as_bytes());
        } else if bits & Of::STRIPPED == 0 {
            out.push(match bits & tables.replaced {
                Of::SINGLE_QUOTE => b'\'',
                Of::DOUBLE_QUOTE => b'"',
                _ => b' ',
            });
        }
        // Controls are removed before such vowel signs join, private characters
        // after.
        open &= bits & Of::STRIPPED != 0 && code < 0xE000;
        at += width;
        copied = at;
    }
    out.extend_from_slice(&text[copied..]);
}
