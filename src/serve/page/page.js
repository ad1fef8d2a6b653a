// The chat page: a conversation kept in the browser, answers streamed from /v1/chat/completions.
import { Shown } from "/markdown.js";

const $ = id => document.getElementById(id);
const KEPT = "ds4.conversation", THINKING = "ds4.thinking";
let talk = [];        // {role, content, reasoning?, stats?, error?}
let running = null;   // AbortController of the answer that is being written
let editing = -1;     // the message that the next one replaces, with all that follows
let facts = { context: 0 };

// What is kept may come from another version of this page: what has not the shape of a message is left out.
function load() {
  let kept;
  try { kept = JSON.parse(localStorage.getItem(KEPT)); } catch { /* nothing of ours */ }
  talk = (Array.isArray(kept) ? kept : []).filter(m => (m?.role === "user" || m?.role === "assistant") && typeof m.content === "string");
  for (const m of talk) {
    if (typeof m.reasoning !== "string") delete m.reasoning;
    if (!["prompt", "cached", "answer", "speed", "wait"].every(k => typeof m.stats?.[k] === "number")) delete m.stats;
  }
}
const save = () => { try { localStorage.setItem(KEPT, JSON.stringify(talk)); } catch { /* full or forbidden: it is kept until the page goes */ } };

// ---- talking to the server

function headers() {
  const key = sessionStorage.getItem("ds4.key");
  return { "Content-Type": "application/json", ...(key ? { Authorization: "Bearer " + key } : {}) };
}

// Answers whether there is a key to try.
async function ask_key(again) {
  const box = $("locked");
  $("wrong").hidden = !again;
  $("key").value = "";
  box.returnValue = "";
  if (!box.open) box.showModal();
  await new Promise(done => box.addEventListener("close", done, { once: true }));
  if (box.returnValue !== "use") return false;
  sessionStorage.setItem("ds4.key", $("key").value);
  return true;
}

async function call(path, options = {}) {
  for (let tries = 0; ; tries++) {
    const key = sessionStorage.getItem("ds4.key"), answer = await fetch(path, { ...options, headers: headers() });
    if (answer.status !== 401 || !await ask_key(tries || key)) return answer;
  }
}

async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error("the answer broke off");
    rest += value;
    for (let end; (end = rest.indexOf("\n\n")) >= 0; rest = rest.slice(end + 2)) {
      const data = rest.slice(0, end).split("\n").filter(l => l.startsWith("data: ")).map(l => l.slice(6)).join("\n");
      if (data === "[DONE]") return;
      if (data) yield JSON.parse(data);
    }
  }
}

function request() {
  return JSON.stringify({
    messages: talk.filter(m => !m.error && (m.content || m.role === "user")).map(m => ({
      role: m.role, content: m.content, ...(m.reasoning ? { reasoning_content: m.reasoning } : {}) })),
    stream: true, stream_options: { include_usage: true }, reasoning_effort: $("thinking").value });
}

async function fail(response) {
  let text = response.status + " " + response.statusText;
  try { text = (await response.json()).error.message; } catch { /* not ours */ }
  throw new Error(text);
}

// Adds a piece of an answer to the message.
function take(message, part, timing) {
  if (part.error) throw new Error(part.error.message);
  const delta = part.choices?.[0]?.delta || {};
  if (delta.reasoning_content) message.reasoning = (message.reasoning || "") + delta.reasoning_content;
  if (delta.content) message.content += delta.content;
  if ((delta.content || delta.reasoning_content) && !timing.first) timing.first = performance.now();
  if (part.choices?.[0]?.finish_reason === "length") message.cut = true;
  if (part.usage) note_usage(message, part.usage, timing);
}

function note_usage(message, usage, timing) {
  const seconds = (performance.now() - (timing.first || timing.start)) / 1000;
  message.stats = { prompt: usage.prompt_tokens, cached: usage.prompt_tokens_details?.cached_tokens || 0, answer: usage.completion_tokens,
    speed: seconds > 0 ? usage.completion_tokens / seconds : 0, wait: ((timing.first || timing.start) - timing.start) / 1000 };
}

async function answer() {
  const message = { role: "assistant", content: "" };
  const timing = { start: performance.now(), first: 0 };
  const body = request();
  talk.push(message);
  const view = show(message, talk.length - 1);
  running = new AbortController();
  busy(true);
  try {
    const response = await call("/v1/chat/completions", { method: "POST", body, signal: running.signal });
    if (!response.ok) await fail(response);
    for await (const part of events(response)) { take(message, part, timing); view.update(); }
  } catch (e) {
    if (e.name === "AbortError" || leaving) message.stopped = true;
    else { message.failure = e.message; message.error = !message.content; }
  }
  running = null;
  view.update(true);
  save();
  busy(false);
}

// ---- showing

function busy(on) {
  $("send").hidden = on;
  $("stop").hidden = !on;
  $("talk").setAttribute("aria-busy", String(on));
  for (const b of document.querySelectorAll(".foot button")) b.disabled = on;
  if (!on) { meter(); if (!document.querySelector("dialog[open]")) $("text").focus(); }
}

function button(text, action) {
  const b = document.createElement("button");
  b.type = "button";
  b.textContent = text;
  b.addEventListener("click", action);
  return b;
}

function meter() {
  const last = talk.findLast(m => m.stats)?.stats;
  const used = last ? last.prompt + last.answer : 0;
  $("used").max = facts.context || 1;
  $("used").value = used;
  $("count").textContent = facts.context ? `${used} of ${facts.context} tokens` : "";
}

