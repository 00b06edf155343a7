//! The retrieval service when a component fails, is slow, or returns something
//! odd; and from asynchronous code.
#![allow(clippy::unwrap_used)] // an unexpected value fails its test

mod service_support;

use std::error::Error;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread::sleep;
use std::time::Duration;

use budgeteer::service::{
    BoxError, FolderRetriever, JsonlRetriever, LlmSettings, Named, Pages, Reranker,
    RetrievalResult, RetrievalService, Retriever, ServiceError,
};
use budgeteer::{Chunk, Corpus, Dedupe, ErrorKind, Packer, Ranking, Reason};
use service_support::{Fake, chunks, service_of, settings, text_of};

/// Fast components return sooner than this, also on a busy machine.
const SHORT: Duration = Duration::from_millis(100);
const LONG: Duration = Duration::from_secs(600);

fn service(retriever: impl Retriever + 'static) -> RetrievalService {
    RetrievalService::new(retriever, settings()).unwrap()
}

fn failing(_: &str, _: usize) -> Result<Vec<Chunk>, io::Error> {
    Err(io::Error::other("https://user:secret@vectors.example"))
}

#[allow(clippy::unnecessary_wraps)] // it is a retriever
fn slow(_: &str, _: usize) -> Result<Vec<Chunk>, BoxError> {
    sleep(SHORT * 3);
    Ok(chunks(&["late"]))
}

/// The error names the retriever and keeps the cause, which its message does
/// not quote. The next request works.
#[test]
fn given_a_retriever_that_fails_when_retrieving_then_the_error_names_it() {
    let last = Fake::new(chunks(&["b"]));
    let service = service(Fake::new(chunks(&["a"])))
        .retriever(Named::new("broken", failing))
        .retriever(last.clone());

    let error = service.retrieve("q").unwrap_err();

    assert_eq!((ErrorKind::Retrieval, Some("broken")), (error.kind(), error.component()));
    assert_eq!("broken failed", error.to_string());
    let cause = error.source().unwrap().downcast_ref::<io::Error>().unwrap();
    assert!(cause.to_string().contains("vectors.example"));
    let shown = "ServiceError { kind: Retrieval, component: \"broken\", message: broken failed }";
    assert_eq!(shown, format!("{error:?}"));
    assert_eq!((0, 1), (last.calls(), service.stats().failed));
    let closure: &dyn Retriever = &failing;
    assert!(closure.name().ends_with("failing"), "{}", closure.name());
}

/// Errors show 80 characters of a name, and callers get all of it; a component
/// without a name has that of its type. A named retriever has the pages and all
/// else of the one inside.
#[test]
fn given_odd_names_when_something_fails_then_the_error_can_be_read() {
    let error_of = |name: &str| service(Named::new(name, failing)).retrieve("q").unwrap_err();
    let long = "茶".repeat(200);
    let error = error_of(&long);
    assert_eq!(format!("{} failed", "茶".repeat(80)), error.to_string());
    assert_eq!(Some(&*long), error.component());
    assert!(format!("{error:?}").chars().count() < 240, "{error:?}");
    let late = service(Named::new(&*long, slow)).timeout(SHORT).retrieve("q").unwrap_err();
    assert!(late.to_string().ends_with(&format!("before {} answered", "茶".repeat(80))));

    assert_eq!("retriever failed", error_of("").to_string());
    let broken = |_: &str, _: Vec<Chunk>| Err::<Vec<Chunk>, _>("no model");
    let error = service_of(vec![]).reranker(Named::new("", broken)).retrieve("q").unwrap_err();
    assert_eq!(("reranker failed", Some("reranker")), (&*error.to_string(), error.component()));

    let named = Named::new("reversed", |_: &str, mut chunks: Vec<Chunk>| {
        chunks.reverse();
        Ok::<_, BoxError>(chunks)
    });
    assert_eq!("Named { name: \"reversed\", .. }", format!("{named:?}"));
    let reversed = service_of(chunks(&["a", "b"])).reranker(named);
    assert_eq!("b\n\na", reversed.retrieve("q").unwrap().packing.text);
}

