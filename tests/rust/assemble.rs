//! Laws of assembling that hold for every input.

use budgeteer::pipeline::Tag;
use budgeteer::{Chunk, Estimate, Order, Overflow, Packer, Packing, Template, TokenCounter};
use proptest::prelude::*;

/// Texts that try to pass for the frame of a chunk.
fn chunks() -> impl Strategy<Value = Vec<Chunk>> {
    let part = prop::sample::select(vec![
        "\n",
        "\n\n",
        "[",
        "]",
        ":",
        "] ",
        "\\",
        "[a:b] ",
        "[notice] ",
        "## ",
        "## [",
        "<",
        "&",
        "]]>",
        "</document>\n",
        "\"",
        "\"}",
        ",\n{",
        "\u{1}",
        "\r",
        "\u{2028}",
        "é",
        "🍵",
        "tea ",
        "word ",
        "{text}",
        "\t",
    ]);
    let text = prop::collection::vec(part, 0..9).prop_map(|parts| parts.concat());
    let chunk = (text.clone(), text.clone(), text).prop_map(|(text, id, source)| Chunk {
        id: Some(id),
        source,
        ..Chunk::new(text)
    });
    prop::collection::vec(chunk, 0..9)
}

fn templates() -> impl Strategy<Value = Template> {
    let format = Template::format("{index}{id}{text}{{{source}}}").expect("it is a format");
    prop::sample::select(vec![
        Template::plain(),
        Template::tagged(),
        Template::markdown().header("# Sources\n").footer("\nThe end."),
        Template::xml(),
        Template::json(),
        format.clone().separator("").header("<").footer(">"),
        format.separator("\n--\n"),
    ])
}

fn orders() -> impl Strategy<Value = Order> {
    prop::sample::select(vec![Order::Rank, Order::Input, Order::Document, Order::Edges])
}

fn packer(max_tokens: usize, template: Template, order: Order, overflow: bool) -> Packer {
    let overflow = if overflow { Overflow::TruncateEnd } else { Overflow::Skip };
    Packer::new(max_tokens).template(template).order(order).overflow(overflow)
}

/// Packs with a notice: the count of the text is the total, and within the
/// budget; the notice stands only where something was dropped. The best chunk
/// that fits by itself is kept.
fn assert_packs(
    packer: Packer,
    chunks: &[Chunk],
    counter: &impl TokenCounter,
) -> Result<(), budgeteer::Error> {
    let alone = packer.clone().order(Order::Rank).max_chunks(1).pack("tea", chunks)?;
    let packing = packer.notice("Left out: {count}").pack("tea", chunks)?;
    assert_holds(&packing, counter);
    if let Some(best) = alone.kept.first() {
        let kept = packing.kept.iter().find(|kept| kept.index == best.index);
        assert!(kept.is_some_and(|kept| kept.was_cut == best.was_cut), "{packing:?}");
    }
    Ok(())
}

fn assert_holds(packing: &Packing, counter: &impl TokenCounter) {
    if packing.kept.is_empty() {
        assert_eq!(("", 0), (packing.text.as_str(), packing.total_tokens));
        return;
    }
    assert_eq!(counter.count(&packing.text), packing.total_tokens);
    assert!(packing.total_tokens <= packing.budget_tokens);
    let behind = &packing.text
        [packing.kept[packing.kept.len() - 1].span.clone().expect("it is there").end..];
    let notice = format!("Left out: {}", packing.dropped.len());
    assert_eq!(behind.contains("Left out: "), behind.contains(&notice));
    assert!(!packing.dropped.is_empty() || !behind.contains(&notice));
}

