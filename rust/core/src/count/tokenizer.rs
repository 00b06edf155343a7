//! Tokenizers: what each needs to count, made once.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use budgeteer_vocab::{Encoding, Vocabulary};

use super::bpe::Bpe;
use super::cache::Cache;
#[cfg(feature = "claude")]
use super::claude::Claude;
#[cfg(feature = "files")]
use super::files::builder::Read;
use super::lookup::Lookup;
use super::normal::{Normal, Prefix};
use super::pool::Pool;
use super::pretokenize::pieces::Pieces;
#[cfg(feature = "files")]
use super::pretokenize::regex::Patterns;
use super::pretokenize::{self, gpt2};
use crate::once::Once;
use crate::text::classes::Classes;
use crate::text::is_start;

/// A tokenizer whose tokens are counted exactly: one that the binary holds, or
/// one that was read from a file. Cheap to clone.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "o200k")] {
/// use budgeteer::{Encoding, Tokenizer};
///
/// let tokenizer = Tokenizer::from(Encoding::O200k);
/// assert_eq!(tokenizer.name(), "o200k_base");
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Tokenizer(Handle);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Handle {
    Shipped(Encoding),
    #[cfg(feature = "claude")]
    Claude(Claude),
    #[cfg_attr(not(feature = "files"), allow(dead_code))] // all others come from files
    Open(Opened),
}

/// What was read from a file. Clones are equal; the same file read twice is two
/// tokenizers.
#[derive(Clone)]
struct Opened(Arc<Model>);

impl PartialEq for Opened {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Opened {}

impl Hash for Opened {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

impl Tokenizer {
    #[cfg_attr(not(feature = "files"), allow(dead_code))]
    pub(crate) fn new(model: Model) -> Self {
        Self(Handle::Open(Opened(Arc::new(model))))
    }

    /// Returns the name: that of the encoding, or the path of the file.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.0 {
            Handle::Shipped(encoding) => encoding.name(),
            #[cfg(feature = "claude")]
            Handle::Claude(claude) => claude.name(),
            Handle::Open(Opened(model)) => &model.name,
        }
    }

    /// Returns the encoding if the binary holds it, None for a file and for
    /// Claude.
    #[must_use]
    pub fn encoding(&self) -> Option<Encoding> {
        match self.0 {
            Handle::Shipped(encoding) => Some(encoding),
            #[cfg(feature = "claude")]
            Handle::Claude(_) => None,
            Handle::Open(_) => None,
        }
    }

    /// Returns whether it counts as the model's own tokenizer does. False for
    /// Claude, whose tokenizers are not public: the counts are reconstructed.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        match self.0 {
            Handle::Shipped(_) | Handle::Open(_) => true,
            #[cfg(feature = "claude")]
            Handle::Claude(_) => false,
        }
    }

    /// Returns what is needed to count. For an encoding the process makes it
    /// once, when it first counts.
    pub(crate) fn model(&self) -> &Model {
        match &self.0 {
            Handle::Shipped(encoding) => shipped(*encoding),
            #[cfg(feature = "claude")]
            Handle::Claude(claude) => reconstructed(*claude),
            Handle::Open(Opened(model)) => model,
        }
    }

    /// Returns the tokens, in the order in which they merge; None for Claude.
    #[doc(hidden)]
    #[must_use]
    pub fn vocabulary(&self) -> Option<&Vocabulary> {
        Some(self.model().merging()?.bpe.vocabulary())
    }
}

impl From<Encoding> for Tokenizer {
    fn from(encoding: Encoding) -> Self {
        Self(Handle::Shipped(encoding))
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Tokenizer").field(&self.name()).finish()
    }
}

/// Returns what is needed to count with an encoding.
fn shipped(encoding: Encoding) -> &'static Model {
    static MODELS: [Once<Model>; Encoding::ALL.len()] =
        [const { Once::new() }; Encoding::ALL.len()];
    MODELS[encoding.place()].get(|| {
        let vocabulary = encoding.load();
        let (split, normal) = rules(encoding, &vocabulary);
        Model::new(encoding.name().to_string(), vocabulary, split, normal, Prefix::No)
    })
}

