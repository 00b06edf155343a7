//! The steps in front of the merges, as `tokenizer.json` names them.

use std::borrow::Cow;

use serde_json::Value;

use super::{damaged, oniguruma, unknown};
use crate::count::normal::{Normal, SPACE};
use crate::count::pretokenize::regex::Patterns;
use crate::count::tokenizer::Split;
use crate::error::Error;

/// What is done to a text before it is split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Normalizer {
    /// Whether it is composed.
    pub(super) is_nfc: bool,
    /// Whether each space becomes U+2581.
    pub(super) has_spaces: bool,
    /// Whether U+2581 is put in front.
    pub(super) has_prefix: bool,
}

impl Normalizer {
    /// Reads the normalizer of a `tokenizer.json`.
    pub(super) fn read(step: &Value) -> Result<Self, Error> {
        let mut found = Self::default();
        for_each(step, "normalizers", &mut |step| found.add(step))?;
        Ok(found)
    }

    fn add(&mut self, step: &Value) -> Result<(), Error> {
        match step["type"].as_str() {
            Some("NFC") if !self.has_spaces => self.is_nfc = true,
            Some("Prepend") if step["prepend"] == SPACE && !self.has_spaces && !self.has_prefix => {
                self.has_prefix = true;
            }
            Some("Replace") if step["pattern"]["String"] == " " && step["content"] == SPACE => {
                self.has_spaces = true;
            }
            _ => return Err(unknown(&format!("the normalizer {}", shown(step)))),
        }
        Ok(())
    }

    pub(super) fn normal(self) -> Result<Normal, Error> {
        match self {
            Self { is_nfc: true, has_spaces: true, .. } => {
                Err(unknown("a normalizer that composes, and replaces spaces"))
            }
            Self { is_nfc: true, .. } => Ok(Normal::Nfc),
            Self { has_spaces: true, .. } => Ok(Normal::Spaces),
            Self { .. } => Ok(Normal::As),
        }
    }
}

/// How a text is split into pretokens.
#[derive(Debug, Default)]
pub(super) struct PreTokenizer {
    pub(super) patterns: Vec<Cow<'static, str>>,
    /// Whether it splits behind each space.
    pub(super) is_split_at_spaces: bool,
    /// Whether bytes are tokens.
    pub(super) is_byte_level: bool,
    /// Whether spaces become U+2581, and whether one is put in front.
    pub(super) metaspace: Option<bool>,
}

/// The pattern by which the step `ByteLevel` splits.
const BYTE_LEVEL: &str =
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

impl PreTokenizer {
    /// Reads the pre-tokenizer of a `tokenizer.json`.
    pub(super) fn read(step: &Value) -> Result<Self, Error> {
        let mut found = Self::default();
        for_each(step, "pretokenizers", &mut |step| found.add(step))?;
        Ok(found)
    }

    fn add(&mut self, step: &Value) -> Result<(), Error> {
        let is = |key: &str, default: bool| step[key].as_bool().unwrap_or(default);
        let refused = || unknown(&format!("the pre-tokenizer {}", shown(step)));
        if self.is_byte_level || self.metaspace.is_some() {
            return Err(refused()); // what comes behind it sees other characters
        }
        match step["type"].as_str() {
            Some("Split") if step["behavior"] == "Isolated" && !is("invert", false) => {
                let pattern = &step["pattern"];
                let literal = || pattern["String"].as_str().map(escaped);
                let pattern = pattern["Regex"].as_str().map(str::to_string).or_else(literal);
                self.patterns.push(pattern.ok_or_else(refused)?.into());
            }
            Some("Split")
                if step["behavior"] == "MergedWithPrevious" && step["pattern"]["String"] == " " =>
            {
                self.is_split_at_spaces = true;
            }
            Some("Digits") if is("individual_digits", false) => {
                self.patterns.push(r"\p{N}".into());
            }
            Some("Digits") => self.patterns.push(r"\p{N}+".into()),
            Some("ByteLevel") if !is("add_prefix_space", true) => {
                self.is_byte_level = true;
                if is("use_regex", true) {
                    self.patterns.push(BYTE_LEVEL.into());
                }
            }
            Some("Metaspace") if step["replacement"] == SPACE && !is("split", true) => {
                self.metaspace = Some(match step["prepend_scheme"].as_str() {
                    Some("never") => false,
                    Some("first" | "always") => true,
                    _ => is("add_prefix_space", true),
                });
            }
            _ => return Err(refused()),
        }
        Ok(())
    }
}

