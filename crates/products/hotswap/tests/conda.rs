//! Conda packages of version 2, made and judged by Python: listed, pruned, retargeted; damaged ones are refused.
//!
//! `HOTSWAP_TEST_ROOT` names the userland; without it each test reports that it was skipped.

mod made;

use hotswap_bundle::Compression;
use hotswap_samples::code_object::Sample;
use hotswap_targets::EFlags;
use hotswap_userland::Workbench;
use made::RunsHotswap;
use predicates::prelude::*;
use predicates::str::contains;
use std::fs;
use std::os::unix::fs::symlink;

/// Packs the directory `in`, or checks that the lists of a package are those of its files; prints the names of the files.
const CONDA: &str = r#"
import hashlib, io, json, os, sys, tarfile, zipfile
from compression import zstd
def tar_of(members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w') as tar:
        for name, path in members:
            tar.add(path, name, recursive=False)
    return zstd.compress(out.getvalue())
def row(name, path, more):
    data = open(path, 'rb').read()
    kind = 'softlink' if os.path.islink(path) else 'hardlink'
    return dict({'_path': name, 'path_type': kind, 'sha256': hashlib.sha256(data).hexdigest(), 'size_in_bytes': len(data)}, **more)
def make(path, more):
    names = sorted(os.path.relpath(os.path.join(d, f), 'in') for d, _, fs in os.walk('in') for f in fs)
    os.makedirs('made/info', exist_ok=True)
    json.dump({'paths': [row(n, 'in/' + n, more) for n in names], 'paths_version': 1}, open('made/info/paths.json', 'w'))
    open('made/info/files', 'w').write(''.join(n + '\n' for n in names))
    open('made/info/index.json', 'w').write('{"name": "pkg"}')
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_STORED) as out:
        out.writestr('metadata.json', '{"conda_pkg_format_version": 2}')
        infos = ['info/' + name for name in ('index.json', 'files', 'paths.json')]
        out.writestr('info-pkg-1.0-0.tar.zst', tar_of([(name, 'made/' + name) for name in infos]))
        out.writestr('pkg-pkg-1.0-0.tar.zst', tar_of([(n, 'in/' + n) for n in names]))
def check(path):
    package = zipfile.ZipFile(path)
    assert [i.filename.split('-')[0] for i in package.infolist()] == ['metadata.json', 'info', 'pkg']
    assert all(i.compress_type == zipfile.ZIP_STORED for i in package.infolist())
    info, pkg = [tarfile.open(fileobj=io.BytesIO(zstd.decompress(package.read(i)))) for i in package.infolist()[1:]]
    rows = {row['_path']: row for row in json.load(info.extractfile('info/paths.json'))['paths']}
    assert sorted(rows) == sorted(pkg.getnames()) == sorted(info.extractfile('info/files').read().decode().split())
    for name, row in rows.items():
        data = pkg.extractfile(name).read()
        assert row['sha256'] == hashlib.sha256(data).hexdigest() and row['size_in_bytes'] == len(data), name
        print(name)
{'make': lambda: make(sys.argv[2], json.loads(sys.argv[3])), 'check': lambda: check(sys.argv[2])}[sys.argv[1]]()
"#;

fn object(target: &str) -> Vec<u8> {
    let flags = EFlags::of(&target.parse().unwrap()).encode();
    Sample { target: format!("amdgcn-amd-amdhsa--{target}"), flags, ..Sample::default() }.build()
}

/// A library with a link to it, and rocBLAS's data for two GPUs; `more` are further keys of each row of the list.
fn conda_bench(test: &str, more: &str) -> Option<Workbench> {
    let bench = Workbench::new(test)?;
    let bundle = |gpus: &[&str]| made::bundle(gpus, Some(Compression::default()), object);
    fs::create_dir_all(bench.path("in/lib/rocblas/library")).unwrap();
    bench.write("in/lib/libkernels.so.1", &hotswap_samples::host_files::library(&[&bundle(&["gfx1030", "gfx1100"])]));
    symlink("libkernels.so.1", bench.path("in/lib/libkernels.so")).unwrap();
    for gpu in ["gfx1030", "gfx1100"] {
        bench.write(&format!("in/lib/rocblas/library/Kernels.so-000-{gpu}.hsaco"), &object(gpu));
    }
    bench.write("in/text.txt", b"text");
    bench.write("conda.py", CONDA.as_bytes());
    bench.run(&format!("python3 conda.py make pkg-1.0-0.conda '{more}'"));
    Some(bench)
}

#[test]
fn packages_of_conda_keep_their_lists_true() {
    let Some(bench) = conda_bench("packages_of_conda_keep_their_lists_true", "{\"no_link\": true}") else { return };
    let listed = bench.hotswap_line("list pkg-1.0-0.conda").success();
    listed.stdout(contains("lib/libkernels.so.1").and(contains("gfx1100")));
    // The fixture has no index of rocBLAS.
    let answer = bench.hotswap_line("uses pkg-1.0-0.conda --gpu gfx1030").code(13);
    answer.stdout(contains("gfx1030 loads code from 1 of 1")).stderr(contains("TensileLibrary_lazy_gfx1030.dat"));
    bench.hotswap_line("prune pkg-1.0-0.conda --keep gfx1030 -o out.conda").success().stdout(contains("1 left out"));
    let names = bench.run("python3 conda.py check out.conda");
    assert!(names.contains("libkernels.so") && !names.contains("gfx1100"), "{names}");
    bench.hotswap_line("list out.conda").success().stdout(contains("gfx1100").not());
    // Without data files, which `serve` is for.
    bench.run("rm -r in/lib/rocblas && python3 conda.py make pkg-1.0-0.conda '{}'");
    bench.hotswap_line("retarget pkg-1.0-0.conda --to gfx1031 -o out.conda").success();
    bench.run("python3 conda.py check out.conda");
    bench.hotswap_line("list out.conda").success().stdout(contains("retargeted from gfx1030"));
    bench.hotswap_line("retarget pkg-1.0-0.conda --to gfx1031 -o again.conda").success();
    assert_eq!(bench.read("out.conda"), bench.read("again.conda"));
}

#[test]
fn damaged_packages_of_conda_and_hashes_that_only_conda_makes_are_refused() {
    const TEST: &str = "damaged_packages_of_conda_and_hashes_that_only_conda_makes_are_refused";
    let Some(bench) = conda_bench(TEST, "{\"sha256_in_prefix\": \"0\"}") else { return };
    let refused = bench.hotswap_line("prune pkg-1.0-0.conda --keep gfx1030 -o out.conda").code(13);
    refused.stderr(contains("lib/libkernels.so.1").and(contains("sha256_in_prefix")));
    for (more, what) in [("{\"sha256\": \"00\"}", "hash in info/paths.json"), ("{\"_path\": \"x\"}", "info/paths.json")]
    {
        bench.run(&format!("python3 conda.py make pkg-1.0-0.conda '{more}'"));
        let refused = bench.hotswap_line("prune pkg-1.0-0.conda --keep gfx1030 -o out.conda").code(12);
        refused.stderr(contains("HS0302").and(contains(what)));
    }
    assert!(!bench.path("out.conda").exists());
}
