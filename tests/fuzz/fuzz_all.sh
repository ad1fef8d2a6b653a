#!/bin/sh
# fuzz_all.sh FOLDER SECONDS SEED NAME...: fuzzes FOLDER/fuzz_NAME for SECONDS each, starting from corpus/NAME, and ends with
# "N passed, N failed". SEED 0 is another one each time. NAME.dict holds words to try. New inputs stay in a scratch folder; an input that
# crashes is left in the current folder.
folder=$1 seconds=$2 seed=$3
shift 3
passed=0 failed=0
for name in "$@"; do
    scratch=$(mktemp -d) || exit 1
    mkdir -p "tests/fuzz/corpus/$name"
    words=
    [ -f "tests/fuzz/$name.dict" ] && words="-dict=tests/fuzz/$name.dict"
    if "$folder/fuzz_$name" $words -seed="$seed" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -print_final_stats=0 \
        -artifact_prefix="crash-$name-" "$scratch" "tests/fuzz/corpus/$name" >"$scratch.log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "---- fuzz_$name"
        tail -n 40 "$scratch.log"
    fi
    rm -rf "$scratch" "$scratch.log"
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
