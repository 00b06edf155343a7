//! Budgets for the frameworks of Rust: a file for each, to copy into a program.
//!
//! `Cargo.toml` says which packages each file needs.

pub mod qdrant;
pub mod rig;
pub mod swiftide;

/// The page that shows them: its snippets are tested.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/integrations.md")]
mod page {}
