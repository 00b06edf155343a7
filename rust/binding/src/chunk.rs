//! Texts and titles of chunks of any type.
#![allow(unsafe_code)] // strings are read where they lie

use std::collections::HashMap;

use budgeteer::{Batch, Text};
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyByteArray, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use pyo3::{ffi, intern};

use crate::codes::{TEXT_ATTRIBUTES, TEXT_KEYS, Unreadable};
use crate::convert::{borrow_text, make_ready, mutable_column, text};
use crate::error::guard;
use crate::slots::{Maker, Slot};

/// The texts of a batch, and the titles where there are any.
pub(crate) struct Texts<'a, 'py> {
    /// Ready strings, each kept alive by `chunks` or by `owned`.
    strings: Vec<*mut ffi::PyObject>,
    /// As `strings`, null for no title; empty where no chunk has one.
    titles: Vec<*mut ffi::PyObject>,
    /// Strings that may have no other owner, as a field of a chunk can be set
    /// while we read.
    owned: Vec<Bound<'py, PyString>>,
    total_chars: usize,
    /// The owner of the strings that are chunks themselves.
    chunks: &'a Bound<'py, PyTuple>,
}

// SAFETY: the pointers are to strings, which never change and stay alive;
// reading their storage needs no interpreter.
unsafe impl Sync for Texts<'_, '_> {}

impl Batch for Texts<'_, '_> {
    fn len(&self) -> usize {
        self.strings.len()
    }

    fn text(&self, index: usize) -> Text<'_> {
        // SAFETY: a ready string that lives as long as `self`.
        unsafe { borrow_text(self.strings[index]) }
    }

    fn title(&self, index: usize) -> Text<'_> {
        match self.titles.get(index) {
            // SAFETY: a ready string that lives as long as `self`.
            Some(title) if !title.is_null() => unsafe { borrow_text(*title) },
            _ => Text::EMPTY,
        }
    }

    fn prefetch(&self, index: usize) {
        if let Some(&string) = self.strings.get(index) {
            // The storage mostly follows the header. These lines hold 800
            // characters of ASCII; the processor foresees that what is behind
            // them is read.
            (0..14).for_each(|line| prefetch(string.cast::<u8>().wrapping_add(64 * line)));
        }
    }

    fn total_chars(&self) -> usize {
        self.total_chars
    }
}

/// A batch of Python's strings.
pub(crate) trait Strings: Batch {
    /// Returns the text of chunk `index` as the str that it is.
    fn string<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>>;

    /// Returns whether chunk `index` is known to be a str, and so has no
    /// metadata.
    fn is_string(&self, index: usize) -> bool;
}

impl Strings for Texts<'_, '_> {
    fn string<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: a str that lives as long as `self`.
        Ok(unsafe { Bound::from_borrowed_ptr(py, self.strings[index]) })
    }

    fn is_string(&self, index: usize) -> bool {
        self.chunks.as_slice()[index].is_instance_of::<PyString>()
    }
}

/// Tells the processor that the line of `address` is read soon.
#[inline]
fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint reads nothing, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Where the objects of a type hold their text and their title.
enum Access<'py> {
    Mapping,
    Attributes { text: Attribute<'py>, title: Attribute<'py>, others: Others },
    Nowhere,
}

