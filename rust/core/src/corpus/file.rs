//! A corpus in a file.
//!
//! Everything is little-endian and nothing is aligned. The header:
//!
//! | bytes | what                                                       |
//! |-------|------------------------------------------------------------|
//! | 16    | `budgeteer corpus`                                         |
//! | 4     | the version of this layout                                 |
//! | 4     | the number of chunks                                       |
//! | 8     | the size of the file                                       |
//! | 8     | 1 if a text or a title has a lone surrogate, else 0        |
//! | 160   | the sizes of the 20 sections, 8 each                       |
//! | 8     | the hash of the hashes at the end                          |
//! | 8     | the hash of all that is above                              |
//!
//! The sections follow one another: the figures of each chunk, column by
//! column; for each encoding that has counted the length of its name, in a byte,
//! its name and a bound or count of each chunk; the rows, terms and lists of the
//! postings of words, of words of headings and of whole headings; the rows of
//! words and those of words of headings by English stem, and the number of stems
//! in each heading, without stopwords (4 bytes each; empty where no chunk has a
//! heading, or where the writer has no stemming); and for texts, titles and
//! records, where each ends (8 bytes), then the pieces themselves. Records are
//! the caller's own.
//!
//! The hashes of the blocks follow: of each 16384 bytes of the file, from the
//! end of the header to the end of the last section. Hashes are `HighwayHash` of
//! 64 bits under a key of zeros: they tell damage, not forgery.
//!
//! Opening checks the header, the hashes and the figures. All else is checked,
//! block by block, when it is first read. What is damaged reads as empty, the
//! file knows that it is damaged, and whoever made something of it asks
//! [`Index::check`].

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::bounds::{AllBounds, Bounds};
use super::part::{Builder, Part};
use super::postings::{Postings, ROW};
use super::storage::{Bytes, Known, Numbers};
use super::{Columns, Index};
use crate::chunk::Batch;
use crate::error::Error;
use crate::fork::Shared;
use crate::mapped::{BLOCK, Damage, HASH, Mapped, hash};
use crate::text::Text;
use budgeteer_vocab::Encoding;
use highway::{HighwayHash, HighwayHasher};

const MAGIC: &[u8; 16] = b"budgeteer corpus";

/// The version of the layout that is written, and the only one that is read.
const VERSION: u32 = 5;

const SECTIONS: usize = 20;
/// Where the sizes of the sections are in the header.
const SIZES: usize = 40;
const HEADER: usize = SIZES + 8 * SECTIONS + 2 * HASH;

/// The number of columns in [`Columns`].
const COLUMNS: usize = 5;

/// A corpus that is read from a file: the index, the texts, and the caller's
/// records.
///
/// The file is mapped into memory, and read as far as it is needed. It must not
/// be written to or cut meanwhile. [`Index::save`] does neither to an existing
/// file: it puts another in its place.
///
/// Damage is met when what is damaged is first read. Then text, title or record
/// are empty, and [`Stored::check`] returns an error from then on.
#[derive(Debug)]
pub struct Stored {
    index: Arc<Index>,
    file: Arc<Mapped>,
    has_surrogates: bool,
    texts: Pieces,
    titles: Pieces,
    records: Pieces,
    /// Which texts and then which titles are known to be encoded as in
    /// [`Text::Utf8`]. Whoever reads a text relies on it.
    are_texts: Known,
}

/// A piece of the bytes for each chunk.
#[derive(Debug)]
struct Pieces {
    ends: Bytes,
    bytes: Bytes,
}

impl Pieces {
    fn get(&self, index: usize) -> &[u8] {
        let ends = self.ends.read(8 * index.saturating_sub(1)..8 * index + 8);
        let Some((before, end)) = ends.split_last_chunk() else { return &[] };
        let place = |bytes| usize::try_from(u64::from_le_bytes(bytes)).unwrap_or(usize::MAX);
        self.bytes.read(before.try_into().map_or(0, place)..place(*end))
    }
}

