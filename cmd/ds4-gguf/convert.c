/* ds4-gguf convert: the folder of a published model to a GGUF file. Works tensor by tensor: memory holds the
 * vocabulary, a batch of rows and, for types that need importance, one weight per column and expert. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "base/program.h"
#include "commands.h"
#include "convert_family.h"
#include "hf_folder.h"
#include "hf_json.h"
#include "hf_tokenizer.h"
#include "model_output.h"
#include "quant/quant.h"
#include "type_rules.h"

struct convert_options {
    const char *folder;
    struct model_output_options out;
    bool verbose;
    struct type_rules types;
};

struct conversion {
    struct convert_options *opt;
    const struct convert_family *family;
    struct hf_folder *folder;
    void *params; /* of the family */
    struct convert_numbers numbers;
    struct vocabulary vocabulary;
    struct layout_tensor *tensors;
    uint32_t *types; /* [n_tensors] */
    int n_tensors;
    struct source_matrix *sources; /* [numbers.sources]: of the tensor at work */
    struct source_edit edit;       /* what is done to them */
    struct model_output out;
};

/* ---- plan ---- */

static int bind_sources(struct conversion *c, const struct layout_tensor *t, struct err *e)
{
    c->edit = (struct source_edit){0};
    return c->family->bind(c->folder, c->params, t, c->sources, &c->edit, e);
}

static int plan_types(struct conversion *c, struct err *e)
{
    struct type_rules *rules = &c->opt->types;
    bool *noted = mem_alloc((size_t)c->n_tensors * sizeof *noted);
    int rc = 0;
    for (int i = 0; i < c->n_tensors && !rc; i++) {
        int fallback;
        rc = bind_sources(c, &c->tensors[i], e);
        if (rc) break;
        c->types[i] =
            type_rules_pick(rules, &c->tensors[i], source_exact_type(&c->sources[0]), c->family->pads, &fallback);
        if (fallback != TYPE_KEEP) type_rules_note(c->tensors, i, (uint32_t)fallback, c->types[i], noted);
    }
    mem_free(noted);
    return rc ? rc : type_rules_all_hit(rules, e);
}

struct unused {
    const char *layers;
    int n_layers;
    int drafts, others;
    const char *first, *beyond; /* beyond: of a layer that config.json does not count */
};

static void count_unused(void *arg, const char *name)
{
    struct unused *u = arg;
    if (strncmp(name, "mtp.", 4) == 0)
        u->drafts++;
    else if (u->others++ == 0)
        u->first = name;
    const size_t n = strlen(u->layers);
    if (strncmp(name, u->layers, n) == 0 && atoi(name + n) >= u->n_layers && !u->beyond) u->beyond = name;
}

static int note_unused(const struct conversion *c, struct err *e)
{
    struct unused u = {.layers = c->family->layers, .n_layers = (int)c->numbers.layers};
    hf_folder_unused(c->folder, count_unused, &u);
    if (u.beyond)
        return err_set(e, ERR_MODEL, "%s/config.json counts %d layers, but there is a tensor %s", c->opt->folder,
                       u.n_layers, u.beyond);
    if (u.drafts) program_say("ds4-gguf", "note: the draft block (%d tensors mtp.*) is left out", u.drafts);
    if (u.others)
        program_say("ds4-gguf", "note: %d tensors have no place in the file and are left out, the first is %s",
                    u.others, u.first);
    return 0;
}

/* ---- rows ---- */

/* A tensor at work. */
struct tensor_job {
    const struct conversion *c;
    const struct layout_tensor *t;
    uint32_t type;
    uint64_t row_bytes;
    float **scratch;    /* [threads][2 * ne0] */
    float *importance;  /* [experts][ne0], or NULL */
    struct err *errors; /* [experts] while importance is computed */
};

/* The values of a row as the file has them; those behind the source's are zeros. */
static int make_values(const struct tensor_job *j, const struct source_matrix *m, int64_t row, float *values,
                       struct err *e)
{
    const struct source_edit *const edit = &j->c->edit;
    const int64_t r = source_edit_row(edit, row), n = (int64_t)layout_row(j->t);
    int rc = source_row(m, r, values, e);
    if (!rc && edit->beside) rc = source_row(m + 1, r, values + m->cols, e);
    if (rc) return rc;
    source_edit_values(edit, values, values + j->t->ne[0], n);
    for (int64_t i = n; i < (int64_t)j->t->ne[0]; i++) values[i] = 0;
    for (int64_t i = 0; j->type == QT_F16 && i < n; i++)
        if (fabsf(values[i]) > 65504)
            return err_set(e, ERR_MODEL, "tensor %s: row %lld holds %g, too large for F16", m->t->name, (long long)r,
                           (double)values[i]);
    return 0;
}

