//! The lexical ranking: its cases are Python's, and each of its options changes
//! what it says.
#![allow(clippy::unwrap_used)] // a case that cannot be read fails its test

#[path = "cases.rs"]
mod cases;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use budgeteer::{
    Bm25, Chunk, Corpus, Documents, ErrorKind, Estimate, Fusion, Hybrid, Lexical, Packer, Packing,
    Ranking, Statistics, Stemming, Stopwords, Weights, bm25_scores, lexical_scores,
};
use cases::{cases, list, number};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The weights of a hybrid ranking by words alone.
const BY_WORDS: Weights = Weights { bm25: 1.0, embedding: 0.0, score: 0.0 };

fn lexical(options: &Value) -> Lexical {
    let mut lexical = Lexical::default();
    for (name, value) in options.as_object().unwrap() {
        let is_on = value.as_bool();
        let amount = value.as_f64();
        match name.as_str() {
            "headings" => lexical.headings = is_on.unwrap(),
            "links" => lexical.links = is_on.unwrap(),
            "feedback" => lexical.feedback = is_on.unwrap(),
            "k1" => lexical.bm25.k1 = amount.unwrap(),
            "b" => lexical.bm25.b = amount.unwrap(),
            "k3" => lexical.k3 = amount.unwrap(),
            "stemming" => {
                lexical.bm25.stemming = value.as_str().map(|name| Stemming::of(name).unwrap());
            }
            "stopwords" => {
                let listed = |name| Stopwords::of(name).unwrap();
                lexical.bm25.stopwords = value.as_str().map_or_else(Stopwords::none, listed);
            }
            other => panic!("{other}"),
        }
    }
    lexical
}

fn chunks(case: &Value) -> Vec<Chunk> {
    let text = |chunk: &Value, name: &str| chunk[name].as_str().unwrap().to_owned();
    let read = |chunk: &Value| Chunk::new(text(chunk, "text")).title(text(chunk, "title"));
    list(&case["chunks"]).iter().map(read).collect()
}

fn explained(packing: &Packing) -> Vec<String> {
    let count = packing.kept.len() + packing.dropped_count();
    (0..count).map(|index| packing.explain(Some(index)).unwrap()).collect()
}

/// A list and a corpus, alone and in a hybrid ranking, have Python's scores to
/// the bit, its text and its sentences.
#[test]
fn rankings() {
    for case in list(&cases("lexical.json", "rankings")) {
        let (chunks, query) = (chunks(case), case["query"].as_str().unwrap());
        let answer = &case["answer"];
        let lexical = lexical(&case["options"]);
        let scores = lexical_scores(query, &chunks, &lexical).unwrap();
        let bits: Vec<_> = scores.iter().map(|score| format!("{:016x}", score.to_bits())).collect();
        assert_eq!(answer["scores"], json!(bits), "{case}");

        let mut packer = Packer::new(number(&case["max_tokens"])).estimate(Estimate::Words);
        if case["options"] != json!({}) {
            packer = packer.ranking(lexical.clone());
        }
        let mut corpus: Corpus<Chunk> = chunks[..chunks.len() / 2].iter().cloned().collect();
        corpus.extend(chunks[chunks.len() / 2..].to_vec());
        for packing in
            [packer.pack(query, &chunks).unwrap(), packer.pack_corpus(query, &corpus).unwrap()]
        {
            assert_eq!(answer["text"], packing.text, "{case}");
            assert_eq!(answer["explained"], json!(explained(&packing)), "{case}");
        }
        let hybrid = Hybrid { weights: BY_WORDS, bm25: lexical, ..Hybrid::default() };
        let packer = packer.ranking(hybrid);
        let of_list = packer.pack(query, &chunks).unwrap();
        let of_corpus = packer.pack_corpus(query, &corpus).unwrap();
        assert_eq!(of_list, of_corpus);
        assert_eq!(explained(&of_list), explained(&of_corpus));
        let parts = |said: Vec<String>| -> Vec<String> {
            let part = |line: String| line.split_once("Part of").map(|(_, part)| part.to_owned());
            said.into_iter().filter_map(part).collect()
        };
        let expected = answer["explained"].as_array().unwrap();
        let expected = expected.iter().map(|line| line.as_str().unwrap().to_owned()).collect();
        assert_eq!(parts(expected), parts(explained(&of_list)), "{case}");
    }
}

