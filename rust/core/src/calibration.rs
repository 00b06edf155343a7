//! What bills teach: a correction of counts for each model, fitted to pairs of
//! count and bill.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::count::{Basis, Factor, Native, Scaled, TokenCounter};
use crate::error::Error;
#[cfg(feature = "json")]
use crate::fields::Fields;

const MAX_MODELS: usize = 256;
/// The pairs of each size.
const MAX_PAIRS: usize = 32;
const MAX_ESTIMATED: i64 = 1 << 25;

/// A scale is a whole number of these steps to one: all of the fit is whole
/// numbers, so that Python answers the same.
const STEPS: i64 = 256;
const MIN_SCALE: i64 = STEPS / 4;
const MAX_SCALE: i64 = STEPS * 4;
const MAX_FRAME: i64 = 1 << 17;
/// A bill is at least a tenth of the count.
const LEAST_SHARE: i64 = 10;
const COARSE: i64 = 16;

const PAIRS_TO_LOWER: usize = 64;
const SPREAD_TO_LOWER: i64 = 4;
const SPREAD_TO_SPLIT: i64 = 2;

/// A count and its bill.
type Pair = (i64, i64);

/// What a [`Calibration`] has learned of a model: a bill is at most the frame
/// plus the scale times the count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Correction {
    steps: i64,
    /// What each request costs beside, whatever its size: 0 to 131,072 tokens.
    pub frame_tokens: usize,
    /// The number of pairs that it is fitted to.
    pub pairs: usize,
}

impl Correction {
    /// Returns what a count is multiplied by, from 0.25 to 4, in steps of
    /// 1/256.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // at most 1024
    pub fn scale(&self) -> f64 {
        self.steps as f64 / STEPS as f64
    }

    /// Returns the most tokens that a request of that count is expected to be
    /// billed.
    #[must_use]
    pub fn bound(&self, estimated: usize) -> usize {
        self.frame_tokens.saturating_add(scaled(estimated, self.steps))
    }

    /// Returns the least count, from 1 on, that the scale makes at least
    /// `tokens`: what to observe where only a corrected count is known.
    #[must_use]
    pub fn raw_count(&self, tokens: usize) -> usize {
        let below = (tokens.max(1) - 1) as u128 * STEPS as u128;
        let raw = below / u128::from(self.steps.unsigned_abs()) + 1;
        usize::try_from(raw).unwrap_or(usize::MAX)
    }
}

/// Returns a count times a scale, rounded up.
fn scaled(count: usize, steps: i64) -> usize {
    let tokens = (count as u128 * u128::from(steps.unsigned_abs())).div_ceil(STEPS as u128);
    usize::try_from(tokens).unwrap_or(usize::MAX)
}

/// Learns from bills how far counts are off, for each model, and corrects them.
///
/// After each request [`observe`](Self::observe) takes the count of what was
/// sent, and what the provider billed for it, `usage.prompt_tokens`.
/// [`correction`](Self::correction) fits the line
///
/// `billed <= frame_tokens + scale * estimated`
///
/// that covers 99 % of the pairs, and is the lowest one at their median size.
/// [`counter`](Self::counter) makes a counter that multiplies by the scale; a
/// request needs `frame_tokens` beside, once.
///
/// What it keeps is bounded: the newest 32 pairs of each size, where sizes from
/// a power of two to the next are one, and 256 models, of which the one that
/// was not observed for longest goes first.
///
/// A correction errs high where little was seen. Fewer than 100 pairs are all
/// covered. The scale is at least 1 until 64 pairs were seen, and sizes that
/// differ by a factor of 4, the smallest and the largest tenth left aside.
/// While sizes differ by less than a factor of 2, nothing tells frame and scale
/// apart, and the scale takes it all, up to 4. A drift of less than a step of
/// the scale is taken for a frame.
///
/// # Examples
///
/// ```
/// use budgeteer::{Calibration, Estimate, TokenCounter};
///
/// let calibration = Calibration::new();
/// assert_eq!(calibration.correction("acme-7b"), None); // no data, which is not "no drift"
/// for estimated in [1_000, 4_000, 9_000] {
///     calibration.observe("acme-7b", estimated, 40 + estimated * 5 / 4)?;
/// }
/// let learned = calibration.correction("acme-7b").expect("it was observed");
/// assert_eq!((learned.scale(), learned.frame_tokens), (1.25, 40));
///
/// let counter = calibration.counter("acme-7b", Estimate::CharsDiv4);
/// assert_eq!(counter.count("Green tea is mild, and black tea is strong."), 14); // of 11
/// # Ok::<(), budgeteer::Error>(())
/// ```
pub struct Calibration {
    quantile: f64,
    /// The newest is the last.
    models: Mutex<Vec<(String, Pairs)>>,
}

