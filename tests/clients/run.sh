#!/bin/sh
# ds4-server with the libraries, the browser and the agents that its users have: run.sh BUILD [PART]. PART: sdk, recorded,
# page or agents. Ends with "N passed, N failed[, N skipped]"; what cannot be had here is skipped, and said.
set -u
here=$(dirname "$0") build=$1 only=${2:-}
. "$here/../npm_parts.sh"
server=$build/ds4-server
wanted() { [ -z "$only" ] || [ "$only" = "$1" ]; }

have_node 1
if wanted sdk || wanted page; then
    install "$here" || { skip "npm could not install the client libraries" 1; finish; }
fi
if wanted sdk; then
    part "openai" node "$here/sdk_openai.mjs" "$server"
    part "@anthropic-ai/sdk" node "$here/sdk_anthropic.mjs" "$server"
    part "AI SDK" node "$here/sdk_vercel.mjs" "$server"
fi
wanted recorded && part "recorded requests of agents" node "$here/recorded.mjs" "$server"
if wanted page; then
    if "$here/../../tools/deps.sh" chromium; then
        part "the web page" node "$here/page.mjs" "$server" "$build/clients"
        part "injection and long answers" node "$here/injection.mjs" "$server"
    else
        skip "no Chromium can be had here" 2
    fi
fi
# Agents are programs of others: they see no network but the loopback one.
if wanted agents; then
    if ! unshare -rn sh -c 'ip link set lo up' 2>/dev/null; then
        skip "agents: no network of their own can be made here (unshare -rn)" 1
    elif install "$here/agents"; then
        part "agents" unshare -rn sh -c 'ip link set lo up && exec "$@"' - node "$here/agents.mjs" "$server" "$here/agents"
    else
        skip "npm could not install the agents" 1
    fi
fi
finish
