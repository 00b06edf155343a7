//! The one error type of the crate.

/// An error raised by any operation of this crate.
///
/// Callers branch on [`Error::kind`]; the message is for people and may change
/// in any release.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(transparent)]
pub struct Error(Repr);

/// What went wrong, without the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument is out of range.
    InvalidArgument,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
enum Repr {
    #[error("chunks[{index}].{field} must be a number, not NaN")]
    Nan { index: usize, field: &'static str },
    #[error("min_score must be a number, not NaN")]
    NanMinScore,
    #[error("characters per token must be from 0.001 to 1000000, not {ratio}")]
    Ratio { ratio: f64 },
}

impl Error {
    /// Returns the kind of this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self.0 {
            Repr::Nan { .. } | Repr::NanMinScore | Repr::Ratio { .. } => ErrorKind::InvalidArgument,
        }
    }

    #[cold]
    pub(crate) fn nan(index: usize, field: &'static str) -> Self {
        Self(Repr::Nan { index, field })
    }

    #[cold]
    pub(crate) fn nan_min_score() -> Self {
        Self(Repr::NanMinScore)
    }

    #[cold]
    pub(crate) fn ratio(ratio: f64) -> Self {
        Self(Repr::Ratio { ratio })
    }
}
