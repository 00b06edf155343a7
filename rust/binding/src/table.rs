//! Rows of a table, each a query and its chunks, and what becomes of them.

use std::collections::HashMap;
use std::ops::Range;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

use crate::arrow::{
    Array, Bits, Failure, Import, Ints, Lists, Misread, Out, Schema, Slots, Strings, import,
    is_null, type_name,
};
use crate::codes::{BadRow, Unfit};
use crate::convert::signed;
use crate::error::guard;

use answers::Block;
use fields::{Fields, place_of, strings};
use row::{Places, Row, Wants};

pub(crate) use answers::{Columns, pack_rows};

mod answers;
mod fields;
mod row;

/// Why a table cannot be read: a code, the column, and what was found.
type Refused = (u8, String, String);

fn refused(code: Unfit, column: impl Into<String>, found: impl Into<String>) -> Refused {
    (code as u8, column.into(), found.into())
}

/// Returns the refusal of a column that has not the type `wanted`; or, if it has,
/// of one whose buffers are not there.
fn mistyped(wanted: &str, column: impl Into<String>, schema: &Schema) -> Refused {
    match type_name(schema) {
        found if found == wanted => broken(),
        found => refused(Unfit::ColumnType, column, found),
    }
}

/// Returns the refusal of arrays that are not of their type.
fn broken() -> Refused {
    refused(Unfit::Producer, "", "its parts do not match its type")
}

/// Why a row cannot be packed.
#[derive(Clone, Debug)]
pub(crate) struct Bad {
    code: BadRow,
    /// The column; of a field of a chunk the one of the chunks.
    column: Column,
    /// The field of a chunk; empty for a column, and for a chunk itself.
    field: &'static str,
    /// The chunk: its place in the list, or its row in a long table.
    place: Option<usize>,
}

/// A column of the table.
#[derive(Clone, Copy, Debug)]
enum Column {
    Query = 0,
    Chunks = 1,
}

impl From<Misread> for BadRow {
    fn from(misread: Misread) -> Self {
        match misread {
            Misread::NotUtf8 => Self::NotUtf8,
            Misread::Offsets => Self::Offsets,
        }
    }
}

/// A column of keys, by which rows are grouped.
enum Keys {
    Texts(Strings),
    Ints(Ints),
}

/// A key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key<'a> {
    Null,
    Text(&'a str),
    Int(i128),
}

impl Keys {
    fn get(&self, place: usize) -> Result<Key<'_>, Misread> {
        Ok(match self {
            Self::Texts(texts) => texts.get(place)?.map_or(Key::Null, Key::Text),
            Self::Ints(ints) => ints.get(place).map_or(Key::Null, Key::Int),
        })
    }
}

/// The chunks of a part.
enum Chunks {
    /// Each row has a list.
    Lists(Lists, Fields),
    /// No row has any, by the type of their column.
    Nulls,
    /// Each row of a long table is one.
    Rows(Fields),
    /// They are in a corpus.
    Elsewhere,
}

/// Some rows of the table, whose memory lies together.
struct Part {
    /// The first row.
    first: usize,
    /// How many rows there are.
    rows: usize,
    /// How far behind its row the items of a column are.
    shift: usize,
    /// Which rows are null, if rows can be.
    slots: Slots,
    query: Option<Strings>,
    chunks: Chunks,
    keys: Option<Keys>,
}

/// The rows of a long table that have the same key.
struct Groups {
    /// Where the rows of each group end.
    ends: Vec<usize>,
    /// The rows, group by group.
    rows: Vec<u32>,
}

/// A table of queries and chunks, whose memory is another program's.
#[pyclass(frozen, module = "budgeteer._native")]
pub(crate) struct Rows {
    parts: Vec<Part>,
    groups: Option<Groups>,
    /// The name of the column of keys.
    key: Option<String>,
    has_large_keys: bool,
    /// What owns the memory of the parts. It is dropped last.
    _owner: Import,
}

impl Rows {
    fn rows(&self) -> usize {
        self.parts.last().map_or(0, |part| part.first + part.rows)
    }

    /// Returns the number of queries.
    pub(crate) fn len(&self) -> usize {
        self.groups.as_ref().map_or_else(|| self.rows(), |groups| groups.ends.len())
    }

