#!/usr/bin/python3
"""Bit-exact numpy decoder (block bytes -> float32) and generic dot products of every block type of the specs gguf-and-quants 2 and
more-quants. Every operation is binary32, one rounding each, in the order of the spec; nothing is fused. quant_goldens.py uses it.
   decode(name, data) -> float32 [n]        dot(name, weight_bytes, x) -> float32 (x float32, quantised as the type wants it)"""
import os, re, struct, sys
import numpy as np

F = np.float32
# name: (id in the file, elements, bytes, activation type of the generic dot).  Ids of the last group are not ggml's (more-quants.md 5).
TYPES = {
    'F32': (0, 1, 4, None), 'F16': (1, 1, 2, None), 'BF16': (30, 1, 2, None),
    'Q4_0': (2, 32, 18, 'Q8_0'), 'Q4_1': (3, 32, 20, 'Q8_1'), 'Q5_0': (6, 32, 22, 'Q8_0'), 'Q5_1': (7, 32, 24, 'Q8_1'),
    'Q8_0': (8, 32, 34, 'Q8_0'), 'Q8_1': (9, 32, 36, None), 'Q2_K': (10, 256, 84, 'Q8_K'), 'Q3_K': (11, 256, 110, 'Q8_K'),
    'Q4_K': (12, 256, 144, 'Q8_K'), 'Q5_K': (13, 256, 176, 'Q8_K'), 'Q6_K': (14, 256, 210, 'Q8_K'), 'Q8_K': (15, 256, 292, None),
    'IQ2_XXS': (16, 256, 66, 'Q8_K'), 'IQ2_XS': (17, 256, 74, 'Q8_K'), 'IQ3_XXS': (18, 256, 98, 'Q8_K'), 'IQ1_S': (19, 256, 50, 'Q8_K'),
    'IQ4_NL': (20, 32, 18, 'Q8_0'), 'IQ3_S': (21, 256, 110, 'Q8_K'), 'IQ2_S': (22, 256, 82, 'Q8_K'), 'IQ4_XS': (23, 256, 136, 'Q8_K'),
    'IQ1_M': (29, 256, 56, 'Q8_K'), 'TQ1_0': (34, 256, 54, 'Q8_K'), 'TQ2_0': (35, 256, 66, 'Q8_K'), 'MXFP4': (39, 32, 17, 'Q8_0'),
    'NVFP4': (40, 64, 36, 'Q8_0'), 'Q1_0': (41, 128, 18, 'Q8_0'), 'Q2_0': (42, 64, 18, 'Q8_0'),
    'Q2_0_G128': (142, 128, 34, 'Q8_0'), 'MXFP8': (200, 256, 264, None), 'MXFP8_SF': (201, 256, 264, None)}
BY_ID = {v[0]: k for k, v in TYPES.items() if v[0] < 43}


def fnv(data):
    h = 0xcbf29ce484222325
    for c in bytes(data):
        h = (h ^ c) * 0x100000001b3 & 0xffffffffffffffff
    return '%016x' % h


# ---------------------------------------------------------------------------------------------------------- code books
BOOKS = {'iq2xxs_grid': ('<u8', 'bb4ee025b5ac6e8e'), 'ksigns_iq2xs': ('u1', 'f19ba8f8c3292ba5'), 'iq3xxs_grid': ('<u4', 'dfa5dc83d6a155d5'),
         'iq3s_grid': ('<u4', 'fa37020c25b44829'), 'iq2xs_grid': ('<u8', 'c9b1ee61e79909bd'), 'iq2s_grid': ('<u8', '123edd38a3b62b90'),
         'iq1s_grid': ('<u8', '6703ed863501ae2e'), 'iq4nl_values': ('i1', '055d06d2d8fa0f75')}
_book = {}


SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'src', 'quant')
# packed entries: bits per value, values per entry, value of each digit
PACKED = {'iq2xxs_grid': (2, 8, [8, 25, 43]), 'iq2xs_grid': (2, 8, [8, 25, 43]), 'iq2s_grid': (2, 8, [8, 25, 43]),
          'iq3xxs_grid': (3, 4, [4, 12, 20, 28, 36, 44, 52, 62]), 'iq3s_grid': (3, 4, [1, 3, 5, 7, 9, 11, 13, 15]),
          'iq1s_grid': (2, 8, [-1, 0, 1])}


