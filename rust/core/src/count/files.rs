//! Tokenizers that are read from files.

use std::borrow::Cow;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::tokenizer::{Model, Tokenizer};
use crate::error::Error;

pub(super) mod builder;
mod characters;
mod json;
mod oniguruma;
mod places;
mod read_json;
mod sentencepiece;
mod steps;
mod tekken;
mod tiktoken;

/// The most bytes of a file. Real ones have at most some tens of megabytes.
const MOST_BYTES: u64 = 1 << 28;

impl Tokenizer {
    /// The files of a directory that may be a tokenizer, the best first.
    pub(crate) const FILES: [&str; 4] =
        ["tokenizer.json", "tekken.json", "tokenizer.model", "tiktoken.model"];

    /// Reads a tokenizer from a file, or from the directory that holds it:
    /// `tokenizer.json` of byte-level BPE, or of BPE over characters with a
    /// byte fallback; `tekken.json`; the ranks of tiktoken; or a model of
    /// SentencePiece of the kind BPE. The content tells which it is.
    ///
    /// What is read is all that counts: the names of special tokens, and other
    /// added tokens, count as plain text; and nothing is added to a text.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) where it cannot be read, and
    /// [`ErrorKind::Tokenizer`](crate::ErrorKind::Tokenizer) where it is no
    /// tokenizer, is damaged, or has a step that is not known here: the message
    /// names it.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use budgeteer::{TokenCounter, Tokenizer};
    ///
    /// let tokenizer = Tokenizer::open("models/llama-3/tokenizer.json")?;
    /// assert_eq!(tokenizer.count("Green tea."), 3);
    /// # Ok::<(), budgeteer::Error>(())
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let file = file_of(path);
        let content = read(&file, MOST_BYTES).map_err(|error| Error::io_at(&file, &error))?;
        Self::parse(&path.to_string_lossy(), &content)
    }

    /// Reads a tokenizer from the content of a file, as [`Tokenizer::open`]
    /// does. It gets that name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Tokenizer`](crate::ErrorKind::Tokenizer) as there.
    pub fn parse(name: &str, content: &[u8]) -> Result<Self, Error> {
        let content = content.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(content);
        let first = content.iter().copied().find(|byte| !byte.is_ascii_whitespace());
        let read = match first {
            Some(b'{') if tekken::is_one(content) => tekken::read(content),
            Some(b'{') => json::read(content),
            _ if tiktoken::is_one(content) => tiktoken::read(content),
            _ if sentencepiece::is_one(content) => sentencepiece::read(content),
            _ => Err(Error::tokenizer(
                "the file is no tokenizer: neither a tokenizer.json or tekken.json, nor ranks of \
                 tiktoken, nor a model of SentencePiece",
            )),
        }?;
        Ok(Self::new(Model::of_file(name.to_string(), read)))
    }
}

/// Returns the file that is meant by a path: itself, or the one in a directory.
fn file_of(path: &Path) -> Cow<'_, Path> {
    if !path.is_dir() {
        return Cow::Borrowed(path);
    }
    let files = Tokenizer::FILES.map(|name| path.join(name));
    let found = files.iter().find(|file| file.is_file()).cloned();
    let ranks = || -> Option<PathBuf> {
        let files = path.read_dir().ok()?.filter_map(|entry| Some(entry.ok()?.path()));
        files.filter(|file| file.extension().is_some_and(|end| end == "tiktoken")).min()
    };
    let [first, ..] = files;
    Cow::Owned(found.or_else(ranks).unwrap_or(first))
}

/// Returns the content of a file of at most `most` bytes.
fn read(path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let size = file.metadata()?.len().min(most);
    let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
    file.take(most + 1).read_to_end(&mut content)?;
    if content.len() as u64 > most {
        return Err(std::io::ErrorKind::FileTooLarge.into());
    }
    Ok(content)
}

/// Returns the error for a file that contradicts itself.
#[cold]
fn damaged(what: &str) -> Error {
    Error::tokenizer(format!("the file is damaged: {what}"))
}

/// Returns the error for a step that is not known here.
#[cold]
fn unknown(step: &str) -> Error {
    Error::tokenizer(format!("the tokenizer has a step that cannot be counted exactly: {step}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_too_large_is_refused() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/count/files.rs");
        let size = path.metadata().expect("it is there").len();
        for most in [size, size + 1, MOST_BYTES] {
            let content = read(&path, most).expect("it is small enough");
            assert_eq!(size, content.len() as u64);
        }
        let error = read(&path, size - 1).expect_err("it is too large");
        assert_eq!(std::io::ErrorKind::FileTooLarge, error.kind());
    }

    #[test]
    fn the_content_tells_which_file_it_is() {
        let error =
            |content: &[u8]| Tokenizer::parse("", content).expect_err("it is none").to_string();
        assert!(error(b"dGVh 0\nIA== 1\n").contains("which has 2 ranks"));
        assert!(error(b"\xEF\xBB\xBF {").contains("it is no tokenizer.json"));
        assert!(error(b"tea 0").contains("neither a tokenizer.json"));
    }
}