/// Returns how an encoding splits and normalizes.
#[allow(unused_variables)] // all but one encoding have a pattern
fn rules(encoding: Encoding, vocabulary: &Vocabulary) -> (Split, Normal) {
    match encoding {
        #[cfg(feature = "cl100k")]
        Encoding::Cl100k => (Split::Cl100k, Normal::As),
        #[cfg(feature = "o200k")]
        Encoding::O200k => (Split::O200k, Normal::As),
        #[cfg(feature = "qwen2")]
        Encoding::Qwen2 => (Split::Qwen2, Normal::Nfc),
        #[cfg(feature = "qwen35")]
        Encoding::Qwen35 => (Split::Qwen35, Normal::Nfc),
        #[cfg(feature = "deepseek")]
        Encoding::DeepSeek => (Split::DeepSeek, Normal::As),
        #[cfg(feature = "glm4")]
        Encoding::Glm4 => (Split::Llama3, Normal::As),
        #[cfg(feature = "tekken")]
        Encoding::Tekken => (Split::Tekken, Normal::As),
        #[cfg(feature = "gemma4")]
        Encoding::Gemma4 => (Split::Pieces(Pieces::new(vocabulary)), Normal::Spaces),
        #[allow(unreachable_patterns)] // the vocabularies have the same version
        _ => unreachable!("all encodings of the vocabularies are above"),
    }
}

/// How a tokenizer splits a text before it merges.
#[derive(Debug)]
#[allow(dead_code)] // which are made depends on the features
pub(crate) enum Split {
    Cl100k,
    O200k,
    Llama3,
    Qwen2,
    Qwen35,
    Tekken,
    Gpt2,
    DeepSeek,
    /// Not at all; texts are split where no merge goes across.
    Pieces(Pieces),
    #[cfg(feature = "files")]
    Patterns(Patterns),
}

#[cfg(feature = "claude")]
impl From<Claude> for Tokenizer {
    fn from(claude: Claude) -> Self {
        Self(Handle::Claude(claude))
    }
}

/// Returns what is needed to count for a generation of Claude.
#[cfg(feature = "claude")]
fn reconstructed(claude: Claude) -> &'static Model {
    static MODELS: [Once<Model>; 3] = [const { Once::new() }; 3];
    MODELS[claude as usize].get(|| Model {
        name: claude.name().to_string(),
        kind: Kind::Claude(claude),
        bound: Bound::None,
        cache: Cache::new(),
    })
}

/// All that counting with one tokenizer needs.
pub(crate) struct Model {
    name: String,
    pub(crate) kind: Kind,
    bound: Bound,
    pub(crate) cache: Cache,
}

/// How tokens are found.
pub(crate) enum Kind {
    /// By merges.
    Merging(Box<Merging>),
    /// By a reconstruction.
    #[cfg(feature = "claude")]
    Claude(Claude),
}

/// A lower bound of counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    /// A token starts wherever [`Text::starts`](crate::text::Text::starts) says.
    Starts,
    /// No token has more bytes.
    Longest(usize),
    #[cfg(feature = "claude")]
    None,
}

/// What counts by merges.
pub(crate) struct Merging {
    pub(crate) bpe: Bpe,
    pub(crate) split: Split,
    normal: Normal,
    prefix: Prefix,
    lookups: Pool<Lookup>,
}

impl Model {
    pub(crate) fn new(
        name: String,
        vocabulary: Vocabulary,
        split: Split,
        normal: Normal,
        prefix: Prefix,
    ) -> Self {
        let has_starts = match &split {
            Split::Pieces(_) => keeps_starts(&vocabulary),
            #[cfg(feature = "files")]
            Split::Patterns(_) => false,
            _ => true,
        };
        let bound = if has_starts { Bound::Starts } else { Bound::Longest(longest(&vocabulary)) };
        Self {
            name,
            kind: Kind::Merging(Box::new(Merging {
                bpe: Bpe::new(vocabulary),
                split,
                normal,
                prefix,
                lookups: Pool::new(),
            })),
            bound,
            cache: Cache::new(),
        }
    }