/// A number out of range is refused with Python's message, wherever it is used.
#[test]
fn refusals() {
    for case in list(&cases("lexical.json", "refusals")) {
        let lexical = lexical(&case["options"]);
        let hybrid = Hybrid { bm25: lexical.clone(), ..Hybrid::default() };
        for error in [
            lexical_scores("tea", &["tea"], &lexical).unwrap_err(),
            Packer::new(9).ranking(lexical).pack("tea", &["tea"]).unwrap_err(),
            Packer::new(9).ranking(hybrid).pack("tea", &["tea"]).unwrap_err(),
        ] {
            assert_eq!(ErrorKind::InvalidArgument, error.kind());
            // Numbers are written as each language does.
            let (expected, found) = (case["error"].as_str().unwrap(), error.to_string());
            assert_eq!(expected, found);
        }
    }
    let lexical = Lexical { k3: f64::NAN, ..Lexical::default() };
    let error = lexical_scores("tea", &["tea"], &lexical).unwrap_err();
    assert_eq!("k3 must be from 0 to 1000000, not NaN", error.to_string());
}

const QUERY: &str = "Where are Ada's books?";

fn library() -> [Chunk; 4] {
    [
        Chunk::new("It rains.").title("Weather"),
        Chunk::new("It is in Lyon.").title("Blue Library"),
        Chunk::new("Rye bread."),
        Chunk::new("Ada gave her books to the Blue Library."),
    ]
}

/// The default is the lexical ranking, whose parts are told.
#[test]
fn a_packing_tells_what_brought_a_chunk_in() {
    let (chunks, packer) = (library(), Packer::new(40));
    let corpus = Corpus::new(chunks.clone());
    for packing in
        [packer.pack(QUERY, &chunks).unwrap(), packer.pack_corpus(QUERY, &corpus).unwrap()]
    {
        let order: Vec<_> = packing.kept.iter().map(|kept| kept.index).collect();
        assert_eq!([3, 1, 0, 2], *order);
        assert_eq!(
            "Chunk 1 (score 0.63) was kept with 5 tokens, characters 41 to 55 of the text. Part \
             of its score by words: 0.38 linked from chunk 3 by its heading, 0.25 for words of \
             chunk 3, the best.",
            packing.explain(Some(1)).unwrap()
        );
        assert!(!packing.explain(Some(2)).unwrap().contains("Part of"));
    }
}

/// Each signal adds what is documented, where it is on.
#[test]
fn each_option_changes_its_own_part() {
    let off = Lexical { bm25: Lexical::default().bm25, ..Bm25::default().into() };
    let score = |lexical: &Lexical| lexical_scores(QUERY, &library(), lexical).unwrap();
    let plain = score(&off);
    assert_eq!(vec![0.0; 3], plain[..3].to_vec());

    let linked = score(&Lexical { links: true, ..off.clone() });
    assert_eq!(vec![0.0, 0.2 * plain[3], 0.0, plain[3]], linked);

    let fed = score(&Lexical { feedback: true, ..off.clone() });
    assert!(fed[1] > 0.0 && fed[3] > plain[3]);
    assert_eq!(vec![0.0, 0.0], vec![fed[0], fed[2]]);

    let headed = score(&Lexical { headings: true, ..off.clone() });
    assert_eq!(plain, headed);
    let titles = ["Ada's books", "Ada", "Weather"].map(|title| Chunk::new("x").title(title));
    let by_title =
        |headings| lexical_scores("Ada", &titles, &Lexical { headings, ..off.clone() }).unwrap();
    let (without, with) = (by_title(false), by_title(true));
    let idf = (1.0_f64 + 1.5 / 2.5).ln();
    // Two terms in the first heading, as s is a stopword.
    let share = (with[0] - without[0]) / idf;
    assert!((share - 0.5).abs() < 1e-12, "{share}");
    assert!((with[1] - without[1] - idf).abs() < 1e-12);

    let twice = |k3| {
        let lexical = Lexical { k3, ..off.clone() };
        lexical_scores("ada ada rye", &library(), &lexical).unwrap()
    };
    assert!((twice(3.0)[3] / twice(0.0)[3] - 1.6).abs() < 1e-12);
    assert_eq!(twice(3.0)[2].to_bits(), twice(0.0)[2].to_bits());
}

