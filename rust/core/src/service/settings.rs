//! The settings of a language model: its name, its window, and the reserve for
//! its answer.

use std::fmt;
use std::num::IntErrorKind;
use std::sync::Arc;

use crate::count::{Native, TokenCounter};
use crate::error::Error;
use crate::window::{ModelCounter, ModelLimits, counter_names, model_limits};

/// By default the answer has at most this fraction of the window, a quarter.
const OUTPUT_SHARE: usize = 4;

/// The spellings of a setting in files and in the environment.
const MODEL: &[&str] = &["model"];
const WINDOW: &[&str] = &["context_window", "max_context_window", "context_window_size"];
const OUTPUT: &[&str] = &["max_output_tokens", "reserved_output_tokens"];
const COUNTER: &[&str] = &["counter"];

pub(super) type Counter = Arc<dyn TokenCounter + Send + Sync>;

/// The model of a service, its window, and the reserve for the answer.
///
/// At least one of model and window is required.
///
/// # Examples
///
/// ```
/// # #[cfg(all(feature = "cl100k", feature = "o200k"))] {
/// use budgeteer::service::LlmSettings;
///
/// let limits = LlmSettings::new("gpt-4o").max_output_tokens(1_000).limits()?;
/// assert_eq!((limits.context_window, limits.max_output_tokens), (128_000, 1_000));
///
/// let limits = LlmSettings::new("gpt-4").context_window(4_096).limits()?;
/// assert_eq!((limits.context_window, limits.max_output_tokens), (4_096, 1_024));
/// # }
/// # Ok::<(), budgeteer::Error>(())
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct LlmSettings {
    /// The model's name, as for [`model_limits`]; None if only a window is
    /// given.
    pub model: Option<String>,
    /// The maximum of input and answer together, in tokens. It overrides the
    /// model's known window; None takes that.
    pub context_window: Option<usize>,
    /// The reserve for the answer, in tokens. None takes the model's own limit,
    /// and at most a quarter of the window.
    pub max_output_tokens: Option<usize>,
    counter: Option<Counter>,
    /// The caller's own limits for the model of that name.
    limits: Option<ModelLimits>,
}

impl LlmSettings {
    /// Returns the settings of the model with that name.
    #[must_use]
    pub fn new(model: impl Into<String>) -> Self {
        Self { model: Some(model.into()), ..Self::default() }
    }

    /// Returns the settings of a model with the caller's own limits.
    ///
    /// Limits that [`register_model`](crate::window::register_model) refuses
    /// are an error of [`limits`](Self::limits) and of the service. If no
    /// encoding is set, the known one for that name is used, if any.
    ///
    /// ```
    /// use budgeteer::service::LlmSettings;
    /// use budgeteer::window::ModelLimits;
    ///
    /// let own = ModelLimits::new("acme-7b", 32_000).encoding("chars_div4");
    /// assert_eq!(LlmSettings::for_model(own).limits()?.context_window, 32_000);
    /// # Ok::<(), budgeteer::Error>(())
    /// ```
    #[must_use]
    pub fn for_model(limits: ModelLimits) -> Self {
        Self { model: Some(limits.name.clone()), limits: Some(limits), ..Self::default() }
    }

    /// Sets the maximum of input and answer together, in tokens.
    #[must_use]
    pub fn context_window(mut self, tokens: usize) -> Self {
        self.context_window = Some(tokens);
        self
    }

    /// Sets the reserve for the answer, in tokens.
    #[must_use]
    pub fn max_output_tokens(mut self, tokens: usize) -> Self {
        self.max_output_tokens = Some(tokens);
        self
    }

    /// Sets the counter. By default it is that of the model: an estimate if the
    /// model is unknown or its tokenizer is not native.
    #[must_use]
    pub fn counter(mut self, counter: impl TokenCounter + Send + 'static) -> Self {
        self.counter = Some(Arc::new(counter));
        self
    }

