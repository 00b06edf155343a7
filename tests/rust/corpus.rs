//! Corpora in Rust: they pack as their chunks, are changed, and are kept in files.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};

use budgeteer::presets::{agentic_rag, context_gate};
use budgeteer::{
    Bm25, Chunk, Corpus, Document, ErrorKind, Estimate, Hybrid, Lexical, MinScore, Order, Overflow,
    Packer, Packing, RankBy, Ranking, Saved, Template, Vectors, Weights,
};
use proptest::prelude::*;

/// Chunks with different fields each.
fn chunks(size: usize, seed: usize) -> Vec<Chunk> {
    let words = ["green", "tea", "Tea.", "\u{7eff}\u{8336}", "caf\u{e9}", "policy", "rye\n"];
    let number = |n: usize| f64::from(u32::try_from(n).expect("a small number"));
    let chunk = |i: usize| {
        let length = (i * 31 + seed) % 17 * ((i * 7 + seed) % 5);
        let word = |j: usize| words[(i * j + seed) % words.len()];
        let text = (0..length).map(word).collect::<Vec<_>>().join(" ");
        let mut chunk = Chunk::new(text).source(format!("source {}", i % 3));
        if i.is_multiple_of(2) {
            chunk = chunk.title(words[i % words.len()]).metadata(r#"{ "b": [1.50, "\u00e9"]}"#);
            chunk.position = Some(number(size - i));
        }
        if i.is_multiple_of(3) {
            chunk = chunk.id(format!("<{i}>")).score(number(i * 13 % 7) / 8.0).kind("task");
            chunk.mtime = number(i * 5 % 11);
        }
        if i.is_multiple_of(5) { chunk.authority("developer").priority(0.5) } else { chunk }
    };
    (0..size).map(chunk).collect()
}

/// Returns another path for each test and process.
fn temporary(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("budgeteer-{}-{name}", std::process::id()))
}

/// Returns the corpus after saving it to a file and opening that.
fn reopened<D: Document + Sync>(corpus: &Corpus<D>, name: &str) -> Corpus<Saved> {
    let path = temporary(name);
    corpus.save(&path).expect("a corpus can be saved");
    let opened = Corpus::open(&path).expect("a corpus can be opened");
    std::fs::remove_file(path).expect("a file can be removed");
    opened
}

fn hybrid() -> RankBy {
    let weights = Weights { bm25: 0.7, embedding: 0.0, score: 0.3 };
    Hybrid { weights, ..Hybrid::default() }.into()
}

/// The lexical ranking with any of its signals, alone or in a hybrid one, with
/// or without the statistics of some chunks.
fn lexical() -> impl Strategy<Value = RankBy> {
    let signals = any::<(bool, bool, bool, bool, bool)>();
    let known = prop::option::of(0_usize..600);
    (signals, 0.0..5.0, known).prop_map(|(signals, k3, known)| {
        let (headings, links, feedback, has_stems, is_hybrid) = signals;
        let default = Lexical::default();
        let bm25 = if has_stems { default.bm25 } else { Bm25::default() };
        let statistics = known.map(|size| {
            let found = Corpus::new(chunks(size, size)).statistics(&bm25);
            Arc::new(found.expect("no file is damaged"))
        });
        let lexical = Lexical { bm25, k3, headings, links, feedback, statistics };
        let weights = Weights { bm25: 0.7, embedding: 0.0, score: 0.3 };
        if is_hybrid {
            Hybrid { weights, bm25: lexical, ..Hybrid::default() }.into()
        } else {
            lexical.into()
        }
    })
}

/// Returns what a packing says of its first chunks.
fn explained(packing: &Packing) -> Vec<String> {
    let count = packing.kept.len() + packing.dropped_count();
    (0..count.min(40)).map(|index| packing.explain(Some(index)).expect("a place")).collect()
}