def book(name):
    """The named table, one row per entry (grids: int32 [entries, 4 or 8]), from the packed lists of the sources; hashes are those of ggml's tables."""
    if not _book:
        for key, (bits, n, values) in PACKED.items():
            text = open(os.path.join(SOURCES, 'quant_%s_book.c' % key[:-5])).read()
            codes = np.array([int(v) for v in re.findall(r'X\((\d+)\)', text)])
            _book[key] = np.array(values, np.int32)[codes[:, None] >> bits * np.arange(n) & (1 << bits) - 1]
            assert fnv(_book[key].astype('i1').tobytes()) == BOOKS[key][1], key
        s = np.arange(128)
        _book['ksigns_iq2xs'] = s | (np.array([bin(v).count('1') for v in s]) & 1) << 7
        _book['iq4nl_values'] = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.int32)
    return _book[name]


E2M1 = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.int32)        # doubled values


def e4m3(code):
    """FP8 E4M3FN -> float32; both codes with all seven bits set are NaN."""
    c = np.arange(256)
    e, m = c >> 3 & 15, c & 7
    v = np.where(e == 0, m * 2.0**-9, (1 + m / 8) * 2.0**(e - 7.0))
    v = np.where(c & 127 == 127, np.nan, np.where(c > 127, -v, v))
    return v.astype(F)[code]


def ue4m3_half(code):
    """Scale of NVFP4: half the unsigned value; bit 7 is ignored, and 0x7f alone gives 0 (0xff gives 240), as in ggml."""
    c = np.arange(256)
    e, m = c >> 3 & 15, c & 7
    v = np.where(e == 0, m * 2.0**-9, (1 + m / 8) * 2.0**(e - 7.0)) / 2
    return np.where(c == 127, 0, v).astype(F)[code]


def e8m0(code, half=False):
    """2^(code-127), or 2^(code-128); 0 (and 1) are subnormal; 255 gives what ggml's bit pattern gives."""
    c = np.arange(256, dtype=np.uint32)
    bits = np.where(c < 2, np.uint32(0x200000) << c, (c - 1) << 23) if half else np.where(c == 0, np.uint32(0x400000), c << 23)
    return bits.astype(np.uint32).view(F)[code]


# -------------------------------------------------------------------------------------------------------------- fields
def f16(b, at):
    return b[:, at:at + 2].copy().view('<f2').astype(F)                                    # [blocks, 1]


def u16(b, at, n):
    return b[:, at:at + 2 * n].copy().view('<u2').astype(np.int32)


def u32(b, at, n):
    return b[:, at:at + 4 * n].copy().view('<u4').astype(np.int64)


def i8(b, at, n):
    return b[:, at:at + n].copy().view('i1').astype(np.int32)


def by(b, at, n):
    return b[:, at:at + n].astype(np.int32)


def nibbles(q, run):
    """Bytes -> nibbles; in each run of bytes all low nibbles come first, then all high ones."""
    q = q.reshape(len(q), -1, run)
    return np.concatenate([q & 15, q >> 4], 2).reshape(len(q), -1)


def pairs(q):
    """Bytes -> nibbles, low before high in every byte."""
    return np.stack([q & 15, q >> 4], 2).reshape(len(q), -1)


def bits(q):
    """Bytes -> bits, bit 0 first."""
    return (q[:, :, None] >> np.arange(8) & 1).reshape(len(q), -1)


def planes(q):
    """64 bytes -> 256 two-bit codes as in Q2_K: element 128h + 32p + l = bits 2p of byte 32h + l."""
    q = q.reshape(len(q), 2, 1, 32) >> (2 * np.arange(4)).reshape(1, 1, 4, 1) & 3
    return q.reshape(len(q), 256)


