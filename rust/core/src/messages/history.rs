//! The messages of a history by their kinds, and where a part of it may begin.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::Message;
use crate::error::Error;

/// The places of the messages of a history, by their kind.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// The system messages.
    pub(crate) system: Vec<usize>,
    /// The other messages, except those that are nothing but results whose
    /// calls are missing.
    pub(super) others: Vec<Other>,
    /// Those of them that have such results beside what stays, without these.
    pub(crate) partial: BTreeMap<usize, Message>,
    /// The newest of these of the user that holds more than tool results.
    pub(super) question: Option<usize>,
}

#[derive(Debug)]
pub(super) struct Other {
    pub(super) index: usize,
    /// How far back it reaches: to the first of the calls whose results it has,
    /// or that it needs, or to the message itself.
    reach: usize,
    /// The number of its results that stay.
    pub(super) results: usize,
    is_user: bool,
    /// Whether it is the model's.
    pub(super) is_reply: bool,
}

/// What ties a message of the model to others of the model, beside the calls of
/// a caller's tools.
#[derive(Debug, Default)]
pub(super) struct Links<'a> {
    /// The ids of the calls that the provider runs and has not answered in it.
    pub(super) asks: Vec<&'a str>,
    /// The ids of such calls in a message before, which it answers or goes on
    /// with.
    pub(super) needs: Vec<&'a str>,
}

impl History {
    /// Sorts messages by their kind.
    pub(crate) fn read(messages: &[Message]) -> Self {
        let mut history = Self::default();
        let mut calls: HashMap<&str, usize> = HashMap::new();
        let mut caller = None; // the message whose calls results without an id belong to
        for (index, message) in messages.iter().enumerate() {
            if message.is_system() {
                history.system.push(index);
                continue;
            }
            let answers = message.results();
            let call = |key: Option<&str>| match key {
                Some(key) => calls.get(key).copied(),
                None => caller,
            };
            let found: Vec<usize> = answers.iter().filter_map(|&key| call(key)).collect();
            if found.len() < answers.len() {
                let has_call: Vec<bool> = answers.iter().map(|&key| call(key).is_some()).collect();
                let Some(left) = message.without_results(&has_call) else { continue };
                history.partial.insert(index, left);
            }
            let links = message.links();
            let needed = links.needs.iter().filter_map(|&key| calls.get(key));
            let reach = found.iter().chain(needed).copied().min().unwrap_or(index);
            history.others.push(Other {
                index,
                results: found.len(),
                reach,
                is_user: message.role() == "user",
                is_reply: message.is_reply(),
            });
            if message.is_question() {
                history.question = Some(index);
            }
            let asked = message.calls();
            if !asked.is_empty() {
                caller = Some(index);
                calls.extend(asked.into_iter().flatten().map(|key| (key, index)));
            } else if found.is_empty() {
                caller = None;
            }
            calls.extend(links.asks.into_iter().map(|key| (key, index)));
        }
        history
    }

    /// Returns its messages, without the results whose calls are missing in the
    /// others.
    pub(crate) fn complete<'a>(&self, messages: &'a [Message]) -> Cow<'a, [Message]> {
        if self.partial.is_empty() {
            return Cow::Borrowed(messages);
        }
        let mut messages = messages.to_vec();
        for (&place, message) in &self.partial {
            messages[place].clone_from(message);
        }
        Cow::Owned(messages)
    }

    /// Returns the places of the other messages, ascending.
    pub(crate) fn others(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.others.iter().map(|other| other.index)
    }

    /// Returns the places of the other messages at which a history may begin,
    /// ascending.
    pub(super) fn starts(&self, start_on_user: bool) -> Vec<usize> {
        let mut reach = usize::MAX;
        let mut starts: Vec<usize> = (self.others.iter().rev())
            .filter_map(|other| {
                reach = reach.min(other.reach);
                (reach >= other.index && (other.is_user || !start_on_user)).then_some(other.index)
            })
            .collect();
        starts.reverse();
        starts
    }

    /// Returns the places of the other messages that must stay, ascending: the
    /// question and all that follows it.
    ///
    /// They begin at one of `starts`, which are those of `start_on_user`.
    /// Without a question they are the newest message and what it belongs to,
    /// or none where a message of the user must come first.
    pub(super) fn turn(&self, starts: &[usize], start_on_user: bool) -> Result<Vec<usize>, Error> {
        let newest = self.others().next_back().filter(|_| !start_on_user);
        let Some(last) = self.question.or(newest) else { return Ok(Vec::new()) };
        match starts[..starts.partition_point(|&start| start <= last)].last() {
            Some(&first) => Ok(self.others().filter(|&index| index >= first).collect()),
            None => Err(Error::shape(format!(
                "start_on_user would leave out messages[{last}], the newest message of the user: \
                 it, or what follows it, has the result of a call, and no message of the user is \
                 before that call"
            ))),
        }
    }

    /// Returns the places of the other messages that stay because of `pins`.
    ///
    /// A pinned message stays with the calls and results that belong to it, and
    /// what is between them. Where a message of the user must come first, so
    /// does the last one before the first pin.
    pub(super) fn pinned(
        &self,
        pins: &[usize],
        starts: &[usize],
        start_on_user: bool,
    ) -> Result<HashSet<usize>, Error> {
        let all: HashSet<usize> = self.others().collect();
        let others: Vec<usize> = pins.iter().copied().filter(|pin| all.contains(pin)).collect();
        let Some(&oldest) = others.iter().min() else { return Ok(HashSet::new()) };
        let ends = self.starts(false);
        let block = |place: usize| ends.partition_point(|&start| start <= place);
        let mut blocks: HashSet<usize> = others.into_iter().map(block).collect();
        if start_on_user {
            let first = ends[block(oldest) - 1];
            let before = &starts[..starts.partition_point(|&start| start <= first)];
            let Some(&user) = before.last() else {
                return Err(Error::shape(format!(
                    "start_on_user would leave out messages[{oldest}], which is pinned: no \
                     message of the user is before it and what it belongs to"
                )));
            };
            blocks.extend(block(user)..block(oldest));
        }
        Ok(self.others().filter(|&index| blocks.contains(&block(index))).collect())
    }

    /// Returns the newest of the other messages that fit into `room` together,
    /// and their tokens. The newest comes first; none is before the place
    /// `begin`.
    ///
    /// `cost` returns the tokens of the message at a place; it may return None
    /// where they exceed the tokens left.
    pub(super) fn newest(
        &self,
        room: Option<usize>,
        mut cost: impl FnMut(usize, usize) -> Option<usize>,
        begin: usize,
    ) -> Vec<(usize, usize)> {
        let Some(mut room) = room else { return Vec::new() };
        let mut kept = Vec::new();
        for index in self.others().rev().take_while(|&index| index >= begin) {
            let Some(tokens) = cost(index, room).filter(|&tokens| tokens <= room) else { break };
            room -= tokens;
            kept.push((index, tokens));
        }
        kept
    }
}
