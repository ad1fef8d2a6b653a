/* ds4-gguf synth: valid models of random weights, of any size, written as they are made: for tests, for measurements of
 * speed and memory, and to see whether a machine can hold a model before it is downloaded. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "base/program.h"
#include "base/str.h"
#include "commands.h"
#include "model_output.h"
#include "quant/quant.h"
#include "synth_blocks.h"
#include "synth_dialect.h"
#include "synth_family.h"
#include "synth_like.h"
#include "synth_routing.h"
#include "type_rules.h"

struct synth_options {
    struct model_output_options out;
    const struct synth_family *family;
    const char *preset, *quant;
    struct typed {
        const char *option[SYNTH_SETTINGS_MAX], *text[SYNTH_SETTINGS_MAX];
        int n;
    } typed;                           /* --set and --layers as they came */
    const struct synth_recipe *recipe; /* of the family, by quant */
    struct synth_settings settings;
    enum synth_router router;
    uint64_t seed;
    struct type_rules types;
    const char *dialect_name;
    const struct synth_dialect *dialect;
    const char *like;
    bool headers;
    int split; /* shards; 0: one whole file */
};

/* ---- types ---- */

/* Types whose blocks fit the tensor's rows, one of them by the seed. */
static uint32_t random_type(uint64_t seed, const struct layout_tensor *t)
{
    uint32_t fit[64];
    int n = 0;
    for (uint32_t i = 0; i < 64; i++)
        if (synth_can_fill(i) && t->ne[0] % quant_type(i)->block == 0) fit[n++] = i;
    return fit[synth_next(&seed) % (uint64_t)n];
}

static uint32_t wanted_type(const struct synth_recipe *r, const struct layout_tensor *t, int64_t n_layers)
{
    const bool down = strstr(t->name, "down") != NULL;
    switch (t->role) {
    case ROLE_VECTOR:
        return QT_F32;
    case ROLE_IDS:
        return QT_I32;
    case ROLE_TABLE:
        return QT_BF16;
    case ROLE_EXPERTS:
        if (t->layer >= n_layers) return down ? r->draft_down : r->draft_gate_up;
        return down ? r->down : r->gate_up;
    case ROLE_HEAD:
    case ROLE_ATTENTION:
    case ROLE_SHARED:
        return r->dense;
    case ROLE_SIDE:
        return r->side;
    case ROLE_EMBEDDING:
    case ROLE_SMALL:
    case ROLE_MIXER:
        break;
    }
    return QT_F16;
}

void synth_spread_of(const struct synth_spread *list, const char *name, uint64_t row, float *mean, float *sigma)
{
    const float keep = 1 / sqrtf((float)row);
    *mean = 0;
    *sigma = keep;
    for (; list && list->part; list++)
        if (strstr(name, list->part)) {
            *mean = list->mean;
            *sigma = list->relative ? list->sigma * keep : list->sigma;
            return;
        }
}

/* ---- values ---- */

/* A model at work. */
struct synthesis {
    const struct synth_options *options;
    struct type_rules *rules; /* of the options: they note which of them decided something */
    const struct synth_family *family;
    void *params; /* of the family */
    struct synth_numbers numbers;
    struct layout_tensor *tensors;
    uint32_t *types; /* [n_tensors] */
    int n_tensors;
    struct model_output out;
};

struct tensor_job {
    struct synth_filler filler;
    struct synth_routing routing;
    uint64_t row_bytes, logical, k; /* logical: values of a padded row, else 0 */
};

static int random_rows(void *arg, int64_t row, int64_t n, uint8_t *out, int thread, struct err *e)
{
    const struct tensor_job *j = arg;
    for (int64_t i = 0; i < n; i++) {
        uint8_t *const to = out + (uint64_t)i * j->row_bytes;
        synth_filler_row(&j->filler, row + i, to);
        if (j->logical) synth_pad_q2_k(to, (int64_t)j->logical, (int64_t)j->k);
    }
    return 0;
}

static int random_ids(void *arg, int64_t row, int64_t n, uint8_t *out, int thread, struct err *e)
{
    const struct tensor_job *j = arg;
    for (int64_t i = 0; i < n; i++)
        synth_routing_ids(&j->routing, row + i, (int32_t *)(void *)(out + (uint64_t)i * j->row_bytes));
    return 0;
}

static int zipf_biases(void *arg, int64_t row, int64_t n, uint8_t *out, int thread, struct err *e)
{
    const struct tensor_job *j = arg;
    synth_routing_biases(&j->routing, (float *)(void *)out);
    return 0;
}

