//! The stages of a request, in the order in which they run: plan, search,
//! rerank, pack.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::error::ServiceError;
use super::known::Known;
use super::retrieval_result::{RetrievalResult, RetrievalTokens};
use super::retrievers::{BoxError, Retriever};
use super::room::Room;
use super::settings::ActiveModel;
use super::stats::{Outcome, Packed, Recorder};
use super::trace::{Stage, Trace};
use super::{Active, RetrievalService};
use crate::chunk::Chunk;
use crate::count::TokenCounter;
use crate::error::{Error, ErrorKind};
use crate::messages::{Message, count_messages};
use crate::packer::Packer;
use crate::packing::Packing;
use crate::window::{Reserve, retrieval_budget};

/// A context of one token, to count the messages around a context.
const PROBE: &str = "x";

/// The name of a component without a name.
const RETRIEVER: &str = "retriever";
const RERANKER: &str = "reranker";

/// How many times a packing is made smaller while its messages are over.
const TRIES: usize = 8;

/// The deadline of a request, if it has one.
#[derive(Clone, Copy)]
struct Deadline(Option<(Instant, Duration)>);

impl Deadline {
    fn new(timeout: Option<Duration>) -> Self {
        Self(timeout.map(|timeout| (Instant::now(), timeout)))
    }

    fn check(&self, component: &str) -> Result<(), ServiceError> {
        match self.0 {
            Some((start, timeout)) if start.elapsed() >= timeout => {
                Err(ServiceError::late(component, timeout))
            }
            _ => Ok(()),
        }
    }
}

/// Reports the outcome of a request to its span and to the figures.
struct Request<'a> {
    recorder: &'a Recorder,
    trace: Trace,
    outcome: Outcome,
    /// The contribution of the answer to the figures.
    packed: Option<Packed>,
}

impl<'a> Request<'a> {
    fn new(recorder: &'a Recorder, trace: Trace) -> Self {
        recorder.begin();
        Self { recorder, trace, outcome: Outcome::Cancelled, packed: None }
    }

    fn answered(&mut self, packed: Packed) {
        self.outcome = Outcome::Answered;
        self.packed = Some(packed);
    }

    fn failed(&mut self, error: &ServiceError) {
        self.outcome = match error.kind() {
            ErrorKind::InputValidation => Outcome::Rejected,
            ErrorKind::Timeout => Outcome::TimedOut,
            _ => Outcome::Failed,
        };
        if let Some(component) = error.component() {
            self.trace.failed(component);
        }
    }
}

impl Drop for Request<'_> {
    fn drop(&mut self) {
        if self.outcome == Outcome::Cancelled && std::thread::panicking() {
            self.outcome = Outcome::Failed;
        }
        self.recorder.end(self.outcome, self.packed.as_ref());
        self.trace.ended(self.outcome);
    }
}

/// A request whose budget is known, and whose chunks are still to be found: the
/// result of [`RetrievalService::plan`].
///
/// It keeps the model that was active when it was made. If it is dropped
/// without an answer, it counts as cancelled.
#[must_use = "a plan that is dropped answers nothing"]
pub struct Plan<'a> {
    service: &'a RetrievalService,
    query: &'a str,
    active: Arc<Active>,
    request: Request<'a>,
    figures: Figures,
}

/// The budget of a request, in tokens.
struct Figures {
    query: usize,
    /// The maximum of the prompt.
    most: usize,
    budget: usize,
    /// The maximum of the context: the budget, less the costs of the messages
    /// beside their texts.
    context: usize,
    /// The part of it that the packer may fill.
    room: usize,
}

impl std::fmt::Debug for Plan<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plan")
            .field("model", &self.active.model.name)
            .field("budget", &self.figures.budget)
            .finish_non_exhaustive()
    }
}

