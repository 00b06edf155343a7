//! The cases that both languages must answer alike. Python writes them; this
//! reads them.
#![allow(dead_code)] // not every test uses all of it
#![allow(clippy::unwrap_used)] // a case that cannot be read fails its test

use std::fs;
use std::path::Path;

use budgeteer::window::{ModelCounter, ModelLimits};
#[cfg(feature = "json")]
use budgeteer::{Message, Tool};
use serde_json::Value;

pub(crate) fn cases(file: &str, kind: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases").join(file);
    let mut cases: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    cases[kind].take()
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

pub(crate) fn number(value: &Value) -> usize {
    usize::try_from(value.as_u64().expect("a natural number")).unwrap()
}

pub(crate) fn counter(name: &Value) -> ModelCounter {
    let name = name.as_str().unwrap_or("chars_div4").to_owned();
    ModelLimits::new("any", 1).encoding(name).counter().expect("a counter")
}

#[cfg(feature = "json")]
pub(crate) fn messages(value: &Value) -> Vec<Message> {
    let read = |message: &Value| Message::from_json(message.clone()).unwrap();
    list(value).iter().map(read).collect()
}

#[cfg(feature = "json")]
pub(crate) fn tools(value: &Value) -> Vec<Tool> {
    list(value).iter().map(|tool| Tool::from_json(tool).unwrap()).collect()
}
