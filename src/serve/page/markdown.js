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
const ESCAPE = /\\([!-/:-@[-`{-~])/.source, CODE = /(`+)([^`]|[^`][\s\S]*?[^`])\2(?!`)/.source;
const BOTH = /\*\*\*([^\s*](?:[\s\S]*?[^\s*\\])?)\*\*\*/.source;
const STRONG = /\*\*([^\s*](?:[\s\S]*?[^\s\\])?)\*\*(?!\*)|(?<!\w)__([^\s_](?:[\s\S]*?[^\s\\])?)__(?!\w)/.source;
const EM = /(?<![\w*])\*([^\s*](?:[^*]*?[^\s*\\])?)\*(?![\w*])|(?<!\w)_([^\s_](?:[^_]*?[^\s_\\])?)_(?!\w)/.source;
const GONE = /~~([^\s~](?:[^~]*?[^\s~\\])?)~~/.source;
const LINK = /!?\[([^\]\n]*)\]\((?:<([^<>\n]+)>|((?:[^()\s<>]|\([^()\s]*\))+))(?:\s+"[^"]*")?\)/.source;
const ADDRESS = /(https?:\/\/(?:[^\s<>()"']|\([^\s<>()"']*\))*(?:[^\s<>()"'.,;:!?*_]|\([^\s<>()"']*\)))/.source;
const INLINE = new RegExp([ESCAPE, CODE, BOTH, STRONG, EM, GONE, LINK, ADDRESS].join("|"));

// Searching for marks can take the square of a line's length; a line that long is no prose.
const LONGEST = 4000;

function inline(text, depth = 0) {
  const out = [];
  let plain = "";
  const put = (...nodes) => { if (plain) out.push(document.createTextNode(plain)); plain = ""; out.push(...nodes); };
  while (text) {
    const m = depth < 6 && text.length <= LONGEST ? INLINE.exec(text) : null;
    if (!m) break;
    const [all, escaped, , code, both, strong1, strong2, em1, em2, gone, words, target1, target2, address] = m;
    const strong = strong1 ?? strong2, em = em1 ?? em2, target = target1 ?? target2;
    plain += text.slice(0, m.index);
    if (escaped) plain += escaped;
    else if (code !== undefined) put(el("code", code.trim() ? code.replace(/^ (.*) $/s, "$1") : code));
    else if (both !== undefined) put(el("strong", el("em", ...inline(both, depth + 1))));
    else if (strong !== undefined) put(el("strong", ...inline(strong, depth + 1)));
    else if (em !== undefined) put(el("em", ...inline(em, depth + 1)));
    else if (gone !== undefined) put(el("del", ...inline(gone, depth + 1)));
    else if (target !== undefined) put(...link(words || target, target));
    else put(...link(address, address));
    text = text.slice(m.index + all.length);
  }
  plain += text;
  put();
  return out;
}

// What a line begins. An item has its own indent, its mark, and where its text starts.
const FENCE = /^\s*(?:(?:[-*+]|\d{1,9}[.)])\s+)*(`{3,}(?=[^`]*$)|~{3,})/, HEADING = /^ {0,3}#{1,6}\s/, QUOTE = /^ {0,3}>/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])(?:\s+|$)/, RULE = /^ {0,3}(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})$/;
// An item that may follow a line of text at once: "1986. was a year" is none.
const INTERRUPTS = /^ {0,3}(?:[-*+]|1[.)])\s+\S/;
const closes = (line, fence) => { const t = line.trim(); return t.length >= fence.length && t === fence[0].repeat(t.length); };
const numbered = line => /^\s*\d/.test(line);
const cells = line => line.trim().replace(/^\||\|$/g, "").split("|").map(c => c.trim());
const heads_table = (line, next) => line.includes("|") && /^[\s|:-]+$/.test(next) && next.includes("-") && next.includes("|") &&
  cells(line).length === cells(next).length;

// A list this long goes on in another one from the next item at the margin: what grows stays small.
const LONG_LIST = 4000;

// Whether a list goes on with this line; gap: an empty one stands before it.
function list_goes_on(first, line, gap, length) {
  const base = ITEM.exec(first)[1].length, inside = line.search(/\S/) >= base + 2;
  if (inside) return true;
  if (RULE.test(line)) return false;
  if (ITEM.test(line)) return numbered(line) === numbered(first) && length <= LONG_LIST;
  return !gap && !HEADING.test(line) && !QUOTE.test(line) && !FENCE.test(line);
}

// What begins with a line where nothing is open.
const kind_of = line => FENCE.test(line) && !ITEM.test(line) ? "code" : RULE.test(line) || HEADING.test(line) ? "line" :
  QUOTE.test(line) ? "quote" : ITEM.test(line) ? "list" : "text";

function goes_on(kind, lines, line, gap, length) {
  if (kind === "list") return list_goes_on(lines[0], line, gap, length);
  if (kind === "text") return kind_of(line) === "text" || (kind_of(line) === "list" && !INTERRUPTS.test(line));
  return kind === "quote" ? QUOTE.test(line) : kind === "table" && line.includes("|");
}

// Source text to blocks { at, text }, each a piece of the source, from offset `at`, that can be shown by itself.
export function blocks(source) {
  const out = [];
  let lines = [], kind = "", fence = null, gap = 0, at = 0, start = 0;
  const flush = () => { if (lines.length) out.push({ at: start, text: lines.join("\n") }); lines = []; gap = 0; };
  const open = (k, line, from) => { flush(); kind = k; start = from; lines.push(line); };
  for (const line of source.split("\n")) {
    if (fence) {
      lines.push(line);
      if (closes(line, fence)) { fence = null; if (kind === "code") flush(); }
    } else if (!line.trim()) { if (kind === "list" && lines.length) gap++; else flush(); }
    else {
      if (lines.length && goes_on(kind, lines, line, gap, at - start)) {
        for (; gap; gap--) lines.push("");
        lines.push(line);
        const head = lines[lines.length - 2];
        if (kind === "text" && heads_table(head, line)) {
          lines.length -= 2;
          open("table", head, at - head.length - 1);
          lines.push(line);
        }
      } else open(kind_of(line), line, at);
      if (kind === "code" || kind === "list") fence = FENCE.exec(line)?.[1] ?? null;
      if (kind === "line") flush();
    }
    at += line.length + 1;
  }
  flush();
  return out;
}

function code_of(block) {
  const lines = block.split("\n"), closed = lines.length > 1 && closes(lines[lines.length - 1], FENCE.exec(lines[0])[1]);
  return lines.slice(1, closed ? -1 : undefined).join("\n");
}

// The lines of an item, without its mark and indent, to its node. Its first paragraph stands by the mark.
function item(lines, depth) {
  const li = el("li");
  for (const b of blocks(lines.join("\n"))) {
    const node = render(b.text, depth + 1);
    if (node.tagName === "P" && !li.firstChild) li.append(...node.childNodes); else li.append(node);
  }
  return li;
}

function list(lines, depth) {
  const base = ITEM.exec(lines[0])[1].length, root = el(numbered(lines[0]) ? "ol" : "ul");
  if (numbered(lines[0])) root.start = parseInt(lines[0], 10);
  let own = [], width = 0, fence = null;
  const close = () => { if (own.length) root.append(item(own, depth)); };
  for (const line of lines) {
    const m = fence ? null : ITEM.exec(line);
    if (m && (!own.length || m[1].length < base + 2)) {
      close();
      width = Math.min(m[0].length, m[1].length + m[2].length + 4);
      own = [line.slice(width)];
    } else own.push(line.slice(Math.min(width, Math.max(0, line.search(/\S|$/)))));
    fence = fence ? (closes(line, fence) ? null : fence) : FENCE.exec(line)?.[1] ?? null;
  }
  close();
  return root;
}

function table(lines) {
  const body = el("tbody");
  for (const line of lines.slice(2)) body.append(el("tr", ...cells(line).map(c => el("td", ...inline(c)))));
  return el("table", el("thead", el("tr", ...cells(lines[0]).map(c => el("th", ...inline(c))))), body);
}

// One block to a node; quotes and lists in others are taken apart to some depth.
export function render(block, depth = 0) {
  const lines = block.split("\n");
  if (kind_of(lines[0]) === "code") {
    const pre = el("pre", el("code", document.createTextNode(code_of(block))));
    pre.tabIndex = 0; // wide code is scrolled with the keyboard as well
    return pre;
  }
  const heading = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/.exec(lines[0]);
  if (heading) return el("h" + Math.min(4, heading[1].length), ...inline(heading[2]));
  if (RULE.test(block)) return el("hr");
  if (depth < 8 && QUOTE.test(lines[0])) {
    const quote = el("blockquote");
    quote.append(...blocks(lines.map(l => l.replace(/^ {0,3}> ?/, "")).join("\n")).map(b => render(b.text, depth + 1)));
    return quote;
  }
  if (depth < 8 && ITEM.test(lines[0])) return list(lines, depth);
  if (lines.length > 1 && heads_table(lines[0], lines[1])) return table(lines);
  const p = el("p");
  lines.forEach((line, i) => { if (i) p.append(el("br")); p.append(...inline(line.trim())); });
  return p;
}

// Shows text that grows. Blocks are settled, neither read nor made again, once the one behind them cannot become a part
// of them any more: its first two lines are whole.
export class Shown {
  constructor(node) { this.node = node; this.clear(); }
  clear() { this.node.replaceChildren(); this.length = this.at = 0; this.open = []; }
  update(text) {
    if (text.length < this.length) this.clear();
    this.length = text.length;
    const now = blocks(text.slice(this.at)), nodes = [...this.node.children].slice(this.node.children.length - this.open.length);
    now.forEach((b, i) => {
      if (i >= this.open.length) this.node.append(render(b.text));
      else if (b.text !== this.open[i]) this.grow(nodes[i], b.text);
    });
    nodes.slice(now.length).forEach(node => node.remove());
    const settled = /\n[^\n]*\n/.test(now.at(-1)?.text ?? "") ? now.length - 1 : Math.max(0, now.length - 2);
    this.open = now.slice(settled).map(b => b.text);
    this.at += now[settled]?.at ?? 0;
  }
  // A block has changed. Code, which can be long, is only added to.
  grow(node, block) {
    const code = node.tagName === "PRE" && kind_of(block) === "code" ? node.firstChild.firstChild : null;
    if (!code) { node.replaceWith(render(block)); return; }
    const now = code_of(block);
    if (now.startsWith(code.data)) code.appendData(now.slice(code.length)); else code.data = now;
  }
}
