//! Encodings and tokenizers of files count as the packages count that define
//! them: `tests/python/tokenizer_cases.py` has written what those answer.

#[path = "cases.rs"]
mod cases;

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use budgeteer::{Encoding, ErrorKind, Exact, Keep, Text, TokenCounter as _, Tokenizer};
use cases::{list, number};
use serde_json::{Value, json};

const FILE: &str = "tokenizers.json";

fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../tests/cases/tokenizers"].iter().collect()
}

fn text_of(case: &Value) -> &str {
    case["text"].as_str().expect("it is a text")
}

fn open(name: &str) -> Tokenizer {
    Tokenizer::open(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns the message with which a file is refused.
fn refusal(name: &str, content: &[u8]) -> String {
    match Tokenizer::parse(name, content) {
        Err(error) => {
            assert_eq!(ErrorKind::Tokenizer, error.kind(), "{name}");
            error.to_string()
        }
        Ok(_) => panic!("{name} is a tokenizer"),
    }
}

/// Asserts that every way to count a text gives that count, and that no cut of
/// it has more tokens than were asked for.
fn assert_counted(tokenizer: &Tokenizer, text: &str, expected: usize) {
    let kept = Exact::new(tokenizer.clone());
    let fresh = kept.clone().without_cache();
    let never = AtomicBool::new(false);
    let wide: Vec<u16> = text.encode_utf16().collect();
    let wider: Vec<u32> = text.chars().map(u32::from).collect();
    let narrow: Option<Vec<u8>> =
        text.chars().map(|one| u8::try_from(u32::from(one)).ok()).collect();
    let stored = [Text::from(text), Text::Ucs2(&wide), Text::Ucs4(&wider)];
    for stored in stored.into_iter().chain(narrow.as_deref().map(Text::Latin1)) {
        for counter in [&fresh, &kept, &kept] {
            let count = |limit: usize| {
                let count = counter.count_text(stored, limit as u64, &never)?;
                usize::try_from(count).ok()
            };
            assert_eq!(Some(expected), count(usize::MAX), "{tokenizer:?} of {stored:?}");
            assert_eq!(Some(expected), count(expected), "{tokenizer:?} of {stored:?}");
            if let Some(below) = expected.checked_sub(1) {
                assert_eq!(None, count(below), "{tokenizer:?} of {stored:?}");
            }
        }
    }
    for most in [1, expected / 2, expected.saturating_sub(1)] {
        let cut = fresh.truncate(text.into(), most as u64, Keep::Start, "".into(), &never);
        let Some(cut) = cut else { continue };
        let cut = String::from_utf8(cut).expect("it is UTF-8");
        assert!(fresh.count(&cut) <= most, "{tokenizer:?} of {text:?} to {most}");
        assert!(text.starts_with(&*cut), "{tokenizer:?} of {text:?} to {most}");
    }
}

#[test]
fn encodings_count_as_their_packages_do() {
    for case in list(&cases::cases(FILE, "encodings")) {
        for encoding in Encoding::ALL {
            match (encoding.name(), &case["counts"][encoding.name()]) {
                ("cl100k_base" | "o200k_base", _) => {} // `exact.rs` has them
                (_, count) => assert_counted(&(*encoding).into(), text_of(case), number(count)),
            }
        }
    }
}

#[test]
fn files_count_as_their_packages_do() {
    let cases = cases::cases(FILE, "encodings");
    let files = cases::cases(FILE, "files");
    for file in list(&files) {
        let tokenizer = open(file["file"].as_str().expect("it has a name"));
        assert_eq!(list(&cases).len(), list(&file["counts"]).len());
        for (case, count) in list(&cases).iter().zip(list(&file["counts"])) {
            assert_counted(&tokenizer, text_of(case), number(count));
        }
    }
}

/// Dropout leaves merges out at random, to train: a count is without it.
#[test]
fn dropout_is_passed_over() {
    let file = fs::read_to_string(folder().join("gpt2.json")).expect("it is there");
    let changed = file.replace(r#""dropout":null"#, r#""dropout":0.5"#);
    assert_ne!(file, changed);
    let tokenizer = Tokenizer::parse("dropout", changed.as_bytes()).expect("it is one");
    let text = "The teapot stood on the table.";
    assert_eq!(open("gpt2.json").count(text), tokenizer.count(text));
}

/// A file is found in its directory, and told by what it holds, not by its name.
#[test]
fn directories_are_opened() {
    let place = std::env::temp_dir().join(format!("budgeteer-tokenizers-{}", std::process::id()));
    fs::create_dir_all(&place).expect("it can be made");
    for (file, name, text) in [
        ("pieces.model", "other.tiktoken", "  the teapot"),
        ("pieces-prefix.model", "tokenizer.model", "the  teapot"),
        ("tekken.json", "tekken.json", "the teapot's"),
        ("gpt2.json", "tokenizer.json", "the teapot's"),
    ] {
        fs::copy(folder().join(file), place.join(name)).expect("it can be copied");
        let tokenizer = Tokenizer::open(&place).expect("it is one");
        assert_eq!(open(file).count(text), tokenizer.count(text), "{file}");
    }
    fs::remove_dir_all(&place).expect("it is there");
    let error = Tokenizer::open(&place).expect_err("it is gone");
    assert!(matches!(error.kind(), ErrorKind::Io(std::io::ErrorKind::NotFound)));
}

/// What the environment names is looked through: folders of files, and the home
/// with the cache of Hugging Face.
#[test]
fn a_users_file_is_found_by_the_name_of_a_model() {
    let home = std::env::temp_dir().join(format!("budgeteer-home-{}", std::process::id()));
    let snapshot = home.join(".cache/huggingface/hub/models--acme--tea-9b/snapshots/aa");
    fs::create_dir_all(&snapshot).expect("it can be made");
    fs::copy(folder().join("gpt2.json"), snapshot.join("tokenizer.json")).expect("it is copied");
    let child = Command::new(std::env::current_exe().expect("it is known"))
        .args(["--exact", "--ignored", "finds_by_the_environment"])
        .env("BUDGETEER_TOKENIZERS", folder())
        .env("HOME", &home)
        .env_remove("HF_HOME")
        .env_remove("HF_HUB_CACHE")
        .output();
    let child = child.expect("it runs");
    fs::remove_dir_all(&home).expect("it is there");
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "it runs in a process of its own, whose environment names the folders"]
fn finds_by_the_environment() {
    let find = |model: &str| Tokenizer::find(model).expect("all is read");
    let found = find("llama3.1:70b").expect("it is there");
    let path = std::path::absolute(folder().join("llama3.json")).expect("it is a path");
    assert_eq!(path.to_str(), Some(found.name()));
    let text = "The teapot's 1234 tables.";
    assert_eq!(open("llama3.json").count(text), found.count(text));
    let cached = find("Tea-9B").expect("it is in the cache");
    assert!(cached.name().ends_with("aa"), "{cached:?}");
    assert_eq!(open("gpt2.json").count(text), cached.count(text));
    assert_eq!(None, find("tea-8b"));
    let error = Tokenizer::find("refused-unigram").expect_err("it is refused");
    assert_eq!(ErrorKind::Tokenizer, error.kind());
    let start = "the tokenizer of the model \"refused-unigram\", ";
    let message = error.to_string();
    assert!(message.starts_with(start) && message.ends_with("the model Unigram"), "{message}");
}

/// Qwen's own file of ranks, written again, is known by its content.
#[cfg(feature = "qwen2")]
#[test]
#[allow(clippy::format_collect)] // it is made once
fn ranks_of_tiktoken_are_known_by_their_content() {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    let shipped = Tokenizer::from(Encoding::Qwen2);
    let shown = |byte: &u8| matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..);
    let (first, last): (Vec<u8>, Vec<u8>) = (0..=255).partition(shown);
    let singles = first.into_iter().chain(last).map(|byte| vec![byte]);
    let longer = shipped.vocabulary().unwrap().iter().skip(256).map(<[u8]>::to_vec);
    let file: String = singles
        .chain(longer)
        .enumerate()
        .map(|(rank, token)| format!("{} {rank}\n", STANDARD.encode(token)))
        .collect();
    let opened = Tokenizer::parse("qwen.tiktoken", file.as_bytes()).expect("it is known");
    for case in list(&cases::cases(FILE, "encodings")) {
        assert_eq!(shipped.count(text_of(case)), opened.count(text_of(case)), "{case}");
    }
    let other = file.replacen("IQ== 0\n", "IQ== 300000\n", 1);
    assert_ne!(file, other);
    assert!(refusal("other", other.as_bytes()).contains("a pattern that is not in the file"));
}

#[test]
fn what_cannot_be_counted_exactly_is_refused() {
    let cases = cases::cases(FILE, "refused");
    let expected = [
        ("refused-drops-spaces.model", "a normalizer that drops spaces"),
        ("refused-lowercase.json", r#"the normalizer {"type":"Lowercase"}"#),
        ("refused-no-fallback.json", r#"the pre-tokenizer {"type":"Whitespace"}"#),
        ("refused-no-fallback.model", "a vocabulary of characters without a byte fallback"),
        ("refused-rules.model", "a normalizer with rules for characters"),
        ("refused-suffix.json", "a model with prefixes or suffixes of words"),
        ("refused-suffix.model", "spaces behind words"),
        ("refused-unigram.json", "the model Unigram"),
        ("refused-unigram.model", "the model Unigram"),
        ("refused-wordlevel.json", "the model WordLevel"),
        ("refused-wordpiece.json", "the model WordPiece"),
    ];
    let names: Vec<_> = list(&cases).iter().filter_map(Value::as_str).collect();
    assert_eq!(names, expected.map(|(name, _)| name));
    for (name, step) in expected {
        let content = fs::read(folder().join(name)).expect("it is there");
        let message = format!("the tokenizer has a step that cannot be counted exactly: {step}");
        assert_eq!(message, refusal(name, &content), "{name}");
    }
}

/// Steps that count natively are refused where they mean another thing together.
#[test]
fn steps_that_do_not_go_together_are_refused() {
    let spaces = json!({"type": "Replace", "pattern": {"String": " "}, "content": "\u{2581}"});
    let prepend = json!({"type": "Prepend", "prepend": "\u{2581}"});
    let behind = json!({
        "type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious",
    });
    let bytes = json!({"type": "ByteLevel", "add_prefix_space": false, "use_regex": false});
    let sequence = |list: &str, steps: Value| json!({"type": "Sequence", list: steps});
    let normal = |steps| sequence("normalizers", steps);
    let composed = "a normalizer that composes characters in front of their merges";
    for (name, key, step, expected) in [
        ("characters.json", "normalizer", normal(json!([{"type": "NFC"}, spaces])), composed),
        ("metaspace.json", "normalizer", json!({"type": "NFC"}), composed),
        (
            "characters.json",
            "normalizer",
            normal(json!([prepend, prepend, spaces])),
            "the normalizer {\"type\":\"Prepend\",\"prepend\":\"\u{2581}\"}",
        ),
        (
            "gpt2.json",
            "pre_tokenizer",
            sequence("pretokenizers", json!([behind, bytes])),
            "a pre-tokenizer that splits behind spaces",
        ),
    ] {
        assert_refused(name, expected, |file| file[key] = step.clone());
    }
    let wholes = "merges of characters that whole tokens do not need";
    assert_refused("characters.json", wholes, |file| file["model"]["ignore_merges"] = true.into());
    let spaceless = "a vocabulary of characters without a space, which counts its bytes";
    assert_refused("characters.json", spaceless, |file| {
        file["model"]["merges"] = json!([]);
        file["model"]["vocab"].as_object_mut().expect("it is one").remove("\u{2581}");
    });
}

/// Asserts that a file that was changed has a step which is refused.
fn assert_refused(name: &str, step: &str, change: impl Fn(&mut Value)) {
    let content = fs::read(folder().join(name)).expect("it is there");
    let mut file = serde_json::from_slice(&content).expect("it is JSON");
    change(&mut file);
    let message = refusal(name, file.to_string().as_bytes());
    assert!(message.ends_with(step), "{message}");
}

/// Oniguruma, which counts a `tokenizer.json`, reads some patterns in another way.
#[test]
fn patterns_that_oniguruma_reads_in_another_way_are_refused() {
    let by = |pattern: &str| {
        let split = json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated"});
        let bytes = json!({"type": "ByteLevel", "add_prefix_space": false, "use_regex": false});
        json!({"type": "Sequence", "pretokenizers": [split, bytes]})
    };
    for pattern in ["^c", "e$", "c{1,3}+", "(?m:.c)", "(?i-m)c", "[[:alpha:]]", "[]a]^"] {
        let step = format!("the pattern {pattern:?}");
        assert_refused("gpt2.json", &step, |file| file["pre_tokenizer"] = by(pattern));
    }
    for pattern in [r"\Gc", r"\<c", r"\p{L}{1,3}+"] {
        let step = format!("the pattern {pattern:?}");
        assert_refused("gpt2.json", &step, |file| file["pre_tokenizer"] = by(pattern));
    }
    let content = fs::read(folder().join("gpt2.json")).expect("it is there");
    for pattern in [r"\^\$", r"[^a$^]+|\p{L}+", "[]$]", "(?i:c)|(?<=e)c|(?!m)c", r"\x{63}+"] {
        let mut file: Value = serde_json::from_slice(&content).expect("it is JSON");
        file["pre_tokenizer"] = by(pattern);
        let found = Tokenizer::parse(pattern, file.to_string().as_bytes());
        assert!(found.is_ok(), "{pattern}: {found:?}");
    }
}

/// A message says what is refused in a few words, however long that is.
#[test]
fn messages_are_short() {
    let long = "x".repeat(100_000);
    for content in [
        format!(r#"{{"model":{{"type":"{long}"}}}}"#),
        format!(r#"{{"model":{{"type":"BPE"}},"normalizer":{{"type":"{long}"}}}}"#),
        format!(r#"{{"model":{{"type":"BPE"}},"pre_tokenizer":{{"type":"{long}"}}}}"#),
    ] {
        let message = refusal("long", content.as_bytes());
        assert!(message.contains("xxx") && message.len() < 250, "{message:.400}");
    }
}

const NO_TOKENIZER: &str = "the file is no tokenizer: neither a tokenizer.json or tekken.json, nor \
                            ranks of tiktoken, nor a model of SentencePiece";

#[test]
fn what_is_no_tokenizer_is_said_to_be_none() {
    for content in [
        &b""[..],
        b"  \n",
        b"Green tea is not oxidised.\n",
        b"[1, 2, 3]",
        b"\"model\"",
        b"\x00\x01\x02\xFF",
        b"\x1F\x8B\x08\x00",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
    ] {
        assert_eq!(NO_TOKENIZER, refusal("other", content), "{content:?}");
    }
}

/// Each message begins as these do, and says what is wrong.
#[test]
fn damage_is_named() {
    let gpt2 = fs::read_to_string(folder().join("gpt2.json")).expect("it is there");
    let tekken = fs::read_to_string(folder().join("tekken.json")).expect("it is there");
    let nested = format!(r#"{{"model":{}1{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    let deep = format!(r#"{{"normalizer":{}1{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    let with_merge =
        |merge: &str| gpt2.replacen(r#""merges":["#, &format!(r#""merges":[{merge}"#), 1);
    let cut = |file: &str| file[..file.len() / 2].to_string();
    for (content, what) in [
        ("{}".to_string(), "it has no model"),
        ("{\"model\":1}".to_string(), "it is no tokenizer.json at line 1, column"),
        (cut(&gpt2), "it is no tokenizer.json at line"),
        (cut(&tekken), "it is no tekken.json at line"),
        (nested, "it is no tokenizer.json at line"),
        (deep, "it is no tokenizer.json at line"),
        (with_merge(r#"["t","hhh"],"#), "it merges what is no token"),
        (with_merge(r#"["t"],"#), "it is no tokenizer.json at line"),
        (gpt2.replacen(r#""vocab":{"#, r#""vocab":{"u":999,"#, 1), "it has a token twice"),
        (tekken.replacen(r#""rank":300"#, r#""rank":301"#, 1), "it has a rank twice"),
        (tekken.replacen(r#""rank":300"#, r#""rank":-1"#, 1), "it is no tekken.json at line"),
        (tekken.replacen(r#""rank":300,"#, "", 1), "an entry is no token"),
        (tekken.replacen(r#""pattern""#, r#""Pattern""#, 1), "config has no pattern"),
        (tekken.replacen(r#""vocab":"#, r#""Vocab":"#, 1), "it has no vocab"),
    ] {
        assert_ne!(content, gpt2, "{what}");
        assert_ne!(content, tekken, "{what}");
        let message = refusal("damaged", content.as_bytes());
        let expected = format!("the file is damaged: {what}");
        assert!(message.starts_with(&expected), "{expected}: {message}");
        assert!(message.len() < 400, "{expected}: {message}");
    }
    let model = fs::read(folder().join("pieces.model")).expect("it is there");
    let message = refusal("model", &model[..model.len() / 2]);
    assert_eq!("the file is damaged: it is no model of SentencePiece", message);
}
