/* Which kernel sets this program and this processor have, and the choice among their tile kernels. */
#include "quant/quant_internal.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

static const struct {
    const char *name;
    const quant_tile_table *tiles; /* empty where the set is not compiled in */
    const quant_slab_table *slabs;
    struct quant_act_set act;
} sets[QUANT_ISA_COUNT] = {
    [QUANT_SCALAR] = {"scalar", &quant_tiles_scalar, &quant_slabs_none, {act_q8_0_scalar, act_q8_k_scalar}},
    [QUANT_AVX2] = {"avx2", &quant_tiles_avx2, &quant_slabs_avx2, {act_q8_0_avx2, act_q8_k_avx2}},
    [QUANT_AVXVNNI] = {"avxvnni", &quant_tiles_avx2, &quant_slabs_avxvnni, {act_q8_0_avx2, act_q8_k_avx2}},
    [QUANT_AVX512] = {"avx512", &quant_tiles_avx512, &quant_slabs_avx512, {act_q8_0_avx512, act_q8_k_avx512}},
    [QUANT_AMX] = {"amx", &quant_tiles_avx512, &quant_slabs_amx, {act_q8_0_avx512, act_q8_k_avx512}},
    [QUANT_NEON] = {"neon", &quant_tiles_neon, &quant_slabs_none, {act_q8_0_neon, act_q8_k_neon}},
    [QUANT_NEON_DOTPROD] = {"neon-dotprod",
                            &quant_tiles_neon_dotprod,
                            &quant_slabs_none,
                            {act_q8_0_neon, act_q8_k_neon}},
    [QUANT_NEON_I8MM] = {"neon-i8mm", &quant_tiles_neon_i8mm, &quant_slabs_none, {act_q8_0_neon, act_q8_k_neon}},
};

const char *quant_isa_name(enum quant_isa isa)
{
    return sets[isa].name;
}

#if defined(__x86_64__)
/* Compilers name this part differently or not at all; the registers it needs are those of AVX2. */
static bool processor_has_avxvnni(void)
{
    enum { BIT = 4 };
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && a >> BIT & 1;
}

/* The system keeps the tiles, 8 KiB a thread, only for a process that asked for them. */
static bool process_has_tiles(void)
{
#ifdef __linux__
    enum { ARCH_GET_XCOMP_PERM = 0x1022, ARCH_REQ_XCOMP_PERM, XTILEDATA = 18 };
    enum { BF16 = 22, TILE = 24, INT8 = 25 };
    unsigned a, b, c, d;
    uint64_t have = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && d >> TILE & d >> INT8 & d >> BF16 & 1 &&
           syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XTILEDATA) == 0 &&
           syscall(SYS_arch_prctl, ARCH_GET_XCOMP_PERM, &have) == 0 && have >> XTILEDATA & 1;
#else
    return false;
#endif
}

/* Every processor with AVX2 has the half-float conversions (F16C) too. That the system keeps the registers is part of
 * what is asked. */
static bool processor_has(enum quant_isa isa)
{
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (isa == QUANT_AVX2) return avx2;
    if (isa == QUANT_AVXVNNI) return avx2 && processor_has_avxvnni();
    if (isa == QUANT_AMX && !process_has_tiles()) return false;
    return (isa == QUANT_AVX512 || isa == QUANT_AMX) && avx2 && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
           __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("gfni");
}
#elif defined(__aarch64__)
/* Bits of the kernel's list of features; elsewhere than on Linux a feature counts where the whole program may use it.
 */
static bool processor_has(enum quant_isa isa)
{
    bool dotprod = false, i8mm = false;
#ifdef __linux__
    enum { ASIMDDP = 20, I8MM = 13 }; /* not every system's header names them */
    dotprod = getauxval(AT_HWCAP) >> ASIMDDP & 1;
    i8mm = getauxval(AT_HWCAP2) >> I8MM & 1;
#else
#ifdef __ARM_FEATURE_DOTPROD
    dotprod = true;
#endif
#ifdef __ARM_FEATURE_MATMUL_INT8
    i8mm = true;
#endif
#endif
    return isa == QUANT_NEON || (isa == QUANT_NEON_DOTPROD && dotprod) || (isa == QUANT_NEON_I8MM && dotprod && i8mm);
}
#else
static bool processor_has(enum quant_isa isa)
{
    return false;
}
#endif

bool quant_isa_usable(enum quant_isa isa)
{
    const bool compiled = (*sets[isa].tiles)[QT_F32] && (isa != QUANT_AMX || quant_slabs_amx[QT_Q8_0]);
    return isa == QUANT_SCALAR || (compiled && processor_has(isa));
}

static enum quant_isa best(bool tiles)
{
    int isa = QUANT_ISA_COUNT - 1;
    while ((isa == QUANT_AMX && !tiles) || !quant_isa_usable((enum quant_isa)isa)) isa--;
    return (enum quant_isa)isa;
}

enum quant_isa quant_isa_best(void)
{
    return best(true);
}

enum quant_isa quant_isa_vectors(void)
{
    return best(false);
}

struct quant_act_set quant_act_set(enum quant_isa isa)
{
    return sets[isa].act;
}

quant_tile_fn *quant_tile(enum quant_isa isa, uint32_t id)
{
    const int slot = quant_slot(id);
    if (slot < 0) return NULL;
    quant_tile_fn *const tile = (*sets[isa].tiles)[slot];
    return tile ? tile : quant_tiles_scalar[slot];
}

const quant_slab_table quant_slabs_none = {0};

const struct quant_slab *quant_slab(enum quant_isa isa, uint32_t id)
{
    const int slot = quant_slot(id);
    return slot < 0 ? NULL : (*sets[isa].slabs)[slot];
}

const struct quant_slab *quant_slab_for(const struct quant_slab *s, int n)
{
    while (s && n < s->from) s = s->fewer;
    return s;
}

float quant_dot_f32(const float *a, const float *b, int64_t k)
{
    float sum;
    quant_tile(quant_isa_vectors(), QT_F32)((int)k, a, 0, 1, b, 0, 1, &sum, 1);
    return sum;
}
