//! The retrieval service: its document's scenarios, and the law for every
//! input.
#![allow(clippy::unwrap_used)] // an unexpected value fails its test

mod service_support;

use std::collections::HashMap;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};

use budgeteer::service::{
    BoxError, ChunkRetriever, LlmSettings, NoOpReranker, Reranker, RetrievalResult,
    RetrievalService, Retriever, chat_messages,
};
use budgeteer::window::{ModelLimits, count_messages, model_limits};
use budgeteer::{
    Chunk, Dedupe, Encoding, ErrorKind, Estimate, Message, Overflow, Packer, Ranking, Reason,
    TokenCounter,
};
use proptest::prelude::*;
use serde_json::json;
use service_support::{Fake, chunks, reversed, service_of, settings, text_of};

/// Returns whether the messages and the answer fit, counted from outside.
fn in_window(result: &RetrievalResult, counter: &dyn TokenCounter) -> bool {
    let total = count_messages(&result.messages, counter, None);
    assert_eq!(result.tokens.input, total);
    total + result.tokens.output <= result.tokens.context_window
}

fn kept(result: &RetrievalResult) -> Vec<usize> {
    result.packing.kept.iter().map(|kept| kept.index).collect()
}

/// Seed 003, criterion 1: 4096 - 200 - 500 - 50 = 3346.
#[test]
fn given_a_window_when_planning_then_the_budget_is_what_is_left() {
    let service = service_of(vec![]).system_prompt(text_of(200));
    let query = text_of(50);
    let plan = service.plan(&query).unwrap();
    assert_eq!((3_346, 500), (plan.budget(), plan.limit()));
    assert_eq!((plan.budget() - 12, 4_096), (plan.room(), plan.model().context_window));

    let tokens = plan.answer(vec![]).unwrap().tokens;

    assert_eq!((200, 50, 500), (tokens.system, tokens.query, tokens.output));
    assert_eq!(3_346, tokens.budget);
    assert_eq!(3_346 - tokens.overhead, tokens.remaining.cast_signed());
}

/// Seed 003, criterion 2: of 5 chunks of 300 tokens 3 fit into 1000. The log is
/// in `events.rs`.
#[test]
fn given_small_budget_when_retrieving_then_truncates_chunks() {
    let scores = [0.9, 0.8, 0.7, 0.6, 0.5];
    let retriever = Fake::new(scores.map(|score| Chunk::new(text_of(300)).score(score)));
    let settings = settings().context_window(1_750);
    let service = RetrievalService::new(retriever, settings).unwrap().system_prompt(text_of(200));

    let result = service.retrieve(&text_of(50)).unwrap();

    assert_eq!(1_000, result.tokens.budget);
    assert_eq!([0, 1, 2], *kept(&result));
    let dropped: Vec<_> =
        result.packing.dropped.iter().map(|chunk| (chunk.index, chunk.reason)).collect();
    assert_eq!([(3, Reason::Budget), (4, Reason::Budget)], *dropped);
    assert!(in_window(&result, &Encoding::Cl100k));
    assert_eq!((1, 2, 600), {
        let stats = service.stats();
        (stats.cut, stats.dropped_chunks, stats.dropped_tokens)
    });
}

/// Seed 003, criterion 3: neither a retriever nor a reranker is asked.
#[test]
fn given_huge_query_when_retrieving_then_returns_error() {
    let retriever = Fake::new([Chunk::new("tea")]);
    let was_reranked = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&was_reranked);
    let service = RetrievalService::new(retriever.clone(), settings())
        .unwrap()
        .system_prompt(text_of(200))
        .reranker(move |_: &str, chunks: Vec<Chunk>| {
            flag.store(true, Ordering::Relaxed);
            Ok::<_, BoxError>(chunks)
        });

    let error = service.retrieve(&text_of(3_500)).unwrap_err();

    assert_eq!(0, retriever.calls());
    assert!(!was_reranked.load(Ordering::Relaxed));
    assert_eq!((ErrorKind::InputValidation, None), (error.kind(), error.component()));
    assert_eq!(
        "nothing is left for retrieval: context_window 4096 - system_tokens 200 - \
         max_output_tokens 500 - query_tokens 3500 = -104",
        error.to_string()
    );
    let stats = service.stats();
    assert_eq!((1, 1, 0), (stats.requests, stats.rejected, stats.answered));
}

