//! Python strings as the core's texts and back.
#![allow(unsafe_code)] // the storage of a str has no safe interface

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{OnceLock, mpsc};
use std::time::{Duration, Instant};
use std::{slice, thread};

use budgeteer::Text;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyString};

/// Returns the text of a str where it lies, without copying or encoding it.
///
/// # Safety
///
/// `string` must be a str, ready (see [`make_ready`]), and must stay alive as
/// long as the text is used. A str never changes, so no lock is needed.
pub(crate) unsafe fn borrow_text<'a>(string: *mut ffi::PyObject) -> Text<'a> {
    // SAFETY: by this function's contract. The storage holds LENGTH units of
    // the size that KIND tells, aligned for it.
    unsafe {
        let length = ffi::PyUnicode_GET_LENGTH(string).cast_unsigned();
        let data = ffi::PyUnicode_DATA(string);
        match ffi::PyUnicode_KIND(string) {
            ffi::PyUnicode_1BYTE_KIND => {
                let units = slice::from_raw_parts(data.cast::<u8>(), length);
                if ffi::PyUnicode_IS_ASCII(string) == 0 {
                    Text::Latin1(units)
                } else {
                    Text::Ascii(units)
                }
            }
            ffi::PyUnicode_2BYTE_KIND => {
                Text::Ucs2(slice::from_raw_parts(data.cast::<u16>(), length))
            }
            _ => Text::Ucs4(slice::from_raw_parts(data.cast::<u32>(), length)),
        }
    }
}

/// Makes the storage of a str readable; before Python 3.12 some made by old
/// interfaces are not.
pub(crate) fn make_ready(string: &Bound<'_, PyString>) -> PyResult<()> {
    // SAFETY: it is a str.
    if unsafe { ffi::PyUnicode_READY(string.as_ptr()) } == 0 {
        Ok(())
    } else {
        Err(PyErr::fetch(string.py()))
    }
}

/// Returns the text of a str for as long as it is borrowed.
pub(crate) fn text<'a>(string: &'a Bound<'_, PyString>) -> PyResult<Text<'a>> {
    make_ready(string)?;
    // SAFETY: it is a ready str, and the borrow keeps it alive.
    Ok(unsafe { borrow_text(string.as_ptr()) })
}

/// Returns a str from bytes that are encoded as in [`Text::Utf8`].
pub(crate) fn string<'py>(py: Python<'py>, utf8: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let length = utf8.len().try_into()?;
    // SAFETY: pointer and length are those of a slice, the handler's name ends
    // with a NUL byte, and the answer is a new reference or none with an error.
    unsafe {
        let string =
            ffi::PyUnicode_DecodeUTF8(utf8.as_ptr().cast(), length, c"surrogatepass".as_ptr());
        Bound::from_owned_ptr_or_err(py, string)
    }
}

/// Returns the characters of a str from `start` to `end`.
pub(crate) fn slice<'py>(
    string: &Bound<'py, PyString>,
    start: isize,
    end: isize,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: it is a str; ends outside of it are an error, and the answer is a
    // new reference or none with an error.
    unsafe {
        let slice = ffi::PyUnicode_Substring(string.as_ptr(), start, end);
        Bound::from_owned_ptr_or_err(string.py(), slice)
    }
}

/// Joins strings into one, each copied once and none encoded.
pub(crate) struct Joiner<'py> {
    parts: Vec<Bound<'py, PyAny>>,
    chars: usize,
    /// The largest code point that the parts' storage may hold.
    largest: u32,
}

impl<'py> Joiner<'py> {
    /// Returns a joiner with room for `parts` parts.
    pub(crate) fn with_capacity(parts: usize) -> Self {
        Self { parts: Vec::with_capacity(2 * parts), chars: 0, largest: 0x7F }
    }

    /// Adds a str.
    pub(crate) fn push(&mut self, part: Bound<'py, PyAny>) -> PyResult<()> {
        let text = text(part.cast::<PyString>()?)?;
        let largest = match text {
            Text::Ascii(_) => 0x7F,
            Text::Latin1(_) => 0xFF,
            Text::Ucs2(_) => 0xFFFF,
            Text::Ucs4(_) | Text::Utf8(_) => 0x10_FFFF,
        };
        self.chars += text.chars();
        self.largest = self.largest.max(largest);
        self.parts.push(part);
        Ok(())
    }

    /// Adds bytes that are encoded as in [`Text::Utf8`].
    pub(crate) fn push_utf8(&mut self, py: Python<'py>, utf8: &[u8]) -> PyResult<()> {
        if utf8.is_empty() { Ok(()) } else { self.push(string(py, utf8)?) }
    }

    /// Returns the number of code points so far.
    pub(crate) fn chars(&self) -> usize {
        self.chars
    }

