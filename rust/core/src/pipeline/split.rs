//! A chunk that was split into sentences.

use std::borrow::Cow;
use std::ops::Range;

use crate::sentences::sentence_spans;
use crate::text::Text;

/// Stands in place of sentences left out between two others.
const GAP: &[u8] = b" [...] ";

/// A chunk that was split into sentences.
pub(super) struct Split<'a> {
    pub(super) index: u32,
    /// Its text, encoded as in [`Text::Utf8`].
    utf8: Cow<'a, [u8]>,
    pub(super) sentences: Vec<Range<usize>>,
    /// The code points of each sentence.
    pub(super) sizes: Vec<usize>,
    is_ascii: bool,
    /// What was measured of its whole text.
    pub(super) measured: Option<u32>,
    /// The place of its first sentence among those of all.
    pub(super) first: usize,
    /// The tokens of those that were found to fit last.
    pub(super) tokens: u64,
}

impl<'a> Split<'a> {
    pub(super) fn new(index: u32, text: Text<'a>, measured: Option<u32>, first: usize) -> Self {
        let spans = sentence_spans(text);
        let is_ascii = matches!(text, Text::Ascii(_));
        let utf8: Cow<'a, [u8]> = match text {
            Text::Ascii(bytes) | Text::Utf8(bytes) => bytes.into(),
            _ => {
                let mut utf8 = Vec::new();
                text.write_utf8(&mut utf8);
                utf8.into()
            }
        };
        let (spans, _) = spans.as_chunks::<2>();
        let sizes = spans.iter().map(|[start, end]| end - start).collect();
        let sentences = if is_ascii {
            spans.iter().map(|&[start, end]| start..end).collect()
        } else {
            let (mut chars, mut at) = (0, 0);
            let mut place = |to: usize| {
                while chars < to {
                    at += 1;
                    at += utf8[at..].iter().take_while(|byte| byte.cast_signed() < -64).count();
                    chars += 1;
                }
                at
            };
            spans.iter().map(|&[start, end]| place(start)..place(end)).collect()
        };
        Self { index, utf8, sentences, sizes, is_ascii, measured, first, tokens: 0 }
    }
}

impl Split<'_> {
    /// Returns the chosen sentences, encoded as in [`Text::Utf8`]. Neighbours
    /// stand as they do in the text.
    pub(super) fn extract(&self, chosen: &[bool]) -> Vec<u8> {
        let mut extract = Vec::with_capacity(self.utf8.len());
        let mut before: Option<usize> = None;
        for (number, sentence) in self.sentences.iter().enumerate() {
            if !chosen[number] {
                continue;
            }
            match before {
                Some(last) if last + 1 == number => {
                    let between = self.sentences[last].end..sentence.start;
                    extract.extend_from_slice(&self.utf8[between]);
                }
                Some(_) => extract.extend_from_slice(GAP),
                None => {}
            }
            extract.extend_from_slice(&self.utf8[sentence.clone()]);
            before = Some(number);
        }
        extract
    }

    pub(super) fn sentence(&self, number: usize) -> Text<'_> {
        let bytes = &self.utf8[self.sentences[number].clone()];
        if self.is_ascii { Text::Ascii(bytes) } else { Text::from_utf8(bytes) }
    }

    /// Returns where its sentences are among those of all.
    pub(super) fn range(&self) -> Range<usize> {
        self.first..self.first + self.sentences.len()
    }
}
