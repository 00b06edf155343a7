//! Laws of packing that hold for every input.

use std::sync::Arc;

use budgeteer::{
    Bm25, Chunk, Dedupe, ErrorKind, Estimate, Hybrid, Lexical, Order, Overflow, Packer, Packing,
    RankBy, Ranking, Reason, Selection, Stopwords, Template, TokenCounter, Weights, bm25_scores,
};
use proptest::prelude::*;

/// Texts that counters and cuts treat differently: several scripts, clusters of
/// several characters, whitespace of all kinds, repetition.
fn texts() -> impl Strategy<Value = Vec<String>> {
    let text = prop_oneof![
        "[a-c .\u{301}\u{3000}é日🇷🇸\r\n\u{1c}-]{0,60}",
        "(tea|green|Tea\\.|x) (tea|black) [a-z ]{0,200}",
        Just("tea".to_string()),
        Just(String::new()),
    ];
    prop::collection::vec(text, 0..40)
}

fn overflows() -> impl Strategy<Value = Overflow> {
    prop::sample::select(vec![
        Overflow::Skip,
        Overflow::Stop,
        Overflow::TruncateEnd,
        Overflow::TruncateMiddle,
    ])
}

fn estimates() -> impl Strategy<Value = Estimate> {
    prop_oneof![
        Just(Estimate::CharsDiv4),
        Just(Estimate::Words),
        (0.3_f64..9.0).prop_map(Estimate::CharsPerToken),
    ]
}

/// An estimate, an encoding, and a counter of the caller's own.
fn counters() -> Vec<Arc<dyn TokenCounter + Send>> {
    vec![
        Arc::new(Estimate::Words),
        #[cfg(feature = "o200k")]
        Arc::new(budgeteer::Encoding::O200k),
        Arc::new(|text: &str| text.len()),
    ]
}

/// Every index is in the packing once, and every span has the text of its
/// chunk. A cut is no longer than the text, but where words are counted.
fn assert_complete(packing: &Packing, texts: &[String], counts_words: bool) {
    let mut all: Vec<usize> = packing.kept.iter().map(|kept| kept.index).collect();
    all.extend(packing.dropped.iter().map(|dropped| dropped.index));
    all.sort_unstable();
    assert!(all.into_iter().eq(0..texts.len()));
    for kept in &packing.kept {
        let shown = &packing.text[kept.span.clone().expect("it is there")];
        if kept.was_cut {
            assert!(shown.contains("[..."));
            let most = texts[kept.index].chars().count();
            assert!(counts_words || shown.chars().count() <= most);
        } else {
            assert_eq!(texts[kept.index], shown);
        }
    }
}