    /// Returns the str of all parts.
    pub(crate) fn join(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: a new str that nobody else has seen may be written to; it has
        // room for all parts, in storage as wide as the widest of them.
        unsafe {
            let joined = ffi::PyUnicode_New(self.chars.try_into()?, self.largest);
            let joined = Bound::from_owned_ptr_or_err(py, joined)?;
            let mut at = 0;
            for part in &self.parts {
                let length = ffi::PyUnicode_GET_LENGTH(part.as_ptr());
                let copied =
                    ffi::PyUnicode_CopyCharacters(joined.as_ptr(), at, part.as_ptr(), 0, length);
                if copied < 0 {
                    return Err(PyErr::fetch(py));
                }
                at += length;
            }
            Ok(joined)
        }
    }
}

/// The number of code points that are read in half a millisecond. Shorter calls
/// hold the interpreter's lock.
const DETACH_CHARS: usize = 1_200_000;

/// The number of code points that are read in some milliseconds, about as long
/// as a thread that runs Python code may hold the lock by default. Shorter calls
/// hold it unless other threads have such calls too: to get it back takes some
/// times as long where other threads are busy.
const HOLD_CHARS: usize = 13_000_000;

/// The number of code points that are read in some ten microseconds, about what
/// it takes until another thread has the lock.
const HAND_OVER_CHARS: usize = 20_000;

/// The number of code points that are read in some twenty milliseconds. Longer
/// work may be interrupted: some of it takes ten times as long as it is said to.
const INTERRUPT_CHARS: usize = 40_000_000;

/// How often signals are looked at during long work.
const LOOK: Duration = Duration::from_millis(50);

/// The same two for a call that is watched.
const WATCHED_CHARS: usize = 4_000_000;
const WATCHED_LOOK: Duration = Duration::from_millis(10);

/// For how long a call of another thread counts.
const COMPANY: Duration = Duration::from_millis(100);

/// Does `work`, which takes as long as reading about `chars` code points.
/// Quick work holds the interpreter's lock. Longer work releases it, and
/// signals are looked at afterwards. The longest work is done by another
/// thread, so that this one can look at signals meanwhile; `work` should end
/// soon after its flag is set.
pub(crate) fn work<R: Send>(
    py: Python<'_>,
    chars: usize,
    work: impl FnOnce(&AtomicBool) -> R + Send,
) -> PyResult<R> {
    work_from(py, least_to_release(chars, chars), chars, End::default(), work)
}

/// What may end a call: a signal, and what a function of Python's raises.
#[derive(Clone, Copy, Default)]
pub(crate) struct End<'a> {
    watch: Option<&'a Py<PyAny>>,
}

impl<'a> End<'a> {
    /// `watch` is called during long work, if it is given.
    pub(crate) fn by(watch: Option<&'a Py<PyAny>>) -> Self {
        Self { watch }
    }

    /// Returns from how many code points on work is long.
    fn most(self) -> usize {
        self.watch.map_or(INTERRUPT_CHARS, |_| WATCHED_CHARS)
    }

    /// Returns how often to look during long work.
    fn every(self) -> Duration {
        self.watch.map_or(LOOK, |_| WATCHED_LOOK)
    }

    /// Fails if the call is over before it begins.
    pub(crate) fn begin(self, py: Python<'_>) -> PyResult<()> {
        self.watch.map_or(Ok(()), |watch| watch.call0(py).map(drop))
    }

    /// Fails if the call should end.
    fn look(self) -> PyResult<()> {
        Python::attach(|py| {
            py.check_signals()?;
            self.begin(py)
        })
    }
}

/// Returns from how many code points on a stage releases the lock, in a call of
/// `chars` code points that takes as long as reading `cost`.
fn least_to_release(chars: usize, cost: usize) -> usize {
    let may_hold = chars >= DETACH_CHARS && cost < HOLD_CHARS && !has_company();
    if may_hold { HOLD_CHARS } else { DETACH_CHARS }
}

/// Returns whether another thread called this lately. Such a thread does not
/// hold the lock for long, so it is soon got back.
fn has_company() -> bool {
    thread_local!(static HERE: u8 = const { 0 });
    static START: OnceLock<Instant> = OnceLock::new();
    /// The thread that called last.
    static LAST: AtomicUsize = AtomicUsize::new(0);
    /// Until when, in microseconds from the start on, there is company.
    static UNTIL: AtomicU64 = AtomicU64::new(0);
    let elapsed = START.get_or_init(Instant::now).elapsed();
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let here = HERE.with(|here| std::ptr::from_ref(here).addr());
    let last = LAST.swap(here, Ordering::Relaxed);
    if last != here && last != 0 {
        UNTIL.store(micros(elapsed + COMPANY), Ordering::Relaxed);
    }
    micros(elapsed) < UNTIL.load(Ordering::Relaxed)
}

/// Does as [`work`]. Work from `least` code points on releases the lock.
fn work_from<R: Send>(
    py: Python<'_>,
    least: usize,
    chars: usize,
    end: End<'_>,
    work: impl FnOnce(&AtomicBool) -> R + Send,
) -> PyResult<R> {
    let stop = AtomicBool::new(false);
    if chars < least {
        return Ok(work(&stop));
    }
    if chars < end.most() {
        let done = py.detach(|| work(&stop));
        end.look()?;
        return Ok(done);
    }
    py.detach(|| interruptible(end, work))
}

