# In private mount and process namespaces: one root directory for Bazel, one for the engine. $1: the directory of the task, $2: the
# userland. Only the installation has a network.
D=$1
mkdir -p "$D/lower" "$D/work"
unshare --mount --propagation private /bin/sh -e "$D/shared/root.sh" "$D" "$2" base install buildbox bazel-bootstrap python3-grpcio
ip=$(command -v ip)
exec unshare --net /bin/sh -ec '
"$3" link set lo up
inside() { unshare --mount --propagation private /bin/sh -e "$1/shared/root.sh" "$1" "$2" "$3" "$4" $5; }
inside "$1" "$2" client stage
inside "$1" "$2" engine engine 2 & engine=$!
inside "$1" "$2" client bazel
kill $engine
' sh "$D" "$2" "$ip"