proptest! {
    /// The total is the estimate of the text, and at most the budget.
    #[test]
    fn estimates_hold(
        texts in texts(), max_tokens in 0_usize..80, overflow in overflows(),
        estimate in estimates(), tagged: bool, by_input: bool,
    ) {
        let packing = Packer::new(max_tokens)
            .estimate(estimate)
            .overflow(overflow)
            .order(if by_input { Order::Input } else { Order::Rank })
            .template(if tagged { Template::tagged() } else { Template::plain() })
            .pack("green tea", &texts)?;
        prop_assert_eq!(estimate.count(&packing.text), packing.total_tokens);
        prop_assert!(packing.total_tokens <= max_tokens);
        assert_complete(&packing, &texts, estimate == Estimate::Words);
    }

    /// Under every dedupe and ranking the text fits, and a duplicate names a
    /// kept chunk.
    #[test]
    fn selections_hold(
        texts in texts(), max_tokens in 0_usize..80, overflow in overflows(),
        counter in 0..4_u8, tagged: bool, near: bool,
        selection in prop::sample::select(vec![Selection::Rank, Selection::Coverage]),
    ) {
        let packer = Packer::new(max_tokens)
            .overflow(overflow)
            .dedupe(if near { Dedupe::Near } else { Dedupe::Exact })
            .selection(selection)
            .template(if tagged { Template::tagged() } else { Template::plain() });
        let odd = |text: &str| text.len() / 3 + text.matches('\n').count();
        let (packer, counted): (_, Box<dyn TokenCounter>) = match counter {
            0 => (packer.estimate(Estimate::CharsDiv4), Box::new(Estimate::CharsDiv4)),
            1 => (packer.estimate(Estimate::Words), Box::new(Estimate::Words)),
            #[cfg(feature = "o200k")]
            2 => {
                let scaled = budgeteer::Scaled::new(budgeteer::Encoding::O200k, 1.18).expect("it is in range");
                (packer.counter(scaled), Box::new(scaled))
            }
            _ => (packer.counter(odd), Box::new(odd)),
        };
        let packing = packer.pack("green tea", &texts)?;
        let total = if packing.text.is_empty() { 0 } else { counted.count(&packing.text) };
        prop_assert_eq!(total, packing.total_tokens);
        prop_assert!(packing.total_tokens <= max_tokens);
        assert_complete(&packing, &texts, counter == 1);
        for dropped in &packing.dropped {
            let kept = packing.kept.iter().map(|kept| Some(kept.index));
            let is_named = kept.into_iter().any(|kept| kept == dropped.duplicate_of);
            prop_assert_eq!(dropped.reason == Reason::Duplicate, is_named);
        }
    }

    /// The law holds under a counter that neither adds up nor grows with the
    /// text.
    #[test]
    fn wild_counters_hold(
        texts in texts(), max_tokens in 0_usize..200, overflow in overflows(), salt: u8,
    ) {
        let counter = move |text: &str| {
            let mix = |hash: usize, byte: u8| (hash * 31 + usize::from(byte)) % 9973;
            text.bytes().fold(usize::from(salt), mix) % 97
        };
        let packing = Packer::new(max_tokens).counter(counter).overflow(overflow)
            .pack("green tea", &texts)?;
        if !packing.kept.is_empty() {
            prop_assert_eq!(counter(&packing.text), packing.total_tokens);
        }
        prop_assert!(packing.total_tokens <= max_tokens);
        assert_complete(&packing, &texts, false);
    }

    /// With an encoding, a chunk is kept where the text with it is within the budget, also where
    /// it stands in front of others. Separators do not count the same behind all texts.
    #[cfg(feature = "o200k")]
    #[test]
    fn what_fits_is_kept_wherever_it_stands(ranks in Just(vec![0, 1, 2, 3, 4]).prop_shuffle()) {
        let counter = budgeteer::Encoding::O200k;
        let texts = ["rye.", "tea", "oat!", "wheat", "maize."];
        let mut chunks = texts.map(Chunk::new);
        for (&index, score) in ranks.iter().zip([5.0, 4.0, 3.0, 2.0, 1.0]) {
            chunks[index].score = Some(score);
        }
        for (budget, order) in (0..14).flat_map(|all| [(all, Order::Rank), (all, Order::Input)]) {
            let mut expected = String::new();
            let mut kept: Vec<usize> = Vec::new();
            for &index in &ranks {
                let mut next = [&kept[..], &[index]].concat();
                if order == Order::Input {
                    next.sort_unstable();
                }
                let text = next.iter().map(|&index| texts[index]).collect::<Vec<_>>().join("\n\n");
                if counter.count(&text) <= budget {
                    (expected, kept) = (text, next);
                }
            }
            let packer = Packer::new(budget).counter(counter).ranking(Ranking::Score).order(order);
            let packing = packer.pack("", &chunks)?;
            prop_assert_eq!(expected, packing.text);
            for dropped in &packing.dropped {
                prop_assert_eq!(dropped.available_tokens + 1, dropped.needed_tokens);
            }
        }
    }

    /// A chunk dropped for the budget did not fit at its turn.
    #[test]
    fn nothing_that_fitted_is_dropped(texts in texts(), max_tokens in 0_usize..80) {
        let packing = Packer::new(max_tokens).pack("green tea", &texts)?;
        for dropped in packing.dropped.iter().filter(|dropped| dropped.reason == Reason::Budget) {
            prop_assert!(dropped.needed_tokens > dropped.available_tokens);
        }
    }
}

