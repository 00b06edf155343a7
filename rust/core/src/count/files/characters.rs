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
    let runs = runs_of(file)?;
    let mut builder = Builder::new(file.tokens.len() + 3 * wide.len());
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
    // Merges of runs are done.
    let is_run = |place: u32| {
        let token = file.tokens[place as usize];
        runs.iter().any(|&(char, _)| length_of_run(token, char).is_some_and(|length| length > 1))
    };
    if let Some(merges) = &file.merges {
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
/// length: a longer run is cut from the left.
fn runs_of(file: &Pieces<'_>) -> Result<Vec<(char, usize)>, Error> {
    let mut runs = Vec::new();
    for char in [' ', '\n', '\t', '\r'] {
        let length = |token: &str| length_of_run(token, char).filter(|&length| length > 1);
        let merges = file.merges.iter().flatten();
        let made = merges.filter_map(|merge| length(file.tokens[merge[2] as usize]));
        let given = file.runs.iter().filter(|run| run.0 == char).map(|run| run.1);
        let mut lengths: Vec<usize> = made.chain(given).collect();
        lengths.sort_unstable();
        lengths.dedup();
        let Some(&longest) = lengths.last() else { continue };
        if longest > LONGEST_RUN || lengths.iter().copied().ne(2..=longest) {
            return Err(unknown("runs of spaces or line ends of some lengths only"));
        }
        if let Some(merges) = &file.merges {
            check(&file.tokens, merges, char, longest)?;
        }
        runs.push((char, longest));
    }
    Ok(runs)
}

/// Returns the length of a token that is a run of `char`.
fn length_of_run(token: &str, char: char) -> Option<usize> {
    let char = if char == ' ' { '\u{2581}' } else { char };
    let is_run = !token.is_empty() && token.chars().all(|other| other == char);
    is_run.then(|| token.chars().count())
}

/// Checks that runs of `char` merge before anything else does, and to the
/// longest tokens from the left.
fn check(tokens: &[&str], all: &[[u32; 3]], char: char, longest: usize) -> Result<(), Error> {
    let length = |place: u32| length_of_run(tokens[place as usize], char);
    let mut merges: HashMap<(usize, usize), usize> = HashMap::new();
    let mut others = usize::MAX;
    for (nth, &[left, right, _]) in all.iter().enumerate() {
        match (length(left), length(right)) {
            (Some(left), Some(right)) => {
                merges.entry((left, right)).or_insert(nth);
            }
            (None, None) => {}
            _ => others = others.min(nth),
        }
    }
    let first = merges.get(&(1, 1)).copied().ok_or_else(|| damaged("a run is never begun"))?;
    if first > others {
        return Err(unknown("runs of spaces or line ends that merge late"));
    }
    for count in 1..=2 * longest + 1 {
        let mut run = vec![1; count];
        loop {
            let pairs = run.windows(2).enumerate();
            let next =
                pairs.filter_map(|(at, pair)| Some((*merges.get(&(pair[0], pair[1]))?, at))).min();
            let Some((_, at)) = next else { break };
            run[at] += run.remove(at + 1);
        }
        if run.len() != count.div_ceil(longest) {
            return Err(unknown("runs of spaces or line ends that do not merge from the left"));
        }
    }
    Ok(())
}
