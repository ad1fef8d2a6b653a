/* The scales of a type are numbers of one kind at fixed places of its blocks. A few thousand blocks at once are looked
 * at without a branch; only where one of them is unsound is it looked for. */
#include "quant/quant_sound.h"
#include <string.h>
#include "quant/quant_internal.h"

enum scale_kind {
    SCALE_NONE,
    SCALE_F16,
    SCALE_BF16,
    SCALE_F32,
    SCALE_F64,
    SCALE_E8M0,
    SCALE_E4M3,
    SCALE_IQ1_M,
    SCALE_MXFP8
};
enum { MOST_SCALES = 4, BATCH = 1024 };

/* Places: spec gguf-and-quants 2, more-quants 2. */
static const struct scales {
    enum scale_kind kind;
    int n, at[MOST_SCALES];
} scales[QUANT_SLOTS] = {
    [QT_F32] = {SCALE_F32, 1, {0}},
    [QT_F16] = {SCALE_F16, 1, {0}},
    [QT_F64] = {SCALE_F64, 1, {0}},
    [QT_BF16] = {SCALE_BF16, 1, {0}},
    [QT_Q4_0] = {SCALE_F16, 1, {0}},
    [QT_Q4_1] = {SCALE_F16, 2, {0, 2}},
    [QT_Q5_0] = {SCALE_F16, 1, {0}},
    [QT_Q5_1] = {SCALE_F16, 2, {0, 2}},
    [QT_Q8_0] = {SCALE_F16, 1, {0}},
    [QT_Q8_1] = {SCALE_F16, 2, {0, 2}},
    [QT_Q2_K] = {SCALE_F16, 2, {80, 82}},
    [QT_Q3_K] = {SCALE_F16, 1, {108}},
    [QT_Q4_K] = {SCALE_F16, 2, {0, 2}},
    [QT_Q5_K] = {SCALE_F16, 2, {0, 2}},
    [QT_Q6_K] = {SCALE_F16, 1, {208}},
    [QT_Q8_K] = {SCALE_F32, 1, {0}},
    [QT_IQ2_XXS] = {SCALE_F16, 1, {0}},
    [QT_IQ2_XS] = {SCALE_F16, 1, {0}},
    [QT_IQ3_XXS] = {SCALE_F16, 1, {0}},
    [QT_IQ1_S] = {SCALE_F16, 1, {0}},
    [QT_IQ4_NL] = {SCALE_F16, 1, {0}},
    [QT_IQ3_S] = {SCALE_F16, 1, {0}},
    [QT_IQ2_S] = {SCALE_F16, 1, {0}},
    [QT_IQ4_XS] = {SCALE_F16, 1, {0}},
    [QT_IQ1_M] = {SCALE_IQ1_M, 1, {48}},
    [QT_TQ1_0] = {SCALE_F16, 1, {52}},
    [QT_TQ2_0] = {SCALE_F16, 1, {64}},
    [QT_MXFP4] = {SCALE_E8M0, 1, {0}},
    [QT_NVFP4] = {SCALE_E4M3, 4, {0, 1, 2, 3}},
    [QT_Q1_0] = {SCALE_F16, 1, {0}},
    [QT_Q2_0] = {SCALE_F16, 1, {0}},
    [SLOT_Q2_0_128] = {SCALE_F16, 1, {0}},
    [SLOT_MXFP8] = {SCALE_MXFP8, 1, {256}},
    [SLOT_MXFP8_SF] = {SCALE_MXFP8, 1, {0}},
};

static const struct scales *scales_of(uint32_t id)
{
    const int slot = quant_slot(id);
    return slot >= 0 && scales[slot].kind != SCALE_NONE ? &scales[slot] : NULL;
}

bool quant_can_be_unsound(uint32_t id)
{
    return scales_of(id) != NULL;
}

int quant_f16_scales(uint32_t id, int at[2])
{
    const struct scales *s = scales_of(id);
    if (!s || s->kind != SCALE_F16 || id == QT_F16) return 0;
    for (int i = 0; i < s->n; i++) at[i] = s->at[i];
    return s->n;
}

