//! Decides what of a history is kept.
//!
//! While what was kept last time and the new messages fit, that is kept. Where
//! they do not, a cut makes room for several turns at once, so that the
//! beginning stays the same until the next cut.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::mask::maskable;
use super::previous::found;
use super::{Costs, History, Message, Turn};
use crate::error::Error;

/// A step that we choose is from an eighth of the window to half of the room in
/// it.
const LEAST_STEP: usize = 8;
const MOST_STEP: usize = 2;

/// How a history is kept: the options of [`Trim`](super::Trim), without the
/// model.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rules<'a> {
    pub(crate) previous: Option<&'a [Message]>,
    pub(crate) step: Option<f64>,
    pub(crate) keep_results: Option<usize>,
    pub(crate) pins: &'a [usize],
    pub(crate) start_on_user: bool,
}

impl Rules<'_> {
    /// Refuses a step that is out of range. `place` is that of the step in the
    /// error.
    pub(crate) fn check(&self, place: impl FnOnce(&str) -> String) -> Result<(), Error> {
        match self.step {
            Some(step) if !(step > 0.0 && step < 1.0) => {
                Err(Error::limit(&place("step"), "above 0 and below 1", format!("{step:?}")))
            }
            _ => Ok(()),
        }
    }
}

/// What is kept of the messages that are not the system's.
#[derive(Default)]
pub(crate) struct Kept<'a> {
    /// The tokens of each message, by its place; none where nothing fits.
    pub(crate) tokens: BTreeMap<usize, usize>,
    /// Those of them with less of their tool results.
    pub(crate) made: BTreeMap<usize, Message>,
    /// The number of pinned messages before the newest turn, and their tokens.
    pub(super) pinned: (usize, usize),
    /// The newest turn where its tool results had to be cut. Nothing fits where
    /// it needs more than the room.
    pub(super) turn: Option<Turn<'a>>,
}

/// Messages whose results are masked, and their tokens then.
type Masks = BTreeMap<usize, (Message, usize)>;

/// Keeps what fits of the messages of a history.
pub(crate) struct Keeper<'a> {
    messages: &'a [Message],
    history: &'a History,
    rules: Rules<'a>,
    costs: Costs<'a>,
    /// Returns the tokens of the message at a place; None where they exceed
    /// what is left.
    cost: &'a dyn Fn(usize, usize) -> Option<usize>,
    starts: Vec<usize>,
    latest: Vec<usize>,
    /// The pins themselves, which are neither masked nor cut.
    whole: HashSet<usize>,
    /// The pinned messages before the newest turn, which are counted apart.
    outside: BTreeMap<usize, usize>,
    begin: usize,
    /// The messages that were kept with less of their tool results.
    short: BTreeMap<usize, &'a Message>,
    known: RefCell<HashMap<usize, Known>>,
}

#[derive(Clone, Copy)]
enum Known {
    Tokens(usize),
    Above(usize),
}

impl<'a> Keeper<'a> {
    /// Reads what is known before anything is counted.
    pub(crate) fn new(
        messages: &'a [Message],
        history: &'a History,
        rules: Rules<'a>,
        costs: Costs<'a>,
        cost: &'a dyn Fn(usize, usize) -> Option<usize>,
    ) -> Result<Self, Error> {
        let mut starts = history.starts(rules.start_on_user);
        let latest = history.turn(&starts, rules.start_on_user)?;
        let pinned = history.pinned(rules.pins, &starts, rules.start_on_user)?;
        let first = latest.first().copied().unwrap_or_default();
        let (begin, mut short) = match rules.previous {
            Some(previous) if !previous.is_empty() => found(messages, history, previous, &pinned),
            _ => (None, BTreeMap::new()),
        };
        let whole: HashSet<usize> = rules.pins.iter().copied().collect();
        short.retain(|place, _| !whole.contains(place));
        let before = pinned.iter().filter(|&&place| place < first);
        let message = |place| short.get(place).copied().unwrap_or(&messages[*place]);
        let outside: BTreeMap<usize, usize> =
            before.map(|place| (*place, costs.of(message(place)))).collect();
        if let Some((&oldest, _)) = outside.first_key_value()
            && rules.start_on_user
        {
            // The first of them is the user's.
            starts.retain(|&start| start <= oldest);
            starts.extend(history.starts(false).into_iter().filter(|&start| start > oldest));
        }
        let begin = match begin {
            Some(begin) if !latest.is_empty() => {
                starts[starts.partition_point(|&start| start < begin.min(first))]
            }
            _ => starts.first().copied().unwrap_or_default(),
        };
        let known = RefCell::default();
        Ok(Self {
            messages,
            history,
            rules,
            costs,
            cost,
            starts,
            latest,
            whole,
            outside,
            begin,
            short,
            known,
        })
    }