impl Stored {
    /// Opens the file at `path`. It reads the figures of each chunk, 20 bytes
    /// and 4 for each encoding that has counted, and no text.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) where it cannot be read, and
    /// [`ErrorKind::Corpus`](crate::ErrorKind::Corpus) where it is not a
    /// corpus, of another version, cut off, or damaged in what was read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        if fs::metadata(path).is_ok_and(|found| is_special(&found)) {
            return Err(Error::damaged("is no regular file")); // opening a pipe would wait
        }
        let file = File::open(path).map_err(|error| Error::io(&error))?;
        Self::read(map(&file).map_err(|error| Error::io(&error))?)
    }

    fn read(bytes: Box<dyn AsRef<[u8]> + Send + Sync>) -> Result<Self, Error> {
        let file = (*bytes).as_ref();
        if !file.starts_with(MAGIC) {
            return Err(Error::foreign());
        }
        if let Some(found) = file.get(16..20)
            && *found != VERSION.to_le_bytes()
        {
            let found = u32::from_le_bytes(found.try_into().expect("four bytes"));
            return Err(Error::version(found, VERSION));
        }
        let Some(header) = file.first_chunk::<HEADER>() else {
            return Err(Error::damaged("is cut off"));
        };
        let header = *header;
        let long =
            |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
        if hash(&header[..HEADER - HASH]) != header[HEADER - HASH..] {
            return Err(Error::damaged("has a damaged header"));
        }
        if long(24) != file.len() as u64 {
            return Err(Error::damaged("is cut off, or has something behind its end"));
        }
        let count = u32::from_le_bytes(header[20..24].try_into().expect("four bytes"));
        let mut ranges = Vec::with_capacity(SECTIONS);
        let mut at = HEADER;
        for section in 0..SECTIONS {
            let end = usize::try_from(long(SIZES + 8 * section)).ok();
            let end = end.and_then(|size| at.checked_add(size));
            let Some(end) = end else { return Err(Error::damaged("has a damaged header")) };
            ranges.push(at..end);
            at = end;
        }
        let size = file.len();
        let contradicts = || Error::damaged("contradicts itself");
        let file = Mapped::new(bytes, HEADER..at).ok_or_else(contradicts)?;
        if at + file.hashes().len() != size {
            return Err(contradicts());
        }
        if hash(file.hashes()) != header[HEADER - 2 * HASH..HEADER - HASH] {
            return Err(Error::damaged("is damaged"));
        }
        let file = Arc::new(file);
        let sections = ranges.into_iter().map(|range| Bytes::of_file(&file, range));
        let stored = Self::of_sections(count, long(32) != 0, sections, &file);
        file.check()?;
        stored.ok_or_else(contradicts)
    }

    /// Returns the corpus in these sections; None where they do not fit
    /// together.
    fn of_sections(
        chunks: u32,
        has_surrogates: bool,
        mut sections: impl Iterator<Item = Bytes>,
        file: &Arc<Mapped>,
    ) -> Option<Self> {
        let count = chunks as usize;
        let (numbers, bounds) = (sections.next()?, sections.next()?);
        let mut postings = || {
            let (rows, terms, lists) = (sections.next()?, sections.next()?, sections.next()?);
            let is_whole = rows.len().is_multiple_of(ROW);
            let (stems, frequencies) = (Shared::new(), Shared::new());
            let postings = Postings { first: 0, chunks, rows, terms, lists, stems, frequencies };
            is_whole.then_some(postings)
        };
        let part = Part::new(postings()?, postings()?, postings()?);
        let mut numbers_of = || sections.next().map(Numbers::File);
        part.remember([numbers_of()?, numbers_of()?, numbers_of()?]);
        let mut pieces = || {
            let (ends, bytes) = (sections.next()?, sections.next()?);
            (ends.len() == count.checked_mul(8)?).then_some(Pieces { ends, bytes })
        };
        let (texts, titles, records) = (pieces()?, pieces()?, pieces()?);
        if numbers.len() != count.checked_mul(4 * COLUMNS)? {
            return None;
        }
        let numbers = numbers.all();
        let read = |nth: usize| {
            let column = numbers.get(4 * nth * count..4 * (nth + 1) * count).unwrap_or_default();
            column.as_chunks::<4>().0.iter().map(|number| u32::from_le_bytes(*number))
        };
        let columns = Columns {
            bounds: read_bounds(bounds.all(), count)?,
            starts: read(0).collect(),
            chars: read(1).collect(),
            words: read(2).collect(),
            lengths: read(3).collect(),
            prints: read(4).collect(),
        };
        let parts = if count == 0 { Vec::new() } else { vec![Arc::new(part)] };
        let file = Arc::clone(file);
        let index = Index { columns, parts, file: Some(Arc::clone(&file)), ..Index::default() };
        let (index, are_texts) = (Arc::new(index.with_totals()), Known::new(2 * count));
        Some(Self { index, file, has_surrogates, texts, titles, records, are_texts })
    }

    /// Returns a text of the chunks or, with `is_title`, a title. It is empty,
    /// and damage is noted, where it is none.
    fn text_of(&self, index: usize, is_title: bool) -> Text<'_> {
        assert!(index < self.len(), "no chunk {index}");
        let pieces = if is_title { &self.titles } else { &self.texts };
        let bytes = pieces.get(index);
        let place = index + if is_title { self.len() } else { 0 };
        if !self.are_texts.is(place, || is_text(bytes)) {
            self.file.note(Damage::Contradiction);
            return Text::EMPTY;
        }
        Text::from_utf8(bytes)
    }

    /// Returns whether the file says that a text or a title has a lone
    /// surrogate.
    pub(super) fn has_surrogates(&self) -> bool {
        self.has_surrogates
    }

    pub(super) fn file(&self) -> &Arc<Mapped> {
        &self.file
    }

    /// Returns an error if damage was met in what was read of the file so far.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corpus`](crate::ErrorKind::Corpus); once returned, it is
    /// returned from then on.
    pub fn check(&self) -> Result<(), Error> {
        self.file.check()
    }

    /// Returns the index.
    #[must_use]
    pub fn index(&self) -> &Arc<Index> {
        &self.index
    }

    /// Returns the record of chunk `index`; empty where the file is damaged.
    ///
    /// # Panics
    ///
    /// When there is no such chunk.
    #[must_use]
    pub fn record(&self, index: usize) -> &[u8] {
        assert!(index < self.len(), "no chunk {index}");
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
        self.text_of(index, false)
    }

    fn title(&self, index: usize) -> Text<'_> {
        self.text_of(index, true)
    }

    fn total_chars(&self) -> usize {
        self.index.total_chars()
    }
}

