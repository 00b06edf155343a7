//! Chat messages and tool schemas: their texts, and what the model counts
//! around them.
//!
//! The rule for messages is the one that OpenAI publishes, or what the chat
//! template of an open model writes. For tools there is no official rule; the
//! best known one renders them as the TypeScript namespace that the model is
//! shown. OpenAI's rule is also applied to Claude and Gemini, whose makers
//! publish none.

use std::borrow::Cow;

use crate::count::TokenCounter;
use crate::images::Image;

mod costs;
mod frames;
mod history;
#[cfg(feature = "json")]
mod json;
mod keep;
mod mask;
mod previous;
mod tools;
mod trim;
mod turn;

pub(crate) use costs::Costs;
use costs::Piece;
use frames::Frame;
pub(crate) use history::History;
use history::Links;
pub(crate) use keep::{Keeper, Rules};
pub use tools::{Tool, ToolChoice, count_tools};
pub use trim::{Trim, Trimmed, trim_messages};
use turn::Turn;

use mask::MASK;

/// A message of a chat.
///
/// # Examples
///
/// ```
/// use budgeteer::{Message, ToolCall};
///
/// let messages = [
///     Message::system("Be brief."),
///     Message::user("How is the weather in Oslo?").name("Ada"),
///     Message::assistant("").tool_call(ToolCall::new("c1", "weather", r#"{"city": "Oslo"}"#)),
///     Message::tool("c1", "Rain."),
/// ];
/// assert_eq!(messages[3].role(), "tool");
/// assert_eq!(messages[3].text(), "Rain.");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Message(Body);

#[derive(Clone, Debug, PartialEq)]
enum Body {
    Typed(Typed),
    #[cfg(feature = "json")]
    Json(serde_json::Value),
}

#[derive(Clone, Debug, PartialEq)]
struct Typed {
    role: String,
    content: Vec<Part>,
    name: Option<String>,
    tool_calls: Vec<ToolCall>,
    tool_call_id: Option<String>,
}

/// A part of the content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// A text.
    Text(String),
    /// An image.
    Image(Image),
}

impl From<&str> for Part {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Part {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Image> for Part {
    fn from(image: Image) -> Self {
        Self::Image(image)
    }
}

/// A call of a function that a model asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    id: String,
    name: String,
    arguments: String,
}

impl ToolCall {
    /// Returns a call of the function `name` with `arguments` in JSON. The
    /// result of the call refers to `id`.
    #[must_use]
    pub fn new(
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Self {
        Self { id: id.into(), name: name.into(), arguments: arguments.into() }
    }
}

impl Message {
    /// Returns a message with that role.
    #[must_use]
    pub fn new(role: impl Into<String>, content: impl Into<Part>) -> Self {
        let content = vec![content.into()];
        let role = role.into();
        let (name, tool_calls, tool_call_id) = (None, Vec::new(), None);
        Self(Body::Typed(Typed { role, content, name, tool_calls, tool_call_id }))
    }

    /// Returns a message with the role `system`.
    #[must_use]
    pub fn system(content: impl Into<Part>) -> Self {
        Self::new("system", content)
    }

    /// Returns a message with the role `user`.
    #[must_use]
    pub fn user(content: impl Into<Part>) -> Self {
        Self::new("user", content)
    }

    /// Returns a message with the role `assistant`.
    #[must_use]
    pub fn assistant(content: impl Into<Part>) -> Self {
        Self::new("assistant", content)
    }

    /// Returns the result of the tool call with that id.
    #[must_use]
    pub fn tool(tool_call_id: impl Into<String>, content: impl Into<Part>) -> Self {
        let mut message = Self::new("tool", content);
        match &mut message.0 {
            Body::Typed(typed) => typed.tool_call_id = Some(tool_call_id.into()),
            #[cfg(feature = "json")]
            Body::Json(_) => unreachable!("it was just made of parts"),
        }
        message
    }

