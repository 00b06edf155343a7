//! Tool schemas, as the TypeScript that a model is shown.

use crate::count::TokenCounter;

const PER_TOOLS: usize = 9;
const WITH_SYSTEM: usize = 4;

/// A function that a model may call.
/// With the feature `json` it may have parameters: see `Tool::from_json` and
/// `Tool::parameters`.
///
/// # Examples
///
/// ```
/// use budgeteer::Tool;
///
/// let tool = Tool::new("now").description("Say what time it is");
/// assert_eq!(tool.to_string(), "// Say what time it is\ntype now = () => any;\n");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    pub(super) name: String,
    pub(super) description: String,
    /// Its properties as TypeScript; empty if it has none.
    pub(super) fields: Option<String>,
}

impl Tool {
    /// Returns a tool without parameters.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), description: String::new(), fields: None }
    }

    /// Sets the description of what it does.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }
}

impl std::fmt::Display for Tool {
    /// Writes the tool as the TypeScript type that is counted.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, description, fields } = self;
        if !description.is_empty() {
            writeln!(f, "// {description}")?;
        }
        match fields {
            Some(fields) => writeln!(f, "type {name} = (_: {{\n{fields}\n}}) => any;"),
            None => writeln!(f, "type {name} = () => any;"),
        }
    }
}

/// Which tools a model should call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolChoice<'a> {
    /// Those that it chooses. The default.
    #[default]
    Auto,
    /// At least one.
    Required,
    /// None.
    None,
    /// The tool of that name.
    Named(&'a str),
}

impl ToolChoice<'_> {
    /// Returns the tokens of the choice on top of [`count_tools`], where there
    /// are tools: 1 for none, and 7 and its name for a named tool.
    #[must_use]
    pub fn tokens(self, counter: &dyn TokenCounter) -> usize {
        match self {
            Self::Auto | Self::Required => 0,
            Self::None => 1,
            Self::Named(name) => counter.count(name).saturating_add(7),
        }
    }
}

/// Returns how many tokens tool schemas take in a prompt, about. No tools cost
/// 0.
///
/// There is no official rule. The count is that of the TypeScript that the
/// model is shown, plus 9, less 4 where there is a system message. It is rather
/// too high than too low.
///
/// # Examples
///
/// ```
/// # #[cfg(all(feature = "json", feature = "o200k"))] {
/// use budgeteer::window::count_tools;
/// use budgeteer::{Encoding, Tool};
/// use serde_json::json;
///
/// let weather = Tool::from_json(&json!({
///     "name": "weather",
///     "description": "Say how the weather is",
///     "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
/// }))?;
/// assert_eq!(count_tools(&[weather], &Encoding::O200k, false), 36);
/// # }
/// # Ok::<(), budgeteer::Error>(())
/// ```
#[must_use]
pub fn count_tools(tools: &[Tool], counter: &dyn TokenCounter, has_system_message: bool) -> usize {
    if tools.is_empty() {
        return 0;
    }
    let mut text = "namespace functions {\n\n".to_string();
    for tool in tools {
        text += &tool.to_string();
        text.push('\n');
    }
    text += "} // namespace functions";
    let frame = PER_TOOLS - if has_system_message { WITH_SYSTEM } else { 0 };
    counter.count(&text).saturating_add(frame)
}
