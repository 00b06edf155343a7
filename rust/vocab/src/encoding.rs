//! The encodings by name.

use crate::shared::unpack_shared;
use crate::unpack::{Unpacked, unpack};
use crate::vocabulary::Vocabulary;

macro_rules! encodings {
    ($(
        $(#[$doc:meta])*
        $variant:ident $(on $base:ident)?, $feature:literal, $name:literal, $packed:expr;
    )*) => {
        /// An encoding whose vocabulary the binary holds.
        ///
        /// # Examples
        ///
        /// ```
        /// use budgeteer_vocab::Encoding;
        ///
        /// for encoding in Encoding::ALL {
        ///     assert!(encoding.load().len() > 100_000);
        /// }
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive] // features of another crate may add some
        pub enum Encoding {
            $($(#[$doc])* #[cfg(feature = $feature)] $variant,)*
        }

        impl Encoding {
            /// All encodings whose vocabularies the binary holds.
            pub const ALL: &'static [Self] = &[$(#[cfg(feature = $feature)] Self::$variant,)*];

            /// Returns the name of the encoding: tiktoken's, or that of the
            /// models that it came with.
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
                    $(#[cfg(feature = $feature)] Self::$variant => $name,)*
                }
            }

            /// Returns the place of the encoding in [`Encoding::ALL`].
            #[must_use]
            pub fn place(self) -> usize {
                match self {
                    $(#[cfg(feature = $feature)] Self::$variant => Self::$variant as usize,)*
                }
            }

            /// Returns the encoding whose merges that of this one names, instead of
            /// having them.
            fn base(self) -> Option<Self> {
                match self {
                    $($(#[cfg(feature = $feature)] Self::$variant => Some(Self::$base),)?)*
                    #[allow(unreachable_patterns)] // what features leave out
                    _ => None,
                }
            }

            /// Returns the vocabulary of the encoding as the binary holds it.
            fn packed(self) -> &'static [u8] {
                match self {
                    $(#[cfg(feature = $feature)] Self::$variant => {
                        // A constant might be in the binary twice.
                        static PACKED: &[u8] = include_bytes!($packed);
                        PACKED
                    })*
                }
            }
        }
    };
}

encodings! {
    /// `cl100k_base`, the encoding of GPT-3.5 and GPT-4.
    Cl100k, "cl100k", "cl100k_base", concat!(env!("OUT_DIR"), "/cl100k_base.bin");
    /// `o200k_base`, the encoding of GPT-4o, of models after it, and of gpt-oss.
    O200k, "o200k", "o200k_base", concat!(env!("OUT_DIR"), "/o200k_base.bin");
    /// `qwen2`, the encoding of Qwen 2, 2.5 and 3.
    Qwen2 on Cl100k, "qwen2", "qwen2", concat!(env!("OUT_DIR"), "/qwen2.bin");
    /// `qwen3.5`, the encoding of Qwen 3.5 and 3.6.
    Qwen35 on Cl100k, "qwen35", "qwen3.5", concat!(env!("OUT_DIR"), "/qwen3.5.bin");
    /// `deepseek`, the encoding of DeepSeek V3, R1 and V4.
    DeepSeek, "deepseek", "deepseek", "../data/deepseek.bin";
    /// `glm4`, the encoding of GLM 4, 4.5 and 4.6.
    Glm4 on Cl100k, "glm4", "glm4", concat!(env!("OUT_DIR"), "/glm4.bin");
    /// `tekken`, the encoding of Mistral's models since NeMo.
    Tekken, "tekken", "tekken", "../data/tekken.bin";
    /// `gemma4`, the encoding of Gemma 4, and of Gemini since 3.1.
    Gemma4, "gemma4", "gemma4", "../data/gemma4.bin";
}

impl Encoding {
    /// Returns the vocabulary of the encoding. Each call unpacks it anew, which
    /// takes some milliseconds and some megabytes of memory: keep the result.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "o200k")]
    /// assert_eq!(budgeteer_vocab::Encoding::O200k.load().len(), 199_998);
    /// ```
    ///
    /// # Panics
    ///
    /// Never: the tests have unpacked the same bytes.
    #[must_use]
    pub fn load(self) -> Vocabulary {
        let vocabulary = self.unpacked().and_then(Vocabulary::of);
        vocabulary.expect("the tests have unpacked the same bytes")
    }

    fn unpacked(self) -> Option<Unpacked> {
        match self.base() {
            Some(base) => unpack_shared(self.packed(), &base.unpacked()?),
            None => unpack(self.packed()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Encoding;

    #[test]
    fn the_list_says_how_large_each_is_in_the_binary() {
        for encoding in Encoding::ALL {
            let mut rows = include_str!("../README.md").lines();
            let row = rows.find(|row| row.contains(&format!("| `{}` |", encoding.name())));
            let size = (encoding.packed().len() + 500) / 1000;
            assert!(row.unwrap().contains(&format!("| {size} kB |")), "{encoding:?}: {size}");
        }
    }
}
