//! Files of corpora that are damaged, cut, forged, or read by many threads.
//!
//! The layout is that of `rust/core/src/corpus/file.rs`.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use budgeteer::presets::agentic_rag;
use budgeteer::service::Retriever;
use budgeteer::{
    Batch, Chunk, Corpus, Dedupe, Document, Error, ErrorKind, Estimate, Index, Order, Overflow,
    Packer, Ranking, Saved, Stored, Template, Units,
};
use highway::{HighwayHash, HighwayHasher};

const BLOCK: usize = 16384;
const SECTIONS: usize = 20;
const HEADER: usize = 40 + 8 * SECTIONS + 16;

/// The sections, in their order.
const ROWS: usize = 2;
const STEMS: usize = 11;
const TEXTS: usize = 15;
const RECORD_ENDS: usize = 18;

/// Returns another path for each test and process.
fn temporary(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("budgeteer-file-{}-{name}", std::process::id()))
}

fn chunks(size: usize, words: usize) -> Vec<Chunk> {
    let number = |n: usize| f64::from(u32::try_from(n).expect("a small number"));
    let chunk = |i: usize| {
        let word = |j: usize| match i * j % 7 {
            0 => "Teas, brewing.".to_owned(),
            1 => "caf\u{e9} \u{8336}\u{8336}".to_owned(),
            2 => format!("brewed{}", i % 5),
            3 => "tea".to_owned(),
            _ => format!("{}leaf{}", ["green", "black", "white"][j % 3], i * 31 % 97),
        };
        let text = (0..words).map(word).collect::<Vec<_>>().join(" ");
        let mut chunk = Chunk::new(text).id(format!("{i}"));
        if i.is_multiple_of(3) {
            chunk = chunk.title(format!("Brewed tea {}", i % 9)).score(number(i % 8));
            chunk.mtime = number(i);
        }
        chunk
    };
    (0..size).map(chunk).collect()
}

/// Returns the bytes of the file of a corpus.
fn saved(chunks: Vec<Chunk>, name: &str) -> Vec<u8> {
    let path = temporary(name);
    Corpus::new(chunks).save(&path).expect("a corpus can be saved");
    let bytes = fs::read(&path).expect("a file can be read");
    fs::remove_file(path).expect("a file can be removed");
    bytes
}

fn long(file: &[u8], at: usize) -> usize {
    usize::try_from(u64::from_le_bytes(file[at..at + 8].try_into().expect("eight bytes")))
        .unwrap_or(usize::MAX)
}

/// Returns where the sections are.
fn sections(file: &[u8]) -> Vec<Range<usize>> {
    let mut at = HEADER;
    let section = |nth| {
        let start = at;
        at += long(file, 40 + 8 * nth);
        start..at
    };
    (0..SECTIONS).map(section).collect()
}