/* ---- numbers, `stride` bytes apart: true if one is unsound */

static bool any_16(const uint8_t *p, int64_t n, size_t stride, uint16_t exponent)
{
    unsigned bad = 0;
    for (int64_t i = 0; i < n; i++) {
        uint16_t v;
        memcpy(&v, p + (size_t)i * stride, sizeof v);
        bad |= (v & exponent) == exponent;
    }
    return bad;
}

static bool any_32(const uint8_t *p, int64_t n, size_t stride)
{
    unsigned bad = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t v;
        memcpy(&v, p + (size_t)i * stride, sizeof v);
        bad |= (v & 0x7F800000u) == 0x7F800000u;
    }
    return bad;
}

static bool any_64(const uint8_t *p, int64_t n, size_t stride)
{
    static const uint64_t exponent = UINT64_C(0x7FF) << 52;
    unsigned bad = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t v;
        memcpy(&v, p + (size_t)i * stride, sizeof v);
        bad |= (v & exponent) == exponent;
    }
    return bad;
}

static bool any_byte(const uint8_t *p, int64_t n, size_t stride, uint8_t mask, uint8_t nan)
{
    unsigned bad = 0;
    for (int64_t i = 0; i < n; i++) bad |= (p[(size_t)i * stride] & mask) == nan;
    return bad;
}

/* The F16 scale of a block is in the highest four bits of four numbers, its own highest bits in the last of them. */
static bool any_iq1_m(const uint8_t *p, int64_t n, size_t stride)
{
    unsigned bad = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *c = p + (size_t)i * stride;
        bad |= (c[7] & 0x70) == 0x70 && (c[5] & 0xC0) == 0xC0;
    }
    return bad;
}

/* Eight scales, before or behind 256 codes. */
static bool any_mxfp8(const uint8_t *p, int64_t n, size_t stride, bool scales_first)
{
    unsigned bad = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *s = p + (size_t)i * stride, *codes = scales_first ? s + 8 : s - 256;
        for (int j = 0; j < 8; j++) bad |= s[j] == 0xFF;
        for (int j = 0; j < 256; j++) bad |= (codes[j] & 0x7F) == 0x7F;
    }
    return bad;
}

static bool any_unsound(const struct scales *s, const uint8_t *p, int64_t n, size_t stride)
{
    bool bad = false;
    for (int i = 0; i < s->n && !bad; i++) {
        const uint8_t *q = p + s->at[i];
        switch (s->kind) {
        case SCALE_F16:
            bad = any_16(q, n, stride, 0x7C00);
            break;
        case SCALE_BF16:
            bad = any_16(q, n, stride, 0x7F80);
            break;
        case SCALE_F32:
            bad = any_32(q, n, stride);
            break;
        case SCALE_F64:
            bad = any_64(q, n, stride);
            break;
        case SCALE_E8M0:
            bad = any_byte(q, n, stride, 0xFF, 0xFF);
            break;
        case SCALE_E4M3:
            bad = any_byte(q, n, stride, 0xFF, 0x7F);
            break;
        case SCALE_IQ1_M:
            bad = any_iq1_m(q, n, stride);
            break;
        case SCALE_MXFP8:
            bad = any_mxfp8(q, n, stride, s->at[i] == 0);
            break;
        case SCALE_NONE:
            break;
        }
    }
    return bad;
}

int64_t quant_first_unsound(uint32_t id, const void *blocks, int64_t n)
{
    const struct scales *s = scales_of(id);
    const size_t stride = s ? quant_type(id)->block_bytes : 0;
    for (int64_t at = 0; s && at < n; at += BATCH) {
        const uint8_t *p = (const uint8_t *)blocks + (size_t)at * stride;
        const int64_t m = n - at < BATCH ? n - at : BATCH;
        if (!any_unsound(s, p, m, stride)) continue;
        for (int64_t i = 0; i < m; i++)
            if (any_unsound(s, p + (size_t)i * stride, 1, stride)) return at + i;
    }
    return -1;
}