static int write_tensor(struct synthesis *s, int at, struct err *e)
{
    const struct layout_tensor *t = &s->tensors[at];
    const uint64_t seed = synth_seed(s->options->seed, (uint64_t)at);
    struct tensor_job j = {
        .row_bytes = quant_row_bytes(s->types[at], (int64_t)t->ne[0]), .logical = t->logical, .k = t->ne[0]};
    const bool biases = strstr(t->name, "exp_probs_b") && s->options->router == SYNTH_ZIPF;
    tensor_rows_fn *rows = t->role == ROLE_IDS ? random_ids : biases ? zipf_biases : random_rows;
    float mean, sigma;
    int rc;
    work_progress_add(&s->out.progress, t->name, 0);
    synth_spread_of(s->family->spreads, t->name, layout_row(t), &mean, &sigma);
    if (rows == random_rows)
        rc = synth_filler_init(&j.filler, s->types[at], (int64_t)t->ne[0], mean, sigma, seed, e);
    else
        rc = synth_routing_init(&j.routing, s->options->router, s->numbers.experts, s->numbers.used, seed, e);
    if (!rc) rc = model_output_rows(&s->out, t->name, (int64_t)(t->ne[1] * t->ne[2]), j.row_bytes, rows, &j, e);
    synth_routing_free(&j.routing);
    return rc;
}

/* ---- the file ---- */

/* Shard `no` of n, from 0; the tensors [first, end) are in it. Only the first has the model's records. */
struct part {
    int no, n, first, end;
};

static int write_metadata(struct synthesis *s, struct err *e)
{
    const struct synth_options *o = s->options;
    struct vocabulary v;
    char made_up[64];
    snprintf(made_up, sizeof made_up, "Synthetic %s %s, %d layers%s", o->preset, o->recipe->name,
             (int)s->numbers.layers, o->router == SYNTH_ZIPF ? ", zipf" : "");
    const char *name = synth_settings_name(&o->settings) ? synth_settings_name(&o->settings) : made_up;
    synth_dialect_keys(o->dialect, s->out.w);
    model_output_general(&s->out, synth_dialect_arch(o->dialect), name, strlen(name));
    s->family->metadata(s->out.w, s->params, s->tensors, s->n_tensors);
    synth_settings_put(&o->settings, s->out.w);
    int rc = synth_words(s->family->specials, s->numbers.tokens, &v, e);
    if (!rc) rc = vocabulary_put(s->out.w, &v, e);
    vocabulary_free(&v);
    return rc;
}

/* Dimension i of the first tensor whose name has the part; 1: there is none. */
static uint64_t dimension(const struct synthesis *s, const char *part, int i)
{
    for (int k = 0; k < s->n_tensors; k++)
        if (strstr(s->tensors[k].name, part)) return s->tensors[k].ne[i];
    return 1;
}

/* Of DeepSeek V4's output projection: each takes a part of the heads' values. */
static uint64_t groups(const struct synthesis *s)
{
    return dimension(s, "attn_q_b.", 1) / dimension(s, "attn_output_a.", 0);
}

static int write_header(struct synthesis *s, const struct part *p, struct err *e)
{
    const struct synth_options *o = s->options;
    const int rc = p->no == 0 ? write_metadata(s, e) : 0;
    if (p->n > 1) {
        gguf_put_u16(s->out.w, "split.no", (uint16_t)p->no);
        gguf_put_u16(s->out.w, "split.count", (uint16_t)p->n);
        gguf_put_i32(s->out.w, "split.tensors.count", s->n_tensors);
    }
    for (int i = p->first; i < p->end; i++) {
        struct layout_tensor t = s->tensors[i];
        synth_dialect_tensor(o->dialect, &t, dimension(s, "token_embd", 0), groups(s));
        model_output_declare(&s->out, &t, s->types[i]);
    }
    return rc ? rc : model_output_start(&s->out, false, e);
}

static int write_part(struct synthesis *s, const struct model_output_options *o, const struct part *p, struct err *e)
{
    int rc = model_output_open(&s->out, o, e);
    if (!rc) rc = write_header(s, p, e);
    for (int i = p->first; i < p->end && !rc; i++) rc = write_tensor(s, i, e);
    return model_output_close(&s->out, rc, e);
}

/* The path of a shard: the file's own name, if it is the only one. */
static void part_path(struct str *path, const char *out, const struct part *p)
{
    const size_t n = strlen(out), end = n > 5 && !strcmp(out + n - 5, ".gguf") ? n - 5 : n;
    str_clear(path);
    if (p->n == 1)
        str_puts(path, out);
    else
        str_printf(path, "%.*s-%05d-of-%05d.gguf", (int)end, out, p->no + 1, p->n);
}

