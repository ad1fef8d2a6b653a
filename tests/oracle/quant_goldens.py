#!/usr/bin/python3
"""quant_goldens.py OUT: hashes of what quants_ref.py decodes and multiplies, for tests/unit/test_quant_goldens.c. A line per type and set of blocks:
name, set, FNV of 64 blocks, of their decoded values, of the dots of its rows.
Sets 0 and 1 are random blocks with finite scales; set 2 the same with every f16 scale one of a list: zeros of both signs, subnormal numbers,
the smallest normal one, 1, the largest of both signs. A row is 8 blocks of 256 or 16 of fewer values. Activations are ours: d in f32, rounded to nearest even, sums times d
in f32; the K types sum a block as one integer (docs/numerics.md)."""
import sys
import numpy as np
import quants_ref as R
from quants_ref import F

BLOCKS, SPECIAL = 64, np.array([0, 0x8000, 1, 0x03ff, 0x0400, 0x3c00, 0x7bff, 0xfbff], '<u2')
NAMES = {'Q2_0_G128': 'Q2_0_128'}


def stream(seed, n):
    g = R.xorshift(seed)
    return np.array([next(g) for _ in range((n + 3) // 4)], '<u4').view(np.uint8)[:n].copy()


def blocks(name, which):
    ident, elems, size, _ = R.TYPES[name]
    b = R.finite(name, stream(0xb10c0000 | which << 8 | ident, BLOCKS * size).reshape(-1, size))
    if which == 2 and name not in ('MXFP4', 'NVFP4', 'MXFP8', 'MXFP8_SF', 'Q8_K', 'IQ1_M', 'F16', 'BF16'):
        for n, at in enumerate(R.HALVES.get(name, (0,))):
            b[:, at:at + 2] = SPECIAL[(np.arange(BLOCKS) // (1 + 7 * n)) % 8].view(np.uint8).reshape(-1, 2)
    return b


def ours(kind, x):
    """Activations as the engine makes them."""
    if kind == 'Q8_K':
        return R.activations(kind, x)
    x = x.reshape(-1, 32)
    d = (np.abs(x).max(1, keepdims=True) / F(127)).astype(F)
    q = np.rint(x * (F(1) / d)).astype(np.int32)
    return dict(d=d, q=q, s=q.sum(1, keepdims=True).astype(F) * d)


def k_dot(name, data, x):
    """Q2_K to Q6_K: one integer per block."""
    u, y, acc = R.unpack(name, data), R.activations('Q8_K', x), F(0)
    for b in range(len(u['q'])):
        s = F((np.repeat(u['sc'][b], 256 // len(u['sc'][b])) * u['q'][b] * y['q'][b]).sum())
        d, yd = u['d'][b, 0], y['d'][b, 0]
        step = d * yd * s
        if 'm' in u:
            m = F((np.repeat(u['m'][b], 16 // len(u['m'][b])) * y['bsums'][b]).sum())
            step = step - u['dmin'][b, 0] * yd * m
        acc = acc + step
    return acc


def main():
    y = stream(0x5eed, 4 * 64 * 256).view('<i4').astype(F) * F(2.0**-31)
    R.activations, plain = (lambda kind, x: ours(kind, x) if kind != 'Q8_K' else plain(kind, x)), R.activations
    with open(sys.argv[1], 'w') as out, np.errstate(all='ignore'):
        for name, (_, elems, size, act) in R.TYPES.items():
            if name in ('F32', 'F16', 'BF16'):
                continue
            for which in range(3):
                b, dots = blocks(name, which), None
                row = 8 if elems == 256 else 16
                if act:
                    f = k_dot if name.endswith('_K') else R.dot
                    dots = np.array([f(name, b[r:r + row], y[r * elems:(r + row) * elems]) for r in range(0, BLOCKS, row)], '<f4')
                    dots[np.isnan(dots)] = np.nan                     # processors differ in its sign
                print(NAMES.get(name, name), which, R.fnv(b.tobytes()), R.fnv(R.decode(name, b).astype('<f4').tobytes()),
                      R.fnv(dots.tobytes()) if act else 0, file=out)


main()
