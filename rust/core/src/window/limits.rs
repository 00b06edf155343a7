//! The limits of models: windows, maximums and encodings, as a table that a
//! program may extend.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::counter::{ModelCounter, counter_names, native};
use super::model_names::{beginnings, families, parts};
use super::models::{ALIASES, ENCODING_OF_MODEL, ENCODING_OF_PREFIX, MODELS, UNKNOWN, WAYS};
use crate::error::Error;
use crate::fork::Shared;

/// The factors that a caller may state.
const CALIBRATION: RangeInclusive<f64> = 0.01..=100.0;

/// The limits of a model, and how it counts.
///
/// # Examples
///
/// ```
/// use budgeteer::window::model_limits;
///
/// let limits = model_limits("gpt-4o");
/// assert_eq!(limits.context_window, 128_000);
/// assert_eq!(limits.max_output_tokens, Some(16_384));
/// assert_eq!(limits.encoding.as_deref(), Some("o200k_base"));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ModelLimits {
    /// The name that was asked for.
    pub name: String,
    /// The maximum of input and answer together, in tokens.
    pub context_window: usize,
    /// The maximum of the input, in tokens; the whole window if no other limit
    /// is known.
    pub max_input_tokens: usize,
    /// The maximum of the answer, in tokens; None if no such limit is known.
    pub max_output_tokens: Option<usize>,
    /// The name of the encoding that counts for it. None counts as for an
    /// unknown model. See [`ModelLimits::counter`].
    pub encoding: Option<Cow<'static, str>>,
    /// Tokens of the model for each token of that encoding, if its own
    /// tokenizer is not native or not published; None if the encoding is its
    /// own. 1.0 only marks counts as estimates.
    pub calibration: Option<f64>,
    /// The maker of the model; None if unknown.
    pub provider: Option<Cow<'static, str>>,
    /// Whether the name was found. If not, the figures are a guess.
    pub known: bool,
    /// The source of the figures: `document`, `litellm` with its version and
    /// the date of the table, `registered`, `unknown`, or what the program
    /// sets.
    pub source: Cow<'static, str>,
    /// The known name inside an unknown one, whose figures these are.
    pub guessed_from: Option<String>,
}

impl ModelLimits {
    /// Returns the caller's own limits, for [`register_model`] or a
    /// [`Negotiator`](super::Negotiator). The input may have the whole window,
    /// and the answer has no limit of its own.
    ///
    /// ```
    /// use budgeteer::window::ModelLimits;
    ///
    /// let limits = ModelLimits::new("acme-7b", 32_000).max_output_tokens(4_000);
    /// assert_eq!(limits.max_input_tokens, 32_000);
    /// ```
    #[must_use]
    pub fn new(name: impl Into<String>, context_window: usize) -> Self {
        Self {
            name: name.into(),
            context_window,
            max_input_tokens: context_window,
            max_output_tokens: None,
            encoding: None,
            calibration: None,
            provider: None,
            known: true,
            source: "registered".into(),
            guessed_from: None,
        }
    }

    /// Sets the maximum of the input, in tokens.
    #[must_use]
    pub fn max_input_tokens(mut self, tokens: usize) -> Self {
        self.max_input_tokens = tokens;
        self
    }

    /// Sets the maximum of the answer, in tokens.
    #[must_use]
    pub fn max_output_tokens(mut self, tokens: usize) -> Self {
        self.max_output_tokens = Some(tokens);
        self
    }

    /// Sets the encoding: the name of an [`Encoding`](crate::Encoding), `chars_div4`, `words` or
    /// `chars_per_token:X`.
    #[must_use]
    pub fn encoding(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.encoding = Some(name.into());
        self
    }

    /// Sets the tokens of the model for each token of its encoding, from 0.01
    /// to 100. 1.0 marks a count as an estimate.
    #[must_use]
    pub fn calibration(mut self, factor: f64) -> Self {
        self.calibration = Some(factor);
        self
    }

