//! Retrievers over files.

use std::fs;
use std::io::Error as IoError;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::UNIX_EPOCH;

use super::retrievers::{BoxError, Retriever, best};
use crate::chunk::Chunk;
#[cfg(feature = "json")]
use crate::corpus::record;
use crate::error::Error;
#[cfg(feature = "json")]
use crate::fields::Fields;
#[cfg(feature = "json")]
use serde_json::Value;

/// Chunks that were read from files, and how to read them again.
struct Files {
    path: PathBuf,
    name: String,
    read: fn(&Path, &str) -> Result<Vec<Chunk>, Error>,
    chunks: RwLock<Arc<[Chunk]>>,
}

impl Files {
    fn new(
        path: &Path,
        name: String,
        read: fn(&Path, &str) -> Result<Vec<Chunk>, Error>,
    ) -> Result<Self, Error> {
        let chunks = RwLock::new(read(path, &name)?.into());
        Ok(Self { path: path.into(), name, read, chunks })
    }

    fn refresh(&self) -> Result<(), Error> {
        let chunks = (self.read)(&self.path, &self.name)?.into();
        *self.chunks.write().unwrap_or_else(PoisonError::into_inner) = chunks;
        Ok(())
    }

    fn retrieve(&self, query: &str, limit: usize) -> Vec<Chunk> {
        let chunks = Arc::clone(&self.chunks.read().unwrap_or_else(PoisonError::into_inner));
        best(query, &chunks, limit)
    }
}

macro_rules! file_retriever {
    ($name:ident, $read:path) => {
        impl $name {
            /// Reads the files at `path`. The path is also the name of the
            /// retriever and the source of its chunks.
            ///
            /// # Errors
            ///
            /// [`ErrorKind::Io`](crate::ErrorKind::Io) where it cannot be read,
            /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument)
            /// where a line of it is wrong. The message names the path.
            pub fn new(path: impl AsRef<Path>) -> Result<Self, Error> {
                let path = path.as_ref();
                Self::with_name(path, path.to_string_lossy())
            }

            /// Like `new`, with another name.
            ///
            /// # Errors
            ///
            /// As for `new`.
            pub fn with_name(
                path: impl AsRef<Path>,
                name: impl Into<String>,
            ) -> Result<Self, Error> {
                Files::new(path.as_ref(), name.into(), $read).map(Self)
            }

            /// Reads the files again, for later retrievals.
            ///
            /// # Errors
            ///
            /// As for `new`; the chunks read before stay.
            pub fn refresh(&self) -> Result<(), Error> {
                self.0.refresh()
            }
        }

        impl Retriever for $name {
            fn retrieve(&self, query: &str, limit: usize) -> Result<Vec<Chunk>, BoxError> {
                Ok(self.0.retrieve(query, limit))
            }

            fn name(&self) -> &str {
                &self.0.name
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name))
                    .field("name", &self.0.name)
                    .finish_non_exhaustive()
            }
        }
    };
}

/// Finds sections of the Markdown files of a folder, by their share of the
/// query's keywords.
///
/// The files whose names end with `.md`, in the folder and all folders below,
/// are read once, and split at their H2 headings. Links to files are followed,
/// links to folders are not. The share is the score of the chunk.
///
/// # Examples
///
/// ```
/// use budgeteer::service::{FolderRetriever, Retriever};
///
/// let folder = std::env::temp_dir().join(format!("budgeteer-{}", std::process::id()));
/// std::fs::create_dir_all(&folder)?;
/// std::fs::write(folder.join("tea.md"), "# Tea\n## Green tea\nIt is mild.")?;
/// let retriever = FolderRetriever::new(&folder)?;
/// std::fs::remove_dir_all(&folder)?;
///
/// let found = retriever.retrieve("green tea", 10)?;
/// assert_eq!((found[0].title.as_str(), found[0].id.as_deref()), ("Green tea", Some("tea.md#1")));
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
pub struct FolderRetriever(Files);

file_retriever!(FolderRetriever, read_folder);