/// How an attribute of the objects of a type is read.
enum Attribute<'py> {
    Slot(Slot<'py>),
    Named(Bound<'py, PyString>),
}

impl<'py> Attribute<'py> {
    fn of(kind: &Bound<'py, PyType>, name: &'static str) -> Self {
        let name = PyString::intern(kind.py(), name);
        Slot::of(kind, &name).map_or(Self::Named(name), Self::Slot)
    }

    /// Returns the attribute of an object of that type, or None where there is
    /// none.
    #[inline]
    fn get(&self, object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self {
            Self::Slot(slot) => present(slot.get(object), object.py()),
            Self::Named(name) => object.getattr_opt(name),
        }
    }
}

fn present<'py>(
    found: PyResult<Bound<'py, PyAny>>,
    py: Python<'py>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    match found {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_instance_of::<PyAttributeError>(py) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The fields beside the text in which a title may be found.
#[derive(Clone, Copy, Default)]
struct Others {
    has_title: bool,
    has_metadata: bool,
    has_meta: bool,
}

impl Others {
    const ALL: Self = Self { has_title: true, has_metadata: true, has_meta: true };
}

/// What is known of each type in a batch, decided by the first object of it.
struct ByType<'py, A> {
    /// The types, which are kept alive: another type could come to the same
    /// address.
    all: Vec<(Bound<'py, PyType>, A)>,
    places: HashMap<usize, usize>,
    last: usize,
}

impl<'py, A> ByType<'py, A> {
    fn new() -> Self {
        Self { all: Vec::new(), places: HashMap::new(), last: 0 }
    }

    fn of(
        &mut self,
        object: &Bound<'py, PyAny>,
        decide: impl FnOnce() -> PyResult<A>,
    ) -> PyResult<&A> {
        let address = object.get_type_ptr();
        if self.all.get(self.last).is_none_or(|(kind, _)| kind.as_type_ptr() != address) {
            self.last = if let Some(place) = self.places.get(&address.addr()) {
                *place
            } else {
                let known = (object.get_type(), decide()?);
                self.places.insert(address.addr(), self.all.len());
                self.all.push(known);
                self.all.len() - 1
            };
        }
        Ok(&self.all[self.last].1)
    }
}

/// What reading a batch gives: the texts, or the first chunk that has none.
pub(crate) type Read<T> = Result<T, (Unreadable, usize)>;

impl<'a, 'py> Texts<'a, 'py> {
    /// Reads chunks of any type, and their titles if `with_titles`.
    pub(crate) fn of_chunks(
        chunks: &'a Bound<'py, PyTuple>,
        with_titles: bool,
    ) -> PyResult<Read<Self>> {
        let mut texts = Self::with_capacity(chunks);
        let mut accesses = ByType::new();
        let items = chunks.as_slice();
        for (index, chunk) in chunks.iter_borrowed().enumerate() {
            if let Some(next) = items.get(index + 8) {
                prefetch(next.as_ptr().cast());
            }
            if let Ok(string) = chunk.cast::<PyString>() {
                texts.push(&string)?;
                continue;
            }
            let (text, title) = if let Ok(dict) = chunk.cast_exact::<PyDict>() {
                match fields_of_dict(&dict, with_titles)? {
                    Some(fields) => fields,
                    None => return Ok(Err((Unreadable::NoText, index))),
                }
            } else {
                let access = accesses.of(&chunk, || access_of(&chunk, with_titles))?;
                match fields_of(&chunk, access, with_titles)? {
                    Some(fields) => fields,
                    None => return Ok(Err((Unreadable::NoText, index))),
                }
            };
            let Ok(text) = text.cast_into::<PyString>() else {
                return Ok(Err((Unreadable::TextType, index)));
            };
            let title = match title.map(Bound::cast_into) {
                None => None,
                Some(Ok(title)) => Some(title),
                Some(Err(_)) => return Ok(Err((Unreadable::TitleType, index))),
            };
            texts.push_owned(&text, title)?;
        }
        Ok(Ok(texts))
    }

    /// Takes texts, and a title for each if there are any.
    pub(crate) fn of_texts(
        texts: &'a Bound<'py, PyTuple>,
        titles: Option<&'a Bound<'py, PyTuple>>,
    ) -> PyResult<Read<Self>> {
        let mut read = Self::with_capacity(texts);
        for (index, text) in texts.iter_borrowed().enumerate() {
            let Ok(text) = text.cast::<PyString>() else {
                return Ok(Err((Unreadable::TextType, index)));
            };
            read.push(&text)?;
            if let Some(titles) = titles {
                let title = titles.get_item(index)?;
                let Ok(title) = title.cast_into::<PyString>() else {
                    return Ok(Err((Unreadable::TitleType, index)));
                };
                read.push_title(title)?;
            }
        }
        Ok(Ok(read))
    }

    /// Appends the strings to those of a corpus, and the titles where there are
    /// any.
    pub(crate) fn move_into(
        &self,
        py: Python<'py>,
        strings: &mut Vec<Py<PyString>>,
        titles: &mut Vec<Option<Py<PyString>>>,
    ) -> PyResult<()> {
        let own = |string: *mut ffi::PyObject| {
            // SAFETY: a str that lives as long as `self`.
            let string = unsafe { Bound::from_borrowed_ptr(py, string) };
            Ok::<_, PyErr>(string.cast_into::<PyString>()?.unbind())
        };
        if !self.titles.is_empty() {
            titles.resize_with(strings.len(), || None);
            for &title in &self.titles {
                titles.push(if title.is_null() { None } else { Some(own(title)?) });
            }
        }
        for &string in &self.strings {
            strings.push(own(string)?);
        }
        Ok(())
    }

    fn with_capacity(chunks: &'a Bound<'py, PyTuple>) -> Self {
        Self {
            strings: Vec::with_capacity(chunks.len()),
            titles: Vec::new(),
            owned: Vec::new(),
            total_chars: 0,
            chunks,
        }
    }

    /// Adds a text that the batch itself keeps alive.
    fn push(&mut self, text: &Bound<'py, PyString>) -> PyResult<()> {
        if text.is_exact_instance_of::<PyString>() {
            return self.push_borrowed(text);
        }
        self.push_owned(text, None)
    }

    fn push_borrowed(&mut self, text: &Bound<'py, PyString>) -> PyResult<()> {
        make_ready(text)?;
        // SAFETY: it is a ready str.
        self.total_chars += unsafe { ffi::PyUnicode_GET_LENGTH(text.as_ptr()) }.cast_unsigned();
        self.strings.push(text.as_ptr());
        Ok(())
    }

    fn push_owned(
        &mut self,
        text: &Bound<'py, PyString>,
        title: Option<Bound<'py, PyString>>,
    ) -> PyResult<()> {
        let text = exact(text)?;
        self.push_borrowed(&text)?;
        self.owned.push(text);
        title.map_or(Ok(()), |title| self.push_title(title))
    }

    /// Adds the title of the text that was pushed last.
    fn push_title(&mut self, title: Bound<'py, PyString>) -> PyResult<()> {
        if !text(&title)?.is_empty() {
            self.titles.resize(self.strings.len() - 1, std::ptr::null_mut());
            self.titles.push(title.as_ptr());
            self.owned.push(title);
        }
        Ok(())
    }
}

/// Returns a str of the class itself: a subclass may have redefined any method,
/// and callers' counters would see that.
fn exact<'py>(string: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyString>> {
    if string.is_exact_instance_of::<PyString>() {
        return Ok(string.clone());
    }
    // SAFETY: the argument is a str; the answer is a new reference or none with
    // an error.
    let copy = unsafe {
        let copy = ffi::PyUnicode_FromObject(string.as_ptr());
        Bound::from_owned_ptr_or_err(string.py(), copy)?
    };
    Ok(copy.cast_into()?)
}