impl Index {
    /// Returns an error if damage was met in the file that the index was opened
    /// from, if it was. Then whatever was made of the index may be wrong.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corpus`](crate::ErrorKind::Corpus); once returned, it is
    /// returned from then on.
    pub fn check(&self) -> Result<(), Error> {
        self.file.as_ref().map_or(Ok(()), |file| file.check())
    }

    /// Writes a file with the index, the texts of `batch`, and the caller's
    /// record of each chunk. The index must be that of `batch`. The file at
    /// `path`, or what that links to, is replaced once the new one is whole,
    /// which has its permissions.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) where the file cannot be
    /// written, [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument)
    /// where `path` is a pipe or a device, and
    /// [`ErrorKind::Corpus`](crate::ErrorKind::Corpus) where the index was
    /// opened from a file that is damaged; then nothing has changed.
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
        self.save_if(path.as_ref(), batch, record, || self.check())
    }

    /// Does the same, if `check` finds nothing wrong once all is read.
    pub(super) fn save_if<'r>(
        &self,
        path: &Path,
        batch: &impl Batch,
        record: impl Fn(usize) -> &'r [u8],
        check: impl Fn() -> Result<(), Error>,
    ) -> Result<(), Error> {
        assert_eq!(self.len(), batch.len(), "an index is saved with its own batch");
        let io = |error| Error::io(&error);
        let place = followed(path).map_err(io)?;
        let old = fs::metadata(&place).ok();
        if old.as_ref().is_some_and(is_special) {
            let value = format!("'{}', a pipe or a device", path.display());
            return Err(Error::limit("path", "the name of a file", value));
        }
        let (temporary, file) = create_beside(&place).map_err(io)?;
        let written = self.write(file, batch, record).map_err(io);
        let written = written.and_then(|()| check());
        let renamed = written.and_then(|()| {
            // What is replaced keeps its permissions.
            if let Some(old) = old {
                fs::set_permissions(&temporary, old.permissions()).map_err(io)?;
            }
            fs::rename(&temporary, &place).map_err(io)
        });
        renamed.inspect_err(|_| {
            // If it cannot be removed, it is left.
            let _ = fs::remove_file(&temporary);
        })
    }

    fn write<'r>(
        &self,
        file: File,
        batch: &impl Batch,
        record: impl Fn(usize) -> &'r [u8],
    ) -> io::Result<()> {
        let mut out = Sections::new(file)?;
        let count = batch.len();
        let Columns { bounds, starts, chars, words, lengths, .. } = &self.columns;
        let (mut utf8, mut has_surrogates) = (Vec::new(), false);
        // Figures that depend on how a text is stored are made anew: it will be
        // UTF-8.
        let mut prints = Vec::with_capacity(count);
        for index in 0..count {
            for text in [batch.title(index), batch.text(index)] {
                utf8.clear();
                text.write_utf8(&mut utf8);
                has_surrogates |= !utf8.is_ascii() && std::str::from_utf8(&utf8).is_err();
            }
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
                out.section(|write| write(bytes.all()))?;
            }
        }
        let prepared = merged.prepared().map_or([const { None }; 3], |prepared| prepared.map(Some));
        for numbers in prepared {
            out.section(|write| {
                let numbers = numbers.iter().flat_map(Numbers::iter);
                numbers.map(u32::to_le_bytes).try_for_each(|number| write(&number))
            })?;
        }
        out.pieces(count, |index, to| batch.text(index).write_utf8(to))?;
        out.pieces(count, |index, to| batch.title(index).write_utf8(to))?;
        out.pieces(count, |index, to| to.extend_from_slice(record(index)))?;
        out.finish(super::capped(count), has_surrogates)
    }
}

