//! The cost of an image, and the size of an image in a `data:` URL.

mod claude;

const SQUARE: u64 = 2_048;
const SHORT_SIDE: u64 = 768;
const TILE: u64 = 512;

/// The highest number of tiles: 2048 by 768 pixels is the largest size after
/// fitting.
const HIGHEST_TILES: u64 = 8;

const PATCH: u64 = 32;
const HIGHEST_PATCHES: u64 = 1_536;

/// Hundredths of a token for each patch, by the beginning of a model's name.
/// These models count patches instead of tiles. From OpenAI's guide to images.
const PATCHED: [(&str, u64); 5] = [
    ("gpt-4.1-mini", 162),
    ("gpt-4.1-nano", 246),
    ("gpt-5-mini", 162),
    ("gpt-5-nano", 246),
    ("o4-mini", 172),
];

const GEMINI_TILE: u128 = 258;
const GEMINI_SMALL: u64 = 384;
const GEMINI_MOST: u128 = 16;

/// Tokens of an image at the default resolution of Gemini 3: the guide to media
/// resolution.
const GEMINI_3: usize = 1_120;

/// The frame header of a JPEG stands behind its metadata, but never this far.
const HEADER_MAX: usize = 1 << 20;

/// So many characters of base64 have the size of nearly all images.
const BEGINNING: usize = 1 << 12;

/// How closely a model looks at an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Detail {
    /// As the provider chooses; counted as `High`. The default.
    #[default]
    Auto,
    /// The model looks at a small copy.
    Low,
    /// The model looks at each tile.
    High,
    /// The model looks at each tile, unscaled; counted as `High`.
    Original,
}

impl Detail {
    /// All details with their names.
    #[cfg(feature = "json")]
    pub(crate) const NAMES: [(Self, &'static str); 4] = [
        (Self::Auto, "auto"),
        (Self::Low, "low"),
        (Self::High, "high"),
        (Self::Original, "original"),
    ];
}

/// An image in a message.
///
/// It costs 85 tokens and 170 for each of its tiles; 85 with low detail (for
/// `gpt-4o-mini`: 2833 and 5667). An image of unknown size costs 1445, the
/// maximum. `gpt-4.1-mini`, `gpt-5-mini`, their `nano` versions and `o4-mini`
/// count patches of 32 pixels by their own factors. For Claude and Gemini the
/// rules of their makers count instead.
///
/// # Examples
///
/// ```
/// use budgeteer::{Detail, Image};
///
/// assert_eq!(Image::url("https://a.example/b.png").size(1_024, 1_024).tokens(""), 765);
/// assert_eq!(Image::url("https://a.example/b.png").tokens("gpt-4o"), 1_445);
/// assert_eq!(Image::url("https://a.example/b.png").detail(Detail::Low).tokens(""), 85);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    pub(crate) url: String,
    pub(crate) size: Option<(u64, u64)>,
    pub(crate) detail: Detail,
}

impl Image {
    /// Returns the image at a URL. If that is a `data:` URL of a PNG, JPEG, GIF
    /// or WebP in base64, the size is read from it.
    #[must_use]
    pub fn url(url: impl Into<String>) -> Self {
        let url = url.into();
        Self { size: size_of_url(&url), url, detail: Detail::default() }
    }

    /// Sets the width and height in pixels, each at least 1.
    #[must_use]
    pub fn size(mut self, width: u32, height: u32) -> Self {
        self.size = Some((u64::from(width.max(1)), u64::from(height.max(1))));
        self
    }

    /// Sets how closely the model looks at it.
    #[must_use]
    pub fn detail(mut self, detail: Detail) -> Self {
        self.detail = detail;
        self
    }

    /// Returns the width and height, if they are known.
    #[must_use]
    pub fn pixels(&self) -> Option<(u64, u64)> {
        self.size
    }

    /// Returns whether its tokens are known, rather than the most it may take.
    pub(crate) fn is_known(&self, model: &str) -> bool {
        let smallest = || image_tokens(Some((1, 1)), self.detail, model);
        self.size.is_some() || self.tokens(model) == smallest()
    }

