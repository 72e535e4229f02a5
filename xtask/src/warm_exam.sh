# Compiles SOURCE with COMPILER and the options, then twice through HotSwap with warm headers, in the directory of the source.
# Prints `code N`, `equal` or `differs WHAT…`, and the state of the headers that --hotswap-explain says.
compiler=$1 source=$2
shift 2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
compile() {
    kept=$scratch/$1
    shift
    mkdir "$kept"
    "$@" -x hip -c "$source" -MD -MF "$scratch/d" -o "$scratch/o" >"$kept/messages" 2>&1
    echo $? >"$kept/code"
    [ ! -e "$scratch/o" ] || mv "$scratch/o" "$kept/object"
    [ ! -e "$scratch/d" ] || tr -d '\\' <"$scratch/d" | tr ' ' '\n' | grep . | sort -u >"$kept/names"
    rm -f "$scratch/d"
}
compile clang "$compiler" "$@"
export HOTSWAP_CLANG=$compiler
compile first hotswap-clang++ -fhotswap-warm-headers "$@"
compile second hotswap-clang++ -fhotswap-warm-headers "$@"
echo "code $(cat "$scratch/clang/code")"
cd "$scratch" || exit 1
if differences=$(diff -rq clang first && diff -rq clang second); then echo equal; else echo "differs $(echo "$differences" | tr '\n' ' ')"; fi
cd "$OLDPWD" || exit 1
hotswap-clang++ -fhotswap-warm-headers --hotswap-explain "$@" -x hip -c "$source" -o "$scratch/o" 2>/dev/null | grep '^warm headers: '
true
