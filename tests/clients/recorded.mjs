// Requests of coding agents, as they were seen on the wire, in a short form (recorded/*.json): every text is "~N" (N
// characters), tools are those whose schemas differ in kind. Each is sent at the size it had; the turns of a conversation
// must find the prefix of the turn before.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { connect } from "node:net";
import { check, finish, serve } from "./support.mjs";

const here = new URL("./recorded/", import.meta.url);
const WORDS = "the agent reads a file, writes <b>code</b> & runs \"make test\" in /home/user/project; naïve — then: ".split(" ");

// N characters that depend on nothing but N.
function text(n) {
  let out = "", seed = n;
  while (out.length < n) { seed = (seed * 1103515245 + 12345) % 2147483648; out += WORDS[seed % WORDS.length] + (seed % 7 ? " " : "\n"); }
  return out.slice(0, n);
}
const expand = v => typeof v === "string" ? (/^~\d+$/.test(v) ? text(Number(v.slice(1))) : v)
  : Array.isArray(v) ? v.map(expand) : v && typeof v === "object" ? Object.fromEntries(Object.entries(v).map(([k, x]) => [k, expand(x)])) : v;

// What is left out of the tools stands in the description of the first of them.
function requests(file, conversation) {
  const body = { ...conversation.body };
  if ("tools" in body) body.tools = file.tools[body.tools];
  let filler = "";
  return conversation.turns.map(({ bytes, ...history }) => {
    const full = expand({ ...body, ...history }), size = () => Buffer.byteLength(JSON.stringify(full));
    const first = full.tools?.find(t => t.description || t.function?.description), place = first?.function || first;
    if (place) {
      filler ||= text(Math.max(1, Math.round((bytes - size()) * 0.93)));
      place.description += filler;
    }
    const now = size();
    assert(bytes < 3000 || (now > 0.9 * bytes && now < 1.15 * bytes), `${conversation.what}: ${now} bytes, were ${bytes}`);
    return full;
  });
}

async function send(url, path, body, headers = {}) {
  const r = await fetch(url + path, { method: "POST", headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(body) });
  const answer = await r.text();
  assert.equal(r.status, 200, answer.slice(0, 300));
  return { type: r.headers.get("content-type"), answer };
}

// The usage of an answer, streamed or not, as { prompt, cached, completion, end }.
function usage({ type, answer }) {
  const parts = type.startsWith("text/event-stream")
    ? answer.split("\n").filter(l => l.startsWith("data: ") && l !== "data: [DONE]").map(l => JSON.parse(l.slice(6))) : [JSON.parse(answer)];
  const u = { prompt: 0, cached: 0, completion: 0, end: "" };
  for (const p of parts) {
    assert(!p.error && p.type !== "error", JSON.stringify(p).slice(0, 300));
    const x = p.usage || p.response?.usage || p.message?.usage;
    if (x?.prompt_tokens) Object.assign(u, { prompt: x.prompt_tokens, cached: x.prompt_tokens_details.cached_tokens, completion: x.completion_tokens });
    else if (x?.input_tokens_details) Object.assign(u, { prompt: x.input_tokens, cached: x.input_tokens_details.cached_tokens, completion: x.output_tokens });
    else if (x) {
      if (x.input_tokens !== undefined) Object.assign(u, { prompt: x.input_tokens + (x.cache_read_input_tokens || 0) + (x.cache_creation_input_tokens || 0), cached: x.cache_read_input_tokens || 0 });
      u.completion = x.output_tokens;
    }
    u.end = p.choices?.[0]?.finish_reason || p.delta?.stop_reason || p.stop_reason || (p.response?.status !== "in_progress" && p.response?.status) || (p.object === "response" && p.status) || u.end;
  }
  return u;
}

const server = await serve(process.argv[2], [{ text: "I look at it.</think>It is done.", times: 0 }], ["--ctx", "131072", "--sessions", "2"]);

for (const name of readdirSync(here).sort()) {
  const file = JSON.parse(readFileSync(new URL(name, here), "utf8"));
  for (const c of file.conversations) await check(`${file.client}: ${c.what}, ${c.turns.map(t => t.bytes).join(" and ")} bytes`, async () => {
    let before = null;
    for (const body of requests(file, c)) {
      const got = await send(server.url, c.path, body);
      if (c.path.includes("count_tokens")) { assert(JSON.parse(got.answer).input_tokens > 0); continue; }
      const u = usage(got), size = Buffer.byteLength(JSON.stringify(body));
      assert(["stop", "end_turn", "completed"].includes(u.end) || body.max_output_tokens === 1, `ended with ${u.end}`);
      // The scripted engine has four bytes in a token; envelopes and fields that are no text take their share.
      assert(u.prompt < size / 3 + 50 && (size < 3000 || u.prompt > size / 7), `${u.prompt} tokens of ${size} bytes`);
      assert(u.completion > 0 && u.cached < u.prompt, JSON.stringify(u));
      if (before) {
        assert(u.prompt > before.prompt, JSON.stringify([before, u]));
        assert(u.cached >= 0.95 * before.prompt, `${u.cached} of ${u.prompt} tokens from the cache, after a prompt of ${before.prompt}`);
        if (size > 20000) assert(u.cached >= 0.95 * u.prompt, `${u.cached} of ${u.prompt} tokens from the cache`);
      }
      before = u;
    }
  });
}

await check("claude-code: HEAD / at the start", async () => assert.equal((await fetch(server.url + "/", { method: "HEAD" })).status, 200));
await check("codex: the list of models, twice", async () => {
  for (let i = 0; i < 2; i++) assert((await (await fetch(server.url + "/v1/models")).json()).data.length);
});
await check("codex: an attempt at a websocket is 426 at once", async () => {
  const head = await new Promise((done, fail) => {
    const s = connect(Number(new URL(server.url).port), "127.0.0.1", () => s.write(
      "GET /v1/responses HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"));
    s.once("data", d => { done(String(d)); s.destroy(); }).on("error", fail);
  });
  assert.match(head, /^HTTP\/1\.1 426 /);
});
await check("codex: a header of its own of 1 KB", async () => {
  await send(server.url, "/v1/responses", { model: "m", input: "" , max_output_tokens: 1 }, { "x-codex-turn-metadata": JSON.stringify({ a: "x".repeat(1000) }), "accept-encoding": "zstd,gzip" });
});

await server.stop();
finish();
