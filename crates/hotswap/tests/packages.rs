//! Wheels, tar archives and Debian packages, made and judged by Python, tar, dpkg and pip: listed and pruned.
//!
//! `HOTSWAP_TEST_ROOT` names the userland; without it each test reports that it was skipped.

#[path = "../../code-object/tests/common/mod.rs"]
mod common;
#[path = "../../bundle/tests/common/files.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod files;
mod made;

use assert_cmd::Command;
use common::Sample;
use hotswap_bundle::Compression;
use hotswap_targets::EFlags;
use hotswap_userland::{Workbench, skip};
use predicates::prelude::*;
use predicates::str::contains;
use std::fs;

const GPUS: [&str; 2] = ["gfx1031", "gfx1100"];

fn object(target: &str) -> Vec<u8> {
    let flags = EFlags::of(&target.parse().unwrap()).encode();
    Sample { target: format!("amdgcn-amd-amdhsa--{target}"), flags, ..Sample::default() }.build()
}

/// A package's files: a library, rocBLAS's data for two GPUs, a module of Python, a path with a comma.
fn content(bench: &Workbench) {
    let bundle = |gpus: &[&str]| made::bundle(gpus, Some(Compression::default()), object);
    fs::create_dir_all(bench.path("in/pkg/lib/rocblas/library")).unwrap();
    bench.write("in/pkg/lib/libkernels.so", &files::library(&[&bundle(&GPUS), &bundle(&GPUS)]));
    for gpu in GPUS {
        bench.write(&format!("in/pkg/lib/rocblas/library/TensileLibrary_a_{gpu}.co"), &bundle(&[gpu]));
        bench.write(&format!("in/pkg/lib/rocblas/library/Kernels.so-000-{gpu}.hsaco"), &object(gpu));
        bench.write(&format!("in/pkg/lib/rocblas/library/TensileLibrary_lazy_{gpu}.dat"), gpu.as_bytes());
    }
    bench.write("in/pkg/lib/libother.so", &files::library(&[&bundle(&["gfx1100"])]));
    bench.write("in/pkg/__init__.py", b"from . import data\n");
    bench.write("in/pkg/data.py", b"VALUE = 42\n");
    bench.write("in/pkg/a,b \"c\".txt", b"text");
}

/// Python's own modules write and check the wheel.
const WHEEL: &str = r#"
import base64, csv, hashlib, io, os, sys, zipfile
def digest(data): return 'sha256=' + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
def make(path):
    info = 'pkg-1.0.dist-info'
    rows, out = [], io.StringIO()
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as wheel:
        def put(name, data, method=zipfile.ZIP_DEFLATED):
            one = zipfile.ZipInfo(name, (2024, 2, 29, 12, 30, 8))
            one.external_attr = 0o100755 << 16
            one.compress_type = method
            wheel.writestr(one, data)
            rows.append((name, digest(data), len(data)))
        for directory, _, names in sorted(os.walk('in')):
            for name in sorted(names):
                full = os.path.join(directory, name)
                put(os.path.relpath(full, 'in'), open(full, 'rb').read(), zipfile.ZIP_STORED if name.endswith('.dat') else zipfile.ZIP_DEFLATED)
        put(info + '/WHEEL', b'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: py3-none-any\n')
        put(info + '/METADATA', b'Metadata-Version: 2.1\nName: pkg\nVersion: 1.0\n')
        csv.writer(out, lineterminator='\n').writerows(rows + [(info + '/RECORD', '', '')])
        wheel.writestr(zipfile.ZipInfo(info + '/RECORD', (2024, 2, 29, 12, 30, 8)), out.getvalue())
def check(path):
    with zipfile.ZipFile(path) as wheel:
        assert wheel.testzip() is None
        record = wheel.read('pkg-1.0.dist-info/RECORD').decode()
        rows = {row[0]: row for row in csv.reader(io.StringIO(record))}
        assert set(rows) == set(wheel.namelist()), set(rows) ^ set(wheel.namelist())
        for one in wheel.infolist():
            if not one.filename.endswith('RECORD'):
                data = wheel.read(one)
                assert rows[one.filename][1:] == [digest(data), str(len(data))], one
                assert one.date_time == (2024, 2, 29, 12, 30, 8) and one.external_attr >> 16 == 0o100755, one
        print('\n'.join(sorted(rows)))
        print(wheel.read('pkg-1.0.dist-info/WHEEL').decode())
dict(make=make, check=check)[sys.argv[1]](sys.argv[2])
"#;

fn hotswap(bench: &Workbench, words: &str) -> assert_cmd::assert::Assert {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hotswap"));
    command.current_dir(bench.directory()).args(words.split(' ')).assert()
}

