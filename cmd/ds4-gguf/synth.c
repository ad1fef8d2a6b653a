/* ds4-gguf synth: valid models of random weights, of any size, written as they are made: for tests, for measurements of
 * speed and memory, and to see whether a machine can hold a model before it is downloaded. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/args.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/program.h"
#include "commands.h"
#include "deepseek4_layout.h"
#include "output.h"
#include "quant/quant.h"
#include "synth_blocks.h"
#include "synth_vocabulary.h"
#include "tensor_stream.h"

static const char help[] =
    "ds4-gguf synth: a valid model of random weights\n"
    "\n"
    "Usage: ds4-gguf synth --preset NAME --quant NAME [options] -o OUT.gguf\n"
    "\n"
    "  -o, --out FILE           the file to write\n"
    "  --overwrite              replace it if it exists\n"
    "  --arch NAME              deepseek4 (default)\n"
    "  --preset NAME            tiny: 4 layers of width 256; flash: the shape of DeepSeek V4 Flash\n"
    "  --layers N               that many layers instead of the preset's\n"
    "  --quant NAME             q2: experts IQ2_XXS and Q2_K; q4: Q4_K; q8: Q8_0; each with the\n"
    "                           other matrices in Q8_0 and F16; f16: everything\n"
    "  --seed N                 another seed, another model (default 1)\n"
    "  -t, --threads N          threads (default: one per core)\n"
    "\n"
    "The same options give the same bytes. The model can be run, what it says means nothing.\n"
    "Flash takes 2.0 GB per layer as q2 and 1.6 GB for the rest.\n";

struct synth_options {
    const char *out;
    const struct preset *preset;
    const struct recipe *recipe;
    int layers; /* 0: the preset's */
    uint64_t seed;
    bool overwrite;
    int threads;
};

/* ---- shapes and types ---- */

static const struct preset {
    const char *name;
    struct deepseek4_params p; /* without ratios */
} presets[] = {
    {"tiny",
     {.V = 1024,
      .D = 256,
      .L = 4,
      .H = 4,
      .d = 80,
      .r = 16,
      .Rq = 64,
      .Ro = 32,
      .G = 2,
      .E = 8,
      .K = 2,
      .F = 256,
      .W = 8,
      .IH = 2,
      .ID = 32,
      .IK = 4,
      .n = 4,
      .hash = 1}},
    {"flash",
     {.V = 129280,
      .D = 4096,
      .L = 43,
      .H = 64,
      .d = 512,
      .r = 64,
      .Rq = 1024,
      .Ro = 1024,
      .G = 8,
      .E = 256,
      .K = 6,
      .F = 2048,
      .W = 128,
      .IH = 64,
      .ID = 128,
      .IK = 512,
      .n = 4,
      .hash = 3}},
};
enum { N_PRESETS = sizeof presets / sizeof presets[0] };

/* Types as in the published files (spec gguf-and-quants 6.1). */
static const struct recipe {
    const char *name;
    uint32_t gate_up, down; /* routed experts */
    uint32_t dense;         /* attention projections, shared experts, head */
} recipes[] = {
    {"q2", QT_IQ2_XXS, QT_Q2_K, QT_Q8_0},
    {"q4", QT_Q4_K, QT_Q4_K, QT_Q8_0},
    {"q8", QT_Q8_0, QT_Q8_0, QT_Q8_0},
    {"f16", QT_F16, QT_F16, QT_F16},
};
enum { N_RECIPES = sizeof recipes / sizeof recipes[0] };

/* The preset with what all of them have in common: layers 0 and 1 plain, then 4 and 128 in turn, but every kind within
 * the first four layers of tiny (0, 4, 128, 4). */
static struct deepseek4_params full_params(const struct synth_options *o)
{
    struct deepseek4_params p = o->preset->p;
    if (o->layers) p.L = o->layers;
    if (p.hash > p.L) p.hash = p.L;
    const int plain = o->preset == &presets[0] ? 1 : 2;
    p.n_ratios = p.L;
    for (int l = plain; l < p.L; l++) p.ratios[l] = (l - plain) % 2 ? 128 : 4;
    p.n_shared = 1;
    p.iters = 20;
    p.context = 1048576;
    p.hc_eps = p.rms_eps = 1e-6f;
    p.clamp = 10;
    p.scale = 1.5f;
    p.norm_weights = true;
    p.theta = 10000;
    p.compress_theta = 160000;
    p.yarn_factor = 16;
    p.yarn_context = 65536;
    p.beta_fast = 32;
    p.beta_slow = 1;
    return p;
}

