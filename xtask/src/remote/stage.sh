# The input tree: what `hotswap toolchain --files` prints, headers of the host, the example and its plan. It becomes the sandbox's
# root directory.
mkdir -p /opt /var/tmp/tree
cp -a /mnt/hotswap /opt/hotswap
/opt/hotswap/bin/hotswap toolchain --files /usr/lib/llvm-22/bin/clang++ >/var/tmp/files
cd /var/tmp/tree
mkdir -p usr/lib usr/bin src/out tmp lib64
ln -s usr/lib lib
cp -L /lib64/ld-linux-x86-64.so.2 lib64/
sed 's,^/,,' /var/tmp/files | tar -C / -cf - --files-from=- 2>/dev/null | tar -xkf - 2>/dev/null || true
# Headers of the host and of its C++ library, and the directories by which clang finds the latter.
tar -C / --exclude='*.a' --exclude='*.so*' --exclude='cc1*' -cf - usr/include usr/lib/linux usr/lib/gcc/x86_64-linux-gnu |
    tar -xkf - 2>/dev/null || true
cp /mnt/gemm/* src/ 2>/dev/null || true
/opt/hotswap/bin/hotswap plan 'gfx1030=>gfx1031,gfx1032' --out-dir src >/dev/null
mv src/*.plan src/gemm.plan
