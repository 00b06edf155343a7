//! Whether a pattern means to Oniguruma what it means here.
//!
//! The package `tokenizers` splits by that engine. There `^` and `$` match at
//! each line, `x{1,3}+` has no end, `\w` has other characters, and `(?i)` finds
//! `ß` by `ss`. So only what is known to be the same is read, and all else is
//! refused.

/// Returns whether a pattern is of parts that both engines read alike.
pub(super) fn is_the_same(pattern: &str) -> bool {
    Reader { rest: pattern, ignores_case: false, last: None, groups: Vec::new() }
        .is_the_same(pattern)
}

/// The properties of characters by which patterns split.
const PROPERTIES: [&str; 36] = [
    "L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P", "Pc",
    "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S", "Sm", "Sc", "Sk", "So", "Z", "Zs", "Zl", "Zp", "Han",
    "Hiragana", "Katakana", "Hangul", "Thai",
];

/// Letters that are one character together where case is ignored, such as `ß`.
const LIGATURES: [[char; 2]; 5] = [['s', 's'], ['s', 't'], ['f', 'f'], ['f', 'i'], ['f', 'l']];

/// A group around a place.
struct Group {
    ignored_case: bool,
    /// Whether it looks ahead or behind, so that it cannot be repeated.
    is_look: bool,
}

