/* write_corpus FOLDER: writes what tests/fuzz/corpus/dialect holds: the beginnings, up to the data, of a small model in
 * every form, of a split set of two, and of files with a fault of each kind; for each family. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "../support/dialect_forms.h"
#include "../support/hostile_cases.h"
#include "../support/hostile_qwen38.h"
#include "../support/qwen38_forms.h"
#include "../support/split_files.h"
#include "../support/temp_files.h"
#include "base/file.h"
#include "base/mem.h"

static const enum dialect_form forms[] = {FORM_DS4, FORM_BARE, FORM_EARLY, FORM_FUSED, FORM_MERGED};
static const char *const faults[][2] = {
    {"dims", "wraps_at_2"}, {"arrays", "nested_unknown"},     {"lengths", "ratios_0"},   {"places", "overlap"},
    {"values", "eps_nan"},  {"types", "merges_are_one_text"}, {"layers", "clamp_of_all"}};
static const struct forge_edit no_data = {NO_DATA};

static int said(const struct err *e)
{
    fprintf(stderr, "%s\n", e->msg);
    return 1;
}

static const struct hostile_case *case_of(const char *const name[2])
{
    for (int i = 0; i < hostile_n_cases; i++)
        if (!strcmp(hostile_cases[i].kind, name[0]) && !strcmp(hostile_cases[i].name, name[1]))
            return &hostile_cases[i];
    return NULL;
}

static int write_fault(const char *from, const char *to, const char *const name[2])
{
    const struct hostile_case *c = case_of(name);
    struct forge_edit edits[FORGE_MOST + 1] = {{FORGE_END}};
    int n = 0;
    for (; c && n < FORGE_MOST && c->edits[n].kind != FORGE_END; n++) edits[n] = c->edits[n];
    edits[n] = no_data;
    forge_write(from, to, edits, n + 1);
    return c ? 0 : 1;
}

static int append_header(FILE *f, const char *from)
{
    struct err e = {0};
    char part[TEMP_PATH], *data;
    size_t bytes;
    temp_file(part);
    forge_write(from, part, &no_data, 1);
    if (file_read(part, 1 << 20, &data, &bytes, &e)) return said(&e);
    fwrite(data, 1, bytes, f);
    mem_free(data);
    temp_remove(part);
    return 0;
}

/* Two files in one, with a mark between (fuzz_dialect.c): shards, or halves with all metadata each. */
static int write_pair(const char *from, const char *to, bool shards)
{
    const struct split_form form = {.n = 2, .full = !shards};
    struct err e = {0};
    char path[256];
    int n;
    FILE *f = fopen(to, "wb");
    if (!f || split_write(from, from, &form, &n, &e)) return said(&e);
    for (int i = 1; i <= 2; i++) {
        if (append_header(f, split_path(path, from, &form, i, 2))) return 1;
        unlink(path);
        if (i == 1) fputs(shards ? "\nSECOND FILE\n" : "\nANOTHER ONE\n", f);
    }
    return fclose(f);
}

/* ---- Qwen3.8 */

static const char *const qwen_faults[] = {"ple.head_offsets_missing",     "ple.head_vocab_sizes_huge",
                                          "ple.layers_two_entries",       "attention.compress_ratios_fractions",
                                          "ssm.group_count_zero",         "attention.head_count_one_more",
                                          "blk.0.ssm_norm.weight_narrow", "blk.4.nextn.enorm.weight_missing"};

static int write_qwen_fault(const char *from, const char *folder, const char *name)
{
    struct hostile_qwen38 c;
    char to[512];
    snprintf(to, sizeof to, "%s/qwen_%s", folder, name);
    for (int i = 0; i < hostile_qwen38_count(); i++) {
        hostile_qwen38_at(i, &c);
        if (strcmp(c.name, name)) continue;
        const struct forge_edit edits[] = {c.edit, no_data};
        forge_write(from, to, edits, 2);
        return 0;
    }
    return 1;
}

/* The draft in a file of its own. */
static int write_apart(const char *from, const char *to)
{
    struct err e = {0};
    char part[TEMP_PATH];
    FILE *f = fopen(to, "wb");
    temp_file(part);
    if (!f || qwen38_write_part(from, part, PART_TRUNK, &e) || append_header(f, part)) return said(&e);
    fputs("\nANOTHER ONE\n", f);
    if (qwen38_write_part(from, part, PART_DRAFT_COPY, &e) || append_header(f, part)) return said(&e);
    temp_remove(part);
    return fclose(f);
}

static int write_qwen(const char *folder)
{
    struct err e = {0};
    char from[TEMP_PATH], fused[TEMP_PATH], to[512];
    temp_file(from);
    temp_file(fused);
    if (hostile_qwen38_base(from, true, &e) || qwen38_write_fused(from, fused, &e)) return said(&e);
    snprintf(to, sizeof to, "%s/qwen", folder);
    forge_write(from, to, &no_data, 1);
    snprintf(to, sizeof to, "%s/qwen_fused", folder);
    forge_write(fused, to, &no_data, 1);
    for (size_t i = 0; i < sizeof qwen_faults / sizeof *qwen_faults; i++)
        if (write_qwen_fault(from, folder, qwen_faults[i])) return 1;
    snprintf(to, sizeof to, "%s/qwen_apart", folder);
    const int rc = write_apart(from, to);
    temp_remove(from);
    temp_remove(fused);
    return rc;
}

int main(int argc, char **argv)
{
    char from[TEMP_PATH], form[TEMP_PATH], to[512];
    struct err e = {0};
    if (argc != 2) return fputs("write_corpus FOLDER\n", stderr), 2;
    temp_file(from);
    temp_file(form);
    if (hostile_small_write(from, &e)) return said(&e);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        snprintf(to, sizeof to, "%s/%s", argv[1], dialect_form_name(forms[i]));
        if (dialect_form_write(from, form, forms[i], WIDTHS_KEPT, &e)) return said(&e);
        forge_write(form, to, &no_data, 1);
    }
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        snprintf(to, sizeof to, "%s/%s_%s", argv[1], faults[i][0], faults[i][1]);
        if (write_fault(from, to, faults[i])) return 1;
    }
    snprintf(to, sizeof to, "%s/shards", argv[1]);
    if (write_pair(from, to, true)) return 1;
    snprintf(to, sizeof to, "%s/halves", argv[1]);
    return write_pair(from, to, false) ? 1 : write_qwen(argv[1]);
}
