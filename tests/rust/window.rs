//! Models, negotiations and messages: the cases that Python must answer alike,
//! and laws that hold for every input.
#![allow(clippy::unwrap_used)] // an unexpected value fails its test

mod cases;

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use budgeteer::window::{
    Memory, ModelLimits, Negotiator, Reserve, count_messages, count_tools, list_models,
    load_models, model_limits, register_model, retrieval_budget, trim_messages,
};
use budgeteer::{
    Detail, Encoding, ErrorKind, Estimate, Image, Layout, Message, Section, TokenCounter, Tool,
    ToolCall, ToolChoice, Trim,
};
use cases::{cases, counter, list, messages, number, tools};
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn models_are_those_of_python() {
    for case in list(&cases("window.json", "models")) {
        let limits = model_limits(case["name"].as_str().unwrap());
        let answer = json!({
            "name": limits.name,
            "context_window": limits.context_window,
            "max_input_tokens": limits.max_input_tokens,
            "max_output_tokens": limits.max_output_tokens,
            "encoding": limits.encoding,
            "calibration": limits.calibration,
            "provider": limits.provider,
            "known": limits.known,
            "source": limits.source,
            "guessed_from": limits.guessed_from,
        });
        assert_eq!(*case, answer);
        assert_eq!(limits.known, limits.clone().strict().is_ok());
    }
}

#[test]
fn models_count_as_they_do_in_python() {
    for case in list(&cases("window.json", "counters")) {
        let counter = model_limits(case["name"].as_str().unwrap()).counter().unwrap();
        let tokens = counter.count(case["text"].as_str().unwrap());
        assert_eq!(case["tokens"], tokens, "{}", case["name"]);
        assert_eq!(case["is_exact"], counter.is_exact(), "{}", case["name"]);
        assert_eq!(case["basis"], format!("{:?}", counter.basis()).to_lowercase(), "{case}");
    }
}

