//! Exact counting of 5,000 chunks of 800 bytes, and packing by it.
//!
//! What a process remembers of pretokens stays: each figure is of texts that
//! were counted before. `bench_count.py` measures the first time.
//!
//! Run with `cargo bench --bench count`.

use std::fs;
use std::path::{Path, PathBuf};

use budgeteer::{Encoding, Exact, Packer, TokenCounter};
use divan::counter::BytesCount;
use divan::{Bencher, black_box};

const ENCODINGS: &[Encoding] = Encoding::ALL;

const QUERY: &str = "which exception does the parser raise for an invalid argument in the \
                     configuration file";

fn main() {
    divan::main();
}

/// Prose and code: the documents and sources of this repository.
fn real_text() -> String {
    fn find(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("the folder is there") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                find(&path, found);
            } else if path.extension().is_some_and(|end| end == "md" || end == "py" || end == "rs")
            {
                found.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found: Vec<_> =
        ["README.md", "DECISIONS.md", "CHANGELOG.md"].iter().map(|name| root.join(name)).collect();
    for folder in ["rust", "python", "examples"] {
        find(&root.join(folder), &mut found);
    }
    found.sort();
    found.iter().map(|path| fs::read_to_string(path).expect("it is UTF-8")).collect()
}

/// Chunks at different places of the text, as `bench_pack.py` cuts them.
fn texts(count: usize) -> Vec<String> {
    const BYTES: usize = 800;
    let text = real_text();
    let last = text.len() - BYTES;
    let boundary = |at: usize| (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    (0..count)
        .map(|i| {
            let start = boundary(i * 797 % last);
            text[start..boundary(start + BYTES)].to_owned()
        })
        .collect()
}

fn bytes(texts: &[String]) -> BytesCount {
    BytesCount::new(texts.iter().map(String::len).sum::<usize>())
}

fn count_all(bencher: Bencher<'_, '_>, counter: &Exact) {
    let texts = texts(5_000);
    bencher
        .counter(bytes(&texts))
        .bench(|| black_box(&texts).iter().map(|text| counter.count(text)).sum::<usize>());
}

#[divan::bench(args = ENCODINGS)]
fn count(bencher: Bencher<'_, '_>, encoding: Encoding) {
    count_all(bencher, &Exact::new(encoding).without_cache());
}

#[divan::bench(args = ENCODINGS)]
fn count_cached(bencher: Bencher<'_, '_>, encoding: Encoding) {
    count_all(bencher, &Exact::new(encoding));
}

#[divan::bench(args = ENCODINGS)]
fn count_till_limit_of_64(bencher: Bencher<'_, '_>, encoding: Encoding) {
    let (texts, counter) = (texts(5_000), Exact::new(encoding).without_cache());
    bencher.bench(|| {
        black_box(&texts)
            .iter()
            .filter_map(|text| counter.count_till_limit(text, 64))
            .sum::<usize>()
    });
}

#[divan::bench(args = ENCODINGS)]
fn pack_500(bencher: Bencher<'_, '_>, encoding: Encoding) {
    let (texts, packer) = (texts(500), Packer::new(8_000).counter(encoding));
    bencher
        .counter(bytes(&texts))
        .with_inputs(|| Exact::new(encoding).clear_cache())
        .bench_values(|()| packer.pack(black_box(QUERY), black_box(&texts)));
}

#[divan::bench(args = ENCODINGS)]
fn pack_500_cached(bencher: Bencher<'_, '_>, encoding: Encoding) {
    let (texts, packer) = (texts(500), Packer::new(8_000).counter(encoding));
    bencher.counter(bytes(&texts)).bench(|| packer.pack(black_box(QUERY), black_box(&texts)));
}

/// Texts without a place to split, or with nothing else: twice the length
/// should take twice the time.
mod hostile {
    use budgeteer::{Encoding, Exact, TokenCounter};
    use divan::{Bencher, black_box};

    const LENGTHS: [usize; 2] = [100_000, 1_000_000];

    fn count(bencher: Bencher<'_, '_>, length: usize, next: impl FnMut() -> char) {
        let mut chars = std::iter::repeat_with(next);
        let text: String = chars.by_ref().take(length).collect();
        let counter = Exact::new(Encoding::O200k).without_cache();
        bencher.bench(|| counter.count(black_box(&text)));
    }

    /// A fixed linear congruential sequence.
    fn random(choices: u32) -> impl FnMut() -> u32 {
        let mut state = 1_u32;
        move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % choices
        }
    }

    #[divan::bench(args = LENGTHS)]
    fn equal_characters(bencher: Bencher<'_, '_>, length: usize) {
        count(bencher, length, || 'a');
    }

    #[divan::bench(args = LENGTHS)]
    fn random_letters(bencher: Bencher<'_, '_>, length: usize) {
        let mut random = random(26);
        count(bencher, length, || char::from_u32(u32::from('a') + random()).unwrap_or('a'));
    }

    #[divan::bench(args = LENGTHS)]
    fn random_han(bencher: Bencher<'_, '_>, length: usize) {
        let mut random = random(20_000);
        count(bencher, length, || char::from_u32(0x4e00 + random()).unwrap_or('a'));
    }

    #[divan::bench(args = LENGTHS)]
    fn whitespace(bencher: Bencher<'_, '_>, length: usize) {
        count(bencher, length, || ' ');
    }
}
