// The web page as people use it: page.mjs SERVER FOLDER; pictures of it are left in FOLDER.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { ask, done, last, launch, low_contrast, open } from "./browser.mjs";
import { check, finish, serve } from "./support.mjs";

const [binary, folder] = process.argv.slice(2);
const SHOWCASE = "## A heading\n\nSome **bold**, *soft* and `code` with a [link](https://example.org/a?b=c).\n\n- one\n- two\n  - inner\n\n1. first\n2. second\n\n> a quote\n\n" +
  "| name | value |\n|---|---|\n| alpha | " + "wide ".repeat(30) + "|\n\n```c\nint main(void) { return " + "x + ".repeat(60) + "0; }\n```\n\n" + "longword".repeat(40);
mkdirSync(folder, { recursive: true });
const server = await serve(binary, [
  { when: "MARK-SHOW", text: "I think about <b>it</b>.\nAt length.</think>" + SHOWCASE, cuts: 7, times: 0 },
  { when: "MARK-SLOW", text: "Hm.</think>" + "word ".repeat(3000), cuts: 5, token_ms: 15, times: 0 },
  { when: "MARK-THINK", text: "Long thoughts. ".repeat(400), cuts: 5, token_ms: 15, times: 0 },
  { when: "second question", text: "t</think>Second answer.", times: 0 },
  { when: "changed question", text: "t</think>Changed answer.", times: 0 },
  { when: "MARK-AGAIN", text: "t</think>First try.", times: 1 },
  { when: "MARK-AGAIN", text: "t</think>Second try.", times: 0 },
  { text: "t</think>First answer.", times: 0 },
], ["--ctx", "65536"]);
const browser = await launch();
const with_page = (options, run, url = server.url) => async () => {
  const view = await open(browser, url, options);
  try { await run(view.page, view); view.clean(); } finally { await view.close(); }
};
const picture = (page, name) => page.screenshot({ path: join(folder, name + ".png") });
const texts = (page, which) => page.locator(which).allInnerTexts();

await check("the page's headers", async () => {
  for (const path of ["/", "/page.js", "/page.css", "/markdown.js", "/favicon.svg"]) {
    const r = await fetch(server.url + path), csp = r.headers.get("content-security-policy");
    assert.equal(r.status, 200);
    assert.match(csp, /default-src 'self'/);
    assert.match(csp, /frame-ancestors 'none'/);
    assert.doesNotMatch(csp, /unsafe|\*|https?:/);
    assert.equal(r.headers.get("x-content-type-options"), "nosniff");
    assert.equal(r.headers.get("referrer-policy"), "no-referrer");
  }
});

await check("a streamed answer: growing text, folded thinking, numbers", with_page({}, async page => {
  assert.match(await page.innerText("#facts"), /65536 tokens of context/);
  await page.fill("#text", "MARK-SLOW go");
  await page.press("#text", "Enter");
  await page.waitForFunction(() => document.querySelector(".assistant .body")?.textContent.length > 20);
  assert(await page.isVisible("#stop") && await page.isHidden("#send"));
  const before = (await last(page).locator(".body").innerText()).length;
  await page.waitForFunction(n => document.querySelector(".assistant .body").textContent.length > n + 20, before);
  await page.click("#stop");
  await done(page);
  assert.match(await last(page).locator(".foot").innerText(), /stopped/);
  assert(await page.isVisible("#send"));
  await ask(page, "MARK-SHOW please");
  const thought = last(page).locator("details");
  assert.equal(await thought.evaluate(d => d.open), false);
  assert(!await thought.locator("div").isVisible());
  await thought.locator("summary").click();
  assert.equal(await thought.locator("div").innerText(), "I think about <b>it</b>.\nAt length.");
  assert.match(await last(page).locator(".foot").innerText(), /[\d.]+ tokens\/s · \d+ tokens · \d+ of \d+ prompt tokens from cache/);
  assert.match(await page.innerText("#count"), /^\d+ of 65536 tokens$/);
  assert(await page.locator("#used").evaluate(p => p.value > 0 && p.max === 65536));
  const body = last(page).locator(".body");
  assert.deepEqual(await body.evaluate(b => [...b.children].map(c => c.tagName)), ["H2", "P", "UL", "OL", "BLOCKQUOTE", "TABLE", "PRE", "P"]);
  assert.equal(await body.locator("a").first().getAttribute("href"), "https://example.org/a?b=c");
  assert.equal(await body.locator("ul ul li").innerText(), "inner");
  await picture(page, "wide");
}));