fn packer(counter: usize, budget: usize) -> Packer {
    let packer = Packer::new(budget).reserve_tokens(1);
    match counter {
        0 => packer.estimate(Estimate::CharsDiv4),
        1 => packer.estimate(Estimate::Words),
        2 => packer.counter(|text: &str| text.len() / 3),
        _ => packer,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))] // each writes a file

    /// A corpus packs like the slice of its chunks, under all options, also
    /// from a file.
    #[test]
    fn a_corpus_packs_as_its_chunks(
        (seed, split) in (0_usize..1_000, 0_usize..1_000),
        size in prop_oneof![0_usize..9, 130_usize..400],
        budget in prop_oneof![0_usize..40, 0_usize..2_000],
        counter in 0_usize..5,
        ranking in prop_oneof![
            3 => Just(RankBy::default()),
            1 => Just(Ranking::Bm25.into()),
            1 => Just(Ranking::Keyword.into()),
            1 => Just(Ranking::Recency.into()),
            1 => Just(Ranking::Input.into()),
            1 => Just(Ranking::Score.into()),
            1 => Just(hybrid()),
            1 => (0.0..5.0, 0.0..=1.0).prop_map(|(k1, b)| Bm25 { k1, b, ..Bm25::default() }.into()),
            2 => lexical(),
        ],
        overflow in prop_oneof![
            Just(Overflow::Skip),
            Just(Overflow::Stop),
            Just(Overflow::TruncateEnd),
            Just(Overflow::TruncateMiddle),
        ],
        max_chunks in prop_oneof![Just(None), (0_usize..50).prop_map(Some)],
        min_score in prop_oneof![
            Just(None),
            Just(Some(MinScore::At(0.5))),
            Just(Some(MinScore::Auto)),
        ],
        order in prop_oneof![
            Just(Order::Rank),
            Just(Order::Input),
            Just(Order::Document),
            Just(Order::Edges),
            Just(Order::Sticky),
        ],
        template in prop_oneof![2 => Just(Template::plain()), 1 => Just(Template::xml())],
        (has_notice, dedupe) in (prop::bool::weighted(0.3), prop::bool::weighted(0.7)),
    ) {
        let chunks = chunks(size, seed);
        let mut corpus: Corpus<Chunk> = chunks[..split.min(size)].iter().cloned().collect();
        corpus.extend(chunks[split.min(size)..].to_vec());
        let opened = reopened(&corpus, "packs");
        let has_auto = matches!(ranking, RankBy::Lexical(_));
        let min_score = min_score.filter(|least| has_auto || *least != MinScore::Auto);
        let mut packer = packer(counter, budget)
            .ranking(ranking)
            .overflow(overflow)
            .order(order)
            .template(template)
            .dedupe(dedupe);
        if let Some(count) = max_chunks {
            packer = packer.max_chunks(count);
        }
        if let Some(score) = min_score {
            packer = packer.min_score(score);
        }
        if has_notice {
            packer = packer.notice("Left out: {count}.");
        }
        let expected = packer.pack("green tea \u{8336}", &chunks).unwrap();
        for found in [
            packer.pack_corpus("green tea \u{8336}", &corpus).unwrap(),
            packer.pack_corpus("green tea \u{8336}", &opened).unwrap(),
        ] {
            prop_assert_eq!(&expected, &found);
            prop_assert_eq!(explained(&expected), explained(&found));
        }
        let next = packer.pack_after(&expected, "rye policy", &chunks);
        let found = packer.pack_corpus_after(&expected, "rye policy", &corpus);
        prop_assert_eq!(order == Order::Sticky, next.is_ok());
        prop_assert_eq!(next, found);
    }

    /// The same holds for presets, which need more than text and title, and for
    /// vectors.
    #[test]
    fn presets_pack_a_corpus(seed in 0_usize..1_000, size in 0_usize..200, budget in 0_usize..300) {
        let chunks = chunks(size, seed);
        let corpus = Corpus::new(&chunks);
        let opened = reopened(&corpus, "presets");
        for packer in [agentic_rag(budget), context_gate(budget, 3)] {
            let expected = packer.pack("green tea", &chunks).unwrap();
            prop_assert_eq!(&expected, &packer.pack_corpus("green tea", &corpus).unwrap());
            prop_assert_eq!(&expected, &packer.pack_corpus("green tea", &opened).unwrap());
        }
        let numbers: Vec<f32> = [-1.5, 0.5, 2.5, -0.5, 1.5].into_iter().cycle().take(2 * size).collect();
        let vectors = Vectors::new(&[0.5, 1.0], &numbers).unwrap();
        let packer = Packer::new(budget).ranking(Ranking::Embedding);
        let expected = packer.pack_with_vectors("tea", &chunks, vectors).unwrap();
        let found = packer.pack_corpus_with_vectors("tea", &corpus, vectors).unwrap();
        prop_assert_eq!(expected, found);
    }
}

