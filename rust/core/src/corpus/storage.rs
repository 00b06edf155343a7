//! Bytes in memory, or a part of a file that is mapped into it.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Bytes with several owners.
#[derive(Clone)]
pub(crate) struct Bytes {
    owner: Arc<dyn AsRef<[u8]> + Send + Sync>,
    range: Range<usize>,
}

impl Bytes {
    /// Returns a part of the bytes of `owner`; None if it is not within them.
    pub(crate) fn part(
        owner: &Arc<dyn AsRef<[u8]> + Send + Sync>,
        range: Range<usize>,
    ) -> Option<Self> {
        (**owner).as_ref().get(range.clone())?;
        Some(Self { owner: Arc::clone(owner), range })
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        let range = 0..bytes.len();
        Self { owner: Arc::new(bytes), range }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &(*self.owner).as_ref()[self.range.clone()]
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.range.len())
    }
}
