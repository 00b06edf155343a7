//! A section of a prompt, and how it is filled when a layout is fitted.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use super::{Flex, check_factor};
use crate::chunk::Document;
use crate::count::TokenCounter;
use crate::error::Error;
use crate::messages::{Costs, History, Keeper, Message, Rules, Tool, count_tools};
use crate::packer::Packer;
use crate::packing::Packing;
use crate::truncate::{Keep, cut_to};

const ROLES: [&str; 4] = ["system", "developer", "user", "assistant"];

/// The content of a filled section: a text, such as that of a [`Packing`], or
/// messages.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Filling {
    /// A text, which becomes a message; the empty text becomes none.
    Text(String),
    /// Messages, as they are.
    Messages(Vec<Message>),
}

impl From<Packing> for Filling {
    fn from(packing: Packing) -> Self {
        Self::Text(packing.text)
    }
}

impl From<String> for Filling {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Filling {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<Vec<Message>> for Filling {
    fn from(messages: Vec<Message>) -> Self {
        Self::Messages(messages)
    }
}

/// Takes the tokens to fill, and the counter of the layout.
type Fill<'a> = Box<dyn Fn(usize, &dyn TokenCounter) -> Result<Filling, Error> + Send + Sync + 'a>;

enum Content<'a> {
    Reserved(usize),
    Text(Cow<'a, str>),
    Messages(Cow<'a, [Message]>),
    Tools(Cow<'a, [Tool]>),
    Fill(Fill<'a>),
}

/// A part of a prompt, with its share of the window and how that may grow and
/// shrink.
///
/// It is a text, messages, tools, chunks to pack, a number of reserved tokens, or
/// a function that is called once its number of tokens is known.
///
/// # Examples
///
/// ```
/// use budgeteer::{Packer, Section};
///
/// let system = Section::text("system", "Be brief.").shrink(0.0);
/// let answer = Section::reserve("answer", 1_000).min_tokens(300);
/// let chunks = ["Green tea is not oxidised."];
/// let context = Section::chunks("context", "green tea", &chunks, Packer::new(4_000)).grow(1.0);
/// ```
pub struct Section<'a> {
    pub(super) name: Cow<'a, str>,
    content: Content<'a>,
    basis: Option<usize>,
    grow: f64,
    shrink: f64,
    min_tokens: usize,
    max_tokens: Option<usize>,
    pub(super) priority: i64,
    role: Option<Cow<'a, str>>,
    previous: Option<Cow<'a, [Message]>>,
    step: Option<f64>,
    keep_results: Option<usize>,
}

impl fmt::Debug for Section<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Section")
            .field("name", &self.name)
            .field("basis", &self.basis)
            .field("grow", &self.grow)
            .field("shrink", &self.shrink)
            .field("min_tokens", &self.min_tokens)
            .field("max_tokens", &self.max_tokens)
            .field("priority", &self.priority)
            .finish_non_exhaustive()
    }
}

impl<'a> Section<'a> {
    fn new(name: impl Into<Cow<'a, str>>, content: Content<'a>) -> Self {
        Self {
            name: name.into(),
            content,
            basis: None,
            grow: 0.0,
            shrink: 1.0,
            min_tokens: 0,
            max_tokens: None,
            priority: 0,
            role: None,
            previous: None,
            step: None,
            keep_results: None,
        }
    }

    /// Returns a section that is one message. Its text is cut at its end to the
    /// tokens of the section, never within a grapheme cluster.
    #[must_use]
    pub fn text(name: impl Into<Cow<'a, str>>, text: impl Into<Cow<'a, str>>) -> Self {
        Self::new(name, Content::Text(text.into()))
    }

    /// Returns a section of messages, which
    /// [`trim_messages`](crate::window::trim_messages) trims to the tokens of
    /// the section. The system messages among them are its minimum.
    #[must_use]
    pub fn messages(
        name: impl Into<Cow<'a, str>>,
        messages: impl Into<Cow<'a, [Message]>>,
    ) -> Self {
        Self::new(name, Content::Messages(messages.into()))
    }