proptest! {
    /// No chunk with a keyword is missing from the candidates.
    #[test]
    fn keywords_are_found_by_an_index(
        texts in prop::collection::vec(prop::collection::vec(0_usize..30, 0..6), 0..60),
        query in prop::collection::vec(0_usize..30, 0..5),
        split in 0_usize..60,
    ) {
        let words = [
            "tea", "Tea.", "TEA-pot", "e-mail", "(e-mail)", "don't", "DON'T!", "c++", "**", "C++,",
            "\u{391}\u{3a3}", "\u{3b1}\u{3c2}", "\u{3b1}\u{3c3}", "\u{391}\u{3a3}.", "\u{130}x", "i\u{307}X",
            "\u{212a}elvin", "kelvin", "\u{7eff}\u{8336}", "\u{7eff}\u{8336}\u{3002}\u{8336}", "\u{8336}a",
            "re-do", "to-be", "cafe\u{301}", "-\u{301}tea", "\u{301}tea", "\u{24b6}b", "x2", "snake_case", "\u{a0}",
        ];
        let text = |places: &Vec<usize>| {
            places.iter().map(|&place| words[place]).collect::<Vec<_>>().join(" ")
        };
        let chunk = |places: &Vec<usize>| match places.split_first() {
            Some((&title, rest)) if title % 3 == 0 => Chunk::new(text(&rest.to_vec())).title(words[title]),
            _ => Chunk::new(text(places)),
        };
        let chunks: Vec<Chunk> = texts.iter().map(chunk).collect();
        let mut corpus = Corpus::new(&chunks[..split.min(chunks.len())]);
        corpus.append(&chunks[split.min(chunks.len())..]);
        for ranking in [Ranking::Keyword, Ranking::Input] {
            let packer = Packer::new(40).ranking(ranking).estimate(Estimate::CharsDiv4);
            let expected = packer.pack(&text(&query), &chunks).unwrap();
            prop_assert_eq!(expected, packer.pack_corpus(&text(&query), &corpus).unwrap());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))] // each writes files

    /// After any changes, saved and opened between them, a corpus packs as a new
    /// one of its chunks.
    #[test]
    fn a_changed_corpus_packs_as_a_new_one(
        (seed, size) in (0_usize..1_000, prop_oneof![0_usize..9, 130_usize..300]),
        changes in prop::collection::vec((0_usize..4, 0_usize..1_000), 1..8),
        budget in prop_oneof![0_usize..40, 0_usize..2_000],
        counter in 0_usize..5,
        ranking in prop_oneof![
            Just(RankBy::default()),
            lexical(),
            Just(Ranking::Bm25.into()),
            Just(Ranking::Keyword.into()),
            Just(Ranking::Recency.into()),
            Just(Ranking::Score.into()),
        ],
    ) {
        let tagged = |from: usize, count: usize, seed: usize| {
            let chunk = |(i, chunk): (usize, Chunk)| match i % 7 {
                0 => Chunk { id: None, ..chunk },
                _ => chunk.id((from + i).to_string()),
            };
            chunks(count, seed).into_iter().enumerate().map(chunk).collect::<Vec<_>>()
        };
        let mut expected = tagged(0, size, seed);
        let mut corpus: Corpus<Saved> = expected.iter().cloned().map(Saved::from).collect();
        let mut next = size;
        for (step, (change, number)) in changes.into_iter().enumerate() {
            let is_meant = |i: usize| (i * 31 + number).is_multiple_of(1 + number % 9);
            match change {
                0 => {
                    let new = tagged(next, number % 50, number);
                    next += new.len();
                    expected.extend(new.iter().cloned());
                    corpus.append(new.into_iter().map(Saved::from));
                }
                1 => {
                    let ids: Vec<_> = expected.iter().filter_map(|chunk| chunk.id.clone()).collect();
                    let ids = ids.into_iter().enumerate().filter(|(i, _)| is_meant(*i));
                    let ids: Vec<String> = ids.map(|(_, id)| id).collect();
                    corpus.remove(&ids).unwrap();
                    expected.retain(|chunk| chunk.id.as_ref().is_none_or(|id| !ids.contains(id)));
                }
                2 => {
                    let mut new = Vec::new();
                    let others = chunks(expected.len(), number);
                    for (i, (old, other)) in expected.iter_mut().zip(others).enumerate() {
                        if old.id.is_some() && is_meant(i) {
                            *old = Chunk { id: old.id.take(), ..other };
                            new.push(Saved::from(old.clone()));
                        }
                    }
                    new.reverse();
                    corpus.replace(new).unwrap();
                }
                _ => corpus = reopened(&corpus, &format!("changed-{step}")),
            }
            prop_assert_eq!(expected.len(), corpus.len());
        }
        let found: Vec<Chunk> = corpus.chunks().iter().map(Saved::to_chunk).collect();
        prop_assert_eq!(&expected, &found);
        let packer = packer(counter, budget).ranking(ranking);
        let query = "green tea \u{8336}";
        let packing = packer.pack(query, &expected).unwrap();
        for corpus in [corpus, Corpus::new(expected.into_iter().map(Saved::from))] {
            let found = packer.pack_corpus(query, &corpus).unwrap();
            prop_assert_eq!(&packing, &found);
            prop_assert_eq!(explained(&packing), explained(&found));
        }
    }
}

