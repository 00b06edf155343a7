//! Dividing a window between the input and the answer, as flexbox divides a
//! line.
//!
//! The input takes what it needs. The answer shrinks to the rest, and never
//! below a floor. This is the second of two dimensions; the first is the number
//! of messages.

use std::fmt;

use super::ModelLimits;
use crate::count::{Estimate, TokenCounter, check};
use crate::error::Error;
use crate::messages::{Message, Tool, count_messages, count_tools};

/// What the system prompt is taken to have where nobody says.
const SYSTEM_TOKENS: usize = 500;
const KNOWN_MARGIN: usize = 50;
const UNKNOWN_MARGIN: usize = 200;

/// A divided window.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Negotiation {
    /// The name of the model.
    pub model: String,
    /// The window, in tokens.
    pub context_window: usize,
    /// The tokens of the input: messages, system prompt, memories and tools.
    pub input_token_count: usize,
    /// The window less the input and the margin; negative where these overrun
    /// it.
    pub available_tokens: i64,
    /// The tokens that the answer may have.
    pub adjusted_max_output_tokens: usize,
    /// The tokens that were requested for the answer.
    pub requested_max_output_tokens: usize,
    /// Whether it may have fewer than requested.
    pub was_reduced: bool,
    /// Whether input, answer and margin exceed the window, because the floor
    /// was enforced, or the input exceeds the model's limit of the input.
    pub overflows_window: bool,
    /// The number of messages.
    pub message_count: usize,
    /// The number of chosen memories.
    pub memory_count: usize,
    /// The places of these, ascending; empty if only their number was given.
    pub memory_indices: Vec<usize>,
    /// The margin that is kept free, in tokens.
    pub safety_margin: usize,
    /// The tokens of the system prompt.
    pub system_tokens: usize,
    /// The tokens of the chosen memories.
    pub memory_tokens: usize,
    /// The tokens of the tool schemas.
    pub tool_tokens: usize,
    /// Whether nothing was guessed: the model is known, the system prompt is
    /// counted or stated, and an exact counter counted messages, memories and
    /// tools, if there are any.
    pub is_exact: bool,
}

/// A remembered text that may go into a prompt.
///
/// A property that is not set does not exclude it.
///
/// # Examples
///
/// ```
/// use budgeteer::window::Memory;
///
/// let memory = Memory::new("Prefers green tea.").importance(0.9).age_days(2.5);
/// assert_eq!(memory.text(), "Prefers green tea.");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    text: String,
    importance: Option<f64>,
    age_days: Option<f64>,
}

impl Memory {
    /// Returns a memory with that text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), importance: None, age_days: None }
    }

    /// Sets the importance, commonly from 0 to 1.
    #[must_use]
    pub fn importance(mut self, importance: f64) -> Self {
        self.importance = Some(importance);
        self
    }

    /// Sets the age, in days.
    #[must_use]
    pub fn age_days(mut self, days: f64) -> Self {
        self.age_days = Some(days);
        self
    }

    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

#[derive(Clone, Copy, Debug)]
enum History<'a> {
    Count(usize),
    Messages(&'a [Message]),
}

#[derive(Clone, Copy, Debug)]
enum Memories<'a> {
    Count(usize),
    List(&'a [Memory]),
}

/// Computes how many tokens the answer may have beside an input, in the window
/// of a model.
///
/// Without a counter each message takes 250 tokens, and all other texts are
/// counted as [`Estimate::CharsDiv4`]. With a counter everything is counted.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "o200k")] {
/// use budgeteer::window::{Negotiator, model_limits};
/// use budgeteer::{Encoding, Message};
///
/// let reduced = Negotiator::new(model_limits("gpt-3.5-turbo")).message_count(50).negotiate(5_000)?;
/// assert_eq!((reduced.input_token_count, reduced.available_tokens), (13_000, 3_285));
/// assert_eq!(reduced.adjusted_max_output_tokens, 3_285);
///
/// let messages = [Message::user("Hello, world!")];
/// let counted = Negotiator::new(model_limits("gpt-4o"))
///     .messages(&messages)
///     .system("Be brief.")
///     .counter(&Encoding::O200k)
///     .negotiate(900)?;
/// assert_eq!((counted.input_token_count, counted.system_tokens), (14, 3));
/// assert!(counted.is_exact);
/// # }
/// # Ok::<(), budgeteer::Error>(())
/// ```
#[derive(Clone)]
pub struct Negotiator<'a> {
    limits: ModelLimits,
    history: History<'a>,
    /// The tokens or the text; None where neither was given.
    system: Option<Result<usize, &'a str>>,
    memories: Memories<'a>,
    tools: &'a [Tool],
    safety_margin: Option<usize>,
    min_output_tokens: usize,
    tokens_per_message: usize,
    counter: Option<&'a dyn TokenCounter>,
    min_importance: f64,
    max_memory_age_days: f64,
    max_memory_tokens: Option<usize>,
    cap_output: bool,
    strict: bool,
}

