//! The structs of the Arrow C data interface, and who frees what they hold.
#![allow(unsafe_code)] // the structs are those of a C header

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;

use pyo3::exceptions::{PyException, PyMemoryError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use pyo3::{ffi as python, intern};

/// `struct ArrowSchema`: the type of a column.
#[repr(C)]
pub(crate) struct Schema {
    pub(super) format: *const c_char,
    pub(super) name: *const c_char,
    pub(super) metadata: *const c_char,
    pub(super) flags: i64,
    pub(super) n_children: i64,
    pub(super) children: *mut *mut Schema,
    pub(super) dictionary: *mut Schema,
    pub(super) release: Option<unsafe extern "C" fn(*mut Schema)>,
    pub(super) private_data: *mut c_void,
}

/// `struct ArrowArray`: the buffers of a column.
#[repr(C)]
pub(crate) struct Array {
    pub(super) length: i64,
    pub(super) null_count: i64,
    pub(super) offset: i64,
    pub(super) n_buffers: i64,
    pub(super) n_children: i64,
    pub(super) buffers: *mut *const c_void,
    pub(super) children: *mut *mut Array,
    pub(super) dictionary: *mut Array,
    pub(super) release: Option<unsafe extern "C" fn(*mut Array)>,
    pub(super) private_data: *mut c_void,
}

/// `struct ArrowArrayStream`: arrays of one type, one after another.
#[repr(C)]
pub(crate) struct Stream {
    pub(super) get_schema: Option<unsafe extern "C" fn(*mut Stream, *mut Schema) -> c_int>,
    pub(super) get_next: Option<unsafe extern "C" fn(*mut Stream, *mut Array) -> c_int>,
    pub(super) get_last_error: Option<unsafe extern "C" fn(*mut Stream) -> *const c_char>,
    pub(super) release: Option<unsafe extern "C" fn(*mut Stream)>,
    pub(super) private_data: *mut c_void,
}

/// A struct that its producer frees.
trait Released: Sized {
    /// The name of the capsule that holds one.
    const NAME: &'static CStr;

    /// Returns whether there is nothing in it: it was moved out, or is the end.
    fn is_released(&self) -> bool;

    /// Marks it as moved out.
    fn forget(&mut self);
}

macro_rules! released {
    ($($kind:ident $name:literal),*) => {$(
        impl Released for $kind {
            const NAME: &'static CStr = $name;

            fn is_released(&self) -> bool {
                self.release.is_none()
            }

            fn forget(&mut self) {
                self.release = None;
            }
        }

        impl Drop for $kind {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: it was not released before, and is not used again.
                    unsafe { release(self) }
                }
            }
        }

        // SAFETY: nobody writes to it; the interface lets any thread read and
        // release it.
        unsafe impl Send for $kind {}
        // SAFETY: as above.
        unsafe impl Sync for $kind {}
    )*};
}

released!(Schema c"arrow_schema", Array c"arrow_array", Stream c"arrow_array_stream");

impl Schema {
    /// Returns the format, which names the type; empty if it is not a text.
    pub(crate) fn format(&self) -> &str {
        // SAFETY: of a schema that is not released it is a C string.
        unsafe { text_of(self.format) }
    }

    /// Returns the name of the field; empty if it has none.
    pub(crate) fn name(&self) -> &str {
        // SAFETY: as above, or null.
        unsafe { text_of(self.name) }
    }

    /// Returns the fields of a struct, or the items of a list.
    pub(crate) fn children(&self) -> impl ExactSizeIterator<Item = &Schema> {
        // SAFETY: there are so many pointers, each to a schema that lives as
        // long as this one.
        (0..count(self.n_children)).map(|place| unsafe { &**self.children.add(place) })
    }

    /// Returns the type of the values, if the column is one of keys.
    pub(crate) fn dictionary(&self) -> Option<&Schema> {
        // SAFETY: null, or a schema that lives as long as this one.
        unsafe { self.dictionary.as_ref() }
    }
}

impl Array {
    /// Returns the number of items.
    pub(crate) fn len(&self) -> usize {
        count(self.length)
    }

    /// Returns how many items of the buffers come before the first one.
    pub(crate) fn offset(&self) -> usize {
        count(self.offset)
    }

    /// Returns how many buffers there are.
    pub(super) fn buffers(&self) -> usize {
        count(self.n_buffers)
    }

    /// Returns where a buffer starts; null for one that is not there.
    pub(super) fn buffer(&self, place: usize) -> *const u8 {
        if place >= self.buffers() || self.buffers.is_null() {
            return ptr::null();
        }
        // SAFETY: there are more pointers than that.
        unsafe { (*self.buffers.add(place)).cast() }
    }

    /// Returns a field of a struct, or the items of a list.
    pub(crate) fn child(&self, place: usize) -> Option<&Array> {
        if place >= count(self.n_children) {
            return None;
        }
        // SAFETY: there are more pointers than that, each to an array that lives
        // as long as this one.
        unsafe { (*self.children.add(place)).as_ref() }
    }

    /// Returns the values of a column of keys.
    pub(crate) fn dictionary(&self) -> Option<&Array> {
        // SAFETY: null, or an array that lives as long as this one.
        unsafe { self.dictionary.as_ref() }
    }
}

