// What every client test needs: a scripted ds4-server, the words of a model that calls a tool, and checks that are counted.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const MODEL = "deepseek-v4-flash";

// A folder of this run that goes with it.
export function scratch() {
  const dir = mkdtempSync(join(tmpdir(), "ds4-clients-"));
  process.on("exit", () => rmSync(dir, { recursive: true, force: true, maxRetries: 3 }));
  return dir;
}

const free_port = () => new Promise((done, fail) => {
  const s = createServer();
  s.on("error", fail);
  s.listen(0, "127.0.0.1", () => { const { port } = s.address(); s.close(() => done(port)); });
});

// Starts a server on a free port. lines: the scripted generations (objects). Answers { url, log(), stop() }.
export async function serve(binary, lines, args = []) {
  const dir = mkdtempSync(join(tmpdir(), "ds4-clients-")), file = join(dir, "script.jsonl");
  writeFileSync(file, lines.map(l => JSON.stringify(l)).join("\n") + "\n");
  const port = await free_port(), url = `http://127.0.0.1:${port}`;
  const child = spawn(binary, ["--scripted", file, "--port", String(port), ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let log = "", over = false;
  child.stdout.on("data", d => { log += d; });
  child.stderr.on("data", d => { log += d; });
  const ended = new Promise(done => child.on("exit", () => { over = true; done(); }));
  const kill = () => { if (!over) child.kill("SIGKILL"); };
  process.on("exit", kill);
  const stop = async () => {
    if (!over) child.kill("SIGTERM");
    const late = setTimeout(kill, 10000);
    await ended;
    clearTimeout(late);
    process.off("exit", kill);
    rmSync(dir, { recursive: true, force: true });
  };
  for (const start = Date.now(); ;) {
    if (over || Date.now() - start > 60000) { await stop(); throw new Error("the server did not start: " + log); }
    const ok = await fetch(url + "/health").then(r => r.ok, () => false);
    if (ok) return { url, log: () => log, stop };
    await new Promise(done => setTimeout(done, 50));
  }
}

// A tool call as the model writes it; every argument that is not a string is JSON.
export function dsml(...calls) {
  const block = calls.map(({ name, input }) => `<｜DSML｜invoke name="${name}">\n` + Object.entries(input).map(([k, v]) =>
    `<｜DSML｜parameter name="${k}" string="${typeof v === "string"}">${typeof v === "string" ? v : JSON.stringify(v)}</｜DSML｜parameter>\n`).join("") +
    "</｜DSML｜invoke>\n").join("");
  return `\n\n<｜DSML｜tool_calls>\n${block}</｜DSML｜tool_calls>`;
}

let passed = 0, failed = 0, skipped = 0;
const WANTED = process.env.ONLY;

// One check with a time limit; what it throws is printed.
export async function check(title, run, seconds = 60) {
  if (WANTED && !title.includes(WANTED)) return;
  let timer;
  const late = new Promise((_, fail) => { timer = setTimeout(() => fail(new Error(`not over after ${seconds} s`)), seconds * 1000); });
  try {
    await Promise.race([run(), late]);
    passed++;
    console.log(`ok      ${title}`);
  } catch (e) {
    failed++;
    console.log(`FAILED  ${title}: ${e?.stack || e}`);
  }
  clearTimeout(timer);
}
export function skip(title, why) {
  skipped++;
  console.log(`skipped: ${title}: ${why}`);
}
export function finish() {
  console.log(`${passed} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ""}`);
  process.exit(failed ? 1 : 0);
}

// The members of an interface in a declaration file, and those that docs/server.md says nothing about.
export function unmentioned(file, name) {
  const text = readFileSync(file, "utf8").replace(/\/\*[\s\S]*?\*\//g, ""), docs = readFileSync(new URL("../../docs/server.md", import.meta.url), "utf8");
  const head = new RegExp(`interface ${name}\\b[^{]*\\{`).exec(text), fields = [];
  let depth = 1;
  for (const line of text.slice(head.index + head[0].length).split("\n")) {
    if (depth === 1) fields.push(...line.matchAll(/^\s*(\w+)\??:/g));
    depth += (line.match(/[{(]/g) ?? []).length - (line.match(/[})]/g) ?? []).length;
    if (depth < 1) break;
  }
  const names = fields.map(f => f[1]);
  return { names, unknown: names.filter(n => !new RegExp("`(?:[\\w.]+\\.)?" + n + "\\b").test(docs)) };
}