fn read_folder(folder: &Path, name: &str) -> Result<Vec<Chunk>, Error> {
    let mut files = Vec::new();
    let mut folders = vec![(folder.to_owned(), String::new())];
    while let Some((path, relative)) = folders.pop() {
        let failed = |error: IoError| Error::io_at(&path, &error);
        for entry in fs::read_dir(&path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let relative = format!("{relative}{}", entry.file_name().to_string_lossy());
            if entry.file_type().map_err(failed)?.is_dir() {
                folders.push((entry.path(), relative + "/"));
            } else if relative.as_bytes().ends_with(b".md") && entry.path().is_file() {
                files.push((relative, entry.path()));
            }
        }
    }
    files.sort_unstable();
    let mut chunks = Vec::new();
    for (relative, path) in files {
        let failed = |error: IoError| Error::io_at(&path, &error);
        let bytes = fs::read(&path).map_err(failed)?;
        let modified = fs::metadata(&path).and_then(|data| data.modified()).map_err(failed)?;
        let mtime = match modified.duration_since(UNIX_EPOCH) {
            Ok(time) => time.as_secs_f64(),
            Err(before) => -before.duration().as_secs_f64(),
        };
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let sections = split_markdown(&String::from_utf8_lossy(without_mark(&bytes)), &stem);
        chunks.extend(sections.into_iter().enumerate().map(|(n, (title, text))| {
            let id = format!("{relative}#{n}");
            Chunk { mtime, ..Chunk::new(text).title(title).id(id).source(name) }
        }));
    }
    Ok(chunks)
}

/// Returns bytes without a leading byte order mark.
fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes)
}

/// Returns title and text of each section of a Markdown file. The text includes
/// the heading line.
///
/// A section starts at a line that starts with `## ` outside fenced code. The
/// part before the first such line is a section too, with the title of the
/// first H1 or `stem`. Sections of whitespace alone are left out.
fn split_markdown(text: &str, stem: &str) -> Vec<(String, String)> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut sections = vec![(String::new(), String::new())];
    let mut fence: Option<&str> = None;
    for line in text.split('\n') {
        let mark = fence_of(line);
        if let Some(open) = fence {
            if mark.is_some_and(|(mark, rest)| mark.starts_with(open) && strip(rest).is_empty()) {
                fence = None;
            }
        } else if let Some((mark, _)) =
            mark.filter(|(mark, rest)| !mark.starts_with('`') || !rest.contains('`'))
        {
            fence = Some(mark);
        } else if let Some(title) = line.strip_prefix("## ") {
            sections.push((heading(title).to_owned(), String::new()));
        } else if let Some(title) = line.strip_prefix("# ")
            && let [(first, _)] = &mut *sections
            && first.is_empty()
        {
            heading(title).clone_into(first);
        }
        let (_, section) = sections.last_mut().expect("there is a first one");
        section.push_str(line);
        section.push('\n');
    }
    if sections[0].0.is_empty() {
        stem.clone_into(&mut sections[0].0);
    }
    let sections = sections.into_iter().map(|(title, text)| (title, strip(&text).to_owned()));
    sections.filter(|(_, text)| !text.is_empty()).collect()
}

/// Returns the fence at the start of a line of Markdown, and the rest of the
/// line.
fn fence_of(line: &str) -> Option<(&str, &str)> {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let rest = line.get(indent..).filter(|_| indent <= 3)?;
    let mark = rest.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = rest.len() - rest.trim_start_matches(mark).len();
    (length >= 3).then(|| rest.split_at(length))
}

/// Returns the text of a heading without any closing hashes.
fn heading(text: &str) -> &str {
    let text = strip(text);
    let bare = text.trim_end_matches('#');
    match bare.chars().next_back() {
        Some(last) if !is_space(last) => text,
        _ => bare.trim_end_matches(is_space),
    }
}

fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// Returns whether Python's `str.strip` removes it.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// Finds chunks of a file with a JSON object per line, by their share of the
/// query's keywords. Only with the feature `json`.
///
/// An object has `text`, `content` or `page_content`, and may have `id`,
/// `source`, `title`, `score` and `metadata`. A missing title or id is the one
/// in the metadata. The other fields of [`Chunk`] are read from there too, or else
/// from the object itself: `kind`, `authority`, `priority`, `mtime`, and `position`,
/// `index` or `offset`. Other keys and blank lines are skipped. The file is read
/// once. The share of keywords replaces the score in the file.
///
/// # Examples
///
/// ```
/// use budgeteer::service::{JsonlRetriever, Retriever};
///
/// let path = std::env::temp_dir().join(format!("budgeteer-{}.jsonl", std::process::id()));
/// std::fs::write(&path, r#"{"text": "Green tea.", "id": 7}"#)?;
/// let retriever = JsonlRetriever::with_name(&path, "tea")?;
/// std::fs::remove_file(&path)?;
///
/// let found = retriever.retrieve("tea", 1)?;
/// assert_eq!((found[0].source.as_str(), found[0].id.as_deref()), ("tea", Some("7")));
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[cfg(feature = "json")]
pub struct JsonlRetriever(Files);

#[cfg(feature = "json")]
file_retriever!(JsonlRetriever, read_jsonl);

/// What may stand beside the text as well as in the metadata.
#[cfg(feature = "json")]
const OF_METADATA: [&str; 7] =
    ["kind", "position", "index", "offset", "mtime", "authority", "priority"];

#[cfg(feature = "json")]
fn read_jsonl(path: &Path, name: &str) -> Result<Vec<Chunk>, Error> {
    let bytes = fs::read(path).map_err(|error| Error::io_at(path, &error))?;
    let mut chunks = Vec::new();
    for (n, line) in without_mark(&bytes).split(|&byte| byte == b'\n').enumerate() {
        let wrong =
            |what: &str| Error::shape(format!("{}: line {}: {what}", path.display(), n + 1));
        let line = std::str::from_utf8(line).map_err(|_| wrong("not UTF-8"))?;
        if !strip(line).is_empty() {
            chunks.push(json_chunk(line, name).map_err(|what| wrong(&what))?);
        }
    }
    Ok(chunks)
}

/// Returns the chunk of a line of JSON, or what is wrong with it.
#[cfg(feature = "json")]
fn json_chunk(line: &str, name: &str) -> Result<Chunk, String> {
    let row: Value = serde_json::from_str(line).map_err(|error| {
        let (what, column) = (error.to_string(), error.column());
        let what = what.split(" at line ").next().unwrap_or_default();
        format!("invalid JSON at column {column}: {what}")
    })?;
    let Value::Object(row) = row else { return Err("must be a JSON object".into()) };
    let given = |key: &str| row.get(key).filter(|value| !value.is_null());
    let text = |key: &str| match given(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(format!("{key} must be a string")),
    };
    let Some(key) =
        ["text", "content", "page_content"].into_iter().find(|&key| row.contains_key(key))
    else {
        return Err("must have a key 'text', 'content' or 'page_content'".into());
    };
    let words = text(key)?.ok_or_else(|| format!("{key} must be a string"))?;
    let mut chunk = Chunk::new(words).source(text("source")?.unwrap_or(name));
    text("title")?.unwrap_or_default().clone_into(&mut chunk.title);
    let written = Fields::of(line);
    let as_written = |key| written.get(key).unwrap_or_default();
    chunk.id = match given("id") {
        Some(Value::Number(number)) => Some(id_of(number, as_written("id"))),
        _ => text("id")?.map(str::to_owned),
    };
    if given("score").is_some_and(|score| score.as_f64().is_none()) {
        return Err("score must be a number".into());
    }
    let metadata = given("metadata");
    if metadata.is_some_and(|metadata| !metadata.is_object()) {
        return Err("metadata must be an object".into());
    }
    let Some(said) = metadata_of(&written, metadata.map(|_| as_written("metadata"))) else {
        return Ok(chunk);
    };
    let said = of_metadata(&said).ok_or("metadata must be JSON")?;
    let Chunk { text, mut title, mut id, source, .. } = chunk;
    if title.is_empty()
        && let Some(Value::String(inner)) = metadata.and_then(|metadata| metadata.get("title"))
    {
        title.clone_from(inner);
    }
    if id.as_ref().is_none_or(String::is_empty) {
        id = said.id.clone().or(id);
    }
    Ok(Chunk { text, title, id, source, ..said })
}