def signs(byte):
    """Sign bytes, one per 8 elements -> +1 / -1."""
    return 1 - 2 * bits(byte)


def k4(S):
    """The 12 bytes of Q4_K / Q5_K -> 8 scales, 8 minima of six bits."""
    lo, mid, hi = S[:, 0:4], S[:, 4:8], S[:, 8:12]
    return (np.concatenate([lo & 63, hi & 15 | lo >> 6 << 4], 1), np.concatenate([mid & 63, hi >> 4 | mid >> 6 << 4], 1))


# ------------------------------------------------------------------------------------------------------------ unpacking
# Every function returns a dict: q int [blocks, elements] (code with offset, sign and grid applied), and what scales it.
def _q4_0(b): return dict(d=f16(b, 0), q=nibbles(by(b, 2, 16), 16) - 8)
def _q4_1(b): return dict(d=f16(b, 0), m=f16(b, 2), q=nibbles(by(b, 4, 16), 16))
def _q5_0(b): return dict(d=f16(b, 0), q=(nibbles(by(b, 6, 16), 16) | bits(by(b, 2, 4)) << 4) - 16)
def _q5_1(b): return dict(d=f16(b, 0), m=f16(b, 2), q=nibbles(by(b, 8, 16), 16) | bits(by(b, 4, 4)) << 4)
def _q8_0(b): return dict(d=f16(b, 0), q=i8(b, 2, 32))
def _q8_1(b): return dict(d=f16(b, 0), s=f16(b, 2), q=i8(b, 4, 32))
def _q8_k(b): return dict(d=b[:, :4].copy().view('<f4').astype(F), q=i8(b, 4, 256), bsums=b[:, 260:292].copy().view('<i2').astype(np.int32))
def _iq4_nl(b): return dict(d=f16(b, 0), q=book('iq4nl_values')[nibbles(by(b, 2, 16), 16)])
def _mxfp4(b): return dict(d=e8m0(b[:, 0:1], True), q=E2M1[nibbles(by(b, 1, 16), 16)])
def _nvfp4(b): return dict(d=ue4m3_half(b[:, :4]), q=E2M1[nibbles(by(b, 4, 32), 8)])
def _q1_0(b): return dict(d=f16(b, 0), q=2 * bits(by(b, 2, 16)) - 1)
def _q2_0(b): return dict(d=f16(b, 0), q=(b[:, 2:, None].astype(np.int32) >> (2 * np.arange(4)) & 3).reshape(len(b), -1) - 1)
def _tq2_0(b): return dict(d=f16(b, 64), q=planes(by(b, 0, 64)) - 1)


def _tq1_0(b):
    p = np.array([1, 3, 9, 27, 81]).reshape(1, 5, 1)
    t = lambda q, n: ((q[:, None, :] * p[:, :n] & 255) * 3 >> 8).reshape(len(b), -1)
    return dict(d=f16(b, 52), q=np.concatenate([t(by(b, 0, 32), 5), t(by(b, 32, 16), 5), t(by(b, 48, 4), 4)], 1) - 1)


def _q2_k(b):
    return dict(d=f16(b, 80), dmin=f16(b, 82), sc=by(b, 0, 16) & 15, m=by(b, 0, 16) >> 4, q=planes(by(b, 16, 64)))


def _q3_k(b):
    S = by(b, 96, 12)
    low = np.concatenate([S[:, :8] & 15, S[:, :8] >> 4], 1)
    high = (S[:, None, 8:12] >> (2 * np.arange(4)).reshape(1, 4, 1) & 3).reshape(len(b), 16)
    h = (b[:, None, :32].astype(np.int32) >> np.arange(8).reshape(1, 8, 1) & 1).reshape(len(b), 256)
    return dict(d=f16(b, 108), sc=(low | high << 4) - 32, q=planes(by(b, 32, 64)) - 4 * (1 - h))


def _q4_k(b):
    sc, m = k4(by(b, 4, 12))
    return dict(d=f16(b, 0), dmin=f16(b, 2), sc=sc, m=m, q=nibbles(by(b, 16, 128), 32))


