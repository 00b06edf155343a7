//! Cosine similarity of vectors.
//!
//! Products of float32 numbers are exact in binary64. They are added up in
//! eight lanes, element `i` in lane `i % 8`. The lanes are added as
//! `((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7))`. So the sum is the same to the
//! bit on every machine, however wide its registers are.

use crate::error::Error;

/// The number of sums that are made side by side.
const LANES: usize = 8;

type Sums = [f64; LANES];

/// A query's vector and those of the chunks, all of the same size.
///
/// # Examples
///
/// ```
/// use budgeteer::{Packer, Ranking, Vectors};
///
/// let vectors = Vectors::new(&[1.0, 0.0], &[0.0, 3.0, 2.0, 0.0])?;
/// let packer = Packer::new(100).ranking(Ranking::Embedding);
/// let packing = packer.pack_with_vectors("", &["Coffee.", "Green tea."], vectors)?;
/// assert_eq!(packing.text, "Green tea.\n\nCoffee.");
/// assert_eq!(packing.kept[0].score, Some(1.0));
/// # Ok::<(), budgeteer::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vectors<'a> {
    query: &'a [f32],
    chunks: &'a [f32],
}

impl<'a> Vectors<'a> {
    /// Returns the vectors of a query and of chunks. Those of the chunks stand
    /// one behind the other.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where
    /// the query's vector is empty, or the length of `chunks` is not a multiple
    /// of its size.
    pub fn new(query: &'a [f32], chunks: &'a [f32]) -> Result<Self, Error> {
        if query.is_empty() || !chunks.len().is_multiple_of(query.len()) {
            return Err(Error::shape(format!(
                "vectors of a query and of chunks must have one size, not {} and {} numbers",
                query.len(),
                chunks.len(),
            )));
        }
        Ok(Self { query, chunks })
    }

    /// Returns the number of chunks.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // no code needs it
    pub fn len(&self) -> usize {
        self.chunks.len() / self.query.len()
    }
}

/// Returns the cosine between the query's vector and that of each chunk, from
/// -1 to 1; 0 where one of the two is all zeros.
///
/// # Errors
///
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where a
/// number is infinite or NaN.
///
/// # Examples
///
/// ```
/// use budgeteer::{Vectors, cosine_scores};
///
/// let vectors = Vectors::new(&[1.0, 1.0], &[2.0, 2.0, -1.0, 1.0, -3.0, -3.0, 0.0, 0.0])?;
/// assert_eq!(cosine_scores(vectors)?, [1.0, 0.0, -1.0, 0.0]);
/// # Ok::<(), budgeteer::Error>(())
/// ```
pub fn cosine_scores(vectors: Vectors<'_>) -> Result<Vec<f64>, Error> {
    let scorer = CosineScorer::new(vectors.query).ok_or_else(|| not_finite("the query"))?;
    let mut cosines = Vec::with_capacity(vectors.len());
    match scorer.score(vectors.chunks, &mut cosines) {
        Ok(()) => Ok(cosines),
        Err(index) => Err(not_finite(&format!("chunks[{index}]"))),
    }
}

#[cold]
fn not_finite(of: &str) -> Error {
    Error::shape(format!("the vector of {of} must be finite"))
}

/// Compares vectors with that of a query. This is the interface for bindings,
/// which may have to stop between two batches of vectors.
#[derive(Debug)]
pub struct CosineScorer {
    /// The query as binary64, in whole lanes, with zeros behind its end.
    query: Vec<Sums>,
    dimensions: usize,
    /// The sum of its squares.
    square: f64,
    method: Method,
}

/// The methods of comparing vectors, from the slowest to the fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    /// With the instructions of the target.
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Method {
    /// Returns the methods that this machine has, the fastest last.
    fn available() -> Vec<Self> {
        #[allow(unused_mut)]
        let mut methods = vec![Self::Portable];
        #[cfg(target_arch = "x86_64")]
        if !cfg!(feature = "portable") {
            if is_x86_feature_detected!("avx2") {
                methods.push(Self::Avx2);
            }
            if is_x86_feature_detected!("avx512f") {
                methods.push(Self::Avx512);
            }
        }
        methods
    }
}

impl CosineScorer {
    /// Returns a scorer for that query, or None where one of its numbers is
    /// infinite or NaN.
    #[must_use]
    pub fn new(query: &[f32]) -> Option<Self> {
        Self::with_method(query, Method::available().last().copied().unwrap_or(Method::Portable))
    }