// Source and what it is shown as; grown piece by piece it must come to the same.
const MARKDOWN = [
  ["Here:\n- a\n- b\n\n- c", "<p>Here:</p><ul><li>a</li><li>b</li><li>c</li></ul>"],
  ["Here:\n1. a\n2. b\nmore\n\nafter", "<p>Here:</p><ol start=\"1\"><li>a</li><li>b<br>more</li></ol><p>after</p>"],
  ["Here:\n> q\nafter\n---\nx", "<p>Here:</p><blockquote><p>q</p></blockquote><p>after</p><hr><p>x</p>"],
  ["Here:\n| a | b |\n|---|:-:|\n| 1 | 2 |\nafter | all\n\nx | y\nno table", "<p>Here:</p><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr><tr><td>after</td><td>all</td></tr></tbody></table><p>x | y<br>no table</p>"],
  ["In\n1986. a year", "<p>In<br>1986. a year</p>"],
  ["- a\n\n  second\n\n- b\n\n  ```c\n  int x;\n\n  - no\n  ```\n- c\n\ntext", "<ul><li>a<p>second</p></li><li>b<pre tabindex=\"0\"><code>int x;\n\n- no</code></pre></li><li>c</li></ul><p>text</p>"],
  ["1. a\n   - in\n     - deep\n2. b\n- other", "<ol start=\"1\"><li>a<ul><li>in<ul><li>deep</li></ul></li></ul></li><li>b</li></ol><ul><li>other</li></ul>"],
  ["__bold__ _it_ ***both*** ~~x~~ snake_case_name a*b*c", "<p><strong>bold</strong> <em>it</em> <strong><em>both</em></strong> <del>x</del> snake_case_name a*b*c</p>"],
  ["\\*not\\* a\\_b \\\\ `\\*`", "<p>*not* a_b \\ <code>\\*</code></p>"],
  ["```x``` is code\n\n~~~\n```\n~~~", "<p><code>x</code> is code</p><pre tabindex=\"0\"><code>```</code></pre>"],
];
await check("Markdown as models write it, at once and grown", with_page({}, async page => {
  for (const [source, wanted] of MARKDOWN)
    for (const step of [source.length, 1, 2, 5])
      assert.equal(await page.evaluate(async ([source, step]) => {
        const { Shown } = await import("/markdown.js"), node = document.createElement("div"), shown = new Shown(node);
        for (let n = step; n < source.length + step; n += step) shown.update(source.slice(0, n));
        return node.innerHTML;
      }, [source, step]), wanted, JSON.stringify(source) + " by " + step);
  const links = await page.evaluate(async () => {
    const { render } = await import("/markdown.js");
    return [...render("[w](https://example.org/C_(language)) and (https://example.org/x_(y)).").querySelectorAll("a")].map(a => a.href);
  });
  assert.deepEqual(links, ["https://example.org/C_(language)", "https://example.org/x_(y)"]);
}));

await check("thinking is seen to go on while it is folded", with_page({}, async page => {
  await page.fill("#text", "MARK-THINK");
  await page.press("#text", "Enter");
  await page.waitForFunction(() => /…/.test(document.querySelector(".assistant summary")?.textContent || ""));
  await page.keyboard.press("Escape");
  await done(page);
  assert.equal(await page.innerText(".assistant summary"), "Thinking");
}));

