//! What a packer refuses: options that contradict each other, or that would do
//! nothing.

use super::Packer;
use crate::error::Error;
use crate::plan::{Counting, Dedupe, MinScore, Order, Policy, Selection, Units};
use crate::ranking::RankBy;

const SENTENCES: &str =
    "units must be Units::Chunk in a preset, under Dedupe::Near and under Selection::Coverage";

const WRITTEN: &str = "template must not be a function where chunks are cut, where sentences are \
                       packed, and in context_router: use Template::format or Overflow::Skip";

const SEPARATED: &str = "separator must not be set for a template of a fixed style, which has its \
                         own: Template::format and Template::by have a choice";

const NOTICE: &str = "notice must not be empty, and have no other field than {count}: a brace is \
                      written twice";

const CITED: &str = "overflow must be Overflow::Skip or Overflow::Stop in agentic_rag, whose chunks \
                     enter whole: Packer::new cuts";

const GATED: &str = "ranking must be Ranking::Input in context_gate, which ranks by authority, kind \
                     and priority: Packer::new takes others";

const SUMMED: &str = "max_chunks, dedupe and Selection::Coverage do nothing in context_router under \
                      an estimate: Packer::new takes them, as does a counter of another kind";

const AUTO: &str = "min_score must be a number, not MinScore::Auto, under rankings other than \
                    Lexical and Bm25";

impl Packer {
    /// Checks the options that can be checked without a chunk.
    pub(super) fn check_options(&self) -> Result<(), Error> {
        if let Counting::Estimate(estimate) = self.plan.counting {
            estimate.check()?;
        }
        match self.plan.min_score {
            Some(MinScore::At(score)) if score.is_nan() => return Err(Error::nan_min_score()),
            Some(MinScore::Auto) if !matches!(self.plan.ranking, RankBy::Lexical(_)) => {
                return Err(Error::shape(AUTO.into()));
            }
            _ => {}
        }
        if self.plan.units == Units::Sentence
            && (self.plan.dedupe == Dedupe::Near
                || self.plan.selection != Selection::Rank
                || self.plan.policy != Policy::None)
        {
            return Err(Error::shape(SENTENCES.into()));
        }
        let is_written = self.plan.template.writer().is_some();
        if is_written
            && (self.plan.overflow.cut().is_some()
                || self.plan.units == Units::Sentence
                || self.plan.policy == Policy::SumOfParts)
        {
            return Err(Error::shape(WRITTEN.into()));
        }
        if self.plan.template.has_idle_separator {
            return Err(Error::shape(SEPARATED.into()));
        }
        if self.has_bad_notice {
            return Err(Error::shape(NOTICE.into()));
        }
        self.check_preset()?;
        self.check_prompt()?;
        self.plan.ranking.check()
    }

    /// Checks that no option of a preset's copy does nothing.
    fn check_preset(&self) -> Result<(), Error> {
        let plan = &self.plan;
        let problem = match plan.policy {
            Policy::Cite if plan.overflow.cut().is_some() => CITED,
            Policy::Gate { .. } if !matches!(plan.ranking, RankBy::Input) => GATED,
            Policy::SumOfParts
                if plan.is_sum_of_parts()
                    && (plan.max_chunks.is_some()
                        || plan.dedupe != Dedupe::Off
                        || plan.selection != Selection::Rank) =>
            {
                SUMMED
            }
            _ => return Ok(()),
        };
        Err(Error::shape(problem.into()))
    }

    /// Refuses the order that repeats a previous packing where there is none.
    pub(crate) fn refuse_sticky(&self, place: &str) -> Result<(), Error> {
        if self.plan.order != Order::Sticky {
            return Ok(());
        }
        let message =
            format!("order must not be Order::Sticky {place}, which has no previous packing");
        Err(Error::shape(message))
    }
}
