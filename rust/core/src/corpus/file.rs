//! A corpus in a file.
//!
//! Everything is little-endian and nothing is aligned. The header:
//!
//! | bytes | what                                                        |
//! |-------|-------------------------------------------------------------|
//! | 16    | `budgeteer corpus`                                          |
//! | 4     | the version of this layout                                  |
//! | 4     | the number of chunks                                        |
//! | 8     | the size of the file                                        |
//! | 408   | for each of the 17 sections its size and its hash: 8 and 16 |
//! | 16    | the hash of all that is above                               |
//!
//! The sections follow one another: the figures of each chunk, column by
//! column; for each encoding that has counted the length of its name, in a byte,
//! its name and a bound or count of each chunk; the rows, terms and lists of the postings of words, of words of
//! headings and of whole headings; and for texts, titles and records, where each ends (8 bytes), then the pieces themselves. Records are
//! the caller's own. Hashes are `HighwayHash` of 128 bits under a key of zeros:
//! they tell damage, not forgery.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use budgeteer_vocab::Encoding;
use highway::{HighwayHash, HighwayHasher};

use super::bounds::{AllBounds, Bounds};
use super::part::{Builder, Part};
use super::postings::{Postings, ROW};
use super::storage::Bytes;
use super::{Columns, Index};
use crate::chunk::Batch;
use crate::error::Error;
use crate::fork::Shared;
use crate::text::Text;

const MAGIC: &[u8; 16] = b"budgeteer corpus";

/// The version of the layout that is written, and the only one that is read.
const VERSION: u32 = 4;

const SECTIONS: usize = 17;
const ENTRY: usize = 24;
const HASH: usize = 16;
const HEADER: usize = 32 + SECTIONS * ENTRY + HASH;

/// The number of columns in [`Columns`].
const COLUMNS: usize = 5;

/// A corpus that was read from a file: the index, the texts, and the caller's
/// records.
///
/// The file is mapped into memory. It must not be written to or cut meanwhile.
/// [`Index::save`] does neither to an existing file: it puts another in its
/// place.
#[derive(Debug)]
pub struct Stored {
    index: Arc<Index>,
    texts: Pieces,
    titles: Pieces,
    records: Pieces,
}

/// A piece of the bytes for each chunk.
#[derive(Debug)]
struct Pieces {
    ends: Bytes,
    bytes: Bytes,
}

impl Pieces {
    fn end(&self, index: usize) -> usize {
        let end = self.ends[8 * index..][..8].try_into().expect("eight bytes");
        usize::try_from(u64::from_le_bytes(end)).unwrap_or(usize::MAX)
    }

    fn get(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.end(before));
        &self.bytes[start..self.end(index)]
    }

    /// Returns whether each piece is within the bytes, and the pieces cover
    /// them.
    fn is_sound(&self, count: usize) -> bool {
        if self.ends.len() != 8 * count {
            return false;
        }
        let mut before = 0;
        for index in 0..count {
            let end = self.end(index);
            if end < before {
                return false;
            }
            before = end;
        }
        before == self.bytes.len()
    }
}

