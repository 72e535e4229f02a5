# A machine: a copy of a bare root directory, in which a command runs. Arguments: the bare root, the directory of this machine,
# the Rust toolchain, the sources, their directory, the user, whether there are user namespaces, megabytes of the home or "", the
# change, then the command with `env` and its variables.
set -eu
bare=$1 here=$2 rust=$3 sources=$4 directory=$5 user=$6 namespaces=$7 megabytes=$8 change=$9
shift 9
mkdir -p "$here/root"
mount --bind "$here/root" "$here/root"
cp -a --reflink=auto "$bare/." "$here/root"
cd "$here/root"
mount --rbind /proc proc
mount --rbind /dev dev
cp -L /etc/resolv.conf etc/resolv.conf
mkdir -p opt/rust etc/ssl/certs
mount --bind "$rust" opt/rust
mount --bind /etc/ssl/certs etc/ssl/certs
chroot . useradd --create-home tester
home=home/tester
[ "$user" = ordinary ] || home=root
[ -z "$megabytes" ] || mount -t tmpfs -o "size=${megabytes}m,mode=777" none "$home"
[ ! -e "${CARGO_HOME:-$HOME/.cargo}/config.toml" ] || { mkdir -p "$home/.cargo"; cp "${CARGO_HOME:-$HOME/.cargo}/config.toml" "$home/.cargo/"; }
cp -a "$sources" "$home/$directory"
[ "$user" != ordinary ] || chroot . chown -R tester: /home/tester
[ -z "$change" ] || chroot . /bin/sh -euc "$change" </dev/null
case $user in
    root) rights="" ;;
    ordinary) rights="--reuid tester --regid tester --clear-groups" ;;
    root-without-mounts) rights="--bounding-set -sys_admin --inh-caps -sys_admin" ;;
esac
# Not chroot, in which the kernel gives no user namespaces.
mkdir -p mnt
pivot_root . mnt
cd /
umount -l mnt
if [ "$namespaces" = no ]; then
    # A user namespace with all users in it, and with a limit of none for those in it. The maps must exist before a program
    # starts in it, which has no rights otherwise; so another process makes it.
    unshare --user sleep 10800 &
    holder=$!
    trap 'kill $holder' EXIT
    while [ "$(readlink /proc/$holder/ns/user)" = "$(readlink /proc/$$/ns/user)" ]; do sleep 0.1; done
    echo 0 0 65536 >/proc/$holder/uid_map
    echo 0 0 65536 >/proc/$holder/gid_map
    # shellcheck disable=SC2016,SC2086 # the inner shell's variables; words
    nsenter --user --target $holder /bin/sh -euc 'echo 0 >/proc/sys/user/max_user_namespaces; exec "$@"' sh \
        setpriv $rights env -C "/$home/$directory" "$@"
    exit
fi
# shellcheck disable=SC2086 # words
exec setpriv $rights env -C "/$home/$directory" "$@"
