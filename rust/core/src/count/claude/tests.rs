use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::{env, fs};

use proptest::prelude::*;
use serde_json::Value;

use super::{Claude, Place};

const FAMILIES: [Claude; 3] = Claude::ALL;

static GO_ON: AtomicBool = AtomicBool::new(false);

fn count(family: Claude, text: &str) -> u64 {
    family.tokens(text.as_bytes(), u64::MAX, &GO_ON).expect("there is no limit")
}

fn part(family: Claude, text: &str, is_first: bool, is_last: bool) -> u64 {
    family
        .count_part(text.as_bytes(), Place { is_first, is_last }, u64::MAX, &GO_ON)
        .expect("there is no limit")
}

/// `tests/python/claude_cases.py` wrote what ctok counts. The package has no folder of tests.
#[test]
fn counts_are_those_of_ctok() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    if !tests.exists() {
        return;
    }
    let cases = fs::read_to_string(tests.join("cases/claude.json")).expect("the file is there");
    let cases: Value = serde_json::from_str(&cases).expect("it is JSON");
    let cases = cases["cases"].as_array().expect("it is a list");
    assert!(cases.len() > 300);
    for case in cases {
        let text = case[0].as_str().expect("it is a string");
        let counts = FAMILIES.map(|family| count(family, text));
        assert_eq!(serde_json::json!(counts), case[1], "{text:?}");
    }
}

/// Counts what `scripts/oracle_claude.py` wrote: a text in each line, as JSON.
#[test]
#[ignore = "it needs what that script writes"]
fn oracle() {
    let path = env::var("BUDGETEER_ORACLE").expect("the script sets it");
    let texts = fs::read_to_string(&path).expect("the file is there");
    let mut counts = String::new();
    for line in texts.lines() {
        let text: String = serde_json::from_str(line).expect("it is JSON");
        let [three, seven, eight] = FAMILIES.map(|family| count(family, &text));
        writeln!(counts, "{three} {seven} {eight}").expect("a string takes all");
    }
    fs::write(path + ".counts", counts).expect("the folder can be written to");
}

#[test]
fn an_empty_text_has_no_tokens() {
    for family in FAMILIES {
        assert_eq!(0, count(family, ""));
    }
}

/// What is not UTF-8 has some count, and nothing panics.
#[test]
fn bytes_that_are_no_text_are_counted() {
    for family in FAMILIES {
        for bytes in [
            &b"\x80"[..],
            b"a\xC3",
            b"\xF8\xF9\xFA\xFB",
            b"\xE0\xB8",
            b"\xED\xA0\x80",
            b"\xF7\xBF\xBF\xBF",
        ] {
            for text in [bytes.to_vec(), [b"\xCC\x81", bytes].concat()] {
                assert!(family.tokens(&text, u64::MAX, &GO_ON).is_some());
            }
        }
    }
}

/// Ten times as much takes about ten times as long, whatever it is.
#[test]
fn runs_of_anything_are_counted() {
    let units = [
        "a",
        "A",
        "aB",
        " ",
        "\n",
        "\t",
        ".",
        "'",
        "'s",
        "1",
        "٣",
        "१",
        "½",
        "中",
        "中\u{FE0F}",
        "。",
        "\u{301}",
        "\u{323}\u{301}",
        "e\u{301}",
        "\u{E000}",
        "\0",
        "\r",
        "İ",
        "한",
        "ᄀ",
        "\u{1F600}",
        "\u{200D}",
        "’",
        "\u{0E4D}\u{0E32}",
        "\u{0897}",
        "a ",
        " \n",
        "\u{0711}",
        "-=",
    ];
    for family in FAMILIES {
        for unit in units {
            let text = unit.repeat(20_000 / unit.len());
            let whole = count(family, &text);
            assert!(whole <= 2 * text.len() as u64, "{unit:?}");
            if let Some(less) = whole.checked_sub(1) {
                assert_eq!(None, family.tokens(text.as_bytes(), less, &GO_ON), "{unit:?}");
            }
            assert_eq!(Some(whole), family.tokens(text.as_bytes(), whole, &GO_ON), "{unit:?}");
        }
    }
}

#[test]
fn it_stops_when_told() {
    for family in FAMILIES {
        let stop = AtomicBool::new(true);
        assert_eq!(None, family.tokens(b"one two", u64::MAX, &stop));
    }
}

/// A caller who wants no result is heard within 16,384 bytes, and not before.
#[test]
fn covering_stops_soon() {
    let tables = Claude::V3.tables();
    let stop = AtomicBool::new(true);
    let short = b"zq".repeat(8_000);
    assert_eq!(tables.tile(&short), tables.tile_till(&short, &stop));
    let long = b"zq".repeat(20_000);
    assert_ne!(tables.tile(&long), tables.tile_till(&long, &stop));
    assert_eq!(tables.tile(&long), tables.tile_till(&long, &GO_ON));
}