impl Stored {
    /// Opens the file at `path`, after reading all of it to check the hashes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) where it cannot be read, and
    /// [`ErrorKind::Corpus`](crate::ErrorKind::Corpus) where it is not a
    /// corpus, of another version, or damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let file = File::open(path).map_err(|error| Error::io(&error))?;
        Self::read(&map(&file).map_err(|error| Error::io(&error))?)
    }

    fn read(owner: &Arc<dyn AsRef<[u8]> + Send + Sync>) -> Result<Self, Error> {
        let file = (**owner).as_ref();
        if !file.starts_with(MAGIC) {
            return Err(Error::foreign());
        }
        if let Some(found) = file.get(16..20)
            && *found != VERSION.to_le_bytes()
        {
            let found = u32::from_le_bytes(found.try_into().expect("four bytes"));
            return Err(Error::version(found, VERSION));
        }
        let Some(header) = file.get(..HEADER) else { return Err(Error::damaged("is cut off")) };
        let short =
            |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
        let long =
            |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
        if hash(&header[..HEADER - HASH]) != header[HEADER - HASH..] {
            return Err(Error::damaged("has a damaged header"));
        }
        if long(24) != file.len() as u64 {
            return Err(Error::damaged("is cut off, or has something behind its end"));
        }
        let count = short(20) as usize;
        let mut sections = Vec::with_capacity(SECTIONS);
        let mut at = HEADER;
        for section in 0..SECTIONS {
            let entry = 32 + section * ENTRY;
            let size = usize::try_from(long(entry)).ok();
            let end = size.and_then(|size| at.checked_add(size));
            let bytes = end.and_then(|end| Bytes::part(owner, at..end));
            let Some(bytes) = bytes else { return Err(Error::damaged("has a damaged header")) };
            if hash(&bytes) != header[entry + 8..entry + ENTRY] {
                return Err(Error::damaged("is damaged"));
            }
            at += bytes.len();
            sections.push(bytes);
        }
        let stored = Self::of_sections(count, sections).filter(|_| at == file.len());
        stored.ok_or_else(|| Error::damaged("contradicts itself"))
    }

    /// Returns the corpus in these sections; None where they do not fit
    /// together. Later reads of it must not panic.
    fn of_sections(count: usize, sections: Vec<Bytes>) -> Option<Self> {
        let mut sections = sections.into_iter();
        let (numbers, bounds) = (sections.next()?, sections.next()?);
        let chunks = u32::try_from(count).ok()?;
        let mut postings = || {
            let (rows, terms, lists) = (sections.next()?, sections.next()?, sections.next()?);
            let is_whole = rows.len().is_multiple_of(ROW);
            let postings = Postings {
                first: 0,
                chunks,
                rows,
                terms,
                lists,
                stems: Shared::new(),
                frequencies: Shared::new(),
            };
            Some(postings).filter(|postings| is_whole && postings.is_sound())
        };
        let part = Part::new(postings()?, postings()?, postings()?);
        let mut pieces = || Some(Pieces { ends: sections.next()?, bytes: sections.next()? });
        let (texts, titles, records) = (pieces()?, pieces()?, pieces()?);
        let is_sound = numbers.len() == 4 * COLUMNS * count
            && texts.is_sound(count)
            && titles.is_sound(count)
            && records.is_sound(count);
        let are_texts = |pieces: &Pieces| (0..count).all(|index| is_text(pieces.get(index)));
        if !is_sound || !are_texts(&texts) || !are_texts(&titles) {
            return None;
        }
        let read = |nth: usize| {
            let column = &numbers[4 * nth * count..][..4 * count];
            column.as_chunks::<4>().0.iter().map(|number| u32::from_le_bytes(*number))
        };
        let columns = Columns {
            bounds: read_bounds(&bounds, count)?,
            starts: read(0).collect(),
            chars: read(1).collect(),
            words: read(2).collect(),
            lengths: read(3).collect(),
            prints: read(4).collect(),
        };
        let parts = if count == 0 { Vec::new() } else { vec![Arc::new(part)] };
        let index = Index { columns, parts, ..Index::default() }.with_totals();
        Some(Self { index: Arc::new(index), texts, titles, records })
    }

    /// Returns the index.
    #[must_use]
    pub fn index(&self) -> &Arc<Index> {
        &self.index
    }

    /// Returns the record of chunk `index`.
    #[must_use]
    pub fn record(&self, index: usize) -> &[u8] {
        self.records.get(index)
    }
}

/// Returns the bounds that a file keeps; None if it is damaged. Those of an
/// encoding that this binary does not hold are left out.
fn read_bounds(mut bytes: &[u8], count: usize) -> Option<AllBounds> {
    let all = AllBounds::default();
    while let Some((&length, rest)) = bytes.split_first() {
        let (name, rest) = rest.split_at_checked(length.into())?;
        let (numbers, rest) = rest.split_at_checked(4 * count)?;
        bytes = rest;
        let encoding = Encoding::ALL.iter().find(|known| known.name().as_bytes() == name);
        if let Some(&encoding) = encoding {
            let numbers = numbers.as_chunks::<4>().0.iter();
            let numbers = numbers.map(|number| u32::from_le_bytes(*number));
            all.put(&encoding.into(), Arc::new(Bounds::of_stored(numbers)));
        }
    }
    Some(all)
}

impl Batch for Stored {
    fn len(&self) -> usize {
        self.index.len()
    }

    fn text(&self, index: usize) -> Text<'_> {
        Text::from_utf8(self.texts.get(index))
    }

    fn title(&self, index: usize) -> Text<'_> {
        Text::from_utf8(self.titles.get(index))
    }

    fn total_chars(&self) -> usize {
        self.index.total_chars()
    }
}

