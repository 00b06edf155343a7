//! The items of a column, where they lie.
#![allow(unsafe_code)] // buffers come as bare pointers

use std::ops::Range;
use std::{ptr, slice, str};

use super::ffi::{Array, Schema};

/// Why an item cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misread {
    /// Its text is not UTF-8.
    NotUtf8,
    /// The offsets of the producer are none.
    Offsets,
}

/// Returns what the type of a column is called in errors.
pub(crate) fn type_name(schema: &Schema) -> &'static str {
    if schema.dictionary().is_some() {
        return "dictionary";
    }
    match schema.format() {
        "n" => "null",
        "b" => "bool",
        "c" => "int8",
        "C" => "uint8",
        "s" => "int16",
        "S" => "uint16",
        "i" => "int32",
        "I" => "uint32",
        "l" => "int64",
        "L" => "uint64",
        "e" => "float16",
        "f" => "float32",
        "g" => "float64",
        "u" | "U" | "vu" => "string",
        "z" | "Z" | "vz" => "binary",
        "+s" => "struct",
        "+l" | "+L" | "+vl" | "+vL" => "list",
        "+m" => "map",
        format if format.starts_with("+w:") => "list",
        format if format.starts_with('t') => "time",
        format if format.starts_with("d:") => "decimal",
        _ => "another type",
    }
}

/// Returns whether the type of a column has nulls alone.
pub(crate) fn is_null(schema: &Schema) -> bool {
    schema.format() == "n" && schema.dictionary().is_none()
}

/// A part of the memory of a column, which has a number of items.
#[derive(Clone, Copy)]
struct Buffer {
    start: *const u8,
    items: usize,
}

impl Buffer {
    /// Returns the buffer, which holds so many items; None if it is not there.
    fn of(array: &Array, place: usize, items: usize) -> Option<Self> {
        let start = array.buffer(place);
        (items == 0 || !start.is_null()).then_some(Self { start, items })
    }

    /// Returns the item at `place`.
    ///
    /// # Safety
    ///
    /// The producer's memory must be alive, and hold items of that type.
    unsafe fn get<T: Copy>(self, place: usize) -> T {
        assert!(place < self.items, "an item behind the last one");
        // SAFETY: by this function's contract; memory need not be aligned.
        unsafe { ptr::read_unaligned(self.start.cast::<T>().add(place)) }
    }
}

/// Which items of a column are null.
#[derive(Clone, Copy)]
pub(crate) struct Slots {
    bits: *const u8,
    offset: usize,
    len: usize,
}

// SAFETY: the memory is read only, and its owner stands beside each column.
unsafe impl Send for Slots {}
// SAFETY: as above.
unsafe impl Sync for Slots {}

impl Slots {
    /// Reads a column that has a buffer of bits.
    pub(crate) fn of(array: &Array) -> Self {
        Self { bits: array.buffer(0), offset: array.offset(), len: array.len() }
    }

    /// Returns whether there is an item at `place` that is not null.
    pub(crate) fn has(&self, place: usize) -> bool {
        if place >= self.len {
            return false;
        }
        if self.bits.is_null() {
            return true;
        }
        let bit = self.offset + place;
        // SAFETY: there is a bit for each item.
        unsafe { *self.bits.add(bit / 8) >> (bit % 8) & 1 == 1 }
    }
}

/// How wide the numbers of a buffer are.
#[derive(Clone, Copy)]
enum Width {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
}

/// A column of whole numbers.
#[derive(Clone, Copy)]
pub(crate) struct Ints {
    slots: Slots,
    values: Buffer,
    width: Width,
}

// SAFETY: as for `Slots`.
unsafe impl Send for Ints {}
// SAFETY: as above.
unsafe impl Sync for Ints {}

impl Ints {
    /// Reads the column; None if it has another type.
    pub(crate) fn of(schema: &Schema, array: &Array) -> Option<Self> {
        schema.dictionary().is_none().then(|| Self::keys(schema, array)).flatten()
    }

