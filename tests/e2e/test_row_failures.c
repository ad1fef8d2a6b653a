/* A disk that fails under a table of rows while ds4 answers, or under weights that are read into memory
 * (tests/preload/read_fault.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../support/shell_run.h"
#include "../support/temp_files.h"
#include "../support/watched_run.h"
#include "gguf/gguf.h"

#define ASK "/ds4 --raw -p 'the fox is' --temp 0 -n 8 -m "

static char folder[TEMP_PATH], model[128];
static unsigned long long table, end; /* offsets of the table in the file */

static int set_up(void **state)
{
    char command[300];
    struct gguf *g;
    temp_folder(folder);
    snprintf(model, sizeof model, "%s/model.gguf", folder);
    snprintf(command, sizeof command,
             TEST_BUILD "/ds4-gguf synth --arch qwen4exp --preset tiny --quant q8 -o %s 2>/dev/null", model);
    if (system(command) || gguf_open(model, &g, NULL)) return -1;
    const struct gguf_tensor *const t = gguf_tensor_find(g, "per_layer_token_embd.weight", 27);
    table = t->offset, end = t->offset + t->bytes;
    gguf_close(g);
    return 0;
}

static int tear_down(void **state)
{
    return temp_remove(folder);
}

/* Under a sanitizer no other library comes first: what measures memory cannot be put under a program either. */
static bool can_preload(void)
{
    return watched_measures();
}

/* What to type for an answer under a fault. */
static const char *under(const char *kind, unsigned long long from, unsigned long long to, char text[400])
{
    snprintf(text, 400, "LD_PRELOAD=%s/tests/preload/read_fault.so READ_FAULT='%s %llu %llu' " TEST_BUILD ASK "%s",
             TEST_BUILD, kind, from, to, model);
    return text;
}

/* Whole rows, rows in pieces, and rows by whatever means there are: the same answer. */
static void short_reads_change_nothing(void **state)
{
    char plain[300], fault[400];
    if (!can_preload()) skip();
    snprintf(plain, sizeof plain, TEST_BUILD ASK "%s", model);
    shell_expect_same(plain, under("none", 0, 1, fault), true);
    shell_expect_same(plain, under("short", table, end, fault), true);
}

static void a_failing_disk_is_told(void **state)
{
    char command[420], fault[400];
    if (!can_preload()) skip();
    snprintf(command, sizeof command, "%s 2>&1", under("eio", table, end, fault));
    shell_expect(command, 1, "per_layer_token_embd.weight: cannot read row ");
    shell_expect(command, 1, ": Input/output error");
    snprintf(command, sizeof command, "%s 2>&1", under("end", table, end, fault));
    shell_expect(command, 1, ": the file is shorter than when it was opened");
}

/* Half of the rows are lost: the error comes whenever one of them is needed, a part of the answer may be there. */
static void a_disk_that_fails_later_is_told(void **state)
{
    char command[420], fault[400];
    if (!can_preload()) skip();
    snprintf(command, sizeof command, "%s 2>&1", under("eio", table + (end - table) / 2, end, fault));
    shell_expect(command, 1, ": Input/output error");
}

/* Weights lie before the table. */
static void a_disk_that_fails_under_weights_is_told(void **state)
{
    char plain[300], command[450], fault[400];
    if (!can_preload()) skip();
    snprintf(plain, sizeof plain, TEST_BUILD ASK "%s", model);
    snprintf(command, sizeof command, "%s --load read", under("short", 0, table, fault));
    shell_expect_same(plain, command, true);
    const unsigned long long at = table / 2 / 4096 * 4096;
    snprintf(command, sizeof command, "%s --load read 2>&1", under("eio", at, at + 1, fault));
    shell_expect(command, 1, "model.gguf: cannot read at offset ");
    shell_expect(command, 1, ": Input/output error");
    snprintf(command, sizeof command, "%s --load read 2>&1", under("end", at, table, fault));
    shell_expect(command, 1, "model.gguf: damaged: it ends at offset ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_reads_change_nothing),
        cmocka_unit_test(a_failing_disk_is_told),
        cmocka_unit_test(a_disk_that_fails_later_is_told),
        cmocka_unit_test(a_disk_that_fails_under_weights_is_told),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