    /// Adds a part to the content.
    ///
    /// ```
    /// use budgeteer::{Image, Message};
    ///
    /// let image = Image::url("https://a.example/b.png").size(512, 512);
    /// let message = Message::user("What is this?").part(image);
    /// ```
    #[must_use]
    pub fn part(mut self, part: impl Into<Part>) -> Self {
        match &mut self.0 {
            Body::Typed(typed) => typed.content.push(part.into()),
            #[cfg(feature = "json")]
            Body::Json(value) => json::add_part(value, &part.into()),
        }
        self
    }

    /// Sets the name of the author.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        match &mut self.0 {
            Body::Typed(typed) => typed.name = Some(name.into()),
            #[cfg(feature = "json")]
            Body::Json(value) => value["name"] = name.into().into(),
        }
        self
    }

    /// Adds a tool call.
    #[must_use]
    pub fn tool_call(mut self, call: ToolCall) -> Self {
        match &mut self.0 {
            Body::Typed(typed) => typed.tool_calls.push(call),
            #[cfg(feature = "json")]
            Body::Json(value) => json::add_call(value, &call),
        }
        self
    }

    /// Returns the role.
    #[must_use]
    pub fn role(&self) -> &str {
        match &self.0 {
            Body::Typed(typed) => &typed.role,
            #[cfg(feature = "json")]
            Body::Json(value) => value["role"].as_str().unwrap_or_default(),
        }
    }

