#![doc = include_str!("../README.md")]
// Without one of the vocabularies some of what serves both is idle.
#![cfg_attr(not(all(feature = "cl100k", feature = "o200k")), allow(unused, unreachable_code))]

mod assemble;
mod chunk;
mod count;
mod duplicate;
mod error;
mod huge;
mod keywords;
mod layout;
mod once;
mod pack;
mod packer;
pub mod pipeline;
mod rank;
mod scan;
mod score;
mod text;
mod threads;
mod truncate;
mod wide;

pub use budgeteer_vocab::Encoding;
pub use chunk::{Batch, Chunk, Document};
pub use count::{CacheInfo, Estimate, Exact, TokenCounter};
pub use error::{Error, ErrorKind};
pub use keywords::keywords;
pub use layout::{Flex, Resolved, resolve_layout};
pub use pack::{Dropped, DroppedColumns, Kept, Overflow, Reason};
pub use packer::{DroppedChunk, KeptChunk, Order, Packer, Packing, Template};
pub use rank::Ranking;
pub use score::{batch_keyword_scores, keyword_scores};
pub use text::Text;
pub use truncate::{Keep, grapheme_boundaries, truncate};
