//! Qdrant: the client against a server on this machine that speaks Qdrant's
//! own protocol.
//!
//! The server is made here, from the types that Qdrant's client ships: it keeps
//! points, and finds the nearest by a full scan. No other part of Qdrant is in
//! it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use budgeteer::service::{BoxError, ChunkRetriever, LlmSettings, RetrievalService, Retriever};
use budgeteer::{Encoding, ErrorKind, TokenCounter};
use budgeteer_examples::qdrant::QdrantRetriever;
use qdrant_client::qdrant::points_server::{Points, PointsServer};
use qdrant_client::qdrant::qdrant_server::{Qdrant as Health, QdrantServer};
use qdrant_client::qdrant::{self, query, vector, vector_input, vectors};
use qdrant_client::qdrant::{
    Condition, Filter, HealthCheckReply, HealthCheckRequest, PointStruct, PointsOperationResponse,
    QueryPoints, QueryPointsBuilder, QueryResponse, ScoredPoint, UpsertPoints, UpsertPointsBuilder,
};
use qdrant_client::{Payload, Qdrant};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

type Answer<T> = Result<Response<T>, Status>;

/// A server's collections: the points of each.
#[derive(Clone, Default)]
struct Server {
    collections: Arc<Mutex<HashMap<String, Vec<PointStruct>>>>,
    asked: Arc<Mutex<Vec<QueryPoints>>>,
}

/// Implements the trait of the service with the methods in front, and answers
/// that the others are not there.
macro_rules! points {
    ({ $($own:tt)* } $($method:ident: $from:ident -> $to:ident,)*) => {
        #[tonic::async_trait]
        impl Points for Server {
            $($own)*
            $(async fn $method(&self, _: Request<qdrant::$from>) -> Answer<qdrant::$to> {
                Err(Status::unimplemented(stringify!($method)))
            })*
        }
    };
}

points! {
    {
        async fn upsert(&self, request: Request<UpsertPoints>) -> Answer<PointsOperationResponse> {
            let UpsertPoints { collection_name, points, .. } = request.into_inner();
            let mut collections = self.collections.lock().expect("no panic");
            let collection = collections.entry(collection_name).or_default();
            collection.retain(|old| points.iter().all(|new| new.id != old.id));
            collection.extend(points);
            Ok(Response::new(PointsOperationResponse::default()))
        }

        async fn query(&self, request: Request<QueryPoints>) -> Answer<QueryResponse> {
            let request = request.into_inner();
            self.asked.lock().expect("no panic").push(request.clone());
            let collections = self.collections.lock().expect("no panic");
            let Some(points) = collections.get(&request.collection_name) else {
                return Err(Status::not_found("Collection doesn't exist!"));
            };
            let Some(query::Variant::Nearest(near)) = request.query.and_then(|query| query.variant)
            else {
                return Err(Status::invalid_argument("a vector is needed"));
            };
            let Some(vector_input::Variant::Dense(near)) = near.variant else {
                return Err(Status::invalid_argument("a dense vector is needed"));
            };
            let is_distance = request.collection_name == "euclid";
            let mut result: Vec<_> = points
                .iter()
                .map(|point| ScoredPoint {
                    id: point.id.clone(),
                    payload: point.payload.clone(),
                    score: score(&near.data, &dense(point), is_distance),
                    ..ScoredPoint::default()
                })
                .collect();
            let sign = if is_distance { 1.0 } else { -1.0 };
            result.sort_by(|a, b| (sign * a.score).total_cmp(&(sign * b.score)));
            result.truncate(usize::try_from(request.limit.unwrap_or(10)).unwrap_or(usize::MAX));
            Ok(Response::new(QueryResponse { result, ..QueryResponse::default() }))
        }
    }
    delete: DeletePoints -> PointsOperationResponse,
    get: GetPoints -> GetResponse,
    update_vectors: UpdatePointVectors -> PointsOperationResponse,
    delete_vectors: DeletePointVectors -> PointsOperationResponse,
    set_payload: SetPayloadPoints -> PointsOperationResponse,
    overwrite_payload: SetPayloadPoints -> PointsOperationResponse,
    delete_payload: DeletePayloadPoints -> PointsOperationResponse,
    clear_payload: ClearPayloadPoints -> PointsOperationResponse,
    create_field_index: CreateFieldIndexCollection -> PointsOperationResponse,
    delete_field_index: DeleteFieldIndexCollection -> PointsOperationResponse,
    create_vector_name: CreateVectorNameRequest -> PointsOperationResponse,
    delete_vector_name: DeleteVectorNameRequest -> PointsOperationResponse,
    search: SearchPoints -> SearchResponse,
    search_batch: SearchBatchPoints -> SearchBatchResponse,
    search_groups: SearchPointGroups -> SearchGroupsResponse,
    scroll: ScrollPoints -> ScrollResponse,
    recommend: RecommendPoints -> RecommendResponse,
    recommend_batch: RecommendBatchPoints -> RecommendBatchResponse,
    recommend_groups: RecommendPointGroups -> RecommendGroupsResponse,
    discover: DiscoverPoints -> DiscoverResponse,
    discover_batch: DiscoverBatchPoints -> DiscoverBatchResponse,
    count: CountPoints -> CountResponse,
    update_batch: UpdateBatchPoints -> UpdateBatchResponse,
    query_batch: QueryBatchPoints -> QueryBatchResponse,
    query_groups: QueryPointGroups -> QueryGroupsResponse,
    facet: FacetCounts -> FacetResponse,
    search_matrix_pairs: SearchMatrixPoints -> SearchMatrixPairsResponse,
    search_matrix_offsets: SearchMatrixPoints -> SearchMatrixOffsetsResponse,
}

