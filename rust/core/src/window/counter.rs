//! The counter of a model: that of an encoding, and a factor for a model whose
//! own is not native.

use std::sync::Arc;

use crate::Encoding;
use crate::count::{Basis, Estimate, Exact, Native, TokenCounter};

/// Counts for a model, possibly with the encoding of another one and a factor.
///
/// Made by [`ModelLimits::counter`](super::ModelLimits::counter).
#[derive(Clone, Debug, PartialEq)]
pub struct ModelCounter {
    native: Native,
    factor: Option<f64>,
    /// Whether the encoding may not be the model's own.
    is_guess: bool,
}

impl ModelCounter {
    /// Returns the counter that is used if no model was named.
    pub(crate) fn default() -> Self {
        Self::of(native("o200k_base").unwrap_or(Native::Estimate(Estimate::CharsDiv4)))
    }

    pub(super) fn of(native: Native) -> Self {
        Self { native, factor: None, is_guess: false }
    }

    /// Returns the counter of an encoding times a factor, if that is in this
    /// binary.
    #[allow(clippy::float_cmp)] // it is written as 1.0
    pub(super) fn estimate(encoding: &str, factor: Option<f64>) -> Option<Self> {
        let counter = Self::of(native(encoding)?);
        if factor == Some(1.0) {
            return Some(Self { is_guess: true, ..counter }); // counted natively
        }
        Some(Self { factor, ..counter })
    }
}

impl TokenCounter for ModelCounter {
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // no text has 2^53 tokens, and the factor is positive
    fn count(&self, text: &str) -> usize {
        let count = match &self.native {
            Native::Estimate(estimate) => estimate.count(text),
            Native::Exact(exact) => exact.count(text),
        };
        self.factor.map_or(count, |factor| (count as f64 * factor).ceil() as usize)
    }

    fn count_till_limit(&self, text: &str, limit: usize) -> Option<usize> {
        match (&self.native, self.factor) {
            (Native::Exact(exact), None) => exact.count_till_limit(text, limit),
            _ => Some(self.count(text)).filter(|&count| count <= limit),
        }
    }

    fn is_exact(&self) -> bool {
        !self.is_guess
            && self.factor.is_none()
            && matches!(&self.native, Native::Exact(exact) if exact.tokenizer().is_exact())
    }

    fn basis(&self) -> Basis {
        match &self.native {
            _ if self.is_guess || self.factor.is_some() => Basis::Factor,
            Native::Estimate(_) => Basis::Estimate,
            Native::Exact(_) => Basis::Exact,
        }
    }

    fn to_shared(&self) -> Option<Arc<dyn TokenCounter + Send + Sync>> {
        Some(Arc::new(self.clone()))
    }

    fn native(&self) -> Option<Native> {
        self.factor.is_none().then(|| self.native.clone())
    }
}

/// Returns the counter of a name, if it has one here.
pub(super) fn native(name: &str) -> Option<Native> {
    // Only its special tokens are special, and none is counted as one.
    let name = if name == "o200k_harmony" { "o200k_base" } else { name };
    if let Some(&encoding) = Encoding::ALL.iter().find(|encoding| encoding.name() == name) {
        return Some(Native::Exact(Exact::new(encoding)));
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