impl Default for Calibration {
    fn default() -> Self {
        Self { quantile: 0.99, models: Mutex::default() }
    }
}

impl fmt::Debug for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let models = self.locked().len();
        f.debug_struct("Calibration")
            .field("quantile", &self.quantile)
            .field("models", &models)
            .finish()
    }
}

impl Calibration {
    /// Returns a calibration that has seen nothing and covers 99 % of the pairs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the share of the pairs that a correction covers, from 0.5 to 1.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for
    /// any other number.
    pub fn quantile(mut self, share: f64) -> Result<Self, Error> {
        if !(0.5..=1.0).contains(&share) {
            return Err(Error::limit("quantile", "from 0.5 to 1", share.to_string()));
        }
        self.quantile = share;
        for (_, pairs) in self.models.get_mut().unwrap_or_else(PoisonError::into_inner) {
            pairs.correction = None;
        }
        Ok(self)
    }

    /// Learns from one request.
    ///
    /// `model` names the model and what counts for it: where two counters count
    /// for one model, give two names. `estimated` is the count of all that was
    /// sent, before any correction, from 1 to 33,554,432; `billed` is the whole
    /// prompt in the bill, cached tokens included.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where
    /// a number is out of range: for a bill above 4 * `estimated` + 131,072,
    /// which no correction covers, or below a tenth of `estimated`. Nothing is
    /// learned then.
    pub fn observe(&self, model: &str, estimated: usize, billed: usize) -> Result<(), Error> {
        let pair = checked(estimated, billed)?;
        let mut models = self.locked();
        let place = models.iter().position(|(name, _)| name == model);
        let (name, mut pairs) =
            place.map_or_else(|| (model.to_owned(), Pairs::default()), |at| models.remove(at));
        pairs.add(pair);
        models.push((name, pairs));
        if models.len() > MAX_MODELS {
            models.remove(0);
        }
        Ok(())
    }

    /// Returns what was learned of a model; None if nothing was observed.
    #[must_use]
    pub fn correction(&self, model: &str) -> Option<Correction> {
        let mut models = self.locked();
        let (_, pairs) = models.iter_mut().find(|(name, _)| name == model)?;
        Some(pairs.correction(self.quantile))
    }

    /// Returns a counter of ceil(scale * count), by what was learned of the
    /// model until now. A scale of 1 leaves `counter` as it is.
    ///
    /// The frame of a request is not in its counts, as it would be in those of
    /// each chunk: reserve the `frame_tokens` of the correction once.
    pub fn counter<C: TokenCounter>(&self, model: &str, counter: C) -> Learned<C> {
        let scale = self.correction(model).map_or(1.0, |found| found.scale());
        Learned { counter: Scaled::times(counter, Factor::new(scale)) }
    }

    /// Returns what was observed as JSON, which
    /// [`from_json`](Self::from_json) and Python's `Calibration.load` read.
    /// Only with the feature `json`.
    ///
    /// Write it to another file first and rename that, so that no reader finds
    /// half of it.
    #[cfg(feature = "json")]
    #[must_use]
    pub fn to_json(&self) -> String {
        let models = self.locked();
        let shown = models.iter().map(|(name, pairs)| {
            let pairs = pairs.all().map(|(estimated, billed)| format!("[{estimated}, {billed}]"));
            let pairs = pairs.collect::<Vec<_>>().join(", ");
            format!("{}: {{\"pairs\": [{pairs}]}}", serde_json::Value::from(name.as_str()))
        });
        let shown = shown.collect::<Vec<_>>().join(", ");
        format!("{{\"version\": 1, \"models\": {{{shown}}}}}\n")
    }

