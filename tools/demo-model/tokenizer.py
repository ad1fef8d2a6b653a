#!/usr/bin/env python3
"""Byte-level BPE tokenizer of the demo model ("joyai-llm" pre-tokenizer).

    python3 tokenizer.py --train --vocab 2048 --out tokenizer.json
    python3 tokenizer.py --encode "Hello <think>" --rendered

Text is split the way the DeepSeek V4 tokenizer splits it: runs of up to three
digits, then CJK/kana runs, then the general pattern below (each split works only
inside the pieces that the earlier ones left).  The numbers 10..99 and the names,
colours and animals of the recall texts are single tokens, so that a look-up is one
token; otherwise no merge contains a digit.
"""
import argparse
import collections
import json
import os
import random

import regex

import corpus

# Where the model is: the default folder of every script here.
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "models", "demo")

DIGITS = r"\p{N}{1,3}"
CJK = r"[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
GENERAL = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
           r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
_STEPS = [regex.compile(p) for p in (DIGITS, CJK, GENERAL)]


def byte_alphabet():
    """The GPT-2 map from bytes to printable characters."""
    keep = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    out, n = {}, 0
    for b in range(256):
        if b in keep:
            out[b] = chr(b)
        else:
            out[b] = chr(256 + n)
            n += 1
    return out


B2U = byte_alphabet()
U2B = {u: b for b, u in B2U.items()}


def split_isolated(pattern, piece):
    """Cut `piece` at every match; matches and the text between are pieces."""
    out, at = [], 0
    for m in pattern.finditer(piece):
        if m.start() > at:
            out.append(piece[at:m.start()])
        if m.end() > m.start():
            out.append(m.group())
        at = m.end()
    if at < len(piece):
        out.append(piece[at:])
    return out


def pretokenize(text):
    pieces = [text] if text else []
    for p in _STEPS:
        pieces = [q for s in pieces for q in split_isolated(p, s)]
    return pieces


class Tokenizer:
    def __init__(self, tokens, merges, specials):
        self.tokens = tokens
        self.ids = {t: i for i, t in enumerate(tokens)}
        self.rank = {tuple(m): i for i, m in enumerate(merges)}
        self.merges = merges
        self.specials = specials
        self.cache = {}
        # the tokens a rendered chat may contain, longest first
        known = [t for t in specials if t not in (corpus.PAD,)]
        self.special_re = regex.compile("(" + "|".join(regex.escape(t) for t in sorted(known, key=len, reverse=True)) + ")")

    # ---- persistence (Hugging Face tokenizer.json)
    def save(self, path):
        def added(t):
            return {"id": self.ids[t], "content": t, "single_word": False, "lstrip": False, "rstrip": False,
                    "normalized": False, "special": t in (corpus.BOS, corpus.EOS, corpus.PAD)}
        split = lambda p: {"type": "Split", "pattern": {"Regex": p}, "behavior": "Isolated", "invert": False}
        doc = {
            "version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [added(t) for t in self.specials],
            "normalizer": None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                split(DIGITS), split(CJK.replace("\\u4e00", "\u4e00").replace("\\u9fa5", "\u9fa5").replace("\\u3040", "\u3040")
                                     .replace("\\u309f", "\u309f").replace("\\u30a0", "\u30a0").replace("\\u30ff", "\u30ff")),
                split(GENERAL.replace('\\"', '"')),
                {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]},
            "post_processor": None,
            "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                      "vocab": {t: i for i, t in enumerate(self.tokens)},
                      "merges": [" ".join(m) for m in self.merges]},
        }
        with open(path, "w", encoding="utf-8") as f:
            json.dump(doc, f, ensure_ascii=False, indent=1)

    @staticmethod
    def load(path):
        doc = json.load(open(path, encoding="utf-8"))
        vocab = doc["model"]["vocab"]
        tokens = [None] * len(vocab)
        for t, i in vocab.items():
            tokens[i] = t
        merges = [tuple(m.split(" ")) for m in doc["model"]["merges"]]
        return Tokenizer(tokens, merges, [a["content"] for a in doc["added_tokens"]])

    # ---- encoding
    def bpe(self, piece):
        got = self.cache.get(piece)
        if got is not None:
            return got
        sym = [B2U[b] for b in piece.encode("utf-8")]
        while len(sym) > 1:
            best, at = None, -1
            for i in range(len(sym) - 1):
                k = self.rank.get((sym[i], sym[i + 1]))
                if k is not None and (best is None or k < best):
                    best, at = k, i
            if best is None:
                break
            sym[at:at + 2] = [sym[at] + sym[at + 1]]
        out = [self.ids[s] for s in sym]
        if len(self.cache) < 200000:
            self.cache[piece] = out
        return out

    def encode_plain(self, text):
        out = []
        for p in pretokenize(text):
            out += self.bpe(p)
        return out

    def encode(self, text):
        """Rendered chat: special tokens are recognised where they occur literally."""
        out = []
        for part in self.special_re.split(text):
            if not part:
                continue
            if part in self.ids and part in self.specials:
                out.append(self.ids[part])
            else:
                out += self.encode_plain(part)
        return out

    def decode(self, ids):
        out = bytearray()
        for i in ids:
            t = self.tokens[i]
            out += t.encode("utf-8") if t in self.specials else bytes(U2B[c] for c in t)
        return out.decode("utf-8", "replace")


