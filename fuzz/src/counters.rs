//! Every kind of counter.

use budgeteer::{Claude, Encoding, Estimate, Exact, Scaled, TokenCounter};
use libfuzzer_sys::arbitrary::{self, Arbitrary};

/// A counter of any kind.
#[derive(Clone, Debug, Arbitrary)]
pub enum Counter {
    CharsDiv4,
    Words,
    Ratio(u16),
    Encoding(u8),
    Uncached(u8),
    Claude(u8),
    Scaled(u8, u8),
    /// A closure that counts bytes.
    Bytes,
    /// A closure whose counts neither add up nor grow with the text.
    Wild(u8),
}

pub type Boxed = Box<dyn TokenCounter + Send + Sync>;

impl Counter {
    /// Returns the counter.
    #[must_use]
    pub fn make(&self) -> Boxed {
        let encoding = |number: u8| Encoding::ALL[usize::from(number) % Encoding::ALL.len()];
        match *self {
            Self::CharsDiv4 => Box::new(Estimate::CharsDiv4),
            Self::Words => Box::new(Estimate::Words),
            Self::Ratio(tenths) => {
                Box::new(Estimate::CharsPerToken(0.1 + f64::from(tenths % 100) / 10.0))
            }
            Self::Encoding(number) => Box::new(encoding(number)),
            Self::Uncached(number) => Box::new(Exact::new(encoding(number)).without_cache()),
            Self::Claude(number) => Box::new(Claude::ALL[usize::from(number) % Claude::ALL.len()]),
            Self::Scaled(number, tenths) => {
                let factor = f64::from(1 + tenths % 100) / 10.0;
                Box::new(Scaled::new(encoding(number), factor).expect("it is in range"))
            }
            Self::Bytes => Box::new(|text: &str| text.len()),
            Self::Wild(salt) => Box::new(move |text: &str| {
                let mix = |hash: usize, byte: u8| (hash * 31 + usize::from(byte)) % 9973;
                text.bytes().fold(usize::from(salt), mix) % 97
            }),
        }
    }

    /// Whether a cut counts words, and may be longer than its text.
    #[must_use]
    pub fn counts_words(&self) -> bool {
        matches!(self, Self::Words)
    }
}