    /// Returns the calibration of a JSON text that [`to_json`](Self::to_json)
    /// or Python's `Calibration.save` wrote. Keys that are not known are
    /// ignored. Only with the feature `json`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where
    /// the text is of another version or damaged; the message names the place.
    #[cfg(feature = "json")]
    pub fn from_json(json: &str) -> Result<Self, Error> {
        use serde_json::Value;

        let document: Value = serde_json::from_str(json)
            .map_err(|error| Error::shape(format!("not JSON: {error}")))?;
        let Some(Value::Object(models)) = document.get("models") else {
            return Err(Error::shape("it must be an object with an object 'models'".into()));
        };
        let version = document.get("version");
        if version.and_then(Value::as_u64) != Some(1) {
            let shown = version.map_or_else(|| "None".into(), Value::to_string);
            return Err(Error::limit("its version", "1", format!("{shown:.80}")));
        }
        let calibration = Self::new();
        // In their order: the model that was not observed for longest goes first.
        let document = Fields::of(json);
        let written = Fields::of(document.get("models").unwrap_or_default());
        for (name, fields) in written.iter().filter_map(|(name, _)| models.get_key_value(name)) {
            let place = format!("models[{name:.80?}]");
            let Some(Value::Array(pairs)) = fields.get("pairs") else {
                let what = format!("{place} must be an object with a list 'pairs'");
                return Err(Error::shape(what));
            };
            for (i, pair) in pairs.iter().enumerate() {
                let wrong =
                    |what: &dyn fmt::Display| Error::shape(format!("{place}: pairs[{i}]{what}"));
                let number = |value: &Value| usize::try_from(value.as_u64()?).ok();
                let numbers = match pair.as_array().map(Vec::as_slice) {
                    Some([estimated, billed]) => number(estimated).zip(number(billed)),
                    _ => None,
                };
                let (estimated, billed) =
                    numbers.ok_or_else(|| wrong(&" must be a list of two natural numbers"))?;
                calibration
                    .observe(name, estimated, billed)
                    .map_err(|error| wrong(&format_args!(": {error}")))?;
            }
        }
        Ok(calibration)
    }

    fn locked(&self) -> MutexGuard<'_, Vec<(String, Pairs)>> {
        self.models.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a pair that a correction can cover.
fn checked(estimated: usize, billed: usize) -> Result<Pair, Error> {
    let count = i64::try_from(estimated).ok().filter(|count| (1..=MAX_ESTIMATED).contains(count));
    let count = count.ok_or_else(|| {
        Error::limit("estimated", format!("from 1 to {MAX_ESTIMATED}"), estimated.to_string())
    })?;
    let bill = i64::try_from(billed).ok().filter(|&bill| bill > 0).ok_or_else(|| {
        Error::limit("billed", format!("from 1 to {}", i64::MAX), billed.to_string())
    })?;
    let most = MAX_SCALE / STEPS * count + MAX_FRAME;
    if bill > most {
        return Err(Error::shape(format!(
            "billed must be at most 4 * {count} + {MAX_FRAME} = {most} for a count of {count}, not \
             {bill}: is it the bill of another request?"
        )));
    }
    if LEAST_SHARE * bill < count {
        return Err(Error::shape(format!(
            "billed must be at least a tenth of the count {count}, not {bill}: a bill has the \
             tokens that a cache gave as well; add those that the provider states apart"
        )));
    }
    Ok((count, bill))
}

/// The newest pairs of a model of each size, and the correction that fits them.
#[derive(Default)]
struct Pairs {
    sizes: BTreeMap<u32, VecDeque<Pair>>,
    /// None until it is asked for.
    correction: Option<Correction>,
}

impl Pairs {
    fn add(&mut self, pair: Pair) {
        let newest = self.sizes.entry(pair.0.ilog2()).or_default();
        if newest.len() == MAX_PAIRS {
            newest.pop_front();
        }
        newest.push_back(pair);
        self.correction = None;
    }

    fn all(&self) -> impl Iterator<Item = Pair> + '_ {
        self.sizes.values().flatten().copied()
    }

