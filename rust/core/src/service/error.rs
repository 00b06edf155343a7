//! The error of a request.

use std::fmt;
use std::time::Duration;

use super::retrievers::BoxError;
use super::trace::shown;
use crate::error::{Error, ErrorKind};

/// Why a request was not answered.
///
/// Callers branch on [`ServiceError::kind`]; the message is for people and may
/// change in any release. It names the component, in 80 characters at most. It
/// quotes neither a text nor the message of another error, which may hold an
/// address or a key: that error is the [`source`](std::error::Error::source).
/// `Debug` shows no more than the message, so a `main` may return this error.
///
/// # Examples
///
/// ```
/// use budgeteer::ErrorKind;
/// use budgeteer::service::{LlmSettings, RetrievalService};
/// use std::error::Error;
///
/// let broken = |_: &str, _: usize| Err("no connection");
/// let settings = LlmSettings::new("gpt-4o").counter(budgeteer::Estimate::CharsDiv4);
/// let error = RetrievalService::new(broken, settings)?.retrieve("Why?").unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Retrieval);
/// assert_eq!(error.source().expect("the retriever's own").to_string(), "no connection");
/// assert!(!format!("{error:?}").contains("no connection"));
/// # Ok::<(), budgeteer::Error>(())
/// ```
#[derive(thiserror::Error)]
#[error(transparent)]
pub struct ServiceError(Repr);

#[derive(Debug, thiserror::Error)]
enum Repr {
    #[error(transparent)]
    Own(#[from] Error),
    #[error("{} failed", shown(component))]
    Failed { component: Box<str>, source: BoxError },
    #[error("{} answered what cannot be packed", shown(component))]
    Unpackable { component: Box<str>, source: Error },
    #[error(
        "the deadline of {} seconds passed before {} answered",
        timeout.as_secs_f64(), shown(component)
    )]
    Late { component: Box<str>, timeout: Duration },
}

impl ServiceError {
    /// Returns the kind of the error, without the numbers:
    ///
    /// - [`ErrorKind::InputValidation`]: nothing is left for retrieval, and no
    ///   component was asked;
    /// - [`ErrorKind::Retrieval`]: a retriever or the reranker failed, or
    ///   returned something that cannot be packed;
    /// - [`ErrorKind::Timeout`]: the deadline passed;
    /// - [`ErrorKind::InvalidArgument`]: limit or timeout is 0, the packer's
    ///   options contradict each other, the caller's chunks cannot be packed,
    ///   or the counter or the message builder returns different results for
    ///   the same texts.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match &self.0 {
            Repr::Own(error) => error.kind(),
            Repr::Failed { .. } | Repr::Unpackable { .. } => ErrorKind::Retrieval,
            Repr::Late { .. } => ErrorKind::Timeout,
        }
    }

    /// Returns the name of the retriever or the reranker that failed or was
    /// late; None if no component was at fault.
    #[must_use]
    pub fn component(&self) -> Option<&str> {
        match &self.0 {
            Repr::Own(_) => None,
            Repr::Failed { component, .. }
            | Repr::Unpackable { component, .. }
            | Repr::Late { component, .. } => Some(component),
        }
    }

    #[cold]
    pub(super) fn failed(component: &str, source: BoxError) -> Self {
        Self(Repr::Failed { component: component.into(), source })
    }

    #[cold]
    pub(super) fn unpackable(component: &str, source: Error) -> Self {
        Self(Repr::Unpackable { component: component.into(), source })
    }

    #[cold]
    pub(super) fn late(component: &str, timeout: Duration) -> Self {
        Self(Repr::Late { component: component.into(), timeout })
    }
}

impl fmt::Debug for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shape = f.debug_struct("ServiceError");
        shape.field("kind", &self.kind());
        if let Some(component) = self.component() {
            shape.field("component", &shown(component));
        }
        shape.field("message", &format_args!("{self}")).finish()
    }
}

impl From<Error> for ServiceError {
    fn from(error: Error) -> Self {
        Self(Repr::Own(error))
    }
}