    /// Reads the column, or the keys of a dictionary.
    fn keys(schema: &Schema, array: &Array) -> Option<Self> {
        let width = match schema.format() {
            "c" => Width::I8,
            "C" => Width::U8,
            "s" => Width::I16,
            "S" => Width::U16,
            "i" => Width::I32,
            "I" => Width::U32,
            "l" => Width::I64,
            "L" => Width::U64,
            _ => return None,
        };
        let slots = Slots::of(array);
        Some(Self { slots, values: Buffer::of(array, 1, slots.offset + slots.len)?, width })
    }

    /// Returns whether numbers may be too large for an int64.
    pub(crate) fn is_unsigned(&self) -> bool {
        matches!(self.width, Width::U64)
    }

    /// Returns the number at `place`; None for null.
    pub(crate) fn get(&self, place: usize) -> Option<i128> {
        if !self.slots.has(place) {
            return None;
        }
        let at = self.slots.offset + place;
        // SAFETY: the width is that of the type, and the owner is alive.
        unsafe {
            Some(match self.width {
                Width::I8 => self.values.get::<i8>(at).into(),
                Width::U8 => self.values.get::<u8>(at).into(),
                Width::I16 => self.values.get::<i16>(at).into(),
                Width::U16 => self.values.get::<u16>(at).into(),
                Width::I32 => self.values.get::<i32>(at).into(),
                Width::U32 => self.values.get::<u32>(at).into(),
                Width::I64 => self.values.get::<i64>(at).into(),
                Width::U64 => self.values.get::<u64>(at).into(),
            })
        }
    }
}

/// A column of numbers of any kind.
#[derive(Clone, Copy)]
pub(crate) enum Numbers {
    /// Nulls alone.
    Null,
    /// Whole numbers.
    Whole(Ints),
    /// Floats of four bytes.
    Single(Floats),
    /// Floats of eight bytes.
    Double(Floats),
    /// Decimals of 16 bytes, and how many of their digits are a fraction.
    Decimal(Floats, i32),
}

/// A column of floats, or of decimals.
#[derive(Clone, Copy)]
pub(crate) struct Floats {
    slots: Slots,
    values: Buffer,
}

// SAFETY: as for `Slots`.
unsafe impl Send for Floats {}
// SAFETY: as above.
unsafe impl Sync for Floats {}

impl Numbers {
    /// Reads the column; None if it has another type.
    pub(crate) fn of(schema: &Schema, array: &Array) -> Option<Self> {
        if schema.dictionary().is_some() {
            return None;
        }
        let floats = || {
            let slots = Slots::of(array);
            let values = Buffer::of(array, 1, slots.offset + slots.len)?;
            Some(Floats { slots, values })
        };
        match schema.format() {
            "n" => Some(Self::Null),
            "f" => floats().map(Self::Single),
            "g" => floats().map(Self::Double),
            format if format.starts_with("d:") => {
                let mut sizes = format["d:".len()..].split(',').skip(1);
                let scale = sizes.next()?.parse().ok()?;
                sizes.next().is_none_or(|width| width == "128").then_some(())?;
                Some(Self::Decimal(floats()?, scale))
            }
            _ => Ints::of(schema, array).map(Self::Whole),
        }
    }

    /// Returns the number at `place`; None for null.
    pub(crate) fn get(&self, place: usize) -> Option<f64> {
        let floats = match self {
            Self::Null => return None,
            #[allow(clippy::cast_precision_loss)] // as Python's float() does
            Self::Whole(ints) => return ints.get(place).map(|number| number as f64),
            Self::Single(floats) | Self::Double(floats) | Self::Decimal(floats, _) => floats,
        };
        if !floats.slots.has(place) {
            return None;
        }
        let at = floats.slots.offset + place;
        // SAFETY: the width is that of the type, and the owner is alive.
        unsafe {
            Some(match self {
                Self::Single(_) => floats.values.get::<f32>(at).into(),
                // Read as it is written, so that it is rounded once.
                Self::Decimal(_, scale) => {
                    format!("{}e{}", floats.values.get::<i128>(at), -scale).parse().ok()?
                }
                _ => floats.values.get::<f64>(at),
            })
        }
    }
}

/// A column of texts.
pub(crate) struct Strings {
    slots: Slots,
    kind: Kind,
}

enum Kind {
    Null,
    /// Offsets of four bytes, and the bytes.
    Small(Buffer, *const u8),
    /// Offsets of eight bytes, and the bytes.
    Large(Buffer, *const u8),
    /// Views, where the buffers of long texts start, and their sizes.
    Views(Buffer, Vec<*const u8>, Buffer),
    /// Keys, and the texts that they are for.
    Keys(Ints, Box<Strings>),
}