impl Index {
    /// Writes a file with the index, the texts of `batch`, and the caller's
    /// record of each chunk. The index must be that of `batch`. The file at
    /// `path` is replaced once the new one is whole.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) where the file cannot be
    /// written; then nothing has changed.
    ///
    /// # Panics
    ///
    /// When the batch and the index have different numbers of chunks.
    pub fn save<'r>(
        &self,
        path: impl AsRef<Path>,
        batch: &impl Batch,
        record: impl Fn(usize) -> &'r [u8],
    ) -> Result<(), Error> {
        assert_eq!(self.len(), batch.len(), "an index is saved with its own batch");
        let path = path.as_ref();
        let (temporary, file) = create_beside(path).map_err(|error| Error::io(&error))?;
        let written = self.write(file, batch, record).and_then(|()| fs::rename(&temporary, path));
        written.map_err(|error| {
            // If it cannot be removed, it is left.
            let _ = fs::remove_file(&temporary);
            Error::io(&error)
        })
    }

    fn write<'r>(
        &self,
        file: File,
        batch: &impl Batch,
        record: impl Fn(usize) -> &'r [u8],
    ) -> io::Result<()> {
        let mut out =
            Sections { file: BufWriter::new(file), entries: Vec::new(), at: HEADER as u64 };
        out.file.write_all(&[0; HEADER])?;
        let count = batch.len();
        let Columns { bounds, starts, chars, words, lengths, .. } = &self.columns;
        let mut utf8 = Vec::new();
        // Figures that depend on how a text is stored are made anew: it will be
        // UTF-8.
        let mut prints = Vec::with_capacity(count);
        for index in 0..count {
            utf8.clear();
            batch.text(index).write_utf8(&mut utf8);
            prints.push(Text::from_utf8(&utf8).fingerprint());
        }
        out.section(|write| {
            let columns = [starts, chars, words, lengths, &prints];
            columns.into_iter().flatten().try_for_each(|number| write(&number.to_le_bytes()))
        })?;
        out.section(|write| {
            for (name, bounds) in bounds.stored(count) {
                write(&[u8::try_from(name.len()).expect("a name is short")])?;
                write(name.as_bytes())?;
                let mut numbers = bounds.stored();
                numbers.try_for_each(|number| write(&number.to_le_bytes()))?;
            }
            Ok(())
        })?;
        let parts = self.parts.iter().cloned();
        let merged =
            parts.reduce(|before, behind| Arc::new(Part::merged(&before, &behind, lengths)));
        let merged = merged.unwrap_or_else(|| Arc::new(Builder::new(0).finish(&[])));
        for postings in merged.all() {
            for bytes in [&postings.rows, &postings.terms, &postings.lists] {
                out.section(|write| write(bytes))?;
            }
        }
        out.pieces(count, |index, to| batch.text(index).write_utf8(to))?;
        out.pieces(count, |index, to| batch.title(index).write_utf8(to))?;
        out.pieces(count, |index, to| to.extend_from_slice(record(index)))?;

        let mut header = Vec::with_capacity(HEADER);
        header.extend(MAGIC);
        header.extend(VERSION.to_le_bytes());
        header.extend(super::capped(count).to_le_bytes());
        header.extend(out.at.to_le_bytes());
        for (size, hash) in &out.entries {
            header.extend(size.to_le_bytes());
            header.extend(hash);
        }
        header.extend(hash(&header));
        out.file.seek(SeekFrom::Start(0))?;
        out.file.write_all(&header)?;
        out.file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    }
}

/// Writes sections, and notes the size and the hash of each.
struct Sections {
    file: BufWriter<File>,
    entries: Vec<(u64, [u8; HASH])>,
    at: u64,
}