/// What is counted at once is as much as piece by piece.
#[test]
fn long_runs_are_counted_as_short_ones() {
    for family in FAMILIES {
        let tables = family.tables();
        for length in (0..300).chain(16_300..16_500) {
            let run = vec![b'\n'; length];
            assert_eq!(tables.tile(&run), tables.count_run(b'\n', length), "{length}");
        }
        for (sign, length) in [(".", 33_000), ("-", 32_900), ("_", 40_001), ("-=", 17_000)] {
            let signs = format!("({}!", sign.repeat(length));
            let whole = count(family, "a") + tables.tile(signs.as_bytes()) + count(family, "b");
            assert_eq!(whole, count(family, &format!("a{signs}b")), "{sign:?}");
        }
    }
}

/// Without splits a long text would be counted in one window.
#[test]
fn texts_split_beside_newlines_behind_letters_and_between_ideographs() {
    let kinds = ['a', '中', '文', '1', '.', ' ', '\n', '\t', 'か', '\u{301}', '\u{E000}', '\0'];
    let stays = ['a', '中', '文', '1', '.', 'か'];
    let is_safe = |before, behind| match (before, behind) {
        (one, '\n') | ('\n', one) => stays.contains(&one),
        (one, ' ') => ['a', 'か'].contains(&one),
        (one, other) => [one, other].iter().all(|one| ['中', '文'].contains(one)),
    };
    for family in FAMILIES {
        for before in kinds {
            for behind in kinds {
                let found = family.is_safe_split(before.into(), behind.into());
                assert_eq!(is_safe(before, behind), found, "{family:?} {before:?} {behind:?}");
            }
        }
    }
}

#[test]
fn windows_end_at_the_first_split_behind_their_size() {
    for family in FAMILIES {
        let end = |text: &str, from, size| family.end_of_window(text.as_bytes(), from, size);
        // A split right at the size is not seen: what stands before it is not read.
        let ends = [1, 2, 3, 4, 5, 8, 9, 10, 13, 14, 99].map(|size| end("aaaa bbbb cccc", 0, size));
        assert_eq!([4, 4, 4, 9, 9, 9, 14, 14, 14, 14, 14], ends);
        assert_eq!([9, 14], [3, 4].map(|size| end("aaaa bbbb cccc", 5, size)));
        // Within a character, the next split is looked for from its start.
        assert_eq!([6, 6, 6, 6, 11], [2, 3, 4, 5, 7].map(|size| end("aé中文 b", 0, size)));
    }
}

/// Texts with all that the rules tell apart, in any order.
fn texts() -> impl Strategy<Value = String> {
    let unit = prop_oneof![
        "[a-zA-Z]{1,5}",
        "[ \n\t]{1,3}",
        "[ -~]{1,3}",
        "[0-9٠-٩०१½²]{1,3}",
        "[’“”„—»•\u{A0}\u{3000}\u{200D}\u{FE0F}\u{301}\u{323}\u{93C}\u{94D}\u{E4D}\u{E32}\u{711}]{1,2}",
        "[éÉßẞİıǅΣςⒶⓐⅣⅳßжЖאبकกあア]{1,3}",
        "[中文、。？한글ᄀ\u{1161}\u{11A8}\u{1F600}\u{E000}\u{0}\r\u{FDD0}\u{FDD4}\u{0897}]{1,2}",
        Just(" ".to_owned()),
        Just("'s".to_owned()),
        any::<char>().prop_map(|char| char.to_string()),
    ];
    prop::collection::vec(unit, 0..12).prop_map(|units| units.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn safe_splits_are_safe(left in texts(), right in texts(), split in "([a-zéжक中。.!1] |[a-zéжक中。.!1\u{301}]\n|[a\n]\n[a.'\u{301}中1’]|中文)") {
        let text = left + &split + &right;
        for family in FAMILIES {
            let whole = count(family, &text);
            let codes: Vec<(usize, char)> = text.char_indices().collect();
            for pair in codes.windows(2) {
                let [(_, before), (at, behind)] = [pair[0], pair[1]];
                let (head, tail) = text.split_at(at);
                if family.is_safe_split(before.into(), behind.into()) {
                    let parts = part(family, head, true, false) + part(family, tail, false, true);
                    prop_assert_eq!(whole, parts, "{:?} {:?} {:?}", family, head, tail);
                }
            }
        }
    }

    /// Windows start at safe splits only, so three parts add up too.
    #[test]
    fn a_part_in_the_middle_adds_up(left in texts(), middle in texts(), right in texts()) {
        for family in FAMILIES {
            let whole = count(family, &format!("{left}x\ny{middle}z\nx{right}"));
            let parts = part(family, &format!("{left}x"), true, false)
                + part(family, &format!("\ny{middle}z"), false, false)
                + part(family, &format!("\nx{right}"), false, true);
            prop_assert_eq!(whole, parts);
        }
    }

    /// So parts of the middle give an upper bound for any place.
    #[test]
    fn the_ends_add_one_token_at_most(text in texts()) {
        for family in FAMILIES {
            prop_assert!(count(family, &text) <= part(family, &text, false, false) + 1);
        }
    }

    #[test]
    fn a_limit_is_kept(text in texts(), more in 0_u64..4) {
        for family in FAMILIES {
            let whole = count(family, &text);
            prop_assert_eq!(Some(whole), family.tokens(text.as_bytes(), whole + more, &GO_ON));
            if whole > more {
                prop_assert_eq!(None, family.tokens(text.as_bytes(), whole - more - 1, &GO_ON));
            }
        }
    }
}
