/* ggml_rows LIBRARY OUT: tests/golden/quant_encoded.bin, written by ggml's own quantisers: LIBRARY is the
 * libggml-base.so of the peer engine (tests/peer/node_modules/@node-llama-cpp/linux-x64/bins/linux-x64). The hashes of
 * the specification decide whether they are those. */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include "../support/quant_vectors.h"
#include "quant/quant.h"

typedef size_t quantise_chunk(int type, const float *x, void *out, int64_t start, int64_t rows, int64_t width,
                              const float *importance);

static int write_rows(quantise_chunk *quantise, const struct quant_vectors *v, const struct vec_encoded *e, FILE *out)
{
    static uint8_t bytes[VEC_ROWS * 1024];
    float ones[VEC_ROW];
    for (int i = 0; i < VEC_ROW; i++) ones[i] = 1;
    const float *importance = e->importance == VEC_PLAIN ? NULL : e->importance == VEC_ONES ? ones : v->importance;
    const size_t n = quantise((int)e->type, v->x, bytes, 0, VEC_ROWS, VEC_ROW, importance);
    if (vec_fnv(bytes, n) == e->bytes) return fwrite(bytes, 1, n, out) == n ? 0 : -1;
    fprintf(stderr, "%s: other bytes, %016" PRIx64 "\n", quant_type(e->type)->name, vec_fnv(bytes, n));
    return -1;
}

int main(int argc, char **argv)
{
    static struct quant_vectors v;
    if (argc != 3) return fprintf(stderr, "usage: ggml_rows LIBRARY OUT\n"), 2;
    void *const library = dlopen(argv[1], RTLD_NOW);
    void *const found = library ? dlsym(library, "ggml_quantize_chunk") : NULL;
    FILE *const out = found ? fopen(argv[2], "wb") : NULL;
    if (!out) return fprintf(stderr, "ggml_rows: %s\n", found ? argv[2] : dlerror()), 1;
    quantise_chunk *quantise;
    *(void **)&quantise = found;
    int rc = 0;
    quant_vectors_make(&v);
    for (int i = 0; i < vec_n_encoded && rc == 0; i++) rc = write_rows(quantise, &v, &vec_encoded[i], out);
    return fclose(out) || rc;
}
