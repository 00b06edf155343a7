//! Trimming a chat history to its newest messages, without separating tool
//! calls from their results.

use std::collections::{BTreeMap, HashMap};

use super::{Costs, Message, PER_REPLY, Turn};
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

/// What [`trim_messages`] leaves of a history.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Trimmed {
    /// The places of the messages that stay, ascending.
    pub places: Vec<usize>,
    /// Those of them whose tool results are cut, by their places: the message
    /// with the texts that fit.
    pub cut: BTreeMap<usize, Message>,
}

impl Trimmed {
    /// Returns the messages that stay, some of them cut, of those that were
    /// trimmed.
    ///
    /// # Panics
    ///
    /// If `messages` are fewer than were trimmed.
    pub fn of<'a>(&'a self, messages: &'a [Message]) -> impl Iterator<Item = &'a Message> {
        self.places.iter().map(|i| self.cut.get(i).unwrap_or(&messages[*i]))
    }
}

/// Returns the places of the system messages and of the newest other messages
/// that fit.
///
/// [`count_messages`](super::count_messages) of these is at most `max_tokens`.
/// Messages are taken from the newest backwards, up to the first that does not
/// fit; nothing is skipped in between. A tool call and its results, also
/// parallel ones, stay or leave together, with the messages between them. APIs
/// refuse a result whose call is missing, so a message with such a result is
/// left out. A call without results stays, as its results may still follow.
///
/// The newest message of the user that holds more than tool results always
/// stays, and all that follows it; without one, the newest message. Where these
/// do not fit, the longest texts of their tool results lose their middle, with a
/// marker in its place, so that all of them share the room.
///
/// Each message that is looked at is counted once, unless tool results are cut.
/// Messages older than the first that does not fit are not counted.
///
/// # Errors
///
/// [`ErrorKind::BudgetExhausted`](crate::ErrorKind::BudgetExhausted) where the
/// system messages, or what else always stays, do not fit, even with all tool
/// results cut; the message has the figures.
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where
/// `start_on_user` would leave out the newest message of the user.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "o200k")] {
/// use budgeteer::window::trim_messages;
/// use budgeteer::{Encoding, Message, ToolCall, Trim};
///
/// let messages = [
///     Message::system("Be brief."),
///     Message::user("What is green tea?"),
///     Message::assistant("Tea whose leaves are not oxidised."),
///     Message::user("And black tea?"),
/// ];
/// let kept = trim_messages(&messages, 20, &Encoding::O200k, Trim::default())?;
/// assert_eq!(kept.places, [0, 3]);
/// assert_eq!(kept.of(&messages).last().unwrap().text(), "And black tea?");
///
/// let messages = [
///     Message::user("What does the log say?"),
///     Message::assistant("").tool_call(ToolCall::new("a", "read", "{}")),
///     Message::tool("a", "Started. ".repeat(500) + "Failed."),
/// ];
/// let kept = trim_messages(&messages, 45, &Encoding::O200k, Trim::default())?;
/// let cut = "Started. Started. Started.\n[...truncated...]\n Started. Started. Failed.";
/// assert_eq!(kept.of(&messages).last().unwrap().text(), cut);
/// # }
/// # Ok::<(), budgeteer::Error>(())
/// ```
pub fn trim_messages(
    messages: &[Message],
    max_tokens: usize,
    counter: &dyn TokenCounter,
    trim: Trim<'_>,
) -> Result<Trimmed, Error> {
    let costs = Costs::new(counter, trim.model);
    let history = History::read(messages);
    let mut system = 0_usize;
    for &i in &history.system {
        system = system.saturating_add(costs.of(&messages[i]));
    }
    let needed = system.saturating_add(PER_REPLY);
    if needed > max_tokens && !history.system.is_empty() {
        return Err(Error::overflow(format!(
            "the system messages do not fit: max_tokens {max_tokens} - {system} for {} - \
             {PER_REPLY} for the reply = -{}",
            number(history.system.len(), "system message"),
            needed - max_tokens
        )));
    }
    let room = max_tokens.saturating_sub(needed);
    let cost = |place: usize, left| costs.of_till_limit(&messages[place], left);
    let latest = history.turn(trim.start_on_user)?;
    let mut trimmed = Trimmed::default();
    if let Some(kept) = history.newest(room, cost, &latest, trim.start_on_user) {
        trimmed.places = kept;
    } else {
        let turn = Turn::new(messages, &latest, costs, room);
        let missing = || turn.needed().saturating_add(needed).saturating_sub(max_tokens);
        let cut =
            turn.cut().ok_or_else(|| exhausted(max_tokens, system, &history, &turn, missing()));
        trimmed.cut = cut?.0;
        trimmed.places = latest;
    }
    trimmed.places.extend(&history.system);
    trimmed.places.sort_unstable();
    Ok(trimmed)
}

