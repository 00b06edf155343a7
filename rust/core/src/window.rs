//! A model's window: its limits, and how it is divided between the input and
//! the answer.
//!
//! # Examples
//!
//! ```
//! use budgeteer::window::{Negotiator, model_limits};
//!
//! let limits = model_limits("gpt-3.5-turbo-0125");
//! assert_eq!(limits.context_window, 16_385);
//!
//! let negotiation = Negotiator::new(limits).message_count(50).negotiate(5_000)?;
//! assert_eq!(negotiation.adjusted_max_output_tokens, 3_285);
//! assert!(negotiation.was_reduced);
//! # Ok::<(), budgeteer::Error>(())
//! ```

mod counter;
#[cfg(feature = "files")]
mod find_files;
mod limits;
#[cfg(feature = "json")]
mod litellm;
mod model_names;
mod models;
#[cfg(feature = "json")]
mod models_file;
mod negotiation;

pub use crate::messages::{count_messages, count_tools, trim_messages};
pub use counter::ModelCounter;
pub(crate) use counter::counter_names;
pub use limits::{ModelLimits, list_models, model_limits, register_model};
#[cfg(feature = "json")]
pub use models_file::load_models;
pub use negotiation::{Memory, Negotiation, Negotiator};

use crate::error::Error;

/// The tokens of a window that are taken before anything is retrieved, for
/// [`retrieval_budget`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reserve {
    /// The tokens of the system prompt.
    pub system_tokens: usize,
    /// The tokens reserved for the answer.
    pub max_output_tokens: usize,
    /// The tokens of the query.
    pub query_tokens: usize,
}

/// Returns how many tokens a window has left for retrieved chunks, at least 1.
///
/// Call it before anything is retrieved: a query that leaves nothing is refused
/// here.
///
/// # Errors
///
/// [`ErrorKind::InputValidation`](crate::ErrorKind::InputValidation) where
/// nothing is left. Its message has the arithmetic.
///
/// # Examples
///
/// ```
/// use budgeteer::window::{Reserve, retrieval_budget};
/// use budgeteer::{Estimate, TokenCounter};
///
/// let reserve = Reserve { system_tokens: 200, max_output_tokens: 500, query_tokens: 50 };
/// assert_eq!(retrieval_budget(4_096, reserve), Ok(3_346));
///
/// let query_tokens = Estimate::CharsDiv4.count("What is green tea?");
/// assert_eq!(retrieval_budget(4_096, Reserve { query_tokens, ..Reserve::default() }), Ok(4_091));
///
/// let error = retrieval_budget(700, reserve).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "nothing is left for retrieval: context_window 700 - system_tokens 200 - \
///      max_output_tokens 500 - query_tokens 50 = -50"
/// );
/// ```
pub fn retrieval_budget(context_window: usize, reserve: Reserve) -> Result<usize, Error> {
    let Reserve { system_tokens, max_output_tokens, query_tokens } = reserve;
    [system_tokens, max_output_tokens, query_tokens]
        .into_iter()
        .try_fold(context_window, usize::checked_sub)
        .filter(|&left| left > 0)
        .ok_or_else(|| nothing_left(context_window, reserve))
}

fn nothing_left(context_window: usize, reserve: Reserve) -> Error {
    let wide = |tokens: usize| i128::try_from(tokens).unwrap_or(i128::MAX);
    let Reserve { system_tokens, max_output_tokens, query_tokens } = reserve;
    let left =
        wide(context_window) - wide(system_tokens) - wide(max_output_tokens) - wide(query_tokens);
    Error::no_room(format!(
        "nothing is left for retrieval: context_window {context_window} - system_tokens \
         {system_tokens} - max_output_tokens {max_output_tokens} - query_tokens {query_tokens} = \
         {left}"
    ))
}
