//! Budgets for the frameworks of Rust: a file for each, to copy into a program.
//!
//! `Cargo.toml` says which packages each file needs.

pub mod qdrant;
pub mod rig;
pub mod swiftide;

/// The pages of the repository that have Rust in them: their snippets are tested. They are here, as
/// the package of the crate has none of them.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../../../docs/integrations.md")]
#[doc = include_str!("../../../docs/rust.md")]
mod pages {}
