//! Chunks with extracts in place of their texts, and a host that is asked about
//! each text once.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use crate::chunk::Batch;
use crate::plan::{Host, Subject};
use crate::template::Tag;
use crate::text::Text;

/// An extract, stored as the batch would store it: equal texts are found where
/// they are stored alike.
#[derive(Debug, Default)]
pub(super) struct Extract {
    utf8: Vec<u8>,
    units: Units,
}

#[derive(Debug, Default)]
enum Units {
    #[default]
    Utf8,
    Latin1(Vec<u8>),
    Ucs2(Vec<u16>),
    Ucs4(Vec<u32>),
}

impl Extract {
    /// Returns the extract `utf8`, encoded as in [`Text::Utf8`], of `whole`.
    pub(super) fn new(utf8: Vec<u8>, whole: Text<'_>) -> Self {
        let units = if matches!(whole, Text::Ascii(_) | Text::Utf8(_)) || utf8.is_ascii() {
            Units::Utf8
        } else {
            let mut codes = Vec::new();
            Text::Utf8(&utf8).for_each(|code| codes.push(code));
            if let Ok(units) = codes.iter().map(|&code| u8::try_from(code)).collect() {
                Units::Latin1(units)
            } else if let Ok(units) = codes.iter().map(|&code| u16::try_from(code)).collect() {
                Units::Ucs2(units)
            } else {
                Units::Ucs4(codes)
            }
        };
        Self { utf8, units }
    }

    pub(super) fn text(&self) -> Text<'_> {
        match &self.units {
            Units::Utf8 => Text::from_utf8(&self.utf8),
            Units::Latin1(units) => Text::Latin1(units),
            Units::Ucs2(units) => Text::Ucs2(units),
            Units::Ucs4(units) => Text::Ucs4(units),
        }
    }

    pub(super) fn utf8(&self) -> &[u8] {
        &self.utf8
    }
}

/// A batch in which some chunks have extracts as their texts.
pub(super) struct Extracts<'a, B> {
    batch: &'a B,
    /// For each chunk 1 more than the place of its extract; 0 for its own text.
    slots: Vec<u32>,
    made: Vec<Extract>,
}

impl<'a, B: Batch> Extracts<'a, B> {
    pub(super) fn new(batch: &'a B) -> Self {
        Self { batch, slots: vec![0; batch.len()], made: Vec::new() }
    }

    /// Returns the extract of chunk `index`, and its place; None for its own
    /// text.
    pub(super) fn of(&self, index: usize) -> Option<(usize, &Extract)> {
        let place = self.slots[index].checked_sub(1)? as usize;
        Some((place, &self.made[place]))
    }

    /// Gives chunk `index` the extract at `place`; None for its own text.
    pub(super) fn set(&mut self, index: u32, place: usize, extract: Option<Extract>) {
        let slot = u32::try_from(place + 1).expect("few chunks are split");
        self.slots[index as usize] = if extract.is_some() { slot } else { 0 };
        if let Some(extract) = extract {
            self.made.resize_with(self.made.len().max(place + 1), Extract::default);
            self.made[place] = extract;
        }
    }

    /// Gives chunk `index` the text of chunk `original`.
    pub(super) fn repeat(&mut self, index: u32, original: u32) {
        self.slots[index as usize] = self.slots[original as usize];
    }
}

impl<B: Batch> Batch for Extracts<'_, B> {
    fn len(&self) -> usize {
        self.batch.len()
    }

    fn text(&self, index: usize) -> Text<'_> {
        self.of(index).map_or_else(|| self.batch.text(index), |(_, extract)| extract.text())
    }

    fn title(&self, index: usize) -> Text<'_> {
        self.batch.title(index)
    }

    fn prefetch(&self, index: usize) {
        self.batch.prefetch(index);
    }

    fn total_chars(&self) -> usize {
        self.batch.total_chars()
    }
}

/// What a host has answered.
#[derive(Debug, Default)]
pub(super) struct Answers {
    chunks: HashMap<usize, u64>,
    texts: HashMap<Vec<u8>, u64>,
    tags: HashMap<usize, Tag>,
}

/// A host that is asked about each text once, as sentences are tried again and
/// again.
pub(super) struct AskedOnce<'h, 'a, B, H> {
    pub(super) host: &'h mut H,
    pub(super) answers: &'h mut Answers,
    pub(super) extracts: &'h Extracts<'a, B>,
}

impl<B: Batch, H: Host> AskedOnce<'_, '_, B, H> {
    /// Returns the count of the whole text of chunk `index`.
    pub(super) fn count_whole(&mut self, index: usize) -> Result<u64, H::Error> {
        if let Some(&count) = self.answers.chunks.get(&index) {
            return Ok(count);
        }
        let count = self.host.count(Subject::Chunk(index))?;
        self.answers.chunks.insert(index, count);
        Ok(count)
    }

