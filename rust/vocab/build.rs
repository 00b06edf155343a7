//! Packs the vocabularies, which are in the crate `tiktoken-rs`.

#![allow(clippy::print_stdout)] // a build script talks to cargo that way

use std::collections::HashMap;
use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use miniz_oxide::deflate::compress_to_vec;
use regex_syntax::hir::{Class, HirKind};
use sha2::{Digest, Sha256};
use tiktoken_rs::CoreBPE;

use unpack::{HEAD_BITS, Merges, Packed, SINGLES, unpack};

#[path = "src/unpack.rs"]
mod unpack;

/// A vocabulary to pack.
struct Source {
    name: &'static str,
    feature: bool,
    /// The number of tokens, without special ones.
    tokens: u32,
    /// The SHA-256 of the file that tiktoken downloads.
    hash: &'static str,
    core: fn() -> &'static CoreBPE,
}

const SOURCES: [Source; 2] = [
    Source {
        name: "cl100k_base",
        feature: cfg!(feature = "cl100k"),
        tokens: 100_256,
        hash: "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        core: tiktoken_rs::cl100k_base_singleton,
    },
    Source {
        name: "o200k_base",
        feature: cfg!(feature = "o200k"),
        tokens: 199_998,
        hash: "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        core: tiktoken_rs::o200k_base_singleton,
    },
];

/// `unpack` reads this many bytes at once, so it may read past the last bit.
const PADDING: usize = 4;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/unpack.rs");
    if let Err(error) = write_classes() {
        println!("cargo::error=The classes of characters cannot be written: {error}.");
    }
    for source in SOURCES.iter().filter(|source| source.feature) {
        if let Err(error) = write(source) {
            println!("cargo::error=The vocabulary {} cannot be packed: {error}.", source.name);
        }
    }
}

/// Writes the two files of a vocabulary that the library includes.
fn write(source: &Source) -> Result<(), Box<dyn Error>> {
    let tokens = read(source)?;
    let merges = find_merges(&tokens)?;
    let heads = pack_heads(&tokens, &merges);
    let tails = pack_tails(&merges);
    if unpack(Packed { heads: &heads, tails: &tails }) != Some((tokens[..SINGLES].concat(), merges))
    {
        return Err("what was packed does not unpack".into());
    }
    let directory = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(directory.join(format!("{}.heads", source.name)), heads)?;
    fs::write(directory.join(format!("{}.tails", source.name)), tails)?;
    Ok(())
}

/// Returns the tokens by rank, after checking that they are the published ones.
fn read(source: &Source) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let core = (source.core)();
    let tokens: Vec<_> =
        (0..source.tokens).map(|rank| core.decode_bytes(&[rank])).collect::<Result<_, _>>()?;
    let mut hash = Sha256::new();
    for (rank, token) in tokens.iter().enumerate() {
        hash.update(format!("{} {rank}\n", STANDARD.encode(token)));
    }
    let hash = hash.finalize().iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    if hash == source.hash {
        Ok(tokens)
    } else {
        Err(format!("its SHA-256 is {hash}, but the published one is {}", source.hash).into())
    }
}

/// Returns the parts of all tokens that are not single bytes, by rank.
fn find_merges(tokens: &[Vec<u8>]) -> Result<Merges, String> {
    if tokens.iter().take_while(|token| token.len() == 1).count() != SINGLES {
        return Err("its first 256 tokens are not the single bytes".into());
    }
    let ranks = (0..).zip(tokens).map(|(rank, token)| (token.as_slice(), rank)).collect();
    let merge = |(rank, token)| {
        find_parts(token, rank, &ranks)
            .ok_or_else(|| format!("its token {rank} is not the merge of two others"))
    };
    (0..).zip(tokens.iter().map(Vec::as_slice)).skip(SINGLES).map(merge).collect()
}

/// Returns the two tokens that are left before a token itself is merged.
///
/// That is byte-pair encoding: of all neighbours that join to a token, those
/// which join to the lowest rank are merged, the leftmost first.
fn find_parts(token: &[u8], rank: u32, ranks: &HashMap<&[u8], u32>) -> Option<(u32, u32)> {
    let mut bounds: Vec<usize> = (0..=token.len()).collect();
    while bounds.len() > 3 {
        let joins = (1..).zip(bounds.windows(3)).filter_map(|(middle, bounds)| {
            let &join = ranks.get(&token[bounds[0]..bounds[2]])?;
            (join < rank).then_some((join, middle))
        });
        let (_, middle) = joins.min()?;
        bounds.remove(middle);
    }
    let &[start, middle, end] = bounds.as_slice() else { return None };
    let left = *ranks.get(&token[start..middle])?;
    let right = *ranks.get(&token[middle..end])?;
    (left < rank && right < rank).then_some((left, right))
}

/// Returns the single bytes, then the heads of all left parts, then those of
/// all right parts, compressed.
fn pack_heads(tokens: &[Vec<u8>], merges: &[(u32, u32)]) -> Vec<u8> {
    let head = |rank: u32| u8::try_from(split(rank).0).expect("a rank is below 2^19");
    let mut heads = tokens[..SINGLES].concat();
    heads.extend(merges.iter().map(|&(left, _)| head(left)));
    heads.extend(merges.iter().map(|&(_, right)| head(right)));
    // There are hardly any repeats to find, so a higher level makes it no
    // smaller.
    compress_to_vec(&heads, 6)
}

/// Returns the tails of all parts, as bits without a gap.
fn pack_tails(merges: &[(u32, u32)]) -> Vec<u8> {
    let mut tails = Vec::new();
    let (mut held, mut count) = (0_u64, 0);
    for rank in merges.iter().flat_map(|&(left, right)| [left, right]) {
        let (_, bits) = split(rank);
        held |= u64::from(rank & ((1 << bits) - 1)) << count;
        count += bits;
        while count >= 8 {
            tails.push(held.to_le_bytes()[0]);
            held >>= 8;
            count -= 8;
        }
    }
    tails.push(held.to_le_bytes()[0]);
    tails.extend([0; PADDING]);
    tails
}

/// Returns the head of a rank, and how many of its lowest bits are the tail.
fn split(rank: u32) -> (u32, u32) {
    let bits = (u32::BITS - rank.leading_zeros()).saturating_sub(HEAD_BITS + 1);
    // The highest bit, which is always set, adds the last one to the exponent.
    ((bits << HEAD_BITS) + (rank >> bits), bits)
}

/// The classes of characters that the patterns tell apart, as bits.
const CLASSES: [&str; 7] = [
    r"[\p{Lu}\p{Lt}]",
    r"\p{Ll}",
    r"[\p{Lm}\p{Lo}]",
    r"\p{M}",
    r"\p{N}",
    r"[\s--[\r\n]]",
    r"[\r\n]",
];

/// Writes the ranges of code points of each class as an expression of Rust.
fn write_classes() -> Result<(), Box<dyn Error>> {
    let mut ranges = Vec::new();
    for (bit, pattern) in CLASSES.iter().enumerate() {
        let parsed = regex_syntax::parse(pattern)?;
        let HirKind::Class(Class::Unicode(class)) = parsed.kind() else {
            return Err(format!("{pattern} is no class").into());
        };
        for range in class.ranges() {
            ranges.push((u32::from(range.start()), u32::from(range.end()), 1 << bit));
        }
    }
    ranges.sort_unstable();
    let path = PathBuf::from(env::var("OUT_DIR")?).join("classes.rs");
    fs::write(path, format!("&{ranges:?}"))?;
    Ok(())
}