    /// Returns what a file says, ready to count with.
    #[cfg(feature = "files")]
    pub(super) fn of_file(name: String, read: Read) -> Self {
        let Read { vocabulary, split, normal, prefix } = read;
        Self::new(name, vocabulary, split, normal, prefix)
    }

    /// Returns how it merges; None for a reconstruction.
    #[cfg_attr(not(feature = "claude"), allow(clippy::unnecessary_wraps))] // all do
    pub(crate) fn merging(&self) -> Option<&Merging> {
        match &self.kind {
            Kind::Merging(merging) => Some(merging),
            #[cfg(feature = "claude")]
            Kind::Claude(_) => None,
        }
    }

    /// Returns whether it counts as the model's own tokenizer does.
    pub(crate) fn is_exact(&self) -> bool {
        self.merging().is_some()
    }

    /// Returns whether the place between two code points is a safe split: the
    /// parts of the text can be counted one by one there, whatever stands
    /// around it.
    pub(crate) fn is_safe_split(&self, before: u32, behind: u32) -> bool {
        // The frame of a reconstruction touches both ends of a text.
        self.merging().is_some_and(|merging| merging.is_safe_split(before, behind))
    }

    /// Returns a lower bound of the count of a text, of which these tell the
    /// [starts](crate::text::Text::starts) and the code points: only what is
    /// needed is asked.
    #[inline]
    pub(crate) fn least(
        &self,
        starts: impl FnOnce() -> usize,
        chars: impl FnOnce() -> usize,
    ) -> usize {
        match self.bound {
            Bound::Starts => starts(),
            Bound::Longest(longest) => chars().div_ceil(longest),
            #[cfg(feature = "claude")]
            Bound::None => 0,
        }
    }
}

impl Merging {
    /// Calls `work` with the pretokens that earlier calls cached.
    pub(crate) fn with_lookup<R>(&self, work: impl FnOnce(&mut Lookup) -> R) -> R {
        self.lookups.with(Lookup::new, work)
    }

    /// Returns the text that is split and merged. It means nothing once `stop`
    /// is set.
    pub(crate) fn normalized<'a>(&self, text: &'a [u8], stop: &AtomicBool) -> Cow<'a, [u8]> {
        let normal = self.normal.of(text, stop);
        if self.prefix.is_put(text) {
            return Cow::Owned([b" ", &*normal].concat());
        }
        normal
    }

    /// Returns where, in `text`, the part ends that is in front of `end` once
    /// it is normalized.
    pub(crate) fn end_before_normalizing(
        &self,
        text: &[u8],
        normal: &[u8],
        end: usize,
        stop: &AtomicBool,
    ) -> usize {
        let prefix = usize::from(self.prefix.is_put(text));
        let end = end.saturating_sub(prefix);
        if normal.len() == text.len() + prefix {
            return end;
        }
        self.normal.end_of(text, end, stop)
    }

    /// Returns whether the place between two code points is a safe split: the
    /// parts of the text can be counted one by one there, whatever stands
    /// around it.
    pub(crate) fn is_safe_split(&self, before: u32, behind: u32) -> bool {
        let classes = Classes::get();
        // Two surrogates may be one character, of a class that neither has.
        let is_surrogate = |code: u32| code & !0x7FF == 0xD800;
        match &self.split {
            _ if is_surrogate(before) || is_surrogate(behind) => false,
            _ if self.prefix != Prefix::No || !self.normal.may_part(before, behind) => false,
            Split::Pieces(pieces) => {
                const BLANK: u32 = 0x2581; // becomes a space
                before != BLANK
                    && behind != BLANK
                    && !pieces.may_join(self.bpe.joins(), before, behind)
            }
            #[cfg(feature = "files")]
            Split::Patterns(_) => false,
            Split::Gpt2 => gpt2::is_safe_split(classes, before, behind),
            _ => pretokenize::is_safe_split(classes, before, behind),
        }
    }
}

