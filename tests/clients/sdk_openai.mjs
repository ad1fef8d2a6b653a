// The openai package against ds4-server: Chat, Responses, legacy completions, models and errors.
import assert from "node:assert/strict";
import OpenAI from "openai";
import { MODEL, check, dsml, finish, serve, unmentioned } from "./support.mjs";

const LIST = { name: "list_dir", description: "Lists a folder", parameters: { type: "object", properties: { path: { type: "string" }, depth: { type: "integer" } }, required: ["path"] } };
const PATCH = "*** Begin Patch\n*** Add File: a<b.txt\n+\"x\" & 'y'\n*** End Patch\n";
const server = await serve(process.argv[2], [
  { when: ["MARK-TOOL", "one.c"], text: "Two files, so I say it.</think>There are two files.", times: 0 },
  { when: "MARK-TOOL", text: "I should list the folder." + "</think>I will look." + dsml({ name: "list_dir", input: { path: "src/ä \"q\"", depth: 2 } }), cuts: "bytes", times: 0 },
  { when: ["MARK-PATCH", "Done!"], text: "fine</think>Applied.", times: 0 },
  { when: "MARK-PATCH", text: "patch it</think>" + dsml({ name: "apply_patch", input: { input: PATCH } }), cuts: 3, times: 0 },
  { when: "MARK-TWO", text: "both</think>" + dsml({ name: "list_dir", input: { path: "a" } }, { name: "list_dir", input: { path: "b" } }), times: 0 },
  { when: "MARK-LONG", text: "word ", repeat: 200, cuts: 5, times: 0 },
  { when: "MARK-SLOW", text: "</think>" + "word ", repeat: 2000, token_ms: 20, cuts: 5, times: 0 },
  { when: "MARK-FAULT", text: "Some words.", error: "the device is on fire", error_at: 2, times: 0 },
  { text: "Short thought.</think>Hello, wörld 🙂.", cuts: "bytes", times: 0 },
], ["--api-key", "secret", "--sessions", "2"]);
const client = new OpenAI({ baseURL: server.url + "/v1", apiKey: "secret", maxRetries: 0 });
const user = content => ({ role: "user", content });

await check("models", async () => {
  const ids = [];
  for await (const m of client.models.list()) { ids.push(m.id); assert.equal(m.object, "model"); }
  assert(ids.includes(MODEL));
  assert.equal((await client.models.retrieve(MODEL)).id, MODEL);
  await assert.rejects(client.models.retrieve("none"), OpenAI.NotFoundError);
});

await check("every field that the types have is taken, refused or ignored by a line of the documentation", async () => {
  for (const [file, name, least] of [["chat/completions/completions", "ChatCompletionCreateParamsBase", 30], ["completions", "CompletionCreateParamsBase", 15], ["responses/responses", "ResponseCreateParamsBase", 25]]) {
    const { names, unknown } = unmentioned(new URL(`resources/${file}.d.ts`, import.meta.resolve("openai")), name);
    assert(names.length >= least, `${name}: ${names}`);
    assert.deepEqual(unknown, [], name);
  }
});

await check("chat: one answer", async () => {
  const c = await client.chat.completions.create({ model: MODEL, messages: [{ role: "system", content: "Be brief." }, user("Hi")] });
  assert.equal(c.object, "chat.completion");
  assert.equal(c.model, MODEL);
  const [choice] = c.choices;
  assert.equal(choice.finish_reason, "stop");
  assert.equal(choice.message.content, "Hello, wörld 🙂.");
  assert.equal(choice.message.reasoning_content, "Short thought.");
  assert.equal(c.usage.total_tokens, c.usage.prompt_tokens + c.usage.completion_tokens);
  assert(c.usage.prompt_tokens > 0 && c.usage.completion_tokens > 0);
});

await check("chat: streamed like not streamed", async () => {
  const body = { model: MODEL, messages: [user("Hi again")] };
  const whole = await client.chat.completions.create(body);
  const stream = client.chat.completions.stream({ ...body, stream_options: { include_usage: true } });
  let deltas = 0;
  stream.on("content", () => { deltas++; });
  const c = await stream.finalChatCompletion();
  assert.equal(c.choices[0].message.content, whole.choices[0].message.content);
  assert.equal(c.choices[0].finish_reason, "stop");
  assert(deltas > 3);
  assert.equal(c.usage.completion_tokens, whole.usage.completion_tokens);
  assert(c.usage.prompt_tokens_details.cached_tokens >= 0.8 * c.usage.prompt_tokens, JSON.stringify(c.usage));
});