fn count(number: i64) -> usize {
    usize::try_from(number).unwrap_or_default()
}

/// # Safety
///
/// It is null, or a C string that outlives the answer.
unsafe fn text_of<'a>(text: *const c_char) -> &'a str {
    if text.is_null() {
        return "";
    }
    // SAFETY: by this function's contract.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or_default()
}

/// Why nothing could be read from an object.
pub(crate) enum Failure {
    /// It has none of the two methods, or they answer something else.
    NoArrow,
    /// The producer failed, and says why.
    Producer(String),
}

/// What an object holds: a type, and arrays of it.
pub(crate) struct Import {
    /// The type of all arrays.
    pub(crate) schema: Schema,
    /// The arrays, one after another.
    pub(crate) arrays: Vec<Array>,
}

/// Takes what `__arrow_c_stream__` or `__arrow_c_array__` of an object answers.
/// A producer may run while the interpreter's lock is released.
pub(crate) fn import(object: &Bound<'_, PyAny>) -> PyResult<Result<Import, Failure>> {
    let py = object.py();
    if let Some(method) = object.getattr_opt(intern!(py, "__arrow_c_stream__"))? {
        let answer = match asked(&method)? {
            Ok(answer) => answer,
            Err(why) => return Ok(Err(Failure::Producer(why))),
        };
        let Some(stream) = taken::<Stream>(&answer) else { return Ok(Err(Failure::NoArrow)) };
        return Ok(py.detach(|| drained(stream)));
    }
    let Some(method) = object.getattr_opt(intern!(py, "__arrow_c_array__"))? else {
        return Ok(Err(Failure::NoArrow));
    };
    let answer = match asked(&method)? {
        Ok(answer) => answer,
        Err(why) => return Ok(Err(Failure::Producer(why))),
    };
    let Ok(pair) = answer.cast::<PyTuple>() else { return Ok(Err(Failure::NoArrow)) };
    if pair.len() != 2 {
        return Ok(Err(Failure::NoArrow));
    }
    let (schema, array) = (taken::<Schema>(&pair.get_item(0)?), taken::<Array>(&pair.get_item(1)?));
    Ok(match (schema, array) {
        (Some(schema), Some(array)) => Ok(Import { schema, arrays: vec![array] }),
        _ => Err(Failure::NoArrow),
    })
}

/// Returns what a method of a producer answers, or why it failed.
fn asked<'py>(method: &Bound<'py, PyAny>) -> PyResult<Result<Bound<'py, PyAny>, String>> {
    match method.call0() {
        Ok(answer) => Ok(Ok(answer)),
        Err(error) => {
            let py = method.py();
            if !error.is_instance_of::<PyException>(py) || error.is_instance_of::<PyMemoryError>(py)
            {
                return Err(error);
            }
            let said = error.value(py).str()?;
            // A lone surrogate is no part of a string here.
            let said = said.call_method1(intern!(py, "encode"), ("utf-8", "backslashreplace"))?;
            Ok(Err(String::from_utf8_lossy(said.cast::<PyBytes>()?.as_bytes()).into_owned()))
        }
    }
}

/// Moves a struct out of its capsule; None if there is none in it.
fn taken<T: Released>(capsule: &Bound<'_, PyAny>) -> Option<T> {
    // SAFETY: a capsule of that name holds such a struct, which the consumer
    // moves out by copying it and marking the original as released.
    unsafe {
        if python::PyCapsule_IsValid(capsule.as_ptr(), T::NAME.as_ptr()) == 0 {
            return None;
        }
        let place = python::PyCapsule_GetPointer(capsule.as_ptr(), T::NAME.as_ptr()).cast::<T>();
        let found = place.as_mut()?;
        if found.is_released() {
            return None;
        }
        let taken = ptr::read(place);
        found.forget();
        Some(taken)
    }
}

/// Returns all arrays of a stream.
fn drained(mut stream: Stream) -> Result<Import, Failure> {
    let mut schema = None;
    let mut arrays = Vec::new();
    if let (Some(get_schema), Some(get_next)) = (stream.get_schema, stream.get_next) {
        // SAFETY: the stream was not released. A callback that answers 0 has
        // written a struct; for the end it is one that is released.
        unsafe {
            let mut place = MaybeUninit::<Schema>::zeroed();
            if get_schema(&raw mut stream, place.as_mut_ptr()) != 0 {
                return Err(failed(&mut stream));
            }
            schema = Some(place.assume_init()).filter(|schema| !schema.is_released());
            loop {
                let mut place = MaybeUninit::<Array>::zeroed();
                if get_next(&raw mut stream, place.as_mut_ptr()) != 0 {
                    return Err(failed(&mut stream));
                }
                let array = place.assume_init();
                if array.is_released() {
                    break;
                }
                arrays.push(array);
            }
        }
    }
    schema.map(|schema| Import { schema, arrays }).ok_or(Failure::NoArrow)
}

/// Returns what a stream says about its last failure.
fn failed(stream: &mut Stream) -> Failure {
    let message = stream.get_last_error.map_or("", |get_last_error| {
        // SAFETY: the answer is null or a C string, until the next call.
        unsafe { text_of(get_last_error(&raw mut *stream)) }
    });
    Failure::Producer(message.to_owned())
}
