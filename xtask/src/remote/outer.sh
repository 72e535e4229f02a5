# In private mount and process namespaces: a root directory for the client, two for engines, each an overlay over the userland.
# $1: the directory of the task, $2: the userland. Only the first step, the installation of BuildBox, has a network.
D=$1
mkdir -p "$D/lower" "$D/work"
inside() { # NAME SCRIPT ARGUMENTS…: runs a script of /mnt in the root directory NAME, which is the namespace's own root
    unshare --mount --propagation private /bin/sh -e "$D/shared/root.sh" "$D" "$ROOT" "$@"
}
ROOT=$2
inside base install buildbox
ip=$(command -v ip)
exec unshare --net /bin/sh -ec '
"$4" link set lo up
inside() { unshare --mount --propagation private /bin/sh -e "$1/shared/root.sh" "$1" "$2" "$3" "$4" $5; }
inside "$1" "$2" client stage
inside "$1" "$2" engine-1 engine 1 & one=$!
inside "$1" "$2" engine-2 engine 2 & other=$!
inside "$1" "$2" client client
kill $one $other
' sh "$D" "$ROOT" "$D/lower" "$ip"
