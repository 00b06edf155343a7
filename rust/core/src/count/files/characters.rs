//! Vocabularies of characters, as SentencePiece makes them: characters merge,
//! and one that is no token counts its bytes.

use std::collections::HashMap;

use super::builder::{Builder, NONE, Read, add_in_order};
use super::{damaged, unknown};
use crate::count::normal::{Normal, Prefix, SPACE};
use crate::count::pretokenize::pieces::Pieces as Splits;
use crate::count::tokenizer::Split;
use crate::error::Error;

/// What a file says.
pub(super) struct Pieces<'a> {
    /// The tokens, with U+2581 for a space.
    pub(super) tokens: Vec<&'a str>,
    /// The merges in their order, as places in `tokens`: the parts, and the
    /// result. Without them any two tokens merge that make a token, in the
    /// order of `tokens`.
    pub(super) merges: Option<Vec<[u32; 3]>>,
    /// Runs of one character that are tokens whatever the merges say.
    pub(super) runs: Vec<(char, usize)>,
}

/// The longest run of a character that is a token.
const LONGEST_RUN: usize = 256;

pub(super) fn read(file: &Pieces<'_>, prefix: Prefix) -> Result<Read, Error> {
    let mut ranks = vec![NONE; file.tokens.len()];
    let (mut wide, mut places) = (Vec::new(), Vec::new());
    for (nth, token) in file.tokens.iter().enumerate() {
        let mut chars = token.chars();
        let (Some(char), None) = (chars.next(), chars.next()) else { continue };
        match char {
            _ if *token == SPACE => ranks[nth] = b' '.into(),
            ' ' => {} // no text has one
            _ if char.is_ascii() => ranks[nth] = char.into(),
            _ => {
                wide.push(char);
                places.push(nth);
            }
        }
    }
    let lengths: Vec<_> = file.tokens.iter().map(|token| run(token)).collect();
    let runs = runs_of(file, &lengths)?;
    let in_runs: usize = runs.iter().map(|run| run.1).sum();
    let mut builder = Builder::new(file.tokens.len() + 3 * wide.len() + in_runs);
    for (nth, rank) in places.into_iter().zip(builder.add_characters(&wide)?) {
        ranks[nth] = rank;
    }
    for &(char, longest) in &runs {
        let single = u32::from(char);
        let mut rank = single;
        for _ in 1..longest {
            rank = builder.push(rank, single)?;
        }
    }
    if let Some(merges) = &file.merges {
        // Merges of runs are done.
        let is_run = |place: u32| {
            let (kind, length) = lengths[place as usize];
            length > 1 && runs.iter().any(|run| run.0 == RUNS[kind])
        };
        let merges: Vec<_> = merges.iter().copied().filter(|&[.., whole]| !is_run(whole)).collect();
        if merges.iter().any(|&[left, right, _]| is_run(left) || is_run(right)) {
            return Err(unknown("merges of runs of spaces or line ends with other characters"));
        }
        builder.merge(&merges, &mut ranks)?;
    } else {
        let tokens: Vec<_> = file.tokens.iter().map(|token| token.as_bytes()).collect();
        add_in_order(&mut builder, &tokens, &mut ranks)?;
    }
    let vocabulary = builder.finish(Vec::new())?;
    Ok(Read {
        split: Split::Pieces(Splits::new(&vocabulary)),
        vocabulary,
        normal: Normal::Spaces,
        prefix,
    })
}

/// Returns the characters whose runs merge before anything else, up to a
/// length: a longer run is cut from the left. `lengths` has the [`run`] of each
/// token.
fn runs_of(file: &Pieces<'_>, lengths: &[(usize, usize)]) -> Result<Vec<(char, usize)>, Error> {
    let mut seen = RUNS.map(|_| Seen::default());
    for (nth, merge) in file.merges.iter().flatten().enumerate() {
        let [left, right, whole] = merge.map(|place| lengths[place as usize]);
        if whole.1 > 1 {
            seen[whole.0].lengths.push(whole.1);
        }
        if left.1 == 0 && right.1 == 0 {
            continue;
        }
        for (kind, seen) in seen.iter_mut().enumerate() {
            let length = |part: (usize, usize)| (part.0 == kind && part.1 > 0).then_some(part.1);
            match (length(left), length(right)) {
                (Some(left), Some(right)) => {
                    seen.merges.entry((left, right)).or_insert(nth);
                }
                (None, None) => {}
                _ => seen.others = seen.others.min(nth),
            }
        }
    }
    let mut runs = Vec::new();
    for (char, mut seen) in RUNS.into_iter().zip(seen) {
        seen.lengths.extend(file.runs.iter().filter(|run| run.0 == char).map(|run| run.1));
        seen.lengths.sort_unstable();
        seen.lengths.dedup();
        let Some(&longest) = seen.lengths.last() else { continue };
        if longest > LONGEST_RUN || seen.lengths.iter().copied().ne(2..=longest) {
            return Err(unknown("runs of spaces or line ends of some lengths only"));
        }
        if file.merges.is_some() {
            seen.check(longest)?;
        }
        runs.push((char, longest));
    }
    Ok(runs)
}

