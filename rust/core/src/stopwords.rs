//! Stopwords: words that do not count for relevance.
//!
//! All lists are here. BM25 and keyword overlap split texts in different ways,
//! and each has its own English list: see `english`. The lists of other
//! languages are generated.

use std::collections::HashSet;

mod english;
mod table;

/// The words that do not count for relevance.
///
/// A word is compared in lowercase, before it is stemmed.
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
    /// Returns the empty list: every word counts.
    #[must_use]
    pub fn none() -> Self {
        Self(Kind::None)
    }

    /// Returns the stopwords of a language, by its English name in lowercase,
    /// or None for a language without a list.
    ///
    /// The lists are Snowball's for Danish, Dutch, Finnish, French, German,
    /// Hungarian, Indonesian, Irish, Italian, Norwegian, Portuguese, Russian,
    /// Sesotho, Spanish and Swedish, and our own for English, the default.
    #[must_use]
    pub fn of(language: &str) -> Option<Self> {
        if language == "english" {
            return Some(Self::default());
        }
        let (_, words) = table::STOPWORDS.iter().find(|(name, _)| *name == language)?;
        Some(Self(Kind::Listed(words)))
    }

    /// Returns the caller's own stopwords, as terms.
    pub(crate) fn of_terms(terms: HashSet<Vec<u8>>) -> Self {
        Self(Kind::Own(terms))
    }

    /// Returns whether `term` is a stopword.
    pub(crate) fn contains(&self, term: &[u8]) -> bool {
        match &self.0 {
            Kind::English => is_english(term),
            Kind::None => false,
            Kind::Listed(words) => is_in(words, term),
            Kind::Own(words) => words.contains(term),
        }
    }

    /// Returns the English stopwords that are not in this list.
    pub(crate) fn english_besides(&self) -> impl Iterator<Item = &'static [u8]> {
        let english = if self.0 == Kind::English { &[][..] } else { &english::TERMS[..] };
        english.iter().map(|word| word.as_bytes()).filter(|word| !self.contains(word))
    }
}

/// Returns whether `term` is an English stopword of BM25.
pub(crate) fn is_english(term: &[u8]) -> bool {
    // The longest word has ten letters.
    term.len() <= 10 && is_in(&english::TERMS, term)
}

/// Returns whether `word`, lowercased and stripped, is a stopword of keyword
/// overlap.
pub(crate) fn is_no_keyword(word: &[u8]) -> bool {
    // The longest word has seven letters.
    word.len() <= 7 && is_in(&english::KEYWORDS, word)
}

/// Returns whether `words`, which are sorted, contain `word`.
fn is_in(words: &[&str], word: &[u8]) -> bool {
    words.binary_search_by(|stop| stop.as_bytes().cmp(word)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terms::for_each_term_of;

    /// The binary search needs each list sorted, and the length checks need the
    /// English ones short.
    #[test]
    fn lists_are_sorted() {
        assert!(table::STOPWORDS.is_sorted());
        assert!(table::STOPWORDS.iter().all(|(_, words)| words.is_sorted() && !words.is_empty()));
        for (words, longest) in [(&english::TERMS[..], 10), (&english::KEYWORDS[..], 7)] {
            assert!(words.is_sorted());
            assert!(words.iter().all(|word| word.len() <= longest));
        }
    }

    /// Each word of the longer list is one term, and the longer list has all
    /// words of the shorter.
    #[test]
    fn english_stopwords_are_terms() {
        for word in english::TERMS {
            let mut terms = Vec::new();
            for_each_term_of(word.into(), |term| terms.push(term.to_vec()));
            assert_eq!([word.as_bytes()], *terms);
        }
        assert!(english::KEYWORDS.iter().all(|word| is_english(word.as_bytes())));
    }

    #[test]
    fn own_words_are_terms() {
        let own = Stopwords::words(["Don't".into(), "ΟΔΟΣ".into()]);
        assert!(["don", "t", "οδοσ"].iter().all(|word| own.contains(word.as_bytes())));
        assert!(!own.contains(b"the"));
        assert_eq!(english::TERMS.len() - 1, own.english_besides().count());
        assert_eq!(0, Stopwords::default().english_besides().count());
    }
}