#[tonic::async_trait]
impl Health for Server {
    async fn health_check(&self, _: Request<HealthCheckRequest>) -> Answer<HealthCheckReply> {
        let version = "1.20.0".into(); // the client compares it with its own
        Ok(Response::new(HealthCheckReply { version, ..HealthCheckReply::default() }))
    }
}

fn dense(point: &PointStruct) -> Vec<f32> {
    let options = point.vectors.clone().and_then(|vectors| vectors.vectors_options);
    let Some(vectors::VectorsOptions::Vector(vector)) = options else { panic!("no vector") };
    let Some(vector::Vector::Dense(dense)) = vector.vector else { panic!("no dense vector") };
    dense.data
}

/// Returns the cosine of two vectors, or their distance.
fn score(a: &[f32], b: &[f32], is_distance: bool) -> f32 {
    let dot = |a: &[f32], b: &[f32]| -> f32 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    if is_distance {
        let apart: Vec<f32> = a.iter().zip(b).map(|(a, b)| a - b).collect();
        dot(&apart, &apart).sqrt()
    } else {
        dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
    }
}

/// Starts a server, and returns it with a client.
async fn start() -> (Server, Qdrant) {
    let server = Server::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let running = tonic::transport::Server::builder()
        .add_service(PointsServer::new(server.clone()))
        .add_service(QdrantServer::new(server.clone()))
        .serve_with_incoming(TcpListenerStream::new(listener));
    tokio::spawn(running);
    // Connecting blocks the thread.
    let connect = move || Qdrant::from_url(&url).check_connection().build();
    let client = tokio::task::spawn_blocking(connect).await.expect("no panic").expect("a server");
    (server, client)
}

async fn add(client: &Qdrant, name: &str, payloads: impl IntoIterator<Item = serde_json::Value>) {
    let point = |(index, payload): (u16, serde_json::Value)| {
        let vector = vec![1.0, f32::from(index)]; // the first is nearest
        PointStruct::new(u64::from(index), vector, Payload::try_from(payload).expect("an object"))
    };
    let points: Vec<_> = (0..).zip(payloads).map(point).collect();
    client.upsert_points(UpsertPointsBuilder::new(name, points)).await.expect("an answer");
}