impl Sections {
    fn section(
        &mut self,
        fill: impl FnOnce(&mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut hasher = HighwayHasher::default();
        let mut size = 0;
        fill(&mut |bytes| {
            hasher.append(bytes);
            size += bytes.len() as u64;
            self.file.write_all(bytes)
        })?;
        self.entries.push((size, digest(hasher)));
        self.at += size;
        Ok(())
    }

    /// Writes where each piece ends, and the pieces.
    fn pieces(&mut self, count: usize, append: impl Fn(usize, &mut Vec<u8>)) -> io::Result<()> {
        let mut piece = Vec::new();
        let mut end = 0;
        self.section(|write| {
            (0..count).try_for_each(|index| {
                piece.clear();
                append(index, &mut piece);
                end += piece.len() as u64;
                write(&end.to_le_bytes())
            })
        })?;
        self.section(|write| {
            (0..count).try_for_each(|index| {
                piece.clear();
                append(index, &mut piece);
                write(&piece)
            })
        })
    }
}

fn hash(bytes: &[u8]) -> [u8; HASH] {
    let mut hasher = HighwayHasher::default();
    hasher.append(bytes);
    digest(hasher)
}

fn digest(hasher: HighwayHasher) -> [u8; HASH] {
    let [low, high] = hasher.finalize128();
    let mut bytes = [0; HASH];
    bytes[..8].copy_from_slice(&low.to_le_bytes());
    bytes[8..].copy_from_slice(&high.to_le_bytes());
    bytes
}

/// Returns whether `bytes` are encoded as in [`Text::Utf8`].
pub(super) fn is_text(mut bytes: &[u8]) -> bool {
    loop {
        match std::str::from_utf8(bytes) {
            Ok(_) => return true,
            Err(error) => {
                let rest = &bytes[error.valid_up_to()..];
                // A surrogate, which `from_utf8` refuses.
                let [0xED, 0xA0..=0xBF, 0x80..=0xBF, rest @ ..] = rest else { return false };
                bytes = rest;
            }
        }
    }
}

/// Maps the whole file.
#[allow(unsafe_code)] // what another process does to the file is beyond us
fn map(file: &File) -> io::Result<Arc<dyn AsRef<[u8]> + Send + Sync>> {
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if metadata.len() == 0 {
        return Ok(Arc::new(Vec::new())); // an empty file cannot be mapped
    }
    // SAFETY: the map is read-only. Writing to the file or cutting it meanwhile
    // breaks the promise that `Stored` asks of its user.
    let map = unsafe { memmap2::Mmap::map(file)? };
    Ok(Arc::new(map))
}

/// Creates a file with a new name in the folder of `path`.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let Some(name) = path.file_name() else {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    };
    loop {
        let mut temporary = std::ffi::OsString::from(".");
        temporary.push(name);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        temporary.push(format!(".{}.{count}.tmp", std::process::id()));
        let temporary = path.with_file_name(temporary);
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Ok(file) => return Ok((temporary, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A forged file, with hashes that match, gives an error or an index that
    /// returns something; never a panic.
    #[test]
    fn forged_sections_do_not_panic() {
        let texts = ["green tea", "", "black tea, tea", "caf\u{e9} \u{8336}\u{8336}"];
        let documents = crate::chunk::Documents::new(&texts);
        let path = std::env::temp_dir().join(format!("budgeteer-forged-{}", std::process::id()));
        Index::new(&documents).save(&path, &documents, |_| b"{}").unwrap();
        let good = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let mut answered = 0;
        for at in HEADER - HASH - SECTIONS * ENTRY..good.len() {
            for flip in [1, 0x80, 0xFF] {
                let mut file = good.clone();
                file[at] ^= flip;
                rehash(&mut file);
                let file: Arc<dyn AsRef<[u8]> + Send + Sync> = Arc::new(file);
                let Ok(stored) = Stored::read(&file) else { continue };
                answered += 1;
                for query in ["tea green", "\u{8336}\u{8336} caf\u{e9} black"] {
                    let lexical = crate::Lexical::default();
                    let query = stored.index().query(query.into(), &lexical).expect("it has lists");
                    let (found, _) = query.found(&stored);
                    assert_eq!(stored.len(), found.scored(stored.index()).scores.len());
                }
                for index in 0..stored.len() {
                    let _ = (stored.text(index).chars(), stored.title(index).chars());
                    let _ = stored.record(index);
                }
                let more = stored
                    .index()
                    .extended(&crate::chunk::Documents::new(&[texts, texts].concat()));
                assert_eq!(8, more.len());
            }
        }
        assert!(answered > 0);
    }

    fn rehash(file: &mut [u8]) {
        let mut at = HEADER;
        for section in 0..SECTIONS {
            let entry = 32 + section * ENTRY;
            let size = u64::from_le_bytes(file[entry..entry + 8].try_into().unwrap());
            let end = usize::try_from(size).ok().and_then(|size| at.checked_add(size));
            let Some(bytes) = end.and_then(|end| file.get(at..end)) else { break };
            let hashed = hash(bytes);
            file[entry + 8..entry + ENTRY].copy_from_slice(&hashed);
            at = end.unwrap_or(at);
        }
        let hashed = hash(&file[..HEADER - HASH]);
        file[HEADER - HASH..HEADER].copy_from_slice(&hashed);
    }
}
