// The @anthropic-ai/sdk package against ds4-server: Messages, count_tokens, models and errors.
import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import { MODEL, check, dsml, finish, serve, unmentioned } from "./support.mjs";

const LIST = { name: "list_dir", description: "Lists a folder", input_schema: { type: "object", properties: { path: { type: "string" }, depth: { type: "integer" } }, required: ["path"] } };
const server = await serve(process.argv[2], [
  { when: ["MARK-TOOL", "one.c"], text: "Two files, so I say it.</think>There are two files.", times: 0 },
  { when: "MARK-TOOL", text: "I should list the folder.</think>I will look." + dsml({ name: "list_dir", input: { path: "src/ä", depth: 2 } }), cuts: "bytes", times: 0 },
  { when: "MARK-TWO", text: "both</think>" + dsml({ name: "list_dir", input: { path: "a" } }, { name: "list_dir", input: { path: "b" } }), times: 0 },
  { when: "MARK-NAMED", text: "plan</think>Sure." + dsml({ name: "list_dir", input: { path: "named" } }), times: 0 },
  { when: "MARK-LONG", text: "word ", repeat: 200, cuts: 5, times: 0 },
  { when: "MARK-FAULT", text: "Some words.", error: "the device is on fire", error_at: 2, times: 0 },
  { text: "Short thought.</think>Hello, wörld 🙂.", cuts: "bytes", times: 0 },
], ["--api-key", "secret", "--sessions", "2"]);
const client = new Anthropic({ baseURL: server.url, apiKey: "secret", maxRetries: 0 });
const thinking = { type: "enabled", budget_tokens: 4000 };
const body = (text, more = {}) => ({ model: MODEL, max_tokens: 8000, messages: [{ role: "user", content: text }], ...more });
const prompt = u => u.input_tokens + u.cache_read_input_tokens + (u.cache_creation_input_tokens || 0);

await check("every field that the types have is taken, refused or ignored by a line of the documentation", async () => {
  for (const [file, name] of [["messages", "MessageCreateParamsBase"], ["beta/messages", "MessageCreateParamsBase"], ["beta/messages", "BetaOutputConfig"]]) {
    const { names, unknown } = unmentioned(new URL(`resources/${file}/messages.d.ts`, import.meta.resolve("@anthropic-ai/sdk")), name);
    assert(names.length >= 3, `${name}: ${names}`);
    assert.deepEqual(unknown, [], name);
  }
});

await check("messages: one answer, with and without thinking", async () => {
  const m = await client.messages.create(body("Hi", { system: "Be brief.", thinking }));
  assert.equal(m.type, "message");
  assert.equal(m.role, "assistant");
  assert.equal(m.model, MODEL);
  assert.deepEqual(m.content.map(b => b.type), ["thinking", "text"]);
  assert.equal(m.content[0].thinking, "Short thought.");
  assert(m.content[0].signature);
  assert.equal(m.content[1].text, "Hello, wörld 🙂.");
  assert.equal(m.stop_reason, "end_turn");
  assert.equal(m.stop_sequence, null);
  assert(m.usage.output_tokens > 0 && prompt(m.usage) > 0);
});

await check("messages: streamed like not streamed, and again from the cache", async () => {
  const b = body("Hi once more", { thinking });
  const whole = await client.messages.create(b);
  const stream = client.messages.stream(b);
  let texts = "", thoughts = "";
  stream.on("text", t => { texts += t; }).on("thinking", t => { thoughts += t; });
  const m = await stream.finalMessage();
  assert.deepEqual(m.content.map(({ signature, ...c }) => c), whole.content.map(({ signature, ...c }) => c));
  assert.equal(texts, "Hello, wörld 🙂.");
  assert.equal(thoughts, "Short thought.");
  assert.equal(m.usage.output_tokens, whole.usage.output_tokens);
  assert.equal(prompt(m.usage), prompt(whole.usage));
  assert(m.usage.cache_read_input_tokens >= 0.8 * prompt(m.usage), JSON.stringify(m.usage));
});

