//! A retrieval service that works its budget out before it retrieves.
//!
//! A [`RetrievalService`] counts the system prompt and the query, refuses what
//! leaves nothing before any retriever or model is asked, retrieves, reranks,
//! packs the top chunks that fit, and answers with messages that provably fit
//! the model's window, ready to send. The model can be changed while it runs.
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
//! Nothing here needs a runtime. Where the retrievers block, share the service
//! in an [`Arc`] and call [`retrieve`](RetrievalService::retrieve) where the
//! runtime lets calls block, as with `tokio::task::spawn_blocking`. Where they
//! are asynchronous, divide the request: [`plan`](RetrievalService::plan) counts
//! and refuses, the caller awaits whatever finds chunks, and
//! [`Plan::answer`] packs them. A plan is a matter of microseconds for queries of
//! usual length, and an answer one of tenths of a millisecond for 500 chunks. For
//! 100,000 it takes tens of milliseconds: better not on a thread of the runtime.
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
//! A future that is dropped meanwhile cancels the request, and a deadline is
//! that of the runtime. With the feature `tracing` `Plan::span` is what the
//! search is instrumented with.
//!
//! # What operators see
//!
//! With the feature `tracing` each request is a span `budgeteer.retrieve` of level
//! INFO and target `budgeteer::service`, with `tokens.system`, `tokens.query`,
//! `tokens.budget`, `tokens.retrieved`, `tokens.budget_remaining`, `chunks.kept`,
//! `chunks.cut`, `chunks.dropped`, `model`, `context_window`, `outcome`, and the
//! `component` that failed or was late; its stages are spans of level DEBUG below
//! it: `budgeteer.plan`, `budgeteer.search` for each retriever, `budgeteer.rerank`
//! and `budgeteer.pack`. Of a name there are 80 characters at most. Where the
//! budget leaves chunks out there is a warning with these figures, "Token budget
//! exceeded: dropped 2 lowest-relevance chunks", or "cut 1 chunk" where it only
//! cuts; and one where settings or the system prompt leave nothing for any query.
//! No text and no query is in any of them. Without the feature nothing is logged;
//! [`RetrievalService::stats`] has the sums in any case.
//!
//! # Models
//!
//! The table of models is that of [`model_limits`](crate::window::model_limits).
//! Other than in Python the environment variable `BUDGETEER_MODELS` is not
//! read. A program that has a file of models gives its text to
//! `window::load_models` (with the feature `json`), or calls
//! [`register_model`](crate::window::register_model), before it makes the
//! settings.

mod error;
mod files;
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

/// Answers a query with the best chunks that provably fit a model's window.
///
/// For each request it counts the system prompt and the query, takes them and
/// the answer's reserve off the window, and refuses what leaves nothing, before
/// any retriever or model is asked. Then it retrieves, reranks, packs, and
/// answers with the messages, ready to send. For every input
///
/// `count_messages(result.messages)` + reserved output <= context window
///
/// holds under the counter of the settings. A service is shared between threads
/// behind an [`Arc`] or a reference. It holds no lock while it asks a
/// component: one that panics does so in the thread that called, and the
/// service goes on.
///
/// # Examples
///
/// See [the module](self).
pub struct RetrievalService {
    retrievers: Vec<Box<dyn Retriever>>,
    system_prompt: String,
    /// The caller's own.
    packer: Option<Packer>,
    reranker: Box<dyn Reranker>,
    message_builder: Box<MessageBuilder>,
    limit: usize,
    timeout: Option<Duration>,
    recorder: Recorder,
    /// One reference, which each request reads once.
    active: RwLock<Arc<Active>>,
}

/// What a request takes with it when it begins: a later swap does not reach it.
struct Active {
    settings: LlmSettings,
    model: ActiveModel,
    system_tokens: usize,
    packer: Packer,
    /// The same, in the order of the chunks.
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

    /// Adds a retriever. They are asked one after another, and their chunks
    /// merged, in the order in which they were given.
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