/* Of thousands of shards as of two. */
static void tell_shards(const struct synthesis *s, int n)
{
    struct str first = {0}, last = {0};
    part_path(&first, s->options->out.path, &(struct part){.no = 0, .n = n});
    part_path(&last, s->options->out.path, &(struct part){.no = n - 1, .n = n});
    program_say("ds4-gguf", "wrote %s to %s, %d shards, %d tensors", str_c(&first), str_c(&last), n, s->n_tensors);
    str_free(&first);
    str_free(&last);
}

/* All places are looked at before anything is written. */
static int for_all_parts(struct synthesis *s, bool write, struct err *e)
{
    struct model_output_options o = s->options->out;
    struct part p = {.n = s->options->split < 1 ? 1 : s->options->split};
    struct str path = {0};
    int rc = 0;
    o.part = p.n > 1;
    for (; p.no < p.n && !rc; p.no++) {
        p.first = (int)((int64_t)s->n_tensors * p.no / p.n);
        p.end = (int)((int64_t)s->n_tensors * (p.no + 1) / p.n);
        part_path(&path, s->options->out.path, &p);
        o.path = str_c(&path);
        rc = write ? write_part(s, &o, &p, e) : model_output_check(&o, e);
    }
    if (write && o.part && !rc) tell_shards(s, p.n);
    str_free(&path);
    return rc;
}

/* By the rules, else by the recipe. Vectors and tables of ids have one type. */
static uint32_t type_of(struct synthesis *s, int at)
{
    const struct layout_tensor *t = &s->tensors[at];
    const bool free = t->role != ROLE_IDS && t->n_dims > 1;
    const int rule = free ? type_rules_find(s->rules, t) : TYPE_KEEP;
    if (rule == TYPE_RANDOM) return random_type(synth_seed(s->options->seed ^ 0x7E9E5, (uint64_t)at), t);
    return rule == TYPE_KEEP ? wanted_type(s->options->recipe, t, s->numbers.layers) : (uint32_t)rule;
}

static int pick_types(struct synthesis *s, struct err *e)
{
    bool *noted = mem_alloc((size_t)s->n_tensors * sizeof *noted);
    s->types = mem_alloc((size_t)s->n_tensors * sizeof *s->types);
    for (int i = 0; i < s->n_tensors; i++) {
        struct layout_tensor *const t = &s->tensors[i];
        const uint32_t wanted = type_of(s, i);
        if (s->family->pads) type_rules_pad(wanted, t);
        s->types[i] = type_rules_fit(wanted, t);
        if (s->types[i] != wanted) type_rules_note(s->tensors, i, wanted, s->types[i], noted);
    }
    mem_free(noted);
    return type_rules_all_hit(s->rules, e);
}

static int check_tokens(const struct synthesis *s, struct err *e)
{
    const int64_t least = synth_vocabulary_least(s->family->specials);
    if (s->numbers.tokens >= least) return 0;
    return err_set(e, ERR_MODEL,
                   "%s: vocab_size = %lld is not supported (only from %lld on: bytes, special tokens, a pair)",
                   s->options->preset, (long long)s->numbers.tokens, (long long)least);
}

static int synth(struct synth_options *o, struct err *e)
{
    struct synthesis s = {
        .options = o, .rules = &o->types, .family = o->family, .params = mem_alloc(o->family->params_bytes)};
    int rc = for_all_parts(&s, false, e);
    if (!rc) rc = s.family->shape(o->preset, &o->settings, s.params, e);
    s.numbers = s.family->numbers(s.params);
    if (!rc) rc = check_tokens(&s, e);
    if (!rc) rc = s.family->layout(s.params, &s.tensors, &s.n_tensors, e);
    if (!rc) rc = pick_types(&s, e);
    if (!rc) rc = for_all_parts(&s, true, e);
    mem_free(s.types);
    mem_free(s.tensors);
    mem_free(s.params);
    return rc;
}

/* ---- command line ---- */

static const struct synth_family *const families[] = {&synth_family_deepseek4, &synth_family_qwen38, NULL};
enum { N_FAMILIES = sizeof families / sizeof *families - 1 };

static void take_arch(struct args *a, const char *option, void *to)
{
    const char *name = args_value(a, option);
    int i = 0;
    while (name && i < N_FAMILIES && strcmp(name, families[i]->arch)) i++;
    if (i == N_FAMILIES)
        args_mistake(a, "%s: '%s' is not deepseek4 or qwen4exp", option, name);
    else
        *(const struct synth_family **)to = families[i];
}

