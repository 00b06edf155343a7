//! The tokens of an image for Claude, by Anthropic's guide to vision (2026-06).

const PATCH: u128 = 28;
const AREA: u128 = 750;

/// The longest side in pixels, and the most patches of an image.
const STANDARD: (u128, u128) = (1_568, 1_568);

/// The same from Claude 4.7 on, and for names without a version.
const HIGH: (u128, u128) = (2_576, 4_784);

/// Returns the tokens of an image of a size; the most if the size is unknown.
///
/// It is scaled down to the longest side and the most patches of 28 by 28
/// pixels. It costs these patches or its area by 750, the older rule, whichever
/// is more.
pub(super) fn tokens(size: Option<(u64, u64)>, name: &str) -> usize {
    let (longest, patches) =
        if version(name).is_none_or(|it| it >= (4, 7)) { HIGH } else { STANDARD };
    let most = (patches * PATCH * PATCH).div_ceil(AREA);
    let tokens = size.map_or(most, |(width, height)| {
        let long = u128::from(width.max(height));
        let scaled = |edge: u64| {
            let edge = u128::from(edge);
            if long <= longest { edge } else { (edge * longest).div_ceil(long).max(1) }
        };
        let (wide, high) = (scaled(width), scaled(height));
        let patches = wide.div_ceil(PATCH) * high.div_ceil(PATCH);
        patches.max((wide * high).div_ceil(AREA)).min(most)
    });
    usize::try_from(tokens).unwrap_or(usize::MAX)
}

/// Returns the version in a name, as 4 and 5 in `claude-sonnet-4-5-20250929`.
fn version(name: &str) -> Option<(u32, u32)> {
    name.match_indices("claude-").find_map(|(at, found)| {
        let rest = &name[at + found.len()..];
        let word = rest.bytes().take_while(u8::is_ascii_lowercase).count();
        let named = if word > 0 { rest[word..].strip_prefix('-') } else { None };
        named.into_iter().chain([rest]).find_map(numbers)
    })
}

/// Returns the one or two numbers of at most two digits that a text begins
/// with, such as a date is not.
fn numbers(text: &str) -> Option<(u32, u32)> {
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_digit());
    [2, 1].into_iter().find_map(|digits| {
        let (major, rest) = number(text, digits)?;
        let minor = rest.strip_prefix(['-', '.']).and_then(|inner| {
            [2, 1].into_iter().find_map(|digits| number(inner, digits).filter(|it| ends(it.1)))
        });
        match minor {
            Some((minor, _)) => Some((major, minor)),
            None => ends(rest).then_some((major, 0)),
        }
    })
}

/// Returns the number of so many digits that a text begins with, and the rest.
fn number(text: &str, digits: usize) -> Option<(u32, &str)> {
    let (head, rest) = text.split_at_checked(digits)?;
    let is_number = head.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| head.parse().ok().map(|number| (number, rest)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_names() {
        for (name, read) in [
            ("claude-sonnet-4-5-20250929", Some((4, 5))),
            ("claude-sonnet-4-20250514", Some((4, 0))),
            ("claude-3-5-sonnet-20241022", Some((3, 5))),
            ("anthropic.claude-3.7", Some((3, 7))),
            ("claude-opus-4-8", Some((4, 8))),
            ("claude-instant-1.2", Some((1, 2))),
            ("claude-12-345", Some((12, 0))),
            ("claude-123", None),
            ("claude-x-claude-opus-5", Some((5, 0))),
            ("claude", None),
        ] {
            assert_eq!(read, version(name), "{name}");
        }
    }
}
