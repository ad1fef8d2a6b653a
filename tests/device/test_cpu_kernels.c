/* Kernel sets of the cpu device: accuracy of exp against double libm, codes of stored rows against the scalar
 * conversions, and equal bits in every set and at every place in a vector. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "device/cpu/cpu_kernels.h"
#include "quant/quant.h"
#include "../support/quant_vectors.h"

static const struct cpu_kernels *sets[3];
static int n_sets;

static uint64_t seed = 1;

static uint32_t random_bits(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 32);
}

static float random_value(float range)
{
    return ((float)random_bits() * 0x1p-31f - 1) * range;
}

static void fill(float *x, int n, float range)
{
    for (int i = 0; i < n; i++) x[i] = random_value(range);
}

static void exp_is_accurate(void **state)
{
    float x[1000], y[1000];
    double worst = 0;
    for (int round = 0; round < 400; round++) {
        for (int i = 0; i < 1000; i++)
            x[i] = -87.336544f + (88.72283f + 87.336544f) * (float)(round * 1000 + i) / 400000.0f;
        sets[n_sets - 1]->exp(1000, x, y);
        for (int i = 0; i < 1000; i++) {
            const double want = exp((double)x[i]), error = fabs(y[i] - want) / want;
            worst = error > worst ? error : worst;
        }
    }
    assert_true(worst <= 2e-7);
    for (int i = 0; i < 1000; i++) x[i] = random_value(1e-3f);
    sets[n_sets - 1]->exp(1000, x, y);
    for (int i = 0; i < 1000; i++) assert_true(fabs(y[i] - exp((double)x[i])) <= 1.2e-7);
}

static void exp_at_the_ends(void **state)
{
    const float x[] = {-INFINITY, -1e30f, -200, -88, 0, -0.0f, 88.72283f, 88.73f, 1e30f, INFINITY, NAN};
    float y[11];
    for (int s = 0; s < n_sets; s++) {
        sets[s]->exp(11, x, y);
        for (int i = 0; i < 4; i++) assert_true(y[i] == 0);
        assert_true(y[4] == 1 && y[5] == 1);
        assert_true(y[6] < INFINITY && y[6] > 3.4e38f);
        assert_true(y[7] == INFINITY && y[8] == INFINITY && y[9] == INFINITY && isnan(y[10]));
    }
}

static void sigmoid_is_accurate(void **state)
{
    float x[1000], y[1000];
    fill(x, 1000, 60);
    sets[n_sets - 1]->sigmoid(1000, x, y);
    for (int i = 0; i < 1000; i++) {
        const double want = 1 / (1 + exp(-(double)x[i]));
        assert_true(fabs(y[i] - want) <= 4e-7 * want);
    }
}

/* A value does not depend on where it lies in a vector. */
static void place_does_not_matter(void **state)
{
    float x[64], all[64], one;
    fill(x, 64, 20);
    for (int s = 0; s < n_sets; s++) {
        sets[s]->exp(61, x, all);
        for (int i = 0; i < 61; i++) {
            sets[s]->exp(1, x + i, &one);
            assert_memory_equal(&one, &all[i], sizeof one);
        }
    }
}

/* ---------------------------------------------------------------- stored rows */

static size_t format_bytes(const struct row_format *f)
{
    if (f->kind == ROWFMT_FP8) return (size_t)(f->n_fp8 + f->n_fp8 / f->block + 2 * (f->width - f->n_fp8));
    return (size_t)(f->width / 2 + f->width / f->block);
}

/* Least exponent e with a <= top * 2^e. */
static int scale_exponent(const float *x, int n, double floor, double top)
{
    double a = floor;
    for (int i = 0; i < n; i++) a = fabs((double)x[i]) > a ? fabs((double)x[i]) : a;
    int e = -140;
    while (ldexp(top, e) < a) e++;
    return e;
}

static void check_fp8(const struct row_format *f, const float *x, const uint8_t *row, const float *back)
{
    for (int i = 0; i < f->n_fp8; i++) {
        const int b = i / f->block, e = scale_exponent(x + b * f->block, f->block, (double)1e-4f, 448);
        assert_int_equal(row[f->n_fp8 + b], e + 127);
        assert_int_equal(row[i], f32_to_e4m3(ldexpf(x[i], -e)));
        assert_true(back[i] == ldexpf(e4m3_to_f32(row[i]), e));
    }
    for (int i = f->n_fp8; i < f->width; i++) {
        uint16_t h;
        memcpy(&h, row + f->n_fp8 + f->n_fp8 / f->block + 2 * (i - f->n_fp8), 2);
        assert_int_equal(h, f32_to_f16(x[i]));
        assert_true(back[i] == f16_to_f32(h));
    }
}

