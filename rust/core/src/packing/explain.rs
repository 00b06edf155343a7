//! Explaining in a sentence what became of a chunk.

use super::{KeptChunk, MadeBy, Packing, name_of};
use crate::dropped::DroppedChunk;
use crate::error::Error;
use crate::outcome::Reason;
use crate::pipeline::{Signal, SignalKind};

/// All reasons, in the order in which they are decided.
const REASONS: [Reason; 5] =
    [Reason::OutOfScope, Reason::Empty, Reason::Cap, Reason::Duplicate, Reason::Budget];

impl Packing {
    /// Returns a sentence that says what became of chunk `index`; with None, a
    /// few lines about all chunks.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where
    /// there is no chunk with that index.
    ///
    /// # Examples
    ///
    /// ```
    /// use budgeteer::{Estimate, Packer};
    ///
    /// let packer = Packer::new(2).estimate(Estimate::Words);
    /// let packing = packer.pack("tea", &["tea", "tea", "coffee, black"])?;
    /// assert_eq!(
    ///     packing.explain(Some(1))?,
    ///     "Chunk 1 (score 0.52) was dropped: its text equals that of chunk 0, which is kept."
    /// );
    /// assert_eq!(
    ///     packing.explain(Some(2))?,
    ///     "Chunk 2 (score 0.00) was dropped: it needs 2 tokens, and 1 of 2 were left."
    /// );
    /// assert_eq!(
    ///     packing.explain(None)?,
    ///     "Kept 1 of 3 chunks with 1 of 2 tokens.\nDropped 2: 1 duplicate, 1 budget."
    /// );
    /// # Ok::<(), budgeteer::Error>(())
    /// ```
    pub fn explain(&self, index: Option<usize>) -> Result<String, Error> {
        let Some(index) = index else { return Ok(self.summary()) };
        if let Some(dropped) = self.dropped.of(index) {
            let who = who(index, dropped.score);
            let why_dropped = self.why_dropped(dropped);
            return Ok(format!("{who} was dropped: {why_dropped}.{}", self.why_scored(index)));
        }
        if let Some(kept) = self.kept.iter().find(|kept| kept.index == index) {
            return Ok(self.why_kept(kept) + &self.why_scored(index));
        }
        let allowed = format!("below {}, the number of chunks", self.chunk_count());
        Err(Error::limit("index", allowed, index.to_string()))
    }

    /// Returns a sentence on what a score has besides that of the query's words
    /// in the text; empty where it has nothing else.
    fn why_scored(&self, index: usize) -> String {
        let parts = self.dropped.signals().iter().filter(|signal| signal.chunk as usize == index);
        let parts = parts.map(|&Signal { kind, added, .. }| match kind {
            SignalKind::Heading { .. } => format!("{added:.2} for its heading"),
            SignalKind::Link(source) => {
                format!("{added:.2} linked from chunk {source} by its heading")
            }
            SignalKind::Feedback(best) => {
                format!("{added:.2} for words of chunk {best}, the best")
            }
        });
        let parts: Vec<String> = parts.collect();
        if parts.is_empty() {
            return String::new();
        }
        format!(" Part of its score by words: {}.", parts.join(", "))
    }

    fn chunk_count(&self) -> usize {
        self.kept.len() + self.dropped_count()
    }

    fn summary(&self) -> String {
        let mut lines = vec![format!(
            "Kept {} of {} with {} of {}.",
            self.kept.len(),
            counted(self.chunk_count(), "chunk"),
            self.total_tokens,
            counted(self.budget_tokens, "token"),
        )];
        let cut = self.kept.iter().filter(|kept| kept.was_cut).count();
        if cut > 0 {
            lines.push(format!("Cut {cut} of them."));
        }
        if self.dropped_count() > 0 {
            let of = |reason| self.dropped.iter().filter(|chunk| chunk.reason == reason).count();
            let reasons = REASONS.iter().map(|&reason| (of(reason), name_of(reason)));
            let reasons: Vec<String> = reasons
                .filter(|(count, _)| *count > 0)
                .map(|(count, name)| format!("{count} {name}"))
                .collect();
            lines.push(format!("Dropped {}: {}.", self.dropped_count(), reasons.join(", ")));
        }
        lines.join("\n")
    }

    fn why_kept(&self, kept: &KeptChunk) -> String {
        let verb = match self.extracts.get(&kept.index) {
            Some((some, all)) => format!("was cut to {some} of {all} sentences with"),
            None if kept.was_cut => "was cut to".into(),
            None => "was kept with".into(),
        };
        let cited = if self.maker.is_citing {
            format!(" and {} for its citation", kept.citation_tokens)
        } else {
            String::new()
        };
        let place = kept.span.as_ref().map(|span| {
            // In characters, as people count.
            let start = self.text[..span.start].chars().count();
            let end = start + self.text[span.clone()].chars().count();
            format!("characters {start} to {end} of the text")
        });
        let place = place.unwrap_or_else(|| "at a place that only the prompt knows".into());
        format!(
            "{} {verb} {}{cited}, {place}.",
            who(kept.index, kept.score),
            counted(kept.token_count, "token"),
        )
    }

    fn why_dropped(&self, dropped: &DroppedChunk) -> String {
        let maker = &self.maker;
        match dropped.reason {
            Reason::OutOfScope
                if maker.max_docs.is_some() && dropped.score.is_none_or(|score| score == 0.0) =>
            {
                "it shares no keyword with the question".into()
            }
            Reason::OutOfScope => match self.least {
                Some(least) => format!("its score is below {least:.2}, the automatic min_score"),
                None => "its score is below min_score".into(),
            },
            Reason::Empty if maker.made_by == MadeBy::Writer => {
                "its text is empty, or what the template writes for it".into()
            }
            Reason::Empty => "its text is empty".into(),
            Reason::Cap
                if maker.max_docs.is_some()
                    && maker.max_chunks.is_none_or(|most| self.kept.len() < most) =>
            {
                let documents = counted(maker.max_docs.unwrap_or_default(), "document");
                format!("{documents} had been considered before it")
            }
            Reason::Cap => {
                let kept = counted(maker.max_chunks.unwrap_or_default(), "chunk");
                format!("max_chunks was reached with {kept} kept")
            }
            Reason::Duplicate => {
                let how = if maker.is_near { "repeats, or nearly," } else { "equals" };
                let kept = dropped.duplicate_of.unwrap_or_default();
                format!("its text {how} that of chunk {kept}, which is kept")
            }
            Reason::Budget if dropped.needed_tokens <= dropped.available_tokens => {
                "packing had stopped before its turn came".into()
            }
            Reason::Budget => {
                let cited = if maker.is_citing { "with its citation " } else { "" };
                let at_least = if maker.is_needed_a_bound() { "at least " } else { "" };
                format!(
                    "{cited}it needs {at_least}{}, and {} of {} were left",
                    counted(dropped.needed_tokens, "token"),
                    dropped.available_tokens,
                    self.budget_tokens
                )
            }
        }
    }
}

fn who(index: usize, score: Option<f64>) -> String {
    match score {
        Some(score) => format!("Chunk {index} (score {score:.2})"),
        None => format!("Chunk {index} (no score)"),
    }
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
