//! Messages as JSON, in the shapes of the APIs of OpenAI and Anthropic.

pub(super) mod media;
mod tools;
mod values;

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use self::values::{DEEPEST, deeper, object, string, to_text, wrong};
use super::history::Links;
use super::{Body, Message, Part, Piece, ToolCall, is_result};
use crate::error::Error;
use crate::images::{Detail, Image, size_of_base64, size_of_url};

/// The parts that are text, and the key that holds it.
const TEXT_PARTS: [(&str, &str); 5] = [
    ("text", "text"),
    ("input_text", "text"),
    ("output_text", "text"),
    ("refusal", "refusal"),
    ("thinking", "thinking"),
];

/// The fields of a message as an API answers it that are not of its text.
const RECEIVED: [&str; 8] =
    ["id", "status", "phase", "type", "model", "usage", "stop_reason", "stop_sequence"];

type Visit<'a> = &'a mut dyn FnMut(Piece<'_>) -> bool;

impl Message {
    /// Reads a message in the shape of the APIs of OpenAI and Anthropic. Only
    /// with the feature `json`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for an
    /// unknown shape; the message names the place.
    ///
    /// # Examples
    ///
    /// ```
    /// use budgeteer::Message;
    /// use serde_json::json;
    ///
    /// let message = Message::from_json(json!({"role": "user", "content": "Hello!"}))?;
    /// assert_eq!((message.role(), &*message.text()), ("user", "Hello!"));
    ///
    /// let error = Message::from_json(json!({"content": "Hello!"})).unwrap_err();
    /// assert_eq!(error.to_string(), "role must be a string, not missing");
    /// # Ok::<(), budgeteer::Error>(())
    /// ```
    pub fn from_json(value: Value) -> Result<Self, Error> {
        visit(&value, &mut |_| true)?;
        Ok(Self(Body::Json(value)))
    }

    /// Returns the message in the shape of OpenAI's API, or as it was read.
    ///
    /// # Examples
    ///
    /// ```
    /// use budgeteer::Message;
    /// use serde_json::json;
    ///
    /// let message = json!({"role": "user", "content": "Hello!"});
    /// assert_eq!(Message::user("Hello!").to_json(), message);
    /// ```
    #[must_use]
    pub fn to_json(&self) -> Value {
        let typed = match &self.0 {
            Body::Typed(typed) => typed,
            Body::Json(value) => return value.clone(),
        };
        let content = match &*typed.content {
            [Part::Text(text)] if text.is_empty() && !typed.tool_calls.is_empty() => Value::Null,
            [Part::Text(text)] => text.as_str().into(),
            parts => parts.iter().map(part_to_json).collect(),
        };
        let mut value = json!({"role": typed.role, "content": content});
        if let Some(name) = &typed.name {
            value["name"] = name.as_str().into();
        }
        for call in &typed.tool_calls {
            add_call(&mut value, call);
        }
        if let Some(id) = &typed.tool_call_id {
            value["tool_call_id"] = id.as_str().into();
        }
        value
    }
}

impl TryFrom<Value> for Message {
    type Error = Error;

    fn try_from(value: Value) -> Result<Self, Error> {
        Self::from_json(value)
    }
}

impl From<&Message> for Value {
    fn from(message: &Message) -> Self {
        message.to_json()
    }
}

fn part_to_json(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Image(image) => {
            let mut fields = json!({"url": image.url});
            let detail = Detail::NAMES.iter().find(|(detail, _)| *detail == image.detail);
            if let Some((_, name)) = detail.filter(|_| image.detail != Detail::Auto) {
                fields["detail"] = (*name).into();
            }
            json!({"type": "image_url", "image_url": fields})
        }
    }
}

/// Adds a part to the content of a message in JSON.
pub(super) fn add_part(message: &mut Value, part: &Part) {
    let content = &mut message["content"];
    if !content.is_array() {
        *content = match content.take() {
            Value::String(text) => json!([{"type": "text", "text": text}]),
            _ => json!([]),
        };
    }
    content.as_array_mut().expect("it was made one").push(part_to_json(part));
}

/// Adds a tool call to a message in JSON.
pub(super) fn add_call(message: &mut Value, call: &ToolCall) {
    let ToolCall { id, name, arguments } = call;
    let function = json!({"name": name, "arguments": arguments});
    let call = json!({"id": id, "type": "function", "function": function});
    match &mut message["tool_calls"] {
        Value::Array(calls) => calls.push(call),
        calls => *calls = json!([call]),
    }
}

