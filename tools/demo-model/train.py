#!/usr/bin/env python3
"""Train the demo model on the CPU.

Data-parallel over --workers processes of one thread each (they share the
weights and meet a few times per step; this tolerates a busy machine much better
than threads inside every operator).  Everything is scheduled by wall-clock
progress p in 0..1, so that a run of any length goes through the same phases:

    p < 0.25   rows of 256 tokens        p < 0.60   rows of 512 tokens, then 1024
    p < 0.50   dense attention to the compressed rows (the indexer learns from
               the attention mass); afterwards top-k selection on 3 steps of 4
    p >= 0.85  FP8 / FP4+Hadamard simulation on (straight-through)
    then       --mtp-minutes for the draft block on the frozen trunk
The recall texts grow with p too (corpus.gen_dense).

    python3 train.py --minutes 95 --mtp-minutes 6 --lr 2.4e-3 --out run/
"""
import argparse
import json
import math
import multiprocessing as mp
import os
import random
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"     # one thread a worker, everywhere
os.environ["OMP_NUM_THREADS"] = "1"
import numpy as np
import torch
import torch.nn.functional as F

import corpus
import evaluate
import kernels
import model
import tokenizer

BETA1, BETA2, EPS, DECAY, CLIP = 0.9, 0.96, 1e-9, 0.05, 1.0
PROMPT_WEIGHT = 0.3
T512, T1024, TOPK, QAT = 0.25, 0.60, 0.50, 0.85     # see above
FAST = 2.0                                          # learning rate factor of vectors
KINDS = list(corpus.WEIGHT)


class Data:
    def __init__(self, tok, seed):
        self.tok = tok
        self.seed = seed

    def row(self, index, T, p=1.0):
        """Token ids [T+2] and the trained flags of the tokens."""
        r = random.Random(self.seed * 1000003 + index)
        ids, own = [], []
        for text, a in corpus.gen_row(r, T + 2, lambda t: len(self.tok.encode(t)), p):
            e = self.tok.encode(text)
            ids += e
            own += [a] * len(e)
        return ids[:T + 2], own[:T + 2]

    def batch(self, index, B, T, rank, p=1.0):
        rows = [self.row(index * 64 + rank * 32 + b, T, p) for b in range(B)]
        return torch.tensor([x[0] for x in rows]), torch.tensor([x[1] for x in rows], dtype=torch.float32)


def loss_positions(own, T, shift, rng):
    """Indices into the flattened [B, T] grid and weights: every assistant token
    that is predicted, plus a few prompt tokens with low weight."""
    a = own[:, shift:T + shift].reshape(-1)
    extra = (torch.rand(a.shape, generator=rng) < 0.06) & (a == 0)
    idx = ((a > 0) | extra).nonzero()[:, 0]
    return idx, torch.where(a[idx] > 0, a[idx], torch.full((), PROMPT_WEIGHT))


def schedule(p, peak):
    if p < 0.015:
        return peak * max(p, 1e-4) / 0.015
    return peak * (0.03 + 0.97 * 0.5 * (1 + math.cos(math.pi * min(1.0, p))))


class Flat:
    """Parameters of one phase as views of a single shared vector, with one
    gradient vector per worker; each worker runs Adam on its own slice."""

    def __init__(self, m, params, workers):
        self.names = sorted(params)
        n = sum(params[k].numel() for k in self.names)
        self.P = torch.empty(n).share_memory_()
        self.G = torch.zeros(workers, n).share_memory_()
        self.wd = torch.zeros(n).share_memory_()
        self.mult = torch.ones(n).share_memory_()
        self.info = torch.zeros(workers, 8 + 2 * len(KINDS), dtype=torch.float64).share_memory_()
        self.loads = {}
        at = 0
        self.span = {}
        for k in self.names:
            v = params[k]
            self.P[at:at + v.numel()] = v.detach().reshape(-1)
            if v.dim() >= 2 and "hc_" not in k and not k.endswith("ape"):
                self.wd[at:at + v.numel()] = DECAY
            else:                                   # norms, sinks, position biases, HC biases move faster
                self.mult[at:at + v.numel()] = FAST if "_fn" not in k else 1.0
            self.span[k] = (at, v.shape)
            at += v.numel()
            if k.endswith("gate.weight"):
                self.loads[k[:-len("gate.weight")]] = torch.zeros(workers, v.shape[0]).share_memory_()
        self.attach(m)

    def attach(self, m):
        for k, (at, shape) in self.span.items():
            m.w[k] = self.P[at:at + shape.numel()].view(shape)

    def grads_on(self, m):
        for k in self.names:
            m.w[k] = m.w[k].detach().requires_grad_(True)


