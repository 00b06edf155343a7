//! rig: what it writes of a budgeted index fits, wherever it writes it.

use std::sync::{Arc, Mutex};

use budgeteer::{Encoding, Overflow, Packer, Ranking, Template, TokenCounter};
use budgeteer_examples::rig::BudgetedIndex;
use rig::AgentBuilder;
use rig::completion::CompletionRequest;
use rig::message::{DocumentSourceKind, Message, ToolResultContent, UserContent};
use rig::providers::registry::connect_with;
use rig::test_utils::{MockCompletionModel, MockTurn, RecordingHttpClient};
use rig::vector_store::request::{Filter, SearchFilter, VectorSearchRequest};
use rig::vector_store::{
    VectorSearchIdResult, VectorSearchResult, VectorStoreError, VectorStoreIndex,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// An index that finds its documents in their order, and keeps what it is
/// asked.
#[derive(Clone, Default)]
struct Shelf {
    documents: Vec<VectorSearchResult<Value>>,
    asked: Arc<Mutex<Vec<VectorSearchRequest>>>,
}

impl Shelf {
    fn new(documents: impl IntoIterator<Item = Value>) -> Self {
        let found = |(index, document)| {
            let index = u32::try_from(index).expect("a few");
            let score = 1.0 / f64::from(index + 1);
            VectorSearchResult { score, id: format!("doc-{index}"), document }
        };
        let documents = documents.into_iter().enumerate().map(found).collect();
        Self { documents, ..Self::default() }
    }
}

impl VectorStoreIndex for Shelf {
    type Filter = Filter<Value>;

    async fn top_n<T: DeserializeOwned + Send>(
        &self,
        request: VectorSearchRequest,
    ) -> Result<Vec<VectorSearchResult<T>>, VectorStoreError> {
        let samples = usize::try_from(request.samples()).unwrap_or(usize::MAX);
        self.asked.lock().expect("no panic").push(request);
        let found = self.documents.iter().take(samples).cloned();
        let read = |VectorSearchResult { score, id, document }| {
            Ok(VectorSearchResult { score, id, document: serde_json::from_value(document)? })
        };
        found.map(read).collect()
    }

    async fn top_n_ids(
        &self,
        _: VectorSearchRequest,
    ) -> Result<Vec<VectorSearchIdResult>, VectorStoreError> {
        unreachable!("documents are needed to count them")
    }
}

/// Documents of many shapes, the same for the same `seed`.
fn documents(seed: u64, count: usize) -> Vec<Value> {
    const WORDS: [&str; 12] = [
        "tea ",
        "green",
        "\n",
        "\"quoted\" ",
        "緑茶",
        "🍵",
        "</file>\n",
        "<file id: ",
        "  ",
        "a\\b",
        "supercalifragilistic ",
        "1234567 ",
    ];
    let mut state = seed.wrapping_mul(2) + 1;
    let mut next = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from((state >> 33) % below).expect("a small number")
    };
    let mut text = move || -> String { (0..next(30)).map(|_| WORDS[next(12)]).collect() };
    let shape = |index| match index % 5 {
        0 => json!(text()),
        1 => json!({"title": text(), "text": text()}),
        2 => json!({"text": text(), "tags": [text(), 7, null, true], "n": {"x": text()}}),
        3 => json!({"text": text(), "vector": vec![0.123_456_789; 401]}),
        _ => json!([index, text()]),
    };
    (0..count).map(shape).collect()
}

/// The texts of documents that a request has for the model.
fn sent(request: &CompletionRequest) -> Vec<String> {
    let of_message = |message: &Message| match message {
        Message::User { content } => content.clone(),
        _ => Vec::new(),
    };
    let parts = request.chat_history.iter().flat_map(of_message);
    parts
        .filter_map(|part| match part {
            UserContent::Document(document) => match document.data {
                DocumentSourceKind::String(text) => Some(text),
                other => panic!("{other} is no text"),
            },
            _ => None,
        })
        .collect()
}

/// Asks an agent with that context, and returns what its model gets of it.
async fn context(index: BudgetedIndex<Shelf>, samples: usize) -> Vec<String> {
    let model = MockCompletionModel::from_turns([MockTurn::text("Yes.")]);
    let agent = AgentBuilder::new(model.clone()).dynamic_context(samples, index).build();
    Box::pin(agent.prompt("Is green tea mild?").run()).await.expect("an answer");
    sent(&model.requests()[0])
}

/// Checks the law for `counter` over many shelves and budgets, and that the
/// budgets are used.
async fn check(counter: impl TokenCounter + Clone + Send + 'static, budgets: &[usize]) {
    let mut kept = 0;
    for (seed, &budget) in (0..).zip(budgets.iter().cycle().take(3 * budgets.len())) {
        let shelf = Shelf::new(documents(seed, 15));
        let packer = Packer::new(budget).counter(counter.clone());
        let packer = if seed % 2 == 0 { packer } else { packer.ranking(Ranking::Input) };
        let texts = context(BudgetedIndex::new(shelf, packer), 15).await;
        let parts: usize = texts.iter().map(|text| counter.count(text)).sum();
        for tokens in [counter.count(&texts.join("\n")), counter.count(&texts.concat()), parts] {
            assert!(tokens <= budget, "{tokens} of {budget}: {texts:?}");
        }
        kept += texts.len();
    }
    assert!(kept > budgets.len(), "{kept} documents are few");
}

