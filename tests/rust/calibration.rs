//! What bills teach: the cases that Python answers too, and laws that hold for
//! every pair.
#![allow(clippy::float_cmp)] // scales are exact

mod cases;

use budgeteer::{Basis, Calibration, ErrorKind, Estimate, TokenCounter};
use proptest::prelude::*;
use serde_json::Value;

use cases::{cases, list, number};

const MODEL: &str = "chars_div4";
const SIZES: [usize; 6] = [0, 1, 2, 999, 8_000, 33_554_432];

fn pairs(value: &Value) -> Vec<(usize, usize)> {
    list(value).iter().map(|pair| (number(&pair[0]), number(&pair[1]))).collect()
}

fn learned(pairs: &[(usize, usize)]) -> Calibration {
    let calibration = Calibration::new();
    for &(estimated, billed) in pairs {
        calibration.observe(MODEL, estimated, billed).expect("it can be covered");
    }
    calibration
}

/// A fit is Python's, to the last bit.
#[test]
fn fits() {
    for case in list(&cases("calibration.json", "fits")) {
        let calibration = learned(&pairs(&case["pairs"]));
        let calibration = calibration.quantile(case["quantile"].as_f64().unwrap()).unwrap();
        let found = calibration.correction(MODEL).unwrap();
        assert_eq!(case["scale"].as_f64(), Some(found.scale()), "{case}");
        assert_eq!(number(&case["frame_tokens"]), found.frame_tokens, "{case}");
        assert_eq!(number(&case["fitted"]), found.pairs, "{case}");
        let bounds: Vec<_> = list(&case["bounds"]).iter().map(number).collect();
        assert_eq!(bounds, SIZES.map(|size| found.bound(size)), "{case}");
    }
}

/// A corrected counter counts as Python's does, with a limit too.
#[test]
fn counts() {
    for case in list(&cases("calibration.json", "counts")) {
        let counter = learned(&pairs(&case["pairs"])).counter(MODEL, Estimate::CharsDiv4);
        let answers = list(&case["counts"]).iter().zip(list(&case["limited"]));
        for (text, (count, limited)) in list(&case["texts"]).iter().zip(answers) {
            let text = text.as_str().unwrap();
            assert_eq!(number(count), counter.count(text));
            assert_eq!(
                limited.as_u64().map(|_| number(limited)),
                counter.count_till_limit(text, 25)
            );
            let shared = counter.to_shared().unwrap();
            assert_eq!((number(count), counter.basis()), (shared.count(text), shared.basis()));
        }
    }
}

/// A pair that no correction covers is refused in Python's words.
#[test]
fn refusals() {
    for case in list(&cases("calibration.json", "refusals")) {
        let billed = usize::try_from(case["billed"].as_u64().unwrap()).unwrap();
        let calibration = Calibration::new();
        let error = calibration.observe(MODEL, number(&case["estimated"]), billed).unwrap_err();
        assert_eq!(case["error"], error.to_string());
        assert_eq!(ErrorKind::InvalidArgument, error.kind());
        assert_eq!(None, calibration.correction(MODEL));
    }
}

/// A bill of a tenth of the count is the least that is taken.
#[test]
fn a_tenth_is_enough() {
    let calibration = Calibration::new();
    assert!(calibration.observe(MODEL, 1_000, 99).is_err());
    calibration.observe(MODEL, 1_000, 100).unwrap();
    assert_eq!(1, calibration.correction(MODEL).unwrap().pairs);
}

/// A file that Python reads is read, and written with the same content; every
/// other is an error.
#[test]
fn files() {
    for case in list(&cases("calibration.json", "files")) {
        let read = Calibration::from_json(case["text"].as_str().unwrap());
        match &case["written"] {
            Value::Null => assert_eq!(ErrorKind::InvalidArgument, read.unwrap_err().kind()),
            written => {
                let json = read.unwrap().to_json();
                assert_eq!(*written, serde_json::from_str::<Value>(&json).unwrap());
            }
        }
    }
}