    /// Returns the part that has a row of the table, and its place there.
    fn part(&self, row: usize) -> (&Part, usize) {
        let part = self.parts.partition_point(|part| part.first + part.rows <= row);
        let part = &self.parts[part];
        (part, row - part.first)
    }

    fn group(&self, nth: usize) -> Option<&[u32]> {
        let Groups { ends, rows } = self.groups.as_ref()?;
        let start = nth.checked_sub(1).map_or(0, |before| ends[before]);
        Some(&rows[start..ends[nth]])
    }

    /// Reads a row, or the first row of a group with the chunks of all.
    pub(crate) fn read(&self, nth: usize, wants: Wants) -> Result<Row<'_>, Bad> {
        let group = self.group(nth);
        let (part, row) = self.part(group.map_or(nth, |rows| rows[0] as usize));
        let bad = |column| move |code: BadRow| Bad { code, column, field: "", place: None };
        let has_row = part.slots.has(row);
        let query = match &part.query {
            Some(queries) if has_row => {
                queries.get(part.shift + row).map_err(|code| bad(Column::Query)(code.into()))?
            }
            _ => None,
        };
        if wants.query && query.is_none() {
            return Err(bad(Column::Query)(BadRow::Null));
        }
        let places = match (group, &part.chunks) {
            (Some(group), _) => Places::Group(self, group),
            (None, Chunks::Lists(lists, fields)) if has_row => {
                let list = lists.get(part.shift + row);
                let list = list.map_err(|code| bad(Column::Chunks)(code.into()))?;
                Places::List(fields, list.ok_or_else(|| bad(Column::Chunks)(BadRow::Null))?)
            }
            (None, Chunks::Elsewhere) => Places::Elsewhere,
            _ => return Err(bad(Column::Chunks)(BadRow::Null)),
        };
        Row::of(query.unwrap_or_default(), places, wants)
    }

    /// Returns the keys of some groups.
    fn keys(&self, groups: Range<usize>) -> Option<Out> {
        self.key.as_ref()?;
        let keys = groups.map(|nth| {
            let (part, row) = self.part(self.group(nth).unwrap_or_default()[0] as usize);
            part.key(row).unwrap_or(Key::Null) // it was read before
        });
        let mut valid = Bits::default();
        let is_there = |valid: &mut Bits, key: &Key<'_>| valid.push(!matches!(key, Key::Null));
        let first = self.parts.iter().find_map(|part| part.keys.as_ref());
        Some(match first {
            Some(Keys::Texts(_)) | None => {
                let (mut ends, mut bytes) = (vec![0], Vec::new());
                for key in keys {
                    is_there(&mut valid, &key);
                    if let Key::Text(text) = key {
                        bytes.extend_from_slice(text.as_bytes());
                    }
                    ends.push(signed(bytes.len() as u64));
                }
                Out::Texts(valid, ends, bytes)
            }
            Some(Keys::Ints(_)) => {
                let number = |key: Key<'_>| if let Key::Int(number) = key { number } else { 0 };
                let mut counted = |key: Key<'_>| {
                    is_there(&mut valid, &key);
                    number(key)
                };
                // Each fits, as the column that it is from has this type.
                if self.has_large_keys {
                    let numbers = keys.map(|key| counted(key).try_into().unwrap_or_default());
                    let numbers = numbers.collect();
                    Out::Unsigned(valid, numbers)
                } else {
                    let numbers = keys.map(|key| counted(key).try_into().unwrap_or_default());
                    let numbers = numbers.collect();
                    Out::Ints(valid, numbers)
                }
            }
        })
    }
}

impl Part {
    fn key(&self, row: usize) -> Result<Key<'_>, Misread> {
        match &self.keys {
            Some(keys) if self.slots.has(row) => keys.get(self.shift + row),
            _ => Ok(Key::Null),
        }
    }
}

/// The names of the columns that are read.
#[derive(Clone, Copy)]
struct Names<'a> {
    query: Option<&'a str>,
    /// None if they are in a corpus.
    chunks: Option<&'a str>,
    group_by: Option<&'a str>,
}

/// A type and an array of it; None where the table has no rows at all.
type Child<'a> = (&'a Schema, &'a Array);

