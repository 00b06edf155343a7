//! The events and spans that operators see.
#![allow(clippy::unwrap_used)] // an unexpected value fails its test

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex, MutexGuard};

use budgeteer::service::{BoxError, ChunkRetriever, LlmSettings, Named, RetrievalService};
use budgeteer::window::{ModelLimits, Negotiator, model_limits};
use budgeteer::{Chunk, Dedupe, ErrorKind, Estimate, Overflow, Packer, Ranking};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Keeps level and fields of every event, and name, parent and fields of every
/// span.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Told>>);

#[derive(Clone, Default)]
struct Told {
    events: Vec<(Level, String)>,
    spans: Vec<(&'static str, Option<&'static str>, String)>,
    entered: Vec<usize>,
}

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{}={value:?} ", field.name()).expect("a string takes all");
    }
}

/// Returns the fields as text.
fn fields(record: impl FnOnce(&mut Fields)) -> String {
    let mut fields = Fields(String::new());
    record(&mut fields);
    fields.0
}

/// Returns the place of a span.
fn place(id: &Id) -> usize {
    usize::try_from(id.into_u64()).expect("there are few") - 1
}

impl Log {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.lock().expect("no test panicked")
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut told = self.told();
        let parent = told.entered.last().map(|&place| told.spans[place].0);
        told.spans.push((span.metadata().name(), parent, fields(|fields| span.record(fields))));
        Id::from_u64(told.spans.len() as u64)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        self.told().spans[place(id)].2 += &fields(|fields| values.record(fields));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let fields = fields(|fields| event.record(fields));
        self.told().events.push((*event.metadata().level(), fields));
    }

    fn enter(&self, id: &Id) {
        self.told().entered.push(place(id));
    }

    fn exit(&self, _: &Id) {
        self.told().entered.pop();
    }
}

fn told(work: impl FnOnce()) -> Told {
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), work);
    log.told().clone()
}

fn events(work: impl FnOnce()) -> Vec<(Level, String)> {
    told(work).events
}

#[test]
fn unknown_models_are_warned_of_once() {
    let events = events(|| {
        for _ in 0..3 {
            assert!(!model_limits("nobody-knows-this").known);
            assert!(model_limits("gpt-4").known);
        }
    });
    let [(Level::WARN, fields)] = &*events else { panic!("{events:?}") };
    assert!(fields.contains("\"nobody-knows-this\""), "{fields}");
}

#[test]
fn guesses_and_estimates_are_warned_of_once() {
    let events = events(|| {
        for name in ["my-gpt-4o-event", "llama3.2:3b-event", "gpt-4o-event"] {
            for _ in 0..2 {
                assert!(model_limits(name).counter().is_some());
            }
        }
        let own = ModelLimits::new("mistral:7b-event", 9).encoding("o200k_base").calibration(1.1);
        assert!(own.counter().is_some());
    });
    let [(Level::WARN, guess), (Level::WARN, estimate)] = &*events else { panic!("{events:?}") };
    assert!(guess.contains("guessed_from=\"gpt-4o\"") && guess.contains("128000"), "{guess}");
    assert!(
        estimate.contains("llama3.2:3b-event") && estimate.contains("cl100k_base"),
        "{estimate}"
    );
}

#[test]
fn negotiations_say_their_figures() {
    let negotiate = |requested| {
        let one = Negotiator::new(model_limits("gpt-3.5-turbo")).message_count(50);
        one.negotiate(requested).unwrap();
    };
    let events = events(|| [300, 5_000].into_iter().for_each(negotiate));
    let [(Level::INFO, kept), (Level::WARN, reduced)] = &*events else { panic!("{events:?}") };
    assert!(!kept.contains("REDUCED") && reduced.contains("REDUCED"));
    for figure in [
        "model=\"gpt-3.5-turbo\"",
        "context_window=16385",
        "input_token_count=13000",
        "message_count=50",
        "memory_count=0",
        "safety_margin=100",
        "available_tokens=3285",
        "requested_max_output_tokens=5000",
        "adjusted_max_output_tokens=3285",
    ] {
        assert!(reduced.contains(figure), "{figure}: {reduced}");
    }
}

