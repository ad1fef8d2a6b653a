/* Writes the models of tests/support/oracle_cases.h into a folder and prints "name ids..." for each. */
#include "../support/oracle_cases.h"
#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc != 2) return fprintf(stderr, "usage: write_models FOLDER\n"), 2;
    for (int i = 0; i < oracle_case_count(); i++) {
        const struct oracle_case c = oracle_case_at(i);
        struct err e = {0};
        char path[4096];
        int32_t ids[4096];
        snprintf(path, sizeof path, "%s/%s.gguf", argv[1], c.name);
        if (synth_deepseek4(path, &c.shape, &e)) return fprintf(stderr, "%s\n", e.msg), 1;
        oracle_case_ids(&c, ids);
        printf("%s ", c.name);
        for (int k = 0; k < c.n_ids; k++) printf("%s%d", k ? "," : "", ids[k]);
        printf("\n");
    }
    return 0;
}