/// Settings with which no request can be answered are an error before any
/// component is asked.
#[test]
fn given_no_limit_or_no_time_when_retrieving_then_nobody_is_asked() {
    let retriever = Fake::new(chunks(&["a"]));
    let none = service(retriever.clone()).limit(0);
    let error = none.retrieve("q").unwrap_err();
    assert_eq!(ErrorKind::InvalidArgument, error.kind());
    assert_eq!("limit must be at least 1, not 0", error.to_string());
    assert_eq!(ErrorKind::InvalidArgument, none.plan("q").unwrap_err().kind());

    let never = service(retriever.clone()).timeout(Duration::ZERO);
    let errors = [never.retrieve("q"), never.retrieve_timeout("q", Duration::ZERO)];
    for error in errors.map(Result::unwrap_err) {
        assert_eq!((ErrorKind::InvalidArgument, None), (error.kind(), error.component()));
        assert_eq!("timeout must be above 0 seconds, not 0", error.to_string());
    }
    assert_eq!(0, retriever.calls());
    assert_eq!((2, 2), (none.stats().failed, never.stats().failed));
    assert!(never.plan("q").is_ok(), "its search is the caller's");
    assert_eq!(1, never.retrieve_timeout("q", LONG).unwrap().chunks.len());
}

/// A counter that counts more each time gives an error, and not messages that
/// are too large.
#[test]
fn given_a_counter_that_does_not_answer_alike_when_retrieving_then_an_error() {
    let calls = AtomicUsize::new(0);
    let growing = move |_: &str| calls.fetch_add(1, Ordering::Relaxed);
    let settings = LlmSettings::default().context_window(20).max_output_tokens(0).counter(growing);
    let service = RetrievalService::new(Fake::new(chunks(&["a", "b"])), settings).unwrap();

    let error = service.retrieve("q").unwrap_err();

    assert_eq!((ErrorKind::InvalidArgument, None), (error.kind(), error.component()));
    let message = error.to_string();
    assert!(message.starts_with("the messages count "), "{message}");
    let end = " tokens without a context, and 20 fit: the counter or the message builder does not \
               answer alike for the same texts";
    assert!(message.ends_with(end), "{message}");
    assert_eq!(1, service.stats().failed);
}

/// A panic reaches the caller and nobody else: no lock is held meanwhile.
#[test]
fn given_a_retriever_that_panics_when_retrieving_then_the_service_goes_on() {
    let panics = Mutex::new(vec!["first"]);
    let service = service(move |_: &str, _: usize| {
        let next = panics.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop();
        match next {
            Some(_) => panic!("on purpose"),
            None => Ok::<_, BoxError>(chunks(&["tea"])),
        }
    });

    assert!(catch_unwind(AssertUnwindSafe(|| service.retrieve("q"))).is_err());
    assert_eq!("tea", service.retrieve("q").unwrap().packing.text);
    service.set_settings(LlmSettings::new("gpt-4").context_window(900)).unwrap();
    assert_eq!(900, service.retrieve("q").unwrap().tokens.context_window);
    let stats = service.stats();
    assert_eq!((3, 2, 1, 0), (stats.requests, stats.answered, stats.failed, stats.cancelled));
}

/// A chunk that cannot be packed is an error of the component that returned it,
/// which names its place.
#[test]
fn given_a_chunk_that_cannot_be_packed_when_retrieving_then_the_error_names_who_answered_it() {
    let bad = || Fake::new([Chunk::new("a").score(1.0), Chunk::new("b").score(f64::NAN)]);
    let two = service(Fake::new([Chunk::new("c").score(1.0)])).retriever(Named::new("bad", bad()));

    let error = two.retrieve("q").unwrap_err();

    assert_eq!((ErrorKind::Retrieval, Some("bad")), (error.kind(), error.component()));
    assert_eq!("bad answered what cannot be packed", error.to_string());
    assert_eq!("chunks[1].score must be a number, not NaN", error.source().unwrap().to_string());
    let error = service_of(vec![]).plan("q").unwrap().answer(bad().chunks).unwrap_err();
    assert_eq!((ErrorKind::InvalidArgument, None), (error.kind(), error.component()));
}