await check("chat: a tool turn, streamed and not", async () => {
  const tools = [{ type: "function", function: LIST }];
  for (const stream of [false, true]) {
    const messages = [{ role: "system", content: "You are a coding agent. ".repeat(40) }, user(`MARK-TOOL list the files (${stream})`)];
    // The streaming helper keeps only the last piece of a field that it does not know, such as reasoning_content.
    const ask = async () => stream
      ? client.chat.completions.stream({ model: MODEL, messages, tools, stream_options: { include_usage: true } }).finalChatCompletion()
      : client.chat.completions.create({ model: MODEL, messages, tools });
    const first = await ask(), m = first.choices[0].message;
    assert.equal(first.choices[0].finish_reason, "tool_calls");
    assert.equal(m.content, "I will look.");
    assert.equal(m.tool_calls.length, 1);
    assert.equal(m.tool_calls[0].type, "function");
    assert.equal(m.tool_calls[0].function.name, "list_dir");
    assert.deepEqual(JSON.parse(m.tool_calls[0].function.arguments), { path: "src/ä \"q\"", depth: 2 });
    messages.push(m, { role: "tool", tool_call_id: m.tool_calls[0].id, content: "one.c\ntwo.c\n" });
    const second = await ask();
    assert.equal(second.choices[0].message.content, "There are two files.");
    assert.equal(second.choices[0].finish_reason, "stop");
    const u = second.usage;
    assert(u.prompt_tokens_details.cached_tokens >= 0.95 * (first.usage.prompt_tokens + first.usage.completion_tokens), JSON.stringify(u));
    assert(u.prompt_tokens_details.cached_tokens < u.prompt_tokens);
  }
});

await check("chat: runTools calls the function and sends its result", async () => {
  const seen = [];
  const runner = client.chat.completions.runTools({ model: MODEL, stream: true, messages: [user("MARK-TOOL by the runner")],
    tools: [{ type: "function", function: { ...LIST, parse: JSON.parse, function: a => { seen.push(a); return "one.c two.c"; } } }] });
  assert.equal(await runner.finalContent(), "There are two files.");
  assert.deepEqual(seen, [{ path: "src/ä \"q\"", depth: 2 }]);
});

await check("chat: two calls, and one where parallel calls are off", async () => {
  const body = { model: MODEL, messages: [user("MARK-TWO")], tools: [{ type: "function", function: LIST }] };
  const two = await client.chat.completions.create(body);
  assert.deepEqual(two.choices[0].message.tool_calls.map(c => JSON.parse(c.function.arguments).path), ["a", "b"]);
  assert.notEqual(two.choices[0].message.tool_calls[0].id, two.choices[0].message.tool_calls[1].id);
  const streamed = await client.chat.completions.stream(body).finalChatCompletion();
  assert.equal(streamed.choices[0].message.tool_calls.length, 2);
  const one = await client.chat.completions.create({ ...body, parallel_tool_calls: false });
  assert.equal(one.choices[0].message.tool_calls.length, 1);
});

await check("chat: limit, stop string, logprobs", async () => {
  const cut = await client.chat.completions.create({ model: MODEL, messages: [user("MARK-LONG")], max_completion_tokens: 7, reasoning_effort: "none" });
  assert.equal(cut.choices[0].finish_reason, "length");
  assert.equal(cut.usage.completion_tokens, 7);
  const stopped = await client.chat.completions.create({ model: MODEL, messages: [user("Hi")], stop: ["wörld"] });
  assert.equal(stopped.choices[0].message.content, "Hello, ");
  assert.equal(stopped.choices[0].finish_reason, "stop");
  const probs = await client.chat.completions.create({ model: MODEL, messages: [user("MARK-LONG")], max_completion_tokens: 3, reasoning_effort: "none", logprobs: true });
  assert.equal(probs.choices[0].logprobs.content.length, 3);
  assert.equal(typeof probs.choices[0].logprobs.content[0].logprob, "number");
});

await check("chat: leaving a stream ends the answer", async () => {
  const stream = await client.chat.completions.create({ model: MODEL, messages: [user("MARK-SLOW")], stream: true });
  for await (const part of stream) if (part.choices[0]?.delta?.content) break;
  const text = name => new RegExp(`^ds4_${name} (\\d+)$`, "m");
  for (let active = 1; active;) {
    const metrics = await (await fetch(server.url + "/metrics", { headers: { Authorization: "Bearer secret" } })).text();
    active = Number(text("active_answers").exec(metrics)[1]);
    if (!active) assert(Number(text("cancelled_total").exec(metrics)[1]) >= 1);
  }
});

await check("errors are the typed exceptions", async () => {
  const bad = new OpenAI({ baseURL: server.url + "/v1", apiKey: "wrong", maxRetries: 0 });
  await assert.rejects(bad.models.list(), OpenAI.AuthenticationError);
  await assert.rejects(client.chat.completions.create({ model: MODEL, messages: [user("x")], temperature: -1 }), e => {
    assert(e instanceof OpenAI.BadRequestError);
    assert.equal(e.param, "temperature");
    assert.equal(e.type, "invalid_request_error");
    assert.match(e.message, /temperature/);
    return true;
  });
  await assert.rejects(client.chat.completions.create({ model: MODEL, messages: [user("x ".repeat(200000))] }), e => e instanceof OpenAI.BadRequestError && e.code === "context_length_exceeded");
  await assert.rejects(client.post("/nothing", { body: {} }), OpenAI.NotFoundError);
});