static uint32_t tensor_type(const struct recipe *r, const struct layout_tensor *t)
{
    switch (t->role) {
    case ROLE_VECTOR:
        return QT_F32;
    case ROLE_IDS:
        return QT_I32;
    case ROLE_EXPERTS:
        return strstr(t->name, "down") ? r->down : r->gate_up;
    case ROLE_HEAD:
    case ROLE_ATTENTION:
    case ROLE_SHARED:
        return r->dense;
    case ROLE_EMBEDDING:
    case ROLE_SIDE:
    case ROLE_SMALL:
        break;
    }
    return QT_F16;
}

/* Mean and standard deviation of a tensor's values. Matrices keep the size of what passes through: N(0, 1 / row
 * length). */
static void spread_of(const struct layout_tensor *t, float *mean, float *sigma)
{
    static const struct {
        const char *part;
        float mean, sigma;
    } special[] = {
        {"token_embd", 0, 1},          {"_ape.", 0, 0.5f},    {"norm.", 1, 0.1f},        {"hc_attn_scale", 0.5f, 0.05f},
        {"hc_ffn_scale", 0.5f, 0.05f}, {"hc_scale", 0.5f, 0}, {"hc_attn_base", 0, 0.5f}, {"hc_ffn_base", 0, 0.5f},
        {"hc_base", 0, 0.5f},          {"attn_sinks", 0, 1},  {"exp_probs_b", 0, 0.02f}};
    *mean = 0;
    *sigma = 1 / sqrtf((float)t->ne[0]);
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++)
        if (strstr(t->name, special[i].part)) {
            *mean = special[i].mean;
            *sigma = special[i].sigma;
            return;
        }
}

/* ---- writing ---- */

struct tensor_job {
    struct synth_filler filler;
    uint64_t row_bytes, seed;
    int64_t k, n_experts;
};

static int random_rows(void *arg, int64_t row, int64_t n, uint8_t *out, int thread, struct err *e)
{
    const struct tensor_job *j = arg;
    for (int64_t i = 0; i < n; i++) synth_filler_row(&j->filler, row + i, out + (uint64_t)i * j->row_bytes);
    return 0;
}

/* Rows of different experts: a random first one, and the others at equal distances behind it. */
static int random_ids(void *arg, int64_t row, int64_t n, uint8_t *out, int thread, struct err *e)
{
    const struct tensor_job *j = arg;
    for (int64_t i = 0; i < n; i++) {
        uint64_t state = synth_seed(j->seed, (uint64_t)(row + i));
        const int64_t first = (int64_t)(synth_next(&state) % (uint64_t)j->n_experts);
        for (int64_t c = 0; c < j->k; c++) {
            const int32_t id = (int32_t)((first + c * j->n_experts / j->k) % j->n_experts);
            memcpy(out + (i * j->k + c) * 4, &id, 4);
        }
    }
    return 0;
}

static int write_tensor(struct gguf_writer *w, struct pool *pool, const struct synth_options *o,
                        const struct deepseek4_params *p, const struct layout_tensor *t, int at, struct err *e)
{
    const uint32_t type = tensor_type(o->recipe, t);
    struct tensor_job j = {.k = (int64_t)t->ne[0], .n_experts = p->E, .seed = synth_seed(o->seed, (uint64_t)at)};
    j.row_bytes = quant_row_bytes(type, j.k);
    if (t->role == ROLE_IDS) return tensor_stream(w, pool, (int64_t)t->ne[1], j.row_bytes, random_ids, &j, e);
    float mean, sigma;
    spread_of(t, &mean, &sigma);
    const int rc = synth_filler_init(&j.filler, type, j.k, mean, sigma, j.seed, e);
    return rc ? rc : tensor_stream(w, pool, (int64_t)(t->ne[1] * t->ne[2]), j.row_bytes, random_rows, &j, e);
}

static int write_header(struct gguf_writer *w, const struct synth_options *o, const struct deepseek4_params *p,
                        struct err *e)
{
    struct vocabulary v;
    char name[64];
    const int n =
        snprintf(name, sizeof name, "Synthetic %s %s, %d layers", o->preset->name, o->recipe->name, (int)p->L);
    gguf_put_str(w, "general.architecture", "deepseek4", 9);
    gguf_put_str(w, "general.type", "model", 5);
    gguf_put_str(w, "general.name", name, (uint64_t)n);
    gguf_put_u32(w, "general.quantization_version", 2);
    deepseek4_metadata(w, p);
    int rc = synth_vocabulary(p->V, &v, e);
    if (!rc) rc = vocabulary_put(w, &v, e);
    vocabulary_free(&v);
    return rc;
}

