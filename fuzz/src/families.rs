//! Counting as the packages define it, one merge after another.
//!
//! The patterns are run by a regex engine, the composing is that of the package
//! `tokenizers`, and merging looks at every pair again after each merge. Nothing
//! is shared with the core but the vocabulary itself.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use budgeteer_vocab::{Encoding, Vocabulary};
use fancy_regex::Regex;
use unicode_normalization_alignments::UnicodeNormalization as _;

const LETTERS: &str = r"[^\r\n\p{L}\p{N}]?\p{L}+";
const CONTRACTIONS: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const SPACES: &str = r"\s*[\r\n]+|\s+(?!\S)|\s+";
const UPPER: &str = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]";
const LOWER: &str = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]";

/// The encodings besides OpenAI's, which have oracles of their own.
pub const FAMILIES: [Encoding; 6] = [
    Encoding::Qwen2,
    Encoding::Qwen35,
    Encoding::DeepSeek,
    Encoding::Glm4,
    Encoding::Tekken,
    Encoding::Gemma4,
];

/// A family, with all that the definition of its counts needs.
pub struct Family {
    encoding: Encoding,
    patterns: Vec<Regex>,
    tokens: HashMap<Vec<u8>, u32>,
    merges: HashMap<(u32, u32), u32>,
    /// Pieces that are one token whatever merges.
    wholes: HashSet<Vec<u8>>,
    /// When a token merges, if not by its rank.
    early: HashMap<u32, i64>,
}

static ALL: LazyLock<Vec<Family>> =
    LazyLock::new(|| FAMILIES.iter().map(|&encoding| Family::new(encoding)).collect());

/// Returns all families.
#[must_use]
pub fn all() -> &'static [Family] {
    &ALL
}

fn patterns(encoding: Encoding) -> Vec<String> {
    match encoding {
        Encoding::Qwen2 => vec![format!(
            r"{CONTRACTIONS}|{LETTERS}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{SPACES}"
        )],
        Encoding::Qwen35 => vec![format!(
            r"{CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{SPACES}"
        )],
        Encoding::DeepSeek => vec![
            r"\p{N}{1,3}".to_owned(),
            "[\u{4e00}-\u{9fa5}\u{3040}-\u{309f}\u{30a0}-\u{30ff}]+".to_owned(),
            format!(
                r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{{|}}~][A-Za-z]+|[^\r\n\p{{L}}\p{{P}}\p{{S}}]?[\p{{L}}\p{{M}}]+| ?[\p{{P}}\p{{S}}]+[\r\n]*|{SPACES}"##
            ),
        ],
        Encoding::Glm4 => vec![format!(
            r"{CONTRACTIONS}|{LETTERS}|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{SPACES}"
        )],
        Encoding::Tekken => vec![format!(
            r"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{SPACES}"
        )],
        _ => Vec::new(),
    }
}

impl Family {
    fn new(encoding: Encoding) -> Self {
        let vocabulary: Vocabulary = encoding.load();
        let ranks = || 0_u32..;
        let tokens: HashMap<_, _> = vocabulary.iter().map(<[u8]>::to_vec).zip(ranks()).collect();
        let merges: HashMap<_, _> =
            ranks().skip(256).zip(vocabulary.merges()).map(|(rank, &pair)| (pair, rank)).collect();
        let mut wholes: HashSet<_> = vocabulary.wholes().iter().map(|one| one.to_vec()).collect();
        if encoding == Encoding::Gemma4 {
            let is_space = |token: &&[u8]| token.iter().all(|byte| b" \n\t\r".contains(byte));
            wholes.extend(vocabulary.iter().filter(is_space).map(<[u8]>::to_vec));
        }
        let early = vocabulary.early().iter().filter_map(|&token| {
            let (left, _) = vocabulary.parts(token)?;
            Some((token, 2 * i64::from(left) - 1))
        });
        let regex = |pattern: &String| Regex::new(pattern).expect("it is a pattern");
        Self {
            encoding,
            patterns: patterns(encoding).iter().map(regex).collect(),
            early: early.collect(),
            tokens,
            merges,
            wholes,
        }
    }

    /// Returns the encoding.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Returns the number of tokens of a text.
    #[must_use]
    pub fn count(&self, text: &str) -> usize {
        let text = match self.encoding {
            Encoding::Qwen2 | Encoding::Qwen35 => text.nfc().map(|(one, _)| one).collect(),
            Encoding::Gemma4 => text.replace('\u{2581}', " "),
            _ => text.to_owned(),
        };
        if self.encoding == Encoding::Gemma4 {
            return self.runs_apart(&text).iter().map(|piece| self.merged(piece)).sum();
        }
        let mut pieces = vec![&*text];
        for pattern in &self.patterns {
            pieces =
                pieces.into_iter().flat_map(|piece| matches_and_gaps(pattern, piece)).collect();
        }
        pieces.iter().map(|piece| self.merged(piece.as_bytes())).sum()
    }

    /// Splits as the merging of Gemma does first: runs of a space or a line end,
    /// and the bytes of characters that are no token.
    fn runs_apart<'t>(&self, text: &'t str) -> Vec<&'t [u8]> {
        let (mut pieces, mut at, mut start) = (Vec::new(), 0, 0);
        let bytes = text.as_bytes();
        while let Some(char) = text[at..].chars().next() {
            let mut end = at + char.len_utf8();
            if " \n\t\r".contains(char) {
                while bytes.get(end) == Some(&bytes[at])
                    && self.tokens.contains_key(&bytes[at..=end])
                {
                    end += 1;
                }
            }
            let is_known = self.tokens.contains_key(&bytes[at..at + char.len_utf8()]);
            if end > at + char.len_utf8() || !is_known {
                pieces.push(&bytes[start..at]);
                if is_known {
                    pieces.push(&bytes[at..end]);
                } else {
                    pieces.extend(bytes[at..end].chunks(1));
                }
                start = end;
            }
            at = end;
        }
        pieces.push(&bytes[start..]);
        pieces
    }

    /// Merges the pair of lowest rank, the leftmost among equals, until no pair
    /// merges. Returns the number of tokens.
    fn merged(&self, piece: &[u8]) -> usize {
        if piece.is_empty() {
            return 0;
        }
        if self.wholes.contains(piece) {
            return 1;
        }
        let order = |token: u32| self.early.get(&token).copied().unwrap_or(2 * i64::from(token));
        let mut tokens: Vec<u32> = piece.chunks(1).map(|byte| self.tokens[byte]).collect();
        loop {
            let found = tokens.windows(2).enumerate().filter_map(|(at, pair)| {
                let &merged = self.merges.get(&(pair[0], pair[1]))?;
                Some((order(merged), at, merged))
            });
            let Some((_, at, merged)) = found.min() else { return tokens.len() };
            tokens[at] = merged;
            tokens.remove(at + 1);
        }
    }
}

fn matches_and_gaps<'t>(pattern: &Regex, piece: &'t str) -> Vec<&'t str> {
    let (mut parts, mut end) = (Vec::new(), 0);
    for found in pattern.find_iter(piece) {
        let found = found.expect("it does not backtrack that far");
        parts.push(&piece[end..found.start()]);
        parts.push(found.as_str());
        end = found.end();
    }
    parts.push(&piece[end..]);
    parts.retain(|part| !part.is_empty());
    parts
}
