//! Qdrant: chunks from a collection, awaited or for a service that blocks.

use std::fmt;

use budgeteer::Chunk;
use budgeteer::service::{BoxError, RetrievalResult, RetrievalService, Retriever, ServiceError};
use qdrant_client::Qdrant;
use qdrant_client::qdrant::point_id::PointIdOptions;
use qdrant_client::qdrant::{Query, QueryPoints, QueryPointsBuilder, ScoredPoint};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::task::block_in_place;

/// The keys of a payload that may have the text, the first of them first.
const TEXT_KEYS: [&str; 4] = ["text", "content", "page_content", "document"];

/// Finds the chunks of a collection that are nearest to a query.
///
/// A chunk has its text from the payload, under `text`, `content`,
/// `page_content` or `document`, and `title`, `source` and `id` if they are
/// there. Its id is else that of the point, and its metadata are the rest. Its
/// score is Qdrant's, or its negative where lower is nearer.
///
/// [`answer`](Self::answer) and [`search`](Self::search) are for asynchronous
/// code. As a [`Retriever`] it blocks its thread: on a runtime of tokio with
/// several threads, or below `spawn_blocking`. On the only thread of a runtime
/// tokio panics.
#[derive(Clone)]
pub struct QdrantRetriever<E> {
    client: Qdrant,
    points: QueryPoints,
    name: String,
    embed: E,
}

impl<E, F, Q> QdrantRetriever<E>
where
    E: Fn(String) -> F + Send + Sync,
    F: Future<Output = Result<Q, BoxError>> + Send,
    Q: Into<Query> + Send,
{
    /// Returns a retriever that asks for `points`, which names the collection
    /// and may have a filter, a named vector or a threshold. `embed` makes the
    /// vector of a query, or any other query that Qdrant takes.
    #[must_use]
    pub fn new(client: Qdrant, points: QueryPointsBuilder, embed: E) -> Self {
        let points = points.with_payload(true).build();
        let name = format!("qdrant:{}", points.collection_name);
        Self { client, points, name, embed }
    }

    /// Returns the `limit` nearest chunks, best first.
    ///
    /// # Errors
    ///
    /// Any error of `embed` and of the client, and a point without a text.
    pub async fn search(&self, query: &str, limit: usize) -> Result<Vec<Chunk>, BoxError> {
        if limit == 0 {
            return Ok(Vec::new()); // a server refuses to be asked for none
        }
        let query = (self.embed)(query.to_owned()).await?.into();
        let limit = Some(limit as u64);
        let points = QueryPoints { query: Some(query), limit, ..self.points.clone() };
        let found = self.client.query(points).await?.result;
        // The best is first: scores that rise are distances.
        let is_distance = matches!(&*found, [first, .., last] if first.score < last.score);
        let sign = if is_distance { -1.0 } else { 1.0 };
        found.into_iter().map(|point| chunk(point, sign)).collect()
    }

    /// Returns the result of a request to `service`, whose own retrievers are
    /// not asked. A query that leaves nothing for retrieval is refused before
    /// it is embedded. A deadline is up to the runtime: a request whose future
    /// is dropped counts as cancelled.
    ///
    /// # Errors
    ///
    /// As for [`RetrievalService::retrieve`].
    pub async fn answer(
        &self,
        service: &RetrievalService,
        query: &str,
    ) -> Result<RetrievalResult, ServiceError> {
        let plan = service.plan(query)?;
        match self.search(query, plan.limit()).await {
            Ok(chunks) => plan.answer(chunks),
            Err(error) => Err(plan.fail(&self.name, error)),
        }
    }
}

impl<E, F, Q> Retriever for QdrantRetriever<E>
where
    E: Fn(String) -> F + Send + Sync,
    F: Future<Output = Result<Q, BoxError>> + Send,
    Q: Into<Query> + Send,
{
    fn retrieve(&self, query: &str, limit: usize) -> Result<Vec<Chunk>, BoxError> {
        let runtime = Handle::try_current()?;
        block_in_place(|| runtime.block_on(self.search(query, limit)))
    }

    fn name(&self) -> &str {
        &self.name
    }
}

impl<E> fmt::Debug for QdrantRetriever<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The client has the key.
        f.debug_struct("QdrantRetriever").field("name", &self.name).finish_non_exhaustive()
    }
}

fn chunk(point: ScoredPoint, sign: f64) -> Result<Chunk, BoxError> {
    let id = match point.id.and_then(|id| id.point_id_options) {
        Some(PointIdOptions::Num(number)) => number.to_string(),
        Some(PointIdOptions::Uuid(uuid)) => uuid,
        None => String::new(),
    };
    let payload = point.payload.into_iter().map(|(key, value)| (key, value.into()));
    let mut payload: serde_json::Map<String, Value> = payload.collect();
    let present = |key: &&&str| payload.get(**key).is_some_and(|value| !value.is_null());
    let key = TEXT_KEYS.iter().find(present).copied().unwrap_or(TEXT_KEYS[0]);
    let Some(Value::String(text)) = payload.remove(key) else {
        let keys = TEXT_KEYS.join(", ");
        return Err(format!("the point {id} must have a string under one of {keys}").into());
    };
    let mut field = |key| match payload.remove(key) {
        Some(Value::String(text)) => Some(text),
        Some(Value::Null) | None => None,
        Some(other) => Some(other.to_string()),
    };
    let title = field("title").unwrap_or_default();
    let source = field("source").unwrap_or_default();
    let id = field("id").unwrap_or(id);
    let mut metadata = match payload.remove("metadata") {
        Some(own @ Value::Object(_)) => own,
        other => {
            payload.extend(other.map(|other| ("metadata".to_owned(), other)));
            Value::Object(payload)
        }
    };
    metadata.sort_all_objects(); // Qdrant's maps have no order
    let is_empty = metadata.as_object().is_none_or(serde_json::Map::is_empty);
    let metadata = if is_empty { String::new() } else { metadata.to_string() };
    let score = Some(sign * f64::from(point.score));
    Ok(Chunk { title, source, id: Some(id), metadata, score, ..Chunk::new(text) })
}
