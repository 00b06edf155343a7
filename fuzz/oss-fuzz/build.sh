#!/bin/bash -eu
# Builds every target with what OSS-Fuzz asks for, and packs its corpus.
cd "$SRC/budgeteer"
cargo fuzz build --release
for source in fuzz/fuzz_targets/*.rs; do
    target=$(basename "$source" .rs)
    cp "fuzz/target/x86_64-unknown-linux-gnu/release/$target" "$OUT/"
    zip -jqr "$OUT/${target}_seed_corpus.zip" "fuzz/corpus/$target"
    printf '[libfuzzer]\nmax_len = 4096\n' >"$OUT/$target.options"
    if [ -e "fuzz/dictionaries/$target.dict" ]; then
        cp "fuzz/dictionaries/$target.dict" "$OUT/"
    fi
done
