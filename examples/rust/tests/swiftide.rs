//! swiftide: what a pipeline hands to the answering step fits.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use budgeteer::{Encoding, Order, Overflow, Packer, Ranking, Template, TokenCounter};
use budgeteer_examples::swiftide::BudgetedContext;
use swiftide_core::chat_completion::errors::LanguageModelError;
use swiftide_core::document::Document;
use swiftide_core::indexing::Metadata;
use swiftide_core::prompt::Prompt;
use swiftide_core::querying::search_strategies::SimilaritySingleEmbedding;
use swiftide_core::querying::{Query, states};
use swiftide_core::{SimplePrompt, TransformResponse};
use swiftide_query::Pipeline;
use swiftide_query::answers::Simple;

/// A model that keeps its prompts.
#[derive(Clone, Debug, Default)]
struct Model {
    prompts: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl SimplePrompt for Model {
    async fn prompt(&self, prompt: Prompt) -> Result<String, LanguageModelError> {
        let text = prompt.render().expect("a prompt");
        self.prompts.lock().expect("no panic").push(text);
        Ok("Yes.".into())
    }
}

const QUESTION: &str = "Is green tea mild?";

/// Answers the question from `documents`, and returns the context in the prompt
/// of `answers::Simple`.
async fn context(packer: Packer, documents: Vec<Document>) -> String {
    let model = Model::default();
    let answer = Simple::builder()
        .client(model.clone())
        .document_template("TEMPLATE {{ content }}")
        .build()
        .expect("an answer");
    let found = move |_: &SimilaritySingleEmbedding, query: Query<states::Pending>| {
        Ok(query.retrieved_documents(documents.clone()))
    };
    let answered = Pipeline::default()
        .then_retrieve(found)
        .then_transform_response(BudgetedContext::new(packer))
        .then_answer(answer)
        .query(QUESTION)
        .await
        .expect("an answer");
    assert_eq!(answered.answer(), "Yes.");
    let prompt = model.prompts.lock().expect("no panic").pop().expect("a prompt");
    let (_, context) = prompt.split_once("## Context\n\n---\n").expect("its default prompt");
    context.strip_suffix("\n---\n").expect("its default prompt").to_owned()
}

fn documents(seed: usize) -> Vec<Document> {
    const WORDS: [&str; 8] =
        ["tea ", "green ", "\n---\n", "{{ question }}", "緑茶", "🍵", "{% raw %}", "mild. "];
    let text = |index: usize| -> String {
        (0..(seed + index) * 7 % 40).map(|at| WORDS[(at * at + seed + index * 3) % 8]).collect()
    };
    (0..12).map(|index| Document::from(text(index))).collect()
}

/// The context in the prompt has at most the tokens of the packer, for whatever
/// options; with a budget of 0 there is none.
#[tokio::test]
async fn context_fits() {
    let counters = [Encoding::O200k, Encoding::Cl100k];
    let mut filled = 0;
    for (seed, budget) in (0..).zip([0, 1, 5, 20, 60, 150, 400, 2_000].repeat(3)) {
        let counter = counters[seed % 2];
        let packer = Packer::new(budget).counter(counter);
        let packer = match seed % 4 {
            0 => packer.ranking(Ranking::Input).overflow(Overflow::TruncateEnd),
            1 => packer.template(Template::xml()).order(Order::Document),
            2 => packer.notice("{count} left out."),
            _ => packer,
        };
        let context = context(packer, documents(seed)).await;
        let tokens = counter.count(&context);
        assert!(tokens <= budget, "{tokens} of {budget}: {context}");
        filled += usize::from(2 * tokens > budget);
    }
    assert!(filled > 8, "{filled} contexts are more than half full");
}

/// The prompt has the text of the packing as it is, and the answering step the
/// documents that were kept, with their metadata.
#[tokio::test]
async fn text_and_documents() {
    let metadata = Metadata::from([("title", "Tea"), ("id", "7"), ("source", "tea.md")]);
    let documents = vec![
        Document::from("Rye bread is dark."),
        Document::new("Green tea is mild.", Some(metadata)),
        Document::from("Lunch is at noon. ".repeat(50)),
    ];
    let template = Template::format("<{id} {title} {source}> {text}").expect("a format");
    let packer = Packer::new(16).template(template);
    assert_eq!(
        context(packer.clone(), documents.clone()).await,
        "<7 Tea tea.md> Green tea is mild."
    );

    let query = Query::<states::Pending>::from(QUESTION).retrieved_documents(documents.clone());
    let query = BudgetedContext::new(packer).transform_response(query).await.unwrap();
    assert_eq!(query.documents(), &documents[1..2]);
    assert_eq!(query.current(), "<7 Tea tea.md> Green tea is mild.");
    assert_eq!((query.original(), query.history().len()), (QUESTION, 2));
}

/// Behind a step that made a text of the documents it is an error, and so are
/// options of the packer that contradict each other.
#[tokio::test]
async fn errors() {
    let mut query = Query::<states::Pending>::from(QUESTION).retrieved_documents(documents(1));
    let by_vectors = BudgetedContext::new(Packer::new(9).ranking(Ranking::Embedding));
    let error = by_vectors.transform_response(query.clone()).await.unwrap_err();
    assert!(error.is::<budgeteer::Error>(), "{error}");
    query.transformed_response("A summary.");
    let error = BudgetedContext::new(Packer::new(9)).transform_response(query).await.unwrap_err();
    assert!(error.to_string().contains("put it first"), "{error}");
}
