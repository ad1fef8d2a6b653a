#!/usr/bin/env node
// ds4 beside llama.cpp (node-llama-cpp, as tests/peer/package-lock.json pins it) on one file: speed of prompts and of answers.
//
//     bench/beside_peer.mjs --build build/release --model m.gguf --text novel.txt [--lengths 512,2048] [--tokens 32]
//                           [--rounds 3] [--threads N] [--peer-batch N]
//
// Every measurement is a process of its own that opens the file, reads a prompt of that many tokens of the text, and decodes the
// text's next tokens one by one; both get the same ids and threads. They alternate: A B B A A B ... Before and behind each
// the speed of memory is probed (ds4 --doctor): where the two lie more than a tenth apart another program was at work, and the
// measurement is repeated, at most five times. Printed are the medians, with machine, date and commands.
//
// Both engines map the file, so it is in memory once; a prompt that nobody counts is read first by each, to bring it there.
// Exit status: 0; 1 nothing could be measured, or the machine was never quiet; 2 wrong use.
import {execFileSync, spawnSync} from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {fileURLToPath, pathToFileURL} from 'node:url';

const APART = 1.1, REPEATS = 5;
const here = fileURLToPath(import.meta.url), root = path.dirname(path.dirname(here));
const peerFolder = path.join(root, 'tests/peer/node_modules/node-llama-cpp');

class Failure extends Error {
    constructor(status, text) {
        super(text);
        this.status = status;
    }
}

function fail(status, text) {
    throw new Failure(status, text);
}

function options(argv) {
    const o = {build: 'build/release', lengths: '512,2048', tokens: '32', rounds: '3', 'peer-batch': '512'};
    const known = ['build', 'model', 'text', 'lengths', 'tokens', 'rounds', 'threads', 'peer-batch'];
    for (let i = 0; i < argv.length; i += 2) {
        const name = argv[i].replace(/^--/, '');
        if (!known.includes(name) || argv[i + 1] === undefined) fail(2, `${argv[i]} is no option, or has no value`);
        o[name] = argv[i + 1];
    }
    if (!o.model || !o.text) fail(2, 'give --model FILE and --text FILE');
    const whole = (name) => (/^[1-9][0-9]*$/.test(o[name]) ? Number(o[name]) : fail(2, `--${name}: '${o[name]}' is no number`));
    const lengths = o.lengths.split(',').map(Number);
    if (!lengths.every((n) => Number.isInteger(n) && n > 0)) fail(2, `--lengths: '${o.lengths}' is no list of numbers`);
    return {
        ...o,
        lengths,
        tokens: whole('tokens'),
        rounds: whole('rounds'),
        batch: whole('peer-batch'),
        threads: o.threads ? whole('threads') : 0,
        ds4: path.join(o.build, 'ds4'),
        bench: path.join(o.build, 'ds4-bench'),
    };
}

const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];

// ---- the peer's process: node beside_peer.mjs peer MODEL THREADS BATCH LENGTH < ids; prints {prefill, decode} in t/s

async function peer(model, threads, batch, length) {
    const {getLlama} = await import(pathToFileURL(path.join(peerFolder, 'dist/index.js')));
    const ids = JSON.parse(fs.readFileSync(0, 'utf8'));
    const llama = await getLlama({gpu: false, build: 'never', logLevel: 'error'});
    const m = await llama.loadModel({modelPath: model, gpuLayers: 0});
    const context = await m.createContext({contextSize: ids.length + 8, batchSize: batch, threads});
    const sequence = context.getSequence();
    const next = (id) => [id, {generateNext: {token: true, options: {temperature: 0}}}];
    const prompt = ids.slice(0, length), rest = ids.slice(length);
    const start = performance.now();
    await sequence.controlledEvaluate([...prompt.slice(0, -1), next(prompt.at(-1))]);
    const middle = performance.now();
    for (const id of rest) await sequence.controlledEvaluate([next(id)]);
    const end = performance.now();
    const speed = (n, ms) => (n ? (1e3 * n) / ms : 0);
    console.log(JSON.stringify({prefill: speed(length, middle - start), decode: speed(rest.length, end - middle)}));
    process.exit(0);
}

// ---- both, as the main process runs them

function run(command, args, input) {
    const r = spawnSync(command, args, {input, encoding: 'utf8', maxBuffer: 1 << 28});
    if (r.error) fail(1, `${command}: ${r.error.message}`);
    if (r.status !== 0) fail(1, `${command} ${args.join(' ')} ended with ${r.status ?? r.signal}:\n${r.stderr.slice(-2000)}`);
    return r;
}

// The first ids of the text, as ds4 cuts it.
function idsOf(o, n) {
    const part = path.join(o.work, 'part');
    for (let bytes = 8 * n; ; bytes *= 2) {
        const text = fs.readFileSync(o.text).subarray(0, bytes);
        fs.writeFileSync(part, text);
        const out = run(o.ds4, ['-m', o.model, '--raw', '--prompt-file', part, '--dump-tokens']).stdout;
        const ids = JSON.parse(out.slice(0, out.indexOf('\n')));
        if (ids.length > n) return ids.slice(0, n); // not the last one, in which the text was cut
        if (text.length < bytes) fail(1, `${o.text} has ${ids.length} tokens, and more than ${n} are needed`);
    }
}

