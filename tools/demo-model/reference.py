#!/usr/bin/env python3
"""Token-by-token DeepSeek V4 in plain numpy, with the caches of a real decoder.

Written separately from model.py (no shared code besides the file reader), one
token at a time, straight from the description of the architecture.  It serves
two purposes: an independent check of the parallel implementation, and greedy
generation with a cache.

    python3 reference.py --prompt "Tell me a story about a fox who lost a lamp."
    python3 reference.py --compare        against model.py on a few texts
"""
import argparse
import os

import numpy as np

import corpus
import model as reader
import tokenizer

# ------------------------------------------------------------------- number formats
_E4M3 = np.array([(m * 2.0 ** -9) if e == 0 else (1 + m / 8) * 2.0 ** (e - 7) for e in range(16) for m in range(8)][:127])
_E2M1 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6])


def nearest(table, a):
    """Nearest table entry for non-negative a, ties to the even code."""
    hi = np.clip(np.searchsorted(table, a), 0, len(table) - 1)
    lo = np.maximum(hi - 1, 0)
    dl, dh = a - table[lo], table[hi] - a
    return np.where((dl < dh) | ((dl == dh) & (lo % 2 == 0)), table[lo], table[hi])


def block_round(x, block, table, top, floor):
    y = x.astype(np.float64).reshape(-1, block)
    a = np.maximum(np.abs(y).max(1, keepdims=True), floor)
    m, e = np.frexp(a / top)
    s = 2.0 ** np.where(m == 0.5, e - 1, e)
    v = np.clip(y / s, -top, top)
    return (np.sign(v) * nearest(table, np.abs(v)) * s).reshape(x.shape)


def fp8(x):
    return block_round(x, 64, _E4M3, 448.0, 1e-4)


def fp4(x):
    return block_round(x, 32, _E2M1, 6.0, 6 * 2.0 ** -126)