/// A page that fails is an error, however many pages came before.
#[test]
fn given_pages_that_fail_when_retrieving_then_the_error_names_the_retriever() {
    struct Paged;

    impl Retriever for Paged {
        fn retrieve(&self, _: &str, _: usize) -> Result<Vec<Chunk>, BoxError> {
            unreachable!("it has pages")
        }

        fn pages<'a>(&'a self, _: &'a str) -> Option<Pages<'a>> {
            Some(Box::new([Ok(chunks(&["a"])), Err("gone".into())].into_iter()))
        }
    }

    let named = service(Named::new("paged", Paged)).retrieve("q").unwrap_err();
    assert_eq!("paged failed", named.to_string());
    let error = service(Paged).retrieve("q").unwrap_err();

    assert!(error.component().unwrap().ends_with("Paged"), "{error}");
    assert_eq!("gone", error.source().unwrap().to_string());
}

/// A reranker that fails, or returns something that cannot be packed, is named
/// in the error.
#[test]
fn given_a_reranker_that_fails_when_retrieving_then_the_error_names_it() {
    struct Broken;

    impl Reranker for Broken {
        fn rerank(&self, _: &str, _: Vec<Chunk>) -> Result<Vec<Chunk>, BoxError> {
            Err("no model".into())
        }

        fn name(&self) -> &'static str {
            "broken"
        }
    }

    let broken = service_of(chunks(&["a"])).reranker(Broken);
    let error = broken.retrieve("q").unwrap_err();
    assert_eq!((ErrorKind::Retrieval, Some("broken")), (error.kind(), error.component()));

    let odd = |_: &str, mut chunks: Vec<Chunk>| {
        chunks[0].mtime = f64::NAN;
        Ok::<_, BoxError>(chunks)
    };
    let odd = service_of(chunks(&["a"])).reranker(odd);
    let error = odd.packer(Packer::new(9).ranking(Ranking::Recency)).retrieve("q").unwrap_err();
    assert_eq!(ErrorKind::Retrieval, error.kind());
    assert_eq!("chunks[0].mtime must be a number, not NaN", error.source().unwrap().to_string());
}

/// A packer that cannot pack is an error before any component is asked.
#[test]
fn given_a_packer_that_ranks_by_vectors_when_retrieving_then_nobody_is_asked() {
    let retriever = Fake::new(chunks(&["a"]));
    let service = service(retriever.clone());
    let service = service.packer(Packer::new(9).ranking(Ranking::Embedding));

    let error = service.retrieve("q").unwrap_err();

    assert_eq!((ErrorKind::InvalidArgument, 0), (error.kind(), retriever.calls()));
    assert_eq!((1, 0), (service.stats().failed, service.stats().rejected));
}

/// Duplicates are kept, as in the document; a packer may drop them.
#[test]
fn given_duplicates_when_retrieving_then_the_packer_decides() {
    let texts = ["tea", "tea", "rye"];

    let packing = service_of(chunks(&texts)).retrieve("q").unwrap().packing;
    assert_eq!("tea\n\ntea\n\nrye", packing.text);
    let packer = Packer::new(99).ranking(Ranking::Input);
    let packing = service_of(chunks(&texts)).packer(packer).retrieve("q").unwrap().packing;
    assert_eq!("tea\n\nrye", packing.text);
}

/// Chunks without text are dropped as empty. Finding nothing is not an error.
#[test]
fn given_no_text_when_retrieving_then_the_query_alone_is_sent() {
    let result = service_of(chunks(&["", ""])).system_prompt("Be brief.").retrieve("Why?").unwrap();
    assert!(result.packing.dropped.iter().all(|dropped| dropped.reason == Reason::Empty));
    assert_eq!(2, result.packing.dropped.len());

    let nothing = service_of(vec![]).system_prompt("Be brief.").retrieve("Why?").unwrap();
    assert_eq!(nothing.messages, result.messages);
    let said: Vec<_> = result.messages.iter().map(|it| (it.role(), it.text())).collect();
    assert_eq!([("system", "Be brief.".into()), ("user", "Why?".into())], *said);
}

/// A hundred thousand chunks are packed, and the figures add up.
#[test]
fn given_100_000_chunks_when_retrieving_then_the_top_fit() {
    let chunks =
        (0..100_000).map(|i| Chunk::new(format!("{i} green tea")).score(f64::from(i % 1_000)));
    let service = service(Fake::new(chunks)).limit(100_000);

    let result = service.retrieve("q").unwrap();

    assert_eq!(100_000, result.packing.kept.len() + result.packing.dropped.len());
    assert_eq!(Some(999.0), result.packing.kept[0].score);
    assert!(result.tokens.input + result.tokens.output <= 4_096);
    let stats = service.stats();
    let for_budget = |reason| reason == Reason::Budget;
    let dropped = result.packing.dropped.iter().filter(|it| for_budget(it.reason)).count() as u64;
    assert_eq!((dropped, false), (stats.dropped_chunks, stats.is_dropped_exact));
    assert!((4 * dropped..=5 * dropped).contains(&stats.dropped_tokens), "{stats:?}");
}

