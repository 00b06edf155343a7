//! The encodings by name.

use crate::unpack::Packed;
use crate::vocabulary::Vocabulary;

/// An encoding whose vocabulary the binary holds.
///
/// # Examples
///
/// ```
/// use budgeteer_vocab::Encoding;
///
/// for encoding in Encoding::ALL {
///     assert_eq!(encoding.load().longest(), 128);
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// `cl100k_base`, the encoding of GPT-3.5 and GPT-4.
    #[cfg(feature = "cl100k")]
    Cl100k,
    /// `o200k_base`, the encoding of GPT-4o and of models after it.
    #[cfg(feature = "o200k")]
    O200k,
}

/// Returns what the build script wrote for the encoding of that name.
#[allow(unused_macros)] // where no feature is on
macro_rules! packed {
    ($name:literal) => {
        Packed {
            heads: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".heads")),
            tails: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".tails")),
        }
    };
}

impl Encoding {
    /// All encodings whose vocabularies the binary holds.
    pub const ALL: &'static [Self] = &[
        #[cfg(feature = "cl100k")]
        Self::Cl100k,
        #[cfg(feature = "o200k")]
        Self::O200k,
    ];

    /// Returns the name that tiktoken gives to the encoding.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "o200k")]
    /// assert_eq!(budgeteer_vocab::Encoding::O200k.name(), "o200k_base");
    /// ```
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            #[cfg(feature = "cl100k")]
            Self::Cl100k => "cl100k_base",
            #[cfg(feature = "o200k")]
            Self::O200k => "o200k_base",
        }
    }

    /// Returns the vocabulary of the encoding. Each call unpacks it anew, which
    /// takes some milliseconds and some megabytes of memory: keep the result.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "o200k")]
    /// assert_eq!(budgeteer_vocab::Encoding::O200k.load().len(), 199_998);
    /// ```
    #[must_use]
    pub fn load(self) -> Vocabulary {
        Vocabulary::from_packed(self.packed())
    }

    fn packed(self) -> Packed<'static> {
        match self {
            #[cfg(feature = "cl100k")]
            Self::Cl100k => packed!("cl100k_base"),
            #[cfg(feature = "o200k")]
            Self::O200k => packed!("o200k_base"),
        }
    }
}