    /// Packs by the options of `packer`: its `max_tokens` are an upper bound
    /// beside the window, and the model's counter takes the place of its own.
    ///
    /// Without it that is `retrieval_service` of the [`presets`], the top N that
    /// fit: by the chunks' own scores, by the reranker's order where there is
    /// one, and in the merged order where some chunks have a score and others
    /// have none.
    ///
    /// A packer whose options contradict each other, or that ranks by vectors,
    /// makes each request an error before anything is retrieved.
    #[must_use]
    pub fn packer(mut self, packer: Packer) -> Self {
        self.packer = Some(packer);
        self.with_parts()
    }

    /// Puts the retrieved chunks into a better order.
    ///
    /// A [`packer`](Self::packer) of the caller's own ranks them anew, by its
    /// ranking; with [`Ranking::Input`] it keeps the reranker's order.
    #[must_use]
    pub fn reranker(mut self, reranker: impl Reranker + 'static) -> Self {
        self.reranker = Box::new(reranker);
        self
    }

    /// Makes the messages of system prompt, context and query, in place of
    /// [`chat_messages`]. The context is empty where nothing was found. What it
    /// adds is counted.
    ///
    /// It is called several times for a request, also with the context `x`, to
    /// see what it adds. It must be pure: the same messages for the same texts,
    /// and nothing else done.
    #[must_use]
    pub fn message_builder(
        mut self,
        builder: impl Fn(&str, &str, &str) -> Vec<Message> + Send + Sync + 'static,
    ) -> Self {
        self.message_builder = Box::new(builder);
        self
    }

    /// Sets how many chunks a retriever is asked for; 500 unless told
    /// otherwise, and 0 makes each request an error.
    ///
    /// One that has [`pages`](Retriever::pages) is read instead until the budget
    /// is full, or a page brings nothing that goes into it; where chunks compete,
    /// by a reranker or a packer that ranks anew, until there are as many as that
    /// besides.
    #[must_use]
    pub fn limit(mut self, chunks: usize) -> Self {
        self.limit = chunks;
        self
    }

    /// Sets how long retrieving and reranking may take together; 0 makes each
    /// request an error.
    ///
    /// The clock starts once the budget is known, and is looked at before and
    /// after each component is asked, and behind each page. A call that blocks
    /// cannot be stopped from outside: so that one that hangs does not hold the
    /// request up, give the clients of the retrievers timeouts of their own.
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

    /// Changes window, encoding and reserve for the requests that begin
    /// afterwards, and for no other; safe while requests are under way.
    ///
    /// # Errors
    ///
    /// As for [`LlmSettings::limits`]; the settings before stay.
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
        drop(old); // a caller's counter, perhaps: not under the lock
        trace::swapped(&active.model);
        Ok(())
    }

    /// Answers `query`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InputValidation`](crate::ErrorKind::InputValidation) where
    /// nothing is left for retrieval, and
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where the
    /// [packer](Self::packer) cannot pack, or limit or timeout is 0: nobody was
    /// asked. The latter also where the counter or the message builder does not
    /// answer alike for the same texts.
    /// [`ErrorKind::Retrieval`](crate::ErrorKind::Retrieval) and
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) name the component that
    /// failed or was late: [`ServiceError::component`].
    pub fn retrieve(&self, query: &str) -> Result<RetrievalResult, ServiceError> {
        self.retrieve_within(query, self.timeout)
    }

    /// Answers `query` within `timeout`, in place of the service's own.
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

    /// Works the budget of a request out, for callers that find the chunks
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

    /// Returns what became of the requests so far.
    #[must_use]
    pub fn stats(&self) -> ServiceStats {
        self.recorder.stats()
    }

    /// Like [`stats`](Self::stats), and begins anew; nothing is lost or told
    /// twice.
    #[must_use]
    pub fn take_stats(&self) -> ServiceStats {
        self.recorder.take()
    }

    fn active(&self) -> Arc<Active> {
        Arc::clone(&self.active.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Works out anew what prompt and packer are part of.
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
/// The system prompt, if there is one, then a user's message: the context, a
/// blank line, the query. What was retrieved never stands in the system
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
