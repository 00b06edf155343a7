//! Fields that stand in the slots of objects: read and set where they lie.
#![allow(unsafe_code)] // a slot has no safe interface

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple, PyType};

/// A slot of the objects of a type: where the field that a class names in
/// `__slots__` lies in each of them.
#[derive(Clone)]
pub(crate) struct Slot<'py> {
    /// The descriptor, which keeps its member alive.
    descriptor: Bound<'py, PyAny>,
}

impl<'py> Slot<'py> {
    /// Returns the slot that the attribute `name` of the objects of `kind` is
    /// read from; None where anything else decides what it is.
    pub(crate) fn of(kind: &Bound<'py, PyType>, name: &Bound<'py, PyString>) -> Option<Self> {
        let py = kind.py();
        let is_plain = looks_up_as(kind, &py.get_type::<PyAny>())
            && looks_up_as(&kind.get_type(), &py.get_type::<PyType>());
        if !is_plain {
            return None;
        }
        let descriptor = kind.getattr_opt(name).ok()??;
        // SAFETY: the type of a descriptor tells what it is; one of members has
        // this layout, and the class and the member that it names are alive.
        unsafe {
            if ffi::Py_TYPE(descriptor.as_ptr()) != &raw mut ffi::PyMemberDescr_Type {
                return None;
            }
            let own = &*descriptor.as_ptr().cast::<ffi::PyMemberDescrObject>();
            let is_own = ffi::PyType_IsSubtype(kind.as_type_ptr(), own.d_common.d_type) != 0;
            let member = &*own.d_member.cast::<ffi::PyMemberDef>();
            let is_object = member.type_code == ffi::Py_T_OBJECT_EX && member.flags == 0;
            (is_own && is_object).then_some(Self { descriptor })
        }
    }

    fn member(&self) -> *mut ffi::PyMemberDef {
        // SAFETY: it is a descriptor of a member, as `of` has seen.
        unsafe { (*self.descriptor.as_ptr().cast::<ffi::PyMemberDescrObject>()).d_member.cast() }
    }

    /// Returns the field of `object`, whose type must be that of the slot. It
    /// is an `AttributeError` if the slot is not set.
    #[inline]
    pub(crate) fn get(&self, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: the object has that slot, as its type is the one that the slot
        // was found for; the answer is a new reference or none with an error.
        unsafe {
            let field = ffi::PyMember_GetOne(object.as_ptr().cast(), self.member());
            Bound::from_owned_ptr_or_err(object.py(), field)
        }
    }

    /// Sets the field of `object`, whose type must be that of the slot.
    #[inline]
    fn set(&self, object: &Bound<'py, PyAny>, field: &Bound<'py, PyAny>) -> PyResult<()> {
        // SAFETY: as above; the field is counted by the object too.
        let code =
            unsafe { ffi::PyMember_SetOne(object.as_ptr().cast(), self.member(), field.as_ptr()) };
        if code == 0 { Ok(()) } else { Err(PyErr::fetch(object.py())) }
    }
}

/// Returns whether the attributes of objects of one type are looked up as those
/// of another.
fn looks_up_as(one: &Bound<'_, PyType>, other: &Bound<'_, PyType>) -> bool {
    // SAFETY: a type that is alive, whose field is set since it was made.
    let address = |kind: &Bound<'_, PyType>| unsafe {
        (*kind.as_type_ptr()).tp_getattro.map(|look_up| look_up as usize)
    };
    address(one) == address(other)
}

/// Makes objects of a class whose fields all stand in slots, as a dataclass
/// with `slots=True` does, without calling it.
pub(crate) struct Maker<'py> {
    kind: Bound<'py, PyType>,
    slots: Vec<(Bound<'py, PyString>, Slot<'py>)>,
}

impl<'py> Maker<'py> {
    /// Returns the maker of objects of `kind`, whose fields are `__slots__`.
    pub(crate) fn of(kind: &Bound<'py, PyType>) -> PyResult<Self> {
        let names = kind.getattr("__slots__")?.cast_into::<PyTuple>()?;
        let slot = |name: Bound<'py, PyAny>| {
            let name = name.cast_into::<PyString>().ok()?;
            let slot = Slot::of(kind, &name)?;
            Some((name, slot))
        };
        let slots = names.iter().map(slot).collect::<Option<Vec<_>>>();
        let slots = slots.ok_or_else(|| PyTypeError::new_err("not all fields are slots"))?;
        Ok(Self { kind: kind.clone(), slots })
    }

    /// Returns an object whose fields are still unset.
    #[inline]
    fn bare(&self) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: a type that is alive; the answer is a new reference or none
        // with an error.
        unsafe {
            let made = ffi::PyType_GenericAlloc(self.kind.as_type_ptr(), 0);
            Bound::from_owned_ptr_or_err(self.kind.py(), made)
        }
    }

    /// Returns a new object with these fields, in the order of the class.
    #[inline]
    pub(crate) fn make(
        &self,
        fields: impl IntoIterator<Item = Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let made = self.bare()?;
        for ((_, slot), field) in self.slots.iter().zip(fields) {
            slot.set(&made, &field)?;
        }
        Ok(made)
    }

    /// Returns a new object with the fields of another, which may be of a
    /// subclass, but for the one of that name.
    pub(crate) fn copy(
        &self,
        of: &Bound<'py, PyAny>,
        but: &Bound<'py, PyString>,
        field: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let made = self.bare()?;
        let is_own = of.get_type_ptr() == self.kind.as_type_ptr();
        for (name, slot) in &self.slots {
            if name.is(but) {
                slot.set(&made, field)?;
            } else if is_own {
                slot.set(&made, &slot.get(of)?)?;
            } else {
                slot.set(&made, &of.getattr(name)?)?;
            }
        }
        Ok(made)
    }
}