// SAFETY: as for `Slots`.
unsafe impl Send for Strings {}
// SAFETY: as above.
unsafe impl Sync for Strings {}

impl Strings {
    /// Reads the column; None if it has another type.
    pub(crate) fn of(schema: &Schema, array: &Array) -> Option<Self> {
        let mut slots = Slots::of(array);
        if let Some(values) = schema.dictionary() {
            let values = Self::of(values, array.dictionary()?)?;
            let kind = Kind::Keys(Ints::keys(schema, array)?, Box::new(values));
            return Some(Self { slots, kind });
        }
        let items = slots.offset + slots.len;
        let offsets = if slots.len == 0 { 0 } else { items + 1 };
        let kind = match schema.format() {
            "n" => {
                slots.bits = ptr::null();
                Kind::Null
            }
            "u" => Kind::Small(Buffer::of(array, 1, offsets)?, array.buffer(2)),
            "U" => Kind::Large(Buffer::of(array, 1, offsets)?, array.buffer(2)),
            "vu" => {
                // Bits, views, buffers, and the sizes of the buffers.
                let buffers = array.buffers().checked_sub(3)?;
                let starts = (2..2 + buffers).map(|place| array.buffer(place)).collect();
                let sizes = Buffer::of(array, 2 + buffers, buffers)?;
                Kind::Views(Buffer::of(array, 1, items)?, starts, sizes)
            }
            _ => return None,
        };
        Some(Self { slots, kind })
    }

    /// Returns the number of items.
    pub(crate) fn len(&self) -> usize {
        self.slots.len
    }

    /// Returns the bytes at `place`; None for null.
    pub(crate) fn bytes(&self, place: usize) -> Result<Option<&[u8]>, Misread> {
        if !self.slots.has(place) {
            return Ok(None);
        }
        let at = self.slots.offset + place;
        let last = self.slots.offset + self.slots.len;
        // SAFETY: the widths are those of the type, and the owner is alive as
        // long as `self`.
        unsafe {
            match &self.kind {
                Kind::Null => Ok(None),
                Kind::Small(offsets, data) => {
                    let ends = [at, at + 1, last].map(|place| offsets.get::<i32>(place).into());
                    between(*data, ends).map(Some)
                }
                Kind::Large(offsets, data) => {
                    let ends = [at, at + 1, last].map(|place| offsets.get::<i64>(place));
                    between(*data, ends).map(Some)
                }
                Kind::Views(views, buffers, sizes) => view(*views, at, buffers, *sizes).map(Some),
                Kind::Keys(keys, values) => match keys.get(place) {
                    None => Ok(None),
                    Some(key) => {
                        let key = usize::try_from(key).ok().filter(|&key| key < values.len());
                        values.bytes(key.ok_or(Misread::Offsets)?)
                    }
                },
            }
        }
    }

    /// Returns the text at `place`; None for null.
    pub(crate) fn get(&self, place: usize) -> Result<Option<&str>, Misread> {
        let Some(bytes) = self.bytes(place)? else { return Ok(None) };
        str::from_utf8(bytes).map(Some).map_err(|_| Misread::NotUtf8)
    }
}

/// Returns the bytes from one offset to the next, which is at most the last.
///
/// # Safety
///
/// The memory must have as many bytes as the last offset says.
unsafe fn between<'a>(data: *const u8, [start, end, last]: [i64; 3]) -> Result<&'a [u8], Misread> {
    let start = usize::try_from(start).map_err(|_| Misread::Offsets)?;
    let end = usize::try_from(end.min(last)).map_err(|_| Misread::Offsets)?;
    let len = end.checked_sub(start).ok_or(Misread::Offsets)?;
    if len == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(Misread::Offsets);
    }
    // SAFETY: by this function's contract.
    Ok(unsafe { slice::from_raw_parts(data.add(start), len) })
}

