//! What messages cost, by one counter and for one model.

use super::frames::Frame;
#[cfg(feature = "json")]
use super::json;
use super::{Message, is_result};
use crate::count::TokenCounter;
use crate::images::Image;

/// A piece of a message that costs tokens.
pub(super) enum Piece<'a> {
    Role(&'a str),
    Text(&'a str),
    /// A text of the result of a tool.
    Result(&'a str),
    Image(&'a Image),
    /// A part that is neither text nor an image, also as JSON.
    #[cfg(feature = "json")]
    Unknown {
        kind: &'a str,
        part: Option<&'a serde_json::Value>,
        shown: &'a str,
    },
    /// The mark that it has a name.
    Name,
    /// The mark that it has a number of tool calls.
    Calls(usize),
    /// The mark that a part of it is a tool's result.
    #[cfg(feature = "json")]
    Answer,
}

/// The costs of messages, by one counter and for one model.
#[derive(Clone, Copy)]
pub(crate) struct Costs<'a> {
    pub(crate) counter: &'a dyn TokenCounter,
    model: &'a str,
    pub(super) family: &'static Frame,
    per_message: usize,
}

impl<'a> Costs<'a> {
    pub(crate) fn new(counter: &'a dyn TokenCounter, model: Option<&'a str>) -> Self {
        let model = model.unwrap_or("");
        let family = Frame::of(model);
        let per_message = family.special.saturating_add(written(counter, family.text));
        Self { counter, model, family, per_message }
    }

    /// Returns what stands before the first message, and what primes the reply.
    pub(crate) fn around(&self) -> usize {
        let Frame { start, prelude, reply, reply_text, .. } = self.family;
        let texts = [prelude, reply_text].map(|text| written(self.counter, text));
        (start + reply).saturating_add(texts[0]).saturating_add(texts[1])
    }

    /// Returns what a message with that role costs beside its content.
    pub(crate) fn frame(&self, role: &str) -> usize {
        let Frame { has_role, per_result, .. } = *self.family;
        let written = if has_role { self.counter.count(role) } else { 0 };
        let answer = if is_result(role) { per_result } else { 0 };
        self.per_message.saturating_add(written).saturating_add(answer)
    }

    /// Returns what a mark costs.
    fn mark(&self, piece: &Piece<'_>) -> isize {
        let tokens = match piece {
            Piece::Name => return self.family.per_name,
            Piece::Calls(calls) => self.family.per_call.saturating_mul(*calls),
            Piece::Role(role) if is_result(role) => self.family.per_result,
            #[cfg(feature = "json")]
            Piece::Answer => self.family.per_result,
            _ => 0,
        };
        isize::try_from(tokens).unwrap_or(isize::MAX)
    }

    /// Returns whether what stands around messages is known exactly.
    pub(crate) fn has_exact_frame(&self) -> bool {
        self.family.is_exact
    }

    /// Returns whether no part of a message is estimated.
    pub(crate) fn is_exact(&self, message: &Message) -> bool {
        message.is_exact(Some(self.model))
    }

    /// Returns what a message costs, in tokens.
    pub(crate) fn of(&self, message: &Message) -> usize {
        self.with_results(message, |text| self.counter.count(text))
    }

    /// Returns what a message costs where `result` counts the texts of its tool
    /// results.
    pub(super) fn with_results(
        &self,
        message: &Message,
        mut result: impl FnMut(&str) -> usize,
    ) -> usize {
        let mut total = self.per_message;
        message.visit(&mut |piece| {
            total = total.saturating_add_signed(self.mark(&piece));
            let tokens = match piece {
                Piece::Role(role) if self.family.has_role => self.counter.count(role),
                Piece::Text(text) => self.counter.count(text),
                Piece::Result(text) => result(text),
                Piece::Image(image) => image.tokens(self.model),
                #[cfg(feature = "json")]
                Piece::Unknown { kind, part, shown } => {
                    let count = |text: &str| Some(self.counter.count(text));
                    let tokens = json::media::tokens(kind, part, shown, self.model, count);
                    tokens.unwrap_or(usize::MAX)
                }
                _ => 0,
            };
            total = total.saturating_add(tokens);
            true
        });
        total
    }

    /// Returns what a message costs if it is at most `limit`, else None. No
    /// text is counted further than that.
    pub(crate) fn of_till_limit(&self, message: &Message, limit: usize) -> Option<usize> {
        // A name may have a negative cost.
        let mut total = self.per_message;
        let slack = usize::from(self.family.per_name < 0);
        let fits = message.visit(&mut |piece| {
            total = total.saturating_add_signed(self.mark(&piece));
            let left = limit.saturating_add(slack).saturating_sub(total);
            let tokens = match piece {
                Piece::Role(_) if !self.family.has_role => Some(0),
                Piece::Role(text) | Piece::Text(text) | Piece::Result(text) => {
                    self.counter.count_till_limit(text, left)
                }
                Piece::Image(image) => Some(image.tokens(self.model)),
                #[cfg(feature = "json")]
                Piece::Unknown { kind, part, shown } => {
                    let count = |text: &str| self.counter.count_till_limit(text, left);
                    json::media::tokens(kind, part, shown, self.model, count)
                }
                _ => Some(0),
            };
            total = total.saturating_add(tokens.unwrap_or(0));
            tokens.is_some()
        });
        (fits && total <= limit).then_some(total)
    }
}

/// Returns the tokens of a text of a chat template.
fn written(counter: &dyn TokenCounter, text: &str) -> usize {
    if text.is_empty() { 0 } else { counter.count(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Estimate;

    /// A message costs the same up to its own costs, and nothing below them.
    #[test]
    fn limits_change_no_cost() {
        let image = Image::url("https://a.example/b.png").size(600, 400);
        let messages = [
            Message::user("green tea"),
            Message::user("green tea").name("ann"),
            Message::user("two cups").part(image),
            #[cfg(feature = "json")]
            Message::from_json(serde_json::json!({
                "role": "user",
                "content": [{"type": "input_audio", "input_audio": {"data": "", "format": "mp3"}}],
            }))
            .expect("it is a message"),
        ];
        for model in [None, Some("gpt-4o"), Some("gpt-3.5-turbo-0301"), Some("claude-3-opus")] {
            let costs = Costs::new(&Estimate::Words, model);
            for message in &messages {
                let cost = costs.of(message);
                for limit in [cost, cost + 1, usize::MAX] {
                    assert_eq!(Some(cost), costs.of_till_limit(message, limit), "{model:?}");
                }
                for limit in [0, cost - 1] {
                    assert_eq!(None, costs.of_till_limit(message, limit), "{model:?}");
                }
            }
        }
    }

    /// A name that lowers the cost may come behind what just fits.
    #[test]
    fn a_name_may_make_room() {
        let counter = |text: &str| usize::from(text == "user");
        let costs = Costs::new(&counter, Some("gpt-3.5-turbo-0301"));
        let message = Message::user("tea").name("ann");
        let cost = costs.of(&message);
        assert_eq!(costs.of(&Message::user("tea")) - 1, cost);
        assert_eq!(Some(cost), costs.of_till_limit(&message, cost));
        assert_eq!(None, costs.of_till_limit(&message, cost - 1));
    }

    #[test]
    fn an_image_of_unknown_size_is_estimated() {
        let costs = Costs::new(&Estimate::Words, Some("gpt-4o"));
        let image = Image::url("https://a.example/b.png");
        assert!(costs.is_exact(&Message::user("tea").part(image.clone().size(600, 400))));
        assert!(!costs.is_exact(&Message::user("tea").part(image)));
    }
}
