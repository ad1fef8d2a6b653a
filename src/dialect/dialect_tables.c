/* Values that tensors of the same names tell in every family. */
#include "dialect/dialect_tables.h"

bool dialect_width(const struct canonical *c, int layer, double *v)
{
    return dialect_say(dialect_ne(c, -1, "token_embd", 0), v);
}

bool dialect_vocabulary(const struct canonical *c, int layer, double *v)
{
    return dialect_say(dialect_ne(c, -1, "token_embd", 1), v);
}

bool dialect_layers(const struct canonical *c, int layer, double *v)
{
    return dialect_say(canonical_n_layers(c), v);
}

bool dialect_experts(const struct canonical *c, int layer, double *v)
{
    return dialect_say(dialect_ne(c, layer, "ffn_gate_inp", 1), v);
}

bool dialect_nowhere(const struct canonical *c, int layer)
{
    return false;
}

int dialect_first_with(const struct canonical *c, const char *stem)
{
    for (int l = 0; l < canonical_n_blocks(c); l++)
        if (dialect_ne(c, l, stem, 0) > 0) return l;
    return -1;
}

int64_t dialect_first_ne(const struct canonical *c, const char *stem, int i)
{
    const int l = dialect_first_with(c, stem);
    return l < 0 ? 0 : dialect_ne(c, l, stem, i);
}
