//! The newest turn of a history: what must stay of it, and how its tool results
//! are cut to fit.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::mask::MASK;
use super::{Costs, Message};
use crate::truncate::{Keep, cut_to};

/// Stands where the middle of a text was cut out.
pub(super) const MARKER: &str = "\n[...truncated...]\n";

/// Messages that stay whole, except for the texts of their tool results.
pub(crate) struct Turn<'a> {
    messages: BTreeMap<usize, Cow<'a, Message>>,
    costs: Costs<'a>,
    /// For the place of each message, its tokens without these texts.
    pub(super) fixed: BTreeMap<usize, usize>,
    results: Vec<Held>,
    /// The tokens that these texts take at least: each its own, or those of the
    /// marker.
    pub(super) least: usize,
}

/// A text of a tool result.
struct Held {
    /// The place of its message.
    place: usize,
    text: String,
    /// What it is cut from.
    whole: Option<String>,
    /// Its tokens, counted no further than it could get.
    tokens: usize,
}

impl<'a> Turn<'a> {
    /// Counts `messages`, by their places, for `room` tokens. Some may be shorter
    /// than they were `given`: cut before, or masked. Those that are `pinned`
    /// stay whole.
    pub(super) fn new(
        messages: impl Iterator<Item = (usize, Cow<'a, Message>)>,
        given: &[Message],
        costs: Costs<'a>,
        room: usize,
        pinned: &HashSet<usize>,
    ) -> Self {
        let messages: BTreeMap<usize, Cow<'a, Message>> = messages.collect();
        let mut results: Vec<Held> = Vec::new();
        let mut fixed = BTreeMap::new();
        for (&place, message) in &messages {
            let first = results.len();
            let hold = |text: &str| {
                results.push(Held { place, text: text.to_owned(), whole: None, tokens: 0 });
                0
            };
            let tokens = if pinned.contains(&place) {
                costs.of(message)
            } else {
                costs.with_results(message, hold)
            };
            fixed.insert(place, tokens);
            // A text that was cut before is not cut a second time, which might
            // hit its marker; a mask stands for all texts of a result.
            let (texts, is_mask) = (&mut results[first..], |held: &Held| held.text == MASK);
            if **message != given[place] && !texts.iter().any(is_mask) {
                let wholes = given[place].result_texts();
                if wholes.len() == texts.len() {
                    for (held, whole) in texts.iter_mut().zip(wholes) {
                        held.whole = Some(whole);
                    }
                }
            }
        }
        let counter = costs.counter;
        let marker = if results.is_empty() { 0 } else { counter.count(MARKER) };
        let most = room.max(marker);
        let mut least = 0_usize;
        for result in &mut results {
            let known = counter.count_till_limit(&result.text, most);
            result.tokens = known.unwrap_or(most.saturating_add(1));
            least = least.saturating_add(result.tokens.min(marker));
        }
        Self { messages, costs, fixed, results, least }
    }

    /// Returns the number of texts of tool results.
    pub(super) fn results(&self) -> usize {
        self.results.len()
    }

    /// Returns the tokens of all messages without the texts of tool results.
    fn rest(&self) -> usize {
        self.fixed.values().fold(0, |sum, &tokens| sum.saturating_add(tokens))
    }

    /// Returns the fewest tokens that all this takes.
    pub(super) fn needed(&self) -> usize {
        self.rest().saturating_add(self.least)
    }

    /// Returns the messages that are not the caller's own, by their places, with
    /// texts of tool results cut so that all fit into `room`, and the tokens of
    /// all messages.
    ///
    /// The longest texts are cut, to a length that all of them share. `room` is
    /// from what all this needs to that for which it was counted.
    pub(super) fn cut(&self, room: usize) -> (BTreeMap<usize, Message>, BTreeMap<usize, usize>) {
        let mut tokens = self.fixed.clone();
        let mut left = room.saturating_sub(self.rest());
        let mut texts: Vec<&str> = self.results.iter().map(|result| &*result.text).collect();
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by_key(|&i| self.results[i].tokens);
        let mut cuts = BTreeMap::new();
        for (done, &i) in order.iter().enumerate() {
            let share = left / (order.len() - done);
            let mut count = self.results[i].tokens;
            if count > share {
                let counter = self.costs.counter;
                let whole = self.results[i].whole.as_deref().unwrap_or(texts[i]);
                let cut = cut_to(whole, share, Keep::Both, MARKER, counter);
                let cut = if cut.is_empty() { MARKER.to_owned() } else { cut.into_owned() };
                count = counter.count(&cut);
                cuts.insert(i, cut);
            }
            left = left.saturating_sub(count);
            *tokens.entry(self.results[i].place).or_default() += count;
        }
        for (&i, cut) in &cuts {
            texts[i] = cut;
        }
        let owned = self.messages.iter().filter_map(|(&place, message)| match message {
            Cow::Owned(message) => Some((place, message.clone())),
            Cow::Borrowed(_) => None,
        });
        let mut made: BTreeMap<usize, Message> = owned.collect();
        let places: BTreeSet<usize> = cuts.keys().map(|&i| self.results[i].place).collect();
        for place in places {
            let first = self.results.partition_point(|one| one.place < place);
            let mut texts = texts[first..].iter().copied();
            made.insert(place, self.messages[&place].with_results(&mut texts));
        }
        (made, tokens)
    }
}