def _q5_k(b):
    sc, m = k4(by(b, 4, 12))
    h = (b[:, None, 16:48].astype(np.int32) >> np.arange(8).reshape(1, 8, 1) & 1).reshape(len(b), 256)
    return dict(d=f16(b, 0), dmin=f16(b, 2), sc=sc, m=m, q=nibbles(by(b, 48, 128), 32) | h << 4)


def _q6_k(b):
    lo = nibbles(by(b, 0, 128), 64)                  # 64 bytes: low nibbles = elements 0..63 of the half, high = 64..127
    return dict(d=f16(b, 208), sc=i8(b, 192, 16), q=(lo | planes(by(b, 128, 64)) << 4) - 32)


def _iq2_xxs(b):
    w = u32(b, 2, 16).reshape(len(b), 8, 2)
    index = (w[:, :, 0, None] >> 8 * np.arange(4) & 255).reshape(len(b), 32)
    s = (w[:, :, 1, None] >> 7 * np.arange(4) & 127).reshape(len(b), 32)
    return dict(d=f16(b, 0), sc=(2 * (w[:, :, 1] >> 28) + 1).astype(np.int32),
                q=book('iq2xxs_grid')[index].reshape(len(b), 256) * signs(book('ksigns_iq2xs')[s]))


def _iq2_xs(b):
    v = u16(b, 2, 32)
    return dict(d=f16(b, 0), sc=2 * pairs(by(b, 66, 8)) + 1,
                q=book('iq2xs_grid')[v & 511].reshape(len(b), 256) * signs(book('ksigns_iq2xs')[v >> 9]))


def _iq2_s(b):
    high = (b[:, 66:74, None].astype(np.int32) >> 2 * np.arange(4) & 3).reshape(len(b), 32)
    return dict(d=f16(b, 0), sc=2 * pairs(by(b, 74, 8)) + 1,
                q=book('iq2s_grid')[by(b, 2, 32) | high << 8].reshape(len(b), 256) * signs(by(b, 34, 32)))


def _iq3_xxs(b):
    w = u32(b, 66, 8)
    s = (w[:, :, None] >> 7 * np.arange(4) & 127).reshape(len(b), 32)
    return dict(d=f16(b, 0), sc=(2 * (w >> 28) + 1).astype(np.int32),
                q=book('iq3xxs_grid')[by(b, 2, 64)].reshape(len(b), 256) * signs(book('ksigns_iq2xs')[s]))


def _iq3_s(b):
    return dict(d=f16(b, 0), sc=2 * pairs(by(b, 106, 4)) + 1,
                q=book('iq3s_grid')[by(b, 2, 64) | bits(by(b, 66, 8)) << 8].reshape(len(b), 256) * signs(by(b, 74, 32)))


def _iq1_s(b):
    h = u16(b, 34, 8)
    index = by(b, 2, 32) | (h[:, :, None] >> 3 * np.arange(4) & 7).reshape(len(b), 32) << 8
    return dict(d=f16(b, 0), sc=2 * (h >> 12 & 7) + 1, q=book('iq1s_grid')[index].reshape(len(b), 256),
                delta=np.repeat(1 - 2 * (h >> 15), 4, 1))


def _iq1_m(b):
    n = pairs(by(b, 32, 16))
    c = u16(b, 48, 4)
    d = (c[:, 0] >> 12 | c[:, 1] >> 12 << 4 | c[:, 2] >> 12 << 8 | c[:, 3] >> 12 << 12).astype('<u2').view('<f2').astype(F)
    return dict(d=d[:, None], sc=2 * (c[:, :, None] >> 3 * np.arange(4) & 7).reshape(len(b), 16) + 1,
                q=book('iq1s_grid')[by(b, 0, 32) | (n & 7) << 8].reshape(len(b), 256), delta=1 - 2 * (n >> 3))


def _iq4_xs(b):
    high = u16(b, 2, 1) >> 2 * np.arange(8) & 3
    return dict(d=f16(b, 0), sc=(pairs(by(b, 4, 4)) | high << 4) - 32, q=book('iq4nl_values')[nibbles(by(b, 8, 128), 16)])


