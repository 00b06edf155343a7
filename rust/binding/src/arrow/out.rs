//! Columns of ours, for other programs.
#![allow(unsafe_code)] // the structs are those of a C header

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;

use pyo3::ffi as python;
use pyo3::prelude::*;

use super::ffi::{Array, Schema, Stream};

/// Which items are not null, a bit for each.
#[derive(Default)]
pub(crate) struct Bits {
    bytes: Vec<u8>,
    len: usize,
    nulls: usize,
}

impl Bits {
    /// Adds an item.
    pub(crate) fn push(&mut self, is_there: bool) {
        if self.len.is_multiple_of(8) {
            self.bytes.push(0);
        }
        self.bytes[self.len / 8] |= u8::from(is_there) << (self.len % 8);
        self.len += 1;
        self.nulls += usize::from(!is_there);
    }
}

/// A column; a null has no bytes, a number 0 or no items.
pub(crate) enum Out {
    /// Texts: where each ends in the bytes, behind a 0; and the bytes.
    Texts(Bits, Vec<i64>, Vec<u8>),
    /// Numbers.
    Ints(Bits, Vec<i64>),
    /// Numbers of which some may be larger.
    Unsigned(Bits, Vec<u64>),
    /// Lists of numbers: where each ends, behind a 0; and the numbers.
    Lists(Bits, Vec<i32>, Vec<i64>),
}

/// The columns of some rows.
pub(crate) struct Frame {
    /// The number of rows.
    pub(crate) rows: usize,
    /// The columns, each of so many items.
    pub(crate) columns: Vec<Out>,
}

/// What a schema of ours holds.
struct SchemaParts {
    /// It is pointed to.
    name: CString,
    children: Vec<*mut Schema>,
}

/// Returns the type of a field.
fn schema(format: &'static CStr, name: &str, is_nullable: bool, children: Vec<Schema>) -> Schema {
    const NULLABLE: i64 = 2;
    let name = CString::new(name).unwrap_or_default();
    let children = children.into_iter().map(|child| Box::into_raw(Box::new(child)));
    let mut parts = Box::new(SchemaParts { name, children: children.collect() });
    Schema {
        format: format.as_ptr(),
        name: parts.name.as_ptr(),
        metadata: ptr::null(),
        flags: if is_nullable { NULLABLE } else { 0 },
        n_children: signed(parts.children.len()),
        children: parts.children.as_mut_ptr(),
        dictionary: ptr::null_mut(),
        release: Some(release_schema),
        private_data: Box::into_raw(parts).cast(),
    }
}

unsafe extern "C" fn release_schema(schema: *mut Schema) {
    // SAFETY: the consumer releases a schema that we made, once. A child that
    // it moved out is marked as released.
    unsafe {
        let parts = Box::from_raw((*schema).private_data.cast::<SchemaParts>());
        parts.children.iter().for_each(|&child| drop(Box::from_raw(child)));
        (*schema).release = None;
    }
}

/// What an array of ours holds.
struct ArrayParts {
    /// The owner of the buffers.
    _owner: Arc<Frame>,
    buffers: Vec<*const c_void>,
    children: Vec<*mut Array>,
}

fn array(
    owner: &Arc<Frame>,
    len: usize,
    nulls: usize,
    buffers: Vec<*const c_void>,
    children: Vec<Array>,
) -> Array {
    let children = children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect();
    let mut parts = Box::new(ArrayParts { _owner: Arc::clone(owner), buffers, children });
    Array {
        length: signed(len),
        null_count: signed(nulls),
        offset: 0,
        n_buffers: signed(parts.buffers.len()),
        n_children: signed(parts.children.len()),
        buffers: parts.buffers.as_mut_ptr(),
        children: parts.children.as_mut_ptr(),
        dictionary: ptr::null_mut(),
        release: Some(release_array),
        private_data: Box::into_raw(parts).cast(),
    }
}

