//! What was kept of a history last time: found again among the messages of
//! today.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::turn::MARKER;
use super::{History, Message};

/// The most places that are tried for a message that stands at several.
const MOST: usize = 16;

/// Returns where the kept messages begin, and those that were kept with less of
/// a tool result, by their places.
///
/// A message of `previous` is the first of the other messages that is equal, or
/// else of which it is a shortened form. What is none of them is passed over.
/// Pinned messages tell nothing of the beginning.
pub(super) fn found<'a>(
    messages: &[Message],
    history: &History,
    previous: &'a [Message],
    pinned: &HashSet<usize>,
) -> (Option<usize>, BTreeMap<usize, &'a Message>) {
    let known: Vec<&Message> = previous.iter().filter(|message| !message.is_system()).collect();
    let others: Vec<usize> = history.others().collect();
    let places = Places::new(messages, &others);
    let (mut at, mut begin, mut last, mut seen) = (0, None, None, 0);
    let mut shortened = BTreeMap::new();
    for (k, &item) in known.iter().enumerate() {
        if at == others.len() {
            break;
        }
        let here = if begin.is_none() {
            let may: Vec<usize> =
                places.of(item).into_iter().filter(|&place| place >= at).collect();
            best(&known[k..], &may, messages, &others)
        } else if fits(item, &messages[others[at]]) {
            Some(at)
        } else {
            places.of(item).into_iter().find(|&place| place > at)
        };
        let Some(here) = here else { continue };
        let place = others[here];
        if begin.is_none() && !pinned.contains(&place) {
            begin = Some(place);
        }
        if *item != messages[place] {
            shortened.insert(place, item);
        }
        (at, last, seen) = (here + 1, Some(place), seen + 1);
    }
    if seen == known.len() {
        begin = begin.or(last.map(|place| place + 1));
    }
    (begin, shortened)
}

/// Returns the first of `places` at which most of `known` follows.
fn best(
    known: &[&Message],
    places: &[usize],
    messages: &[Message],
    others: &[usize],
) -> Option<usize> {
    if places.len() < 2 {
        return places.first().copied();
    }
    let (mut best, mut most) = (None, 0);
    for &at in places.iter().take(MOST) {
        let pairs = known.iter().zip(&others[at..]);
        let length = pairs.take_while(|&(item, &place)| fits(item, &messages[place])).count();
        if length == known.len() {
            return Some(at);
        }
        if length > most {
            (best, most) = (Some(at), length);
        }
    }
    best
}

/// Finds a message among others: an equal one, or what it is short for.
struct Places<'a> {
    messages: &'a [Message],
    others: &'a [usize],
    by_key: HashMap<Key<'a>, Vec<usize>>,
}

impl<'a> Places<'a> {
    fn new(messages: &'a [Message], others: &'a [usize]) -> Self {
        let mut by_key: HashMap<Key<'a>, Vec<usize>> = HashMap::new();
        for (at, &place) in others.iter().enumerate() {
            by_key.entry(Key::of(&messages[place])).or_default().push(at);
        }
        Self { messages, others, by_key }
    }

    /// Returns where a message is among the others, ascending: their numbers,
    /// not their places.
    fn of(&self, item: &Message) -> Vec<usize> {
        let Some(places) = self.by_key.get(&Key::of(item)) else { return Vec::new() };
        let those = |is: &dyn Fn(&Message) -> bool| -> Vec<usize> {
            places.iter().copied().filter(|&at| is(&self.messages[self.others[at]])).collect()
        };
        let equal = those(&|message| item == message);
        if equal.is_empty() { those(&|message| is_shortened(item, message)) } else { equal }
    }
}

/// What two messages have in common that are equal, or one short for the other.
#[derive(PartialEq, Eq, Hash)]
struct Key<'a> {
    role: &'a str,
    results: Vec<Option<&'a str>>,
    calls: Vec<Option<&'a str>>,
    text: Option<&'a str>,
}

impl<'a> Key<'a> {
    fn of(message: &'a Message) -> Self {
        Self {
            role: message.role(),
            results: message.results(),
            calls: message.calls(),
            text: message.only_text().filter(|_| !super::is_result(message.role())),
        }
    }
}

fn fits(item: &Message, message: &Message) -> bool {
    item == message || is_shortened(item, message)
}

/// Returns whether `short` is `whole` with masked tool results, or with their
/// texts cut.
fn is_shortened(short: &Message, whole: &Message) -> bool {
    let cut = short.result_texts();
    whole.masked().iter().chain([whole]).any(|message| {
        let texts = message.result_texts();
        texts.len() == cut.len()
            && cut.iter().zip(&texts).all(|(cut, text)| is_cut(cut, text))
            && message.with_results(&mut cut.iter().map(String::as_str)) == *short
    })
}

/// Returns whether `cut` is `text`, or a head and a tail of it around the
/// marker.
fn is_cut(cut: &str, text: &str) -> bool {
    if cut == text {
        return true;
    }
    let pairs = || cut.bytes().zip(text.bytes());
    let head = pairs().take_while(|(a, b)| a == b).count();
    let pairs = cut.bytes().rev().zip(text.bytes().rev());
    let tail = pairs.take_while(|(a, b)| a == b).count();
    let from = cut.len().saturating_sub(tail + MARKER.len());
    let to = cut.len().min(head + MARKER.len());
    cut.as_bytes()
        .get(from..to)
        .is_some_and(|part| part.windows(MARKER.len()).any(|window| window == MARKER.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::ToolCall;

    /// Of pinned messages the beginning is behind the last, and what was cut is
    /// found behind messages that came in between.
    #[test]
    fn what_is_found_goes_on_behind_what_came_in_between() {
        let call = || Message::assistant("").tool_call(ToolCall::new("a", "look", "{}"));
        let result = |text: &str| Message::tool("a", text);
        let whole = result("green tea is mild and bright");
        let messages = [Message::user("x"), call(), Message::user("y"), whole];
        let history = History::read(&messages);
        let cut = result(&format!("green{MARKER}bright"));
        let previous = [Message::user("x"), call(), cut.clone()];
        let (begin, shortened) = found(&messages, &history, &previous, &HashSet::new());
        assert_eq!((Some(0), vec![(3, &cut)]), (begin, shortened.into_iter().collect()));
        let pinned = HashSet::from([0, 1, 3]);
        assert_eq!(Some(4), found(&messages, &history, &previous, &pinned).0);
        let other = [Message::user("x"), Message::user("z")];
        assert_eq!(None, found(&messages, &history, &other, &pinned).0);
    }

    #[test]
    fn the_first_place_is_best_at_which_most_follows() {
        let messages: Vec<Message> = "a x a b y a b z a b".split(' ').map(Message::user).collect();
        let others: Vec<usize> = (0..messages.len()).collect();
        let of = |known: &str, places: &[usize]| {
            let known: Vec<Message> = known.split(' ').map(Message::user).collect();
            best(&known.iter().collect::<Vec<_>>(), places, &messages, &others)
        };
        let places = [0, 2, 5, 8];
        assert_eq!(Some(0), of("a", &places));
        assert_eq!(Some(2), of("a b", &places));
        assert_eq!(Some(2), of("a b c", &places));
        assert_eq!(Some(2), of("a b y c", &places));
        assert_eq!(Some(5), of("a b z c", &places));
        assert_eq!(Some(0), of("a c", &places));
        assert_eq!(None, of("c", &places));
        assert_eq!((None, Some(3)), (of("a b", &[]), of("a b", &[3])));
    }
}