    fn with_method(query: &[f32], method: Method) -> Option<Self> {
        let lanes = query.chunks(LANES).map(|chunk| {
            let mut lanes = [0.0; LANES];
            for (lane, &number) in lanes.iter_mut().zip(chunk) {
                *lane = f64::from(number);
            }
            lanes
        });
        let mut scorer =
            Self { query: lanes.collect(), dimensions: query.len(), square: 0.0, method };
        let mut square = [0.0; LANES];
        for lanes in &scorer.query {
            add_products(&mut square, lanes, lanes);
        }
        scorer.square = total(&square);
        scorer.square.is_finite().then_some(scorer)
    }

    /// Adds the cosine of each of `vectors` to `scores`.
    ///
    /// # Errors
    ///
    /// The index of the first vector with a number that is infinite or NaN.
    ///
    /// # Panics
    ///
    /// When the length of `vectors` is not a multiple of the query's size.
    pub fn score(&self, vectors: &[f32], scores: &mut Vec<f64>) -> Result<(), usize> {
        assert!(
            vectors.len().checked_rem(self.dimensions).unwrap_or(vectors.len()) == 0,
            "vectors have the size of the query's"
        );
        match self.method {
            Method::Portable => self.score_rows(vectors, scores),
            #[cfg(target_arch = "x86_64")]
            #[allow(unsafe_code)] // the instructions are not those of the target
            Method::Avx2 => {
                // SAFETY: the method is there only where the processor has AVX2.
                unsafe { self.score_rows_avx2(vectors, scores) }
            }
            #[cfg(target_arch = "x86_64")]
            #[allow(unsafe_code)] // as above
            Method::Avx512 => {
                // SAFETY: the method is there only where the processor has AVX-512.
                unsafe { self.score_rows_avx512(vectors, scores) }
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn score_rows_avx2(&self, vectors: &[f32], scores: &mut Vec<f64>) -> Result<(), usize> {
        self.score_rows(vectors, scores)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    fn score_rows_avx512(&self, vectors: &[f32], scores: &mut Vec<f64>) -> Result<(), usize> {
        self.score_rows(vectors, scores)
    }

    #[inline(always)]
    #[allow(clippy::inline_always)] // into functions compiled for more instructions
    fn score_rows(&self, vectors: &[f32], scores: &mut Vec<f64>) -> Result<(), usize> {
        let size = self.dimensions.max(1);
        let mut index = 0_usize;
        let mut blocks = vectors.chunks_exact(4 * size);
        for block in &mut blocks {
            let (front, back) = block.split_at(2 * size);
            let ((a, b), (c, d)) = (front.split_at(size), back.split_at(size));
            for sums in four_rows(&self.query, [a, b, c, d]) {
                scores.push(self.cosine(sums).ok_or(index)?);
                index += 1;
            }
        }
        for row in blocks.remainder().chunks_exact(size) {
            scores.push(self.cosine(one_row(&self.query, row)).ok_or(index)?);
            index += 1;
        }
        Ok(())
    }

    /// Returns the cosine, from the products with the query and the squares;
    /// None where these are not finite.
    fn cosine(&self, (product, square): (f64, f64)) -> Option<f64> {
        if !square.is_finite() {
            return None; // products of finite float32 numbers are far from binary64's end
        }
        let norms = (self.square * square).sqrt();
        // Rounding may lead beyond 1 by the last bit.
        Some(if norms == 0.0 { 0.0 } else { (product / norms).clamp(-1.0, 1.0) })
    }
}

/// A sum of the products of a row with the query, and a sum of its squares.
struct Row {
    product: Sums,
    square: Sums,
}

#[allow(clippy::inline_always)] // see `score_rows`
impl Row {
    const ZERO: Self = Self { product: [0.0; LANES], square: [0.0; LANES] };

    #[inline(always)]
    fn add(&mut self, numbers: &[f32; LANES], query: &Sums) {
        let numbers = numbers.map(f64::from);
        add_products(&mut self.product, &numbers, query);
        add_products(&mut self.square, &numbers, &numbers);
    }

    /// Adds the numbers behind the last whole lanes.
    #[inline(always)]
    fn add_rest(&mut self, rest: &[f32], query: &[Sums]) {
        if let Some(query) = query.last()
            && !rest.is_empty()
        {
            let mut numbers = [0.0; LANES];
            numbers[..rest.len()].copy_from_slice(rest);
            self.add(&numbers, query);
        }
    }

    #[inline(always)]
    fn totals(&self) -> (f64, f64) {
        (total(&self.product), total(&self.square))
    }
}

/// Reads four rows side by side: a sum waits for itself, not for the others.
#[inline(always)]
#[allow(clippy::inline_always, clippy::many_single_char_names)] // see `score_rows`
fn four_rows(query: &[Sums], rows: [&[f32]; 4]) -> [(f64, f64); 4] {
    let [(a, a_rest), (b, b_rest), (c, c_rest), (d, d_rest)] =
        rows.map(<[f32]>::as_chunks::<LANES>);
    let (mut first, mut second, mut third, mut fourth) =
        (Row::ZERO, Row::ZERO, Row::ZERO, Row::ZERO);
    for ((((query, a), b), c), d) in query.iter().zip(a).zip(b).zip(c).zip(d) {
        first.add(a, query);
        second.add(b, query);
        third.add(c, query);
        fourth.add(d, query);
    }
    first.add_rest(a_rest, query);
    second.add_rest(b_rest, query);
    third.add_rest(c_rest, query);
    fourth.add_rest(d_rest, query);
    [first.totals(), second.totals(), third.totals(), fourth.totals()]
}

#[inline(always)]
#[allow(clippy::inline_always)] // see `score_rows`
fn one_row(query: &[Sums], row: &[f32]) -> (f64, f64) {
    let (whole, rest) = row.as_chunks::<LANES>();
    let mut sums = Row::ZERO;
    for (numbers, query) in whole.iter().zip(query) {
        sums.add(numbers, query);
    }
    sums.add_rest(rest, query);
    sums.totals()
}

#[inline(always)]
#[allow(clippy::inline_always)] // see `score_rows`
fn add_products(sums: &mut Sums, left: &Sums, right: &Sums) {
    for lane in 0..LANES {
        sums[lane] += left[lane] * right[lane];
    }
}

/// Returns the sum of the lanes. Its order is part of the result.
#[inline(always)]
#[allow(clippy::inline_always)] // see `score_rows`
fn total(sums: &Sums) -> f64 {
    let pair = |lane: usize| sums[lane] + sums[lane + 1];
    (pair(0) + pair(2)) + (pair(4) + pair(6))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(count: usize) -> Vec<f32> {
        let mut state = 7_u32;
        let mut next = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f32::from(u16::try_from(state >> 16).expect("16 bits")) / 65_536.0 - 0.5
        };
        (0..count).map(|_| next()).collect()
    }

    /// The sum by the formula, number by number.
    fn by_hand(left: &[f32], right: &[f32]) -> f64 {
        let mut sums = [0.0; LANES];
        for (i, (&a, &b)) in left.iter().zip(right).enumerate() {
            sums[i % LANES] += f64::from(a) * f64::from(b);
        }
        total(&sums)
    }

    /// Every method gives the same to the bit, for every size and number.
    #[test]
    fn methods_agree() {
        assert_eq!(Some(&Method::Portable), Method::available().first());
        for dimensions in [1, 2, 7, 8, 9, 16, 31, 100, 1536] {
            let query = noise(dimensions);
            for rows in 0..11 {
                let vectors = noise((rows + 1) * dimensions).split_off(dimensions);
                let expected: Vec<f64> = vectors
                    .chunks(dimensions)
                    .map(|row| {
                        let norms = (by_hand(&query, &query) * by_hand(row, row)).sqrt();
                        (by_hand(&query, row) / norms).clamp(-1.0, 1.0)
                    })
                    .collect();
                for method in Method::available() {
                    let scorer = CosineScorer::with_method(&query, method).expect("finite");
                    let mut cosines = Vec::new();
                    assert_eq!(Ok(()), scorer.score(&vectors, &mut cosines));
                    assert_eq!(expected, cosines, "{method:?} {dimensions} {rows}");
                }
            }
        }
    }

    /// A number that is not finite is named by its place; the largest numbers
    /// are fine.
    #[test]
    fn not_finite() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert!(CosineScorer::new(&[0.0, bad]).is_none());
            for place in 0..30 {
                let mut vectors = vec![f32::MAX; 30];
                vectors[place] = bad;
                for method in Method::available() {
                    let query = [f32::MAX, f32::MIN_POSITIVE, 0.0];
                    let scorer = CosineScorer::with_method(&query, method).expect("finite");
                    assert_eq!(Err(place / 3), scorer.score(&vectors, &mut Vec::new()));
                }
            }
        }
    }
}
