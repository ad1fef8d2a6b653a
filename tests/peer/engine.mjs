// Logits of ds4 against those of llama.cpp (npm node-llama-cpp) on random models: node engine.mjs DS4 FOLDER SHAPES WRITER...
//
// Both get the same ids and no simulated FP8 or FP4 roundings, the peer an F32 cache and no flash attention. Of every
// position: the mean |difference| of the log-probabilities of the peer's 20 most probable tokens. Of every file: the
// median over the positions of all its prompts that can be compared. A position where two rows or experts score nearly
// alike may be far off, because the engines then choose differently; those are counted. SHAPES: the first so many of each
// writer, 0: all.
import {execFileSync} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {getLlama} from 'node-llama-cpp';

const TOP = 20;
// By kind of file: the largest median, the largest share of positions over ten times that, and what a tenth of the positions
// must not exceed, if there is such a limit. In F32 nothing but a tie explains a position that is far off; a peer that rounds
// activations, as it does for the other kinds, flips more choices. Types whose activations have exact scales (blocks of 256)
// agree as F32 does until the first rounding falls the other way.
const LIMITS = {
    f32: [1e-5, 0.05],
    f16: [0.003, 0.5],
    q8: [0.02, 0.5],
    q4: [0.02, 0.5],
    q2: [0.05, 0.5],
    'qwen-f32': [1e-5, 0.05],
    'qwen-f16': [0.02, 0.5],
};
for (const [family, rounded] of [['v4', 0.02], ['qwen', 0.003]]) {
    LIMITS[`${family}-rows`] = [1e-5, 0.05];
    for (const types of ['32', 'mxfp4', 'rare', 'nine']) LIMITS[`${family}-${types}`] = [rounded, 0.05];
    for (const types of ['k', 'iq', 'iq1']) LIMITS[`${family}-${types}`] = [rounded, 0.05, 1e-5];
}

const [, , ds4, folder, shapes, ...writers] = process.argv;
if (!writers.length) {
    console.error('usage: node engine.mjs DS4 FOLDER SHAPES WRITER...');
    process.exit(2);
}

// [position][TOP] of [id, log-probability]
async function peerLogprobs(model, ids) {
    const context = await model.createContext({
        contextSize: 256,
        batchSize: 256,
        threads: 2,
        flashAttention: false,
        experimentalKvCacheKeyType: 'F32',
        experimentalKvCacheValueType: 'F32',
    });
    const steps = await context.getSequence().controlledEvaluate(ids.map((id) => [id, {generateNext: {probabilities: true}}]));
    await context.dispose();
    return steps.map((step) => {
        const all = [...step.next.probabilities].sort((a, b) => b[1] - a[1]);
        return all.slice(0, TOP).map(([id, p]) => [id, Math.log(p)]);
    });
}

// [position] of float32[vocabulary]
function ourLogits(file, ids, nVocab) {
    const out = path.join(folder, 'logits');
    execFileSync(ds4, ['-m', file, '--kv-sim', 'off', '--ctx', '256', '--token-ids', ids.join(','), '--logits-out', out], {
        stdio: ['ignore', 'ignore', 'inherit'],
    });
    const bytes = fs.readFileSync(out);
    if (bytes.length !== ids.length * nVocab * 4) throw new Error(`${file}: ${bytes.length} bytes of logits`);
    const all = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
    return ids.map((_, i) => all.subarray(i * nVocab, (i + 1) * nVocab));
}

function logSumExp(x) {
    let most = -Infinity, sum = 0;
    for (const v of x) most = Math.max(most, v);
    for (const v of x) sum += Math.exp(v - most);
    return most + Math.log(sum);
}

// NaN where ours has one: it then sorts as infinitely far off.
function distance(logits, top) {
    const norm = logSumExp(logits);
    const sum = top.reduce((s, [id, p]) => s + Math.abs(logits[id] - norm - p), 0);
    return Number.isNaN(sum) ? Infinity : sum / top.length;
}

async function compareFile(llama, name, prompts) {
    const file = path.join(folder, `${name}.gguf`);
    const model = await llama.loadModel({modelPath: file, gpuLayers: 0});
    const d = [];
    for (const {ids, nVocab, all, block} of prompts) {
        const peer = await peerLogprobs(model, ids), ours = ourLogits(file, ids, nVocab);
        for (let i = 0; i < ids.length; i++)
            if (i < all || (i + 2) % block === 0) d.push(distance(ours[i], peer[i]));
    }
    await model.dispose();
    return d.sort((a, b) => a - b);
}

function listed(text) {
    const files = new Map();
    for (const line of text.trim().split('\n')) {
        const [name, kind, nVocab, compared, ids] = line.split(' ');
        const [all, block] = compared.split('/').map(Number);
        if (!files.has(name)) files.set(name, {kind, prompts: []});
        files.get(name).prompts.push({ids: ids.split(',').map(Number), nVocab: +nVocab, all, block});
    }
    return files;
}

const llama = await getLlama({gpu: false, build: 'never', logLevel: 'error'});
const shapesOf = (writer) => Array.from({length: Math.min(+shapes || Infinity, +execFileSync(writer))}, (_, i) => [writer, i]);
let passed = 0, failed = 0;
const kinds = new Map(); // what the files of each kind have in common
console.log('file           positions    1 of 10     median    9 of 10    largest   over 10x');
for (const [writer, i] of writers.flatMap(shapesOf)) {
    for (const [name, {kind, prompts}] of listed(execFileSync(writer, [i, folder], {encoding: 'utf8'}))) {
        const [mostMedian, mostOff, mostOfTenth] = LIMITS[kind];
        const d = await compareFile(llama, name, prompts);
        const tenth = d[Math.floor(d.length / 10)], median = d[d.length >> 1], off = d.filter((x) => x > 10 * mostMedian).length;
        const good = median <= mostMedian && off <= mostOff * d.length && tenth <= (mostOfTenth ?? mostMedian);
        good ? passed++ : failed++;
        const cells = [tenth, median, d[Math.floor(d.length * 0.9)], d.at(-1)].map((x) => x.toExponential(1).padStart(11));
        console.log(`${name.padEnd(13)} ${String(d.length).padStart(10)}${cells.join('')}${String(off).padStart(11)}${good ? '' : '   FAILED'}`);
        fs.rmSync(path.join(folder, `${name}.gguf`));
        const k = kinds.get(kind) ?? {files: 0, prompts: 0, positions: 0, medians: [], off: 0, most: 0};
        kinds.set(kind, {
            files: k.files + 1,
            prompts: k.prompts + prompts.length,
            positions: k.positions + d.length,
            medians: [...k.medians, median],
            off: k.off + off,
            most: Math.max(k.most, d.at(-1)),
        });
    }
}
console.log('kind          files   prompts   positions      limit    medians               over 10x   largest');
for (const [kind, k] of kinds) {
    const e = (x) => x.toExponential(1);
    const counts = [k.files, k.prompts, k.positions].map((x, i) => String(x).padStart([6, 10, 12][i])).join('');
    const range = `${e(Math.min(...k.medians))} to ${e(Math.max(...k.medians))}`;
    console.log(`${kind.padEnd(13)}${counts}${e(LIMITS[kind][0]).padStart(11)}    ${range.padEnd(20)}${String(k.off).padStart(10)}${e(k.most).padStart(10)}`);
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