impl<'a> Plan<'a> {
    /// Plans a request with a `timeout` for its search.
    pub(super) fn new(
        service: &'a RetrievalService,
        query: &'a str,
        timeout: Option<Duration>,
    ) -> Result<Self, ServiceError> {
        let active = service.active();
        let mut request = Request::new(&service.recorder, Trace::new(&active.model));
        let figures = request.trace.stage(Stage::Plan, || {
            service.check(timeout)?;
            active.packer.check::<Chunk>(&[])?;
            active.packer.refuse_sticky("in a retrieval service")?;
            let query_tokens = active.model.counter.count(query);
            request.trace.counted(active.system_tokens, query_tokens);
            service.figures(&active, query, query_tokens)
        });
        let figures = figures.map_err(ServiceError::from);
        let figures = figures.inspect_err(|error| request.failed(error))?;
        request.trace.planned(figures.budget.min(active.packer.bound()));
        Ok(Self { service, query, active, request, figures })
    }

    /// Returns the tokens that system prompt, query and the reserve for the
    /// answer leave for retrieval. The messages' own overhead comes off this.
    #[must_use]
    pub fn budget(&self) -> usize {
        self.figures.budget
    }

    /// Returns how many chunks to ask a retriever for.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.service.limit
    }

    /// Returns how many tokens chunks can fill: the packer's budget less its
    /// reserve.
    #[must_use]
    pub fn room(&self) -> usize {
        self.figures.room
    }

    /// Returns the model that was active when the plan was made.
    #[must_use]
    pub fn model(&self) -> &ActiveModel {
        &self.active.model
    }

    /// Returns the span of the request, to instrument the caller's own search.
    /// It ends when no clone of it is left. Only with the feature `tracing`.
    #[cfg(feature = "tracing")]
    #[must_use]
    pub fn span(&self) -> tracing::Span {
        self.request.trace.span().clone()
    }

    /// Ends the request as failed by the caller's own search, which `component`
    /// names. Returns the error that [`RetrievalService::retrieve`] would
    /// return.
    ///
    /// # Examples
    ///
    /// See [the module](super).
    #[must_use]
    pub fn fail(mut self, component: &str, error: impl Into<BoxError>) -> ServiceError {
        let error = ServiceError::failed(named(component, RETRIEVER), error.into());
        self.request.failed(&error);
        error
    }

    /// Reranks and packs `chunks`, and returns the result of the request.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] for a chunk whose score or time is NaN,
    /// and where the counter or the message builder returns different results
    /// for the same texts; [`ErrorKind::Retrieval`] where the reranker failed.
    pub fn answer(self, chunks: Vec<Chunk>) -> Result<RetrievalResult, ServiceError> {
        self.run(|plan| {
            plan.packer().check(&chunks)?;
            plan.finish(chunks, Deadline::new(None))
        })
    }

    /// Asks the service's own retrievers, and packs their chunks. The clock
    /// starts here.
    pub(super) fn retrieve(
        self,
        timeout: Option<Duration>,
    ) -> Result<RetrievalResult, ServiceError> {
        let deadline = Deadline::new(timeout);
        self.run(|plan| plan.finish(plan.search(deadline)?, deadline))
    }

    fn run(
        mut self,
        work: impl FnOnce(&Self) -> Result<(RetrievalResult, Packed), ServiceError>,
    ) -> Result<RetrievalResult, ServiceError> {
        let (result, packed) = work(&self).inspect_err(|error| self.request.failed(error))?;
        self.request.answered(packed);
        Ok(result)
    }

    fn search(&self, deadline: Deadline) -> Result<Vec<Chunk>, ServiceError> {
        let mut chunks = Vec::new();
        for retriever in &self.service.retrievers {
            let name = named(retriever.name(), RETRIEVER);
            deadline.check(name)?;
            let stage = Stage::Search(name);
            let ask = || self.ask(&**retriever, name, deadline);
            let found = self.request.trace.stage(stage, ask)?;
            deadline.check(name)?;
            self.packer().check(&found).map_err(|error| ServiceError::unpackable(name, error))?;
            if chunks.is_empty() {
                chunks = found;
            } else {
                chunks.extend(found);
            }
        }
        Ok(chunks)
    }

    fn ask(
        &self,
        retriever: &dyn Retriever,
        name: &str,
        deadline: Deadline,
    ) -> Result<Vec<Chunk>, ServiceError> {
        let failed = |error| ServiceError::failed(name, error);
        let Some(pages) = retriever.pages(self.query) else {
            return retriever.retrieve(self.query, self.service.limit).map_err(failed);
        };
        let Active { model, packer, .. } = &*self.active;
        let RetrievalService { reranker, limit, .. } = self.service;
        let mut room =
            Room::new(model.counter(), self.figures.room, packer, reranker.reorders(), *limit);
        let mut chunks = Vec::new();
        for page in pages {
            let page = page.map_err(failed)?;
            let has_gained = room.gains(&page);
            chunks.extend(page);
            if !has_gained {
                break;
            }
            deadline.check(name)?;
        }
        Ok(chunks)
    }

    fn finish(
        &self,
        chunks: Vec<Chunk>,
        deadline: Deadline,
    ) -> Result<(RetrievalResult, Packed), ServiceError> {
        let chunks = self.reranked(chunks, deadline)?;
        let trace = &self.request.trace;
        let (packing, messages, total) = trace.stage(Stage::Pack, || self.pack(&chunks))?;
        let Figures { query, most, budget, .. } = self.figures;
        let (model, system) = (&self.active.model, self.active.system_tokens);
        let overhead = wide(total) - wide(system) - wide(query) - wide(packing.total_tokens);
        let tokens = RetrievalTokens {
            system,
            query,
            retrieved: packing.total_tokens,
            budget,
            overhead: isize::try_from(overhead).unwrap_or(isize::MAX),
            remaining: most.saturating_sub(total),
            input: total,
            output: model.max_output_tokens,
            context_window: model.context_window,
            is_exact: model.counter.is_exact(),
        };
        let packed = Packed::new(&packing, &chunks, model.counter());
        let model = model.name.clone();
        let result = RetrievalResult { chunks, packing, messages, tokens, model };
        trace.packed(&result, &packed, budget.min(self.active.packer.bound()));
        Ok((result, packed))
    }

    fn reranked(&self, chunks: Vec<Chunk>, deadline: Deadline) -> Result<Vec<Chunk>, ServiceError> {
        let reranker = &self.service.reranker;
        if !reranker.reorders() {
            return Ok(chunks);
        }
        let name = named(reranker.name(), RERANKER);
        deadline.check(name)?;
        let rerank = || reranker.rerank(self.query, chunks);
        let found = self.request.trace.stage(Stage::Rerank(name), rerank);
        let found = found.map_err(|error| ServiceError::failed(name, error))?;
        deadline.check(name)?;
        self.packer().check(&found).map_err(|error| ServiceError::unpackable(name, error))?;
        Ok(found)
    }

    /// Returns the packer for chunks that all have a score, or none.
    fn packer(&self) -> &Packer {
        if self.service.packer.is_none() && self.service.reranker.reorders() {
            &self.active.by_input
        } else {
            &self.active.packer
        }
    }

    /// Returns a packing, its messages and their tokens, which are at most the
    /// maximum of the prompt.
    fn pack(&self, chunks: &[Chunk]) -> Result<(Packing, Vec<Message>, usize), Error> {
        let Self { service, query, active, figures, .. } = self;
        // A score cannot be compared with a missing one.
        let scored = chunks.iter().filter(|chunk| chunk.score.is_some()).count();
        let is_mixed = service.packer.is_none() && 0 < scored && scored < chunks.len();
        let packer = if is_mixed { &active.by_input } else { self.packer() };
        let messages_of = |context: &str, tokens| {
            let messages = service.messages(context, query);
            let counter = Known::new(active.model.counter(), context, tokens);
            let total = active.count_by(&counter, &messages);
            (messages, total)
        };
        let mut room = figures.context;
        for attempt in 0..TRIES {
            let limit = packer.max_tokens.min(room);
            let packing = packer.pack_within(limit, query, chunks)?;
            let (messages, total) = messages_of(&packing.text, packing.total_tokens);
            if total <= figures.most {
                return Ok((packing, messages, total));
            }
            // The text counts more beside the query than on its own: by a
            // number of tokens, or, where the messages have it twice or
            // escaped, by a share.
            let over = total - figures.most;
            let less = packing.total_tokens.saturating_sub(over);
            let share = packing.total_tokens as u128 * figures.context as u128
                / (over as u128 + figures.context as u128);
            room = room.saturating_sub(1).min(less.max(usize::try_from(share).unwrap_or(less)));
            if attempt >= TRIES / 2 {
                room /= 2;
            }
        }
        let mut packing = packer.pack_within(0, query, chunks)?;
        if !packing.text.is_empty() {
            // The counter returns 0 for some texts.
            packing = packer.clone().max_chunks(0).pack_within(0, query, chunks)?;
        }
        let (messages, total) = messages_of("", 0);
        if total > figures.most {
            return Err(Error::shape(format!(
                "the messages count {total} tokens without a context, and {} fit: the counter or \
                 the message builder does not answer alike for the same texts",
                figures.most
            )));
        }
        Ok((packing, messages, total))
    }
}