/// Writes sections, and notes the size of each and the hash of each block.
struct Sections {
    file: BufWriter<File>,
    sizes: Vec<u64>,
    /// Of the block that is not yet full, what is written.
    block: HighwayHasher,
    at: u64,
    hashes: Vec<u8>,
}

impl Sections {
    fn new(file: File) -> io::Result<Self> {
        let mut file = BufWriter::with_capacity(8 * BLOCK, file);
        file.write_all(&[0; HEADER])?;
        let (sizes, hashes) = (Vec::with_capacity(SECTIONS), Vec::new());
        Ok(Self { file, sizes, block: HighwayHasher::default(), at: HEADER as u64, hashes })
    }

    fn section(
        &mut self,
        fill: impl FnOnce(&mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>,
    ) -> io::Result<()> {
        let start = self.at;
        fill(&mut |bytes| self.write(bytes))?;
        self.sizes.push(self.at - start);
        Ok(())
    }

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        while !bytes.is_empty() {
            let room = BLOCK as u64 - self.at % BLOCK as u64;
            let size = bytes.len().min(usize::try_from(room).unwrap_or(BLOCK));
            let (here, rest) = bytes.split_at(size);
            self.block.append(here);
            self.at += size as u64;
            if size as u64 == room {
                self.end_block();
            }
            bytes = rest;
        }
        Ok(())
    }

    fn end_block(&mut self) {
        let block = std::mem::take(&mut self.block);
        self.hashes.extend(block.finalize64().to_le_bytes());
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

    /// Writes the hashes and the header.
    fn finish(mut self, count: u32, has_surrogates: bool) -> io::Result<()> {
        // The header is not hashed with the first block, which ends with it
        // where there is nothing else.
        if self.at > HEADER as u64 && !self.at.is_multiple_of(BLOCK as u64) {
            self.end_block();
        }
        self.file.write_all(&self.hashes)?;
        let mut header = Vec::with_capacity(HEADER);
        header.extend(MAGIC);
        header.extend(VERSION.to_le_bytes());
        header.extend(count.to_le_bytes());
        header.extend((self.at + self.hashes.len() as u64).to_le_bytes());
        header.extend(u64::from(has_surrogates).to_le_bytes());
        self.sizes.iter().for_each(|size| header.extend(size.to_le_bytes()));
        header.extend(hash(&self.hashes));
        header.extend(hash(&header));
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&header)?;
        self.file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    }
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
fn map(file: &File) -> io::Result<Box<dyn AsRef<[u8]> + Send + Sync>> {
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if metadata.len() == 0 {
        return Ok(Box::new(Vec::new())); // an empty file cannot be mapped
    }
    // SAFETY: the map is read-only. Writing to the file or cutting it meanwhile
    // breaks the promise that `Stored` asks of its user.
    let map = unsafe { memmap2::Mmap::map(file)? };
    Ok(Box::new(map))
}

/// Returns whether this is a pipe, a device or the like.
fn is_special(found: &Metadata) -> bool {
    !(found.is_file() || found.is_dir())
}

/// Returns where `path` leads by its links, be there a file or none.
fn followed(path: &Path) -> io::Result<PathBuf> {
    match fs::metadata(path) {
        // Such as links in a circle. The others end.
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut place = path.to_path_buf();
    while let Ok(target) = fs::read_link(&place) {
        place = place.with_file_name(target);
    }
    Ok(place)
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
