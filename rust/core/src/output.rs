//! The results of tools, cut to a limit: JSON, tables, logs, diffs and texts
//! stay what they are.

use std::convert::Infallible;
use std::fmt::{self, Debug, Formatter};
use std::sync::atomic::{AtomicBool, Ordering};

use memchr::memrchr;

use crate::count::exact::GO_ON;
use crate::count::{Drafts, Native, TokenCounter, check};
use crate::error::Error;
use crate::text::Text;

mod cut;
mod diff;
mod lines;
mod log;
mod scan;
mod share;
mod tree;

use diff::{Diff, diff_of};
use lines::text_of;
use log::{is_log, log_of};
use share::chars;
use tree::Tree;

/// The first text that is counted has this many code points for each token.
const CHARS_PER_TOKEN: usize = 4;

/// What a text grows by besides doubling, while it fits.
const SLACK: usize = 64;

/// What the result of a tool is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OutputKind {
    /// What its content says: [`Json`](Self::Json) for a text that begins with
    /// `[` or `{` and parses; [`Diff`](Self::Diff) for a unified diff, with at
    /// most as much text before it; [`Log`](Self::Log) for JSON Lines, and for
    /// four lines or more, half of them with a level such as `INFO` or a time such
    /// as `12:30` near their start, or one of them the error of a build such as
    /// `tea.c:3:5: error: ...`, half with digits, slashes or the like, and none that
    /// begins as Markdown's fences, headings and tables; else [`Text`](Self::Text).
    #[default]
    Auto,
    /// Its two ends stay; with a query, its best paragraphs.
    Text,
    /// It parses, and arrays stay arrays and objects objects. The best items of
    /// an array stay, in their order; an item that would take more than a
    /// quarter of the room loses the middle of its long strings, and of its
    /// arrays. One string stands where items were first left out. An object
    /// keeps all its keys while there is room for them; then a member `"..."`
    /// says how many are left out. Numbers, keys and duplicates stay as written.
    /// The smallest texts are `[]`, `{}` and `""`.
    Json,
    /// As [`Json`](Self::Json). An array of objects with the same keys becomes
    /// `{"columns":[...],"rows":[[...],...]}` if more of its items fit so.
    Table,
    /// Errors stay first, and take turns with answers to the query; then the
    /// indented lines behind them, warnings, the two lines at either end, the
    /// lines around errors, and all others. Of lines that differ in numbers and
    /// identifiers alone one stands for all: the first, or the best answer. Its
    /// repeats stay last; but the last of an error stands behind the errors, and
    /// the others take turns with the lines that are new. The best line is whole
    /// where it fits; others are whole, too, or go, but that long ones may lose
    /// their middle. Objects of JSON Lines stay JSON between the markers, which
    /// are none; their `level` or `severity` decides, a number as in pino, or
    /// below 10 as in syslog.
    Log,
    /// Whole hunks stay below the header of their file, from the start on.
    /// Files without any are named in the last line.
    Diff,
}

/// The options of [`fit_output`].
#[derive(Clone, Copy, Default)]
pub struct OutputOptions<'a> {
    /// What the value is.
    pub kind: OutputKind,
    /// What the best parts are about. None, or the empty text, for the parts at
    /// both ends.
    pub query: Option<&'a str>,
    /// Called with the whole text where something is left out, once. It keeps
    /// the text, and returns one line that says where, which the first marker
    /// then shows. Where that marker does not fit, the plain one stands, and only
    /// [`FittedOutput::pointer`] has the line.
    pub spill: Option<&'a dyn Fn(&str) -> String>,
}

impl Debug for OutputOptions<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputOptions")
            .field("kind", &self.kind)
            .field("query", &self.query)
            .field("spill", &self.spill.map(|_| ".."))
            .finish()
    }
}

/// The result of a tool, cut to a limit. Made by [`fit_output`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FittedOutput {
    /// What to send; valid JSON, a diff or a log, as `kind` says.
    pub text: String,
    /// The tokens of `text` by the counter, at most the limit.
    pub total_tokens: usize,
    /// The number of characters that `text` leaves out. In JSON, whitespace
    /// between tokens is not counted.
    pub left_out: usize,
    /// What the text is; never [`OutputKind::Auto`].
    pub kind: OutputKind,
    /// What [`OutputOptions::spill`] returned, if it was called.
    pub pointer: Option<String>,
}

