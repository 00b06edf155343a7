//! Tool results: the cases that Python must answer alike, and laws that hold for
//! every input.
#![allow(clippy::unwrap_used)] // an unexpected value fails its test

mod cases;

use std::cell::RefCell;

use budgeteer::{
    Encoding, Error, ErrorKind, Estimate, FittedOutput, OutputKind, OutputOptions, Scaled,
    TokenCounter, fit_output, fit_outputs,
};
use cases::{cases, counter, list, number};
use proptest::prelude::*;
use serde_json::Value;

const KINDS: [(&str, OutputKind); 6] = [
    ("auto", OutputKind::Auto),
    ("text", OutputKind::Text),
    ("json", OutputKind::Json),
    ("table", OutputKind::Table),
    ("log", OutputKind::Log),
    ("diff", OutputKind::Diff),
];

fn kind(name: &Value) -> OutputKind {
    KINDS.iter().find(|(known, _)| name == known).unwrap().1
}

fn are_those_of_python(file_kind: &str) {
    let cases = cases("output.json", file_kind);
    assert!(list(&cases).len() > 10);
    for case in list(&cases) {
        let spill = |_: &str| case["pointer"].as_str().unwrap().to_owned();
        let options = OutputOptions {
            kind: kind(&case["kind"]),
            query: case["query"].as_str(),
            spill: case["pointer"].is_string().then_some(&spill as &dyn Fn(&str) -> String),
        };
        let counter = counter(&case["counter"]);
        let limit = number(&case["max_tokens"]);
        let answer = match &case["value"] {
            Value::Array(values) => {
                let values: Vec<_> = values.iter().map(|value| value.as_str().unwrap()).collect();
                fit_outputs(&values, limit, &counter, options)
            }
            value => fit_output(value.as_str().unwrap(), limit, &counter, options)
                .map(|fitted| vec![fitted]),
        };
        match answer {
            Ok(fitted) => {
                assert_eq!(list(&case["fitted"]).len(), fitted.len(), "{case}");
                for (found, expected) in fitted.iter().zip(list(&case["fitted"])) {
                    assert_eq!(expected["text"], found.text, "{case}");
                    assert_eq!(expected["total_tokens"], found.total_tokens, "{case}");
                    assert_eq!(expected["left_out"], found.left_out, "{case}");
                    assert_eq!(kind(&expected["kind"]), found.kind, "{case}");
                    assert_eq!(expected["pointer"].as_str(), found.pointer.as_deref(), "{case}");
                }
            }
            Err(error) => {
                let name = match error.kind() {
                    ErrorKind::BudgetExhausted => "BudgetExhaustedError",
                    ErrorKind::InvalidArgument => "InvalidArgumentError",
                    kind => panic!("{kind:?}"),
                };
                assert_eq!(case["error"], name, "{case}: {error}");
            }
        }
    }
}

#[test]
fn characters_are_those_of_python() {
    are_those_of_python("characters");
}

#[test]
fn outputs_are_those_of_python() {
    are_those_of_python("outputs");
}

#[test]
fn diffs_are_those_of_python() {
    are_those_of_python("diffs");
}

#[test]
fn shapes_are_those_of_python() {
    are_those_of_python("shapes");
}

#[test]
fn logs_are_those_of_python() {
    are_those_of_python("logs");
}

#[test]
fn shared_limits_are_those_of_python() {
    are_those_of_python("shared");
}

#[test]
fn errors_are_those_of_python() {
    are_those_of_python("refused");
}

#[test]
fn errors_say_what_to_do() {
    let fit = |value: &str, limit, kind| {
        let options = OutputOptions { kind, ..OutputOptions::default() };
        fit_output(value, limit, &Estimate::CharsDiv4, options).unwrap_err().to_string()
    };
    assert_eq!(
        "value must be JSON for its kind, and is not from character 3 on: OutputKind::Text takes \
         any text",
        fit("[1 2]", 9, OutputKind::Json)
    );
    assert_eq!(
        "nothing of value fits: max_tokens 0 - 1 for its smallest text = -1",
        fit("[1]", 0, OutputKind::Auto)
    );
    assert!(fit("tea", 9, OutputKind::Diff).contains("must be a unified diff"));
    assert!(fit(&"[".repeat(100_000), 9, OutputKind::Table).contains("at most 128 deep"));
}

