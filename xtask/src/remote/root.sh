# root.sh DIRECTORY USERLAND NAME SCRIPT ARGUMENTS…: runs a script in an overlay over the userland that becomes the root directory.
# `install` installs packages. A sandbox needs a real root directory: the kernel allows no user namespace below chroot.
D=$1 U=$2 NAME=$3 SCRIPT=$4
shift 4
mkdir -p "$D/$NAME/upper" "$D/$NAME/work" "$D/$NAME/root"
lower=$U
if [ "$NAME" != base ]; then lower=$D/base/upper:$U; fi
mount -t overlay none -o "lowerdir=$lower,upperdir=$D/$NAME/upper,workdir=$D/$NAME/work" "$D/$NAME/root"
cd "$D/$NAME/root"
mount --rbind /dev dev
mount -t proc proc proc
mount -t tmpfs none tmp
mkdir -p mnt .old
mount --bind "$D/shared" mnt
if [ "$SCRIPT" = install ]; then
    cp -L /etc/resolv.conf etc/resolv.conf 2>/dev/null || true
    exec env DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot . /bin/sh -ec '
        apt-get update -q -o Acquire::Check-Valid-Until=false >/dev/null
        apt-get install -q -y --no-install-recommends "$@" >/dev/null 2>&1' sh "$@"
fi
pivot_root . .old
cd /
umount -l /.old
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LANG=C.UTF-8 /bin/sh -e "/mnt/$SCRIPT.sh" "$@"
