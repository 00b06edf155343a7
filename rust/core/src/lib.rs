#![doc = include_str!("../README.md")]
// Without one of the vocabularies some code for both is unused.
#![cfg_attr(not(all(feature = "cl100k", feature = "o200k")), allow(unused, unreachable_code))]

mod assemble;
mod calibration;
mod chunk;
mod citation;
mod corpus;
mod count;
mod dropped;
mod duplicate;
mod envelope;
mod error;
#[cfg(feature = "json")]
mod fields;
mod fork;
mod gate;
mod huge;
mod images;
mod keywords;
mod layout;
mod mapped;
mod messages;
mod near;
mod once;
mod outcome;
mod output;
mod pack;
mod packer;
mod packing;
pub mod pipeline;
mod plan;
pub mod presets;
mod rank;
mod ranking;
mod reading;
mod scan;
mod scope;
mod score;
mod selection;
mod sentences;
pub mod service;
mod sharing;
mod similarity;
mod statistics;
mod stem;
mod stopwords;
mod template;
mod terms;
mod text;
mod threads;
mod truncate;
mod wide;
pub mod window;

pub use budgeteer_vocab::Encoding;
pub use calibration::{Calibration, Correction, Learned};
pub use chunk::{Batch, Chunk, Document, Documents};
pub use corpus::Index;
pub use corpus::documents::Corpus;
pub use corpus::file::Stored;
pub use corpus::saved::Saved;
#[cfg(feature = "claude")]
pub use count::Claude;
#[doc(hidden)]
pub use count::Drafts;
pub use count::{Basis, CacheInfo, Estimate, Exact, Scaled, TokenCounter, Tokenizer};
pub use dropped::{DroppedChunk, DroppedChunks};
pub use error::{Error, ErrorKind};
pub use images::{Detail, Image};
pub use keywords::keywords;
pub use layout::{Allocation, Filling, Flex, Layout, Resolved, Section, resolve_layout};
pub use messages::{Message, Part, Tool, ToolCall, ToolChoice, Trim, Trimmed};
pub use outcome::{Dropped, DroppedColumns, Kept, Reason};
#[doc(hidden)]
pub use output::{Fit, Misfit, Request, fit_text};
pub use output::{FittedOutput, OutputKind, OutputOptions, fit_output, fit_outputs};
pub use packer::Packer;
pub use packing::{KeptChunk, Packing};
pub use plan::{Dedupe, MinScore, Order, Overflow, Selection, Units};
pub use ranking::{B, Bm25, Fusion, Hybrid, K1, K3, Lexical, RankBy, Ranking, Weights};
pub use score::bm25::{batch_bm25_scores, bm25_scores};
#[doc(hidden)]
pub use score::heading::heading;
pub use score::lexical::{batch_lexical_scores, lexical_scores};
pub use score::{batch_keyword_scores, keyword_scores};
pub use sentences::sentence_spans;
pub use similarity::{CosineScorer, Vectors, cosine_scores};
pub use statistics::Statistics;
pub use stem::Stemming;
pub use stopwords::Stopwords;
pub use template::Template;
pub use text::Text;
pub use truncate::{Keep, grapheme_boundaries, truncate};