/// An array of arrays is no table, and is cut as JSON. (Found by fuzzing: it
/// panicked.)
#[test]
fn rows_without_keys_are_no_table() {
    let value = "[[1,2],[3,4],[5,6],[7,8],[9,10],[11,12],[13,14],[15,16],[17,18]]";
    let fit = |kind| {
        let options = OutputOptions { kind, ..OutputOptions::default() };
        fit_output(value, 14, &Estimate::CharsDiv4, options).unwrap()
    };
    let fitted = fit(OutputKind::Table);
    assert!(fitted.was_cut());
    assert_eq!((OutputKind::Json, fit(OutputKind::Json)), (fitted.kind, fitted));
}

#[test]
fn what_is_left_out_is_spilled_once() {
    let spilled = RefCell::new(Vec::new());
    let spill = |text: &str| {
        spilled.borrow_mut().push(text.to_owned());
        "/tmp/tea".to_owned()
    };
    let options = OutputOptions { spill: Some(&spill), ..OutputOptions::default() };
    let value = "Green tea. ".repeat(99);
    let counter = Encoding::O200k;

    let whole = fit_output(&value, 999, &counter, options).unwrap();
    assert!(!whole.was_cut());
    assert_eq!((0, None), (whole.left_out, whole.pointer));
    let cut = fit_output(&value, 40, &counter, options).unwrap();
    assert!(cut.text.contains("; the whole: /tmp/tea ...]"), "{}", cut.text);
    assert!(cut.was_cut());
    assert_eq!([value], *spilled.into_inner());

    let options = OutputOptions { spill: Some(&|_| "a\nb".into()), ..OutputOptions::default() };
    let error = fit_output(&cut.text, 20, &counter, options).unwrap_err();
    assert_eq!("spill must return one line of text, not more lines", error.to_string());
}

/// The first line of JSON that is cut says where the whole is; the others do not
/// once more.
#[test]
fn cut_lines_of_json_point_to_the_whole_once() {
    let line = |tea: &str| format!("{{\"tea\": \"{}\"}}\n", tea.repeat(99));
    let value = line("Green tea. ") + &line("Black tea. ");
    let options = OutputOptions { spill: Some(&|_| "/tmp/tea".into()), ..OutputOptions::default() };
    let cut = fit_output(&value, 200, &Encoding::O200k, options).unwrap();
    assert_eq!(2, cut.text.matches("left out").count(), "{}", cut.text);
    assert_eq!(1, cut.text.matches("; the whole: /tmp/tea").count(), "{}", cut.text);
}

/// A counter of one's own is asked for each text, and keeps the limit as well.
#[test]
fn any_counter_will_do() {
    let bytes = |text: &str| text.len();
    let value = format!("[{}]", ["\"grün\""; 99].join(","));
    let fitted = fit_output(&value, 80, &bytes, OutputOptions::default()).unwrap();
    assert_eq!((fitted.text.len(), OutputKind::Json), (fitted.total_tokens, fitted.kind));
    assert!(fitted.total_tokens <= 80 && fitted.text.contains("of 99 items left out"));
}

/// Lines of a log, all but one of the same kind.
fn requests() -> Vec<String> {
    let line = |i| format!("10:{:02}:{:02} INFO worker handled request {i}", i / 60, i % 60);
    (0..400).map(line).collect()
}

fn fitted_log(lines: &[String], limit: usize, query: Option<&str>) -> FittedOutput {
    let options = OutputOptions { query, ..OutputOptions::default() };
    fit_output(&lines.join("\n"), limit, &|text: &str| text.len(), options).unwrap()
}

/// An error is whole before the first and the last line of a log stay.
#[test]
fn an_error_comes_before_the_ends() {
    let mut lines = requests();
    lines[200] = "10:03:20 ERROR disk full on /dev/sda1".to_owned();
    for query in [None, Some("disk full")] {
        for limit in [100, 140, 200] {
            let fitted = fitted_log(&lines, limit, query);
            assert!(fitted.text.lines().any(|line| line == lines[200]), "{}", fitted.text);
            assert!(!fitted.text.contains("characters left out"), "{}", fitted.text);
        }
        let fitted = fitted_log(&lines, 400, query);
        assert!(fitted.text.starts_with(&lines[0]) && fitted.text.ends_with(&lines[399]));
    }
}

/// Errors that repeat stay before other lines that do, and the last one early.
#[test]
fn errors_that_repeat() {
    let mut lines = requests();
    for (i, line) in lines.iter_mut().enumerate().skip(10).step_by(20) {
        *line = format!("10:{:02}:{:02} ERROR disk full on /dev/sda{}", i / 60, i % 60, i % 3);
    }
    let count = |limit| {
        let text = fitted_log(&lines, limit, None).text;
        (text.matches("ERROR").count(), text.contains(&lines[10]) && text.contains(&lines[390]))
    };
    assert_eq!([(2, true), (20, true)], [count(160), count(3000)]);
}