fn wheel(test: &str) -> Option<Workbench> {
    let bench = Workbench::new(test)?;
    content(&bench);
    bench.write("wheel.py", WHEEL.as_bytes());
    bench.run("python3 wheel.py make pkg-1.0-py3-none-any.whl");
    Some(bench)
}

#[test]
fn a_wheel_is_pruned_by_one_line_and_installed() {
    let Some(bench) = wheel("a_wheel_is_pruned_by_one_line_and_installed") else { return };
    let listed = hotswap(&bench, "list pkg-1.0-py3-none-any.whl").success();
    listed.stdout(contains("pkg-1.0-py3-none-any.whl: pkg/lib/libkernels.so: 2 containers").and(contains("gfx1100")));
    let words = "prune pkg-1.0-py3-none-any.whl --keep gfx1031 -o pkg-1.0-1-py3-none-any.whl";
    hotswap(&bench, words)
        .success()
        .stdout(contains("2 files pruned, 3 left out").and(contains("no code is left in pkg/lib/libother.so")));
    let rows = bench.run("python3 wheel.py check pkg-1.0-1-py3-none-any.whl");
    assert!(!rows.contains("gfx1100") && rows.contains("TensileLibrary_a_gfx1031.co"), "{rows}");
    assert!(rows.contains("a,b \"c\".txt") && rows.contains("Build: 1\nTag: py3-none-any"), "{rows}");
    let listed = hotswap(&bench, "list pkg-1.0-1-py3-none-any.whl").success();
    listed.stdout(contains("gfx1031").and(contains("gfx1100").not()));
    // The same input gives the same bytes, and what is pruned already stays as it is.
    let first = bench.read("pkg-1.0-1-py3-none-any.whl");
    hotswap(&bench, words).success();
    assert!(bench.read("pkg-1.0-1-py3-none-any.whl") == first);
    hotswap(&bench, "prune pkg-1.0-1-py3-none-any.whl --keep gfx1031 -o pkg-1.0-1-py3-none-any.whl").success();
    assert!(bench.read("pkg-1.0-1-py3-none-any.whl") == first);
    hotswap(&bench, "prune pkg-1.0-py3-none-any.whl --keep gfx942 -o other.whl").failure().stderr(contains("gfx942"));
    assert!(!bench.path("other.whl").exists());
    install(&bench);
}

/// pip checks the hashes of RECORD, and the build number against the name.
fn install(bench: &Workbench) {
    let pip = |words: &str| {
        let mut command = Command::new("python3");
        command.current_dir(bench.directory()).args(["-m", "pip"]).args(words.split(' ')).assert()
    };
    if !pip("--version").get_output().status.success() {
        return skip("a_wheel_is_pruned_by_one_line_and_installed", "python3 has no pip");
    }
    pip("install --quiet --no-index --no-deps --target to pkg-1.0-1-py3-none-any.whl").success();
    let import = "import sys; sys.path.insert(0, 'to'); import pkg; print(pkg.data.VALUE)";
    Command::new("python3").current_dir(bench.directory()).args(["-c", import]).assert().success().stdout("42\n");
}

#[test]
fn a_damaged_wheel_is_refused() {
    let Some(bench) = wheel("a_damaged_wheel_is_refused") else { return };
    for (name, change, says) in [
        ("another byte", "data['pkg/data.py'] = b'VALUE = 43\\n'", "HS0302"),
        ("no row", "data['pkg/more.py'] = b''", "a file has no row"),
        ("no file", "del data['pkg/data.py']", "a row has no file"),
        ("two columns", "data[record] = b'a,b\\n'", "RECORD"),
        ("another hash", "data[record] = data[record].replace(b'sha256=', b'sha1=')", "not one of SHA-256"),
        ("a signature", "data['pkg-1.0.dist-info/RECORD.jws'] = b'{}'", "signed"),
        ("no RECORD", "del data[record]", "without the one RECORD"),
    ] {
        let script = format!(
            "import zipfile\nold = zipfile.ZipFile('pkg-1.0-py3-none-any.whl')\n\
             data = {{name: old.read(name) for name in old.namelist()}}\nrecord = 'pkg-1.0.dist-info/RECORD'\n{change}\n\
             new = zipfile.ZipFile('bad.whl', 'w')\nfor name in data: new.writestr(name, data[name])\nnew.close()\n"
        );
        bench.write("damage.py", script.as_bytes());
        bench.run("python3 damage.py");
        hotswap(&bench, "prune bad.whl --keep gfx1031 -o out.whl").failure().stderr(contains(says));
        assert!(!bench.path("out.whl").exists(), "{name}");
    }
    let whole = bench.read("pkg-1.0-py3-none-any.whl");
    for cut in [5, whole.len() / 2, whole.len() - 1] {
        bench.write("bad.whl", &whole[..cut]);
        hotswap(&bench, "list bad.whl").failure().stderr(contains("HS0302"));
    }
}

