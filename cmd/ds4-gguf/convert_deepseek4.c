/* Conversion of DeepSeek V4: a tensor is one matrix of the source, or one per expert. */
#include "convert_family.h"
#include "deepseek4_layout.h"
#include "hf_deepseek4.h"

static int config(const char *path, struct hf_folder *f, void *params, struct err *e)
{
    return hf_deepseek4_config(path, params, e);
}

static struct convert_numbers numbers(const void *params)
{
    const struct deepseek4_params *const p = params;
    return (struct convert_numbers){.tokens = p->V, .layers = p->L, .experts = p->E, .sources = p->E};
}

static int bind(struct hf_folder *f, const void *params, const struct layout_tensor *t, struct source_matrix *list,
                struct source_edit *edit, struct err *e)
{
    const int64_t cols = (int64_t)t->ne[0], rows = (int64_t)t->ne[1];
    if (!t->source_tail) return source_find(f, t->source, rows, cols, t->role == ROLE_IDS, &list[0], e);
    struct str name = {0};
    int rc = 0;
    for (uint64_t i = 0; i < t->ne[2] && !rc; i++) {
        str_clear(&name);
        str_printf(&name, "%s%d%s", t->source, (int)i, t->source_tail);
        rc = source_find(f, str_c(&name), rows, cols, false, &list[i], e);
        if (!rc && (list[i].kind != list[0].kind || list[i].t->dtype != list[0].t->dtype))
            rc = err_set(e, ERR_MODEL, "tensor %s: type %s, expert 0 has %s", str_c(&name),
                         st_dtype_name(list[i].t->dtype), st_dtype_name(list[0].t->dtype));
    }
    str_free(&name);
    return rc;
}

const struct convert_family convert_deepseek4 = {
    .model_type = "deepseek_v4",
    .arch = "deepseek4",
    .pretokenizer = "joyai-llm",
    .layers = "layers.",
    .params_bytes = sizeof(struct deepseek4_params),
    .config = config,
    .layout = deepseek4_tensors,
    .metadata = deepseek4_metadata,
    .numbers = numbers,
    .bind = bind,
};