class Adam:
    def __init__(self, flat, rank, workers):
        n = flat.P.numel()
        self.a, self.b = n * rank // workers, n * (rank + 1) // workers
        self.f, self.rank = flat, rank
        self.m = torch.zeros(self.b - self.a)
        self.v = torch.zeros(self.b - self.a)
        self.t = 0

    def step(self, lr, barrier):
        f, a, b = self.f, self.a, self.b
        self.t += 1
        c1, c2 = 1 / (1 - BETA1 ** self.t), 1 / (1 - BETA2 ** self.t)
        lib = kernels.load()
        if lib is not None:
            L, Fl, P = kernels.L, kernels.F, lambda t: kernels.ctypes.c_void_p(t.data_ptr())
            lib.k_gnorm2.restype = kernels.ctypes.c_double
            shape = (L(b - a), L(f.G.shape[0]), L(f.G.shape[1]), P(f.G[0, a:b]))
            f.info[self.rank, 0] = lib.k_gnorm2(*shape)
        else:
            g = f.G[:, a:b].mean(0)
            f.info[self.rank, 0] = float(g.pow(2).sum())
        barrier.wait()
        clip = min(1.0, CLIP / (math.sqrt(float(f.info[:, 0].sum())) + 1e-6))
        p, wd = f.P[a:b], f.wd[a:b]
        if lib is not None:
            lib.k_adam(*shape, Fl(clip), P(p), P(self.m), P(self.v), P(wd), P(f.mult[a:b]), Fl(lr), Fl(BETA1), Fl(BETA2), Fl(c1), Fl(c2), Fl(EPS))
            return
        g.mul_(clip)
        self.m.lerp_(g, 1 - BETA1)
        self.v.mul_(BETA2).addcmul_(g, g, value=1 - BETA2)
        mult = f.mult[a:b]
        p.sub_(p * wd * mult, alpha=lr)
        p.addcdiv_(self.m * c1 * mult, (self.v * c2).sqrt_().add_(EPS), value=-lr)


def checkpoint(m, path, state):
    torch.save({"w": {k: v.detach().clone() for k, v in m.w.items()}, "cfg": m.cfg.__dict__, "state": state}, path + ".tmp")
    os.replace(path + ".tmp", path)


