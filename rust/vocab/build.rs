//! Packs the vocabularies, which are in the crate `tiktoken-rs`.

#![allow(clippy::print_stdout)] // a build script talks to cargo that way

use std::collections::HashMap;
use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex_syntax::hir::{Class, HirKind};
use sha2::{Digest, Sha256};
use tiktoken_rs::CoreBPE;

use pack::pack;
use shared::{pack_shared, unpack_shared};
use unpack::{Merges, SINGLES, Unpacked, unpack};

#[path = "src/pack.rs"]
mod pack;
#[path = "src/shared.rs"]
mod shared;
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

/// The vocabularies in `data` that were made from the first of [`SOURCES`].
const MADE_FROM: [(&str, bool); 3] = [
    ("qwen2", cfg!(feature = "qwen2")),
    ("qwen3.5", cfg!(feature = "qwen35")),
    ("glm4", cfg!(feature = "glm4")),
];

fn main() {
    for file in ["build.rs", "data", "src/pack.rs", "src/shared.rs", "src/unpack.rs"] {
        println!("cargo::rerun-if-changed={file}");
    }
    if let Err(error) = write_classes() {
        println!("cargo::error=The classes of characters cannot be written: {error}.");
    }
    for source in SOURCES.iter().filter(|source| source.feature) {
        if let Err(error) = write(source) {
            println!("cargo::error=The vocabulary {} cannot be packed: {error}.", source.name);
        }
    }
    for (name, _) in MADE_FROM.iter().filter(|(_, feature)| *feature) {
        if let Err(error) = write_shared(name) {
            println!("cargo::error=The vocabulary {name} cannot be packed: {error}.");
        }
    }
}

/// Writes the file of a vocabulary that the library includes.
fn write(source: &Source) -> Result<(), Box<dyn Error>> {
    let tokens = read(source)?;
    let merges = find_merges(&tokens)?;
    let unpacked = Unpacked {
        singles: tokens[..SINGLES].concat(),
        merges,
        wholes: Vec::new(),
        early: Vec::new(),
    };
    let packed = pack(&unpacked);
    if unpack(&packed).as_ref() != Some(&unpacked) {
        return Err("what was packed does not unpack".into());
    }
    let directory = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(directory.join(format!("{}.bin", source.name)), packed)?;
    Ok(())
}

/// Writes the file of a vocabulary that has most merges of the first source, which
/// was written before.
fn write_shared(name: &str) -> Result<(), Box<dyn Error>> {
    let directory = PathBuf::from(env::var("OUT_DIR")?);
    let read = |path: PathBuf| -> Result<Unpacked, Box<dyn Error>> {
        Ok(unpack(&fs::read(path)?).ok_or("it is damaged")?)
    };
    let base = read(directory.join(format!("{}.bin", SOURCES[0].name)))?;
    let file = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join(format!("data/{name}.bin"));
    let packed = pack_shared(read(file.clone())?, &base);
    if unpack_shared(&packed, &base) != Some(read(file)?) {
        return Err("what was packed does not unpack".into());
    }
    fs::write(directory.join(format!("{name}.bin")), packed)?;
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

/// The classes of characters that the patterns tell apart, as bits.
const CLASSES: [&str; 8] = [
    r"[\p{Lu}\p{Lt}]",
    r"\p{Ll}",
    r"[\p{Lm}\p{Lo}]",
    r"\p{M}",
    r"\p{N}",
    r"[\s--[\r\n]]",
    r"[\r\n]",
    r"[\p{P}\p{S}]",
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
