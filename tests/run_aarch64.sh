#!/bin/sh
# Runs the test programs given (built for 64-bit ARM) in an emulator, on one processor per kernel set, and ends with the
# line "N passed, N failed[, N skipped]" over all of them. TEST_ISA tells the tests which set must be the best one there.
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64) || { echo "no qemu-aarch64" >&2; exit 1; }
passed=0 failed=0 skipped=0
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT

# The number before a word of the last line; 0 if it is not there.
total() { n=$(tail -n 1 "$out" | sed -n "s/^\(.*, \)\{0,1\}\([0-9][0-9]*\) $1.*/\2/p"); echo "${n:-0}"; }

for processor in cortex-a53:neon cortex-a76:neon-dotprod max:neon-i8mm; do
    RUNNER="$qemu -cpu ${processor%%:*}" TEST_ISA=${processor#*:} tests/run.sh "$@" >"$out" 2>&1
    sed "\$s/^/${processor#*:}: /" "$out"
    passed=$((passed + $(total passed))) failed=$((failed + $(total failed))) skipped=$((skipped + $(total skipped)))
done
tail=
[ $skipped -gt 0 ] && tail=", $skipped skipped"
echo "$passed passed, $failed failed$tail"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