/// Returns the bytes of a view: in itself where they are few, else in a buffer.
///
/// # Safety
///
/// The buffers must have the sizes that the producer says.
unsafe fn view<'a>(
    views: Buffer,
    at: usize,
    buffers: &[*const u8],
    sizes: Buffer,
) -> Result<&'a [u8], Misread> {
    const INLINE: usize = 12;
    // SAFETY: by this function's contract; a view has four numbers.
    unsafe {
        let [len, _, buffer, offset] = views.get::<[i32; 4]>(at);
        let len = usize::try_from(len).map_err(|_| Misread::Offsets)?;
        if len <= INLINE {
            return Ok(slice::from_raw_parts(views.start.add(16 * at + 4), len));
        }
        let buffer = usize::try_from(buffer).map_err(|_| Misread::Offsets)?;
        let offset = usize::try_from(offset).map_err(|_| Misread::Offsets)?;
        let start = buffers.get(buffer).copied().filter(|start| !start.is_null());
        let start = start.ok_or(Misread::Offsets)?;
        let size = usize::try_from(sizes.get::<i64>(buffer)).map_err(|_| Misread::Offsets)?;
        if offset.checked_add(len).is_none_or(|end| end > size) {
            return Err(Misread::Offsets);
        }
        Ok(slice::from_raw_parts(start.add(offset), len))
    }
}

/// A column of lists: where the items of each are in the column of items.
pub(crate) struct Lists {
    slots: Slots,
    kind: ListKind,
    /// The number of items.
    items: usize,
}

enum ListKind {
    Small(Buffer),
    Large(Buffer),
    SmallViews(Buffer, Buffer),
    LargeViews(Buffer, Buffer),
    Fixed(usize),
}

// SAFETY: as for `Slots`.
unsafe impl Send for Lists {}
// SAFETY: as above.
unsafe impl Sync for Lists {}

impl Lists {
    /// Reads the column; None if it has another type. The items are its child.
    pub(crate) fn of(schema: &Schema, array: &Array) -> Option<Self> {
        if schema.dictionary().is_some() {
            return None;
        }
        let slots = Slots::of(array);
        let count = slots.offset + slots.len;
        let offsets = if slots.len == 0 { 0 } else { count + 1 };
        let kind = match schema.format() {
            "+l" => ListKind::Small(Buffer::of(array, 1, offsets)?),
            "+L" => ListKind::Large(Buffer::of(array, 1, offsets)?),
            "+vl" => {
                ListKind::SmallViews(Buffer::of(array, 1, count)?, Buffer::of(array, 2, count)?)
            }
            "+vL" => {
                ListKind::LargeViews(Buffer::of(array, 1, count)?, Buffer::of(array, 2, count)?)
            }
            format => ListKind::Fixed(format.strip_prefix("+w:")?.parse().ok()?),
        };
        Some(Self { slots, kind, items: array.child(0)?.len() })
    }

    /// Returns the places of the items of the list at `place`; None for null.
    pub(crate) fn get(&self, place: usize) -> Result<Option<Range<usize>>, Misread> {
        if !self.slots.has(place) {
            return Ok(None);
        }
        let at = self.slots.offset + place;
        // SAFETY: the widths are those of the type, and the owner is alive.
        let (start, end) = unsafe {
            match &self.kind {
                ListKind::Small(offsets) => {
                    (offsets.get::<i32>(at).into(), offsets.get::<i32>(at + 1).into())
                }
                ListKind::Large(offsets) => (offsets.get::<i64>(at), offsets.get::<i64>(at + 1)),
                ListKind::SmallViews(offsets, sizes) => {
                    let start = i64::from(offsets.get::<i32>(at));
                    (start, start + i64::from(sizes.get::<i32>(at)))
                }
                ListKind::LargeViews(offsets, sizes) => {
                    let start = offsets.get::<i64>(at);
                    (start, start.saturating_add(sizes.get::<i64>(at)))
                }
                ListKind::Fixed(size) => {
                    let start = i64::try_from(at * size).unwrap_or(i64::MAX);
                    (start, start.saturating_add(i64::try_from(*size).unwrap_or(i64::MAX)))
                }
            }
        };
        let start = usize::try_from(start).map_err(|_| Misread::Offsets)?;
        let end = usize::try_from(end).map_err(|_| Misread::Offsets)?;
        if start > end || end > self.items {
            return Err(Misread::Offsets);
        }
        Ok(Some(start..end))
    }
}