    /// Returns what is kept in `room` tokens of a window of `limit`.
    pub(crate) fn keep(&self, limit: usize, room: usize) -> Kept<'a> {
        let mut kept = Kept::default();
        let Some(&first) = self.latest.first() else { return kept };
        let pinned = self.outside.values().fold(0_usize, |sum, &one| sum.saturating_add(one));
        kept.pinned = (self.outside.len(), pinned);
        let room = room.checked_sub(pinned);
        let size = |place, left| self.size(place, left);
        let seen = self.history.newest(room, size, self.begin);
        if reaches(&seen, self.begin) {
            return self.of(kept, seen, BTreeMap::new());
        }
        let masks = self.rules.keep_results.map(|newest| self.masks(newest)).unwrap_or_default();
        let is_ahead = self.rules.previous.is_some() || self.rules.step.is_some();
        let step = if is_ahead { self.step(limit, room.unwrap_or(0), &seen) } else { 0 };
        let aim = room.and_then(|room| room.checked_sub(step));
        let size = |place, left| match masks.get(&place) {
            Some(&(_, tokens)) => Some(tokens),
            None => self.size(place, left),
        };
        let mut chosen = self.history.newest(aim, size, self.begin);
        if !reaches(&chosen, first) {
            chosen = self.history.newest(room, size, first);
            if !reaches(&chosen, first) {
                return self.cut_turn(kept, room, aim, masks);
            }
        }
        self.choose(kept, chosen, aim, masks)
    }

    /// Returns the tokens of a message, as it was kept; 0 for one that is
    /// counted apart.
    fn size(&self, place: usize, left: usize) -> Option<usize> {
        if self.outside.contains_key(&place) {
            return Some(0);
        }
        let tokens = match (self.known.borrow().get(&place), self.short.get(&place)) {
            (Some(&Known::Tokens(tokens)), _) => return Some(tokens),
            (Some(&Known::Above(limit)), _) if left <= limit => return None,
            (_, Some(short)) => Some(self.costs.of(short)),
            _ => (self.cost)(place, left),
        };
        let known = tokens.map_or(Known::Above(left), Known::Tokens);
        self.known.borrow_mut().insert(place, known);
        tokens
    }

    /// Returns a message as it was kept.
    fn message(&self, place: usize) -> &'a Message {
        self.short.get(&place).copied().unwrap_or(&self.messages[place])
    }

    /// Returns the messages that are smaller with masked results, and their
    /// tokens then.
    fn masks(&self, keep_results: usize) -> Masks {
        let may = maskable(self.history, keep_results, &self.whole, |place| self.message(place));
        may.into_iter()
            .filter(|&(place, _)| place >= self.begin)
            .filter_map(|(place, mask)| {
                let tokens = self.costs.of(&mask);
                let is_smaller = self.size(place, tokens).is_none_or(|size| size > tokens);
                is_smaller.then_some((place, (mask, tokens)))
            })
            .collect()
    }

    /// Returns how many tokens a cut frees.
    ///
    /// With turns of t tokens in a window of w, a step of s changes the
    /// beginning in t / s of the turns and leaves s / 2w of the window unused
    /// on average. Both shares are the same, and their sum is least, where s is
    /// the root of 2tw. The model replies once in a turn.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn step(&self, limit: usize, room: usize, seen: &[(usize, usize)]) -> usize {
        if let Some(step) = self.rules.step {
            return (step * limit as f64) as usize; // a share of the limit, at least 0
        }
        let (mut tokens, mut replies) = (0_usize, 0);
        let others = self.history.others.iter().rev();
        for (other, &(place, size)) in others.zip(seen) {
            if other.results > 0 && self.message(place).masked().is_none() {
                break; // what is masked says less of the size of a turn
            }
            tokens = tokens.saturating_add(size);
            replies += usize::from(other.is_reply);
        }
        let turn = (tokens / replies.max(1)) as u128;
        let ideal = (2 * turn).saturating_mul(limit as u128).isqrt();
        let ideal = usize::try_from(ideal).unwrap_or(usize::MAX);
        ideal.max(limit / LEAST_STEP).min(room / MOST_STEP)
    }

    /// Keeps the chosen messages, the newest first, and masks no more results
    /// than it must for `aim` tokens.
    fn choose(
        &self,
        kept: Kept<'a>,
        mut chosen: Vec<(usize, usize)>,
        aim: Option<usize>,
        masks: Masks,
    ) -> Kept<'a> {
        let oldest = chosen.last().map_or(0, |&(place, _)| place);
        let start = self.starts[self.starts.partition_point(|&start| start < oldest)];
        chosen.retain(|&(place, _)| place >= start);
        let mut made: BTreeMap<usize, Message> =
            masks.into_iter().map(|(place, (mask, _))| (place, mask)).collect();
        let used = chosen.iter().fold(0_usize, |sum, &(_, tokens)| sum.saturating_add(tokens));
        let mut left = aim.unwrap_or(0).saturating_sub(used);
        for (place, tokens) in &mut chosen {
            if !made.contains_key(place) {
                continue;
            }
            let most = *tokens + left;
            let whole = if left > 0 { self.size(*place, most) } else { None };
            let Some(whole) = whole.filter(|&whole| whole <= most) else { break };
            left = most - whole;
            *tokens = whole;
            made.remove(place);
        }
        self.of(kept, chosen, made)
    }

    /// Keeps the newest turn only, with its tool results cut.
    fn cut_turn(
        &self,
        mut kept: Kept<'a>,
        room: Option<usize>,
        aim: Option<usize>,
        masks: Masks,
    ) -> Kept<'a> {
        let mut masks = masks;
        let messages = self.latest.iter().map(|&place| match masks.remove(&place) {
            Some((mask, _)) => (place, std::borrow::Cow::Owned(mask)),
            None => (place, std::borrow::Cow::Borrowed(self.message(place))),
        });
        let turn = Turn::new(messages, self.messages, self.costs, room.unwrap_or(0), &self.whole);
        if let Some(gap) = room.and_then(|room| room.checked_sub(turn.needed())) {
            // Where the turn takes more than what is aimed at, half of what can
            // be freed is.
            let least = room.unwrap_or(0) - gap.div_ceil(2);
            let (made, tokens) = turn.cut(aim.unwrap_or(0).max(least));
            kept = self.of(kept, tokens, made);
        }
        kept.turn = Some(turn);
        kept
    }

    fn of(
        &self,
        mut kept: Kept<'a>,
        chosen: impl IntoIterator<Item = (usize, usize)>,
        mut made: BTreeMap<usize, Message>,
    ) -> Kept<'a> {
        kept.tokens = chosen.into_iter().chain(self.outside.clone()).collect();
        made.retain(|place, _| kept.tokens.contains_key(place));
        for (&place, &short) in &self.short {
            if kept.tokens.contains_key(&place) {
                made.entry(place).or_insert_with(|| short.clone());
            }
        }
        kept.made = made;
        kept
    }
}

/// Returns whether messages, the newest first, go back to a place.
fn reaches(chosen: &[(usize, usize)], place: usize) -> bool {
    chosen.last().is_some_and(|&(oldest, _)| oldest <= place)
}
