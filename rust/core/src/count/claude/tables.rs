//! The tables of a family: characters, pieces and runs of white space.

use budgeteer_vocab::{Claude as Source, ClaudeCharacters as Of, ClaudePieces};

use super::trie::Trie;

/// The markers, as bytes that no UTF-8 has.
pub(super) const WORD_BEGIN: u8 = ClaudePieces::WORD_BEGIN;
pub(super) const WORD_END: u8 = ClaudePieces::WORD_END;
pub(super) const SHIFT: u8 = ClaudePieces::SHIFT;
pub(super) const CAPS: u8 = ClaudePieces::CAPS;

/// Where the cost of a character is among its bits: how many tokens it is if no
/// longer piece covers it.
const COST_SHIFT: u32 = 24;

/// No piece covers the character together with anything else.
pub(super) const ALONE: u32 = 1 << 27;

/// How many characters are looked up by the low bits of their code.
const BLOCK: usize = 256;

/// What is known of all characters of a family.
#[derive(Debug)]
pub(super) struct Tables {
    /// By the high bits of a code, where its block starts in `blocks`.
    starts: Vec<u32>,
    blocks: Vec<u32>,
    lowers: Vec<(char, char)>,
    pub(super) trie: Trie,
    spaces: Runs,
    tabs: Runs,
    newlines: Runs,
    /// Tokens of single punctuation of ASCII, without markers, then with one
    /// before it, then behind it, then both.
    pub(super) ones: [[u8; 4]; 128],
    /// By byte of ASCII, the length of the longest piece of that byte alone.
    longest: [u8; 128],
    /// Whether words in capitals have a marker.
    pub(super) marks_caps: bool,
    /// The bits of characters that are replaced or removed.
    pub(super) replaced: u32,
}

impl Tables {
    pub(super) fn new(source: Source) -> Self {
        let pieces = source.load();
        let characters = Of::load();
        let mut flat = costs(&pieces);
        for (first, last, value) in characters.ranges() {
            for entry in &mut flat[first as usize..=last as usize] {
                *entry |= value;
            }
        }
        let (mut starts, mut blocks) = (Vec::new(), Vec::<u32>::new());
        for block in flat.chunks(BLOCK) {
            if !blocks.ends_with(block) {
                blocks.extend(block);
            }
            starts.push(u32::try_from(blocks.len() - BLOCK).unwrap_or(0));
        }
        let is_three = source == Source::Three;
        let quotes = if is_three { Of::SINGLE_QUOTE | Of::DOUBLE_QUOTE } else { 0 };
        let mut tables = Self {
            starts,
            blocks,
            lowers: characters.lowers().collect(),
            trie: Trie::new(pieces.iter()),
            spaces: Runs::new(b' ', &pieces),
            tabs: Runs::new(b'\t', &pieces),
            newlines: Runs::new(b'\n', &pieces),
            ones: [[0; 4]; 128],
            longest: [1; 128],
            marks_caps: is_three,
            replaced: Of::STRIPPED | Of::BLANK | quotes,
        };
        for piece in pieces.iter().filter(|piece| piece.iter().all(|byte| byte == &piece[0])) {
            if let Some(longest) = tables.longest.get_mut(usize::from(piece[0])) {
                *longest =
                    u8::try_from(piece.len()).map_or(*longest, |length| length.max(*longest));
            }
        }
        for byte in 0..128 {
            let both = [WORD_BEGIN, byte, WORD_END];
            let counts = [&both[1..2], &both[..2], &both[1..], &both[..]]
                .map(|symbols| u8::try_from(tables.tile(symbols)).unwrap_or(u8::MAX));
            tables.ones[usize::from(byte)] = counts;
        }
        tables
    }

    /// Returns the bits of a character.
    #[inline]
    pub(super) fn bits(&self, code: u32) -> u32 {
        let start = self.starts.get(code as usize / BLOCK).copied().unwrap_or(0);
        self.blocks[start as usize + code as usize % BLOCK]
    }