await check("responses: one answer, streamed and not", async () => {
  const r = await client.responses.create({ model: MODEL, instructions: "Be brief.", input: "Hi", store: false, reasoning: { summary: "auto" } });
  assert.equal(r.status, "completed");
  assert.equal(r.output_text, "Hello, wörld 🙂.");
  assert.deepEqual(r.output.map(o => o.type), ["reasoning", "message"]);
  const stream = client.responses.stream({ model: MODEL, instructions: "Be brief.", input: "Hi", store: false, reasoning: { summary: "auto" } });
  const kinds = new Set();
  for await (const e of stream) kinds.add(e.type);
  const s = await stream.finalResponse();
  assert.equal(s.output_text, r.output_text);
  assert.equal(s.usage.output_tokens, r.usage.output_tokens);
  assert(s.usage.input_tokens_details.cached_tokens > 0);
  for (const k of ["response.created", "response.output_item.added", "response.content_part.added", "response.output_text.delta", "response.output_text.done", "response.content_part.done", "response.output_item.done", "response.completed"]) assert(kinds.has(k), k);
});

await check("responses: a tool turn, streamed and not", async () => {
  const tools = [{ type: "function", ...LIST, strict: false }], reasoning = { effort: "high", summary: "auto" };
  for (const stream of [false, true]) {
    const input = [{ role: "developer", content: "You are a coding agent. ".repeat(40) }, { role: "user", content: [{ type: "input_text", text: `MARK-TOOL list them (${stream})` }] }];
    const ask = async () => stream ? client.responses.stream({ model: MODEL, input, tools, store: false, reasoning }).finalResponse()
      : client.responses.create({ model: MODEL, input, tools, store: false, reasoning });
    const first = await ask();
    assert.deepEqual(first.output.map(o => o.type), ["reasoning", "message", "function_call"]);
    const call = first.output[2];
    assert.deepEqual(JSON.parse(call.arguments), { path: "src/ä \"q\"", depth: 2 });
    input.push(...first.output.map(({ parsed_arguments, ...o }) => o), { type: "function_call_output", call_id: call.call_id, output: "one.c\ntwo.c\n" });
    const second = await ask();
    assert.equal(second.output_text, "There are two files.");
    assert(second.usage.input_tokens_details.cached_tokens >= 0.95 * (first.usage.input_tokens + first.usage.output_tokens), JSON.stringify([first.usage, second.usage]));
  }
});

await check("responses: a custom tool turn", async () => {
  const tools = [{ type: "custom", name: "apply_patch", description: "Applies a patch", format: { type: "grammar", syntax: "lark", definition: "start: /.+/" } }];
  for (const stream of [false, true]) {
    const input = [{ role: "user", content: `MARK-PATCH (${stream})` }];
    let deltas = "";
    const ask = async () => {
      if (!stream) return client.responses.create({ model: MODEL, input, tools, store: false });
      const s = client.responses.stream({ model: MODEL, input, tools, store: false });
      for await (const e of s) if (e.type === "response.custom_tool_call_input.delta") deltas += e.delta;
      return s.finalResponse();
    };
    const first = await ask(), call = first.output.find(o => o.type === "custom_tool_call");
    assert.equal(call.input, PATCH);
    assert.equal(call.name, "apply_patch");
    if (stream) assert.equal(deltas, PATCH);
    input.push(...first.output, { type: "custom_tool_call_output", call_id: call.call_id, output: "Done!" });
    assert.equal((await ask()).output_text, "Applied.");
  }
});

await check("responses: limit and errors", async () => {
  const r = await client.responses.create({ model: MODEL, input: "MARK-LONG", max_output_tokens: 16, reasoning: { effort: "none" }, store: false });
  assert.equal(r.status, "incomplete");
  assert.equal(r.incomplete_details.reason, "max_output_tokens");
  await assert.rejects(client.responses.create({ model: MODEL, input: "x", top_p: 7 }), e => e instanceof OpenAI.BadRequestError && e.param === "top_p");
});

await check("completions", async () => {
  const c = await client.completions.create({ model: MODEL, prompt: "Hi", max_tokens: 100 });
  assert.equal(c.object, "text_completion");
  assert.match(c.choices[0].text, /Hello, wörld/);
  let text = "";
  for await (const part of await client.completions.create({ model: MODEL, prompt: "Hi", max_tokens: 100, stream: true })) text += part.choices[0]?.text || "";
  assert.equal(text, c.choices[0].text);
});

// The last check: a device that failed stays failed.
await check("a fault of the device is an exception, streamed and not", async () => {
  const stream = await client.chat.completions.create({ model: MODEL, messages: [user("MARK-FAULT")], stream: true });
  await assert.rejects(async () => { for await (const _ of stream); }, e => e instanceof OpenAI.APIError && /on fire/.test(e.message));
  await assert.rejects(client.chat.completions.create({ model: MODEL, messages: [user("MARK-FAULT")] }), e => e instanceof OpenAI.InternalServerError && e.status === 503);
});

await server.stop();
finish();
