#!/bin/sh
# demo.sh DS4 MODEL: three prompts that the demo model can answer, then, on a terminal, a chat with it.
set -e
ds4=$1 model=$2

# ask TITLE PROMPT OPTIONS...
ask() {
    title=$1 prompt=$2
    shift 2
    printf '\n== %s\n\n' "$title"
    printf '%s\n' "$prompt" | sed 's/^/> /'
    printf '\n'
    "$ds4" -m "$model" -p "$prompt" --system "" --temp 0 "$@"
}

ask "A story" "Tell me a story about a fox who lost a lamp." --nothink
ask "A fact from the text" "Remember this:
Anna=42
Bruno=917
Silver=308
River=65
Olga=771

What is the value of Silver?" --nothink
ask "A sum, with thinking" "What is 47 + 38?" --think

if [ -t 0 ] && [ -t 1 ]; then
    printf '\n== Your turn (it thinks first, and knows little: stories, small sums, facts you tell it; Ctrl+D leaves)\n\n'
    exec "$ds4" -m "$model" --system "" --temp 0 --think
fi
