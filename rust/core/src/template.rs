//! Templates: what is written around the chunks.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::chunk::{DEFAULT_KIND, Document};
use crate::error::Error;
use crate::text::Text;

pub(crate) mod escape;

/// The layout of the packed text.
///
/// All but [`Template::plain`], [`Template::format`] and [`Template::by`]
/// escape a chunk where its text might pass for the template's own, so a parser
/// gets back exactly the chunks that went in. That delimits the chunks; it does not keep a model
/// from following instructions in a text.
///
/// # Examples
///
/// ```
/// use budgeteer::{Chunk, Packer, Template};
///
/// let chunks = [Chunk::new("Tea & more.").id("7")];
/// let packing = Packer::new(50).template(Template::xml()).pack("tea", &chunks)?;
/// assert_eq!(
///     packing.text,
///     "<documents>\n<document id=\"7\">\nTea &amp; more.\n</document>\n</documents>",
/// );
/// let template = Template::format("<{id}> {text}")?.header("Sources:\n");
/// let packing = Packer::new(50).template(template).pack("tea", &chunks)?;
/// assert_eq!(packing.text, "Sources:\n<7> Tea & more.");
/// # Ok::<(), budgeteer::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pub(crate) style: Style,
    pub(crate) separator: Cow<'static, str>,
    pub(crate) header: Cow<'static, str>,
    pub(crate) footer: Cow<'static, str>,
    /// Whether a separator was set that the style does not take.
    pub(crate) has_idle_separator: bool,
}

/// The style in which a chunk is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Tagged,
    Markdown,
    Xml,
    Json,
    /// The formats of what is in front of the text and behind it.
    Format {
        front: Vec<Slot>,
        back: Vec<Slot>,
    },
    /// As the caller's function writes it.
    Written(Writer),
}

/// The caller's function that writes a chunk. It equals itself and no other.
#[derive(Clone)]
pub(crate) struct Writer(Arc<Write>);

type Write = dyn Fn(usize, &dyn Document) -> String + Send + Sync;

impl Writer {
    /// Returns how `chunk` is written, which is at `index` in the input.
    pub(crate) fn write(&self, index: usize, chunk: &dyn Document) -> String {
        (self.0)(index, chunk)
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

impl PartialEq for Writer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Writer {}

/// A part of a format string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    Literal(String),
    Kind,
    Id,
    Source,
    Title,
    Index,
}

/// The fields of a chunk that a template may show, each encoded as in
/// [`Text::Utf8`].
#[derive(Clone, Debug, Default)]
pub struct Tag {
    /// The kind of the chunk.
    pub kind: Vec<u8>,
    /// The identifier.
    pub id: Vec<u8>,
    /// The source.
    pub source: Vec<u8>,
    /// The title.
    pub title: Vec<u8>,
    /// The position in the source; NaN if unknown.
    pub position: f64,
}

impl Tag {
    /// Returns the tag of a chunk that has nothing but a text.
    #[must_use]
    pub fn of_text(index: usize) -> Self {
        Self {
            kind: DEFAULT_KIND.into(),
            id: index.to_string().into(),
            position: f64::NAN,
            ..Self::default()
        }
    }
}

impl Default for Template {
    fn default() -> Self {
        Self::plain()
    }
}

impl Template {
    const fn new(
        style: Style,
        separator: &'static str,
        header: &'static str,
        footer: &'static str,
    ) -> Self {
        Self {
            style,
            separator: Cow::Borrowed(separator),
            header: Cow::Borrowed(header),
            footer: Cow::Borrowed(footer),
            has_idle_separator: false,
        }
    }

    /// Texts joined by a blank line, without escapes. The default.
    #[must_use]
    pub const fn plain() -> Self {
        Self::new(Style::Plain, "\n\n", "", "")
    }

    /// `[kind:id] text`, joined by a line end.
    #[must_use]
    pub const fn tagged() -> Self {
        Self::new(Style::Tagged, "\n", "", "")
    }

    /// A heading `## [kind:id] title` above each text, and a line with its
    /// source if there is one; joined by a blank line.
    #[must_use]
    pub const fn markdown() -> Self {
        Self::new(Style::Markdown, "\n\n", "", "")
    }

    /// `<documents>` with a `<document>` for each text. Well-formed XML 1.0.
    #[must_use]
    pub const fn xml() -> Self {
        Self::new(Style::Xml, "\n", "<documents>\n", "\n</documents>")
    }

    /// A JSON array with an object for each text.
    #[must_use]
    pub const fn json() -> Self {
        Self::new(Style::Json, ",\n", "[", "]")
    }

