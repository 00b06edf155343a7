//! What a template wrote is read back: an XML or JSON parser, or the rules of the
//! lines, find the kept chunks with their texts and fields, whatever these are.
#![no_main]

use std::sync::LazyLock;

use budgeteer::{Chunk, Document as _, Order, Packer, Packing};
use budgeteer_fuzz::chunks::{Style, Written, chunks};
use budgeteer_fuzz::words::Words;
use fancy_regex::{Captures, Regex};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = run(&mut Unstructured::new(data));
});

/// The fields of a chunk that a template shows: kind, id, source, title, text.
type Row = [String; 5];

fn run(input: &mut Unstructured<'_>) -> Result<()> {
    let (written, notice): (Written, Option<Words>) = (input.arbitrary()?, input.arbitrary()?);
    let budget = input.int_in_range(0..=20_000)?;
    let chunks = chunks(input)?;
    if matches!(written.style, Style::Plain | Style::Format | Style::By) {
        return Ok(()); // these promise no boundaries
    }
    let counter = |text: &str| text.len();
    let mut packer =
        Packer::new(budget).counter(counter).template(written.make()).order(Order::Input);
    if let Some(Words(notice)) = &notice {
        packer = packer.notice(notice);
    }
    // What the ranking refuses is for another target.
    let Ok(packing) = packer.pack("tea", &chunks) else { return Ok(()) };
    if packing.kept.is_empty() {
        assert_eq!("", packing.text);
        return Ok(());
    }
    let said = |words: &Option<Words>| words.clone().unwrap_or_default().0;
    let body = packing.text.strip_prefix(&*said(&written.header)).expect("it has its header");
    let body = body.strip_suffix(&*said(&written.footer)).expect("it has its footer");
    let found = match written.style {
        Style::Xml => read_xml(body),
        Style::Json => read_json(body),
        style => read_lines(body, style),
    };
    assert_eq!(expected(&packing, &chunks, written.style), found, "{}", packing.text);
    Ok(())
}

fn expected(packing: &Packing, chunks: &[Chunk], style: Style) -> Vec<Row> {
    let kept = packing.kept.iter().map(|kept| {
        let chunk = &chunks[kept.index];
        let (kind, id) = chunk.tag();
        let id = id.map_or_else(|| kept.index.to_string(), str::to_owned);
        let shows = style != Style::Tagged;
        let own = |text: &str| if shows { text.to_owned() } else { String::new() };
        let text = kept.text().to_owned();
        let row = [kind.to_owned(), id, own(chunk.source()), own(chunk.title()), text];
        if style == Style::Xml { row.map(|text| spelled(&text)) } else { row }
    });
    kept.collect()
}

/// Spells characters that XML cannot have as the template does: for a parser of
/// XML they are a text.
fn spelled(text: &str) -> String {
    let is_none = |one: char| {
        (one < ' ' && !"\t\n\r".contains(one)) || ('\u{FFFE}'..='\u{FFFF}').contains(&one)
    };
    let spell = |one: char| match one {
        one if is_none(one) => format!("\\u{:04X}", u32::from(one)),
        one => one.to_string(),
    };
    text.chars().map(spell).collect()
}

fn read_xml(text: &str) -> Vec<Row> {
    let tree = roxmltree::Document::parse(text).expect("it is XML");
    let of = |node: roxmltree::Node<'_, '_>| {
        let field = |name: &str| node.attribute(name).unwrap_or_default().to_owned();
        let kind = node.attribute("kind").unwrap_or("document").to_owned();
        assert!(node.children().all(|child| child.is_text()), "a text has no elements");
        let text = node.text().expect("it has a text");
        let text = text.strip_prefix('\n').and_then(|text| text.strip_suffix('\n'));
        let text = text.expect("it is on lines of its own").to_owned();
        [kind, field("id"), field("source"), field("title"), text]
    };
    let elements = tree.root_element().children().filter(|child| child.is_element());
    elements.filter(|node| node.has_tag_name("document")).map(of).collect()
}

fn read_json(text: &str) -> Vec<Row> {
    let rows: Vec<serde_json::Map<_, _>> = serde_json::from_str(text).expect("it is JSON");
    let of = |row: &serde_json::Map<String, serde_json::Value>| {
        let field = |name: &str| row.get(name).and_then(|value| value.as_str()).unwrap_or_default();
        let kind = row.get("kind").map_or("document", |kind| kind.as_str().expect("it is a str"));
        [kind, field("id"), field("source"), field("title"), field("text")].map(str::to_owned)
    };
    rows.iter().filter(|row| !row.contains_key("notice")).map(of).collect()
}

/// The line ends of Python's `str.splitlines`.
const ENDS: &str = r"\n\r\x0b\x0c\x1c\x1d\x1e\x{85}\x{2028}\x{2029}";

static TAGGED: LazyLock<[Regex; 2]> = LazyLock::new(|| {
    let tag = format!(r"\[(?:notice\]|[^{ENDS}:]*:[^{ENDS}\]]*\])");
    [
        regex(&format!(r"(?:\A|\n)(?:{} |\[notice\] )", kind_and_id())),
        regex(&format!(r"(?<=[{ENDS}])\\(?=\\*{tag})")),
    ]
});

static MARKDOWN: LazyLock<[Regex; 2]> = LazyLock::new(|| {
    [
        regex(&format!(
            r"(?:\A|\n\n)## (?:{}(?: (?P<title>[^{ENDS}]*))?(?:\nSource: (?P<source>[^{ENDS}]*))?\n\n|\[notice\] )",
            kind_and_id()
        )),
        regex(&format!(r"(?:\A|(?<=[{ENDS}]))\\(?=\\*## \[)")),
    ]
});

static FIELD: LazyLock<Regex> = LazyLock::new(|| regex(r"\\(?:u([0-9A-F]{4})|(.))"));

fn kind_and_id() -> String {
    format!(r"\[(?P<kind>(?:[^\]:\\{ENDS}]|\\.)*):(?P<id>(?:[^\]\\{ENDS}]|\\.)*)\]")
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("it is a pattern")
}

fn read_lines(text: &str, style: Style) -> Vec<Row> {
    let [heads, escaped] = if style == Style::Tagged { &*TAGGED } else { &*MARKDOWN };
    let heads: Vec<Captures<'_, str>> =
        heads.captures_iter(text).map(|head| head.expect("it is matched")).collect();
    let place = |at: usize| heads.get(at).map(|head| head.get(0).expect("it is all").range());
    assert_eq!(Some(0), place(0).map(|range| range.start), "it starts with a chunk");
    let rows = heads.iter().enumerate().filter(|(_, head)| head.name("kind").is_some());
    rows.map(|(at, head)| {
        let start = place(at).map_or(0, |range| range.end);
        let end = place(at + 1).map_or(text.len(), |range| range.start);
        let field = |name: &str| head.name(name).map_or_else(String::new, |it| field(it.as_str()));
        let text = escaped.replace_all(&text[start..end], "").into_owned();
        [field("kind"), field("id"), field("source"), field("title"), text]
    })
    .collect()
}

fn field(text: &str) -> String {
    let char = |found: &Captures<'_, str>| match (found.get(1), found.get(2).map(|it| it.as_str()))
    {
        (Some(code), _) => {
            let code = u32::from_str_radix(code.as_str(), 16).expect("it is a number");
            char::from_u32(code).expect("it is a character").to_string()
        }
        (None, Some("n")) => "\n".to_owned(),
        (None, Some("r")) => "\r".to_owned(),
        (None, other) => other.unwrap_or_default().to_owned(),
    };
    FIELD.replace_all(text, char).into_owned()
}
