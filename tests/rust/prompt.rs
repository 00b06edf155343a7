//! Layouts and trimming: the cases that Python must answer alike, and laws that
//! hold for every input.
#![allow(clippy::unwrap_used)] // an unexpected value fails its test

mod cases;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use budgeteer::window::{ModelLimits, count_messages, count_tools, model_limits, trim_messages};
use budgeteer::{
    Allocation, Encoding, Error, ErrorKind, Estimate, Filling, Image, Layout, Message, Overflow,
    Packer, Section, TokenCounter, Tool, Trim,
};
use cases::{cases, counter, list, messages, number, tools};
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn trimming_is_that_of_python() {
    trims_as_python(&cases("layout.json", "trims"));
}

#[test]
fn trimming_turn_after_turn_is_that_of_python() {
    trims_as_python(&cases("layout.json", "turns"));
}

#[test]
fn trimming_what_a_provider_runs_is_that_of_python() {
    trims_as_python(&cases("layout.json", "rounds"));
}

fn trims_as_python(all: &Value) {
    for case in list(all) {
        let previous = case.get("previous").map(messages);
        let pins: Vec<usize> = case["pins"].as_array().into_iter().flatten().map(number).collect();
        let trim = Trim {
            model: case["model"].as_str(),
            start_on_user: case["start_on"] == "user",
            previous: previous.as_deref(),
            step: case["step"].as_f64(),
            keep_results: case["keep_results"].as_u64().map(|newest| newest.try_into().unwrap()),
            pins: &pins,
        };
        let counter = counter(&case["counter"]);
        let limit = number(&case["max_tokens"]);
        match trim_messages(&messages(&case["messages"]), limit, &counter, trim) {
            Ok(trimmed) => {
                let figures = [trimmed.total_tokens, trimmed.stable_prefix_tokens];
                let said = [&case["total_tokens"], &case["stable_prefix_tokens"]].map(number);
                assert_eq!(said, figures, "{case}");
                let mut kept = trimmed.places;
                kept.retain(|i| !trimmed.cut.contains_key(i));
                let cut: Vec<Value> = trimmed.cut.values().map(Message::to_json).collect();
                assert_eq!((&case["kept"], &case["cut"]), (&json!(kept), &json!(cut)), "{case}");
            }
            Err(error) if error.kind() == ErrorKind::BudgetExhausted => {
                assert_eq!(case["error"], error.to_string());
            }
            Err(error) => {
                assert_eq!(ErrorKind::InvalidArgument, error.kind());
                let words = case["error"].as_str().unwrap();
                let same = words.replace("start_on 'user'", "start_on_user");
                assert_eq!(same, error.to_string());
            }
        }
    }
}

#[test]
fn images_cost_what_they_do_in_python() {
    for case in list(&cases("layout.json", "images")) {
        let mut image = Image::url("");
        if let Some(size) = case["size"].as_array() {
            let side = |i: usize| u32::try_from(number(&size[i])).unwrap();
            image = image.size(side(0), side(1));
        }
        let messages = [Message::new("", image)];
        let tokens = count_messages(&messages, &Estimate::Words, case["model"].as_str());
        assert_eq!(case["tokens"], tokens, "{case}");
    }
}

fn section(fields: &Value) -> Section<'_> {
    let name = fields["name"].as_str().unwrap();
    let fill = fields["fill"].clone();
    let mut section = match (&fields["content"], &fill) {
        (Value::String(text), _) => Section::text(name, text),
        (content @ Value::Array(items), _) => match items.first() {
            Some(first) if first.get("role").is_none() => Section::tools(name, tools(content)),
            _ => Section::messages(name, messages(content)),
        },
        (_, Value::Object(_)) => Section::fill(name, move |max_tokens| {
            Ok(match &fill["messages"] {
                Value::Null => {
                    let words = number(&fill["words"]).min(max_tokens) + number(&fill["over"]);
                    Filling::Text(vec!["a"; words].join(" "))
                }
                answer => Filling::Messages(messages(answer)),
            })
        }),
        _ => Section::reserve(name, number(&fields["tokens"])),
    };
    for (key, value) in fields.as_object().unwrap() {
        section = match key.as_str() {
            "basis" => section.basis(number(value)),
            "grow" => section.grow(value.as_f64().unwrap()),
            "shrink" => section.shrink(value.as_f64().unwrap()),
            "min_tokens" => section.min_tokens(number(value)),
            "max_tokens" => section.max_tokens(number(value)),
            "priority" => section.priority(value.as_i64().unwrap()),
            "role" => section.role(value.as_str().unwrap()),
            "previous" => section.previous(messages(value)),
            "step" => section.step(value.as_f64().unwrap()),
            "keep_results" => section.keep_results(number(value)),
            _ => section,
        };
    }
    section
}