type Fields<'py> = (Bound<'py, PyAny>, Option<Bound<'py, PyAny>>);

fn fields_of_dict<'py>(
    dict: &Bound<'py, PyDict>,
    with_title: bool,
) -> PyResult<Option<Fields<'py>>> {
    let py = dict.py();
    let mut text = dict.get_item(intern!(py, TEXT_KEYS[0]))?;
    if text.is_none() {
        text = dict.get_item(intern!(py, TEXT_KEYS[1]))?;
    }
    if text.is_none() {
        text = dict.get_item(intern!(py, TEXT_KEYS[2]))?;
    }
    let Some(text) = text else { return Ok(None) };
    if !with_title {
        return Ok(Some((text, None)));
    }
    let own = dict.get_item(intern!(py, "title"))?;
    let title = title_of(py, own, || others_of_dict(dict), |name| dict.get_item(name))?;
    Ok(Some((text, title)))
}

/// Returns which fields a dict without a title may have. Looking at all keys of a small dict
/// costs less than looking for those that most chunks lack.
fn others_of_dict(dict: &Bound<'_, PyDict>) -> Others {
    const SMALL: usize = 6;
    if dict.len() > SMALL {
        return Others::ALL;
    }
    with_critical_section(dict, || {
        let mut others = Others::default();
        let (mut at, mut key, none) = (0, std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: a dict that nobody changes in a critical section, in which no
        // Python runs. It keeps its keys alive; a str among them was hashed, and
        // is ready.
        while unsafe { ffi::PyDict_Next(dict.as_ptr(), &raw mut at, &raw mut key, none) } != 0 {
            // SAFETY: as above.
            match unsafe { (ffi::PyUnicode_CheckExact(key) != 0).then(|| borrow_text(key)) } {
                Some(Text::Ascii(b"metadata")) => others.has_metadata = true,
                Some(Text::Ascii(b"meta")) => others.has_meta = true,
                Some(_) => {}
                // A key of another type may be equal to any of them.
                None => others = Others::ALL,
            }
        }
        others
    })
}

/// Returns `own`, the title of a chunk; where it is missing or empty, the one in
/// the metadata, unless that is not a str. `get` is asked for no field that the
/// chunk does not have by `others`.
fn title_of<'py>(
    py: Python<'py>,
    own: Option<Bound<'py, PyAny>>,
    others: impl FnOnce() -> Others,
    get: impl Fn(&Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let given = |has: bool, name| {
        let found = if has { get(name)? } else { None };
        match found {
            Some(value) if !is_null(&value)? => Ok::<_, PyErr>(Some(value)),
            _ => Ok(None),
        }
    };
    if let Some(own) = own {
        let is_missing = match own.cast::<PyString>() {
            Ok(own) => text(own).is_ok_and(|own| own.is_empty()),
            Err(_) => is_null(&own)?,
        };
        if !is_missing {
            return Ok(Some(own));
        }
    }
    let others = others();
    let metadata = match given(others.has_metadata, intern!(py, "metadata"))? {
        None => given(others.has_meta, intern!(py, "meta"))?,
        metadata => metadata,
    };
    let title = match metadata {
        None => None,
        Some(metadata) => match metadata.cast_exact::<PyDict>() {
            Ok(metadata) => metadata.get_item(intern!(py, "title"))?,
            Err(_) if is_mapping(&metadata)? => {
                Some(metadata.call_method1(intern!(py, "get"), (intern!(py, "title"),))?)
            }
            Err(_) => None,
        },
    };
    Ok(title.filter(PyAnyMethods::is_instance_of::<PyString>))
}

/// Returns whether a value stands for none at all, as `_validate.is_null` does:
/// None, NaN or what pandas has for them.
fn is_null(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    if value.is_none() || value.is_exact_instance_of::<PyDict>() {
        return Ok(value.is_none());
    }
    if let Ok(value) = value.cast::<PyFloat>() {
        return Ok(value.value().is_nan());
    }
    let name = value.get_type().name()?;
    Ok(name == "NAType" || name == "NaTType")
}

fn is_mapping(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    static MAPPING: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    value.is_instance(MAPPING.import(value.py(), "collections.abc", "Mapping")?)
}

/// Returns where an object of a type not seen before holds its text.
fn access_of<'py>(chunk: &Bound<'py, PyAny>, with_title: bool) -> PyResult<Access<'py>> {
    if is_mapping(chunk)? {
        return Ok(Access::Mapping);
    }
    let kind = chunk.get_type();
    for name in TEXT_ATTRIBUTES {
        let text = Attribute::of(&kind, name);
        if text.get(chunk)?.is_some() {
            // Finding this out anew for each object would cost an exception
            // each.
            let has = |name| Ok::<_, PyErr>(with_title && chunk.getattr_opt(name)?.is_some());
            let others = Others {
                has_title: has("title")?,
                has_metadata: has("metadata")?,
                has_meta: has("meta")?,
            };
            return Ok(Access::Attributes { text, title: Attribute::of(&kind, "title"), others });
        }
    }
    Ok(Access::Nowhere)
}

