//! Packing a corpus, for Rust programs.

use std::sync::Arc;

use super::{Caller, Packer};
use crate::chunk::Document;
use crate::corpus::documents::Corpus;
use crate::error::Error;
use crate::packing::Packing;
use crate::pipeline;
use crate::plan::Call;
use crate::similarity::Vectors;

impl Packer {
    /// Packs the best chunks of a corpus for `query`. Returns the same as
    /// [`Packer::pack`] for the slice of its chunks.
    ///
    /// [`Ranking::Keyword`](crate::Ranking::Keyword) reads each text that may
    /// have a keyword, and so do the scores that `Recency` and `Input` report.
    /// Every chunk is looked at with a caller's own counter, citations, a gate,
    /// a notice, or another template than
    /// [`Template::plain`](crate::Template::plain).
    ///
    /// # Errors
    ///
    /// As for [`Packer::pack`], and
    /// [`ErrorKind::Corpus`](crate::ErrorKind::Corpus) where the corpus was
    /// opened from a file in which damage was met: see [`Corpus::check`].
    pub fn pack_corpus<D: Document + Sync>(
        &self,
        query: &str,
        corpus: &Corpus<D>,
    ) -> Result<Packing, Error> {
        self.run_corpus(query, corpus, None, &[])
    }

    /// Like [`Packer::pack_after`], for a corpus.
    ///
    /// # Errors
    ///
    /// As for [`Packer::pack_corpus`] and [`Packer::pack_after`].
    pub fn pack_corpus_after<D: Document + Sync>(
        &self,
        previous: &Packing,
        query: &str,
        corpus: &Corpus<D>,
    ) -> Result<Packing, Error> {
        self.run_corpus(query, corpus, None, &self.links_of(previous)?)
    }

    /// Like [`Packer::pack_with_vectors`], for a corpus.
    ///
    /// # Errors
    ///
    /// As for [`Packer::pack_with_vectors`] and [`Packer::pack_corpus`].
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
        let (batch, index) = (corpus.batch(), &corpus.index);
        let run = |call: &Call<'_>, host: &mut Caller<'_, D>| {
            let Ok(outcome) = pipeline::run_indexed(call, &batch, index, host);
            outcome
        };
        let (chunks, shared) = (corpus.chunks(), Some(Arc::clone(index)));
        let packing =
            self.called(query, chunks, self.max_tokens, &keys, previous, &batch, run, shared);
        corpus.check()?;
        packing
    }
}