UNPACK = dict(Q4_0=_q4_0, Q4_1=_q4_1, Q5_0=_q5_0, Q5_1=_q5_1, Q8_0=_q8_0, Q8_1=_q8_1, Q8_K=_q8_k, IQ4_NL=_iq4_nl, MXFP4=_mxfp4, NVFP4=_nvfp4,
              Q1_0=_q1_0, Q2_0=_q2_0, Q2_0_G128=_q2_0, TQ1_0=_tq1_0, TQ2_0=_tq2_0, Q2_K=_q2_k, Q3_K=_q3_k, Q4_K=_q4_k, Q5_K=_q5_k, Q6_K=_q6_k,
              IQ2_XXS=_iq2_xxs, IQ2_XS=_iq2_xs, IQ2_S=_iq2_s, IQ3_XXS=_iq3_xxs, IQ3_S=_iq3_s, IQ1_S=_iq1_s, IQ1_M=_iq1_m, IQ4_XS=_iq4_xs)


def unpack(name, data):
    _, elems, size, _ = TYPES[name]
    b = np.frombuffer(bytes(data), np.uint8) if not isinstance(data, np.ndarray) else data.reshape(-1)
    assert len(b) % size == 0, (name, len(b))
    return UNPACK[name](b.reshape(-1, size))