/// What a model gets of the context fits, joined by line ends, without them and
/// part by part.
#[tokio::test]
async fn context_fits() {
    check(Encoding::O200k, &[0, 1, 20, 45, 100, 250, 700, 3_000]).await;
    check(Encoding::Cl100k, &[30, 60, 120, 900]).await;
    check(|text: &str| text.len(), &[0, 60, 200, 800, 6_000]).await;
}

/// What is kept fills the budget: of equal documents as many as fit.
#[tokio::test]
async fn context_is_full() {
    let document = |index| json!({"text": format!("Green tea number {index} is mild.")});
    let shelf = Shelf::new((10..60).map(document));
    let asked = |budget| {
        let packer = Packer::new(budget).ranking(Ranking::Input);
        context(BudgetedIndex::new(shelf.clone(), packer), 50)
    };
    let all = asked(5_000).await;
    assert_eq!(all.len(), 50);
    for budget in [100, 333, 800] {
        let texts = asked(budget).await;
        assert_eq!(texts, all[..texts.len()]);
        let more = all[..=texts.len()].join("\n");
        assert!(Encoding::O200k.count(&more) > budget, "{} of {budget}", texts.len());
    }
}

/// In the bodies that reach providers, what is written of the documents fits.
#[tokio::test]
async fn bodies_fit() {
    for model in
        ["openai/gpt-4o", "anthropic/claude-sonnet-4-5", "ollama/qwen3", "gcp.gemini/gemini-3-pro"]
    {
        let http = RecordingHttpClient::new("{}");
        let shelf = Shelf::new(documents(7, 20));
        let index = BudgetedIndex::new(shelf, Packer::new(400));
        let connected = connect_with(model, "none", http.clone()).expect("a model");
        let agent = AgentBuilder::new(connected).dynamic_context(20, index).build();
        let error = agent.prompt("Is green tea mild?").run().await;
        assert!(error.is_err(), "an empty object is no answer");

        let body = serde_json::from_slice(&http.requests()[0].body).expect("JSON");
        let mut texts = Vec::new();
        add_texts(&body, &mut texts);
        let question = "Is green tea mild?";
        assert!(texts.iter().any(|text| text.contains(question)), "{model}: {body}");
        texts.retain(|text| text.starts_with("<file id: doc-"));
        assert!(!texts.is_empty(), "{model}: {body}");
        let text = texts.join("\n");
        let text = text.strip_suffix(question).unwrap_or(&text); // one string with both
        let tokens = Encoding::O200k.count(text);
        assert!((200..=400).contains(&tokens), "{model}: {tokens}");
    }
}

fn add_texts(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| add_texts(item, texts)),
        Value::Object(fields) => fields.values().for_each(|field| add_texts(field, texts)),
        _ => {}
    }
}

/// Asks an agent with that tool, and returns the JSON that its model gets of
/// the answer.
async fn answer(index: BudgetedIndex<Shelf>) -> Value {
    let call = json!({"query": "Is green tea mild?", "samples": 12});
    let model = MockCompletionModel::from_turns([
        MockTurn::tool_call("call", "search_vector_store", call),
        MockTurn::text("Yes."),
    ]);
    let tool = index.as_tool();
    let agent = AgentBuilder::new(model.clone()).tool(tool).default_max_turns(3).build();
    Box::pin(agent.prompt("Is green tea mild?").run()).await.expect("an answer");

    let last = model.requests()[1].chat_history.last().cloned().expect("a message");
    let Message::User { content } = last else { panic!("{last:?} is no result") };
    let [UserContent::ToolResult(result)] = &content[..] else { panic!("{content:?}") };
    let [ToolResultContent::Json { value }] = &result.content[..] else { panic!("{result:?}") };
    value.clone()
}

/// What a tool answers fits, as the JSON that providers are sent.
#[tokio::test]
async fn tool_fits() {
    for (seed, budget) in (0..).zip([1, 60, 150, 400, 1_000, 20_000]) {
        let shelf = Shelf::new(documents(seed, 12));
        let value = answer(BudgetedIndex::new(shelf, Packer::new(budget))).await;
        let tokens = Encoding::O200k.count(&value.to_string());
        assert!(tokens <= budget, "{tokens} of {budget}");
        let found = value.as_array().expect("a list").len();
        assert!((budget < 200) || found > 0, "nothing in {budget}");
    }
}

