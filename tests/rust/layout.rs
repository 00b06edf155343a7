//! Laws of dividing a window that hold for every input, and a comparison with
//! CSS as taffy computes it.

use budgeteer::{ErrorKind, Flex, Resolved, resolve_layout};
use proptest::prelude::*;
use taffy::TaffyResult;
use taffy::prelude::*;

/// Small sizes, where limits meet, and the largest.
fn sizes() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0..30_u64,
        4 => 0..3_000_u64,
        1 => prop::sample::select(vec![u64::MAX, u64::MAX - 1, 1 << 63, (1 << 63) - 1]),
    ]
}

fn resolve(space: u64, sections: &[Flex]) -> Resolved {
    resolve_layout(space, sections).expect("the factors are in range")
}

/// Factors that people write, and those at both ends of the range.
fn factors() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => prop::sample::select(vec![0.0, 1.0, 1.0, 2.0, 0.1, 0.25, 1.0 / 3.0]),
        1 => prop::sample::select(vec![10_000.0, 9_999.999_999_5, 1e-6, 1.5e-6, 2.5e-6, -0.0]),
        1 => 1e-6..10_000_f64,
    ]
}

fn flex() -> impl Strategy<Value = Flex> {
    let maxima = prop_oneof![Just(None), sizes().prop_map(Some)];
    (sizes(), factors(), factors(), prop_oneof![Just(0), sizes()], maxima, -2..3_i64).prop_map(
        |(basis, grow, shrink, min_tokens, max_tokens, priority)| Flex {
            basis,
            grow,
            shrink,
            min_tokens,
            max_tokens,
            priority,
        },
    )
}

fn flexes() -> impl Strategy<Value = Vec<Flex>> {
    prop_oneof![
        prop::collection::vec(flex(), 0..9),
        (flex(), flex(), 0..6_usize, 0..6_usize).prop_map(|(one, other, many, others)| {
            [vec![one; many], vec![other; others]].concat()
        }),
    ]
}

/// Returns the size of a section if no tokens are left over or lacking.
fn clamped_basis(section: &Flex) -> u64 {
    let max = section.max_tokens.unwrap_or(u64::MAX).max(section.min_tokens);
    section.basis.clamp(section.min_tokens, max)
}

fn least(section: &Flex) -> u64 {
    if section.shrink > 0.0 { section.min_tokens } else { clamped_basis(section) }
}