    /// Returns a section of tool schemas. They do not shrink, as a model
    /// without one of its tools behaves differently: all are in, or all are
    /// dropped by priority. Only with a basis or a maximum below their count,
    /// the first tools that fit stay.
    #[must_use]
    pub fn tools(name: impl Into<Cow<'a, str>>, tools: impl Into<Cow<'a, [Tool]>>) -> Self {
        Self::new(name, Content::Tools(tools.into()))
    }

    /// Returns a section of `tokens` that are kept free, for example for the
    /// model's answer.
    #[must_use]
    pub fn reserve(name: impl Into<Cow<'a, str>>, tokens: usize) -> Self {
        Self::new(name, Content::Reserved(tokens))
    }

    /// Returns a section that is filled once its number of tokens is known.
    /// `fill` is called with that number, and returns a [`Packing`], a text or
    /// messages of at most that many tokens. The costs of a message beside its
    /// text are already subtracted.
    ///
    /// ```
    /// use budgeteer::{Message, Section};
    ///
    /// let section = Section::fill("date", |_| Ok("It is Saturday."));
    /// let section = Section::fill("shots", |_| Ok(vec![Message::user("Hi.")]));
    /// ```
    #[must_use]
    pub fn fill<F: Into<Filling>>(
        name: impl Into<Cow<'a, str>>,
        fill: impl Fn(usize) -> Result<F, Error> + Send + Sync + 'a,
    ) -> Self {
        Self::new(name, Content::Fill(Box::new(move |tokens, _| fill(tokens).map(Into::into))))
    }

    /// Returns a section of the best of `chunks` for `query`, packed once its
    /// number of tokens is known. The counter of the layout replaces that of
    /// `packer`, whose own maximum is a bound beside the section's share.
    ///
    /// Fitting it is an error under [`Order::Sticky`](crate::Order::Sticky), which
    /// needs a previous packing, and where the layout counts with a counter that cannot
    /// be kept, such as a closure: see [`TokenCounter::to_shared`].
    ///
    /// ```
    /// use budgeteer::{Estimate, Layout, Packer, Section};
    ///
    /// let chunks = ["Green tea is not oxidised.", "Coffee is roasted."];
    /// let context = Section::chunks("context", "green tea", &chunks, Packer::new(100));
    /// let allocation = Layout::new(12).section(context.grow(1.0)).fit(&Estimate::Words)?;
    /// assert_eq!(allocation.messages[0].text(), "Green tea is not oxidised.");
    /// # Ok::<(), budgeteer::Error>(())
    /// ```
    #[must_use]
    pub fn chunks<D: Document + Sync>(
        name: impl Into<Cow<'a, str>>,
        query: impl Into<Cow<'a, str>>,
        chunks: &'a [D],
        packer: Packer,
    ) -> Self {
        let (name, query) = (name.into(), query.into());
        let section = name.clone();
        let fill = move |tokens: usize, counter: &dyn TokenCounter| {
            packer.refuse_sticky("in a section")?;
            let counter = counter.to_shared().ok_or_else(|| {
                Error::shape(format!(
                    "section {section:.80?}: the counter of the layout cannot be kept for packing \
                     chunks: give it a method to_shared, or fill the section with a packer that \
                     counts as the layout does"
                ))
            })?;
            let most = packer.max_tokens.min(tokens);
            let packer = packer.clone().shared_counter(counter);
            let packing = packer.pack_within(most, &query, chunks)?;
            if packer.overruns() && packer.count(&packing.text) > tokens {
                return Err(Error::shape(format!(
                    "section {section:.80?}: its context_router overruns its budget, and \
                     Packer::new does not"
                )));
            }
            Ok(Filling::from(packing))
        };
        Self::new(name, Content::Fill(Box::new(fill)))
    }

    /// Sets the basis, in tokens. By default it is the reserved tokens, or the
    /// tokens of the content with all costs of its messages; 0 for a fill and
    /// for chunks.
    #[must_use]
    pub fn basis(mut self, tokens: usize) -> Self {
        self.basis = Some(tokens);
        self
    }

