#!/bin/sh
# ds4 against programs of others, which come from npm: run.sh BUILD [SHAPES]. Ends with "N passed, N failed[, N skipped]";
# what cannot be had here (node, the packages) is skipped, and said.
set -u
here=$(dirname "$0") build=$1 shapes=${2:-}
passed=0 failed=0 skipped=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

finish() {
    tail=
    [ $skipped -gt 0 ] && tail=", $skipped skipped"
    echo "$passed passed, $failed failed$tail"
    [ $failed -eq 0 ]
    exit
}
skip() {
    echo "skipped: $1"
    skipped=$((skipped + $2))
}
# Adds up the last line of a program; one that ends without such a line counts as one failure.
part() {
    title=$1
    shift
    echo "==== $title"
    "$@" >"$work/out"
    rc=$?
    last=$(tail -n 1 "$work/out")
    case $last in
    *" passed, "*" failed")
        sed '$d' "$work/out"
        f=${last#* passed, }
        passed=$((passed + ${last%% passed*})) failed=$((failed + ${f% failed}))
        ;;
    *)
        cat "$work/out"
        echo "ended with status $rc"
        failed=$((failed + 1))
        ;;
    esac
}

command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1 || { skip "node and npm are not installed" 2; finish; }
[ "$(node -p 'process.versions.node.split(".")[0]')" -ge 20 ] || { skip "node $(node --version) is older than 20" 2; finish; }
# The lock file names versions and hashes; scripts of the packages are not run.
if ! cmp -s "$here/package-lock.json" "$here/node_modules/.lock" 2>/dev/null; then
    (cd "$here" && npm ci --ignore-scripts --no-audit --no-fund) >"$work/npm" 2>&1 || {
        tail -n 3 "$work/npm"
        skip "npm could not install the packages" 2
        finish
    }
    cp "$here/package-lock.json" "$here/node_modules/.lock"
fi

part "real vocabulary" node "$here/vocabulary.mjs" "$build/tests/peer/encode" "$work"
case $(uname -sm) in
"Linux x86_64" | "Linux aarch64") part "peer engine" node "$here/engine.mjs" "$build/ds4" "$build/tests/peer/write_models" "$work" $shapes ;;
*) skip "no build of the peer engine for $(uname -sm)" 1 ;;
esac
finish
