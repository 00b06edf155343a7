//! Values that threads take for the time of a call, and leave for later calls.

use std::sync::Mutex;

/// How many values are kept: up to this many threads at once find what earlier
/// calls left.
const PLACES: usize = 8;

/// A pool of values. There are as many as threads have worked at once, however
/// many threads there are.
///
/// No thread waits for a lock, so none can hang where the process forked while
/// another one held it.
pub(super) struct Pool<T>([Mutex<Option<Box<T>>>; PLACES]);

impl<T> Pool<T> {
    pub(super) const fn new() -> Self {
        Self([const { Mutex::new(None) }; PLACES])
    }

    /// Calls `work` with a value of the pool; `make` makes one if there is none.
    pub(super) fn with<R>(&self, make: impl FnOnce() -> T, work: impl FnOnce(&mut T) -> R) -> R {
        let mut taken = self.0.iter().find_map(|place| place.try_lock().ok()?.take());
        let result = work(taken.get_or_insert_with(|| Box::new(make())));
        for place in &self.0 {
            if let Ok(mut place) = place.try_lock()
                && place.is_none()
            {
                *place = taken;
                break;
            }
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::Pool;

    /// A value is found again, and one in use is in no other call.
    #[test]
    fn values_are_left_for_later_calls() {
        static POOL: Pool<Vec<u8>> = Pool::new();
        let work = |byte| {
            POOL.with(Vec::new, |value| {
                value.push(byte);
                value.clone()
            })
        };
        assert_eq!(work(1), [1]);
        assert_eq!(work(2), [1, 2]);
        let inner = POOL.with(Vec::new, |_| work(3));
        assert_eq!(inner, [3]);
        assert_eq!(work(4), [3, 4]);
        assert_eq!(POOL.with(Vec::new, |_| work(5)), [1, 2, 5]);
    }
}