/// Makes all hashes right, as far as the header says what they are of.
fn rehash(file: &mut [u8]) {
    let hash = |bytes: &[u8]| HighwayHasher::default().hash64(bytes).to_le_bytes();
    let sizes = (0..SECTIONS).map(|nth| long(file, 40 + 8 * nth));
    let end = sizes.fold(HEADER, usize::saturating_add);
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

const QUERY: &str = "brewing green tea \u{8336}\u{8336}, greenleaf31 caf\u{e9}s";

fn packers() -> Vec<Packer> {
    let packer = || Packer::new(60);
    vec![
        packer(),
        packer().estimate(Estimate::CharsDiv4).overflow(Overflow::TruncateMiddle),
        packer().estimate(Estimate::Words).overflow(Overflow::TruncateEnd).notice("Left: {count}."),
        packer().overflow(Overflow::TruncateEnd).template(Template::xml()),
        packer().ranking(Ranking::Keyword).order(Order::Document),
        packer().ranking(Ranking::Score).counter(|text: &str| text.len() / 3),
        packer().ranking(Ranking::Recency).order(Order::Edges),
        packer().units(Units::Sentence).estimate(Estimate::CharsDiv4),
        packer().units(Units::Sentence),
        packer().dedupe(Dedupe::Near),
        agentic_rag(60),
    ]
}

/// Does everything that can be done with a file, and returns what came of each
/// call.
fn calls(path: &Path) -> Vec<Result<String, Error>> {
    let corpus = match Corpus::open(path) {
        Ok(corpus) => corpus,
        Err(error) => return vec![Err(error)],
    };
    let packed = |packer: &Packer, corpus: &Corpus<Saved>| {
        let packing = packer.pack_corpus(QUERY, corpus)?;
        Ok(format!("{} {:?}", packing.text, packing.kept))
    };
    // What reads little comes first.
    let one = Packer::new(999).max_chunks(1).ranking(Ranking::Bm25).estimate(Estimate::CharsDiv4);
    let mut found = vec![one.pack_corpus("whiteleaf31", &corpus).map(|packing| packing.text)];
    found.extend(packers().iter().map(|packer| packed(packer, &corpus)));
    let few = &corpus.chunks()[..corpus.len().min(5)];
    found.push(Packer::new(60).pack(QUERY, few).map(|packing| packing.text));
    found.push(
        corpus.retrieve(QUERY, 3).map(|chunks| format!("{chunks:?}")).map_err(|error| {
            error.downcast_ref::<Error>().expect("an error of this crate").clone()
        }),
    );
    let mut more = corpus.clone();
    more.append(chunks(corpus.len() + 1, 3).into_iter().map(Saved::from));
    found.push(packed(&Packer::new(99), &more));
    let (mut fewer, mut other) = (corpus.clone(), corpus.clone());
    found.push(fewer.remove(["1"]).and_then(|()| packed(&Packer::new(99), &fewer)));
    let new = Saved::from(Chunk::new("Tea.").id("2"));
    found.push(other.replace([new]).and_then(|()| packed(&Packer::new(99), &other)));
    let all: Vec<_> = corpus.chunks().iter().map(Saved::to_chunk).collect();
    found.push(corpus.check().map(|()| format!("{all:?}")));
    let copy = path.with_extension("copy");
    found.push(corpus.save(&copy).map(|()| format!("{:?}", fs::read(&copy).ok())));
    let _ = fs::remove_file(copy);
    found
}

/// Whichever byte of a file is flipped, each call returns what it should or an
/// error that says that the file is damaged; and after such an error, all do.
/// The corpora have texts, titles and records in several blocks.
#[test]
fn damage_is_met_or_does_not_matter() {
    let path = temporary("damage");
    let good = saved(chunks(480, 25), "damage-good");
    assert!(good.len() > 6 * BLOCK);
    fs::write(&path, &good).unwrap();
    let expected = calls(&path);
    assert!(expected.iter().all(Result::is_ok), "{expected:?}");
    let (mut opened, mut met) = (0, [0; 20]);
    for at in (0..good.len()).step_by(1013) {
        let mut file = good.clone();
        file[at] ^= [1, 0x80, 0xFF][at % 3];
        fs::write(&path, &file).unwrap();
        let found = calls(&path);
        let is_open = found.len() > 1;
        opened += usize::from(is_open);
        assert!(!is_open || expected.len() == found.len());
        let mut is_damaged = false;
        for (call, (expected, found)) in expected.iter().zip(&found).enumerate() {
            match found {
                Ok(_) => assert!(!is_damaged && expected == found, "call {call}, byte {at}"),
                Err(error) => {
                    assert_eq!(ErrorKind::Corpus, error.kind());
                    met[call] += usize::from(is_open && !is_damaged);
                    is_damaged = true;
                }
            }
        }
        assert!(is_damaged, "saving reads all, but not byte {at}");
    }
    fs::remove_file(path).unwrap();
    assert!(opened > 100, "damage is met when it is read, not before: {opened}");
    assert!(met[0] > 5 && met[1] > 5 && met[2..].iter().sum::<usize>() > 0, "{met:?}");
}

/// Damage is met, too, if a chunk is removed or replaced before all else.
#[test]
fn damage_is_met_in_what_a_change_leaves() {
    let path = temporary("damage-left");
    let good = saved(chunks(480, 25), "damage-left-good");
    let packed = |change: fn(&mut Corpus<Saved>) -> Result<(), Error>| {
        let mut corpus = Corpus::open(&path)?;
        change(&mut corpus)?;
        let packing = Packer::new(99).pack_corpus(QUERY, &corpus)?;
        corpus.check()?;
        Ok(packing.text)
    };
    let removed = |corpus: &mut Corpus<Saved>| corpus.remove(["1"]);
    let replaced =
        |corpus: &mut Corpus<Saved>| corpus.replace([Saved::from(Chunk::new("Tea.").id("2"))]);
    fs::write(&path, &good).unwrap();
    let expected = [packed(removed), packed(replaced)];
    assert!(expected.iter().all(Result::is_ok), "{expected:?}");
    let mut met = 0;
    for at in (0..good.len()).step_by(4057) {
        let mut file = good.clone();
        file[at] ^= 0x55;
        fs::write(&path, &file).unwrap();
        for (expected, found) in expected.iter().zip([packed(removed), packed(replaced)]) {
            assert!(found.is_err() || *expected == found, "byte {at}");
            met += usize::from(found.is_err_and(|error: Error| error.kind() == ErrorKind::Corpus));
        }
    }
    fs::remove_file(path).unwrap();
    assert!(met > 20, "{met}");
}

/// A forged file, whose hashes match, gives an error or some answer, and never a
/// panic. The larger one has lists of several blocks.
#[test]
fn forged_files_do_not_panic() {
    let path = temporary("forged");
    let (small, large) = (chunks(7, 6), chunks(320, 6));
    let [small, large] = [small, large].map(|chunks| saved(chunks, "forged-good"));
    let mut answered = 0;
    let lists = sections(&large)[ROWS + 2].clone();
    let places = (0..small.len()).map(|at| (&small, at));
    for (good, at) in places.chain(lists.step_by(31).map(|at| (&large, at))) {
        let mut file = good.clone();
        file[at] ^= [1, 0x80, 0xFF][at % 3];
        rehash(&mut file);
        fs::write(&path, &file).unwrap();
        for found in calls(&path) {
            match found {
                Ok(_) => answered += 1,
                // An identifier may be another.
                Err(error) => assert!(
                    [ErrorKind::Corpus, ErrorKind::InvalidArgument].contains(&error.kind()),
                    "{error}"
                ),
            }
        }
    }
    fs::remove_file(path).unwrap();
    assert!(answered > small.len(), "most bytes of a small file may be any: {answered}");
}

/// What a forged file says twice is not read twice: a list that many terms
/// claim, and a row that stands for a stem many times.
#[test]
fn forged_rows_are_bounded() {
    let path = temporary("bounded");
    let texts: Vec<String> = (0..3_000).map(|i| format!("tea leaf{i} brewed")).collect();
    let good = saved(texts.into_iter().map(Chunk::new).collect(), "bounded-good");
    let places = sections(&good);
    let rows = places[ROWS].len() / 20;
    let lists = places[ROWS + 2].len() as u64;

    // The list of every second term is all lists.
    let mut file = good.clone();
    for row in 0..rows {
        let end = places[ROWS].start + 20 * row + 8;
        file[end..end + 8].copy_from_slice(&(if row % 2 == 0 { lists } else { 0 }).to_le_bytes());
    }
    rehash(&mut file);
    fs::write(&path, &file).unwrap();
    let mut corpus = Corpus::open(&path).unwrap();
    corpus.append((0..2_000).map(|_| Chunk::new("rye").into())); // merges them
    assert_eq!("the file contradicts itself", corpus.check().unwrap_err().to_string());
    assert!(corpus.index().postings_bytes() < 3 * good.len());

    // Every row by stem is that of `tea`.
    let mut file = good.clone();
    let tea = (0..rows).find(|row| {
        let end = |row: usize| long(&good, places[ROWS].start + 20 * row);
        let terms = &good[places[ROWS + 1].clone()];
        terms[row.checked_sub(1).map_or(0, end)..end(*row)] == *b"tea"
    });
    let tea = u32::try_from(tea.unwrap()).unwrap().to_le_bytes();
    file[places[STEMS].clone()].as_chunks_mut().0.fill(tea);
    rehash(&mut file);
    fs::write(&path, &file).unwrap();
    let corpus = Corpus::open(&path).unwrap();
    let error = Packer::new(9).pack_corpus("tea", &corpus).unwrap_err();
    assert_eq!("the file contradicts itself", error.to_string());
    fs::remove_file(path).unwrap();
}

/// A file that is cut, or has something behind its end, is refused when it is
/// opened.
#[test]
fn a_cut_file_is_refused() {
    let path = temporary("cut");
    let mut good = saved(chunks(60, 40), "cut-good");
    for size in (0..good.len()).step_by(211).chain([good.len() - 1, HEADER - 1, HEADER]) {
        fs::write(&path, &good[..size]).unwrap();
        assert_eq!(ErrorKind::Corpus, Corpus::open(&path).unwrap_err().kind(), "{size} bytes");
    }
    good.push(0);
    fs::write(&path, &good).unwrap();
    let error = Corpus::open(&path).unwrap_err();
    assert_eq!("the file is cut off, or has something behind its end", error.to_string());
    fs::remove_file(path).unwrap();
}

/// A file that cannot be read or written is named.
#[test]
fn a_missing_folder_is_named() {
    let path = temporary("nowhere").join("corpus");
    let opened = Corpus::open(&path).map(drop).unwrap_err();
    let saved = Corpus::new(["tea"]).save(&path).unwrap_err();
    for error in [opened, saved] {
        assert_eq!(ErrorKind::Io(std::io::ErrorKind::NotFound), error.kind());
        assert!(error.to_string().starts_with(&format!("{}: ", path.display())), "{error}");
    }
}

/// What links lead to is replaced, and made where it is missing; a circle of
/// links, a pipe and a device are errors, and stay.
#[cfg(unix)]
#[test]
fn links_are_followed_and_pipes_are_refused() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};

    let folder = temporary("links");
    fs::create_dir(&folder).unwrap();
    let [file, near, far, circle, pipe] =
        ["file", "near", "far", "circle", "pipe"].map(|name| folder.join(name));
    symlink("file", &near).unwrap();
    symlink(&near, &far).unwrap();
    symlink("circle", &circle).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());

    for mode in [None, Some(0o640)] {
        if let Some(mode) = mode {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        }
        Corpus::new(["tea"]).save(&far).unwrap();
        assert_eq!(1, Corpus::open(&file).unwrap().len());
        assert!(near.is_symlink() && far.is_symlink());
    }
    assert_eq!(0o640, fs::metadata(&file).unwrap().permissions().mode() & 0o777);

    let error = Corpus::new(["tea"]).save(&circle).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Io(_)), "{error}");
    assert!(circle.is_symlink());
    let error = Corpus::new(["tea"]).save(&pipe).unwrap_err();
    assert_eq!(ErrorKind::InvalidArgument, error.kind());
    assert!(error.to_string().ends_with("pipe', a pipe or a device"), "{error}");
    let error = Corpus::open(&pipe).map(drop).unwrap_err();
    assert_eq!("the file is no regular file", error.to_string());
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
    assert_eq!(5, fs::read_dir(&folder).unwrap().count());
    fs::remove_dir_all(folder).unwrap();
}