/// A vector that is nearest to the first point.
async fn embed(_: String) -> Result<Vec<f32>, BoxError> {
    Ok(vec![1.0, 0.0])
}

fn settings(window: usize) -> LlmSettings {
    LlmSettings::new("gpt-4o").context_window(window).max_output_tokens(100)
}

/// The messages of a request fit, awaited or not, and both answer alike.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_fit() {
    let (server, client) = start().await;
    let texts = (0..200).map(|index| json!({"text": "Green tea. 緑茶 ".repeat(index % 17 + 1)}));
    add(&client, "docs", texts).await;
    let retriever = QdrantRetriever::new(client, QueryPointsBuilder::new("docs"), embed);
    for (window, limit) in [(150, 500), (400, 3), (2_000, 500)] {
        let service = RetrievalService::new(retriever.clone(), settings(window))
            .unwrap()
            .system_prompt("Answer from the context.")
            .limit(limit);
        let awaited = sendable(retriever.answer(&service, "Is green tea mild?")).await.unwrap();
        let blocked = service.retrieve("Is green tea mild?").unwrap();
        assert_eq!(awaited.messages, blocked.messages);
        assert_eq!(awaited.chunks, blocked.chunks);
        assert_eq!(awaited.chunks.len(), limit.min(200));
        assert!(awaited.tokens.input + 100 <= window);
        assert_eq!(Encoding::O200k.count(&awaited.packing.text), awaited.packing.total_tokens);
        assert!(!awaited.packing.kept.is_empty());
        let asked = server.asked.lock().unwrap().pop().expect("it was asked");
        assert_eq!(asked.limit, Some(limit as u64));
        assert_eq!(service.stats().answered, 2);
    }
}

/// Returns a future that may be spawned.
fn sendable<F: Future + Send>(future: F) -> F {
    future
}