/// Returns the texts of the content of a message in JSON.
pub(super) fn texts(message: &Value) -> Vec<&str> {
    match &message["content"] {
        Value::String(text) => vec![text],
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part.as_str().or_else(|| part[text_key(part)?].as_str()))
            .collect(),
        _ => Vec::new(),
    }
}

/// Returns the id of each tool call in a message; None for one without an id.
pub(super) fn calls(message: &Value) -> Vec<Option<&str>> {
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    let mut keys: Vec<_> = calls.map(|call| call["id"].as_str()).collect();
    if !message["function_call"].is_null() {
        keys.push(None);
    }
    keys.extend(ids_of_parts(message, "tool_use", "id"));
    keys
}

/// Returns the id of the call of each result in a message; None for one without
/// an id.
pub(super) fn results(message: &Value) -> Vec<Option<&str>> {
    let is_own = message["role"].as_str().is_some_and(is_result);
    let own = is_own.then(|| message["tool_call_id"].as_str());
    own.into_iter().chain(ids_of_parts(message, "tool_result", "tool_use_id")).collect()
}

fn ids_of_parts<'a>(
    message: &'a Value,
    kind: &'static str,
    key: &'static str,
) -> impl Iterator<Item = Option<&'a str>> {
    let parts = message["content"].as_array().into_iter().flatten();
    parts.filter(move |part| part["type"] == kind).map(move |part| part[key].as_str())
}

/// The kinds of calls that the provider runs.
const RUN_BY_PROVIDER: [&str; 2] = ["server_tool_use", "mcp_tool_use"];

/// Returns what ties a message to other messages of the model.
pub(super) fn links(message: &Value) -> Links<'_> {
    let (mut asks, mut answers, mut callers) = (Vec::new(), Vec::new(), Vec::new());
    if message["role"] != "assistant" {
        return Links::default();
    }
    let parts = ["content", "tool_calls"].map(|key| message[key].as_array());
    for part in parts.into_iter().flatten().flatten() {
        let kind = part["type"].as_str().unwrap_or_default();
        if RUN_BY_PROVIDER.contains(&kind) {
            asks.extend(part["id"].as_str());
        } else if kind.ends_with("_tool_result") {
            answers.extend(part["tool_use_id"].as_str());
        }
        // Where a call by a program has the id of that program, Anthropic's key
        // and OpenAI's.
        callers
            .extend(["tool_id", "caller_id"].iter().filter_map(|key| part["caller"][key].as_str()));
    }
    let [asked, answered] = [&asks, &answers].map(|keys| HashSet::<&str>::from_iter(keys.clone()));
    asks.retain(|key| !answered.contains(key));
    answers.extend(callers);
    answers.retain(|key| !asked.contains(key));
    Links { asks, needs: answers }
}

/// Returns whether a message of the user holds more than tool results.
pub(super) fn has_more_than_results(message: &Value) -> bool {
    let results = ids_of_parts(message, "tool_result", "tool_use_id").count();
    results == 0 || message["content"].as_array().is_some_and(|parts| results < parts.len())
}

/// Sets the texts of the tool results of a message, in their order.
pub(super) fn set_results(message: &mut Value, texts: &mut dyn Iterator<Item = &str>) {
    let is_own = message["role"].as_str().is_some_and(is_result);
    set_texts(&mut message["content"], texts, is_own);
}

/// Sets each tool result of a message to a text.
pub(super) fn mask_results(message: &mut Value, text: &str) {
    if message["role"].as_str().is_some_and(is_result) {
        message["content"] = text.into();
    } else if let Some(parts) = message["content"].as_array_mut() {
        for part in parts.iter_mut().filter(|part| part["type"] == "tool_result") {
            part["content"] = text.into();
        }
    }
}

/// Returns a message without those of its results that do not stay; None where
/// it is one of them, or nothing is left.
pub(super) fn without_results(message: &Value, stays: &[bool]) -> Option<Value> {
    let is_own = message["role"].as_str().is_some_and(is_result);
    let mut stays = stays.iter().copied();
    if is_own && stays.next() == Some(false) {
        return None;
    }
    let mut message = message.clone();
    let parts = message["content"].as_array_mut()?;
    parts.retain(|part| part["type"] != "tool_result" || stays.next() == Some(true));
    (!parts.is_empty()).then_some(message)
}

/// Returns whether a message, or a part of it, has a cache breakpoint.
pub(super) fn has_breakpoint(message: &Value) -> bool {
    let parts = message["content"].as_array();
    !message["cache_control"].is_null() || parts.into_iter().flatten().any(has_breakpoint)
}