    fn count_text(&mut self, index: Option<usize>, text: &[u8]) -> Result<u64, H::Error> {
        if let Some(&count) = self.answers.texts.get(text) {
            return Ok(count);
        }
        let count = self.host.count(match index {
            Some(index) => Subject::Piece { index, text },
            None => Subject::Assembled(text),
        })?;
        self.answers.texts.insert(text.to_vec(), count);
        Ok(count)
    }
}

impl<B: Batch, H: Host> Host for AskedOnce<'_, '_, B, H> {
    type Error = H::Error;

    fn count(&mut self, subject: Subject<'_>) -> Result<u64, H::Error> {
        let index = match subject {
            Subject::Chunk(index) => index,
            Subject::Piece { index, text } => return self.count_text(Some(index), text),
            Subject::Assembled(text) => return self.count_text(None, text),
        };
        let extracts = self.extracts;
        if let Some((_, extract)) = extracts.of(index) {
            return self.count_text(Some(index), extract.utf8());
        }
        self.count_whole(index)
    }

    fn tag(&mut self, index: usize) -> Result<Tag, H::Error> {
        if let Some(tag) = self.answers.tags.get(&index) {
            return Ok(tag.clone());
        }
        let tag = self.host.tag(index)?;
        self.answers.tags.insert(index, tag.clone());
        Ok(tag)
    }

    fn write(&mut self, index: usize) -> Result<Vec<u8>, H::Error> {
        self.host.write(index)
    }

    fn cite(&mut self, index: usize) -> Result<u64, H::Error> {
        self.host.cite(index)
    }

    fn work<R: Send>(
        &mut self,
        chars: usize,
        work: impl FnOnce(&AtomicBool) -> R + Send,
    ) -> Result<R, H::Error> {
        self.host.work(chars, work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::Documents;
    use crate::plan::watching::Watching;

    /// A host is asked about each text and tag once, and for the rest each time.
    #[test]
    fn a_host_is_asked_once() {
        let texts = ["Green tea. Rye bread.", "Black tea."];
        let batch = Documents::new(&texts);
        let mut extracts = Extracts::new(&batch);
        extracts.set(0, 0, Some(Extract::new(b"Green tea.".to_vec(), batch.text(0))));
        let (mut host, mut answers) = (Watching::default(), Answers::default());
        for _ in 0..2 {
            let (host, answers, extracts) = (&mut host, &mut answers, &extracts);
            let mut once = AskedOnce { host, answers, extracts };
            let counts = [0, 1].map(|index| once.count(Subject::Chunk(index)));
            assert_eq!([Ok(10), Ok(9)], counts);
            assert_eq!([Ok(9), Ok(9)], [0, 1].map(|index| once.count_whole(index)));
            assert_eq!(Ok(3), once.count(Subject::Assembled(b"tea")));
            assert_eq!(Ok(&b"1"[..]), once.tag(1).as_ref().map(|tag| &*tag.id));
            assert_eq!(Ok(b"chunk 1".to_vec()), once.write(1));
            assert_eq!(Ok(11), once.cite(1));
            assert_eq!(Ok(2), once.work(5, |_| 2));
        }
        let asked = ["count 0", "count 1", "count 0", "count 0", "tag 1"];
        let each_time = ["write 1", "cite 1"];
        assert_eq!([&asked[..], &each_time, &each_time].concat(), host.asked);
        assert_eq!(vec![5, 5], host.work);
    }

    #[test]
    fn extracts_stand_for_texts() {
        let texts = ["Green tea. Rye bread.", "Black tea."];
        let batch = Documents::new(&texts);
        let mut extracts = Extracts::new(&batch);
        assert_eq!((2, batch.total_chars()), (extracts.len(), extracts.total_chars()));
        extracts.set(0, 0, Some(Extract::new(b"Green tea.".to_vec(), batch.text(0))));
        let text = |extracts: &Extracts<'_, _>, at| {
            let mut utf8 = Vec::new();
            extracts.text(at).write_utf8(&mut utf8);
            utf8
        };
        assert_eq!(
            [b"Green tea.", b"Black tea."].map(Vec::from),
            [0, 1].map(|at| text(&extracts, at))
        );
        assert_eq!(Some(0), extracts.of(0).map(|(place, _)| place));
        extracts.repeat(1, 0);
        assert_eq!(b"Green tea.".to_vec(), text(&extracts, 1));
        extracts.set(0, 0, None);
        assert_eq!(texts[0].as_bytes(), text(&extracts, 0));
        assert_eq!(2, extracts.len());
    }
}
