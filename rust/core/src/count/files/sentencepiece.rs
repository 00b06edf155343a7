//! Models of SentencePiece, of the kind BPE.

use super::builder::Read;
use super::characters::{self, Pieces};
use super::{damaged, unknown};
use crate::count::normal::{Prefix, SPACE};
use crate::error::Error;

/// A field of a message of Protocol Buffers.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Float(f32),
    Other,
}

/// Reads a message, field by field.
struct Message<'a>(&'a [u8]);

impl<'a> Message<'a> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for nth in 0..10 {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7F) << (7 * nth);
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    /// Returns the number of the next field, and the field; None where the
    /// message ends or is damaged.
    fn next(&mut self) -> Option<(u64, Field<'a>)> {
        let tag = self.number()?;
        let field = match tag & 7 {
            0 => Field::Number(self.number()?),
            1 => {
                self.take(8)?;
                Field::Other
            }
            2 => {
                let length = usize::try_from(self.number()?).ok()?;
                Field::Bytes(self.take(length)?)
            }
            5 => Field::Float(f32::from_le_bytes(self.take(4)?.try_into().ok()?)),
            _ => return None,
        };
        Some((tag >> 3, field))
    }
}

/// A piece: its text, its score and its type.
struct Piece<'a> {
    text: &'a str,
    score: f32,
    kind: u64,
}

/// The types of pieces.
const NORMAL: u64 = 1;
const USER_DEFINED: u64 = 4;
const UNUSED: u64 = 5;

/// The kind of a model that merges.
const BPE: u64 = 2;

fn piece(bytes: &[u8]) -> Option<Piece<'_>> {
    let mut piece = Piece { text: "", score: 0.0, kind: NORMAL };
    let mut message = Message(bytes);
    while !message.0.is_empty() {
        match message.next()? {
            (1, Field::Bytes(text)) => piece.text = std::str::from_utf8(text).ok()?,
            (2, Field::Float(score)) => piece.score = score,
            (3, Field::Number(kind)) => piece.kind = kind,
            _ => {}
        }
    }
    (!piece.text.is_empty()).then_some(piece)
}

/// Returns whether the first field is a piece.
pub(super) fn is_one(content: &[u8]) -> bool {
    match Message(content).next() {
        Some((1, Field::Bytes(bytes))) => piece(bytes).is_some(),
        _ => false,
    }
}

/// What the two messages about training and normalizing say.
#[allow(clippy::struct_excessive_bools)] // they are the file's
struct Spec {
    kind: u64,
    has_byte_fallback: bool,
    has_suffixes: bool,
    rules: usize,
    has_prefix: bool,
    drops_spaces: bool,
    escapes_spaces: bool,
}

impl Spec {
    fn new() -> Self {
        // The defaults of the format.
        Self {
            kind: 1,
            has_byte_fallback: false,
            has_suffixes: false,
            rules: 0,
            has_prefix: true,
            drops_spaces: true,
            escapes_spaces: true,
        }
    }

    fn train(&mut self, mut message: Message<'_>) -> Option<()> {
        while !message.0.is_empty() {
            match message.next()? {
                (3, Field::Number(kind)) => self.kind = kind,
                (24, Field::Number(is)) => self.has_suffixes = is != 0,
                (35, Field::Number(is)) => self.has_byte_fallback = is != 0,
                _ => {}
            }
        }
        Some(())
    }

    fn normalize(&mut self, mut message: Message<'_>) -> Option<()> {
        while !message.0.is_empty() {
            match message.next()? {
                (2, Field::Bytes(rules)) => self.rules = rules.len(),
                (3, Field::Number(is)) => self.has_prefix = is != 0,
                (4, Field::Number(is)) => self.drops_spaces = is != 0,
                (5, Field::Number(is)) => self.escapes_spaces = is != 0,
                _ => {}
            }
        }
        Some(())
    }

    fn check(&self) -> Result<(), Error> {
        let step = match self {
            Self { kind: 1, .. } => "the model Unigram",
            Self { kind, .. } if *kind != BPE => "a model that is not BPE",
            Self { has_suffixes: true, .. } => "spaces behind words",
            Self { rules: 1.., .. } => "a normalizer with rules for characters",
            Self { drops_spaces: true, .. } => "a normalizer that drops spaces",
            Self { escapes_spaces: false, .. } => "a normalizer that keeps spaces",
            Self { has_byte_fallback: false, .. } => {
                "a vocabulary of characters without a byte fallback"
            }
            _ => return Ok(()),
        };
        Err(unknown(step))
    }
}