/// Calls `add` with a step, or with each of those in a Sequence, of which `list`
/// is the key.
fn for_each(
    step: &Value,
    list: &str,
    add: &mut impl FnMut(&Value) -> Result<(), Error>,
) -> Result<(), Error> {
    match step["type"].as_str() {
        Some("Sequence") => {
            let steps = step[list].as_array();
            let steps = steps.ok_or_else(|| damaged(&format!("a Sequence has no {list}")))?;
            steps.iter().try_for_each(|step| for_each(step, list, add))
        }
        None if step.is_null() => Ok(()),
        _ => add(step),
    }
}

/// Returns a step without what would make a message long.
fn shown(step: &Value) -> String {
    shortened(&step.to_string())
}

fn shortened(text: &str) -> String {
    text.chars().take(120).collect()
}

/// Returns a pattern that matches a text.
fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |pattern, char| {
        let is_plain = char.is_alphanumeric() || !char.is_ascii();
        pattern + if is_plain { "" } else { "\\" } + char.encode_utf8(&mut [0; 4])
    })
}

/// Returns what splits by the patterns of a `tokenizer.json`, which Oniguruma reads.
pub(super) fn split_as_oniguruma(patterns: &[Cow<'_, str>]) -> Result<Split, Error> {
    match patterns.iter().find(|pattern| !oniguruma::is_the_same(pattern)) {
        Some(pattern) => Err(unknown(&format!("the pattern {:?}", shortened(pattern)))),
        None => split_of(patterns),
    }
}

/// Returns what splits by these patterns, one after another.
pub(super) fn split_of(patterns: &[Cow<'_, str>]) -> Result<Split, Error> {
    // DeepSeek's has the line ends themselves, not their escapes.
    let plain = |pattern: &Cow<'_, str>| pattern.replace('\r', r"\r").replace('\n', r"\n");
    let is = |known: &[&str]| patterns.iter().map(plain).eq(known.iter().copied());
    let known = KNOWN.iter().find(|(known, _)| is(known));
    if let Some((_, split)) = known {
        return Ok(split());
    }
    let compiled = Patterns::new(patterns).map(Split::Patterns);
    compiled.ok_or_else(|| unknown(&format!("the pattern {patterns:?}")))
}

/// Patterns, and what splits as they do.
type Known = (&'static [&'static str], fn() -> Split);

/// The patterns that are written out here.
const KNOWN: [Known; 9] = [
    (&[BYTE_LEVEL], || Split::Gpt2),
    (&[CL100K], || Split::Cl100k),
    (&[CL100K_OLD], || Split::Llama3),
    (&[LLAMA3], || Split::Llama3),
    (&[QWEN2], || Split::Qwen2),
    (&[QWEN35], || Split::Qwen35),
    (&[O200K], || Split::O200k),
    (&[TEKKEN], || Split::Tekken),
    (&DEEPSEEK, || Split::DeepSeek),
];

const CL100K: &str = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s";
const CL100K_OLD: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN35: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const O200K: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const DEEPSEEK: [&str; 3] = [
    r"\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    concat!(
        "[!\"",
        r"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::pretokenize::deepseek::DeepSeek;
    use crate::count::pretokenize::gpt2::Gpt2;
    use crate::count::pretokenize::{Cl100k, Llama3, O200k, Pattern, Qwen2, Qwen35, Tekken};
    use crate::text::classes::Classes;

    /// DeepSeek's own file has the line ends themselves.
    #[test]
    fn known_patterns_are_known_however_they_are_written() {
        let own = DEEPSEEK.map(|pattern| Cow::Owned(pattern.replace(r"\r\n", "\r\n")));
        assert_ne!(DEEPSEEK[2], own[2]);
        assert!(matches!(split_of(&own), Ok(Split::DeepSeek)));
        assert!(matches!(split_of(&DEEPSEEK.map(Cow::Borrowed)), Ok(Split::DeepSeek)));
        assert!(matches!(split_of(&own[..2]), Ok(Split::Patterns(_))));
    }

    fn ends<P: Pattern>(pattern: P, text: &str) -> Vec<usize> {
        let (mut ends, mut at) = (Vec::new(), 0);
        while at < text.len() {
            at = pattern.end(Classes::get(), text.as_bytes(), at);
            ends.push(at);
        }
        ends
    }

    /// What is written out splits as the patterns do.
    #[test]
    fn known_patterns_split_as_they_are_written() {
        let alphabet: Vec<char> =
            "a SsLlT1\t\n\r'\u{2019}.-/$+_é\u{301}\u{2028}\u{A0}\u{3000}²\u{93F}कЯǅʰ"
                .chars()
                .collect();
        let asian = "ぁゟ゠ヿ一龥龦㐀한\u{3099}。";
        let alphabet: Vec<char> = alphabet.into_iter().chain(asian.chars()).collect();
        let mut state = 3_u64;
        let mut draw = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        let texts: Vec<String> = (0..3_000)
            .map(|_| {
                let (from, few) = (draw(alphabet.len()), 1 + draw(alphabet.len()));
                let place = |at: usize| alphabet[(from + at) % alphabet.len()];
                (0..draw(24)).map(|_| place(draw(few))).collect()
            })
            .collect();
        for (patterns, split) in &KNOWN {
            let compiled = Patterns::new(patterns).expect("they are patterns");
            for text in &texts {
                let found = match split() {
                    Split::Gpt2 => ends(Gpt2, text),
                    Split::Cl100k => ends(Cl100k, text),
                    Split::Llama3 => ends(Llama3, text),
                    Split::Qwen2 => ends(Qwen2, text),
                    Split::Qwen35 => ends(Qwen35, text),
                    Split::O200k => ends(O200k, text),
                    Split::Tekken => ends(Tekken, text),
                    Split::DeepSeek => ends(DeepSeek, text),
                    other => unreachable!("{other:?} is not written out"),
                };
                let expected = ends(&compiled.split(text.as_bytes()), text);
                assert_eq!(expected, found, "{patterns:?}: {text:?}");
            }
        }
    }

    const SPACES: &str = r#"{"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}"#;
    const PREFIX: &str = r#"{"type": "Prepend", "prepend": "\u2581"}"#;
    const NFC: &str = r#"{"type": "NFC"}"#;

    fn value(json: &str) -> Value {
        serde_json::from_str(json).expect("it is JSON")
    }

    fn normalizer(steps: &[&str]) -> Result<(bool, bool, bool), String> {
        let steps = format!(r#"{{"type": "Sequence", "normalizers": [{}]}}"#, steps.join(", "));
        let read = Normalizer::read(&value(&steps)).map_err(|error| error.to_string())?;
        Ok((read.is_nfc, read.has_prefix, read.has_spaces))
    }

    #[test]
    fn normalizers_are_read_in_an_order_that_is_known() {
        assert_eq!(Ok((false, false, false)), normalizer(&[]));
        assert_eq!(Ok((true, false, false)), normalizer(&[NFC]));
        assert_eq!(Ok((true, true, true)), normalizer(&[NFC, PREFIX, SPACES]));
        assert_eq!(Ok((false, true, true)), normalizer(&[PREFIX, SPACES, SPACES]));
        let other = SPACES.replace("2581", "2582");
        let behind = SPACES.replace(r#"" ""#, r#""a""#);
        let prefix = PREFIX.replace("2581", "2582");
        for steps in [
            &[SPACES, NFC][..],
            &[SPACES, PREFIX],
            &[PREFIX, PREFIX],
            &[&other],
            &[&behind],
            &[&prefix],
            &[r#"{"type": "Lowercase"}"#],
            &["{}"],
            &["3"],
        ] {
            let error = normalizer(steps).expect_err("it is not known");
            assert!(error.contains("the normalizer "), "{error}");
        }
        assert_eq!(Ok(Normalizer::default()), Normalizer::read(&Value::Null));
        let error = Normalizer::read(&value(r#"{"type": "Sequence"}"#)).expect_err("it has none");
        assert!(error.to_string().ends_with("a Sequence has no normalizers"), "{error}");
    }

    fn pre_tokenizer(steps: &[&str]) -> Result<PreTokenizer, String> {
        let steps = format!(r#"{{"type": "Sequence", "pretokenizers": [{}]}}"#, steps.join(", "));
        PreTokenizer::read(&value(&steps)).map_err(|error| error.to_string())
    }

    #[test]
    fn pre_tokenizers_are_patterns_or_other_characters() {
        let patterns = |steps: &[&str]| pre_tokenizer(steps).map(|read| read.patterns);
        for (step, pattern) in [
            (r#"{"type": "Split", "behavior": "Isolated", "pattern": {"Regex": "a+"}}"#, "a+"),
            (
                r#"{"type": "Split", "behavior": "Isolated", "pattern": {"String": "a+\u00e9"}}"#,
                r"a\+\u{e9}",
            ),
            (r#"{"type": "Digits", "individual_digits": true}"#, r"\p{N}"),
            (r#"{"type": "Digits", "individual_digits": false}"#, r"\p{N}+"),
            (r#"{"type": "Digits"}"#, r"\p{N}+"),
            (r#"{"type": "ByteLevel", "add_prefix_space": false}"#, BYTE_LEVEL),
        ] {
            let pattern = pattern.replace(r"\u{e9}", "\u{e9}");
            assert_eq!(Ok(vec![Cow::from(pattern)]), patterns(&[step]), "{step}");
        }
        let bare = r#"{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}"#;
        let read = pre_tokenizer(&[bare]).expect("it is known");
        assert!(read.is_byte_level && read.patterns.is_empty() && read.metaspace.is_none());
        let behind =
            r#"{"type": "Split", "behavior": "MergedWithPrevious", "pattern": {"String": " "}}"#;
        assert!(pre_tokenizer(&[behind]).expect("it is known").is_split_at_spaces);
        assert!(!pre_tokenizer(&[]).expect("it is empty").is_split_at_spaces);
    }

    #[test]
    fn a_metaspace_says_whether_one_is_put_in_front() {
        let metaspace = |rest: &str| {
            let step = format!(
                r#"{{"type": "Metaspace", "replacement": "\u2581", "split": false{rest}}}"#
            );
            pre_tokenizer(&[&step]).expect("it is known").metaspace
        };
        for (rest, is_put) in [
            ("", true),
            (r#", "add_prefix_space": false"#, false),
            (r#", "prepend_scheme": "never""#, false),
            (r#", "prepend_scheme": "never", "add_prefix_space": true"#, false),
            (r#", "prepend_scheme": "first", "add_prefix_space": false"#, true),
            (r#", "prepend_scheme": "always", "add_prefix_space": false"#, true),
        ] {
            assert_eq!(Some(is_put), metaspace(rest), "{rest}");
        }
    }

    #[test]
    fn other_pre_tokenizers_are_refused() {
        let split =
            |rest: &str| format!(r#"{{"type": "Split", "pattern": {{"String": "a"}}{rest}}}"#);
        let level = r#"{"type": "ByteLevel", "add_prefix_space": false}"#;
        let space = r#"{"type": "Metaspace", "replacement": "\u2581", "split": false}"#;
        for steps in [
            &[&*split(r#", "behavior": "Isolated", "invert": true"#)][..],
            &[&split(r#", "behavior": "MergedWithPrevious""#)],
            &[&split(r#", "behavior": "Removed""#)],
            &[r#"{"type": "Split", "behavior": "Removed", "pattern": {"String": " "}}"#],
            &[r#"{"type": "Split", "behavior": "Isolated", "pattern": {}}"#],
            &[r#"{"type": "ByteLevel"}"#],
            &[r#"{"type": "ByteLevel", "add_prefix_space": true}"#],
            &[r#"{"type": "Metaspace", "replacement": "\u2581"}"#],
            &[r#"{"type": "Metaspace", "replacement": "_", "split": false}"#],
            &[level, level],
            &[space, level],
            &[level, space],
            &[r#"{"type": "Whitespace"}"#],
        ] {
            let error = pre_tokenizer(steps).expect_err("it is not known");
            assert!(error.contains("the pre-tokenizer "), "{error}");
        }
    }
}
