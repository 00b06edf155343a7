//! The chunks of a corpus that was opened, for Rust programs.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::documents::Corpus;
use super::file::Stored;
use super::record;
use crate::chunk::{Batch, Chunk, Document};
use crate::error::Error;
use crate::mapped::{Damage, Mapped};
use crate::text::Text;

impl Corpus<Saved> {
    /// Opens the file at `path` that a corpus was saved to, in Rust or in
    /// Python. It reads the figures of each chunk, 20 bytes and 4 for each
    /// encoding that has counted. All else is read, and its hashes are checked,
    /// when it is needed.
    ///
    /// Damage that is met later is an error of the call that meets it and of all
    /// calls that follow. Where a call cannot fail, as [`Document::text`], what
    /// is damaged is empty, and [`Corpus::check`] returns the error.
    ///
    /// The hashes tell damage, not forgery: whoever can write the file can make
    /// them match. Open files only from people whom you trust.
    ///
    /// The file is mapped into memory, and its texts stay there. It must not be
    /// written to or cut meanwhile; [`Corpus::save`] may replace it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) where the file cannot be read,
    /// and [`ErrorKind::Corpus`](crate::ErrorKind::Corpus) where it is not a
    /// corpus, of another version, cut off, or damaged in what was read; or
    /// where a text has a lone surrogate, which Python allows and a `str` here
    /// cannot hold.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let stored = Arc::new(Stored::open(path).map_err(|error| error.at(path))?);
        if stored.has_surrogates() {
            stored.file().note(Damage::Surrogate);
            stored.check()?;
        }
        let chunk =
            |(_, place)| Saved { file: Some((Arc::clone(&stored), place)), rest: OnceLock::new() };
        let chunks = (0..stored.len()).zip(0..).map(chunk).collect();
        Ok(Self::of(Arc::clone(stored.index()), chunks))
    }
}

/// A chunk of a corpus that was opened, or that was added to one.
///
/// Its text is in the file. Its other fields are read from there when they are
/// needed. What is damaged there is empty: see [`Corpus::check`]. A [`Chunk`]
/// becomes one with [`From`].
#[derive(Clone)]
pub struct Saved {
    file: Option<(Arc<Stored>, u32)>,
    /// All fields but text and title, which are in a file.
    rest: OnceLock<Box<Chunk>>,
}

impl fmt::Debug for Saved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Saved").field("id", &self.tag().1).finish_non_exhaustive()
    }
}

impl From<Chunk> for Saved {
    fn from(chunk: Chunk) -> Self {
        Self { file: None, rest: OnceLock::from(Box::new(chunk)) }
    }
}

impl Saved {
    /// Returns a chunk with the same fields.
    #[must_use]
    pub fn to_chunk(&self) -> Chunk {
        let (text, title) = (self.text().to_owned(), self.title().to_owned());
        Chunk { text, title, ..self.rest().clone() }
    }

    fn rest(&self) -> &Chunk {
        self.rest.get_or_init(|| Box::new(self.read().unwrap_or_default()))
    }

    /// Returns the fields in the file, other than text and title, if there is a
    /// file.
    fn read(&self) -> Option<Chunk> {
        let (stored, place) = self.file.as_ref()?;
        let found = record::read(stored.record(*place as usize));
        if found.is_none() {
            stored.file().note(Damage::Record);
        }
        found
    }

    /// Returns a text of the file as a str.
    fn str_of<'a>(stored: &Stored, text: Text<'a>) -> &'a str {
        let (Text::Ascii(bytes) | Text::Utf8(bytes)) = text else { return "" };
        std::str::from_utf8(bytes).unwrap_or_else(|_| {
            // The file says that none has a surrogate.
            stored.file().note(Damage::Surrogate);
            ""
        })
    }

    fn number<T>(&self, number: impl Fn(&Chunk) -> T) -> T {
        // A ranking asks every chunk, so the result is not kept.
        match self.rest.get() {
            Some(chunk) => number(chunk),
            None => number(&self.read().unwrap_or_default()),
        }
    }
}

impl Document for Saved {
    fn text(&self) -> &str {
        match &self.file {
            Some((stored, place)) => Self::str_of(stored, stored.text(*place as usize)),
            None => &self.rest().text,
        }
    }

    fn title(&self) -> &str {
        match &self.file {
            Some((stored, place)) => Self::str_of(stored, stored.title(*place as usize)),
            None => &self.rest().title,
        }
    }

    fn score(&self) -> Option<f64> {
        self.number(|chunk| chunk.score)
    }

    fn mtime(&self) -> f64 {
        self.number(|chunk| chunk.mtime)
    }

    fn tag(&self) -> (&str, Option<&str>) {
        self.rest().tag()
    }

    fn source(&self) -> &str {
        self.rest().source()
    }

    fn position(&self) -> Option<f64> {
        self.number(|chunk| chunk.position)
    }

    fn metadata(&self) -> &str {
        self.rest().metadata()
    }

    fn standing(&self) -> (Option<&str>, f64) {
        self.rest().standing()
    }

    fn record(&self) -> Option<&[u8]> {
        self.file.as_ref().map(|(stored, place)| stored.record(*place as usize))
    }

    fn file(&self) -> Option<&Arc<Mapped>> {
        self.file.as_ref().map(|(stored, _)| stored.file())
    }
}
