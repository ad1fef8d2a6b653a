/* Block formats: what a row of a tensor looks like in each type, how it is decoded, encoded and multiplied.
 * Knows neither threads nor files. Layouts: spec gguf-and-quants 2; orders of summation: docs/numerics.md.
 *
 * Type numbers are those of GGUF. The table knows the size of every published type, so that files can be read and
 * checked; "can" bits say what this build does with it. */
#ifndef QUANT_QUANT_H
#define QUANT_QUANT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum qtype {
    QT_F32 = 0,
    QT_F16 = 1,
    QT_Q4_0 = 2,
    QT_Q4_1 = 3,
    QT_Q5_0 = 6,
    QT_Q5_1 = 7,
    QT_Q8_0 = 8,
    QT_Q8_1 = 9,
    QT_Q2_K = 10,
    QT_Q3_K = 11,
    QT_Q4_K = 12,
    QT_Q5_K = 13,
    QT_Q6_K = 14,
    QT_Q8_K = 15,
    QT_IQ2_XXS = 16,
    QT_IQ2_XS = 17,
    QT_IQ3_XXS = 18,
    QT_IQ1_S = 19,
    QT_IQ4_NL = 20,
    QT_IQ3_S = 21,
    QT_IQ2_S = 22,
    QT_IQ4_XS = 23,
    QT_I8 = 24,
    QT_I16 = 25,
    QT_I32 = 26,
    QT_I64 = 27,
    QT_F64 = 28,
    QT_IQ1_M = 29,
    QT_BF16 = 30,
    QT_TQ1_0 = 34,
    QT_TQ2_0 = 35,
    QT_MXFP4 = 39,
    QT_NVFP4 = 40,
    QT_Q1_0 = 41,
    QT_Q2_0 = 42,
    /* Not numbers of a file: what a number that several programs use for different layouts was found to mean (gguf). */
    QT_READINGS = 0x10000,
    QT_Q2_0_128 = QT_READINGS, /* Q2_0 with blocks of 128 */
    QT_MXFP8,                  /* 256 E4M3 codes, then eight E8M0 scales */
    QT_MXFP8_SF,               /* the scales first */
    QT_READINGS_END
};

/* Activation formats. A row of K values is planar, K padded with zeros to a whole number of blocks (B = 32 or 256):
 *   ACT_F32   float v[K]
 *   ACT_Q8_0  int8 q[Kp], float d[Kp/32], int32 offset[Kp/32], float sum[Kp/32]
 *                                                              value = q*d; offset = -128 * the sum of a block's q;
 *                                                              sum = the sum of a block's q, times d
 *   ACT_Q8_K  int8 q[Kp], float d[Kp/256], int16 bsums[Kp/16]  value = q*d; bsums = sums of 16 consecutive q
 * q lies in -127..127 (the tile kernels rely on it). A block with a NaN or an infinity has d = NaN and q = 0, so that
 * it spoils every product it enters; one too small for a finite 1/d is zero. Rows are act_row_bytes apart (a multiple
 * of 64) and start on 64-byte borders. */
enum act_format { ACT_F32, ACT_Q8_0, ACT_Q8_K, ACT_COUNT };

/* Tile kernel: out[c*out_stride + r] = dot(weight row r, activation row c) for r < n_rows, c < n_cols, n_rows, n_cols
 * >= 1. w: first weight row, rows w_stride bytes apart; x: first activation row, rows x_stride bytes apart; k: row
 * length in values (a multiple of the type's block). Every output is one fixed sequence of operations that depends on
 * the type and k only: the tile's shape, and which kernel set computes it, change no bit of it. */
typedef void quant_tile_fn(int k, const void *w, size_t w_stride, int n_rows, const void *x, size_t x_stride,
                           int n_cols, float *out, size_t out_stride);

/* Decodes k values, a multiple of the block, bit-exact. */
typedef void quant_row_fn(const void *row, float *out, int64_t k);

struct quant_type {
    const char *name; /* "Q4_K"; NULL for numbers that are not in the table */
    uint16_t block;   /* values per block */
    uint16_t block_bytes;
    quant_row_fn *decode; /* NULL: this build cannot decode it, nor multiply */
    enum act_format act;  /* activation format that its dot products take (types with decode) */
};

/* The type's entry, or NULL if the number is not in the table. */
const struct quant_type *quant_type(uint32_t id);
/* Number of a name, upper or lower case, '-' and '_' alike; -1 if unknown. */
int quant_type_by_name(const char *name);
/* Bytes of a row of k values; 0 if k is not a multiple of the block or the type is unknown. */
size_t quant_row_bytes(uint32_t id, int64_t k);

/* Scalar conversions (spec gguf-and-quants 2.2). */
float f16_to_f32(uint16_t h);
uint16_t f32_to_f16(float f); /* round to nearest even */
float bf16_to_f32(uint16_t h);
uint16_t f32_to_bf16(float f);
float e4m3_to_f32(uint8_t b); /* FP8 E4M3FN */
uint8_t f32_to_e4m3(float f); /* |f| clamped to 448, nearest, ties to the even code; -0 gives +0 */
float e8m0_to_f32(uint8_t b); /* 2^(b-127) */
float e2m1_to_f32(uint8_t n); /* low nibble */
uint8_t f32_to_e2m1(float f); /* |f| clamped to 6, nearest, ties to the even code; -0 gives +0 */