impl fmt::Debug for Negotiator<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Negotiator")
            .field("limits", &self.limits)
            .field("safety_margin", &self.safety_margin)
            .field("min_output_tokens", &self.min_output_tokens)
            .finish_non_exhaustive()
    }
}

impl<'a> Negotiator<'a> {
    /// Returns one for a model: with no messages, a margin of 100 and a floor of
    /// 500. The system prompt is taken to have 500 tokens, where it is not one of
    /// the messages.
    #[must_use]
    pub fn new(limits: ModelLimits) -> Self {
        Self {
            limits,
            history: History::Count(0),
            system: None,
            memories: Memories::List(&[]),
            tools: &[],
            safety_margin: Some(100),
            min_output_tokens: 500,
            tokens_per_message: 250,
            counter: None,
            min_importance: 0.6,
            max_memory_age_days: 7.0,
            max_memory_tokens: None,
            cap_output: false,
            strict: false,
        }
    }

    /// Sets the number of messages.
    #[must_use]
    pub fn message_count(mut self, count: usize) -> Self {
        self.history = History::Count(count);
        self
    }

    /// Sets the messages. They are counted only if there is a counter.
    #[must_use]
    pub fn messages(mut self, messages: &'a [Message]) -> Self {
        self.history = History::Messages(messages);
        self
    }

    /// Sets what the system prompt takes beside the messages. If nobody does, it
    /// is 0 where there is a system message, else a guess: 500.
    #[must_use]
    pub fn system_tokens(mut self, tokens: usize) -> Self {
        self.system = Some(Ok(tokens));
        self
    }

    /// Sets the system prompt, if it is not one of the messages.
    #[must_use]
    pub fn system(mut self, text: &'a str) -> Self {
        self.system = Some(Err(text));
        self
    }

    /// Sets the number of memories, at no cost.
    #[must_use]
    pub fn memory_count(mut self, count: usize) -> Self {
        self.memories = Memories::Count(count);
        self
    }

    /// Sets the memories to choose from. By default those are chosen whose
    /// importance is above 0.6 and whose age is at most 7 days.
    #[must_use]
    pub fn memories(mut self, memories: &'a [Memory]) -> Self {
        self.memories = Memories::List(memories);
        self
    }

    /// Chooses memories with a higher importance than this: 0.6 by default.
    #[must_use]
    pub fn min_importance(mut self, importance: f64) -> Self {
        self.min_importance = importance;
        self
    }

    /// Chooses memories of at most this age, in days: 7 by default.
    #[must_use]
    pub fn max_memory_age_days(mut self, days: f64) -> Self {
        self.max_memory_age_days = days;
        self
    }

    /// Sets the maximum of all memories together, in tokens: the most important
    /// that fit are chosen.
    #[must_use]
    pub fn max_memory_tokens(mut self, tokens: usize) -> Self {
        self.max_memory_tokens = Some(tokens);
        self
    }

    /// Sets the tools.
    #[must_use]
    pub fn tools(mut self, tools: &'a [Tool]) -> Self {
        self.tools = tools;
        self
    }

    /// Sets the margin that is kept free, in tokens: 100 by default.
    #[must_use]
    pub fn safety_margin(mut self, tokens: usize) -> Self {
        self.safety_margin = Some(tokens);
        self
    }

    /// Sets the margin to 50 tokens for a known model, and to 200 for an
    /// unknown one.
    #[must_use]
    pub fn auto_safety_margin(mut self) -> Self {
        self.safety_margin = None;
        self
    }

    /// Sets the floor of the answer, in tokens: 500 by default.
    #[must_use]
    pub fn min_output_tokens(mut self, tokens: usize) -> Self {
        self.min_output_tokens = tokens;
        self
    }

    /// Sets the tokens of a message that is not counted: 250 by default.
    #[must_use]
    pub fn tokens_per_message(mut self, tokens: usize) -> Self {
        self.tokens_per_message = tokens;
        self
    }

    /// Counts messages, memories, tools and the system prompt.
    #[must_use]
    pub fn counter(mut self, counter: &'a dyn TokenCounter) -> Self {
        self.counter = Some(counter);
        self
    }

