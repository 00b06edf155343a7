//! The hunks of a unified diff.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

use memchr::memmem;

use super::lines::{Unit, split};
use super::share::{Markers, chars, number, rank, scores_of};
use super::{Draft, Shape};
use crate::text::Text;

/// The names of files that are left out get at most a quarter of the room.
const NAMES_SHARE: usize = 4;

/// A file of a diff: where its header stands, and its hunks, in bytes.
#[derive(Debug)]
struct File {
    start: usize,
    /// Where the header ends.
    end: usize,
    /// The length of the header in code points.
    size: usize,
    name: Vec<u8>,
    /// Whether its header has the two lines that name it.
    is_named: bool,
    hunks: Vec<(usize, usize)>,
}

/// A hunk with its file; a header alone has no bytes.
#[derive(Clone, Copy, Debug)]
struct Part {
    file: usize,
    start: usize,
    end: usize,
    /// Its length in code points.
    size: usize,
}

/// A diff, and the order in which its hunks stay.
#[derive(Debug)]
pub(super) struct Diff<'a> {
    text: &'a [u8],
    files: Vec<File>,
    parts: Vec<Part>,
    order: Vec<usize>,
}

impl<'a> Diff<'a> {
    fn new(text: &'a [u8], mut files: Vec<File>, query: Option<Text<'_>>) -> Self {
        let mut parts = Vec::new();
        for (at, file) in files.iter_mut().enumerate() {
            file.size = chars(&text[file.start..file.end]);
            let mut push = |start: usize, end: usize| {
                parts.push(Part { file: at, start, end, size: chars(&text[start..end]) });
            };
            if file.hunks.is_empty() {
                push(file.end, file.end);
            }
            file.hunks.iter().for_each(|&(start, end)| push(start, end));
        }
        let texts: Vec<Cow<'_, [u8]>> = match query {
            None => vec![Cow::Borrowed(&b""[..]); parts.len()],
            Some(_) => parts
                .iter()
                .map(|part| {
                    let name = &files[part.file].name[..];
                    Cow::Owned([name, b" ", &text[part.start..part.end]].concat())
                })
                .collect(),
        };
        let tiers: Vec<_> = parts.iter().map(|part| u8::from(part.size > 0)).collect();
        let mut order: Vec<_> = (0..parts.len()).collect();
        rank(&mut order, &scores_of(query, &texts), Some(&tiers));
        Self { text, files, parts, order }
    }

    /// Returns where the first file starts.
    pub(super) fn first(&self) -> usize {
        self.files[0].start
    }
}

impl Shape for Diff<'_> {
    fn size(&self) -> usize {
        chars(self.text)
    }

    fn render(&mut self, mut room: usize, pointer: Option<&[u8]>) -> Draft {
        let mut markers = Markers::new(pointer);
        let names_room = room / NAMES_SHARE;
        let mut draft = Draft::default();
        let before = &self.text[..self.first()];
        let has_before = chars(before) <= room;
        if has_before {
            draft.text.extend_from_slice(before);
            room -= chars(before);
        } else {
            draft.left_out += chars(before);
        }
        let mut stays = vec![false; self.parts.len()];
        let mut has_header = vec![false; self.files.len()];
        for &i in &self.order {
            let part = self.parts[i];
            let cost =
                part.size + if has_header[part.file] { 0 } else { self.files[part.file].size };
            if cost <= room {
                room -= cost;
                stays[i] = true;
                has_header[part.file] = true;
            }
        }
        let mut gone = Vec::new();
        let mut next = 0;
        for (at, file) in self.files.iter().enumerate() {
            let of_file = next..next + file.hunks.len().max(1);
            next = of_file.end;
            if !has_header[at] {
                gone.push(&file.name[..]);
                draft.left_out += chars(&self.text[file.start..self.parts[next - 1].end]);
                continue;
            }
            draft.text.extend_from_slice(&self.text[file.start..file.end]);
            let mut missing = 0;
            for i in of_file {
                let part = self.parts[i];
                if stays[i] {
                    draft.text.extend_from_slice(&self.text[part.start..part.end]);
                } else {
                    missing += 1;
                    draft.left_out += part.size;
                }
            }
            if missing > 0 {
                let of = number(file.hunks.len(), "hunk");
                let said = format!("{missing} of {of} of this file left out");
                push_line(&mut draft.text, &markers.write(said.as_bytes()));
            }
        }
        if !gone.is_empty() {
            let of = number(self.files.len(), "file");
            let mut said = format!("{} of {of} left out", gone.len()).into_bytes();
            said.extend(listed(&gone, names_room));
            push_line(&mut draft.text, &markers.write(&said));
        } else if !has_before {
            push_line(&mut draft.text, &markers.write(b"the lines before the diff left out"));
        }
        draft
    }
}