/// Does `work` in another thread, and looks meanwhile whether it should end. The
/// calling thread does not hold the interpreter's lock.
fn interruptible<R: Send>(end: End<'_>, work: impl FnOnce(&AtomicBool) -> R + Send) -> PyResult<R> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let (done, wait) = mpsc::channel::<()>();
        let worker = scope.spawn(|| {
            let _done = done; // dropped at the end, also by a panic
            work(&stop)
        });
        let mut interrupted = None;
        while wait.recv_timeout(end.every()) == Err(mpsc::RecvTimeoutError::Timeout) {
            if interrupted.is_none()
                && let Err(error) = end.look()
            {
                stop.store(true, Ordering::Relaxed);
                interrupted = Some(error);
            }
        }
        let result = worker.join().unwrap_or_else(|panic| resume_unwind(panic));
        interrupted.map_or(Ok(result), Err)
    })
}

/// Where a call of several stages releases the interpreter's lock, and what may
/// end it.
#[derive(Clone, Copy)]
pub(crate) struct Lock<'a> {
    /// From how many code points on a stage releases the lock. None releases it
    /// once, for all stages.
    least: Option<usize>,
    end: End<'a>,
    looked: Instant,
}

impl<'a> Lock<'a> {
    /// Returns the way to treat a call of `chars` code points, which takes as
    /// long as reading `cost`. If `releases`, quick work releases the lock too.
    /// What asks Python in between releases it stage by stage.
    pub(crate) fn during(
        chars: usize,
        cost: usize,
        releases: bool,
        asks_python: bool,
        end: End<'a>,
    ) -> Self {
        let least = if releases { HAND_OVER_CHARS } else { least_to_release(chars, cost) };
        let is_held = asks_python || chars < least;
        Self { least: is_held.then_some(least), end, looked: Instant::now() }
    }

    /// Does all stages.
    pub(crate) fn run<R: Send>(self, py: Python<'_>, stages: impl FnOnce() -> R + Send) -> R {
        if self.least.is_some() { stages() } else { py.detach(stages) }
    }

    /// Does one stage, as [`work`] does.
    pub(crate) fn work<R: Send>(
        &mut self,
        chars: usize,
        work: impl FnOnce(&AtomicBool) -> R + Send,
    ) -> PyResult<R> {
        let end = self.end;
        let done = match self.least {
            Some(least) => Python::attach(|py| work_from(py, least, chars, end, work))?,
            None if chars >= end.most() => interruptible(end, work)?,
            None => work(&AtomicBool::new(false)),
        };
        self.look()?;
        Ok(done)
    }

    /// Looks whether the call should end, if the last look was some time ago. A
    /// call that holds the lock, and is not watched, looks in long stages only.
    pub(crate) fn look(&mut self) -> PyResult<()> {
        let may_look = self.least.is_none() || self.end.watch.is_some();
        if may_look && self.looked.elapsed() >= self.end.every() {
            self.end.look()?;
            self.looked = Instant::now();
        }
        Ok(())
    }
}

/// A number that goes to Python as bytes in a column.
pub(crate) trait Column: Copy {
    /// Returns the bytes as this machine orders them.
    fn bytes(self) -> impl AsRef<[u8]>;
}

macro_rules! columns {
    ($($number:ty),*) => {$(
        impl Column for $number {
            fn bytes(self) -> impl AsRef<[u8]> {
                self.to_ne_bytes()
            }
        }
    )*};
}

columns!(u8, u32, i64, f64);

/// Returns the numbers as bytes, in the machine's order.
pub(crate) fn column<C: Column>(
    py: Python<'_>,
    numbers: impl ExactSizeIterator<Item = C>,
) -> PyResult<Bound<'_, PyBytes>> {
    PyBytes::new_with(py, numbers.len() * size_of::<C>(), |to| {
        fill(to, numbers);
        Ok(())
    })
}

/// Returns the numbers as bytes that may be written to.
pub(crate) fn mutable_column<C: Column>(
    py: Python<'_>,
    numbers: impl ExactSizeIterator<Item = C>,
) -> PyResult<Bound<'_, PyByteArray>> {
    PyByteArray::new_with(py, numbers.len() * size_of::<C>(), |to| {
        fill(to, numbers);
        Ok(())
    })
}

fn fill<C: Column>(to: &mut [u8], numbers: impl Iterator<Item = C>) {
    for (place, number) in to.chunks_exact_mut(size_of::<C>()).zip(numbers) {
        place.copy_from_slice(number.bytes().as_ref());
    }
}

/// Returns a count as Python's columns hold it; none reaches 2^63.
pub(crate) fn signed(count: u64) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

/// Returns a str, encoded as in [`Text::Utf8`].
pub(crate) fn utf8(string: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let mut utf8 = Vec::new();
    text(string.cast::<PyString>()?)?.write_utf8(&mut utf8);
    Ok(utf8)
}