    /// Returns its tokens in a prompt for a model; "" for any model.
    #[must_use]
    pub fn tokens(&self, model: &str) -> usize {
        image_tokens(self.size, self.detail, model)
    }
}

/// Returns the tokens of an image of a size; the maximum if the size is
/// unknown.
///
/// The image is fitted into 2048 by 2048 pixels, then its short side to 768,
/// both only if it is larger. Each tile of 512 by 512 pixels that it touches
/// costs. Small models count patches of 32 by 32 pixels, whatever the detail,
/// after scaling the image down to at most 1536 of them. Claude and Gemini
/// count by the rules of their makers.
pub(crate) fn image_tokens(size: Option<(u64, u64)>, detail: Detail, model: &str) -> usize {
    let name = model.rsplit('/').next().unwrap_or(model);
    if name.contains("claude") {
        return claude::tokens(size, name);
    }
    if name.contains("gemini") {
        return gemini_tokens(size, name);
    }
    if let Some((_, factor)) = PATCHED.iter().find(|(start, _)| name.starts_with(start)) {
        let tokens = (factor * size.map_or(HIGHEST_PATCHES, patches)).div_ceil(100);
        return usize::try_from(tokens).unwrap_or(usize::MAX);
    }
    let (base, tile) = if name.starts_with("gpt-4o-mini") { (2_833, 5_667) } else { (85, 170) };
    let tiles = if detail == Detail::Low { 0 } else { size.map_or(HIGHEST_TILES, tiles) };
    usize::try_from(base + tile * tiles).unwrap_or(usize::MAX)
}

/// Returns the tokens of an image for Gemini: 258 for each tile, and for
/// Gemini 3 the most of its default resolution.
fn gemini_tokens(size: Option<(u64, u64)>, name: &str) -> usize {
    if name.contains("gemini-3") {
        return GEMINI_3;
    }
    let tiles = match size {
        None => GEMINI_MOST,
        Some((width, height)) if width.max(height) <= GEMINI_SMALL => 1,
        Some((width, height)) => {
            // Each tile has 2/3 of the short side, from 256 to 768 pixels.
            let edge = (u128::from(width.min(height)) * 2 / 3).clamp(256, 768);
            u128::from(width).div_ceil(edge) * u128::from(height).div_ceil(edge)
        }
    };
    usize::try_from(tiles.saturating_mul(GEMINI_TILE)).unwrap_or(usize::MAX)
}

fn tiles((width, height): (u64, u64)) -> u64 {
    // The scale is a fraction: the smallest of 1 and the fractions that the
    // sides allow.
    let (long, short) = (width.max(height), width.min(height));
    let mut scale = (1, 1);
    for (number, divisor) in [(SQUARE, long), (SHORT_SIDE, short)] {
        if u128::from(number) * u128::from(scale.1) < u128::from(scale.0) * u128::from(divisor) {
            scale = (number, divisor);
        }
    }
    let along = |side: u64| {
        let scaled = u128::from(side) * u128::from(scale.0);
        scaled.div_ceil(u128::from(scale.1) * u128::from(TILE))
    };
    u64::try_from(along(width) * along(height)).unwrap_or(HIGHEST_TILES)
}

fn patches((width, height): (u64, u64)) -> u64 {
    let most = u128::from(HIGHEST_PATCHES);
    let (wide, high) = (u128::from(width), u128::from(height));
    let patches = u128::from(width.div_ceil(PATCH)) * u128::from(height.div_ceil(PATCH));
    if patches <= most {
        return u64::try_from(patches).unwrap_or(HIGHEST_PATCHES);
    }
    // It is scaled to that many patches, then down once more until both sides
    // have at most whole patches. Then one side has a whole number of them, and
    // the other is rounded up.
    let mut columns = (most * wide / high).isqrt();
    let mut rows = (most * high / wide).isqrt();
    if columns * high <= rows * wide {
        rows = (columns * high).div_ceil(wide);
    } else {
        columns = (rows * wide).div_ceil(high);
    }
    match u64::try_from(columns * rows) {
        Ok(0) | Err(_) => HIGHEST_PATCHES, // so thin that a side has no patch
        Ok(patches) => patches.min(HIGHEST_PATCHES),
    }
}