/// A change that is refused names what is wrong, and changes nothing.
#[test]
fn nothing_is_packed_of_an_empty_corpus() {
    let corpus = Corpus::new(Vec::<Chunk>::new());
    for packer in [Packer::new(9), Packer::new(9).estimate(Estimate::Words)] {
        let packing = packer.pack_corpus("tea", &corpus).unwrap();
        assert_eq!(("", 0, 0), (&*packing.text, packing.kept.len(), packing.dropped.len()));
    }
}

#[test]
fn a_refused_change_changes_nothing() {
    let tea = |id: &str| Chunk::new("tea").id(id);
    let before = vec![tea("a"), tea("b"), tea("b"), Chunk::new("rye")];
    let mut corpus = Corpus::new(before.clone());
    let refused = |error: Result<(), budgeteer::Error>, message: &str| {
        let error = error.unwrap_err();
        assert_eq!(ErrorKind::InvalidArgument, error.kind());
        assert_eq!(message, error.to_string());
    };
    let unknown = "ids has 7 that no chunk of the corpus has: \
                   \"t\", \"u\", \"v\", \"w\", \"x\" and 2 more";
    refused(corpus.remove(["a", "z", "y", "x", "w", "v", "u", "t"]), unknown);
    refused(
        corpus.replace([tea("a"), Chunk::new("tea")]),
        "chunks[1] has no id, and the chunk that it replaces is found by its id",
    );
    refused(corpus.replace([tea("a"), tea("a")]), "chunks[1] must not have the id of chunks[0]");
    refused(
        corpus.replace([tea("a"), tea("x")]),
        "no chunk of the corpus has the id of chunks[1], \"x\": append adds a chunk",
    );
    refused(
        corpus.replace([tea("b")]),
        "2 chunks of the corpus have the id of chunks[0], \"b\": remove them and append the new \
         ones",
    );
    assert_eq!(before, corpus.chunks());

    corpus.remove(["b"]).unwrap();
    corpus.remove([""; 0]).unwrap();
    assert_eq!([before[0].clone(), before[3].clone()], *corpus.chunks());
    refused(
        Corpus::new(["tea"]).remove(["a"]),
        "no chunk of the corpus has an id, and chunks are removed by id: make the corpus of chunks \
         that have one",
    );
}

/// A file keeps all fields of each chunk, and chunks added behind stay as they
/// are.
#[test]
fn a_file_keeps_what_chunks_say() {
    let mut chunks = chunks(60, 4);
    chunks[1].score = Some(f64::INFINITY);
    chunks[2].position = Some(1e300);
    chunks[3].source = "line\nquote \" back \\ \u{1} \u{7f} \u{1f600}".into();
    chunks[4].metadata =
        r#" {"kind": "note", "mtime": 3, "deep": [[{"a": null}], true, -0.5e-7]} "#.into();
    let mut opened = reopened(&Corpus::new(chunks.clone()), "says");
    opened.append([Chunk::new("More.").title("T").id("new").into()]);
    let twice = reopened(&opened, "says-twice");
    chunks[4].metadata = chunks[4].metadata.trim().into();
    chunks.push(Chunk::new("More.").title("T").id("new"));
    for corpus in [&opened, &twice] {
        assert_eq!(61, corpus.len());
        let found: Vec<Chunk> = corpus.chunks().iter().map(Saved::to_chunk).collect();
        assert_eq!(chunks, found);
    }
    let shown = format!("{opened:?} {:?}", opened.chunks());
    assert!(shown.starts_with("Corpus { len: 61, .. } [Saved { id: ") && !shown.contains("tea"));
    assert!(opened.get(61).is_none());
    assert!(size_of::<Saved>() <= 32, "a chunk of a file takes little memory");
    assert!(Corpus::<Chunk>::default().is_empty());
}

