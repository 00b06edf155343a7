//! A fitted tool result is within its limit by a count of its own, is still what
//! it was, JSON as JSON, and fitting it again changes nothing.
#![no_main]

use budgeteer::{ErrorKind, OutputKind, OutputOptions, TokenCounter as _, fit_output, fit_outputs};
use budgeteer_fuzz::counters::Counter;
use budgeteer_fuzz::json::value;
use budgeteer_fuzz::words::{Words, few};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use serde::de::IgnoredAny;
use serde_json::Value;

const KINDS: [OutputKind; 6] = [
    OutputKind::Auto,
    OutputKind::Text,
    OutputKind::Json,
    OutputKind::Table,
    OutputKind::Log,
    OutputKind::Diff,
];

const LINES: [&str; 12] = [
    "INFO 12:30:01 started",
    "ERROR tea",
    "Traceback (most recent call last):",
    "  File \"a.py\"",
    "--- a/tea.py",
    "+++ b/tea.py",
    "@@ -1,3 +1,4 @@",
    "-old",
    "+new",
    " same",
    "",
    "diff --git a/tea.py b/tea.py",
];

fuzz_target!(|data: &[u8]| {
    let _ = run(&mut Unstructured::new(data));
});

fn run(input: &mut Unstructured<'_>) -> Result<()> {
    let counter = input.arbitrary::<Counter>()?;
    let is_wild = matches!(counter, Counter::Wild(_));
    let counter = counter.make();
    let kind = *input.choose(&KINDS)?;
    let limit = usize::from(input.arbitrary::<u16>()? % 400);
    let query = input.arbitrary::<Option<Words>>()?;
    let pointer = input.arbitrary::<Option<Words>>()?;
    let mut texts = Vec::new();
    for _ in 0..input.int_in_range(1..=3_u8)? {
        texts.push(text(input)?);
    }
    let spill = |_: &str| pointer.clone().unwrap_or_default().0;
    let options = OutputOptions {
        kind,
        query: query.as_ref().map(|Words(query)| &**query),
        spill: pointer.is_some().then_some(&spill as &dyn Fn(&str) -> String),
    };
    let is_known = |kind| [ErrorKind::InvalidArgument, ErrorKind::BudgetExhausted].contains(&kind);
    match fit_output(&texts[0], limit, &counter, options) {
        Ok(fitted) => {
            let count = if fitted.text.is_empty() { 0 } else { counter.count(&fitted.text) };
            assert_eq!(count, fitted.total_tokens);
            assert!(fitted.total_tokens <= limit);
            if matches!(fitted.kind, OutputKind::Json | OutputKind::Table) {
                // Not a `Value`, whose numbers are floats: others stay as they are written.
                serde_json::from_str::<IgnoredAny>(&fitted.text).expect("JSON stays JSON");
            }
            if !is_wild {
                let again = OutputOptions { kind: fitted.kind, ..options };
                let again = fit_output(&fitted.text, limit, &counter, again).expect("it fits");
                assert_eq!((&fitted.text, 0), (&again.text, again.left_out));
            }
        }
        Err(error) => assert!(is_known(error.kind()), "{error}"),
    }
    match fit_outputs(&texts, limit, &counter, options) {
        Ok(all) => {
            let total: usize = all.iter().map(|fitted| fitted.total_tokens).sum();
            assert!(total <= limit);
        }
        Err(error) => assert!(is_known(error.kind()), "{error}"),
    }
    Ok(())
}

fn text(input: &mut Unstructured<'_>) -> Result<String> {
    Ok(match input.int_in_range(0..=4_u8)? {
        0 => value(input)?.to_string(),
        1 => {
            let rows = few::<(Words, i16)>(input, 12)?;
            let rows = rows
                .into_iter()
                .map(|(Words(name), age)| serde_json::json!({"name": name, "age": age}));
            serde_json::to_string_pretty(&rows.collect::<Value>()).expect("it is JSON")
        }
        2 => {
            let lines = few::<u8>(input, 60)?;
            let lines = lines.iter().map(|&line| LINES[usize::from(line) % LINES.len()]);
            lines.collect::<Vec<_>>().join("\n")
        }
        3 => few::<Words>(input, 8)?.into_iter().map(|Words(text)| text).collect(),
        _ => input.arbitrary::<&str>()?.to_owned(),
    })
}
