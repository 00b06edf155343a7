//! Admitting ranked chunks into a budget.
//!
//! This stage sees the chunks in rank order and answers with indices and
//! numbers. Whatever it does, the law holds at its end: the counter answers at
//! most the budget for exactly the text that is assembled.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::assemble;
use crate::chunk::Batch;
use crate::count::Size;
use crate::duplicate::Seen;
use crate::gate::Gate;
use crate::near::Near;
use crate::outcome::{Admitted, Dropped, DroppedColumns, Frame, Kept, Reason};
use crate::plan::{Call, Counting, Dedupe, Host, Overflow, Plan, Policy, Selection};
use crate::reading::{Measures, Reading};
use crate::template::{Tag, Template, escape};
use crate::text::Text;
use crate::truncate::Keep;

mod counted;
mod estimate;
mod exact;
pub(crate) mod indexed;
mod knapsack;
mod settle;

/// So many times a cut is made shorter where the assembled text is still over.
const CUT_TRIES: usize = 8;

/// Admits chunks in rank order.
pub(crate) struct Packer<'p, B, H> {
    plan: &'p Plan,
    call: &'p Call<'p>,
    template: &'p Template,
    /// What a gate knows, and how many documents it considers.
    gate: Option<(&'p Gate, u64)>,
    batch: &'p B,
    /// The measure of each text, where the counter is an estimate; `u32::MAX`
    /// stands for a larger one.
    measures: Measures<'p>,
    /// The fingerprint of each text, where duplicates are dropped.
    prints: Cow<'p, [u32]>,
    host: &'p mut H,
    admitted: Admitted,
    may_cut: Option<(Keep, &'static str)>,
    seen: Seen,
    /// The kept texts, where those that nearly repeat one are dropped too.
    near: Option<Box<Near>>,
    /// What the host has counted of chunks before their turn.
    known: HashMap<u32, u64>,
    /// And of header and footer.
    known_around: Option<u64>,
    progress: Progress,
    /// What each kept chunk costs, under an exact counter.
    costs: Vec<exact::Cost>,
    /// What each kept chunk measures in the text, under an estimate, where
    /// there is more in it than chunks and separators.
    sizes: Vec<Size>,
    /// Whether there is room for the notice.
    has_notice: bool,
    /// What is left of the budget once the kept texts and their citations, each
    /// counted by itself, are taken off; no limit where nothing is cited.
    room: u64,
    /// So many documents a gate has considered.
    considered: u64,
    scratch: Vec<u8>,
}

/// How far admitting has come.
#[derive(Debug, Default)]
struct Progress {
    /// Under an estimate what the text measures, and its tokens.
    measured: estimate::Used,
    tokens: u64,
    /// Under an exact counter what the kept chunks cost, and what stands around
    /// them.
    cost: exact::Used,
    around: u64,
    /// What was left where [`Overflow::Stop`] stopped.
    stopped: Option<u64>,
    /// What happened at which chunk, where not every chunk is looked at.
    trail: Option<indexed::Trail>,
}

impl<'p, B: Batch, H: Host> Packer<'p, B, H> {
    pub(crate) fn new(
        call: &'p Call<'p>,
        batch: &'p B,
        Reading { measures, prints }: Reading<'p>,
        host: &'p mut H,
        dropped: DroppedColumns,
    ) -> Self {
        let plan = call.plan;
        Self {
            plan,
            call,
            template: call.template(),
            gate: call.gate(),
            batch,
            measures,
            prints,
            host,
            admitted: Admitted { dropped, ..Admitted::default() },
            // What is cited enters whole or not at all.
            may_cut: plan.overflow.cut().filter(|_| !plan.is_cited()),
            seen: Seen::default(),
            near: (plan.dedupe == Dedupe::Near).then(Box::default),
            known: HashMap::new(),
            known_around: None,
            progress: Progress::default(),
            costs: Vec::new(),
            sizes: Vec::new(),
            has_notice: false,
            room: if plan.is_cited() { call.budget } else { u64::MAX },
            considered: 0,
            scratch: Vec::new(),
        }
    }

    /// Packs, and returns the number of tokens of the assembled text.
    pub(crate) fn pack(
        mut self,
        order: &[u32],
        scores: &[f64],
    ) -> Result<(Admitted, u64), H::Error> {
        let total = match self.plan.counting {
            Counting::Estimate(estimate) if self.plan.policy == Policy::SumOfParts => {
                self.pack_sum_of_parts(estimate, order)?
            }
            _ if self.plan.selection == Selection::Knapsack => {
                let order = self.by_knapsack(order, scores)?;
                self.pack_in_order(&order)?
            }
            _ => self.pack_in_order(order)?,
        };
        Ok((self.admitted, total))
    }

    fn pack_in_order(&mut self, order: &[u32]) -> Result<u64, H::Error> {
        if self.plan.counting == Counting::Host {
            return self.pack_counted(order);
        }
        self.begin();
        self.admit(order, u64::MAX)?;
        self.finish()
    }

    /// Counts what stands around the chunks, under an estimate or an exact
    /// counter.
    fn begin(&mut self) {
        match self.plan.counting {
            Counting::Estimate(estimate) => self.begin_estimated(estimate),
            Counting::Exact(exact) => self.begin_exact(exact),
            Counting::Host => {}
        }
    }

    /// Admits what fits of the next chunks in rank order. Ends early where more
    /// than `most` tokens are left under an exact counter, and returns how many
    /// chunks it went through.
    fn admit(&mut self, order: &[u32], most: u64) -> Result<usize, H::Error> {
        match self.plan.counting {
            Counting::Estimate(estimate) => self.admit_estimated(estimate, order)?,
            Counting::Exact(exact) => return self.admit_exact(exact, order, most),
            Counting::Host => unreachable!("a host's counter is asked about every chunk"),
        }
        Ok(order.len())
    }

    /// Returns the tokens of the assembled text, which is within the budget.
    fn finish(&mut self) -> Result<u64, H::Error> {
        match self.plan.counting {
            Counting::Estimate(estimate) => Ok(self.finish_estimated(estimate)),
            Counting::Exact(exact) => {
                self.settle(|packer| Ok(packer.count_joined(exact, &packer.tail())))
            }
            Counting::Host => unreachable!("as above"),
        }
    }

    /// Drops what was kept and added so many tokens to a text of `total`.
    fn drop_kept(
        &mut self,
        kept: Kept,
        tokens: u64,
        total: u64,
        left: &mut HashMap<u32, (u64, u64)>,
    ) {
        let others = total.saturating_sub(tokens);
        let (needed, available) = (tokens.max(1), self.call.budget.saturating_sub(others));
        left.insert(kept.index, (needed, available));
        self.drop(kept.index, Reason::Budget, needed, available);
    }

    /// Returns whether chunk `index` goes out before its size matters, after
    /// dropping it.
    fn is_refused(&mut self, index: u32) -> bool {
        let cap = self.plan.max_chunks;
        if self.is_empty(index) {
            self.drop(index, Reason::Empty, 0, 0);
        } else if self.is_beyond_gate(index)
            || cap.is_some_and(|cap| self.admitted.kept.len() as u64 >= cap)
        {
            self.drop(index, Reason::Cap, 0, 0);
        } else if let Some(original) = self.original_of(index) {
            self.drop_duplicate(index, original);
        } else {
            return false;
        }
        true
    }

    /// Returns whether chunk `index` is a document that a gate considers no
    /// more. One that it considers counts, whatever becomes of it.
    fn is_beyond_gate(&mut self, index: u32) -> bool {
        let Some((gate, max_docs)) = self.gate else { return false };
        if !gate.is_document(index) {
            return false;
        }
        self.considered += 1;
        self.considered > max_docs
    }

    /// Sets aside what chunk `index` of so many tokens costs with its citation,
    /// and returns the latter; else what would be needed, and what is left. In
    /// the text it needs `needed` of `available` tokens.
    fn cite(
        &mut self,
        index: u32,
        tokens: u64,
        needed: u64,
        available: u64,
    ) -> Result<Result<u64, (u64, u64)>, H::Error> {
        if needed > available {
            return Ok(Err((needed, available)));
        }
        if !self.plan.is_cited() {
            return Ok(Ok(0));
        }
        let mut needed = tokens;
        if tokens <= self.room {
            let citation = self.host.cite(index as usize)?;
            needed = tokens.saturating_add(citation);
            if needed <= self.room {
                self.room -= needed;
                return Ok(Ok(citation));
            }
        }
        Ok(Err((needed, self.room)))
    }

    fn is_empty(&self, index: u32) -> bool {
        // Most chunks are only dropped: to look at each text again would cost
        // a cache miss each.
        let may_be = self.measures.get(index).is_none_or(|measured| measured == 0);
        may_be && self.batch.text(index as usize).is_empty()
    }

    /// Returns the kept chunk with the same text as `index`.
    fn original_of(&self, index: u32) -> Option<u32> {
        let print = self.prints.get(index as usize)?;
        self.seen.find(*print, index, |index| self.batch.text(index as usize))
    }

    /// Returns whether chunk `index` nearly repeats a kept one, after dropping it.
    /// That is not asked where it does not fit, unless it would be cut or be the
    /// end.
    fn is_near(&mut self, index: u32, fits: bool) -> Result<bool, H::Error> {
        let Some(near) = &mut self.near else { return Ok(false) };
        if !fits && self.may_cut.is_none() && self.plan.overflow != Overflow::Stop {
            return Ok(false);
        }
        let text = self.batch.text(index as usize);
        let cost = near.cost(text);
        let place = self.host.work(cost, |stop| near.find(text, stop))?;
        if let Some(place) = place {
            self.drop_duplicate(index, self.admitted.kept[place as usize].index);
        }
        Ok(place.is_some())
    }

    fn drop_duplicate(&mut self, index: u32, original: u32) {
        self.admitted.duplicates.push((index, original));
        self.drop(index, Reason::Duplicate, 0, 0);
    }

    /// Drops everything behind chunk `index`, which did not fit, uncounted.
    fn stop(&mut self, index: u32, rest: &[u32], available: u64) {
        self.progress.stopped = Some(available);
        self.note(index, false);
        self.drop_uncounted(rest, available);
    }

    fn drop_uncounted(&mut self, rest: &[u32], available: u64) {
        for &index in rest {
            if !self.is_refused(index) {
                self.drop(index, Reason::Budget, 0, available);
            }
        }
    }

    /// Drops everything that is left, whatever it is.
    fn drop_rest(&mut self, rest: &[u32], available: u64) {
        for &index in rest {
            self.drop(index, Reason::Budget, 0, available);
        }
    }

    /// Returns what stands around chunk `index` in the text.
    fn frame(&mut self, index: u32) -> Result<Frame, H::Error> {
        if !self.call.is_framed() {
            return Ok(Frame::default());
        }
        let index = index as usize;
        let tag = self.host.tag(index)?;
        let (front, back) = self.template.around(&tag, index);
        let escaped = escape::body(&self.template.style, self.batch.text(index));
        let Tag { source, position, .. } = tag;
        Ok(Frame { front, back, escaped, source, position })
    }

    /// Returns what stands in the text for `piece`, which a cut has left.
    fn escaped(&self, piece: Vec<u8>) -> Vec<u8> {
        escape::body(&self.template.style, Text::from_utf8(&piece)).unwrap_or(piece)
    }

    fn keep(&mut self, index: u32, tokens: u64, citation: u64, frame: Frame) {
        if let Some(print) = self.prints.get(index as usize) {
            self.seen.insert(*print, index, |index| self.batch.text(index as usize));
        }
        if let Some(near) = &mut self.near {
            near.push();
        }
        if self.call.is_framed() {
            self.admitted.frames.push(frame);
        }
        self.admitted.kept.push(Kept { index, tokens, citation });
    }

    /// Keeps a cut chunk, the only one, for which `piece` stands. A repetition
    /// of its whole text is a duplicate.
    fn keep_cut(&mut self, index: u32, tokens: u64, frame: Frame, piece: Vec<u8>) {
        self.keep(index, tokens, 0, frame);
        self.admitted.cut = Some((index, piece));
    }

    /// Returns whether it is time to set room aside for the notice: something
    /// was dropped, or is about to be cut with `rest` chunks behind it.
    fn wants_notice(&self, rest: usize) -> bool {
        self.plan.notice.is_some()
            && !self.has_notice
            && (rest > 0 || !self.admitted.dropped.index.is_empty())
    }

    /// Returns the separator and the longest notice there may be, from now on
    /// with room for it.
    fn set_notice(&mut self) -> Vec<u8> {
        self.has_notice = true;
        self.call.notice(self.batch.len())
    }

    /// Returns the most that may stand behind the last chunk.
    fn longest_tail(&self) -> Vec<u8> {
        self.call.tail(if self.has_notice { self.batch.len() } else { 0 })
    }

    /// Removes the kept chunk of lowest rank.
    fn take_out(&mut self) -> Kept {
        let kept = self.admitted.kept.pop().expect("the caller saw that something is kept");
        self.admitted.frames.pop();
        self.costs.pop();
        self.sizes.pop();
        self.room = self.room.saturating_add(kept.tokens).saturating_add(kept.citation);
        self.admitted.cut.take_if(|(index, _)| *index == kept.index);
        if let Some(print) = self.prints.get(kept.index as usize) {
            self.seen.remove(*print, kept.index, |index| self.batch.text(index as usize));
        }
        if let Some(near) = &mut self.near {
            near.pop();
        }
        kept
    }

    fn drop(&mut self, index: u32, reason: Reason, needed: u64, available: u64) {
        self.admitted.dropped.push(Dropped { index, reason, needed, available });
    }

    /// Returns the assembled text, with `tail` behind the last chunk.
    fn assembled(&self, tail: &[u8]) -> Vec<u8> {
        let places = assemble::arrange(&self.admitted, self.call, self.batch);
        let parts = places.iter().map(|&place| self.admitted.part(place as usize));
        assemble::text(self.batch, self.call, parts, tail)
    }

    /// Returns what stands behind the last chunk when no more are dropped.
    fn tail(&self) -> Vec<u8> {
        self.call.tail(self.admitted.dropped.index.len())
    }
}
