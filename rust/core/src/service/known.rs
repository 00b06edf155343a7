//! A counter that knows what the packed text counts.

use crate::count::{Native, TokenCounter};
use crate::text::Text;

/// By so many of its first bytes the packed text is looked for in a text.
const HEAD: usize = 64;

/// Counts as another counter does. Of a text that contains the packed text, it
/// counts only what is around that.
pub(super) struct Known<'a> {
    counter: &'a dyn TokenCounter,
    text: &'a str,
    tokens: usize,
}

impl<'a> Known<'a> {
    /// Returns the counter that knows that `text` counts `tokens`.
    pub(super) fn new(counter: &'a dyn TokenCounter, text: &'a str, tokens: usize) -> Self {
        Self { counter, text, tokens }
    }

    fn around(&self, text: &str) -> Option<usize> {
        if self.text.is_empty() || text.len() < self.text.len() {
            return None;
        }
        let Native::Exact(exact, factor) = self.counter.native()? else { return None };
        // The whole text is compared: to look for it would take longer than to
        // count it.
        let end = (HEAD..self.text.len()).find(|&at| self.text.is_char_boundary(at));
        let start = text.find(&self.text[..end.unwrap_or(self.text.len())])?;
        if !text[start..].starts_with(self.text) {
            return None;
        }
        let known = start..start + self.text.len();
        let text = Text::from(text);
        factor.count_around(&exact, text, known, self.tokens as u64)?.try_into().ok()
    }
}

impl TokenCounter for Known<'_> {
    fn count(&self, text: &str) -> usize {
        self.around(text).unwrap_or_else(|| self.counter.count(text))
    }

    fn is_exact(&self) -> bool {
        self.counter.is_exact()
    }
}

#[cfg(all(test, feature = "cl100k", feature = "o200k"))]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::count::Scaled;
    use crate::{Encoding, Estimate};

    #[test]
    fn only_a_text_around_the_known_one_is_counted_by_it() {
        let part = "Green tea. ".repeat(20);
        let (count, exact) = (Encoding::O200k.count(&part), Encoding::O200k);
        // A count that no text has shows what is taken from it.
        let known = Known::new(&exact, &part, 1_000 + count);
        assert_eq!(Some(1_000 + count), known.around(&part));
        let more = [&*part, "Milk."].concat();
        assert_eq!(Some(1_000 + exact.count(&more)), known.around(&more));
        assert_eq!(None, known.around(&part[1..]));
        assert_eq!(None, known.around(&["Milk. ", &part[..part.len() - 1]].concat()));
        assert_eq!(None, Known::new(&exact, "", 0).around("Milk."));
        assert_eq!(None, Known::new(&Estimate::Words, &part, count).around(&part));
        assert!(known.is_exact());
        assert!(!Known::new(&Estimate::Words, &part, count).is_exact());
    }

    proptest! {
        /// What is known changes no count.
        #[test]
        fn counts_as_the_counter_does(
            front in "[a-c \n'\u{e9}\u{65e5}]{0,8}",
            part in "[a-c .,\n'\u{e9}\u{65e5}]{0,120}",
            back in "[a-c \n'\u{e9}\u{65e5}]{0,8}",
        ) {
            let counters: [&dyn TokenCounter; 5] = [
                &Encoding::O200k,
                &Encoding::Cl100k,
                &Scaled::new(Encoding::O200k, 1.3).expect("in range"),
                &Scaled::new(Encoding::O200k, 0.4).expect("in range"),
                &Estimate::Words,
            ];
            let texts = [[&*front, &part, &back].concat(), [&*part, &part].concat(), front];
            for counter in counters {
                let known = Known::new(counter, &part, counter.count(&part));
                for text in &texts {
                    prop_assert_eq!(counter.count(text), known.count(text));
                }
            }
        }
    }
}
