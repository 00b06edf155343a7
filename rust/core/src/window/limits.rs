//! The limits of models: windows, maximums and encodings, as a table that a
//! program may extend.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::models::{ALIASES, ENCODING_OF_MODEL, ENCODING_OF_PREFIX, MODELS, PREFIXES};
use crate::Encoding;
use crate::count::{Estimate, Exact, Native, TokenCounter};
use crate::error::Error;
use crate::fork::Shared;

/// The window of an unknown model: the smallest common one.
const UNKNOWN_WINDOW: usize = 8_192;

/// The longest name that is looked up: known names are shorter, and the time
/// grows with the square.
const NAME_MAX: usize = 200;

/// How many prefixes are taken off a name.
const PREFIXES_MAX: usize = 6;

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
    /// The name of the encoding that counts for it; None if its tokenizer is
    /// not known here. See [`ModelLimits::counter`].
    pub encoding: Option<Cow<'static, str>>,
    /// Tokens of the model for each token of that encoding, if its own
    /// tokenizer is not published; None if the encoding is its own.
    pub calibration: Option<f64>,
    /// The maker of the model; None if unknown.
    pub provider: Option<Cow<'static, str>>,
    /// Whether the name was found. If not, the window is 8192.
    pub known: bool,
    /// The source of the figures: `document`, `litellm`, `registered`,
    /// `unknown`, or what the program sets.
    pub source: Cow<'static, str>,
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

    /// Sets the encoding: `o200k_base`, `cl100k_base`, `chars_div4`, `words` or
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

    /// Returns the counter of the model; None if its encoding is not in this
    /// binary.
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
    /// let counter = model_limits("claude-sonnet-4-5").counter().expect("as above");
    /// assert_eq!((counter.count("Hello, world!"), counter.is_exact()), (5, false));
    /// assert!(model_limits("mistral-large-latest").counter().is_none());
    /// # }
    /// ```
    #[must_use]
    pub fn counter(&self) -> Option<ModelCounter> {
        let native = native(self.encoding.as_deref()?)?;
        Some(ModelCounter { factor: self.calibration, ..ModelCounter::of(native) })
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
        if let Some(factor) = self.calibration.filter(|factor| !(0.01..=100.0).contains(factor)) {
            return Err(Error::limit("calibration", "from 0.01 to 100", factor.to_string()));
        }
        Ok(())
    }

    /// Returns the limits after a check, with the known encoding.
    pub(crate) fn checked(mut self) -> Result<Self, Error> {
        self.check_numbers()?;
        if let Some(encoding) = &self.encoding {
            const NAMES: &str = "one of \"cl100k_base\", \"o200k_base\" (with their features), \
                                 \"chars_div4\", \"words\", \"chars_per_token:X\"";
            if native(encoding).is_none() {
                return Err(Error::limit("encoding", NAMES, format!("{encoding:.80?}")));
            }
            return Ok(self);
        }
        let known = find(&self.name, None);
        let calibration = known.as_ref().and_then(|known| known.calibration);
        self.encoding = match known {
            Some(known) => known.encoding,
            None => encoding_of(&self.name).map(Cow::Borrowed),
        };
        if self.calibration.is_some() && self.encoding.is_none() {
            return Err(Error::shape("calibration needs an encoding to go with".into()));
        }
        self.calibration = self.calibration.or(calibration);
        Ok(self)
    }
}

/// Counts for a model, possibly with the encoding of another one and a factor.
///
/// Made by [`ModelLimits::counter`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelCounter {
    native: Native,
    factor: Option<f64>,
    /// Whether it stands in for an unknown tokenizer.
    is_guess: bool,
}

impl ModelCounter {
    /// Returns the counter with that name, or of the model with that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let of_model = || find(name, OWN.get().as_deref())?.counter();
        let of_tiktoken = || Some(Self::of(native(encoding_of(name)?)?));
        native(name).map(Self::of).or_else(of_model).or_else(of_tiktoken)
    }

    /// Returns the counter that is used if none was set.
    pub(crate) fn default(is_guess: bool) -> Self {
        let native = native("o200k_base").unwrap_or(Native::Estimate(Estimate::CharsDiv4));
        Self { is_guess, ..Self::of(native) }
    }

    fn of(native: Native) -> Self {
        Self { native, factor: None, is_guess: false }
    }
}

impl TokenCounter for ModelCounter {
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // no text has 2^53 tokens, and the factor is positive
    fn count(&self, text: &str) -> usize {
        let count = match self.native {
            Native::Estimate(estimate) => estimate.count(text),
            Native::Exact(exact) => exact.count(text),
        };
        self.factor.map_or(count, |factor| (count as f64 * factor).ceil() as usize)
    }

    fn count_till_limit(&self, text: &str, limit: usize) -> Option<usize> {
        match (self.native, self.factor) {
            (Native::Exact(exact), None) => exact.count_till_limit(text, limit),
            _ => Some(self.count(text)).filter(|&count| count <= limit),
        }
    }