unsafe extern "C" fn release_array(array: *mut Array) {
    // SAFETY: as for a schema.
    unsafe {
        let parts = Box::from_raw((*array).private_data.cast::<ArrayParts>());
        parts.children.iter().for_each(|&child| drop(Box::from_raw(child)));
        (*array).release = None;
    }
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Returns the type of the column.
fn schema_of(name: &str, column: &Out) -> Schema {
    match column {
        Out::Texts(..) => schema(c"U", name, true, Vec::new()),
        Out::Ints(..) => schema(c"l", name, true, Vec::new()),
        Out::Unsigned(..) => schema(c"L", name, true, Vec::new()),
        Out::Lists(..) => schema(c"+l", name, true, vec![schema(c"l", "item", false, Vec::new())]),
    }
}

/// Returns the type of all columns; `kinds` has one of each.
fn schema_of_all(names: &[String], kinds: &[Out]) -> Schema {
    let fields = names.iter().zip(kinds).map(|(name, kind)| schema_of(name, kind));
    schema(c"+s", "", false, fields.collect())
}

/// Returns the column where it lies.
fn array_of(owner: &Arc<Frame>, column: &Out) -> Array {
    let bits = |bits: &Bits| {
        if bits.nulls == 0 { ptr::null() } else { bits.bytes.as_ptr().cast() }
    };
    match column {
        Out::Texts(valid, ends, bytes) => {
            let buffers = vec![bits(valid), ends.as_ptr().cast(), bytes.as_ptr().cast()];
            array(owner, valid.len, valid.nulls, buffers, Vec::new())
        }
        Out::Ints(valid, numbers) => {
            let buffers = vec![bits(valid), numbers.as_ptr().cast()];
            array(owner, valid.len, valid.nulls, buffers, Vec::new())
        }
        Out::Unsigned(valid, numbers) => {
            let buffers = vec![bits(valid), numbers.as_ptr().cast()];
            array(owner, valid.len, valid.nulls, buffers, Vec::new())
        }
        Out::Lists(valid, ends, numbers) => {
            let inner = vec![ptr::null(), numbers.as_ptr().cast()];
            let items = array(owner, numbers.len(), 0, inner, Vec::new());
            let buffers = vec![bits(valid), ends.as_ptr().cast()];
            array(owner, valid.len, valid.nulls, buffers, vec![items])
        }
    }
}

impl Array {
    /// Returns an array of a type that has no items.
    pub(crate) fn empty(schema: &Schema) -> Self {
        let owner = Arc::new(Frame { rows: 0, columns: Vec::new() });
        let children: Vec<Self> = schema.children().map(Self::empty).collect();
        let mut empty = array(&owner, 0, 0, vec![ptr::null(); 3], children);
        if let Some(values) = schema.dictionary() {
            let values = Box::into_raw(Box::new(Self::empty(values)));
            empty.dictionary = values;
            // SAFETY: the parts are ours; with them the values are freed.
            unsafe { (*empty.private_data.cast::<ArrayParts>()).children.push(values) };
            let parts = empty.private_data.cast::<ArrayParts>();
            // SAFETY: as above. The list may have moved.
            empty.children = unsafe { (*parts).children.as_mut_ptr() };
        }
        empty
    }
}

/// What a stream of ours holds.
struct StreamParts {
    names: Arc<[String]>,
    kinds: Arc<[Out]>,
    frames: Vec<Arc<Frame>>,
    next: usize,
}

unsafe extern "C" fn get_schema(stream: *mut Stream, to: *mut Schema) -> c_int {
    // SAFETY: the consumer asks a stream that we made, for a place to write to.
    unsafe {
        let parts = &*(*stream).private_data.cast::<StreamParts>();
        ptr::write(to, schema_of_all(&parts.names, &parts.kinds));
    }
    0
}

unsafe extern "C" fn get_next(stream: *mut Stream, to: *mut Array) -> c_int {
    // SAFETY: as above. An array that is released is the end.
    unsafe {
        let parts = &mut *(*stream).private_data.cast::<StreamParts>();
        if let Some(frame) = parts.frames.get(parts.next) {
            parts.next += 1;
            let columns = frame.columns.iter().map(|column| array_of(frame, column)).collect();
            ptr::write(to, array(frame, frame.rows, 0, vec![ptr::null()], columns));
        } else {
            ptr::write_bytes(to, 0, 1);
        }
    }
    0
}

unsafe extern "C" fn get_last_error(_: *mut Stream) -> *const c_char {
    ptr::null() // there is none
}

unsafe extern "C" fn release_stream(stream: *mut Stream) {
    // SAFETY: the consumer releases a stream that we made, once.
    unsafe {
        drop(Box::from_raw((*stream).private_data.cast::<StreamParts>()));
        (*stream).release = None;
    }
}

/// Returns a capsule with the columns of all frames. `kinds` has one column of
/// each type, and may be empty.
pub(crate) fn stream_capsule<'py>(
    py: Python<'py>,
    names: &Arc<[String]>,
    kinds: &Arc<[Out]>,
    frames: &[Arc<Frame>],
) -> PyResult<Bound<'py, PyAny>> {
    let parts = StreamParts {
        names: Arc::clone(names),
        kinds: Arc::clone(kinds),
        frames: frames.to_vec(),
        next: 0,
    };
    let stream = Stream {
        get_schema: Some(get_schema),
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release_stream),
        private_data: Box::into_raw(Box::new(parts)).cast(),
    };
    capsule(py, stream, c"arrow_array_stream", free::<Stream>)
}

/// Returns a capsule with the type of all columns.
pub(crate) fn schema_capsule<'py>(
    py: Python<'py>,
    names: &[String],
    kinds: &[Out],
) -> PyResult<Bound<'py, PyAny>> {
    capsule(py, schema_of_all(names, kinds), c"arrow_schema", free::<Schema>)
}

fn capsule<'py, T>(
    py: Python<'py>,
    holds: T,
    name: &'static CStr,
    free: unsafe extern "C" fn(*mut python::PyObject),
) -> PyResult<Bound<'py, PyAny>> {
    let place = Box::into_raw(Box::new(holds));
    // SAFETY: the pointer and the name stay as they are until the capsule is
    // freed; the answer is a new reference or none with an error.
    unsafe {
        let capsule = python::PyCapsule_New(place.cast(), name.as_ptr(), Some(free));
        if capsule.is_null() {
            drop(Box::from_raw(place));
        }
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

/// Frees what a capsule holds, and what was not moved out of it.
unsafe extern "C" fn free<T>(capsule: *mut python::PyObject) {
    // SAFETY: a capsule of ours, which nobody uses any more.
    unsafe {
        let place = python::PyCapsule_GetPointer(capsule, python::PyCapsule_GetName(capsule));
        drop(Box::from_raw(place.cast::<T>()));
    }
}