    /// Reads the environment variables `BUDGETEER_LLM_MODEL`,
    /// `BUDGETEER_LLM_CONTEXT_WINDOW`, `BUDGETEER_LLM_MAX_OUTPUT_TOKENS` and
    /// `BUDGETEER_LLM_COUNTER`.
    ///
    /// `MAX_CONTEXT_WINDOW` and `CONTEXT_WINDOW_SIZE` are other spellings of
    /// `CONTEXT_WINDOW`, and `RESERVED_OUTPUT_TOKENS` of `MAX_OUTPUT_TOKENS`. A
    /// counter is `o200k_base`, `cl100k_base`, `chars_div4`, `words`,
    /// `chars_per_token:X`, or a model. An empty variable counts as unset.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where
    /// a variable has a wrong value; the message names it.
    pub fn from_env() -> Result<Self, Error> {
        let variable = |name: &str| Some(std::env::var_os(name)?.to_string_lossy().into_owned());
        Self::from_variables("BUDGETEER_LLM_", variable)
    }

    /// Like [`from_env`](Self::from_env), with another prefix, and with values
    /// from anywhere: `variable` returns the value of a name.
    ///
    /// # Errors
    ///
    /// As for [`from_env`](Self::from_env).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "o200k")] {
    /// use budgeteer::service::LlmSettings;
    ///
    /// let variable = |name: &str| match name {
    ///     "APP_MODEL" => Some("gpt-4o".into()),
    ///     "APP_RESERVED_OUTPUT_TOKENS" => Some("500".into()),
    ///     _ => None,
    /// };
    /// let settings = LlmSettings::from_variables("APP_", variable)?;
    /// assert_eq!(settings.max_output_tokens, Some(500));
    /// # }
    /// # Ok::<(), budgeteer::Error>(())
    /// ```
    pub fn from_variables(
        prefix: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        let find = |spellings: &[&str]| -> Result<Option<(String, String)>, Error> {
            let names = spellings.iter().map(|name| format!("{prefix}{}", name.to_uppercase()));
            let values = names.map(|name| variable(&name).map(|value| (name, value)));
            one(values.flatten().filter(|(_, value)| !value.is_empty()))
        };
        let tokens = |spellings: &[&str], minimum: usize| -> Result<Option<usize>, Error> {
            let Some((name, value)) = find(spellings)? else { return Ok(None) };
            let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
            match value.parse() {
                Ok(number) if is_number => at_least(&name, number, minimum).map(Some),
                Err(error) if is_number && *error.kind() == IntErrorKind::PosOverflow => {
                    let most = format!("at most {}", usize::MAX);
                    Err(Error::limit(&name, most, format!("{value:.80}")))
                }
                _ => Err(Error::limit(&name, "a whole number", format!("{value:.80?}"))),
            }
        };
        let mut settings = Self {
            model: find(MODEL)?.map(|(_, value)| value),
            context_window: tokens(WINDOW, 1)?,
            max_output_tokens: tokens(OUTPUT, 0)?,
            ..Self::default()
        };
        if let Some((name, value)) = find(COUNTER)? {
            settings.counter = Some(named(&name, &value)?);
        }
        if settings.model.is_none() && settings.context_window.is_none() {
            let what = format!("{prefix}MODEL or {prefix}CONTEXT_WINDOW is required");
            return Err(Error::shape(what));
        }
        settings.limits().map(|_| settings)
    }