def phase(rank, a, m, tok, flat, barrier, draft, state, say):
    """One training phase; every worker runs this."""
    torch.manual_seed(a.seed * 100 + rank)
    rng = torch.Generator().manual_seed(a.seed * 100 + rank)
    data = Data(tok, a.seed)
    flat.grads_on(m)
    opt = Adam(flat, rank, a.workers)
    minutes, start = (a.mtp_minutes, 0.0) if draft else (a.minutes, a.start)
    ctl = flat.info[0]
    t0 = last_ck = last_ev = time.time()
    by = torch.zeros(2 * len(KINDS), dtype=torch.float64)
    step, acc, first, seen = 0, [], state["step"], state["tokens"]
    while True:
        if rank == 0:
            ctl[1] = start + (1 - start) * (time.time() - t0) / (minutes * 60)
        barrier.wait()
        p = float(ctl[1])
        if p >= 1:
            break
        if draft:
            T, B, sim, sparse = 512, 4096 // 512 // a.workers, True, True
        else:
            T = 256 if p < T512 else 512 if p < T1024 else 1024
            B = max(1, (2048 if p < 0.75 else 4096) // T // a.workers)
            sim, sparse = p >= QAT, p >= TOPK and step % 4 != 3
        toks, own = data.batch(step + 10_000_000 if draft else first + step, B, T, rank, 1.0 if draft else p)
        if draft:
            with torch.no_grad():
                m.setup(fast=True, sim=sim, sparse=sparse)
                S = m.trunk(toks[:, :T])
            m.setup(fast=True, sim=p > 0.5, count=True)
            S = m.mtp(S, toks[:, 1:T + 1])
        else:
            m.setup(fast=True, sim=sim, sparse=sparse, train_index=True, count=True)
            S = m.trunk(toks[:, :T])
        shift = 2 if draft else 1
        idx, wt = loss_positions(own, T, shift, rng)
        lg = m.logits(S.flatten(0, 1)[idx], "mtp.0." if draft else "")
        tgt = toks[:, shift:T + shift].reshape(-1)[idx]
        ce = F.cross_entropy(lg, tgt, reduction="none")
        ix = m.aux.get("index", torch.zeros(()))
        loss = (ce * wt).sum() / wt.sum() + ix
        loss.backward()
        for k in flat.names:
            at, shape = flat.span[k]
            g = flat.G[rank, at:at + shape.numel()]
            w = m.w[k]
            if w.grad is None:
                g.zero_()
            else:
                g.copy_(w.grad.reshape(-1))
                w.grad = None
        mine = wt != PROMPT_WEIGHT
        for i, k in enumerate(KINDS):               # the kinds have different weights
            of = wt == corpus.WEIGHT[k]
            flat.info[rank, 8 + i] = float(ce.detach()[of].sum())
            flat.info[rank, 8 + len(KINDS) + i] = float(of.sum())
        flat.info[rank, 2] = float(ce.detach()[mine].mean())
        flat.info[rank, 3] = float(ix)
        flat.info[rank, 4] = float((lg.detach()[mine].argmax(-1) == tgt[mine]).float().mean())
        for f, load in m.loads.items():
            if f in flat.loads:
                flat.loads[f][rank] = load
        barrier.wait()
        lr = schedule(p, a.lr) * min(1.0, (step + 1) / 40)
        opt.step(lr, barrier)
        step += 1
        if rank == 0:
            u = 2e-3 * (1 - p) + 1e-4               # bias balancing of the routers
            for f, load in flat.loads.items():
                if f + "gate.bias" in m.w:
                    load = load.sum(0)
                    m.w[f + "gate.bias"] += u * torch.sign(load.mean() - load)
            acc.append(flat.info[:, 2:5].mean(0).tolist())
            by += flat.info[:, 8:].sum(0)
            if not draft:
                state["step"] += 1
                state["tokens"] += B * T * a.workers
            if step % 50 == 0:
                lo, ixl, hit = [round(sum(x[i] for x in acc) / len(acc), 4) for i in range(3)]
                acc = []
                kinds = " ".join(f"{k} {float(by[i] / by[len(KINDS) + i].clamp(min=1)):.3f}" for i, k in enumerate(KINDS))
                by.zero_()
                if draft:
                    state["mtp_curve"].append([step, step * B * T * a.workers, lo, hit])
                    say(f"draft step {step} p {p:.3f} loss {lo:.4f} top-1 {hit:.4f}")
                else:
                    state["seconds"] = time.time() - t0
                    state["curve"].append([state["step"], state["tokens"], lo, ixl])
                    spread = max(float(x.sum(0).max() / x.sum(0).mean()) for x in flat.loads.values())
                    say(f"step {state['step']} p {p:.3f} T {T} lr {lr:.2e} loss {lo:.4f} top-1 {hit:.4f} index {ixl:.4f} load {spread:.2f} "
                        f"[{kinds}] tokens {state['tokens'] / 1e6:.2f}M {(state['tokens'] - seen) / (time.time() - t0):.0f} tok/s")
        barrier.wait()
        if rank == 0 and time.time() - last_ck > 240:
            checkpoint(m, os.path.join(a.out, "last.pt"), state)
            last_ck = time.time()
        if rank == 0 and not draft and time.time() - last_ev > a.eval_minutes * 60:
            e = evaluate.quick(m, tok, sim=p >= QAT)
            state["evals"].append([round(p, 3), state["tokens"], {k: round(v, 4) for k, v in e.items()}])
            say(f"  eval p {p:.3f} " + " ".join(f"{k} {v:.3f}" for k, v in e.items()))
            last_ev = time.time()
    if rank == 0:
        state["mtp_seconds" if draft else "seconds"] = time.time() - t0


def work(rank, a, m, tok, flats, barrier, state):
    torch.set_num_threads(1)
    kernels.NTHR = 1
    log = open(os.path.join(a.out, "log.txt"), "a") if rank == 0 else None

    def say(s):
        print(s, flush=True)
        log.write(s + "\n")
        log.flush()
    phase(rank, a, m, tok, flats[0], barrier, False, state, say)
    if rank == 0:
        checkpoint(m, os.path.join(a.out, "trunk.pt"), state)
    for k in flats[0].names:
        m.w[k] = m.w[k].detach()
    if a.mtp_minutes > 0:
        phase(rank, a, m, tok, flats[1], barrier, True, state, say)
    if rank == 0:
        checkpoint(m, os.path.join(a.out, "final.pt"), state)
        json.dump(state, open(os.path.join(a.out, "state.json"), "w"))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--config", default=os.path.join(tokenizer.FOLDER, "config.json"))
    ap.add_argument("--tokenizer", default=os.path.join(tokenizer.FOLDER, "tokenizer.json"))
    ap.add_argument("--out", default="run")
    ap.add_argument("--minutes", type=float, default=95)
    ap.add_argument("--mtp-minutes", type=float, default=6)
    ap.add_argument("--lr", type=float, default=2.4e-3)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--workers", type=int, default=2)
    ap.add_argument("--eval-minutes", type=float, default=7)
    ap.add_argument("--init", help="continue from this checkpoint (the schedule starts again)")
    ap.add_argument("--start", type=float, default=0.0, help="progress to start from")
    a = ap.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(a.seed)
    os.makedirs(a.out, exist_ok=True)
    if kernels.load() is None:
        print("no C compiler: the plain (slow) path is used")
    tok = tokenizer.Tokenizer.load(a.tokenizer)
    cfg = model.Config.load(a.config)
    m = model.V4(cfg, a.seed)
    m.positional_start()
    counts, data = np.zeros(cfg.vocab_size), Data(tok, a.seed)
    for i in range(200):
        np.add.at(counts, data.row(-1 - i, 1024)[0], 1)
    m.set_hash(counts)
    values = torch.zeros(cfg.vocab_size)
    for x in sum(corpus.VALUES.values(), []):
        for ids in (tok.encode_plain(x), tok.encode_plain(" " + x)):
            if len(ids) == 1:
                values[ids[0]] = 1
    m.copy_start(torch.tensor([data.row(-5000 - i, 512, 0.2)[0][:512] for i in range(16)]), values)
    state = {"tokens": 0, "step": 0, "seconds": 0.0, "curve": [], "evals": [], "mtp_curve": []}
    if a.init:
        ck = torch.load(a.init)
        m.w, state = ck["w"], ck["state"]
    flats = [Flat(m, m.params(False), a.workers), Flat(m, m.params(True), a.workers)]
    for k, v in m.w.items():
        if k.endswith("gate.bias"):
            v.share_memory_()
    print(f"parameters: trunk {flats[0].P.numel() / 1e6:.2f} M, draft block {flats[1].P.numel() / 1e6:.2f} M", flush=True)
    ctx = mp.get_context("fork")
    barrier = ctx.Barrier(a.workers)
    procs = [ctx.Process(target=work, args=(r, a, m, tok, flats, barrier, state)) for r in range(1, a.workers)]
    for q in procs:
        q.start()
    work(0, a, m, tok, flats, barrier, state)
    for q in procs:
        q.join()


if __name__ == "__main__":
    main()
