#!/usr/bin/env python3
"""Reference logits: a few prompts, top-20 at some positions, three settings.

  sim_on      FP8 rounding of the KV rows, Hadamard + FP4 in the indexer
  sim_on_f16  the same, and every cached row (raw, compressed, indexer) rounded to f16
  sim_off     no rounding, no Hadamard
Float32 everywhere.  `check` is the largest difference of the top-20 logits to an
independent float64 token-by-token run (reference.py), as a hint for tolerances.

The output is a text of lines, read by the tests:
  prompt NAME N       then one line with the N token ids
  setting NAME        for the lines below
  at POSITION CHECK   then one line "id logit id logit ...", 20 pairs, largest logit first"""
import argparse
import os
import random

import numpy as np
import torch

import corpus
import model
import reference
import tokenizer


def prompts(tok):
    r = random.Random(5150)
    text = lambda seg: tok.encode("".join(t for t, _ in seg))
    yield "chat_story_start", reference.chat(tok, "Tell me a story about a fox who lost a lamp.")
    yield "think_arithmetic", tok.encode(corpus.BOS + "You are a helpful assistant" + corpus.USER + "What is 47 + 38?" + corpus.ASSISTANT + corpus.THINK
                                         + "7 + 8 = 15. 4 + 3 + 1 = 8. So 85." + corpus.ENDTHINK + "47 + 38 =")
    s = corpus.gen_tool(r, 1, False, ["bash", "read", "get_weather"], "bash")
    yield "tool_call", text(s[:2])
    yield "two_turns", text(corpus.gen_chat(r, "talk", False, False, 2) + [(corpus.BOS, 0)] + corpus.gen_chat(r, "story", False, True, 1)[:1])
    s = corpus.gen_recall(r, 820, 1, False, True)
    yield "recall_long", text(s)[:-2]
    s = corpus.gen_recall(r, 1350, 1, False, True)
    yield "recall_longer", text(s)[:-2]


def write(prompts, path):
    with open(path, "w", encoding="utf-8") as f:
        f.write("# Reference logits of models/demo, written by tools/demo-model/golden.py, which says what the lines mean.\n")
        for p in prompts:
            f.write(f"prompt {p['name']} {len(p['tokens'])}\n" + " ".join(map(str, p["tokens"])) + "\n")
            for key in ("sim_on", "sim_on_f16", "sim_off"):
                f.write(f"setting {key}\n")
                for e in p[key]:
                    f.write(f"at {e['position']} {e.get('check', 0):g}\n" + " ".join(f"{i} {v:.6f}" for i, v in e["top"]) + "\n")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--folder", default=tokenizer.FOLDER)
    ap.add_argument("--out", default=os.path.join(tokenizer.FOLDER, "..", "..", "tests", "golden", "demo_logits.txt"))
    ap.add_argument("--no-check", action="store_true")
    a = ap.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 2)))
    tok = tokenizer.Tokenizer.load(os.path.join(a.folder, "tokenizer.json"))
    m = model.load_model(a.folder)
    res = []
    for name, ids in prompts(tok):
        n = len(ids)
        pos = sorted({0, n - 1, n // 2, 3 if n > 3 else 0, min(n - 1, 63), min(n - 1, 127), min(n - 1, 131), n - 2, max(0, n - 9), n * 3 // 4})
        pos = [p for p in pos if 0 <= p < n]
        while len(pos) > 8:
            pos.pop(1 if len(pos) % 2 else 2)
        item = {"name": name, "text": tok.decode(ids), "tokens": ids, "positions": pos}
        for key, kw, sim, f16 in (("sim_on", dict(sim=True), True, False), ("sim_on_f16", dict(sim=True, sim_f16=True), True, True), ("sim_off", dict(sim=False), False, False)):
            with torch.no_grad():
                m.setup(fast=False, sparse=True, **kw)
                lg = m.logits(m.trunk(torch.tensor([ids]))[0]).numpy()
            item[key] = []
            ref = None
            if not a.no_check:
                d = reference.Decoder(a.folder, np.float64, sim, f16)
                ref = [d.step(t, i in pos) for i, t in enumerate(ids)]
            for p in pos:
                top = np.argsort(-lg[p], kind="stable")[:20]
                e = {"position": p, "top": [[int(t), round(float(lg[p][t]), 6)] for t in top]}
                if ref is not None:
                    e["check"] = float(f"{np.abs(ref[p][top] - lg[p][top]).max():.3g}")
                item[key].append(e)
        worst = {k: max(e.get("check", 0) for e in item[k]) for k in ("sim_on", "sim_on_f16", "sim_off")}
        print(name, n, "tokens", pos, worst, flush=True)
        res.append(item)
    write(res, a.out)


if __name__ == "__main__":
    main()
