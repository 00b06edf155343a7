//! What a file of models states, of the own form or litellm's.

use serde_json::Value;

use super::ModelLimits;
use super::limits::add;
use super::litellm::{entries, is_litellm};
use crate::error::Error;

/// Registers every model of a JSON text, and returns them. If one is wrong,
/// none is registered.
///
/// The text is an object of the form of Python's `models.json`, with the fields
/// of [`ModelLimits`] as keys, or of litellm's
/// `model_prices_and_context_window.json`. Of that `max_input_tokens`,
/// `max_output_tokens`, `max_tokens`, `mode` and `litellm_provider` are read;
/// entries without a window, and those of models that take or make no text, are
/// left out. Only with the feature `json`.
///
/// # Errors
///
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for
/// another form, or as for [`register_model`](super::register_model).
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
pub fn load_models(json: &str) -> Result<Vec<ModelLimits>, Error> {
    let document: Value =
        serde_json::from_str(json).map_err(|error| Error::shape(format!("not JSON: {error}")))?;
    let (models, list) = match document {
        Value::Object(stated) if is_litellm(&stated) => (entries(&stated)?, ""),
        Value::Object(mut stated) => match stated.remove("models") {
            Some(Value::Object(models)) => (models, "models"),
            _ => return Err(no_models()),
        },
        _ => return Err(no_models()),
    };
    let mut read = Vec::new();
    for (name, fields) in &models {
        let place = format!("{list}[{name:.80?}]");
        let wrong = |key: &str, kind: &str| Error::shape(format!("{place}.{key} must be {kind}"));
        let Value::Object(fields) = fields else {
            return Err(Error::shape(format!("{place} must be an object")));
        };
        let mut limits = ModelLimits::new(name, 0);
        let mut max_input_tokens = None;
        for (key, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
            let tokens = || {
                let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
                number.ok_or_else(|| wrong(key, &format!("a natural number, not {value:.80}")))
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
        if fields.get("context_window").is_none_or(Value::is_null) {
            return Err(Error::shape(format!("{place}.context_window is required")));
        }
        limits.max_input_tokens = max_input_tokens.unwrap_or(limits.context_window);
        read.push(limits.checked().map_err(|error| Error::shape(format!("{place}.{error}")))?);
    }
    add(read.iter().cloned());
    Ok(read)
}

fn no_models() -> Error {
    Error::shape("it must be an object with an object \"models\", or litellm's".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_read() {
        let read = load_models(
            r#"{"models": {"of a test of files": {
                "context_window": 9, "max_input_tokens": 8, "max_output_tokens": 7,
                "encoding": "cl100k_base", "calibration": 1.5, "provider": "acme", "source": "a test"
            }}}"#,
        );
        let read = &read.expect("they are known")[0];
        assert_eq!(
            (9, 8, Some(7)),
            (read.context_window, read.max_input_tokens, read.max_output_tokens)
        );
        assert_eq!((Some("cl100k_base"), Some(1.5)), (read.encoding.as_deref(), read.calibration));
        assert_eq!((Some("acme"), "a test"), (read.provider.as_deref(), &*read.source));
    }
}