static int make_row(const struct tensor_job *j, int64_t row, uint8_t *out, float *values, struct err *e)
{
    const int64_t part_rows = j->c->edit.beside ? (int64_t)j->t->ne[1] : j->c->sources[0].rows;
    const int64_t part = row / part_rows, r = row % part_rows;
    const struct source_matrix *m = &j->c->sources[part];
    if (j->t->role == ROLE_IDS) return source_row_ids(m, r, j->c->numbers.experts, (int32_t *)(void *)out, e);
    if (m->kind == SOURCE_FP4 && j->type == QT_MXFP4) return source_row_mxfp4(m, r, out, e);
    int rc = make_values(j, m, r, values, e);
    if (rc) return rc;
    if (m->kind == SOURCE_PLAIN && j->type == source_exact_type(m) && !source_edit_changes(&j->c->edit)) {
        memcpy(out, source_row_data(m, source_edit_row(&j->c->edit, r)), j->row_bytes);
        return 0;
    }
    const float *importance = j->importance ? j->importance + part * (int64_t)j->t->ne[0] : NULL;
    rc = quant_encode(j->type, values, (int64_t)j->t->ne[0], importance, out);
    return rc ? err_set(e, ERR_MODEL, "tensor %s: row %lld cannot be written as %s", m->t->name, (long long)r,
                        quant_type(j->type)->name)
              : 0;
}

static int make_rows(void *arg, int64_t row, int64_t n, uint8_t *out, int thread, struct err *e)
{
    const struct tensor_job *j = arg;
    int rc = 0;
    for (int64_t i = 0; i < n && !rc; i++)
        rc = make_row(j, row + i, out + (uint64_t)i * j->row_bytes, j->scratch[thread], e);
    return rc;
}

/* Weight energy: the sum of squares per column, in row order, stands in for measured importance. */
static void expert_importance(void *arg, int expert, int thread)
{
    const struct tensor_job *j = arg;
    const struct source_matrix *m = &j->c->sources[expert];
    float *sum = j->importance + expert * (int64_t)j->t->ne[0], *values = j->scratch[thread];
    bool all_zero = true;
    for (int64_t r = 0; r < m->rows; r++) {
        if (source_row(m, r, values, &j->errors[expert])) return;
        for (int64_t i = 0; i < m->cols; i++) sum[i] += values[i] * values[i];
    }
    for (int64_t i = 0; i < m->cols; i++) all_zero = all_zero && sum[i] == 0;
    for (int64_t i = 0; i < m->cols && all_zero; i++) sum[i] = 1;
}

static int find_importance(struct tensor_job *j, struct err *e)
{
    const int n = (int)j->t->ne[2];
    j->importance = mem_try((size_t)n * j->t->ne[0] * sizeof(float));
    j->errors = mem_try((size_t)n * sizeof *j->errors);
    if (!j->importance || !j->errors)
        return err_set(e, ERR_MEMORY, "%s: not enough memory for its importance", j->t->name);
    pool_run(j->c->out.pool, expert_importance, j, n);
    for (int i = 0; i < n; i++)
        if (j->errors[i].code) return err_set(e, j->errors[i].code, "%s", j->errors[i].msg);
    return 0;
}

static int write_tensor(struct conversion *c, int at, struct err *e)
{
    const struct layout_tensor *t = &c->tensors[at];
    struct tensor_job j = {
        .c = c, .t = t, .type = c->types[at], .row_bytes = quant_row_bytes(c->types[at], (int64_t)t->ne[0])};
    const int n_threads = pool_threads(c->out.pool);
    int rc = bind_sources(c, t, e);
    work_progress_add(&c->out.progress, t->name, 0);
    j.scratch = mem_alloc((size_t)n_threads * sizeof *j.scratch);
    for (int i = 0; i < n_threads && !rc; i++) {
        j.scratch[i] = mem_try(2 * t->ne[0] * sizeof(float));
        if (!j.scratch[i]) rc = err_set(e, ERR_MEMORY, "%s: not enough memory for a row", t->name);
    }
    if (!rc && j.type == QT_IQ2_XXS) rc = find_importance(&j, e);
    if (!rc) rc = model_output_rows(&c->out, t->name, (int64_t)(t->ne[1] * t->ne[2]), j.row_bytes, make_rows, &j, e);
    for (int i = 0; i < n_threads; i++) mem_free(j.scratch[i]);
    mem_free(j.scratch);
    mem_free(j.importance);
    mem_free(j.errors);
    return rc ? rc : hf_folder_intact(c->folder, e);
}

