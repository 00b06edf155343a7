//! A retrieval service that computes its budget before it retrieves.
//!
//! A [`RetrievalService`] counts the system prompt and the query, and refuses a
//! query that leaves nothing for retrieval before it asks any retriever or
//! model. Then it retrieves, reranks, and packs the top chunks that fit. The
//! result has the messages, which provably fit the model's window. The model
//! can be changed while the service runs.
//!
//! # Examples
//!
//! ```
//! # #[cfg(feature = "cl100k")] {
//! use budgeteer::service::{ChunkRetriever, LlmSettings, RetrievalService};
//! use budgeteer::{Chunk, ErrorKind};
//!
//! let chunks = [Chunk::new("Rye bread."), Chunk::new("Green tea is mild.")];
//! let settings = LlmSettings::new("gpt-4").context_window(4_096).max_output_tokens(500);
//! let service = RetrievalService::new(ChunkRetriever::new(chunks), settings)?
//!     .system_prompt("Answer from the context.");
//!
//! let result = service.retrieve("How is green tea?")?;
//! assert_eq!(result.messages[1].text(), "Green tea is mild.\n\nRye bread.\n\nHow is green tea?");
//! let tokens = result.tokens;
//! assert_eq!((tokens.system, tokens.query, tokens.budget), (5, 5, 3_586));
//! assert!(tokens.input + tokens.output <= tokens.context_window);
//!
//! let error = service.retrieve(&"Why? ".repeat(4_000)).unwrap_err();
//! assert_eq!(error.kind(), ErrorKind::InputValidation); // and nobody was asked
//! # }
//! # Ok::<(), budgeteer::service::ServiceError>(())
//! ```
//!
//! # From asynchronous code
//!
//! Nothing here needs a runtime.
//!
//! Where the retrievers block, share the service in an [`Arc`] and call
//! [`retrieve`](RetrievalService::retrieve) where the runtime allows blocking,
//! as with `tokio::task::spawn_blocking`.
//!
//! Where they are asynchronous, divide the request:
//! [`plan`](RetrievalService::plan) counts and refuses, the caller awaits the
//! search, and [`Plan::answer`] packs the chunks. A plan takes microseconds for
//! a query of usual length. An answer takes tenths of a millisecond for 500
//! chunks. For 100,000 it takes tens of milliseconds: do not do that on a
//! thread of the runtime.
//!
//! ```
//! use budgeteer::Chunk;
//! use budgeteer::service::{BoxError, RetrievalResult, RetrievalService, ServiceError};
//!
//! # async fn search(_: &str, _: usize) -> Result<Vec<Chunk>, BoxError> { Err("down".into()) }
//! async fn answer(service: &RetrievalService, query: &str) -> Result<RetrievalResult, ServiceError> {
//!     let plan = service.plan(query)?; // an error here: nothing was searched
//!     match search(query, plan.limit()).await {
//!         Ok(chunks) => plan.answer(chunks),
//!         Err(error) => Err(plan.fail("search", error)), // counted and traced as failed
//!     }
//! }
//! # use budgeteer::{ErrorKind, Estimate, service::{ChunkRetriever, LlmSettings}};
//! # use std::task::{Context, Poll, Waker};
//! # let settings = LlmSettings::new("gpt-4o").counter(Estimate::CharsDiv4);
//! # let service = RetrievalService::new(ChunkRetriever::new([]), settings)?;
//! # let mut future = std::pin::pin!(answer(&service, "tea"));
//! # let mut context = Context::from_waker(Waker::noop());
//! # let Poll::Ready(Err(error)) = future.as_mut().poll(&mut context) else { panic!() };
//! # assert_eq!((error.kind(), error.component()), (ErrorKind::Retrieval, Some("search")));
//! # assert_eq!((service.stats().failed, service.stats().cancelled), (1, 0));
//! # Ok::<(), ServiceError>(())
//! ```
//!
//! Dropping the future cancels the request. A deadline is up to the runtime.
//! With the feature `tracing`, instrument the search with `Plan::span`.
//!
//! # What operators see
//!
//! With the feature `tracing` each request is a span `budgeteer.retrieve` of
//! level INFO and target `budgeteer::service`. Its fields are `tokens.system`,
//! `tokens.query`, `tokens.budget`, `tokens.retrieved`,
//! `tokens.budget_remaining`, `chunks.kept`, `chunks.cut`, `chunks.dropped`,
//! `model`, `context_window`, `outcome`, and the `component` that failed or was
//! late. Below it each stage is a span of level DEBUG: `budgeteer.plan`,
//! `budgeteer.search` for each retriever, `budgeteer.rerank` and
//! `budgeteer.pack`. Names are shortened to 80 characters.
//!
//! Where the budget leaves chunks out, there is a warning with these figures:
//! "Token budget exceeded: dropped 2 lowest-relevance chunks", or "cut 1 chunk"
//! where it only cuts. Another warning tells of an answer and a system prompt
//! that leave nothing of the window for any query. None of these has a text or a query.
//! Without the feature nothing is logged; [`RetrievalService::stats`] has the
//! sums in any case.
//!
//! # Models
//!
//! The models are those of [`model_limits`](crate::window::model_limits).
//! Unlike in Python, the environment variable `BUDGETEER_MODELS` is not read.
//! To use a file of models, give its text to `window::load_models` (with the
//! feature `json`), or call [`register_model`](crate::window::register_model),
//! before making the settings.

