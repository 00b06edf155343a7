//! Columns of other programs, by the Arrow C data interface and its capsules.
//!
//! Strings are read where they lie. What a producer says about its own memory is
//! taken as it is, as the interface has no sizes of buffers; what can be checked
//! is: offsets go up and end with the last one, texts are UTF-8, and no item is
//! read behind the last one.

mod column;
mod ffi;
mod out;
mod texts;

pub(crate) use column::{Ints, Lists, Misread, Numbers, Slots, Strings, is_null, type_name};
pub(crate) use ffi::{Array, Failure, Import, Schema, import};
pub(crate) use out::{Bits, Frame, Out, schema_capsule, stream_capsule};
pub(crate) use texts::{ArrowTexts, Unread};
