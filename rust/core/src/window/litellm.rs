//! What litellm's file of models states, as the fields of `load_models`.
//!
//! The rules are those of `_count/litellm.py` of the Python package, which has
//! their reasons.

use serde_json::{Map, Value};

use crate::error::Error;

const MODES: [&str; 5] = ["chat", "completion", "responses", "embedding", "rerank"];

const MAX: u64 = 1 << 53;
const DIGITS: usize = 16;

/// Returns whether a document has the form of litellm's file.
pub(super) fn is_litellm(document: &Map<String, Value>) -> bool {
    const KEYS: [&str; 3] = ["litellm_provider", "max_input_tokens", "max_tokens"];
    let states = |entry: &Value| KEYS.iter().any(|key| entry.get(key).is_some());
    !document.contains_key("models") && document.values().any(states)
}

/// Returns the fields of each entry that has text and states a window.
///
/// # Errors
///
/// A value that cannot be; the message names the entry and the key.
pub(super) fn entries(document: &Map<String, Value>) -> Result<Map<String, Value>, Error> {
    let mut read = Map::new();
    for (name, entry) in document.iter().filter(|(name, _)| *name != "sample_spec") {
        let fields =
            limits(entry).map_err(|error| Error::shape(format!("[{name:.80?}].{error}")))?;
        if let Some(fields) = fields {
            read.insert(name.clone(), Value::Object(fields));
        }
    }
    Ok(read)
}

fn limits(entry: &Value) -> Result<Option<Map<String, Value>>, String> {
    if !entry.get("mode").is_none_or(|mode| MODES.iter().any(|known| mode == known)) {
        return Ok(None);
    }
    let output = tokens(entry, "max_output_tokens")?;
    let known = match tokens(entry, "max_input_tokens")? {
        // It is both, where only it is stated.
        None if output.is_none() => tokens(entry, "max_tokens")?,
        known => known,
    };
    let Some(known) = known.filter(|&known| known != 0) else {
        return Ok(None);
    };
    let provider = match entry.get("litellm_provider") {
        None | Some(Value::Null) => None,
        Some(Value::String(provider)) => Some(provider.as_str()),
        Some(_) => return Err("litellm_provider must be a string".into()),
    };
    let total = window(provider, known, output);
    let mut fields = Map::new();
    // Any other is no limit.
    if let Some(output) = output.filter(|output| (1..total).contains(output)) {
        fields.insert("max_output_tokens".into(), output.into());
    }
    fields.insert("context_window".into(), total.into());
    fields.insert("max_input_tokens".into(), known.into());
    if let Some(provider) = provider {
        fields.insert("provider".into(), provider.into());
    }
    Ok(Some(fields))
}

/// Returns a number of tokens, which some entries state as a text.
fn tokens(entry: &Value, key: &str) -> Result<Option<u64>, String> {
    let value = match entry.get(key) {
        None | Some(Value::Null) => return Ok(None),
        Some(value) => value,
    };
    let number = match value.as_str() {
        Some(text) if text.len() < DIGITS && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            text.parse().ok()
        }
        _ => value.as_u64(),
    };
    let number = number.filter(|&number| number <= MAX);
    let wrong = || format!("{key} must be a whole number from 0 to {MAX}, not {value:.80}");
    number.map(Some).ok_or_else(wrong)
}

/// Returns the window of input and answer for the tokens of the input.
fn window(provider: Option<&str>, known: u64, output: Option<u64>) -> u64 {
    match provider {
        Some("openai" | "azure")
            if matches!(known, 272_000 | 922_000) && output == Some(128_000) =>
        {
            known + 128_000
        }
        Some("dashscope") if known > 500_000 => known.div_ceil(1_000_000).saturating_mul(1_000_000),
        Some("dashscope") => known.next_power_of_two(),
        _ => known,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_number_of_tokens_is_a_number_or_its_digits() {
        for (value, expected) in [
            (json!({}), Ok(None)),
            (json!({"max_tokens": null}), Ok(None)),
            (json!({"max_tokens": 4096}), Ok(Some(4_096))),
            (json!({"max_tokens": "4096"}), Ok(Some(4_096))),
            (json!({"max_tokens": MAX}), Ok(Some(MAX))),
            (json!({"max_tokens": "0".repeat(DIGITS - 1)}), Ok(Some(0))),
        ] {
            assert_eq!(expected, tokens(&value, "max_tokens"));
        }
        for value in [
            json!("0".repeat(DIGITS)),
            json!("+4096"),
            json!(" 4096"),
            json!(""),
            json!(-1),
            json!(1.5),
            json!(MAX + 1),
            json!([]),
        ] {
            assert!(tokens(&json!({"max_tokens": value}), "max_tokens").is_err(), "{value}");
        }
    }
}