    /// Reads an object with `model`, `context_window`, `max_output_tokens` and
    /// `counter`, at its top or under `llm`, with the other spellings of
    /// [`from_env`](Self::from_env) too. Other keys beside `llm` are ignored.
    /// Only with the feature `json`; TOML or YAML can be read into a
    /// `serde_json::Value` first.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for an
    /// unknown key or a wrong value; the message names the key.
    ///
    /// # Examples
    ///
    /// ```
    /// use budgeteer::service::LlmSettings;
    ///
    /// let file = r#"{"llm": {"max_context_window": 4096, "reserved_output_tokens": 500}}"#;
    /// let settings = LlmSettings::from_json(&serde_json::from_str(file)?)?;
    /// assert_eq!(settings.context_window, Some(4_096));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "json")]
    pub fn from_json(value: &serde_json::Value) -> Result<Self, Error> {
        use serde_json::Value;

        let (value, place) = match value.get("llm") {
            Some(section) => (section, "llm."),
            None => (value, ""),
        };
        let Value::Object(fields) = value else {
            return Err(Error::shape(match place {
                "" => "the settings must be an object".into(),
                _ => "llm must be an object".to_owned(),
            }));
        };
        let known = || [MODEL, WINDOW, OUTPUT, COUNTER].into_iter().flatten();
        if let Some(key) = fields.keys().find(|key| !known().any(|known| known == key)) {
            let known: Vec<_> = known().map(|name| format!("{name:?}")).collect();
            let known = known.join(", ");
            return Err(Error::shape(format!(
                "{place}{key:.80} is not a known key; known are {known}"
            )));
        }
        let find = |spellings: &[&'static str]| {
            let given = spellings.iter().filter_map(|&key| Some((key, fields.get(key)?)));
            let given = given.filter(|(_, value)| !value.is_null());
            one(given.map(|(key, value)| (format!("{place}{key}"), value)))
        };
        let text = |spellings: &[&'static str]| -> Result<Option<(String, &str)>, Error> {
            let Some((key, value)) = find(spellings)? else { return Ok(None) };
            match value.as_str() {
                Some(text) => Ok(Some((key, text))),
                None => Err(Error::limit(&key, "a string", format!("{:.80}", value.to_string()))),
            }
        };
        let tokens = |spellings: &[&'static str], minimum: usize| -> Result<Option<usize>, Error> {
            let Some((key, value)) = find(spellings)? else { return Ok(None) };
            let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
            let wrong =
                || Error::limit(&key, "a natural number", format!("{:.80}", value.to_string()));
            at_least(&key, number.ok_or_else(wrong)?, minimum).map(Some)
        };
        let mut settings = Self {
            model: text(MODEL)?.map(|(_, name)| name.to_owned()),
            context_window: tokens(WINDOW, 1)?,
            max_output_tokens: tokens(OUTPUT, 0)?,
            ..Self::default()
        };
        if let Some((key, name)) = text(COUNTER)? {
            settings.counter = Some(named(&key, name)?);
        }
        settings.limits().map_err(|error| match place {
            "" => error,
            _ => Error::shape(format!("llm: {error}")),
        })?;
        Ok(settings)
    }

