//! The spans and events of a request, with the feature `tracing`; without it,
//! nothing. None of them has a text or a query.

use super::retrieval_result::RetrievalResult;
use super::settings::ActiveModel;
use super::stats::{Outcome, Packed};

/// The target of all events and spans, for filters.
#[cfg(feature = "tracing")]
const TARGET: &str = "budgeteer::service";

/// A stage of a request, and the component that does it.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "tracing"), allow(dead_code))] // its fields are only read for spans
pub(super) enum Stage<'a> {
    Plan,
    Search(&'a str),
    Rerank(&'a str),
    Pack,
}

/// The span of a request.
#[cfg(feature = "tracing")]
pub(super) struct Trace(tracing::Span);

#[cfg(feature = "tracing")]
impl Trace {
    pub(super) fn new(model: &ActiveModel) -> Self {
        use tracing::field::Empty;

        Self(tracing::info_span!(
            target: TARGET,
            "budgeteer.retrieve",
            model = shown(&model.name),
            context_window = model.context_window,
            tokens.system = Empty,
            tokens.query = Empty,
            tokens.budget = Empty,
            tokens.retrieved = Empty,
            tokens.budget_remaining = Empty,
            chunks.kept = Empty,
            chunks.cut = Empty,
            chunks.dropped = Empty,
            component = Empty,
            outcome = Empty,
        ))
    }

    pub(super) fn span(&self) -> &tracing::Span {
        &self.0
    }

    /// Does the work of a stage in a span of its own, below the request's.
    pub(super) fn stage<R>(&self, stage: Stage<'_>, work: impl FnOnce() -> R) -> R {
        use tracing::debug_span;

        let _request = self.0.enter();
        let _stage = match stage {
            Stage::Plan => debug_span!(target: TARGET, "budgeteer.plan"),
            Stage::Search(name) => {
                debug_span!(target: TARGET, "budgeteer.search", component = shown(name))
            }
            Stage::Rerank(name) => {
                debug_span!(target: TARGET, "budgeteer.rerank", component = shown(name))
            }
            Stage::Pack => debug_span!(target: TARGET, "budgeteer.pack"),
        }
        .entered();
        work()
    }

    pub(super) fn counted(&self, system: usize, query: usize) {
        self.0.record("tokens.system", system).record("tokens.query", query);
    }

    /// Records the budget: the rest of the window, or the packer's own bound
    /// where that is smaller. It is what leaves chunks out then.
    pub(super) fn planned(&self, budget: usize) {
        self.0.record("tokens.budget", budget);
    }

    /// Records the figures of an answer, and warns if the budget dropped or cut
    /// chunks.
    pub(super) fn packed(&self, result: &RetrievalResult, packed: &Packed, budget: usize) {
        let tokens = &result.tokens;
        let remaining = tokens.remaining.min(budget.saturating_sub(tokens.retrieved));
        macro_rules! event {
            ($level:ident, $($message:tt)+) => {{
                tracing::$level!(
                    target: TARGET,
                    model = shown(&result.model),
                    tokens.system = tokens.system,
                    tokens.query = tokens.query,
                    tokens.retrieved = tokens.retrieved,
                    tokens.budget = budget,
                    tokens.budget_remaining = remaining,
                    chunks.kept = result.packing.kept.len(),
                    chunks.cut = packed.cut,
                    chunks.dropped = result.packing.dropped.len(),
                    $($message)+
                )
            }};
        }
        self.0
            .record("tokens.retrieved", tokens.retrieved)
            .record("tokens.budget_remaining", remaining)
            .record("chunks.kept", result.packing.kept.len())
            .record("chunks.cut", packed.cut)
            .record("chunks.dropped", result.packing.dropped.len());
        let _request = self.0.enter();
        match (packed.dropped, packed.cut) {
            (0, 0) if result.packing.kept.is_empty() && result.packing.dropped.is_empty() => {
                event!(debug, "retrieval: nothing was found");
            }
            (0, 0) => event!(debug, "retrieval: everything fits"),
            (0, 1) => event!(warn, "Token budget exceeded: cut 1 chunk"),
            (0, n) => event!(warn, "Token budget exceeded: cut {n} chunks"),
            (1, _) => event!(warn, "Token budget exceeded: dropped 1 lowest-relevance chunk"),
            (n, _) => event!(warn, "Token budget exceeded: dropped {n} lowest-relevance chunks"),
        }
    }

    /// Records the component that failed or was late.
    pub(super) fn failed(&self, component: &str) {
        self.0.record("component", shown(component));
    }

    pub(super) fn ended(&self, outcome: Outcome) {
        self.0.record("outcome", outcome.name());
    }
}

/// Returns the first 80 characters of a name: a file may have given it any
/// length.
pub(super) fn shown(name: &str) -> &str {
    name.char_indices().nth(80).map_or(name, |(end, _)| &name[..end])
}

/// Tells that the model was changed.
#[cfg(feature = "tracing")]
pub(super) fn swapped(model: &ActiveModel) {
    tracing::info!(
        target: TARGET,
        model = shown(&model.name),
        context_window = model.context_window,
        "retrieval service: another model from now on"
    );
}

/// Warns of settings that leave nothing for any query. Otherwise only the
/// callers would see that.
#[cfg(feature = "tracing")]
pub(super) fn refused(model: &ActiveModel, system_tokens: usize) {
    tracing::warn!(
        target: TARGET,
        model = shown(&model.name),
        context_window = model.context_window,
        "retrieval service: every query will be refused, as {} tokens of output and \
         {system_tokens} of the system prompt leave nothing of the context window {}",
        model.max_output_tokens,
        model.context_window,
    );
}

/// Does nothing: this is without the feature `tracing`.
#[cfg(not(feature = "tracing"))]
pub(super) struct Trace;

#[cfg(not(feature = "tracing"))]
#[allow(clippy::unused_self, clippy::trivially_copy_pass_by_ref)] // as those above
impl Trace {
    pub(super) fn new(_: &ActiveModel) -> Self {
        Self
    }

    pub(super) fn stage<R>(&self, _: Stage<'_>, work: impl FnOnce() -> R) -> R {
        work()
    }

    pub(super) fn counted(&self, _: usize, _: usize) {}

    pub(super) fn planned(&self, _: usize) {}

    pub(super) fn packed(&self, _: &RetrievalResult, _: &Packed, _: usize) {}

    pub(super) fn failed(&self, _: &str) {}

    pub(super) fn ended(&self, _: Outcome) {}
}

#[cfg(not(feature = "tracing"))]
pub(super) fn swapped(_: &ActiveModel) {}

#[cfg(not(feature = "tracing"))]
pub(super) fn refused(_: &ActiveModel, _: usize) {}