mod error;
mod files;
mod known;
mod named;
mod plan;
mod retrieval_result;
mod retrievers;
mod room;
mod settings;
mod stats;
mod trace;

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

pub use error::ServiceError;
pub use files::FolderRetriever;
#[cfg(feature = "json")]
pub use files::JsonlRetriever;
pub use named::Named;
pub use plan::Plan;
pub use retrieval_result::{RetrievalResult, RetrievalTokens};
pub use retrievers::{BoxError, ChunkRetriever, NoOpReranker, Pages, Reranker, Retriever};
pub use settings::{ActiveModel, LlmSettings};
pub use stats::ServiceStats;

use crate::error::Error;
use crate::messages::Message;
use crate::packer::Packer;
use crate::presets;
use crate::ranking::Ranking;
use stats::Recorder;

/// How many chunks a retriever without pages is asked for.
const LIMIT: usize = 500;

type MessageBuilder = dyn Fn(&str, &str, &str) -> Vec<Message> + Send + Sync;

/// Packs the best chunks for a query into messages that provably fit a model's
/// window.
///
/// For each request it counts the system prompt and the query, and takes these
/// and the reserve for the answer off the window. If nothing is left, it
/// refuses before it asks any retriever or model. Then it retrieves, reranks
/// and packs, and returns the messages, ready to send. For every input
///
/// `count_messages(result.messages)` + reserved output <= context window
///
/// holds under the counter of the settings. Threads share a service behind an
/// [`Arc`] or a reference. It holds no lock while it asks a component. A
/// component that panics does so in the thread that called, and the service
/// goes on.
///
/// # Examples
///
/// See [the module](self).
pub struct RetrievalService {
    retrievers: Vec<Box<dyn Retriever>>,
    system_prompt: String,
    /// The caller's own packer.
    packer: Option<Packer>,
    reranker: Box<dyn Reranker>,
    message_builder: Box<MessageBuilder>,
    limit: usize,
    timeout: Option<Duration>,
    recorder: Recorder,
    /// The active model. Each request reads it once.
    active: RwLock<Arc<Active>>,
}

/// The model of a request: a later change of settings does not reach it.
struct Active {
    settings: LlmSettings,
    model: ActiveModel,
    system_tokens: usize,
    packer: Packer,
    /// The same packer, for chunks in their own order.
    by_input: Packer,
}

impl Active {
    /// Returns whether nothing is left for any query.
    fn refuses(&self) -> bool {
        let left = self.model.context_window.saturating_sub(self.model.max_output_tokens);
        left.min(self.model.max_input_tokens) <= self.system_tokens
    }
}