/// A component that is late is named, and no later one is asked.
#[test]
fn given_a_slow_retriever_when_the_deadline_passes_then_a_typed_error() {
    let last = Fake::new(chunks(&["b"]));
    let service = service(Fake::new(chunks(&["a"])))
        .retriever(Named::new("slow", slow))
        .retriever(last.clone())
        .timeout(SHORT);

    let error = service.retrieve("q").unwrap_err();

    assert_eq!((ErrorKind::Timeout, Some("slow")), (error.kind(), error.component()));
    assert_eq!("the deadline of 0.1 seconds passed before slow answered", error.to_string());
    assert_eq!((0, 1), (last.calls(), service.stats().timed_out));
    assert_eq!(3, service.retrieve_timeout("q", LONG).unwrap().chunks.len());
}

/// The clock starts when the request is planned.
#[test]
fn given_a_slow_counter_when_planning_then_that_is_not_of_the_deadline() {
    let counter = |text: &str| {
        if text == "slow" {
            sleep(SHORT * 3);
        }
        text.len()
    };
    let service = RetrievalService::new(Fake::new(chunks(&["tea"])), settings().counter(counter));
    let service = service.unwrap().timeout(SHORT);

    assert_eq!("tea", service.retrieve("slow").unwrap().packing.text);
    assert_eq!("tea", service.retrieve_timeout("slow", SHORT).unwrap().packing.text);
}