def spread(s, n):
    """One value per sub-block -> one per element."""
    return np.repeat(s, n // s.shape[1], 1)


def decode(name, data):
    """Block bytes -> float32, flat."""
    raw = np.frombuffer(bytes(data), np.uint8) if not isinstance(data, np.ndarray) else data.reshape(-1)
    if name == 'F32':
        return raw.view('<f4').astype(F)
    if name == 'F16':
        return raw.view('<f2').astype(F)
    if name == 'BF16':
        return (raw.view('<u2').astype(np.uint32) << 16).view(F)
    if name.startswith('MXFP8'):
        b = raw.reshape(-1, 264)
        codes, e = (b[:, :256], b[:, 256:]) if name == 'MXFP8' else (b[:, 8:], b[:, :8])
        return (e4m3(codes) * spread(e8m0(e), 256)).reshape(-1)
    u = unpack(name, raw)
    q, d = u['q'].astype(F), u['d']
    n = q.shape[1]
    if 'dmin' in u:                                              # Q2_K, Q4_K, Q5_K
        w = spread(d * u['sc'].astype(F), n) * q - spread(u['dmin'] * u['m'].astype(F), n)
    elif 'm' in u:                                               # Q4_1, Q5_1
        w = q * d + u['m']
    elif 'delta' in u:                                           # IQ1_S, IQ1_M
        w = spread(d * u['sc'].astype(F), n) * (q + F(.125) * spread(u['delta'].astype(F), n))
    elif name in ('IQ2_XXS', 'IQ2_XS', 'IQ2_S', 'IQ3_XXS'):      # fl(fl(d·(½+s))·¼ or ½)
        half = d * (F(.5) * u['sc'].astype(F)) * F(.5 if name == 'IQ3_XXS' else .25)
        w = spread(half, n) * q
    elif 'sc' in u:                                              # Q3_K, Q6_K, IQ3_S, IQ4_XS
        w = spread(d * u['sc'].astype(F), n) * q
    else:
        w = q * spread(d, n)
    # a zero code times a negative scale is -0, as in C; a negative *sign* times +0 magnitude does not occur (no grid has 0)
    return w.astype(F).reshape(-1)


# --------------------------------------------------------------------------------------------- activations and dot products
def away(x):
    """Round half away from zero, exactly, to int."""
    x = x.astype(np.float64)
    return np.where(x < 0, np.ceil(x - .5), np.floor(x + .5)).astype(np.int32)


def activations(kind, x):
    """float32 [n] -> dict as from unpack (ggml's generic quantisers)."""
    if kind == 'Q8_K':
        x = x.reshape(-1, 256)
        top = np.take_along_axis(x, np.abs(x).argmax(1)[:, None], 1)                       # first maximum
        with np.errstate(divide='ignore', invalid='ignore'):
            inv = F(-127) / top
            q = np.where(top == 0, 0, np.minimum(127, np.rint(inv * x)))
            d = np.where(top == 0, F(0), F(1) / inv)
        q = q.astype(np.int32)
        return dict(d=d.astype(F), q=q, bsums=q.reshape(-1, 16, 16).sum(2))
    x = x.reshape(-1, 32)
    d = np.abs(x).max(1, keepdims=True) / F(127)
    with np.errstate(divide='ignore'):
        inv = np.where(d == 0, F(0), F(1) / d).astype(F)
    q = away(x * inv)
    return dict(d=d.astype(np.float16).astype(F), q=q, s=(q.sum(1, keepdims=True).astype(F) * d).astype(np.float16).astype(F))


def dot(name, data, x):
    """Generic dot product of one row (spec 3.2 and more-quants.md 3)."""
    u, y = unpack(name, data), activations(TYPES[name][3], np.ascontiguousarray(x, F))
    q, a, d = u['q'], y['q'].reshape(len(u['q']), -1), u['d']
    p = (q * a).astype(np.int64)
    n, acc = q.shape[1], F(0)
    part = lambda size: p.reshape(len(p), -1, size).sum(2)
    if TYPES[name][3] != 'Q8_K':
        yd, sub = y['d'].reshape(len(q), -1), part(min(n, 32)).astype(F)
        for i in range(len(q)):
            if name == 'Q8_0':
                acc = acc + sub[i, 0] * (d[i, 0] * yd[i, 0])
            elif name == 'Q4_0':
                acc = acc + sub[i, 0] * d[i, 0] * yd[i, 0]
            elif name in ('Q4_1', 'Q5_1'):
                acc = acc + (d[i, 0] * yd[i, 0] * sub[i, 0] + u['m'][i, 0] * y['s'][i, 0])
            elif name in ('Q5_0', 'IQ4_NL', 'MXFP4'):
                acc = acc + d[i, 0] * yd[i, 0] * sub[i, 0]
            elif name == 'NVFP4':
                s16 = part(16)[i].astype(F)
                for k in range(4):
                    acc = acc + yd[i, k // 2] * d[i, k] * s16[k]
            else:                                                # Q1_0, Q2_0
                t = F(0)
                for k in range(yd.shape[1]):
                    t = t + yd[i, k] * sub[i, k]
                acc = acc + d[i, 0] * t
        return acc
    yd = y['d']
    if name in ('Q3_K', 'Q4_K', 'Q5_K', 'Q6_K'):
        lanes = np.zeros(8, F)
        S = (p * spread(u['sc'], n)).reshape(len(p), 32, 8).sum(1).astype(F)
        for i in range(len(q)):
            lanes = lanes + d[i, 0] * yd[i, 0] * S[i]
            if 'm' in u:
                acc = acc - u['dmin'][i, 0] * yd[i, 0] * F((y['bsums'][i] * np.repeat(u['m'][i], 2)).sum())
        for v in lanes:
            acc = acc + v
        return acc
    for i in range(len(q)):
        dd = d[i, 0] * yd[i, 0]
        if name in ('TQ1_0', 'TQ2_0'):
            acc = acc + F(p[i].sum()) * dd
        elif name == 'IQ4_XS':
            for k in range(8):
                acc = acc + dd * F(u['sc'][i, k]) * F(p[i, 32 * k:32 * k + 32].sum())
        else:
            S = F((p[i] * np.repeat(u['sc'][i], n // u['sc'].shape[1])).sum())
            if name == 'Q2_K':
                acc = acc + (dd * S - u['dmin'][i, 0] * yd[i, 0] * F((y['bsums'][i] * u['m'][i]).sum()))
            elif 'delta' in u:
                M = (a[i].reshape(32, 8).sum(1) * u['delta'][i] * np.repeat(u['sc'][i], 32 // u['sc'].shape[1])).sum()
                acc = acc + dd * (S + F(.125) * F(M))
            else:
                acc = acc + dd * S
    return acc * F({'IQ3_XXS': .25, 'IQ3_S': 1}.get(name, .125 if name.startswith('IQ2') else 1))


# ---------------------------------------------------------------------------------------------------------------- files
# -------------------------------------------------------------------------------------------------------------- vectors
def xorshift(s):
    while True:
        s ^= s << 13 & 0xffffffff
        s ^= s >> 17
        s ^= s << 5 & 0xffffffff
        yield s


def appendix_a():
    """X, Q, Y of gguf-and-quants.md Appendix A."""
    g = xorshift(0x12345678)
    u = lambda: F(next(g) >> 8) * F(2.0**-23) - F(1)
    X = np.zeros(4096, F)
    X[64:128] = .5
    X[128:192] = [-3 if i % 7 == 0 else F(.01) for i in range(128, 192)]
    X[192:256] = [1, -1] * 32
    for i in range(256, 4096):
        if i // 256 % 2:
            X[i] = F(2.5) * u()
        else:
            a, b, c, d = u(), u(), u(), u()
            X[i] = ((a + b) + (c + d)) * F(.01)
    Q = np.array([F(.05) + v * v for v in (u() for _ in range(1024))], F)
    Y = np.zeros(4096, F)
    for i in range(4096):
        a, b = u(), u()
        Y[i] = (a + b) * F(3)
    return X, Q, Y


HALVES = {'Q8_1': (0, 2), 'Q4_1': (0, 2), 'Q5_1': (0, 2), 'Q2_K': (80, 82), 'Q3_K': (108,), 'Q4_K': (0, 2), 'Q5_K': (0, 2), 'Q6_K': (208,),
          'TQ1_0': (52,), 'TQ2_0': (64,)}


def finite(name, b):
    """The rule of more-quants.md 7.2: scale fields of random blocks (uint8 [blocks, size], changed in place) made finite."""
    if name in ('MXFP4', 'MXFP8', 'MXFP8_SF'):
        e = b[:, {'MXFP4': slice(0, 1), 'MXFP8': slice(256, 264), 'MXFP8_SF': slice(0, 8)}[name]]
        e[e >= 240] -= 128
        if name != 'MXFP4':
            c = b[:, :256] if name == 'MXFP8' else b[:, 8:]
            c[c & 127 == 127] ^= 1
    elif name == 'NVFP4':
        b[:, :4] &= 127
        b[:, :4][b[:, :4] == 127] = 126
    elif name == 'Q8_K':
        b[:, 3] = b[:, 3] & 0x80 | 0x30 | b[:, 3] & 0x0f
    elif name == 'BF16':
        b[(b[:, 1] & 0x7f == 0x7f) & (b[:, 0] >= 0x80), 1] ^= 0x40
    elif name == 'IQ1_M':
        c = b[:, 48:56].copy().view('<u2').astype(int)
        d = c[:, 0] >> 12 | c[:, 1] >> 12 << 4 | c[:, 2] >> 12 << 8 | c[:, 3] >> 12 << 12
        b[d & 0x7c00 == 0x7c00, 55] ^= 0x40
    else:
        for at in HALVES.get(name, (0,)):
            b[b[:, at + 1] & 0x7c == 0x7c, at + 1] ^= 0x40
    return b


def random_blocks(name, weights=65536):
    ident, elems, size, _ = TYPES[name]
    n = weights // elems * size
    g = xorshift(0x5eed0000 | ident)
    b = np.array([next(g) for _ in range((n + 3) // 4)], '<u4').view(np.uint8)[:n].copy()
    return finite(name, b.reshape(-1, size))


def vector(name, Y=None):
    """(hash of the blocks, hash of the decoded values, hash of the 64 row dots or None)."""
    b = random_blocks(name)
    dots = None
    if TYPES[name][3] and Y is not None:
        rows = b.reshape(64, -1)
        dots = fnv(np.array([dot(name, rows[r], Y[r % 4 * 1024:][:1024]) for r in range(64)], '<f4').tobytes())
    return fnv(b.tobytes()), fnv(decode(name, b).astype('<f4').tobytes()), dots