    /// Returns the text of the content. The texts of several parts are joined
    /// by line ends.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        let mut texts: Vec<&str> = match &self.0 {
            Body::Typed(typed) => typed
                .content
                .iter()
                .filter_map(|part| match part {
                    Part::Text(text) => Some(text.as_str()),
                    Part::Image(_) => None,
                })
                .collect(),
            #[cfg(feature = "json")]
            Body::Json(value) => json::texts(value),
        };
        match texts.len() {
            1 => Cow::Borrowed(texts.remove(0)),
            _ => Cow::Owned(texts.join("\n")),
        }
    }

    /// Returns whether it is a system message: its role is `system`, or
    /// `developer` as newer models call it.
    #[must_use]
    pub fn is_system(&self) -> bool {
        matches!(self.role(), "system" | "developer")
    }

    /// Returns whether it, or a part of it, has a cache breakpoint as the
    /// messages of Anthropic's API may have: only where it was read from JSON.
    #[must_use]
    pub fn has_cache_breakpoint(&self) -> bool {
        match &self.0 {
            Body::Typed(_) => false,
            #[cfg(feature = "json")]
            Body::Json(value) => json::has_breakpoint(value),
        }
    }

    /// Returns whether nothing of it is estimated when it is counted for a
    /// model. Images of unknown size are, parts of unknown types, and all
    /// messages for a model whose chat template is not known, or writes less
    /// around some of them.
    ///
    /// ```
    /// use budgeteer::{Image, Message};
    ///
    /// let image = Image::url("https://a.example/b.png");
    /// assert!(!Message::user(image.clone()).is_exact(None));
    /// assert!(Message::user(image.size(512, 512)).is_exact(None));
    /// ```
    #[must_use]
    pub fn is_exact(&self, model: Option<&str>) -> bool {
        let model = model.unwrap_or_default();
        let visit = &mut |piece: Piece<'_>| match piece {
            Piece::Image(image) => image.is_known(model),
            #[cfg(feature = "json")]
            Piece::Unknown { kind, part, .. } => json::media::is_known(kind, part, model),
            _ => true,
        };
        Frame::of(model).is_exact && self.visit(visit)
    }

    /// Returns whether it is of the user, and holds more than tool results.
    fn is_question(&self) -> bool {
        self.role() == "user"
            && match &self.0 {
                Body::Typed(_) => true,
                #[cfg(feature = "json")]
                Body::Json(value) => json::has_more_than_results(value),
            }
    }

    /// Returns whether the model said it.
    fn is_reply(&self) -> bool {
        self.role() != "user" && !is_result(self.role()) && !self.is_system()
    }

    /// Returns its content where that is one text.
    fn only_text(&self) -> Option<&str> {
        match &self.0 {
            Body::Typed(typed) => match &*typed.content {
                [Part::Text(text)] => Some(text),
                _ => None,
            },
            #[cfg(feature = "json")]
            Body::Json(value) => value["content"].as_str(),
        }
    }

    /// Returns the texts of its tool results, in the order of
    /// [`with_results`](Self::with_results).
    fn result_texts(&self) -> Vec<String> {
        let mut texts = Vec::new();
        self.visit(&mut |piece| {
            if let Piece::Result(text) = piece {
                texts.push(text.to_owned());
            }
            true
        });
        texts
    }

    /// Returns the message with the marker for each of its tool results; None
    /// where that is the same.
    fn masked(&self) -> Option<Self> {
        let mut message = self.clone();
        match &mut message.0 {
            Body::Typed(typed) if is_result(&typed.role) => {
                typed.content = vec![Part::Text(MASK.into())];
            }
            Body::Typed(_) => {}
            #[cfg(feature = "json")]
            Body::Json(value) => json::mask_results(value, MASK),
        }
        (message != *self).then_some(message)
    }

    /// Returns the message with `texts`, in their order, for the texts of its
    /// tool results.
    fn with_results(&self, texts: &mut dyn Iterator<Item = &str>) -> Self {
        let mut message = self.clone();
        match &mut message.0 {
            Body::Typed(typed) => {
                for part in &mut typed.content {
                    if let Part::Text(text) = part {
                        texts.next().unwrap_or_default().clone_into(text);
                    }
                }
            }
            #[cfg(feature = "json")]
            Body::Json(value) => json::set_results(value, texts),
        }
        message
    }

    /// Returns the id of each tool call; None for one without an id.
    fn calls(&self) -> Vec<Option<&str>> {
        match &self.0 {
            Body::Typed(typed) => {
                typed.tool_calls.iter().map(|call| Some(call.id.as_str())).collect()
            }
            #[cfg(feature = "json")]
            Body::Json(value) => json::calls(value),
        }
    }

    /// Returns the id of the call of each result; None for one without an id.
    fn results(&self) -> Vec<Option<&str>> {
        match &self.0 {
            Body::Typed(typed) if is_result(&typed.role) => {
                vec![typed.tool_call_id.as_deref()]
            }
            Body::Typed(_) => Vec::new(),
            #[cfg(feature = "json")]
            Body::Json(value) => json::results(value),
        }
    }

    /// Returns what ties it to other messages of the model.
    fn links(&self) -> Links<'_> {
        match &self.0 {
            Body::Typed(_) => Links::default(),
            #[cfg(feature = "json")]
            Body::Json(value) => json::links(value),
        }
    }

    /// Returns the message without those of its results that do not stay; None
    /// where nothing is left.
    fn without_results(&self, stays: &[bool]) -> Option<Self> {
        match &self.0 {
            Body::Typed(_) => stays.iter().all(|&stays| stays).then(|| self.clone()),
            #[cfg(feature = "json")]
            Body::Json(value) => Some(Self(Body::Json(json::without_results(value, stays)?))),
        }
    }

    /// Calls `visit` with every piece of it that costs tokens, until that
    /// returns false. Returns whether all pieces were visited.
    fn visit(&self, visit: &mut dyn FnMut(Piece<'_>) -> bool) -> bool {
        match &self.0 {
            Body::Typed(typed) => typed.visit(visit),
            #[cfg(feature = "json")]
            Body::Json(value) => json::visit(value, visit) == Ok(true),
        }
    }
}

