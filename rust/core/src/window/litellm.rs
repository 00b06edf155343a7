//! What litellm's file of models states, as the fields of `load_models`.
//!
//! The rules are those of `_count/litellm.py` of the Python package, which has
//! their reasons.

use serde_json::{Map, Value};

const MODES: [&str; 5] = ["chat", "completion", "responses", "embedding", "rerank"];

/// Returns whether a document has the form of litellm's file.
pub(super) fn is_litellm(document: &Map<String, Value>) -> bool {
    const KEYS: [&str; 3] = ["litellm_provider", "max_input_tokens", "max_tokens"];
    let states = |entry: &Value| KEYS.iter().any(|key| entry.get(key).is_some());
    !document.contains_key("models") && document.values().any(states)
}

/// Returns the fields of each entry that has text and states a window.
pub(super) fn entries(document: &Map<String, Value>) -> Map<String, Value> {
    let stated = document.iter().filter(|(name, _)| *name != "sample_spec");
    stated.filter_map(|(name, entry)| Some((name.clone(), Value::Object(limits(entry)?)))).collect()
}

fn limits(entry: &Value) -> Option<Map<String, Value>> {
    let get = |key: &str| entry.get(key).filter(|value| !value.is_null());
    if !entry.get("mode").is_none_or(|mode| MODES.iter().any(|known| mode == known)) {
        return None;
    }
    let output = get("max_output_tokens");
    // It is both, where only it is stated.
    let both = || output.is_none().then(|| get("max_tokens"))?;
    let known = get("max_input_tokens").or_else(both).filter(|known| **known != 0)?;
    let provider = get("litellm_provider");
    let total = match known.as_u64() {
        Some(tokens) => window(provider.and_then(Value::as_str), tokens, output).into(),
        None => known.clone(), // refused when it is read
    };
    let mut fields = Map::new();
    // Any other is no limit.
    let is_limit = |output: &&Value| match (output.as_u64(), total.as_u64()) {
        (Some(output), Some(total)) => (1..total).contains(&output),
        _ => true,
    };
    if let Some(output) = output.filter(is_limit) {
        fields.insert("max_output_tokens".into(), output.clone());
    }
    fields.insert("context_window".into(), total);
    fields.insert("max_input_tokens".into(), known.clone());
    if let Some(provider) = provider {
        fields.insert("provider".into(), provider.clone());
    }
    Some(fields)
}

/// Returns the window of input and answer for the tokens of the input.
fn window(provider: Option<&str>, known: u64, output: Option<&Value>) -> u64 {
    match provider {
        Some("openai" | "azure")
            if matches!(known, 272_000 | 922_000) && output.is_some_and(|n| *n == 128_000) =>
        {
            known + 128_000
        }
        Some("dashscope") if known > 500_000 => known.div_ceil(1_000_000).saturating_mul(1_000_000),
        Some("dashscope") => known.next_power_of_two(),
        _ => known,
    }
}