/// The costs of the messages are taken off too, before anything is retrieved.
#[test]
fn given_a_query_that_leaves_no_room_for_the_messages_when_retrieving_then_returns_error() {
    let retriever = Fake::new([Chunk::new("tea")]);
    let service = RetrievalService::new(retriever.clone(), settings()).unwrap();

    let error = service.retrieve(&text_of(3_592)).unwrap_err();

    assert_eq!((ErrorKind::InputValidation, 0), (error.kind(), retriever.calls()));
    assert!(error.to_string().contains(" - message_tokens 8 = -4"), "{error}");
    assert_eq!(16, service.retrieve(&text_of(3_580)).unwrap().tokens.budget);
}

/// The error names what limits the prompt, and a packer without room is refused
/// too.
#[test]
fn given_nothing_left_when_retrieving_then_the_error_says_of_what() {
    let retriever = Fake::new([Chunk::new("tea")]);
    let service = |limits, packer| {
        let settings = LlmSettings::for_model(limits).counter(Estimate::Words);
        RetrievalService::new(retriever.clone(), settings.max_output_tokens(0))
            .unwrap()
            .packer(packer)
    };
    let limits = || ModelLimits::new("own", 100);
    let window = "context_window 100 - max_output_tokens 0 - system_tokens 0 - query_tokens 98 - \
                  message_tokens 7 = -5";
    let input = "max_input_tokens 90 - system_tokens 0 - query_tokens 98 - message_tokens 7 = -15";
    for (limits, tokens, packer, message) in [
        (limits(), 98, Packer::new(50), window),
        (limits().max_input_tokens(90), 98, Packer::new(50), input),
        (limits(), 1, Packer::new(50).reserve_tokens(50), "max_tokens 50 - reserve_tokens 50 = 0"),
        (limits(), 1, Packer::new(0).reserve_tokens(7), "max_tokens 0 - reserve_tokens 7 = -7"),
        (
            limits(),
            1,
            Packer::new(999).reserve_tokens(500),
            "max_tokens 92 - reserve_tokens 500 = -408",
        ),
    ] {
        let error = service(limits, packer).retrieve(&"tea ".repeat(tokens)).unwrap_err();
        assert_eq!((ErrorKind::InputValidation, None), (error.kind(), error.component()));
        assert_eq!(format!("nothing is left for retrieval: {message}"), error.to_string());
    }
    assert_eq!(0, retriever.calls());
    let fits = service(limits(), Packer::new(50).reserve_tokens(49));
    assert_eq!(1, fits.plan("q").unwrap().room());
    assert_eq!("tea", fits.retrieve("q").unwrap().packing.text);
}

/// From a 4k to a 128k model: the next request has its window and its encoding.
#[test]
fn given_a_swap_when_requests_follow_then_window_and_encoding_change() {
    let text = "日本のお茶を飲みます。".repeat(300);
    let service = service_of(chunks(&[&text]));
    assert_eq!(0, service.retrieve("お茶").unwrap().packing.kept.len());

    service.set_settings(LlmSettings::new("gpt-4o")).unwrap();
    let result = service.retrieve("お茶").unwrap();

    assert_eq!(("gpt-4o", 128_000), (&*result.model, result.tokens.context_window));
    assert_eq!(Encoding::O200k.count(&text), result.tokens.retrieved);
    assert!(in_window(&result, &Encoding::O200k));
    assert_eq!(Some("gpt-4o"), service.settings().model.as_deref());

    let error = service.set_settings(LlmSettings::default()).unwrap_err();
    assert_eq!("model or context_window is required", error.to_string());
    assert_eq!("gpt-4o", service.retrieve("q").unwrap().model);
}