static void check_fp4(const struct row_format *f, const float *x, const uint8_t *row, const float *back)
{
    for (int i = 0; i < f->width; i++) {
        const int b = i / f->block, e = scale_exponent(x + b * f->block, f->block, 6 * 0x1p-126, 6);
        const uint8_t code = row[i / 2] >> (i % 2 ? 4 : 0) & 15;
        assert_int_equal(row[f->width / 2 + b], e + 127);
        assert_int_equal(code, f32_to_e2m1(ldexpf(x[i], -e)));
        assert_true(back[i] == ldexpf(e2m1_to_f32(code), e));
    }
}

/* Values on and between codes, tiny, huge and signed zero ones. */
static void fill_hard(float *x, int n, int round)
{
    const float special[] = {0, -0.0f, 1e-30f, -1e-30f, 0.25f, 0.75f, 2.5f, -5, 448, 17, -0x1p-10f, 0x3p-10f};
    const float range = ldexpf(1, round % 40 - 20);
    for (int i = 0; i < n; i++) {
        x[i] = random_value(range);
        if (round % 3 == 0 && i % 5 == 0) x[i] = special[random_bits() % 12];
        if (round % 3 == 1) x[i] = (float)((int)(random_bits() % 65) - 32) / 8;
        if (round == 5) x[i] = 0;
    }
}

static void rows_encode_like_scalars(void **state)
{
    const struct row_format formats[] = {{ROWFMT_FP8, 512, 448, 64},
                                         {ROWFMT_FP8, 80, 64, 64},
                                         {ROWFMT_FP8, 43, 32, 16},
                                         {ROWFMT_FP4, 128, 0, 32},
                                         {ROWFMT_FP4, 32, 0, 32}};
    for (int round = 0; round < 300; round++)
        for (int i = 0; i < 5; i++) {
            const struct row_format *f = &formats[i];
            float x[512], back[512];
            uint8_t row[3][1200] = {{0}};
            fill_hard(x, f->width, round);
            for (int s = 0; s < n_sets; s++) {
                sets[s]->encode(f, x, row[s]);
                sets[s]->decode(f, row[s], back);
                assert_memory_equal(row[s], row[0], format_bytes(f));
                if (f->kind == ROWFMT_FP8)
                    check_fp8(f, x, row[s], back);
                else
                    check_fp4(f, x, row[s], back);
            }
        }
}

/* Every code of every format decodes to its value. */
static void rows_decode_like_scalars(void **state)
{
    const struct row_format f8 = {ROWFMT_FP8, 256 + 64, 256, 64};
    uint8_t row[256 + 4 + 128];
    float back[320];
    for (int i = 0; i < 256; i++) row[i] = (uint8_t)i;
    for (int i = 0; i < 4; i++) row[256 + i] = (uint8_t)(110 + 5 * i);
    for (int page = 0; page < 1024; page++) {
        for (int i = 0; i < 64; i++) {
            const uint16_t h = (uint16_t)(page * 64 + i);
            memcpy(row + 260 + 2 * i, &h, 2);
        }
        sets[n_sets - 1]->decode(&f8, row, back);
        for (int i = 0; i < 64; i++) {
            const float want = f16_to_f32((uint16_t)(page * 64 + i));
            assert_true(isnan(want) ? isnan(back[256 + i]) : !memcmp(&want, &back[256 + i], sizeof want));
        }
    }
    for (int i = 0; i < 256; i++) {
        const float want = ldexpf(e4m3_to_f32((uint8_t)i), 110 + 5 * (i / 64) - 127);
        assert_true(isnan(want) ? isnan(back[i]) : !memcmp(&want, &back[i], sizeof want));
    }
}

/* ---------------------------------------------------------------- sums */

/* lanes16 as docs/numerics.md writes it. */
static float lanes16(int k, const float *a, const float *b)
{
    float total = 0;
    for (int c = 0; c < k; c += 1024) {
        float lane[16] = {0};
        for (int i = c; i < (k < c + 1024 ? k : c + 1024); i++) lane[i % 16] = fmaf(a[i], b[i], lane[i % 16]);
        for (int step = 8; step > 0; step /= 2)
            for (int i = 0; i < step; i++) lane[i] += lane[i + step];
        total += lane[0];
    }
    return total;
}

