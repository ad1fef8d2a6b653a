// The encoder of ds4 with a real vocabulary against a package of others on generated strings:
// node vocabulary.mjs FAMILY ENCODE FOLDER [STRINGS]      FAMILY: deepseek or qwen (tokenizer_FAMILY.mjs)
//
// Where the two differ, tokenizer.json decides through tokenizer_rules.mjs: with the package's white space (JavaScript's or
// Unicode's) and the file's normalisation the rules must give the package's ids, with Unicode's and none those of ds4, and
// bytes that are no UTF-8, which a JavaScript string cannot hold, must be kept by ds4 and be U+FFFD for the package. A
// difference that these do not produce fails.
import {execFileSync} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {groupsOf, pick, random, wordsOf} from './strings.mjs';
import {JAVASCRIPT, mergesOf, runsOf, TokenizerRules, UNICODE} from './tokenizer_rules.mjs';

const [, , family, encode, folder, strings] = process.argv;
if (!folder) {
    console.error('usage: node vocabulary.mjs FAMILY ENCODE FOLDER [STRINGS]');
    process.exit(2);
}
const {json, pretokenizer, white, peerIds: listOfPeer, lookalikes, written: WRITTEN} = await import(`./tokenizer_${family}.mjs`);
const N = +(strings || 2000);

// ---- the three encoders

const GROUPS = groupsOf(json, lookalikes), WORDS = wordsOf(json), names = Object.keys(GROUPS);
const normalised = (text) => (json.normalizer?.type === 'NFC' ? text.normalize('NFC') : text);
const rules = {[JAVASCRIPT]: new TokenizerRules(json, JAVASCRIPT), [UNICODE]: new TokenizerRules(json, UNICODE)};

function writeVocabulary(file) {
    const tokens = [];
    for (const [text, id] of Object.entries(json.model.vocab)) tokens[id] = text;
    for (const {id, content} of json.added_tokens) tokens[id] = content;
    const specials = json.added_tokens.map((t) => t.content);
    const block = (name, list) => `${name} ${list.length}\n${list.map((t) => `${t}\n`).join('')}`;
    fs.writeFileSync(file, `${block('tokens', tokens)}${block('merges', mergesOf(json))}${block('specials', specials)}plain 0\nrendered 0\n`);
}

function ourIds(vocabulary, cases) {
    const input = cases.map((c) => `${c.group === 'special' ? 'rendered' : 'plain'} ${c.bytes.toString('hex')}\n`).join('');
    const lines = execFileSync(encode, [pretokenizer, vocabulary], {input, encoding: 'utf8', maxBuffer: 1 << 28}).split('\n');
    return cases.map((_, i) => lines[i]);
}

const peerIds = (text) => listOfPeer(text).join();

// ---- comparing

// 'same', what explains the difference, or 'FAILED'
function verdict({group, bytes}, ours) {
    const text = bytes.toString('utf8'), theirs = peerIds(text);
    const by = (kind, from) => (group === 'special' ? rules[kind].encodeRendered(from.toString()) : rules[kind].encode(from)).join();
    if (ours !== by(UNICODE, bytes) || theirs !== by(white, Buffer.from(normalised(text)))) return 'FAILED';
    if (ours === theirs) return 'same';
    if (runsOf(bytes).some((r) => r.stray)) return 'bytes';
    if (text !== normalised(text)) return 'forms';
    return white === JAVASCRIPT && /[\u0085\ufeff]/.test(text) ? 'white' : 'FAILED';
}

function compareStrings(vocabulary) {
    const cases = Array.from({length: N}, (_, i) => ({group: names[i % names.length], bytes: Buffer.from(GROUPS[names[i % names.length]]())}));
    const ours = ourIds(vocabulary, cases);
    const count = Object.fromEntries(names.map((n) => [n, {same: 0, white: 0, bytes: 0, forms: 0, FAILED: 0}]));
    cases.forEach((c, i) => {
        const v = verdict(c, ours[i]);
        count[c.group][v]++;
        if (v === 'FAILED') console.log(`${c.group}: hex ${c.bytes.toString('hex')}: ds4 ${ours[i]}, package ${peerIds(c.bytes.toString())}`);
    });
    console.log('strings      same   white space   no UTF-8   not NFC   failed');
    for (const [n, c] of Object.entries(count)) {
        check(`${n.padEnd(10)}${String(c.same).padStart(7)}${String(c.white).padStart(14)}${String(c.bytes).padStart(11)}${String(c.forms).padStart(10)}${String(c.FAILED).padStart(9)}`, c.FAILED === 0);
    }
    const needed = count.bytes.bytes > 0 && (count.breaks.white > 0) === (white === JAVASCRIPT) && (count.marks.forms > 0) === (normalised('e\u0301') === 'é');
    check('every explanation was needed', needed);
}

// ---- speed: four times the text in at most six times the time

const MOST_RATIO = 6;

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
        const measure = () => execFileSync(encode, [pretokenizer, vocabulary, ...files], {encoding: 'utf8'}).trim().split('\n').map((l) => l.split(' ').map(Number));
        let [quarter, whole] = measure();
        // where another program was at work once, it is not so three times; quadratic time is sixteen times as long in all
        for (let again = 0; again < 2 && whole[2] >= MOST_RATIO * quarter[2]; again++) [quarter, whole] = measure();
        const ratio = whole[2] / quarter[2], mb = whole[0] / 1e6;
        check(`${name.padEnd(14)}${mb.toFixed(1).padStart(7)}${String(whole[1]).padStart(9)}${whole[2].toFixed(2).padStart(7)}${(mb / whole[2]).toFixed(1).padStart(8)}${ratio.toFixed(1).padStart(8)}`, ratio < MOST_RATIO);
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
