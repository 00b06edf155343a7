//! The query and the chunks of a row, where they lie.

use std::ops::Range;

use budgeteer::pipeline::Tag;
use budgeteer::{Batch, Text};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrow::Strings;
use crate::codes::BadRow;
use crate::convert::{signed, string};

use super::fields::{Fields, Id};
use super::{Bad, Chunks, Column, Rows};

/// The chunks of a row, where they lie.
pub(super) enum Places<'a> {
    List(&'a Fields, Range<usize>),
    Group(&'a Rows, &'a [u32]),
    /// There are none.
    Elsewhere,
}

impl<'a> Places<'a> {
    fn len(&self) -> usize {
        match self {
            Self::List(_, range) => range.len(),
            Self::Group(_, rows) => rows.len(),
            Self::Elsewhere => 0,
        }
    }

    fn at(&self, index: usize) -> (&'a Fields, usize) {
        match self {
            Self::List(fields, range) => (fields, range.start + index),
            Self::Group(rows, group) => {
                let (part, row) = rows.part(group[index] as usize);
                match &part.chunks {
                    Chunks::Rows(fields) => (fields, part.shift + row),
                    _ => unreachable!("rows are grouped in long tables only"),
                }
            }
            Self::Elsewhere => unreachable!("there are none"),
        }
    }

    /// Returns the index by which a chunk is named: in its list, or its row.
    fn named(&self, index: usize) -> usize {
        match self {
            Self::List(..) | Self::Elsewhere => index,
            Self::Group(_, group) => group[index] as usize,
        }
    }
}

/// What is read of the chunks beside their texts.
#[derive(Clone, Copy)]
#[allow(clippy::struct_excessive_bools)] // each is asked for by itself
pub(crate) struct Wants {
    /// Whether a row must have a query.
    pub(crate) query: bool,
    pub(crate) titles: bool,
    pub(crate) scores: bool,
    /// Whether scores must be finite.
    pub(crate) finite: bool,
    pub(crate) times: bool,
    /// Identifiers, sources, kinds and positions, and titles too.
    pub(crate) tags: bool,
}

/// The query and the chunks of a row.
pub(crate) struct Row<'a> {
    pub(crate) query: &'a str,
    pub(crate) keys: Vec<f64>,
    places: Places<'a>,
    pub(super) texts: Vec<Text<'a>>,
    titles: Vec<Text<'a>>,
    total: usize,
}

impl Batch for Row<'_> {
    fn len(&self) -> usize {
        self.texts.len()
    }

    fn text(&self, index: usize) -> Text<'_> {
        self.texts[index]
    }

    fn title(&self, index: usize) -> Text<'_> {
        self.titles.get(index).copied().unwrap_or(Text::EMPTY)
    }

    fn total_chars(&self) -> usize {
        self.total
    }
}

/// Returns the text at `place` of a column that there may be.
fn labelled(column: Option<&Strings>, place: usize) -> Option<&str> {
    column?.get(place).ok().flatten()
}

impl Row<'_> {
    /// Returns kind, identifier, source and title of a chunk, and its position.
    /// What cannot be read was refused before.
    pub(crate) fn tag(&self, index: usize) -> Tag {
        let (fields, place) = self.places.at(index);
        let place = place + fields.shift;
        let text = |column| labelled(column, place);
        let mut tag = Tag::of_text(index);
        if let Some(kind) = text(fields.kind.as_ref()) {
            tag.kind = kind.into();
        }
        let id = match &fields.id {
            None => None,
            Some(Id::Texts(ids)) => ids.get(place).ok().flatten().map(str::to_owned),
            Some(Id::Ints(ids)) => ids.get(place).map(|id| id.to_string()),
        };
        if let Some(id) = id {
            tag.id = id.into_bytes();
        }
        tag.source = text(fields.source.as_ref()).unwrap_or_default().into();
        tag.title = text(fields.title.as_ref()).unwrap_or_default().into();
        let position = fields.position.as_ref().and_then(|column| column.get(place));
        tag.position = position.unwrap_or(f64::NAN);
        tag
    }

    /// Returns the index by which the caller knows a chunk.
    pub(crate) fn named(&self, index: u32) -> i64 {
        signed(self.places.named(index as usize) as u64)
    }
}

