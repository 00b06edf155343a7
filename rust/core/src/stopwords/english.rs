//! English stopwords, one list for BM25 and a shorter one for keywords.

/// Words that are not terms of BM25: those that are not keywords either, the
/// other words of Snowball's list, and the parts of its contractions (`don't`
/// gives `don` and `t`).
#[rustfmt::skip]
pub(super) static TERMS: [&str; 151] = [
    "a", "about", "above", "after", "again", "against", "all", "also", "am", "an", "and", "any",
    "are", "aren", "as", "at", "be", "because", "been", "before", "being", "below", "between",
    "both", "but", "by", "can", "cannot", "could", "couldn", "did", "didn", "do", "does", "doesn",
    "doing", "down", "during", "each", "every", "few", "for", "from", "further", "had", "hadn",
    "has", "hasn", "have", "haven", "having", "he", "her", "here", "hers", "herself", "him",
    "himself", "his", "how", "i", "if", "in", "into", "is", "isn", "it", "its", "itself", "just",
    "ll", "may", "me", "might", "more", "most", "mustn", "my", "myself", "no", "nor", "not", "of",
    "off", "on", "once", "only", "or", "other", "ought", "our", "ours", "ourselves", "out",
    "over", "own", "re", "s", "same", "shan", "she", "should", "shouldn", "so", "some", "such",
    "t", "than", "that", "the", "their", "theirs", "them", "themselves", "then", "there", "these",
    "they", "this", "those", "through", "to", "too", "under", "until", "up", "us", "ve", "very",
    "was", "wasn", "we", "were", "weren", "what", "when", "where", "which", "while", "who",
    "whom", "why", "will", "with", "would", "wouldn", "you", "your", "yours", "yourself",
    "yourselves",
];

/// Words that are not keywords: the list of theaios-context-router 0.2.2, whose
/// ranking the keyword overlap reproduces.
#[rustfmt::skip]
pub(super) static KEYWORDS: [&str; 96] = [
    "a", "about", "above", "after", "all", "also", "an", "and", "any", "are", "as", "at", "be",
    "been", "before", "being", "below", "between", "both", "but", "by", "can", "could", "did",
    "do", "does", "during", "each", "every", "few", "for", "from", "had", "has", "have", "he",
    "her", "here", "him", "how", "i", "if", "in", "into", "is", "it", "its", "just", "may", "me",
    "might", "more", "most", "my", "no", "not", "of", "on", "only", "or", "other", "our", "out",
    "own", "same", "she", "should", "so", "some", "such", "than", "that", "the", "their", "them",
    "then", "there", "they", "this", "through", "to", "too", "up", "us", "very", "was", "we",
    "what", "when", "where", "which", "who", "will", "with", "would", "your",
];