    fn is_exact(&self) -> bool {
        !self.is_guess && self.factor.is_none() && matches!(self.native, Native::Exact(_))
    }

    fn to_shared(&self) -> Option<Arc<dyn TokenCounter + Send + Sync>> {
        Some(Arc::new(*self))
    }

    fn native(&self) -> Option<Native> {
        self.factor.is_none().then_some(self.native)
    }
}

/// Returns the counter of a name, if it has one here.
fn native(name: &str) -> Option<Native> {
    // Only its special tokens are special, and none is counted as one.
    let name = if name == "o200k_harmony" { "o200k_base" } else { name };
    if let Some(&encoding) = Encoding::ALL.iter().find(|encoding| encoding.name() == name) {
        return Some(Native::Exact(Exact::new(encoding)));
    }
    Some(Native::Estimate(match name {
        "chars_div4" => Estimate::CharsDiv4,
        "words" | "whitespace" => Estimate::Words,
        _ => {
            let ratio = name.strip_prefix("chars_per_token:")?.parse().ok()?;
            let is_allowed = (0.001..=1_000_000.0).contains(&ratio);
            return is_allowed.then_some(Native::Estimate(Estimate::CharsPerToken(ratio)));
        }
    }))
}

/// A model of the table: name, `context_window`, `max_input_tokens`,
/// `max_output_tokens`, encoding, calibration, provider and source.
pub(super) struct Row(
    pub(super) &'static str,
    pub(super) usize,
    pub(super) usize,
    pub(super) Option<usize>,
    pub(super) Option<&'static str>,
    pub(super) Option<f64>,
    pub(super) &'static str,
    pub(super) &'static str,
);

