# In private mount and process namespaces. $1: the directory of the task, $2: the userland. Only the installation has a network.
D=$1
unshare --mount --propagation private /bin/sh -e "$D/shared/root.sh" "$D" "$2" base install \
    mount meson scons autoconf automake libtool make pkgconf >&2
exec unshare --net --mount --propagation private /bin/sh -e "$D/shared/root.sh" "$D" "$2" client probes
