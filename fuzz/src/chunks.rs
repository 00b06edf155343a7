//! Chunks, packers with any options, and the law of packing.

use budgeteer::presets::{agentic_rag, context_gate, context_router, retrieval_service};
use budgeteer::{
    Bm25, Chunk, Dedupe, Fusion, Hybrid, Lexical, MinScore, Order, Overflow, Packer, Packing,
    RankBy, Ranking, Reason, Selection, Stemming, Stopwords, Template, TokenCounter as _, Units,
    Weights,
};
use libfuzzer_sys::arbitrary::{self, Arbitrary, Result, Unstructured};

use crate::counters::Counter;
use crate::words::Words;

/// What a chunk is made of. Small numbers, so that many are equal.
#[derive(Clone, Debug, Arbitrary)]
pub struct Piece {
    text: Words,
    title: Option<Words>,
    id: Option<Words>,
    kind: Option<Words>,
    source: Option<Words>,
    position: Option<i8>,
    authority: Option<Authority>,
    priority: i8,
    score: Option<Number>,
    mtime: Number,
}

/// A number, now and then none that a caller should give.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub enum Number {
    Small(i8),
    Any(f64),
}

impl From<Number> for f64 {
    fn from(number: Number) -> Self {
        match number {
            Number::Small(small) => Self::from(small) / 16.0,
            Number::Any(any) => any,
        }
    }
}

#[derive(Clone, Copy, Debug, Arbitrary)]
pub enum Authority {
    System,
    User,
    Unknown,
}

impl Piece {
    /// Returns the chunk.
    #[must_use]
    pub fn make(&self) -> Chunk {
        let text = |words: &Option<Words>| words.clone().map(|Words(text)| text);
        let authority = self.authority.map(|authority| match authority {
            Authority::System => "system",
            Authority::User => "user",
            Authority::Unknown => "unknown",
        });
        Chunk {
            title: text(&self.title).unwrap_or_default(),
            id: text(&self.id),
            kind: text(&self.kind),
            source: text(&self.source).unwrap_or_default(),
            position: self.position.map(f64::from),
            authority: authority.map(str::to_owned),
            priority: self.priority.into(),
            score: self.score.map(f64::from),
            mtime: self.mtime.into(),
            ..Chunk::new(self.text.0.clone())
        }
    }
}

/// Returns chunks, of which some may repeat others.
///
/// # Errors
///
/// What `arbitrary` cannot make of the input.
pub fn chunks(input: &mut Unstructured<'_>) -> Result<Vec<Chunk>> {
    let mut chunks: Vec<Chunk> = Vec::new();
    for _ in 0..input.int_in_range(0..=12_u8)? {
        let again = input.int_in_range(0..=23_usize)?;
        match chunks.get(again).cloned() {
            Some(chunk) => chunks.push(chunk),
            None => chunks.push(input.arbitrary::<Piece>()?.make()),
        }
    }
    Ok(chunks)
}

