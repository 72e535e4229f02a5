"""Packs the directory `tree` as a package, or unpacks one into a directory: with Python's modules and dpkg-deb."""
import base64, csv, gzip, hashlib, io, json, os, shutil, subprocess, sys, tarfile, zipfile
from compression import zstd


def names(root):
    return sorted(os.path.relpath(os.path.join(at, name), root) for at, _, all in os.walk(root) for name in all)


def tar_bytes(root, added=()):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, data in added:
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
        for name in names(root):
            tar.add(os.path.join(root, name), arcname=name)
    return out.getvalue()


def make_tar(path):
    open(path, "wb").write(gzip.compress(tar_bytes("tree")))


def make_arch(path):
    rows, total = ["#mtree", "/set type=file uid=0 gid=0 mode=644"], 0
    for name in names("tree"):
        full = os.path.join("tree", name)
        if os.path.islink(full):
            rows.append(f"./{name} time=1700000000.0 type=link link={os.readlink(full)}")
            continue
        data = open(full, "rb").read()
        total += len(data)
        digests = f"md5digest={hashlib.md5(data).hexdigest()} sha256digest={hashlib.sha256(data).hexdigest()}"
        rows.append(f"./{name} time=1700000000.0 size={len(data)} {digests}")
    mtree = gzip.compress(("\n".join(rows) + "\n").encode())
    info = f"pkgname = pkg\nsize = {total}\narch = x86_64\n".encode()
    open(path, "wb").write(zstd.compress(tar_bytes("tree", [(".PKGINFO", info), (".MTREE", mtree)])))


def make_deb(path):
    shutil.rmtree("deb", ignore_errors=True)
    shutil.copytree("tree", "deb/opt", symlinks=True)
    os.makedirs("deb/DEBIAN")
    control = "Package: pkg\nVersion: 1.0\nArchitecture: amd64\nMaintainer: A <a@b>\nInstalled-Size: 100\nDescription: x\n"
    open("deb/DEBIAN/control", "w").write(control)
    files = [name for name in names("tree") if not os.path.islink(os.path.join("tree", name))]
    sums = [f"{hashlib.md5(open(os.path.join("tree", name), "rb").read()).hexdigest()}  opt/{name}\n" for name in files]
    open("deb/DEBIAN/md5sums", "w").write("".join(sums))
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", "deb", path], check=True, stdout=subprocess.DEVNULL)


def make_wheel(path):
    rows, out, info = [], io.StringIO(), "pkg-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        def put(name, data):
            one = zipfile.ZipInfo(name, (2024, 2, 29, 12, 30, 8))
            one.external_attr = 0o100755 << 16
            wheel.writestr(one, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append((name, "sha256=" + digest, len(data)))
        # A wheel has no links.
        for name in names("tree"):
            put(name, open(os.path.join("tree", name), "rb").read())
        put(info + "/WHEEL", b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: py3-none-any\n")
        put(info + "/METADATA", b"Metadata-Version: 2.1\nName: pkg\nVersion: 1.0\n")
        csv.writer(out, lineterminator="\n").writerows(rows + [(info + "/RECORD", "", "")])
        wheel.writestr(zipfile.ZipInfo(info + "/RECORD", (2024, 2, 29, 12, 30, 8)), out.getvalue())


def make_conda(path):
    def row(name):
        full = os.path.join("tree", name)
        data = open(full, "rb").read()
        kind = "softlink" if os.path.islink(full) else "hardlink"
        return {"_path": name, "path_type": kind, "sha256": hashlib.sha256(data).hexdigest(), "size_in_bytes": len(data)}
    shutil.rmtree("info", ignore_errors=True)
    os.makedirs("info/info")
    json.dump({"paths": [row(name) for name in names("tree")], "paths_version": 1}, open("info/info/paths.json", "w"))
    open("info/info/files", "w").write("".join(name + "\n" for name in names("tree")))
    open("info/info/index.json", "w").write('{"name": "pkg"}')
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as out:
        out.writestr("metadata.json", '{"conda_pkg_format_version": 2}')
        out.writestr("info-pkg-1.0-0.tar.zst", zstd.compress(tar_bytes("info")))
        out.writestr("pkg-pkg-1.0-0.tar.zst", zstd.compress(tar_bytes("tree")))


def open_tar(data, to):
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        tar.extractall(to, filter="fully_trusted")


def unpack(path, to):
    shutil.rmtree(to, ignore_errors=True)
    if path.endswith(".deb"):
        subprocess.run(["dpkg-deb", "-R", path, "deb-out"], check=True)
        subprocess.run(["md5sum", "-c", "--quiet", "DEBIAN/md5sums"], check=True, cwd="deb-out")
        shutil.move("deb-out/opt", to)
        shutil.rmtree("deb-out")
    elif path.endswith(".conda"):
        with zipfile.ZipFile(path) as package:
            open_tar(zstd.decompress(package.read([i for i in package.infolist() if i.filename.startswith("pkg-")][0])), to)
    elif path.endswith(".whl"):
        with zipfile.ZipFile(path) as package:
            package.extractall(to)
    elif path.endswith(".zst"):
        open_tar(zstd.decompress(open(path, "rb").read()), to)
    else:
        open_tar(gzip.decompress(open(path, "rb").read()), to)
    for name in names(to):
        if name.startswith("bin/"):
            os.chmod(os.path.join(to, name), 0o755)


if sys.argv[1] == "unpack":
    unpack(sys.argv[2], sys.argv[3])
else:
    makers = {".tar.gz": make_tar, ".pkg.tar.zst": make_arch, ".deb": make_deb, ".whl": make_wheel, ".conda": make_conda}
    next(make for end, make in makers.items() if sys.argv[2].endswith(end))(sys.argv[2])