    /// Limits the answer to the model's own `max_output_tokens` too, and the floor
    /// with it.
    #[must_use]
    pub fn cap_output(mut self, cap: bool) -> Self {
        self.cap_output = cap;
        self
    }

    /// Makes an overflow of the window an error.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Returns how many tokens the answer may have if `max_output_tokens` are
    /// requested.
    ///
    /// It may have what is requested, or what the window has left beside input
    /// and margin if that is less. It gets at least the floor, unless
    /// [`cap_output`](Self::cap_output) allows less:
    /// `overflows_window` is set where the floor is more than what is left, or
    /// where the input alone exceeds the model's limit. A request below the
    /// floor is raised to it, which does not count as a reduction.
    ///
    /// With the feature `tracing`, the result is an event, and a warning where
    /// the answer was reduced.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::BudgetExhausted`](crate::ErrorKind::BudgetExhausted) under
    /// [`strict`](Self::strict), where the window overflows; the message has
    /// the arithmetic.
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for an
    /// importance or an age that is NaN.
    pub fn negotiate(&self, max_output_tokens: usize) -> Result<Negotiation, Error> {
        let limits = &self.limits;
        let counter = self.counting();
        check(counter)?;
        let margin = self.margin();
        let system_tokens = self.system_tokens_counted();
        let (message_count, message_tokens) = self.count_history();
        let (memory_indices, memory_tokens, memory_count) = self.choose_memories()?;
        let is_among = self.has_system_message();
        let tool_tokens = count_tools(self.tools, counter, is_among || system_tokens > 0);

        let parts = [message_tokens, system_tokens, memory_tokens, tool_tokens];
        let taken = parts.into_iter().fold(0, usize::saturating_add);
        let available = wide(limits.context_window) - wide(taken) - wide(margin);
        let mut adjusted = usize::try_from(available).unwrap_or(0).min(max_output_tokens);
        adjusted = adjusted.max(self.min_output_tokens);
        if self.cap_output {
            adjusted = adjusted.min(limits.max_output_tokens.unwrap_or(usize::MAX));
        }
        let overflows_window = wide(adjusted) > available || taken > limits.max_input_tokens;
        if self.strict && overflows_window {
            return Err(Error::overflow(format!(
                "model {:.80?} has a window of {} tokens ({} of input): {taken} of input \
                 ({message_tokens} messages + {system_tokens} system + {memory_tokens} memories + \
                 {tool_tokens} tools) + {adjusted} of output + {margin} of margin = {}",
                limits.name,
                limits.context_window,
                limits.max_input_tokens,
                wide(taken) + wide(adjusted) + wide(margin),
            )));
        }
        let model = Some(&*limits.name);
        let is_known = |message: &Message| message.is_exact(model);
        let is_stated = match self.history {
            History::Count(count) => count == 0,
            History::Messages(all) => all.iter().all(is_known),
        } && !matches!(self.memories, Memories::Count(1..))
            && (self.system.is_some() || is_among);
        let is_counting = matches!(self.history, History::Messages(_))
            || matches!(self.memories, Memories::List([_, ..]))
            || matches!(self.system, Some(Err(_)))
            || tool_tokens > 0;
        let negotiation = Negotiation {
            model: limits.name.clone(),
            context_window: limits.context_window,
            input_token_count: taken,
            available_tokens: i64::try_from(available).unwrap_or(i64::MIN),
            adjusted_max_output_tokens: adjusted,
            requested_max_output_tokens: max_output_tokens,
            was_reduced: adjusted < max_output_tokens,
            overflows_window,
            message_count,
            memory_count,
            memory_indices,
            safety_margin: margin,
            system_tokens,
            memory_tokens,
            tool_tokens,
            is_exact: limits.known
                && is_stated
                && (!is_counting || self.counter.is_some_and(TokenCounter::is_exact)),
        };
        #[cfg(feature = "tracing")]
        negotiation.log();
        Ok(negotiation)
    }

    /// Returns the number of messages that leave room for an answer of
    /// `max_output_tokens`, the system prompt and the margin; at least 1,
    /// however small the window.
    ///
    /// # Examples
    ///
    /// ```
    /// use budgeteer::window::{Negotiator, model_limits};
    ///
    /// assert_eq!(Negotiator::new(model_limits("gpt-4")).safe_message_count(3_000), 18);
    /// assert_eq!(Negotiator::new(model_limits("llama3.2:3b")).safe_message_count(3_000), 497);
    /// ```
    #[must_use]
    pub fn safe_message_count(&self, max_output_tokens: usize) -> usize {
        let input =
            wide(self.limits.context_window) - wide(max_output_tokens) - wide(self.margin());
        let room =
            input.min(wide(self.limits.max_input_tokens)) - wide(self.system_tokens_counted());
        let count = room / wide(self.tokens_per_message.max(1));
        usize::try_from(count).unwrap_or(0).max(1)
    }