/* Keys are looked at when the family is known. */
static void take_setting(struct args *a, const char *option, void *to)
{
    struct typed *const t = to;
    const char *text = args_value(a, option);
    if (!text) return;
    if (t->n == SYNTH_SETTINGS_MAX) {
        args_mistake(a, "%s: more than %d keys are set", option, SYNTH_SETTINGS_MAX);
        return;
    }
    t->option[t->n] = option;
    t->text[t->n++] = text;
}

/* "REGEX=TYPE,REGEX=TYPE": a comma between two rules stands behind a type. */
static void take_types(struct args *a, const char *option, void *to)
{
    struct type_rules *const r = to;
    const char *text = args_value(a, option);
    struct err e = {0};
    r->made_up = true;
    while (text && *text && !a->bad) {
        const char *eq = strchr(text, '='), *end = eq ? eq + strcspn(eq, ",") : text + strlen(text);
        char *rule = mem_alloc((size_t)(end - text) + 1);
        memcpy(rule, text, (size_t)(end - text));
        if (type_rules_add(r, rule, &e)) args_mistake(a, "%s: %s", option, e.msg);
        mem_free(rule);
        text = *end ? end + 1 : end;
    }
}

static const struct option rows[] = {
    MODEL_OUTPUT_ROWS(struct synth_options, out),
    {"--arch", NULL, "NAME", "deepseek4 (default) or qwen4exp", OPTION_CALL(struct synth_options, family, take_arch)},
    {"--preset", NULL, "NAME",
     "tiny: 4 layers of width 256; flash, pro: the shapes of DeepSeek V4; flash of qwen4exp: of Qwen3.8 Flash Next",
     OPTION_TEXT(struct synth_options, preset)},
    {"--layers", NULL, "N", "that many layers instead of the preset's (as --set block_count=N)",
     OPTION_CALL(struct synth_options, typed, take_setting)},
    {"--set", NULL, "KEY=VALUE",
     "another value for a key of the model, with or without its prefix (\"deepseek4.\"); tensors follow. Lists are "
     "0,4,128; "
     "one entry stands for all layers. KEY=TYPE:VALUE adds a key that the model does not use (u32, i32, u64, f32, "
     "bool, "
     "str). May be repeated; the last value of a key counts",
     OPTION_CALL(struct synth_options, typed, take_setting)},
    {"--quant", NULL, "NAME",
     "q2: experts IQ2_XXS and Q2_K; q4: Q4_K; q8: Q8_0; mxfp4: MXFP4; each with the other matrices in Q8_0 and F16; "
     "f16: everything. qwen4exp: q4 has the down experts in MXFP4, q2 those of the draft block in Q4_K and MXFP4, and "
     "the n-gram table is BF16 in all",
     OPTION_TEXT(struct synth_options, quant)},
    {"--types", NULL, "REGEX=TYPE,...",
     "other types for the matrices whose names a regular expression fits, the first that does; random: another type "
     "for "
     "each. May be repeated",
     OPTION_CALL(struct synth_options, types, take_types)},
    {"--dialect", NULL, "NAME",
     "names, keys and shapes as another maker writes them, with the same values: llama.cpp; ik_llama.cpp and early "
     "(forks "
     "of spring) of deepseek4",
     OPTION_TEXT(struct synth_options, dialect_name), .initial = "ds4"},
    {"--split", NULL, "N", "as N shards, OUT-00001-of-0000N.gguf and so on",
     OPTION_INT(struct synth_options, split, 1, 9999)},
    {"--like", NULL, "FILE",
     "instead of a preset: the records of this file, byte for byte, with random data of the same types at the same "
     "places. For a report of what goes wrong with a file that cannot be sent; texts in it (names, tokens, chat "
     "template) "
     "are kept",
     OPTION_TEXT(struct synth_options, like)},
    {"--headers", NULL, NULL, "with --like: the records alone, from which --like makes the whole file elsewhere",
     OPTION_SET(struct synth_options, headers, true)},
    {"--router", NULL, "uniform|zipf",
     "experts are used alike, or the one of rank r in its layer in proportion to 1/r, as far as a token can",
     OPTION_CHOICE(struct synth_options, router), .initial = "uniform"},
    {"--seed", NULL, "N", "another seed, another model", OPTION_SEED(struct synth_options, seed), .initial = "1"},
};

