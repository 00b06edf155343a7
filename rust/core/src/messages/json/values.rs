//! Values of JSON: as the text that a model is shown, and of the type that is
//! expected.

use serde_json::{Map, Value};

use crate::error::Error;

/// How deep values may be nested.
pub(super) const DEEPEST: usize = 100;

/// Returns a value as the JSON that a model is shown. It is written as by
/// Python, with a space behind each colon and comma.
pub(super) fn to_text(place: &str, value: &Value) -> Result<String, Error> {
    let mut text = String::new();
    write(place, value, &mut text, 0)?;
    Ok(text)
}

fn write(place: &str, value: &Value, text: &mut String, depth: usize) -> Result<(), Error> {
    if depth > DEEPEST {
        return Err(deeper(place));
    }
    match value {
        Value::Array(values) => {
            text.push('[');
            for (i, value) in values.iter().enumerate() {
                *text += if i > 0 { ", " } else { "" };
                write(place, value, text, depth + 1)?;
            }
            text.push(']');
        }
        Value::Object(fields) => {
            text.push('{');
            for (i, (key, value)) in fields.iter().enumerate() {
                *text += if i > 0 { ", " } else { "" };
                *text += &Value::from(key.as_str()).to_string();
                *text += ": ";
                write(place, value, text, depth + 1)?;
            }
            text.push('}');
        }
        Value::Number(number) if number.is_f64() => {
            *text += &float(number.as_f64().unwrap_or_default());
        }
        _ => *text += &value.to_string(),
    }
    Ok(())
}

/// Returns a float as Python writes it.
fn float(number: f64) -> String {
    let scientific = format!("{number:e}");
    let exponent = scientific.split_once('e').and_then(|(_, power)| power.parse::<i32>().ok());
    match (exponent, scientific.split_once('e')) {
        (Some(power), Some((digits, _))) if !(-4..16).contains(&power) => {
            let sign = if power < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", power.unsigned_abs())
        }
        _ => format!("{number:?}"),
    }
}

/// Returns whether a value is true in Python.
pub(super) fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(values) => !values.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

pub(super) fn object<'a>(place: &str, value: &'a Value) -> Result<&'a Map<String, Value>, Error> {
    value.as_object().ok_or_else(|| wrong(place, "an object", Some(value)))
}

pub(super) fn string<'a>(place: &str, value: Option<&'a Value>) -> Result<&'a str, Error> {
    value.and_then(Value::as_str).ok_or_else(|| wrong(place, "a string", value))
}

#[cold]
pub(super) fn wrong(place: &str, allowed: &str, value: Option<&Value>) -> Error {
    Error::limit(place, allowed, kind_of(value))
}

#[cold]
pub(super) fn deeper(place: &str) -> Error {
    Error::shape(format!("{place:.200} is nested deeper than {DEEPEST}"))
}

/// Returns the name of a value's type.
fn kind_of(value: Option<&Value>) -> &'static str {
    match value {
        None => "missing",
        Some(Value::Null) => "null",
        Some(Value::Bool(_)) => "a boolean",
        Some(Value::Number(_)) => "a number",
        Some(Value::String(_)) => "a string",
        Some(Value::Array(_)) => "a list",
        Some(Value::Object(_)) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_those_of_python() {
        for (number, text) in [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e-7, "1.5e-07"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (123_456.789, "123456.789"),
            (f64::MAX, "1.7976931348623157e+308"),
            (5e-324, "5e-324"),
        ] {
            assert_eq!(text, float(number));
        }
    }
    #[test]
    fn values_are_those_of_python() {
        let value = serde_json::json!({"a": [1, 1e20, 1e-5, "t\u{e9}a", null, true], "b": {}});
        let text = r#"{"a": [1, 1e+20, 1e-05, "t\u{e9}a", null, true], "b": {}}"#;
        assert_eq!(text.replace("\\u{e9}", "\u{e9}"), to_text("here", &value).unwrap_or_default());
    }

    #[test]
    fn an_error_names_the_type() {
        let values = serde_json::json!([null, true, 1.5, "a", [1], {"a": 1}]);
        let names = ["null", "a boolean", "a number", "a string", "a list", "an object"];
        for (value, name) in values.as_array().into_iter().flatten().zip(names) {
            let error = wrong("here", "tea", Some(value)).to_string();
            assert!(error.starts_with("here") && error.ends_with(name), "{error}");
        }
        assert!(wrong("here", "tea", None).to_string().ends_with("missing"));
    }
}
