//! Scratch.
fn main() {
    let mut args = std::env::args().skip(1);
    let (from, to) = (args.next().unwrap(), args.next().unwrap());
    let tokenizer = budgeteer::Tokenizer::open(from).unwrap();
    let packed = tokenizer.vocabulary().pack();
    std::fs::write(to, packed).unwrap();
}
