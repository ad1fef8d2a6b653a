/* ds4-gguf inspect: what is in the files of a model, where its bytes are, and what running it takes. Works on headers
 * alone. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include "base/program.h"
#include "commands.h"
#include "ds4.h"
#include "inspect_container.h"
#include "common/file_census.h"

enum { MOST_FILES = 16 };

struct inspect_options {
    const char *paths[MOST_FILES];
    int n_paths;
    bool summary;
    int ctx; /* 0: as ds4 */
};

static const struct option rows[] = {
    {"FILE", NULL, NULL, "a file or any part of a split set, of which all parts are shown; several: those of one model",
     OPTION_LIST(struct inspect_options, paths, n_paths)},
    {"--summary", NULL, NULL, "without the lists of metadata and tensors",
     OPTION_SET(struct inspect_options, summary, true)},
    {"-c", "--ctx", "N", "context of the memory plan, in tokens (default: 32768, or the model's if that is less)",
     OPTION_INT(struct inspect_options, ctx, DS4_CTX_MIN, INT_MAX)},
};

const struct help_section inspect_section = {
    .topic = "inspect",
    .title = "metadata, tensors, sizes and memory plan of a GGUF file",
    .usage = "[options] FILE [FILE2 ...]",
    .text =
        "Prints a line per metadata record (long values cut) and a line per tensor: name, type, shape, bytes and "
        "offset in its file. Then how many bytes are embedding, tables that stay on disk, dense weights of "
        "the blocks (attention, compressors, indexer, hyper-connections, router, norms), shared and routed experts and "
        "the head; what ds4 makes of the model; and the weights that a token of an answer reads. No weight is read: a "
        "large file takes "
        "no longer.\n"
        "The exit status is 0 if the files could be shown, even if ds4 cannot run what they hold: the last line says "
        "so then.",
    HELP_ROWS(rows)};

static void no_log(void *arg, int level, const char *subject, const char *text)
{
}

/* The model as ds4 sees it; NULL: it cannot run, *e says why. */
static ds4_engine *open_model(const struct inspect_options *o, struct ds4_error *e)
{
    const struct ds4_options eo = {.model_paths = o->paths,
                                   .n_model_paths = o->n_paths,
                                   .ctx = o->ctx,
                                   .report_only = true,
                                   .headers_only = true,
                                   .log = no_log};
    ds4_engine *g;
    return ds4_engine_open(&eo, &g, e) ? NULL : g;
}

static int n_layers(const ds4_engine *g)
{
    struct ds4_model_info info;
    if (!g) return 0;
    ds4_engine_info(g, &info);
    return info.n_layers;
}

static void print_files(const struct inspect_options *o, const struct gguf_set *set, const ds4_engine *g)
{
    struct file_census census;
    if (!o->summary) inspect_metadata(set);
    if (!o->summary) inspect_tensors(set);
    file_census_take(&census, set, n_layers(g));
    file_census_print(&census);
}

static void print_model(const ds4_engine *g, const struct ds4_error *why_not)
{
    struct ds4_memory_plan p;
    if (!g) {
        printf("\nno memory plan, ds4 cannot run this: %s\n", why_not->message);
        return;
    }
    ds4_engine_plan(g, &p);
    printf("\n%s", ds4_engine_report(g));
    printf("a token of an answer reads %" PRIu64 " bytes of weights (%.3f GB)\n", p.active, (double)p.active * 1e-9);
}

/* Of a set that is not whole, the one file that was named. */
static void print_part(const struct inspect_options *o)
{
    struct gguf_set *set;
    if (o->n_paths > 1 || gguf_set_open_part(o->paths[0], &set, NULL)) return;
    print_files(o, set, NULL);
    gguf_set_close(set);
}

static int inspect(const struct inspect_options *o, struct err *e)
{
    struct gguf_set *set;
    struct ds4_error why_not = {0};
    int rc = gguf_set_open(o->paths, o->n_paths, &set, e);
    if (rc) {
        print_part(o);
        return rc;
    }
    ds4_engine *g = open_model(o, &why_not);
    if (!g && why_not.code == DS4_E_ARG)
        rc = err_set(e, ERR_ARG, "%s", why_not.message);
    else {
        print_files(o, set, g);
        print_model(g, &why_not);
    }
    ds4_engine_close(g);
    gguf_set_close(set);
    return rc;
}

int command_inspect(int argc, char **argv)
{
    struct args a = {.program = "ds4-gguf inspect", .argv = argv, .argc = argc};
    struct inspect_options o = {0};
    struct err e = {0};
    int status;
    if (!option_scan(&a, &gguf_program, &inspect_section, &o, &status)) return status;
    if (!o.n_paths) args_mistake(&a, "no file given");
    if (a.bad) return 2;
    if (!inspect(&o, &e)) return 0;
    fflush(stdout); /* the message comes behind what could be shown */
    return program_failed(a.program, &e);
}