    /// Returns the limits that result from these settings now.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where
    /// there is neither a model nor a window, the window is 0, the caller's own
    /// limits or the number of a counter are wrong, or the encoding that counts
    /// for the model is not in this binary and no counter was set.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "o200k")] {
    /// use budgeteer::service::LlmSettings;
    ///
    /// let limits = LlmSettings::new("mistral-large-latest").limits()?;
    /// assert!(!limits.counter().is_exact());
    /// # }
    /// # Ok::<(), budgeteer::Error>(())
    /// ```
    pub fn limits(&self) -> Result<ActiveModel, Error> {
        if let Some(window) = self.context_window {
            at_least("context_window", window, 1)?;
        }
        if let Some(Native::Estimate(estimate)) =
            self.counter.as_ref().and_then(TokenCounter::native)
        {
            estimate.check()?;
        }
        let Some(name) = &self.model else {
            let Some(window) = self.context_window else {
                return Err(Error::shape("model or context_window is required".into()));
            };
            let counter = self.counter.clone();
            return Ok(ActiveModel {
                name: String::new(),
                context_window: window,
                max_input_tokens: window,
                max_output_tokens: self.max_output_tokens.unwrap_or(window / OUTPUT_SHARE),
                counter: counter.unwrap_or_else(|| Arc::new(ModelCounter::default())),
            });
        };
        if name.is_empty() {
            return Err(Error::shape("model must not be empty".into()));
        }
        let own = self.limits.as_ref().filter(|limits| limits.name == *name);
        let limits = match (own, &self.counter) {
            (None, _) => model_limits(name),
            (Some(own), None) => own.clone().checked()?,
            // Its encoding is not used for counting.
            (Some(own), Some(_)) => own.check_numbers().map(|()| own.clone())?,
        };
        let window = self.context_window.unwrap_or(limits.context_window);
        // The model's own limit of the input stays, unless the given window is
        // larger than the one that this limit belongs to.
        let max_input =
            if window > limits.context_window { window } else { limits.max_input_tokens };
        let output = limits.max_output_tokens.unwrap_or(usize::MAX).min(window / OUTPUT_SHARE);
        Ok(ActiveModel {
            context_window: window,
            max_input_tokens: max_input.min(window),
            max_output_tokens: self.max_output_tokens.unwrap_or(output),
            counter: match &self.counter {
                Some(counter) => Arc::clone(counter),
                None => Arc::new(counter_of(&limits)?),
            },
            name: limits.name,
        })
    }
}

impl fmt::Debug for LlmSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LlmSettings")
            .field("model", &self.model)
            .field("context_window", &self.context_window)
            .field("max_output_tokens", &self.max_output_tokens)
            .finish_non_exhaustive()
    }
}

/// The limits of a model for requests: the result of [`LlmSettings::limits`].
#[derive(Clone)]
#[non_exhaustive]
pub struct ActiveModel {
    /// The name; empty if none was given.
    pub name: String,
    /// The maximum of input and answer together, in tokens.
    pub context_window: usize,
    /// The maximum of the input, in tokens.
    pub max_input_tokens: usize,
    /// The reserve for the answer, in tokens.
    pub max_output_tokens: usize,
    pub(super) counter: Counter,
}

impl ActiveModel {
    /// Returns its counter.
    #[must_use]
    pub fn counter(&self) -> &dyn TokenCounter {
        &*self.counter
    }
}

impl fmt::Debug for ActiveModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActiveModel")
            .field("name", &self.name)
            .field("context_window", &self.context_window)
            .field("max_input_tokens", &self.max_input_tokens)
            .field("max_output_tokens", &self.max_output_tokens)
            .field("is_exact", &self.counter.is_exact())
            .finish_non_exhaustive()
    }
}

/// Returns the counter of a model.
fn counter_of(limits: &ModelLimits) -> Result<ModelCounter, Error> {
    limits.counter().ok_or_else(|| {
        Error::shape(format!(
            "counter is required: the encoding for {:.80?} is not in this binary",
            limits.name
        ))
    })
}

/// Returns the counter that the setting `key` names.
fn named(key: &str, name: &str) -> Result<Counter, Error> {
    let counter = ModelCounter::named(name).ok_or_else(|| {
        let names = counter_names() + ", or a model";
        Error::limit(key, names, format!("{name:.80?}"))
    })?;
    Ok(Arc::new(counter))
}

fn at_least(key: &str, tokens: usize, minimum: usize) -> Result<usize, Error> {
    if tokens < minimum {
        return Err(Error::limit(key, format!("at least {minimum}"), tokens.to_string()));
    }
    Ok(tokens)
}

/// Returns the value of the only spelling that is given.
fn one<T>(given: impl Iterator<Item = (String, T)>) -> Result<Option<(String, T)>, Error> {
    let mut given = given;
    let first = given.next();
    match (&first, given.next()) {
        (Some((first, _)), Some((second, _))) => {
            Err(Error::shape(format!("{first} and {second} are the same; give one of them")))
        }
        _ => Ok(first),
    }
}