/// A template that says where a chunk ends, or one that does not.
#[derive(Clone, Debug, Arbitrary)]
pub struct Written {
    pub style: Style,
    pub header: Option<Words>,
    pub footer: Option<Words>,
    separator: Option<Words>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
pub enum Style {
    Plain,
    Tagged,
    Markdown,
    Xml,
    Json,
    Format,
    By,
}

impl Written {
    /// Returns the template.
    #[must_use]
    pub fn make(&self) -> Template {
        let template = match self.style {
            Style::Plain => Template::plain(),
            Style::Tagged => Template::tagged(),
            Style::Markdown => Template::markdown(),
            Style::Xml => Template::xml(),
            Style::Json => Template::json(),
            Style::Format => Template::format("{index}{id}{text}{{{source}}}").expect("it is one"),
            Style::By => Template::by(|index, chunk| match chunk.text() {
                text if text.len() % 5 == 4 => String::new(),
                text => format!("{index}: {text}{}", chunk.title()),
            }),
        };
        let words = |words: &Option<Words>| words.clone().unwrap_or_default().0;
        let template = match (self.style, &self.separator) {
            (Style::Format | Style::By, Some(Words(separator))) => {
                template.separator(separator.clone())
            }
            _ => template,
        };
        template.header(words(&self.header)).footer(words(&self.footer))
    }
}

#[derive(Clone, Debug, Arbitrary)]
enum By {
    Name(u8),
    Lexical { options: Options, k3: Number, headings: bool, links: bool, feedback: bool },
    Bm25(Options),
    Hybrid { weights: [u8; 3], k: Option<Number>, bm25: Options },
}

#[derive(Clone, Debug, Arbitrary)]
struct Options {
    language: u8,
    k1: Number,
    b: Number,
}

const LANGUAGES: [&str; 6] = ["english", "german", "russian", "arabic", "turkish", "none"];

impl Options {
    fn make(&self) -> Bm25 {
        let language = LANGUAGES[usize::from(self.language) % LANGUAGES.len()];
        Bm25 {
            stemming: Stemming::of(language),
            stopwords: Stopwords::of(language).unwrap_or_default(),
            k1: self.k1.into(),
            b: self.b.into(),
        }
    }
}

impl By {
    fn make(&self) -> RankBy {
        match self {
            Self::Name(number) => match number % 8 {
                0 => Ranking::Lexical,
                1 => Ranking::Bm25,
                2 => Ranking::Keyword,
                3 => Ranking::Recency,
                4 => Ranking::Input,
                5 => Ranking::Score,
                6 => Ranking::Embedding,
                _ => Ranking::Hybrid,
            }
            .into(),
            Self::Bm25(options) => options.make().into(),
            Self::Lexical { options, k3, headings, links, feedback } => Lexical {
                bm25: options.make(),
                k3: f64::from(*k3),
                headings: *headings,
                links: *links,
                feedback: *feedback,
                statistics: None,
            }
            .into(),
            Self::Hybrid { weights, k, bm25 } => {
                let [words, embedding, score] = weights.map(|weight| f64::from(weight % 4));
                Hybrid {
                    weights: Weights { bm25: words, embedding, score },
                    fusion: match k {
                        Some(k) => Fusion::ReciprocalRank { k: f64::from(*k) },
                        None => Fusion::MinMax,
                    },
                    bm25: if words > 0.0 { bm25.make() } else { Bm25::default() }.into(),
                }
                .into()
            }
        }
    }

