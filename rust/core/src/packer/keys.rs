//! The keys of chunks: their own, or cosines of their vectors.

use super::Packer;
use crate::chunk::Document;
use crate::error::Error;
use crate::ranking::{Own, RankBy};
use crate::similarity::{Vectors, cosine_scores};

const NEEDED: &str = "vectors are needed under Ranking::Embedding and under a Hybrid that weighs the \
                      embedding: Packer::pack_with_vectors and Packer::pack_corpus_with_vectors \
                      take them, a section's chunks and a service do not";

const UNUSED: &str = "vectors must not be given under this ranking, which has no embedding: \
                      Ranking::Embedding and a Hybrid that weighs the embedding take them";

impl Packer {
    pub(super) fn keys_of<D: Document>(
        &self,
        chunks: &[D],
        vectors: Option<Vectors<'_>>,
    ) -> Result<Vec<f64>, Error> {
        let (score, mtime) = (|i: usize| chunks[i].score(), |i: usize| chunks[i].mtime());
        self.keys(chunks.len(), score, mtime, vectors)
    }

    /// Returns the keys of the chunks, if the ranking has any.
    pub(super) fn keys(
        &self,
        count: usize,
        score: impl Fn(usize) -> Option<f64>,
        mtime: impl Fn(usize) -> f64,
        vectors: Option<Vectors<'_>>,
    ) -> Result<Vec<f64>, Error> {
        let needs = self.plan.ranking.needs();
        if needs.has_vectors != vectors.is_some() {
            let problem = if needs.has_vectors { NEEDED } else { UNUSED };
            return Err(Error::shape(problem.into()));
        }
        let mut keys = match vectors {
            None => Vec::new(),
            Some(vectors) if vectors.len() == count => cosine_scores(vectors)?,
            Some(vectors) => {
                let vectors = vectors.len();
                return Err(Error::shape(format!(
                    "there must be a vector for each of {count} chunks, not {vectors}"
                )));
            }
        };
        let check = |index: usize, key: f64, field: &'static str| {
            if key.is_nan() { Err(Error::nan(index, field)) } else { Ok(key) }
        };
        let must_be_finite = matches!(self.plan.ranking, RankBy::Hybrid(_));
        let own_score = |index: usize| match score(index) {
            None => Ok(f64::NAN),
            Some(score) if must_be_finite && score.is_infinite() => Err(Error::shape(format!(
                "chunks[{index}].score must be finite in a hybrid ranking, not {score}"
            ))),
            Some(score) => check(index, score, "score"),
        };
        keys.reserve(if needs.own.is_some() { count } else { 0 });
        for index in 0..count {
            match needs.own {
                None => break,
                Some(Own::Mtime) => keys.push(check(index, mtime(index), "mtime")?),
                Some(Own::Score) => keys.push(own_score(index)?),
            }
        }
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Hybrid, Ranking};

    #[test]
    fn each_chunk_has_a_vector() {
        let packer = Packer::new(9).ranking(Ranking::Embedding);
        let keys = |chunks: &[f32]| {
            let vectors = Vectors::new(&[1.0, 0.0], chunks).expect("they have one size");
            packer.keys(2, |_| None, |_| 0.0, Some(vectors)).map_err(|error| error.to_string())
        };
        assert_eq!(Ok(2), keys(&[1.0, 0.0, 0.0, 1.0]).map(|keys| keys.len()));
        for (count, chunks) in [(1, &[1.0, 0.0][..]), (3, &[0.5; 6])] {
            let expected = format!("there must be a vector for each of 2 chunks, not {count}");
            assert_eq!(Err(expected), keys(chunks));
        }
    }

    #[test]
    fn scores_of_a_hybrid_are_finite() {
        let keys = |ranking: Hybrid, score| {
            let packer = Packer::new(9).ranking(ranking);
            packer.keys(1, |_| Some(score), |_| 0.0, None).map_err(|error| error.to_string())
        };
        let weights = crate::Weights { bm25: 0.5, embedding: 0.0, score: 0.5 };
        let own = || Hybrid { weights, ..Hybrid::default() };
        assert_eq!(Ok(vec![0.5]), keys(own(), 0.5));
        let error = keys(own(), f64::INFINITY).expect_err("it is not finite");
        assert_eq!("chunks[0].score must be finite in a hybrid ranking, not inf", error);
    }
}
