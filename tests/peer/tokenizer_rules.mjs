// The rules of a tokenizer.json read literally: splits, byte alphabet, merges. Slow and simple; a judge between encoders.
//
// What differs between encoders is a parameter: which characters the patterns' \s means. JavaScript's own \s has U+FEFF and
// lacks U+0085; the tokenizers that made the vocabularies go by Unicode's White_Space.

export const JAVASCRIPT = 'javascript', UNICODE = 'unicode';

// Length of the UTF-8 sequence at i; 0: none starts there.
function sequenceLength(bytes, i) {
    const b = bytes[i];
    const n = b < 0x80 ? 1 : b >= 0xc2 && b < 0xe0 ? 2 : b >= 0xe0 && b < 0xf0 ? 3 : b >= 0xf0 && b < 0xf5 ? 4 : 0;
    if (n < 2) return n;
    const second = bytes[i + 1] ?? 0;
    const from = b === 0xe0 ? 0xa0 : b === 0xf0 ? 0x90 : 0x80, to = b === 0xed ? 0x9f : b === 0xf4 ? 0x8f : 0xbf;
    if (second < from || second > to) return 0;
    for (let k = 2; k < n; k++) if (((bytes[i + k] ?? 0) & 0xc0) !== 0x80) return 0;
    return n;
}

// Runs of characters and runs of stray bytes: [{text}, {stray}, ...].
export function runsOf(bytes) {
    const runs = [];
    for (let i = 0; i < bytes.length;) {
        const stray = sequenceLength(bytes, i) === 0, start = i;
        while (i < bytes.length && (sequenceLength(bytes, i) === 0) === stray) i += sequenceLength(bytes, i) || 1;
        const run = bytes.subarray(start, i);
        runs.push(stray ? {stray: run} : {text: run.toString('utf8')});
    }
    return runs;
}

// GPT-2's alphabet: the printable characters of Latin-1 stand for themselves, the other bytes for U+0100 and following.
function byteAlphabet() {
    const of = [];
    let next = 256;
    for (let b = 0; b < 256; b++) {
        const printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        of.push(String.fromCharCode(printable ? b : next++));
    }
    return of;
}

// "left right" by rank; some files have them as pairs.
export function mergesOf(json) {
    return json.model.merges.map((m) => (Array.isArray(m) ? m.join(' ') : m));
}

// A group in any case, which JavaScript does not know: its letters are ASCII.
function anyCase(pattern) {
    return pattern.replace(/\(\?i:([^()]*)\)/g, (_, group) => `(?:${group.replace(/[a-z]/g, (c) => `[${c}${c.toUpperCase()}]`)})`);
}

export class TokenizerRules {
    constructor(json, white) {
        const of = (s) => anyCase(white === UNICODE ? s.replaceAll('\\s', '\\p{White_Space}').replaceAll('\\S', '\\P{White_Space}') : s);
        const steps = json.pre_tokenizer.pretokenizers;
        const splits = steps.filter((s) => s.type === 'Split');
        const last = steps.at(-1);
        if (splits.some((s) => s.behavior !== 'Isolated' || s.invert) || splits.length + 1 !== steps.length ||
            last.type !== 'ByteLevel' || last.use_regex || last.add_prefix_space || json.model.type !== 'BPE')
            throw new Error('tokenizer.json has rules that are not written here');
        this.patterns = splits.map((s) => new RegExp(of(s.pattern.Regex), 'gu'));
        this.vocab = json.model.vocab;
        this.rank = new Map(mergesOf(json).map((m, i) => [m, i]));
        this.alphabet = byteAlphabet();
        this.special = new Map(json.added_tokens.map((t) => [t.content, t.id]));
        const longestFirst = [...this.special.keys()].sort((a, b) => b.length - a.length);
        this.specials = new RegExp(`(${longestFirst.map((s) => s.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|')})`, 'u');
    }

    // Every pattern isolates its matches inside the pieces that those before it left.
    pieces(text) {
        let pieces = [text];
        for (const pattern of this.patterns) {
            pieces = pieces.flatMap((piece) => {
                const out = [];
                let end = 0;
                for (const m of piece.matchAll(pattern)) {
                    if (m.index > end) out.push(piece.slice(end, m.index));
                    if (m[0]) out.push(m[0]);
                    end = m.index + m[0].length;
                }
                if (end < piece.length) out.push(piece.slice(end));
                return out;
            });
        }
        return pieces;
    }

    // The lowest rank first, the leftmost of equals.
    merge(bytes) {
        const parts = [...bytes].map((b) => this.alphabet[b]);
        for (;;) {
            let at = -1, best = Infinity;
            for (let i = 0; i + 1 < parts.length; i++) {
                const rank = this.rank.get(`${parts[i]} ${parts[i + 1]}`);
                if (rank < best) best = rank, at = i;
            }
            if (at < 0) return parts.map((p) => this.vocab[p]);
            parts.splice(at, 2, parts[at] + parts[at + 1]);
        }
    }

    encode(bytes) {
        return runsOf(bytes).flatMap(({text, stray}) =>
            stray ? this.merge(stray) : this.pieces(text).flatMap((piece) => this.merge(Buffer.from(piece))));
    }

    // The same where added tokens count wherever their text occurs.
    encodeRendered(text) {
        return text.split(this.specials).flatMap((span) => this.special.get(span) ?? this.encode(Buffer.from(span)));
    }
}