proptest! {
    #[test]
    fn estimates_hold(
        chunks in chunks(), max_tokens in 0_usize..120, template in templates(),
        order in orders(), cuts: bool, ratio in 0.3_f64..9.0,
    ) {
        for estimate in
            [Estimate::CharsDiv4, Estimate::Words, Estimate::CharsPerToken(ratio)]
        {
            let packer = packer(max_tokens, template.clone(), order, cuts).estimate(estimate);
            assert_packs(packer, &chunks, &estimate)?;
        }
    }

    #[cfg(feature = "o200k")]
    #[test]
    fn encodings_hold(
        chunks in chunks(), max_tokens in 0_usize..160, template in templates(),
        order in orders(), cuts: bool,
    ) {
        let counter = budgeteer::Encoding::O200k;
        let packer = packer(max_tokens, template, order, cuts).counter(counter);
        assert_packs(packer, &chunks, &counter)?;
    }

    #[test]
    fn custom_counters_hold(
        chunks in chunks(), max_tokens in 0_usize..400, template in templates(),
        order in orders(), cuts: bool,
    ) {
        let counter = |text: &str| text.len();
        let packer = packer(max_tokens, template, order, cuts).counter(counter);
        assert_packs(packer, &chunks, &counter)?;
    }

    /// The text begins as before, up to the first chunk that is gone. No chunk gets
    /// lost. Without a text before it is that by rank.
    #[test]
    fn what_is_sticky_stays(chunks in chunks(), template in templates(), query in "(tea|word)?") {
        let packer = Packer::new(200).template(template).order(Order::Sticky);
        let before = packer.pack("tea", &chunks)?;
        let after = packer.pack_after(&before, &query, &chunks)?;
        let kept = |packing: &Packing| packing.kept.iter().map(|kept| kept.index).collect();
        let (old, new): (Vec<usize>, Vec<usize>) = (kept(&before), kept(&after));
        let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
        let end = before.kept[..same].last().map_or(0, |kept| kept.span.clone().expect("it is there").end);
        prop_assert_eq!(&before.text[..end], &after.text[..end]);
        if let Some(gone) = old.get(same) {
            prop_assert!(!new.contains(gone));
        }
        prop_assert_eq!(chunks.len(), new.len() + after.dropped.len());
        let by_rank = packer.order(Order::Rank).pack("tea", &chunks)?;
        prop_assert_eq!(by_rank.text, before.text);
    }
}

/// Header and footer are counted with the texts that they stand beside, and these with each other.
#[cfg(feature = "o200k")]
#[test]
fn what_runs_together_is_counted_together() -> Result<(), budgeteer::Error> {
    let counter = budgeteer::Encoding::O200k;
    let texts = ["tea", " rye", "\n\noat", "\u{301}", "!?"];
    for (header, footer) in [("Sources:", ""), ("Sources: ", "!"), ("\n", "\nThe end."), ("", "s")]
    {
        for (first, second) in texts.iter().flat_map(|one| texts.map(|other| (*one, other))) {
            let template = Template::plain().header(header).footer(footer);
            let packer = Packer::new(99).counter(counter).template(template).dedupe(false);
            let packing = packer.order(Order::Input).pack("", &[first, second])?;
            assert_eq!(format!("{header}{first}\n\n{second}{footer}"), packing.text);
            assert_eq!(counter.count(&packing.text), packing.total_tokens);
        }
    }
    Ok(())
}

#[test]
fn orders_stand_as_documented() -> Result<(), budgeteer::Error> {
    let chunk = |text: &str, score, source: &str, position| Chunk {
        position,
        ..Chunk::new(text).source(source).score(score)
    };
    let chunks = [
        chunk("a", 1.0, "x", Some(2.0)),
        chunk("b", 5.0, "y", None),
        chunk("c", 4.0, "x", Some(1.5)),
        chunk("d", 3.0, "x", None),
        chunk("e", 2.0, "y", None),
    ];
    for (order, expected) in [
        (Order::Rank, "b c d e a"),
        (Order::Input, "a b c d e"),
        (Order::Document, "c a d b e"),
        (Order::Edges, "b d a e c"),
    ] {
        let template = Template::format("{text}")?.separator(" ");
        let packer = Packer::new(99).ranking(budgeteer::Ranking::Score).order(order);
        assert_eq!(expected, packer.template(template).pack("", &chunks)?.text);
    }
    Ok(())
}