#[test]
fn bad_chunks_and_files_are_errors() {
    let path = temporary("bad");
    let refused = |chunk: Chunk| {
        let error = Corpus::new([Chunk::new("a"), chunk]).save(&path).unwrap_err();
        assert_eq!(ErrorKind::InvalidArgument, error.kind());
        assert!(!path.exists());
        error.to_string()
    };
    for metadata in
        ["3", "[]", "{", "{}}", r#"{"a": 01}"#, r#"{"a": Infinity}"#, r#"{"a"}"#, "{'a': 1}"]
    {
        let message = refused(Chunk::new("b").metadata(metadata));
        assert_eq!("chunks[1].metadata must be a JSON object to be saved", message);
    }
    let deep = format!("{{\"a\": {}{}}}", "[".repeat(9_999), "]".repeat(9_999));
    refused(Chunk::new("b").metadata(deep));
    let message = refused(Chunk::new("b").score(f64::NAN));
    assert_eq!("chunks[1].score must be a number, not NaN", message);

    let corpus = Corpus::new([Chunk::new("a"), Chunk::new("b").score(f64::NAN)]);
    let error = Packer::new(9).ranking(Ranking::Score).pack_corpus("a", &corpus).unwrap_err();
    assert_eq!("chunks[1].score must be a number, not NaN", error.to_string());
    let error = Packer::new(9).min_score(f64::NAN).pack_corpus("a", &corpus).unwrap_err();
    assert_eq!(ErrorKind::InvalidArgument, error.kind());

    std::fs::write(&path, b"budgeteer corpus").unwrap();
    assert_eq!(ErrorKind::Corpus, Corpus::open(&path).unwrap_err().kind());
    std::fs::remove_file(&path).unwrap();
    assert_eq!(
        ErrorKind::Io(std::io::ErrorKind::NotFound),
        Corpus::open(&path).unwrap_err().kind()
    );
}

/// Many threads pack while one appends; each sees all of an addition or none of
/// it.
#[test]
fn threads_share_a_corpus() {
    let all = chunks(600, 3);
    let corpus = RwLock::new(Corpus::new(&all[..300]));
    let packer = Packer::new(200).ranking(Ranking::Score);
    let expected = [300, 450, 600].map(|size| packer.pack("tea", &all[..size]).unwrap());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let found = packer.pack_corpus("tea", &corpus.read().unwrap()).unwrap();
                    assert!(expected.contains(&found));
                }
            });
        }
        for from in [300, 450] {
            corpus.write().unwrap().append(&all[from..from + 150]);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(expected[2], packer.pack_corpus("tea", &corpus.read().unwrap()).unwrap());
}

/// A text that panics leaves the corpus as it was.
#[test]
fn a_panic_leaves_a_corpus_whole() {
    struct Fussy(&'static str);
    impl Document for Fussy {
        fn text(&self) -> &str {
            assert!(!self.0.is_empty(), "nothing to say");
            self.0
        }
    }
    let mut corpus = Corpus::new([Fussy("Green tea."), Fussy("Rye.")]);
    let mut append = || corpus.append([Fussy("Black tea."), Fussy("")]);
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(&mut append)).unwrap_err();
    assert_eq!((2, 2), (corpus.len(), corpus.chunks().len()));
    corpus.append([Fussy("White tea.")]);
    let packing = Packer::new(99).pack_corpus("white", &corpus).unwrap();
    assert_eq!("White tea.\n\nGreen tea.\n\nRye.", packing.text);
}

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases").join(name)
}