#[test]
fn a_repeated_text_names_the_kept_one() -> Result<(), budgeteer::Error> {
    let packing = Packer::new(100).pack("bb", &["a", "bb", "a", "a"])?;
    assert_eq!("bb\n\na", packing.text);
    let of: Vec<_> = packing.dropped.iter().map(|dropped| dropped.duplicate_of).collect();
    assert_eq!([Some(0), Some(0)], *of);
    Ok(())
}

/// What has most of its words in common with a kept chunk, in the same order, is a duplicate; where
/// it does not fit, only if it would be cut or end the packing.
#[test]
fn what_nearly_repeats_a_chunk_is_a_duplicate() -> Result<(), budgeteer::Error> {
    let text = "Green tea is not oxidised, and black tea is, which makes it dark and strong.";
    let chunks = [text, &text.replace("strong", "bitter"), "Rye bread."];
    let expected = format!("{text}\n\nRye bread.");
    for counter in counters() {
        let just = counter.count(&expected);
        for (budget, overflow, reason) in [
            (99 + just, Overflow::Skip, Reason::Duplicate),
            (just, Overflow::Skip, Reason::Budget),
            (just, Overflow::Stop, Reason::Duplicate),
            (just, Overflow::TruncateEnd, Reason::Duplicate),
        ] {
            let packer = Packer::new(budget).counter(Arc::clone(&counter)).overflow(overflow);
            let packer = packer.ranking(Ranking::Input).dedupe(Dedupe::Near);
            let packing = packer.pack("", &chunks)?;
            assert_eq!(expected, packing.text);
            assert_eq!(reason, packing.dropped[0].reason);
        }
    }
    Ok(())
}

/// A chunk that leaves for the notice is not kept, so what repeats it is no
/// duplicate.
#[test]
fn what_repeats_a_chunk_that_left_is_no_duplicate() -> Result<(), budgeteer::Error> {
    let packer = Packer::new(6).estimate(Estimate::Words).ranking(Ranking::Input);
    let chunks = ["a a a", "b b", "c c c c c c c", "d d d d d d d", "b b"];
    let packing = packer.notice("Left out: {count}").pack("", &chunks)?;
    assert_eq!("a a a\n\nLeft out: 4", packing.text);
    let reasons = packing.dropped.iter().map(|dropped| dropped.reason);
    assert_eq!(vec![Reason::Budget; 4], reasons.collect::<Vec<_>>());
    Ok(())
}

/// The notice leaves before the best chunk does.
#[test]
fn a_notice_that_does_not_fit_beside_the_best_chunk_leaves() -> Result<(), budgeteer::Error> {
    // It has room by itself, and none beside the chunk.
    let counter = |text: &str| if text.starts_with("tea\n") { 999 } else { 1 };
    let packer = Packer::new(10).counter(counter).notice("Left out: {count}");
    assert_eq!("tea", packer.pack("tea", &["tea", "rye"])?.text);
    Ok(())
}

/// The notice stands where it takes all the room beside the best chunk.
#[test]
fn a_notice_that_just_fits_beside_the_best_chunk_stays() -> Result<(), budgeteer::Error> {
    let chunks = ["tea", "Rye bread is dark and sour.", "Oat bread is pale and sweet."];
    for counter in counters() {
        let budget = counter.count("tea\n\nLeft out: 2");
        let pack = |budget| {
            let packer = Packer::new(budget).counter(Arc::clone(&counter));
            packer.notice("Left out: {count}").pack("tea", &chunks)
        };
        assert_eq!("tea\n\nLeft out: 2", pack(budget)?.text);
        assert_eq!("tea", pack(budget - 1)?.text);
    }
    Ok(())
}

