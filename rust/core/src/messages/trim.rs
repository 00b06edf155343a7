//! Trimming a chat history to its newest messages, without separating tool
//! calls from their results.

use std::collections::BTreeMap;

use super::keep::{Keeper, Kept, Rules};
use super::{Costs, History, Message, Turn};
use crate::count::{TokenCounter, check};
use crate::error::Error;

/// The options of [`trim_messages`].
///
/// Providers cache the beginning of a prompt that stays the same. With the
/// messages of last time as `previous`, these stay as they are while they and
/// the new messages fit, and the new messages follow. Once they do not fit, the
/// oldest messages leave until a part of the window is free, so that the next
/// turns only add.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "o200k")] {
/// use budgeteer::window::trim_messages;
/// use budgeteer::{Encoding, Message, Trim};
///
/// let (mut history, mut sent) = (Vec::new(), Vec::new());
/// for i in 0..9 {
///     history.push(Message::user(format!("What is {i} and {i}?")));
///     let trim = Trim { previous: Some(&sent), ..Trim::default() };
///     let trimmed = trim_messages(&history, 60, &Encoding::O200k, trim)?;
///     assert!(trimmed.total_tokens <= 60);
///     sent = trimmed.of(&history).cloned().collect();
///     history.push(Message::assistant(format!("It is {}.", i + i)));
/// }
/// assert_eq!(sent[1].text(), "What is 7 and 7?");
/// # }
/// # Ok::<(), budgeteer::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Trim<'a> {
    /// A model with costs of its own.
    pub model: Option<&'a str>,
    /// Whether to leave out the messages in front of the user's first message,
    /// as some APIs require.
    pub start_on_user: bool,
    /// The messages that were kept last time, or sent then; none the first
    /// time. They are found among the messages by their content, and what is
    /// not found is passed over. None keeps as much as fits, whatever was kept
    /// before.
    pub previous: Option<&'a [Message]>,
    /// The share of the limit that a cut frees, above 0 and below 1. None
    /// chooses it with `previous`, from the sizes of the turns, so that the
    /// prefix changes in as large a share of the turns as of the window is
    /// unused: at least an eighth, at most half of what the system messages
    /// leave. Without `previous` None frees nothing.
    pub step: Option<f64>,
    /// How many of the newest tool results stay. Where messages do not fit, the
    /// older results, except those to which the model has not replied, are
    /// replaced by `[tool result left out]`, the oldest first, before any
    /// message leaves. None replaces none.
    pub keep_results: Option<usize>,
    /// The places of messages that stay, and are neither masked nor cut: for
    /// example those for which [`Message::has_cache_breakpoint`] is true. The
    /// calls and results that they belong to stay as well, and with
    /// `start_on_user` the last message of the user before the first of them. A
    /// result without its call is left out even so.
    pub pins: &'a [usize],
}

