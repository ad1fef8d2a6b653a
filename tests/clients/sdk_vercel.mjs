// The Vercel AI SDK against ds4-server, through its Chat and its Responses provider.
import assert from "node:assert/strict";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import { MODEL, check, dsml, finish, serve } from "./support.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;
const server = await serve(process.argv[2], [
  { when: ["MARK-TOOL", "one.c"], text: "Two files, so I say it.</think>There are two files.", times: 0 },
  { when: "MARK-TOOL", text: "I should list the folder.</think>I will look." + dsml({ name: "list_dir", input: { path: "src/ä", depth: 2 } }), cuts: "bytes", times: 0 },
  { text: "Short thought.</think>Hello, wörld 🙂.", cuts: "bytes", times: 0 },
], ["--api-key", "secret"]);
const baseURL = server.url + "/v1", apiKey = "secret";
const providers = {
  chat: createOpenAICompatible({ name: "ds4", baseURL, apiKey, includeUsage: true })(MODEL),
  responses: createOpenAI({ baseURL, apiKey }).responses(MODEL),
  "openai chat": createOpenAI({ baseURL, apiKey }).chat(MODEL),
};
const system = "You are a coding agent. ".repeat(40);
const options = { openai: { store: false, reasoningSummary: "auto", forceReasoning: true } };

for (const [name, model] of Object.entries(providers)) {
  await check(`${name}: generateText`, async () => {
    const r = await generateText({ model, prompt: "Hi", maxRetries: 0 });
    assert.equal(r.text, "Hello, wörld 🙂.");
    assert.equal(r.finishReason, "stop");
    assert(r.usage.inputTokens > 0 && r.usage.outputTokens > 0);
    if (name === "chat") assert.equal(r.reasoningText, "Short thought.");
  });

  await check(`${name}: streamText`, async () => {
    const r = streamText({ model, prompt: "Hi", maxRetries: 0 });
    let text = "", parts = 0;
    for await (const t of r.textStream) { text += t; parts++; }
    assert.equal(text, "Hello, wörld 🙂.");
    assert(parts > 3);
    assert.equal(await r.finishReason, "stop");
    assert((await r.usage).outputTokens > 0);
  });

  for (const stream of [false, true]) await check(`${name}: a tool turn${stream ? ", streamed" : ""}`, async () => {
    const seen = [];
    const list_dir = tool({ description: "Lists a folder", inputSchema: z.object({ path: z.string(), depth: z.number().int() }), execute: async a => { seen.push(a); return "one.c\ntwo.c\n"; } });
    const ask = { model, system, prompt: `MARK-TOOL list them (${stream})`, tools: { list_dir }, stopWhen: stepCountIs(3), maxRetries: 0, providerOptions: name === "responses" ? options : {} };
    const r = stream ? streamText(ask) : await generateText(ask);
    if (stream) await r.consumeStream({ onError: e => { throw e; } });
    assert.equal(await r.text, "There are two files.");
    assert.deepEqual(seen, [{ path: "src/ä", depth: 2 }]);
    const [first, second] = await r.steps;
    assert.equal(first.finishReason, "tool-calls");
    assert.equal(first.text, "I will look.");
    assert.equal(second.finishReason, "stop");
    const cached = second.usage.inputTokenDetails?.cacheReadTokens ?? second.usage.cachedInputTokens;
    // What the provider leaves out of the history (the reasoning) is not in the prefix.
    const least = name === "chat" ? first.usage.inputTokens + first.usage.outputTokens : first.usage.inputTokens;
    assert(cached >= 0.95 * least && cached < second.usage.inputTokens, JSON.stringify([first.usage, second.usage]));
  });
}

await check("errors", async () => {
  await assert.rejects(generateText({ model: createOpenAICompatible({ name: "ds4", baseURL, apiKey: "wrong" })(MODEL), prompt: "Hi", maxRetries: 0 }),
    e => APICallError.isInstance(e) && e.statusCode === 401 && e.isRetryable === false);
  await assert.rejects(generateText({ model: providers.responses, prompt: "Hi", topP: 7, maxRetries: 0 }), e => APICallError.isInstance(e) && e.statusCode === 400 && /top_p/.test(e.message));
});

await server.stop();
finish();