static int write_file(const struct synth_options *o, const struct deepseek4_params *p,
                      const struct layout_tensor *tensors, int n, struct err *e)
{
    struct gguf_writer *w;
    struct pool *pool;
    int rc = pool_create(o->threads, &pool, e);
    if (rc) return rc;
    rc = gguf_writer_open(o->out, &w, e);
    if (!rc) {
        rc = write_header(w, o, p, e);
        for (int i = 0; i < n; i++)
            gguf_declare(w, tensors[i].name, tensor_type(o->recipe, &tensors[i]), tensors[i].n_dims, tensors[i].ne);
        for (int i = 0; i < n && !rc; i++) rc = write_tensor(w, pool, o, p, &tensors[i], i, e);
        if (rc)
            gguf_writer_abort(w);
        else
            rc = gguf_writer_finish(w, e);
    }
    pool_free(pool);
    return rc;
}

static int synth(const struct synth_options *o, struct err *e)
{
    const struct deepseek4_params p = full_params(o);
    struct layout_tensor *tensors;
    int n, rc = deepseek4_params_check(&p, o->preset->name, e);
    if (!rc) rc = deepseek4_layout(&p, &tensors, &n, e);
    if (rc) return rc;
    rc = write_file(o, &p, tensors, n, e);
    mem_free(tensors);
    if (!rc) program_say("ds4-gguf", "wrote %s, %d tensors", o->out, n);
    return rc;
}

/* ---- command line ---- */

static const struct preset *find_preset(const char *name)
{
    for (int i = 0; i < N_PRESETS; i++)
        if (strcmp(presets[i].name, name) == 0) return &presets[i];
    return NULL;
}

static const struct recipe *find_recipe(const char *name)
{
    for (int i = 0; i < N_RECIPES; i++)
        if (strcmp(recipes[i].name, name) == 0) return &recipes[i];
    return NULL;
}

static void parse_names(struct args *a, const char *option, struct synth_options *o)
{
    const char *name = args_value(a, option);
    if (!name) return;
    if (!strcmp(option, "--preset")) {
        o->preset = find_preset(name);
        if (!o->preset) args_mistake(a, "--preset: '%s' is not tiny or flash", name);
    } else if (!strcmp(option, "--quant")) {
        o->recipe = find_recipe(name);
        if (!o->recipe) args_mistake(a, "--quant: '%s' is not q2, q4, q8 or f16", name);
    } else if (strcmp(name, "deepseek4"))
        args_mistake(a, "--arch: '%s' is not deepseek4", name);
}

/* True if the help was asked for. */
static bool parse(struct args *a, struct synth_options *o)
{
    for (const char *w; (w = args_next(a));) {
        if (!strcmp(w, "-h") || !strcmp(w, "--help"))
            return true;
        else if (!strcmp(w, "-o") || !strcmp(w, "--out"))
            o->out = args_value(a, w);
        else if (!strcmp(w, "--overwrite"))
            o->overwrite = true;
        else if (!strcmp(w, "--arch") || !strcmp(w, "--preset") || !strcmp(w, "--quant"))
            parse_names(a, w, o);
        else if (!strcmp(w, "--layers"))
            o->layers = (int)args_int(a, w, 1, DEEPSEEK4_MAX_RATIOS);
        else if (!strcmp(w, "--seed"))
            o->seed = args_u64(a, w);
        else if (!strcmp(w, "-t") || !strcmp(w, "--threads"))
            o->threads = (int)args_int(a, w, 1, 1024);
        else
            args_unknown(a, w);
    }
    if (!a->bad && !o->preset) args_mistake(a, "no --preset given (tiny or flash)");
    if (!a->bad && !o->recipe) args_mistake(a, "no --quant given (q2, q4, q8 or f16)");
    if (!a->bad && !o->out) args_mistake(a, "no output file given (-o FILE)");
    return false;
}

int command_synth(int argc, char **argv)
{
    struct args a = {.program = "ds4-gguf synth", .argv = argv, .argc = argc};
    struct synth_options o = {.seed = 1};
    if (parse(&a, &o)) {
        fputs(help, stdout);
        return 0;
    }
    if (a.bad) return 2;
    struct err e = {0};
    if (!output_check(o.out, o.overwrite, &e) && !synth(&o, &e)) return 0;
    return program_failed(a.program, &e);
}