/// Under an estimate, chunks leave for the notice only while the text is over the budget; what is
/// left is known to those behind.
#[test]
fn chunks_leave_for_the_notice_while_the_text_is_over() -> Result<(), budgeteer::Error> {
    let packer = Packer::new(29).estimate(Estimate::CharsPerToken(1.0)).ranking(Ranking::Input);
    let packer = packer.notice("Left out: {count}");
    let chunks = ["tea tea", "oat oat", "rye rye", &"wheat ".repeat(9), &"maize ".repeat(9), "x"];
    let packing = packer.pack("", &chunks)?;
    assert_eq!("tea tea\n\noat oat\n\nLeft out: 4", packing.text);
    for (index, needed) in [(2, 9), (5, 3)] {
        let dropped = packing.dropped.iter().find(|dropped| dropped.index == index);
        let dropped = dropped.expect("it does not fit");
        assert_eq!((needed, 0), (dropped.needed_tokens, dropped.available_tokens));
    }
    // The last chunk may be the first that is left out.
    assert_eq!("tea tea\n\noat oat\n\nLeft out: 2", packer.pack("", &chunks[..4])?.text);
    Ok(())
}

/// No room is kept for a notice where the chunk that is cut is the last, and all others are kept.
#[test]
fn a_cut_leaves_no_room_for_a_notice_that_nobody_needs() -> Result<(), budgeteer::Error> {
    let chunks = ["tea".to_owned(), "Rye bread is dark. ".repeat(9)];
    for counter in counters() {
        let packer = Packer::new(30).counter(counter).overflow(Overflow::TruncateEnd);
        let packing = packer.clone().notice("Left out: {count}").pack("tea", &chunks)?;
        assert!(packing.kept[1].was_cut);
        assert_eq!(packer.pack("tea", &chunks)?.text, packing.text);
    }
    Ok(())
}

/// Where the assembled text counts more than its parts, single chunks leave
/// first, then as many as make up for the excess, but no more than half; half
/// of the rest where that takes long.
#[test]
fn how_many_chunks_leave_a_text_that_is_over() -> Result<(), budgeteer::Error> {
    // Each text has two characters, and so has what joins two.
    let kept = |alone: usize, over: usize| {
        let counter = move |text: &str| match (text.len() + 2) / 4 {
            0 => 0,
            1 => alone,
            2..=60 => 1,
            _ => over,
        };
        let packer = Packer::new(1_000).counter(counter).ranking(Ranking::Input);
        let chunks: Vec<_> = (0..100).map(|i| format!("{i:02}")).collect();
        packer.pack("", &chunks).map(|packing| packing.kept.len())
    };
    assert_eq!(42, kept(1, 1_001)?, "16 one by one, and then half");
    assert_eq!(46, kept(1, usize::MAX)?, "8 one by one, and then no more than half");
    assert_eq!(46, kept(0, 1_001)?, "the same where nothing says how much each weighs");
    Ok(())
}

#[test]
fn scores_rank_and_filter() -> Result<(), budgeteer::Error> {
    let chunks = [Chunk::new("none"), Chunk::new("low").score(0.1), Chunk::new("high").score(0.9)];
    let packer = Packer::new(100).ranking(Ranking::Score);
    assert_eq!("high\n\nlow\n\nnone", packer.pack("", &chunks)?.text);
    assert_eq!("high", packer.min_score(0.5).pack("", &chunks)?.text);
    Ok(())
}

/// A rare term ranks above a common one, a title counts, ties keep the input
/// order, and the scores are those of the function.
#[test]
fn a_packing_has_the_scores_of_bm25() -> Result<(), budgeteer::Error> {
    let chunks =
        ["rye", "tea", "black tea", "oolong", "oat"].map(|text| Chunk::new(text).title("Tea?"));
    let query = "What is oolong tea?";
    let packing = Packer::new(100).ranking(Ranking::Bm25).pack(query, &chunks)?;
    let scores = bm25_scores(query, &chunks, &Bm25::default())?;
    let order: Vec<_> = packing.kept.iter().map(|kept| kept.index).collect();
    assert_eq!([3, 1, 2, 0, 4], *order);
    assert!(packing.kept.iter().all(|kept| kept.score == Some(scores[kept.index])));
    Ok(())
}

