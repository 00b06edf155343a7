//! A divided window loses no token and keeps every limit; its sizes are those of
//! CSS as taffy computes them; and a prompt is within its window.
#![no_main]

use budgeteer::window::{ModelLimits, count_messages, count_tools};
use budgeteer::{
    Flex, Layout, Message, Packer, Resolved, Section, TokenCounter as _, Tool, resolve_layout,
};
use budgeteer_fuzz::counters::Counter;
use budgeteer_fuzz::words::{Words, few};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use taffy::prelude::*;

#[derive(Debug, Arbitrary)]
struct Input {
    space: Tokens,
    boxes: Vec<Item>,
    prompt: Option<Prompt>,
}

/// A size: small, where limits meet, or any.
#[derive(Clone, Copy, Debug, Arbitrary)]
enum Tokens {
    Tiny(u8),
    Small(u16),
    Any(u64),
}

impl From<Tokens> for u64 {
    fn from(size: Tokens) -> Self {
        match size {
            Tokens::Tiny(size) => size.into(),
            Tokens::Small(size) => size.into(),
            Tokens::Any(size) => size,
        }
    }
}

#[derive(Clone, Copy, Debug, Arbitrary)]
struct Item {
    basis: Tokens,
    grow: u8,
    shrink: u8,
    odd: Option<f64>,
    least: Option<Tokens>,
    most: Option<Tokens>,
    priority: i8,
}

impl Item {
    fn flex(self) -> Flex {
        const FACTORS: [f64; 8] = [0.0, 1.0, 1.0, 2.0, 0.25, 20.0, 10_000.0, 1e-6];
        Flex {
            basis: self.basis.into(),
            grow: FACTORS[usize::from(self.grow % 8)],
            shrink: self.odd.unwrap_or(FACTORS[usize::from(self.shrink % 8)]),
            min_tokens: self.least.map_or(0, u64::from),
            max_tokens: self.most.map(u64::from),
            priority: self.priority.into(),
        }
    }
}

#[derive(Debug, Arbitrary)]
struct Prompt {
    counter: Counter,
    window: u16,
    most: u16,
    gap: u8,
    sections: Parts,
}

#[derive(Debug)]
struct Parts(Vec<Part>);

impl<'a> Arbitrary<'a> for Parts {
    fn arbitrary(input: &mut arbitrary::Unstructured<'a>) -> arbitrary::Result<Self> {
        few(input, 6).map(Self)
    }
}

#[derive(Debug, Arbitrary)]
struct Part {
    kind: u8,
    text: Words,
    tokens: u8,
    grow: u8,
    shrink: u8,
    least: u8,
    most: Option<u8>,
    priority: i8,
}

fuzz_target!(|input: Input| {
    let space = input.space.into();
    let boxes: Vec<Flex> = input.boxes.iter().take(12).map(|one| one.flex()).collect();
    if let Ok(resolved) = resolve_layout(space, &boxes) {
        assert_divided(space, &boxes, &resolved);
        if is_css(space, &boxes) {
            assert_css(space, &boxes, &resolved.tokens);
        }
    }
    if let Some(prompt) = input.prompt {
        assert_prompt(&prompt);
    }
});

fn most(flex: &Flex) -> u64 {
    flex.max_tokens.unwrap_or(u64::MAX).max(flex.min_tokens)
}

fn clamped(flex: &Flex) -> u64 {
    flex.basis.clamp(flex.min_tokens, most(flex))
}

fn least(flex: &Flex) -> u64 {
    if flex.shrink > 0.0 { flex.min_tokens } else { clamped(flex) }
}

fn total(sizes: impl Iterator<Item = u64>) -> u128 {
    sizes.map(u128::from).sum()
}

fn assert_divided(space: u64, boxes: &[Flex], resolved: &Resolved) {
    let Resolved { tokens, dropped, free_tokens, .. } = resolved;
    let all = total(tokens.iter().copied()) + u128::from(*free_tokens);
    assert_eq!(u128::from(space), all, "nothing is lost");
    for (at, flex) in boxes.iter().enumerate() {
        let size = tokens[at];
        let range = if dropped.contains(&at) { 0..=0 } else { least(flex)..=most(flex) };
        assert!(range.contains(&size), "{size} of {flex:?}");
    }
    let mut order: Vec<usize> = (0..boxes.len()).rev().collect();
    order.sort_by_key(|&at| boxes[at].priority);
    assert_eq!(order[..dropped.len()], dropped[..], "the last of the lowest priority goes first");
    let needed = |from: usize| total(order[from..].iter().map(|&at| least(&boxes[at])));
    assert!(needed(dropped.len()) <= u128::from(space));
    assert!(dropped.is_empty() || needed(dropped.len() - 1) > u128::from(space));
}