/// Threads that read the same blocks for the first time at once all get what is
/// there, and where there is damage all learn it.
#[test]
fn threads_read_the_same_blocks() {
    let path = temporary("threads");
    let chunks = chunks(400, 25);
    let good = saved(chunks.clone(), "threads-good");
    let expected = Packer::new(300).pack(QUERY, &chunks).unwrap();
    let last = sections(&good)[TEXTS].end - 1;
    for is_damaged in [false, true] {
        let mut file = good.clone();
        file[last] ^= u8::from(is_damaged);
        fs::write(&path, &file).unwrap();
        for _ in 0..20 {
            let (corpus, stored) = (Corpus::open(&path).unwrap(), Stored::open(&path).unwrap());
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        for (i, chunk) in chunks.iter().enumerate() {
                            let is_there = chunk.text == corpus.chunks()[i].text();
                            assert!(is_there || is_damaged && corpus.check().is_err());
                            let found = stored.text(i).chars();
                            assert!(found > 0 || is_damaged && stored.check().is_err());
                        }
                        let found = Packer::new(300).pack_corpus(QUERY, &corpus);
                        if is_damaged {
                            assert_eq!(ErrorKind::Corpus, found.unwrap_err().kind());
                        } else {
                            assert_eq!(expected, found.unwrap());
                        }
                    });
                }
            });
        }
    }
    fs::remove_file(path).unwrap();
}