static void dot_is_lanes16(void **state)
{
    static float a[5000], b[5000];
    fill(a, 5000, 1);
    fill(b, 5000, 1);
    for (int s = 0; s < n_sets; s++)
        for (int k = 1; k < 5000; k += k < 40 ? 1 : 311) {
            const float got = sets[s]->dot(k, a, b), want = lanes16(k, a, b);
            assert_memory_equal(&got, &want, sizeof got);
        }
}

/* Attention tiles against the definition: scores, then exponentials and sums in chains of 64 rows. */
static void attention_tiles(void **state)
{
    enum { ROWS = 64, HEADS = 13, PAD = 16, WIDTH = 1056 };
    static float rows[ROWS * WIDTH], q[HEADS * WIDTH], z[ROWS * PAD], acc[HEADS * WIDTH], want[HEADS * WIDTH];
    float max[PAD], sum[PAD];
    const float *row[ROWS];
    fill(rows, ROWS * WIDTH, 1);
    fill(q, HEADS * WIDTH, 1);
    for (int i = 0; i < ROWS; i++) row[i] = rows + i * WIDTH;
    for (int s = 0; s < n_sets; s++)
        for (int n = 1; n <= ROWS; n += 7) {
            memset(z, 0, sizeof z);
            memset(want, 0, sizeof want);
            fill(acc, HEADS * WIDTH, 1);
            memcpy(want, acc, sizeof acc);
            for (int h = 0; h < PAD; h++) max[h] = 0.5f;
            const struct cpu_scores c = {
                .row = row, .n_rows = n, .width = WIDTH, .q = q, .n_heads = HEADS, .q_stride = WIDTH};
            sets[s]->attention_scores(&c, 0.03f, z, PAD, max);
            for (int h = 0; h < HEADS; h++) {
                float top = 0.5f, tile = 0, zz[ROWS], e[ROWS];
                for (int j = 0; j < n; j++) {
                    zz[j] = lanes16(WIDTH, q + h * WIDTH, row[j]) * 0.03f;
                    assert_memory_equal(&zz[j], &z[j * PAD + h], sizeof(float));
                    top = zz[j] > top ? zz[j] : top;
                }
                assert_true(max[h] == top);
                for (int j = 0; j < n; j++) zz[j] -= top;
                sets[0]->exp(n, zz, e);
                for (int j = 0; j < n; j++) tile += e[j];
                for (int v = 0; v < WIDTH; v++) {
                    float chain = 0;
                    for (int j = 0; j < n; j++) chain = fmaf(e[j], row[j][v], chain);
                    want[h * WIDTH + v] += chain;
                }
                sum[h] = 3 + tile;
            }
            float got[PAD];
            for (int h = 0; h < PAD; h++) got[h] = 3;
            sets[s]->attention_exp(n, HEADS, z, PAD, max, got);
            assert_memory_equal(got, sum, HEADS * sizeof(float));
            sets[s]->attention_sum(n, row, WIDTH, HEADS, z, PAD, false, acc);
            assert_memory_equal(acc, want, sizeof want);
            memset(want, 0, sizeof want);
            sets[s]->attention_sum(n, row, WIDTH, HEADS, z, PAD, false, want);
            sets[s]->attention_sum(n, row, WIDTH, HEADS, z, PAD, true, acc);
            assert_memory_equal(acc, want, sizeof want);
        }
}

