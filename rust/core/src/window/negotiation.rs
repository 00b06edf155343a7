//! Divides a window between the input and the answer, as flexbox does with a
//! line.
//!
//! The input takes what it needs, the answer shrinks to what is left, and never
//! below a floor. This is the second of two dimensions; the first is how many
//! messages there may be.

use std::fmt;

use super::ModelLimits;
use crate::count::{Estimate, TokenCounter};
use crate::error::Error;
use crate::messages::{Message, Tool, count_messages, count_tools};

/// What the system prompt is taken to have where nobody says.
const SYSTEM_TOKENS: usize = 500;
const KNOWN_MARGIN: usize = 50;
const UNKNOWN_MARGIN: usize = 200;

/// How a window was divided.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Negotiation {
    /// The name of the model.
    pub model: String,
    /// Its window.
    pub context_window: usize,
    /// What the input takes: messages, system prompt, memories and tools.
    pub input_token_count: usize,
    /// The window less the input and the margin; negative where they overrun.
    pub available_tokens: i64,
    /// What the answer may have.
    pub adjusted_max_output_tokens: usize,
    /// What was asked for it.
    pub requested_max_output_tokens: usize,
    /// Whether it may have less than that.
    pub was_reduced: bool,
    /// Whether input, answer and margin are more than the window, because the
    /// floor was enforced, or the input more than the model takes as input.
    pub overflows_window: bool,
    /// How many messages there are.
    pub message_count: usize,
    /// How many memories were chosen.
    pub memory_count: usize,
    /// Their places, ascending; empty where only their number was given.
    pub memory_indices: Vec<usize>,
    /// What is kept free.
    pub safety_margin: usize,
    /// What the system prompt takes.
    pub system_tokens: usize,
    /// What the chosen memories take.
    pub memory_tokens: usize,
    /// What the tool schemas take.
    pub tool_tokens: usize,
    /// Whether nothing was guessed: an exact counter counted messages, memories
    /// and tools, and the system prompt is counted or stated.
    pub is_exact: bool,
}

/// Something remembered that may go into a prompt.
///
/// What it does not state does not exclude it.
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
    /// Returns a memory of that text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), importance: None, age_days: None }
    }

    /// Sets how important it is, commonly from 0 to 1.
    #[must_use]
    pub fn importance(mut self, importance: f64) -> Self {
        self.importance = Some(importance);
        self
    }

    /// Sets how many days ago it was made.
    #[must_use]
    pub fn age_days(mut self, days: f64) -> Self {
        self.age_days = Some(days);
        self
    }

    /// Returns its text.
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

/// Finds how many tokens the answer may have beside an input, in the window of
/// a model.
///
/// Without a counter each message takes 250 tokens, and all other texts are
/// counted as [`Estimate::CharsDiv4`]; with one everything is counted.
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

    /// Sets how many messages there are.
    #[must_use]
    pub fn message_count(mut self, count: usize) -> Self {
        self.history = History::Count(count);
        self
    }

    /// Sets the messages. They are counted only where there is a counter.
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

    /// Sets the system prompt, where it is not one of the messages.
    #[must_use]
    pub fn system(mut self, text: &'a str) -> Self {
        self.system = Some(Err(text));
        self
    }

    /// Sets how many memories there are, at no cost.
    #[must_use]
    pub fn memory_count(mut self, count: usize) -> Self {
        self.memories = Memories::Count(count);
        self
    }

    /// Sets the memories that those are chosen from whose importance is above
    /// 0.6 and whose age is at most 7 days.
    #[must_use]
    pub fn memories(mut self, memories: &'a [Memory]) -> Self {
        self.memories = Memories::List(memories);
        self
    }

    /// Chooses memories whose importance is above that.
    #[must_use]
    pub fn min_importance(mut self, importance: f64) -> Self {
        self.min_importance = importance;
        self
    }

    /// Chooses memories whose age is at most that.
    #[must_use]
    pub fn max_memory_age_days(mut self, days: f64) -> Self {
        self.max_memory_age_days = days;
        self
    }

    /// Bounds what all memories take: the most important that fit are chosen.
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

    /// Keeps so many tokens free.
    #[must_use]
    pub fn safety_margin(mut self, tokens: usize) -> Self {
        self.safety_margin = Some(tokens);
        self
    }

    /// Keeps 50 tokens free for a model that is known, 200 otherwise.
    #[must_use]
    pub fn auto_safety_margin(mut self) -> Self {
        self.safety_margin = None;
        self
    }

    /// Sets the floor.
    #[must_use]
    pub fn min_output_tokens(mut self, tokens: usize) -> Self {
        self.min_output_tokens = tokens;
        self
    }

    /// Sets what a message takes where it is not counted.
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

    /// Bounds the answer by the model's own `max_output_tokens` too.
    #[must_use]
    pub fn cap_output(mut self, cap: bool) -> Self {
        self.cap_output = cap;
        self
    }

    /// Makes an error of what would be `overflows_window`.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Returns how many tokens the answer may have where `max_output_tokens`
    /// are asked for.
    ///
    /// It may have what is asked, or what the window has left beside the input
    /// and the margin if that is less, and at least the floor in any case:
    /// where the floor is more than what is left, or the input alone is more
    /// than the model takes, `overflows_window` says so. A request below the
    /// floor is raised to it, which is no reduction.
    ///
    /// With the feature `tracing`, what was decided is an event, a warning
    /// where the answer was reduced.
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
        if self.cap_output {
            adjusted = adjusted.min(limits.max_output_tokens.unwrap_or(usize::MAX));
        }
        adjusted = adjusted.max(self.min_output_tokens);
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
        let is_counted = matches!(self.history, History::Messages(_))
            && matches!(self.memories, Memories::List(_))
            && (self.system.is_some() || is_among);
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
            is_exact: is_counted && self.counter.is_some_and(TokenCounter::is_exact),
        };
        #[cfg(feature = "tracing")]
        negotiation.log();
        Ok(negotiation)
    }

    /// Returns how many messages leave room for an answer of
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

    /// Returns how many messages there are and what they take.
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

    /// Returns the places of the chosen memories, what they take, and how many
    /// they are.
    fn choose_memories(&self) -> Result<(Vec<usize>, usize, usize), Error> {
        let memories = match self.memories {
            Memories::Count(count) => return Ok((Vec::new(), 0, count)),
            Memories::List(memories) => memories,
        };
        let number = |name: &str, value: f64| {
            let error = || Error::shape(format!("{name} must be a number, not NaN"));
            if value.is_nan() { Err(error()) } else { Ok(value) }
        };
        number("min_importance", self.min_importance)?;
        number("max_memory_age_days", self.max_memory_age_days)?;
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