    /// Sets its share of the tokens that are left over, relative to the other
    /// sections: 0 or from 0.000001 to 10000, read to the nearest millionth. 0
    /// by default.
    #[must_use]
    pub fn grow(mut self, factor: f64) -> Self {
        self.grow = factor;
        self
    }

    /// Sets its share of the tokens that are lacking, which is multiplied by
    /// its basis: 0 or from 0.000001 to 10000, read to the nearest millionth. 1
    /// by default. With 0 it has its basis, or is dropped by priority.
    #[must_use]
    pub fn shrink(mut self, factor: f64) -> Self {
        self.shrink = factor;
        self
    }

    /// Sets its minimum, in tokens: 0 by default.
    #[must_use]
    pub fn min_tokens(mut self, tokens: usize) -> Self {
        self.min_tokens = tokens;
        self
    }

    /// Sets its maximum, in tokens: no limit by default.
    #[must_use]
    pub fn max_tokens(mut self, tokens: usize) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Sets its priority: 0 by default. Where the minimums of all sections do not
    /// fit together, those of the lowest priority are dropped first, and of equal
    /// ones the last.
    #[must_use]
    pub fn priority(mut self, priority: i64) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the role of a text: `system`, `developer`, `user` or `assistant`. By
    /// default the section's name if it is one of these, else `user`: retrieved
    /// text must not speak with the authority of the system. Where it is set, a
    /// fill that answers messages is an error.
    #[must_use]
    pub fn role(mut self, role: impl Into<Cow<'a, str>>) -> Self {
        self.role = Some(role.into());
        self
    }

    /// Sets what was kept of the messages last time, as
    /// [`Trim::previous`](crate::Trim::previous); the messages of the last
    /// [`Allocation`](super::Allocation) will do, as those of other sections are
    /// passed over. Only for messages.
    #[must_use]
    pub fn previous(mut self, messages: impl Into<Cow<'a, [Message]>>) -> Self {
        self.previous = Some(messages.into());
        self
    }

    /// Sets the share of the section's tokens that a cut frees, as
    /// [`Trim::step`](crate::Trim::step): above 0 and below 1. Only for
    /// messages.
    #[must_use]
    pub fn step(mut self, share: f64) -> Self {
        self.step = Some(share);
        self
    }

    /// Sets how many of the newest tool results are never masked, as
    /// [`Trim::keep_results`](crate::Trim::keep_results). Only for messages.
    #[must_use]
    pub fn keep_results(mut self, newest: usize) -> Self {
        self.keep_results = Some(newest);
        self
    }