/* Index scores against the definition, of floats and of halves as they lie; what is not a number counts as 0. */
static void index_scores(void **state)
{
    enum { ROWS = 21, HEADS = 9, MOST = 1056 };
    static float rows[ROWS * MOST], q[HEADS * MOST];
    static uint8_t halves[ROWS * (2 * MOST + 6)];
    static const int widths[] = {16, 32, 128, 1024, 1056};
    const float *row[ROWS];
    float w[HEADS], got[ROWS];
    fill(q, HEADS * MOST, 1);
    fill(w, HEADS, 1);
    for (int i = 0; i < 5 * HEADS * ROWS * n_sets; i++) {
        const int width = widths[i % 5], heads = 1 + i / 5 % HEADS, n = 1 + i / 5 / HEADS % ROWS;
        const size_t stride = 2 * (size_t)width + 6;
        fill(rows, n * width, 1);
        for (int j = 0; j < n * width; j++) {
            const uint16_t h = i % 7 == 1 && j % 50 == 3 ? 0x7e00 : f32_to_f16(rows[j]);
            rows[j] = f16_to_f32(h);
            memcpy(halves + j / width * stride + 2 * (j % width), &h, 2);
        }
        for (int j = 0; j < n; j++) row[j] = rows + j * width;
        struct cpu_scores c = {
            .row = row, .n_rows = n, .width = width, .q = q, .n_heads = heads, .q_stride = (size_t)width};
        for (int both = 0; both < (width <= 1024 ? 2 : 1); both++) {
            if (both) c.row = NULL, c.halves = halves, c.halves_stride = stride;
            sets[i % n_sets]->index_scores(&c, w, got);
            for (int j = 0; j < n; j++) {
                float want = 0;
                for (int h = 0; h < heads; h++) {
                    const float dot = lanes16(width, q + h * width, row[j]);
                    want = want + w[h] * (dot > 0 ? dot : 0);
                }
                assert_memory_equal(&got[j], &want, sizeof want);
            }
        }
    }
}

static void places_above(void **state)
{
    float x[70];
    int32_t got[71];
    for (int i = 0; i < 70; i++) x[i] = (float)(random_bits() % 16) - 8;
    x[5] = x[20] = NAN, x[21] = INFINITY, x[40] = -INFINITY, x[41] = -0.0f;
    for (int s = 0; s < n_sets; s++)
        for (int n = 0; n <= 70; n++)
            for (int b = -9; b <= 9; b++) {
                const float least = b < -8 ? -INFINITY : (float)b;
                const int found = sets[s]->above(n, x, least, 1000, got);
                int want = 0;
                for (int i = 0; i < n; i++) {
                    if (!(x[i] > least)) continue;
                    assert_true(want < found);
                    assert_int_equal(got[want++], 1000 + i);
                }
                assert_int_equal(found, want);
            }
}

/* Past the caches or not, on borders or beside them, with a whole last part or a shorter one. */
static void rows_are_put(void **state)
{
    enum { ROWS = 5, PARTS = 3, STRIDE = 208 };
    static float x[PARTS * ROWS * CPU_PART];
    static _Alignas(64) float y[ROWS * STRIDE + 16];
    fill(x, PARTS * ROWS * CPU_PART, 1);
    for (int s = 0; s < n_sets; s++)
        for (int i = 0; i < 8; i++) {
            const int last = i & 1 ? 37 : CPU_PART, from = i & 2 ? 3 : 0, n = (PARTS - 1) * CPU_PART + last;
            for (int j = 0; j < ROWS * STRIDE + 16; j++) y[j] = -1;
            sets[s]->put_rows(ROWS, PARTS, last, x, i & 4, y + from, STRIDE);
            for (int r = 0; r < ROWS; r++)
                for (int v = 0; v < STRIDE; v++) {
                    const float want = v < n ? x[(v / CPU_PART * ROWS + r) * CPU_PART + v % CPU_PART] : -1;
                    assert_true(y[from + r * STRIDE + v] == want);
                }
        }
}

static void hadamard_is_orthogonal(void **state)
{
    for (int s = 0; s < n_sets; s++)
        for (int width = 1; width <= 1024; width *= 2) {
            float x[1024], y[1024];
            fill(x, width, 1);
            memcpy(y, x, sizeof x);
            sets[s]->hadamard(width, y);
            double sum = 0;
            for (int i = 0; i < width; i++) sum += x[i];
            assert_true(fabs(y[0] - sum / sqrt(width)) < 1e-5);
            sets[s]->hadamard(width, y);
            for (int i = 0; i < width; i++) assert_true(fabs(y[i] - x[i]) < 1e-6);
        }
}

/* ---------------------------------------------------------------- other processors */

enum { W = 1061, HEADS = 5, N_ROWS = 19, PAD = 8 };