/// A packing uses its options of BM25: it scores as the function does, alone
/// and in a hybrid ranking, and k1 and b decide the order.
#[test]
fn a_packing_honours_the_options_of_bm25() -> Result<(), budgeteer::Error> {
    let chunks = ["tea", "tea tea rye oat bread butter jam", "rye", "the oat"];
    let mut firsts = Vec::new();
    for (k1, b) in [(0.0, 0.75), (1.2, 0.0), (1.2, 0.75), (1_000_000.0, 1.0)] {
        let bm25 = Bm25 { stopwords: Stopwords::none(), k1, b, ..Bm25::default() };
        let scores = bm25_scores("the tea", &chunks, &bm25)?;
        let packing = Packer::new(100).ranking(bm25.clone()).pack("the tea", &chunks)?;
        assert!(packing.kept.iter().all(|kept| kept.score == Some(scores[kept.index])));
        let weights = Weights { bm25: 1.0, embedding: 0.0, score: 0.0 };
        let hybrid = Hybrid { weights, bm25: bm25.into(), ..Hybrid::default() };
        let fused = Packer::new(100).ranking(hybrid).pack("the tea", &chunks)?;
        let order = |packing: &Packing| -> Vec<usize> {
            packing.kept.iter().map(|kept| kept.index).collect()
        };
        assert_eq!(order(&packing), order(&fused));
        firsts.push(order(&packing).into_iter().find(|index| *index < 2).unwrap());
    }
    // Once is enough; twice is better; not in a long text; often is all that counts.
    assert_eq!([0, 1, 0, 0], *firsts);
    Ok(())
}

/// A ranking by name is the same as with default options.
#[test]
fn short_forms_are_the_defaults() {
    assert_eq!(RankBy::default(), Ranking::Lexical.into());
    assert_eq!(RankBy::from(Lexical::default()), Ranking::Lexical.into());
    assert_eq!(RankBy::from(Bm25::default()), Ranking::Bm25.into());
    assert_eq!(RankBy::from(Hybrid::default()), Ranking::Hybrid.into());
}

#[test]
fn parameters_of_bm25_are_checked() {
    for (k1, b, message) in [
        (-0.1, 0.5, "k1 must be from 0 to 1000000, not -0.1"),
        (f64::NAN, 0.5, "k1 must be from 0 to 1000000, not NaN"),
        (1.2, 1.5, "b must be from 0 to 1, not 1.5"),
    ] {
        let bm25 = Bm25 { k1, b, ..Bm25::default() };
        let hybrid = Hybrid { bm25: bm25.clone().into(), ..Hybrid::default() };
        for error in [
            bm25_scores("tea", &["tea"], &bm25).unwrap_err(),
            Packer::new(9).ranking(bm25).pack("tea", &["tea"]).unwrap_err(),
            Packer::new(9).ranking(hybrid).pack("tea", &["tea"]).unwrap_err(),
        ] {
            assert_eq!(ErrorKind::InvalidArgument, error.kind());
            assert_eq!(message, error.to_string());
        }
    }
}

#[test]
fn what_is_not_a_number_is_refused() {
    let nan = [Chunk::new("x").score(f64::NAN)];
    let error = Packer::new(9).ranking(Ranking::Score).pack("", &nan).unwrap_err();
    assert_eq!(ErrorKind::InvalidArgument, error.kind());
    assert_eq!("chunks[0].score must be a number, not NaN", error.to_string());
    let none: [&str; 0] = [];
    assert!(Packer::new(9).min_score(f64::NAN).pack("", &none).is_err());
    assert!(Packer::new(9).estimate(Estimate::CharsPerToken(0.0)).pack("", &none).is_err());
}

#[test]
fn the_tag_counts() -> Result<(), budgeteer::Error> {
    let chunks = [Chunk::new("tea").id("x"), Chunk::new("tree")];
    let packer = Packer::new(9).estimate(Estimate::CharsDiv4).template(Template::tagged());
    let packing = packer.pack("tea", &chunks)?;
    assert_eq!("[document:x] tea\n[document:1] tree", packing.text);
    assert_eq!(9, packing.total_tokens);
    Ok(())
}