impl FittedOutput {
    /// Returns whether anything was left out.
    #[must_use]
    pub fn was_cut(&self) -> bool {
        self.left_out > 0
    }
}

/// Returns the result of a tool cut to at most `max_tokens` tokens, and still
/// valid.
///
/// A value that fits is returned as it is. One that is cut says, in its own
/// format, how much was left out, and that is counted too; only its smallest
/// text does not. Fitting the text again with the same limit changes nothing.
/// [`OutputKind`] says what stays.
///
/// With a query those parts stay first that answer it by
/// [`bm25_scores`](crate::bm25_scores).
///
/// # Errors
///
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where the
/// value is not of the kind, or is nested more than 128 deep.
/// [`ErrorKind::BudgetExhausted`](crate::ErrorKind::BudgetExhausted) where not
/// even the smallest text of the value fits. Texts, logs and diffs always do,
/// as the empty text has no tokens.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "o200k")] {
/// use budgeteer::{Encoding, OutputOptions, fit_output};
///
/// let rows: Vec<_> = (0..50).map(|id| format!("{{\"id\": {id}}}")).collect();
/// let value = format!("[{}]", rows.join(", "));
/// let fitted = fit_output(&value, 25, &Encoding::O200k, OutputOptions::default())?;
/// assert_eq!(fitted.text, r#"[{"id":0},"[... 48 of 50 items left out ...]",{"id":49}]"#);
/// # }
/// # Ok::<(), budgeteer::Error>(())
/// ```
pub fn fit_output(
    value: &str,
    max_tokens: usize,
    counter: &dyn TokenCounter,
    options: OutputOptions<'_>,
) -> Result<FittedOutput, Error> {
    fit("value", value, max_tokens, counter, options)
}

/// Returns the results of several tools, together cut to at most `max_tokens`
/// tokens.
///
/// They share the limit by max-min fairness: a small result is whole before a
/// larger one gets more than it. Each is cut as [`fit_output`] cuts it.
///
/// # Errors
///
/// As for [`fit_output`]; the message names the index.
///
/// # Examples
///
/// ```
/// use budgeteer::{Estimate, OutputOptions, fit_outputs};
///
/// let (black, oolong) = ("Black tea. ".repeat(99), "Oolong. ".repeat(99));
/// let values = ["Green tea.", &black, &oolong];
/// let fitted = fit_outputs(&values, 63, &Estimate::CharsDiv4, OutputOptions::default())?;
/// let tokens: Vec<_> = fitted.iter().map(|output| output.total_tokens).collect();
/// assert_eq!(tokens, [3, 30, 30]);
/// # Ok::<(), budgeteer::Error>(())
/// ```
pub fn fit_outputs(
    values: &[impl AsRef<str>],
    max_tokens: usize,
    counter: &dyn TokenCounter,
    options: OutputOptions<'_>,
) -> Result<Vec<FittedOutput>, Error> {
    check(counter)?;
    let mut needs: Vec<_> = (0..values.len())
        .map(|i| {
            let text = values[i].as_ref();
            let tokens = match text {
                "" => Some(0),
                _ => counter.count_till_limit(text, max_tokens).filter(|&n| n <= max_tokens),
            };
            (tokens.is_none(), tokens, i)
        })
        .collect();
    needs.sort_unstable();
    let mut left = max_tokens;
    let mut fitted = Vec::with_capacity(values.len());
    for (done, &(_, _, i)) in needs.iter().enumerate() {
        let share = left / (needs.len() - done);
        let output = fit(&format!("values[{i}]"), values[i].as_ref(), share, counter, options)?;
        left -= output.total_tokens;
        fitted.push((i, output));
    }
    fitted.sort_unstable_by_key(|&(i, _)| i);
    Ok(fitted.into_iter().map(|(_, output)| output).collect())
}