fn fit(case: &Value, counter: &dyn TokenCounter) -> Result<Allocation, Error> {
    let window = number(&case["context_window"]);
    let mut layout = match &case["max_input_tokens"] {
        Value::Null => Layout::new(window),
        most => {
            Layout::for_model(&ModelLimits::new("gpt-4", window).max_input_tokens(number(most)))
        }
    };
    layout = layout.gap(number(&case["gap"]));
    if let Some(model) = case["model"].as_str() {
        layout = layout.model(model);
    }
    list(&case["sections"]).iter().fold(layout, |all, one| all.section(section(one))).fit(counter)
}

#[test]
fn layouts_are_those_of_python() {
    for case in list(&cases("layout.json", "layouts")) {
        let answer = &case["answer"];
        let counter = counter(&case["counter"]);
        let fitted = match fit(case, &counter) {
            Ok(fitted) => fitted,
            Err(error) => {
                assert_eq!(ErrorKind::InvalidArgument, error.kind());
                assert_eq!("InvalidArgumentError", answer["error"], "{error}: {case}");
                continue;
            }
        };
        let said: Vec<Value> = fitted.messages.iter().map(Message::to_json).collect();
        assert_eq!(answer["tokens"], json!(fitted.tokens), "{case}");
        assert_eq!(answer["used_tokens"], json!(fitted.used_tokens), "{case}");
        assert_eq!(answer["free_tokens"], fitted.free_tokens, "{case}");
        assert_eq!(answer["dropped_sections"], json!(fitted.dropped_sections), "{case}");
        assert_eq!(answer["cut_sections"], json!(fitted.cut_sections), "{case}");
        assert_eq!(answer["messages"], Value::Array(said), "{case}");
        assert_eq!(tools(&answer["tools"]), fitted.tools, "{case}");
        assert_eq!(answer["total_tokens"], fitted.total_tokens, "{case}");
        assert_eq!(answer["is_exact"], fitted.is_exact, "{case}");
    }
}

/// Kind, text, tokens, grow and shrink, least and most, priority.
type Drawn = (u8, String, usize, [f64; 2], (usize, usize), i64);