/// Appends a marker as a line of its own.
fn push_line(text: &mut Vec<u8>, marker: &[u8]) {
    if text.last().is_some_and(|&byte| byte != b'\n') {
        text.push(b'\n');
    }
    text.extend_from_slice(marker);
    text.push(b'\n');
}

/// Returns as many of the names as there is room for, and how many more there
/// are.
fn listed(names: &[&[u8]], mut room: usize) -> Vec<u8> {
    let mut shown = 0;
    for name in names {
        let Some(left) = room.checked_sub(chars(name) + 2) else { break };
        room = left;
        shown += 1;
    }
    if shown == 0 {
        return Vec::new();
    }
    let mut listed = [b": ", &names[..shown].join(&b", "[..])[..]].concat();
    if names.len() > shown {
        listed.extend(format!(" and {} more", names.len() - shown).into_bytes());
    }
    listed
}

/// Returns a diff; None if `text` is not one. The result means nothing once
/// `stop` is set.
pub(super) fn diff_of<'a>(
    text: &'a [u8],
    query: Option<Text<'_>>,
    stop: &AtomicBool,
) -> Option<Diff<'a>> {
    let lines = split(text);
    let body = |at: usize| lines.get(at).map(|line| &text[line.start..line.body]);
    let mut files: Vec<File> = Vec::new();
    let mut at = 0;
    while let Some(line) = body(at).filter(|_| !stop.load(Ordering::Relaxed)) {
        if let (Some(file), Some(sizes)) = (files.last_mut(), sizes_of_hunk(line)) {
            let behind = end_of_hunk(text, &lines, at + 1, sizes);
            file.hunks.push((lines[at].start, lines[behind - 1].end));
            at = behind;
            continue;
        }
        let new_name =
            body(at + 1).filter(|next| line.starts_with(b"--- ") && next.starts_with(b"+++ "));
        let is_new = files.last().is_none_or(|file| !file.hunks.is_empty() || file.is_named);
        if line.starts_with(b"diff ") || (new_name.is_some() && is_new) {
            let start = lines[at].start;
            let name = first_name(line).to_vec();
            let (end, size, hunks) = (start, 0, Vec::new());
            files.push(File { start, end, size, name, is_named: false, hunks });
        }
        let Some(file) = files.last_mut() else {
            at += 1;
            continue;
        };
        if let Some(new) = new_name {
            file.name = name_of(line, new).to_vec();
            file.is_named = true;
            at += 1;
        }
        if let (Some(name), true, false) = (renamed(line), file.hunks.is_empty(), file.is_named) {
            file.name = name.to_vec();
        }
        match file.hunks.last_mut() {
            Some(hunk) => hunk.1 = lines[at].end,
            None => file.end = lines[at].end,
        }
        at += 1;
    }
    let is_file = |file: &File| !file.hunks.is_empty() || text[file.start..].starts_with(b"diff ");
    files.iter().any(is_file).then(|| Diff::new(text, files, query))
}