/// Many small chunks fill the budget although the joints between them exceed it
/// together, and the law holds.
#[test]
fn joints_of_many_small_chunks_leave_no_room_free() -> Result<(), budgeteer::Error> {
    let chunks: Vec<Chunk> =
        (0..500).map(|i| Chunk::new(format!("{i}{}", " tea".repeat(14)))).collect();
    let joints = |text: &str| text.matches('\n').count();
    let counter = move |text: &str| text.split_whitespace().count() + 9 * joints(text);
    for template in [Template::plain(), Template::tagged(), Template::xml()] {
        for overflow in [Overflow::Skip, Overflow::Stop] {
            let packer = Packer::new(5_000).counter(counter).ranking(Ranking::Input);
            let packing = packer.template(template.clone()).overflow(overflow).pack("", &chunks)?;
            assert_eq!(counter(&packing.text), packing.total_tokens);
            let (free, chunk) = (5_000 - packing.total_tokens, 5_000 / packing.kept.len());
            assert!(free < 2 * chunk, "{free} tokens stay free: {packing:?}");
            assert!(packing.kept.iter().map(|kept| kept.index).eq(0..packing.kept.len()));
        }
    }
    Ok(())
}

#[test]
fn types_may_cross_threads() {
    fn assert_all<T: Send + Sync>() {}
    assert_all::<Packer>();
    assert_all::<Packing>();
    assert_all::<budgeteer::Error>();
}

/// Words outside ASCII take linear time: a quadratic walk would take minutes.
#[test]
fn long_texts_in_any_script() {
    let text = "привет мир ".repeat(100_000);
    let scores = budgeteer::keyword_scores("столица мир", &[text.as_str(), "столица Франции"]);
    assert!(scores.iter().all(|score| (score - 0.5).abs() < 1e-9));
}

/// The dropped chunks are read as a slice, and can be sent and kept.
#[test]
fn dropped_chunks_are_made_when_looked_at() {
    fn shared<T: Send + Sync + Clone>(value: &T) -> T {
        value.clone()
    }
    let chunks = ["Green tea.", "Rye bread.", "Green tea.", "Coffee."];
    let packing = Packer::new(3).estimate(Estimate::CharsDiv4).pack("tea", &chunks).unwrap();
    let copy = shared(&packing);
    assert_eq!((3, false), (packing.dropped.len(), packing.dropped.is_empty()));
    let mut seen = Vec::new();
    for dropped in &packing.dropped {
        seen.push(dropped.index);
    }
    assert_eq!(vec![2, 1, 3], seen);
    assert_eq!(Some(0), packing.dropped[0].duplicate_of);
    assert_eq!(packing, copy);
    assert_eq!(format!("{packing:?}"), format!("{copy:?}"));
    assert!(format!("{:?}", packing.dropped).contains("index: 3, score: Some(0.0)"));
    let moved: Vec<_> = copy.dropped.into_iter().collect();
    assert_eq!(&packing.dropped[..], &moved[..]);
    assert!(Packer::new(99).pack("tea", &chunks[..1]).unwrap().dropped.is_empty());
}

/// Packings differ where other chunks are dropped, or the same ones for another reason.
#[test]
fn packings_differ_by_what_is_dropped() -> Result<(), budgeteer::Error> {
    let packer = Packer::new(1).estimate(Estimate::Words);
    let pack = |others: &[&str]| packer.pack("", &[&["tea"], others].concat());
    assert_eq!(pack(&["rye bread"])?, pack(&["rye bread"])?);
    for others in [&["rye bread", "oat"][..], &["rye bread is dark"], &["tea"], &[]] {
        assert_eq!("tea", pack(others)?.text);
        assert_ne!(pack(&["rye bread"])?, pack(others)?);
    }
    Ok(())
}

