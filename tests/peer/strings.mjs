// Generated strings of every kind that splits and merges meet, for one tokenizer.json: the same list on every run.

let state = 12345;
export function random(n) { // 0..n-1 (mulberry32)
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 4294967296) * n);
}
export const pick = (list) => list[random(list.length)];
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

// English-looking words of the vocabulary.
export function wordsOf(json) {
    return Object.keys(json.model.vocab).filter((t) => /^Ġ[a-z]{2,}$/.test(t)).map((t) => t.slice(1));
}

// One generator per group. lookalikes: texts that look like parts of special tokens.
export function groupsOf(json, lookalikes) {
    const WORDS = wordsOf(json);
    return {
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
        special: () => repeat(6, () => pick([...json.added_tokens.slice(0, 40).map((t) => t.content), ...lookalikes, 'a', ' ', '<', '\n'])),
        bytes: () => Buffer.concat(Array.from({length: 1 + random(8)}, () => pick([
            Buffer.from(Array.from({length: 1 + random(4)}, () => random(256))), // anything
            Buffer.from('é字😀').subarray(random(3), 3 + random(6)), // cut sequences
            Buffer.from([0xed, 0xa0, 0x80]), Buffer.from([0xc0, 0xaf]), Buffer.from([0xf4, 0x90, 0x80, 0x80]), // surrogate, overlong, too large
            Buffer.from(pick(WORDS) + ' '), Buffer.from('12'), Buffer.from('\ufffd'),
        ]))),
    };
}
