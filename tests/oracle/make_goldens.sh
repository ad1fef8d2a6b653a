#!/bin/sh
# Runs the independent float64 implementations on every model of write_models and on the demo model:
# make_goldens.sh WRITE_MODELS DEMO.gguf FOLDER PYTHON
set -eu
write_models=$1 demo=$2 folder=$3 python=$4
here=$(dirname "$0")
mkdir -p "$folder"

# join OUT IN.npy...: the arrays one after the other as little-endian float32
join() {
    "$python" -c 'import sys, numpy as np
np.concatenate([np.load(p) for p in sys.argv[2:]]).astype("<f4").tofile(sys.argv[1])' "$@"
}

deepseek4() {
    "$python" "$here/deepseek4_ref.py" "$folder/$1.gguf" "$2" "$folder/off.npy"
    "$python" "$here/deepseek4_ref.py" "$folder/$1.gguf" "$2" "$folder/on.npy" --sim
    join "tests/golden/oracle_$1.bin" "$folder/off.npy" "$folder/on.npy"
}

# Stored rows in float64, then in F16; the draft block's logits behind them.
qwen38() {
    name=$1 ids=$2 more= mtp=
    [ "$3" = 1 ] || more="--yarn $3"
    [ "$4" = 0 ] || mtp="--mtp $folder/mtp.npy"
    shift 4
    for grid; do more="$more --span $grid"; done
    # shellcheck disable=SC2086
    "$python" "$here/qwen38_ref.py" "$folder/$name.gguf" "$ids" "$folder/off.npy" $more $mtp
    # shellcheck disable=SC2086
    "$python" "$here/qwen38_ref.py" "$folder/$name.gguf" "$ids" "$folder/on.npy" --kv16 $more
    join "tests/golden/qwen38_$name.bin" "$folder/off.npy" "$folder/on.npy" ${mtp:+"$folder/mtp.npy"}
}

"$write_models" "$folder" | while read -r family name ids rest; do
    # shellcheck disable=SC2086
    "$family" "$name" "$ids" $rest
    echo "$family $name"
done
"$python" "$here/quant_goldens.py" tests/golden/quant_types.txt
"$python" "$here/demo_goldens.py" "$demo" "$folder" tests/golden/demo_oracle.bin
