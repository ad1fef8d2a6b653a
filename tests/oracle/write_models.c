/* Writes the models of tests/support/oracle_cases.h and synth_qwen38.h into a folder and prints "family name ids..."
 * for each; of a Qwen model then the rotation factor, 1 if it has a draft block, and grids of positions. */
#include "../support/oracle_cases.h"
#include "../support/synth_qwen38.h"
#include <stdio.h>

static void print_ids(const char *family, const char *name, const int32_t *ids, int n)
{
    printf("%s %s ", family, name);
    for (int k = 0; k < n; k++) printf("%s%d", k ? "," : "", ids[k]);
}

static int deepseek4(const char *folder, struct err *e)
{
    int rc = 0;
    for (int i = 0; i < oracle_case_count() && !rc; i++) {
        const struct oracle_case c = oracle_case_at(i);
        char path[4096];
        int32_t ids[4096];
        snprintf(path, sizeof path, "%s/%s.gguf", folder, c.name);
        rc = synth_deepseek4(path, &c.shape, e);
        oracle_case_ids(&c, ids);
        print_ids("deepseek4", c.name, ids, c.n_ids);
        printf("\n");
    }
    return rc;
}

static int qwen38(const char *folder, struct err *e)
{
    int rc = 0;
    for (int i = 0; i < qwen38_case_count() && !rc; i++) {
        const struct qwen38_case c = qwen38_case_at(i);
        char path[4096];
        int32_t ids[4096];
        snprintf(path, sizeof path, "%s/%s.gguf", folder, c.name);
        rc = synth_qwen38_write(path, &c.shape, e);
        qwen38_case_ids(&c, ids);
        print_ids("qwen38", c.name, ids, c.n_ids);
        printf(" %g %d", c.shape.yarn > 0 ? (double)c.shape.yarn : 1, c.shape.draft);
        for (int k = 0; k < 2 && c.grid[k].rows; k++)
            printf(" %d:%d:%d", c.grid[k].first, c.grid[k].rows, c.grid[k].columns);
        printf("\n");
    }
    return rc;
}

int main(int argc, char **argv)
{
    struct err e = {0};
    if (argc != 2) return fprintf(stderr, "usage: write_models FOLDER\n"), 2;
    if (deepseek4(argv[1], &e) || qwen38(argv[1], &e)) return fprintf(stderr, "%s\n", e.msg), 1;
    return 0;
}