impl Active {
    fn count(&self, messages: &[Message]) -> usize {
        self.count_by(self.model.counter(), messages)
    }

    fn count_by(&self, counter: &dyn TokenCounter, messages: &[Message]) -> usize {
        count_messages(messages, counter, Some(&self.model.name))
    }
}

impl RetrievalService {
    fn messages(&self, context: &str, query: &str) -> Vec<Message> {
        (self.message_builder)(&self.system_prompt, context, query)
    }

    /// Checks the settings with which no request can be answered.
    fn check(&self, timeout: Option<Duration>) -> Result<(), Error> {
        if self.limit == 0 {
            return Err(Error::limit("limit", "at least 1", "0"));
        }
        if timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(Error::limit("timeout", "above 0 seconds", "0"));
        }
        Ok(())
    }

    /// Returns the budget, or an error if nothing is left.
    fn figures(&self, active: &Active, query: &str, asked: usize) -> Result<Figures, Error> {
        let (model, system) = (&active.model, active.system_tokens);
        let reserve = Reserve {
            system_tokens: system,
            max_output_tokens: model.max_output_tokens,
            query_tokens: asked,
        };
        let mut budget = wide(retrieval_budget(model.context_window, reserve)?);
        let mut most = model.context_window - model.max_output_tokens;
        let is_input_bounded = model.max_input_tokens < most;
        if is_input_bounded {
            most = model.max_input_tokens;
            budget = wide(most) - wide(system) - wide(asked);
        }
        let bare = active.count(&self.messages("", query));
        let probed = active.count(&self.messages(PROBE, query));
        let fixed = wide(bare).max(wide(probed) - wide(model.counter.count(PROBE)));
        let left = wide(most) - fixed;
        if let (Ok(budget @ 1..), Ok(context @ 1..)) = (budget.try_into(), left.try_into()) {
            let (given, reserve) = (active.packer.max_tokens.min(context), active.packer.reserve());
            if given > reserve {
                let room = given - reserve;
                return Ok(Figures { query: asked, most, budget, context, room });
            }
            return Err(Error::no_room(format!(
                "nothing is left for retrieval: max_tokens {given} - reserve_tokens {reserve} = {}",
                wide(given) - wide(reserve)
            )));
        }
        let limit = if is_input_bounded {
            format!("max_input_tokens {most}")
        } else {
            let (window, output) = (model.context_window, model.max_output_tokens);
            format!("context_window {window} - max_output_tokens {output}")
        };
        let message_tokens = fixed - wide(system) - wide(asked);
        Err(Error::no_room(format!(
            "nothing is left for retrieval: {limit} - system_tokens {system} - query_tokens \
             {asked} - message_tokens {message_tokens} = {left}"
        )))
    }
}

/// Returns `name`, or `other` if it is empty.
fn named<'a>(name: &'a str, other: &'a str) -> &'a str {
    if name.is_empty() { other } else { name }
}

fn wide(tokens: usize) -> i128 {
    i128::try_from(tokens).expect("128 bits hold any size")
}