/// A service that counts words, whose texts are all about tea.
fn service(window: usize) -> RetrievalService {
    let scores = [0.9, 0.8, 0.7, 0.6, 0.5];
    let chunks = scores.map(|score| Chunk::new("tea ".repeat(300)).score(score));
    let retriever = move |_: &str, _: usize| Ok::<_, BoxError>(chunks.to_vec());
    RetrievalService::new(retriever, settings(window)).unwrap().system_prompt("tea ".repeat(200))
}

fn settings(window: usize) -> LlmSettings {
    LlmSettings::new("gpt-4").context_window(window).max_output_tokens(500).counter(Estimate::Words)
}

/// Of 5 chunks of 300 tokens 3 fit into 1000. The log says so, with the figures
/// and without a text.
#[test]
fn dropped_chunks_are_warned_of() {
    let query = "tea ".repeat(50);
    let told = told(|| {
        let service =
            service(1_750).reranker(|_: &str, chunks: Vec<Chunk>| Ok::<_, BoxError>(chunks));
        let tokens = service.retrieve(&query).unwrap().tokens;
        assert_eq!((1_000, 900), (tokens.budget, tokens.retrieved));
        assert_eq!((11, 89), (tokens.overhead, tokens.remaining));
    });

    let [(Level::WARN, warning)] = &*told.events else { panic!("{:?}", told.events) };
    let message = "message=Token budget exceeded: dropped 2 lowest-relevance chunks ";
    assert!(warning.contains(message), "{warning}");
    let names: Vec<_> = told.spans.iter().map(|span| (span.0, span.1)).collect();
    let request = Some("budgeteer.retrieve");
    assert_eq!(
        [
            ("budgeteer.retrieve", None),
            ("budgeteer.plan", request),
            ("budgeteer.search", request),
            ("budgeteer.rerank", request),
            ("budgeteer.pack", request),
        ],
        *names
    );
    let span = &told.spans[0].2;
    for figure in ["tokens.system=200 ", "tokens.query=50 ", "tokens.retrieved=900 "] {
        assert!(span.contains(figure) && warning.contains(figure), "{figure}: {span}");
    }
    for figure in [
        "model=\"gpt-4\" ",
        "context_window=1750 ",
        "tokens.budget=1000 ",
        "tokens.budget_remaining=89 ",
        "chunks.kept=3 ",
        "chunks.dropped=2 ",
        "outcome=\"answered\" ",
    ] {
        assert!(span.contains(figure), "{figure}: {span}");
    }
    assert!(warning.contains("tokens.budget_remaining=89 "), "{warning}");
    let all = format!("{:?}{:?}", told.events, told.spans);
    assert!(!all.contains("tea"), "{all}");
}

/// A cut chunk gives a warning where no chunk is dropped.
#[test]
fn cut_chunks_are_warned_of() {
    let events = events(|| {
        let packer = Packer::new(100).overflow(Overflow::TruncateEnd).ranking(Ranking::Input);
        let chunks = ["tea ".repeat(300)].map(Chunk::new);
        let retriever = ChunkRetriever::new(chunks).with_name("茶".repeat(200));
        let service = RetrievalService::new(retriever, settings(1_750)).unwrap().packer(packer);
        service.retrieve("q").unwrap();
    });

    let [(Level::WARN, warning)] = &*events else { panic!("{events:?}") };
    assert!(warning.contains("message=Token budget exceeded: cut 1 chunk "), "{warning}");
    assert!(warning.contains("chunks.cut=1 chunks.dropped=0 "), "{warning}");
}

/// Where the packer's own bound is smaller than the rest of the window, it is the
/// budget of the span and of the warning; the result has the window's.
#[test]
fn a_smaller_bound_of_the_packer_is_the_budget() {
    let told = told(|| {
        let packer = Packer::new(30).reserve_tokens(2).ranking(Ranking::Input);
        let packer = packer.estimate(Estimate::Words).overflow(Overflow::TruncateEnd);
        let result = service(1_750).packer(packer).retrieve("q").unwrap();
        assert_eq!((1_049, 28), (result.tokens.budget, result.tokens.retrieved));
    });

    let [(Level::WARN, warning)] = &*told.events else { panic!("{:?}", told.events) };
    for told in [&told.spans[0].2, warning] {
        assert!(told.contains("tokens.budget=28 "), "{told}");
        assert!(told.contains("tokens.budget_remaining=0 "), "{told}");
        assert!(!told.contains("tokens.budget=1049"), "{told}");
    }
}

