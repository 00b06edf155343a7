//! JSON values, and messages and tools near to what providers send.

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use serde_json::{Map, Value, json};

use crate::words::Words;

/// Keys and words that some reader knows.
const KNOWN: [&str; 56] = [
    "role",
    "content",
    "text",
    "type",
    "tool_calls",
    "tool_call_id",
    "function",
    "name",
    "arguments",
    "id",
    "input",
    "tool_use",
    "tool_result",
    "tool_use_id",
    "function_call",
    "image_url",
    "url",
    "detail",
    "image",
    "source",
    "data",
    "media_type",
    "base64",
    "thinking",
    "refusal",
    "input_text",
    "output_text",
    "cache_control",
    "user",
    "assistant",
    "system",
    "developer",
    "tool",
    "parameters",
    "properties",
    "required",
    "enum",
    "items",
    "anyOf",
    "description",
    "string",
    "integer",
    "number",
    "object",
    "array",
    "boolean",
    "null",
    "$ref",
    "$defs",
    "default",
    "input_audio",
    "document",
    "file",
    "video_url",
    "index",
    "status",
];

/// How deep a value may be.
const DEEPEST: u8 = 6;

/// Returns an arbitrary value.
///
/// # Errors
///
/// What `arbitrary` cannot make of the input.
pub fn value(input: &mut Unstructured<'_>) -> Result<Value> {
    value_within(input, DEEPEST)
}

fn value_within(input: &mut Unstructured<'_>, depth: u8) -> Result<Value> {
    Ok(match input.int_in_range(0..=if depth == 0 { 5_u8 } else { 7 })? {
        0 => Value::Null,
        1 => input.arbitrary::<bool>()?.into(),
        2 => input.arbitrary::<i16>()?.into(),
        3 => Value::from(input.arbitrary::<f64>()?),
        4 => known(input)?.into(),
        5 => input.arbitrary::<Words>()?.0.into(),
        6 => {
            let count = input.int_in_range(0..=4_u8)?;
            (0..count).map(|_| value_within(input, depth - 1)).collect::<Result<Vec<_>>>()?.into()
        }
        _ => {
            let mut object = Map::new();
            for _ in 0..input.int_in_range(0..=4_u8)? {
                object.insert(known(input)?.to_owned(), value_within(input, depth - 1)?);
            }
            object.into()
        }
    })
}

fn known(input: &mut Unstructured<'_>) -> Result<&'static str> {
    Ok(KNOWN[usize::from(input.arbitrary::<u8>()?) % KNOWN.len()])
}

/// Returns a message of some provider, of which a part may be anything.
///
/// # Errors
///
/// What `arbitrary` cannot make of the input.
pub fn message(input: &mut Unstructured<'_>) -> Result<Value> {
    let id = format!("c{}", input.int_in_range(0..=3_u8)?);
    let Words(text) = input.arbitrary()?;
    let mut message = match input.int_in_range(0..=11_u8)? {
        0 => json!({"role": "system", "content": text}),
        1 | 2 => json!({"role": "user", "content": text}),
        3 => json!({"role": "user", "content": [{"type": "text", "text": text},
            {"type": "image_url", "image_url": {"url": "https://x.org/a.png"}}]}),
        4 => json!({"role": "assistant", "content": text}),
        5 => json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type":
            "function", "function": {"name": "find", "arguments": text}}]}),
        6 => json!({"role": "tool", "tool_call_id": id, "content": text}),
        7 => json!({"role": "assistant", "content": [{"type": "text", "text": text},
            {"type": "tool_use", "id": id, "name": "find", "input": {"text": "tea"}}]}),
        8 => json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id,
            "content": text}]}),
        9 => json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id,
            "content": [{"type": "text", "text": text}]}, {"type": "text", "text": "Go on."}]}),
        10 => json!({"role": "developer", "content": [{"type": "text", "text": text,
            "cache_control": {"type": "ephemeral"}}]}),
        _ => value(input)?,
    };
    if input.ratio(1, 6)? && message.is_object() {
        message[known(input)?] = value(input)?;
    }
    Ok(message)
}

/// Returns a tool, of which a part may be anything.
///
/// # Errors
///
/// What `arbitrary` cannot make of the input.
pub fn tool(input: &mut Unstructured<'_>) -> Result<Value> {
    let Words(text) = input.arbitrary()?;
    let schema = match input.arbitrary()? {
        true => value(input)?,
        false => json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "string", "description": text, "enum": ["x", "y"]},
            "b": {"type": "array", "items": {"type": "integer"}}}}),
    };
    Ok(match input.int_in_range(0..=2_u8)? {
        0 => json!({"type": "function", "function": {"name": "find", "description": text,
            "parameters": schema}}),
        1 => json!({"name": "find", "description": text, "input_schema": schema}),
        _ => value(input)?,
    })
}
