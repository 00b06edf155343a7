//! The pieces as a trie of bytes.

/// A place in the trie. Its children are where its base and their byte say.
#[derive(Clone, Copy, Debug)]
struct Cell {
    /// The base, and in the highest bit whether a piece ends here.
    base: u32,
    parent: u32,
}

const FREE: Cell = Cell { base: 0, parent: u32::MAX };
const ENDS: u32 = 1 << 31;

/// The children of a place are in one block: a base and a byte differ in the
/// lowest eight bits only.
const BLOCK: usize = 256;

/// A trie in one array.
#[derive(Debug)]
pub(super) struct Trie {
    cells: Vec<Cell>,
}

impl Trie {
    /// The place of the empty string.
    pub(super) const ROOT: u32 = 0;

    /// Makes a trie of strings, which are in ascending order and not empty.
    pub(super) fn new<'a>(strings: impl Iterator<Item = &'a [u8]>) -> Self {
        let strings: Vec<&[u8]> = strings.collect();
        let mut cells = vec![FREE; BLOCK];
        cells[0].parent = 0;
        // From where free places are looked for, by the number of children.
        let mut starts = [1_usize; 4];
        let mut tasks = vec![(0_usize, &strings[..], 0_usize)];
        let mut children: Vec<(u8, &[&[u8]])> = Vec::new();
        while let Some((place, mut strings, depth)) = tasks.pop() {
            while let Some((first, rest)) = strings.split_first()
                && first.len() == depth
            {
                cells[place].base |= ENDS;
                strings = rest;
            }
            children.clear();
            for same in strings.chunk_by(|left, right| left[depth] == right[depth]) {
                children.push((same[0][depth], same));
            }
            let Some(&(first, _)) = children.first() else { continue };
            let start = &mut starts[children.len().min(4) - 1];
            let base = loop {
                if *start >= cells.len() {
                    cells.resize(cells.len() + BLOCK, FREE);
                }
                let base = *start ^ usize::from(first);
                let free =
                    |&(byte, _): &(u8, _)| cells[base ^ usize::from(byte)].parent == u32::MAX;
                if children.iter().all(free) {
                    break base;
                }
                *start += 1;
            };
            cells[place].base |= u32::try_from(base).unwrap_or(0);
            for &(byte, strings) in &children {
                let child = base ^ usize::from(byte);
                cells[child].parent = u32::try_from(place).unwrap_or(0);
                tasks.push((child, strings, depth + 1));
            }
        }
        Self { cells }
    }

    /// Returns the place that a byte leads to from another.
    #[inline]
    pub(super) fn next(&self, place: u32, byte: u8) -> Option<u32> {
        let next = self.cells[place as usize].base & !ENDS ^ u32::from(byte);
        (self.cells[next as usize].parent == place && next != Self::ROOT).then_some(next)
    }

    /// Returns whether a piece ends there.
    #[inline]
    pub(super) fn ends(&self, place: u32) -> bool {
        self.cells[place as usize].base & ENDS != 0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use budgeteer_vocab::Claude;

    use super::Trie;

    #[test]
    fn it_holds_all_strings_and_no_other() {
        for family in [Claude::Three, Claude::FourSeven] {
            let pieces = family.load();
            let all: BTreeSet<&[u8]> = pieces.iter().collect();
            let trie = Trie::new(pieces.iter());
            for (number, piece) in pieces.iter().enumerate() {
                let mut place = Some(Trie::ROOT);
                for (length, &byte) in (1..).zip(piece) {
                    place = trie.next(place.expect("it is the start of a piece"), byte);
                    let ends = place.is_some_and(|place| trie.ends(place));
                    assert_eq!(all.contains(&piece[..length]), ends, "{piece:?}");
                }
                // All bytes behind all pieces take a minute.
                for byte in (0..=255).filter(|_| number % 50 == 0) {
                    let more = trie.next(place.expect("it is a piece"), byte);
                    let longer = [piece, &[byte]].concat();
                    let known = all
                        .range(&longer[..]..)
                        .next()
                        .is_some_and(|next| next.starts_with(&longer));
                    assert_eq!(known, more.is_some(), "{longer:?}");
                }
            }
        }
    }
}
