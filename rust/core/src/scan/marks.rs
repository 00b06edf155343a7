//! What lets the words of a text pass that may be one of many terms, by their
//! first letters.

/// The number of [`head`]s.
const HEADS: usize = 1 << 10;

/// Returns a number of the first two bytes of a word, in any case. Few words
/// share it.
fn head(first: u8, second: u8) -> usize {
    usize::from(first & 31) << 5 | usize::from(second & 31)
}

/// The words that many terms let pass, by their first letters.
#[derive(Debug)]
pub(super) struct Marks {
    /// A bit for each [`head`] of a term with less than three letters.
    short: [u64; HEADS / 64],
    /// A bit for each [`mark`] of the others.
    long: [u64; MARKS / 64],
}

/// The number of marks.
const MARKS: usize = 1 << 15;

impl Marks {
    pub(super) fn new<'t>(terms: impl Iterator<Item = &'t [u8]>) -> Box<Self> {
        let mut marks = Box::new(Self { short: [0; HEADS / 64], long: [0; MARKS / 64] });
        // Where a term ends, anything may follow.
        let all = || 0..32_u8;
        for term in terms {
            match *term {
                [] => {}
                [one] => all().for_each(|two| marks.add_head(head(one, two))),
                [one, two] => marks.add_head(head(one, two)),
                [one, two, three] => all().for_each(|four| marks.add([one, two, three, four])),
                [one, two, three, four, ..] => marks.add([one, two, three, four]),
            }
        }
        marks
    }

    fn add_head(&mut self, head: usize) {
        self.short[head / 64] |= 1 << (head % 64);
    }

    fn add(&mut self, letters: [u8; 4]) {
        let mark = mark(u32::from_le_bytes(letters));
        self.long[mark / 64] |= 1 << (mark % 64);
    }

    /// Returns 1 if a word with these first letters may be a term, else 0.
    #[inline]
    pub(super) fn pass(&self, letters: u32) -> u64 {
        let [one, two, ..] = letters.to_le_bytes();
        let (head, mark) = (head(one, two), mark(letters));
        (self.short[head / 64] >> (head % 64) | self.long[mark / 64] >> (mark % 64)) & 1
    }
}

/// Returns a number of the first four letters of a word, in any case.
#[inline]
fn mark(letters: u32) -> usize {
    ((letters & 0x1F1F_1F1F).wrapping_mul(0x9E37_79B1) >> 17) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_others_pass() {
        let terms: [&[u8]; 6] = [b"tea", b"green", b"milk", b"of", b"x", b""];
        let marks = Marks::new(terms.into_iter());
        let may_be = |word: &[u8; 4]| marks.pass(u32::from_le_bytes(*word)) == 1;
        for word in
            [b"tea ", b"teas", b"TEAS", b"gree", b"GrEe", b"milk", b"of w", b"x y ", b"xyz "]
        {
            assert!(may_be(word), "{word:?}");
        }
        let mut passed = 0;
        for one in b'a'..b'x' {
            for two in b'a'..=b'z' {
                for three in b'a'..=b'z' {
                    passed += usize::from(may_be(&[one, two, three, b'q']));
                }
            }
        }
        // All that begin with `of`, and few of the 15,548.
        assert!((26..200).contains(&passed), "{passed}");
    }
}