    /// A format string, with `{text}` once, and any of `{kind}`, `{id}`,
    /// `{source}`, `{title}` and `{index}`. A brace is written twice. Joined by
    /// a blank line. Nothing is escaped.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for
    /// any other field, a lone brace, or `{text}` missing or repeated.
    pub fn format(format: &str) -> Result<Self, Error> {
        let (fields, last) = parsed(format).ok_or_else(Error::format)?;
        let mut halves = [Vec::new(), Vec::new()];
        let mut texts = 0;
        for (literal, name) in fields {
            let slots = &mut halves[texts.min(1)];
            slots.push(Slot::Literal(literal));
            match name {
                "text" => texts += 1,
                "kind" => slots.push(Slot::Kind),
                "id" => slots.push(Slot::Id),
                "source" => slots.push(Slot::Source),
                "title" => slots.push(Slot::Title),
                "index" => slots.push(Slot::Index),
                _ => return Err(Error::format()),
            }
        }
        halves[1].push(Slot::Literal(last));
        if texts != 1 {
            return Err(Error::format());
        }
        let [front, back] = halves;
        Ok(Self { style: Style::Format { front, back }, ..Self::plain() })
    }

    /// Each chunk as `write` writes it; it gets the place of the chunk in the
    /// input and the chunk. Joined by a blank line. Nothing is escaped.
    ///
    /// Chunks are ranked, and compared with each other, by their own texts. All
    /// counts are of what is written. `write` is asked once in a call for each
    /// chunk considered, while a token is left, and not for duplicates. A chunk
    /// for which it writes nothing is dropped as empty. Packing with it is an
    /// error where chunks are cut, under [`Units::Sentence`], and in
    /// [`context_router`], which does not count what is around a text.
    ///
    /// [`Units::Sentence`]: crate::Units::Sentence
    /// [`context_router`]: crate::presets::context_router
    ///
    /// ```
    /// use budgeteer::{Chunk, Packer, Template};
    ///
    /// let template = Template::by(|index, chunk| format!("{index} {}", chunk.title()));
    /// let chunks = [Chunk::new("Tea is green.").title("Tea")];
    /// let packing = Packer::new(3).template(template).pack("tea", &chunks)?;
    /// assert_eq!((&*packing.text, packing.kept[0].text()), ("0 Tea", "0 Tea"));
    /// # Ok::<(), budgeteer::Error>(())
    /// ```
    #[must_use]
    pub fn by(write: impl Fn(usize, &dyn Document) -> String + Send + Sync + 'static) -> Self {
        Self { style: Style::Written(Writer(Arc::new(write))), ..Self::plain() }
    }

    /// Sets the separator between chunks. Only format strings and functions have
    /// a choice: packing with any other template for which one was set is an
    /// error.
    #[must_use]
    pub fn separator(mut self, separator: impl Into<String>) -> Self {
        if matches!(self.style, Style::Format { .. } | Style::Written(_)) {
            self.separator = separator.into().into();
        } else {
            self.has_idle_separator = true;
        }
        self
    }

    /// Puts `header` in front of the whole text.
    #[must_use]
    pub fn header(mut self, header: impl Into<String>) -> Self {
        let header = header.into();
        if !header.is_empty() {
            self.header = (header + &self.header).into();
        }
        self
    }

    /// Puts `footer` behind the whole text.
    #[must_use]
    pub fn footer(mut self, footer: impl Into<String>) -> Self {
        let footer = footer.into();
        if !footer.is_empty() {
            self.footer.to_mut().push_str(&footer);
        }
        self
    }

    /// Returns the separator between chunks.
    #[must_use]
    pub fn between(&self) -> &str {
        &self.separator
    }

    /// Returns the header of the whole text.
    #[must_use]
    pub fn front(&self) -> &str {
        &self.header
    }

