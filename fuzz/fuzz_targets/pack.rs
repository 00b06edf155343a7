//! Packing keeps its law under every option: the text is within the budget by
//! its counter, each chunk is kept or dropped once, the answer is the same each
//! time, and that of a corpus. What cannot be packed is an invalid argument.
#![no_main]

use budgeteer::{Corpus, ErrorKind, Vectors};
use budgeteer_fuzz::chunks::{Packs, chunks};
use budgeteer_fuzz::words::Words;
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;

const DIMENSIONS: usize = 2;

fuzz_target!(|data: &[u8]| {
    let _ = run(&mut Unstructured::new(data));
});

fn run(input: &mut Unstructured<'_>) -> Result<()> {
    let (packs, Words(query)): (Packs, Words) = (input.arbitrary()?, input.arbitrary()?);
    let chunks = chunks(input)?;
    let packer = packs.make();
    let mut number = || input.arbitrary::<i8>().map(f32::from).unwrap_or(1.0);
    let numbers: Vec<f32> = (0..DIMENSIONS * (chunks.len() + 1)).map(|_| number()).collect();
    let (own, others) = numbers.split_at(DIMENSIONS);
    let vectors = || Vectors::new(own, others).expect("there are as many for each");
    let pack = || match packs.has_vectors() {
        true => packer.pack_with_vectors(&query, &chunks, vectors()),
        false => packer.pack(&query, &chunks),
    };
    let corpus = Corpus::new(chunks.clone());
    let indexed = match packs.has_vectors() {
        true => packer.pack_corpus_with_vectors(&query, &corpus, vectors()),
        false => packer.pack_corpus(&query, &corpus),
    };
    let packing = match pack() {
        Ok(packing) => packing,
        Err(error) => {
            assert_eq!(ErrorKind::InvalidArgument, error.kind(), "{error}");
            assert!(indexed.is_err());
            return Ok(());
        }
    };
    packs.assert_holds(&packing, &chunks);
    assert_eq!(Ok(&packing), pack().as_ref());
    assert_eq!(Ok(&packing), indexed.as_ref());
    for place in 0..chunks.len() {
        packing.explain(Some(place)).expect("it is a chunk");
    }
    if !packs.has_vectors()
        && let Ok(after) = packer.pack_after(&packing, "tea", &chunks)
    {
        packs.assert_holds(&after, &chunks);
    }
    Ok(())
}
