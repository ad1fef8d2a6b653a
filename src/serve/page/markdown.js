// Markdown to DOM nodes. Text only ever becomes text nodes; there is no way from it to markup, and nothing is loaded.

const SCHEMES = new Set(["http:", "https:", "mailto:"]);

function el(name, ...children) {
  const node = document.createElement(name);
  node.append(...children);
  return node;
}

function link(text, target) {
  let url;
  try { url = new URL(target); } catch { return [document.createTextNode(text)]; }
  if (!SCHEMES.has(url.protocol)) return [document.createTextNode(text)];
  const a = el("a", text);
  a.href = url.href;
  a.rel = "noopener noreferrer nofollow";
  a.target = "_blank";
  return [a];
}

// Marks inside a line, first match first. A picture is shown as a link to it.
const INLINE = /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|\*\*([^\s*](?:[\s\S]*?[^\s*])?)\*\*|(?<![\w*])\*([^\s*](?:[^*]*?[^\s*])?)\*(?![\w*])|!?\[([^\]\n]*)\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)|(https?:\/\/[^\s<>()"']+[^\s<>()"'.,;:!?])/;

// Searching for marks can take the square of a line's length; a line that long is no prose.
const LONGEST = 4000;

function inline(text, depth = 0) {
  const out = [];
  while (text) {
    const m = depth < 6 && text.length <= LONGEST ? INLINE.exec(text) : null;
    if (!m) break;
    if (m.index) out.push(document.createTextNode(text.slice(0, m.index)));
    if (m[1] !== undefined) out.push(el("code", m[2].trim() ? m[2].replace(/^ (.*) $/s, "$1") : m[2]));
    else if (m[3] !== undefined) out.push(el("strong", ...inline(m[3], depth + 1)));
    else if (m[4] !== undefined) out.push(el("em", ...inline(m[4], depth + 1)));
    else if (m[5] !== undefined) out.push(...link(m[5] || m[6], m[6]));
    else out.push(...link(m[7], m[7]));
    text = text.slice(m.index + m[0].length);
  }
  if (text) out.push(document.createTextNode(text));
  return out;
}

// A list this long goes on in another one from the next item at the margin: what grows stays small.
const LONG_LIST = 4000, ITEM = /^(?:[-*+]|\d+[.)])\s/;

// Source text to blocks { at, text }, each a piece of the source, from offset `at`, that can be shown by itself.
export function blocks(source) {
  const out = [];
  let lines = [], fence = null, at = 0, start = 0;
  const flush = () => { if (lines.some(l => l.trim())) out.push({ at: start, text: lines.join("\n") }); lines = []; };
  const take = line => { if (!lines.length) start = at; lines.push(line); };
  for (const line of source.split("\n")) {
    const mark = /^ {0,3}(`{3,}|~{3,})(.*)$/.exec(line);
    if (fence) {
      take(line);
      if (closes(line, fence)) { fence = null; flush(); }
    } else if (mark) {
      flush();
      fence = mark[1];
      take(line);
    } else if (!line.trim()) flush();
    else if (/^ {0,3}#{1,6}\s/.test(line)) { flush(); take(line); flush(); }
    else if (at - start > LONG_LIST && lines.length && ITEM.test(lines[0]) && ITEM.test(line)) { flush(); take(line); }
    else take(line);
    at += line.length + 1;
  }
  flush();
  return out;
}

const fence_of = line => /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
const closes = (line, fence) => { const t = line.trim(); return t.length >= fence.length && t === fence[0].repeat(t.length); };

function code_of(block) {
  const lines = block.split("\n"), closed = lines.length > 1 && closes(lines[lines.length - 1], fence_of(lines[0]));
  return lines.slice(1, closed ? -1 : undefined).join("\n");
}

function list(lines) {
  const ordered = /^\s*\d+[.)]\s/.test(lines[0]);
  const root = el(ordered ? "ol" : "ul");
  if (ordered) root.start = parseInt(lines[0], 10);
  const stack = [{ indent: -1, node: root }];
  for (const line of lines) {
    const m = /^(\s*)(?:[-*+]|\d+[.)])\s+(.*)$/.exec(line);
    const top = () => stack[stack.length - 1];
    if (!m) { const item = top().node.lastElementChild; if (item) item.append(" ", ...inline(line.trim())); continue; }
    const indent = m[1].length;
    while (stack.length > 1 && indent < top().indent) stack.pop();
    if (top().indent >= 0 && indent > top().indent + 1 && top().node.lastElementChild) {
      const inner = el(/^\s*\d/.test(line) ? "ol" : "ul");
      top().node.lastElementChild.append(inner);
      stack.push({ indent, node: inner });
    } else top().indent = Math.max(top().indent, indent);
    top().node.append(el("li", ...inline(m[2])));
  }
  return root;
}

function table(lines) {
  const cells = line => line.trim().replace(/^\||\|$/g, "").split("|").map(c => c.trim());
  const body = el("tbody");
  for (const line of lines.slice(2)) body.append(el("tr", ...cells(line).map(c => el("td", ...inline(c)))));
  return el("table", el("thead", el("tr", ...cells(lines[0]).map(c => el("th", ...inline(c))))), body);
}

// One block to a node; quotes in quotes are taken apart to some depth.
export function render(block, depth = 0) {
  const lines = block.split("\n");
  if (fence_of(lines[0])) {
    const pre = el("pre", el("code", document.createTextNode(code_of(block))));
    pre.tabIndex = 0; // wide code is scrolled with the keyboard as well
    return pre;
  }
  const heading = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/.exec(lines[0]);
  if (heading) return el("h" + Math.min(4, heading[1].length), ...inline(heading[2]));
  if (/^\s*(?:[-*_]\s*){3,}$/.test(block)) return el("hr");
  if (depth < 8 && lines.every(l => /^ {0,3}>/.test(l))) {
    const quote = el("blockquote");
    quote.append(...blocks(lines.map(l => l.replace(/^ {0,3}> ?/, "")).join("\n")).map(b => render(b.text, depth + 1)));
    return quote;
  }
  if (/^\s*(?:[-*+]|\d+[.)])\s/.test(lines[0])) return list(lines);
  if (lines.length > 2 && lines[0].includes("|") && /^[\s|:-]+$/.test(lines[1]) && lines[1].includes("-")) return table(lines);
  const p = el("p");
  lines.forEach((line, i) => { if (i) p.append(el("br")); p.append(...inline(line)); });
  return p;
}

// Shows text that grows. Blocks that another one follows are settled: neither read nor made again.
export class Shown {
  constructor(node) { this.node = node; this.clear(); }
  clear() { this.node.replaceChildren(); this.length = this.at = 0; this.last = null; }
  update(text) {
    if (text.length < this.length) this.clear();
    this.length = text.length;
    const now = blocks(text.slice(this.at));
    now.forEach((b, i) => {
      if (i || !this.last) this.node.append(render(b.text));
      else if (b.text !== this.last) this.grow(b.text);
    });
    if (!now.length) return;
    this.last = now[now.length - 1].text;
    this.at += now[now.length - 1].at;
  }
  // The last block has changed. Code, which can be long, is only added to.
  grow(block) {
    const node = this.node.lastElementChild, code = node.tagName === "PRE" && fence_of(block) ? node.firstChild.firstChild : null;
    if (!code) { node.replaceWith(render(block)); return; }
    const now = code_of(block);
    if (now.startsWith(code.data)) code.appendData(now.slice(code.length)); else code.data = now;
  }
}