/// Sections of every kind; texts and messages of several scripts.
fn sections() -> impl Strategy<Value = Vec<Drawn>> {
    let sizes = || prop::sample::select(vec![0, 3, 20, 60, usize::MAX]);
    let factors = || prop::sample::select(vec![0.0, 0.5, 1.0, 3.0]);
    let one = (
        0..5_u8,
        "[a-c .é日🇷🇸\u{301}\n]{0,90}",
        0..90_usize,
        [factors(), factors()],
        (0..9_usize, sizes()),
        -1..2_i64,
    );
    prop::collection::vec(one, 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// The law: the counted prompt, the reserved tokens and the gap never
    /// exceed the window, and the figures of the allocation are true.
    #[test]
    fn no_prompt_exceeds_its_window(
        window in 0..400_usize,
        most in 0..400_usize,
        gap in 0..9_usize,
        sections in sections(),
        which in 0..4_u8,
    ) {
        let bytes = |text: &str| text.len();
        let odd = |text: &str| text.len().div_ceil(3) + text.len() % 2;
        let counter: &dyn TokenCounter = match which {
            0 => &Estimate::Words,
            1 => &Encoding::O200k,
            2 => &bytes,
            _ => &odd,
        };
        let limits = ModelLimits::new("gpt-3.5-turbo-0301", window).max_input_tokens(most);
        let tools = [Tool::new("now").description("Say what time it is"), Tool::new("find")];
        let mut layout = Layout::for_model(&limits).gap(gap);
        let mut reserves = Vec::new();
        for (i, (kind, text, tokens, [grow, shrink], (min, max), priority)) in
            sections.iter().enumerate()
        {
            let name = i.to_string();
            let history: Vec<Message> = text.lines().map(Message::user).collect();
            let section = match kind {
                0 => Section::text(name.clone(), text.as_str()),
                1 => Section::messages(name.clone(), history),
                2 => Section::tools(name.clone(), &tools[..tokens % 3]),
                3 => Section::fill(name.clone(), move |max_tokens| {
                    // Twice the bytes is more than any of the counters counts.
                    Packer::new(max_tokens).counter(|text: &str| 2 * text.len()).pack("", &[text])
                }),
                _ => {
                    reserves.push(name.clone());
                    Section::reserve(name.clone(), *tokens)
                }
            };
            let section = section.grow(*grow).shrink(*shrink).min_tokens(*min).priority(*priority);
            layout = layout.section(section.max_tokens((*max).max(*min)));
        }
        let fitted = layout.fit(counter).unwrap();
        let has_system = fitted.messages.iter().any(Message::is_system);
        let counted = count_messages(&fitted.messages, counter, Some(&limits.name))
            + count_tools(&fitted.tools, counter, has_system);
        prop_assert_eq!(counted, fitted.total_tokens);
        let reserved: usize = reserves.iter().map(|name| fitted.tokens[name]).sum();
        prop_assert!(counted + reserved <= window.saturating_sub(gap));
        prop_assert!(counted <= most.saturating_sub(gap));
        for (name, used) in &fitted.used_tokens {
            prop_assert!(*used <= fitted.tokens[name]);
        }
        for name in &fitted.dropped_sections {
            prop_assert_eq!(0, fitted.tokens[name]);
        }
        let dropped: BTreeSet<&String> = fitted.dropped_sections.iter().collect();
        prop_assert_eq!(dropped.len(), fitted.dropped_sections.len());
    }
}

#[test]
fn texts_are_cut_between_clusters() {
    let text = "e\u{301}🇷🇸🇮🇴".repeat(9);
    let chars = |text: &str| text.chars().count();
    let frame = 3 + 4;
    for room in 1..20 {
        let layout = Layout::new(3 + frame + room).section(Section::text("user", &*text));
        let fitted = layout.fit(&chars).unwrap();
        let said = fitted.messages.first().map_or(0, |message| chars(&message.text()));
        assert_eq!(room - room % 2, said);
        assert_eq!(["user".to_string()], *fitted.cut_sections);
    }
}

/// Sections are filled in their order, once, with the tokens left for a text.
#[test]
fn fills_are_asked_once() {
    let asked = Mutex::new(Vec::new());
    let ask = |name: &'static str| {
        Section::fill(name, |max_tokens| {
            asked.lock().unwrap().push(max_tokens);
            Ok("")
        })
    };
    let layout = Layout::new(100)
        .section(ask("first").grow(1.0))
        .section(ask("nothing"))
        .section(ask("dropped").min_tokens(200).priority(-1))
        .section(ask("last").basis(30).shrink(0.0));
    let fitted = layout.fit(&Estimate::Words).unwrap();
    assert_eq!(vec![67 - 4, 30 - 4], *asked.lock().unwrap());
    assert_eq!(["dropped".to_string()], *fitted.dropped_sections);
    assert_eq!(["nothing".to_string()], *fitted.cut_sections);
    assert_eq!((0, 0), (fitted.messages.len(), fitted.total_tokens));
}