impl RetrievalService {
    /// Returns a service that asks `retriever`, for the model of `settings`.
    ///
    /// # Errors
    ///
    /// As for [`LlmSettings::limits`].
    pub fn new(retriever: impl Retriever + 'static, settings: LlmSettings) -> Result<Self, Error> {
        let active = activated(settings, "", None)?;
        Ok(Self {
            retrievers: vec![Box::new(retriever)],
            system_prompt: String::new(),
            packer: None,
            reranker: Box::new(NoOpReranker),
            message_builder: Box::new(chat_messages),
            limit: LIMIT,
            timeout: None,
            recorder: Recorder::default(),
            active: RwLock::new(Arc::new(active)),
        })
    }

    /// Adds a retriever. The retrievers are asked one after another, and their
    /// chunks merged, in the order in which they were added.
    ///
    /// ```
    /// use budgeteer::service::{ChunkRetriever, LlmSettings, RetrievalService};
    /// use budgeteer::{Chunk, Estimate};
    ///
    /// let tea = ChunkRetriever::new([Chunk::new("Green tea.")]);
    /// let bread = ChunkRetriever::new([Chunk::new("Rye bread.")]);
    /// let settings = LlmSettings::new("gpt-4o").counter(Estimate::CharsDiv4);
    /// let service = RetrievalService::new(tea, settings)?.retriever(bread);
    /// assert_eq!(service.retrieve("Hungry?")?.packing.text, "Green tea.\n\nRye bread.");
    /// # Ok::<(), budgeteer::service::ServiceError>(())
    /// ```
    #[must_use]
    pub fn retriever(mut self, retriever: impl Retriever + 'static) -> Self {
        self.retrievers.push(Box::new(retriever));
        self
    }