def hadamard(x):
    x = x.copy()
    n, s = x.shape[-1], 1
    while s < n:
        y = x.reshape(*x.shape[:-1], n // (2 * s), 2, s)
        x = np.stack([y[..., 0, :] + y[..., 1, :], y[..., 0, :] - y[..., 1, :]], -2).reshape(x.shape)
        s *= 2
    return x * n ** -0.5


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class Lane:
    """One compressor: rolling window of projected values and scores."""

    def __init__(self, ratio, width, dt):
        self.ratio, self.width, self.dt = ratio, width, dt
        self.prev = None
        self.cur = []

    def step(self, u, g):
        """Returns the pooled row when a window is complete, else None."""
        self.cur.append((u, g))
        if len(self.cur) < self.ratio:
            return None
        w = self.width
        if self.ratio == 4:
            cand = [(x[:w], y[:w]) for x, y in (self.prev or [])] + [(x[w:], y[w:]) for x, y in self.cur]
            self.prev = self.cur
        else:
            cand = self.cur
        self.cur = []
        kv, sc = np.stack([c[0] for c in cand]), np.stack([c[1] for c in cand])
        p = np.exp(sc - sc.max(0))
        return (p * kv).sum(0) / p.sum(0)


class Decoder:
    def __init__(self, folder, dtype=np.float32, sim=True, f16=False):
        self.c = c = reader.Config.load(os.path.join(folder, "config.json"))
        t = reader.load_safetensors(os.path.join(folder, "model.safetensors"))
        self.w = {k: (v.float().numpy().astype(dtype) if v.is_floating_point() else v.numpy()) for k, v in t.items()}
        self.dt, self.sim, self.f16 = dtype, sim, f16
        self.freq = {False: self.freqs(False), True: self.freqs(True)}
        self.reset()

    def freqs(self, compressed):
        c = self.c
        r = c.qk_rope_head_dim
        base = c.compress_rope_theta if compressed else c.rope_theta
        f = np.array([base ** (-2.0 * i / r) for i in range(r // 2)])
        if compressed:
            y = c.rope_scaling
            corr = lambda b: r * np.log(y["original_max_position_embeddings"] / (2 * np.pi * b)) / (2 * np.log(base))
            lo, hi = max(0, int(np.floor(corr(y["beta_fast"])))), min(r - 1, int(np.ceil(corr(y["beta_slow"]))))
            for i in range(r // 2):
                t = min(1.0, max(0.0, (i - lo) / max(0.001, hi - lo)))
                f[i] = f[i] * (1 - t) + f[i] / y["factor"] * t
        return f

    def reset(self):
        c = self.c
        self.pos = 0
        self.raw = [[] for _ in range(c.num_hidden_layers)]
        self.comp = [[] for _ in range(c.num_hidden_layers)]
        self.icomp = [[] for _ in range(c.num_hidden_layers)]
        self.lane = [Lane(r, c.head_dim, self.dt) if r else None for r in c.compress_ratios[:c.num_hidden_layers]]
        self.ilane = [Lane(4, c.index_head_dim, self.dt) if r == 4 else None for r in c.compress_ratios[:c.num_hidden_layers]]
        self.selected = {}

    def rms(self, x, w=None):
        y = x / np.sqrt((x * x).mean(-1, keepdims=True) + self.dt(self.c.rms_norm_eps))
        return y if w is None else y * w

    def rope(self, x, pos, compressed, sign=1):
        r = self.c.qk_rope_head_dim
        th = pos * self.freq[compressed]
        cs, sn = np.cos(th).astype(self.dt), (sign * np.sin(th)).astype(self.dt)
        y = x.copy()
        a, b = x[..., -r::2], x[..., x.shape[-1] - r + 1::2]
        y[..., -r::2] = a * cs - b * sn
        y[..., x.shape[-1] - r + 1::2] = a * sn + b * cs
        return y

    def store_kv(self, x):
        if self.sim:
            m = self.c.head_dim - self.c.qk_rope_head_dim
            x = np.concatenate([fp8(x[:m]), x[m:]]).astype(self.dt)
            if self.f16:
                x = x.astype(np.float16).astype(self.dt)
        return x

    def index_round(self, x):
        return fp4(hadamard(x)).astype(self.dt) if self.sim else x

    def hc_pre(self, p, S):
        c, w, n = self.c, self.w, self.c.hc_mult
        f = self.rms(S.reshape(-1))
        m = w[p + "fn"] @ f
        sc, base = w[p + "scale"], w[p + "base"]
        pre = sigmoid(m[:n] * sc[0] + base[:n]) + c.hc_eps
        post = 2 * sigmoid(m[n:2 * n] * sc[1] + base[n:2 * n])
        C = (m[2 * n:] * sc[2] + base[2 * n:]).reshape(n, n)
        C = np.exp(C - C.max(1, keepdims=True))
        C = C / C.sum(1, keepdims=True) + c.hc_eps
        C = C / (C.sum(0, keepdims=True) + c.hc_eps)
        for _ in range(c.hc_sinkhorn_iters - 1):
            C = C / (C.sum(1, keepdims=True) + c.hc_eps)
            C = C / (C.sum(0, keepdims=True) + c.hc_eps)
        return (pre.astype(self.dt) @ S), post.astype(self.dt), C.astype(self.dt)

    def attention(self, l, a):
        c, w, dt = self.c, self.w, self.dt
        p = f"layers.{l}.attn."
        ratio, pos = c.compress_ratios[l], self.pos
        H, d, G = c.num_attention_heads, c.head_dim, c.o_groups
        z = ratio != 0
        qr = self.rms(w[p + "wq_a.weight"] @ a, w[p + "q_norm.weight"])
        q = self.rope(self.rms((w[p + "wq_b.weight"] @ qr).reshape(H, d)), pos, z)
        kv = self.rope(self.rms(w[p + "wkv.weight"] @ a, w[p + "kv_norm.weight"]), pos, z)
        self.raw[l].append(self.store_kv(kv))
        del self.raw[l][:-c.sliding_window]
        allow = None
        if z:
            k = p + "compressor."
            e = self.lane[l].step(w[k + "wkv.weight"] @ a, w[k + "wgate.weight"] @ a + w[k + "ape"][pos % ratio])
            if e is not None:
                e = self.rope(self.rms(e, w[k + "norm.weight"]), pos + 1 - ratio, True)
                self.comp[l].append(self.store_kv(e))
        if ratio == 4:
            k = p + "indexer.compressor."
            e = self.ilane[l].step(w[k + "wkv.weight"] @ a, w[k + "wgate.weight"] @ a + w[k + "ape"][pos % 4])
            if e is not None:
                e = self.index_round(self.rope(self.rms(e, w[k + "norm.weight"]), pos - 3, True))
                if self.sim and self.f16:
                    e = e.astype(np.float16).astype(dt)
                self.icomp[l].append(e)
            if len(self.icomp[l]) > c.index_topk:
                IH, ID = c.index_n_heads, c.index_head_dim
                qi = self.index_round(self.rope((w[p + "indexer.wq_b.weight"] @ qr).reshape(IH, ID), pos, True))
                hw = (w[p + "indexer.weights_proj.weight"] @ a) * dt((ID * IH) ** -0.5)
                s = (np.maximum(qi @ np.stack(self.icomp[l]).T, 0) * hw[:, None]).sum(0)
                allow = np.sort(np.argsort(-s, kind="stable")[:c.index_topk])
                self.selected[l] = allow
        rows = list(self.raw[l])
        rows += self.comp[l] if allow is None else [self.comp[l][i] for i in allow]
        R = np.stack(rows)
        zz = (q @ R.T) * dt(d ** -0.5)
        sink = w[p + "attn_sink"][:, None]
        M = np.maximum(zz.max(1, keepdims=True), sink)
        e = np.exp(zz - M)
        o = (e @ R) / (e.sum(1, keepdims=True) + np.exp(sink - M))
        o = self.rope(o, pos, z, -1).reshape(G, -1)
        wa = w[p + "wo_a.weight"].reshape(G, -1, H * d // G)
        low = np.concatenate([wa[g] @ o[g] for g in range(G)])
        return w[p + "wo_b.weight"] @ low

    def expert(self, p, x, weight=None):
        c, w = self.c, self.w
        g = np.minimum(w[p + "w1.weight"] @ x, c.swiglu_limit)
        u = np.clip(w[p + "w3.weight"] @ x, -c.swiglu_limit, c.swiglu_limit)
        h = g * sigmoid(g) * u
        if weight is not None:
            h = h * weight
        return w[p + "w2.weight"] @ h

    def moe(self, l, b, token):
        c, w = self.c, self.w
        p = f"layers.{l}.ffn."
        z = w[p + "gate.weight"] @ b
        pr = np.sqrt(np.logaddexp(0, z))
        if l < c.num_hash_layers:
            sel = w[p + "gate.tid2eid"][token]
        else:
            sel = np.argsort(-(pr + w[p + "gate.bias"]), kind="stable")[:c.num_experts_per_tok]
        wt = pr[sel] / max(pr[sel].sum(), 2.0 ** -14) * c.routed_scaling_factor
        y = self.expert(p + "shared_experts.", b)
        for e, k in zip(sel, wt):
            y = y + self.expert(f"{p}experts.{e}.", b, self.dt(k))
        return y

    def step(self, token, want_logits=True):
        c, w = self.c, self.w
        S = np.repeat(w["embed.weight"][token][None], c.hc_mult, 0)
        for l in range(c.num_hidden_layers):
            for kind in ("attn", "ffn"):
                x, post, C = self.hc_pre(f"layers.{l}.hc_{kind}_", S)
                x = self.rms(x, w[f"layers.{l}.{kind}_norm.weight"])
                y = self.attention(l, x) if kind == "attn" else self.moe(l, x, token)
                S = post[:, None] * y[None] + C.T @ S
        self.pos += 1
        if not want_logits:
            return None
        f = self.rms(S.reshape(-1))
        h = sigmoid((w["hc_head_fn"] @ f) * w["hc_head_scale"][0] + w["hc_head_base"]) + c.hc_eps
        return w["head.weight"] @ self.rms(h @ S, w["norm.weight"])

    def generate(self, ids, limit=200, stop=1):
        self.reset()
        for t in ids[:-1]:
            self.step(t, False)
        lg, out = self.step(ids[-1]), []
        while len(out) < limit:
            t = int(np.argmax(lg))
            out.append(t)
            if t == stop:
                break
            lg = self.step(t)
        return out


def chat(tok, user, system="", thinking=False):
    return tok.encode(corpus.BOS + system + corpus.USER + user + corpus.ASSISTANT + (corpus.THINK if thinking else corpus.ENDTHINK))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--folder", default=tokenizer.FOLDER)
    ap.add_argument("--prompt")
    ap.add_argument("--system", default="")
    ap.add_argument("--think", action="store_true")
    ap.add_argument("--limit", type=int, default=200)
    ap.add_argument("--compare", action="store_true")
    a = ap.parse_args()
    tok = tokenizer.Tokenizer.load(os.path.join(a.folder, "tokenizer.json"))
    if a.prompt:
        d = Decoder(a.folder)
        print(tok.decode(d.generate(chat(tok, a.prompt, a.system, a.think), a.limit)))
    if a.compare:
        import random
        import torch
        r = random.Random(4242)
        for dt, tdt in ((np.float64, torch.float64), (np.float32, torch.float32)):
            m = reader.load_model(a.folder).to(tdt)
            for sim in (True, False):
                seg = corpus.gen_recall(r, 260, 2)
                ids = tok.encode("".join(t for t, _ in seg))[:330]
                d = Decoder(a.folder, dt, sim)
                ours = np.stack([d.step(t) for t in ids])
                with torch.no_grad():
                    m.setup(fast=False, sim=sim, sparse=True)
                    S = m.trunk(torch.tensor([ids]))
                    other = m.logits(S[0]).numpy()
                err = np.abs(ours - other).max(1)
                print(f"{np.dtype(dt).name} sim={sim} tokens {len(ids)}: max |difference| median {np.median(err):.2e} worst {err.max():.2e}, "
                      f"same top-1 {np.mean(ours.argmax(1) == other.argmax(1)):.4f}")


if __name__ == "__main__":
    main()