/* ---- the file ---- */

static int write_header(struct conversion *c, struct err *e)
{
    /* The name is the last part of the folder's path. */
    const char *folder = c->opt->folder;
    size_t n = strlen(folder), start;
    while (n > 1 && folder[n - 1] == '/') n--;
    for (start = n; start > 0 && folder[start - 1] != '/'; start--) {
    }
    model_output_general(&c->out, c->family->arch, folder + start, n - start);
    c->family->metadata(c->out.w, c->params, c->tensors, c->n_tensors);
    c->vocabulary.pre = c->family->pretokenizer;
    const int rc = vocabulary_put(c->out.w, &c->vocabulary, e);
    for (int i = 0; i < c->n_tensors; i++) model_output_declare(&c->out, &c->tensors[i], c->types[i]);
    return rc ? rc : model_output_start(&c->out, c->opt->verbose, e);
}

static int write_file(struct conversion *c, struct err *e)
{
    int rc = model_output_open(&c->out, &c->opt->out, e);
    if (!rc) rc = write_header(c, e);
    for (int i = 0; i < c->n_tensors && !rc; i++) {
        if (c->opt->verbose)
            fprintf(stderr, "[%5d/%5d] %s %s\n", i + 1, c->n_tensors, c->tensors[i].name,
                    quant_type(c->types[i])->name);
        rc = write_tensor(c, i, e);
    }
    return model_output_close(&c->out, rc, e);
}

/* Ids of the special tokens as config.json states them. */
static int read_special_ids(struct conversion *c, const char *config, struct err *e)
{
    json_t *root;
    int rc = hf_json_read(config, &root, e);
    if (rc) return rc;
    struct err mine = {0};
    struct hf_reader r = {config, root, &mine};
    const int64_t last = (int64_t)c->vocabulary.tokens.n - 1;
    c->vocabulary.bos = hf_int_or(&r, "bos_token_id", 0, last, -1);
    c->vocabulary.eos = hf_int_or(&r, "eos_token_id", 0, last, -1);
    c->vocabulary.pad = hf_int_or(&r, "pad_token_id", 0, last, -1);
    json_decref(root);
    return mine.code ? err_set(e, mine.code, "%s", mine.msg) : 0;
}

static const struct convert_family *const families[] = {&convert_deepseek4, &convert_qwen38};
enum { N_FAMILIES = sizeof families / sizeof *families };

static int find_family(struct conversion *c, const char *config, struct err *e)
{
    json_t *root;
    const int rc = hf_json_read(config, &root, e);
    if (rc) return rc;
    const char *type = json_string_value(json_object_get(root, "model_type"));
    for (int i = 0; i < N_FAMILIES && type && !c->family; i++)
        if (strncmp(type, families[i]->model_type, strlen(families[i]->model_type)) == 0) c->family = families[i];
    if (!c->family)
        err_set(e, ERR_MODEL, "%s: \"model_type\" is %s; only %s and %s can be converted", config,
                type ? type : "missing", families[0]->model_type, families[1]->model_type);
    json_decref(root);
    return c->family ? 0 : ERR_MODEL;
}

static int read_parameters(struct conversion *c, const char *config, struct err *e)
{
    int rc = find_family(c, config, e);
    if (rc) return rc;
    c->params = mem_alloc(c->family->params_bytes);
    rc = c->family->config(config, c->folder, c->params, e);
    c->numbers = c->family->numbers(c->params);
    return rc;
}

static int prepare(struct conversion *c, struct err *e)
{
    struct str path = {0};
    int rc = hf_folder_open(c->opt->folder, &c->folder, e);
    if (!rc && hf_folder_reads(c->folder, c->opt->out.path))
        rc = err_set(e, ERR_ARG, "%s is one of the files to be converted; give another name", c->opt->out.path);
    if (!rc) rc = read_parameters(c, hf_folder_file(c->folder, "config.json", &path), e);
    if (!rc)
        rc =
            hf_tokenizer_read(hf_folder_file(c->folder, "tokenizer.json", &path), c->numbers.tokens, &c->vocabulary, e);
    if (!rc) rc = read_special_ids(c, hf_folder_file(c->folder, "config.json", &path), e);
    if (!rc) rc = c->family->layout(c->params, &c->tensors, &c->n_tensors, e);
    if (!rc) {
        c->types = mem_alloc((size_t)c->n_tensors * sizeof *c->types);
        c->sources = mem_alloc((size_t)c->numbers.sources * sizeof *c->sources);
        rc = plan_types(c, e);
    }
    str_free(&path);
    return rc;
}