/// Cuts one value; `name` is for the errors.
fn fit(
    name: &str,
    value: &str,
    max_tokens: usize,
    counter: &dyn TokenCounter,
    options: OutputOptions<'_>,
) -> Result<FittedOutput, Error> {
    check(counter)?;
    let cut = |pointer: Option<&str>| {
        let query = options.query.filter(|query| !query.is_empty()).map(Text::from);
        let mut drafts = match counter.native() {
            Some(Native::Exact(exact, factor)) => Some(Drafts::new(&exact, factor)),
            _ => None,
        };
        let mut count = |text: Text<'_>, limit| {
            Ok::<_, Infallible>(match &mut drafts {
                Some(drafts) => drafts.count(text, limit, &GO_ON),
                None => count(counter, text, limit),
            })
        };
        let request = Request {
            text: value.into(),
            max_tokens: max_tokens as u64,
            kind: options.kind,
            query,
            pointer: pointer.map(Text::from),
        };
        let Ok(answer) = fit_text(request, &GO_ON, &mut count);
        answer.map_err(|misfit| misfit.error(name, max_tokens))
    };
    let mut fitted = cut(None)?;
    let mut pointer = None;
    if fitted.left_out > 0
        && let Some(spill) = options.spill
    {
        let line = spill(value);
        if line.is_empty() || line.contains(LINE_ENDS) {
            let what = if line.is_empty() { "the empty text" } else { "more lines" };
            return Err(Error::shape(format!("spill must return one line of text, not {what}")));
        }
        let found = cut(Some(&line))?;
        if !EMPTY.contains(&&*found.text) {
            fitted = found;
        }
        pointer = Some(line);
    }
    Ok(FittedOutput {
        text: String::from_utf8(fitted.text).expect("whole characters of a string make a string"),
        total_tokens: usize::try_from(fitted.total_tokens).unwrap_or(usize::MAX),
        left_out: fitted.left_out,
        kind: fitted.kind,
        pointer,
    })
}

/// The smallest texts, which do not say that something was left out.
const EMPTY: [&[u8]; 4] = [b"", b"[]", b"{}", b"\"\""];

const LINE_ENDS: [char; 10] =
    ['\n', '\r', '\u{B}', '\u{C}', '\u{1C}', '\u{1D}', '\u{1E}', '\u{85}', '\u{2028}', '\u{2029}'];

/// Returns the tokens of `text` if they are at most `limit`, by a counter that
/// has no [`Drafts`].
fn count(counter: &dyn TokenCounter, text: Text<'_>, limit: u64) -> Option<u64> {
    if let Some(Native::Estimate(estimate)) = counter.native() {
        return Some(estimate.count_text(text, &mut Vec::new())).filter(|&count| count <= limit);
    }
    let mut utf8 = Vec::new();
    text.write_utf8(&mut utf8);
    let text = String::from_utf8_lossy(&utf8);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    // A caller's own may return more than the limit.
    counter.count_till_limit(&text, limit).filter(|&count| count <= limit).map(|count| count as u64)
}

/// What [`fit_text`] is asked.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub text: Text<'a>,
    pub max_tokens: u64,
    pub kind: OutputKind,
    pub query: Option<Text<'a>>,
    pub pointer: Option<Text<'a>>,
}

/// What [`fit_text`] answers: the text, encoded as in [`Text::Utf8`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Fit {
    pub text: Vec<u8>,
    pub total_tokens: u64,
    pub left_out: usize,
    pub kind: OutputKind,
}

/// Why a value cannot be cut. Places are in code points.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    NotJson { at: usize },
    TooDeep { at: usize },
    NotDiff,
    NoRoom { needed: u64 },
}

impl Misfit {
    fn error(self, name: &str, max_tokens: usize) -> Error {
        match self {
            Self::NotJson { at } => Error::shape(format!(
                "{name} must be JSON for its kind, and is not from character {at} on: \
                 OutputKind::Text takes any text"
            )),
            Self::TooDeep { .. } => Error::shape(format!(
                "{name} must be nested at most 128 deep to be cut as JSON: OutputKind::Text takes \
                 it"
            )),
            Self::NotDiff => Error::shape(format!(
                "{name} must be a unified diff for OutputKind::Diff, and has no header of a file: \
                 OutputKind::Text takes any text"
            )),
            Self::NoRoom { needed } => Error::overflow(format!(
                "nothing of {name} fits: max_tokens {max_tokens} - {needed} for its smallest text \
                 = -{}",
                needed.saturating_sub(max_tokens as u64)
            )),
        }
    }
}

