#!/bin/sh
# Prints every include in src/ and include/ that points upward or sideways, and fails if there is one. A folder may include what has a
# lower rank, and itself; so families, and folders of one rank, never see each other.
find src include -name '*.[ch]' | xargs grep -n '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' /dev/null | awk '
BEGIN {
    split("base quant gguf text dialect device models models/block <family> models/*.c engine", order, " ")
    for (i in order) rank[order[i]] = i + 0
    rank["experts"] = rank["rowtable"] = rank["dialect"]
    rank["include"] = rank["engine"]  # the public header: for the engine and whoever uses it
    rank["kvstore"] = rank["serve"] = rank["agent"] = rank["cluster"] = rank["engine"] + 1
}
# Folder of a path below src/: "base", "device/cpu" -> "device", "models/<family>" whole. The sources right in models/ are
# the list of families and stand above them; the headers there are what a family implements.
function folder(path,   p) {
    split(path, p, "/")
    if (path ~ /^models\/[^\/]*\.c$/) return "models/*.c"
    if (p[1] != "models" || path !~ /^models\/.*\//) return p[1]
    return p[1] "/" p[2]
}
function rank_of(f) {
    if (f in rank) return rank[f]
    return f ~ /^models\// ? rank["<family>"] : 0
}
{
    split($0, part, ":")
    from = part[1]
    sub(/^src\//, "", from)
    to = $0
    sub(/^[^"]*"/, "", to)
    sub(/".*/, "", to)
    if (to == "ds4.h") to = "include/ds4.h"
    if (to !~ /\//) next
    a = folder(from); b = folder(to)
    if (a == b) next
    if (!rank_of(a) || !rank_of(b)) { print part[1] ":" part[2] ": folder without a rank: " a " -> " b; bad = 1 }
    else if (rank_of(b) > rank_of(a) || (rank_of(a) == rank_of(b) && !(a == "engine" && b == "include"))) {
        print part[1] ":" part[2] ": " a " must not include " b; bad = 1
    }
}
END { exit bad }'