function stats_text(m) {
  if (m.failure) return m.failure;
  const words = [];
  if (m.stopped) words.push("stopped");
  if (m.cut) words.push("cut: no tokens left");
  if (m.stats) words.push(`${m.stats.speed.toFixed(1)} tokens/s`, `${m.stats.answer} tokens`, `${m.stats.cached} of ${m.stats.prompt} prompt tokens from cache`, `${m.stats.wait.toFixed(1)} s to the first word`);
  return words.join(" · ");
}

const near_end = node => node.scrollHeight - node.scrollTop - node.clientHeight < 60;

function show(message, index) {
  const article = document.createElement("article"), body = document.createElement("div"), foot = document.createElement("div");
  const thought = document.createElement("details"), thinking = document.createElement("div"), summary = document.createElement("summary");
  article.className = message.role;
  article.setAttribute("aria-label", message.role === "user" ? "You" : "Answer");
  body.className = "body";
  foot.className = "foot";
  summary.textContent = "Thinking";
  thought.append(summary, thinking);
  thought.hidden = true;
  article.append(...(message.role === "user" ? [body, foot] : [thought, body, foot]));
  $("talk").append(article);
  const shown = new Shown(body);
  let waiting = false, cost = 0;
  const draw = last => {
    waiting = false;
    const start = performance.now(), follow = near_end($("talk"));
    thought.hidden = !message.reasoning;
    summary.textContent = running && !last && !message.content ? "Thinking …" : "Thinking";
    grow_text(thinking, message.reasoning || "");
    if (message.role === "user") body.textContent = message.content; else shown.update(message.content);
    if (last) foot_of(foot, message, index);
    if (follow) $("talk").scrollTop = $("talk").scrollHeight;
    cost = performance.now() - start;
  };
  // While it grows it is drawn once a frame at most, and less often where that takes long: the page stays quick.
  const update = last => {
    if (last) draw(true);
    else if (!waiting) { waiting = true; setTimeout(() => requestAnimationFrame(() => { if (waiting) draw(false); }), Math.min(cost * 3, 500)); }
  };
  update(message !== talk[talk.length - 1] || message.role === "user" || !running);
  return { update };
}

// The node's text is the start of the new one, as a rule.
function grow_text(node, text) {
  if (!node.firstChild) node.append("");
  const now = node.firstChild;
  if (text.length > now.length) now.appendData(text.slice(now.length)); else if (text.length < now.length) now.data = text;
}

function foot_of(foot, message, index) {
  foot.replaceChildren();
  if (message.role === "assistant") {
    const text = document.createElement("span");
    text.textContent = stats_text(message);
    text.className = message.failure ? "bad" : "";
    foot.append(text);
  }
  if (message.role === "user") foot.append(button("Edit", () => edit(index)));
  else foot.append(button("Again", () => again(index)), ...(message.content && navigator.clipboard ? [button("Copy", () => copy(message.content))] : []));
}

function redraw() {
  $("talk").replaceChildren();
  talk.forEach(show);
  meter();
}

// ---- what the user does

function note(text) {
  $("notice").hidden = !text;
  $("notice").textContent = text;
}

function edit(index) {
  if (running) return;
  editing = index;
  $("text").value = talk[index].content;
  note("You edit an earlier message. Sending it replaces what follows; Escape keeps all as it was.");
  mark_edited();
  $("text").focus();
}

function mark_edited() {
  [...$("talk").children].forEach((article, i) => article.classList.toggle("replaced", editing >= 0 && i >= editing));
}

function keep() {
  if (editing < 0) return;
  editing = -1;
  $("text").value = "";
  note("");
  mark_edited();
}

function again(index) {
  if (running) return;
  keep();
  talk.length = index;
  redraw();
  answer();
}

async function copy(text) {
  try { await navigator.clipboard.writeText(text); note("Copied."); } catch (e) { note("That could not be copied: " + e.message); }
}

function send() {
  const text = $("text").value;
  if (running || !text.trim()) return;
  if (editing >= 0) { talk.length = editing; keep(); redraw(); }
  note("");
  $("text").value = "";
  talk.push({ role: "user", content: text });
  show(talk[talk.length - 1], talk.length - 1);
  save();
  $("talk").scrollTop = $("talk").scrollHeight;
  answer();
}

async function learn() {
  try {
    const response = await call("/props");
    if (!response.ok) await fail(response);
    const props = await response.json();
    facts = { context: props.context_length };
    $("model").textContent = props.name === "scripted" ? props.model : props.name || props.model;
    $("facts").textContent = `${props.family}, ${props.backend}, ${props.context_length} tokens of context, ${props.sessions} at a time`;
    document.title = $("model").textContent;
  } catch (e) {
    note("The server does not answer: " + e.message);
  }
  meter();
}

$("ask").addEventListener("submit", e => { e.preventDefault(); send(); });
$("text").addEventListener("keydown", e => { if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); send(); } });
$("stop").addEventListener("click", () => running?.abort());
document.addEventListener("keydown", e => { if (e.key === "Escape" && !$("locked").open) { if (running) running.abort(); else keep(); } });
$("fresh").addEventListener("click", () => { running?.abort(); keep(); talk = []; save(); redraw(); $("text").focus(); });
$("thinking").addEventListener("change", () => { try { localStorage.setItem(THINKING, $("thinking").value); } catch { /* not kept */ } });
// An answer that is being written when the page goes is kept as far as it came.
let leaving = false;
addEventListener("pagehide", () => { if (running) { leaving = true; talk[talk.length - 1].stopped = true; save(); running.abort(); } });
addEventListener("pageshow", () => { leaving = false; });
try { $("thinking").value = localStorage.getItem(THINKING) === "none" ? "none" : "high"; } catch { /* as it is */ }
load();
redraw();
learn();