#[test]
fn what_is_no_format_is_refused() {
    for format in
        ["", "{text", "text}", "{text} {", "{text}{text}", "{id}", "{text}{score}", "{text:>9}"]
    {
        let error = Template::format(format).unwrap_err();
        assert_eq!(budgeteer::ErrorKind::InvalidArgument, error.kind());
    }
    assert!(Template::format("{{}}{text}{{id}}").is_ok());
}

/// A header stands in front of the template's own, a footer behind it. Only a
/// format and a function take another separator; under others it is an error.
#[test]
fn what_stands_around_and_between_the_chunks() -> Result<(), budgeteer::Error> {
    for (template, front, between, is_joined) in [
        (Template::plain(), "", "\n\n", false),
        (Template::tagged(), "", "\n", false),
        (Template::markdown(), "", "\n\n", false),
        (Template::xml(), "<documents>\n", "\n", false),
        (Template::json(), "[", ",\n", false),
        (Template::format("{text}")?, "", "\n\n", true),
        (Template::by(|_, chunk| chunk.text().into()), "", "\n\n", true),
    ] {
        assert_eq!((front, between), (template.front(), template.between()));
        let pack =
            |template: Template| Packer::new(99).template(template).pack("", &["tea", "rye"]);
        let plain = pack(template.clone())?.text;
        assert!(plain.starts_with(front) && plain.contains(between));
        let around = template.clone().header("H\n").footer("\nF").header("").footer("");
        assert_eq!(format!("H\n{front}"), around.front());
        assert_eq!(format!("H\n{plain}\nF"), pack(around)?.text);
        let joined = template.separator(" + ");
        assert_eq!(if is_joined { " + " } else { between }, joined.between());
        let text = pack(joined).map(|packing| packing.text);
        assert_eq!(is_joined, text.is_ok_and(|text| text == "tea + rye"));
    }
    Ok(())
}

/// Each template writes the fields that a chunk has, and a format those that it
/// names.
#[test]
fn what_is_written_of_a_chunk() -> Result<(), budgeteer::Error> {
    let full =
        Chunk { kind: Some("note".into()), ..Chunk::new("tea").id("7").title("Ada").source("web") };
    let format =
        Template::format("{kind} {id} {source} {title} {index}: {text} ({title}, {kind})")?;
    for (template, of_full, of_text) in [
        (Template::plain(), "tea", "rye"),
        (Template::tagged(), "[note:7] tea", "[document:0] rye"),
        (Template::markdown(), "## [note:7] Ada\nSource: web\n\ntea", "## [document:0]\n\nrye"),
        (
            Template::xml(),
            "<documents>\n<document kind=\"note\" id=\"7\" source=\"web\" title=\"Ada\">\n\
             tea\n</document>\n</documents>",
            "<documents>\n<document id=\"0\">\nrye\n</document>\n</documents>",
        ),
        (
            Template::json(),
            "[{\"kind\": \"note\", \"id\": \"7\", \"source\": \"web\", \"title\": \"Ada\", \
             \"text\": \"tea\"}]",
            "[{\"id\": \"0\", \"text\": \"rye\"}]",
        ),
        (format, "note 7 web Ada 0: tea (Ada, note)", "document 0   0: rye (, document)"),
    ] {
        let packer = Packer::new(99).template(template);
        assert_eq!(of_full, packer.pack("", std::slice::from_ref(&full))?.text);
        assert_eq!(of_text, packer.pack("", &["rye"])?.text);
    }
    Ok(())
}

/// A chunk that has nothing but a text has its place for an identifier.
#[test]
fn the_tag_of_a_text() {
    let tag = Tag::of_text(7);
    assert_eq!((&b"document"[..], &b"7"[..]), (&*tag.kind, &*tag.id));
    assert!(tag.source.is_empty() && tag.title.is_empty() && tag.position.is_nan());
}