/// Returns the error for a turn that does not fit, with the arithmetic.
fn exhausted(
    max_tokens: usize,
    system: usize,
    history: &History,
    turn: &Turn<'_>,
    missing: usize,
) -> Error {
    let place = history.question.or(turn.fixed.keys().last().copied()).unwrap_or_default();
    let what = match history.question {
        Some(_) => "the newest message of the user and what follows it do not fit",
        None => "the newest message and what it belongs to do not fit",
    };
    let own = turn.fixed[&place];
    let others = turn.needed().saturating_sub(own).saturating_sub(turn.least);
    let part = |tokens: usize, count: usize, name: &str, of: &str| match count {
        0 => String::new(),
        _ => format!("{tokens} for {}{of} - ", number(count, name)),
    };
    Error::overflow(format!(
        "{what}: max_tokens {max_tokens} - {}{own} for messages[{place}] - {}{}{PER_REPLY} for \
         the reply = -{missing}",
        part(system, history.system.len(), "system message", ""),
        part(others, turn.fixed.len() - 1, "other message", ""),
        part(turn.least, turn.results(), "cut text", " of tool results"),
    ))
}

fn number(count: usize, name: &str) -> String {
    format!("{count} {name}{}", if count == 1 { "" } else { "s" })
}

/// The places of the messages of a history, by their kind.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// The system messages.
    pub(crate) system: Vec<usize>,
    /// The other messages, except those with a result whose call is missing.
    others: Vec<Other>,
    /// The newest of these of the user that holds more than tool results.
    question: Option<usize>,
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
            if message.is_question() {
                history.question = Some(index);
            }
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

    /// Returns the places of the other messages that must stay, ascending: the
    /// question and all that follows it.
    ///
    /// They begin where a history may begin. Without a question they are the
    /// newest message and what it belongs to, or none where a message of the
    /// user must come first.
    pub(crate) fn turn(&self, start_on_user: bool) -> Result<Vec<usize>, Error> {
        let newest = self.others.last().filter(|_| !start_on_user).map(|other| other.index);
        let Some(last) = self.question.or(newest) else { return Ok(Vec::new()) };
        let mut reach = usize::MAX;
        for (at, other) in self.others.iter().enumerate().rev() {
            reach = reach.min(other.reach);
            let may_begin = reach >= other.index && (other.is_user || !start_on_user);
            if other.index <= last && may_begin {
                return Ok(self.others[at..].iter().map(|other| other.index).collect());
            }
        }
        Err(Error::shape(format!(
            "start_on_user would leave out messages[{last}], the newest message of the user: it, \
             or what follows it, has the result of a call, and no message of the user is before \
             that call"
        )))
    }

    /// Returns the newest of the other messages that fit into `room` together,
    /// newest first; None where those of the turn do not.
    ///
    /// `cost` returns the cost of the message at a place if that is at most the
    /// tokens left.
    pub(crate) fn newest(
        &self,
        mut room: usize,
        mut cost: impl FnMut(usize, usize) -> Option<usize>,
        turn: &[usize],
        start_on_user: bool,
    ) -> Option<Vec<usize>> {
        let mut kept = Vec::new();
        // The number of these messages that begin with one that may stand
        // first, and have the calls of all their results.
        let mut whole = 0;
        let mut reach = usize::MAX;
        for other in self.others.iter().rev() {
            let Some(tokens) = cost(other.index, room) else {
                if turn.first().is_some_and(|&first| other.index >= first) {
                    return None;
                }
                break;
            };
            room -= tokens;
            kept.push(other.index);
            reach = reach.min(other.reach);
            if reach >= other.index && (other.is_user || !start_on_user) {
                whole = kept.len();
            }
        }
        kept.truncate(whole);
        Some(kept)
    }
}
