//! Divides a context window among the sections of a prompt, and renders it.

use std::collections::{BTreeMap, BTreeSet};

use super::section::Share;
use super::{Flex, Section};
use crate::count::{TokenCounter, check};
use crate::error::Error;
use crate::messages::{Costs, Message, Tool, count_tools};
use crate::window::ModelLimits;

/// Divides a context window among sections as CSS Flexbox divides a line, and
/// never overflows it.
///
/// Each section starts from its basis. Free tokens go to the sections that
/// grow. Lacking tokens are taken from those that shrink. All stay within their
/// limits, in whole tokens that sum exactly; see
/// [`resolve_layout`](crate::resolve_layout). Where the minimums of all
/// sections do not fit together, whole sections are dropped by priority.
///
/// The gap comes off first, and if there may be messages, what primes the reply
/// and what the chat template of the model writes before the first: by `OpenAI`'s
/// rule 3 tokens. All other costs of a prompt belong to its sections: the tokens
/// of messages beside their texts, and those of tools.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "o200k")] {
/// use budgeteer::{Encoding, Layout, Packer, Ranking, Section};
///
/// let query = "green tea";
/// let chunks = ["Green tea is not oxidised.", "Coffee is roasted."];
/// let packer = Packer::new(1_000).ranking(Ranking::Keyword);
///
/// let allocation = Layout::new(60)
///     .gap(2)
///     .section(Section::text("system", "Answer from the context.").shrink(0.0).priority(2))
///     .section(Section::chunks("context", query, &chunks, packer).grow(1.0))
///     .section(Section::text("query", query).shrink(0.0).priority(2))
///     .section(Section::reserve("answer", 20).min_tokens(10).priority(1))
///     .fit(&Encoding::O200k)?;
///
/// assert_eq!((allocation.tokens["context"], allocation.tokens["answer"]), (20, 20));
/// assert_eq!(allocation.total_tokens, 33);
/// let roles: Vec<&str> = allocation.messages.iter().map(|message| message.role()).collect();
/// assert_eq!(roles, ["system", "user", "user"]);
/// # }
/// # Ok::<(), budgeteer::Error>(())
/// ```
#[derive(Debug)]
pub struct Layout<'a> {
    context_window: usize,
    max_input_tokens: usize,
    model: Option<String>,
    gap: usize,
    sections: Vec<Section<'a>>,
}

/// A divided window, and the prompt for it.
///
/// `total_tokens`, the tokens of reserved sections and the gap together never
/// exceed the window.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Allocation {
    /// The tokens that each section was given, by its name; 0 if it was dropped.
    pub tokens: BTreeMap<String, usize>,
    /// The tokens of these that each section uses, by its name; 0 if it is only
    /// reserved.
    pub used_tokens: BTreeMap<String, usize>,
    /// The tokens that no section was given.
    pub free_tokens: usize,
    /// The sections that were dropped because the minimums of all did not fit
    /// together, in the order in which they were dropped.
    pub dropped_sections: Vec<String>,
    /// The sections that are in the prompt only in part, or not at all because
    /// nothing of them fits their share.
    pub cut_sections: Vec<String>,
    /// The prompt, ready to send: the messages of the sections, in their order.
    pub messages: Vec<Message>,
    /// The tools to send with it.
    pub tools: Vec<Tool>,
    /// The tokens of the prompt: what
    /// [`count_messages`](crate::window::count_messages) and [`count_tools`] return
    /// for exactly these messages and tools.
    pub total_tokens: usize,
    /// Whether the counter is exact and no part of the sections' messages was
    /// estimated, such as audio or an image of unknown size, nor what stands
    /// around them, as for [`Message::is_exact`].
    pub is_exact: bool,
}

impl<'a> Layout<'a> {
    /// Returns a layout of a window of `context_window` tokens, without sections.
    #[must_use]
    pub fn new(context_window: usize) -> Self {
        Self {
            context_window,
            max_input_tokens: context_window,
            model: None,
            gap: 0,
            sections: Vec::new(),
        }
    }

    /// Returns a layout of the window of a model. The prompt is at most its
    /// `max_input_tokens`, and its own costs for messages and tools apply.
    ///
    /// ```
    /// use budgeteer::window::model_limits;
    /// use budgeteer::{Estimate, Layout, Section};
    ///
    /// let layout = Layout::for_model(&model_limits("gpt-4")).gap(92);
    /// let allocation = layout.section(Section::reserve("all", 0).grow(1.0)).fit(&Estimate::Words)?;
    /// assert_eq!(allocation.tokens["all"], 8_100);
    /// # Ok::<(), budgeteer::Error>(())
    /// ```
    #[must_use]
    pub fn for_model(limits: &ModelLimits) -> Self {
        Self {
            max_input_tokens: limits.max_input_tokens,
            model: Some(limits.name.clone()),
            ..Self::new(limits.context_window)
        }
    }

