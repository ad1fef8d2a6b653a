// Coding agents, each without a terminal through a whole turn: it asks, runs the tool, sends the result and shows the
// answer. agents.mjs SERVER FOLDER_OF_PACKAGES. Run it where only the loopback network is there (run.sh).
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { MODEL, check, dsml, finish, scratch, serve, skip } from "./support.mjs";

const [binary, packages] = process.argv.slice(2);
const modules = resolve(packages, "node_modules"), PROMPT = "List the files in this folder and say how many there are. MARK-FILES";
const ANSWER = "There are two files, and one of them is a zebra.";

process.setMaxListeners(0);

// Tools of the agents that run a command, by the words with which a prompt offers them.
const script = [
  { when: ["MARK-FILES", "<tool_result>", "zebra.txt"], text: "I have seen them.</think>" + ANSWER, times: 0 },
  ...[["exec_command", { cmd: "ls -1" }], ["run_shell_command", { command: "ls -1", is_background: false, description: "List files" }],
    ["Bash", { command: "ls -1", description: "List files" }], ["bash", { command: "ls -1", description: "List files" }]].map(([name, input]) => (
    { when: ["MARK-FILES", `"name": "${name}"`], text: "I should list the folder.</think>I will look." + dsml({ name, input }), cuts: 3, times: 0 })),
  { text: "A title.</think>Listing files", times: 0 },
];

const opencode = npm => ({
  name: "opencode-ai", program: `opencode-${process.platform}-${process.arch}/bin/opencode`, args: ["run", "-m", `ds4/${MODEL}`, PROMPT],
  env: { OPENCODE_DISABLE_AUTOUPDATE: "1", OPENCODE_DISABLE_MODELS_FETCH: "1", OPENCODE_DISABLE_LSP_DOWNLOAD: "1" },
  files: url => ({ ".config/opencode/opencode.json": JSON.stringify({ autoupdate: false, share: "disabled", provider: { ds4: { npm, name: "ds4", options: { baseURL: url + "/v1", apiKey: "x" }, models: { [MODEL]: { name: MODEL, reasoning: true, tool_call: true, interleaved: { field: "reasoning_content" }, limit: { context: 131072, output: 8192 } } } } } }) }),
});
const pi = api => ({
  name: "@mariozechner/pi-coding-agent", program: "@mariozechner/pi-coding-agent/dist/cli.js", env: { PI_OFFLINE: "1" },
  args: ["-p", "--provider", "ds4", "--model", MODEL, "--thinking", "high", PROMPT],
  files: url => ({ ".pi/agent/models.json": JSON.stringify({ providers: { ds4: { baseUrl: api === "anthropic-messages" ? url : url + "/v1", api, apiKey: "x", models: [
    { id: MODEL, reasoning: true, input: ["text"], contextWindow: 131072, maxTokens: 8192, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } }] } } }) }),
});
const agents = {
  "codex": {
    name: "@openai/codex", program: "@openai/codex/bin/codex.js", args: ["exec", "--skip-git-repo-check", "-s", "danger-full-access", PROMPT], env: { DS4_API_KEY: "x" },
    files: url => ({ ".codex/config.toml": `model = "${MODEL}"\nmodel_provider = "ds4"\ncheck_for_update_on_startup = false\n[analytics]\nenabled = false\n[model_providers.ds4]\nname = "ds4"\nbase_url = "${url}/v1"\nenv_key = "DS4_API_KEY"\nwire_api = "responses"\n` }),
  },
  "codex, as a local provider": {
    name: "@openai/codex", program: "@openai/codex/bin/codex.js", args: ["exec", "--oss", "--local-provider", "lmstudio", "-m", MODEL, "--skip-git-repo-check", "-s", "danger-full-access", PROMPT],
    env: url => ({ CODEX_OSS_BASE_URL: url + "/v1" }),
    files: () => ({ ".codex/config.toml": "check_for_update_on_startup = false\n[analytics]\nenabled = false\n" }),
  },
  "claude-code": {
    name: "@anthropic-ai/claude-code", program: "@anthropic-ai/claude-code/bin/claude.exe", setup: "@anthropic-ai/claude-code/install.cjs", args: ["-p", PROMPT, "--allowedTools", "Bash(ls:*)"],
    env: url => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "x", ANTHROPIC_MODEL: MODEL, CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", DISABLE_AUTOUPDATER: "1", DISABLE_TELEMETRY: "1" }),
  },
  "opencode, Chat": opencode("@ai-sdk/openai-compatible"),
  "opencode, Messages": opencode("@ai-sdk/anthropic"),
  "opencode, Responses": opencode("@ai-sdk/openai"),
  "pi, Chat": pi("openai-completions"),
  "pi, Responses": pi("openai-responses"),
  "pi, Messages": pi("anthropic-messages"),
  "qwen-code": {
    name: "@qwen-code/qwen-code", program: "@qwen-code/qwen-code/cli.js",
    args: url => ["--auth-type", "openai", "--openai-api-key", "x", "--openai-base-url", url + "/v1", "-m", MODEL, "--yolo", PROMPT],
  },
};