fn total(sizes: impl Iterator<Item = u64>) -> u128 {
    sizes.map(u128::from).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// The sizes and the free tokens sum to the space.
    #[test]
    fn nothing_is_lost(space in sizes(), sections in flexes()) {
        let Resolved { tokens, free_tokens, .. } = resolve(space, &sections);
        prop_assert_eq!(u128::from(space), total(tokens.into_iter()) + u128::from(free_tokens));
    }

    /// Every section is within its limits, and a dropped one is 0.
    #[test]
    fn limits_hold(space in sizes(), sections in flexes()) {
        let resolved = resolve(space, &sections);
        for (index, section) in sections.iter().enumerate() {
            let size = resolved.tokens[index];
            if resolved.dropped.contains(&index) {
                prop_assert_eq!(0, size);
            } else {
                let most = section.max_tokens.unwrap_or(u64::MAX).max(section.min_tokens);
                prop_assert!((least(section)..=most).contains(&size));
            }
        }
    }

    /// Sections are dropped by priority, then the last first, and no more than
    /// needed.
    #[test]
    fn no_more_are_dropped_than_must(space in sizes(), sections in flexes()) {
        let Resolved { dropped, .. } = resolve(space, &sections);
        let mut order: Vec<usize> = (0..sections.len()).rev().collect();
        order.sort_by_key(|&index| sections[index].priority);
        prop_assert_eq!(&order[..dropped.len()], &dropped);
        let needed = |from: usize| total(order[from..].iter().map(|&index| least(&sections[index])));
        prop_assert!(needed(dropped.len()) <= u128::from(space));
        if let Some(before) = dropped.len().checked_sub(1) {
            prop_assert!(needed(before) > u128::from(space));
        }
    }

    /// A larger space drops no more sections. While the same are in, it takes
    /// at most one token from any, and none from the free tokens.
    #[test]
    fn growth_takes_only_what_is_rounded(
        (space, more) in (sizes(), prop_oneof![1..4_u64, sizes()]),
        sections in flexes(),
    ) {
        let before = resolve(space, &sections);
        let after = resolve(space.saturating_add(more), &sections);
        prop_assert!(before.dropped.starts_with(&after.dropped));
        if before.dropped == after.dropped {
            prop_assert!(before.free_tokens <= after.free_tokens);
            for (before, after) in before.tokens.iter().zip(&after.tokens) {
                prop_assert!(*before <= after.saturating_add(1));
            }
        }
    }

    /// The other sections are divided as if the dropped ones did not exist.
    #[test]
    fn dropped_sections_leave_no_trace(space in sizes(), sections in flexes()) {
        let resolved = resolve(space, &sections);
        let is_in = |index: &usize| !resolved.dropped.contains(index);
        let kept: Vec<usize> = (0..sections.len()).filter(is_in).collect();
        let alone: Vec<Flex> = kept.iter().map(|&index| sections[index]).collect();
        let alone = resolve(space, &alone);
        let sizes: Vec<u64> = kept.iter().map(|&index| resolved.tokens[index]).collect();
        prop_assert_eq!((sizes, resolved.free_tokens), (alone.tokens, alone.free_tokens));
        prop_assert!(alone.dropped.is_empty());
    }

    /// If all priorities differ, another order moves at most one token.
    #[test]
    fn order_hardly_matters(
        space in sizes(),
        (sections, shuffled) in flexes()
            .prop_map(|mut sections| {
                for (section, priority) in sections.iter_mut().zip(0..) {
                    section.priority = priority;
                }
                sections
            })
            .prop_flat_map(|sections| (Just(sections.clone()), Just(sections).prop_shuffle())),
    ) {
        let (ordered, other) =
            (resolve(space, &sections), resolve(space, &shuffled));
        prop_assert_eq!(ordered.free_tokens, other.free_tokens);
        for (section, size) in shuffled.iter().zip(other.tokens) {
            let index = usize::try_from(section.priority).unwrap();
            prop_assert!(ordered.tokens[index].abs_diff(size) <= 1);
        }
    }

    /// Equal sections differ by at most one token, which the first has; but the
    /// last are dropped.
    #[test]
    fn equals_are_equal(space in sizes(), section in flex(), many in 1..9_usize) {
        let Resolved { tokens, dropped, .. } = resolve(space, &vec![section; many]);
        let kept = &tokens[..many - dropped.len()];
        prop_assert!(dropped.iter().copied().eq((kept.len()..many).rev()));
        prop_assert!(kept.is_sorted_by(|one, other| one >= other));
        if let (Some(first), Some(last)) = (kept.first(), kept.last()) {
            prop_assert!(first - last <= 1);
        }
    }

    /// Multiplying all factors changes nothing, as long as they sum to at least
    /// 1.
    #[test]
    fn only_ratios_count(space in sizes(), sections in flexes(), times in 1..1_000_u16) {
        let mut sections = sections;
        for section in &mut sections {
            section.grow = section.grow.clamp(1.0, 10.0).floor();
            section.shrink = section.shrink.clamp(1.0, 10.0).floor();
        }
        let mut larger = sections.clone();
        for section in &mut larger {
            section.grow *= f64::from(times);
            section.shrink *= f64::from(times);
        }
        prop_assert_eq!(resolve(space, &sections), resolve(space, &larger));
    }
}

