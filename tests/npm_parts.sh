# For scripts that try ds4 with what npm installs. Parts are programs that end with "N passed, N failed[, N skipped]"; finish
# prints their sum in that form.
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
# skip WHY HOW_MANY
skip() {
    echo "skipped: $1"
    skipped=$((skipped + $2))
}
# part TITLE COMMAND...: adds up the last line of a program; one that ends without such a line counts as one failure.
part() {
    title=$1
    shift
    echo "==== $title"
    "$@" >"$work/out"
    rc=$?
    last=$(tail -n 1 "$work/out")
    case $last in
    *" passed, "*" failed"*)
        sed '$d' "$work/out"
        f=${last#* passed, }
        passed=$((passed + ${last%% passed*})) failed=$((failed + ${f%% failed*}))
        case $f in *" skipped") s=${f#*, } && skipped=$((skipped + ${s% skipped})) ;; esac
        ;;
    *)
        cat "$work/out"
        echo "ended with status $rc"
        failed=$((failed + 1))
        ;;
    esac
}
# have_node HOW_MANY: ends the run, with that many skipped, where node is missing or too old.
have_node() {
    command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1 || { skip "node and npm are not installed" "$1"; finish; }
    [ "$(node -p 'process.versions.node.split(".")[0]')" -ge 20 ] || { skip "node $(node --version) is older than 20" "$1"; finish; }
}
# install FOLDER: the packages of its lock file, which names versions and hashes; scripts of the packages are not run.
install() {
    cmp -s "$1/package-lock.json" "$1/node_modules/.lock" 2>/dev/null && return
    (cd "$1" && npm ci --ignore-scripts --no-audit --no-fund) >"$work/npm" 2>&1 || { tail -n 3 "$work/npm"; return 1; }
    cp "$1/package-lock.json" "$1/node_modules/.lock"
}