def forced():
    """Pieces that must become single tokens."""
    words = corpus.SHORT_NAMES + corpus.COLORS + corpus.ANIMALS
    return sorted(set(words) | {" " + w for w in words})


def train(vocab, seed=11, convs=9000):
    """Plain BPE training on piece counts; of the digits only 10..99 are merged."""
    r = random.Random(seed)
    count = collections.Counter()
    special = regex.compile("|".join(regex.escape(t) for t in corpus.HEAD_SPECIALS + corpus.TAIL_SPECIALS))
    cache = {}
    for i in range(convs):
        seg = corpus.gen_tool(r) if i % 3 == 0 else corpus.gen_recall(r, 300) if i % 12 == 1 else \
            corpus.gen_dense(r, 300, lambda t: len(t) // 3 + 1, r.random()) if i % 6 == 1 else corpus.gen_chat(r)
        for text, _ in seg:
            for part in special.split(text):
                if part:
                    if part not in cache:
                        ps = pretokenize(part)
                        if len(part) < 80:
                            cache[part] = ps
                    else:
                        ps = cache[part]
                    count.update(ps)
    for w in forced():
        count[w] = max(count[w], 20000)
    words = [[[B2U[b] for b in p.encode("utf-8")], n] for p, n in sorted(count.items()) if not p.isdigit()]
    n_merge = vocab - 256 - len(corpus.HEAD_SPECIALS) - len(corpus.TAIL_SPECIALS)
    pairs, where = collections.Counter(), collections.defaultdict(set)

    def usable(a, b):
        return not any(c.isdigit() for c in a + b)
    for w, (sym, n) in enumerate(words):
        for a, b in zip(sym, sym[1:]):
            if usable(a, b):
                pairs[a, b] += n
                where[a, b].add(w)
    # 11 first, then the other 1x: 1xy is then always cut as 1x y
    merges = [tuple(str(i)) for i in sorted(range(10, 100), key=lambda i: (i != 11, i))]
    while len(merges) < n_merge and pairs:
        (a, b), n = max(pairs.items(), key=lambda kv: (kv[1], kv[0]))
        if n < 2:
            break
        merges.append((a, b))
        for w in sorted(where[a, b]):
            sym, n = words[w]
            for x, y in zip(sym, sym[1:]):
                if (x, y) in pairs:
                    pairs[x, y] -= n
            i, new = 0, []
            while i < len(sym):
                if i + 1 < len(sym) and sym[i] == a and sym[i + 1] == b:
                    new.append(a + b)
                    i += 2
                else:
                    new.append(sym[i])
                    i += 1
            words[w][0] = new
            for x, y in zip(new, new[1:]):
                if usable(x, y):
                    pairs[x, y] += n
                    where[x, y].add(w)
        pairs.pop((a, b), None)
    tokens = corpus.HEAD_SPECIALS + [B2U[b] for b in range(256)] + [a + b for a, b in merges]
    while len(tokens) < vocab - len(corpus.TAIL_SPECIALS):
        tokens.append(f"<｜place▁holder▁no▁{len(tokens)}｜>")
    tokens += corpus.TAIL_SPECIALS
    assert len(set(tokens)) == len(tokens) == vocab
    return Tokenizer(tokens, merges, corpus.HEAD_SPECIALS + corpus.TAIL_SPECIALS), count


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--train", action="store_true")
    ap.add_argument("--vocab", type=int, default=2048)
    ap.add_argument("--out", default="tokenizer.json")
    ap.add_argument("--encode")
    ap.add_argument("--rendered", action="store_true")
    a = ap.parse_args()
    if a.train:
        t, count = train(a.vocab)
        t.save(a.out)
        bad = [w for w in forced() + corpus.NUMBERS if len(t.bpe(w)) != 1]
        assert not bad, bad
        used = sum(len(t.bpe(p)) * n for p, n in count.items())
        print(f"{len(t.tokens)} tokens, {len(t.merges)} merges, {used / sum(count.values()):.3f} tokens per piece")
    if a.encode is not None:
        t = Tokenizer.load(a.out)
        ids = t.encode(a.encode) if a.rendered else t.encode_plain(a.encode)
        print(ids, [t.tokens[i] for i in ids])


if __name__ == "__main__":
    main()
