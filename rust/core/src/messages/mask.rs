//! Tool results that stand in a history by a marker, so that their calls stay
//! valid.

use std::collections::{BTreeMap, HashSet};

use super::{History, Message};

/// Stands for a tool result.
pub(super) const MASK: &str = "[tool result left out]";

/// Returns the messages whose results may be masked, by their places, as they
/// are then.
///
/// Those of the newest `keep_results` results may not, nor those to which the
/// model has not replied, nor pinned messages.
pub(super) fn maskable<'a>(
    history: &History,
    keep_results: usize,
    pinned: &HashSet<usize>,
    message: impl Fn(usize) -> &'a Message,
) -> BTreeMap<usize, Message> {
    let mut made = BTreeMap::new();
    let (mut seen, mut is_answered) = (0, false);
    for other in history.others.iter().rev() {
        is_answered |= other.is_reply;
        let may = other.results > 0 && is_answered && seen >= keep_results;
        if may && !pinned.contains(&other.index) {
            made.extend(message(other.index).masked().map(|mask| (other.index, mask)));
        }
        seen += other.results;
    }
    made
}
