#!/bin/sh
# fuzz_all.sh FOLDER SECONDS SEED NAME...: fuzzes FOLDER/fuzz_NAME for SECONDS each, starting from corpus/NAME, as many
# at a time as there are processors, and ends with "N passed, N failed". SEED 0 is another one each time. NAME.dict holds
# words to try. New inputs stay in a scratch folder; an input that crashes is left in the current folder.

# One target: a file DIR/NAME.passed if nothing was found.
if [ "$1" = --one ]; then
    dir=$2 folder=$3 seconds=$4 seed=$5 name=$6
    mkdir -p "$dir/$name" "tests/fuzz/corpus/$name"
    words=
    [ -f "tests/fuzz/$name.dict" ] && words="-dict=tests/fuzz/$name.dict"
    if "$folder/fuzz_$name" $words -seed="$seed" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -print_final_stats=0 \
        -artifact_prefix="crash-$name-" "$dir/$name" "tests/fuzz/corpus/$name" >"$dir/$name.log" 2>&1; then
        touch "$dir/$name.passed"
    else
        echo "---- fuzz_$name"
        tail -n 40 "$dir/$name.log"
    fi
    exit 0
fi

folder=$1 seconds=$2 seed=$3
shift 3
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
printf '%s\n' "$@" | xargs -n 1 -P "$(getconf _NPROCESSORS_ONLN)" "$0" --one "$dir" "$folder" "$seconds" "$seed"
passed=$(ls "$dir" | grep -c '\.passed$')
echo "$passed passed, $(($# - passed)) failed"
[ "$passed" -eq $# ]