    fn rules(&self) -> Rules<'_> {
        let (step, keep_results) = (self.step, self.keep_results);
        Rules { previous: self.previous.as_deref(), step, keep_results, ..Rules::default() }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let place = |what: &str| format!("section {:.80?}: {what}", self.name);
        if self.name.is_empty() {
            return Err(Error::shape("the name of a section must not be empty".into()));
        }
        for (name, factor) in [("grow", self.grow), ("shrink", self.shrink)] {
            check_factor(factor, || place(name))?;
        }
        if let Some(max) = self.max_tokens.filter(|&max| max < self.min_tokens) {
            let allowed = format!("at most the max_tokens {max}");
            return Err(Error::limit(&place("min_tokens"), allowed, self.min_tokens.to_string()));
        }
        if let Some(role) = &self.role {
            if !ROLES.contains(&&**role) {
                let allowed =
                    format!("one of {}", ROLES.map(|role| format!("{role:?}")).join(", "));
                return Err(Error::limit(&place("role"), allowed, format!("{role:.80?}")));
            }
            if !matches!(self.content, Content::Text(_) | Content::Fill(_)) {
                let message = "role is for a text, for chunks, or for a fill that answers a text";
                return Err(Error::shape(place(message)));
            }
        }
        self.rules().check(place)?;
        let given = [
            ("previous", self.previous.is_some()),
            ("step", self.step.is_some()),
            ("keep_results", self.keep_results.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((name, _)) if !matches!(self.content, Content::Messages(_)) => {
                Err(Error::shape(place(&format!(
                    "{name} is for a section of messages: a fill may trim its own by trim_messages"
                ))))
            }
            _ => Ok(()),
        }
    }
}

/// A section while a layout is fitted: its tokens, and its part of the prompt.
pub(super) struct Share<'a> {
    pub(super) section: &'a Section<'a>,
    counter: &'a dyn TokenCounter,
    costs: Costs<'a>,
    role: &'a str,
    /// The tokens of a message with that role beside its text.
    frame: usize,
    /// The tokens of the content.
    tokens: usize,
    /// The tokens of the system messages of the content.
    least: usize,
    /// The messages of the content without the results whose calls are missing,
    /// by their kinds, and the tokens of each.
    history: History,
    complete: Cow<'a, [Message]>,
    each: BTreeMap<usize, usize>,
    pub(super) messages: Vec<Message>,
    /// The number of the content's tools that are kept.
    tool_count: usize,
    /// The tokens of the kept content.
    pub(super) used: usize,
    pub(super) was_cut: bool,
    /// Whether no part of a message was estimated.
    pub(super) is_exact: bool,
}

impl<'a> Share<'a> {
    /// Counts the content of a section.
    pub(super) fn new(
        section: &'a Section<'a>,
        counter: &'a dyn TokenCounter,
        costs: Costs<'a>,
    ) -> Self {
        let named = if ROLES.contains(&&*section.name) { &*section.name } else { "user" };
        let role = section.role.as_deref().unwrap_or(named);
        let mut share = Self {
            section,
            counter,
            costs,
            role,
            frame: costs.frame(role),
            tokens: 0,
            least: 0,
            history: History::default(),
            complete: Cow::default(),
            each: BTreeMap::new(),
            messages: Vec::new(),
            tool_count: 0,
            used: 0,
            was_cut: false,
            is_exact: true,
        };
        match &section.content {
            Content::Reserved(tokens) => share.tokens = *tokens,
            Content::Text(text) => share.tokens = share.text_tokens(text),
            Content::Messages(messages) => {
                share.history = History::read(messages);
                share.complete = share.history.complete(messages);
                let messages = &share.complete;
                let all = share.history.system.iter().copied().chain(share.history.others());
                share.each = all.map(|i| (i, costs.of(&messages[i]))).collect();
                share.is_exact = share.each.keys().all(|&i| costs.is_exact(&messages[i]));
                share.tokens = sum(share.each.values());
                share.least = sum(share.history.system.iter().map(|i| &share.each[i]));
            }
            Content::Tools(tools) => share.tokens = count_tools(tools, counter, false),
            Content::Fill(_) => {}
        }
        share
    }

    /// Returns whether it is only reserved: then nothing is sent for it.
    pub(super) fn is_reserved(&self) -> bool {
        matches!(self.section.content, Content::Reserved(_))
    }

    /// Returns its tools, if it is a section of tools.
    pub(super) fn all_tools(&self) -> Option<&'a [Tool]> {
        match &self.section.content {
            Content::Tools(tools) => Some(tools),
            _ => None,
        }
    }