/// Returns the metadata of an object with what the object itself has of
/// [`OF_METADATA`]; None without any.
#[cfg(feature = "json")]
fn metadata_of(row: &Fields<'_>, metadata: Option<&str>) -> Option<String> {
    let given = metadata.map(Fields::of).unwrap_or_default();
    let of = |fields: &Fields<'_>, name: &str| fields.get(name).is_some_and(|it| it != "null");
    let is_own = |name: &str| OF_METADATA.contains(&name) && of(row, name) && !of(&given, name);
    if metadata.is_none() && !OF_METADATA.iter().any(|name| is_own(name)) {
        return None;
    }
    let kept = given.iter().filter(|(name, _)| !is_own(name));
    let own = OF_METADATA.iter().filter(|name| is_own(name));
    let own = own.map(|&name| (name, row.get(name).unwrap_or_default()));
    let all = kept.chain(own).map(|(name, value)| format!("{}:{value}", Value::from(name)));
    Some(format!("{{{}}}", all.collect::<Vec<_>>().join(",")))
}

/// Returns a chunk with the fields that metadata set, which stay as they are written.
#[cfg(feature = "json")]
fn of_metadata(metadata: &str) -> Option<Chunk> {
    let fields = Fields::of(metadata);
    let written = |is_wanted: fn(&str) -> bool| {
        let wanted = fields.iter().filter(|(_, value)| is_wanted(value));
        let wanted = wanted.map(|(name, value)| format!("{}:{value}", Value::from(name)));
        format!("{{{}}}", wanted.collect::<Vec<_>>().join(","))
    };
    // This is how a corpus that was saved in Python is read.
    let read = |fields: &str| record::read(format!(r#"[2,null,"",null,{fields}]"#).as_bytes());
    let all = written(|_| true);
    let mut chunk = if let Some(chunk) = read(&all) {
        chunk
    } else {
        // No record is nested as deep. The fields of a chunk are not nested.
        let plain = written(|value| !value.starts_with(['[', '{']));
        Chunk { metadata: all, ..read(&plain)? }
    };
    if let Some(id) = fields.get("id")
        && let Ok(number) = serde_json::from_str(id)
    {
        chunk.id = Some(id_of(&number, id));
    }
    Some(chunk)
}

/// Returns a number as an id: a whole one with all its digits.
#[cfg(feature = "json")]
fn id_of(number: &serde_json::Number, written: &str) -> String {
    match written {
        "-0" => "0".into(),
        whole if !whole.contains(['.', 'e', 'E']) => whole.into(),
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown() {
        let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|&(title, text)| (title.into(), text.into())).collect()
        };
        for (text, sections) in [
            ("", &[][..]),
            ("Mild.", &[("tea", "Mild.")]),
            (
                "# Tea\nA drink.\r\n## Green ##\rMild.\n",
                &[("Tea", "# Tea\nA drink."), ("Green", "## Green ##\nMild.")],
            ),
            ("## A#\na\n# B\n\n## \n ", &[("A#", "## A#\na\n# B"), ("", "##")]),
            (
                "```md\n## no\n``` x\n````\n## yes",
                &[("tea", "```md\n## no\n``` x\n````"), ("yes", "## yes")],
            ),
            (
                "``` `\n## a\n    ~~~\n## b",
                &[("tea", "``` `"), ("a", "## a\n    ~~~"), ("b", "## b")],
            ),
            ("~~~ `\n## a\n```\n", &[("tea", "~~~ `\n## a\n```")]),
        ] {
            assert_eq!(pairs(sections), split_markdown(text, "tea"), "{text:?}");
        }
    }
}