impl Part {
    fn of(schema: &Schema, array: &Array, names: Names<'_>, first: usize) -> Result<Self, Refused> {
        let column = |name: &str| {
            let place = place_of(schema, name).ok_or_else(|| {
                let all: Vec<_> = schema.children().map(Schema::name).collect();
                refused(Unfit::NoColumn, name, all.join("\0"))
            })?;
            let field = schema.children().nth(place).ok_or_else(broken)?;
            let child = array.child(place).ok_or_else(broken)?;
            if child.len() < array.offset() + array.len() {
                return Err(broken());
            }
            Ok((field, child))
        };
        let query = match names.query {
            None => None,
            Some(name) => {
                let (field, child) = column(name)?;
                Some(strings(field, child, name)?)
            }
        };
        let chunks = match names.chunks {
            None => Chunks::Elsewhere,
            Some(name) => {
                let (field, child) = column(name)?;
                if let Some(key) = names.group_by {
                    column(key)?;
                    Chunks::Rows(if field.format() == "+s" {
                        Fields::of_structs((field, child), name)?
                    } else {
                        Fields::of_table((schema, array), (field, child), names)?
                    })
                } else if is_null(field) {
                    Chunks::Nulls
                } else {
                    let wrong = || mistyped("list", name, field);
                    let lists = Lists::of(field, child).ok_or_else(wrong)?;
                    let item = field.children().next().ok_or_else(broken)?;
                    let items = child.child(0).ok_or_else(broken)?;
                    Chunks::Lists(lists, Fields::of((item, items), name)?)
                }
            }
        };
        let keys = match names.group_by {
            None => None,
            Some(name) => {
                let (field, child) = column(name)?;
                let texts = || Strings::of(field, child).map(Keys::Texts);
                let keys = Ints::of(field, child).map(Keys::Ints).or_else(texts);
                let wrong = || mistyped("string", name, field);
                Some(keys.ok_or_else(wrong)?)
            }
        };
        Ok(Self {
            first,
            rows: array.len(),
            shift: array.offset(),
            slots: Slots::of(array),
            query,
            chunks,
            keys,
        })
    }
}

/// Returns the rows of each key, in the order in which the keys first come.
fn grouped(parts: &[Part], name: &str) -> Result<Groups, Refused> {
    let mut known: HashMap<Key<'_>, u32> = HashMap::new();
    let mut group_of = Vec::new();
    let mut counts: Vec<usize> = Vec::new();
    for part in parts {
        for row in 0..part.rows {
            let key = part.key(row).map_err(|misread| {
                let what = match misread {
                    Misread::NotUtf8 => "a text that is not UTF-8",
                    Misread::Offsets => "offsets that go down",
                };
                refused(Unfit::ColumnType, name, what)
            })?;
            let next = u32::try_from(counts.len());
            let next = next.map_err(|_| refused(Unfit::ColumnType, name, "2**32 keys"))?;
            let group = *known.entry(key).or_insert(next);
            if group == next {
                counts.push(0);
            }
            counts[group as usize] += 1;
            group_of.push(group);
        }
    }
    if u32::try_from(group_of.len()).is_err() {
        return Err(refused(Unfit::ColumnType, name, "2**32 rows"));
    }
    let mut total = 0;
    let mut places: Vec<usize> = counts
        .iter()
        .map(|count| {
            total += count;
            total - count
        })
        .collect();
    let mut rows = vec![0; total];
    for (row, &group) in (0_u32..).zip(&group_of) {
        rows[places[group as usize]] = row;
        places[group as usize] += 1;
    }
    Ok(Groups { ends: places, rows }) // each place has come to its end
}

/// Reads a table, which gives Arrow; or returns a code, the column and what was
/// found there. Without a column of chunks, rows have none.
#[pyfunction]
#[pyo3(signature = (table: "object", query: "str | None", chunks: "str | None", group_by: "str | None") -> "Rows | tuple[int, str, str]", text_signature = "(table, query, chunks, group_by)")]
pub(crate) fn read_rows<'py>(
    table: &Bound<'py, PyAny>,
    query: Option<&str>,
    chunks: Option<&str>,
    group_by: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = table.py();
    guard(|| {
        let read = match import(table)? {
            Ok(found) => {
                let names = Names { query, chunks, group_by };
                py.detach(|| Rows::of(found, names))
            }
            Err(Failure::NoArrow) => Err(refused(Unfit::NoTable, "", "")),
            Err(Failure::Producer(why)) => Err(refused(Unfit::Producer, "", why)),
        };
        match read {
            Ok(rows) => Ok(Bound::new(py, rows)?.into_any()),
            Err(refused) => refused.into_bound_py_any(py),
        }
    })
}

