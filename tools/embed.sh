#!/bin/sh
# Writes a C file with the bytes of the given files: struct page_file page_files[] (src/serve/page_files.h).
set -eu
type_of() {
    case $1 in
    *.html) echo "text/html; charset=utf-8" ;;
    *.css) echo "text/css; charset=utf-8" ;;
    *.js) echo "text/javascript; charset=utf-8" ;;
    *.svg) echo "image/svg+xml" ;;
    *) echo "embed.sh: no type known for $1" >&2; exit 1 ;;
    esac
}
path_of() { case $1 in */index.html) echo / ;; *) echo "/${1##*/}" ;; esac; }

echo '#include "serve/page_files.h"'
i=0
for f in "$@"; do
    echo "static const unsigned char file_$i[] = {"
    od -An -v -tu1 "$f" | sed 's/ *\([0-9][0-9]*\)/\1,/g'
    echo "};"
    i=$((i + 1))
done
echo "const struct page_file page_files[] = {"
i=0
for f in "$@"; do
    type=$(type_of "$f")
    echo "    {\"$(path_of "$f")\", \"$type\", file_$i, sizeof file_$i},"
    i=$((i + 1))
done
echo "};"
echo "const int n_page_files = $i;"