/// Returns the widths of a row of boxes, not rounded.
///
/// Each box has only the factor that CSS uses. Where that is 0, taffy would use
/// the basis for the initial free space and not the size, unless the other
/// factor is 0 too.
fn taffy_widths(space: u64, sections: &[Flex]) -> TaffyResult<Vec<f64>> {
    #[allow(clippy::cast_precision_loss)] // the tests stay below 2^24
    fn pixels(tokens: u64) -> f32 {
        tokens as f32
    }
    #[allow(clippy::cast_possible_truncation)] // the tests draw from f32
    fn factor(factor: f64) -> f32 {
        factor as f32
    }
    let growing = sections.iter().map(clamped_basis).sum::<u64>() < space;
    let mut tree = TaffyTree::<()>::new();
    tree.disable_rounding();
    let boxes: Vec<_> = sections
        .iter()
        .map(|section| {
            tree.new_leaf(Style {
                flex_basis: length(pixels(section.basis)),
                flex_grow: if growing { factor(section.grow) } else { 0.0 },
                flex_shrink: if growing { 0.0 } else { factor(section.shrink) },
                min_size: Size { width: length(pixels(section.min_tokens)), height: auto() },
                max_size: Size {
                    width: section.max_tokens.map_or(auto(), |max| length(pixels(max))),
                    height: auto(),
                },
                ..Style::default()
            })
        })
        .collect::<TaffyResult<_>>()?;
    let row = Style {
        size: Size { width: length(pixels(space)), height: length(1.0) },
        ..Style::default()
    };
    let row = tree.new_with_children(row, &boxes)?;
    tree.compute_layout(row, Size::MAX_CONTENT)?;
    boxes.into_iter().map(|node| Ok(f64::from(tree.layout(node)?.size.width))).collect()
}