/// A request that found nothing says so, and not that everything fits.
#[test]
fn nothing_found_is_said() {
    let events = events(|| {
        let service =
            RetrievalService::new(ChunkRetriever::new(Vec::<Chunk>::new()), settings(1_750));
        service.unwrap().retrieve("q").unwrap();
    });

    let [(Level::DEBUG, told)] = &*events else { panic!("{events:?}") };
    assert!(told.contains("message=retrieval: nothing was found "), "{told}");
}

/// Where all chunks fit it is said, and where some are only alike, or none is worth
/// its place.
#[test]
fn all_that_fits_is_said() {
    let retriever = |_: &str, _: usize| Ok::<_, BoxError>(vec![Chunk::new("tea").score(0.5); 2]);
    for (packer, kept, dropped) in [
        (Packer::new(100), 1, 1),
        (Packer::new(100).dedupe(Dedupe::Off), 2, 0),
        (Packer::new(100).min_score(0.9), 0, 2),
    ] {
        let events = events(|| {
            let packer = packer.ranking(Ranking::Score);
            let service = RetrievalService::new(retriever, settings(1_750)).unwrap();
            service.packer(packer).retrieve("q").unwrap();
        });

        let [(Level::DEBUG, told)] = &*events else { panic!("{events:?}") };
        assert!(told.contains("message=retrieval: everything fits "), "{told}");
        let figures = format!("chunks.kept={kept} chunks.cut=0 chunks.dropped={dropped} ");
        assert!(told.contains(&figures), "{told}");
    }
}

/// Settings that leave nothing for any query give a warning when they are set.
#[test]
fn settings_that_refuse_every_query_are_warned_of() {
    let events = events(|| {
        let service = service(1_750);
        service.set_settings(settings(700)).unwrap();
        assert_eq!(ErrorKind::InputValidation, service.retrieve("q").unwrap_err().kind());
    });

    let [(Level::WARN, warning), (Level::INFO, _)] = &*events else { panic!("{events:?}") };
    let message = "every query will be refused, as 500 tokens of output and 200 of the system \
                   prompt leave nothing of the context window 700";
    assert!(warning.contains(message), "{warning}");
}

/// So does a prompt that leaves nothing, and only once, whatever else is built.
#[test]
fn prompts_that_refuse_every_query_are_warned_of_once() {
    let nobody = || ChunkRetriever::new([]);
    let events = events(|| {
        let service = RetrievalService::new(nobody(), settings(700)).unwrap();
        let service = service.system_prompt("tea ").system_prompt("tea ".repeat(200));
        let service = service.packer(Packer::new(9)).limit(3).system_prompt("tea ".repeat(200));
        assert_eq!(ErrorKind::InputValidation, service.retrieve("q").unwrap_err().kind());
        let refused = RetrievalService::new(nobody(), settings(400)).unwrap();
        drop(refused.system_prompt("tea"));
    });

    let [(Level::WARN, prompt), (Level::WARN, output)] = &*events else { panic!("{events:?}") };
    assert!(prompt.contains("200 of the system prompt leave nothing"), "{prompt}");
    assert!(output.contains("0 of the system prompt leave nothing"), "{output}");
}

/// A long name of a model is shortened wherever it is shown.
#[test]
fn long_names_of_models_are_cut() {
    let settings = || LlmSettings::new("茶".repeat(200)).counter(Estimate::CharsDiv4);
    let told = told(|| {
        let chunk = Chunk::new("a".repeat(200_000));
        let service = RetrievalService::new(ChunkRetriever::new([chunk]), settings()).unwrap();
        service.retrieve("tea").unwrap();
        service.set_settings(settings()).unwrap();
    });

    let cut = format!("model=\"{}\" ", "茶".repeat(80));
    assert!(told.spans[0].2.contains(&cut), "{:?}", told.spans);
    let events: Vec<_> = told.events.iter().filter(|(_, text)| text.contains("model=")).collect();
    let levels: Vec<_> = events.iter().map(|(level, _)| *level).collect();
    assert_eq!([Level::WARN, Level::WARN, Level::INFO], *levels, "{:?}", told.events);
    assert!(events.iter().all(|(_, text)| text.contains(&cut)), "{events:?}");
}

