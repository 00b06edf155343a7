//! The tokens of an encoding.

use std::fmt;

use crate::pack::pack;
use crate::unpack::{Merges, SINGLES, Unpacked, unpack};

/// Copying a fixed number of bytes is fast: parts up to this length are copied
/// with this length.
const WIDE: usize = 16;

/// The most tokens of a vocabulary, of which each rank has a packed form.
const MOST_TOKENS: usize = (1 << 19) - 1;

/// The most bytes of a token. Real ones have at most some hundreds.
const MOST_BYTES: u32 = 1 << 10;

/// The most bytes of all tokens: real vocabularies have some millions.
const MOST_TOTAL: u32 = 1 << 24;

/// The tokens of an encoding, by rank.
///
/// Ranks count from 0 without a gap. The 256 lowest are single bytes; each
/// further token is the join of two tokens of lower rank.
///
/// # Examples
///
/// ```
/// use budgeteer_vocab::Encoding;
///
/// for vocabulary in Encoding::ALL.iter().map(|encoding| encoding.load()) {
///     for rank in 256..1000 {
///         let (left, right) = vocabulary.parts(rank).expect("it is not a single byte");
///         let joined = [vocabulary.token(left), vocabulary.token(right)].concat();
///         assert_eq!(joined, vocabulary.token(rank));
///     }
/// }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Vocabulary {
    /// All tokens, end to end.
    bytes: Vec<u8>,
    /// Where each token begins in `bytes`, and where the last one ends.
    bounds: Vec<u32>,
    /// The parts of all tokens but the single bytes.
    merges: Merges,
    /// Tokens that no merge makes.
    wholes: Vec<Box<[u8]>>,
    /// Tokens that merge as soon as their left part is made.
    early: Vec<u32>,
}

impl Vocabulary {
    /// Returns the vocabulary of these merges, in the order of their ranks.
    /// `wholes` are tokens that no merge makes: a tokenizer finds them only
    /// where a whole piece of a text is one. `early` are tokens that merge as
    /// soon as their left part is made, before other merges to that part.
    ///
    /// None if it has 2^19 tokens or more, a merge has a part that is not of
    /// lower rank, or tokens are beyond all bounds: one of more than a kilobyte,
    /// or more than 16 megabytes of all.
    ///
    /// # Examples
    ///
    /// ```
    /// use budgeteer_vocab::Vocabulary;
    ///
    /// let singles = std::array::from_fn(|byte| u8::try_from(byte).unwrap());
    /// let (t, h, e) = (b't'.into(), b'h'.into(), b'e'.into());
    /// let vocabulary = Vocabulary::from_merges(&singles, vec![(t, h), (256, e)], vec![], vec![]);
    /// assert_eq!(vocabulary.unwrap().token(257), b"the");
    /// ```
    #[must_use]
    pub fn from_merges(
        singles: &[u8; SINGLES],
        merges: Vec<(u32, u32)>,
        wholes: Vec<Box<[u8]>>,
        early: Vec<u32>,
    ) -> Option<Self> {
        Self::of(Unpacked { singles: singles.to_vec(), merges, wholes, early })
    }

    /// Returns the vocabulary that [`Self::pack`] wrote; None if it is damaged.
    #[must_use]
    pub fn from_packed(packed: &[u8]) -> Option<Self> {
        Self::of(unpack(packed)?)
    }

    fn of(Unpacked { singles, merges, wholes, early }: Unpacked) -> Option<Self> {
        let count = SINGLES + merges.len();
        let is_merge = |&rank: &u32| (SINGLES..count).contains(&(rank as usize));
        if count > MOST_TOKENS || !early.iter().all(is_merge) {
            return None;
        }
        let bounds = bounds(&merges)?;
        let bytes = join(singles, &bounds, &merges);
        Some(Self { bytes, bounds, merges, wholes, early })
    }

    /// Returns the vocabulary in a compact form, of 3.3 bytes for each token.
    #[must_use]
    pub fn pack(&self) -> Vec<u8> {
        pack(&Unpacked {
            singles: self.bytes[..SINGLES].to_vec(),
            merges: self.merges.clone(),
            wholes: self.wholes.clone(),
            early: self.early.clone(),
        })
    }

    /// Returns the tokens that no merge makes.
    #[must_use]
    pub fn wholes(&self) -> &[Box<[u8]>] {
        &self.wholes
    }

    /// Returns the tokens that merge as soon as their left part is made.
    #[must_use]
    pub fn early(&self) -> &[u32] {
        &self.early
    }