/* Encodes n values (a multiple of the block) of a row. importance: one weight per column, or NULL (IQ2_XXS needs it).
 * Types: F32, F16, BF16, Q8_0, Q4_0, Q4_K, Q5_K, Q2_K, IQ2_XXS, MXFP4 (spec 4). Returns 0, or negative if the type has
 * no encoder or a value is not finite. */
int quant_encode(uint32_t id, const float *x, int64_t n, const float *importance, void *out);

/* Activations. */
size_t act_row_bytes(enum act_format f, int64_t k);
int act_block(enum act_format f);                                  /* 1, 32 or 256 */
const float *act_d(enum act_format f, const void *row, int64_t k); /* scales (not ACT_F32) */
const int32_t *act_offset(const void *row, int64_t k);             /* ACT_Q8_0 */
const float *act_sum(const void *row, int64_t k);                  /* ACT_Q8_0 */
const int16_t *act_bsums(const void *row, int64_t k);              /* ACT_Q8_K */
/* Quantises one row: Q8_0: d = max|x|/127, q = nearest even of x*(1/d); Q8_K: spec 3.1. The same bits on every kernel
 * set. */
void act_quantise(enum act_format f, const float *x, int64_t k, void *row);
/* Values [first, first + n) of a row of k: whole blocks, but for the row's last. */
void act_quantise_part(enum act_format f, const float *x, int64_t first, int64_t n, int64_t k, void *row);
/* Decodes one activation row to floats. */
void act_decode(enum act_format f, const void *row, int64_t k, float *out);

/* Kernel sets, of each kind of processor the better ones last. All give the same bits; they differ in speed. AVXVNNI:
 * AVX2 and the 8-bit dot products of 256 bits. AVX512: the parts F, BW, DQ, VL, VBMI, VNNI and GFNI. AMX: those and
 * tiles of 8-bit and BF16 products. NEON: any 64-bit ARM processor; with 8-bit dot products; with 8-bit matrix products
 * too. */
enum quant_isa {
    QUANT_SCALAR,
    QUANT_AVX2,
    QUANT_AVXVNNI,
    QUANT_AVX512,
    QUANT_AMX,
    QUANT_NEON,
    QUANT_NEON_DOTPROD,
    QUANT_NEON_I8MM,
    QUANT_ISA_COUNT
};
const char *quant_isa_name(enum quant_isa isa);
/* Whether a set is compiled in, and supported by this processor. Of AMX this asks the system to keep tiles for the
 * process: from then on it refuses alternate signal stacks (sigaltstack) that have no room for them, some 12 KiB. */
bool quant_isa_usable(enum quant_isa isa);
enum quant_isa quant_isa_best(void); /* of the usable ones: asks of AMX too */
/* The tile kernel of a type for a kernel set; where a set has none, the scalar one. NULL: the type cannot be
 * multiplied. */
quant_tile_fn *quant_tile(enum quant_isa isa, uint32_t id);
/* Products with many activation rows: weight rows are unpacked into a slab once, activation rows are packed in panels,
 * and the slab is multiplied with one panel after the other. The outputs have the bits of the tile kernel.
 *   panel   per block the codes, sums and scales of n activation rows; n * panel_block bytes, and
 *           QUANT_PANEL_BEHIND that can be read
 *   slab    per block: slab_block bytes, as the kernel set likes them, on a 64-byte border
 * A row can be cut into pieces of whole blocks, one slab each, which are taken in order. */
enum {
    QUANT_SLAB = 64, /* weight rows of a slab */
    QUANT_PANEL_MOST = 16,
    QUANT_PANELS = 48,        /* a multiple of every panel's rows */
    QUANT_PANEL_BEHIND = 1024 /* bytes behind a panel that can be read: tiles are always whole */
};
enum { SLAB_FIRST = 1, SLAB_LAST = 2 }; /* pieces of a row */
struct quant_slab {
    int block; /* values */
    int rows;  /* weight rows that are unpacked at a time: QUANT_SLAB, or a half */
    int panel; /* activation rows of a panel; the last one can have fewer */
    int from;  /* fewest activation rows with which this is faster than `fewer`, but where a last panel is almost empty
                */
    const struct quant_slab *fewer; /* NULL: the tile kernel */
    size_t slab_block, panel_block;
    /* NULL, or what a thread calls before its first multiply of this kernel, and after the last one. */
    void (*begin)(void);
    void (*end)(void);
    /* Packs blocks first.. of n <= panel rows of k values in the weights' activation format. */
    void (*pack)(int k, const uint8_t *const *x, int n, int first, int n_blocks, uint8_t *panel);
    /* Unpacks blocks first.. of `rows` weight rows. */
    void (*fill)(const uint8_t *const *row, int first, int n_blocks, uint8_t *slab);
    /* acc[n][QUANT_SLAB]: the chains of the outputs, `rows` of each, which a first piece starts; panel: at the piece's
     * first block. */
    void (*multiply)(int n_blocks, const uint8_t *slab, const uint8_t *panel, int n, int piece, float *acc);
};
/* NULL: the set has no such kernels for the type. */
const struct quant_slab *quant_slab(enum quant_isa isa, uint32_t id);
/* What is fastest with n activation rows: s, or what it names for fewer; NULL: the tile kernel. s may be NULL. */
const struct quant_slab *quant_slab_for(const struct quant_slab *s, int n);
/* Sum of a[i]*b[i] in the order of F32 weights (docs/numerics.md, lanes16), by the best kernel set. No alignment
 * needed. */
float quant_dot_f32(const float *a, const float *b, int64_t k);

#endif