impl Typed {
    fn visit(&self, visit: &mut dyn FnMut(Piece<'_>) -> bool) -> bool {
        let Self { role, content, name, tool_calls, tool_call_id } = self;
        visit(Piece::Role(role))
            && name.as_ref().is_none_or(|name| visit(Piece::Name) && visit(Piece::Text(name)))
            && content.iter().all(|part| match part {
                Part::Text(text) if is_result(role) => visit(Piece::Result(text)),
                Part::Text(text) => visit(Piece::Text(text)),
                Part::Image(image) => visit(Piece::Image(image)),
            })
            && visit(Piece::Calls(tool_calls.len()))
            && tool_calls.iter().all(|call| {
                [&*call.id, "function", &*call.name, &*call.arguments]
                    .into_iter()
                    .all(|text| visit(Piece::Text(text)))
            })
            && tool_call_id.as_ref().is_none_or(|id| visit(Piece::Text(id)))
    }
}

/// Returns whether a message of that role is the result of a tool.
fn is_result(role: &str) -> bool {
    matches!(role, "tool" | "function")
}

/// Returns how many tokens chat messages take in a prompt, with those that
/// prime the reply.
///
/// Each message costs 3, one more with a name, and every text in it: the role,
/// the name, the content, and the parts of its tool calls; numbers and objects
/// as their JSON. The reply is primed with 3 at the end. No messages cost 0.
///
/// `model` is a model with its own costs: `gpt-3.5-turbo-0301` costs 4 for a
/// message and one less with a name, and `gpt-4o-mini` more for an [`Image`].
/// For an open model of a known family (Qwen, Llama 3, Mistral, Gemma, DeepSeek,
/// gpt-oss) the tokens that its chat template writes count instead: around each
/// message, tool call and result, once before them, and for the reply. Templates
/// write less in some places; the most counts.
///
/// Audio in a WAV costs 10 tokens a second for OpenAI's models and 32 for
/// Gemini, and a page of a PDF 258 for Gemini, 560 for Gemini 3, and for others
/// at most 3000 and an image of it.
///
/// A part of any other type (audio, a file, a video, a tool of the server) is an
/// estimate that errs high. It costs the tokens of its JSON, or for audio and
/// video one for every 16 characters of it; and at least 5000 where its type
/// names audio, a video, a file or a document. What a part only refers to may
/// still be larger. A document of plain text costs its texts. A part without a
/// type is a text if it has one, else such an estimate by its keys.
/// [`Message::is_exact`] is false for an estimate.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "o200k")] {
/// use budgeteer::window::count_messages;
/// use budgeteer::{Encoding, Image, Message};
///
/// let counter = Encoding::O200k;
/// assert_eq!(count_messages(&[Message::user("Hello, world!")], &counter, None), 11);
///
/// let named = Message::user("Hello, world!").name("Ada");
/// assert_eq!(count_messages(&[named], &counter, None), 13);
///
/// let image = Message::user(Image::url("https://a.example/b.png"));
/// assert_eq!(count_messages(&[image], &counter, Some("gpt-4o")), 1_452);
/// # }
/// ```
#[must_use]
pub fn count_messages(
    messages: &[Message],
    counter: &dyn TokenCounter,
    model: Option<&str>,
) -> usize {
    let costs = Costs::new(counter, model);
    let total = if messages.is_empty() { 0 } else { costs.around() };
    messages.iter().fold(total, |total, message| total.saturating_add(costs.of(message)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_of_one_text() {
        let one = Message::user("tea");
        assert_eq!(Some("tea"), one.only_text());
        assert!(matches!(one.text(), Cow::Borrowed("tea")));
        let two = one.part("rye");
        assert_eq!((None, Cow::Borrowed("tea\nrye")), (two.only_text(), two.text()));
        assert_eq!(None, Message::user(Image::url("https://a.example/b.png")).only_text());
    }

    /// Only results of tools are masked.
    #[test]
    fn results_of_tools() {
        let results = [Message::tool("a", "tea"), Message::new("function", "tea")];
        for message in &results {
            assert_eq!(vec!["tea"], message.result_texts());
            let masked = message.masked().expect("it changes");
            assert_eq!((MASK, message.role()), (&*masked.text(), masked.role()));
            assert_eq!(None, masked.masked());
        }
        for message in [Message::user("tea"), Message::assistant("tea"), Message::system("tea")] {
            assert!(message.result_texts().is_empty());
            assert_eq!(None, message.masked());
        }
    }
}