/// Sections whose figures are exact in f32, with which taffy computes.
///
/// A shrink factor is 0 or at least 1. Where the factors of the shrinking
/// sections sum below 1, CSS takes only that part of the lacking size, and
/// overflows.
fn css_flex() -> impl Strategy<Value = Flex> {
    let grow = prop_oneof![Just(0.0_f32), Just(1.0), 0.01..0.5_f32, 0.01..20_f32];
    let shrink = prop_oneof![Just(0.0_f32), Just(1.0), 1.0..20_f32];
    let minima = prop_oneof![Just(0), 0..500_u64];
    let maxima = prop_oneof![Just(None), (0..2_000_u64).prop_map(Some)];
    (0..2_000_u64, grow, shrink, minima, maxima).prop_map(
        |(basis, grow, shrink, min_tokens, max_tokens)| Flex {
            basis,
            grow: grow.into(),
            shrink: shrink.into(),
            min_tokens,
            max_tokens,
            priority: 0,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    /// Sizes are those of CSS, rounded, wherever CSS does not overflow: where
    /// the smallest sizes fit, so that nothing is dropped, and the shrink
    /// factors sum to at least 1. (A sum below 1 while growing is the same in
    /// both.)
    #[test]
    fn sizes_are_those_of_css(
        sections in prop::collection::vec(css_flex(), 1..9),
        space in prop_oneof![0..2_000_u64, 0..12_000_u64],
    ) {
        let space = space.max(sections.iter().map(least).sum());
        let Resolved { tokens, dropped, .. } = resolve(space, &sections);
        prop_assert!(dropped.is_empty());
        let widths = taffy_widths(space, &sections).unwrap();
        for (&size, &width) in tokens.iter().zip(&widths) {
            // A hundredth for the arithmetic in f32.
            let difference = f64::from(u32::try_from(size).unwrap()) - width;
            prop_assert!(difference.abs() < 1.01, "{:?} {:?}", tokens, widths);
        }
    }
}

/// A section with a basis that may grow and shrink.
fn section(basis: u64, grow: f64, shrink: f64) -> Flex {
    Flex { basis, grow, shrink, ..Flex::default() }
}

#[test]
fn what_is_left_over_goes_by_factor() {
    let sections = [section(100, 1.0, 1.0), section(100, 3.0, 1.0), section(100, 0.0, 1.0)];
    assert_eq!(vec![125, 175, 100], resolve(400, &sections).tokens);
    // 10 is 2.5 and 7.5: equal remainders, so the first gets the token.
    assert_eq!(vec![103, 107, 100], resolve(310, &sections).tokens);
}

#[test]
fn what_is_lacking_is_taken_by_factor_and_basis() {
    let sections = [section(300, 0.0, 1.0), section(100, 0.0, 3.0), section(50, 0.0, 0.0)];
    assert_eq!(vec![200, 0, 50], resolve(250, &sections).tokens);
    // 61 is 30.5 each: the last gives first.
    assert_eq!(vec![270, 69, 50], resolve(389, &sections).tokens);
}

#[test]
fn what_meets_a_limit_leaves_the_rest_to_others() {
    let mut sections = [section(0, 1.0, 1.0), section(0, 1.0, 1.0), section(0, 2.0, 1.0)];
    sections[0].max_tokens = Some(10);
    sections[1].min_tokens = 50;
    assert_eq!(vec![10, 50, 40], resolve(100, &sections).tokens);
}

/// No more are dropped once what is left fits exactly.
#[test]
fn what_fits_exactly_stays() {
    let least = Flex { min_tokens: 5, ..section(5, 0.0, 0.0) };
    for (space, dropped) in [(15, vec![]), (10, vec![2]), (9, vec![2, 1]), (5, vec![2, 1])] {
        assert_eq!(dropped, resolve(space, &[least; 3]).dropped);
    }
}

#[test]
fn grow_factors_below_1_leave_something_free() {
    let resolved = resolve(1_000, &[section(0, 0.25, 1.0), section(0, 0.5, 1.0)]);
    assert_eq!((vec![250, 500], 250), (resolved.tokens, resolved.free_tokens));
    // The floats 0.7, 0.2 and 0.1 sum to a little less than 1, but not as they are read.
    let tenths = [section(0, 0.7, 1.0), section(0, 0.2, 1.0), section(0, 0.1, 1.0)];
    assert_eq!(0, resolve(1_000_000_000, &tenths).free_tokens);
}

/// What others leave is less than the part that a factor takes of all.
#[test]
fn grow_factors_below_1_take_no_more_than_is_left() {
    let mut sections = [section(0, 0.4, 1.0), section(0, 0.4, 1.0)];
    sections[0].min_tokens = 90;
    assert_eq!(vec![90, 10], resolve(100, &sections).tokens);
}

/// Half a token and more is one.
#[test]
fn a_part_of_a_token_is_rounded() {
    for (grow, tokens) in [(0.49, 0), (0.5, 1), (0.75, 1)] {
        assert_eq!(vec![tokens], resolve(1, &[section(0, grow, 1.0)]).tokens);
    }
}

#[test]
fn shrink_factors_below_1_still_make_it_fit() {
    let sections = [section(100, 0.0, 0.25), section(100, 0.0, 0.25)];
    assert_eq!(vec![50, 50], resolve(100, &sections).tokens);
}

/// The largest basis times the largest factor is divided exactly.
#[test]
fn factors_of_all_magnitudes_are_exact() {
    let sections = [section(0, 1e4, 1.0), section(0, 1e-6, 1.0), section(0, 1.0, 1.0)];
    let tokens = resolve(100_010_000_010, &sections).tokens;
    assert_eq!(vec![100_000_000_000, 10, 10_000_000], tokens);
    let most = u64::MAX;
    let sections = [section(most, 0.0, 1e4), section(most, 0.0, 1e4)];
    assert_eq!(vec![most / 2 + 1, most / 2], resolve(most, &sections).tokens);
    let sections = [section(most, 0.0, 1e4), section(most, 0.0, 1e-6)];
    // The second gives one part of 10^10 + 1.
    let little = most / 10_000_000_001;
    assert_eq!(vec![little, most - little], resolve(most, &sections).tokens);
}

#[test]
fn factors_out_of_range_are_refused() {
    for factor in [f64::NAN, f64::INFINITY, -1.0, 9e-7, 10_000.5] {
        let error = resolve_layout(9, &[section(5, 1.0, factor)]).unwrap_err();
        assert_eq!(ErrorKind::InvalidArgument, error.kind());
        let message =
            format!("sections[0].shrink must be 0 or from 0.000001 to 10000, not {factor}");
        assert_eq!(message, error.to_string());
    }
}

#[test]
fn no_sections_leave_all_free() {
    assert_eq!(7, resolve(7, &[]).free_tokens);
    assert_eq!(Vec::<u64>::new(), resolve(0, &[]).tokens);
}