/// Packings are equal where all that is public of them is.
#[test]
fn packings_differ_by_each_figure() -> Result<(), budgeteer::Error> {
    struct Sure;
    impl TokenCounter for Sure {
        fn count(&self, text: &str) -> usize {
            text.len()
        }

        fn is_exact(&self) -> bool {
            true
        }
    }
    let chunks = [Chunk::new("tea").score(0.5), Chunk::new("rye").score(0.25)];
    let better = [Chunk::new("tea").score(0.75), chunks[1].clone()];
    let packer = |budget| Packer::new(budget).ranking(Ranking::Score);
    let headed = |header: &str| packer(99).template(Template::plain().header(header));
    let joints = |each: usize| {
        packer(99).counter(move |text: &str| text.len() + each * text.matches('\n').count())
    };
    for (one, other) in [
        (headed("a").pack("", &chunks)?, headed("b").pack("", &chunks)?),
        (joints(1).pack("", &chunks)?, joints(2).pack("", &chunks)?),
        (packer(99).pack("", &chunks)?, packer(98).pack("", &chunks)?),
        (joints(0).pack("", &chunks)?, packer(99).counter(Sure).pack("", &chunks)?),
        (packer(99).pack("", &chunks)?, packer(99).pack("", &better)?),
    ] {
        let copy = one.clone();
        assert_eq!(one, copy);
        assert_eq!(format!("{one:?}"), format!("{copy:?}"));
        assert_ne!(one, other);
        assert_ne!(format!("{one:?}"), format!("{other:?}"));
    }
    Ok(())
}

/// Kept chunks with the same figures differ by their texts, which is what they
/// show.
#[test]
fn kept_chunks_differ_by_their_texts() -> Result<(), budgeteer::Error> {
    let kept = |text: &str| {
        let packer = Packer::new(9).estimate(Estimate::Words).ranking(Ranking::Input);
        let packing = packer.pack("", &[text])?;
        Ok::<_, budgeteer::Error>(packing.kept[0].clone())
    };
    assert_eq!(kept("tea")?, kept("tea")?);
    assert_ne!(kept("tea")?, kept("rye")?);
    assert!(format!("{:?}", kept("tea\n")?).contains(r#"text: "tea\n""#));
    Ok(())
}

/// Under a factor, what a dropped chunk needs and what was left are in the same
/// tokens as the budget.
#[cfg(feature = "o200k")]
#[test]
fn a_factor_counts_in_what_was_dropped() -> Result<(), budgeteer::Error> {
    let twice = budgeteer::Scaled::new(budgeteer::Encoding::O200k, 2.0)?;
    let packer = Packer::new(7).counter(twice).ranking(Ranking::Input);
    let packing = packer.pack("", &["tea", "rye bread is dark"])?;
    let dropped = &packing.dropped[0];
    // One more than the two that were left of three.
    assert_eq!((2, 6, 4), (packing.total_tokens, dropped.needed_tokens, dropped.available_tokens));
    Ok(())
}

/// A packing tells that something was left out, be it a chunk or a part of one.
#[test]
fn what_is_left_out_is_told() -> Result<(), budgeteer::Error> {
    let packer = Packer::new(4).estimate(Estimate::Words).overflow(Overflow::TruncateEnd);
    for (chunks, is_told) in [
        (&["tea", "rye"][..], false),
        (&["tea and rye and oat"], true),
        (&["tea", "tea"], true),
        (&[""], true),
    ] {
        assert_eq!(is_told, packer.pack("", chunks)?.was_truncated(), "{chunks:?}");
    }
    Ok(())
}

#[test]
fn debug_shows_what_a_packer_does() {
    let packer = Packer::new(300).reserve_tokens(20).ranking(Ranking::Input);
    let shown = format!("{packer:?}");
    assert!(
        shown.starts_with("Packer { max_tokens: 300, reserve_tokens: 20, ranking: Input"),
        "{shown}"
    );
    assert!(shown.ends_with(", overflow: Skip, .. }"), "{shown}");
}
