//! What a cut text must be.

use budgeteer::{Keep, grapheme_boundaries};

/// Asserts that `cut` is a start of `text`, then `marker`, then an end of it, or
/// what `keep` keeps of these, and that both end at clusters.
///
/// # Panics
///
/// Where it is not.
pub fn assert_cut(text: &str, cut: &str, keep: Keep, marker: &str) {
    if cut.is_empty() {
        return;
    }
    let clusters = grapheme_boundaries(text.into());
    let bytes: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let is_end = |at: usize| bytes.binary_search(&at).is_ok_and(|at| clusters.contains(&at));
    let is_one = |at: usize| {
        let Some((head, behind)) = cut.split_at_checked(at) else { return false };
        let Some(tail) = behind.strip_prefix(marker) else { return false };
        let keeps = match keep {
            Keep::Start => tail.is_empty(),
            Keep::End => head.is_empty(),
            Keep::Both => true,
        };
        keeps
            && head.len() + tail.len() < text.len() + usize::from(text.is_empty())
            && text.starts_with(head)
            && text.ends_with(tail)
            && is_end(head.len())
            && is_end(text.len() - tail.len())
    };
    assert!((0..=cut.len()).any(is_one), "{cut:?} is no cut of {text:?} by {marker:?}, {keep:?}");
}