/// The userland has neither xz nor zstd; Python has both.
const TAR: &str = "set -e
tar --sort=name --mtime=@1700000000 --owner=0 --group=0 -C in -c pkg > a.tar
gzip -nk a.tar
python3 -c \"
import lzma
from compression import zstd
data = open('a.tar', 'rb').read()
open('a.tar.xz', 'wb').write(lzma.compress(data))
open('a.tar.zst', 'wb').write(zstd.compress(data))\"
";

#[test]
fn tar_archives_are_pruned() {
    let Some(bench) = Workbench::new("tar_archives_are_pruned") else { return };
    content(&bench);
    let long = format!("in/pkg/{}/{}.txt", "d".repeat(90), "f".repeat(90));
    fs::create_dir_all(bench.path(&long).parent().unwrap()).unwrap();
    bench.write(&long, b"a name longer than a header holds");
    std::os::unix::fs::symlink("data.py", bench.path("in/pkg/link.py")).unwrap();
    bench.run(TAR);
    for form in ["a.tar", "a.tar.gz", "a.tar.xz", "a.tar.zst"] {
        hotswap(&bench, &format!("list {form}")).success().stdout(contains("libkernels.so: 2 containers"));
        hotswap(&bench, &format!("prune {form} --drop gfx1100 -o new-{form}")).success();
        let first = bench.read(&format!("new-{form}"));
        hotswap(&bench, &format!("prune {form} --drop gfx1100 -o new-{form}")).success();
        assert!(bench.read(&format!("new-{form}")) == first, "{form}");
        let names = bench.run(&format!("rm -rf out; python3 -m tarfile -e new-{form} out; cd out; find . | sort"));
        assert!(!names.contains("gfx1100") && names.contains("ffff.txt") && names.contains("link.py"), "{names}");
        // All else is as it was, with its time.
        let same = "cmp in/pkg/data.py out/pkg/data.py; readlink out/pkg/link.py; stat -c %Y out/pkg/lib/libkernels.so";
        assert_eq!(bench.run(same).trim(), "data.py\n1700000000", "{form}");
        hotswap(&bench, "list out/pkg/lib/libkernels.so").success().stdout(contains("gfx1100").not());
    }
    let whole = bench.read("a.tar.gz");
    bench.write("cut.tar.gz", &whole[..whole.len() / 2]);
    hotswap(&bench, "prune cut.tar.gz --drop gfx1100 -o none.tar.gz").failure().stderr(contains("HS0302"));
    bench.write("text", b"no archive\n");
    bench.run("gzip -f text");
    hotswap(&bench, "list text.gz").failure().stderr(contains("no tar archive"));
    assert!(!bench.path("none.tar.gz").exists());
}

#[test]
fn a_debian_package_is_pruned() {
    let Some(bench) = Workbench::new("a_debian_package_is_pruned") else { return };
    content(&bench);
    let control =
        "Package: pkg\nVersion: 1.0\nArchitecture: amd64\nMaintainer: A <a@b>\nInstalled-Size: 100\nDescription: x\n";
    fs::create_dir_all(bench.path("in/DEBIAN")).unwrap();
    bench.write("in/DEBIAN/control", control.as_bytes());
    let sums =
        "cd in; find pkg -type f -exec md5sum {} + > DEBIAN/md5sums; cd ..; dpkg-deb --root-owner-group -b in a.deb";
    bench.run(sums);
    hotswap(&bench, "list a.deb").success().stdout(contains("a.deb: pkg/lib/libkernels.so"));
    hotswap(&bench, "prune a.deb --keep gfx1031 -o b.deb").success();
    let first = bench.read("b.deb");
    hotswap(&bench, "prune a.deb --keep gfx1031 -o b.deb").success();
    assert!(bench.read("b.deb") == first);
    let judged = bench.run(
        "set -e; rm -rf out; dpkg-deb -R b.deb out; cd out; md5sum -c --quiet DEBIAN/md5sums; find . -type f | sort",
    );
    assert!(!judged.contains("gfx1100") && judged.contains("Kernels.so-000-gfx1031.hsaco"), "{judged}");
    let size = bench.run("dpkg-deb -f b.deb Installed-Size");
    assert!(size.trim().parse::<u64>().unwrap() < 100, "{size}");
    bench.run("cd in; sed -i 's/^./x/' DEBIAN/md5sums; cd ..; dpkg-deb --root-owner-group -b in bad.deb");
    hotswap(&bench, "prune bad.deb --keep gfx1031 -o none.deb").failure().stderr(contains("hash in md5sums"));
    let whole = bench.read("a.deb");
    bench.write("cut.deb", &whole[..whole.len() - 100]);
    hotswap(&bench, "prune cut.deb --keep gfx1031 -o none.deb").failure().stderr(contains("HS0302"));
    assert!(!bench.path("none.deb").exists());
}