fn fields_of<'py>(
    chunk: &Bound<'py, PyAny>,
    access: &Access<'py>,
    with_title: bool,
) -> PyResult<Option<Fields<'py>>> {
    match access {
        Access::Nowhere => Ok(None),
        Access::Mapping => {
            for key in TEXT_KEYS {
                if chunk.contains(key)? {
                    let text = chunk.get_item(key)?;
                    let get = |name: &Bound<'py, PyString>| {
                        chunk.call_method1(intern!(chunk.py(), "get"), (name,)).map(Some)
                    };
                    let title = if with_title {
                        title_of(
                            chunk.py(),
                            get(intern!(chunk.py(), "title"))?,
                            || Others::ALL,
                            get,
                        )?
                    } else {
                        None
                    };
                    return Ok(Some((text, title)));
                }
            }
            Ok(None)
        }
        Access::Attributes { text, title, others } => {
            let Some(text) = text.get(chunk)? else { return Ok(None) };
            let own = if others.has_title { title.get(chunk)? } else { None };
            let title = title_of(chunk.py(), own, || *others, |name| chunk.getattr_opt(name))?;
            Ok(Some((text, title)))
        }
    }
}

/// Returns the score of each chunk that has one as float64, NaN for the others,
/// and the indices of those chunks whose score must still be found out: it is
/// neither a float nor an int that a float holds, or reading it failed.
#[pyfunction]
#[pyo3(signature = (chunks: "tuple[object, ...]") -> "tuple[bytearray, list[int]]", text_signature = "(chunks)")]
pub(crate) fn read_scores<'py>(
    chunks: &Bound<'py, PyTuple>,
) -> PyResult<(Bound<'py, PyByteArray>, Vec<usize>)> {
    let py = chunks.py();
    guard(|| {
        let mut scores = vec![f64::NAN; chunks.len()];
        let mut others = Vec::new();
        let mut accesses = ByType::new();
        let name = intern!(py, "score");
        for (index, (chunk, place)) in chunks.iter_borrowed().zip(&mut scores).enumerate() {
            if chunk.is_instance_of::<PyString>() {
                continue;
            }
            let found = if let Ok(dict) = chunk.cast_exact::<PyDict>() {
                dict.get_item(name)
            } else {
                let decide = || {
                    Ok((!is_mapping(&chunk)?).then(|| Attribute::of(&chunk.get_type(), "score")))
                };
                match accesses.of(&chunk, decide) {
                    Ok(Some(attribute)) => attribute.get(&chunk),
                    Ok(None) => {
                        others.push(index);
                        continue;
                    }
                    Err(error) => Err(error),
                }
            };
            let Ok(found) = found else {
                // What fails first is found out in the order of the chunks.
                others.extend(index..chunks.len());
                break;
            };
            match found.map(|score| number(&score)) {
                None => {}
                Some(Some(score)) => *place = score,
                Some(None) => others.push(index),
            }
        }
        Ok((mutable_column(py, scores.into_iter())?, others))
    })
}

