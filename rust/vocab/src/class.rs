//! The classes of characters that the published patterns tell apart.

/// The bits of a class. A code point has at most one; one without any is a
/// control or format character, or not assigned.
///
/// # Examples
///
/// ```
/// use budgeteer_vocab::{CLASSES, Class};
///
/// assert!(CLASSES.contains(&(0x41, 0x5A, Class::UPPER)));
/// ```
#[derive(Debug)]
pub struct Class;

impl Class {
    /// General categories Lu and Lt.
    pub const UPPER: u8 = 1;
    /// General category Ll.
    pub const LOWER: u8 = 1 << 1;
    /// General categories Lm and Lo.
    pub const OTHER_LETTER: u8 = 1 << 2;
    /// General category M.
    pub const MARK: u8 = 1 << 3;
    /// General category N.
    pub const NUMBER: u8 = 1 << 4;
    /// White space other than [`Class::NEWLINE`].
    pub const SPACE: u8 = 1 << 5;
    /// U+000A and U+000D.
    pub const NEWLINE: u8 = 1 << 6;
    /// General categories P and S: punctuation and symbols.
    pub const SIGN: u8 = 1 << 7;
}

/// The first and the last code point of each range of a class, in order, in
/// the version of Unicode that the crate `regex-syntax` knows, by which the
/// patterns are matched elsewhere.
#[allow(clippy::unreadable_literal)] // nobody reads it
pub const CLASSES: &[(u32, u32, u8)] = include!(concat!(env!("OUT_DIR"), "/classes.rs"));

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::{CLASSES, Class};

    /// Newer versions of Unicode know more characters; which version counts is
    /// for tiktoken to say. This is that of tiktoken 0.14.
    #[test]
    fn classes_are_those_of_tiktoken() {
        let mut hash = Sha256::new();
        for (first, last, class) in CLASSES.iter().filter(|(.., class)| *class != Class::SIGN) {
            hash.update(format!("{first} {last} {class}\n"));
        }
        let hash = hash.finalize();
        let hash = hash.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
        assert_eq!("b8ece2af8f9a225a894810708e2edad0e53a62e789ddfef94a920950437a7acf", hash);
    }
}
