//! Packing a corpus, for Rust programs.

use std::sync::Arc;

use super::Packer;
use crate::chunk::Document;
use crate::corpus::documents::Corpus;
use crate::error::Error;
use crate::packing::{Packing, packing};
use crate::pipeline;
use crate::plan::Units;
use crate::similarity::Vectors;

impl Packer {
    /// Packs the best of a corpus for `query`, as [`Packer::pack`] does the slice
    /// of its chunks, and answers the same.
    ///
    /// [`Ranking::Keyword`](crate::Ranking::Keyword), and the scores that
    /// `Recency` and `Input` report, read each text that may have a keyword; a
    /// counter of the caller's own, citations, a gate, a notice and templates
    /// other than [`Template::plain`](crate::Template::plain) have every chunk
    /// looked at.
    ///
    /// # Errors
    ///
    /// As for [`Packer::pack`].
    pub fn pack_corpus<D: Document + Sync>(
        &self,
        query: &str,
        corpus: &Corpus<D>,
    ) -> Result<Packing, Error> {
        self.run_corpus(query, corpus, None, &[])
    }

    /// Like [`Packer::pack_after`], of a corpus.
    ///
    /// # Errors
    ///
    /// As for [`Packer::pack`].
    pub fn pack_corpus_after<D: Document + Sync>(
        &self,
        previous: &Packing,
        query: &str,
        corpus: &Corpus<D>,
    ) -> Result<Packing, Error> {
        self.run_corpus(query, corpus, None, &previous.links())
    }

    /// Like [`Packer::pack_with_vectors`], of a corpus.
    ///
    /// # Errors
    ///
    /// As for [`Packer::pack_with_vectors`].
    pub fn pack_corpus_with_vectors<D: Document + Sync>(
        &self,
        query: &str,
        corpus: &Corpus<D>,
        vectors: Vectors<'_>,
    ) -> Result<Packing, Error> {
        self.run_corpus(query, corpus, Some(vectors), &[])
    }

    fn run_corpus<D: Document + Sync>(
        &self,
        query: &str,
        corpus: &Corpus<D>,
        vectors: Option<Vectors<'_>>,
        previous: &[Vec<u8>],
    ) -> Result<Packing, Error> {
        self.check_options()?;
        let (score, mtime) = (|i: usize| corpus.scores()[i], |i: usize| corpus.mtimes()[i]);
        let keys = self.keys(corpus.len(), score, mtime, vectors)?;
        if self.units == Units::Sentence {
            let chunks = corpus.chunks();
            return Ok(self.pack_sentences(query, chunks, self.max_tokens, &keys, previous));
        }
        let (batch, index) = (corpus.batch(), &corpus.index);
        self.called(query, corpus.chunks(), self.max_tokens, &keys, previous, |call, host| {
            let Ok(outcome) = pipeline::run_indexed(call, &batch, index, host);
            let text = outcome.text(call, &batch);
            packing(outcome, call, self.maker(), corpus.chunks(), text, Some(Arc::clone(index)))
        })
    }
}