    /// Returns the small form of a character, which is itself if it has none.
    pub(super) fn lower(&self, char: char) -> char {
        if char.is_ascii() {
            return char.to_ascii_lowercase();
        }
        match self.lowers.binary_search_by_key(&char, |pair| pair.0) {
            Ok(place) => self.lowers[place].1,
            Err(_) => char,
        }
    }

    /// Returns the number of bytes of the longest piece of that byte alone.
    pub(super) fn longest(&self, byte: u8) -> usize {
        self.longest.get(usize::from(byte)).map_or(1, |&longest| longest.into())
    }

    /// Returns the tokens of a run of one character of white space.
    pub(super) fn count_run(&self, byte: u8, length: usize) -> u64 {
        match byte {
            b' ' => &self.spaces,
            b'\t' => &self.tabs,
            _ => &self.newlines,
        }
        .count(length)
    }

    /// Returns what the newlines at the end of a text add.
    ///
    /// The frame has two newlines of its own behind the text, which join with
    /// them: the last token of them all is the frame's.
    pub(super) fn count_tail(&self, newlines: usize) -> u64 {
        if newlines == 0 { 0 } else { self.newlines.count(newlines + 2) - 1 }
    }
}

/// Returns the cost of the character with these bits.
#[inline]
pub(super) fn cost(bits: u32) -> u64 {
    u64::from(bits >> COST_SHIFT & 7)
}

/// Returns the costs of all characters, and which ones are alone.
fn costs(pieces: &ClaudePieces) -> Vec<u32> {
    let mut costs = vec![0; 0x11_0000];
    for (codes, length) in
        [(0..0x80, 1), (0x80..0x800, 2), (0x800..0x1_0000, 3), (0x1_0000..0x11_0000, 4)]
    {
        costs[codes].fill(length << COST_SHIFT | ALONE);
    }
    // Longer heads come behind the shorter ones that they start with.
    for head in pieces.heads() {
        let (length, first) = match head[0] {
            0xF0.. => (4, u32::from(head[0] & 7)),
            _ => (3, u32::from(head[0] & 15)),
        };
        let code = head[1..].iter().fold(first, |code, &byte| code << 6 | u32::from(byte & 63));
        let missing = length - head.len();
        let (code, codes) = ((code as usize) << (6 * missing), 1 << (6 * missing));
        let cost = u32::try_from(missing + 1).unwrap_or(4);
        costs[code..code + codes].fill(cost << COST_SHIFT | ALONE);
    }
    for piece in pieces.iter() {
        let text = piece.iter().copied().filter(|&byte| byte < WORD_BEGIN).collect();
        let text = String::from_utf8(text).unwrap_or_default();
        let is_single = text.len() == piece.len() && text.chars().nth(1).is_none();
        for char in text.chars() {
            let cost = &mut costs[char as usize];
            if is_single {
                *cost = 1 << COST_SHIFT | *cost & ALONE;
            } else {
                *cost &= !ALONE;
            }
        }
    }
    costs
}

/// The tokens of runs of one character.
#[derive(Debug)]
struct Runs {
    /// By the length of a run.
    counts: Vec<u32>,
    longest: usize,
}

impl Runs {
    fn new(byte: u8, pieces: &ClaudePieces) -> Self {
        let lengths: Vec<usize> = pieces
            .iter()
            .filter(|piece| piece.iter().all(|&other| other == byte))
            .map(<[u8]>::len)
            .collect();
        let longest = lengths.iter().copied().max().unwrap_or(1);
        // The fewest pieces have fewer than `longest` shorter ones: among as
        // many there are some whose lengths add up to a multiple of `longest`,
        // which fewer of the longest would cover. So every run of at least the
        // square starts with the longest.
        let mut counts = vec![0; longest * longest];
        for length in 1..counts.len() {
            let shorter =
                lengths.iter().filter_map(|&piece| counts.get(length.wrapping_sub(piece)));
            counts[length] = shorter.min().map_or(1, |count: &u32| count + 1);
        }
        Self { counts, longest }
    }

    fn count(&self, length: usize) -> u64 {
        if let Some(&count) = self.counts.get(length) {
            return count.into();
        }
        let more = (length - self.counts.len()) / self.longest + 1;
        more as u64 + u64::from(self.counts[length - more * self.longest])
    }
}
