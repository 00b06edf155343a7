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

    pub(crate) fn of(Unpacked { singles, merges, wholes, early }: Unpacked) -> Option<Self> {
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
        pack(&self.unpacked())
    }

    fn unpacked(&self) -> Unpacked {
        Unpacked {
            singles: self.bytes[..SINGLES].to_vec(),
            merges: self.merges.clone(),
            wholes: self.wholes.clone(),
            early: self.early.clone(),
        }
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
    use std::collections::HashSet;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use sha2::{Digest, Sha256};

    use crate::shared::{pack_shared, unpack_shared};
    use crate::{Encoding, Vocabulary};

    /// What is known of an encoding.
    struct Facts {
        name: &'static str,
        tokens: usize,
        /// How many tokens no merge makes.
        wholes: usize,
        /// How many tokens merge as soon as their left part is made.
        early: usize,
        longest: usize,
        /// The SHA-256 of [`lines`]. Those of tiktoken are published.
        hash: &'static str,
    }

    const FACTS: [Facts; 8] = [
        Facts {
            name: "cl100k_base",
            tokens: 100_256,
            wholes: 0,
            early: 0,
            longest: 128,
            hash: "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        },
        Facts {
            name: "o200k_base",
            tokens: 199_998,
            wholes: 0,
            early: 0,
            longest: 128,
            hash: "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        },
        Facts {
            name: "qwen2",
            tokens: 151_643,
            wholes: 0,
            early: 0,
            longest: 128,
            hash: "a8955cb689a046251ccd3fa57c8991b527d0e0aa5a42692d4505728500690ced",
        },
        Facts {
            name: "qwen3.5",
            tokens: 247_843,
            wholes: 0,
            early: 1,
            longest: 128,
            hash: "2fa3382d04e1569b715a940fd3ed27b06c64bbead73763fcb5f9367860ee851f",
        },
        Facts {
            name: "deepseek",
            tokens: 127_997,
            wholes: 0,
            early: 0,
            longest: 128,
            hash: "54a75564c4f651eacebacef63a1101d5cb505fa0398b709b0ab929f11e713e49",
        },
        Facts {
            name: "glm4",
            tokens: 150_436,
            wholes: 893,
            early: 0,
            longest: 512,
            hash: "c1f08deb9614e8317917ac9be80a88c384e96c54b2e66b158aa6af5b1cc533ee",
        },
        Facts {
            name: "tekken",
            tokens: 130_072,
            wholes: 0,
            early: 0,
            longest: 76,
            hash: "64a081edb3cbb8639a4eea9a7135ab9a0467c50676c672b217ba655f4d50e127",
        },
        Facts {
            name: "gemma4",
            tokens: 256_625,
            wholes: 0,
            early: 0,
            longest: 48,
            hash: "067e56a8bdc230962650b6dafc21481fbe29f86bfe048440095b7e8b289eaaf8",
        },
    ];

    fn all() -> impl Iterator<Item = (&'static Facts, Vocabulary)> {
        Encoding::ALL.iter().map(|encoding| {
            let facts = FACTS.iter().find(|facts| facts.name == encoding.name());
            (facts.expect("each encoding has its facts"), encoding.load())
        })
    }

    /// Returns the tokens in the form in which tiktoken publishes them.
    fn lines(vocabulary: &Vocabulary) -> impl Iterator<Item = String> {
        let wholes = vocabulary.wholes().iter().map(|whole| &**whole);
        let tokens = vocabulary.iter().chain(wholes).enumerate();
        tokens.map(|(rank, token)| format!("{} {rank}\n", STANDARD.encode(token)))
    }

    #[test]
    fn the_tokens_are_those_that_were_packed() {
        for (facts, vocabulary) in all() {
            let mut hash = Sha256::new();
            lines(&vocabulary).for_each(|line| hash.update(line));
            let hash = hash.finalize();
            let hash = hash.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
            assert_eq!(facts.hash, hash, "{}", facts.name);
        }
    }

    #[test]
    fn a_token_is_the_join_of_its_parts() {
        for (Facts { name, .. }, vocabulary) in all() {
            assert_eq!(vocabulary.len(), 256 + vocabulary.merges().len(), "{name}");
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
    fn no_token_is_there_twice() {
        for (Facts { name, .. }, vocabulary) in all() {
            let wholes = vocabulary.wholes().iter().map(|whole| &**whole);
            let tokens: HashSet<&[u8]> = vocabulary.iter().chain(wholes).collect();
            assert_eq!(vocabulary.len() + vocabulary.wholes().len(), tokens.len(), "{name}");
        }
    }

    #[test]
    fn numbers_are_those_of_the_sources() {
        for (facts, vocabulary) in all() {
            let Facts { name, tokens, wholes, early, longest, .. } = *facts;
            assert_eq!(tokens, vocabulary.len(), "{name}");
            assert_eq!(tokens, vocabulary.iter().len(), "{name}");
            assert_eq!(wholes, vocabulary.wholes().len(), "{name}");
            assert_eq!(early, vocabulary.early().len(), "{name}");
            assert_eq!(longest, vocabulary.longest(), "{name}");
            assert!(!vocabulary.is_empty());
        }
    }

    #[test]
    fn every_byte_is_a_token() {
        for (Facts { name, .. }, vocabulary) in all() {
            let mut singles: Vec<_> = vocabulary.iter().take(256).flatten().copied().collect();
            singles.sort_unstable();
            assert!(singles.into_iter().eq(0..=255), "{name}");
        }
    }

    /// What is packed unpacks to the same.
    #[test]
    fn packing_is_undone() {
        for (Facts { name, .. }, vocabulary) in all() {
            let packed = vocabulary.pack();
            assert_eq!(Some(vocabulary), Vocabulary::from_packed(&packed), "{name}");
        }
    }

    /// Any vocabulary can be the base of another one.
    #[test]
    fn each_can_be_a_base() {
        let (names, vocabularies): (Vec<_>, Vec<_>) = all().unzip();
        let bases = vocabularies.iter().cycle().skip(1);
        for ((Facts { name, .. }, vocabulary), base) in names.iter().zip(&vocabularies).zip(bases) {
            let base = base.unpacked();
            let packed = pack_shared(vocabulary.unpacked(), &base);
            assert_eq!(Some(vocabulary.unpacked()), unpack_shared(&packed, &base), "{name}");
        }
    }

    /// What is cut off, or changed, is refused, or is another vocabulary.
    #[test]
    fn damage_is_no_panic() {
        let vocabularies: Vec<_> = all().map(|(_, vocabulary)| vocabulary).collect();
        let (Some(base), Some(vocabulary)) = (vocabularies.first(), vocabularies.last()) else {
            return;
        };
        let base = base.unpacked();
        let packed = vocabulary.pack();
        let shared = pack_shared(vocabulary.unpacked(), &base);
        for packed in [packed, shared] {
            for place in (0..64).chain((64..packed.len()).step_by(packed.len() / 16)) {
                let mut changed = packed.clone();
                changed[place] ^= 0x55;
                for damaged in [&packed[..place], &changed] {
                    drop(Vocabulary::from_packed(damaged));
                    drop(unpack_shared(damaged, &base));
                }
            }
        }
    }
}