    /// Returns the text in front of chunk `index` and the text behind it.
    pub(crate) fn around(&self, tag: &Tag, index: usize) -> (Vec<u8>, Vec<u8>) {
        let Tag { kind, id, source, title, .. } = tag;
        let mut out = Vec::with_capacity(64);
        match &self.style {
            Style::Plain | Style::Written(_) => (out, Vec::new()),
            Style::Tagged => {
                bracketed(kind, id, &mut out);
                out.push(b' ');
                (out, Vec::new())
            }
            Style::Markdown => {
                out.extend(b"## ");
                bracketed(kind, id, &mut out);
                for (name, value) in [(&b" "[..], title), (b"\nSource: ", source)] {
                    if !value.is_empty() {
                        out.extend(name);
                        escape::field(value, b"", &mut out);
                    }
                }
                out.extend(b"\n\n");
                (out, Vec::new())
            }
            Style::Xml => {
                out.extend(b"<document");
                for (name, value) in attributes(tag) {
                    out.push(b' ');
                    out.extend(name.bytes());
                    out.extend(b"=\"");
                    out.extend_from_slice(escape::xml(value, true).as_deref().unwrap_or(value));
                    out.push(b'"');
                }
                out.extend(b">\n");
                (out, b"\n</document>".to_vec())
            }
            Style::Json => {
                out.push(b'{');
                for (name, value) in attributes(tag) {
                    out.push(b'"');
                    out.extend(name.bytes());
                    out.extend(b"\": \"");
                    out.extend_from_slice(escape::json(value).as_deref().unwrap_or(value));
                    out.extend(b"\", ");
                }
                out.extend(b"\"text\": \"");
                (out, b"\"}".to_vec())
            }
            Style::Format { front, back } => {
                let fill = |slots: &[Slot]| {
                    let mut filled = Vec::new();
                    for slot in slots {
                        match slot {
                            Slot::Literal(text) => filled.extend_from_slice(text.as_bytes()),
                            Slot::Kind => filled.extend_from_slice(kind),
                            Slot::Id => filled.extend_from_slice(id),
                            Slot::Source => filled.extend_from_slice(source),
                            Slot::Title => filled.extend_from_slice(title),
                            Slot::Index => filled.extend(index.to_string().bytes()),
                        }
                    }
                    filled
                };
                (fill(front), fill(back))
            }
        }
    }

    /// Returns the notice that `count` chunks were left out.
    pub(crate) fn notice(&self, pieces: &[String], count: usize) -> Vec<u8> {
        let notice = pieces.join(&count.to_string());
        let notice = notice.as_bytes();
        let escaped = || {
            escape::body(&self.style, Text::from_utf8(notice)).unwrap_or_else(|| notice.to_vec())
        };
        match &self.style {
            Style::Plain | Style::Format { .. } | Style::Written(_) => notice.to_vec(),
            Style::Tagged => [b"[notice] ", &escaped()[..]].concat(),
            Style::Markdown => [b"## [notice] ", &escaped()[..]].concat(),
            Style::Xml => [b"<notice>", &escaped()[..], b"</notice>"].concat(),
            Style::Json => [b"{\"notice\": \"", &escaped()[..], b"\"}"].concat(),
        }
    }

    /// Returns whether chunks are written as they are.
    pub(crate) fn is_plain(&self) -> bool {
        self.style == Style::Plain
    }

    /// Returns the function that writes the chunks, if one does.
    pub(crate) fn writer(&self) -> Option<&Writer> {
        if let Style::Written(writer) = &self.style { Some(writer) } else { None }
    }
}

/// Writes `[kind:id]`.
fn bracketed(kind: &[u8], id: &[u8], out: &mut Vec<u8>) {
    out.push(b'[');
    escape::field(kind, b":]", out);
    out.push(b':');
    escape::field(id, b"]", out);
    out.push(b']');
}

/// Returns the fields that are written with their names: all but empty ones and
/// the default kind.
fn attributes(tag: &Tag) -> impl Iterator<Item = (&'static str, &[u8])> {
    let Tag { kind, id, source, title, .. } = tag;
    let kind = ("kind", &kind[..]);
    let rest = [("source", &source[..]), ("title", &title[..])];
    std::iter::once(kind)
        .filter(|(_, kind)| *kind != DEFAULT_KIND.as_bytes())
        .chain(std::iter::once(("id", &id[..])))
        .chain(rest.into_iter().filter(|(_, value)| !value.is_empty()))
}

/// Returns the fields of a format string, each with the text in front of it, and
/// the text behind the last one. None where a brace is alone.
pub(crate) fn parsed(format: &str) -> Option<(Vec<(String, &str)>, String)> {
    let (mut fields, mut literal) = (Vec::new(), String::new());
    let mut rest = format;
    while let Some(at) = rest.find(['{', '}']) {
        literal.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(behind) = ["{{", "}}"].iter().find_map(|pair| rest.strip_prefix(pair)) {
            literal.push_str(&rest[..1]);
            rest = behind;
            continue;
        }
        let (name, behind) = rest.strip_prefix('{')?.split_once('}')?;
        fields.push((std::mem::take(&mut literal), name));
        rest = behind;
    }
    literal.push_str(rest);
    Some((fields, literal))
}
