//! Trimming a chat history to its newest messages, without separating tool
//! calls from their results.

use std::collections::HashMap;

use super::{Costs, Message, PER_REPLY};
use crate::count::TokenCounter;
use crate::error::Error;

/// The options of [`trim_messages`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trim<'a> {
    /// A model with costs of its own.
    pub model: Option<&'a str>,
    /// Whether to leave out the messages in front of the user's first message,
    /// as some APIs require.
    pub start_on_user: bool,
}

/// Returns the places of the system messages and of the newest other messages
/// that fit, ascending.
///
/// [`count_messages`](super::count_messages) of these is at most `max_tokens`.
/// Messages are taken from the newest backwards, up to the first that does not
/// fit; nothing is cut or skipped in between. A tool call and its results, also
/// parallel ones, stay or leave together, with the messages between them. APIs
/// refuse a result whose call is missing, so a message with such a result is
/// left out. A call without results stays, as its results may still follow.
///
/// Each message that is looked at is counted once. Messages older than the
/// first that does not fit are not counted. Where not even the newest fits,
/// only the system messages are left.
///
/// # Errors
///
/// [`ErrorKind::BudgetExhausted`](crate::ErrorKind::BudgetExhausted) where the
/// system messages alone do not fit; the message has the figures.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "o200k")] {
/// use budgeteer::window::trim_messages;
/// use budgeteer::{Encoding, Message, Trim};
///
/// let messages = [
///     Message::system("Be brief."),
///     Message::user("What is green tea?"),
///     Message::assistant("Tea whose leaves are not oxidised."),
///     Message::user("And black tea?"),
/// ];
/// let kept = trim_messages(&messages, 20, &Encoding::O200k, Trim::default())?;
/// assert_eq!(kept, [0, 3]);
///
/// let kept: Vec<&Message> = kept.into_iter().map(|i| &messages[i]).collect();
/// assert_eq!(kept[1].text(), "And black tea?");
/// # }
/// # Ok::<(), budgeteer::Error>(())
/// ```
pub fn trim_messages(
    messages: &[Message],
    max_tokens: usize,
    counter: &dyn TokenCounter,
    trim: Trim<'_>,
) -> Result<Vec<usize>, Error> {
    let costs = Costs::new(counter, trim.model);
    let history = History::read(messages);
    let mut needed = PER_REPLY;
    for &i in &history.system {
        needed = needed.saturating_add(costs.of(&messages[i]));
    }
    let room = match max_tokens.checked_sub(needed) {
        Some(room) => room,
        None if history.system.is_empty() => return Ok(Vec::new()),
        None => {
            let (count, plural) = match history.system.len() {
                1 => (1, ""),
                count => (count, "s"),
            };
            let system = needed - PER_REPLY;
            return Err(Error::overflow(format!(
                "the system messages do not fit: max_tokens {max_tokens} - {system} for {count} \
                 system message{plural} - {PER_REPLY} for the reply = -{}",
                needed - max_tokens
            )));
        }
    };
    let cost = |place: usize, left| costs.of_till_limit(&messages[place], left);
    let mut kept = history.newest(room, cost, trim.start_on_user);
    kept.extend(&history.system);
    kept.sort_unstable();
    Ok(kept)
}

/// The places of the messages of a history, by their kind.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// The system messages.
    pub(crate) system: Vec<usize>,
    /// The other messages, except those with a result whose call is missing.
    others: Vec<Other>,
}

#[derive(Debug)]
struct Other {
    index: usize,
    /// How far back it reaches: to the first of the calls whose results it has,
    /// or to the message itself.
    reach: usize,
    is_user: bool,
}

impl History {
    /// Sorts messages by their kind.
    pub(crate) fn read(messages: &[Message]) -> Self {
        let mut history = Self::default();
        let mut calls: HashMap<&str, usize> = HashMap::new();
        let mut caller = None; // the message whose calls results without an id belong to
        for (index, message) in messages.iter().enumerate() {
            if message.is_system() {
                history.system.push(index);
                continue;
            }
            let answers = message.results();
            let call = |key: Option<&str>| match key {
                Some(key) => calls.get(key).copied(),
                None => caller,
            };
            let found = answers.iter().map(|&key| call(key)).collect::<Option<Vec<_>>>();
            let Some(found) = found else {
                continue;
            };
            let reach = found.into_iter().min().unwrap_or(index);
            history.others.push(Other { index, reach, is_user: message.role() == "user" });
            let asked = message.calls();
            if !asked.is_empty() {
                caller = Some(index);
                calls.extend(asked.into_iter().flatten().map(|key| (key, index)));
            } else if answers.is_empty() {
                caller = None;
            }
        }
        history
    }

    /// Returns the places of the other messages, ascending.
    pub(crate) fn others(&self) -> impl Iterator<Item = usize> {
        self.others.iter().map(|other| other.index)
    }

    /// Returns the newest of the other messages that fit into `room` together,
    /// newest first.
    ///
    /// `cost` returns the cost of the message at a place if that is at most the
    /// tokens left.
    pub(crate) fn newest(
        &self,
        mut room: usize,
        mut cost: impl FnMut(usize, usize) -> Option<usize>,
        start_on_user: bool,
    ) -> Vec<usize> {
        let mut kept = Vec::new();
        // The number of these messages that begin with one that may stand
        // first, and have the calls of all their results.
        let mut whole = 0;
        let mut reach = usize::MAX;
        for other in self.others.iter().rev() {
            let Some(tokens) = cost(other.index, room) else { break };
            room -= tokens;
            kept.push(other.index);
            reach = reach.min(other.reach);
            if reach >= other.index && (other.is_user || !start_on_user) {
                whole = kept.len();
            }
        }
        kept.truncate(whole);
        kept
    }
}