impl Rows {
    fn of(mut owner: Import, names: Names<'_>) -> Result<Self, Refused> {
        let Import { schema, arrays } = &mut owner;
        if schema.format() != "+s" || schema.dictionary().is_some() {
            return Err(refused(Unfit::NoTable, "", type_name(schema)));
        }
        let mut parts: Vec<Part> = Vec::with_capacity(arrays.len());
        if arrays.is_empty() {
            arrays.push(Array::empty(schema)); // its columns are looked at even so
        }
        for array in arrays.iter() {
            let first = parts.last().map_or(0, |part| part.first + part.rows);
            parts.push(Part::of(schema, array, names, first)?);
        }
        let groups = match names.group_by {
            None => None,
            Some(name) => Some(grouped(&parts, name)?),
        };
        let has_large_keys = parts
            .iter()
            .any(|part| matches!(&part.keys, Some(Keys::Ints(ints)) if ints.is_unsigned()));
        let key = names.group_by.map(str::to_owned);
        Ok(Self { parts, groups, key, has_large_keys, _owner: owner })
    }
}

#[pymethods]
impl Rows {
    /// Returns the number of queries.
    fn __len__(&self) -> usize {
        self.len()
    }

    /// Returns the query and the chunks of a row as objects; or a code, the
    /// column, the field and the chunk that cannot be read.
    #[pyo3(signature = (nth: "int", wants: "tuple[bool, bool, bool, bool, bool, bool]") -> "tuple[str, list[object]] | tuple[int, int, str, int | None]", text_signature = "($self, nth, wants)")]
    fn row<'py>(
        &self,
        py: Python<'py>,
        nth: usize,
        wants: (bool, bool, bool, bool, bool, bool),
    ) -> PyResult<Bound<'py, PyAny>> {
        guard(|| {
            let (query, titles, scores, finite, times, tags) = wants;
            let wants = Wants { query, titles, scores, finite, times, tags };
            let row = match self.read(nth, wants) {
                Ok(row) => row,
                Err(bad) => return bad.wire().into_bound_py_any(py),
            };
            let chunks = PyList::empty(py);
            for index in 0..row.texts.len() {
                chunks.append(row.object(py, index)?)?;
            }
            (row.query, chunks).into_bound_py_any(py)
        })
    }

    /// Returns the columns of answers: each a text, its tokens, and the indices
    /// of the kept chunks; or the text of an error.
    #[pyo3(signature = (answers: "list[tuple[str, int, bytes] | str]") -> "Columns", text_signature = "($self, answers)")]
    fn answered(&self, answers: &Bound<'_, PyList>) -> PyResult<Columns> {
        guard(|| {
            let mut block = Block::default();
            for (nth, answer) in answers.iter().enumerate() {
                let Ok(answer) = answer.cast::<PyTuple>() else {
                    block.push_error(answer.extract()?);
                    continue;
                };
                let (text, tokens, kept) =
                    answer.extract::<(Bound<'_, PyString>, i64, Bound<'_, PyBytes>)>()?;
                let (indices, _) = kept.as_bytes().as_chunks::<4>();
                let group = self.group(nth);
                let kept = indices.iter().map(|&index| {
                    let index = u32::from_ne_bytes(index);
                    i64::from(group.map_or(index, |group| group[index as usize]))
                });
                block.push(text.to_str()?.as_bytes(), tokens, kept);
            }
            Ok(Columns::new(self, vec![block.finish(self.keys(0..answers.len()))?]))
        })
    }
}

impl Bad {
    /// Returns a code, the column, the field and the chunk.
    pub(crate) fn wire(&self) -> (u8, u8, &'static str, Option<usize>) {
        (self.code as u8, self.column as u8, self.field, self.place)
    }
}