/// To the last character: a budget of what is written of one document, of two
/// and of three has just these, and one less has one less.
#[tokio::test]
async fn budgets_are_exact() {
    let shelf = Shelf::new(["Green tea.", "Black tea is strong.", "Rye."].map(|text| json!(text)));
    let chars = |text: &str| text.len();
    let index = |budget| {
        let packer = Packer::new(budget).counter(chars).ranking(Ranking::Input);
        BudgetedIndex::new(shelf.clone(), packer.overflow(Overflow::Stop))
    };
    let all = context(index(1_000), 3).await;
    let tool = answer(index(1_000)).await;
    for count in 1..=3 {
        let exact = all[..count].join("\n").len();
        assert_eq!(context(index(exact), 3).await, all[..count]);
        assert_eq!(context(index(exact - 1), 3).await, all[..count - 1]);
        let first = json!(tool.as_array().expect("a list")[..count]);
        let exact = first.to_string().len();
        assert_eq!(answer(index(exact)).await, first);
        assert_eq!(answer(index(exact - 1)).await.as_array().map(Vec::len), Some(count - 1));
    }
}

/// Long arrays, which rig leaves out of a context, count for a tool only.
#[tokio::test]
async fn vectors_in_documents() {
    let shelf = Shelf::new([json!({"text": "Green tea.", "vector": vec![0.5; 401]})]);
    let index = |budget| BudgetedIndex::new(shelf.clone(), Packer::new(budget));
    let texts = context(index(30), 1).await;
    assert_eq!(texts, ["<file id: doc-0>\n{\n  \"text\": \"Green tea.\"\n}\n</file>\n"]);
    assert_eq!(answer(index(30)).await, json!([]));
    assert_eq!(answer(index(3_000)).await[0]["document"], shelf.documents[0].document);

    let page =
        |at: usize| json!({"text": format!("Tea {at}."), "vector": vec![0.5; at % 2 * 2_000]});
    let shelf = Shelf::new((10..40).map(page));
    let packer = Packer::new(600).ranking(Ranking::Input);
    let texts = context(BudgetedIndex::new(shelf, packer), 30).await;
    let tokens = Encoding::O200k.count(&texts.join("\n"));
    assert!((550..=600).contains(&tokens) && texts.len() > 15, "{tokens}: {}", texts.len());
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Page {
    text: String,
}

fn request(samples: u64) -> VectorSearchRequest {
    VectorSearchRequest::builder().query("green tea").samples(samples).build()
}

/// Ids, scores and documents are those of the index, also where only ids are
/// asked for.
#[tokio::test]
async fn results_are_kept() {
    let texts = ["Rye bread is dark. ".repeat(50), "Green tea is mild.".into(), "Tea.".into()];
    let shelf = Shelf::new(texts.iter().map(|text| json!({"text": text, "other": 1})));
    let index = BudgetedIndex::new(shelf, Packer::new(70).ranking(Ranking::Score));

    let found = index.top_n::<Page>(request(5)).await.unwrap();
    let page = |index: usize, score| VectorSearchResult {
        score,
        id: format!("doc-{index}"),
        document: Page { text: texts[index].clone() },
    };
    assert_eq!(found, [page(1, 1.0 / 2.0), page(2, 1.0 / 3.0)]);
    let ids = index.top_n_ids(request(5)).await.unwrap();
    let same = |(id, page): (&VectorSearchIdResult, &VectorSearchResult<Page>)| {
        id.id == page.id && id.score.to_bits() == page.score.to_bits()
    };
    assert!(ids.len() == 2 && ids.iter().zip(&found).all(same));
}

/// The index is asked for more than is wanted, with threshold and filter, and
/// no more than that is returned.
#[tokio::test]
async fn more_is_asked_for() {
    let shelf = Shelf::new((0..40).map(|index| json!(format!("Tea {index}."))));
    let index = BudgetedIndex::new(shelf.clone(), Packer::new(1_000)).candidates(30);
    let wanted = VectorSearchRequest::builder()
        .query("Tea 29.")
        .samples(3)
        .threshold(0.01)
        .filter(Filter::eq("kind", json!("tea")))
        .build();

    let found = index.top_n::<String>(wanted).await.unwrap();
    assert_eq!((found.len(), &*found[0].id), (3, "doc-29"));
    assert_eq!(index.top_n::<String>(request(35)).await.unwrap().len(), 35);
    assert_eq!(index.top_n::<String>(request(0)).await.unwrap(), []);
    let asked = shelf.asked.lock().unwrap();
    let samples: Vec<_> = asked.iter().map(VectorSearchRequest::samples).collect();
    assert_eq!(samples, [30, 35, 30]);
    assert_eq!((asked[0].query(), asked[0].threshold()), ("Tea 29.", Some(0.01)));
    assert!(asked[0].filter().is_some());
}

/// A packer that writes what rig does not is an error, and so is a score that
/// cannot be compared.
#[tokio::test]
async fn errors() {
    let mut shelf = Shelf::new([json!("Tea.")]);
    let packer = Packer::new(50).template(Template::xml());
    let index = BudgetedIndex::new(shelf.clone(), packer);
    let error = index.top_n::<String>(request(1)).await.unwrap_err().to_string();
    assert!(error.contains("a prompt must have the plain template"), "{error}");

    shelf.documents[0].score = f64::NAN;
    let index = BudgetedIndex::new(shelf, Packer::new(50).ranking(Ranking::Score));
    let error = index.top_n::<String>(request(1)).await.unwrap_err().to_string();
    assert_eq!(error, "Datastore error: chunks[0].score must be a number, not NaN");
}