/// The characters of which runs may be tokens.
const RUNS: [char; 4] = [' ', '\n', '\t', '\r'];

/// Returns which of [`RUNS`] a token is a run of, and its length; 0 for any
/// other token.
fn run(token: &str) -> (usize, usize) {
    let char = token.chars().next().map(|char| if char == '\u{2581}' { ' ' } else { char });
    let Some(kind) = RUNS.iter().position(|&run| Some(run) == char) else { return (0, 0) };
    let char = if kind == 0 { '\u{2581}' } else { RUNS[kind] };
    if token.chars().any(|other| other != char) {
        return (0, 0);
    }
    (kind, token.len() / char.len_utf8())
}

/// What the merges say of the runs of one character.
struct Seen {
    /// The lengths of the runs that are made.
    lengths: Vec<usize>,
    /// The first merge of runs of two lengths.
    merges: HashMap<(usize, usize), usize>,
    /// The first merge of a run with something else.
    others: usize,
}

impl Default for Seen {
    fn default() -> Self {
        Self { lengths: Vec::new(), merges: HashMap::new(), others: usize::MAX }
    }
}

impl Seen {
    /// Checks that runs merge before anything else does, and to the longest
    /// tokens from the left.
    fn check(&self, longest: usize) -> Result<(), Error> {
        let merges = &self.merges;
        let first = merges.get(&(1, 1)).copied().ok_or_else(|| damaged("a run is never begun"))?;
        if first > self.others {
            return Err(unknown("runs of spaces or line ends that merge late"));
        }
        for count in 1..=2 * longest + 1 {
            let mut run = vec![1; count];
            loop {
                let pairs = run.windows(2).enumerate();
                let next = pairs
                    .filter_map(|(at, pair)| Some((*merges.get(&(pair[0], pair[1]))?, at)))
                    .min();
                let Some((_, at)) = next else { break };
                run[at] += run.remove(at + 1);
            }
            if run.len() != count.div_ceil(longest) {
                return Err(unknown("runs of spaces or line ends that do not merge from the left"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TokenCounter as _;
    use crate::count::Exact;
    use crate::count::tokenizer::{Model, Tokenizer};

    /// Returns a vocabulary with these tokens and merges, each merge by its parts.
    fn pieces(tokens: &'static str, merges: &[(&str, &str)]) -> Pieces<'static> {
        let tokens: Vec<_> = tokens.split(' ').collect();
        let place = |token: &str| {
            let place = tokens.iter().position(|&other| other == token);
            u32::try_from(place.expect(token)).expect("there are few")
        };
        let merges = merges
            .iter()
            .map(|(left, right)| [place(left), place(right), place(&[*left, right].concat())]);
        Pieces { merges: Some(merges.collect()), tokens, runs: Vec::new() }
    }

    /// Returns how many tokens some texts have, or why there is no vocabulary.
    fn counts(file: &Pieces<'_>, texts: &[&str]) -> Result<Vec<usize>, String> {
        let read = read(file, Prefix::No).map_err(|error| error.to_string())?;
        let exact = Exact::new(Tokenizer::new(Model::of_file("a file".to_string(), read)));
        Ok(texts.iter().map(|text| exact.count(text)).collect())
    }

    #[test]
    fn a_run_is_of_one_character() {
        let runs = ["\u{2581}", "\u{2581}\u{2581}\u{2581}", "\n\n", "\t", "\r\r"];
        assert_eq!([(0, 1), (0, 3), (1, 2), (2, 1), (3, 2)], runs.map(run));
        for token in ["", "a", "aa", " ", "\u{2581} ", "\n\t", "\u{2581}a", "\r\n"] {
            assert_eq!((0, 0), run(token), "{token:?}");
        }
    }

    #[test]
    fn characters_merge_in_the_order_of_the_merges() {
        let file = pieces(
            "\u{2581} a b \u{e9} ab \u{2581}a \u{e9}b",
            &[("\u{2581}", "a"), ("a", "b"), ("\u{e9}", "b")],
        );
        let texts = ["a", "ab", " ab", "\u{e9}b", "ba", "\u{e9}", "\u{e8}", "  ", "a\u{e9}b"];
        assert_eq!(Ok(vec![1, 1, 2, 1, 2, 1, 2, 2, 2]), counts(&file, &texts));
    }

    #[test]
    fn tokens_merge_in_their_order_where_there_are_no_merges() {
        let tokens = vec!["\u{2581}", "a", "b", "bb", "ab"];
        let file = Pieces { tokens, merges: None, runs: vec![(' ', 2), (' ', 3), ('\n', 2)] };
        let texts = ["ab", "abb", "   ", "    ", "\n\n", "\n\n\n", "\t\t"];
        assert_eq!(Ok(vec![1, 2, 1, 2, 1, 2, 2]), counts(&file, &texts));
    }

    /// A character of several bytes is made by merges that are no tokens of the file.
    #[test]
    fn most_tokens_may_be_characters_of_several_bytes() {
        let file = pieces("\u{8336} \u{7eff} \u{7ea2}", &[]);
        let texts = ["\u{8336}", "\u{7eff}\u{8336}", "\u{7ea2}\u{9ed1}", "\u{8336}a"];
        assert_eq!(Ok(vec![1, 2, 4, 2]), counts(&file, &texts));
    }

    #[test]
    fn a_token_that_no_text_has_is_passed_over() {
        let mut file = pieces("\u{2581} a \u{2581}a", &[("\u{2581}", "a")]);
        file.tokens.extend([" ", " a"]);
        file.merges = Some(vec![[3, 1, 4]]);
        assert_eq!(Ok(vec![2]), counts(&file, &[" a"]));
    }

    #[test]
    fn runs_merge_before_anything_else() {
        let tokens = "\u{2581} \u{2581}\u{2581} \n \n\n a \u{2581}a";
        let (spaces, lines) = (("\u{2581}", "\u{2581}"), ("\n", "\n"));
        let word = ("\u{2581}", "a");
        let file = pieces(tokens, &[spaces, word, lines]);
        let texts = [" a", "  a", "   a", "\n\n\n", "  \n\n"];
        assert_eq!(Ok(vec![1, 2, 2, 2, 2]), counts(&file, &texts));
        let tokens = "\u{2581} \u{2581}\u{2581} \n \n\n a \u{2581}a a\u{2581}";
        for word in [word, ("a", "\u{2581}")] {
            let file = pieces(tokens, &[word, spaces, lines]);
            let late = counts(&file, &[]).expect_err("the word merges first");
            assert!(late.ends_with("runs of spaces or line ends that merge late"), "{late}");
        }
    }

    #[test]
    fn runs_of_some_lengths_are_refused() {
        let three = ["\u{2581}", "\u{2581}\u{2581}\u{2581}"];
        let file = Pieces { tokens: three.to_vec(), merges: None, runs: vec![(' ', 3)] };
        let error = counts(&file, &[]).expect_err("no run of two");
        assert!(error.ends_with("runs of spaces or line ends of some lengths only"), "{error}");
        let of = |longest| {
            let runs = (2..=longest).map(|length| ('\n', length)).collect();
            Pieces { tokens: vec!["\u{2581}"], merges: None, runs }
        };
        let text = "\n".repeat(LONGEST_RUN + 1);
        assert_eq!(Ok(vec![2]), counts(&of(LONGEST_RUN), &[&text]));
        assert_eq!(Err(error), counts(&of(LONGEST_RUN + 1), &[]));
    }

    #[test]
    fn runs_merge_with_nothing_else() {
        let merges = [("\u{2581}", "\u{2581}"), ("\u{2581}\u{2581}", "a")];
        let file = pieces("\u{2581} \u{2581}\u{2581} a \u{2581}\u{2581}a", &merges);
        let error = counts(&file, &[]).expect_err("a run merges with a letter");
        assert!(error.ends_with("with other characters"), "{error}");
    }

    #[test]
    fn runs_of_one_character_merge_behind_another() {
        let merges = [("\u{2581}", "t"), ("\n", "\n")];
        let file = pieces("\u{2581} t \u{2581}t \n \n\n", &merges);
        assert_eq!(Ok(vec![1, 1, 1, 2]), counts(&file, &["t", " t", "\n\n", "\n\n\n"]));
    }

    #[test]
    fn runs_merge_from_the_left() {
        let check = |merges: &[(usize, usize)], others, longest| {
            let merges = merges.iter().copied().zip(0..).collect();
            Seen { lengths: Vec::new(), merges, others }.check(longest)
        };
        let error = |found: Result<(), Error>| found.expect_err("they do not").to_string();
        for (merges, longest) in [
            (&[(1, 1)][..], 2),
            (&[(2, 1), (1, 1)], 3),
            (&[(1, 1), (2, 1), (2, 2)], 4),
            (&[(3, 1), (2, 1), (1, 1)], 4),
        ] {
            assert_eq!(Ok(()), check(merges, usize::MAX, longest));
            assert_eq!(Ok(()), check(merges, 3, longest));
        }
        for (merges, longest) in [
            (&[(1, 1)][..], 3),
            (&[(1, 1), (2, 1)], 3),
            // Only seen in eight of them.
            (&[(2, 1), (1, 1), (1, 3), (3, 1)], 4),
        ] {
            let found = error(check(merges, usize::MAX, longest));
            assert!(found.ends_with("that do not merge from the left"), "{found}");
        }
        assert!(error(check(&[(2, 1), (1, 1)], 0, 3)).ends_with("that merge late"));
        assert!(error(check(&[(2, 1)], usize::MAX, 3)).ends_with("a run is never begun"));
    }
}