await check("edit: kept with Escape, replaced when sent", with_page({}, async page => {
  await ask(page, "first question");
  await ask(page, "second question");
  assert.deepEqual(await texts(page, ".assistant .body"), ["First answer.", "Second answer."]);
  await page.locator(".user").first().getByRole("button", { name: "Edit" }).click();
  assert.equal(await page.inputValue("#text"), "first question");
  assert.equal(await page.locator(".replaced").count(), 4);
  await page.keyboard.press("Escape");
  assert.equal(await page.inputValue("#text"), "");
  assert.equal(await page.locator(".replaced").count(), 0);
  assert.equal(await page.locator("article").count(), 4);
  await page.locator(".user").nth(1).getByRole("button", { name: "Edit" }).click();
  await ask(page, "changed question");
  assert.deepEqual(await texts(page, ".user .body"), ["first question", "changed question"]);
  assert.deepEqual(await texts(page, ".assistant .body"), ["First answer.", "Changed answer."]);
}));

await check("again: another answer in the place of the last", with_page({}, async page => {
  await ask(page, "MARK-AGAIN");
  assert.deepEqual(await texts(page, ".assistant .body"), ["First try."]);
  await last(page).getByRole("button", { name: "Again" }).click();
  await page.waitForFunction(() => /Second try/.test(document.querySelector(".assistant .body").textContent));
  await done(page);
  assert.deepEqual(await texts(page, ".assistant .body"), ["Second try."]);
}));

await check("reload: the conversation stays, goes on from the cache, and can be left", with_page({}, async page => {
  await ask(page, "first question " + "with a long text ".repeat(50));
  await page.reload();
  assert.deepEqual(await texts(page, ".assistant .body"), ["First answer."]);
  await ask(page, "second question");
  const [, cached, prompt] = /(\d+) of (\d+) prompt tokens from cache/.exec(await last(page).locator(".foot").innerText());
  assert(cached / prompt > 0.8, `${cached} of ${prompt}`);
  await page.getByRole("button", { name: "New chat" }).click();
  assert.equal(await page.locator("article").count(), 0);
  await page.reload();
  assert.equal(await page.locator("article").count(), 0);
}));

await check("reload in the middle of an answer keeps what was there", with_page({}, async page => {
  await page.fill("#text", "MARK-SLOW");
  await page.press("#text", "Enter");
  await page.waitForFunction(() => document.querySelector(".assistant .body")?.textContent.length > 50);
  await page.reload();
  assert.match(await last(page).locator(".body").innerText(), /^word word word/);
  assert.match(await last(page).locator(".foot").innerText(), /stopped/);
}));

await check("a server that went away is said, and Again asks it once more", async () => {
  const short = await serve(binary, [{ text: "x", error: "the device is on fire", error_at: "prefill" }]);
  await with_page({}, async page => {
    await ask(page, "hello");
    assert.match(await last(page).locator(".foot").innerText(), /on fire/);
    assert(await last(page).getByRole("button", { name: "Again" }).isEnabled());
    await short.stop();
    await last(page).getByRole("button", { name: "Again" }).click();
    await page.waitForFunction(() => /fetch/i.test(document.querySelector(".assistant .bad")?.textContent || ""));
    await page.evaluate(() => 0);
  }, short.url)().catch(e => { if (!/ERR_CONNECTION_REFUSED/.test(e.message)) throw e; });
});

await check("the key: asked for, refused, taken, kept for the page", async () => {
  const locked = await serve(binary, [{ text: "t</think>Open.", times: 0 }], ["--api-key", "right"]);
  try {
    await with_page({}, async page => {
      assert(await page.isVisible("#locked"));
      await picture(page, "key");
      await page.keyboard.type("wrong");
      await page.keyboard.press("Enter");
      await page.waitForSelector("#wrong:visible");
      await page.keyboard.type("right");
      await page.keyboard.press("Enter");
      await page.waitForFunction(() => document.getElementById("facts").textContent);
      assert(await page.isHidden("#locked"));
      await ask(page, "hello");
      assert.deepEqual(await texts(page, ".assistant .body"), ["Open."]);
      await page.reload();
      await page.waitForFunction(() => document.getElementById("facts").textContent);
      assert(await page.isHidden("#locked"));
    }, locked.url)();
    await with_page({}, async page => {
      await page.keyboard.press("Escape");
      await page.waitForSelector("#notice:visible");
      assert.match(await page.innerText("#notice"), /key/);
    }, locked.url)();
  } finally { await locked.stop(); }
});

