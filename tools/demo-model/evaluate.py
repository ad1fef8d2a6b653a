"""Measured accuracies on held-out seeds.  "Exact" means that every token the
assistant writes is the model's arg-max, given the text before it, which is the
same as saying that greedy decoding writes exactly the expected answer."""
import math
import random

import torch

import corpus
import tasks


def encode(tok, seg):
    ids, spans = [], []
    for text, own in seg:
        e = tok.encode(text)
        if own:
            spans.append((len(ids), len(ids) + len(e)))
        ids += e
    return ids, spans


@torch.no_grad()
def judge(m, tok, convs, batch=4, **setup):
    """For every conversation the list of (exact, sum of -log p, tokens) of its assistant segments."""
    enc = [encode(tok, s) for s in convs]
    order = sorted(range(len(enc)), key=lambda i: len(enc[i][0]))
    out = [None] * len(enc)
    m.setup(**setup)
    at = 0
    while at < len(order):
        part = order[at:at + batch]
        at += batch
        T = max(len(enc[i][0]) for i in part)
        T = (T + 127) // 128 * 128
        x = torch.full((len(part), T), 2)
        for k, i in enumerate(part):
            x[k, :len(enc[i][0])] = torch.tensor(enc[i][0])
        S = m.trunk(x)
        for k, i in enumerate(part):
            ids, spans = enc[i]
            res = []
            for a, b in spans:
                lp = m.logits(S[k, a - 1:b - 1]).log_softmax(-1)
                tgt = torch.tensor(ids[a:b])
                res.append((bool((lp.argmax(-1) == tgt).all()), -float(lp.gather(1, tgt[:, None]).sum()), b - a))
            out[i] = res
    return out


def rate(res, pickf=lambda r: r):
    flags = [x[0] for r in res for x in pickf(r)]
    return sum(flags) / max(1, len(flags))


def perplexity(res):
    return math.exp(sum(x[1] for r in res for x in r) / sum(x[2] for r in res for x in r))


