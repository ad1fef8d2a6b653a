/* Random codes and scales. */
#include "synth_blocks.h"
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include "quant/quant.h"
#include "quant/quant_sound.h"

/* SplitMix64: a counter and a mixing of its bits; any start is a good start. */
uint64_t synth_next(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

uint64_t synth_seed(uint64_t a, uint64_t b)
{
    uint64_t s = a;
    s = synth_next(&s) ^ b;
    return synth_next(&s);
}

static void put_u16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

static void random_bytes(uint64_t *state, uint8_t *out, int n)
{
    for (; n >= 8; n -= 8, out += 8) {
        const uint64_t r = synth_next(state);
        memcpy(out, &r, 8);
    }
    const uint64_t r = synth_next(state);
    memcpy(out, &r, (size_t)n);
}

static int sum4(uint64_t r)
{
    return (int)((r & 255) + (r >> 8 & 255) + (r >> 16 & 255) + (r >> 24 & 255));
}

/* ---- blocks: random codes, the same scales d and dmin in all of them (layouts: spec gguf-and-quants 2) ---- */

static void q8_0(const struct synth_filler *f, uint64_t *state, uint8_t *b)
{
    random_bytes(state, b, 34);
    put_u16(b, f->d);
    for (int i = 2; i < 34; i++) b[i] = b[i] == 0x80 ? 0x81 : b[i]; /* -128 is no code of this type */
}

/* Scale and minimum of a group get the same code, so that with dmin = 1.5 d the values lie evenly around zero. */
static void q2_k(const struct synth_filler *f, uint64_t *state, uint8_t *b)
{
    random_bytes(state, b, 80);
    for (int i = 0; i < 16; i++) b[i] = (uint8_t)((8 | (b[i] & 7)) * 17);
    put_u16(b + 80, f->d);
    put_u16(b + 82, f->dmin);
}

/* A group of 16 whose scale and minimum are zero. */
void synth_pad_q2_k(uint8_t *row, int64_t logical, int64_t k)
{
    for (int64_t i = logical; i < k; i += 16) row[i / 256 * 84 + i % 256 / 16] = 0;
}

/* As Q2_K, dmin = 7.5 d. Codes 16..31 for scales and minima have no bits above the fifth, which makes them easy to
 * pack. */
static void q4_k(const struct synth_filler *f, uint64_t *state, uint8_t *b)
{
    random_bytes(state, b, 144);
    put_u16(b, f->d);
    put_u16(b + 2, f->dmin);
    uint8_t *s = b + 4;
    for (int j = 0; j < 4; j++) {
        const int low = 16 | (s[j] & 15), high = 16 | s[j] >> 4;
        s[j] = s[j + 4] = (uint8_t)(low | (high >> 4) << 6);
        s[j + 8] = (uint8_t)((high & 15) * 17);
    }
}

static void iq2_xxs(const struct synth_filler *f, uint64_t *state, uint8_t *b)
{
    put_u16(b, f->d);
    random_bytes(state, b + 2, 64); /* every code is valid */
}

/* Codes are as evenly spread as they can be; scales are powers of two: one, and so often its double as the spread needs
 * it. */
static void mxfp4(const struct synth_filler *f, uint64_t *state, uint8_t *b)
{
    const bool twice = (synth_next(state) & 0xFFFF) < f->doubled;
    b[0] = (uint8_t)(f->exponent + twice);
    random_bytes(state, b + 1, 16);
}

/* Any other type whose scales are F16: every code is valid. */
static void any_codes(const struct synth_filler *f, uint64_t *state, uint8_t *b)
{
    random_bytes(state, b, f->bytes);
    put_u16(b + f->at[0], f->d);
    if (f->n_scales > 1) put_u16(b + f->at[1], f->dmin);
}

/* Codes of two bits for -1, 0 and 1 as quantisers write them: a fourth code, for 2, becomes 0. */
static void ternary(const struct synth_filler *f, uint64_t *state, uint8_t *b)
{
    any_codes(f, state, b);
    for (int i = 0; i < f->bytes; i++)
        if (i != f->at[0] && i != f->at[0] + 1) b[i] = (uint8_t)(b[i] & ~((b[i] & b[i] >> 1 & 0x55) << 1));
}

/* The F16 scale of a block is in the highest four bits of four numbers. */
static void iq1_m(const struct synth_filler *f, uint64_t *state, uint8_t *b)
{
    random_bytes(state, b, 56);
    for (int i = 0; i < 4; i++) b[49 + 2 * i] = (uint8_t)((b[49 + 2 * i] & 15) | (f->d >> 4 * i & 15) << 4);
}

/* Scales are E4M3 numbers, the decoder's doubled. */
static void nvfp4(const struct synth_filler *f, uint64_t *state, uint8_t *b)
{
    random_bytes(state, b, 36);
    for (int i = 0; i < 4; i++) b[i] = f32_to_e4m3(f16_to_f32(f->d)) & 0x7F;
}

static const struct block_kind {
    uint32_t type;
    void (*make)(const struct synth_filler *f, uint64_t *state, uint8_t *block);
    float dmin; /* in units of d */
} kinds[] = {{QT_Q8_0, q8_0, 0},       {QT_Q2_K, q2_k, 1.5f},  {QT_Q4_K, q4_k, 7.5f},
             {QT_IQ2_XXS, iq2_xxs, 0}, {QT_MXFP4, mxfp4, 0},   {QT_IQ1_M, iq1_m, 0},
             {QT_NVFP4, nvfp4, 0},     {QT_TQ2_0, ternary, 0}, {QT_Q2_0, ternary, 0}};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

static const struct block_kind *find_kind(uint32_t type)
{
    static const struct block_kind any = {.make = any_codes};
    int at[2];
    for (int i = 0; i < N_KINDS; i++)
        if (kinds[i].type == type) return &kinds[i];
    return quant_f16_scales(type, at) > 0 ? &any : NULL;
}

bool synth_can_fill(uint32_t type)
{
    const struct quant_type *t = quant_type(type);
    if (type == QT_F32 || type == QT_F16 || type == QT_BF16) return true;
    if (type == QT_Q8_1) return false; /* of activations: no weights are stored so */
    return t && t->decode && find_kind(type);
}

static void set_scales(struct synth_filler *f, const struct block_kind *kind, float d)
{
    f->d = f32_to_f16(d);
    f->dmin = f32_to_f16((kind->type ? kind->dmin : f->balance) * f16_to_f32(f->d));
    /* Mean square of scales 2^e and 2^(e+1): (1 - p) 4^e + p 4^(e+1) = d^2. */
    int e;
    const double m = 2 * frexp((double)d, &e); /* d = m 2^(e-1), 1 <= m < 2 */
    f->exponent = (uint8_t)(e - 1 + 127);
    f->doubled = (uint32_t)((m * m - 1) / 3 * 0x10000);
}

/* Mean and root of the mean square of the values, measured. */
static double spread(const struct synth_filler *f, const struct block_kind *kind, double *mean)
{
    enum { SAMPLES = 256, MAX_BLOCK = 256, MAX_BYTES = 320 };
    const struct quant_type *t = quant_type(f->type);
    uint64_t state = 1;
    uint8_t block[MAX_BYTES];
    float x[MAX_BLOCK];
    double squares = 0, sum = 0;
    for (int i = 0; i < SAMPLES; i++) {
        kind->make(f, &state, block);
        t->decode(block, x, t->block);
        for (int j = 0; j < t->block; j++) squares += (double)x[j] * x[j], sum += (double)x[j];
    }
    *mean = sum / (SAMPLES * t->block);
    return sqrt(squares / (SAMPLES * t->block));
}

/* The second scale, in units of the first, with which values lie evenly around zero: their mean depends on it as a line
 * does. */
static void balance(struct synth_filler *f, const struct block_kind *kind)
{
    double without, with;
    f->n_scales = quant_f16_scales(f->type, f->at);
    f->bytes = quant_type(f->type)->block_bytes;
    if (kind->type || f->n_scales < 2) return;
    set_scales(f, kind, 1);
    spread(f, kind, &without);
    f->balance = 1;
    set_scales(f, kind, 1);
    spread(f, kind, &with);
    f->balance = (float)(without / (without - with));
}

/* ---- plain types ---- */

static void fill_values(struct synth_filler *f, float mean, float sigma)
{
    const double unit = sqrt(4 * (256.0 * 256 - 1) / 12); /* standard deviation of the sum of four bytes */
    for (int i = 0; i < SYNTH_SUMS; i++) {
        const float v = (float)(mean + sigma * (i - 2 * 255) / unit);
        if (f->type == QT_F32)
            f->value.f32[i] = v;
        else
            f->value.u16[i] = f->type == QT_F16 ? f32_to_f16(v) : f32_to_bf16(v);
    }
}

static void plain_row(const struct synth_filler *f, uint64_t *state, uint8_t *out)
{
    for (int64_t i = 0; i < f->k; i += 2) {
        const uint64_t r = synth_next(state);
        for (int half = 0; half < 2 && i + half < f->k; half++) {
            const int sum = sum4(half ? r >> 32 : r);
            if (f->type == QT_F32)
                memcpy(out + 4 * (i + half), &f->value.f32[sum], 4);
            else
                put_u16(out + 2 * (i + half), f->value.u16[sum]);
        }
    }
}

int synth_filler_init(struct synth_filler *f, uint32_t type, int64_t k, float mean, float sigma, uint64_t seed,
                      struct err *e)
{
    const struct block_kind *kind = find_kind(type);
    *f = (struct synth_filler){.type = type, .k = k, .seed = seed};
    if (type == QT_F32 || type == QT_F16 || type == QT_BF16)
        fill_values(f, mean, sigma);
    else if (kind) {
        double around;
        balance(f, kind);
        set_scales(f, kind, 1);
        set_scales(f, kind, (float)(sigma / spread(f, kind, &around)));
    } else
        return err_set(e, ERR_ARG, "type %u has no random generator", (unsigned)type);
    return 0;
}

void synth_filler_row(const struct synth_filler *f, int64_t row, uint8_t *out)
{
    const struct block_kind *kind = find_kind(f->type);
    const struct quant_type *t = quant_type(f->type);
    uint64_t state = synth_seed(f->seed, (uint64_t)row);
    if (!kind)
        plain_row(f, &state, out);
    else
        for (int64_t i = 0; i < f->k; i += t->block, out += t->block_bytes) kind->make(f, &state, out);
}
