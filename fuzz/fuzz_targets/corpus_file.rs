//! A damaged file of a corpus gives what the whole one gives, or an error that
//! says so. A forged one, whose hashes match, gives some answer or an error.
//! Nothing panics.
//!
//! The first byte of an input says which: an even one is followed by changes of
//! a good file, an odd one by a file, whose hashes are then made right.
#![no_main]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use budgeteer::{
    Batch as _, Chunk, Corpus, Dedupe, Error, ErrorKind, Estimate, Order, Overflow, Packer,
    Ranking, Saved, Stored, Template, Units,
};
use highway::{HighwayHash as _, HighwayHasher};
use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;

/// The layout of `rust/core/src/corpus/file.rs`.
const BLOCK: usize = 16384;
const SECTIONS: usize = 20;
const HEADER: usize = 40 + 8 * SECTIONS + 16;

const QUERY: &str = "brewing green tea \u{8336}\u{8336}, leaf3 caf\u{e9}s";

/// A good file, and what each call answers on it.
struct Good {
    file: Vec<u8>,
    answers: Vec<Result<String, Error>>,
}

static GOOD: LazyLock<Good> = LazyLock::new(|| {
    let chunks = (0..9).map(|place: u32| Chunk {
        mtime: f64::from(place),
        ..Chunk::new(format!("Brewed leaf{place} tea. Caf\u{e9} \u{8336}."))
            .id(place.to_string())
            .title(format!("Tea {}", place % 3))
            .score(f64::from(place % 4))
    });
    // A word that all have has a list of two blocks.
    let others = (9..140).map(|place: u32| Chunk::new(format!("Tea {place}")));
    Corpus::new(chunks.chain(others)).save(path()).expect("it is saved");
    let file = fs::read(path()).expect("it is there");
    Good { answers: answers(), file }
});

/// Returns the file of this process.
fn path() -> &'static Path {
    static PATH: LazyLock<PathBuf> = LazyLock::new(|| {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { memory.into() } else { std::env::temp_dir() };
        folder.join(format!("budgeteer-fuzz-{}.corpus", std::process::id()))
    });
    &PATH
}

fuzz_target!(|data: &[u8]| {
    let good = &*GOOD;
    let Some((&first, rest)) = data.split_first() else { return };
    if first % 2 == 1 {
        let mut file = rest.to_vec();
        rehash(&mut file);
        write(&file);
        for answer in answers() {
            if let Err(error) = answer {
                assert!(is_known(error.kind()), "{error}");
            }
        }
        return;
    }
    let mut file = good.file.clone();
    change(&mut file, rest);
    write(&file);
    let found = answers();
    let mut is_damaged = false;
    for (expected, found) in good.answers.iter().zip(&found) {
        match found {
            Ok(_) => assert!(!is_damaged && expected == found, "{expected:?}, not {found:?}"),
            Err(error) => {
                assert_eq!(ErrorKind::Corpus, error.kind(), "{error}");
                is_damaged = true;
            }
        }
    }
    assert!(is_damaged || file == good.file, "saving reads all");
});

fn is_known(kind: ErrorKind) -> bool {
    // An identifier may be another, and then is there twice.
    matches!(kind, ErrorKind::Corpus | ErrorKind::InvalidArgument)
}

/// Changes, cuts and lengthens a file as the input says.
fn change(file: &mut Vec<u8>, input: &[u8]) {
    let mut input = Unstructured::new(input);
    while let Ok((at, to, how)) = input.arbitrary::<(u16, u8, u8)>() {
        let at = usize::from(at) % file.len().max(1);
        match how % 16 {
            0 => file.truncate(at),
            1 => file.insert(at, to),
            2 => drop(file.drain(at..(at + usize::from(to)).min(file.len()))),
            _ => file.get_mut(at).into_iter().for_each(|byte| *byte = to),
        }
        if input.is_empty() {
            break;
        }
    }
}

fn write(file: &[u8]) {
    // A new file: what is mapped of the last one stays what it is.
    let _ = fs::remove_file(path());
    fs::write(path(), file).expect("it is written");
}

/// Does all that can be done with the file, and returns what came of each call.
fn answers() -> Vec<Result<String, Error>> {
    if let Ok(stored) = Stored::open(path()) {
        (0..stored.len()).for_each(|place| {
            let _ = (stored.text(place).chars(), stored.title(place).chars());
            let _ = stored.record(place);
        });
    }
    let corpus = match Corpus::open(path()) {
        Ok(corpus) => corpus,
        Err(error) => return vec![Err(error)],
    };
    let packed = |packer: &Packer, corpus: &Corpus<Saved>| {
        let packing = packer.pack_corpus(QUERY, corpus)?;
        Ok(format!("{} {:?}", packing.text, packing.kept))
    };
    let packer = || Packer::new(60).estimate(Estimate::CharsDiv4);
    let packers = [
        packer().max_chunks(1).ranking(Ranking::Bm25),
        Packer::new(60).overflow(Overflow::TruncateEnd).template(Template::xml()),
        packer().ranking(Ranking::Keyword).order(Order::Document).notice("Left: {count}."),
        packer().ranking(Ranking::Score).dedupe(Dedupe::Near),
        packer().ranking(Ranking::Recency).order(Order::Edges),
        packer().units(Units::Sentence),
    ];
    let mut found: Vec<_> = packers.iter().map(|packer| packed(packer, &corpus)).collect();
    let mut more = corpus.clone();
    more.append([Saved::from(Chunk::new("More tea."))]);
    found.push(packed(&packer(), &more));
    let (mut fewer, mut other) = (corpus.clone(), corpus.clone());
    found.push(fewer.remove(["1"]).and_then(|()| packed(&packer(), &fewer)));
    let new = Saved::from(Chunk::new("Tea.").id("2"));
    found.push(other.replace([new]).and_then(|()| packed(&packer(), &other)));
    let all: Vec<_> = corpus.chunks().iter().map(Saved::to_chunk).collect();
    found.push(corpus.check().map(|()| format!("{all:?}")));
    let copy = path().with_extension("copy");
    found.push(corpus.save(&copy).map(|()| format!("{:?}", fs::read(&copy).ok())));
    let _ = fs::remove_file(copy);
    found
}

/// Makes all hashes right, as far as the header says what they are of.
fn rehash(file: &mut [u8]) {
    if file.len() < HEADER {
        return;
    }
    let hash = |bytes: &[u8]| HighwayHasher::default().hash64(bytes).to_le_bytes();
    let long = |at: usize| {
        let bytes = file[at..at + 8].try_into().expect("eight bytes");
        usize::try_from(u64::from_le_bytes(bytes)).unwrap_or(usize::MAX)
    };
    let end = (0..SECTIONS).map(|nth| long(40 + 8 * nth)).fold(HEADER, usize::saturating_add);
    if end <= file.len() {
        let (mut at, mut to) = (HEADER, end);
        while at < end && to + 8 <= file.len() {
            let next = (at / BLOCK * BLOCK + BLOCK).min(end);
            let found = hash(&file[at..next]);
            file[to..to + 8].copy_from_slice(&found);
            (at, to) = (next, to + 8);
        }
        let found = hash(&file[end..]);
        file[HEADER - 16..HEADER - 8].copy_from_slice(&found);
    }
    let found = hash(&file[..HEADER - 8]);
    file[HEADER - 8..HEADER].copy_from_slice(&found);
}
