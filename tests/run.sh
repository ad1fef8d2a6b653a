#!/bin/sh
# Runs the test programs given (from the repository root), adds up what cmocka reports, shows the output of those that
# fail and ends with "N passed, N failed[, N skipped]". A program that ends without a report, or that is still running
# after TEST_SECONDS (900; where there is a timeout command), counts as one failure.
# RUNNER: command before every program (an emulator).
passed=0 failed=0 skipped=0
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT

# Sum of the numbers in lines "[  WORD  ] N test(s)...".
count() { sed -n "s/^\[ *$1 *\] \([0-9][0-9]*\) test(s).*/\1/p" "$out" | awk '{ n += $1 } END { print n + 0 }'; }

# In the foreground Ctrl-C still reaches the program.
limit=${TEST_SECONDS:-900}
stop=
timeout --foreground 9 true 2>/dev/null && stop="timeout --foreground -k 9 $limit"

for t in "$@"; do
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
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done
tail=
[ $skipped -gt 0 ] && tail=", $skipped skipped"
echo "$passed passed, $failed failed$tail"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