/// A request that began before a swap keeps the old window and encoding.
#[test]
fn given_a_swap_when_a_request_is_under_way_then_it_keeps_its_model() {
    let (step, is_first) = (Arc::new(Barrier::new(2)), AtomicBool::new(true));
    let inside = Arc::clone(&step);
    let waiting = move |_: &str, _: usize| {
        if is_first.swap(false, Ordering::Relaxed) {
            inside.wait();
            inside.wait();
        }
        Ok::<_, BoxError>(chunks(&["日本のお茶"]))
    };
    let service = RetrievalService::new(waiting, settings()).unwrap();
    std::thread::scope(|scope| {
        let before = scope.spawn(|| service.retrieve("q").unwrap());
        step.wait();
        service.set_settings(LlmSettings::new("gpt-4o").context_window(9_000)).unwrap();
        step.wait();
        let (old, new) = (before.join().unwrap(), service.retrieve("q").unwrap());

        assert_eq!(("gpt-4", 4_096), (&*old.model, old.tokens.context_window));
        assert_eq!(("gpt-4o", 9_000), (&*new.model, new.tokens.context_window));
        assert_eq!(Encoding::Cl100k.count("日本のお茶"), old.tokens.retrieved);
        assert_eq!(Encoding::O200k.count("日本のお茶"), new.tokens.retrieved);
        assert_ne!(old.tokens.retrieved, new.tokens.retrieved);
    });
}

/// Under load from many threads each answer belongs to one model, whole, and a
/// thread that swapped gets the new model at once.
#[test]
fn given_swaps_under_load_when_retrieving_then_each_answer_is_of_one_model() {
    let texts = (0..40).map(|i| format!("緑茶 {i} ").repeat(20 + i % 7));
    let service = RetrievalService::new(Fake::new(texts.map(Chunk::new)), settings())
        .unwrap()
        .system_prompt("日本語で");
    let both = [settings(), LlmSettings::new("gpt-4o").context_window(3_000)];
    let expected: HashMap<_, _> = both
        .iter()
        .map(|settings| {
            service.set_settings(settings.clone()).unwrap();
            (settings.model.clone().unwrap(), service.retrieve("お茶").unwrap())
        })
        .collect();
    assert_ne!(expected["gpt-4"].tokens, expected["gpt-4o"].tokens);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..60 {
                    let result = service.retrieve("お茶").unwrap();
                    assert_eq!(expected[&result.model], result);
                }
            });
        }
        for turn in 0..200 {
            let settings = &both[turn % 2];
            service.set_settings(settings.clone()).unwrap();
            assert_eq!(settings.model, Some(service.retrieve("お茶").unwrap().model));
        }
    });
    assert_eq!((682, 682), (service.stats().requests, service.stats().answered));
}

/// The retrieved text stands in front of the query, never in the system message.
#[test]
fn given_chunks_when_retrieving_then_the_messages_are_ready() {
    let service = service_of(chunks(&["Green tea."])).system_prompt("Be brief.");

    let result = service.retrieve("Is it mild?").unwrap();

    let expected = [Message::system("Be brief."), Message::user("Green tea.\n\nIs it mild?")];
    assert_eq!(expected, *result.messages);
    assert_eq!([Message::user("q")], *chat_messages("", "", "q"));
    let (chunk, kept) = result.kept().next().unwrap();
    assert_eq!(("Green tea.", 3), (&*chunk.text, kept.token_count));
}

