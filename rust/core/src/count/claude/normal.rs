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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::claude::Claude;

    fn normalized(family: Claude, text: &str) -> String {
        let mut buffer = Vec::new();
        let normal = normalize(family.tables(), text.as_bytes(), &mut buffer);
        String::from_utf8(normal.to_vec()).expect("it stays UTF-8")
    }

    /// As many as are looked at in two steps, and nothing else.
    const CONTROLS: &str = match std::str::from_utf8(&[1; 2 * STEP]) {
        Ok(controls) => controls,
        Err(_) => panic!("they are ASCII"),
    };

    /// What a text becomes, by Claude 3.
    const CHANGES: [(&str, &str); 15] = [
        ("\u{a0}", " "),
        ("\u{2019}", "'"),
        ("\u{201c}tea\u{201d}", "\"tea\""),
        ("e\u{301}", "\u{e9}"),
        ("\u{1}", ""),
        ("\u{1}e\u{301}\u{a0}", "\u{e9} "),
        // Marks out of order, of a letter that has no form with them, and in order.
        ("\u{5d0}\u{5b1}\u{5b0}", "\u{5d0}\u{5b0}\u{5b1}"),
        ("\u{5d0}\u{5b0}\u{5b1}", "\u{5d0}\u{5b0}\u{5b1}"),
        // Only controls may be between these vowel signs.
        ("\u{e4d}\u{e32}", "\u{e33}"),
        ("\u{e4d}\u{1}\u{e32}", "\u{e33}"),
        ("\u{e4d}a\u{e32}", "\u{e4d}a\u{e32}"),
        ("\u{e4d}\u{a0}\u{e32}", "\u{e4d} \u{e32}"),
        ("\u{e32}\u{e32}\u{e4d}", "\u{e32}\u{e32}\u{e4d}"),
        ("\t\n~tea", "\t\n~tea"),
        (CONTROLS, ""),
    ];

    #[test]
    fn characters_are_replaced_wherever_they_stand() {
        for (text, expected) in CHANGES {
            for before in 0..2 * STEP + 2 {
                for behind in [0, 1, STEP, 2 * STEP + 2] {
                    let around = |middle: &str| {
                        ["b".repeat(before), middle.to_string(), "c".repeat(behind)].concat()
                    };
                    let found = normalized(Claude::V3, &around(text));
                    assert_eq!(around(expected), found, "{text:?} at {before}");
                }
            }
        }
    }

    #[test]
    fn what_needs_nothing_is_not_copied() {
        let tables = Claude::V3.tables();
        for text in ["", "tea", &"tea \t\n~".repeat(30), &"\u{447}\u{430}\u{439} ".repeat(30)] {
            assert!(need(tables, text.as_bytes()) == Need::Nothing, "{text:?}");
        }
        assert!(need(tables, "tea\u{a0}".as_bytes()) == Need::Replacing);
        assert!(need(tables, "\u{5d0}\u{5b0}\u{5b1}".as_bytes()) == Need::Nothing);
        assert!(need(tables, "\u{5d0}\u{5b1}\u{5b0}".as_bytes()) == Need::Composing);
        let apart = ["\u{5d0}\u{5b1}", &"a".repeat(STEP), "\u{5b0}"].concat();
        assert!(need(tables, apart.as_bytes()) == Need::Nothing);
    }

    #[test]
    fn private_characters_keep_vowel_signs_apart() {
        let between = "\u{e4d}\u{e000}\u{e32}";
        let found = normalized(Claude::V3, between);
        assert!(!found.contains(SARA_AM), "{found:?}");
        // They join once only.
        assert_eq!("\u{e33}\u{e32}", normalized(Claude::V3, "\u{e4d}\u{e32}\u{e32}"));
    }
}