    /// Sets the maker.
    #[must_use]
    pub fn provider(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.provider = Some(name.into());
        self
    }

    /// Sets the source of the figures.
    #[must_use]
    pub fn source(mut self, source: impl Into<Cow<'static, str>>) -> Self {
        self.source = source.into();
        self
    }

    /// Returns these limits, or an error if they are a guess.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where
    /// the name is not known.
    ///
    /// # Examples
    ///
    /// ```
    /// use budgeteer::window::model_limits;
    ///
    /// assert!(model_limits("gpt-4o").strict().is_ok());
    /// assert!(model_limits("my-gpt-4o-deployment").strict().is_err());
    /// ```
    pub fn strict(self) -> Result<Self, Error> {
        if self.known {
            return Ok(self);
        }
        let hint = self
            .guessed_from
            .map_or_else(String::new, |found| format!(", only {found:.80?} in it"));
        Err(Error::shape(format!(
            "model {:.80?} is not known{hint}; register_model states its limits",
            self.name
        )))
    }

    /// Returns the counter of the model. A tokenizer that is not native, or not
    /// in this binary, is estimated, and with the feature `tracing` that is a
    /// warning, once for each name. None if the encoding of the estimate is not
    /// in this binary either; that of an unknown model is `cl100k_base`. None for
    /// a calibration out of its range, too.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(all(feature = "cl100k", feature = "o200k"))] {
    /// use budgeteer::TokenCounter;
    /// use budgeteer::window::model_limits;
    ///
    /// let counter = model_limits("gpt-4o").counter().expect("o200k is a default feature");
    /// assert_eq!((counter.count("Hello, world!"), counter.is_exact()), (4, true));
    ///
    /// let counter = model_limits("kimi-k2").counter().expect("so is cl100k");
    /// assert_eq!((counter.count("Hello, world!"), counter.is_exact()), (5, false));
    ///
    /// let counter = model_limits("llama3.2:3b").counter().expect("as above");
    /// assert_eq!((counter.count("Hello, world!"), counter.is_exact()), (4, false));
    /// # }
    /// ```
    #[must_use]
    pub fn counter(&self) -> Option<ModelCounter> {
        if self.calibration.is_some_and(|factor| !CALIBRATION.contains(&factor)) {
            return None;
        }
        let (encoding, factor) = self.counting();
        let counter = ModelCounter::estimate(&encoding, factor)?;
        #[cfg(feature = "tracing")]
        if let Some(factor) = factor {
            warn_of_estimate(&self.name, &encoding, factor);
        }
        Some(counter)
    }

    /// Returns the encoding that counts, and its factor.
    fn counting(&self) -> (Cow<'static, str>, Option<f64>) {
        let known = match &self.encoding {
            Some(encoding) => Some((encoding.clone(), self.calibration)),
            None => encoding_and_factor(&self.name)
                .map(|(encoding, factor)| (encoding, self.calibration.or(factor))),
        };
        match known {
            Some((encoding, factor)) if !is_foreign(&encoding) => (encoding, factor),
            _ => {
                let (encoding, own) = WAYS[UNKNOWN.1];
                let stated = self.calibration.unwrap_or(1.0);
                (encoding.into(), own.map(|own| own * stated))
            }
        }
    }