/// Chunks are packed by their own scores, whichever retriever returned them; in
/// the given order where some have none; and in a reranker's order, if there is
/// one.
#[test]
fn given_several_retrievers_when_retrieving_then_they_are_merged() {
    let scored = || Fake::new([Chunk::new("a").score(0.1), Chunk::new("b").score(0.9)]);
    let of = |first: Fake, second: Chunk| {
        RetrievalService::new(first, settings()).unwrap().retriever(Fake::new([second]))
    };
    let text = |service: &RetrievalService| service.retrieve("q").unwrap().packing.text;

    let all = of(scored(), Chunk::new("c").score(0.5));
    assert_eq!("b\n\nc\n\na", text(&all));
    assert_eq!("c\n\nb\n\na", text(&all.reranker(reversed)));
    let some = of(scored(), Chunk::new("c"));
    assert_eq!("a\n\nb\n\nc", text(&some));
    assert_eq!("a\n\nb\n\nc", text(&some.reranker(NoOpReranker)));
    assert_eq!("a\n\nc", text(&of(Fake::new(chunks(&["a"])), Chunk::new("c"))));
}

/// A packer's options apply, also its bound; the model's counter counts.
#[test]
fn given_a_packer_when_retrieving_then_its_options_apply() {
    let packer = Packer::new(3).estimate(Estimate::CharsDiv4).ranking(Ranking::Input);
    let packer = packer.overflow(Overflow::Skip);
    let service = service_of(chunks(&["one two three four", "tea", "tea"])).packer(packer);

    let packing = service.retrieve("q").unwrap().packing;

    assert_eq!(("tea", 3), (&*packing.text, packing.budget_tokens));
    let reasons: Vec<_> = packing.dropped.iter().map(|dropped| dropped.reason).collect();
    assert_eq!([Reason::Budget, Reason::Duplicate], *reasons);
}

/// Where texts count more together than the seam that was tried, chunks leave
/// until the messages fit: the same ones as in Python. A file of cases cannot
/// hold such a counter.
#[test]
fn given_a_counter_that_counts_seams_dearly_when_retrieving_then_the_messages_fit() {
    let counter = |text: &str| text.len() + 60 * text.matches("a\n\nq").count();
    for (window, count, retrieved) in
        [(90, 0, 0), (150, 1, 40), (260, 4, 166), (450, 9, 376), (620, 13, 544), (900, 19, 796)]
    {
        let settings = LlmSettings::default().context_window(window).max_output_tokens(0);
        let retriever = Fake::new(vec![Chunk::new("a".repeat(40)); 40]);
        let service = RetrievalService::new(retriever, settings.counter(counter)).unwrap();

        let result = service.retrieve("q").unwrap();

        assert_eq!((count, retrieved), (kept(&result).len(), result.tokens.retrieved));
        assert!(in_window(&result, &counter));
    }
}

/// Whatever a builder puts around the context, the messages fit.
#[test]
fn given_a_message_builder_when_retrieving_then_what_it_adds_is_counted() {
    let settings = settings().context_window(300).max_output_tokens(50);
    let service =
        RetrievalService::new(Fake::new(vec![Chunk::new("tea ".repeat(10)); 90]), settings)
            .unwrap()
            .message_builder(|prompt, context, query| {
                vec![
                    Message::user(format!("{prompt}\n<context>{context}</context>\n{query}")),
                    Message::assistant("I have read it. ".repeat(20)),
                ]
            });

    let result = service.retrieve("q").unwrap();

    assert!(!result.packing.kept.is_empty());
    assert!(in_window(&result, &Encoding::Cl100k));
}

/// Only chunks that do not fit twice are left out, and not nearly all.
#[test]
fn given_a_builder_that_repeats_the_context_when_retrieving_then_half_of_the_budget_is_used() {
    let settings = settings().context_window(1_000).max_output_tokens(100);
    let chunks = (100..200).map(|n| Chunk::new(format!("{n} is a number of tea")));
    let service = RetrievalService::new(Fake::new(chunks.collect::<Vec<_>>()), settings)
        .unwrap()
        .message_builder(|_, context, _| vec![Message::user(context), Message::user(context)]);

    let result = service.retrieve("q").unwrap();

    assert!(in_window(&result, &Encoding::Cl100k));
    let (budget, retrieved) = (result.tokens.budget, result.tokens.retrieved);
    assert!(budget / 3 < retrieved && retrieved < budget / 2, "{retrieved} of {budget}");
}

