// The web page in a headless Chromium, and what a page test asks of it.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chromium } from "playwright-core";

const find = () => {
  for (const name of ["chromium", "chromium-browser", "google-chrome"])
    try { return execFileSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).trim(); } catch { /* the next one */ }
};

export const launch = () => chromium.launch({ executablePath: process.env.CHROMIUM || find(), args: ["--no-sandbox", "--disable-dev-shm-usage"], timeout: 120000 });

// Opens the page of a server by itself. Whatever it asks of other places, runs or complains about is kept for `clean`.
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1000, height: 800 }, reducedMotion: "reduce", ...options });
  context.setDefaultTimeout(30000);
  const page = await context.newPage(), elsewhere = [], said = [];
  context.on("request", r => { if (!r.url().startsWith(url + "/")) elsewhere.push(r.url()); });
  context.on("page", p => said.push("opened " + p.url()));
  page.on("dialog", d => { said.push("dialog " + d.message()); d.dismiss(); });
  page.on("pageerror", e => said.push("error " + e.message));
  page.on("console", m => { if (m.type() === "error" && !/status of (401|503|400)/.test(m.text())) said.push("console " + m.text()); });
  await page.goto(url + "/");
  await page.waitForFunction(() => document.getElementById("facts").textContent || document.getElementById("locked").open || !document.getElementById("notice").hidden);
  const clean = () => { assert.deepEqual(elsewhere, []); assert.deepEqual(said, []); };
  return { page, clean, close: () => context.close() };
}

// Sends a message; answers when the answer has ended.
export async function ask(page, text) {
  await page.fill("#text", text);
  await page.press("#text", "Enter");
  await done(page);
}
export async function done(page) {
  await page.waitForFunction(() => document.getElementById("talk").getAttribute("aria-busy") === "false", null, { timeout: 60000 });
}
export const last = page => page.locator("article.assistant").last();

// Visible text whose contrast with what is behind it is below 4.5, as "text: ratio".
export const low_contrast = page => page.evaluate(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgb = css => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = css; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const luminance = c => c.slice(0, 3).map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((a, v, i) => a + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = node => { for (; node; node = node.parentElement) { const c = rgb(getComputedStyle(node).backgroundColor); if (c[3] === 255) return c; } return [255, 255, 255, 255]; };
  const bad = [];
  const judge = (node, text, css) => {
    const a = luminance(rgb(css)), b = luminance(behind(node)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push(`${text.trim().slice(0, 30)}: ${ratio.toFixed(2)}`);
  };
  for (const node of document.querySelectorAll("body *")) {
    if (!node.checkVisibility() || node.classList.contains("hidden")) continue;
    const text = [...node.childNodes].filter(n => n.nodeType === 3).map(n => n.data).join("");
    if (text.trim()) judge(node, text, getComputedStyle(node).color);
    if (node.placeholder) judge(node, node.placeholder, getComputedStyle(node, "::placeholder").color);
  }
  return bad;
});
