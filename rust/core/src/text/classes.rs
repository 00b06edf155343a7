//! The classes of characters that the published patterns tell apart.

use std::collections::BTreeMap;

pub(crate) use budgeteer_vocab::Class;

use crate::once::Once;

/// How many of the low bits of a code point choose its entry in a block.
const BLOCK_BITS: u32 = 8;

/// How many code points have a table of their own: all of up to three bytes.
const BASIC: usize = 1 << 16;

/// The classes of all code points, in two levels: most blocks are alike.
#[derive(Debug)]
pub(crate) struct Classes {
    blocks: Box<[u16]>,
    /// The classes of each block that differs from those before.
    entries: Vec<u8>,
    basic: Box<[u8; BASIC]>,
    /// The class of all characters with that first byte, and their size in
    /// bytes, which is 0 where their classes differ.
    leads: [(u8, u8); 256],
}

impl Classes {
    /// Returns the one table of the process.
    pub(crate) fn get() -> &'static Self {
        static CLASSES: Once<Classes> = Once::new();
        CLASSES.get(Self::new)
    }

    fn new() -> Self {
        const BLOCK: usize = 1 << BLOCK_BITS;
        let mut all = vec![0; 0x11_0000];
        for &(first, last, class) in budgeteer_vocab::CLASSES {
            all[first as usize..=last as usize].fill(class);
        }
        let mut found: BTreeMap<&[u8], u16> = BTreeMap::new();
        let mut classes = Vec::new();
        let blocks = all.chunks_exact(BLOCK).map(|block| {
            *found.entry(block).or_insert_with(|| {
                let place = classes.len() / BLOCK;
                classes.extend_from_slice(block);
                u16::try_from(place).expect("there are 4352 blocks")
            })
        });
        let blocks = blocks.collect();
        let basic = Box::new(*all.first_chunk().expect("there are more"));
        Self { blocks, entries: classes, basic, leads: leads(&all) }
    }

    /// Returns the class of a code point.
    #[inline]
    pub(crate) fn of(&self, code: u32) -> u8 {
        if let Ok(code) = u16::try_from(code) {
            return self.basic[usize::from(code)];
        }
        let block = usize::from(self.blocks[(code >> BLOCK_BITS) as usize]);
        self.entries[block << BLOCK_BITS | (code & 0xFF) as usize]
    }

    /// Returns the class of the character at `at`, and its size in bytes.
    /// `text` must be UTF-8, and a character start there.
    #[inline]
    pub(crate) fn at(&self, text: &[u8], at: usize) -> (u8, usize) {
        let (class, size) = self.leads[usize::from(text[at])];
        if size > 0 {
            return (class, usize::from(size));
        }
        let (code, size) = super::decode(text, at);
        (self.of(code), size)
    }
}

/// Returns, for each first byte, the class and the size of its characters if
/// they are all of that class.
fn leads(all: &[u8]) -> [(u8, u8); 256] {
    std::array::from_fn(|lead| {
        let (first, count, size) = match lead {
            0..=0x7F => (lead, 1, 1),
            0xC2..=0xDF => ((lead & 0x1F) << 6, 1 << 6, 2),
            0xE1..=0xEF => ((lead & 0xF) << 12, 1 << 12, 3),
            _ => return (0, 0),
        };
        let class = all[first];
        let are_alike = all[first..first + count].iter().all(|&other| other == class);
        if are_alike { (class, size) } else { (0, 0) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell_the_class_where_it_is_one() {
        let classes = Classes::get();
        let mut found = [const { Vec::new() }; 256];
        for char in '\0'..=char::MAX {
            let lead = char.encode_utf8(&mut [0; 4]).as_bytes()[0];
            let (class, size) = (classes.of(char.into()), char.len_utf8());
            if !found[usize::from(lead)].contains(&(class, size)) {
                found[usize::from(lead)].push((class, size));
            }
        }
        for (lead, (found, (class, size))) in found.iter().zip(classes.leads).enumerate() {
            // Of four bytes none is asked for.
            let expected = if lead < 0xF0 && found.len() == 1 { found[0] } else { (0, 0) };
            assert_eq!(expected, (class, size.into()), "{lead:#x}");
        }
        assert!([b'a', 0xCC, 0xE5].iter().all(|&lead| classes.leads[usize::from(lead)].1 > 0));
    }

    #[test]
    fn characters_are_classed_in_a_text_as_by_their_codes() {
        let classes = Classes::get();
        for &(first, last, class) in budgeteer_vocab::CLASSES {
            let ends = [first, last, u32::midpoint(first, last)];
            for char in ends.into_iter().filter_map(char::from_u32) {
                assert_eq!(class, classes.of(char.into()));
            }
        }
        for char in '\0'..=char::MAX {
            let text = format!("a{char}");
            assert_eq!((classes.of(char.into()), char.len_utf8()), classes.at(text.as_bytes(), 1));
        }
    }
}
