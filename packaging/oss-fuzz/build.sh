#!/bin/bash -eu
# OSS-Fuzz: builds each fuzz target and the archive of its seeds. The directories are those of `cargo xtask fuzz --list`; the
# one with instructions needs LLVM's vectors as seeds, and those with code objects a ROCm, so these start without.
cd "$SRC/hotswap"
for directory in crates/containers/bundle/fuzz crates/retarget/rewrite/fuzz crates/profile/profile-drain/fuzz \
    driver-wrapper/fuzz crates/products/hotswap/fuzz crates/amdgpu/isa/fuzz; do
    (cd "$directory" && cargo fuzz build -O)
    seeds=$(mktemp -d)
    case $directory in
        crates/amdgpu/isa/fuzz | crates/retarget/rewrite/fuzz | crates/products/hotswap/fuzz) ;;
        *) (cd "$directory" && cargo run --release --example seeds -- "$seeds") ;;
    esac
    for target in $(cd "$directory" && cargo fuzz list); do
        cp "$directory/target/x86_64-unknown-linux-gnu/release/$target" "$OUT/"
        [ ! -d "$seeds/$target" ] || zip -qj "$OUT/${target}_seed_corpus.zip" "$seeds/$target"/*
    done
done
