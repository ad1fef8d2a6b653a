/* Fuzz target: headers of safetensors files. Whatever parses must lie inside the input. */
#include <stdint.h>
#include <stdlib.h>
#include "../../cmd/ds4-gguf/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct safetensors *s;
    struct err e = {0};
    if (safetensors_parse(data, n, "input", &s, &e)) {
        if (e.code == 0 || e.msg[0] == 0) abort(); /* a refusal says why */
        return 0;
    }
    for (size_t i = 0; i < safetensors_count(s); i++) {
        const struct st_tensor *t = safetensors_at(s, i);
        if (t->data < data || t->bytes > (uint64_t)(data + n - t->data)) abort();
    }
    safetensors_close(s);
    return 0;
}