/// Returns the number of bytes of the longest token.
fn longest(vocabulary: &Vocabulary) -> usize {
    let wholes = vocabulary.wholes().iter().map(|whole| whole.len());
    wholes.fold(vocabulary.longest(), usize::max)
}

/// Returns whether a token starts wherever [`Text::starts`](crate::text::Text::starts) says, or one
/// character behind: there is no token with such a place inside.
fn keeps_starts(vocabulary: &Vocabulary) -> bool {
    vocabulary.iter().all(|token| (1..token.len()).all(|at| !is_start(token, at)))
}

impl fmt::Debug for Model {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Model").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "cl100k", feature = "gemma4"))]
mod tests {
    use std::hash::{BuildHasher as _, RandomState};

    use super::*;

    /// Returns a tokenizer of bytes alone.
    fn of_bytes(split: Split, normal: Normal, prefix: Prefix) -> Tokenizer {
        let singles = std::array::from_fn(|byte| u8::try_from(byte).expect("it is below 256"));
        let vocabulary = Vocabulary::from_merges(&singles, Vec::new(), Vec::new(), Vec::new());
        let vocabulary = vocabulary.expect("there are no merges");
        Tokenizer::new(Model::new("bytes".to_string(), vocabulary, split, normal, prefix))
    }

    fn is_safe_split(tokenizer: &Tokenizer, before: char, behind: char) -> bool {
        tokenizer.model().is_safe_split(before.into(), behind.into())
    }

    #[test]
    fn clones_are_equal_and_what_is_read_twice_is_not() {
        let hasher = RandomState::new();
        let hash = |tokenizer: &Tokenizer| hasher.hash_one(tokenizer);
        let new = || of_bytes(Split::Gpt2, Normal::As, Prefix::No);
        let (one, other) = (new(), new());
        assert_eq!(one, one.clone());
        assert_eq!(hash(&one), hash(&one.clone()));
        assert_ne!(one, other);
        assert_ne!(hash(&one), hash(&other));
    }

    #[test]
    fn debug_shows_the_name() {
        let tokenizer = of_bytes(Split::Gpt2, Normal::As, Prefix::No);
        assert_eq!("Tokenizer(\"bytes\")", format!("{tokenizer:?}"));
        assert_eq!("Model { name: \"bytes\", .. }", format!("{:?}", tokenizer.model()));
    }

    #[test]
    fn a_text_can_be_split_between_words() {
        let cl100k = Tokenizer::from(Encoding::Cl100k);
        let gpt2 = of_bytes(Split::Gpt2, Normal::As, Prefix::No);
        for tokenizer in [&cl100k, &gpt2] {
            assert!(is_safe_split(tokenizer, 'a', ' '));
            assert!(!is_safe_split(tokenizer, 'a', 'b'));
            assert!(!is_safe_split(tokenizer, ' ', 'a'));
        }
        // One of them has pretokens that end with a line.
        let behind_a_line = [&cl100k, &gpt2].map(|one| is_safe_split(one, '\n', 'a'));
        assert_eq!([true, false], behind_a_line);
    }

    #[test]
    fn no_text_can_be_split_at_half_a_character() {
        let model = Tokenizer::from(Encoding::Cl100k);
        let model = model.model();
        for surrogate in [0xD800, 0xDBFF, 0xDC00, 0xDFFF] {
            assert!(!model.is_safe_split('a'.into(), surrogate));
            assert!(!model.is_safe_split(surrogate, ' '.into()));
        }
        // Letters on both sides of them.
        for letter in ['\u{d7a3}', '\u{f900}', '\u{5800}'] {
            assert!(model.is_safe_split(letter.into(), ' '.into()), "{letter:?}");
        }
    }