    /// Sets the model whose own costs for messages and tools apply.
    #[must_use]
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.model = Some(name.into());
        self
    }

    /// Keeps `tokens` free, as a margin: 0 by default.
    #[must_use]
    pub fn gap(mut self, tokens: usize) -> Self {
        self.gap = tokens;
        self
    }

    /// Adds a section. The prompt has the sections in the order of these calls.
    #[must_use]
    pub fn section(mut self, section: Section<'a>) -> Self {
        self.sections.push(section);
        self
    }

    /// Divides the window, fills the sections and renders the prompt.
    ///
    /// The contents are counted first, each text once. Then each fill is called
    /// once, in the order of the sections, unless its section was dropped or has
    /// nothing left for it. The layout is not changed.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where
    /// two sections have the same name, a section has no name, a factor is
    /// neither 0 nor from 0.000001 to 10000, a maximum is below its minimum, a
    /// role is not allowed, or a fill returned more tokens than it was given.
    /// An error of a fill is returned unchanged.
    pub fn fit(&self, counter: &dyn TokenCounter) -> Result<Allocation, Error> {
        check(counter)?;
        let mut names = BTreeSet::new();
        for section in &self.sections {
            section.check()?;
            if !names.insert(&section.name) {
                let what = format!("there are two sections of the name {:.80?}", section.name);
                return Err(Error::shape(what));
            }
        }
        let costs = Costs::new(counter, self.model.as_deref());
        let mut shares: Vec<Share<'_>> =
            self.sections.iter().map(|section| Share::new(section, counter, costs)).collect();
        let Divided { space, mut sizes, mut dropped } = self.divide(&shares, costs.around());
        let is_in: Vec<bool> = (0..shares.len()).map(|i| !dropped.contains(&i)).collect();
        let all = || (0..sizes.len()).filter(|&i| is_in[i]);
        for i in all() {
            shares[i].render(sizes[i]);
        }
        for i in all() {
            shares[i].fill(sizes[i])?;
        }
        let mut tooled: Vec<usize> = all().filter(|&i| shares[i].all_tools().is_some()).collect();
        let messages: Vec<Message> =
            shares.iter_mut().flat_map(|share| std::mem::take(&mut share.messages)).collect();
        let has_system = messages.iter().any(Message::is_system);
        let tool_tokens = loop {
            let tools = joined(&shares, &tooled);
            let tokens = count_tools(&tools, counter, has_system);
            if tokens <= tooled.iter().map(|&i| sizes[i]).sum() {
                break tokens;
            }
            // Only where a counter counts a text higher than the sum of its
            // parts.
            let lowest = |&i: &usize| (shares[i].section.priority, std::cmp::Reverse(i));
            let Some(last) = tooled.iter().copied().min_by_key(lowest) else { break 0 };
            tooled.retain(|&i| i != last);
            dropped.push(last);
            (sizes[last], shares[last].used) = (0, 0);
        };
        let said = shares.iter().filter(|share| share.all_tools().is_none());
        let said = said.fold(0_usize, |sum, share| sum.saturating_add(share.used));
        let reply = if messages.is_empty() { 0 } else { costs.around() };
        let name = |i: usize| self.sections[i].name.to_string();
        let by_name = |tokens: &dyn Fn(usize) -> usize| {
            (0..sizes.len()).map(|i| (name(i), tokens(i))).collect()
        };
        let cut = (0..sizes.len()).filter(|i| shares[*i].was_cut && !dropped.contains(i));
        Ok(Allocation {
            tokens: by_name(&|i| sizes[i]),
            used_tokens: by_name(&|i| shares[i].used),
            free_tokens: space - sizes.iter().sum::<usize>(),
            cut_sections: cut.map(name).collect(),
            dropped_sections: dropped.into_iter().map(name).collect(),
            tools: joined(&shares, &tooled),
            messages,
            total_tokens: said.saturating_add(tool_tokens).saturating_add(reply),
            is_exact: counter.is_exact()
                && costs.has_exact_frame()
                && shares.iter().all(|share| share.is_exact),
        })
    }

    fn divide(&self, shares: &[Share<'_>], around: usize) -> Divided {
        let sent: Vec<usize> = (0..shares.len()).filter(|&i| !shares[i].is_reserved()).collect();
        let speaks = sent.iter().any(|&i| shares[i].all_tools().is_none());
        let apart = self.gap.saturating_add(if speaks { around } else { 0 });
        let space = self.context_window.saturating_sub(apart);
        let flexes: Vec<Flex> = shares.iter().map(Share::flex).collect();
        let (mut sizes, mut dropped) = sizes_in(space, &flexes);
        let room = self.max_input_tokens.saturating_sub(apart);
        // The model's limit of the input may be less than its window.
        if sent.iter().map(|&i| sizes[i]).sum::<usize>() > room {
            let sent: Vec<usize> = sent.into_iter().filter(|i| !dropped.contains(i)).collect();
            let flexes: Vec<Flex> = sent.iter().map(|&i| flexes[i]).collect();
            let (fewer, gone) = sizes_in(room, &flexes);
            for (&i, size) in sent.iter().zip(fewer) {
                sizes[i] = size;
            }
            dropped.extend(gone.into_iter().map(|place| sent[place]));
        }
        Divided { space, sizes, dropped }
    }
}

/// A divided window.
struct Divided {
    /// The tokens to divide.
    space: usize,
    /// The size of each section.
    sizes: Vec<usize>,
    /// The dropped sections, in the order in which they were dropped.
    dropped: Vec<usize>,
}

/// Returns the size of each section in `space` tokens, and the dropped
/// sections.
fn sizes_in(space: usize, flexes: &[Flex]) -> (Vec<usize>, Vec<usize>) {
    let resolved = super::resolve(space as u64, flexes);
    let size = |tokens| usize::try_from(tokens).expect("no section is larger than the space");
    (resolved.tokens.into_iter().map(size).collect(), resolved.dropped)
}

/// Returns the tools of all sections that keep some.
fn joined(shares: &[Share<'_>], tooled: &[usize]) -> Vec<Tool> {
    tooled.iter().flat_map(|&i| shares[i].tools()).cloned().collect()
}