/// Returns the width and height of the image in a `data:` URL.
pub(crate) fn size_of_url(url: &str) -> Option<(u64, u64)> {
    let (head, data) = url.split_once(',')?;
    (head.starts_with("data:") && head.ends_with(";base64")).then(|| size_of_base64(data))?
}

/// Returns the width and height of an image in base64.
pub(crate) fn size_of_base64(data: &str) -> Option<(u64, u64)> {
    let is_long = data.chars().nth(BEGINNING).is_some();
    // No base64 leaves one over.
    let may_end = || data.trim_end_matches('=').chars().count() % 4 != 1;
    let beginning = (is_long && may_end()).then(|| decoded_size(data, BEGINNING)).flatten();
    beginning.or_else(|| decoded_size(data, HEADER_MAX * 4 / 3))
}

/// Returns the size that stands in the first `most` characters of base64.
fn decoded_size(data: &str, most: usize) -> Option<(u64, u64)> {
    let size = size_of(&from_base64(data, most)?)?;
    (size.0 > 0 && size.1 > 0).then_some(size)
}

/// Returns the bytes of the first `most` characters of base64, in the alphabet
/// for URLs, too, which Google's client writes.
pub(crate) fn from_base64(data: &str, most: usize) -> Option<Vec<u8>> {
    let is_space = |c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c);
    let plain = |c| match c {
        '-' => '+',
        '_' => '/',
        c => c,
    };
    let beginning = first_chars(data, most);
    let text: String = beginning.chars().filter(|&c| !is_space(c)).map(plain).collect();
    let mut text = text.trim_end_matches('=');
    if beginning.len() < data.len() {
        // The rest of the last four was cut off.
        text = first_chars(text, text.chars().count() / 4 * 4);
    }
    decode(text.as_bytes(), (4 - text.len() % 4) % 4)
}

fn first_chars(text: &str, most: usize) -> &str {
    let end = text.char_indices().nth(most).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

/// Decodes base64 as Python's `base64.b64decode` does: other ASCII characters
/// are skipped, and padding in the middle may end it.
fn decode(data: &[u8], padding: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(data.len() / 4 * 3 + 3);
    let (mut bits, mut place, mut pads) = (0_u32, 0, 0);
    for &byte in data.iter().chain(std::iter::repeat_n(&b'=', padding)) {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' if place >= 2 && place + pads + 1 >= 4 => return Some(bytes),
            b'=' => {
                pads += usize::from(place >= 2);
                continue;
            }
            0x80.. => return None,
            _ => continue,
        };
        pads = 0;
        bits = bits << 6 | u32::from(value);
        if place > 0 {
            bytes.push((bits >> (6 - 2 * place)).to_le_bytes()[0]);
        }
        place = (place + 1) % 4;
    }
    (place == 0).then_some(bytes)
}

