/* The encoder as a program, for vocabulary.mjs. The vocabulary is a file of tests/support/bpe_golden.h without strings.
 *   encode PRE VOCABULARY          ids of every line "plain HEX" or "rendered HEX" of standard input, with commas
 *   encode PRE VOCABULARY FILE...  "bytes ids seconds" for every file encoded as a whole: the better of two runs, in
 *                                  seconds of processor time, so that other programs do not count
 * PRE, the pre-tokenizer, is joyai or qwen35. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../support/bpe_golden.h"
#include "base/file.h"
#include "base/mem.h"

static int encode_line(const struct bpe *b, char *line)
{
    const bool rendered = strncmp(line, "rendered ", 9) == 0;
    const char *hex = strchr(line, ' ');
    if (!hex) return fprintf(stderr, "encode: a line without a space\n"), 1;
    hex++;
    const size_t n = strcspn(hex, "\n") / 2;
    for (size_t i = 0; i < n; i++) {
        const char byte[3] = {hex[2 * i], hex[2 * i + 1]};
        line[i] = (char)strtoul(byte, NULL, 16); /* never overtakes the digits */
    }
    struct bpe_ids ids = {0};
    struct err e = {0};
    const int rc = rendered ? bpe_encode_rendered(b, line, n, &ids, &e) : bpe_encode(b, line, n, &ids, &e);
    if (rc) fprintf(stderr, "encode: %s\n", e.msg);
    for (size_t i = 0; i < ids.n; i++) printf("%s%d", i ? "," : "", ids.p[i]);
    printf("\n");
    bpe_ids_free(&ids);
    return rc;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int encode_timed(const struct bpe *b, const char *path)
{
    char *text;
    size_t n, n_ids = 0;
    struct err e = {0};
    double best = 0;
    int rc = file_read(path, (uint64_t)1 << 30, &text, &n, &e);
    if (rc) return fprintf(stderr, "encode: %s\n", e.msg), rc;
    for (int run = 0; run < 2 && !rc; run++) {
        struct bpe_ids ids = {0};
        const double start = seconds();
        rc = bpe_encode(b, text, n, &ids, &e);
        const double took = seconds() - start;
        if (run == 0 || took < best) best = took;
        n_ids = ids.n;
        bpe_ids_free(&ids);
    }
    if (rc) fprintf(stderr, "encode: %s\n", e.msg);
    printf("%zu %zu %.6f\n", n, n_ids, best);
    mem_free(text);
    return rc;
}

int main(int argc, char **argv)
{
    const bool joyai = argc > 2 && strcmp(argv[1], "joyai") == 0;
    if (argc < 3 || (!joyai && strcmp(argv[1], "qwen35") != 0))
        return fprintf(stderr, "usage: encode joyai|qwen35 VOCABULARY [FILE...]\n"), 2;
    struct bpe_golden g;
    bpe_golden_read(argv[2], joyai ? PRETOKENIZER_JOYAI : PRETOKENIZER_QWEN35, &g);
    int rc = 0;
    for (int i = 3; i < argc && !rc; i++) rc = encode_timed(g.bpe, argv[i]);
    char *line = NULL;
    size_t cap = 0;
    while (argc == 3 && !rc && getline(&line, &cap, stdin) > 0) rc = encode_line(g.bpe, line);
    free(line);
    bpe_golden_free(&g);
    return rc ? 1 : 0;
}