struct Reader<'a> {
    rest: &'a str,
    ignores_case: bool,
    /// The letter in front, in small: Oniguruma looks through brackets for it.
    last: Option<char>,
    groups: Vec<Group>,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }

    /// Goes on behind `text` if it is next.
    fn skip(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn is_the_same(&mut self, pattern: &str) -> bool {
        let mut can_repeat = false;
        while let Some(char) = self.next() {
            let last = self.last.take();
            // Whether what was read can be repeated; None for what is refused.
            let read = match char {
                '\\' => self.escape(false).then_some(true),
                '[' => self.class().then_some(true),
                '(' => {
                    self.last = last;
                    self.open(pattern).then_some(false)
                }
                ')' => {
                    self.last = last;
                    self.groups.pop().map(|group| {
                        self.ignores_case = group.ignored_case;
                        !group.is_look
                    })
                }
                '|' => Some(false),
                '*' | '+' | '?' | '{' if !can_repeat => None,
                '*' | '+' | '?' => {
                    let _ = self.skip("?") || self.skip("+");
                    Some(false)
                }
                '{' => self.times().then_some(false),
                '^' | '$' | ']' | '}' => None,
                '.' => Some(true),
                _ => self.letter(char, last).then_some(true),
            };
            let Some(read) = read else { return false };
            can_repeat = read;
        }
        self.groups.is_empty()
    }

    /// Reads a character that stands for itself.
    fn letter(&mut self, char: char, last: Option<char>) -> bool {
        let small = char.to_ascii_lowercase();
        self.last = Some(small);
        let is_other = last.is_some_and(|last| LIGATURES.contains(&[last, small]));
        !self.ignores_case || (char.is_ascii() && !is_other)
    }

    /// Reads what is behind the bracket that opens a group. Options in the middle
    /// of a pattern end at another place to Oniguruma.
    fn open(&mut self, pattern: &str) -> bool {
        let is_first = self.rest.len() + 1 == pattern.len();
        let ignored_case = self.ignores_case;
        let mut is_look = false;
        if self.skip("?") {
            if is_first && self.skip("i)") {
                self.ignores_case = true;
                return true;
            }
            if self.skip("i:") {
                self.ignores_case = true;
            } else {
                is_look = ["=", "!", "<=", "<!"].iter().any(|look| self.skip(look));
                if !is_look && !self.skip(":") && !self.skip(">") {
                    return false;
                }
            }
        }
        self.groups.push(Group { ignored_case, is_look });
        true
    }

    /// Reads how often something is repeated, behind the brace.
    fn times(&mut self) -> bool {
        let Some((times, rest)) = self.rest.split_once('}') else { return false };
        self.rest = rest;
        let number = |digits: &str| {
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| digits.parse::<u32>().ok()).flatten()
        };
        let (least, most) = times.split_once(',').unwrap_or((times, times));
        let Some(least) = number(least) else { return false };
        let is_range = times.contains(',');
        let is_in_order = most.is_empty() || number(most).is_some_and(|most| least <= most);
        let is_lazy = self.skip("?");
        is_in_order && !self.rest.starts_with('+') && (is_range || !is_lazy)
    }

    /// Reads a class, behind its bracket, with the classes in it.
    fn class(&mut self) -> bool {
        let mut depth = 1_usize;
        self.begin_class();
        while let Some(char) = self.next() {
            let is_same = match char {
                '\\' => self.escape(true),
                '[' => {
                    depth += 1;
                    let is_posix = self.rest.starts_with(':');
                    self.begin_class();
                    !is_posix
                }
                ']' => {
                    depth -= 1;
                    true
                }
                '-' => !self.rest.starts_with(['-', '[']),
                '~' => !self.rest.starts_with('~'),
                _ => char.is_ascii() || !self.ignores_case,
            };
            if !is_same {
                return false;
            }
            if depth == 0 {
                return true;
            }
        }
        false
    }

    /// Goes on behind what begins a class: a bracket that closes stands for itself
    /// where it is the first.
    fn begin_class(&mut self) {
        self.skip("^");
        self.skip("]");
    }

    /// Reads what is behind a backslash.
    fn escape(&mut self, is_in_class: bool) -> bool {
        let hex = |digits: Option<&str>| {
            digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
        };
        match self.next() {
            // They may be letters, one by one or together.
            Some('p' | 'P' | 'x' | 'u') if self.ignores_case => false,
            Some('s' | 'S' | 'd' | 'D' | 'r' | 'n' | 't' | 'f') => true,
            Some('p' | 'P') => {
                let name = self.rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
                let Some((name, rest)) = name else { return false };
                self.rest = rest;
                PROPERTIES.contains(&name)
            }
            Some('x') => match self.rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
                Some((digits, rest)) => {
                    self.rest = rest;
                    !digits.is_empty() && hex(Some(digits))
                }
                // From 80 on it is a byte to Oniguruma.
                None => self.rest.starts_with(|digit| digit < '8') && hex(self.rest.get(..2)),
            },
            Some('u') => hex(self.rest.get(..4)),
            Some('<' | '>') => is_in_class,
            Some(char) => !char.is_alphanumeric(),
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_engines_read_alike_is_read() {
        for pattern in [
            "a",
            r"\^\$",
            "[^a$]",
            r"\p{L}+",
            r"\x{61}+",
            r"\x41",
            r"\u0041",
            "a{2}",
            "a{2,}?",
            "a{1,3}",
            "a+",
            "a++",
            "a*?",
            "[]^$]",
            "[^]$]",
            "[a[b$]]",
            "(?i:a)m",
            "(?:m)",
            "(m)",
            "[(?m]",
            r"\\+",
            r"(?i)ll|s|\s",
            r"(?i:'s|'t|[sst])st",
            "[a-z&&[^b]]",
            r"[\-\<]",
            r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))",
            "(?<=a)b",
            "(?<!a)b",
            "(?>a|b)+",
            "a|",
            ".",
            " ?[^(\\s|[.,!?…。，、।۔،])]+",
            "é",
        ] {
            assert!(is_the_same(pattern), "{pattern}");
        }
    }

    #[test]
    fn what_the_other_engine_reads_in_another_way_is_refused() {
        for pattern in [
            "^a",
            "a$",
            r"\G",
            r"\<a",
            "a{1,3}+",
            "(?m)a",
            "(?im:a)",
            "(?i-m:a)",
            "(?s).",
            "[[:alpha:]]",
            "[a]$",
            "[a[b]]$",
            r"\p{L}^",
            r"\w",
            r"[^\W_]",
            r"\bа",
            r"\B",
            r"\pL",
            r"\p{Word}",
            r"\p{Graph}",
            r"\p{Script=Han}",
            r"\p{^L}",
            r"\u{61}",
            r"\x80",
            r"\h",
            "(?i)ss",
            "(?i)sS|x",
            "(?i:ﬁ)",
            "(?i:FI)",
            r"(?i)\p{Lu}",
            "(?i)[é]",
            "a(?i)b|c",
            "x{2}?",
            "x{2}+",
            "a{3,1}",
            "a{,3}",
            "a?{2}",
            "a+{2}",
            "a+?+",
            "a**",
            "*a",
            "(?=a)*",
            "[+--]",
            "[a-[b]]",
            "[a~~b]",
            "(?<name>a)",
            "(a",
            "a)",
            "[a",
            "a{",
            "a}",
            "a]",
            "\\",
            r"(a)\1",
            "(*a)",
            r"\x{}",
            "(?i)s(?:s)",
            r"(?i)\x73s",
            "(?i)(?:f)i",
            "x{1,3}?+",
        ] {
            assert!(!is_the_same(pattern), "{pattern}");
        }
    }
}
