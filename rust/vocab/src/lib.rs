#![doc = include_str!("../README.md")]

mod class;
#[cfg(feature = "claude")]
mod claude;
mod encoding;
mod pack;
#[cfg_attr(not(test), allow(dead_code))] // the build packs
mod shared;
mod unpack;
mod vocabulary;

pub use class::{CLASSES, Class};
#[cfg(feature = "claude")]
pub use claude::{Claude, ClaudeCharacters, ClaudePieces};
pub use encoding::Encoding;
pub use vocabulary::Vocabulary;