/// Returns how many lines of the old and the new file a hunk has, by its first
/// line; None if that is not one.
fn sizes_of_hunk(line: &[u8]) -> Option<(usize, usize)> {
    let rest = line.strip_prefix(b"@@ -")?;
    let (old, rest) = range(rest)?;
    let (new, rest) = range(rest.strip_prefix(b" +")?)?;
    rest.starts_with(b" @@").then_some((old, new))
}

/// Returns the number of lines of a range, and what is behind it.
fn range(text: &[u8]) -> Option<(usize, &[u8])> {
    let (_, rest) = digits(text)?;
    match rest.strip_prefix(b",") {
        Some(rest) => digits(rest),
        None => Some((1, rest)),
    }
}

/// Returns a number of at most nine digits, and what is behind it.
fn digits(text: &[u8]) -> Option<(usize, &[u8])> {
    let size = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(size);
    let value = || digits.iter().fold(0, |value, digit| value * 10 + usize::from(digit - b'0'));
    (1..=9).contains(&size).then(|| (value(), rest))
}

/// Returns the line behind a hunk whose first line is `at`.
fn end_of_hunk(
    text: &[u8],
    lines: &[Unit],
    mut at: usize,
    (mut old, mut new): (usize, usize),
) -> usize {
    while let Some(line) = lines.get(at) {
        match text[line.start..line.body].first() {
            Some(b'\\') => {}
            _ if old == 0 && new == 0 => break,
            None | Some(b' ' | b'\r') => {
                old = old.saturating_sub(1);
                new = new.saturating_sub(1);
            }
            Some(b'-') => old = old.saturating_sub(1),
            Some(b'+') => new = new.saturating_sub(1),
            Some(_) => break,
        }
        at += 1;
    }
    at
}

/// Returns the name of a file by the first line of its header.
fn first_name(line: &[u8]) -> &[u8] {
    if !line.starts_with(b"diff ") {
        return b"";
    }
    let line = without_returns(line);
    let last = || without(b"b/", line.rsplit(|&byte| byte == b' ').next().unwrap_or(b""));
    let Some(names) = line.strip_prefix(b"diff --git ") else { return last() };
    if let (Some(start), true) = (memmem::rfind(names, b" \""), names.ends_with(b"\"")) {
        return without(b"b/", &names[start + 1..]);
    }
    // A name may have spaces: of a file that was not renamed it is there twice.
    match names.split_at_checked(names.len() / 2) {
        Some((old, [b' ', new @ ..])) if old == new => new,
        Some(([_, b'/', old @ ..], [b' ', _, b'/', new @ ..])) if old == new => new,
        _ => last(),
    }
}

/// Returns the name of a file that the line says it was renamed to, or copied.
fn renamed(line: &[u8]) -> Option<&[u8]> {
    let name = line.strip_prefix(b"rename to ").or_else(|| line.strip_prefix(b"copy to "))?;
    Some(without(b"", without_returns(name)))
}

/// Returns the name of a file by the two lines that name it.
fn name_of<'a>(old: &'a [u8], new: &'a [u8]) -> &'a [u8] {
    let name = |line: &'a [u8]| {
        without_returns(line[4..].split(|&byte| byte == b'\t').next().unwrap_or(b""))
    };
    if name(new) == b"/dev/null" { without(b"a/", name(old)) } else { without(b"b/", name(new)) }
}

/// Returns a name without its quotes, and without a prefix.
fn without<'a>(prefix: &[u8], name: &'a [u8]) -> &'a [u8] {
    let name = match name {
        [b'"', inner @ .., b'"'] => inner,
        _ => name,
    };
    name.strip_prefix(prefix).unwrap_or(name)
}

/// Returns a name without the carriage returns behind it.
fn without_returns(mut name: &[u8]) -> &[u8] {
    while let [rest @ .., b'\r'] = name {
        name = rest;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_up_to_nine_digits() {
        assert_eq!(Some((120, &b" x"[..])), digits(b"120 x"));
        assert_eq!(Some((123_456_789, &b""[..])), digits(b"123456789"));
        assert_eq!([None, None], [digits(b"1234567890"), digits(b"x")]);
    }
}