    fn correction(&mut self, quantile: f64) -> Correction {
        let known = self.correction;
        let found = known.unwrap_or_else(|| fitted(&self.all().collect::<Vec<_>>(), quantile));
        self.correction = Some(found);
        found
    }
}

/// Returns the lowest correction that covers the share `quantile` of the pairs,
/// of which there is at least one.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn fitted(pairs: &[Pair], quantile: f64) -> Correction {
    let n = pairs.len();
    // More than half: else the larger or the smaller ones could be covered alone, by a scale that
    // fits no other. The number is below a thousand.
    let last = ((quantile * n as f64).ceil() as usize).max(n / 2 + 1).min(n) - 1;
    let mut sizes: Vec<i64> = pairs.iter().map(|&(estimated, _)| estimated).collect();
    sizes.sort_unstable();
    let (low, middle, high) = (sizes[n / 10], sizes[n / 2], sizes[n - 1 - n / 10]);
    let smallest = |mut numbers: Vec<i64>| *numbers.select_nth_unstable(last).1;
    // The least frame beside a scale that covers enough pairs.
    let frame = |scale: i64| {
        let above = pairs.iter().map(|&(estimated, billed)| STEPS * billed - scale * estimated);
        ceil(smallest(above.collect()), STEPS).max(0)
    };
    // Of these scales, what costs least at the middle size.
    let lowest = |scales: &mut dyn Iterator<Item = i64>| {
        scales
            .map(|scale| (scale, frame(scale)))
            .filter(|&(_, frame)| frame <= MAX_FRAME)
            .map(|(scale, frame)| (STEPS * frame + scale * middle, -scale, frame))
            .min()
            .unwrap_or((0, -MAX_SCALE, MAX_FRAME)) // the largest scale never needs more
    };
    let correction = |steps: i64, frame: i64| Correction {
        steps,
        frame_tokens: usize::try_from(frame).unwrap_or(0),
        pairs: n,
    };

    let alone = frame(STEPS); // without a scale
    if high < SPREAD_TO_SPLIT * low {
        if STEPS * alone <= low {
            return correction(STEPS, alone);
        }
        let ratios = pairs.iter().map(|&(estimated, billed)| ceil(STEPS * billed, estimated));
        let scale = smallest(ratios.collect()).clamp(STEPS, MAX_SCALE);
        return correction(scale, frame(scale));
    }
    let can_lower = n >= PAIRS_TO_LOWER && high >= SPREAD_TO_LOWER * low;
    let lower_end = if can_lower { MIN_SCALE } else { STEPS };
    let mut coarse = (lower_end..=MAX_SCALE).step_by(COARSE as usize);
    let near = -lowest(&mut coarse).1;
    let mut around = lower_end.max(near - COARSE)..=MAX_SCALE.min(near + COARSE);
    let (cost, scale, best) = lowest(&mut around);
    let is_frame = STEPS * (alone - best) <= middle && alone <= MAX_FRAME;
    if is_frame && STEPS * STEPS * (alone + middle) <= (STEPS + 1) * cost {
        return correction(STEPS, alone);
    }
    correction(-scale, best)
}

/// Returns a quotient, rounded up; the divisor is above 0.
fn ceil(number: i64, divisor: i64) -> i64 {
    -(-number).div_euclid(divisor)
}

/// Counts by another counter, times what a [`Calibration`] has learned. Made by
/// [`Calibration::counter`].
#[derive(Clone, Copy, Debug)]
pub struct Learned<C> {
    counter: Scaled<C>,
}

impl<C: TokenCounter> TokenCounter for Learned<C> {
    fn count(&self, text: &str) -> usize {
        self.counter.count(text)
    }

    fn count_till_limit(&self, text: &str, limit: usize) -> Option<usize> {
        self.counter.count_till_limit(text, limit)
    }

    fn is_exact(&self) -> bool {
        self.counter.is_exact()
    }

    fn basis(&self) -> Basis {
        if self.counter.factor().is_one() { self.counter.basis() } else { Basis::Learned }
    }

    fn to_shared(&self) -> Option<Arc<dyn TokenCounter + Send + Sync>> {
        Some(Arc::new(Learned { counter: self.counter.shared()? }))
    }

    fn native(&self) -> Option<Native> {
        self.counter.native()
    }
}
