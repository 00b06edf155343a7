//! The numbers by which the facade names things; see `budgeteer/_codes.py`.

use budgeteer::pipeline::{Counting, Factor, Policy, SignalKind};
use budgeteer::{
    Claude, Dedupe, Encoding, Estimate, Exact, Fusion, Hybrid, Keep, Lexical, MinScore, Order,
    OutputKind, Overflow, RankBy, Reason, Selection, Template, Units, Weights,
};
use pyo3::{FromPyObject, PyRef};

use crate::tokenizer::Tokenizer;

/// Why a chunk cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    NoText = 1,
    TextType = 2,
    TitleType = 3,
}

/// Why a table cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    NoTable = 1,
    NoColumn = 2,
    ColumnType = 3,
    Producer = 4,
}

/// Why a row of a table cannot be packed, or a column cannot be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadRow {
    Null = 1,
    NotUtf8 = 2,
    Offsets = 3,
    Nan = 4,
    Infinite = 5,
}

/// Stands in for a chunk's index where the assembled text is meant.
pub(crate) const ASSEMBLED: i64 = -1;

/// Stands in for a chunk's index where a text of its own is meant.
pub(crate) const LOOSE: i64 = -2;

/// The keys under which a mapping may hold its text; the first one wins.
pub(crate) const TEXT_KEYS: [&str; 3] = ["text", "content", "page_content"];

/// The attributes in which an object may hold its text; the first one wins.
pub(crate) const TEXT_ATTRIBUTES: [&str; 3] = ["text", "page_content", "content"];

/// A counter: a number, or a tokenizer that was read from a file.
#[derive(FromPyObject)]
pub(crate) enum Kind<'py> {
    Code(u8),
    Open(PyRef<'py, Tokenizer>),
}

pub(crate) fn counting(kind: Kind<'_>, ratio: f64) -> Counting {
    match kind {
        Kind::Code(0) => Counting::Estimate(Estimate::CharsDiv4),
        Kind::Code(1) => Counting::Estimate(Estimate::Words),
        Kind::Code(2) => Counting::Estimate(Estimate::CharsPerToken(ratio)),
        Kind::Code(3) => Counting::Host,
        kind => Counting::Exact(exact(kind), Factor::new(ratio)),
    }
}

/// Added to the number of an encoding: counts are not cached.
const FRESH: u8 = 64;

pub(crate) fn exact(kind: Kind<'_>) -> Exact {
    let code = match kind {
        Kind::Open(tokenizer) => return tokenizer.exact(),
        Kind::Code(code) => code,
    };
    let exact = match code & !FRESH {
        12 => Exact::new(Claude::V3),
        13 => Exact::new(Claude::V47),
        14 => Exact::new(Claude::V48),
        code => Exact::new(encoding(code)),
    };
    if code & FRESH == 0 { exact } else { exact.without_cache() }
}

/// Returns the encoding of that number.
pub(crate) fn encoding(code: u8) -> Encoding {
    match code {
        4 => Encoding::Cl100k,
        5 => Encoding::O200k,
        6 => Encoding::Qwen2,
        7 => Encoding::Qwen35,
        8 => Encoding::DeepSeek,
        9 => Encoding::Glm4,
        10 => Encoding::Tekken,
        11 => Encoding::Gemma4,
        _ => unreachable!("the facade names no such counter"),
    }
}

/// Returns the ranking of that code, with its options.
pub(crate) fn ranking(code: u8, lexical: Lexical, weights: Option<HybridOptions>) -> RankBy {
    match code {
        0 => lexical.into(),
        1 => RankBy::Keyword,
        2 => RankBy::Recency,
        3 => RankBy::Input,
        4 => RankBy::Score,
        5 => RankBy::Embedding,
        6 => hybrid(lexical, weights).into(),
        _ => unreachable!("the facade names no such ranking"),
    }
}

/// The weights of the score by words, of the cosine and of the chunk's own score, and the k
/// of reciprocal ranks; without it scores are scaled.
pub(crate) type HybridOptions = (f64, f64, f64, Option<f64>);

fn hybrid(bm25: Lexical, options: Option<HybridOptions>) -> Hybrid {
    let defaults = Hybrid { bm25, ..Hybrid::default() };
    let Some((bm25, embedding, score, k)) = options else { return defaults };
    let fusion = k.map_or(Fusion::MinMax, |k| Fusion::ReciprocalRank { k });
    Hybrid { weights: Weights { bm25, embedding, score }, fusion, ..defaults }
}