await check("the keyboard alone is enough", with_page({}, async page => {
  const at = () => page.evaluate(() => document.activeElement.id || document.activeElement.textContent);
  assert.equal(await at(), "text");
  await page.keyboard.type("line one");
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.type("MARK-SLOW");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector(".assistant .body")?.textContent.length > 20);
  await page.keyboard.press("Tab");
  assert.equal(await at(), "thinking");
  await page.keyboard.press("Tab");
  assert.equal(await at(), "stop");
  assert.notEqual(await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle), "none");
  await page.keyboard.press("Enter");
  await done(page);
  assert.match(await last(page).locator(".foot").innerText(), /stopped/);
  assert.equal(await page.locator(".user .body").evaluate(n => n.textContent), "line one\nMARK-SLOW");
  assert.equal(await at(), "text");
  const seen = [];
  for (let i = 0; i < 12 && seen.at(-1) !== "Again"; i++) { await page.keyboard.press("Shift+Tab"); seen.push(await at()); }
  assert.equal(seen.at(-1), "Again");
  for (let i = 0; i < 12 && !seen.includes("fresh"); i++) { await page.keyboard.press("Shift+Tab"); seen.push(await at()); }
  for (const name of ["Edit", "Thinking", "fresh"]) assert(seen.includes(name), `${name} in ${seen}`);
  for (const control of await page.locator("button:visible, textarea, select, progress, input:visible").all()) {
    const named = await control.evaluate(n => n.getAttribute("aria-label") || n.labels?.[0]?.textContent.trim() || n.textContent.trim());
    assert(named, await control.evaluate(n => n.outerHTML));
  }
}));

await check("360 pixels are wide enough", with_page({ viewport: { width: 360, height: 640 }, hasTouch: true }, async page => {
  await ask(page, "MARK-SHOW " + "unbroken".repeat(30));
  const [inner, wide] = await page.evaluate(() => [document.documentElement.clientWidth, Math.max(document.documentElement.scrollWidth, document.body.scrollWidth, document.getElementById("talk").scrollWidth)]);
  assert.equal(inner, 360);
  assert(wide <= 360, `${wide} pixels`);
  for (const box of await page.locator("button:visible, select, textarea").evaluateAll(all => all.map(n => { const r = n.getBoundingClientRect(); return [n.id || n.textContent, r.left, r.right, r.height]; }))) {
    assert(box[1] >= 0 && box[2] <= 360, box.join(" "));
    assert(box[3] >= 24, "too small to touch: " + box.join(" "));
  }
  const size = which => page.locator(which).first().evaluate(n => parseFloat(getComputedStyle(n).fontSize));
  assert(await size("#text") >= 16);
  assert(await size(".assistant .body") >= 16);
  assert(await size(".foot") >= 12);
  assert(await page.locator("#talk").evaluate(n => n.clientHeight) > 300);
  await picture(page, "narrow");
}));

for (const colorScheme of ["light", "dark"]) await check(`${colorScheme}: colours that can be read`, with_page({ colorScheme }, async page => {
  await ask(page, "MARK-SHOW");
  await last(page).locator("summary").click();
  const [back, front] = await page.evaluate(() => { const s = getComputedStyle(document.body); return [s.backgroundColor, s.color].map(c => c.match(/\d+/g).slice(0, 3).reduce((a, v) => a + Number(v), 0)); });
  assert(colorScheme === "dark" ? back < 120 && front > 600 : back > 700 && front < 120, `${back} ${front}`);
  assert.deepEqual(await low_contrast(page), []);
  await page.locator(".user").getByRole("button", { name: "Edit" }).click();
  await picture(page, colorScheme);
}));

await browser.close();
await server.stop();
finish();
