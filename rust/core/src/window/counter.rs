//! The counter of a model: that of an encoding, and a factor for a model whose
//! own is not native.

use std::sync::Arc;

#[cfg(feature = "claude")]
use crate::Claude;
use crate::Encoding;
use crate::count::{Basis, Estimate, Exact, Factor, Native, Scaled, TokenCounter};

/// Counts for a model, possibly with the encoding of another one and a factor.
///
/// Made by [`ModelLimits::counter`](super::ModelLimits::counter).
#[derive(Clone, Debug, PartialEq)]
pub struct ModelCounter {
    counter: Scaled<Native>,
    /// Whether the encoding may not be the model's own.
    is_guess: bool,
}

impl ModelCounter {
    /// Returns the counter that is used if no model was named.
    pub(crate) fn default() -> Self {
        Self::of(native("o200k_base").unwrap_or(Native::Estimate(Estimate::CharsDiv4)))
    }

    pub(super) fn of(native: Native) -> Self {
        Self { counter: Scaled::times(native, Factor::ONE), is_guess: false }
    }

    /// Returns the counter of an encoding times a factor, if that is in this
    /// binary.
    pub(super) fn estimate(encoding: &str, factor: Option<f64>) -> Option<Self> {
        let times = factor.map_or(Factor::ONE, Factor::new);
        let counter = Scaled::times(native(encoding)?, times);
        Some(Self { counter, is_guess: factor.is_some() })
    }
}

impl TokenCounter for ModelCounter {
    fn count(&self, text: &str) -> usize {
        self.counter.count(text)
    }

    fn count_till_limit(&self, text: &str, limit: usize) -> Option<usize> {
        self.counter.count_till_limit(text, limit)
    }

    fn is_exact(&self) -> bool {
        !self.is_guess && self.counter.is_exact()
    }

    fn basis(&self) -> Basis {
        if self.is_guess { Basis::Factor } else { self.counter.basis() }
    }

    fn to_shared(&self) -> Option<Arc<dyn TokenCounter + Send + Sync>> {
        Some(Arc::new(self.clone()))
    }

    fn native(&self) -> Option<Native> {
        self.counter.native()
    }
}

/// Returns which names have a counter here, for errors.
pub(crate) fn counter_names() -> String {
    let encodings = Encoding::ALL.iter().map(|encoding| encoding.name());
    #[cfg(feature = "claude")]
    let encodings = encodings.chain(Claude::ALL.iter().map(|claude| claude.name()));
    let names = encodings.chain(["chars_div4", "words", "whitespace", "chars_per_token:X"]);
    let names: Vec<_> = names.map(|name| format!("{name:?}")).collect();
    format!("one of {}", names.join(", "))
}

/// Returns the counter of a name, if it has one here.
pub(super) fn native(name: &str) -> Option<Native> {
    // Only its special tokens are special, and none is counted as one.
    let name = if name == "o200k_harmony" { "o200k_base" } else { name };
    if let Some(&encoding) = Encoding::ALL.iter().find(|encoding| encoding.name() == name) {
        return Exact::new(encoding).native();
    }
    #[cfg(feature = "claude")]
    if let Some(claude) = Claude::ALL.iter().find(|claude| claude.name() == name) {
        return claude.native();
    }
    Some(Native::Estimate(match name {
        "chars_div4" => Estimate::CharsDiv4,
        "words" | "whitespace" => Estimate::Words,
        _ => {
            let ratio = name.strip_prefix("chars_per_token:")?.parse().ok()?;
            let is_allowed = (0.001..=1_000_000.0).contains(&ratio);
            return is_allowed.then_some(Native::Estimate(Estimate::CharsPerToken(ratio)));
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_has_a_counter() {
        let names = counter_names();
        let names = names.strip_prefix("one of ").unwrap().split(", ");
        let names: Vec<_> = names.map(|name| name.trim_matches('"').replace('X', "4")).collect();
        assert!(names.len() >= Encoding::ALL.len() + 4);
        assert!(names.iter().all(|name| native(name).is_some()), "{names:?}");
    }
}