/// No policy: only presets have one.
const NO_POLICY: u8 = 0;

/// Separators and markers go uncounted.
const SUM_OF_PARTS: u8 = 1;

/// Texts and citations stay within the budget together.
const CITE: u8 = 2;

/// A gate ranks, and refuses documents.
const GATE: u8 = 3;

/// Returns the policy of that code; a gate considers at most `max_docs` documents.
pub(crate) fn policy((code, max_docs): (u8, u64)) -> Policy {
    match code {
        NO_POLICY => Policy::None,
        SUM_OF_PARTS => Policy::SumOfParts,
        CITE => Policy::Cite,
        GATE => Policy::Gate { max_docs },
        _ => unreachable!("the facade names no such policy"),
    }
}

/// A score, or the name of a way to find it.
#[derive(FromPyObject)]
pub(crate) enum MinScoreOption {
    At(f64),
    Named(String),
}

pub(crate) fn min_score(option: MinScoreOption) -> MinScore {
    match option {
        MinScoreOption::At(score) => score.into(),
        MinScoreOption::Named(name) if name == "auto" => MinScore::Auto,
        MinScoreOption::Named(_) => unreachable!("the facade names no such way"),
    }
}

pub(crate) fn overflow(code: u8) -> Overflow {
    match code {
        0 => Overflow::Skip,
        1 => Overflow::Stop,
        2 => Overflow::TruncateEnd,
        3 => Overflow::TruncateMiddle,
        _ => unreachable!("the facade names no such overflow"),
    }
}

pub(crate) fn dedupe(code: u8) -> Dedupe {
    match code {
        0 => Dedupe::Off,
        1 => Dedupe::Exact,
        2 => Dedupe::Near,
        _ => unreachable!("the facade names no such duplicates"),
    }
}

pub(crate) fn selection(code: u8) -> Selection {
    match code {
        0 => Selection::Rank,
        1 => Selection::Coverage,
        _ => unreachable!("the facade names no such selection"),
    }
}

pub(crate) fn units(code: u8) -> Units {
    match code {
        0 => Units::Chunk,
        1 => Units::Sentence,
        _ => unreachable!("the facade names no such unit"),
    }
}

pub(crate) fn order(code: u8) -> Order {
    match code {
        0 => Order::Rank,
        1 => Order::Input,
        2 => Order::Document,
        3 => Order::Edges,
        4 => Order::Sticky,
        _ => unreachable!("the facade names no such order"),
    }
}

/// A style, of which the last but one has a format; separator, header and footer.
pub(crate) type TemplateOptions = (u8, String, String, String, String);

pub(crate) fn template((style, format, separator, header, footer): TemplateOptions) -> Template {
    let template = match style {
        0 => Template::plain(),
        1 => Template::tagged(),
        2 => Template::markdown(),
        3 => Template::xml(),
        4 => Template::json(),
        5 => Template::format(&format).expect("the facade has looked at it").separator(separator),
        _ => Template::by(|_, _| unreachable!("the host writes")).separator(separator),
    };
    template.header(header).footer(footer)
}

pub(crate) fn keep(code: u8) -> Keep {
    match code {
        0 => Keep::Start,
        1 => Keep::End,
        2 => Keep::Both,
        _ => unreachable!("the facade names no such part"),
    }
}

pub(crate) fn output_kind(code: u8) -> OutputKind {
    match code {
        0 => OutputKind::Auto,
        1 => OutputKind::Text,
        2 => OutputKind::Json,
        3 => OutputKind::Table,
        4 => OutputKind::Log,
        5 => OutputKind::Diff,
        _ => unreachable!("the facade names no such kind"),
    }
}

/// Returns the code of a kind.
pub(crate) fn output_code(kind: OutputKind) -> u8 {
    (0..6).find(|&code| output_kind(code) == kind).unwrap_or_default()
}

/// Returns the kind of a signal, and the chunk that it comes from; of a heading
/// whether it is a whole one.
pub(crate) fn signal(kind: SignalKind) -> (u32, u32) {
    match kind {
        SignalKind::Heading { is_whole } => (0, u32::from(is_whole)),
        SignalKind::Link(chunk) => (1, chunk),
        SignalKind::Feedback(chunk) => (2, chunk),
    }
}

pub(crate) fn reason(reason: Reason) -> u8 {
    match reason {
        Reason::OutOfScope => 0,
        Reason::Empty => 1,
        Reason::Cap => 2,
        Reason::Duplicate => 3,
        Reason::Budget => 4,
        _ => unreachable!("there are five reasons"),
    }
}
