#!/bin/sh
# No function or object of one of these libraries is called like one of another: programs that are linked with both would
# take either, or not link. check_symbols.sh LIBRARY...
set -eu
for lib; do ${NM:-nm} -g "$lib" 2>/dev/null | awk 'NF == 3 && $2 ~ /^[A-TV-Z]$/ { print $3 }' | sort -u; done | sort | uniq -d |
    awk '{ print "two libraries define " $0; n++ } END { exit n > 0 }'
