//! Finds which of a few ASCII keywords a folded text contains as words, and how
//! often it contains a few terms.
//!
//! No index and no set is built for a text. One pass looks for places where a
//! word may begin and where the next three bytes may begin a keyword. It does
//! so with table look-ups on a whole vector register of bytes ("Teddy"), and
//! compares the few candidates. The instructions are chosen at run time:
//! AVX-512 or AVX2 on `x86_64`, NEON on `aarch64`. Elsewhere each keyword is
//! searched in a lowercased copy.

use memchr::memmem::Finder;

use crate::keywords::{ends_word, starts_word};

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod kernel;
mod marks;
#[cfg(target_arch = "aarch64")]
mod neon;
mod tally;
mod wanted;
mod wide;
mod words;

pub(crate) use tally::{Tally, TermScanner};
pub(crate) use wide::{Scratch as WideScratch, Sight, WideKeywords, WideTerms};

/// The most keywords for which a [`Scanner`] is faster than a
/// [`TermScanner`].
pub(crate) const FEW_KEYWORDS: usize = 12;

/// The number of keywords that a [`Scanner`] takes at most: one bit each.
const MAX_KEYWORDS: usize = 64;

/// The methods of looking for keywords, from the slowest to the fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// Search for each keyword in a lowercased copy.
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx512Vbmi,
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl Method {
    fn best() -> Self {
        *Self::available().last().expect("the portable method is always there")
    }

    /// Returns the methods that this machine has, the fastest last.
    pub(crate) fn available() -> Vec<Self> {
        #[allow(unused_mut)]
        let mut methods = vec![Self::Portable];
        if cfg!(feature = "portable") {
            return methods;
        }
        #[cfg(target_arch = "x86_64")]
        {
            let counts = is_x86_feature_detected!("popcnt");
            if counts && is_x86_feature_detected!("avx2") {
                methods.push(Self::Avx2);
            }
            if counts && is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw")
            {
                methods.push(Self::Avx512);
                if is_x86_feature_detected!("avx512vbmi") {
                    methods.push(Self::Avx512Vbmi);
                }
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            methods.push(Self::Neon);
        }
        methods
    }
}

/// Looks for a fixed set of keywords in many texts.
#[derive(Debug)]
pub(crate) struct Scanner {
    method: Method,
    keywords: Vec<Vec<u8>>,
    tables: kernel::Tables,
    finders: Vec<Finder<'static>>,
    all: u64,
}

impl Scanner {
    /// Prepares to look for `keywords`, at most [`MAX_KEYWORDS`]. They are
    /// lowercase ASCII of at least two bytes, without whitespace, and without
    /// stripped punctuation at their ends.
    pub(crate) fn new(keywords: Vec<Vec<u8>>) -> Self {
        Self::with_method(keywords, Method::best())
    }

    pub(crate) fn with_method(keywords: Vec<Vec<u8>>, method: Method) -> Self {
        assert!(keywords.len() <= MAX_KEYWORDS, "a scanner takes at most 64 keywords");
        let finders = match method {
            Method::Portable => {
                keywords.iter().map(|word| Finder::new(word).into_owned()).collect()
            }
            _ => Vec::new(),
        };
        let all = u64::MAX.checked_shr(64 - u32::try_from(keywords.len()).expect("at most 64"));
        Self {
            method,
            tables: kernel::Tables::new(&keywords),
            finders,
            all: all.unwrap_or(0),
            keywords,
        }
    }

    /// Returns the keywords in `folded`, keyword `i` as bit `i`, together with
    /// `found`; those are not looked for again. `scratch` is for the portable
    /// method.
    pub(crate) fn scan(&self, folded: &[u8], found: u64, scratch: &mut Vec<u8>) -> u64 {
        if found == self.all || folded.is_empty() {
            return found;
        }
        match self.method {
            Method::Portable => self.scan_portable(folded, found, scratch),
            #[cfg(target_arch = "x86_64")]
            Method::Avx2 => avx2::scan(self, folded, found),
            #[cfg(target_arch = "x86_64")]
            Method::Avx512 => avx512::scan(self, folded, found),
            #[cfg(target_arch = "x86_64")]
            Method::Avx512Vbmi => avx512::scan_vbmi(self, folded, found),
            #[cfg(target_arch = "aarch64")]
            Method::Neon => neon::scan(self, folded, found),
        }
    }

    fn scan_portable(&self, folded: &[u8], mut found: u64, lowered: &mut Vec<u8>) -> u64 {
        lowered.clear();
        lowered.extend(folded.iter().map(u8::to_ascii_lowercase));
        for (i, finder) in self.finders.iter().enumerate() {
            if found >> i & 1 == 0
                && finder.find_iter(lowered).any(|at| {
                    starts_word(lowered, at) && ends_word(lowered, at + self.keywords[i].len())
                })
            {
                found |= 1 << i;
            }
        }
        found
    }

    /// Returns whether keyword `i` stands at `at` as a word.
    fn matches(&self, folded: &[u8], at: usize, i: usize) -> bool {
        // The front is compared first: a word like `x-x-x` has many places to
        // compare at, but only one word begins there.
        let keyword = &self.keywords[i];
        let end = at + keyword.len();
        starts_word(folded, at)
            && folded.get(at..end).is_some_and(|bytes| bytes.eq_ignore_ascii_case(keyword))
            && ends_word(folded, end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::keywords::{keywords, words};

    fn scanners(keywords: &[&str]) -> Vec<Scanner> {
        let keywords: Vec<_> = keywords.iter().map(|word| word.as_bytes().to_vec()).collect();
        let methods = Method::available().into_iter();
        methods.map(|method| Scanner::with_method(keywords.clone(), method)).collect()
    }

    /// Every method finds a keyword just where it is a word: at every offset
    /// and beside every kind of byte.
    #[test]
    fn every_offset_and_neighbour() {
        for scanner in scanners(&["ab", "x-ray", "zebra"]) {
            for before in 0..150 {
                for (left, right, is_word) in [
                    ("", "", true),
                    (" (", ").\n", true),
                    ("q", "", false),
                    (" ", "q", false),
                    (" -", "-q", false),
                    ("\u{1c}", "\u{1f}", true),
                ] {
                    let filler = "fill ".repeat(before).as_bytes()[..before].to_vec();
                    let separated = before == 0
                        || filler[before - 1] == b' '
                        || left.starts_with(|c: char| c.is_whitespace() || c == '\u{1c}');
                    for (i, keyword) in ["Ab", "X-RAY", "zebra"].into_iter().enumerate() {
                        let mut text = filler.clone();
                        text.extend([left, keyword, right].concat().as_bytes());
                        let expected = if is_word && separated { 1 << i } else { 0 };
                        let found = scanner.scan(&text, 0, &mut Vec::new());
                        assert_eq!(expected, found, "{:?} {text:?}", scanner.method);
                    }
                }
            }
        }
    }

    /// Where a space may begin two keywords of a bucket, by their nibbles, the
    /// places behind a text are candidates too.
    #[test]
    fn nothing_begins_behind_a_text() {
        let keywords = ["$0", "b1", "c1", "d1", "e1", "f1", "g1", "h1", "p.m"];
        for scanner in scanners(&keywords) {
            for length in 1..200 {
                let mut text = vec![b'x'; length];
                assert_eq!(0, scanner.scan(&text, 0, &mut Vec::new()), "{:?}", scanner.method);
                text.extend(b" p.m");
                assert_eq!(1 << 8, scanner.scan(&text, 0, &mut Vec::new()), "{:?}", scanner.method);
            }
        }
    }

    proptest! {
        /// Every method finds the same keywords, of whatever characters, in texts
        /// of all lengths that have some of them.
        #[test]
        fn methods_agree_on_any_keywords(
            query in "([ -~]{1,4} ){1,40}",
            words in prop::collection::vec((0..99_usize, "[ -~]{0,3}"), 0..20),
        ) {
            let wanted: Vec<Vec<u8>> = keywords(query.as_str().into());
            let wanted: Vec<_> = wanted.into_iter().take(MAX_KEYWORDS).collect();
            let mut text = Vec::new();
            for (nth, beside) in words {
                text.extend(wanted.get(nth).map_or(&b"tea"[..], Vec::as_slice));
                text.extend(beside.as_bytes());
            }
            let with = |method| Scanner::with_method(wanted.clone(), method);
            let scanners: Vec<_> = Method::available().into_iter().map(with).collect();
            let many = TermScanner::of_keywords(wanted.iter().cloned().zip(0..).collect());
            for length in 0..=text.len() {
                let text = &text[..length];
                let expected = scanners[0].scan(text, 0, &mut Vec::new());
                for scanner in &scanners[1..] {
                    let found = scanner.scan(text, 0, &mut Vec::new());
                    prop_assert_eq!(expected, found, "{:?} {}", scanner.method, length);
                }
                let (mut tally, mut found) = (Tally::new(MAX_KEYWORDS), 0);
                many.scan(text, &mut tally);
                tally.drain(|number, _| found |= 1 << number);
                prop_assert_eq!(expected, found, "{}", length);
            }
        }
    }

    /// A scanner finds the same keywords as looking at each word.
    #[test]
    fn methods_agree_on_noise() {
        let keywords: Vec<String> = (0..64)
            .map(|i: u8| format!("{}{}", (b'a' + i % 8) as char, (b'a' + i / 8) as char))
            .collect();
        let keywords: Vec<&str> = keywords.iter().map(String::as_str).collect();
        let mut state = 7_u32;
        let mut next = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as usize
        };
        for _ in 0..2_000 {
            let text: Vec<u8> =
                (0..next() % 200).map(|_| b"abcdefghABCDEFGH .-(\x80\t"[next() % 22]).collect();
            let mut expected = 0;
            for (start, end) in words(&text) {
                let lowered = text[start..end].to_ascii_lowercase();
                let word: Vec<u8> = String::from_utf8_lossy(&lowered)
                    .trim_matches(|c: char| ".-(".contains(c))
                    .bytes()
                    .collect();
                if let Some(i) = keywords.iter().position(|keyword| keyword.as_bytes() == word) {
                    expected |= 1 << i;
                }
            }
            for scanner in scanners(&keywords) {
                assert_eq!(expected, scanner.scan(&text, 0, &mut Vec::new()), "{text:?}");
            }
        }
    }
}
