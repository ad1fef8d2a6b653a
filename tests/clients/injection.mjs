// What a model or a user may write must stay text on the page, and long answers must not stop it: injection.mjs SERVER.
import assert from "node:assert/strict";
import { ask, done, last, launch, open } from "./browser.mjs";
import { check, finish, serve } from "./support.mjs";

const AWAY = "http://127.0.0.1:9/away", RUN = "window.ran=1";
const PAYLOADS = [
  `<script>${RUN}</script>`,
  `<script src="${AWAY}.js"></script>`,
  `<img src=x onerror="${RUN}">`,
  `<img src="${AWAY}.png">`,
  `<svg onload="${RUN}"><script>${RUN}</script><image href="${AWAY}.svg"/></svg>`,
  `<iframe src="${AWAY}"></iframe><iframe srcdoc="<script>parent.ran=1</script>"></iframe>`,
  `<a href="javascript:${RUN}">click</a>`,
  `[click](javascript:${RUN})`,
  `[click](<javascript:${RUN}>) [tab](java\tscript:${RUN}) [case](JaVaScRiPt:${RUN}) [entity](javascript&colon;${RUN})`,
  `[click](data:text/html,<script>opener.ran=1</script>) ![x](data:image/svg+xml,<svg/onload=${RUN}>)`,
  `![picture](${AWAY}.gif) ![](${AWAY}2.gif "title") [![inner](${AWAY}3.gif)](${AWAY})`,
  `[x](https://example.org/" onmouseover="${RUN}) [y](https://example.org/'onclick='${RUN}')`,
  `[a" onclick="${RUN}" b](https://example.org)`,
  "`</code><script>" + RUN + "</script>`",
  "```html\n</code></pre><script>" + RUN + "</script>\n```",
  "```\"><img src=x onerror=" + RUN + ">\ncode\n```",
  `| <img src=x onerror=${RUN}> | b |\n|---|---|\n| <script>${RUN}</script> | <style>@import "${AWAY}.css"</style> |`,
  `# <script>${RUN}</script>\n\n> <img src=x onerror=${RUN}>\n\n- <svg/onload=${RUN}>`,
  `<style>body{background:url(${AWAY}.bg)}</style><link rel=stylesheet href="${AWAY}.css"><meta http-equiv=refresh content="0;url=${AWAY}">`,
  `<form action="${AWAY}"><input name=a autofocus onfocus=${RUN}><button formaction="javascript:${RUN}">x</button></form>`,
  `<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=${RUN}&gt;">`,
  `<noscript><p title="</noscript><img src=x onerror=${RUN}>"></noscript><template><script>${RUN}</script></template>`,
  `<object data="${AWAY}"></object><embed src="${AWAY}"><base href="${AWAY}/"><video src="${AWAY}.mp4" autoplay></video>`,
  `&lt;script&gt;${RUN}&lt;/script&gt; \\u003cscript\\u003e \u202e${RUN}\u2028<script>\u2029 <\u0000script>`,
  `**<b onclick=${RUN}>**[**x**](vbscript:x)*<i>*https://example.org/<script>${RUN}</script> mailto:a@b <https://example.org/"onload="x>`,
  `__proto__ constructor {{${RUN}}} \${${RUN}} ' " \` --> ]]> </body></html>`,
];
const longs = {
  prose: Array.from({ length: 1300 }, (_, i) => `Paragraph ${i} with **bold** words, \`code\` and [a link](https://example.org/${i}), which is as long as paragraphs tend to be, more or less so.`).join("\n\n"),
  code: "```js\n" + "const a = [1, 2, 3].map(x => x * 2); // a line of code\n".repeat(3700) + "```",
  list: "- an item of a list with **bold** words and `code` in it\n".repeat(3500),
  line: "**a `b [c](d *e ".repeat(12500),
  quotes: ">".repeat(200000),
};
const server = await serve(process.argv[2], [
  ...PAYLOADS.map((p, i) => ({ when: `MODEL-${i}.`, text: p + "</think>" + p + "\n\nEND", cuts: 3, times: 0 })),
  ...Object.entries(longs).map(([k, v]) => ({ when: `LONG-${k}.`, text: "</think>" + v + "\n\nEND", cuts: 40, times: 0 })),
  { text: "</think>fine", times: 0 },
], ["--ctx", "400000"]);
const browser = await launch();