@torch.no_grad()
def dense_by_distance(m, tok, plan=tasks.DENSE_PLAN, **kw):
    """How often the value is the arg-max where the answer names it, and of how many."""
    hit = {k: [0, 0] for k in [b for b, _ in tasks.BINS] + ["absent"]}
    for seg, figure in tasks.dense(tok, plan):
        at, ids = [], []
        for t, _ in seg:
            at.append(len(ids))
            ids += tok.encode(t)
        m.setup(**kw)
        x = torch.full((1, (len(ids) + 127) // 128 * 128), 2)
        x[0, :len(ids)] = torch.tensor(ids)
        if not figure:
            continue
        pos = torch.tensor([at[v] for v in figure])
        ok = m.logits(m.trunk(x)[0][pos - 1]).argmax(-1) == x[0, pos]
        for k, good in zip(figure.values(), ok.tolist()):
            hit[k][0] += good
            hit[k][1] += 1
    return {k: [round(a / max(1, b), 3), b] for k, (a, b) in hit.items()}


@torch.no_grad()
def quick(m, tok, sim, n=16):
    """A short check while training."""
    r = random.Random(987654321)
    kw = dict(batch=8, fast=True, sim=sim, sparse=True)
    d = dense_by_distance(m, tok, ((120, 12), (250, 10), (500, 8), (1000, 6)), fast=True, sim=sim, sparse=True)
    out = {"d" + k: v[0] for k, v in d.items() if v[1] >= 10}
    for name, b in (("rec60", 60), ("rec250", 250), ("rec800", 800)):
        out[name] = rate(judge(m, tok, [corpus.gen_recall(r, b, 3, False) for _ in range(n)], **kw))
    out["math"] = rate(judge(m, tok, [corpus.gen_chat(r, "math", True, False, 2) for _ in range(n)], **kw))
    out["mathT"] = rate(judge(m, tok, [corpus.gen_chat(r, "math", True, True, 2) for _ in range(n)], **kw))
    out["tool"] = rate(judge(m, tok, [corpus.gen_tool(r, 3, None, ["bash", "read", "get_weather"]) for _ in range(n // 2)], **kw))
    out["story_ppl"] = perplexity(judge(m, tok, [corpus.gen_chat(r, "story", False, False, 1) for _ in range(n)], **kw))
    return out


# ------------------------------------------------------------- full evaluation
def full(m, tok, sim=True, n=100, seed=tasks.SEED):
    kw = dict(batch=4, fast=False, sim=sim, sparse=True)
    r = random.Random(seed)
    out = {}
    for group, convs, figures in tasks.exact(r, n):
        res = judge(m, tok, convs, **{**kw, "batch": 1 if figures[0][0] in ("1500", "2500") else 4})
        for name, part in figures:
            out.setdefault(group, {})[name] = rate(res, lambda x: x[part])
    out[tasks.DENSE] = dense_by_distance(m, tok, fast=False, sim=sim, sparse=True)
    out["perplexity"] = {
        "story_direct": perplexity(judge(m, tok, [corpus.gen_chat(r, "story", False, False, 1) for _ in range(n)], **kw)),
        "story_thinking": perplexity(judge(m, tok, [corpus.gen_chat(r, "story", False, True, 1) for _ in range(n)], **kw)),
        "small_talk": perplexity(judge(m, tok, [corpus.gen_chat(r, "talk", False, False, 3) for _ in range(n)], **kw)),
        "all_assistant_text": perplexity(judge(m, tok, [corpus.gen_row(r, 500, lambda t: len(tok.encode(t))) for _ in range(n // 2)], **kw))}
    return out


@torch.no_grad()
def draft_agreement(m, tok, n=24, seed=31):
    """How often the draft block names the trunk's own next choice."""
    r, same, hit, tot = random.Random(seed), 0, 0, 0
    for _ in range(n):
        seg = corpus.gen_row(r, 450, lambda t: len(tok.encode(t)))
        ids, own = [], []
        for t, o in seg:
            e = tok.encode(t)
            ids += e
            own += [o] * len(e)
        x = torch.tensor([ids[:512]])
        m.setup(fast=False, sim=True, sparse=True)
        S = m.trunk(x)
        top = m.logits(S[0]).argmax(-1)
        d = m.logits(m.mtp(S[:, :-1], x[:, 1:])[0], "mtp.0.").argmax(-1)      # row t: guess for t+2
        T = x.shape[1]
        for t in range(T - 2):
            # the draft is used when token t+1 is the trunk's choice and the assistant is writing
            if own[t + 2] and own[t + 1]:
                tot += 1
                same += int(d[t] == top[t + 1])
                hit += int(d[t] == x[0, t + 2])
    return {"agrees_with_trunk": same / tot, "equals_text": hit / tot, "positions": tot}


def story_check(folder, tok, n=16, seed=77):
    import reference
    r, d = random.Random(seed), reference.Decoder(folder)
    good, words, ended = 0, [], 0
    for _ in range(n):
        hero, obj = corpus.pick(r, corpus.HEROES), corpus.pick(r, list(corpus.OBJECTS))
        verb = corpus.pick(r, ["lost", "found", "wanted", "broke", "hid"])
        out = d.generate(reference.chat(tok, f"Tell me a story about {corpus.an(hero)} who {verb} {corpus.an(obj)}."), 220)
        text = tok.decode(out)
        ended += out[-1] == 1
        good += hero in text and obj in text
        words.append(len(text.split()))
    return {"stories": n, "use_hero_and_object": good, "ended_by_themselves": ended, "mean_words": sum(words) / n}


def main():
    import argparse
    import json
    import os
    import model
    import tokenizer
    ap = argparse.ArgumentParser()
    ap.add_argument("--folder", default=tokenizer.FOLDER)
    ap.add_argument("--state", help="state.json of the training run, for tokens seen and curves")
    ap.add_argument("--n", type=int, default=100)
    ap.add_argument("--out", default=os.path.join(tokenizer.FOLDER, "eval.json"))
    a = ap.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 2)))
    tok = tokenizer.Tokenizer.load(os.path.join(a.folder, "tokenizer.json"))
    m = model.load_model(a.folder)
    out = {"note": "float32 run of model.safetensors, FP8/FP4 simulation on, top-k selection on; exact = the whole answer token by token under greedy decoding",
           "examples_per_figure": a.n}
    if a.state:
        s = json.load(open(a.state))
        step = max(1, len(s["curve"]) // 60)
        out["training"] = {"tokens_seen": s["tokens"], "steps": s["step"], "seconds": round(s["seconds"]), "draft_seconds": round(s.get("mtp_seconds", 0)),
                           "curve_step_tokens_loss_indexloss": s["curve"][::step], "draft_curve_step_tokens_loss_top1": s["mtp_curve"][::4],
                           "checks_while_training": s["evals"]}
    out.update(full(m, tok, True, a.n))
    json.dump(out, open(a.out, "w"), indent=1)
    out["draft_block"] = draft_agreement(m, tok)
    out["stories"] = story_check(a.folder, tok)
    json.dump(out, open(a.out, "w"), indent=1)
    out["without_simulation"] = {k: v for k, v in full(m, tok, False, max(20, a.n // 4)).items() if k.startswith(("recall", "arith", "perp"))}
    json.dump(out, open(a.out, "w"), indent=1)


if __name__ == "__main__":
    main()
