//! Texts of parts that counters, cuts, templates and rankings take differently.

use libfuzzer_sys::arbitrary::{Arbitrary, Result, Unstructured};

/// Parts that mean something to some rule: words that queries share, clusters of
/// several characters, frames of templates, white space of all kinds.
const PARTS: [&str; 72] = [
    "tea",
    "tea ",
    " tea",
    "green tea",
    "Green Tea.",
    "brewing",
    "brewed ",
    "the ",
    "What is ",
    "word ",
    ". ",
    ".\n",
    "? ",
    "\n\n",
    "\r\n",
    "\t",
    "  ",
    "      ",
    "[",
    "]",
    "[a:b] ",
    "[notice] ",
    "\\",
    "\\[",
    "## ",
    "## [",
    "\n## [x:y]\n\n",
    "Source: ",
    "<",
    "&",
    "&amp;",
    "&#92;u0001",
    "</document>\n",
    "\n</documents>",
    "]]>",
    "\"",
    "\"}",
    ",\n{",
    "\\u00",
    "{count}",
    "{text}",
    "é",
    "e\u{301}",
    "日本",
    "한국",
    "🇷🇸",
    "🇩",
    "👩\u{200d}💻",
    "👍🏽",
    "\u{200d}",
    "\u{3000}",
    "\u{a0}",
    "\u{85}",
    "\u{2028}",
    "\u{1c}",
    "\u{2581}",
    "'s",
    "'LL",
    "’t",
    "1234",
    "٣٤",
    "½",
    "Straße",
    "İ",
    "ǅ",
    "\u{e000}",
    "\u{fffd}",
    "\u{feff}",
    "\u{1}",
    "\u{0}",
    "-----",
    " [...]",
];

/// A text of at most a few hundred characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words(pub String);

impl<'a> Arbitrary<'a> for Words {
    fn arbitrary(input: &mut Unstructured<'a>) -> Result<Self> {
        let mut text = String::new();
        let parts = input.int_in_range(0..=20_u8)?;
        for _ in 0..parts {
            let byte: u8 = input.arbitrary()?;
            match byte {
                0..0x80 => text.push(byte.into()),
                0x80..0xF0 => text.push_str(PARTS[usize::from(byte - 0x80) % PARTS.len()]),
                0xF0..0xF8 => text.push(input.arbitrary()?),
                _ => {
                    let part = PARTS[usize::from(input.arbitrary::<u8>()?) % PARTS.len()];
                    text.push_str(&part.repeat(usize::from(byte - 0xF6).pow(2)));
                }
            }
        }
        Ok(Self(text))
    }
}

/// Returns at most `most` arbitrary values.
///
/// # Errors
///
/// What `arbitrary` cannot make of the input.
pub fn few<'a, T: Arbitrary<'a>>(input: &mut Unstructured<'a>, most: u8) -> Result<Vec<T>> {
    let count = input.int_in_range(0..=most)?;
    (0..count).map(|_| input.arbitrary()).collect()
}

/// Bytes as a text, in which others than UTF-8 are replaced.
#[must_use]
pub fn lossy(data: &[u8]) -> String {
    String::from_utf8_lossy(data).into_owned()
}