/// A text that may be the answer.
#[derive(Debug, Default)]
struct Draft {
    text: Vec<u8>,
    /// The code points that it leaves out.
    left_out: usize,
    /// The items of the outermost array, or of the table, that stay.
    rows: usize,
}

/// A value that can be cut: JSON, lines or a diff.
trait Shape {
    /// Returns its length in code points.
    fn size(&self) -> usize;

    /// Returns a text of about `room` code points.
    fn render(&mut self, room: usize, pointer: Option<&[u8]>) -> Draft;
}

/// Counts a text till a limit.
type Count<'c, E> = dyn FnMut(Text<'_>, u64) -> Result<Option<u64>, E> + 'c;

/// Does what [`fit_output`] does, with any way to count. The result means
/// nothing once `stop` is set.
///
/// # Errors
///
/// What `count` fails with.
#[doc(hidden)]
pub fn fit_text<E>(
    request: Request<'_>,
    stop: &AtomicBool,
    count: &mut Count<'_, E>,
) -> Result<Result<Fit, Misfit>, E> {
    let mut text = Vec::new();
    request.text.write_utf8(&mut text);
    let mut pointer = request.pointer.map(|_| Vec::new());
    if let (Some(out), Some(pointer)) = (&mut pointer, request.pointer) {
        pointer.write_utf8(out);
    }
    let limit = request.max_tokens;
    let mut search = Search { limit, pointer: pointer.as_deref(), stop, count };
    let query = request.query;
    let (mut kind, mut tree, mut diff) = (request.kind, None, None);
    if kind == OutputKind::Auto {
        (kind, tree, diff) = kind_of(&text, query, stop);
    }
    if stop.load(Ordering::Relaxed) {
        return Ok(Ok(Fit { text: Vec::new(), total_tokens: 0, left_out: 0, kind }));
    }
    match kind {
        OutputKind::Json | OutputKind::Table if tree.is_none() => {
            match Tree::new(&text, query, 0, None, stop) {
                Ok(found) => tree = Some(found),
                Err(misfit) => return Ok(Err(misfit)),
            }
        }
        OutputKind::Diff if diff.is_none() => {
            diff = diff_of(&text, query, stop);
            if diff.is_none() && !is_rest_of_diff(&text) {
                return Ok(Err(Misfit::NotDiff));
            }
        }
        _ => {}
    }
    let plain = if kind == OutputKind::Table { OutputKind::Json } else { kind };
    if let Some(total_tokens) = search.count(request.text)? {
        return Ok(Ok(Fit { text, total_tokens, left_out: 0, kind: plain }));
    }
    let Some(tree) = tree else {
        let found = match (diff, kind) {
            (Some(mut diff), _) => search.longest(&mut diff)?,
            (None, OutputKind::Log) => search.longest(&mut log_of(&text, query, stop))?,
            (None, _) => search.longest(&mut text_of(&text, query, stop))?,
        };
        let left_out = chars(&text);
        let (draft, total_tokens) = found.unwrap_or((Draft { left_out, ..Draft::default() }, 0));
        return Ok(Ok(Fit { text: draft.text, total_tokens, left_out: draft.left_out, kind }));
    };
    search.tree(tree, kind, &text)
}

/// The search for the longest text that fits.
struct Search<'s, 'c, E> {
    limit: u64,
    pointer: Option<&'s [u8]>,
    stop: &'s AtomicBool,
    count: &'s mut Count<'c, E>,
}

impl<E> Search<'_, '_, E> {
    /// Returns the tokens of a text if it fits; the empty one has none.
    fn count(&mut self, text: Text<'_>) -> Result<Option<u64>, E> {
        if text.is_empty() { Ok(Some(0)) } else { (self.count)(text, self.limit) }
    }