await check("messages: a tool turn with thinking, streamed and not", async () => {
  for (const stream of [false, true]) {
    const messages = [{ role: "user", content: [{ type: "text", text: `MARK-TOOL list them (${stream})`, cache_control: { type: "ephemeral" } }] }];
    const b = { model: MODEL, max_tokens: 8000, system: [{ type: "text", text: "You are a coding agent. ".repeat(40), cache_control: { type: "ephemeral" } }], tools: [LIST], thinking, messages };
    const ask = async () => stream ? client.messages.stream(b).finalMessage() : client.messages.create(b);
    const first = await ask();
    assert.deepEqual(first.content.map(c => c.type), ["thinking", "text", "tool_use"]);
    assert.equal(first.stop_reason, "tool_use");
    const call = first.content[2];
    assert.deepEqual([call.name, call.input], ["list_dir", { path: "src/ä", depth: 2 }]);
    messages.push({ role: "assistant", content: first.content }, { role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: "one.c\ntwo.c\n" }] });
    const second = await ask();
    assert.equal(second.content.at(-1).text, "There are two files.");
    assert.equal(second.stop_reason, "end_turn");
    assert(second.usage.cache_read_input_tokens >= 0.95 * (prompt(first.usage) + first.usage.output_tokens), JSON.stringify([first.usage, second.usage]));
  }
});

await check("messages: tool_choice, parallel calls", async () => {
  const two = await client.messages.create(body("MARK-TWO", { tools: [LIST] }));
  assert.deepEqual(two.content.filter(c => c.type === "tool_use").map(c => c.input.path), ["a", "b"]);
  const one = await client.messages.create(body("MARK-TWO", { tools: [LIST], tool_choice: { type: "auto", disable_parallel_tool_use: true } }));
  assert.equal(one.content.filter(c => c.type === "tool_use").length, 1);
  const named = await client.messages.create(body("MARK-NAMED", { tools: [LIST], tool_choice: { type: "tool", name: "list_dir" } }));
  assert.deepEqual(named.content.find(c => c.type === "tool_use").input, { path: "named" });
  const none = await client.messages.create(body("Hi", { tools: [LIST], tool_choice: { type: "none" } }));
  assert.equal(none.stop_reason, "end_turn");
});

await check("messages: limit and stop sequence", async () => {
  const cut = await client.messages.create(body("MARK-LONG", { max_tokens: 9 }));
  assert.equal(cut.stop_reason, "max_tokens");
  assert.equal(cut.usage.output_tokens, 9);
  const stopped = await client.messages.create(body("Hi", { stop_sequences: ["none", "wörld"] }));
  assert.equal(stopped.stop_reason, "stop_sequence");
  assert.equal(stopped.stop_sequence, "wörld");
  assert.equal(stopped.content.at(-1).text, "Hello, ");
});

await check("count_tokens is what the answer's usage says", async () => {
  const b = { model: MODEL, system: "Count me.", tools: [LIST], messages: [{ role: "user", content: "How many tokens are these?" }] };
  const { input_tokens } = await client.messages.countTokens(b);
  const m = await client.messages.create({ ...b, max_tokens: 100 });
  assert.equal(prompt(m.usage), input_tokens);
  const many = await Promise.all(Array.from({ length: 12 }, () => client.messages.countTokens(b)));
  assert(many.every(c => c.input_tokens === input_tokens));
});

await check("models", async () => {
  const ids = [];
  for await (const m of client.models.list()) ids.push(m.id);
  assert(ids.includes(MODEL));
  assert.equal((await client.models.retrieve(MODEL)).id, MODEL);
});

await check("errors are the typed exceptions", async () => {
  const bad = new Anthropic({ baseURL: server.url, apiKey: "wrong", maxRetries: 0 });
  await assert.rejects(bad.messages.create(body("x")), e => e instanceof Anthropic.AuthenticationError && e.error.error.type === "authentication_error");
  await assert.rejects(client.messages.create(body("x", { max_tokens: -1 })), e => e instanceof Anthropic.BadRequestError && e.error.type === "error" && e.error.error.type === "invalid_request_error" && /max_tokens/.test(e.message));
  await assert.rejects(client.messages.create(body("x ".repeat(200000))), Anthropic.BadRequestError);
  await assert.rejects(client.post("/v1/nothing", { body: {} }), Anthropic.NotFoundError);
});

await check("a bearer token is a key as well", async () => {
  const other = new Anthropic({ baseURL: server.url, authToken: "secret", apiKey: null, maxRetries: 0 });
  assert.equal((await other.messages.create(body("Hi"))).stop_reason, "end_turn");
});

// The last check: a device that failed stays failed.
await check("a fault of the device is an exception, streamed and not", async () => {
  const stream = client.messages.stream(body("MARK-FAULT"));
  await assert.rejects(stream.finalMessage(), e => e instanceof Anthropic.APIError && /on fire/.test(e.message));
  await assert.rejects(client.messages.create(body("MARK-FAULT")), e => e instanceof Anthropic.InternalServerError && e.status === 503);
});

await server.stop();
finish();