#[test]
fn wrong_sections_are_refused() {
    let reserve = || Section::reserve("x", 1);
    for (sections, words) in [
        (vec![reserve(), reserve()], "there are two sections of the name \"x\""),
        (vec![Section::reserve("", 1)], "the name of a section must not be empty"),
        (vec![reserve().grow(f64::NAN)], "section \"x\": grow must be 0 or from 0.000001 to 10000"),
        (vec![reserve().shrink(-1.0)], "section \"x\": shrink must be 0 or from 0.000001 to 10000"),
        (
            vec![reserve().min_tokens(2).max_tokens(1)],
            "section \"x\": min_tokens must be at most the max_tokens 1, not 2",
        ),
        (vec![reserve().role("user")], "section \"x\": role is for a text"),
        (
            vec![Section::fill("x", |_| Ok(vec![Message::user("tea")])).basis(9).role("user")],
            "the fill of section \"x\" answered messages, which have roles of their own",
        ),
        (
            vec![Section::text("x", "").role("tool")],
            "section \"x\": role must be one of \"system\"",
        ),
        (
            vec![Section::text("x", "").keep_results(2)],
            "section \"x\": keep_results is for a section of messages",
        ),
        (
            vec![Section::fill("x", |n| Ok("a ".repeat(n + 1))).basis(9)],
            "the fill of section \"x\" answered a text of 6 tokens, more than the 5 that it was",
        ),
        (
            vec![Section::fill("x", |_| Ok(vec![Message::user("a b c d e f")])).basis(9)],
            "the fill of section \"x\" answered messages of 10 tokens, more than the 9 of its",
        ),
    ] {
        let layout = sections.into_iter().fold(Layout::new(100), Layout::section);
        let error = layout.fit(&Estimate::Words).unwrap_err();
        assert_eq!(ErrorKind::InvalidArgument, error.kind());
        assert!(error.to_string().starts_with(words), "{error}");
    }
}

/// A fill may answer as many tokens as it is asked for.
#[test]
fn fills_are_taken_to_the_last_token() {
    let text = Section::fill("x", |n| Ok(vec!["a"; n].join(" ")));
    let messages = Section::fill("x", |n| Ok(vec![Message::user(vec!["a"; n].join(" "))]));
    for section in [text, messages] {
        let fitted = Layout::new(100).section(section.basis(9)).fit(&Estimate::Words).unwrap();
        assert_eq!(9, fitted.used_tokens["x"]);
    }
}

/// The error of a fill passes unchanged.
#[test]
fn fills_may_fail() {
    let section = Section::fill("x", |n| Packer::new(n).min_score(f64::NAN).pack("", &["a"]));
    let error = Layout::new(9).section(section.grow(1.0)).fit(&Estimate::Words).unwrap_err();
    assert_eq!("min_score must be a number, not NaN", error.to_string());
}

/// A section of chunks is packed by the counter of the layout, whatever that of
/// its packer is.
#[test]
fn chunks_are_packed_by_the_counter_of_the_layout() {
    let chunks: Vec<String> =
        (0..60).map(|i| format!("Chunk {i} about green tea, steamed.")).collect();
    let packer = || Packer::new(90).estimate(Estimate::Words).overflow(Overflow::TruncateEnd);
    let claude = model_limits("claude-opus-4-5").counter().unwrap();
    let counters: [&dyn TokenCounter; 4] =
        [&Encoding::O200k, &Estimate::CharsDiv4, &Estimate::Words, &claude];
    for counter in counters {
        for window in [8, 20, 60, 200] {
            let section = Section::chunks("context", "green tea", &chunks, packer()).grow(1.0);
            let allocation = Layout::new(window).section(section).fit(counter).unwrap();
            assert!(allocation.total_tokens <= window);
            let used = allocation.used_tokens["context"];
            let text = allocation.messages.first().map(Message::text).unwrap_or_default();
            assert!(counter.count(&text) <= used.min(90), "{text}");
            assert!(window < 20 || used + 30 > window.min(90), "{used} of {window}");
        }
    }
}