/// Chunks of one file in another corpus, or in a slice, keep its damage in mind.
#[test]
fn damage_goes_with_the_chunks() {
    let path = temporary("with");
    let mut file = saved(chunks(400, 25), "with-good");
    let last = sections(&file)[TEXTS].end - 1;
    file[last] ^= 1;
    fs::write(&path, &file).unwrap();
    let damaged = || Corpus::open(&path).unwrap().chunks()[399..].to_vec();
    let mut corpus: Corpus<Saved> = Corpus::default();
    corpus.append(damaged());
    assert_eq!(ErrorKind::Corpus, corpus.check().unwrap_err().kind());
    let error = Packer::new(9).pack(QUERY, &damaged()).unwrap_err();
    assert_eq!(ErrorKind::Corpus, error.kind());
    let whole = Corpus::open(&path).unwrap();
    assert_eq!((Ok(()), "0"), (whole.check(), whole.chunks()[0].tag().1.unwrap()));
    fs::remove_file(path).unwrap();
}

/// Records of other programs are not guessed at: who reads one gets an error.
#[test]
fn bad_records_are_errors() {
    let path = temporary("records");
    let batch = budgeteer::Documents::new(&["tea"]);
    let index = Index::new(&batch);
    for record in [
        "record",
        "[3]",
        "[2,1]",
        "[2,null,3,null,null]",
        "[1,2,3]",
        "[2",
        "\u{e9}",
        "[2,null,\"\",null,[]]",
    ] {
        index.save(&path, &batch, |_| record.as_bytes()).unwrap();
        let corpus = Corpus::open(&path).unwrap();
        assert_eq!("tea", Packer::new(9).pack_corpus("tea", &corpus).unwrap().text);
        let packer = Packer::new(9).ranking(Ranking::Score);
        for error in [
            packer.pack_corpus("tea", &corpus).map(drop).unwrap_err(),
            corpus.check().unwrap_err(),
            Packer::new(9).pack_corpus("tea", &corpus).map(drop).unwrap_err(),
        ] {
            assert_eq!(ErrorKind::Corpus, error.kind());
            assert_eq!("the file has records that no corpus writes", error.to_string());
        }
    }
    fs::remove_file(path).unwrap();
}

