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

/// Returns the factor of the family that a part of a name starts with. Of
/// several the largest is taken, which errs high.
pub(super) fn family_factor(name: &str) -> Option<f64> {
    // What comes before the last slash names a provider.
    let last = after_last_slash(cut(name)).to_ascii_lowercase();
    let is_in = |family: &str| {
        let signs = ['-', ':', '@', '/', '_', '.'];
        last.match_indices(family).any(|(at, _)| at == 0 || last[..at].ends_with(signs))
    };
    let factors = FAMILIES.iter().filter(|(family, _)| is_in(family)).map(|&(_, factor)| factor);
    factors.reduce(f64::max)
}

fn after_last_slash(name: &str) -> &str {
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