/// Lines that are objects of JSON stay whole or go, and have a level.
#[test]
fn json_lines() {
    let line = |i| format!("{{\"level\":\"info\",\"msg\":\"no error {i}\"}}");
    let mut lines: Vec<_> = (0..100).map(line).collect();
    lines[40] = r#"{"Severity": "critical", "msg": "the disk is full"}"#.to_owned();
    for limit in [120, 300] {
        let fitted = fitted_log(&lines, limit, None);
        assert_eq!(OutputKind::Log, fitted.kind);
        assert!(fitted.text.lines().any(|line| line == lines[40]), "{}", fitted.text);
        let mut kept = fitted.text.lines().filter(|line| !line.starts_with("[... "));
        assert!(kept.all(|line| serde_json::from_str::<Value>(line).is_ok()));
    }
}

/// A level may be a number: pino's, or below 10 syslog's.
#[test]
fn levels_that_are_numbers() {
    for (level, other, stays) in
        [(50, 30, true), (39, 30, false), (100, 30, true), (3, 6, true), (5, 6, false)]
    {
        let line = |i| format!("{{\"level\":{other},\"msg\":\"no error {i}\"}}");
        let mut lines: Vec<_> = (0..50).map(line).collect();
        lines[20] = format!("{{\"level\":{level},\"msg\":\"no error 20\"}}");
        let fitted = fitted_log(&lines, 150, None);
        assert_eq!(stays, fitted.text.contains(&lines[20]), "{}", fitted.text);
    }
}

/// An error without a word of the query stays beside the best answer.
#[test]
fn answers_and_errors_take_turns() {
    let mut lines: Vec<_> = ('a'..='z').map(|c| format!("12:30 INFO user {c} login")).collect();
    lines[12] = "12:30 ERROR disk full".to_owned();
    let fitted = fitted_log(&lines, 120, Some("login"));
    assert!(fitted.text.contains(&lines[12]) && fitted.text.contains(&lines[0]), "{}", fitted.text);
}

/// The output of a build is a log if there is an error in it; prose is none.
#[test]
fn the_output_of_a_build() {
    let mut lines: Vec<_> = (0..3000).map(|i| format!("cc -Werror -c src/tea{i}.c")).collect();
    assert_eq!(OutputKind::Text, fitted_log(&lines, 200, None).kind);
    lines[1700] = "src/tea1699.c:3:5: error: no tea".to_owned();
    let fitted = fitted_log(&lines, 200, None);
    assert_eq!(OutputKind::Log, fitted.kind);
    assert!(fitted.text.contains(&lines[1700]), "{}", fitted.text);
    let mut prose = vec!["Green tea is not oxidised.".to_owned(); 90];
    prose[40] = "error: the tea is cold".to_owned();
    assert_eq!(OutputKind::Text, fitted_log(&prose, 200, None).kind);
    lines[2999] = "```".to_owned();
    assert_eq!(OutputKind::Text, fitted_log(&lines, 200, None).kind);
}

fn fitted(value: &str, limit: usize, kind: OutputKind) -> Result<FittedOutput, Error> {
    let options = OutputOptions { kind, query: Some("tea"), spill: None };
    fit_output(value, limit, &Encoding::O200k, options)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// What is counted anew is what was said, and at most the limit; twice
    /// changes nothing.
    #[test]
    fn the_law(
        value in prop_oneof![
            "[\\[\\]{}\",:0-9a-z\\\\ é🇳🇴\u{301}]{0,200}",
            "(INFO 12:30 [a-z]{0,9}\n|ERROR tea\n|\n|-a\n|\\+b\n|@@ -1 \\+1 @@\n|--- a\n|\\+\\+\\+ b\n){0,40}",
            proptest::collection::vec(any::<String>(), 0..20)
                .prop_map(|texts| serde_json::to_string(&texts).unwrap()),
        ],
        limit in 0_usize..60,
        kind in 0_usize..6,
    ) {
        if let Ok(fitted_once) = fitted(&value, limit, KINDS[kind].1) {
            prop_assert_eq!(Encoding::O200k.count(&fitted_once.text), fitted_once.total_tokens);
            prop_assert!(fitted_once.total_tokens <= limit);
            let again = fitted(&fitted_once.text, limit, fitted_once.kind).unwrap();
            prop_assert_eq!((&again.text, 0), (&fitted_once.text, again.left_out));
            if matches!(fitted_once.kind, OutputKind::Json | OutputKind::Table) {
                prop_assert!(serde_json::from_str::<Value>(&fitted_once.text).is_ok());
            }
        }
    }

    /// A long string is cut at the same clusters as a short one: those in its
    /// middle are not looked for.
    #[test]
    fn long_strings_end_at_clusters(
        piece in "[a-zé日🇳🇴\u{301}\u{1F468}\u{200D} \n]{1,12}",
        limit in 20_usize..90,
        is_json in any::<bool>(),
    ) {
        let text = piece.repeat(9_000 / piece.chars().count());
        let value = if is_json { serde_json::to_string(&text).unwrap() } else { text.clone() };
        let kind = if is_json { OutputKind::Json } else { OutputKind::Text };
        let chars = |text: &str| text.chars().count();
        let options = OutputOptions { kind, ..OutputOptions::default() };
        let fitted = fit_output(&value, limit, &chars, options).unwrap();
        let shown = if is_json {
            serde_json::from_str::<String>(&fitted.text).unwrap()
        } else {
            fitted.text
        };
        if let (Some(start), Some(end)) = (shown.find("[..."), shown.find("...]")) {
            let boundaries = budgeteer::grapheme_boundaries(text.as_str().into());
            let head = shown[..start].trim_end_matches('\n');
            let tail = shown[end + 4..].trim_start_matches('\n');
            prop_assert!(text.starts_with(head) && text.ends_with(tail));
            if is_json {
                let (head, tail) = (chars(head), chars(&text) - chars(tail));
                prop_assert!(boundaries.contains(&head) && boundaries.contains(&tail));
            }
        }
    }
}

