//! Messages and tools of any JSON are read or refused, and what is read is what
//! was given. A trimmed history is within its limit by a count of its own, keeps
//! what always stays, and has no result whose call is missing.
#![no_main]

use std::collections::HashSet;

use budgeteer::window::{count_messages, count_tools, trim_messages};
use budgeteer::{ErrorKind, Message, TokenCounter as _, Tool, Trim};
use budgeteer_fuzz::counters::Counter;
use budgeteer_fuzz::json::{message, tool, value};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

const MODELS: [Option<&str>; 6] = [
    None,
    Some("gpt-4o"),
    Some("gpt-3.5-turbo-0301"),
    Some("claude-opus-4-5"),
    Some("qwen3-32b"),
    Some("llama-3.1-8b"),
];

fuzz_target!(|data: &[u8]| {
    let _ = run(&mut Unstructured::new(data));
});

fn run(input: &mut Unstructured<'_>) -> Result<()> {
    let counter = input.arbitrary::<Counter>()?.make();
    let model = *input.choose(&MODELS)?;
    let limit = usize::from(input.arbitrary::<u16>()? % 600);
    let (keep_results, start_on_user): (Option<u8>, bool) =
        (input.arbitrary()?, input.arbitrary()?);
    let step = input.arbitrary::<Option<u8>>()?.map(|step| f64::from(step) / 128.0);
    let pins: Vec<usize> = match input.ratio(1, 3)? {
        true => vec![input.int_in_range(0..=9)?],
        false => Vec::new(),
    };
    let mut messages = Vec::new();
    for _ in 0..input.int_in_range(0..=10_u8)? {
        let value = message(input)?;
        match Message::from_json(value.clone()) {
            Ok(message) => {
                assert_eq!(value, message.to_json());
                messages.push(message);
            }
            Err(error) => assert_eq!(ErrorKind::InvalidArgument, error.kind(), "{error}"),
        }
    }
    let tools: Vec<Tool> = match tool(input) {
        Ok(tool) => Tool::from_json(&tool).into_iter().collect(),
        Err(_) => Vec::new(),
    };
    let _ = count_tools(&tools, &counter, true);
    if let Ok(schema) = value(input) {
        let _ = Tool::new("find").parameters(&schema);
    }
    let _ = count_messages(&messages, &counter, model);
    let mut previous = None;
    for _ in 0..2 {
        let trim = Trim {
            model,
            start_on_user,
            previous: previous.as_deref(),
            step,
            keep_results: keep_results.map(usize::from),
            pins: &pins,
        };
        match trim_messages(&messages, limit, &counter, trim) {
            Ok(trimmed) => {
                let kept: Vec<Message> = trimmed.of(&messages).cloned().collect();
                assert!(trimmed.total_tokens <= limit, "{} over {limit}", trimmed.total_tokens);
                assert_eq!(count_messages(&kept, &counter, model), trimmed.total_tokens);
                assert!(trimmed.places.is_sorted_by(|one, other| one < other));
                assert!(
                    pins.iter().all(|pin| trimmed.places.contains(pin) || !is_whole(&messages))
                );
                assert_results(&kept);
                for message in &kept {
                    Message::from_json(message.to_json()).expect("a cut message is one");
                }
                previous = Some(kept);
            }
            Err(error) => assert!(
                [ErrorKind::InvalidArgument, ErrorKind::BudgetExhausted].contains(&error.kind())
            ),
        }
    }
    let _ = counter.basis();
    Ok(())
}

/// Whether there are no results, of which one without a call is left out even if
/// it is pinned.
fn is_whole(messages: &[Message]) -> bool {
    let values: Vec<Value> = messages.iter().map(Message::to_json).collect();
    let is_result = |value: &Value| value["role"] == "tool" || value["role"] == "function";
    values.iter().all(|value| !is_result(value) && parts(value, "tool_result").count() == 0)
}

/// Each result has its call in front, or in its own message. The system's always
/// stay, whatever is in them.
fn assert_results(messages: &[Message]) {
    let mut called = HashSet::new();
    for message in messages {
        let value = message.to_json();
        if value["role"] == "system" || value["role"] == "developer" {
            continue;
        }
        called.extend(calls(&value));
        for result in results(&value) {
            assert!(called.contains(&result), "no call for {result}: {messages:?}");
        }
    }
}

fn parts<'a>(value: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    let parts = value["content"].as_array().into_iter().flatten();
    parts.filter(move |part| part["type"] == kind)
}

fn results(value: &Value) -> Vec<String> {
    let own = (value["role"] == "tool").then(|| &value["tool_call_id"]);
    let all = own.into_iter().chain(parts(value, "tool_result").map(|part| &part["tool_use_id"]));
    all.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn calls(value: &Value) -> Vec<String> {
    let calls = value["tool_calls"].as_array().into_iter().flatten();
    let all = calls.chain(parts(value, "tool_use")).map(|call| &call["id"]);
    all.filter_map(Value::as_str).map(str::to_owned).collect()
}
