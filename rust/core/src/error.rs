//! The one error type of the crate.

/// An error raised by any operation of this crate.
///
/// Callers branch on [`Error::kind`]. The message is for people and may change
/// in any release.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(transparent)]
pub struct Error(Repr);

/// The kind of an error, without the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument is out of range or has an unknown shape.
    InvalidArgument,
    /// A part that must be in a window does not fit.
    BudgetExhausted,
    /// A request leaves no tokens of a window for retrieval.
    InputValidation,
    /// A file is not a corpus, is of another version, or is damaged.
    Corpus,
    /// A file is no tokenizer, is damaged, or has a step that this crate cannot
    /// do as the tokenizer does.
    Tokenizer,
    /// A file cannot be read or written.
    Io(std::io::ErrorKind),
    /// A retriever or a reranker of a [`service`](crate::service) failed, or
    /// returned something that cannot be packed.
    Retrieval,
    /// The deadline of a request has passed.
    Timeout,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
enum Repr {
    #[error("chunks[{index}].{field} must be a number, not NaN")]
    Nan { index: usize, field: &'static str },
    #[error("artifacts[{index}] must not have the id of artifacts[{first}]")]
    RepeatedId { index: usize, first: usize },
    #[error("min_score must be a number, not NaN")]
    NanMinScore,
    #[error("characters per token must be from 0.001 to 1000000, not {ratio}")]
    Ratio { ratio: f64 },
    #[error("{name} must be {allowed}, not {value}")]
    Limit { name: Box<str>, allowed: Box<str>, value: Box<str> },
    #[error("{0}")]
    Shape(Box<str>),
    #[error("{0}")]
    Overflow(Box<str>),
    #[error("{0}")]
    NoRoom(Box<str>),
    #[error(
        "a template must have {{text}} once, no other field than {{kind}}, {{id}}, {{source}}, \
         {{title}} and {{index}}, and each other brace twice"
    )]
    Format,
    #[error("the file is no corpus")]
    Foreign,
    #[error(
        "the file has version {found} of the layout, and only {known} is known: save the corpus \
            again from its chunks"
    )]
    Version { found: u32, known: u32 },
    #[error("the file {what}")]
    Damaged { what: &'static str },
    #[cfg_attr(not(feature = "files"), allow(dead_code))]
    #[error("{0}")]
    Tokenizer(Box<str>),
    #[error("{message}")]
    Io { kind: std::io::ErrorKind, code: Option<i32>, message: String },
}

impl Error {
    /// Returns the kind of this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match &self.0 {
            Repr::Nan { .. }
            | Repr::RepeatedId { .. }
            | Repr::NanMinScore
            | Repr::Ratio { .. }
            | Repr::Format
            | Repr::Limit { .. }
            | Repr::Shape(_) => ErrorKind::InvalidArgument,
            Repr::Overflow(_) => ErrorKind::BudgetExhausted,
            Repr::NoRoom(_) => ErrorKind::InputValidation,
            Repr::Foreign | Repr::Version { .. } | Repr::Damaged { .. } => ErrorKind::Corpus,
            Repr::Tokenizer(_) => ErrorKind::Tokenizer,
            Repr::Io { kind, .. } => ErrorKind::Io(*kind),
        }
    }

    /// Returns the operating system's error number, if this is an error of
    /// [`ErrorKind::Io`] that has one.
    #[must_use]
    pub fn os_error(&self) -> Option<i32> {
        match self.0 {
            Repr::Io { code, .. } => code,
            _ => None,
        }
    }

    /// Returns an error for a file that is no tokenizer, or not one of these.
    #[cfg(feature = "files")]
    #[cold]
    pub(crate) fn tokenizer(message: impl Into<Box<str>>) -> Self {
        Self(Repr::Tokenizer(message.into()))
    }

    #[cold]
    pub(crate) fn foreign() -> Self {
        Self(Repr::Foreign)
    }

    #[cold]
    pub(crate) fn version(found: u32, known: u32) -> Self {
        Self(Repr::Version { found, known })
    }

    #[cold]
    pub(crate) fn damaged(what: &'static str) -> Self {
        Self(Repr::Damaged { what })
    }

    #[cold]
    pub(crate) fn io(error: &std::io::Error) -> Self {
        let (kind, code) = (error.kind(), error.raw_os_error());
        Self(Repr::Io { kind, code, message: error.to_string() })
    }

    /// Like [`io`](Self::io), with the name of the file.
    #[cold]
    pub(crate) fn io_at(path: &std::path::Path, error: &std::io::Error) -> Self {
        let (kind, code) = (error.kind(), error.raw_os_error());
        Self(Repr::Io { kind, code, message: format!("{}: {error}", path.display()) })
    }

    /// Returns the error with the name of the file, where it is one of the
    /// operating system.
    #[cold]
    pub(crate) fn at(mut self, path: &std::path::Path) -> Self {
        if let Repr::Io { message, .. } = &mut self.0 {
            *message = format!("{}: {message}", path.display());
        }
        self
    }

    #[cold]
    pub(crate) fn nan(index: usize, field: &'static str) -> Self {
        Self(Repr::Nan { index, field })
    }

    #[cold]
    pub(crate) fn repeated_id(index: usize, first: usize) -> Self {
        Self(Repr::RepeatedId { index, first })
    }

    #[cold]
    pub(crate) fn nan_min_score() -> Self {
        Self(Repr::NanMinScore)
    }

    #[cold]
    pub(crate) fn format() -> Self {
        Self(Repr::Format)
    }

    #[cold]
    pub(crate) fn ratio(ratio: f64) -> Self {
        Self(Repr::Ratio { ratio })
    }

    #[cold]
    pub(crate) fn limit(
        name: &str,
        allowed: impl Into<Box<str>>,
        value: impl Into<Box<str>>,
    ) -> Self {
        Self(Repr::Limit { name: name.into(), allowed: allowed.into(), value: value.into() })
    }

    /// Returns an error for an invalid argument, with this message.
    #[cold]
    pub(crate) fn shape(message: String) -> Self {
        Self(Repr::Shape(message.into()))
    }

    /// Returns an error for an exhausted budget. The message has the
    /// arithmetic.
    #[cold]
    pub(crate) fn overflow(message: String) -> Self {
        Self(Repr::Overflow(message.into()))
    }

    /// Returns an error for a request that leaves no tokens for retrieval. The
    /// message has the arithmetic.
    #[cold]
    pub(crate) fn no_room(message: String) -> Self {
        Self(Repr::NoRoom(message.into()))
    }
}