impl Row {
    fn limits(&self, name: &str) -> ModelLimits {
        ModelLimits {
            name: name.into(),
            context_window: self.1,
            max_input_tokens: self.2,
            max_output_tokens: self.3,
            encoding: self.4.map(Cow::Borrowed),
            calibration: self.5,
            provider: Some(self.6.into()),
            known: true,
            source: self.7.into(),
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
/// stands for `gpt-4.1`. Upper and lower case differ. A version may have a
/// larger window than the beginning of its name, so the result is rather too
/// low.
///
/// An unknown name has a window of 8192, and `known` is false. With the feature
/// `tracing` that is a warning, once for each name. Nothing is looked up on a
/// network.
///
/// # Examples
///
/// ```
/// use budgeteer::window::model_limits;
///
/// assert_eq!(model_limits("openai/gpt-4o-2024-11-20").context_window, 128_000);
/// assert_eq!(model_limits("claude-sonnet-4-5-20250929").calibration, Some(1.18));
///
/// let gpt_5 = model_limits("gpt-5");
/// assert_eq!((gpt_5.max_input_tokens, gpt_5.context_window), (272_000, 400_000));
///
/// let unknown = model_limits("acme-1");
/// assert_eq!((unknown.known, unknown.context_window), (false, 8_192));
/// ```
#[must_use]
pub fn model_limits(name: &str) -> ModelLimits {
    let own = OWN.get();
    find(name, own.as_deref()).unwrap_or_else(|| {
        #[cfg(feature = "tracing")]
        warn_once(name);
        ModelLimits {
            name: name.into(),
            context_window: UNKNOWN_WINDOW,
            max_input_tokens: UNKNOWN_WINDOW,
            max_output_tokens: None,
            encoding: encoding_of(name).map(Cow::Borrowed),
            calibration: None,
            provider: None,
            known: false,
            source: "unknown".into(),
        }
    })
}

/// Registers a model for this process, in place of any known one with that
/// name. Returns the limits that [`model_limits`] returns from now on.
///
/// The name also stands for longer ones. If no encoding is set, the one that
/// was known for the name is used, if any.
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
    let limits = ModelLimits { known: true, ..limits.checked()? };
    add([limits.clone()]);
    Ok(limits)
}

/// Registers every model of a JSON text, and returns them. If one is wrong,
/// none is registered.
///
/// The text is an object of the form of Python's `models.json`, with the fields
/// of [`ModelLimits`] as keys. Only with the feature `json`.
///
/// # Errors
///
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for
/// another form, or as for [`register_model`].
///
/// # Examples
///
/// ```
/// use budgeteer::window::{load_models, model_limits};
///
/// load_models(r#"{"models": {"acme-8b": {"context_window": 64000}}}"#)?;
/// assert_eq!(model_limits("acme-8b").context_window, 64_000);
///
/// let error = load_models(r#"{"models": {"acme-8b": {"window": 64000}}}"#).unwrap_err();
/// assert_eq!(error.to_string(), "models[\"acme-8b\"] has the unknown key \"window\"");
/// # Ok::<(), budgeteer::Error>(())
/// ```
#[cfg(feature = "json")]
pub fn load_models(json: &str) -> Result<Vec<ModelLimits>, Error> {
    use serde_json::Value;

    let document: Value =
        serde_json::from_str(json).map_err(|error| Error::shape(format!("not JSON: {error}")))?;
    let Some(Value::Object(models)) = document.get("models") else {
        return Err(Error::shape("it must be an object with an object \"models\"".into()));
    };
    let mut read = Vec::new();
    for (name, fields) in models {
        let place = format!("models[{name:.80?}]");
        let wrong = |key: &str, kind: &str| Error::shape(format!("{place}.{key} must be {kind}"));
        let Value::Object(fields) = fields else {
            return Err(Error::shape(format!("{place} must be an object")));
        };
        let mut limits = ModelLimits::new(name, 0);
        let mut max_input_tokens = None;
        for (key, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
            let tokens = || {
                let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
                number.ok_or_else(|| wrong(key, "a natural number"))
            };
            let text = || value.as_str().map(str::to_owned).ok_or_else(|| wrong(key, "a string"));
            match key.as_str() {
                "context_window" => limits.context_window = tokens()?,
                "max_input_tokens" => max_input_tokens = Some(tokens()?),
                "max_output_tokens" => limits.max_output_tokens = Some(tokens()?),
                "encoding" => limits.encoding = Some(text()?.into()),
                "provider" => limits.provider = Some(text()?.into()),
                "source" => limits.source = text()?.into(),
                "calibration" => {
                    let factor = value.as_f64().ok_or_else(|| wrong(key, "a number"))?;
                    limits.calibration = Some(factor);
                }
                _ => {
                    let what = format!("{place} has the unknown key {key:.80?}");
                    return Err(Error::shape(what));
                }
            }
        }
        limits.max_input_tokens = max_input_tokens.unwrap_or(limits.context_window);
        read.push(limits.checked().map_err(|error| Error::shape(format!("{place}.{error}")))?);
    }
    add(read.iter().cloned());
    Ok(read)
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

fn add(read: impl IntoIterator<Item = ModelLimits>) {
    OWN.update(|own| {
        let mut own = own.cloned().unwrap_or_default();
        own.extend(read.into_iter().map(|limits| (limits.name.clone(), limits)));
        own
    });
}

/// Returns the limits of `name`: from `own`, or else from the table.
fn find(name: &str, own: Option<&BTreeMap<String, ModelLimits>>) -> Option<ModelLimits> {
    let mut names = vec![name];
    let mut rest = name;
    while names.len() <= PREFIXES_MAX {
        let Some(after) = PREFIXES.iter().find_map(|prefix| rest.strip_prefix(prefix)) else {
            break;
        };
        names.push(after);
        rest = after;
    }
    let known = |candidate: &str| {
        if let Some(limits) = own.and_then(|own| own.get(candidate)) {
            return Some(ModelLimits { name: name.into(), ..limits.clone() });
        }
        let candidate = look_up(ALIASES, candidate).unwrap_or(candidate);
        let place = MODELS.binary_search_by_key(&candidate, |row| row.0).ok()?;
        let mut limits = MODELS[place].limits(name);
        // The encoding that tiktoken has for a name goes first.
        if let Some(encoding) = encoding_of(name) {
            limits.encoding = Some(encoding.into());
            limits.calibration = None;
        }
        Some(limits)
    };
    let starts = names.iter().flat_map(|name| {
        let mut ends: Vec<usize> = name
            .char_indices()
            .take(NAME_MAX)
            .filter(|&(at, c)| at > 0 && matches!(c, '-' | ':' | '@' | '/'))
            .map(|(at, _)| at)
            .collect();
        ends.reverse();
        ends.into_iter().map(|end| &name[..end])
    });
    names.iter().copied().chain(starts).find_map(known)
}

/// Returns the encoding that tiktoken counts with for a model.
fn encoding_of(name: &str) -> Option<&'static str> {
    look_up(ENCODING_OF_MODEL, name).or_else(|| {
        let fits = |&&(prefix, _): &&(&str, &str)| name.starts_with(prefix);
        ENCODING_OF_PREFIX.iter().find(fits).map(|&(_, encoding)| encoding)
    })
}

fn look_up(table: &'static [(&str, &str)], key: &str) -> Option<&'static str> {
    table.binary_search_by_key(&key, |&(key, _)| key).ok().map(|place| table[place].1)
}

/// Warns of an unknown name. It warns again only if a thousand other names were
/// unknown since, or if two threads warn at once.
#[cfg(feature = "tracing")]
fn warn_once(name: &str) {
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    const WARNED_MAX: usize = 1_000;
    static WARNED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

    // It never waits: in a forked process the lock may be held for ever.
    let is_new = WARNED.try_lock().map_or(true, |mut warned| {
        if warned.len() >= WARNED_MAX {
            warned.clear();
        }
        warned.insert(name.into())
    });
    if is_new {
        let model = name.chars().take(80).collect::<String>();
        tracing::warn!(model, context_window = UNKNOWN_WINDOW, "model is not known");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted() {
        assert!(MODELS.is_sorted_by(|a, b| a.0 < b.0));
        for table in [ALIASES, ENCODING_OF_MODEL] {
            assert!(table.is_sorted_by(|a, b| a.0 < b.0));
        }
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