/// A text with a lone surrogate, which the file says that it has or, forged,
/// does not say, is no str.
#[test]
fn lone_surrogates_are_errors() {
    let path = temporary("surrogates");
    let chunk = Chunk::new("tea \u{e0ff}");
    let mut file = saved(vec![chunk.clone()], "surrogates-good");
    let place = sections(&file)[TEXTS].start + 4;
    file[place..place + 3].copy_from_slice(b"\xED\xA0\x80");
    rehash(&mut file);
    fs::write(&path, &file).unwrap();
    let corpus = Corpus::open(&path).unwrap();
    assert_eq!("", corpus.chunks()[0].text());
    let message = "the file has lone surrogates, which no str can hold";
    assert_eq!(message, corpus.check().unwrap_err().to_string());
    let stored = Stored::open(&path).unwrap();
    assert_eq!((5, Ok(())), (stored.text(0).chars(), stored.check()));

    file[32] = 1;
    rehash(&mut file);
    fs::write(&path, &file).unwrap();
    assert_eq!(message, Corpus::open(&path).unwrap_err().to_string());

    let ends = sections(&file)[RECORD_ENDS].clone();
    file[ends].fill(0xFF);
    rehash(&mut file);
    fs::write(&path, &file).unwrap();
    let stored = Stored::open(&path).unwrap();
    assert_eq!(b"", stored.record(0));
    assert_eq!("the file contradicts itself", stored.check().unwrap_err().to_string());
    fs::remove_file(path).unwrap();
}
