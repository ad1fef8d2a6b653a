#!/bin/sh
# Runs the test programs given (from the repository root), adds up what cmocka reports, shows the output of those that
# fail and ends with "N passed, N failed[, N skipped]". A program that ends without a report, or that is still running
# after TEST_SECONDS (900; where there is a timeout command), counts as one failure.
# RUNNER: command before every program (an emulator). TEST_JOBS: programs at a time (as many as there are processors, at
# most 4); those of tests/e2e start servers and measure times: they run last, one after another.

# One program: its output goes to DIR/N.out, its counts to DIR/N.count.
if [ "$1" = --one ]; then
    out=$2/$3.out t=$4
    # Sum of the numbers in lines "[  WORD  ] N test(s)...".
    count() { sed -n "s/^\[ *$1 *\] \([0-9][0-9]*\) test(s).*/\1/p" "$out" | awk '{ n += $1 } END { print n + 0 }'; }

    # In the foreground Ctrl-C still reaches the program.
    limit=${TEST_SECONDS:-900}
    stop=
    timeout --foreground 9 true 2>/dev/null && stop="timeout --foreground -k 9 $limit"
    begun=$(date +%s)
    $stop ${RUNNER:-} "$t" >"$out" 2>&1 </dev/null
    rc=$?
    [ -n "$stop" ] && [ $rc -eq 124 ] && echo "stopped after $limit s" >>"$out"
    p=$(count PASSED) f=$(count FAILED) s=$(count SKIPPED)
    # Skipped tests are no failure; anything else that ends badly without naming a failed test is one.
    [ $rc -ne 0 ] && [ "$f" -eq 0 ] && f=1
    [ $rc -eq 0 ] && [ $((p + f + s)) -eq 0 ] && f=1 && echo "no test was run" >>"$out"
    if [ "$f" -gt 0 ]; then
        echo "---- $t (exit status $rc)"
        cat "$out"
    fi
    echo "$t: $((p + f + s)) tests, $(($(date +%s) - begun)) s"
    echo "$p $f $s" >"$2/$3.count"
    exit 0
fi

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
[ "$jobs" -gt 4 ] && jobs=4
n=0
for t in "$@"; do
    case $t in
    */e2e/*) list=$dir/alone ;;
    *) list=$dir/together ;;
    esac
    n=$((n + 1))
    printf '%s\n%s\n' "$n" "$t" >>"$list"
done
[ -f "$dir/together" ] && xargs -n 2 -P "${TEST_JOBS:-$jobs}" "$0" --one "$dir" <"$dir/together"
[ -f "$dir/alone" ] && xargs -n 2 "$0" --one "$dir" <"$dir/alone"

set -- $(cat "$dir"/*.count 2>/dev/null | awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0, NR }')
passed=$1 failed=$(($2 + n - $4)) skipped=$3 # a program without counts never ended
tail=
[ "$skipped" -gt 0 ] && tail=", $skipped skipped"
echo "$passed passed, $failed failed$tail"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
