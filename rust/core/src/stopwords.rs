//! Stopwords: words that say nothing about relevance.

use std::collections::HashSet;

use crate::terms::{self, for_each_term_of};
use crate::text::Text;

mod table;

/// Which words say nothing about relevance.
///
/// Whether a word is one is asked of its lowercase and before it is stemmed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stopwords(Kind);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    English,
    None,
    Listed(&'static [&'static str]),
    Own(HashSet<Vec<u8>>),
}

impl Stopwords {
    /// Returns no stopwords: every word counts.
    #[must_use]
    pub fn none() -> Self {
        Self(Kind::None)
    }

    /// Returns the stopwords of a language, by its English name in lowercase, or
    /// None where there are none.
    ///
    /// There are lists of Snowball's for Danish, Dutch, Finnish, French, German,
    /// Hungarian, Indonesian, Irish, Italian, Norwegian, Portuguese, Russian,
    /// Sesotho, Spanish and Swedish, and one of our own for English, the default.
    #[must_use]
    pub fn of(language: &str) -> Option<Self> {
        if language == "english" {
            return Some(Self::default());
        }
        let (_, words) = table::STOPWORDS.iter().find(|(name, _)| *name == language)?;
        Some(Self(Kind::Listed(words)))
    }

    /// Returns the caller's own stopwords; of one with an apostrophe or a hyphen
    /// in it each part.
    #[must_use]
    pub fn words<'a>(words: impl IntoIterator<Item = Text<'a>>) -> Self {
        let mut own = HashSet::new();
        for word in words {
            for_each_term_of(word, |term| {
                own.insert(term.to_vec());
            });
        }
        Self(Kind::Own(own))
    }

    /// Returns whether `term` is one.
    pub(crate) fn contains(&self, term: &[u8]) -> bool {
        match &self.0 {
            Kind::English => terms::is_stopword(term),
            Kind::None => false,
            Kind::Listed(words) => words.binary_search_by(|word| word.as_bytes().cmp(term)).is_ok(),
            Kind::Own(words) => words.contains(term),
        }
    }

    /// Returns the English stopwords that are none of these.
    pub(crate) fn english_besides(&self) -> impl Iterator<Item = &'static [u8]> {
        let english = if self.0 == Kind::English { &[][..] } else { &terms::STOPWORDS[..] };
        english.iter().map(|word| word.as_bytes()).filter(|word| !self.contains(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The binary search needs each list sorted.
    #[test]
    fn lists_are_sorted() {
        assert!(table::STOPWORDS.is_sorted());
        assert!(table::STOPWORDS.iter().all(|(_, words)| words.is_sorted() && !words.is_empty()));
    }

    #[test]
    fn own_words_are_terms() {
        let own = Stopwords::words(["Don't".into(), "ΟΔΟΣ".into()]);
        assert!(["don", "t", "οδοσ"].iter().all(|word| own.contains(word.as_bytes())));
        assert!(!own.contains(b"the"));
        assert_eq!(terms::STOPWORDS.len() - 1, own.english_besides().count());
        assert_eq!(0, Stopwords::default().english_besides().count());
    }
}