/* What every kernel makes of the same inputs, end to end in out; returns how much. */
static size_t run_all(const struct cpu_kernels *k, float *out)
{
    static float x[N_ROWS * W], y[W], g[N_ROWS];
    const float *row[N_ROWS], *score[N_ROWS];
    seed = 77;
    fill(x, N_ROWS * W, 6);
    fill(y, W, 90);
    fill(g, N_ROWS, 1);
    for (int i = 0; i < N_ROWS; i++) row[i] = x + i * W, score[i] = x + (N_ROWS - 1 - i) * W;
    float *to = out, *const end = out + 16 * W;
    *to++ = k->dot(W, x, y);
    k->exp(W, y, to), to += W;
    k->sigmoid(W, y, to), to += W;
    k->rms_norm(W, 1e-6f, x, y, to), to += W;
    memcpy(to, y, sizeof y);
    k->rotate(101, x, to), to += W;
    memcpy(to, y, sizeof y);
    k->hadamard(1024, to), to += W;
    k->swiglu(W, x, y, 7, 0.3f, to), to += W;
    memcpy(to, x, sizeof y);
    k->add(W, y, to), to += W;
    k->scale(W, x, 0.7f, to), to += W;
    k->weighted_sum(N_ROWS, g, x, W, to), to += W;
    memcpy(to, x, 3 * sizeof y);
    k->hc_expand(3, g, g + 3, y, to, W), to += 3 * W;
    k->pool_window(N_ROWS, row, score, W, to), to += W;
    const struct cpu_scores s = {
        .row = row, .n_rows = N_ROWS, .width = 1056, .q = x + W, .n_heads = HEADS, .q_stride = W};
    k->index_scores(&s, g, to), to += N_ROWS;
    memset(to, 0, (size_t)(N_ROWS + 3) * PAD * sizeof *to);
    float *const z = to, *const max = to + N_ROWS * PAD, *const sum = max + PAD;
    k->attention_scores(&s, 1e-3f, z, PAD, max);
    k->attention_exp(N_ROWS, HEADS, z, PAD, max, sum);
    to = sum + PAD;
    k->attention_sum(N_ROWS, row, 512, HEADS, z, PAD, true, to), to += HEADS * 512;
    assert_true(to <= end);
    return (size_t)(to - out);
}

/* Stored rows of both formats. */
static uint64_t stored_rows(const struct cpu_kernels *k)
{
    static const struct row_format formats[] = {{.kind = ROWFMT_FP8, .width = 512, .n_fp8 = 448, .block = 64},
                                                {.kind = ROWFMT_FP4, .width = 128, .block = 32}};
    uint64_t hash = 0;
    seed = 78;
    for (int i = 0; i < 200; i++) {
        const struct row_format *const f = &formats[i % 2];
        float x[512], back[512];
        uint8_t row[2048];
        fill(x, f->width, ldexpf(1, i % 40 - 20));
        k->encode(f, x, row);
        k->decode(f, row, back);
        hash = hash * 31 + vec_fnv(row, format_bytes(f));
        hash = hash * 31 + vec_fnv_floats(back, (size_t)f->width);
    }
    return hash;
}

/* Hashes as the scalar set computed them on x86-64. */
static void same_on_every_processor(void **state)
{
    static float out[16 * W];
    for (int s = 0; s < n_sets; s++) {
        const size_t n = run_all(sets[s], out);
        assert_int_equal(vec_fnv_floats(out, n), 0xfab1f21ceb321fe5);
        assert_int_equal(stored_rows(sets[s]), 0x766fa0e7294f658d);
    }
}

static int setup(void **state)
{
    sets[n_sets++] = &cpu_kernels_scalar;
#if defined(__x86_64__)
    if (quant_isa_usable(QUANT_AVX2)) sets[n_sets++] = &cpu_kernels_avx2;
    if (quant_isa_usable(QUANT_AVX512)) sets[n_sets++] = &cpu_kernels_avx512;
#elif defined(__aarch64__)
    sets[n_sets++] = &cpu_kernels_neon;
#endif
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_is_accurate),
        cmocka_unit_test(exp_at_the_ends),
        cmocka_unit_test(sigmoid_is_accurate),
        cmocka_unit_test(place_does_not_matter),
        cmocka_unit_test(rows_encode_like_scalars),
        cmocka_unit_test(rows_decode_like_scalars),
        cmocka_unit_test(dot_is_lanes16),
        cmocka_unit_test(attention_tiles),
        cmocka_unit_test(index_scores),
        cmocka_unit_test(places_above),
        cmocka_unit_test(hadamard_is_orthogonal),
        cmocka_unit_test(rows_are_put),
        cmocka_unit_test(same_on_every_processor),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
