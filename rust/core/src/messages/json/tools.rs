//! Tools as JSON, in the shapes of the APIs of OpenAI and Anthropic, and their
//! schemas as TypeScript.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::values::{DEEPEST, deeper, is_true, object, string, to_text};
use crate::error::Error;
use crate::messages::Tool;

/// Where a tool's schema says more of its fields, as that of nested structs
/// does in `$defs`.
const BESIDE: [&str; 6] = ["$defs", "definitions", "$ref", "allOf", "anyOf", "oneOf"];

impl Tool {
    /// Reads a tool in the shape of OpenAI (with or without `function` or
    /// `custom` around it) or of Anthropic (`input_schema`). The `format` of a
    /// custom tool counts as its JSON. Only with the feature `json`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for an
    /// unknown shape; the message names the place.
    ///
    /// # Examples
    ///
    /// ```
    /// use budgeteer::Tool;
    /// use serde_json::json;
    ///
    /// let city = json!({"type": "string", "description": "Where"});
    /// let tool = Tool::from_json(&json!({
    ///     "name": "weather",
    ///     "input_schema": {"type": "object", "properties": {"city": city}, "required": ["city"]},
    /// }))?;
    /// let shown = "type weather = (_: {\n// Where\ncity: string,\n}) => any;\n";
    /// assert_eq!(tool.to_string(), shown);
    /// # Ok::<(), budgeteer::Error>(())
    /// ```
    pub fn from_json(value: &Value) -> Result<Self, Error> {
        let mut tool = object("a tool", value)?;
        let stated = |key| tool.get(key).filter(|value: &&Value| !value.is_null());
        let mut around = ["function", "custom"].into_iter();
        if let Some((key, inner)) = around.find_map(|key| Some((key, stated(key)?))) {
            tool = object(key, inner)?;
        }
        let mut read = Self::new(string("name", tool.get("name"))?);
        if let Some(description) = tool.get("description").filter(|value| is_true(value)) {
            read.description = string("description", Some(description))?.into();
        }
        let stated = |key| tool.get(key).filter(|value: &&Value| !value.is_null());
        if let Some(schema) = stated("input_schema").or_else(|| stated("parameters")) {
            read = read.parameters(schema)?;
        }
        if let Some(format) = stated("format") {
            let shown = to_text("format", format)?;
            read.fields = Some(match read.fields {
                Some(fields) => format!("{shown}\n{fields}"),
                None => shown,
            });
        }
        Ok(read)
    }

    /// Sets the parameters, as a JSON Schema. Only with the feature `json`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if it
    /// is not an object, or is nested deeper than 100.
    pub fn parameters(mut self, schema: &Value) -> Result<Self, Error> {
        let fields = object("parameters", schema)?;
        let mut parts = Vec::new();
        if fields.get("properties").is_some_and(is_true) {
            parts.push(render_properties(fields, 0, 0)?);
        }
        let is_beside =
            |(key, value): &(&String, &Value)| BESIDE.contains(&key.as_str()) && is_true(value);
        let beside =
            fields.iter().filter(is_beside).map(|(key, value)| (key.clone(), value.clone()));
        let rest: Map<String, Value> = beside.collect();
        if !rest.is_empty() {
            parts.push(to_text("parameters", &Value::Object(rest))?);
        }
        self.fields = if parts.is_empty() { None } else { Some(parts.join("\n")) };
        Ok(self)
    }
}

fn render_properties(
    schema: &Map<String, Value>,
    indent: usize,
    depth: usize,
) -> Result<String, Error> {
    let needed = schema.get("required").and_then(Value::as_array);
    let mut text = String::new();
    let properties = match schema.get("properties").filter(|value| is_true(value)) {
        Some(properties) => object("properties", properties)?,
        None => &Map::new(),
    };
    let mut line = |shown: String| {
        if !text.is_empty() {
            text.push('\n');
        }
        text.extend(std::iter::repeat_n(' ', indent));
        text += &shown;
    };
    for (name, value) in properties {
        if let Some(description) = value["description"].as_str().filter(|text| !text.is_empty()) {
            line(format!("// {description}"));
        }
        let is_needed = needed.is_some_and(|names| names.iter().any(|other| other == name));
        let mark = if is_needed { "" } else { "?" };
        line(format!("{name}{mark}: {},", render_type(value, None, indent, depth)?));
    }
    Ok(text)
}

/// Returns a schema as a TypeScript type. A schema without one is written as
/// its JSON, which counts rather too high. `kind` overrides the type that the
/// schema states.
fn render_type(
    schema: &Value,
    kind: Option<&Value>,
    indent: usize,
    depth: usize,
) -> Result<String, Error> {
    let place = "parameters";
    if depth > DEEPEST {
        return Err(deeper(place));
    }
    let Value::Object(fields) = schema else { return to_text(place, schema) };
    if let Some(Value::Array(values)) = fields.get("enum") {
        let values: Result<Vec<_>, _> = values.iter().map(|value| to_text(place, value)).collect();
        return Ok(values?.join(" | "));
    }
    let stated = kind.or_else(|| fields.get("type"));
    if let (None, Some(Value::Array(kinds))) = (kind, stated) {
        // Each once: repeated types within one another would double the text at each level.
        let mut seen = HashSet::new();
        let once = kinds.iter().filter(|kind| kind.as_str().is_none_or(|name| seen.insert(name)));
        let shown = once.map(|kind| render_type(schema, Some(kind), indent, depth + 1));
        return Ok(shown.collect::<Result<Vec<_>, _>>()?.join(" | "));
    }
    match stated.and_then(Value::as_str) {
        Some("array") => match fields.get("items").filter(|items| is_true(items)) {
            Some(items) => Ok(render_type(items, None, indent, depth + 1)? + "[]"),
            None => Ok("any[]".into()),
        },
        Some("object") => {
            Ok(format!("{{\n{}\n}}", render_properties(fields, indent + 2, depth + 1)?))
        }
        Some(simple @ ("string" | "number" | "boolean" | "null")) => Ok(simple.into()),
        Some("integer") => Ok("number".into()),
        _ => match kind {
            Some(kind) => {
                let mut fields = fields.clone();
                fields.insert("type".into(), kind.clone());
                to_text(place, &Value::Object(fields))
            }
            None => to_text(place, schema),
        },
    }
}