const given = (value, url) => typeof value === "function" ? value(url) : value || {};

// Why an agent cannot be started on this machine, or nothing.
function missing(agent) {
  const program = join(modules, agent.program);
  if (agent.setup && existsSync(join(modules, agent.setup)) && statSync(program, { throwIfNoEntry: false })?.size < 1e6)
    spawnSync(process.execPath, [join(modules, agent.setup)], { cwd: dirname(join(modules, agent.setup)), timeout: 120000 });
  if (!existsSync(program)) return `${agent.name} has no program for ${process.platform} ${process.arch}`;
  const start = command(agent, ["--version"]), r = spawnSync(start[0], start[1], { timeout: 120000, encoding: "utf8", env: { PATH: process.env.PATH, HOME: "/nonexistent" } });
  if (r.error) return `it does not start: ${r.error.message}`;
}
const command = (agent, args) => {
  const program = join(modules, agent.program);
  return /\.(c|m)?js$/.test(program) ? [process.execPath, [program, ...args]] : [program, args];
};

// Runs it in a home of its own, with a process group of its own, which ends with it or after so many seconds.
function run(agent, url, seconds) {
  const home = scratch(), project = join(home, "project");
  mkdirSync(project);
  writeFileSync(join(project, "zebra.txt"), "stripes\n");
  writeFileSync(join(project, "main.py"), "print(1)\n");
  for (const [path, text] of Object.entries(given(agent.files, url))) { mkdirSync(dirname(join(home, path)), { recursive: true }); writeFileSync(join(home, path), text); }
  const [program, args] = command(agent, Array.isArray(agent.args) ? agent.args : agent.args(url));
  const child = spawn(program, args, { cwd: project, detached: true, stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: process.env.PATH, HOME: home, TMPDIR: home, LANG: "C.UTF-8", TERM: "dumb", ...given(agent.env, url) } });
  const kill = () => { try { process.kill(-child.pid, "SIGKILL"); } catch { /* gone */ } };
  process.on("exit", kill);
  return new Promise((done, fail) => {
    let out = "", err = "", late = false;
    child.stdout.on("data", d => { out += d; });
    child.stderr.on("data", d => { err += d; });
    const timer = setTimeout(() => { late = true; kill(); }, seconds * 1000);
    child.on("error", fail);
    child.on("exit", code => { clearTimeout(timer); kill(); process.off("exit", kill); setTimeout(() => done({ code, out, err, late }), 100); });
  });
}

// What the server's log says of every request: [{ path, prompt, cached }].
const requests = log => [...log.matchAll(/request: POST (\S+) .*?prompt (\d+) tokens, (\d+) cached/g)].map(m => ({ path: m[1], prompt: Number(m[2]), cached: Number(m[3]) }));

for (const [title, agent] of Object.entries(agents)) {
  const why = missing(agent);
  if (why) { skip(title, why); continue; }
  await check(title, async () => {
    const server = await serve(binary, script, ["--ctx", "131072", "--sessions", "2"]);
    try {
      const r = await run(agent, server.url, 240), all = requests(server.log()), say = `${r.out}\n${r.err}\n${server.log()}`.slice(-5000);
      assert(!r.late, "it did not end: " + say);
      assert(r.out.includes(ANSWER), "the answer was not shown: " + say);
      const second = all.reduce((a, q) => q.cached > a.cached ? q : a, { cached: 0 });
      const first = all.reduce((a, q) => q.prompt < second.prompt && q.prompt > a.prompt ? q : a, { prompt: 0 });
      assert(first.prompt && second.prompt, say);
      console.log(`        ${all.map(q => `${q.prompt} tokens (${q.cached} cached)`).join(", ")}`);
      assert(second.cached >= 0.95 * first.prompt, say);
    } finally { await server.stop(); }
  }, 300);
}
finish();