/// A packing that is too large is made smaller by what it is too large by, or by
/// its share; from the fifth on by half as well.
#[test]
fn given_messages_that_stay_too_large_when_retrieving_then_the_context_shrinks_ever_faster() {
    let words = |text: &str| text.split_whitespace().count();
    let kept_by = |builder: fn(&str, usize) -> String| {
        let around = count_messages(&[Message::user("")], &words, None);
        let settings = LlmSettings::default().context_window(around + 200).max_output_tokens(0);
        let retriever = Fake::new(vec![Chunk::new("tea"); 400]);
        let service = RetrievalService::new(retriever, settings.counter(words))
            .unwrap()
            .packer(Packer::new(1_000).counter(words).dedupe(Dedupe::Off))
            .message_builder(move |_, context, _| {
                vec![Message::user(builder(context, context.split_whitespace().count()))]
            });
        kept(&service.retrieve("q").unwrap()).len()
    };
    assert_eq!(200, kept_by(|context, _| context.to_owned()));
    // 199, as one word counts twice; then 199 * 199 / (199 + 198).
    assert_eq!(99, kept_by(|context, _| [context, context].join(" ")));
    // One too many but for 30 and fewer: 200, 199, 198, 197, 196; 195 / 2, 96 / 2, 47 / 2.
    let padded = |context: &str, count: usize| match count {
        ..=30 => context.to_owned(),
        _ => "tea ".repeat(201),
    };
    assert_eq!(23, kept_by(padded));
}

/// Settings are read from JSON under the document's names too.
#[test]
fn given_json_when_reading_settings_then_the_spellings_of_the_document_are_taken() {
    let window = ["context_window", "max_context_window", "context_window_size"];
    for (window, output) in window.iter().flat_map(|window| {
        ["max_output_tokens", "reserved_output_tokens"].map(|output| (*window, output))
    }) {
        let section = json!({"model": "gpt-4", window: 4096, output: 500, "counter": null});
        for value in [json!({"llm": section, "other": 1}), section] {
            let read = LlmSettings::from_json(&value).unwrap();
            assert_eq!(Some("gpt-4"), read.model.as_deref());
            assert_eq!((Some(4_096), Some(500)), (read.context_window, read.max_output_tokens));
        }
    }
    for (value, message) in [
        (json!({"llm": {"modle": "gpt-4"}}), "llm.modle is not a known key; known are \"model\","),
        (json!({"llm": 3}), "llm must be an object"),
        (json!([1]), "the settings must be an object"),
        (
            json!({"llm": {"context_window": -1}}),
            "llm.context_window must be a natural number, not -1",
        ),
        (json!({"max_context_window": 0}), "max_context_window must be at least 1, not 0"),
        (json!({"model": 3}), "model must be a string, not 3"),
        (json!({"model": ""}), "model must not be empty"),
        (
            json!({"llm": {"context_window": 9, "context_window_size": 9}}),
            "llm.context_window and llm.context_window_size are the same; give one of them",
        ),
        (json!({"llm": {"max_output_tokens": 9}}), "llm: model or context_window is required"),
        (json!({"model": "gpt-4", "counter": "nope"}), "counter must be one of"),
    ] {
        let error = LlmSettings::from_json(&value).unwrap_err();
        assert_eq!(ErrorKind::InvalidArgument, error.kind());
        assert!(error.to_string().starts_with(message), "{error}");
    }
}