/// The time of retrieval counts against the reranker's, and a late page is the
/// last.
#[test]
fn given_a_slow_reranker_or_page_when_the_deadline_passes_then_it_is_named() {
    struct Paged;

    impl Retriever for Paged {
        fn retrieve(&self, _: &str, _: usize) -> Result<Vec<Chunk>, BoxError> {
            unreachable!("it has pages")
        }

        fn pages<'a>(&'a self, query: &'a str) -> Option<Pages<'a>> {
            Some(Box::new(std::iter::repeat_with(|| slow(query, 1))))
        }
    }

    let rerank = |_: &str, chunks: Vec<Chunk>| slow("", 1).map(|_| chunks);
    let reranked = service_of(chunks(&["a"])).reranker(rerank).timeout(SHORT);
    assert_eq!(ErrorKind::Timeout, reranked.retrieve("q").unwrap_err().kind());
    let error = service(Paged).timeout(SHORT).retrieve("q").unwrap_err();
    assert!(error.component().unwrap().ends_with("Paged"), "{error}");
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

async fn search(text: &str) -> Vec<Chunk> {
    let mut is_second = false;
    std::future::poll_fn(|_| {
        if std::mem::replace(&mut is_second, true) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    chunks(&[text])
}

async fn answer(service: &RetrievalService, query: &str) -> Result<RetrievalResult, ServiceError> {
    let plan = service.plan(query)?;
    let chunks = search("tea").await;
    plan.answer(chunks)
}

/// A request is divided for asynchronous code: its budget comes first, it keeps
/// its model, and one that is dropped counts as cancelled.
#[test]
fn given_asynchronous_code_when_planning_then_the_budget_comes_first() {
    fn is_send<T: Send>(future: T) -> T {
        future
    }

    let retriever = Fake::new(chunks(&["nobody asks"]));
    let service = service(retriever.clone());
    let result = block_on(is_send(answer(&service, "q"))).unwrap();
    assert_eq!(("tea", 0), (&*result.packing.text, retriever.calls()));

    let huge = text_of(4_000);
    let error = block_on(answer(&service, &huge)).unwrap_err();
    assert_eq!(ErrorKind::InputValidation, error.kind());

    let plan = service.plan("q").unwrap();
    service.set_settings(LlmSettings::new("gpt-4").context_window(900)).unwrap();
    assert_eq!(4_096, plan.answer(chunks(&["tea"])).unwrap().tokens.context_window);

    let plan = service.plan("q").unwrap();
    assert_eq!(("gpt-4", 900), (&*plan.model().name, plan.model().context_window));
    let error = plan.fail("search", io::Error::other("https://user:secret@vectors.example"));
    assert_eq!((ErrorKind::Retrieval, Some("search")), (error.kind(), error.component()));
    assert!(error.source().unwrap().downcast_ref::<io::Error>().is_some());
    assert!(!format!("{error} {error:?}").contains("secret"));

    let mut dropped = Box::pin(answer(&service, "q"));
    assert!(dropped.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(dropped);
    let stats = service.stats();
    assert_eq!((5, 2, 1, 1), (stats.requests, stats.answered, stats.rejected, stats.cancelled));
    assert_eq!(1, stats.failed);
}

/// A corpus returns its best chunks in the order of packing, with all their
/// fields; so does an opened one.
#[test]
fn given_a_corpus_when_retrieving_then_the_chunks_are_those_of_packing() {
    let words = ["tea", "green", "rye", "black", "of the", "mild"];
    let text = |i: usize| [words[i % 6], words[i / 2 % 6], words[i / 5 % 6]].join(" ");
    let mut chunks: Vec<_> = (0..60).map(|i| Chunk::new(text(i)).id(i.to_string())).collect();
    let full = Chunk::new("tea tea").title("Tea").kind("note").source("shop").authority("Ada");
    let full = full.priority(3.0).metadata(r#"{"a":1}"#).id("full").score(0.25);
    chunks.push(Chunk { position: Some(4.0), mtime: 7.0, ..full.clone() });
    let corpus = Corpus::new(chunks.clone());
    let path = std::env::temp_dir().join(format!("budgeteer-corpus-{}", std::process::id()));
    corpus.save(&path).unwrap();
    let opened = Corpus::open(&path).unwrap();

    for query in ["green tea", "the", "", "nothing here", "Mild rye, black rye?"] {
        let packer = Packer::new(usize::MAX).dedupe(Dedupe::Off);
        let packing = packer.pack_corpus(query, &corpus).unwrap();
        let mut ranked: Vec<_> =
            packing.kept.iter().map(|kept| (kept.score.unwrap(), kept.index)).collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        for limit in [0, 1, 7, 61, usize::MAX] {
            let found = corpus.retrieve(query, limit).unwrap();
            let expected = ranked.iter().take(limit);
            let expected = expected.map(|&(score, at)| chunks[at].clone().score(score));
            assert_eq!(expected.collect::<Vec<_>>(), found, "{query} {limit}");
            assert_eq!(found, opened.retrieve(query, limit).unwrap());
        }
    }
    assert_eq!("Corpus", Retriever::name(&corpus));
    assert!(Corpus::<Chunk>::default().retrieve("tea", 9).unwrap().is_empty());
    let service = service(Arc::new(opened));
    assert!(service.retrieve("tea").unwrap().packing.text.starts_with("tea tea"));
    drop(service);
    std::fs::remove_file(&path).unwrap();
}

/// Files are read again on request. A file that cannot be read is an error that
/// names it, and the chunks read before stay.
#[test]
fn given_files_when_they_change_then_they_are_read_again_on_demand() {
    let folder = std::env::temp_dir().join(format!("budgeteer-faults-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("deep")).unwrap();
    let jsonl = folder.join("tea.jsonl");
    std::fs::write(folder.join("b.md"), "\u{feff}# Tea\nMild.").unwrap();
    std::fs::write(folder.join("deep/a.md"), b"\xff").unwrap();
    std::fs::write(folder.join("c.txt"), "no").unwrap();
    std::fs::write(&jsonl, "{\"content\": \"Rye.\", \"metadata\": {\"mtime\": 7}}\n\n").unwrap();
    let (markdown, lines) =
        (FolderRetriever::new(&folder).unwrap(), JsonlRetriever::new(&jsonl).unwrap());
    let ids = || -> Vec<_> {
        markdown.retrieve("", 9).unwrap().into_iter().map(|chunk| chunk.id.unwrap()).collect()
    };
    assert_eq!(["b.md#0", "deep/a.md#0"], *ids());
    assert!(markdown.retrieve("", 9).unwrap()[0].mtime > 1e9);
    let rye = &lines.retrieve("rye", 9).unwrap()[0];
    assert_eq!((Some(1.0), 7.0, "{\"mtime\":7}"), (rye.score, rye.mtime, &*rye.metadata));

    std::fs::write(folder.join("d.md"), "## One\na\n## Two\nb").unwrap();
    std::fs::write(&jsonl, "{\"text\": \"a\"}\n{\"title\": \"b\"}\n").unwrap();
    assert_eq!(2, ids().len());
    markdown.refresh().unwrap();
    assert_eq!(["b.md#0", "d.md#0", "d.md#1", "deep/a.md#0"], *ids());
    let error = lines.refresh().unwrap_err();
    assert_eq!(ErrorKind::InvalidArgument, error.kind());
    assert!(
        error
            .to_string()
            .ends_with("tea.jsonl: line 2: must have a key 'text', 'content' or 'page_content'")
    );
    assert_eq!(1, lines.retrieve("", 9).unwrap().len());
    std::fs::remove_dir_all(&folder).unwrap();
    let error = markdown.refresh().unwrap_err();
    assert_eq!(ErrorKind::Io(io::ErrorKind::NotFound), error.kind());
    assert!(error.to_string().contains("budgeteer-faults-"), "{error}");
    assert_eq!(4, ids().len());
}

/// The time of a file may be before 1970.
#[test]
fn given_an_old_file_when_reading_a_folder_then_its_time_is_negative() {
    let folder = std::env::temp_dir().join(format!("budgeteer-old-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("a.md"), "Tea.").unwrap();
    let file = std::fs::File::options().write(true).open(folder.join("a.md")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH - Duration::from_secs(3_600)).unwrap();
    let found = FolderRetriever::new(&folder).unwrap().retrieve("", 9).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();

    assert_eq!("-3600", found[0].mtime.to_string());
}

/// The metadata of a line sets the fields of the chunk.
#[test]
fn given_metadata_when_reading_lines_then_the_fields_are_those_of_the_chunk() {
    let path = std::env::temp_dir().join(format!("budgeteer-meta-{}.jsonl", std::process::id()));
    let deep = "[".repeat(100) + &"]".repeat(100);
    let lines = [
        r#"{"kind":"note","authority":"Ada","priority":3,"index":4,"mtime":7.5,"deep":DEEP}"#,
        r#"{"kind":5,"authority":null,"priority":"high","position":"x","offset":-1.5e3,"index":null}"#,
        r#"{"source":"other","id":"other","score":1,"text":"other","title":"other","mtime":true}"#,
        "{}",
    ];
    let lines = lines.map(|line| line.replace("DEEP", &deep));
    let rows = lines.each_ref().map(|line| format!("{{\"text\":\"a\",\"metadata\":{line}}}\n"));
    std::fs::write(&path, rows.concat()).unwrap();
    let found = JsonlRetriever::with_name(&path, "tea").unwrap().retrieve("", 9).unwrap();
    std::fs::remove_file(&path).unwrap();

    let chunk = |line: &str| Chunk::new("a").source("tea").score(0.0).metadata(line);
    let [first, second, third, _] = &lines;
    let first = chunk(first).kind("note").authority("Ada").priority(3.0);
    let expected = [
        Chunk { position: Some(4.0), mtime: 7.5, ..first },
        Chunk { position: Some(-1500.0), ..chunk(second).kind("5") },
        Chunk { mtime: 1.0, ..chunk(third).title("other").id("other") },
        chunk(""),
    ];
    let metadata = |chunk: &Chunk| -> Option<serde_json::Value> {
        (!chunk.metadata.is_empty()).then(|| serde_json::from_str(&chunk.metadata).unwrap())
    };
    assert_eq!(expected.each_ref().map(metadata), *found.iter().map(metadata).collect::<Vec<_>>());
    let bare = |chunk: &Chunk| Chunk { metadata: String::new(), ..chunk.clone() };
    assert_eq!(expected.each_ref().map(bare), *found.iter().map(bare).collect::<Vec<_>>());
}

/// Numbers keep their digits, as Python's whole numbers do.
#[test]
fn given_large_numbers_when_reading_lines_then_no_digit_is_lost() {
    let path = std::env::temp_dir().join(format!("budgeteer-digits-{}.jsonl", std::process::id()));
    let rows = [
        r#"{"text":"a","id":1000000000000000000000000000000,"metadata":{"b":12345678901234567890123}}"#,
        r#"{"text":"a","id":-0}"#,
        r#"{"text":"a","id":18446744073709551616}"#,
        r#"{"text":"a","id":1.5,"metadata":{"id":99999999999999999999}}"#,
        r#"{"text":"a","metadata":{"id":99999999999999999999}}"#,
        r#"{"text":"a","metadata":{"id":-0,"b":1}}"#,
        r#"{"text":"a","metadata":{"id":1.50}}"#,
        r#"{"text":"a","metadata":{"id":"1","b":2,"id":"2"}}"#,
    ];
    std::fs::write(&path, rows.join("\n")).unwrap();
    let found = JsonlRetriever::new(&path).unwrap().retrieve("", 9).unwrap();
    std::fs::remove_file(&path).unwrap();

    let ids = ["1000000000000000000000000000000", "0", "18446744073709551616", "1.5"];
    let inner = ["99999999999999999999", "0", "1.5", "2"];
    let ids: Vec<_> = ids.into_iter().chain(inner).map(Some).collect();
    assert_eq!(ids, found.iter().map(|chunk| chunk.id.as_deref()).collect::<Vec<_>>());
    assert_eq!(r#"{"b":12345678901234567890123}"#, found[0].metadata);
}

/// What packing reads of the metadata may stand beside the text.
#[test]
fn given_fields_beside_the_text_when_reading_lines_then_they_are_those_of_the_chunk() {
    let path = std::env::temp_dir().join(format!("budgeteer-beside-{}.jsonl", std::process::id()));
    let rows = [
        r#"{"text":"a","kind":"k","index":2,"mtime":3,"authority":"a","priority":4,"url":"x"}"#,
        r#"{"text":"a","kind":"k","mtime":3,"metadata":{"mtime":5,"kind":null,"b":1}}"#,
        r#"{"text":"a","kind":null,"url":"x"}"#,
    ];
    std::fs::write(&path, rows.join("\n")).unwrap();
    let found = JsonlRetriever::new(&path).unwrap().retrieve("", 9).unwrap();
    std::fs::remove_file(&path).unwrap();

    let kinds = [Some("k"), Some("k"), None];
    assert_eq!(kinds, [0, 1, 2].map(|i: usize| found[i].kind.as_deref()));
    assert_eq!(["3", "5", "0"], [0, 1, 2].map(|i: usize| found[i].mtime.to_string()));
    let Chunk { authority, priority, position, .. } = &found[0];
    assert_eq!((Some("a"), Some(2.0)), (authority.as_deref(), *position));
    assert_eq!("4", priority.to_string());
    assert_eq!(
        [
            r#"{"authority":"a","index":2,"kind":"k","mtime":3,"priority":4}"#,
            r#"{"b":1,"kind":"k","mtime":5}"#,
            "",
        ],
        [0, 1, 2].map(|i: usize| &*found[i].metadata)
    );
}

/// A line that is not a chunk is an error that names it.
#[test]
fn given_a_line_that_is_no_chunk_when_reading_then_the_error_names_it() {
    let path = std::env::temp_dir().join(format!("budgeteer-bad-{}.jsonl", std::process::id()));
    for (line, message) in [
        (&b"[1]"[..], "must be a JSON object"),
        (b"{", "invalid JSON at column 1: EOF while parsing an object"),
        (b"\xff", "not UTF-8"),
        (br#"{"text": 3}"#, "text must be a string"),
        (br#"{"text": null, "content": "a"}"#, "text must be a string"),
        (br#"{"text": "a", "id": true}"#, "id must be a string"),
        (br#"{"text": "a", "score": "high"}"#, "score must be a number"),
        (br#"{"text": "a", "metadata": []}"#, "metadata must be an object"),
    ] {
        std::fs::write(&path, [b"\xef\xbb\xbf{\"text\": \"a\"}\n \t\n", line].concat()).unwrap();
        let error = JsonlRetriever::new(&path).unwrap_err();
        assert_eq!(ErrorKind::InvalidArgument, error.kind());
        assert!(error.to_string().ends_with(&format!(": line 3: {message}")), "{error}");
    }
    std::fs::remove_file(&path).unwrap();
}