/// A chunk has the fields of its payload, and a point's id and score.
#[tokio::test]
async fn fields() {
    let (server, client) = start().await;
    let payloads = [
        json!({"page_content": "Green tea.", "title": "Tea", "source": "tea.md", "id": "t-1",
               "lang": "en", "by": {"b": 1, "a": [null, 2.5]}}),
        json!({"text": "Rye bread.", "content": "other", "metadata": {"z": 1, "a": true}}),
        json!({"text": null, "document": "Salt.", "metadata": "none"}),
    ];
    add(&client, "docs", payloads).await;
    let points = QueryPointsBuilder::new("docs")
        .filter(Filter::must([Condition::matches("lang", "en".to_owned())]))
        .score_threshold(0.2);
    let retriever = QdrantRetriever::new(client, points, embed);

    let found = retriever.search("tea", 3).await.unwrap();
    let shown: Vec<_> = found.iter().map(|chunk| (&*chunk.text, &*chunk.title)).collect();
    assert_eq!(shown, [("Green tea.", "Tea"), ("Rye bread.", ""), ("Salt.", "")]);
    let ids: Vec<_> = found.iter().map(|chunk| chunk.id.as_deref().unwrap()).collect();
    assert_eq!((ids, &*found[0].source), (vec!["t-1", "1", "2"], "tea.md"));
    assert_eq!(found[0].metadata, r#"{"by":{"a":[null,2.5],"b":1},"lang":"en"}"#);
    assert_eq!(found[1].metadata, r#"{"a":true,"z":1}"#);
    assert_eq!(found[2].metadata, r#"{"metadata":"none","text":null}"#);
    let scores: Vec<f64> = found.iter().map(|chunk| chunk.score.unwrap()).collect();
    assert!((scores[0] - 1.0).abs() < 1e-6 && scores.is_sorted_by(|a, b| a > b), "{scores:?}");
    let asked = server.asked.lock().unwrap().pop().unwrap();
    assert!(asked.filter.is_some() && asked.score_threshold == Some(0.2));
    assert_eq!(retriever.search("tea", 0).await.unwrap(), []);
    assert!(server.asked.lock().unwrap().is_empty());
}

/// Where lower is nearer, a chunk's score is the negative, so that the nearest
/// is packed first.
#[tokio::test]
async fn distances() {
    let (_, client) = start().await;
    add(&client, "euclid", ["Near.", "Far."].map(|text| json!({"text": text}))).await;
    let retriever = QdrantRetriever::new(client, QueryPointsBuilder::new("euclid"), embed);
    let service = RetrievalService::new(retriever.clone(), settings(500)).unwrap();

    let result = retriever.answer(&service, "tea").await.unwrap();
    assert_eq!(result.packing.text, "Near.\n\nFar.");
    assert_eq!(result.chunks[1].score, Some(-1.0));
}

/// Errors of server, embedder and points are those of the request, which counts
/// as failed; a query without room is refused before anything is asked.
#[tokio::test]
async fn errors() {
    let (server, client) = start().await;
    add(&client, "numbers", [json!({"text": 7})]).await;
    let embedded = Arc::new(AtomicUsize::new(0));
    let calls = Arc::clone(&embedded);
    let embed = move |text: String| {
        calls.fetch_add(1, Ordering::Relaxed);
        async move { if text == "down" { Err("no vector".into()) } else { embed(text).await } }
    };
    for (name, query, said) in [
        ("nowhere", "tea", "Collection doesn't exist!"),
        ("numbers", "tea", "the point 0 must have a string under one of text, content"),
        ("numbers", "down", "no vector"),
    ] {
        let points = QueryPointsBuilder::new(name);
        let retriever = QdrantRetriever::new(client.clone(), points, &embed);
        assert_eq!(Retriever::name(&retriever), format!("qdrant:{name}"));
        let service = RetrievalService::new(ChunkRetriever::new([]), settings(500)).unwrap();
        let error = retriever.answer(&service, query).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Retrieval);
        assert_eq!(error.component(), Some(&*format!("qdrant:{name}")));
        let source = std::error::Error::source(&error).expect("its own").to_string();
        assert!(source.contains(said), "{source}");
        assert_eq!(service.stats().failed, 1);

        let calls = embedded.load(Ordering::Relaxed);
        let asked = server.asked.lock().unwrap().len();
        let error = retriever.answer(&service, &"Why? ".repeat(500)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InputValidation);
        assert_eq!(embedded.load(Ordering::Relaxed), calls);
        assert_eq!(server.asked.lock().unwrap().len(), asked);
    }
}

/// A request whose future is dropped counts as cancelled.
#[tokio::test]
async fn cancelled() {
    let (_, client) = start().await;
    let never = |_: String| std::future::pending::<Result<Vec<f32>, BoxError>>();
    let retriever = QdrantRetriever::new(client, QueryPointsBuilder::new("docs"), never);
    let service = RetrievalService::new(ChunkRetriever::new([]), settings(500)).unwrap();
    tokio::select! {
        biased;
        result = retriever.answer(&service, "tea") => panic!("{result:?}"),
        () = std::future::ready(()) => {}
    }
    assert_eq!((service.stats().cancelled, service.stats().failed), (1, 0));
}

/// It blocks below `spawn_blocking` on any runtime, and without one is an error.
#[test]
fn blocking() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (_, client) = runtime.block_on(start());
    runtime.block_on(add(&client, "docs", [json!({"text": "Green tea."})]));
    let retriever = QdrantRetriever::new(client, QueryPointsBuilder::new("docs"), embed);
    let other = retriever.clone();

    let asking = runtime.spawn_blocking(move || other.retrieve("tea", 5));
    let found = runtime.block_on(asking).unwrap().unwrap();
    assert_eq!(found[0].text, "Green tea.");
    assert!(retriever.retrieve("tea", 5).unwrap_err().to_string().contains("no reactor running"));
}