    /// Checks the name and the numbers.
    pub(crate) fn check_numbers(&self) -> Result<(), Error> {
        let tokens = |name: &'static str, value: usize| {
            if value == 0 {
                return Err(Error::limit(name, "at least 1", value.to_string()));
            }
            if value > self.context_window {
                let allowed = format!("at most the context_window {}", self.context_window);
                return Err(Error::limit(name, allowed, value.to_string()));
            }
            Ok(())
        };
        if self.name.is_empty() {
            return Err(Error::limit("name", "a name", "empty"));
        }
        tokens("context_window", self.context_window)?;
        tokens("max_input_tokens", self.max_input_tokens)?;
        self.max_output_tokens.map_or(Ok(()), |value| tokens("max_output_tokens", value))?;
        if let Some(factor) = self.calibration.filter(|factor| !CALIBRATION.contains(factor)) {
            return Err(Error::limit("calibration", "from 0.01 to 100", factor.to_string()));
        }
        Ok(())
    }

    /// Returns the limits after a check, with the known encoding.
    pub(crate) fn checked(mut self) -> Result<Self, Error> {
        self.check_numbers()?;
        if let Some(encoding) = &self.encoding {
            if native(encoding).is_none() {
                let found = format!("{encoding:.80?}");
                return Err(Error::limit("encoding", counter_names(), found));
            }
            return Ok(self);
        }
        let calibration;
        (self.encoding, calibration) = match find(&self.name, None) {
            Some(known) => (known.encoding, known.calibration),
            None => match counting_of_unknown(&self.name) {
                Some((encoding, factor)) => (Some(encoding.into()), factor),
                None => (None, None),
            },
        };
        if self.calibration.is_some() && self.encoding.is_none() {
            return Err(Error::shape("calibration needs an encoding to go with".into()));
        }
        self.calibration = self.calibration.or(calibration);
        if self.encoding.is_none() {
            let (encoding, factor) = WAYS[UNKNOWN.1];
            (self.encoding, self.calibration) = (Some(encoding.into()), factor);
        }
        Ok(self)
    }
}

impl ModelCounter {
    /// Returns the counter with that name, or of the model with that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let of_model = || {
            encoding_and_factor(name)?; // else nothing is known of it
            ModelLimits::new(name, 0).counter()
        };
        native(name).map(Self::of).or_else(of_model)
    }
}

/// A model of the table: name, `context_window`, `max_input_tokens`,
/// `max_output_tokens`, way to count, provider and source.
pub(super) struct Row(
    pub(super) &'static str,
    pub(super) usize,
    pub(super) usize,
    pub(super) Option<usize>,
    pub(super) usize,
    pub(super) &'static str,
    pub(super) &'static str,
);