    /// Whether vectors are needed.
    fn has_vectors(&self) -> bool {
        self.make().needs().has_vectors
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
enum Preset {
    AgenticRag,
    Gate,
    Router,
    Top,
}

/// All options of a packer.
#[derive(Clone, Debug, Arbitrary)]
pub struct Packs {
    budget: u16,
    reserve: u8,
    counter: Option<Counter>,
    preset: Option<Preset>,
    ranking: Option<By>,
    min_score: Option<Option<Number>>,
    overflow: u8,
    dedupe: u8,
    order: u8,
    max_chunks: Option<u8>,
    covers: bool,
    sentences: bool,
    template: Option<Written>,
    notice: Option<Words>,
    prompt: bool,
}

/// The most tokens of a marker of `context_router`.
const MARKER: usize = 5;

impl Packs {
    /// Returns the packer.
    #[must_use]
    pub fn make(&self) -> Packer {
        let budget = usize::from(self.budget % 512);
        let most = usize::from(self.reserve % 7);
        let mut packer = match self.preset {
            None => Packer::new(budget),
            Some(Preset::AgenticRag) => agentic_rag(budget),
            Some(Preset::Gate) => context_gate(budget, most),
            Some(Preset::Router) => context_router(budget),
            Some(Preset::Top) => retrieval_service(budget),
        };
        packer = packer
            .reserve_tokens(usize::from(self.reserve / 8))
            .overflow(
                [Overflow::Skip, Overflow::Stop, Overflow::TruncateEnd, Overflow::TruncateMiddle]
                    [usize::from(self.overflow % 4)],
            )
            .dedupe([Dedupe::Off, Dedupe::Exact, Dedupe::Near][usize::from(self.dedupe % 3)])
            .order(
                [Order::Rank, Order::Input, Order::Document, Order::Edges, Order::Sticky]
                    [usize::from(self.order % 5)],
            )
            .selection(if self.covers { Selection::Coverage } else { Selection::Rank })
            .units(if self.sentences { Units::Sentence } else { Units::Chunk });
        if let Some(counter) = &self.counter {
            packer = packer.counter(counter.make());
        }
        if let Some(ranking) = &self.ranking {
            packer = packer.ranking(ranking.make());
        }
        match self.min_score {
            None => {}
            Some(None) => packer = packer.min_score(MinScore::Auto),
            Some(Some(score)) => packer = packer.min_score(f64::from(score)),
        }
        if let Some(most) = self.max_chunks {
            packer = packer.max_chunks(most.into());
        }
        if let Some(template) = &self.template {
            packer = packer.template(template.make());
        }
        if let Some(Words(notice)) = &self.notice {
            packer = packer.notice(notice);
        }
        if self.prompt {
            packer = packer.prompt(|kept| format!("Read {kept:?}.\n{}", "tea ".repeat(kept.len())));
        }
        packer
    }

    /// Returns the number of dimensions of vectors, if the ranking needs them.
    #[must_use]
    pub fn has_vectors(&self) -> bool {
        self.ranking.as_ref().is_some_and(By::has_vectors)
    }

    /// Asserts the law: the count of the text is the total, which is within the
    /// budget; each chunk is kept or dropped once; a kept text is the chunk's.
    ///
    /// # Panics
    ///
    /// Where it does not hold.
    pub fn assert_holds(&self, packing: &Packing, chunks: &[Chunk]) {
        let budget = usize::from(self.budget % 512).saturating_sub((self.reserve / 8).into());
        assert_eq!(budget, packing.budget_tokens);
        self.assert_within(packing);
        let mut all: Vec<usize> = packing.kept.iter().map(|kept| kept.index).collect();
        all.extend(packing.dropped.iter().map(|dropped| dropped.index));
        all.sort_unstable();
        assert!(all.into_iter().eq(0..chunks.len()), "each chunk is there once: {packing:?}");
        if let Some(most) = self.max_chunks {
            assert!(packing.kept.len() <= most.into(), "{self:?} {packing:?}");
        }
        for dropped in &packing.dropped {
            let kept = packing.kept.iter().map(|kept| Some(kept.index));
            let is_named = kept.into_iter().any(|kept| kept == dropped.duplicate_of);
            assert_eq!(dropped.reason == Reason::Duplicate, is_named, "{dropped:?}");
        }
        let is_by = self.template.as_ref().is_some_and(|written| written.style == Style::By);
        for kept in &packing.kept {
            if let Some(span) = &kept.span {
                assert!(packing.text.get(span.clone()).is_some(), "{span:?}");
            }
            if !is_by && !kept.was_cut {
                assert_eq!(chunks[kept.index].text, kept.text());
            }
        }
    }

    fn assert_within(&self, packing: &Packing) {
        let budget = packing.budget_tokens;
        let is_cut = packing.kept.iter().any(|kept| kept.was_cut);
        let most = match self.counter {
            // Its document's program cuts to four code points for each token, and does not count
            // the marker.
            Some(Counter::Ratio(_)) if self.preset == Some(Preset::Router) && is_cut => usize::MAX,
            _ if self.preset == Some(Preset::Router) && is_cut => budget + MARKER,
            _ => budget,
        };
        assert!(packing.total_tokens <= most, "{} over {most}: {self:?}", packing.total_tokens);
        let counter = self.counter.clone().or(match self.preset {
            None | Some(Preset::Top) => None,
            Some(Preset::Gate) => Some(Counter::Ratio(29)),
            Some(_) => Some(Counter::CharsDiv4),
        });
        let counts_parts = self.preset == Some(Preset::Router)
            && matches!(counter, Some(Counter::CharsDiv4 | Counter::Words | Counter::Ratio(_)));
        if counts_parts || packing.text.is_empty() {
            return; // what it reproduces does not count separators
        }
        let counter = counter.map_or_else(
            || Box::new(budgeteer::Encoding::O200k) as crate::counters::Boxed,
            |counter| counter.make(),
        );
        let count = counter.count(&packing.text);
        assert_eq!(count, packing.total_tokens, "the total is the count: {packing:?}");
        let own = packing.kept.iter().map(|kept| kept.token_count + kept.citation_tokens);
        if self.preset == Some(Preset::AgenticRag) && !self.prompt {
            assert!(own.sum::<usize>() <= budget, "citations fit: {packing:?}");
        }
    }
}