proptest! {
    /// Without its signals it has the bits of BM25.
    #[test]
    fn all_off_is_bm25(
        query in "([a-c]{1,2}[ ,.\u{8336}]){0,6}",
        texts in prop::collection::vec("([a-c]{1,3}[ \n,.\u{e9}]){0,9}", 0..8),
        (k1, b, has_stems) in (0.0..5.0, 0.0..=1.0, any::<bool>()),
    ) {
        let stemming = if has_stems { Stemming::of("english") } else { None };
        let bm25 = Bm25 { k1, b, stemming, ..Bm25::default() };
        let lexical = Lexical::from(bm25.clone());
        let bits = |scores: Vec<f64>| scores.into_iter().map(f64::to_bits).collect::<Vec<_>>();
        prop_assert_eq!(
            bits(bm25_scores(&query, &texts, &bm25).unwrap()),
            bits(lexical_scores(&query, &texts, &lexical).unwrap())
        );
    }

    /// A packing has the scores of the function, and the default is the named
    /// one.
    #[test]
    fn a_packing_has_the_scores_of_the_function(
        query in "([a-c]{1,2}[ ,.]){0,6}",
        texts in prop::collection::vec("([a-c]{1,3}[ \n,.]){0,9}", 0..8),
    ) {
        let packing = Packer::new(1_000).dedupe(false).pack(&query, &texts).unwrap();
        let scores = lexical_scores(&query, &texts, &Lexical::default()).unwrap();
        for kept in &packing.kept {
            prop_assert_eq!(Some(scores[kept.index]), kept.score);
        }
        let named = Packer::new(1_000).dedupe(false).ranking(Ranking::Lexical);
        prop_assert_eq!(packing, named.pack(&query, &texts).unwrap());
    }
}

#[test]
fn statistics_count_words_of_titles_and_chunks_of_stems() {
    let chunks = [
        Chunk::new("Teas, the tea. Brewing!").title("Tea"),
        Chunk::new("the brewed").title("Of rye"),
        Chunk::new(""),
    ];
    let never = AtomicBool::new(false);
    let of = |stemming, stopwords: &Stopwords| {
        Statistics::of_until(&Documents::new(&chunks), stemming, stopwords, &never)
    };
    let found = of(None, &Stopwords::none());
    let of_words = [("teas", 1), ("tea", 1), ("the", 2), ("brewing", 1), ("brewed", 1)];
    let of_words = of_words.into_iter().chain([("of", 1), ("rye", 1)]);
    let of_words = of_words.map(|(word, count)| (word.to_owned(), count));
    let expected = Statistics::new(None, Stopwords::none(), 3, 9, of_words).unwrap();
    assert_eq!(expected, found);

    let english = Stemming::of("english");
    let stopwords = Stopwords::of("english").unwrap();
    let of_stems = [("tea", 1), ("brew", 2), ("rye", 1)];
    let of_stems = of_stems.map(|(stem, count)| (stem.to_owned(), count));
    let expected = Statistics::new(english, stopwords.clone(), 3, 9, of_stems).unwrap();
    assert_eq!(expected, of(english, &stopwords));

    let stopped = Statistics::of_until(
        &Documents::new(&chunks),
        None,
        &Stopwords::none(),
        &AtomicBool::new(true),
    );
    assert_eq!(0, stopped.words());
}

