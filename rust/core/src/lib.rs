#![doc = include_str!("../README.md")]
// Without one of the vocabularies some of what serves both is idle.
#![cfg_attr(not(all(feature = "cl100k", feature = "o200k")), allow(unused, unreachable_code))]

mod assemble;
mod chunk;
mod citation;
mod corpus;
mod count;
mod duplicate;
mod error;
mod fork;
mod gate;
mod huge;
mod images;
mod keywords;
mod layout;
mod messages;
mod once;
mod pack;
mod packer;
pub mod pipeline;
pub mod presets;
mod rank;
mod scan;
mod score;
pub mod service;
mod similarity;
mod terms;
mod text;
mod threads;
mod truncate;
mod wide;
pub mod window;

pub use assemble::Order;
pub use assemble::template::Template;
pub use budgeteer_vocab::Encoding;
pub use chunk::{Batch, Chunk, Document, Documents};
pub use corpus::Index;
pub use corpus::documents::{Corpus, Saved};
pub use corpus::file::Stored;
pub use count::{CacheInfo, Estimate, Exact, TokenCounter};
pub use error::{Error, ErrorKind};
pub use images::{Detail, Image};
pub use keywords::keywords;
pub use layout::{Allocation, Filling, Flex, Layout, Resolved, Section, resolve_layout};
pub use messages::{Message, Part, Tool, ToolCall, ToolChoice, Trim};
pub use pack::{Dropped, DroppedColumns, Kept, Overflow, Reason};
pub use packer::{DroppedChunk, KeptChunk, Packer, Packing};
pub use rank::Ranking;
pub use score::bm25::{Bm25, batch_bm25_scores, bm25_scores};
pub use score::hybrid::{Fusion, Hybrid};
pub use score::{batch_keyword_scores, keyword_scores};
pub use similarity::{CosineScorer, Vectors, cosine_scores};
pub use text::Text;
pub use truncate::{Keep, grapheme_boundaries, truncate};