#[test]
fn files_of_litellm_are_read_as_in_python() {
    for case in list(&cases("window.json", "litellm")) {
        let read = load_models(&case["document"].to_string());
        let Value::Array(expected) = &case["models"] else {
            assert_eq!(ErrorKind::InvalidArgument, read.unwrap_err().kind(), "{case}");
            continue;
        };
        let read = read.unwrap();
        assert_eq!(expected.len(), read.len());
        for case in expected {
            let limits = read.iter().find(|limits| case["name"] == limits.name).unwrap();
            assert_eq!(case["context_window"], limits.context_window, "{case}");
            assert_eq!(case["max_input_tokens"], limits.max_input_tokens, "{case}");
            assert_eq!(case["max_output_tokens"], json!(limits.max_output_tokens), "{case}");
            assert_eq!(case["encoding"], json!(limits.encoding), "{case}");
            assert_eq!(case["calibration"], json!(limits.calibration), "{case}");
            assert_eq!(case["provider"], json!(limits.provider), "{case}");
        }
    }
    assert!(!model_limits("case-bad").known);
    let error = load_models(r#"{"case-bad": {"max_tokens": "many"}}"#).unwrap_err();
    assert_eq!(
        "[\"case-bad\"].max_tokens must be a whole number from 0 to 9007199254740992, not \"many\"",
        error.to_string()
    );
}

#[test]
fn a_guess_is_refused_strictly() {
    for (name, message) in [
        ("nobody-knows", "model \"nobody-knows\" is not known; register_model"),
        ("my-gpt-4o-x", "model \"my-gpt-4o-x\" is not known, only \"gpt-4o\" in it; "),
    ] {
        let error = model_limits(name).strict().unwrap_err();
        assert_eq!(ErrorKind::InvalidArgument, error.kind());
        assert!(error.to_string().starts_with(message), "{error}");
    }
}

/// Limits without an encoding, of a name nobody knows, count as an unknown
/// model.
#[test]
fn limits_without_an_encoding_are_estimated() {
    let counter = ModelLimits::new("acme", 9).counter().unwrap();
    assert_eq!((9, false), (counter.count("Hello, world!"), counter.is_exact()));
    assert!(ModelLimits::new("acme", 9).encoding("nope").counter().is_none());
}

#[test]
fn messages_cost_what_they_do_in_python() {
    let all = ["messages", "frames", "media"].map(|kind| cases("window.json", kind));
    for case in all.iter().flat_map(list) {
        let messages = messages(&case["messages"]);
        let counter = counter(&case["counter"]);
        let tokens = count_messages(&messages, &counter, case["model"].as_str());
        assert_eq!(case["tokens"], tokens, "{case}");
        let is_known = |message: &Message| message.is_exact(case["model"].as_str());
        let is_exact = counter.is_exact() && messages.iter().all(is_known);
        assert_eq!(case["is_exact"], is_exact, "{case}");
    }
}

#[test]
fn tools_cost_what_they_do_in_python() {
    for case in list(&cases("window.json", "tools")) {
        let (tools, counter) = (tools(&case["tools"]), counter(&case["counter"]));
        let choice = match case["tool_choice"].as_str().unwrap() {
            "auto" => ToolChoice::Auto,
            "none" => ToolChoice::None,
            name => ToolChoice::Named(name),
        };
        let mut tokens = count_tools(&tools, &counter, case["has_system_message"] == true);
        if !tools.is_empty() {
            tokens += choice.tokens(&counter);
        }
        assert_eq!(case["tokens"], tokens, "{case}");
    }
}

#[test]
fn what_python_refuses_is_refused() {
    let bad = cases("window.json", "bad");
    for message in list(&bad["messages"]) {
        let error = Message::from_json(message.clone()).unwrap_err();
        assert_eq!(ErrorKind::InvalidArgument, error.kind(), "{message}");
    }
    for tool in list(&bad["tools"]) {
        let error = Tool::from_json(tool).unwrap_err();
        assert_eq!(ErrorKind::InvalidArgument, error.kind(), "{tool}");
    }
}

/// Calls `answer` with the negotiator of a case, and returns its result.
fn with_negotiator<R>(case: &Value, answer: impl FnOnce(Negotiator<'_>) -> R) -> R {
    let counter = case["counter"].is_string().then(|| counter(&case["counter"]));
    let tools = case["tools"].as_array().map(|_| tools(&case["tools"])).unwrap_or_default();
    let said = case["messages"].as_array().map(|_| messages(&case["messages"]));
    let memory = |value: &Value| {
        let mut memory = Memory::new(value["content"].as_str().unwrap());
        if let Some(importance) = value["importance"].as_f64() {
            memory = memory.importance(importance);
        }
        value["age_days"].as_f64().map_or(memory.clone(), |days| memory.age_days(days))
    };
    let memories: Vec<Memory> =
        case["memories"].as_array().into_iter().flatten().map(memory).collect();
    let mut one = Negotiator::new(model_limits(case["model"].as_str().unwrap()))
        .tools(&tools)
        .memories(&memories)
        .cap_output(case["cap_output"] == true);
    if let Some(counter) = &counter {
        one = one.counter(counter);
    }
    for (key, value) in case.as_object().unwrap() {
        one = match (key.as_str(), value) {
            ("messages", Value::Number(_)) => one.message_count(number(value)),
            ("messages", _) => one.messages(said.as_deref().unwrap()),
            ("memories", Value::Number(_)) => one.memory_count(number(value)),
            ("system_tokens", Value::String(text)) => one.system(text),
            ("system_tokens", _) => one.system_tokens(number(value)),
            ("safety_margin", Value::String(_)) => one.auto_safety_margin(),
            ("safety_margin", _) => one.safety_margin(number(value)),
            ("min_output_tokens", _) => one.min_output_tokens(number(value)),
            ("tokens_per_message", _) => one.tokens_per_message(number(value)),
            ("max_memory_tokens", _) => one.max_memory_tokens(number(value)),
            ("min_importance", _) => one.min_importance(value.as_f64().unwrap()),
            ("max_memory_age_days", _) => one.max_memory_age_days(value.as_f64().unwrap()),
            _ => one,
        };
    }
    answer(one)
}

#[test]
fn negotiations_are_those_of_python() {
    for case in list(&cases("window.json", "negotiations")) {
        let requested = number(&case["max_output_tokens"]);
        let found = with_negotiator(case, |one| one.negotiate(requested)).unwrap();
        let answer = json!({
            "model": found.model,
            "context_window": found.context_window,
            "input_token_count": found.input_token_count,
            "available_tokens": found.available_tokens,
            "adjusted_max_output_tokens": found.adjusted_max_output_tokens,
            "requested_max_output_tokens": found.requested_max_output_tokens,
            "was_reduced": found.was_reduced,
            "overflows_window": found.overflows_window,
            "message_count": found.message_count,
            "memory_count": found.memory_count,
            "memory_indices": found.memory_indices,
            "safety_margin": found.safety_margin,
            "system_tokens": found.system_tokens,
            "memory_tokens": found.memory_tokens,
            "tool_tokens": found.tool_tokens,
            "is_exact": found.is_exact,
        });
        assert_eq!(case["answer"], answer, "{case}");
        let strict = with_negotiator(case, |one| one.strict(true).negotiate(requested));
        assert_eq!(found.overflows_window, strict.is_err(), "{case}");
    }
}

#[test]
fn safe_message_counts_are_those_of_python() {
    for case in list(&cases("window.json", "safe_message_counts")) {
        let output = case["max_output_tokens"]
            .as_u64()
            .map_or(3_000, |_| number(&case["max_output_tokens"]));
        let count = with_negotiator(case, |one| one.safe_message_count(output));
        assert_eq!(case["count"], count, "{case}");
    }
}

#[test]
fn retrieval_budgets_are_those_of_python() {
    for case in list(&cases("window.json", "retrieval_budgets")) {
        let reserve = Reserve {
            system_tokens: number(&case["system_tokens"]),
            max_output_tokens: number(&case["max_output_tokens"]),
            query_tokens: number(&case["query_tokens"]),
        };
        match retrieval_budget(number(&case["context_window"]), reserve) {
            Ok(tokens) => assert_eq!(case["tokens"], tokens),
            Err(error) => {
                assert_eq!(ErrorKind::InputValidation, error.kind());
                assert_eq!(case["error"], error.to_string());
            }
        }
    }
}

#[test]
fn what_is_registered_goes_over_what_is_shipped() {
    let before = model_limits("o3-pro-2026");
    let own = ModelLimits::new("o3-pro", 7_000).max_input_tokens(6_000).provider("acme");
    let registered = register_model(own).unwrap();
    let found = model_limits("openai/o3-pro-2026");
    assert_eq!(("o3-pro", "openai/o3-pro-2026"), (&*registered.name, &*found.name));
    assert_eq!((7_000, 6_000), (found.context_window, found.max_input_tokens));
    assert_eq!(before.encoding, found.encoding);
    let listed = list_models();
    let places = listed.iter().filter(|limits| limits.name == "o3-pro").count();
    assert_eq!(1, places);
    let stated = register_model(model_limits("my-o3-pro-copy")).unwrap(); // a guess so far
    assert_eq!((true, None), (stated.known, stated.guessed_from));
    assert!(listed.is_sorted_by_key(|limits| (limits.provider.clone(), limits.name.clone())));
}

#[test]
fn wrong_limits_are_refused() {
    let new = || ModelLimits::new("wrong", 100);
    for (limits, words) in [
        (ModelLimits::new("", 100), "name must be a name, not empty"),
        (new().max_input_tokens(101), "max_input_tokens must be at most the context_window 100"),
        (new().max_output_tokens(0), "max_output_tokens must be at least 1, not 0"),
        (new().encoding("hf:x"), "encoding must be one of \"cl100k_base\""),
        (new().encoding("words").calibration(f64::NAN), "calibration must be from 0.01 to 100"),
        (new().calibration(2.0), "calibration needs an encoding"),
    ] {
        let error = register_model(limits).unwrap_err();
        assert_eq!(ErrorKind::InvalidArgument, error.kind());
        assert!(error.to_string().starts_with(words), "{error}");
    }
    assert!(!model_limits("wrong").known);
}

/// Where nothing counts for a model, a stated factor multiplies what an unknown
/// one takes.
#[test]
fn a_stated_factor_is_heeded() {
    let text = "Green tea is mild. ".repeat(50);
    let new = || ModelLimits::new("acme-x", 99);
    for limits in [new(), new().encoding("p50k_edit")] {
        let plain = limits.clone().counter().unwrap().count(&text);
        let dear = limits.calibration(4.0).counter().unwrap().count(&text);
        assert!(dear.abs_diff(4 * plain) <= 4, "{dear} of {plain}");
    }
}

#[test]
fn files_of_models_are_read_whole_or_not_at_all() {
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/budgeteer/_count/models.json");
    let document: Value = serde_json::from_str(&fs::read_to_string(shipped).unwrap()).unwrap();
    let names: Vec<String> = list_models().into_iter().map(|limits| limits.name).collect();
    assert!(document["models"].as_object().unwrap().keys().all(|name| names.contains(name)));
    let file = json!({"models": {"of a file": {"context_window": 9, "max_output_tokens": null}}});
    assert_eq!(9, load_models(&file.to_string()).unwrap()[0].max_input_tokens);
    assert_eq!(9, model_limits("of a file:x").context_window);
    for text in [
        "",
        "{}",
        r#"{"models": []}"#,
        r#"{"models": {"half": {"context_window": 7}, "wrong": 7}}"#,
        r#"{"models": {"half": {"context_window": 7}, "wrong": {}}}"#,
        r#"{"models": {"half": {"context_window": 7}, "wrong": {"context_window": 7.5}}}"#,
        r#"{"models": {"half": {"context_window": 7}, "wrong": {"context_window": 7, "x": 1}}}"#,
    ] {
        assert_eq!(ErrorKind::InvalidArgument, load_models(text).unwrap_err().kind(), "{text}");
    }
    assert!(!model_limits("half").known);
}

/// A part of an unknown type is an estimate that errs high, not an error.
#[test]
fn unknown_parts_are_estimates() {
    for (kind, data, tokens) in [
        ("input_audio", "e".repeat(7), 5_000),
        ("input_audio", "é".repeat(1_600_000), 100_003),
        ("video", "e e ".repeat(7), 5_000),
        ("input_file", "e ".repeat(7), 5_000),
        ("document", "e ".repeat(7_000), 7_005),
        ("server_tool_use", "e ".repeat(7), 12),
    ] {
        let part = json!({"type": kind, "the data": data});
        let message = Message::from_json(json!({"role": "user", "content": [part]})).unwrap();
        assert!(!message.is_exact(None));
        let counted = count_messages(&[message], &Estimate::Words, None);
        assert_eq!(tokens, counted - 7, "{kind}");
    }
    assert!(Message::user("x").is_exact(None));
}

/// A message built from parts costs the same as its JSON.
#[test]
fn typed_messages_cost_what_their_json_does() {
    let call = || ToolCall::new("c1", "weather", r#"{"city": "Oslo"}"#);
    for message in [
        Message::system("Be brief."),
        Message::user("").name("Ada"),
        Message::user("What is this?").part(Image::url("https://a.example").detail(Detail::Low)),
        Message::user("Two.").part("parts"),
        Message::assistant("").tool_call(call()).tool_call(call()),
        Message::tool("c1", "Rain."),
        Message::new("critic", "no"),
    ] {
        let read = Message::from_json(message.to_json()).unwrap();
        for model in [None, Some("gpt-3.5-turbo-0301"), Some("gpt-4o-mini")] {
            let count = |message: &Message| {
                count_messages(std::slice::from_ref(message), &Encoding::O200k, model)
            };
            assert_eq!(count(&message), count(&read));
            let both =
                |message: &Message| message.clone().name("Eve").part("more").tool_call(call());
            assert_eq!(count(&both(&message)), count(&both(&read)), "{message:?}");
        }
        assert_eq!(message.text(), read.text());
        assert_eq!(message.to_json(), read.to_json());
    }
}

/// Messages of every kind, with calls, and results with and without a call.
fn histories() -> impl Strategy<Value = Vec<Message>> {
    let id = || (0..3_u8).prop_map(|id| format!("c{id}"));
    let message = prop_oneof![
        1 => "[a-z ]{0,9}".prop_map(Message::system),
        4 => "[a-z ]{0,40}".prop_map(Message::user),
        3 => "[a-z ]{0,40}".prop_map(Message::assistant),
        1 => "[a-z]{0,9}".prop_map(|name| Message::user("x").name(name)),
        3 => prop::collection::vec(id(), 1..3).prop_map(|ids| {
            ids.into_iter().fold(Message::assistant(""), |message, id| {
                message.tool_call(ToolCall::new(id, "weather", "{}"))
            })
        }),
        4 => (id(), "[a-z ]{0,40}").prop_map(|(id, text)| Message::tool(id, text)),
    ];
    prop::collection::vec(message, 0..14)
}

/// Returns the places of all messages but results without a call.
fn valid(messages: &[Message]) -> Vec<usize> {
    let mut called = Vec::new();
    let is_valid = |&i: &usize| {
        let value = messages[i].to_json();
        let has_calls = ids(&value, "results").iter().all(|id| called.contains(id));
        called.extend(ids(&value, "calls"));
        has_calls
    };
    (0..messages.len()).filter(is_valid).collect()
}

/// Returns the places of the newest message of the user and all behind it, with
/// the calls of all results among them.
fn needed(messages: &[Message]) -> Vec<usize> {
    let mut others = valid(messages);
    others.retain(|&i| !messages[i].is_system());
    let question = others.iter().rposition(|&i| messages[i].role() == "user");
    let mut start = question.unwrap_or(others.len().saturating_sub(1));
    let mut at = others.len();
    while at > start {
        at -= 1;
        for id in ids(&messages[others[at]].to_json(), "results") {
            let calls = |&i: &usize| ids(&messages[i].to_json(), "calls").contains(&id);
            start = start.min(others[..at].iter().rposition(calls).unwrap());
        }
    }
    others.split_off(start)
}

fn ids(message: &Value, key: &str) -> Vec<String> {
    let of_calls = message["tool_calls"].as_array().into_iter().flatten().map(|call| &call["id"]);
    let own = Some(&message["tool_call_id"]);
    let found: Vec<&Value> =
        if key == "calls" { of_calls.collect() } else { own.into_iter().collect() };
    found.into_iter().filter_map(|id| id.as_str().map(str::to_owned)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// A trimmed history fits, and has all system messages, the newest question
    /// with what follows it, and the call of every result.
    #[test]
    fn trimming_holds(messages in histories(), limit in 0..200_usize, start_on_user: bool) {
        for model in [None, Some("gpt-3.5-turbo-0301")] {
            let trim = Trim { model, start_on_user, ..Trim::default() };
            let system: Vec<usize> =
                (0..messages.len()).filter(|&i| messages[i].is_system()).collect();
            let count = |messages: &[Message]| count_messages(messages, &Estimate::Words, model);
            let needed = needed(&messages);
            let trimmed = match trim_messages(&messages, limit, &Estimate::Words, trim) {
                Ok(trimmed) => trimmed,
                Err(error) if error.kind() == ErrorKind::InvalidArgument => {
                    let first = needed.first().map(|&i| messages[i].role());
                    prop_assert!(start_on_user && first != Some("user"));
                    continue;
                }
                Err(error) => {
                    prop_assert_eq!(ErrorKind::BudgetExhausted, error.kind());
                    // Under this counter the marker is a word, and no result is shorter.
                    let short = |&i: &usize| match messages[i].role() {
                        "tool" if !messages[i].text().trim().is_empty() => Message::tool(
                            messages[i].to_json()["tool_call_id"].as_str().unwrap(),
                            "x",
                        ),
                        _ => messages[i].clone(),
                    };
                    let all = system.iter().chain(&needed);
                    let least: Vec<Message> = all.map(short).collect();
                    prop_assert!(count(&least) > limit || start_on_user);
                    continue;
                }
            };
            let kept = &trimmed.places;
            let left: Vec<Message> = trimmed.of(&messages).cloned().collect();
            prop_assert!(count(&left) <= limit);
            prop_assert!(kept.is_sorted_by(|a, b| a < b));
            prop_assert!(system.iter().all(|i| kept.contains(i)));
            prop_assert!(needed.iter().all(|i| kept.contains(i)) || start_on_user);
            for (i, cut) in &trimmed.cut {
                let (was, cut) = (messages[*i].text(), cut.text());
                let (head, tail) = cut.split_once("\n[...truncated...]\n").unwrap();
                prop_assert!(was.starts_with(head) && was.ends_with(tail) && kept.contains(i));
            }
            let mut called = Vec::new();
            for message in &left {
                let value = message.to_json();
                called.extend(ids(&value, "calls"));
                prop_assert!(ids(&value, "results").iter().all(|id| called.contains(id)));
            }
            let first = left.iter().find(|message| !message.is_system());
            prop_assert!(!start_on_user || first.is_none_or(|first| first.role() == "user"));
        }
    }

    /// Turn after turn what is kept fits, begins with what was kept before while
    /// that fits, and stays the same when it is trimmed again.
    #[test]
    fn the_beginning_stays(
        messages in histories(),
        more in histories(),
        limit in 10..200_usize,
        step in prop::option::of(0.01..0.99_f64),
        keep_results in prop::option::of(0..3_usize),
    ) {
        let history = [messages.clone(), more].concat();
        let mut sent: Vec<Message> = Vec::new();
        for end in messages.len()..=history.len() {
            let trim = Trim { previous: Some(&sent), step, keep_results, ..Trim::default() };
            let messages = &history[..end];
            let Ok(trimmed) = trim_messages(messages, limit, &Estimate::Words, trim) else {
                continue;
            };
            let left: Vec<Message> = trimmed.of(messages).cloned().collect();
            let total = count_messages(&left, &Estimate::Words, None);
            prop_assert_eq!(total, trimmed.total_tokens);
            prop_assert!(total <= limit);
            prop_assert!(trimmed.stable_prefix_tokens <= total);
            let again = Trim { previous: Some(&left), ..trim };
            let again = trim_messages(&left, limit, &Estimate::Words, again).unwrap();
            prop_assert_eq!(again.places.len(), left.len());
            prop_assert!(again.cut.is_empty());
            sent = left;
        }
    }

    /// A history that fits as a whole stays, except for results without a call.
    #[test]
    fn trimming_leaves_what_fits(messages in histories()) {
        let trim = Trim::default();
        let kept = trim_messages(&messages, 100_000, &Estimate::Words, trim).unwrap();
        prop_assert!(kept.cut.is_empty());
        let whole = valid(&messages);
        for i in 0..messages.len() {
            prop_assert_eq!(whole.contains(&i), kept.places.contains(&i));
        }
    }

    /// A larger limit keeps no fewer messages.
    #[test]
    fn trimming_is_monotone(messages in histories(), limit in 20..200_usize, more in 0..40_usize) {
        let kept = |limit| {
            let kept = trim_messages(&messages, limit, &Estimate::Words, Trim::default());
            kept.map(|kept| kept.places.len())
        };
        if let Ok(less) = kept(limit) {
            prop_assert!(less <= kept(limit + more).unwrap());
        }
    }

    /// No name panics, and each returns limits with its own name.
    #[test]
    fn every_name_is_answered(name in "(openai/|us\\.|ft:|gpt-4|o3|-|:|@|é|x){0,12}") {
        let limits = model_limits(&name);
        prop_assert_eq!(name, limits.name);
        prop_assert!(limits.known || limits.guessed_from.is_some() || limits.context_window == 32_768);
    }
}

/// An option that is out of range is named, with what is allowed.
#[test]
fn options_of_trimming_are_checked() {
    let messages = [Message::user("a")];
    for (trim, expected) in [
        (Trim { step: Some(0.0), ..Trim::default() }, "step must be above 0 and below 1, not 0.0"),
        (Trim { step: Some(1.0), ..Trim::default() }, "step must be above 0 and below 1, not 1.0"),
        (Trim { step: Some(f64::NAN), ..Trim::default() }, "above 0 and below 1, not NaN"),
        (Trim { pins: &[1], ..Trim::default() }, "pins must be below 1, places of the messages"),
    ] {
        let error = trim_messages(&messages, 9, &Estimate::Words, trim).unwrap_err();
        assert_eq!(ErrorKind::InvalidArgument, error.kind());
        assert!(error.to_string().contains(expected), "{error}");
    }
    let text = Section::text("a", "b").step(0.5);
    let error = Layout::new(9).section(text).fit(&Estimate::Words).unwrap_err();
    assert!(error.to_string().contains("step is for a section of messages"), "{error}");
}

/// Only a breakpoint of Anthropic's shape is one, of a message or of a part.
#[test]
fn cache_breakpoints_are_found() {
    let mark = json!({"type": "ephemeral"});
    for (value, expected) in [
        (json!({"role": "user", "content": "a"}), false),
        (json!({"role": "user", "content": "a", "cache_control": null}), false),
        (json!({"role": "user", "content": "a", "cache_control": mark}), true),
        (json!({"role": "user", "content": [{"text": "a", "cache_control": mark}]}), true),
    ] {
        assert_eq!(expected, Message::from_json(value).unwrap().has_cache_breakpoint());
    }
    assert!(!Message::user("a").has_cache_breakpoint());
}

/// Each text of a message is counted once, and old messages not at all.
#[test]
fn each_message_is_counted_once() {
    let messages: Vec<Message> =
        (0..200).map(|i| Message::user(format!("{i} {}", "x".repeat(90)))).collect();
    let chars = AtomicUsize::new(0);
    let counter = |text: &str| {
        chars.fetch_add(text.len(), Ordering::Relaxed);
        text.len()
    };
    let all: usize = messages.iter().map(|message| message.text().len() + "user".len()).sum();
    let kept = trim_messages(&messages, 1_000_000, &counter, Trim::default()).unwrap();
    assert_eq!(200, kept.places.len());
    assert_eq!(all, chars.swap(0, Ordering::Relaxed));

    // Nine fit, and the tenth is looked at.
    let kept = trim_messages(&messages, 1_003, &counter, Trim::default()).unwrap();
    assert_eq!((191..200).collect::<Vec<_>>(), kept.places);
    assert!(chars.into_inner() <= 10 * ("user".len() + 94));
}