fn set_texts(content: &mut Value, texts: &mut dyn Iterator<Item = &str>, is_own: bool) {
    match content {
        Value::String(text) if is_own => texts.next().unwrap_or_default().clone_into(text),
        Value::Array(parts) => parts.iter_mut().for_each(|part| {
            if let Some(key) = text_key(part) {
                set_texts(&mut part[key], texts, is_own);
            } else if part["type"] == "tool_result" {
                if let Some(inner) = part.get_mut("content") {
                    set_texts(inner, texts, true);
                }
            } else if part.is_string() {
                set_texts(part, texts, is_own);
            }
        }),
        _ => {}
    }
}

/// Calls `visit` with every piece of a message that costs tokens, until that
/// returns false. Returns whether all pieces were visited.
pub(super) fn visit(message: &Value, visit: Visit<'_>) -> Result<bool, Error> {
    let fields = object("a message", message)?;
    let role = string("role", fields.get("role"))?;
    let is_own = is_result(role);
    if fields.get("name").is_some_and(|name| !name.is_null()) && !visit(Piece::Name) {
        return Ok(false);
    }
    let is_received = fields.get("type").is_some_and(|kind| kind == "message");
    for (key, value) in fields {
        let goes_on = match key.as_str() {
            key if is_received && RECEIVED.contains(&key) => true,
            "content" => visit_content("content", value, visit, is_own, 0)?,
            "role" => visit(Piece::Role(role)),
            "tool_calls" | "function_call" => {
                visit(Piece::Calls(calls_in(value))) && visit_texts(key, value, visit, 0)?
            }
            _ => visit_texts(key, value, visit, 0)?,
        };
        if !goes_on {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the number of calls in a field that holds them.
fn calls_in(value: &Value) -> usize {
    match value {
        Value::Null => 0,
        Value::Array(calls) => calls.len(),
        _ => 1,
    }
}

/// Visits every text in a value; numbers and booleans as their JSON.
fn visit_texts(place: &str, value: &Value, visit: Visit<'_>, depth: usize) -> Result<bool, Error> {
    let mut each = |values: &mut dyn Iterator<Item = &Value>| {
        if depth > DEEPEST {
            return Err(deeper(place));
        }
        for value in values {
            if !visit_texts(place, value, visit, depth + 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    };
    match value {
        Value::String(text) => Ok(visit(Piece::Text(text))),
        Value::Object(fields) => each(&mut fields.values()),
        Value::Array(values) => each(&mut values.iter()),
        Value::Null => Ok(true),
        Value::Bool(_) | Value::Number(_) => Ok(visit(Piece::Text(&to_text(place, value)?))),
    }
}

/// Visits a content, whose own texts are those of a tool result if `is_own`.
fn visit_content(
    place: &str,
    value: &Value,
    visit: Visit<'_>,
    is_own: bool,
    depth: usize,
) -> Result<bool, Error> {
    if depth > DEEPEST {
        return Err(deeper(place));
    }
    match value {
        Value::Null => Ok(true),
        Value::String(text) => Ok(visit(text_piece(text, is_own))),
        Value::Array(parts) => {
            for (i, part) in parts.iter().enumerate() {
                if !visit_part(&format!("{place}[{i}]"), part, visit, is_own, depth)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        _ => Err(wrong(place, "a string, null or a list of parts", Some(value))),
    }
}

fn text_piece(text: &str, is_result: bool) -> Piece<'_> {
    if is_result { Piece::Result(text) } else { Piece::Text(text) }
}

fn visit_part(
    place: &str,
    value: &Value,
    visit: Visit<'_>,
    is_own: bool,
    depth: usize,
) -> Result<bool, Error> {
    if let Value::String(text) = value {
        return Ok(visit(text_piece(text, is_own)));
    }
    let part = object(place, value)?;
    let given = part.get("type").filter(|kind| !kind.is_null());
    let kind = given.map(|_| string(&format!("{place}.type"), given)).transpose()?;
    if let Some(key) = text_key(value) {
        let text = string(&format!("{place}.{key}"), part.get(key))?;
        let goes_on = visit(text_piece(text, is_own));
        // All of a thought whose text was omitted is in its signature.
        if key == "thinking"
            && text.is_empty()
            && let Some(sealed) = part.get("signature").and_then(Value::as_str)
            && !sealed.is_empty()
        {
            return Ok(goes_on && visit(Piece::Unknown { kind: "", part: None, shown: sealed }));
        }
        return Ok(goes_on);
    }
    let Some(kind) = kind else {
        // Its keys say what it is, as in {"document": ...}.
        let kind = part.keys().map(String::as_str).collect::<Vec<_>>().join(" ");
        let shown = to_text(place, value)?;
        return Ok(visit(Piece::Unknown { kind: &kind, part: Some(value), shown: &shown }));
    };
    let text_of = |key: &str| part.get(key).and_then(Value::as_str);
    match kind {
        "tool_use" => {
            let place = format!("{place}.input");
            let input = to_text(&place, part.get("input").unwrap_or(&Value::Null))?;
            let texts = [text_of("id"), text_of("name"), Some(input.as_str())];
            Ok(visit(Piece::Calls(1))
                && texts.into_iter().flatten().all(|text| visit(Piece::Text(text))))
        }
        "tool_result" => {
            let place = format!("{place}.content");
            let content = part.get("content").unwrap_or(&Value::Null);
            Ok(visit(Piece::Answer)
                && text_of("tool_use_id").is_none_or(|id| visit(Piece::Text(id)))
                && visit_content(&place, content, visit, true, depth + 1)?)
        }
        "image_url" | "input_image" | "image" => {
            Ok(visit(Piece::Image(&image(place, kind, part)?)))
        }
        "document" if has_text(value) => {
            // Each text is an estimate, as it is not known what is around them.
            let mut each = |piece: Piece<'_>| match piece {
                Piece::Text(shown) => visit(Piece::Unknown { kind: "", part: None, shown }),
                piece => visit(piece),
            };
            visit_texts(place, value, &mut each, 0)
        }
        _ => {
            let shown = to_text(place, value)?;
            Ok(visit(Piece::Unknown { kind, part: Some(value), shown: &shown }))
        }
    }
}

/// Returns the key that holds the text of a part; None for one that is not text.
fn text_key(part: &Value) -> Option<&'static str> {
    match &part["type"] {
        Value::Null => part["text"].is_string().then_some("text"),
        kind => TEXT_PARTS.iter().find(|(name, _)| kind == *name).map(|&(_, key)| key),
    }
}

/// Returns whether a document is a plain text that it has in itself, as
/// Anthropic's may be.
fn has_text(document: &Value) -> bool {
    let source = &document["source"];
    source["type"] == "text" && source["data"].is_string()
}

/// Returns an image: OpenAI's `image_url` and `input_image`, Anthropic's
/// `image`.
fn image(place: &str, kind: &str, part: &Map<String, Value>) -> Result<Image, Error> {
    let inner = part.get(if kind == "image" { "source" } else { "image_url" });
    let field = |key: &str| inner.and_then(|inner| inner.get(key));
    let name = match part.get("detail").or_else(|| field("detail")) {
        None => "auto",
        Some(Value::String(name)) => name,
        _ => "",
    };
    let detail = Detail::NAMES.iter().find(|(_, known)| *known == name);
    let Some(&(detail, _)) = detail else {
        const ALLOWED: &str = "one of \"auto\", \"low\", \"high\", \"original\"";
        return Err(Error::limit(&format!("{place}.detail"), ALLOWED, "another"));
    };
    let given = ["width", "height"].map(|key| part.get(key).or_else(|| field(key)));
    let size = if given.iter().any(|side| side.is_some_and(|side| !side.is_null())) {
        let side = |i: usize, key: &str| {
            let pixels = given[i].and_then(Value::as_u64).filter(|&pixels| pixels > 0);
            pixels.ok_or_else(|| wrong(&format!("{place}.{key}"), "an integer from 1 on", given[i]))
        };
        Some((side(0, "width")?, side(1, "height")?))
    } else if let Some(data) = field("data").and_then(Value::as_str) {
        size_of_base64(data)
    } else {
        field("url").or(inner).and_then(Value::as_str).and_then(size_of_url)
    };
    Ok(Image { url: String::new(), size, detail })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::Tool;

    type Read<'a> = &'a dyn Fn(usize) -> Result<(), Error>;

    fn lists(depth: usize) -> Value {
        around(depth, json!("tea"), |inner| json!([inner]))
    }

    fn around(depth: usize, inner: Value, put: fn(Value) -> Value) -> Value {
        (0..depth).fold(inner, |inner, _| put(inner))
    }

    fn read(role: &str, fields: Value) -> Result<(), Error> {
        let mut message = fields;
        message["role"] = role.into();
        Message::from_json(message).map(drop)
    }

    fn read_tool(schema: &Value) -> Result<(), Error> {
        Tool::new("a").parameters(&json!({"type": "object", "properties": {"x": schema}})).map(drop)
    }

    #[test]
    fn nothing_is_no_call() {
        let calls = [json!(null), json!([]), json!([1, 2]), json!({"name": "a"})];
        assert_eq!([0, 0, 2, 1], calls.each_ref().map(calls_in));
    }

    #[test]
    fn only_results_that_do_not_stay_are_taken_out() {
        let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id});
        let text = json!({"type": "text", "text": "tea"});
        let user = |parts: &[&Value]| json!({"role": "user", "content": parts});
        let (a, b) = (&result("a"), &result("b"));
        let whole = user(&[a, &text, b]);
        assert_eq!(Some(user(&[a, &text])), without_results(&whole, &[true, false]));
        assert_eq!(Some(user(&[&text, b])), without_results(&whole, &[false, true]));
        assert_eq!(Some(user(&[&text])), without_results(&whole, &[false, false]));
        assert_eq!(Some(whole.clone()), without_results(&whole, &[true, true]));
        assert_eq!(None, without_results(&user(&[a]), &[false]));
        let tool = json!({"role": "tool", "content": [text]});
        assert_eq!(None, without_results(&tool, &[false]));
        assert_eq!(Some(tool.clone()), without_results(&tool, &[true]));
    }

    /// What is nested up to the bound is read; what is deeper is an error.
    #[test]
    fn nesting_is_bounded() {
        let text = || json!({"type": "string"});
        let result = |inner| json!([{"type": "tool_result", "tool_use_id": "a", "content": inner}]);
        let array = |inner| json!({"type": "array", "items": inner});
        let object = |inner| json!({"type": "object", "properties": {"a": inner}});
        let given = |input| json!([{"type": "tool_use", "id": "a", "name": "b", "input": input}]);
        let shapes: [(&str, usize, Read<'_>); 9] = [
            ("more", 102, &|d| read("user", json!({"content": "x", "more": lists(d)}))),
            ("content[0]", 101, &|d| {
                read("user", json!({"content": around(d, json!("tea"), result)}))
            }),
            ("content[0].input", 101, &|d| read("assistant", json!({"content": given(lists(d))}))),
            ("tool_calls", 100, &|d| {
                read("assistant", json!({"content": "", "tool_calls": [{"x": lists(d)}]}))
            }),
            ("content[0]", 100, &|d| {
                read("user", json!({"content": [{"type": "odd", "x": lists(d)}]}))
            }),
            ("parameters", 101, &|d| read_tool(&around(d, text(), array))),
            ("parameters", 101, &|d| read_tool(&around(d, text(), object))),
            ("parameters", 101, &|d| read_tool(&json!({"enum": [lists(d)]}))),
            ("parameters", 98, &|d| {
                let types = json!({"type": ["null", "object"], "properties": {"a": array(text())}});
                read_tool(&around(d, types, array))
            }),
        ];
        for (place, least, shape) in shapes {
            let found = (90..110).find_map(|depth| Some((depth, shape(depth).err()?)));
            let (depth, error) = found.expect("it is too deep");
            assert_eq!(least, depth, "{place}");
            let error = error.to_string();
            assert!(error.starts_with(place), "{error}");
            assert!(error.ends_with(" is nested deeper than 100"), "{error}");
        }
    }

    /// Each repetition would double the text at each level. A list is no type.
    #[test]
    fn repeated_types_of_a_schema_are_shown_once() {
        let put = |inner| json!({"type": ["array", "null", "array"], "items": inner});
        let schema = around(45, json!({"type": "string"}), put);
        let listed = json!({"type": [["array", "array"]]});
        let properties = json!({"properties": {"b": schema, "c": listed}});
        let tool = Tool::new("a").parameters(&properties).unwrap_or_else(|error| panic!("{error}"));
        let nested = format!("b?: string{},\n", "[] | null".repeat(45));
        let shown = nested + r#"c?: {"type": ["array", "array"]},"#;
        assert_eq!(format!("type a = (_: {{\n{shown}\n}}) => any;\n"), tool.to_string());
    }

    #[test]
    fn typed_messages_are_written_as_openai_takes_them() {
        let call = crate::messages::ToolCall::new("a", "look", "{}");
        let calls = json!([{"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}]);
        let say = |text: &str| Message::assistant(text);
        for (message, content) in [
            (say("").tool_call(call.clone()), Value::Null),
            (say("Wait.").tool_call(call), "Wait.".into()),
        ] {
            let expected = json!({"role": "assistant", "content": content, "tool_calls": calls});
            assert_eq!(expected, message.to_json());
            assert_eq!(expected, Value::from(&message));
        }
        assert_eq!(json!({"role": "assistant", "content": ""}), say("").to_json());
    }
}