    fn counting(&self) -> &'a dyn TokenCounter {
        self.counter.unwrap_or(&Estimate::CharsDiv4)
    }

    fn margin(&self) -> usize {
        let auto = if self.limits.known { KNOWN_MARGIN } else { UNKNOWN_MARGIN };
        self.safety_margin.unwrap_or(auto)
    }

    fn system_tokens_counted(&self) -> usize {
        match self.system {
            Some(Ok(tokens)) => tokens,
            Some(Err(text)) => self.counting().count(text),
            None if self.has_system_message() => 0,
            None => SYSTEM_TOKENS,
        }
    }

    fn has_system_message(&self) -> bool {
        match self.history {
            History::Count(_) => false,
            History::Messages(messages) => messages.iter().any(Message::is_system),
        }
    }

    /// Returns the number of messages and their tokens.
    fn count_history(&self) -> (usize, usize) {
        let uncounted = |count: usize| (count, count.saturating_mul(self.tokens_per_message));
        match (self.history, self.counter) {
            (History::Count(count), _) => uncounted(count),
            (History::Messages(messages), None) => uncounted(messages.len()),
            (History::Messages(messages), Some(counter)) => {
                (messages.len(), count_messages(messages, counter, Some(&self.limits.name)))
            }
        }
    }

    /// Returns the places of the chosen memories, their tokens, and their
    /// number.
    fn choose_memories(&self) -> Result<(Vec<usize>, usize, usize), Error> {
        let number = |name: &str, value: f64| {
            let error = || Error::shape(format!("{name} must be a number, not NaN"));
            if value.is_nan() { Err(error()) } else { Ok(value) }
        };
        number("min_importance", self.min_importance)?;
        number("max_memory_age_days", self.max_memory_age_days)?;
        let memories = match self.memories {
            Memories::Count(count) => return Ok((Vec::new(), 0, count)),
            Memories::List(memories) => memories,
        };
        let mut found = Vec::new();
        for (i, memory) in memories.iter().enumerate() {
            let importance = memory.importance.unwrap_or(f64::INFINITY);
            let importance = number(&format!("memories[{i}].importance"), importance)?;
            let age = memory.age_days.unwrap_or(f64::NEG_INFINITY);
            let age = number(&format!("memories[{i}].age_days"), age)?;
            if importance > self.min_importance && age <= self.max_memory_age_days {
                found.push((importance + 0.0, i)); // -0.0 counts as 0.0
            }
        }
        found.sort_by(|(a, i), (b, j)| b.total_cmp(a).then(i.cmp(j)));
        let (mut chosen, mut total) = (Vec::new(), 0_usize);
        for (_, i) in found {
            let sum = total.saturating_add(self.counting().count(&memories[i].text));
            if self.max_memory_tokens.is_none_or(|max| sum <= max) {
                chosen.push(i);
                total = sum;
            }
        }
        chosen.sort_unstable();
        let count = chosen.len();
        Ok((chosen, total, count))
    }
}

#[cfg(feature = "tracing")]
impl Negotiation {
    fn log(&self) {
        macro_rules! event {
            ($level:expr, $message:literal) => {
                tracing::event!(
                    $level,
                    model = self.model.chars().take(80).collect::<String>(),
                    context_window = self.context_window,
                    input_token_count = self.input_token_count,
                    is_exact = self.is_exact,
                    message_count = self.message_count,
                    memory_count = self.memory_count,
                    system_tokens = self.system_tokens,
                    memory_tokens = self.memory_tokens,
                    tool_tokens = self.tool_tokens,
                    safety_margin = self.safety_margin,
                    available_tokens = self.available_tokens,
                    requested_max_output_tokens = self.requested_max_output_tokens,
                    adjusted_max_output_tokens = self.adjusted_max_output_tokens,
                    overflows_window = self.overflows_window,
                    $message
                )
            };
        }
        if self.was_reduced {
            event!(tracing::Level::WARN, "two-dimensional budget: REDUCED");
        } else {
            event!(tracing::Level::INFO, "two-dimensional budget");
        }
    }
}

fn wide(tokens: usize) -> i128 {
    i128::try_from(tokens).expect("128 bits hold any size")
}
