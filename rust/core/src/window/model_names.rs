//! The known names that a model's name may stand for. Whether they are known is
//! asked elsewhere.

use super::models::{FAMILIES, PREFIXES};

/// The longest name that is looked up: known names are shorter, and the time
/// grows with the square.
const NAME_MAX: usize = 200;

/// How many prefixes are taken off a name.
const PREFIXES_MAX: usize = 6;

/// Returns a name, then without prefixes, then the beginnings of these, longest
/// first. The last is what comes after the last slash.
pub(super) fn beginnings(name: &str) -> impl Iterator<Item = &str> {
    let names = bare(name);
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
    names.into_iter().chain(starts).chain([after_last_slash(name)])
}

/// Returns a name, and what is left of it without one prefix after the other.
pub(super) fn bare(name: &str) -> Vec<&str> {
    let mut names = vec![name];
    let mut rest = name;
    while names.len() <= PREFIXES_MAX {
        let after = |prefix: &&str| {
            let (start, after) = rest.split_at_checked(prefix.len())?;
            start.eq_ignore_ascii_case(prefix).then_some(after)
        };
        let Some(after) = PREFIXES.iter().find_map(after) else {
            break;
        };
        names.push(after);
        rest = after;
    }
    names
}

/// Returns the families that parts of a name start with: the family, its way to
/// count, and whether the family is the whole name's.
///
/// What comes before the last slash names a provider. At each place the longest
/// family counts, and none inside it. It is the whole name's if the name starts
/// with it and ends there, or goes on with one of `-`, `:`, `@` and `_`.
pub(super) fn families(name: &str) -> Vec<(&'static str, usize, bool)> {
    let bare = bare(cut(name));
    let last = bare.last().copied().unwrap_or_default();
    let last = after_last_slash(last).to_ascii_lowercase();
    let signs = ['-', ':', '@', '/', '_', '.'];
    let starts = std::iter::once(0).chain(last.match_indices(signs).map(|(at, _)| at + 1));
    let (mut found, mut end) = (Vec::new(), 0);
    for start in starts.filter(|&start| start <= last.len()) {
        let here = FAMILIES.iter().filter(|(family, _)| last[start..].starts_with(family));
        let Some(&(family, way)) = here.max_by_key(|(family, _)| family.len()) else { continue };
        if start >= end {
            end = start + family.len();
            let is_end = last[end..].chars().next().is_none_or(|c| "-:@_".contains(c));
            found.push((family, way, start == 0 && is_end));
        }
    }
    found
}

pub(super) fn after_last_slash(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, last)| last)
}

fn cut(name: &str) -> &str {
    let end = name.char_indices().nth(NAME_MAX).map_or(name.len(), |(at, _)| at);
    &name[..end]
}

/// Returns the parts of a name between boundaries, longest and last first.
pub(super) fn parts(name: &str) -> Vec<&str> {
    let name = cut(name);
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