/// Each part of a collection is scored as in the whole, by its statistics: how
/// many chunks have a word, and how long a chunk is on average.
#[test]
fn statistics_of_a_collection_score_its_parts() {
    let texts = ["Tea.", "Green tea with lemon.", "Rye", "A cup of black tea and no milk at all."];
    let plain = Bm25 { stemming: None, stopwords: Stopwords::none(), ..Bm25::default() };
    let of = |texts: &[&str]| {
        let never = AtomicBool::new(false);
        Statistics::of_until(&Documents::new(texts), None, &Stopwords::none(), &never)
    };
    let alone = |statistics: Option<Statistics>| Lexical {
        headings: false,
        links: false,
        feedback: false,
        statistics: statistics.map(Arc::new),
        ..Lexical::from(plain.clone())
    };
    let whole = lexical_scores("green tea", &texts, &alone(None)).unwrap();
    let parts = [of(&texts[..2]), of(&texts[2..])];
    for part in [&texts[..2], &texts[2..]] {
        let known = alone(Some(Statistics::merged(parts.clone()).unwrap()));
        let scores = lexical_scores("green tea", part, &known).unwrap();
        let place = texts.iter().position(|text| *text == part[0]).unwrap();
        assert_eq!(whole[place..place + 2], scores);
    }
    // Without words or chunks the average is that of the call.
    let empty = |chunks: u64, words| {
        let frequencies = [("tea".to_owned(), chunks.min(1))];
        Statistics::new(None, Stopwords::none(), chunks, words, frequencies).unwrap()
    };
    let scores =
        |chunks, words| lexical_scores("tea", &texts, &alone(Some(empty(chunks, words)))).unwrap();
    assert_eq!(scores(4, 16), scores(4, 0)); // its 16 words
    assert_ne!(scores(4, 16), scores(4, 1));
    assert_eq!(scores(0, 0), scores(0, 99));
}

/// Words that were cut or left out in different ways do not add up.
#[test]
fn statistics_of_different_words_are_not_merged() {
    let english = Stemming::of("english");
    let of = |stemming, stopwords| Statistics::new(stemming, stopwords, 1, 1, []).unwrap();
    let plain = || of(None, Stopwords::none());
    let others = [of(english, Stopwords::none()), of(None, Stopwords::of("english").unwrap())];
    for other in others {
        let error = Statistics::merged([plain(), other]).unwrap_err();
        assert_eq!(ErrorKind::InvalidArgument, error.kind());
    }
    assert_eq!(2, Statistics::merged([plain(), plain()]).unwrap().chunks());
    assert!(Statistics::merged([]).is_err());
}

/// The fusion that its authors published.
#[test]
fn reciprocal_ranks_have_their_parameters() {
    let weights = Weights { bm25: 1.0, embedding: 1.0, score: 0.0 };
    let fusion = Fusion::ReciprocalRank { k: 60.0 };
    let expected = Hybrid { weights, fusion, ..Hybrid::default() };
    assert_eq!(expected, Hybrid::reciprocal_rank());
}

/// Figures from elsewhere may be as large as there are.
#[test]
fn statistics_stay_at_the_largest_number() {
    let part = |n| Statistics::new(None, Stopwords::none(), n, n, [("a".into(), n)]).unwrap();
    let all = Statistics::merged([part(u64::MAX), part(1)]).unwrap();
    assert_eq!((u64::MAX, u64::MAX), (all.chunks(), all.words()));
    assert_eq!(u64::MAX, all.frequency("a"));
}

/// In so many chunks that a word of all of them weighs nothing, the strongest words
/// of the best chunk do, and add nothing.
#[test]
fn words_that_weigh_nothing_have_a_score() {
    let texts = ["green tea rye", "rye green pot", "green rye"];
    let words = ["green", "rye", "pot"].map(|word| (word.to_owned(), 1 << 53));
    let words = words.into_iter().chain([("tea".to_owned(), 2)]);
    let statistics = Statistics::new(None, Stopwords::none(), 1 << 53, 36, words).unwrap();
    let bm25 = Bm25 { stopwords: Stopwords::none(), ..Bm25::default() };
    let ranking =
        Lexical { bm25, statistics: Some(Arc::new(statistics)), ..Lexical::from(Bm25::default()) };
    let fed = Lexical { feedback: true, ..ranking.clone() };

    let expected = lexical_scores("tea", &texts, &ranking).unwrap();

    assert!(expected[0] > 0.0);
    assert_eq!(expected, lexical_scores("tea", &texts, &fed).unwrap());
    let corpus = Corpus::new(texts);
    let packer = |ranking: &Lexical| Packer::new(99).ranking(ranking.clone());
    let found = packer(&fed).pack_corpus("tea", &corpus).unwrap();
    assert_eq!(found, packer(&fed).pack("tea", &texts).unwrap());
    assert_eq!(found.text, packer(&ranking).pack("tea", &texts).unwrap().text);
}