/// Whether taffy, which computes in f32, is exact enough, and nothing overflows.
fn is_css(space: u64, boxes: &[Flex]) -> bool {
    let sizes = |flex: &Flex| [flex.basis, flex.min_tokens, flex.max_tokens.unwrap_or(0)];
    let factor = |factor: f64| factor == 0.0 || (0.25..=20.0).contains(&factor);
    let shrinks = |flex: &Flex| factor(flex.shrink) && (flex.shrink == 0.0 || flex.shrink >= 1.0);
    boxes.len() < 9
        && space < 12_000
        && boxes.iter().all(|flex| sizes(flex).iter().all(|&size| size < 2_000))
        && boxes.iter().all(|flex| factor(flex.grow) && shrinks(flex))
        && total(boxes.iter().map(least)) <= u128::from(space)
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // they are small
fn assert_css(space: u64, boxes: &[Flex], tokens: &[u64]) {
    // Where a factor is 0, taffy takes the basis for the initial free space, so
    // each box has only the factor that CSS uses.
    let is_growing = total(boxes.iter().map(clamped)) < u128::from(space);
    let mut tree = TaffyTree::<()>::new();
    tree.disable_rounding();
    let style = |flex: &Flex| Style {
        flex_basis: length(flex.basis as f32),
        flex_grow: if is_growing { flex.grow as f32 } else { 0.0 },
        flex_shrink: if is_growing { 0.0 } else { flex.shrink as f32 },
        min_size: Size { width: length(flex.min_tokens as f32), height: auto() },
        max_size: Size {
            width: flex.max_tokens.map_or(auto(), |most| length(most as f32)),
            height: auto(),
        },
        ..Style::default()
    };
    let leaves: Vec<_> =
        boxes.iter().map(|flex| tree.new_leaf(style(flex)).expect("it is a leaf")).collect();
    let row = Style {
        size: Size { width: length(space as f32), height: length(1.0) },
        ..Style::default()
    };
    let row = tree.new_with_children(row, &leaves).expect("it is a row");
    tree.compute_layout(row, Size::MAX_CONTENT).expect("it is divided");
    for ((node, &size), flex) in leaves.iter().zip(tokens).zip(boxes) {
        let width = f64::from(tree.layout(*node).expect("it is there").size.width);
        // A hundredth for the arithmetic in f32.
        assert!((size as f64 - width).abs() < 1.01, "{size}, not {width}: {flex:?} of {space}");
    }
}

fn assert_prompt(prompt: &Prompt) {
    let counter = prompt.counter.make();
    let window = usize::from(prompt.window % 800);
    let most = usize::from(prompt.most % 800);
    let gap = usize::from(prompt.gap % 16);
    let limits = ModelLimits::new("gpt-3.5-turbo-0301", window).max_input_tokens(most);
    let tools = [Tool::new("now").description("Say what time it is"), Tool::new("find")];
    let texts: Vec<[&str; 1]> = prompt.sections.0.iter().map(|part| [&*part.text.0]).collect();
    let mut layout = Layout::for_model(&limits).gap(gap);
    let mut reserves = Vec::new();
    for (at, part) in prompt.sections.0.iter().enumerate() {
        let name = at.to_string();
        let text = &*part.text.0;
        let section = match part.kind % 6 {
            0 => Section::text(name, text),
            1 => Section::messages(name, text.lines().map(Message::user).collect::<Vec<_>>()),
            2 => Section::tools(name, &tools[..usize::from(part.tokens % 3)]),
            3 => Section::fill(name, move |tokens| {
                // Text that no counter of these counts higher than its bytes twice.
                Packer::new(tokens / 20).counter(|text: &str| 2 * text.len()).pack("", &[text])
            }),
            4 if counter.to_shared().is_some() => {
                Section::chunks(name, "tea", &texts[at], Packer::new(part.tokens.into()))
            }
            _ => {
                reserves.push(name.clone());
                Section::reserve(name, part.tokens.into())
            }
        };
        let factor = |factor: u8| [0.0, 0.5, 1.0, 3.0][usize::from(factor % 4)];
        let least = usize::from(part.least % 32);
        let section = section
            .grow(factor(part.grow))
            .shrink(factor(part.shrink))
            .min_tokens(least)
            .priority(part.priority.into());
        layout = layout.section(match part.most {
            Some(most) => section.max_tokens(least.max(most.into())),
            None => section,
        });
    }
    let wild = matches!(prompt.counter, Counter::Wild(_));
    let fitted = match layout.fit(&counter) {
        Ok(fitted) => fitted,
        // A fill counts by other rules than a counter without any.
        Err(_) if wild => return,
        Err(error) => panic!("{error}"),
    };
    let has_system = fitted.messages.iter().any(Message::is_system);
    let counted = count_messages(&fitted.messages, &counter, Some(&limits.name))
        + count_tools(&fitted.tools, &counter, has_system);
    assert_eq!(counted, fitted.total_tokens);
    let reserved: usize = reserves.iter().map(|name| fitted.tokens[name]).sum();
    assert!(counted + reserved <= window.saturating_sub(gap));
    assert!(counted <= most.saturating_sub(gap));
    for (name, used) in &fitted.used_tokens {
        assert!(*used <= fitted.tokens[name]);
    }
}