// No element but those that the page itself makes, no handler, no address but of a web page or of mail.
const intruders = page => page.evaluate(() => {
  const allowed = new Set(["ARTICLE", "DIV", "DETAILS", "SUMMARY", "SPAN", "BUTTON", "P", "BR", "HR", "STRONG", "EM", "CODE", "PRE", "H1", "H2", "H3", "H4", "UL", "OL", "LI", "BLOCKQUOTE", "TABLE", "THEAD", "TBODY", "TR", "TD", "TH", "A"]);
  const attributes = new Set(["class", "aria-label", "type", "href", "rel", "target", "hidden", "open", "start", "tabindex", "disabled"]), bad = [];
  if (window.ran) bad.push("a script ran");
  for (const n of document.querySelectorAll("#talk *")) {
    if (!allowed.has(n.tagName)) bad.push(n.tagName);
    for (const a of n.attributes) if (!attributes.has(a.name)) bad.push(`${n.tagName} ${a.name}`);
    if (n.tagName === "A" && !/^(https?|mailto):$/.test(n.protocol)) bad.push(n.href);
    if (n.tagName === "A" && n.rel !== "noopener noreferrer nofollow") bad.push("rel " + n.rel);
  }
  if (document.querySelectorAll("script").length !== 1 || document.querySelectorAll("style, iframe, base").length) bad.push("head");
  return bad;
});

await check("what the model writes stays text", async () => {
  const { page, clean, close } = await open(browser, server.url);
  for (let i = 0; i < PAYLOADS.length; i++) {
    await ask(page, `MODEL-${i}.`);
    assert.match(await last(page).locator(".body").textContent(), /END$/, PAYLOADS[i]);
    assert.deepEqual(await intruders(page), [], PAYLOADS[i]);
    assert((await last(page).locator("details > div").textContent()).startsWith(PAYLOADS[i].slice(0, 8)), PAYLOADS[i]);
    await last(page).locator(".body").hover();
    await page.getByRole("button", { name: "New chat" }).click();
  }
  clean();
  await close();
}, 240);

await check("what the user writes stays text, also after a reload", async () => {
  const { page, clean, close } = await open(browser, server.url);
  for (const p of PAYLOADS) {
    await ask(page, p);
    assert.equal(await page.locator(".user .body").last().evaluate(n => n.textContent.replace(/\u0000/g, "")), p.replace(/\u0000/g, ""));
  }
  assert.deepEqual(await intruders(page), []);
  await page.reload();
  assert.equal(await page.locator("article").count(), 2 * PAYLOADS.length);
  assert.deepEqual(await intruders(page), []);
  clean();
  await close();
}, 240);

await check("a kept conversation of a wrong shape does no harm", async () => {
  for (const kept of ['{"a":1}', "[1,null]", '[{"role":"<img>","content":5}]', "[[]]", "no JSON", '[{"role":"user"},{"role":"assistant","content":"x","stats":{"speed":"<b>"}}]']) {
    const { page, clean, close } = await open(browser, server.url);
    await page.evaluate(k => localStorage.setItem("ds4.conversation", k), kept);
    await page.reload();
    await page.waitForFunction(() => document.getElementById("facts").textContent);
    await ask(page, "hello");
    assert.equal(await last(page).locator(".body").innerText(), "fine", kept);
    assert.deepEqual(await intruders(page), []);
    clean();
    await close();
  }
}, 120);

// Links in an answer open elsewhere, and only when they are clicked: here they are only looked at.
for (const kind of Object.keys(longs)) await check(`200 KB of ${kind} are streamed without the page standing still`, async () => {
  const { page, clean, close } = await open(browser, server.url);
  await page.evaluate(() => {
    window.gap = 0;
    let before = performance.now();
    const tick = () => { const now = performance.now(); window.gap = Math.max(window.gap, now - before); before = now; window.timer = setTimeout(tick, 10); };
    tick();
  });
  const start = Date.now();
  await page.fill("#text", `LONG-${kind}.`);
  await page.press("#text", "Enter");
  await page.waitForFunction(() => document.querySelector(".assistant .body")?.textContent.length > 1000);
  await page.fill("#text", "typed meanwhile");
  await done(page);
  const [gap, length, text] = await page.evaluate(() => [window.gap, document.querySelector(".assistant .body").textContent.length, document.getElementById("text").value]);
  console.log(`        ${((Date.now() - start) / 1000).toFixed(1)} s, at most ${gap.toFixed(0)} ms without an answer to the user`);
  assert.equal(text, "typed meanwhile");
  assert(length > 0.6 * longs[kind].length, `${length} characters shown`);
  assert(gap < 6000, `${gap} ms`);
  assert(await page.locator("#talk").evaluate(n => n.scrollHeight - n.scrollTop - n.clientHeight) < 80, "the end is in view");
  clean();
  await close();
}, 120);

await browser.close();
await server.stop();
finish();