/// Settings are read from the environment of a process: that of a child, which
/// is this test once more.
#[test]
fn given_the_environment_when_reading_settings_then_they_are_those_of_the_process() {
    const MODEL: &str = "BUDGETEER_LLM_MODEL";
    if std::env::var_os(MODEL).is_some() {
        let read = LlmSettings::from_env().unwrap();
        assert_eq!(Some("gpt-4"), read.model.as_deref());
        assert_eq!((Some(4_096), Some(500)), (read.context_window, read.max_output_tokens));
        return;
    }
    let error = LlmSettings::from_env().unwrap_err();
    let message = "BUDGETEER_LLM_MODEL or BUDGETEER_LLM_CONTEXT_WINDOW is required";
    assert_eq!(message, error.to_string());
    let name = "given_the_environment_when_reading_settings_then_they_are_those_of_the_process";
    let child = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact"])
        .envs([(MODEL, "gpt-4"), ("BUDGETEER_LLM_MAX_CONTEXT_WINDOW", "4096")])
        .env("BUDGETEER_LLM_RESERVED_OUTPUT_TOKENS", "500")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && said.contains("1 passed"), "{said}");
    for (variable, value, message) in [
        ("APP_CONTEXT_WINDOW", "4k", "APP_CONTEXT_WINDOW must be a whole number, not \"4k\""),
        (
            "APP_MAX_OUTPUT_TOKENS",
            "99999999999999999999",
            "APP_MAX_OUTPUT_TOKENS must be at most 18446744073709551615, not 99999999999999999999",
        ),
        ("APP_CONTEXT_WINDOW_SIZE", "0", "APP_CONTEXT_WINDOW_SIZE must be at least 1, not 0"),
        ("APP_COUNTER", "nope", "APP_COUNTER must be one of"),
    ] {
        let variables = |name: &str| (name == variable).then(|| value.to_owned());
        let error = LlmSettings::from_variables("APP_", variables).unwrap_err();
        assert!(error.to_string().starts_with(message), "{error}");
    }
}

/// A model with the caller's own limits, one whose tokenizer is not native, and
/// an unknown one.
#[test]
fn given_a_model_when_making_a_service_then_its_limits_are_known_or_estimated() {
    let own = ModelLimits::new("own", 900).max_output_tokens(100).encoding("words");
    let limits = LlmSettings::for_model(own).limits().unwrap();
    assert_eq!((900, 100), (limits.context_window, limits.max_output_tokens));
    assert_eq!(2, limits.counter().count("green tea"));

    let settings = LlmSettings::new("command-a-03-2025");
    assert!(RetrievalService::new(Fake::default(), settings.clone()).is_ok());
    let estimated = settings.limits().unwrap();
    assert!(!estimated.counter().is_exact());

    let unknown = LlmSettings::new("nobody-knows-this").limits().unwrap();
    assert_eq!((32_768, false), (unknown.context_window, unknown.counter().is_exact()));
    let count = |limits: &budgeteer::service::ActiveModel| limits.counter().count("green tea");
    assert!(Encoding::O200k.count("green tea") < count(&estimated));
    assert!(count(&estimated) <= count(&unknown));
}

