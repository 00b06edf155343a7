#![doc = include_str!("../README.md")]

mod class;
mod encoding;
mod pack;
mod unpack;
mod vocabulary;

pub use class::{CLASSES, Class};
pub use encoding::Encoding;
pub use vocabulary::Vocabulary;
