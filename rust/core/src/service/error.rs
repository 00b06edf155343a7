//! What a request may end with.

use std::time::Duration;

use super::retrievers::BoxError;
use crate::error::{Error, ErrorKind};

/// Why a request was not answered.
///
/// Callers branch on [`ServiceError::kind`]; the message is for people and may
/// change in any release. It names the component and quotes neither a text nor
/// what somebody else's error says, which may hold an address or a key: that
/// is the [`source`](std::error::Error::source).
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
/// # Ok::<(), budgeteer::Error>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ServiceError(Repr);

#[derive(Debug, thiserror::Error)]
enum Repr {
    #[error(transparent)]
    Own(#[from] Error),
    #[error("{component} failed")]
    Failed { component: Box<str>, source: BoxError },
    #[error("{component} answered what cannot be packed")]
    Unpackable { component: Box<str>, source: Error },
    #[error("the deadline of {} seconds passed before {component} answered", timeout.as_secs_f64())]
    Late { component: Box<str>, timeout: Duration },
}

impl ServiceError {
    /// Returns what went wrong, without the numbers:
    ///
    /// - [`ErrorKind::InputValidation`]: nothing is left for retrieval, and
    ///   nobody was asked;
    /// - [`ErrorKind::Retrieval`]: a retriever or the reranker failed, or
    ///   answered what cannot be packed;
    /// - [`ErrorKind::Timeout`]: the deadline passed;
    /// - [`ErrorKind::InvalidArgument`]: the packer's options contradict each
    ///   other, or chunks that the caller brought cannot be packed.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match &self.0 {
            Repr::Own(error) => error.kind(),
            Repr::Failed { .. } | Repr::Unpackable { .. } => ErrorKind::Retrieval,
            Repr::Late { .. } => ErrorKind::Timeout,
        }
    }

    /// Returns the name of the retriever or the reranker that failed or was
    /// late; None where nobody was asked.
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

impl From<Error> for ServiceError {
    fn from(error: Error) -> Self {
        Self(Repr::Own(error))
    }
}