/// The caller's own limits are checked as when they are registered.
#[test]
fn given_limits_that_cannot_be_when_making_a_service_then_an_error() {
    let own = || ModelLimits::new("own", 900).encoding("words");
    for (limits, message) in [
        (ModelLimits::new("own", 0), "context_window must be at least 1, not 0"),
        (own().max_input_tokens(0), "max_input_tokens must be at least 1, not 0"),
        (own().max_input_tokens(901), "max_input_tokens must be at most the context_window 900"),
        (own().max_output_tokens(0), "max_output_tokens must be at least 1, not 0"),
        (own().calibration(f64::NAN), "calibration must be from 0.01 to 100, not NaN"),
        (own().calibration(0.0), "calibration must be from 0.01 to 100, not 0"),
        (own().calibration(-1.0), "calibration must be from 0.01 to 100, not -1"),
        (own().encoding("nonsense"), "encoding must be one of \"cl100k_base\""),
        (ModelLimits::new("own", 900).calibration(1.2), "calibration needs an encoding"),
    ] {
        let settings = LlmSettings::for_model(limits);
        let error = RetrievalService::new(Fake::default(), settings.clone()).unwrap_err();
        assert_eq!(ErrorKind::InvalidArgument, error.kind());
        assert!(error.to_string().starts_with(message), "{error}");
        let error = service_of(vec![]).set_settings(settings).unwrap_err();
        assert!(error.to_string().starts_with(message), "{error}");
    }
    let wrong = LlmSettings::for_model(ModelLimits::new("own", 0)).counter(Estimate::Words);
    assert!(wrong.limits().is_err());

    let known = LlmSettings::for_model(ModelLimits::new("gpt-4-own", 900)).limits().unwrap();
    assert!(known.counter().is_exact());
    assert_eq!(Encoding::Cl100k.count("緑茶 tea"), known.counter().count("緑茶 tea"));
    let kimi = LlmSettings::for_model(ModelLimits::new("kimi-k2", 900));
    assert_eq!(5, kimi.limits().unwrap().counter().count("Hello, world!"));
    let unknown = LlmSettings::for_model(model_limits("nobody-knows-this")).limits().unwrap();
    assert_eq!((32_768, false), (unknown.context_window, unknown.counter().is_exact()));
    let old = LlmSettings::for_model(model_limits("text-davinci-003")).counter(Estimate::Words);
    assert!(old.limits().is_ok());
}

/// `Debug` output has figures, and neither texts nor queries.
#[test]
fn given_a_result_when_shown_then_it_tells_no_text() {
    let service = service_of(chunks(&["green tea"])).system_prompt("secret prompt");
    let plan = service.plan("secret query").unwrap();
    let retriever = ChunkRetriever::new(chunks(&["green tea"]));
    let before = format!("{plan:?} {service:?} {:?} {:?} {retriever:?}", plan.model(), settings());
    let shown = format!("{before} {:?}", plan.answer(chunks(&["green tea"])).unwrap());

    assert!(shown.contains("gpt-4") && shown.contains("retrieved: 2"));
    for name in ["Plan", "RetrievalService", "ActiveModel", "LlmSettings", "ChunkRetriever"] {
        assert!(shown.contains(&format!("{name} {{ ")), "{shown}");
    }
    assert!(!shown.contains("secret") && !shown.contains("green"), "{shown}");
}

/// A service and the parts of a request are shared between threads.
#[test]
fn given_threads_when_sharing_then_the_types_allow_it() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<RetrievalService>();
    is_shared::<budgeteer::service::Plan<'_>>();
    is_shared::<RetrievalResult>();
    is_shared::<budgeteer::service::ServiceError>();
    is_shared::<LlmSettings>();
    let boxed: Box<dyn Retriever> = Box::new(Fake::new(chunks(&["boxed"])));
    let shared: Arc<dyn Retriever> = Arc::new(Fake::new(chunks(&["shared"])));
    let service = RetrievalService::new(boxed, settings()).unwrap().retriever(shared);
    let text = |service: &RetrievalService| service.retrieve("q").unwrap().packing.text;
    assert_eq!("boxed\n\nshared", text(&service));
    let boxed: Box<dyn Reranker> = Box::new(reversed);
    let service = service.reranker(boxed);
    assert_eq!("shared\n\nboxed", text(&service));
    let shared: Arc<dyn Reranker> = Arc::new(NoOpReranker);
    let service = service.reranker(shared);
    assert_eq!("boxed\n\nshared", text(&service));
    let boxed: Box<dyn Reranker + Send + Sync> = Box::new(reversed);
    let found: Box<dyn Retriever + Send + Sync> = Box::new(Fake::new(chunks(&["found"])));
    assert_eq!("found\n\nshared\n\nboxed", text(&service.retriever(found).reranker(boxed)));
}

