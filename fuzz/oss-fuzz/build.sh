#!/bin/bash -eu
# Builds every target with what OSS-Fuzz asks for, and packs its corpus.
cd "$SRC/budgeteer"
cargo fuzz build --release
for source in fuzz/fuzz_targets/*.rs; do
    target=$(basename "$source" .rs)
    cp "fuzz/target/x86_64-unknown-linux-gnu/release/$target" "$OUT/"
    zip -jqr "$OUT/${target}_seed_corpus.zip" "fuzz/corpus/$target"
    longest=4096
    case $target in
    count_*) longest=1024 ;;
    tokenizer_files)
        longest=8192
        zip -jqr "$OUT/${target}_seed_corpus.zip" tests/cases/tokenizers
        ;;
    esac
    printf '[libfuzzer]\nmax_len = %s\n' "$longest" >"$OUT/$target.options"
    if [ -e "fuzz/dictionaries/$target.dict" ]; then
        cp "fuzz/dictionaries/$target.dict" "$OUT/"
    fi
done
