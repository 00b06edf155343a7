//! Prompts: the final text is what a function of the caller's makes of the kept
//! chunks.
//!
//! What that function writes around the chunks is not known before. Chunks are
//! packed as plain texts into a room inside the budget, rendered and counted,
//! and the room is corrected by what was counted. So nothing is kept that was
//! not counted.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Caller, Packer};
use crate::chunk::Document;
use crate::count::Estimate;
use crate::error::Error;
use crate::pipeline::Outcome;
use crate::plan::{Call, Counting, Order, Plan, Policy, Units};

/// The most sets of kept chunks that are rendered, besides that without a
/// chunk.
const RENDERINGS: usize = 8;

/// The most rooms that are tried.
const PACKINGS: usize = 12;

/// The number of rooms found from the last count. Those after that halve what
/// is left.
const SECANTS: usize = 4;

/// The largest room.
const MOST: u64 = i64::MAX.cast_unsigned();

const OPTIONS: &str = "a prompt must have the plain template, Overflow::Skip or Overflow::Stop, \
                       Units::Chunk, another order than Order::Sticky, no notice, and no preset";

/// A function from the places of the kept chunks to the final text.
pub(super) type Render = Arc<dyn Fn(&[usize]) -> String + Send + Sync>;

impl Packer {
    /// Makes the final text with `render`, which gets the places of the kept
    /// chunks in the input, in the order of the text, and returns all that is
    /// sent: instructions, question, chunks. [`Packing::text`] is exactly what
    /// it returned, and within the budget.
    ///
    /// It is called for no chunk first, and at most once for each set of
    /// chunks; at most nine times in a call. If what it returns for no chunk is
    /// over the budget, nothing is kept and the text is empty. The spans of
    /// kept chunks are None unless the final text has their text exactly once.
    /// The caller's own counter is asked some more questions. It is an error
    /// in a preset and with a template, a notice, cut chunks,
    /// [`Units::Sentence`] or [`Order::Sticky`].
    ///
    /// [`Packing::text`]: crate::Packing::text
    ///
    /// ```
    /// # #[cfg(feature = "o200k")] {
    /// use budgeteer::Packer;
    ///
    /// let chunks = ["Rye bread.", "Green tea."];
    /// let packer = Packer::new(10).prompt(move |kept| {
    ///     let listed: Vec<_> = kept.iter().map(|&index| chunks[index]).collect();
    ///     format!("Read: {} What is tea?", listed.join(" "))
    /// });
    /// let packing = packer.pack("tea", &chunks)?;
    /// assert_eq!(packing.text, "Read: Green tea. What is tea?");
    /// # }
    /// # Ok::<(), budgeteer::Error>(())
    /// ```
    #[must_use]
    pub fn prompt(mut self, render: impl Fn(&[usize]) -> String + Send + Sync + 'static) -> Self {
        self.prompt = Some(Arc::new(render));
        self
    }

    /// Checks the options that a prompt restricts.
    pub(super) fn check_prompt(&self) -> Result<(), Error> {
        let Plan { template, overflow, order, notice, policy, .. } = &self.plan;
        let is_plain = template.is_plain() && template.header.is_empty();
        let is_plain = is_plain && template.footer.is_empty() && notice.is_none();
        let takes = is_plain
            && overflow.cut().is_none()
            && self.plan.units == Units::Chunk
            && *order != Order::Sticky
            && *policy == Policy::None;
        if self.prompt.is_none() || takes { Ok(()) } else { Err(Error::shape(OPTIONS.into())) }
    }
}

/// What a prompt makes of a batch.
pub(super) struct Made {
    /// The packing of plain texts.
    pub(super) outcome: Outcome,
    /// How it counts.
    pub(super) counting: Counting,
    pub(super) text: String,
    pub(super) total: u64,
}

/// The chunks that were kept in a room, and what they make.
struct Rendered {
    outcome: Outcome,
    kept: Vec<usize>,
    total: u64,
    /// The tokens of the kept chunks' own texts, with what was set aside for
    /// each.
    added: u128,
    /// What is set aside for each.
    extra: u64,
}

/// One call that packs for a prompt.
pub(super) struct Prompted<'a, D, R> {
    packer: &'a Packer,
    render: &'a Render,
    chunks: &'a [D],
    call: Call<'a>,
    /// The plan with what is written around a chunk as its citation.
    cited: Plan,
    /// Packs as a call says.
    run: R,
    /// The tokens that are set aside for what is written around each chunk.
    extra: u64,
    /// The final text of each set of kept chunks, and its tokens.
    made: HashMap<Vec<usize>, (String, u64)>,
}