pub(super) fn read(content: &[u8]) -> Result<Read, Error> {
    let mut spec = Spec::new();
    let mut pieces = Vec::new();
    let mut message = Message(content);
    while !message.0.is_empty() {
        let is_read = match message.next() {
            Some((1, Field::Bytes(bytes))) => piece(bytes).map(|piece| pieces.push(piece)),
            Some((2, Field::Bytes(bytes))) => spec.train(Message(bytes)),
            Some((3, Field::Bytes(bytes))) => spec.normalize(Message(bytes)),
            Some(_) => Some(()),
            None => None,
        };
        is_read.ok_or_else(|| damaged("it is no model of SentencePiece"))?;
    }
    spec.check()?;
    if pieces.iter().any(|piece| piece.kind == UNUSED) {
        return Err(unknown("pieces that are merged and then taken apart"));
    }
    let runs = pieces.iter().filter(|piece| piece.kind == USER_DEFINED).filter_map(|piece| {
        let first = piece.text.chars().next()?;
        let char = if piece.text.starts_with(SPACE) { ' ' } else { first };
        let length = piece.text.chars().count();
        let is_run = matches!(char, ' ' | '\n' | '\t' | '\r') && length > 1;
        (is_run && piece.text.chars().all(|other| other == first)).then_some((char, length))
    });
    let runs = runs.collect();
    pieces.retain(|piece| piece.kind == NORMAL);
    // The order in which pieces merge. Of equal scores the first wins.
    pieces.sort_by(|one, other| other.score.total_cmp(&one.score));
    let tokens: Vec<&str> = pieces.iter().map(|piece| piece.text).collect();
    let prefix = if spec.has_prefix { Prefix::Always } else { Prefix::No };
    characters::read(&Pieces { merges: None, runs, tokens }, prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_by_their_types() {
        // A number, eight bytes that mean nothing here, bytes, and a float.
        let content = [
            &[1 << 3, 0x96, 0x01][..],
            &[2 << 3 | 1, 1, 2, 3, 4, 5, 6, 7, 8],
            &[3 << 3 | 2, 2, b'a', b'b'],
            &[4 << 3 | 5, 0, 0, 0x80, 0x3F],
        ]
        .concat();
        let mut message = Message(&content);
        assert!(matches!(message.next(), Some((1, Field::Number(150)))));
        assert!(matches!(message.next(), Some((2, Field::Other))));
        assert!(matches!(message.next(), Some((3, Field::Bytes(b"ab")))));
        assert!(matches!(message.next(), Some((4, Field::Float(1.0)))));
        assert!(message.next().is_none() && message.0.is_empty());
        assert!(Message(&[1 << 3 | 3, 0]).next().is_none());
        assert!(Message(&[2 << 3 | 1, 1, 2]).next().is_none());
    }

    #[test]
    fn a_piece_has_a_text_a_score_and_a_type() {
        let content = [&[1 << 3 | 2, 1, b'a'][..], &[2 << 3 | 5, 0, 0, 0x80, 0xBF], &[3 << 3, 4]];
        let whole = content.concat();
        let found = piece(&whole).expect("it has a text");
        assert_eq!(("a", -1.0, USER_DEFINED), (found.text, found.score, found.kind));
        let found = piece(content[0]).expect("it has a text");
        assert_eq!(("a", 0.0, NORMAL), (found.text, found.score, found.kind));
        assert!(piece(&[3 << 3, 4]).is_none() && piece(&[]).is_none());
    }

    #[test]
    fn what_is_not_counted_is_refused() {
        let refused = |train: &[u8], normalize: &[u8]| {
            let mut spec = Spec::new();
            spec.train(Message(train)).expect("it is a message");
            spec.normalize(Message(normalize)).expect("it is a message");
            spec.check().err().map(|error| error.to_string())
        };
        let merges = [3 << 3, 2, 0x98, 0x02, 1]; // that merge, with a byte fallback
        for (train, normalize, step) in [
            (&[3 << 3, 1][..], &[][..], "the model Unigram"),
            (&[3 << 3, 3], &[4 << 3, 0], "a model that is not BPE"),
            (&[3 << 3, 2, 0xC0, 0x01, 1], &[4 << 3, 0], "spaces behind words"),
            (&merges, &[2 << 3 | 2, 1, 0], "a normalizer with rules for characters"),
            (&merges, &[], "a normalizer that drops spaces"),
            (&merges, &[4 << 3, 1], "a normalizer that drops spaces"),
            (&merges, &[4 << 3, 0, 5 << 3, 0], "a normalizer that keeps spaces"),
            (&[3 << 3, 2], &[4 << 3, 0], "a vocabulary of characters without a byte fallback"),
        ] {
            let found = refused(train, normalize).expect("it is refused");
            assert!(found.ends_with(step), "{found}");
        }
        assert_eq!(None, refused(&merges, &[4 << 3, 0]));
        assert_eq!(None, refused(&merges, &[4 << 3, 0, 5 << 3, 1]));
    }

    #[test]
    fn a_prefix_is_as_the_file_says() {
        for (is, expected) in [(0, false), (1, true)] {
            let mut spec = Spec::new();
            spec.normalize(Message(&[3 << 3, is])).expect("it is a message");
            assert_eq!(expected, spec.has_prefix);
        }
    }

    #[test]
    fn a_single_character_of_the_user_is_no_run() {
        let spec = [&[2 << 3 | 2, 5, 3 << 3, 2, 0x98, 0x02, 1][..], &[3 << 3 | 2, 2, 4 << 3, 0]];
        let read_with = |pieces: &[&str]| {
            let pieces = pieces.iter().flat_map(|text| {
                let length = u8::try_from(text.len()).expect("it is short");
                let fields = [&[1 << 3 | 2, length][..], text.as_bytes(), &[3 << 3, 4]].concat();
                [&[1 << 3 | 2, length + 4][..], &fields].concat()
            });
            read(&pieces.chain(spec.concat()).collect::<Vec<_>>()).err()
        };
        assert_eq!(None, read_with(&["\n", "\n\n", "\t", "ab", "\r\n\n"]));
        assert!(read_with(&["\n", "\n\n\n"]).is_some());
    }
}