const struct help_section synth_section = {
    .topic = "synth",
    .title = "a valid model of random weights, for tests and measurements",
    .usage = "--preset NAME --quant NAME [options] -o OUT.gguf",
    .text =
        "The same options give the same bytes. The model can be run, what it says means nothing. As q2, Flash takes "
        "2.0 GB per layer and 1.6 GB for the rest, PRO 7.6 and 2.8. Where a row does not fill whole blocks of a "
        "type, Q8_0 or F16 is taken.",
    HELP_ROWS(rows)};

static void check_preset(struct args *a, const struct synth_options *o)
{
    const char *const *p = o->family->presets;
    struct str all = {0};
    for (; *p; p++) {
        if (o->preset && !strcmp(*p, o->preset)) break;
        str_printf(&all, "%s%s", p == o->family->presets ? "" : p[1] ? ", " : " or ", *p);
    }
    if (!*p && o->preset) args_mistake(a, "--preset: '%s' is not %s", o->preset, str_c(&all));
    if (!*p && !o->preset) args_mistake(a, "no --preset given (%s)", str_c(&all));
    str_free(&all);
}

static void check_quant(struct args *a, struct synth_options *o)
{
    for (int i = 0; i < o->family->n_recipes && o->quant; i++)
        if (!strcmp(o->family->recipes[i].name, o->quant)) o->recipe = &o->family->recipes[i];
    if (!o->quant)
        args_mistake(a, "no --quant given (q2, q4, q8, mxfp4 or f16)");
    else if (!o->recipe)
        args_mistake(a, "--quant: '%s' is not q2, q4, q8, mxfp4 or f16", o->quant);
}

static void check_settings(struct args *a, struct synth_options *o)
{
    const struct synth_keys keys = {o->family->arch, o->family->keys, o->family->set,
                                    mem_alloc(o->family->params_bytes)};
    for (int i = 0; i < o->typed.n && !a->bad; i++) {
        struct err e = {0};
        const char *const option = o->typed.option[i], *const text = o->typed.text[i];
        if (strcmp(option, "--layers"))
            synth_settings_add(&o->settings, &keys, text, &e);
        else
            synth_settings_add_pair(&o->settings, &keys, "block_count", text, &e);
        if (e.code) args_mistake(a, "%s: %s", option, e.msg);
    }
    mem_free(keys.any);
}

static void check_like(struct args *a, const struct synth_options *o)
{
    if (o->headers && !o->like) args_mistake(a, "--headers is for --like FILE");
    if (o->like && (o->preset || o->quant || o->typed.n || o->types.n_rules || o->split ||
                    (o->dialect_name && strcmp(o->dialect_name, "ds4"))))
        args_mistake(a, "--like takes shapes and types from the file: no --preset, --quant, --set, --layers, "
                        "--types, --split or --dialect");
    model_output_require(a, &o->out);
}

static int like(const struct synth_options *o, struct err *e)
{
    const struct synth_like l = {
        .path = o->like, .out = o->out.path, .families = families, .headers = o->headers, .seed = o->seed};
    const int rc = model_output_check(&o->out, e);
    return rc ? rc : synth_like(&l, e);
}

static void check(struct args *a, struct synth_options *o)
{
    if (o->like || o->headers) {
        check_like(a, o);
        return;
    }
    if (!a->bad) check_settings(a, o);
    if (!a->bad) check_preset(a, o);
    if (!a->bad) check_quant(a, o);
    char names[200];
    o->dialect = synth_dialect_find(o->family->arch, o->dialect_name ? o->dialect_name : "ds4", names);
    if (!a->bad && !o->dialect)
        args_mistake(a, "--dialect: '%s' is none of those of %s (%s)", o->dialect_name, o->family->arch, names);
    if (!a->bad && o->router == SYNTH_ZIPF && !o->family->routes)
        args_mistake(a, "--router zipf: experts of %s are chosen by the router's scores alone", o->family->arch);
    model_output_require(a, &o->out);
}

int command_synth(int argc, char **argv)
{
    struct args a = {.program = "ds4-gguf synth", .argv = argv, .argc = argc};
    struct synth_options *o = mem_alloc(sizeof *o);
    o->family = families[0];
    struct err e = {0};
    int status;
    if (option_scan(&a, &gguf_program, &synth_section, o, &status)) {
        check(&a, o);
        status = a.bad ? 2 : (o->like ? like(o, &e) : synth(o, &e)) ? program_failed(a.program, &e) : 0;
    }
    type_rules_free(&o->types);
    mem_free(o);
    return status;
}