/// Returns a float that is not NaN, or an int that a float holds; NaN for None.
fn number(score: &Bound<'_, PyAny>) -> Option<f64> {
    const EXACT: i64 = 1 << 53;
    if let Ok(score) = score.cast_exact::<PyFloat>() {
        return Some(score.value()).filter(|score| !score.is_nan());
    }
    if score.is_none() {
        return Some(f64::NAN);
    }
    let score: i64 = score.cast_exact::<PyInt>().ok()?.extract().ok()?;
    #[allow(clippy::cast_precision_loss)] // a float holds it
    (-EXACT..=EXACT).contains(&score).then_some(score as f64)
}

/// Returns copies of chunks that have these scores, as objects of `kind`, a
/// class with slots.
#[pyfunction]
#[pyo3(signature = (kind: "type", chunks: "list[object]", scores: "list[float | None]") -> "list[object]", text_signature = "(kind, chunks, scores)")]
pub(crate) fn scored<'py>(
    kind: &Bound<'py, PyType>,
    chunks: &Bound<'py, PyList>,
    scores: &Bound<'py, PyList>,
) -> PyResult<Bound<'py, PyList>> {
    guard(|| {
        let (maker, name) = (Maker::of(kind)?, intern!(kind.py(), "score"));
        let copies = chunks.iter().zip(scores.iter());
        let copies = copies.map(|(chunk, score)| maker.copy(&chunk, name, &score));
        PyList::new(kind.py(), copies.collect::<PyResult<Vec<_>>>()?)
    })
}