/// A way to count: an encoding, and a factor if it is another model's.
type Way = (&'static str, Option<f64>);

impl Row {
    fn limits(&self, name: &str) -> ModelLimits {
        let (encoding, calibration) = WAYS[self.4];
        ModelLimits {
            name: name.into(),
            context_window: self.1,
            max_input_tokens: self.2,
            max_output_tokens: self.3,
            encoding: Some(encoding.into()),
            calibration,
            provider: Some(self.5.into()),
            known: true,
            source: self.6.into(),
            guessed_from: None,
        }
    }
}

/// The models that the program registered.
static OWN: Shared<BTreeMap<String, ModelLimits>> = Shared::new();

/// Returns the limits of the model `name`.
///
/// The name is looked up whole, then without the prefix of a provider, host or
/// region (`openai/`, `bedrock/us.anthropic.`, `ft:`). Then its longest
/// beginning is used that is a known name and ends before one of `-`, `:`, `@`
/// and `/`: `gpt-4o-2024-11-20` has the limits of `gpt-4o`, and `gpt-4` never
/// stands for `gpt-4.1`. Then comes all of what is after the last slash:
/// `gpt-4o` in `acme/gpt-4o`. Where a known name has small letters, capitals
/// stand for them. A version whose window is its own, larger or smaller, needs
/// [`register_model`] where the table lacks it.
///
/// Any other name is a guess: `known` is false. The longest known name in it
/// decides, and is in `guessed_from`: `gpt-4o` in `azure/My-GPT-4o-deployment`.
/// It starts the name or comes after `.`, `_` or one of the signs above, ends
/// the name or comes before `_` or one of those signs, and may have capitals;
/// among equally long ones the last wins. Without any, the window is 32768, and
/// a part that starts with a family's name decides how the model counts:
/// `qwen3:8b` counts as Qwen does.
/// With the feature `tracing` a guess is a warning, once for each name. Nothing
/// is looked up on a network.
///
/// # Examples
///
/// ```
/// use budgeteer::window::model_limits;
///
/// assert_eq!(model_limits("openai/gpt-4o-2024-11-20").context_window, 128_000);
/// assert_eq!(model_limits("claude-sonnet-4-5").encoding.as_deref(), Some("claude3"));
///
/// let gpt_5 = model_limits("gpt-5");
/// assert_eq!((gpt_5.max_input_tokens, gpt_5.context_window), (272_000, 400_000));
///
/// let guess = model_limits("azure/my-gpt-4o-deployment");
/// assert_eq!((guess.known, guess.context_window), (false, 128_000));
/// assert_eq!(guess.guessed_from.as_deref(), Some("gpt-4o"));
///
/// let unknown = model_limits("acme-1");
/// assert_eq!((unknown.known, unknown.context_window), (false, 32_768));
/// ```
#[must_use]
pub fn model_limits(name: &str) -> ModelLimits {
    let own = OWN.get();
    let limits = find(name, own.as_deref()).unwrap_or_else(|| {
        let (window, way) = UNKNOWN;
        let (encoding, calibration) = counting_of_unknown(name).unwrap_or(WAYS[way]);
        ModelLimits {
            name: name.into(),
            context_window: window,
            max_input_tokens: window,
            max_output_tokens: None,
            encoding: Some(encoding.into()),
            calibration,
            provider: None,
            known: false,
            source: "unknown".into(),
            guessed_from: None,
        }
    });
    #[cfg(feature = "tracing")]
    if !limits.known {
        warn_of_guess(&limits);
    }
    limits
}

/// Registers a model for this process, in place of any known one with that
/// name. Returns the limits that [`model_limits`] returns from now on.
///
/// The name also stands for longer ones. If no encoding is set, what is known
/// of the name is used, or the estimate of an unknown model.
///
/// # Errors
///
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where the
/// name is empty, a number is 0 or above the window, a calibration is not from
/// 0.01 to 100 or has no encoding, or an encoding is not in this binary.
///
/// # Examples
///
/// ```
/// use budgeteer::window::{ModelLimits, model_limits, register_model};
///
/// register_model(ModelLimits::new("acme-7b", 32_000).encoding("chars_div4"))?;
/// assert_eq!(model_limits("acme-7b-instruct").context_window, 32_000);
///
/// let error = register_model(ModelLimits::new("acme-7b", 0)).unwrap_err();
/// assert_eq!(error.to_string(), "context_window must be at least 1, not 0");
/// # Ok::<(), budgeteer::Error>(())
/// ```
pub fn register_model(limits: ModelLimits) -> Result<ModelLimits, Error> {
    let limits = ModelLimits { known: true, guessed_from: None, ..limits.checked()? };
    add([limits.clone()]);
    Ok(limits)
}

/// Returns every model that is known by name, sorted by provider and name.
///
/// # Examples
///
/// ```
/// use budgeteer::window::list_models;
///
/// assert!(list_models().len() > 100);
/// ```
#[must_use]
pub fn list_models() -> Vec<ModelLimits> {
    let own = OWN.get();
    let own = || own.iter().flat_map(|own| own.values());
    let is_own = |row: &&Row| own().any(|limits| limits.name == row.0);
    let shipped = MODELS.iter().filter(|row| !is_own(row)).map(|row| row.limits(row.0));
    let mut models: Vec<_> = shipped.chain(own().cloned()).collect();
    models.sort_by(|a, b| (a.provider.as_deref(), &a.name).cmp(&(b.provider.as_deref(), &b.name)));
    models
}

pub(super) fn add(read: impl IntoIterator<Item = ModelLimits>) {
    OWN.update(|own| {
        let mut own = own.cloned().unwrap_or_default();
        own.extend(read.into_iter().map(|limits| (limits.name.clone(), limits)));
        own
    });
}

/// Returns the limits of `name`: from `own`, or else from the table.
fn find(name: &str, own: Option<&BTreeMap<String, ModelLimits>>) -> Option<ModelLimits> {
    let known = |candidate: &str| {
        if let Some(limits) = own.and_then(|own| own.get(candidate)) {
            return Some(ModelLimits { name: name.into(), ..limits.clone() });
        }
        let start = candidate;
        let candidate = look_up(ALIASES, candidate).unwrap_or(candidate);
        let place = MODELS.binary_search_by_key(&candidate, |row| row.0).ok()?;
        let mut limits = MODELS[place].limits(name);
        // The encoding that tiktoken has for a name goes first, then what a longer
        // name of a family says.
        let tiktokens = encoding_of(name).map(|encoding| (encoding, None));
        let longer = || way_of_family(name, &start.to_ascii_lowercase());
        if let Some((encoding, factor)) = tiktokens.or_else(longer) {
            limits.encoding = Some(encoding.into());
            limits.calibration = factor;
        }
        Some(limits)
    };
    let guess = |candidate: &str| {
        let limits = known(candidate)?;
        let is_sure = limits.calibration.is_some() || encoding_of(name).is_some();
        Some(ModelLimits {
            calibration: if is_sure { limits.calibration } else { Some(1.0) },
            known: false,
            guessed_from: Some(candidate.into()),
            ..limits
        })
    };
    beginnings(name)
        .find_map(|start| known(start).or_else(|| known(&start.to_ascii_lowercase())))
        .or_else(|| {
            let found = |part: &str| guess(part).or_else(|| guess(&part.to_ascii_lowercase()));
            parts(name).into_iter().find_map(found)
        })
}

/// Returns the encoding that is known for a model, and its factor. What is
/// registered goes first, then tiktoken's names, then the table, then families.
fn encoding_and_factor(name: &str) -> Option<(Cow<'static, str>, Option<f64>)> {
    let own = OWN.get();
    match find(name, own.as_deref()) {
        Some(limits) => Some((limits.encoding?, limits.calibration)),
        None => counting_of_unknown(name).map(|(encoding, factor)| (encoding.into(), factor)),
    }
}

/// Returns how tiktoken or its family counts for a model that the table does
/// not have.
fn counting_of_unknown(name: &str) -> Option<Way> {
    encoding_of(name).map(|encoding| (encoding, None)).or_else(|| way_of_family(name, ""))
}

/// Returns how the family of a model counts. Of several ways none is known to be
/// the model's, and it counts as an unknown one. The family's name begins with
/// `start`, and is longer.
fn way_of_family(name: &str, start: &str) -> Option<Way> {
    let mut found = families(name)
        .into_iter()
        .filter(|(family, ..)| family.starts_with(start) && *family != start);
    let (_, way, is_whole) = found.next()?;
    if found.any(|(_, other, _)| other != way) {
        return Some(WAYS[UNKNOWN.1]);
    }
    let (encoding, factor) = WAYS[way];
    // A model of another maker, or a newer one, is believed to count alike.
    Some((encoding, if is_whole { factor } else { factor.or(Some(1.0)) }))
}

/// Returns whether an encoding is known that is not in this binary.
fn is_foreign(encoding: &str) -> bool {
    let is_known = WAYS.iter().any(|&(known, _)| known == encoding)
        || ENCODING_OF_MODEL.iter().any(|&(_, known)| known == encoding);
    is_known && native(encoding).is_none()
}

/// Returns the encoding that tiktoken counts with for a model, in capitals too.
fn encoding_of(name: &str) -> Option<&'static str> {
    tiktokens(name).or_else(|| tiktokens(&name.to_ascii_lowercase()))
}