static int convert(struct convert_options *opt, struct err *e)
{
    struct conversion c = {.opt = opt};
    int rc = model_output_check(&opt->out, e);
    if (!rc) rc = prepare(&c, e);
    if (!rc) rc = note_unused(&c, e);
    if (!rc) rc = write_file(&c, e);
    mem_free(c.sources);
    mem_free(c.params);
    mem_free(c.types);
    mem_free(c.tensors);
    vocabulary_free(&c.vocabulary);
    hf_folder_close(c.folder);
    return rc;
}

/* ---- command line ---- */

static void take_type(struct args *a, const char *option, void *type)
{
    struct err e = {0};
    const char *name = args_value(a, option);
    if (name && type_rules_parse(name, type, &e)) args_mistake(a, "%s: %s", option, e.msg);
}

static void take_rule(struct args *a, const char *option, void *types)
{
    struct err e = {0};
    const char *spec = args_value(a, option);
    if (spec && type_rules_add(types, spec, &e)) args_mistake(a, "%s: %s", option, e.msg);
}

static const struct option rows[] = {
    {"FOLDER", NULL, NULL, "the published model: config.json, tokenizer.json and *.safetensors",
     OPTION_TEXT(struct convert_options, folder)},
    MODEL_OUTPUT_ROWS(struct convert_options, out),
    {"--dense", NULL, "TYPE", "attention projections, shared experts, output head",
     OPTION_CALL(struct convert_options, types.dense, take_type)},
    {"--experts", NULL, "TYPE", "routed experts", OPTION_CALL(struct convert_options, types.experts, take_type)},
    {"--embedding", NULL, "TYPE", "token embedding", OPTION_CALL(struct convert_options, types.embedding, take_type)},
    {"--type", NULL, "REGEX=TYPE",
     "tensors by GGUF name; may be repeated, the first match decides, before the options above",
     OPTION_CALL(struct convert_options, types, take_rule)},
    {"-v", "--verbose", NULL, "a line per tensor", OPTION_SET(struct convert_options, verbose, true)},
};

const struct help_section convert_section = {
    .topic = "convert",
    .title = "a folder of safetensors (DeepSeek V4 or Qwen3.8, as published) to a GGUF file",
    .usage = "[options] FOLDER -o OUT.gguf",
    .text =
        "Types: F32 F16 BF16 Q8_0 Q4_0 Q5_K Q4_K Q2_K IQ2_XXS MXFP4. Without an option a tensor keeps the values of "
        "its source: F32, F16 and BF16 as they are, FP8 as BF16, FP4 as MXFP4. Norms, biases, sinks, "
        "hyper-connections, router and position biases always do. Where a row does not fill whole blocks, Q8_0 or "
        "F16 is taken. The draft block (mtp.*) of DeepSeek V4 is left out.\n"
        "Of Qwen3.8 hyper-connections become F16, and the rows of experts that do not fill blocks of Q2_K get zeros at "
        "their ends. The n-gram table keeps its type and comes last. As in the published 2-bit files: --dense Q8_0 "
        "--type 'blk.48.ffn_down_exps=MXFP4' --type 'blk.48.ffn_.*_exps=Q4_K' --type 'ffn_down_exps=Q2_K' "
        "--experts IQ2_XXS; in the 4-bit ones: --dense Q8_0 --type 'ffn_down_exps=MXFP4' --experts Q4_K.",
    HELP_ROWS(rows)};

static void check(struct args *a, const struct convert_options *o)
{
    if (!o->folder) args_mistake(a, "no folder given; see ds4-gguf convert --help");
    model_output_require(a, &o->out);
}

int command_convert(int argc, char **argv)
{
    struct args a = {.program = "ds4-gguf convert", .argv = argv, .argc = argc};
    struct convert_options o = {.types = {.dense = TYPE_KEEP, .experts = TYPE_KEEP, .embedding = TYPE_KEEP}};
    struct err e = {0};
    int status;
    if (option_scan(&a, &gguf_program, &convert_section, &o, &status)) {
        check(&a, &o);
        status = a.bad ? 2 : convert(&o, &e) ? program_failed(a.program, &e) : 0;
    }
    type_rules_free(&o.types);
    return status;
}