fn size_of(image: &[u8]) -> Option<(u64, u64)> {
    let at = |place: usize, size: usize| image.get(place..place + size);
    let big = |place, size| at(place, size).map(|bytes| number(bytes.iter()));
    let little = |place, size| at(place, size).map(|bytes| number(bytes.iter().rev()));
    if image.starts_with(b"\x89PNG\r\n\x1a\n") && at(12, 4) == Some(b"IHDR") {
        return Some((big(16, 4)?, big(20, 4)?));
    }
    if image.starts_with(b"GIF87a") || image.starts_with(b"GIF89a") {
        return Some((little(6, 2)?, little(8, 2)?));
    }
    if image.starts_with(b"RIFF") && at(8, 4) == Some(b"WEBP") {
        return match (at(12, 4)?, image.len()) {
            (b"VP8X", 30..) => Some((little(24, 3)? + 1, little(27, 3)? + 1)),
            (b"VP8L", 25..) => {
                let bits = little(21, 4)?;
                Some(((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1))
            }
            (b"VP8 ", 30..) => Some((little(26, 2)? & 0x3FFF, little(28, 2)? & 0x3FFF)),
            _ => None,
        };
    }
    if !image.starts_with(b"\xff\xd8") {
        return None;
    }
    // The size of a JPEG is in its first frame header, behind other segments.
    let mut place = 2;
    while place + 9 <= image.len() && image[place] == 0xFF {
        match image[place + 1] {
            0xFF => place += 1, // a fill byte
            0xC0..=0xC3 | 0xC5..=0xC7 | 0xC9..=0xCB | 0xCD..=0xCF => {
                return Some((big(place + 7, 2)?, big(place + 5, 2)?));
            }
            _ => place += 2 + usize::try_from(big(place + 2, 2)?).ok()?,
        }
    }
    None
}

fn number<'a>(bytes: impl Iterator<Item = &'a u8>) -> u64 {
    bytes.fold(0, |number, &byte| number << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_cost_their_tiles() {
        for (size, tokens) in [
            (Some((1_024, 1_024)), 765),
            (Some((2_048, 4_096)), 1_105),
            (Some((1, 1)), 255),
            (Some((u64::MAX, 1)), 765),
            (Some((u64::MAX, u64::MAX)), 765),
            (None, 1_445),
        ] {
            assert_eq!(tokens, image_tokens(size, Detail::High, "gpt-4o"), "{size:?}");
        }
        assert_eq!(2_353, image_tokens(Some((1_800, 2_400)), Detail::Low, "gpt-4.1-mini"));
        assert_eq!(2_642, image_tokens(Some((u64::MAX, 1)), Detail::Auto, "o4-mini"));
        assert_eq!(2_833, image_tokens(None, Detail::Low, "openai/gpt-4o-mini-2024-07-18"));
        for (size, tiles) in [((384, 384), 1), ((385, 384), 4), ((960, 540), 6), ((9_999, 1), 40)] {
            assert_eq!(258 * tiles, image_tokens(Some(size), Detail::Auto, "gemini-2.5-pro"));
        }
        assert_eq!(1_120, image_tokens(Some((1, 1)), Detail::Auto, "gemini-3-pro"));
    }

    #[test]
    fn large_images_have_a_size() {
        let data = format!("iVBORw0KGgoAAAANSUhEUgAAAoAAAAHg{}", "A".repeat(2 << 20));
        assert_eq!(Some((640, 480)), size_of_base64(&data));
        for kind in ["png", "jpeg", "pjpeg"] {
            let url = format!("data:image/{kind};base64,{data}");
            assert_eq!(Some((640, 480)), size_of_url(&url), "{kind}");
        }
    }

    /// An image without a pixel says no size.
    #[test]
    fn an_empty_image_has_no_size() {
        assert_eq!(Some((640, 480)), size_of_base64("R0lGODlhgALgAQ=="));
        for data in ["R0lGODlhAADgAQ==", "R0lGODlhgAIAAA=="] {
            assert_eq!(None, size_of_base64(data), "{data}");
        }
    }

    #[test]
    fn the_alphabet_for_urls_is_read() {
        assert_eq!(Some(b"\xfb\xef\xbe\xff".to_vec()), from_base64("++-+ /w==", 99));
        assert_eq!(from_base64("++++_w", 99), from_base64("++++/w==", 99));
        assert_eq!(Some(b"\xfb\xef\xbe".to_vec()), from_base64("++++/w==", 6));
        // What is no character of it is skipped, but has its share of the length.
        assert_eq!([None, None], ["QU?J", "QU?"].map(|data| from_base64(data, 99)));
    }

    /// An image that ends within its size has none.
    #[test]
    fn sizes_of_each_kind() {
        let webp = |kind: &[u8], at: usize, size: &[u8], length: usize| {
            let mut image = [&b"RIFF....WEBP"[..], kind].concat();
            image.resize(at, 0);
            image.extend(size);
            image.resize(length, 0);
            image
        };
        // Bits beside those of the size are set, too.
        let lossless = ((1_u32 << 31) + (479 << 14) + 639).to_le_bytes();
        let lossy = [[0x80, 0x42], [0xE0, 0xC1]].concat();
        let sizes = [0x7F, 2, 0, 0xDF, 1, 0];
        let frame = [0xFF, 0xC2, 0, 17, 8, 1, 0xE0, 2, 0x80];
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0".to_vec();
        for image in [
            png.clone(),
            b"GIF87a\x80\x02\xe0\x01".to_vec(),
            b"GIF89a\x80\x02\xe0\x01".to_vec(),
            webp(b"VP8X", 24, &sizes, 30),
            webp(b"VP8L", 21, &lossless, 25),
            webp(b"VP8 ", 26, &lossy, 30),
            [&b"\xff\xd8"[..], &frame].concat(),
            [&b"\xff\xd8\xff\xe0\0\x05abc\xff"[..], &frame].concat(),
        ] {
            assert_eq!(Some((640, 480)), size_of(&image), "{image:x?}");
            assert_eq!(None, size_of(&image[..image.len() - 1]), "{image:x?}");
        }
        let others = [
            [&png[..12], b"IDAT", &png[16..]].concat(),
            [b"\x89PNX", &png[4..]].concat(),
            webp(b"VP8Y", 24, &sizes, 30),
            [&b"RIFF....WAVE"[..], &webp(b"VP8X", 24, &sizes, 30)[12..]].concat(),
            [&b"RIFX....WEBP"[..], &webp(b"VP8X", 24, &sizes, 30)[12..]].concat(),
            [&b"\xff\xd8\xff\xe0\0\x05abcd"[..], &frame].concat(),
        ];
        assert!(others.iter().all(|image| size_of(image).is_none()), "{others:x?}");
    }

    /// All is read that stands in front of the size, up to a megabyte.
    #[test]
    fn a_size_may_stand_far_behind() {
        let jpeg = |between: usize| {
            let mut image = vec![0xFF, 0xD8];
            let mut left = between;
            while left > 0 {
                let size = left.min(0xFFFF);
                image.extend([0xFF, 0xE1]);
                image.extend(u16::try_from(size).unwrap().to_be_bytes());
                image.resize(image.len() + size - 2, 0);
                left -= size;
            }
            image.extend([0xFF, 0xC0, 0, 17, 8, 1, 0xE0, 2, 0x80]);
            image.resize(image.len() + 99, 0);
            base64(&image)
        };
        for between in [0, 9, 3_000, 50_000, HEADER_MAX - 99] {
            assert_eq!(Some((640, 480)), size_of_base64(&jpeg(between)), "{between}");
        }
        assert_eq!(None, size_of_base64(&jpeg(HEADER_MAX + 9)));
    }

    /// No base64 has a length that leaves one over, without its padding.
    #[test]
    fn lengths_that_no_base64_has() {
        for length in 5_000..5_008 {
            let data = format!("iVBORw0KGgoAAAANSUhEUgAAAoAAAAHg{}", "A".repeat(length - 32));
            let expected = (length % 4 != 1).then_some((640, 480));
            assert_eq!(expected, size_of_base64(&data));
            assert_eq!(expected, size_of_base64(&format!("{data}==")));
        }
    }

    #[test]
    fn what_is_known_of_an_image_is_shown() {
        let image = Image::url("https://example.com/tea.png");
        assert_eq!(None, image.pixels());
        assert_eq!(Some((640, 480)), image.size(640, 480).pixels());
    }

    #[test]
    fn base64_is_that_of_python() {
        for (data, padding, bytes) in [
            ("", 0, Some(&b""[..])),
            ("YQ", 2, Some(b"a")),
            ("YWI", 1, Some(b"ab")),
            ("YW-Jj", 0, Some(b"abc")),
            ("YQ==YWJj", 0, Some(b"a")),
            ("Y", 3, None),
            ("YWJjYQ=Y", 0, None),
            ("é", 0, None),
        ] {
            assert_eq!(bytes, decode(data.as_bytes(), padding).as_deref(), "{data}");
        }
    }

    fn base64(bytes: &[u8]) -> String {
        let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let encode = |three: &[u8]| -> String {
            let bits = three.iter().fold(0, |bits, &byte| bits << 8 | usize::from(byte));
            let bits = bits << (8 * (3 - three.len()));
            let digit = |at: usize| char::from(letters[bits >> (18 - 6 * at) & 63]);
            (0..=three.len()).map(digit).collect()
        };
        bytes.chunks(3).map(encode).collect()
    }
}