/// A turn that a tool is called in, for an answer of so many words, or none yet.
fn turn(words: usize, result: &str, answer: bool) -> Vec<Message> {
    let text = "tea ".repeat(words);
    let call = json!([{"id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}]);
    let mut turn = vec![
        json!({"role": "user", "content": text}),
        json!({"role": "assistant", "content": null, "tool_calls": call}),
        json!({"role": "tool", "tool_call_id": "a", "content": result}),
    ];
    turn.extend(answer.then(|| json!({"role": "assistant", "content": text})));
    messages(&Value::Array(turn))
}

/// How much a cut frees goes by the turns behind the last masked result: what is
/// masked says less of the size of a turn.
#[test]
fn masked_turns_do_not_make_a_cut_smaller() {
    let mut history: Vec<Message> =
        [1, 1, 2, 2].iter().flat_map(|&n| turn(n, "[tool result left out]", true)).collect();
    history.push(Message::user("tea ".repeat(40)));
    history.push(Message::assistant("tea ".repeat(40)));
    let sent = history.clone();
    history.push(Message::user("And now?"));
    let trim = Trim { previous: Some(&sent), ..Trim::default() };
    let trimmed = trim_messages(&history, 200, &Estimate::Words, trim).unwrap();
    assert_eq!(vec![16, 17, 18], trimmed.places);
}

/// With one token less than the newest turn takes at least, the error says so.
#[test]
fn the_least_that_a_turn_takes_fits() {
    let history = turn(3, &"tea ".repeat(200), false);
    let trim = |limit| trim_messages(&history, limit, &Estimate::Words, Trim::default());
    let least = (0..1_000).find(|&limit| trim(limit).is_ok()).unwrap();
    let error = trim(least - 1).unwrap_err().to_string();
    assert!(error.contains("= -1"), "{error}");
}

/// A result that is no longer than its share stays the caller's own.
#[test]
fn what_is_cut_differs() {
    let mut history = turn(3, &"tea ".repeat(20), false);
    history.extend(turn(3, &"tea ".repeat(200), false).split_off(1));
    let mut cut = [0; 2];
    for limit in 0..300 {
        let Ok(trimmed) = trim_messages(&history, limit, &Estimate::Words, Trim::default()) else {
            continue;
        };
        for (&place, message) in &trimmed.cut {
            assert_ne!(&history[place], message, "{limit}");
        }
        cut = [2, 4].map(|place| usize::from(trimmed.cut.contains_key(&place)) + cut[place / 3]);
    }
    assert!(0 < cut[0] && cut[0] < cut[1], "{cut:?}");
}

/// A section of messages masks results, but for the newest that it was told to
/// keep: a result that may not be masked leaves with its call.
#[test]
fn a_section_masks_results() {
    let mut history = turn(3, &"tea ".repeat(200), true);
    history.push(Message::user("And now?"));
    for (newest, kept) in [(0, 5), (1, 2)] {
        let section = Section::messages("history", history.clone()).keep_results(newest);
        let allocation = Layout::new(120).section(section).fit(&Encoding::O200k).unwrap();
        assert_eq!(kept, allocation.messages.len());
    }
    assert!(format!("{:?}", Section::reserve("answer", 9)).contains("answer"));
}

/// A counter that can be kept.
struct Bytes;
impl TokenCounter for Bytes {
    fn count(&self, text: &str) -> usize {
        text.len()
    }

    fn to_shared(&self) -> Option<Arc<dyn TokenCounter + Send + Sync>> {
        Some(Arc::new(Bytes))
    }
}

/// A counter that is only borrowed cannot count for a packer: the error says
/// what can.
#[test]
fn chunks_need_a_counter_that_can_be_kept() {
    let borrowed = |text: &str| text.len();
    let section = || Section::chunks("x", "tea", &["Tea."], Packer::new(9)).grow(1.0);
    let error = Layout::new(99).section(section()).fit(&borrowed).unwrap_err();
    assert_eq!(ErrorKind::InvalidArgument, error.kind());
    let expected = "section \"x\": the counter of the layout cannot be kept for packing chunks: give \
                    it a method to_shared, or fill the section with a packer that counts as the \
                    layout does";
    assert_eq!(expected, error.to_string());

    let allocation = Layout::new(99).section(section()).fit(&Bytes).unwrap();
    assert_eq!("Tea.", allocation.messages[0].text());
}
