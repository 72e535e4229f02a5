#!/bin/bash -eu
# OSS-Fuzz: builds each fuzz target and the archive of its seeds. The directories are those of `cargo xtask fuzz --list`; the
# one with instructions needs LLVM's vectors as seeds, and those with code objects a ROCm, so these start without.
cd "$SRC/hotswap"
for directory in crates/bundle/fuzz crates/rewrite/fuzz crates/profile-drain/fuzz \
    driver-wrapper/fuzz crates/hotswap/fuzz crates/isa/fuzz; do
    (cd "$directory" && cargo fuzz build -O)
    seeds=$(mktemp -d)
    case $directory in
        crates/isa/fuzz | crates/rewrite/fuzz | crates/hotswap/fuzz) ;;
        *) (cd "$directory" && cargo run --release --example seeds -- "$seeds") ;;
    esac
    for target in $(cd "$directory" && cargo fuzz list); do
        cp "$directory/target/x86_64-unknown-linux-gnu/release/$target" "$OUT/"
        [ ! -d "$seeds/$target" ] || zip -qj "$OUT/${target}_seed_corpus.zip" "$seeds/$target"/*
    done
done