/// A corpus that Python saved is read here, and written back as it was.
#[test]
fn files_of_python_are_read() {
    let corpus = Corpus::open(case("python.corpus")).unwrap();
    let found: Vec<Chunk> = corpus.chunks().iter().map(Saved::to_chunk).collect();
    let mut chunk = Chunk::new("Black tea is strong.").title("Black").id("b7").source("tea.md");
    chunk = chunk.score(0.5).kind("note").authority("tool").priority(2.0);
    chunk.mtime = 1_700_000_000.5;
    chunk.position = Some(4.0);
    chunk.metadata =
        "{\"authority\":\"tool\",\"index\":4,\"kind\":\"note\",\"mtime\":1700000000.5,\
        \"nested\":{\"a\":[],\"\u{e9}\":[1,true,null]},\"priority\":2}"
            .into();
    let mut mapping = Chunk::new("Caf\u{e9} \u{8336}").title("Drinks").id("12").score(1.0);
    mapping = mapping.kind("task").source("a \"b\"");
    mapping.metadata = "{\"page\":3}".into();
    assert_eq!(vec![Chunk::new("Green tea is mild."), chunk, mapping], found);
    let path = temporary("python");
    corpus.save(&path).unwrap();
    assert_eq!(std::fs::read(case("python.corpus")).unwrap(), std::fs::read(&path).unwrap());
    std::fs::remove_file(path).unwrap();
}

/// A corpus that is saved here is the one that Python's tests read.
#[test]
fn files_for_python_are_written() {
    let mut chunk =
        Chunk::new("Black tea.").title("Black").id("b7").source("t\u{e9}.md").score(0.5);
    chunk =
        chunk.kind("note").authority("tool").priority(2.0).metadata(r#"{"page": 3, "x": 1e-7}"#);
    chunk.mtime = 1_700_000_000.5;
    chunk.position = Some(4.0);
    let corpus =
        Corpus::new([Chunk::new("Green tea is mild."), chunk, Chunk::new("Rye.").title("Bread")]);
    let path = temporary("rust");
    corpus.save(&path).unwrap();
    let found = std::fs::read(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    assert_eq!(std::fs::read(case("rust.corpus")).unwrap(), found);
}

/// A corpus remembers the scores and times of its chunks, until they change.
#[test]
fn what_chunks_were_asked_once_is_asked_again_when_they_change() {
    let chunk = |id: &str, score: f64, mtime: f64| {
        let chunk = Chunk::new(format!("Tea of {id}.")).id(id).score(score);
        Chunk { mtime, ..chunk }
    };
    let mut corpus = Corpus::new([chunk("a", 0.1, 3.0), chunk("b", 0.2, 2.0)]);
    let order = |corpus: &Corpus<Chunk>, ranking: Ranking| {
        let packing = Packer::new(100).ranking(ranking).pack_corpus("", corpus).unwrap();
        let ids = packing.kept.iter().map(|kept| corpus.get(kept.index).unwrap().id.as_deref());
        ids.collect::<Option<String>>()
    };
    let assert_orders = |corpus: &Corpus<Chunk>, by_score: &str, by_time: &str| {
        for (ranking, expected) in [(Ranking::Score, by_score), (Ranking::Recency, by_time)] {
            assert_eq!(Some(expected), order(corpus, ranking).as_deref());
        }
    };
    assert_orders(&corpus, "ba", "ab");
    corpus.append([chunk("c", 0.15, 2.5)]);
    assert_orders(&corpus, "bca", "acb");
    corpus.replace([chunk("a", 0.9, 0.5)]).unwrap();
    assert_orders(&corpus, "abc", "cba");
    corpus.remove(["b"]).unwrap();
    assert_orders(&corpus, "ac", "ca");
}

#[test]
fn an_index_has_figures() {
    let texts = ["Green tea.", "t\u{e9}", ""];
    let corpus = Corpus::new(texts);
    assert_eq!((3, 12), (corpus.index().len(), corpus.index().total_chars()));
    assert_eq!([Some(&texts[1]), None], [1, 3].map(|index| corpus.get(index)));
    // Three words, each with a place in the table and a list.
    let bytes = corpus.index().postings_bytes();
    assert!((3 * 4..1_000).contains(&bytes), "{bytes}");
    let more = Corpus::new((0..500).map(|at| format!("word{at} tea"))).index().postings_bytes();
    assert!(more > 500 * 8, "{more}");
}
