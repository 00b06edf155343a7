//! The classes of characters that the published patterns tell apart.

pub(crate) use budgeteer_vocab::Class;

use crate::once::Once;

/// How many of the low bits of a code point choose its entry in a block.
const BLOCK_BITS: u32 = 8;

/// The classes of all code points, in two levels: most blocks are alike.
#[derive(Debug)]
pub(crate) struct Classes {
    blocks: Box<[u16]>,
    /// The classes of each block that differs from those before.
    entries: Vec<u8>,
    ascii: [u8; 128],
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
        let mut found: std::collections::HashMap<&[u8], u16> = std::collections::HashMap::new();
        let mut classes = Vec::new();
        let blocks = all.chunks_exact(BLOCK).map(|block| {
            *found.entry(block).or_insert_with(|| {
                let place = classes.len() / BLOCK;
                classes.extend_from_slice(block);
                u16::try_from(place).expect("there are 4352 blocks")
            })
        });
        let blocks = blocks.collect();
        let ascii = all[..128].try_into().expect("there are more than 128");
        Self { blocks, entries: classes, ascii }
    }

    /// Returns the class of a code point.
    #[inline]
    pub(crate) fn of(&self, code: u32) -> u8 {
        let block = usize::from(self.blocks[(code >> BLOCK_BITS) as usize]);
        self.entries[block << BLOCK_BITS | (code & 0xFF) as usize]
    }

    /// Returns the class of the character at `at`, and its size in bytes.
    /// `text` must be UTF-8, and a character start there.
    #[inline]
    pub(crate) fn at(&self, text: &[u8], at: usize) -> (u8, usize) {
        let first = text[at];
        if first < 0x80 {
            return (self.ascii[usize::from(first)], 1);
        }
        let (code, size) = super::decode(text, at);
        (self.of(code), size)
    }
}