    /// Cuts JSON, which does not fit as `text` is written.
    fn tree(
        &mut self,
        mut tree: Tree<'_>,
        kind: OutputKind,
        text: &[u8],
    ) -> Result<Result<Fit, Misfit>, E> {
        let json = |draft: Draft, total_tokens, kind| {
            Ok(Ok(Fit { text: draft.text, total_tokens, left_out: draft.left_out, kind }))
        };
        if tree.text() != text
            && let Some(total) = self.count(Text::from_utf8(tree.text()))?
        {
            let draft = Draft { text: tree.text().to_vec(), ..Draft::default() };
            return json(draft, total, OutputKind::Json);
        }
        let best = self.longest(&mut tree)?;
        if kind == OutputKind::Table
            && let Some(mut table) = tree.table()
        {
            let found = match self.count(Text::from_utf8(table.text()))? {
                Some(total) => {
                    let (text, rows) = (table.text().to_vec(), table.whole_rows());
                    Some((Draft { text, left_out: 0, rows }, total))
                }
                None => self.longest(&mut table)?,
            };
            let rows = best.as_ref().map_or(0, |(draft, _)| draft.rows);
            if let Some((draft, total)) = found.filter(|(draft, _)| draft.rows > rows) {
                return json(draft, total, OutputKind::Table);
            }
        }
        if let Some((draft, total)) = best {
            return json(draft, total, OutputKind::Json);
        }
        let Some(bare) = tree.bare() else {
            return self.no_room(Text::from_utf8(tree.text()));
        };
        match self.count(Text::Ascii(bare))? {
            Some(total) => {
                let left_out = tree.size() - bare.len();
                json(Draft { text: bare.to_vec(), left_out, rows: 0 }, total, OutputKind::Json)
            }
            None => self.no_room(Text::Ascii(bare)),
        }
    }

    fn no_room<T>(&mut self, smallest: Text<'_>) -> Result<Result<T, Misfit>, E> {
        let needed = (self.count)(smallest, u64::MAX)?.unwrap_or(u64::MAX);
        Ok(Err(Misfit::NoRoom { needed }))
    }

    /// Returns the longest text of a shape that fits, and its tokens; None if
    /// none does.
    ///
    /// The room doubles until a text does not fit, and is then bisected. Where
    /// a longer text counts less, the result still fits, but a longer one might
    /// have fitted too.
    fn longest(&mut self, shape: &mut impl Shape) -> Result<Option<(Draft, u64)>, E> {
        let mut best = None;
        let whole = shape.size().max(1);
        // One more than the room that fits, and the room that does not.
        let (mut low, mut high) = (0, whole);
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let mut room = (high - 1).min(limit.saturating_mul(CHARS_PER_TOKEN));
        while high + 1 - low > 1 && !self.stop.load(Ordering::Relaxed) {
            let draft = shape.render(room, self.pointer);
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            match self.count(Text::from_utf8(&draft.text))? {
                Some(total) => {
                    best = Some((draft, total));
                    low = room + 1;
                }
                None => high = room,
            }
            room = if high == whole {
                (high - 1).min(2 * room + SLACK)
            } else {
                (low + high).saturating_sub(1) / 2
            };
        }
        Ok(best)
    }
}

/// Returns the kind of a text by what it is, and what was read of JSON or a diff.
fn kind_of<'a>(
    text: &'a [u8],
    query: Option<Text<'a>>,
    stop: &'a AtomicBool,
) -> (OutputKind, Option<Tree<'a>>, Option<Diff<'a>>) {
    let first = text.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
    if matches!(first, Some(b'[' | b'{'))
        && let Ok(tree) = Tree::new(text, query, 0, None, stop)
    {
        return (OutputKind::Json, Some(tree), None);
    }
    let is_diff = |diff: &Diff<'_>| 2 * chars(&text[..diff.first()]) <= chars(text);
    if let Some(diff) = diff_of(text, query, stop).filter(is_diff) {
        return (OutputKind::Diff, None, Some(diff));
    }
    (if is_log(text, stop) { OutputKind::Log } else { OutputKind::Text }, None, None)
}

/// Returns whether a text may be what is left of a diff: nothing, or a marker at
/// the end.
fn is_rest_of_diff(text: &[u8]) -> bool {
    let Some((_, before)) = text.split_last() else { return true };
    let last = memrchr(b'\n', before).map_or(text, |at| &text[at + 1..]);
    last.starts_with(b"[... ") && last.ends_with(b" ...]\n")
}