    #[test]
    fn no_text_can_be_split_where_more_is_changed_than_its_parts() {
        let normal = of_bytes(Split::Gpt2, Normal::Nfc, Prefix::No);
        assert!(is_safe_split(&normal, 'a', ' '));
        assert!(!is_safe_split(&normal, ' ', '\u{301}'));
        for prefix in [Prefix::Always, Prefix::Missing] {
            let prefixed = of_bytes(Split::Gpt2, Normal::As, prefix);
            assert!(!is_safe_split(&prefixed, 'a', ' '));
        }
        #[cfg(feature = "files")]
        {
            let patterns = Patterns::new(&["a"]).expect("it is one");
            let patterns = of_bytes(Split::Patterns(patterns), Normal::As, Prefix::No);
            assert!(!is_safe_split(&patterns, 'a', ' '));
        }
        #[cfg(feature = "claude")]
        assert!(!is_safe_split(&Tokenizer::from(Claude::V3), 'a', ' '));
    }

    #[test]
    fn a_text_can_be_split_where_no_merge_goes_across() {
        let gemma4 = Tokenizer::from(Encoding::Gemma4);
        let merging = gemma4.model().merging().expect("it merges");
        assert!(is_safe_split(&gemma4, 'a', ' '));
        assert!(!is_safe_split(&gemma4, 'a', 'b'));
        // This becomes a space, which joins what is behind it.
        assert!(!is_safe_split(&gemma4, 'a', '\u{2581}'));
        assert!(!is_safe_split(&gemma4, '\u{2581}', ' '));
        assert!(keeps_starts(merging.bpe.vocabulary()));
        assert!(longest(merging.bpe.vocabulary()) > 15);
    }

    #[test]
    fn ends_are_found_before_normalizing() {
        let stop = AtomicBool::new(false);
        let end = |normal: Normal, prefix, text: &str, end| {
            let tokenizer = of_bytes(Split::Gpt2, normal, prefix);
            let merging = tokenizer.model().merging().expect("it merges");
            let normal = merging.normalized(text.as_bytes(), &stop);
            merging.end_before_normalizing(text.as_bytes(), &normal, end, &stop)
        };
        assert_eq!(3, end(Normal::As, Prefix::No, "a tea", 3));
        assert_eq!(2, end(Normal::As, Prefix::Always, "a tea", 3));
        assert_eq!(0, end(Normal::As, Prefix::Always, "a tea", 0));
        // Two characters of three bytes become one of two.
        assert_eq!(3, end(Normal::Nfc, Prefix::No, "e\u{301}a", 2));
        assert_eq!(4, end(Normal::Nfc, Prefix::No, "e\u{301}a", 3));
        assert_eq!(3, end(Normal::Nfc, Prefix::Always, "e\u{301}a", 3));
    }

    #[test]
    fn starts_and_lengths_are_those_of_the_tokens() {
        let singles = std::array::from_fn(|byte| u8::try_from(byte).expect("it is below 256"));
        let of = |parts: &[(char, char)], wholes: &[&str]| {
            let parts = parts.iter().map(|&(left, right)| (left.into(), right.into())).collect();
            let wholes = wholes.iter().map(|whole| whole.as_bytes().into()).collect();
            Vocabulary::from_merges(&singles, parts, wholes, Vec::new()).expect("they are short")
        };
        assert_eq!(1, longest(&of(&[], &[])));
        assert_eq!(2, longest(&of(&[('a', 'b')], &[])));
        assert_eq!(5, longest(&of(&[('a', 'b')], &["green", "tea"])));
        assert!(keeps_starts(&of(&[('a', 'b'), (' ', 'a')], &[])));
        assert!(!keeps_starts(&of(&[('a', ' ')], &[])));
        let pieces = |parts: &[(char, char)]| {
            let vocabulary = of(parts, &[]);
            let split = Split::Pieces(Pieces::new(&vocabulary));
            Model::new(String::new(), vocabulary, split, Normal::As, Prefix::No)
        };
        assert_eq!(7, pieces(&[('a', 'b')]).least(|| 7, || 8));
        assert_eq!(4, pieces(&[('a', ' ')]).least(|| 7, || 8));
        assert!(pieces(&[]).is_exact());
        assert!(Tokenizer::from(Encoding::Cl100k).is_exact());
        #[cfg(feature = "claude")]
        {
            let claude = Tokenizer::from(Claude::V3);
            assert!(!claude.is_exact());
            assert!(!claude.model().is_exact());
            assert_eq!(0, claude.model().least(|| 7, || 8));
        }
    }
}
