#!/bin/sh
# Runs the independent float64 implementation on every model of write_models and on the demo model:
# make_goldens.sh WRITE_MODELS DEMO.gguf FOLDER PYTHON
set -eu
write_models=$1 demo=$2 folder=$3 python=$4
here=$(dirname "$0")
mkdir -p "$folder"
"$write_models" "$folder" | while read -r name ids; do
    "$python" "$here/deepseek4_ref.py" "$folder/$name.gguf" "$ids" "$folder/off.npy"
    "$python" "$here/deepseek4_ref.py" "$folder/$name.gguf" "$ids" "$folder/on.npy" --sim
    "$python" -c 'import sys, numpy as np
np.concatenate([np.load(p) for p in sys.argv[2:]]).astype("<f4").tofile(sys.argv[1])' "tests/golden/oracle_$name.bin" "$folder/off.npy" "$folder/on.npy"
    echo "$name"
done
"$python" "$here/demo_goldens.py" "$demo" "$folder" tests/golden/demo_oracle.bin