    /// Sets the system prompt.
    #[must_use]
    pub fn system_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.system_prompt = prompt.into();
        let refused = self.active().refuses();
        let service = self.with_parts();
        let active = service.active();
        if active.refuses() && !refused {
            trace::refused(&active.model, active.system_tokens);
        }
        service
    }

    /// Packs with the options of `packer`. Its `max_tokens` are an upper bound
    /// beside the window, and the model's counter replaces its own.
    ///
    /// The default is `retrieval_service` of the [`presets`], which packs the
    /// top chunks that fit: by the chunks' own scores, by the reranker's order
    /// if there is one, and in the merged order where only some chunks have a
    /// score.
    ///
    /// Where the options of the packer contradict each other, or it ranks by
    /// vectors, each request is an error before anything is retrieved.
    #[must_use]
    pub fn packer(mut self, packer: Packer) -> Self {
        self.packer = Some(packer);
        self.with_parts()
    }

    /// Puts the retrieved chunks into a better order.
    ///
    /// A caller's own [`packer`](Self::packer) ranks the chunks again; with
    /// [`Ranking::Input`] it keeps the reranker's order.
    #[must_use]
    pub fn reranker(mut self, reranker: impl Reranker + 'static) -> Self {
        self.reranker = Box::new(reranker);
        self
    }

    /// Sets the function that makes the messages from system prompt, context
    /// and query; [`chat_messages`] by default. The context is empty where no
    /// chunk was found. The tokens that the function adds are counted.
    ///
    /// It is called several times for a request, also with the context `x`, to
    /// count what it adds. It must be pure: return the same messages for the
    /// same texts, and do nothing else.
    #[must_use]
    pub fn message_builder(
        mut self,
        builder: impl Fn(&str, &str, &str) -> Vec<Message> + Send + Sync + 'static,
    ) -> Self {
        self.message_builder = Box::new(builder);
        self
    }

    /// Sets how many chunks a retriever is asked for: 500 by default. 0 makes
    /// each request an error.
    ///
    /// A retriever with [`pages`](Retriever::pages) is read instead until the
    /// budget is full, or until nothing of a page fits. Where chunks compete,
    /// because a reranker or the packer ranks them again, at least this number
    /// of chunks is read.
    #[must_use]
    pub fn limit(mut self, chunks: usize) -> Self {
        self.limit = chunks;
        self
    }

    /// Sets how long retrieving and reranking may take together: no limit by
    /// default. 0 makes each request an error.
    ///
    /// The clock starts once the budget is known. It is read before and after
    /// each component is asked, and after each page. A call that blocks cannot
    /// be stopped from outside, so give the clients of the retrievers timeouts
    /// of their own.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Returns the model's settings.
    #[must_use]
    pub fn settings(&self) -> LlmSettings {
        self.active().settings.clone()
    }

    /// Changes the model, its window and its reserve for later requests.
    /// Requests under way keep theirs, so this is safe at any time.
    ///
    /// # Errors
    ///
    /// As for [`LlmSettings::limits`]; the settings then stay as they were.
    ///
    /// # Examples
    ///
    /// ```
    /// use budgeteer::Estimate;
    /// use budgeteer::service::{ChunkRetriever, LlmSettings, RetrievalService};
    ///
    /// let settings = |model| LlmSettings::new(model).counter(Estimate::CharsDiv4);
    /// let service = RetrievalService::new(ChunkRetriever::new([]), settings("gpt-4"))?;
    /// service.set_settings(settings("gpt-4o"))?;
    /// assert_eq!(service.retrieve("tea")?.tokens.context_window, 128_000);
    /// # Ok::<(), budgeteer::service::ServiceError>(())
    /// ```
    pub fn set_settings(&self, settings: LlmSettings) -> Result<(), Error> {
        let active = activated(settings, &self.system_prompt, self.packer.as_ref())?;
        let active = Arc::new(active);
        let old = {
            let mut place = self.active.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *place, Arc::clone(&active))
        };
        drop(old); // it may hold a caller's counter, so drop it outside of the lock
        trace::swapped(&active.model);
        Ok(())
    }

    /// Retrieves chunks for `query` and packs them into messages.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::InputValidation`](crate::ErrorKind::InputValidation)
    ///   where nothing is left for retrieval. No component was asked.
    /// - [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument)
    ///   where the [packer](Self::packer) cannot pack, or limit or timeout is
    ///   0. No component was asked. Also where the counter or the message
    ///   builder returns different results for the same texts.
    /// - [`ErrorKind::Retrieval`](crate::ErrorKind::Retrieval) and
    ///   [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) where a component
    ///   failed or was late: [`ServiceError::component`] names it.
    pub fn retrieve(&self, query: &str) -> Result<RetrievalResult, ServiceError> {
        self.retrieve_within(query, self.timeout)
    }

    /// Does the same as [`retrieve`](Self::retrieve), with another timeout than
    /// the service's.
    ///
    /// # Errors
    ///
    /// As for [`retrieve`](Self::retrieve).
    ///
    /// # Examples
    ///
    /// ```
    /// use budgeteer::service::{BoxError, LlmSettings, RetrievalService};
    /// use budgeteer::{ErrorKind, Estimate};
    /// use std::time::Duration;
    ///
    /// let slow = |_: &str, _: usize| {
    ///     std::thread::sleep(Duration::from_millis(5));
    ///     Ok::<_, BoxError>(vec![])
    /// };
    /// let settings = LlmSettings::new("gpt-4o").counter(Estimate::CharsDiv4);
    /// let service = RetrievalService::new(slow, settings)?;
    /// let error = service.retrieve_timeout("tea", Duration::from_millis(1)).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Timeout);
    /// # Ok::<(), budgeteer::Error>(())
    /// ```
    pub fn retrieve_timeout(
        &self,
        query: &str,
        timeout: Duration,
    ) -> Result<RetrievalResult, ServiceError> {
        self.retrieve_within(query, Some(timeout))
    }

    fn retrieve_within(
        &self,
        query: &str,
        timeout: Option<Duration>,
    ) -> Result<RetrievalResult, ServiceError> {
        Plan::new(self, query, timeout)?.retrieve(timeout)
    }

    /// Computes the budget of a request, for callers that find the chunks
    /// themselves, as asynchronous code does: see [the module](self). The
    /// retrievers are not asked, and [`timeout`](Self::timeout) does not apply.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InputValidation`](crate::ErrorKind::InputValidation) where
    /// nothing is left for retrieval, and
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where the
    /// [packer](Self::packer) cannot pack, or the limit is 0.
    ///
    /// # Examples
    ///
    /// ```
    /// use budgeteer::service::{ChunkRetriever, LlmSettings, RetrievalService};
    /// use budgeteer::{Chunk, Estimate};
    ///
    /// let settings = LlmSettings::default()
    ///     .context_window(4_096)
    ///     .max_output_tokens(500)
    ///     .counter(Estimate::Words);
    /// let service = RetrievalService::new(ChunkRetriever::new([]), settings)?
    ///     .system_prompt("word ".repeat(200));
    /// let query = "word ".repeat(50);
    ///
    /// let plan = service.plan(&query)?;
    /// assert_eq!(plan.budget(), 3_346); // 4096 - 200 - 500 - 50
    /// let result = plan.answer(vec![Chunk::new("Green tea.")])?;
    /// assert_eq!(result.tokens.retrieved, 2);
    /// # Ok::<(), budgeteer::service::ServiceError>(())
    /// ```
    pub fn plan<'a>(&'a self, query: &'a str) -> Result<Plan<'a>, ServiceError> {
        Plan::new(self, query, None)
    }

    /// Returns figures of the requests so far.
    #[must_use]
    pub fn stats(&self) -> ServiceStats {
        self.recorder.stats()
    }

    /// Returns the figures like [`stats`](Self::stats), and begins anew. No
    /// request is lost or counted twice.
    #[must_use]
    pub fn take_stats(&self) -> ServiceStats {
        self.recorder.take()
    }

    fn active(&self) -> Arc<Active> {
        Arc::clone(&self.active.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Computes again what depends on the system prompt and the packer.
    fn with_parts(mut self) -> Self {
        let old = self.active();
        let (settings, model) = (old.settings.clone(), old.model.clone());
        let active = with_model(settings, model, &self.system_prompt, self.packer.as_ref());
        self.active = RwLock::new(Arc::new(active));
        self
    }
}

impl fmt::Debug for RetrievalService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.retrievers.iter().map(Retriever::name).collect();
        f.debug_struct("RetrievalService")
            .field("retrievers", &names)
            .field("model", &self.active().model)
            .finish_non_exhaustive()
    }
}