/// Asks a service for its window at every event.
struct Curious(Arc<RetrievalService>, Arc<Mutex<Vec<Option<usize>>>>);

impl Subscriber for Curious {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        self.1.lock().unwrap().push(self.0.settings().context_window);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// At the event of a swap the other model is already in place.
#[test]
fn swaps_are_told_when_they_are_done() {
    let (service, windows) = (Arc::new(service(2_100)), Arc::default());
    let curious = Curious(Arc::clone(&service), Arc::clone(&windows));
    tracing::subscriber::with_default(curious, || service.set_settings(settings(9_000)).unwrap());
    assert_eq!([Some(9_000)], **windows.lock().unwrap());
}

/// Requests that end otherwise say how; a single chunk is "1 chunk"; a swap is
/// an event.
#[test]
fn other_outcomes_and_swaps_are_told() {
    let told = told(|| {
        let service = service(2_100);
        assert!(service.retrieve(&"tea ".repeat(9_000)).is_err());
        service.retrieve("tea").unwrap();
        drop(service.plan("tea"));
        service.set_settings(settings(9_000)).unwrap();
        service.retrieve("tea").unwrap();
        let broken = |_: &str, _: usize| Err("secret");
        let broken = Named::new("broken", broken);
        assert!(RetrievalService::new(broken, settings(900)).unwrap().retrieve("q").is_err());
        let empty = ChunkRetriever::new([]).with_name("nobody");
        RetrievalService::new(empty, settings(900)).unwrap().retrieve("q").unwrap();
    });

    let levels: Vec<_> = told.events.iter().map(|(level, _)| *level).collect();
    assert_eq!([Level::WARN, Level::INFO, Level::DEBUG, Level::DEBUG], *levels);
    assert!(told.events[0].1.contains("dropped 1 lowest-relevance chunk "), "{:?}", told.events);
    assert!(told.events[1].1.contains("context_window=9000"), "{:?}", told.events);
    let mut requests = told.spans.iter().filter(|span| span.0 == "budgeteer.retrieve");
    let outcomes: Vec<_> =
        requests.clone().map(|span| span.2.rsplit_once("outcome=").unwrap().1).collect();
    let expected = ["rejected", "answered", "cancelled", "answered", "failed", "answered"];
    assert_eq!(expected.map(|outcome| format!("{outcome:?} ")), *outcomes);
    assert!(told.spans.iter().any(|span| span.2 == "component=\"nobody\" "));
    let failed = requests.find(|span| span.2.contains("failed")).unwrap();
    assert!(failed.2.contains("component=\"broken\" outcome=\"failed\" "), "{failed:?}");
    let all = format!("{:?}{:?}", told.events, told.spans);
    assert!(!all.contains("tea ") && !all.contains("secret"), "{all}");
}

/// A caller's own search has its spans below that of the request, which also
/// records its failure.
#[test]
fn searches_of_the_caller_are_told() {
    let told = told(|| {
        let service = RetrievalService::new(ChunkRetriever::new([]), settings(900)).unwrap();
        let plan = service.plan("q").unwrap();
        plan.span().in_scope(|| tracing::info_span!("search").in_scope(|| ()));
        let error = plan.fail("茶".repeat(200).as_str(), "secret");
        assert_eq!(ErrorKind::Retrieval, error.kind());
    });

    assert_eq!(("search", Some("budgeteer.retrieve")), (told.spans[2].0, told.spans[2].1));
    let end = format!("component=\"{}\" outcome=\"failed\" ", "茶".repeat(80));
    assert!(told.spans[0].2.ends_with(&end), "{:?}", told.spans);
}