fn tiktokens(name: &str) -> Option<&'static str> {
    look_up(ENCODING_OF_MODEL, name).or_else(|| {
        let fits = |&&(prefix, _): &&(&str, &str)| name.starts_with(prefix);
        ENCODING_OF_PREFIX.iter().find(fits).map(|&(_, encoding)| encoding)
    })
}

fn look_up(table: &'static [(&str, &str)], key: &str) -> Option<&'static str> {
    table.binary_search_by_key(&key, |&(key, _)| key).ok().map(|place| table[place].1)
}

#[cfg(feature = "tracing")]
fn warn_of_guess(limits: &ModelLimits) {
    if is_new(&limits.name) {
        let cut = |name: &str| name.chars().take(80).collect::<String>();
        let (model, guessed_from) = (cut(&limits.name), limits.guessed_from.as_deref().map(cut));
        tracing::warn!(
            model,
            context_window = limits.context_window,
            guessed_from,
            "model is not known"
        );
    }
}

/// Warns that a model counts by an estimate, unless the program set the factor.
#[cfg(feature = "tracing")]
#[allow(clippy::float_cmp)] // both are from the same table
fn warn_of_estimate(name: &str, encoding: &str, factor: f64) {
    let known = find(name, None);
    let known = match &known {
        Some(known) => known.encoding.as_deref().map(|encoding| (encoding, known.calibration)),
        None => counting_of_unknown(name),
    };
    let known = known.filter(|(encoding, _)| !is_foreign(encoding));
    let expected = known.unwrap_or(WAYS[UNKNOWN.1]);
    if expected != (encoding, Some(factor)) || !is_new(name) {
        return;
    }
    let model = name.chars().take(80).collect::<String>();
    tracing::warn!(model, encoding, calibration = factor, "model counts by an estimate");
}

/// Returns whether nothing was logged of a name. It is new again only if a
/// thousand other names were since, or if another thread holds the lock long.
#[cfg(feature = "tracing")]
fn is_new(name: &str) -> bool {
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    const WARNED_MAX: usize = 1_000;
    static WARNED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

    // It waits for a moment alone: in a forked process the lock may be held for
    // ever.
    let lock = || {
        let lock = WARNED.try_lock().ok();
        if lock.is_none() {
            // Who holds it may have lost its processor.
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        lock
    };
    (0..100).find_map(|_| lock()).is_none_or(|mut warned| {
        if warned.contains(name) {
            return false;
        }
        if warned.len() >= WARNED_MAX {
            warned.clear();
        }
        warned.insert(name.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(feature = "cl100k")]
    use crate::count::TokenCounter;

    #[test]
    fn tables_are_sorted() {
        assert!(MODELS.is_sorted_by(|a, b| a.0 < b.0));
        for table in [ALIASES, ENCODING_OF_MODEL] {
            assert!(table.is_sorted_by(|a, b| a.0 < b.0));
        }
    }

    /// Whatever vocabularies are in the binary, an estimate errs high where the
    /// model's own is missing.
    #[cfg(feature = "cl100k")]
    #[test]
    fn every_model_is_counted() {
        for row in MODELS {
            let (limits, counter) = (row.limits(row.0), row.limits(row.0).counter().unwrap());
            let has_own = limits.encoding.as_deref().is_some_and(|name| native(name).is_some());
            assert!(has_own || !counter.is_exact(), "{}", row.0);
            assert!(has_own || counter.count("Hello, world!") == 9, "{}", row.0);
        }
    }

    /// Another name in between does not make a name new.
    #[cfg(feature = "tracing")]
    #[test]
    fn a_name_is_new_once() {
        assert_eq!([true, true, false, false], ["tea-1", "tea-2", "tea-1", "tea-2"].map(is_new));
    }

    #[test]
    fn aliases_lead_to_models() {
        for (alias, name) in ALIASES {
            assert_eq!(
                find(name, None).unwrap().context_window,
                model_limits(alias).context_window
            );
        }
    }
}