impl<'a> Row<'a> {
    /// Reads the chunks.
    pub(super) fn of(query: &'a str, places: Places<'a>, wants: Wants) -> Result<Self, Bad> {
        let count = places.len();
        let mut row = Self {
            query,
            keys: Vec::new(),
            texts: Vec::with_capacity(count),
            titles: Vec::new(),
            total: 0,
            places,
        };
        for index in 0..count {
            let (fields, place) = row.places.at(index);
            let bad = |code: BadRow, field| Bad {
                code,
                column: Column::Chunks,
                field,
                place: Some(row.places.named(index)),
            };
            if fields.items.as_ref().is_some_and(|items| !items.has(place)) {
                return Err(bad(BadRow::Null, ""));
            }
            let place = place + fields.shift;
            let read = |column: &'a Strings, field| {
                column.get(place).map_err(|misread| bad(misread.into(), field))
            };
            let name = fields.text_name;
            let text = read(&fields.text, name)?.ok_or_else(|| bad(BadRow::Null, name))?;
            if let Some(titles) = fields.title.as_ref().filter(|_| wants.titles || wants.tags) {
                let title = read(titles, "title")?.unwrap_or_default();
                if wants.titles && !title.is_empty() {
                    row.titles.resize(index, Text::EMPTY);
                    row.titles.push(title.into());
                }
            }
            if wants.scores {
                let score = fields.score.as_ref().and_then(|column| column.get(place));
                if score.is_some_and(f64::is_nan) {
                    return Err(bad(BadRow::Nan, "score"));
                }
                if wants.finite && score.is_some_and(f64::is_infinite) {
                    return Err(bad(BadRow::Infinite, "score"));
                }
                row.keys.push(score.unwrap_or(f64::NAN));
            }
            if wants.times {
                let time = fields.mtime.as_ref().and_then(|column| column.get(place));
                if time.is_some_and(f64::is_nan) {
                    return Err(bad(BadRow::Nan, "mtime"));
                }
                row.keys.push(time.unwrap_or_default());
            }
            if wants.tags {
                let ids = match &fields.id {
                    Some(Id::Texts(ids)) => Some(ids),
                    _ => None,
                };
                let labels = [(ids, "id"), (fields.source.as_ref(), "source")];
                for (column, field) in labels.into_iter().chain([(fields.kind.as_ref(), "kind")]) {
                    column.map_or(Ok(None), |column| read(column, field))?;
                }
            }
            row.total += text.len();
            row.texts.push(text.into());
        }
        Ok(row)
    }
}

impl Row<'_> {
    /// Returns a chunk as a str, or as a dict of its fields.
    pub(super) fn object<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        let (fields, place) = self.places.at(index);
        let place = place + fields.shift;
        let mut utf8 = Vec::new();
        self.texts[index].write_utf8(&mut utf8);
        let text = string(py, &utf8)?;
        let strings =
            [("title", &fields.title), ("source", &fields.source), ("kind", &fields.kind)];
        let chunk = PyDict::new(py);
        // The text has its own name, which is what a function of the caller's asks for.
        let name = if fields.text_name.is_empty() { "text" } else { fields.text_name };
        chunk.set_item(name, &text)?;
        for (name, column) in strings {
            if let Some(Ok(Some(found))) = column.as_ref().map(|column| column.get(place)) {
                chunk.set_item(name, found)?;
            }
        }
        match &fields.id {
            Some(Id::Texts(ids)) => {
                if let Ok(Some(id)) = ids.get(place) {
                    chunk.set_item(intern!(py, "id"), id)?;
                }
            }
            Some(Id::Ints(ids)) => {
                if let Some(id) = ids.get(place) {
                    chunk.set_item(intern!(py, "id"), id)?;
                }
            }
            None => {}
        }
        for (name, column) in [("score", &fields.score), ("position", &fields.position)] {
            if let Some(found) = column.as_ref().and_then(|column| column.get(place)) {
                chunk.set_item(name, found)?;
            }
        }
        if let Some(found) = fields.mtime.as_ref().and_then(|column| column.get(place)) {
            let metadata = PyDict::new(py);
            metadata.set_item(intern!(py, "mtime"), found)?;
            chunk.set_item(intern!(py, "metadata"), metadata)?;
        }
        Ok(if fields.are_texts_alone() { text.into_any() } else { chunk.into_any() })
    }
}
