//! Wheels, tar archives and Debian packages, made and judged by Python, tar, dpkg and pip: listed, pruned, served for
//! further GPUs, and retargeted.
//!
//! `HOTSWAP_TEST_ROOT` names the userland; without it each test reports that it was skipped.

mod made;
#[path = "packages/needs.rs"]
mod needs;

use assert_cmd::Command;
use hotswap_bundle::Compression;
use hotswap_samples::code_object::Sample;
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
    content_for(bench, GPUS);
}

fn content_for(bench: &Workbench, gpus: [&str; 2]) {
    let bundle = |gpus: &[&str]| made::bundle(gpus, Some(Compression::default()), object);
    fs::create_dir_all(bench.path("in/pkg/lib/rocblas/library")).unwrap();
    bench.write("in/pkg/lib/libkernels.so", &hotswap_samples::host_files::library(&[&bundle(&gpus), &bundle(&gpus)]));
    for gpu in gpus {
        bench.write(&format!("in/pkg/lib/rocblas/library/TensileLibrary_a_{gpu}.co"), &bundle(&[gpu]));
        bench.write(&format!("in/pkg/lib/rocblas/library/Kernels.so-000-{gpu}.hsaco"), &object(gpu));
        bench.write(&format!("in/pkg/lib/rocblas/library/TensileLibrary_lazy_{gpu}.dat"), gpu.as_bytes());
    }
    bench.write("in/pkg/lib/libother.so", &hotswap_samples::host_files::library(&[&bundle(&["gfx1100"])]));
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
            if not one.filename.endswith(('RECORD', '.conf')):
                data = wheel.read(one)
                assert rows[one.filename][1:] == [digest(data), str(len(data))], one
                assert one.date_time == (2024, 2, 29, 12, 30, 8) and one.external_attr >> 16 == 0o100755, one
            if one.filename.endswith('.conf'):
                assert one.external_attr >> 16 == 0o100644, one
                print(wheel.read(one).decode())
        print('\n'.join(sorted(rows)))
        print(wheel.read('pkg-1.0.dist-info/WHEEL').decode())
dict(make=make, check=check)[sys.argv[1]](sys.argv[2])
"#;

fn hotswap(bench: &Workbench, words: &str) -> assert_cmd::assert::Assert {
    let mut command = Command::new(made::installed());
    command.current_dir(bench.directory()).args(words.split(' ')).assert()
}

fn wheel(test: &str) -> Option<Workbench> {
    wheel_for(test, GPUS)
}

fn wheel_for(test: &str, gpus: [&str; 2]) -> Option<Workbench> {
    let bench = Workbench::new(test)?;
    content_for(&bench, gpus);
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
    hotswap(&bench, "prune pkg-1.0-1-py3-none-any.whl --keep gfx1031 -o pkg-1.0-1-py3-none-any.whl").code(17);
    assert!(bench.read("pkg-1.0-1-py3-none-any.whl") == first);
    hotswap(&bench, "prune pkg-1.0-py3-none-any.whl --keep gfx942 -o other.whl").failure().stderr(contains("gfx942"));
    assert!(!bench.path("other.whl").exists());
    install(&bench, "a_wheel_is_pruned_by_one_line_and_installed", "pkg-1.0-1-py3-none-any.whl");
}

/// pip checks the hashes of RECORD, and the build number against the name. Returns whether there is a pip.
fn install(bench: &Workbench, test: &str, wheel: &str) -> bool {
    let pip = |words: &str| {
        let mut command = Command::new("python3");
        command.current_dir(bench.directory()).args(["-m", "pip"]).args(words.split(' ')).assert()
    };
    if !pip("--version").get_output().status.success() {
        skip(test, "python3 has no pip");
        return false;
    }
    pip(&format!("install --quiet --no-index --no-deps --target to {wheel}")).success();
    let import = "import sys; sys.path.insert(0, 'to'); import pkg; print(pkg.data.VALUE)";
    Command::new("python3").current_dir(bench.directory()).args(["-c", import]).assert().success().stdout("42\n");
    true
}

/// The begin of a script in Python: the files of the wheel by name, and its RECORD with other hashes.
const CHANGE: &str = r#"
import base64, csv, hashlib, io, sys, zipfile
old = zipfile.ZipFile('pkg-1.0-py3-none-any.whl')
data = {name: old.read(name) for name in old.namelist()}
record = 'pkg-1.0.dist-info/RECORD'
def hashed(algorithm, content):
    digest = base64.urlsafe_b64encode(hashlib.new(algorithm, content).digest()).rstrip(b'=').decode()
    return f'{algorithm}={digest}'
def rows(column):
    out = io.StringIO()
    old_rows = csv.reader(io.StringIO(data[record].decode()))
    csv.writer(out, lineterminator='\n').writerows([name, size and column(old.read(name)), size] for name, _, size in old_rows)
    return out.getvalue().encode()
def without_hashes(): return rows(lambda content: '')
def longer_hashes(): return rows(lambda content: hashed('sha512' if len(content) % 2 else 'sha384', content))
"#;

/// The wheel with lines of Python applied to its files (`data`, by name).
fn changed_wheel(bench: &Workbench, change: &str, name: &str) {
    let write =
        "new = zipfile.ZipFile(sys.argv[1], 'w')\nfor name in data: new.writestr(name, data[name])\nnew.close()\n";
    bench.write("change.py", format!("{CHANGE}{change}\n{write}").as_bytes());
    bench.run(&format!("python3 change.py {name}"));
}

/// Rows without a hash are in wheels that pip installs; SHA-384 and SHA-512 are in the specification.
#[test]
fn rows_of_a_record_may_have_another_hash_or_none() {
    let Some(bench) = wheel("rows_of_a_record_may_have_another_hash_or_none") else { return };
    for change in ["data[record] = without_hashes()", "data[record] = longer_hashes()"] {
        changed_wheel(&bench, change, "other.whl");
        hotswap(&bench, "list other.whl").success().stdout(contains("pkg/lib/libkernels.so: 2 containers"));
        hotswap(&bench, "prune other.whl --keep gfx1031 -o pruned.whl").success();
        let print =
            "import zipfile; z = zipfile.ZipFile('N'); print(z.read('pkg-1.0.dist-info/RECORD').decode(), end='')";
        bench.write("print.py", print.replace('N', "other.whl").as_bytes());
        let before = bench.run("python3 print.py");
        bench.write("print.py", print.replace('N', "pruned.whl").as_bytes());
        let after = bench.run("python3 print.py");
        let changed: Vec<&str> = after.lines().filter(|row| !before.lines().any(|other| other == *row)).collect();
        assert!(changed.len() >= 2 && changed.iter().all(|row| row.contains(",sha256=")), "{changed:?}");
        assert!(after.lines().count() - changed.len() > 3, "{after}");
    }
}

#[test]
fn a_damaged_wheel_is_refused() {
    let Some(bench) = wheel("a_damaged_wheel_is_refused") else { return };
    for (name, change, says) in [
        ("another byte", "data['pkg/data.py'] = b'VALUE = 43\\n'", "HS0302"),
        ("no row", "data['pkg/more.py'] = b''", "a file has no row"),
        ("no file", "del data['pkg/data.py']", "a row has no file"),
        ("two columns", "data[record] = b'a,b\\n'", "RECORD"),
        ("another size", "data[record] = without_hashes().replace(b',,11\\n', b',,12\\n')", "HS0302"),
        ("another SHA-512", "data['pkg/data.py'] = b'VALUE = 43\\n'; data[record] = longer_hashes()", "HS0302"),
        ("another hash", "data[record] = data[record].replace(b'sha256=', b'sha1=')", "not one of SHA-256"),
        ("a signature", "data['pkg-1.0.dist-info/RECORD.jws'] = b'{}'", "signed"),
        ("no RECORD", "del data[record]", "without the one RECORD"),
    ] {
        changed_wheel(&bench, change, "bad.whl");
        for words in ["prune bad.whl --keep gfx1031 -o out.whl", "retarget bad.whl --to gfx1032 -o out.whl"] {
            hotswap(&bench, words).failure().stderr(contains(says));
            assert!(!bench.path("out.whl").exists(), "{name}");
        }
        bench.run("cp bad.whl bad-1.0-py3-none-any.whl");
        hotswap(&bench, "serve gfx1032 bad-1.0-py3-none-any.whl --dest out").failure().stderr(contains(says));
        assert!(!bench.path("out").exists(), "{name}");
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
import bz2, lzma
from compression import zstd
data = open('a.tar', 'rb').read()
open('a.tar.bz2', 'wb').write(bz2.compress(data))
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
    for form in ["a.tar", "a.tar.gz", "a.tar.bz2", "a.tar.xz", "a.tar.zst"] {
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

/// Archives of version 7 have no magic, and are packages all the same; other files without one are not.
#[test]
fn tar_archives_of_version_7_are_pruned() {
    let Some(bench) = Workbench::new("tar_archives_of_version_7_are_pruned") else { return };
    content(&bench);
    bench.run("tar --format=v7 -C in -cf a.tar pkg && ! grep -q ustar a.tar");
    hotswap(&bench, "prune a.tar --drop gfx1100 -o new.tar").success();
    assert!(!bench.run("tar tf new.tar").contains("gfx1100"));
    let mut damaged = bench.read("a.tar");
    damaged[100] ^= 1;
    bench.write("damaged", &damaged);
    hotswap(&bench, "list damaged").failure().stderr(contains("HS0304"));
}

/// Makes a package as Arch's makepkg does, and compares every file with the list in it.
const ARCH: &str = r##"
import gzip, hashlib, io, os, sys, tarfile
from compression import zstd

def lists(root):
    paths = sorted(os.path.join(at, name) for at, _, names in os.walk(root) for name in names)
    rows, total = ["#mtree", "/set type=file uid=0 gid=0 mode=644"], 0
    for path in paths:
        data, name = open(path, "rb").read(), os.path.relpath(path, root)
        total += len(data)
        name = name.replace(" ", "\\040")
        digests = f"md5digest={hashlib.md5(data).hexdigest()} sha256digest={hashlib.sha256(data).hexdigest()}"
        rows.append(f"./{name} time=1700000000.0 size={len(data)} {digests}")
    return "\n".join(rows) + "\n", f"pkgname = pkg\nsize = {total}\narch = x86_64\n"

def make(root, package):
    mtree, info = lists(root)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, data in [(".PKGINFO", info.encode()), (".MTREE", gzip.compress(mtree.encode()))]:
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
        for name in sorted(os.listdir(root)):
            tar.add(os.path.join(root, name), arcname=name)
    open(package, "wb").write(zstd.compress(out.getvalue()))

def check(package):
    tar = tarfile.open(fileobj=io.BytesIO(zstd.decompress(open(package, "rb").read())))
    files = {m.name: tar.extractfile(m).read() for m in tar if m.isfile()}
    rows = gzip.decompress(files.pop(".MTREE")).decode().splitlines()[2:]
    info = files.pop(".PKGINFO").decode()
    listed = {}
    for row in rows:
        name, *words = row.split(" ")
        listed[name[2:].replace("\\040", " ")] = dict(word.split("=", 1) for word in words)
    assert sorted(listed) == sorted(files), (sorted(listed), sorted(files))
    for name, data in files.items():
        facts = listed[name]
        assert int(facts["size"]) == len(data), name
        assert facts["md5digest"] == hashlib.md5(data).hexdigest(), name
        assert facts["sha256digest"] == hashlib.sha256(data).hexdigest(), name
    assert f"size = {sum(map(len, files.values()))}\n" in info, info
    print(*sorted(files), sep="\n")

{"make": make, "check": check}[sys.argv[1]](*sys.argv[2:])
"##;

#[test]
fn an_arch_package_keeps_its_lists_true() {
    let Some(bench) = Workbench::new("an_arch_package_keeps_its_lists_true") else { return };
    content_for(&bench, SERVED);
    bench.run("cp in/pkg/lib/libkernels.so in/pkg/lib/librocblas.so");
    bench.write("in/pkg/a blank.txt", b"x");
    bench.write("arch.py", ARCH.as_bytes());
    bench.run("python3 arch.py make in pkg-1-1-x86_64.pkg.tar.zst && python3 arch.py check pkg-1-1-x86_64.pkg.tar.zst");
    hotswap(&bench, "prune pkg-1-1-x86_64.pkg.tar.zst --drop gfx1100 -o new.pkg.tar.zst").success();
    let names = bench.run("python3 arch.py check new.pkg.tar.zst");
    assert!(!names.contains("gfx1100") && names.contains("pkg/lib/libkernels.so\n"), "{names}");
    assert!(bench.read("new.pkg.tar.zst").len() < bench.read("pkg-1-1-x86_64.pkg.tar.zst").len());
    hotswap(&bench, "serve gfx1031 pkg-1-1-x86_64.pkg.tar.zst --from gfx1030 --dest out").success();
    let names = bench.run("python3 arch.py check out/pkg-1-1-x86_64.pkg.tar.zst");
    assert!(names.contains("hotswap-names.d"), "{names}");
}

fn debian_package(bench: &Workbench) {
    let control =
        "Package: pkg\nVersion: 1.0\nArchitecture: amd64\nMaintainer: A <a@b>\nInstalled-Size: 100\nDescription: x\n";
    fs::create_dir_all(bench.path("in/DEBIAN")).unwrap();
    bench.write("in/DEBIAN/control", control.as_bytes());
    let sums =
        "cd in; find pkg -type f -exec md5sum {} + > DEBIAN/md5sums; cd ..; dpkg-deb --root-owner-group -b in a.deb";
    bench.run(sums);
}

#[test]
fn a_debian_package_is_pruned() {
    let Some(bench) = Workbench::new("a_debian_package_is_pruned") else { return };
    content(&bench);
    debian_package(&bench);
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

const SERVED: [&str; 2] = ["gfx1030", "gfx1100"];
const SERVED_WHEEL: &str = "out/pkg-1.0-0hotswap-py3-none-any.whl";
const NAMES: &str = "names gfx1031=gfx1030\nserves libkernels.so\nserves librocblas.so\n";

/// A wheel with rocBLAS, whose data files and library belong together.
fn rocblas_wheel(test: &str) -> Option<Workbench> {
    let bench = wheel_for(test, SERVED)?;
    bench.run("cp in/pkg/lib/libkernels.so in/pkg/lib/librocblas.so; python3 wheel.py make pkg-1.0-py3-none-any.whl");
    Some(bench)
}

#[test]
fn a_wheel_is_served_and_installed() {
    let test = "a_wheel_is_served_and_installed";
    let Some(bench) = rocblas_wheel(test) else { return };
    let words = "serve gfx1031 pkg-1.0-py3-none-any.whl --dest out";
    hotswap(&bench, &format!("{words} --dry-run")).success().stdout(contains("would be served"));
    assert!(!bench.path("out").exists());
    let told = hotswap(&bench, words).success();
    told.stdout(contains("rocBLAS").and(contains("4 files changed, 1 added")).and(contains("pip install")));
    let rows = bench.run(&format!("python3 wheel.py check {SERVED_WHEEL}"));
    assert!(rows.contains("Build: 0hotswap\nTag: py3-none-any") && rows.contains(NAMES), "{rows}");
    assert!(rows.contains("pkg/lib/hotswap-names.d/pkg.conf"), "{rows}");
    let listed = hotswap(&bench, &format!("list {SERVED_WHEEL} --format json")).success();
    let listed = String::from_utf8(listed.get_output().stdout.clone()).unwrap();
    // Four containers in two libraries, and one in each of the source's data files.
    assert_eq!(listed.matches("hipv4-amdgcn-amd-amdhsa--gfx1031").count(), 6, "{listed}");
    let before = (bench.read(SERVED_WHEEL), fs::metadata(bench.path(SERVED_WHEEL)).unwrap().modified().unwrap());
    hotswap(&bench, words).success();
    assert!(before == (bench.read(SERVED_WHEEL), fs::metadata(bench.path(SERVED_WHEEL)).unwrap().modified().unwrap()));
    assert_eq!(fs::read_dir(bench.path("out")).unwrap().count(), 1);
    bench.write(SERVED_WHEEL, b"another file");
    hotswap(&bench, words).failure().stderr(contains("HS0423"));
    assert!(bench.read(SERVED_WHEEL) == b"another file");
    bench.write(SERVED_WHEEL, &before.0);
    if !install(&bench, test, SERVED_WHEEL) {
        return;
    }
    assert!(bench.run("cat to/pkg/lib/hotswap-names.d/pkg.conf").ends_with(NAMES));
}

/// The names that a package has stay with the code that it has.
#[test]
fn a_served_wheel_is_served_for_another_gpu() {
    let Some(bench) = rocblas_wheel("a_served_wheel_is_served_for_another_gpu") else { return };
    hotswap(&bench, "serve gfx1031 pkg-1.0-py3-none-any.whl --dest out").success();
    hotswap(&bench, &format!("serve gfx1032 {SERVED_WHEEL} --dest again")).success();
    let rows = bench.run("python3 wheel.py check again/pkg-1.0-0hotswap-py3-none-any.whl");
    assert!(rows.contains("names gfx1031=gfx1030\nnames gfx1032=gfx1030\nserves libkernels.so"), "{rows}");
    hotswap(&bench, &format!("serve gfx1034 --from gfx1031 {SERVED_WHEEL} --dest third"))
        .failure()
        .stderr(contains("HS0421").and(contains("--from gfx1030")));
    let gone = "serve gfx942 pkg-1.0-py3-none-any.whl --dest none";
    hotswap(&bench, gone).failure().stderr(contains("HS0401").or(contains("HS0203")));
    assert!(!bench.path("none").exists() && !bench.path("third").exists());
}

/// A library that is refused is an error, and the rest is served, as in directories. Data without its library is refused.
#[test]
fn a_wheel_is_not_served_by_halves() {
    let Some(bench) = wheel_for("a_wheel_is_not_served_by_halves", SERVED) else { return };
    let told = hotswap(&bench, "serve gfx1031 pkg-1.0-py3-none-any.whl --dest out").code(13);
    let told = told.stdout(contains("export LD_PRELOAD="));
    told.stderr(contains("HS0421").and(contains("pkg-1.0-py3-none-any.whl")).and(contains("librocblas.so")));
    let rows = bench.run(&format!("python3 wheel.py check {SERVED_WHEEL}"));
    assert!(rows.contains("serves libkernels.so") && !rows.contains("serves librocblas.so"), "{rows}");
    for (words, says) in [
        ("serve gfx1031 --dest out", "neither --root nor a package"),
        ("serve pkg-1.0-py3-none-any.whl --dest out", "no GPU is named"),
        ("serve gfx1031 pkg-1.0-py3-none-any.whl --root in --dest out", "--root is for"),
        ("serve gfx1031 in/pkg/data.py --dest out", "neither a GPU nor a wheel"),
        ("serve gfx1031 missing.whl --dest out", "No such file"),
    ] {
        hotswap(&bench, words).failure().stderr(contains(says));
    }
    // Nothing is served then, and no program needs the library that shows names.
    bench.run("rm in/pkg/lib/libkernels.so; python3 wheel.py make pkg-1.0-py3-none-any.whl");
    let nothing = hotswap(&bench, "serve gfx1031 pkg-1.0-py3-none-any.whl --dest nothing").code(13);
    nothing.stdout(contains("nothing was written").and(contains("LD_PRELOAD").not()));
    assert!(!bench.path("nothing").exists());
}

#[test]
fn tar_archives_are_served() {
    let Some(bench) = Workbench::new("tar_archives_are_served") else { return };
    content_for(&bench, SERVED);
    bench.run("cd in/pkg/lib; mv libkernels.so librocblas.so.5.2; ln -s librocblas.so.5.2 librocblas.so.5");
    bench.run(TAR);
    for form in ["a.tar", "a.tar.gz", "a.tar.xz", "a.tar.zst"] {
        hotswap(&bench, &format!("serve gfx1031 {form} --dest out")).success();
        let first = bench.read(&format!("out/{form}"));
        hotswap(&bench, &format!("serve gfx1031 {form} --dest other")).success();
        assert!(bench.read(&format!("other/{form}")) == first, "{form}");
        let all = bench
            .run(&format!("rm -rf to; python3 -m tarfile -e out/{form} to; cd to; find . -ls; cat pkg/lib/*/a.conf"));
        let serves = "names gfx1031=gfx1030\nserves librocblas.so.5\nserves librocblas.so.5.2\n";
        assert!(all.ends_with(serves) && all.contains("librocblas.so.5 -> librocblas.so.5.2"), "{form}: {all}");
        let time = bench.run("stat -c '%Y %a' to/pkg/lib/hotswap-names.d/a.conf to/pkg/lib/librocblas.so.5.2");
        assert_eq!(time.lines().next(), Some("1700000000 644"));
        hotswap(&bench, "list to/pkg/lib/librocblas.so.5.2").success().stdout(contains("gfx1031"));
    }
    // A name that leads out of the archive.
    bench.run("tar -P --transform 's,^in/,../,' -cf bad.tar in/pkg/data.py");
    hotswap(&bench, "serve gfx1031 bad.tar --dest bad").failure().stderr(contains("leads out of the package"));
    assert!(!bench.path("bad").exists());
}

/// dpkg installs what is served, and finds every file as md5sums says.
const DPKG: &str = "set -e
rm -rf out/r; mkdir -p out/r/var/lib/dpkg/info out/r/var/lib/dpkg/updates; touch out/r/var/lib/dpkg/status
dpkg --root=$PWD/out/r --log=/dev/null --force-all -i out/a.deb >/dev/null 2>&1 || true
cd out/r; md5sum -c --quiet var/lib/dpkg/info/pkg.md5sums; find . -type f | sort
cat pkg/lib/hotswap-names.d/a.conf
";

#[test]
fn a_debian_package_is_served() {
    let Some(bench) = Workbench::new("a_debian_package_is_served") else { return };
    content_for(&bench, SERVED);
    bench.run("cd in/pkg/lib; mv libkernels.so librocblas.so.5.2");
    debian_package(&bench);
    hotswap(&bench, "serve gfx1031 a.deb --dest out").success().stdout(contains("dpkg -i out/a.deb"));
    let first = bench.read("out/a.deb");
    hotswap(&bench, "serve gfx1031 a.deb --dest other").success();
    assert!(bench.read("other/a.deb") == first);
    let installed = bench.run(DPKG);
    assert!(installed.ends_with("names gfx1031=gfx1030\nserves librocblas.so.5.2\n"), "{installed}");
    let size = bench.run("dpkg-deb -f out/a.deb Installed-Size").trim().parse::<u64>().unwrap();
    assert!(size > 100, "{size}");
    hotswap(&bench, "list out/r/pkg/lib/librocblas.so.5.2").success().stdout(contains("gfx1031"));
    bench.run("cd in; sed -i 's/^./x/' DEBIAN/md5sums; cd ..; dpkg-deb --root-owner-group -b in bad.deb");
    hotswap(&bench, "serve gfx1031 bad.deb --dest none").failure().stderr(contains("hash in md5sums"));
    assert!(!bench.path("none").exists());
}

#[test]
fn a_package_is_retargeted() {
    let Some(bench) = rocblas_wheel("a_package_is_retargeted") else { return };
    let words = "retarget pkg-1.0-py3-none-any.whl --to gfx1031 -o pkg-1.0-2-py3-none-any.whl";
    // The data files are the planted fault: rocBLAS would not find its own for gfx1031.
    hotswap(&bench, words).failure().stderr(contains("HS0414").and(contains("hotswap serve gfx1031")));
    assert!(!bench.path("pkg-1.0-2-py3-none-any.whl").exists());
    bench.run("rm -r in/pkg/lib/rocblas in/pkg/lib/librocblas.so");
    bench.run("python3 wheel.py make pkg-1.0-py3-none-any.whl");
    // So is a library without code for a source.
    hotswap(&bench, words).failure().stderr(contains("pkg/lib/libother.so"));
    hotswap(&bench, "retarget pkg-1.0-py3-none-any.whl --to gfx1031 --policy keep --dry-run").success();
    assert!(!bench.path("pkg-1.0-2-py3-none-any.whl").exists());
    let words = format!("{words} --policy keep");
    // The record of the other library says what was refused.
    hotswap(&bench, &words).success().stdout(contains("2 files changed, 0 with nothing to add"));
    let first = bench.read("pkg-1.0-2-py3-none-any.whl");
    let rows = bench.run("python3 wheel.py check pkg-1.0-2-py3-none-any.whl");
    assert!(rows.contains("Build: 2") && !rows.contains("hotswap-names"), "{rows}");
    hotswap(&bench, "list pkg-1.0-2-py3-none-any.whl").success().stdout(contains("gfx1031"));
    hotswap(&bench, &words).success();
    assert!(bench.read("pkg-1.0-2-py3-none-any.whl") == first);
    let again = "retarget pkg-1.0-2-py3-none-any.whl --to gfx1031 --policy keep -o pkg-1.0-2-py3-none-any.whl";
    hotswap(&bench, again).code(17).stdout(contains("0 files changed"));
    assert!(bench.read("pkg-1.0-2-py3-none-any.whl") == first);
}

/// A code object in a file of its own serves one GPU; the package's own GPUs need it.
#[test]
fn code_objects_of_a_package_become_fat_binaries() {
    let Some(bench) = wheel_for("code_objects_of_a_package_become_fat_binaries", SERVED) else { return };
    bench.run("rm -r in/pkg/lib/rocblas in/pkg/lib/libother.so");
    bench.write("in/pkg/kernel.hsaco", &object("gfx1030"));
    bench.run("python3 wheel.py make pkg-1.0-py3-none-any.whl");
    let words = "retarget pkg-1.0-py3-none-any.whl --to gfx1031 -o pkg-1.0-2-py3-none-any.whl";
    hotswap(&bench, words).failure().stderr(contains("--keep-source").and(contains("pkg/kernel.hsaco")));
    assert!(!bench.path("pkg-1.0-2-py3-none-any.whl").exists());
    hotswap(&bench, &format!("{words} --keep-source")).success().stdout(contains("2 files changed"));
    bench.run("python3 wheel.py check pkg-1.0-2-py3-none-any.whl; python3 -m zipfile -e pkg-1.0-2-py3-none-any.whl to");
    let listed = hotswap(&bench, "list to/pkg/kernel.hsaco").success();
    listed.stdout(contains("gfx1030").and(contains("gfx1031")));
    hotswap(&bench, "retarget pkg-1.0-py3-none-any.whl --pairs gfx1030=>gfx1031 -o x.whl").failure();
}