/// Of more models than are kept, the one that was not observed for longest
/// goes.
#[test]
fn models_are_bounded() {
    let calibration = Calibration::new();
    for i in 0..256 {
        calibration.observe(&i.to_string(), 100, 100).unwrap();
    }
    calibration.observe("0", 100, 100).unwrap();
    calibration.observe("new", 100, 100).unwrap();
    let is_kept = |name: &str| calibration.correction(name).is_some();
    assert_eq!([true, false, true, true], ["0", "1", "2", "new"].map(is_kept));

    let read = Calibration::from_json(&calibration.to_json()).unwrap();
    read.observe("newer", 100, 100).unwrap();
    let is_kept = |name: &str| read.correction(name).is_some();
    assert_eq!([true, false, true, true], ["0", "2", "3", "newer"].map(is_kept));
}

/// A quantile is a share of at least a half.
#[test]
fn quantiles() {
    for share in [0.499, 1.001, f64::NAN, f64::INFINITY, -1.0] {
        let error = Calibration::new().quantile(share).unwrap_err();
        assert_eq!(format!("quantile must be from 0.5 to 1, not {share}"), error.to_string());
    }
}

/// Without drift the counter is the one that was given, native and exact.
#[cfg(feature = "o200k")]
#[test]
fn no_drift_changes_nothing() {
    let exact = budgeteer::Exact::new(budgeteer::Encoding::O200k);
    let same = learned(&[(8_000, 8_000)]).counter(MODEL, exact.clone());
    assert_eq!(Basis::Exact, same.basis());
    assert!(same.is_exact() && same.native() == exact.native());
    let other = learned(&[(8_000, 9_000)]).counter(MODEL, exact);
    assert!(!other.is_exact() && other.basis() == Basis::Learned);
}

/// A correction of a count that has a factor is one product, rounded up once:
/// the tokens of a packing are what its counter says of the text.
#[cfg(feature = "o200k")]
#[test]
fn factors_of_factors_are_rounded_once() {
    use budgeteer::{Encoding, Packer, Scaled};

    let scaled = Scaled::new(Encoding::O200k, 1.5).unwrap();
    let counter = learned(&[(8_000, 12_000)]).counter(MODEL, scaled);
    let text = "Green tea is"; // 3 tokens: 4.5, and 6.75 of these
    let packing = Packer::new(7).counter(counter).pack("tea", &[text]).unwrap();
    assert_eq!((text, 7), (&*packing.text, packing.total_tokens));
    assert_eq!(7, counter.count(text));
    assert_eq!(
        (None, Some(7)),
        (counter.count_till_limit(text, 6), counter.count_till_limit(text, 7))
    );
}

proptest! {
    /// A correction covers its share of the pairs that are kept, stays within
    /// its range, and a corrected count is taken back exactly.
    #[test]
    fn laws(
        pairs in prop::collection::vec((1..1_000_000_usize, 0.11..4.0_f64, 0..9_000_usize), 1..80),
    ) {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let pairs: Vec<_> = pairs
            .iter()
            .map(|&(size, scale, frame)| (size, (size as f64 * scale) as usize + frame + 1))
            .collect();
        let calibration = learned(&pairs);
        let found = calibration.correction(MODEL).unwrap();
        prop_assert!((0.25..=4.0).contains(&found.scale()) && found.frame_tokens <= 1 << 17);
        prop_assert!(found.scale() >= 1.0 || found.pairs >= 64);
        if found.pairs == pairs.len() {
            prop_assert!(pairs.iter().all(|&(size, billed)| billed <= found.bound(size)));
        }
        for (size, _) in pairs {
            let corrected = found.bound(size) - found.frame_tokens;
            let raw = found.raw_count(corrected);
            prop_assert_eq!(found.bound(raw) - found.frame_tokens, corrected);
            prop_assert!(raw <= size && (raw == size || found.scale() < 1.0));
        }
    }
}

/// What is shown has figures, and names no model.
#[test]
fn shows_how_many_models_it_knows() {
    let shown = format!("{:?}", learned(&[(1_000, 1_200)]));
    assert_eq!("Calibration { quantile: 0.99, models: 1 }", shown);
}
