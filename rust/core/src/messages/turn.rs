//! The newest turn of a history: what must stay of it, and how its tool results
//! are cut to fit.

use std::collections::BTreeMap;

use super::{Costs, Message};
use crate::truncate::{Keep, cut_to};

/// Stands where the middle of a text was cut out.
const MARKER: &str = "\n[...truncated...]\n";

/// Messages that stay whole, except for the texts of their tool results.
pub(crate) struct Turn<'a> {
    messages: &'a [Message],
    costs: Costs<'a>,
    room: usize,
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
    /// Its tokens, counted no further than it could get.
    tokens: usize,
}

impl<'a> Turn<'a> {
    /// Counts the messages at `places`, which ascend, for `room` tokens.
    pub(crate) fn new(
        messages: &'a [Message],
        places: &[usize],
        costs: Costs<'a>,
        room: usize,
    ) -> Self {
        let mut results = Vec::new();
        let mut fixed = BTreeMap::new();
        for &place in places {
            let hold = |text: &str| {
                results.push(Held { place, text: text.to_owned(), tokens: 0 });
                0
            };
            fixed.insert(place, costs.with_results(&messages[place], hold));
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
        Self { messages, costs, room, fixed, results, least }
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
    pub(crate) fn needed(&self) -> usize {
        self.rest().saturating_add(self.least)
    }

    /// Returns the messages of which texts of tool results are cut so that all
    /// fit, by their places, and the tokens of all messages. None where they do
    /// not fit.
    ///
    /// The longest texts are cut, to a length that all of them share.
    pub(crate) fn cut(&self) -> Option<(BTreeMap<usize, Message>, usize)> {
        if self.needed() > self.room {
            return None;
        }
        let mut left = self.room - self.rest();
        let mut texts: Vec<&str> = self.results.iter().map(|result| &*result.text).collect();
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by_key(|&i| self.results[i].tokens);
        let mut cuts = BTreeMap::new();
        for (done, &i) in order.iter().enumerate() {
            let share = left / (order.len() - done);
            let mut tokens = self.results[i].tokens;
            if tokens > share {
                let counter = self.costs.counter;
                let cut = cut_to(texts[i], share, Keep::Both, MARKER, counter);
                let cut = if cut.is_empty() { MARKER.to_owned() } else { cut.into_owned() };
                tokens = counter.count(&cut);
                cuts.insert(i, cut);
            }
            left = left.saturating_sub(tokens);
        }
        for (&i, cut) in &cuts {
            texts[i] = cut;
        }
        let mut made = BTreeMap::new();
        for &i in cuts.keys() {
            let place = self.results[i].place;
            made.entry(place).or_insert_with(|| {
                let first = self.results.partition_point(|one| one.place < place);
                self.messages[place].with_results(&mut texts[first..].iter().copied())
            });
        }
        Some((made, self.room - left))
    }
}