const ours = (o, length) => ['-m', o.model, '-t', String(o.threads), '--prompt-file', o.text, '--ctx-start', String(length), '--ctx-max', String(length),
    '-n', String(o.tokens), '--teacher-forced-decode'];

function runOurs(o, length) {
    const [names, values] = run(o.bench, ours(o, length)).stdout.trim().split('\n').map((line) => line.split(','));
    const value = (name) => Number(values[names.indexOf(name)]);
    return {prefill: value('prefill_tps'), decode: value('gen_tps')};
}

const theirs = (o, length) => [here, 'peer', o.model, String(o.threads), String(o.batch), String(length)];

function runPeer(o, length) {
    const ids = o.ids.slice(0, length + o.tokens);
    return JSON.parse(run(process.execPath, theirs(o, length), JSON.stringify(ids)).stdout.trim().split('\n').at(-1));
}

// GB/s
function probe(o) {
    const found = /^memory read +([0-9.]+) GB\/s/m.exec(run(o.ds4, ['--doctor', '-t', String(o.threads)]).stdout);
    return found ? Number(found[1]) : fail(1, 'ds4 --doctor says nothing of the speed of memory');
}

// One measurement between two probes that agree.
function measure(o, engine, length) {
    for (let i = 0; i < REPEATS; i++) {
        const before = probe(o), result = engine(o, length), after = probe(o);
        const apart = Math.max(before, after) / Math.min(before, after);
        const name = engine === runOurs ? 'ds4' : 'peer';
        const said = `${name} ${length}: prefill ${result.prefill.toFixed(2)}, decode ${result.decode.toFixed(2)} t/s; memory ${before} and ${after} GB/s`;
        if (apart <= APART) {
            console.error(said);
            return {...result, memory: [before, after]};
        }
        console.error(`${said}: another program was at work, once more`);
    }
    return fail(1, `the machine was not quiet in ${REPEATS} attempts`);
}

function processor() {
    try {
        return /^model name\s*: (.*)$/m.exec(fs.readFileSync('/proc/cpuinfo', 'utf8'))[1];
    } catch {
        return os.cpus()[0]?.model ?? 'unknown';
    }
}

function printTable(o, rows) {
    const lock = JSON.parse(fs.readFileSync(path.join(peerFolder, 'package.json'), 'utf8')).version;
    const release = JSON.parse(fs.readFileSync(path.join(peerFolder, 'llama/binariesGithubRelease.json'), 'utf8')).release;
    const memory = rows.flatMap((r) => r.memory);
    console.log(`${new Date().toISOString().slice(0, 10)}, ${processor()}, ${o.threads} threads, memory read ${Math.min(...memory)} to ${Math.max(...memory)} GB/s.`);
    console.log(`${path.basename(o.model)}, ${(fs.statSync(o.model).size / 1e9).toFixed(1)} GB; node-llama-cpp ${lock} (llama.cpp ${release}), batches of ${o.batch}.`);
    console.log(`Medians of ${o.rounds} measurements of each, in alternation; ${o.tokens} tokens decoded.\n`);
    console.log('| prompt | prefill ds4 | peer | | decode ds4 | peer | |\n|---|---|---|---|---|---|---|');
    for (const r of rows) {
        const pair = (what) => {
            const a = median(r.ours.map((x) => x[what])), b = median(r.peer.map((x) => x[what]));
            return `${a.toFixed(2)} t/s | ${b.toFixed(2)} t/s | ${(a / b).toFixed(2)} times`;
        };
        console.log(`| ${r.length} | ${pair('prefill')} | ${pair('decode')} |`);
    }
    console.log(`\n    ${o.bench} ${ours(o, 'N').join(' ')}\n    node ${theirs(o, 'N').map((w) => w.replace(`${root}/`, '')).join(' ')} <ids`);
}

function main(argv) {
    const o = options(argv);
    if (!fs.existsSync(peerFolder)) fail(1, 'the peer is not installed; make peer does that, or npm ci --ignore-scripts in tests/peer');
    o.threads ||= Number(/; ([0-9]+) threads? (?:is|are) used/.exec(execFileSync(o.ds4, ['--doctor'], {encoding: 'utf8'}))[1]);
    o.work = fs.mkdtempSync(path.join(os.tmpdir(), 'beside_peer-'));
    try {
        o.ids = idsOf(o, Math.max(...o.lengths) + o.tokens);
        for (const engine of [runOurs, runPeer]) engine({...o, tokens: 1}, Math.min(32, ...o.lengths));
        const rows = o.lengths.map((length) => {
            const row = {length, ours: [], peer: [], memory: []};
            for (let i = 0; i < 2 * o.rounds; i++) {
                const engine = i % 4 === 0 || i % 4 === 3 ? runOurs : runPeer;
                const result = measure(o, engine, length);
                (engine === runOurs ? row.ours : row.peer).push(result);
                row.memory.push(...result.memory);
            }
            return row;
        });
        printTable(o, rows);
    } finally {
        fs.rmSync(o.work, {recursive: true});
    }
}

try {
    if (process.argv[2] === 'peer') await peer(process.argv[3], Number(process.argv[4]), Number(process.argv[5]), Number(process.argv[6]));
    else main(process.argv.slice(2));
} catch (e) {
    if (!(e instanceof Failure)) throw e;
    console.error(`beside_peer: ${e.message}`);
    process.exitCode = e.status;
}