fn activated(
    settings: LlmSettings,
    system_prompt: &str,
    packer: Option<&Packer>,
) -> Result<Active, Error> {
    let model = settings.limits()?;
    let active = with_model(settings, model, system_prompt, packer);
    if active.refuses() {
        trace::refused(&active.model, active.system_tokens);
    }
    Ok(active)
}

fn with_model(
    settings: LlmSettings,
    model: ActiveModel,
    system_prompt: &str,
    packer: Option<&Packer>,
) -> Active {
    let packer = packer.cloned().unwrap_or_else(|| presets::top(usize::MAX));
    let packer = packer.shared_counter(Arc::clone(&model.counter));
    Active {
        system_tokens: model.counter.count(system_prompt),
        by_input: packer.clone().ranking(Ranking::Input),
        packer,
        settings,
        model,
    }
}

/// Returns the messages of a chat, in the form that OpenAI's and most other
/// endpoints take.
///
/// These are the system prompt, if there is one, and a user's message: the
/// context, a blank line, the query. Retrieved text never stands in the system
/// message.
///
/// # Examples
///
/// ```
/// use budgeteer::service::chat_messages;
///
/// let messages = chat_messages("Be brief.", "Green tea is mild.", "Is it?");
/// assert_eq!((messages[1].role(), messages.len()), ("user", 2));
/// assert_eq!(messages[1].text(), "Green tea is mild.\n\nIs it?");
/// ```
#[must_use]
pub fn chat_messages(system_prompt: &str, context: &str, query: &str) -> Vec<Message> {
    let system = (!system_prompt.is_empty()).then(|| Message::system(system_prompt));
    let user = if context.is_empty() { query.to_owned() } else { format!("{context}\n\n{query}") };
    system.into_iter().chain([Message::user(user)]).collect()
}
