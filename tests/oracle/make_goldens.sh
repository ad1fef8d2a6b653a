#!/bin/sh
# Runs the independent float64 implementation on every model of write_models: make_goldens.sh WRITE_MODELS FOLDER PYTHON
set -eu
write_models=$1 folder=$2 python=$3
here=$(dirname "$0")
mkdir -p "$folder"
"$write_models" "$folder" | while read -r name ids; do
    "$python" "$here/deepseek4_ref.py" "$folder/$name.gguf" "$ids" "$folder/off.npy"
    "$python" "$here/deepseek4_ref.py" "$folder/$name.gguf" "$ids" "$folder/on.npy" --sim
    "$python" -c 'import sys, numpy as np
np.concatenate([np.load(p) for p in sys.argv[2:]]).astype("<f4").tofile(sys.argv[1])' "tests/golden/oracle_$name.bin" "$folder/off.npy" "$folder/on.npy"
    echo "$name"
done