    /// Returns the tools that are kept.
    pub(super) fn tools(&self) -> &'a [Tool] {
        &self.all_tools().unwrap_or_default()[..self.tool_count]
    }

    pub(super) fn flex(&self) -> Flex {
        let section = self.section;
        let max = section.max_tokens.unwrap_or(usize::MAX);
        Flex {
            basis: section.basis.unwrap_or(self.tokens) as u64,
            grow: section.grow,
            shrink: if self.all_tools().is_some() { 0.0 } else { section.shrink },
            min_tokens: section.min_tokens.max(self.least.min(max)) as u64,
            max_tokens: section.max_tokens.map(|tokens| tokens as u64),
            priority: section.priority,
        }
    }

    /// Puts the content that fits `size` tokens into messages, or keeps the
    /// tools that fit.
    pub(super) fn render(&mut self, size: usize) {
        match &self.section.content {
            Content::Messages(_) => self.trim(size),
            Content::Text(text) if !text.is_empty() => {
                self.was_cut = size < self.tokens;
                if !self.was_cut {
                    self.say(text, self.tokens);
                } else if size > self.frame {
                    let cut = cut_to(text, size - self.frame, Keep::Start, "", self.counter);
                    let used = self.text_tokens(&cut);
                    // A counter that is not pure may return another count now.
                    if !cut.is_empty() && used <= size {
                        self.say(&cut, used);
                    }
                }
            }
            Content::Tools(tools) => self.keep_tools(tools, size),
            Content::Reserved(_) | Content::Text(_) | Content::Fill(_) => {}
        }
    }

    /// Keeps the messages that fit into `size` tokens.
    fn trim(&mut self, size: usize) {
        let messages = &*self.complete;
        self.was_cut = true;
        let Some(room) = size.checked_sub(self.least) else { return };
        let cost = |i: usize, _| Some(self.each[&i]);
        let rules = self.section.rules();
        let Ok(keeper) = Keeper::new(messages, &self.history, rules, self.costs, &cost) else {
            return; // only where a message of the user must come first, or for pins
        };
        let kept = keeper.keep(size, room);
        let mut places: Vec<usize> = self.history.system.clone();
        places.extend(kept.tokens.keys());
        places.sort_unstable();
        let message = |i: &usize| kept.made.get(i).unwrap_or(&messages[*i]).clone();
        self.messages = places.iter().map(message).collect();
        self.used = self.least + sum(kept.tokens.values());
        self.was_cut = places.len() < messages.len()
            || !kept.made.is_empty()
            || !self.history.partial.is_empty();
    }

    fn keep_tools(&mut self, tools: &[Tool], size: usize) {
        (self.tool_count, self.used) = (tools.len(), self.tokens);
        self.was_cut = self.tokens > size;
        if !self.was_cut {
            return;
        }
        (self.tool_count, self.used) = (0, 0);
        let mut high = tools.len() - 1;
        while self.tool_count < high {
            let middle = (self.tool_count + high).div_ceil(2);
            let tokens = count_tools(&tools[..middle], self.counter, false);
            if tokens <= size {
                (self.tool_count, self.used) = (middle, tokens);
            } else {
                high = middle - 1;
            }
        }
    }

    /// Calls the fill, if it has one, with the tokens that fit `size`.
    pub(super) fn fill(&mut self, size: usize) -> Result<(), Error> {
        let Content::Fill(fill) = &self.section.content else { return Ok(()) };
        let room = size.saturating_sub(self.frame);
        if room == 0 {
            self.was_cut = true;
            return Ok(());
        }
        let over = |what: &str, tokens: usize, most: String| {
            let name = &self.section.name;
            Err(Error::shape(format!(
                "the fill of section {name:.80?} answered {what} of {tokens} tokens, more than \
                 the {most}"
            )))
        };
        match fill(room, self.counter)? {
            Filling::Text(text) if text.is_empty() => {}
            Filling::Text(text) => {
                let tokens = self.counter.count(&text);
                if tokens > room {
                    let most = format!(
                        "{room} that it was asked for, by the counter of the layout: a packer \
                         must count with it"
                    );
                    return over("a text", tokens, most);
                }
                self.say(&text, self.frame + tokens);
            }
            Filling::Messages(messages) if !messages.is_empty() && self.section.role.is_some() => {
                return Err(Error::shape(format!(
                    "the fill of section {:.80?} answered messages, which have roles of their own: \
                     role is for a text",
                    self.section.name
                )));
            }
            Filling::Messages(messages) => {
                let used = sum(&messages.iter().map(|one| self.costs.of(one)).collect::<Vec<_>>());
                self.is_exact = messages.iter().all(|one| self.costs.is_exact(one));
                if used > size {
                    return over("messages", used, format!("{size} of its section"));
                }
                (self.messages, self.used) = (messages, used);
            }
        }
        Ok(())
    }

    fn text_tokens(&self, text: &str) -> usize {
        if text.is_empty() { 0 } else { self.frame.saturating_add(self.counter.count(text)) }
    }

    fn say(&mut self, text: &str, used: usize) {
        self.messages = vec![Message::new(self.role, text)];
        self.used = used;
    }
}

fn sum<'a>(tokens: impl IntoIterator<Item = &'a usize>) -> usize {
    tokens.into_iter().fold(0, |sum, &tokens| sum.saturating_add(tokens))
}