impl<'a, D, R> Prompted<'a, D, R>
where
    D: Document,
    R: Fn(&Call<'_>, &mut Caller<'_, D>) -> Outcome,
{
    pub(super) fn new(
        packer: &'a Packer,
        render: &'a Render,
        chunks: &'a [D],
        call: Call<'a>,
        run: R,
    ) -> Self {
        let cited = packer.clone().policy(Policy::Cite).plan;
        Self { packer, render, chunks, call, cited, run, extra: 0, made: HashMap::new() }
    }

    pub(super) fn pack(mut self) -> Made {
        let around = self.make(&[]);
        if around > self.call.budget {
            return self.nothing(String::new(), 0);
        }
        if let Some(best) = self.search(around) {
            let (text, total) = self.made.remove(&best.kept).expect("it was rendered");
            let counting = self.plan(best.extra).counting.clone();
            Made { outcome: best.outcome, counting, text, total }
        } else {
            let (text, total) = self.made.remove(&[][..]).expect("it was rendered first");
            self.nothing(text, total)
        }
    }

    /// Returns the fullest packing whose final text fits; None if none was
    /// found. `around` are the tokens without a chunk.
    ///
    /// What rendering adds for each chunk of the first packing is set aside for
    /// each from then on. Rooms are then found from the last count, and later
    /// halfway between one that fits and one that does not.
    fn search(&mut self, around: u64) -> Option<Rendered> {
        let budget = self.call.budget;
        let mut room = budget - around;
        let mut now = self.rendered(room)?;
        let mut best = None;
        let kept = now.kept.len() as u128;
        let beyond = u128::from(now.total.saturating_sub(around)).saturating_sub(now.added);
        if kept > 0 && beyond > 0 {
            self.extra = u64::try_from(beyond.div_ceil(kept)).unwrap_or(MOST).min(MOST);
            let next = self.rendered(room)?;
            let first = std::mem::replace(&mut now, next);
            best = Some(first).filter(|first| first.total <= budget);
        }
        let (mut low, mut high) = (0, MOST + 1);
        for step in 0..PACKINGS {
            let fits = now.total <= budget;
            let (total, added) = (now.total, now.added);
            if fits {
                let before = best.as_ref().map(|best: &Rendered| &best.kept);
                let is_same = step > 0 && before == Some(&now.kept) && !now.kept.is_empty();
                low = room;
                best = Some(now);
                if total == budget || (is_same && high > MOST) {
                    break; // no other chunk fits
                }
            } else {
                high = room;
            }
            if high - low <= 1 {
                break;
            }
            room = self.next((total, added), room, around, (low, high), step);
            let Some(found) = self.rendered(room) else { break };
            now = found;
        }
        best
    }

    /// Returns the room to try after `room`: above `low`, which fits, and below
    /// `high`, which does not.
    fn next(
        &self,
        (total, added): (u64, u128),
        room: u64,
        around: u64,
        (low, high): (u64, u64),
        step: usize,
    ) -> u64 {
        let budget = self.call.budget;
        let spent = u128::from(total.saturating_sub(around));
        let is_open = high > MOST;
        if is_open && (spent == 0 || added == 0) {
            return room.saturating_mul(2).saturating_add(1).min(MOST);
        }
        if spent > 0 && (is_open || step < SECANTS) {
            let missing = u128::from(budget.abs_diff(total));
            let by = missing.saturating_mul(added).checked_div(spent).unwrap_or_default().max(1);
            let found = if budget > total {
                u128::from(room).saturating_add(by)
            } else {
                u128::from(room).saturating_sub(by)
            };
            if u128::from(low) < found && found < u128::from(high) {
                return u64::try_from(found).unwrap_or(MOST);
            }
        }
        if is_open { MOST } else { low.midpoint(high) }
    }

    /// Packs into `room` and makes the final text; returns None once that was
    /// done often enough.
    fn rendered(&mut self, room: u64) -> Option<Rendered> {
        let extra = self.extra;
        let outcome = self.run(self.plan(extra), room);
        let kept: Vec<usize> = outcome.kept().map(|kept| kept.index as usize).collect();
        if !self.made.contains_key(&kept) && self.made.len() > RENDERINGS {
            return None;
        }
        let total = self.make(&kept);
        let tokens = outcome.kept().map(|kept| u128::from(kept.tokens)).sum::<u128>();
        let added = tokens + u128::from(extra) * kept.len() as u128;
        Some(Rendered { outcome, kept, total, added, extra })
    }

    /// Makes the final text of these chunks, once, and returns its tokens.
    fn make(&mut self, kept: &[usize]) -> u64 {
        if let Some((_, total)) = self.made.get(kept) {
            return *total;
        }
        let text = (self.render)(kept);
        // Without text there are 0 tokens, whatever a counter says of it.
        let total = if text.is_empty() { 0 } else { self.packer.count(&text) as u64 };
        self.made.insert(kept.to_vec(), (text, total));
        total
    }

    /// Returns the packing in which nothing is kept.
    fn nothing(&self, text: String, total: u64) -> Made {
        let mut plan = self.call.plan;
        let mut outcome = self.run(plan, 0);
        let counting = Counting::Estimate(Estimate::CharsDiv4);
        let strict = Plan { counting, ..plan.clone() };
        if outcome.kept().len() > 0 {
            plan = &strict; // chunks that count 0; under this estimate no text does
            outcome = self.run(plan, 0);
        }
        Made { outcome, counting: plan.counting.clone(), text, total }
    }

    fn plan(&self, extra: u64) -> &Plan {
        if extra > 0 { &self.cited } else { self.call.plan }
    }

    fn run(&self, plan: &Plan, budget: u64) -> Outcome {
        let Self { packer, chunks, extra, .. } = *self;
        let call = Call { plan, budget, ..self.call };
        (self.run)(&call, &mut Caller { packer, chunks, citation: Some(extra) })
    }
}
