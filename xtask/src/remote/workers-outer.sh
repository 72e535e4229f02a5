# In private mount and process namespaces. $1: the directory of the task, $2: the userland. Only the installation has a network.
D=$1
mkdir -p "$D/lower" "$D/work"
unshare --mount --propagation private /bin/sh -e "$D/shared/root.sh" "$D" "$2" base install mount bubblewrap distcc
ip=$(command -v ip)
exec unshare --net /bin/sh -ec '
"$3" link set lo up
exec unshare --mount --propagation private /bin/sh -e "$1/shared/root.sh" "$1" "$2" client workers
' sh "$D" "$2" "$ip"
