#!/bin/sh
# ds4 against programs of others, which come from npm: run.sh BUILD [SHAPES]. Ends with "N passed, N failed[, N skipped]";
# what cannot be had here (node, the packages) is skipped, and said.
set -u
here=$(dirname "$0") build=$1 shapes=${2:-0}
. "$here/../npm_parts.sh"

have_node 3
install "$here" || { skip "npm could not install the packages" 3; finish; }
# llama.cpp's library for processors with AMX aborts on models with experts; without it the one for Ice Lake is taken.
rm -f "$here/node_modules/@node-llama-cpp/linux-x64/bins/linux-x64/libggml-cpu-sapphirerapids.so"

part "the vocabulary of DeepSeek V3" node "$here/vocabulary.mjs" deepseek "$build/tests/peer/encode" "$work"
part "the vocabulary of Qwen3, split as by Qwen3.8" node "$here/vocabulary.mjs" qwen "$build/tests/peer/encode" "$work"
case $(uname -sm) in
"Linux x86_64" | "Linux aarch64") part "peer engine" node "$here/engine.mjs" "$build/ds4" "$work" "$shapes" "$build/tests/peer/write_deepseek4" "$build/tests/peer/write_qwen38" "$build/tests/peer/write_types" ;;
*) skip "no build of the peer engine for $(uname -sm)" 1 ;;
esac
finish
