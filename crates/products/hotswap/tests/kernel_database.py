"""MIOpen's databases of kernels for the tests of `hotswap serve`: made and read without HotSwap, by the modules of Python.

make FILE FAULT CODE...   a row for each code object; FAULT is a name below, or `none`
read FILE                 a line for each row: number, name, options, bytes of the code, in hexadecimal digits
"""

import bz2
import hashlib
import sqlite3
import sys

OPTIONS = " -DMIOPEN_USE_FP32=1 -DSIZE=%d -mcpu=gfx1030"


def rows(codes, fault):
    for number, path in enumerate(codes):
        code = open(path, "rb").read()
        name, options = "Kernel%d.cl.obj" % number, OPTIONS % number
        blob, size = bz2.compress(code), len(code)
        digest = hashlib.md5(code).hexdigest()
        if number == 1:
            # As MIOpen stores what bzip2 does not make smaller.
            blob, size = code, 0
        if number == 0 and fault == "hash":
            digest = hashlib.md5(b"other").hexdigest()
        if number == 0 and fault == "size":
            size -= 1
        if number == 0 and fault == "claim":
            size = 1 << 40
        if number == 0 and fault == "negative":
            size = -1
        if number == 0 and fault == "packed":
            blob = blob[: len(blob) // 2]
        if number == 0 and fault == "gpu":
            options = options.replace("gfx1030", "gfx900")
        if number == 0 and fault == "no-gpu":
            options = options.replace(" -mcpu=gfx1030", "")
        if number == 0 and fault == "named-twice":
            options = options.replace("-DSIZE", "-DDEVICE=gfx1030 -DSIZE")
        if number == 0 and fault == "text":
            blob, size = "text", 0
        if number == 0 and fault == "no-code":
            blob, size, digest = b"no code", 0, hashlib.md5(b"no code").hexdigest()
        yield number * 3 + 1, name, options, blob, digest, size


def make(path, fault, codes):
    database = sqlite3.connect(path)
    hash_column = "checksum" if fault == "column" else "kernel_hash"
    database.execute(
        "CREATE TABLE `kern_db` (`id` INTEGER PRIMARY KEY ASC,`kernel_name` TEXT NOT NULL,`kernel_args` TEXT NOT NULL,"
        "`kernel_blob` BLOB NOT NULL,`%s` TEXT NOT NULL,`uncompressed_size` INT NOT NULL)" % hash_column
    )
    database.execute("CREATE UNIQUE INDEX `idx_kern_db` ON kern_db(kernel_name, kernel_args)")
    if fault == "table":
        database.execute("CREATE TABLE other (x INT)")
    if fault == "trigger":
        database.execute("CREATE TRIGGER t AFTER INSERT ON kern_db BEGIN DELETE FROM kern_db; END")
    # Rows out of order, and free pages: neither may be seen in the result.
    for row in reversed(list(rows(codes, fault))):
        database.execute("INSERT INTO kern_db VALUES(?, ?, ?, ?, ?, ?)", row)
    database.execute("INSERT INTO kern_db VALUES(1000, 'gone', 'gone', ?, '', 0)", (b"\0" * 50000,))
    database.commit()
    database.execute("DELETE FROM kern_db WHERE id = 1000")
    database.commit()
    database.close()


def read(path):
    database = sqlite3.connect("file:" + path + "?mode=ro", uri=True)
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    for number, name, options, blob, digest, size in database.execute("SELECT * FROM kern_db ORDER BY id"):
        code = blob if size == 0 else bz2.decompress(blob)
        assert size in (0, len(code)) and digest == hashlib.md5(code).hexdigest(), name
        # The question that MIOpen asks.
        query = "SELECT id FROM kern_db WHERE (kernel_name = ?) AND (kernel_args = ?)"
        assert database.execute(query, (name, options)).fetchall() == [(number,)]
        print(number, name, options.replace(" ", "_"), code.hex())


if sys.argv[1] == "make":
    make(sys.argv[2], sys.argv[3], sys.argv[4:])
else:
    read(sys.argv[2])