/// What [`trim_messages`] leaves of a history.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Trimmed {
    /// The places of the messages that stay, ascending.
    pub places: Vec<usize>,
    /// Those of them with less of their tool results, by their places: the
    /// message with the texts that fit, or with masked results.
    pub cut: BTreeMap<usize, Message>,
    /// What [`count_messages`](super::count_messages) returns for them.
    pub total_tokens: usize,
    /// The tokens of the leading messages that are the same as the leading ones
    /// of [`Trim::previous`]: what a provider's cache may still have.
    pub stable_prefix_tokens: usize,
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
/// parallel ones, stay or leave together, with the messages between them. A
/// result whose call is missing is left out, as the APIs refuse it, and so is a
/// message that holds nothing else; what else is in its message stays. A call
/// without results stays, as its results may still follow.
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
    let Trim { model, start_on_user, previous, step, keep_results, pins } = trim;
    check(counter)?;
    let rules = Rules { previous, step, keep_results, pins, start_on_user };
    rules.check(str::to_owned)?;
    if let Some(pin) = pins.iter().find(|&&pin| pin >= messages.len()) {
        let allowed = format!("below {}, places of the messages", messages.len());
        return Err(Error::limit("pins", allowed, pin.to_string()));
    }
    let costs = Costs::new(counter, model);
    let history = History::read(messages);
    let messages = &*history.complete(messages);
    let mut tokens: BTreeMap<usize, usize> =
        history.system.iter().map(|&i| (i, costs.of(&messages[i]))).collect();
    let system = sum(&tokens);
    let around = costs.around();
    let needed = system.saturating_add(around);
    if needed > max_tokens && !history.system.is_empty() {
        return Err(Error::overflow(format!(
            "the system messages do not fit: max_tokens {max_tokens} - {system} for {} - \
             {around} for {} = -{}",
            number(history.system.len(), "system message"),
            costs.family.around_name(),
            needed - max_tokens
        )));
    }
    let room = max_tokens.saturating_sub(needed);
    let cost = |place: usize, left| costs.of_till_limit(&messages[place], left);
    let kept = Keeper::new(messages, &history, rules, costs, &cost)?.keep(max_tokens, room);
    if let Some(turn) = &kept.turn {
        let all = turn.needed().saturating_add(needed).saturating_add(kept.pinned.1);
        if all > max_tokens {
            return Err(exhausted(max_tokens, system, &history, &kept, turn, costs));
        }
    }
    tokens.extend(kept.tokens);
    let mut cut = kept.made;
    for (&place, message) in &history.partial {
        if tokens.contains_key(&place) {
            cut.entry(place).or_insert_with(|| message.clone());
        }
    }
    let mut trimmed = Trimmed {
        places: tokens.keys().copied().collect(),
        cut,
        total_tokens: if tokens.is_empty() { 0 } else { sum(&tokens).saturating_add(around) },
        stable_prefix_tokens: 0,
    };
    let pairs = trimmed.of(messages).zip(previous.unwrap_or_default());
    let stable = pairs.take_while(|(now, before)| now == before).count();
    let stable = tokens.values().take(stable);
    trimmed.stable_prefix_tokens = stable.fold(0, |sum, &one| sum.saturating_add(one));
    Ok(trimmed)
}

fn sum(tokens: &BTreeMap<usize, usize>) -> usize {
    tokens.values().fold(0, |sum, &one| sum.saturating_add(one))
}

/// Returns the error for a turn that does not fit, with the arithmetic.
fn exhausted(
    max_tokens: usize,
    system: usize,
    history: &History,
    kept: &Kept<'_>,
    turn: &Turn<'_>,
    costs: Costs<'_>,
) -> Error {
    let place = history.question.or(turn.fixed.keys().last().copied()).unwrap_or_default();
    let what = match history.question {
        Some(_) => "the newest message of the user and what follows it do not fit",
        None => "the newest message and what it belongs to do not fit",
    };
    let own = turn.fixed[&place];
    let around = costs.around();
    let all = [turn.needed(), system, around, kept.pinned.1];
    let missing = all.into_iter().fold(0, usize::saturating_add) - max_tokens;
    let others = turn.needed().saturating_sub(own).saturating_sub(turn.least);
    let part = |tokens: usize, count: usize, name: &str, of: &str| match count {
        0 => String::new(),
        _ => format!("{tokens} for {}{of} - ", number(count, name)),
    };
    Error::overflow(format!(
        "{what}: max_tokens {max_tokens} - {}{}{own} for messages[{place}] - {}{}{around} for {} = \
         -{missing}",
        part(system, history.system.len(), "system message", ""),
        part(kept.pinned.1, kept.pinned.0, "pinned message", ""),
        part(others, turn.fixed.len() - 1, "other message", ""),
        part(turn.least, turn.results(), "cut text", " of tool results"),
        costs.family.around_name(),
    ))
}

fn number(count: usize, name: &str) -> String {
    format!("{count} {name}{}", if count == 1 { "" } else { "s" })
}
