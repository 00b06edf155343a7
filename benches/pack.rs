//! Packing at the sizes that users have: 500 to 50,000 chunks of 800
//! characters.
//!
//! Run with `cargo bench --bench pack`.

use budgeteer::{
    Bm25, Corpus, Estimate, Lexical, Overflow, Packer, bm25_scores, keyword_scores, lexical_scores,
};
use divan::counter::BytesCount;
use divan::{Bencher, black_box};

const CHUNKS: [usize; 3] = [500, 5_000, 50_000];

const QUERY: &str = "who was the first president of the association which published journal of \
                     psychotherapy integration";

/// Words that share their first letters with keywords of the query, as real
/// text does, and one that is a keyword.
const WORDS: [&str; 16] = [
    "the",
    "present",
    "of",
    "journey",
    "assorted",
    "psychology",
    "fires",
    "public",
    "integral",
    "history",
    "was",
    "a",
    "society",
    "president",
    "and",
    "city",
];

fn main() {
    divan::main();
}

/// The same texts in each run: a fixed linear congruential sequence.
fn texts(count: usize) -> Vec<String> {
    let mut state = 1_u32;
    let mut word = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        WORDS[(state >> 28) as usize]
    };
    let text = |_| {
        let mut text = String::with_capacity(820);
        while text.len() < 800 {
            text.push_str(word());
            text.push(' ');
        }
        text
    };
    (0..count).map(text).collect()
}

fn bytes(texts: &[String]) -> BytesCount {
    BytesCount::new(texts.iter().map(String::len).sum::<usize>())
}

#[divan::bench(args = CHUNKS)]
fn pack(bencher: Bencher<'_, '_>, chunks: usize) {
    let (texts, packer) = (texts(chunks), Packer::new(8_000));
    bencher.counter(bytes(&texts)).bench(|| packer.pack(black_box(QUERY), black_box(&texts)));
}

#[divan::bench(args = CHUNKS)]
fn pack_corpus(bencher: Bencher<'_, '_>, chunks: usize) {
    let (texts, packer) = (texts(chunks), Packer::new(8_000));
    let corpus = Corpus::new(&texts);
    let pack = || packer.pack_corpus(black_box(QUERY), black_box(&corpus));
    bencher.counter(bytes(&texts)).bench(pack);
}

#[divan::bench(args = CHUNKS)]
fn pack_words_and_truncate(bencher: Bencher<'_, '_>, chunks: usize) {
    let packer = Packer::new(8_000).estimate(Estimate::Words).overflow(Overflow::TruncateMiddle);
    let texts = texts(chunks);
    bencher.counter(bytes(&texts)).bench(|| packer.pack(black_box(QUERY), black_box(&texts)));
}

#[divan::bench(args = CHUNKS)]
fn score_bm25(bencher: Bencher<'_, '_>, chunks: usize) {
    let texts = texts(chunks);
    let score = || bm25_scores(black_box(QUERY), black_box(&texts), &Bm25::default());
    bencher.counter(bytes(&texts)).bench(score);
}

#[divan::bench(args = CHUNKS)]
fn score_lexical(bencher: Bencher<'_, '_>, chunks: usize) {
    let texts = texts(chunks);
    let score = || lexical_scores(black_box(QUERY), black_box(&texts), &Lexical::default());
    bencher.counter(bytes(&texts)).bench(score);
}

#[divan::bench(args = CHUNKS)]
fn score(bencher: Bencher<'_, '_>, chunks: usize) {
    let texts = texts(chunks);
    bencher.counter(bytes(&texts)).bench(|| keyword_scores(black_box(QUERY), black_box(&texts)));
}