#[test]
fn debug_shows_the_options() {
    let shown = format!("{:?}", OutputOptions { kind: OutputKind::Log, ..Default::default() });
    assert_eq!("OutputOptions { kind: Log, query: None, spill: None }", shown);
}

/// Counts without regard to the limit that it is given.
struct Heedless;

impl TokenCounter for Heedless {
    fn count(&self, text: &str) -> usize {
        text.len()
    }

    fn count_till_limit(&self, text: &str, _limit: usize) -> Option<usize> {
        Some(self.count(text))
    }
}

/// A counter of the caller's own that returns more than the limit it was given has
/// not said that the text fits.
#[test]
fn a_counter_that_does_not_heed_its_limit_breaks_none() {
    let text = "green tea ".repeat(50);
    let scaled = Scaled::new(Heedless, 1.5).unwrap();
    for (counter, all) in [(&Heedless as &dyn TokenCounter, 500), (&scaled, 750)] {
        for limit in [0, 60, all - 1, all] {
            let fitted = fit_output(&text, limit, counter, OutputOptions::default()).unwrap();
            assert_eq!(limit < all, fitted.was_cut());
            assert!(counter.count(&fitted.text) <= limit);
            let two = fit_outputs(&[&text, &text], limit, counter, OutputOptions::default());
            assert!(two.unwrap().iter().map(|one| one.total_tokens).sum::<usize>() <= limit);
        }
    }
    assert_eq!(None, scaled.count_till_limit(&text, 749));
}

/// Says that an empty text has tokens.
struct Odd;

impl TokenCounter for Odd {
    fn count(&self, text: &str) -> usize {
        if text.is_empty() { 9 } else { text.split_whitespace().count() }
    }
}

#[test]
fn an_empty_text_gets_nothing_of_a_shared_limit() {
    for (values, tokens) in [(["tea", ""], [1, 0]), (["", "tea"], [0, 1])] {
        let fitted = fit_outputs(&values, 1, &Odd, OutputOptions::default()).unwrap();
        assert_eq!(values, [&*fitted[0].text, &*fitted[1].text]);
        assert_eq!(tokens, [fitted[0].total_tokens, fitted[1].total_tokens]);
    }
}

#[test]
fn what_is_left_of_a_diff_is_one() {
    for text in ["", "[... 3 files left out ...]\n", "tea\n[... 3 files left out ...]\n"] {
        assert_eq!(text, fitted(text, 99, OutputKind::Diff).unwrap().text);
    }
    for text in ["tea\n", "[... tea\n", "tea ...]\n", "[... 3 files left out ...]"] {
        let error = fitted(text, 99, OutputKind::Diff).unwrap_err();
        assert!(error.to_string().contains("must be a unified diff"), "{error}");
    }
}

/// What looks like JSON is cut as a text where it is said to be one.
#[test]
fn a_text_may_look_like_json() {
    let value = format!("{{\"tea\": [{}]}}", "1, ".repeat(99) + "1");
    let options = OutputOptions { kind: OutputKind::Text, ..OutputOptions::default() };
    let text = fit_output(&value, 40, &Encoding::O200k, options).unwrap().text;
    assert!(
        text.starts_with("{\"tea\": [1, 1") && text.contains(" characters left out ..."),
        "{text}"
    );
    assert!(serde_json::from_str::<Value>(&text).is_err());
}
