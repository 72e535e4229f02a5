//! Nothing: the package has benchmarks only, which are the fuzz targets of the crates (`Cargo.toml`).