/// A shared or boxed counter counts as the one inside.
#[test]
fn given_a_counter_behind_a_pointer_when_setting_it_then_it_counts() {
    let shared: Arc<dyn TokenCounter + Send + Sync> = Arc::new(Encoding::Cl100k);
    let boxed: Box<dyn TokenCounter + Send> = Box::new(Estimate::CharsDiv4);
    assert_eq!(shared.native(), Encoding::Cl100k.native());
    assert_eq!(
        (Some(1), None),
        (boxed.count_till_limit("tea", 1), boxed.count_till_limit("teas.", 1))
    );

    let of = |settings: LlmSettings| {
        let service = RetrievalService::new(Fake::new(chunks(&["日本のお茶"])), settings).unwrap();
        let tokens = service.retrieve("q").unwrap().tokens;
        (tokens.retrieved, tokens.is_exact)
    };
    let count = Encoding::Cl100k.count("日本のお茶");
    assert_eq!((count, true), of(settings().counter(Arc::clone(&shared))));
    assert_eq!((2, false), of(settings().counter(boxed)));
    assert_eq!(
        count,
        Packer::new(9).counter(shared).pack("", &["日本のお茶"]).unwrap().total_tokens
    );
}

fn counter(kind: u8) -> Box<dyn Fn(LlmSettings) -> LlmSettings> {
    Box::new(move |settings| match kind {
        0 => settings.counter(Estimate::CharsDiv4),
        1 => settings.counter(Estimate::Words),
        2 => settings.counter(Encoding::O200k),
        3 => settings.counter(Encoding::Cl100k),
        // This neither adds up nor grows with the text.
        salt => settings.counter(move |text: &str| {
            text.bytes().fold(usize::from(salt), |sum, byte| sum * 31 % 23 + usize::from(byte) % 7)
        }),
    })
}

proptest! {
    /// For every input the messages and the reserve are within the window, or
    /// there is an error that says so.
    #[test]
    fn the_law(
        texts in prop::collection::vec(("[a-c .é日\n]{0,40}", prop::option::of(-2.0_f64..2.0)), 0..20),
        query in "[a-c \n]{0,20}",
        prompt in "[a-c \n]{0,20}",
        kind in 0_u8..9,
        window in 1_usize..120,
        output in 0_usize..40,
        own in prop::option::of((0_usize..90, prop::sample::select(vec![
            Overflow::Skip, Overflow::Stop, Overflow::TruncateEnd, Overflow::TruncateMiddle,
        ]))),
        reverses: bool,
    ) {
        let chunks = texts.into_iter().map(|(text, score)| Chunk { score, ..Chunk::new(text) });
        let settings = LlmSettings::default().context_window(window).max_output_tokens(output);
        let settings = counter(kind)(settings);
        let limits = settings.limits().unwrap();
        let fake = Fake::new(chunks);
        let mut service =
            RetrievalService::new(fake.clone(), settings).unwrap().system_prompt(&*prompt);
        if let Some((max_tokens, overflow)) = own {
            service = service.packer(Packer::new(max_tokens).overflow(overflow));
        }
        if reverses {
            service = service.reranker(reversed);
        }
        match service.retrieve(&query) {
            Err(error) => {
                prop_assert_eq!(ErrorKind::InputValidation, error.kind());
                prop_assert_eq!((0, 1), (fake.calls(), service.stats().rejected));
            }
            Ok(result) => {
                let tokens = result.tokens;
                prop_assert!(in_window(&result, limits.counter()));
                prop_assert_eq!(window - output - tokens.input, tokens.remaining);
                let parts = tokens.system + tokens.query + tokens.retrieved;
                prop_assert_eq!(Some(tokens.input), parts.checked_add_signed(tokens.overhead));
                prop_assert_eq!(chat_messages(&prompt, &result.packing.text, &query), &*result.messages);
                let mut seen = kept(&result);
                seen.extend(result.packing.dropped.iter().map(|dropped| dropped.index));
                seen.sort_unstable();
                prop_assert!(seen.into_iter().eq(0..result.chunks.len()));
            }
        }
    }
}
