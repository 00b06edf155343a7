//! The known names that a model's name may stand for. Whether they are known is
//! asked elsewhere.

use super::models::PREFIXES;

/// The longest name that is looked up: known names are shorter, and the time
/// grows with the square.
const NAME_MAX: usize = 200;

/// How many prefixes are taken off a name.
const PREFIXES_MAX: usize = 6;

/// Returns a name, then without prefixes, then the beginnings of these, longest
/// first.
pub(super) fn beginnings(name: &str) -> impl Iterator<Item = &str> {
    let mut names = vec![name];
    let mut rest = name;
    while names.len() <= PREFIXES_MAX {
        let Some(after) = PREFIXES.iter().find_map(|prefix| rest.strip_prefix(prefix)) else {
            break;
        };
        names.push(after);
        rest = after;
    }
    let starts = names.clone().into_iter().flat_map(|name| {
        let mut ends: Vec<usize> = name
            .char_indices()
            .take(NAME_MAX)
            .filter(|&(at, c)| at > 0 && matches!(c, '-' | ':' | '@' | '/'))
            .map(|(at, _)| at)
            .collect();
        ends.reverse();
        ends.into_iter().map(move |end| &name[..end])
    });
    names.into_iter().chain(starts)
}

/// Returns the parts of a name between boundaries, longest and last first.
pub(super) fn parts(name: &str) -> Vec<&str> {
    let end = name.char_indices().nth(NAME_MAX).map_or(name.len(), |(at, _)| at);
    let name = &name[..end];
    let at = |signs: &'static [char]| name.match_indices(signs).map(|(at, _)| at);
    // A number within a name may go on with ".".
    let starts = std::iter::once(0).chain(at(&['-', ':', '@', '/', '_', '.']).map(|at| at + 1));
    let ends: Vec<usize> = at(&['-', ':', '@', '/', '_']).chain([name.len()]).collect();
    let places = starts.flat_map(|start| ends.iter().map(move |&end| (start, end)));
    let mut parts: Vec<(usize, usize, &str)> = places
        .filter(|(start, end)| end > start)
        .map(|(start, end)| (name[start..end].chars().count(), start, &name[start..end]))
        .collect();
    parts.sort_unstable_by_key(|&(chars, start, _)| std::cmp::Reverse((chars, start)));
    parts.into_iter().map(|(_, _, part)| part).collect()
}