    /// Returns the number of tokens, without those that no merge makes: every
    /// rank is below it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bounds.len() - 1
    }

    /// Returns whether there are no tokens. There always are some.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of a token, at least one. They need not be UTF-8.
    ///
    /// # Panics
    ///
    /// If no token has that rank.
    #[must_use]
    pub fn token(&self, rank: u32) -> &[u8] {
        let rank = rank as usize;
        &self.bytes[self.bounds[rank] as usize..self.bounds[rank + 1] as usize]
    }

    /// Returns the ranks of the two tokens that merge into this one, left and
    /// right, or `None` if it is a single byte.
    ///
    /// These two are left before the last step when the bytes of the token are
    /// merged by rank. Both are lower than `rank`.
    ///
    /// # Panics
    ///
    /// If no token has that rank.
    #[must_use]
    pub fn parts(&self, rank: u32) -> Option<(u32, u32)> {
        Some(self.merges[(rank as usize).checked_sub(SINGLES)?])
    }

    /// Returns the [parts](Self::parts) of all tokens behind the single bytes,
    /// by rank.
    #[must_use]
    pub fn merges(&self) -> &[(u32, u32)] {
        &self.merges
    }

    /// Returns all tokens by rank.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.bounds.windows(2).map(|bounds| &self.bytes[bounds[0] as usize..bounds[1] as usize])
    }

    /// Returns the number of bytes of the longest token. This looks at all
    /// tokens.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.iter().map(<[u8]>::len).max().unwrap_or(0)
    }
}

impl fmt::Debug for Vocabulary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Vocabulary").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// Returns where each token begins, and where the last one ends; None if that
/// cannot be.
fn bounds(merges: &[(u32, u32)]) -> Option<Vec<u32>> {
    let mut bounds = Vec::with_capacity(SINGLES + merges.len() + 1);
    bounds.extend((0..).take(SINGLES + 1));
    for &(left, right) in merges {
        let length = |rank: u32| Some(bounds.get(rank as usize + 1)? - bounds[rank as usize]);
        let length = length(left)? + length(right)?;
        let end = bounds[bounds.len() - 1] + length;
        if length > MOST_BYTES || end > MOST_TOTAL {
            return None;
        }
        bounds.push(end);
    }
    Some(bounds)
}

/// Returns all tokens end to end.
fn join(singles: Vec<u8>, bounds: &[u32], merges: &[(u32, u32)]) -> Vec<u8> {
    let (mut bytes, mut end) = (singles, SINGLES);
    let total = bounds[bounds.len() - 1] as usize;
    bytes.resize(total + WIDE, 0);
    for part in merges.iter().flat_map(|&(left, right)| [left as usize, right as usize]) {
        let (from, to) = (bounds[part] as usize, bounds[part + 1] as usize);
        // A fixed size is copied without a call: loading takes 40 % less time.
        // What is copied beyond the part is overwritten by what comes next.
        if to - from <= WIDE {
            bytes.copy_within(from..from + WIDE, end);
        } else {
            bytes.copy_within(from..to, end);
        }
        end += to - from;
    }
    bytes.truncate(total);
    bytes
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use sha2::{Digest, Sha256};

    use crate::{Encoding, Vocabulary};

    fn all() -> impl Iterator<Item = (&'static str, Vocabulary)> {
        Encoding::ALL.iter().map(|encoding| (encoding.name(), encoding.load()))
    }

    #[test]
    fn the_file_of_tiktoken_can_be_written_again() {
        for (name, vocabulary) in all() {
            let published = match name {
                "cl100k_base" => "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
                _ => "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
            };
            let mut hash = Sha256::new();
            for (rank, token) in vocabulary.iter().enumerate() {
                hash.update(format!("{} {rank}\n", STANDARD.encode(token)));
            }
            let hash = hash.finalize();
            let hash = hash.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
            assert_eq!(published, hash, "{name}");
        }
    }

    #[test]
    fn a_token_is_the_join_of_its_parts() {
        for (name, vocabulary) in all() {
            for (rank, token) in (0..).zip(vocabulary.iter()) {
                assert_eq!(token, vocabulary.token(rank));
                let Some((left, right)) = vocabulary.parts(rank) else {
                    assert_eq!(1, token.len(), "{name} {rank}");
                    continue;
                };
                assert!(left < rank && right < rank, "{name} {rank}");
                let (left, right) = (vocabulary.token(left), vocabulary.token(right));
                assert_eq!(Some(right), token.strip_prefix(left), "{name} {rank}");
            }
        }
    }

    #[test]
    fn lengths_are_those_of_tiktoken() {
        for (name, vocabulary) in all() {
            let tokens = if name == "cl100k_base" { 100_256 } else { 199_998 };
            assert_eq!(tokens, vocabulary.len());
            assert_eq!(tokens, vocabulary.iter().len());
            assert!(!vocabulary.is_empty());
            assert_eq!(128, vocabulary.longest());
        }
    }

    #[test]
    fn every_byte_is_a_token() {
        for (_, vocabulary) in all() {
            let mut singles: Vec<_> = vocabulary.iter().take(256).flatten().copied().collect();
            singles.sort_unstable();
            assert!(singles.into_iter().eq(0..=255));
        }
    }
}
