/* The converter run as a program, the engine asked through ds4.h. */
#include "demo_model.h"
#include "base/mem.h"
#include "shell_run.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

void demo_model_convert(const char *options, char path[TEMP_PATH])
{
    char command[1024];
    temp_file(path);
    snprintf(command, sizeof command, TEST_BUILD "/ds4-gguf convert --overwrite %s models/demo -o %s 2>&1", options,
             path);
    shell_expect(command, 0, "wrote");
}

void demo_shell(const char *options, char model[TEMP_PATH], char folder[TEMP_PATH])
{
    char command[256];
    demo_model_convert("", model);
    temp_folder(folder);
    snprintf(command, sizeof command, TEST_BUILD "/ds4 -m %s %s", model, options);
    setenv("DS4", command, 1);
    setenv("GGUF", TEST_BUILD "/ds4-gguf", 1);
    setenv("MODEL", model, 1);
    setenv("FOLDER", folder, 1);
}

/* ---------------------------------------------------------------- asking */

static void check(int rc, const struct ds4_error *e)
{
    if (rc < 0) fail_msg("%s", e->message);
}

static void errors_only(void *arg, int level, const char *subject, const char *text)
{
    (void)arg;
    if (level == 0) print_message("%s: %s\n", subject, text);
}

ds4_engine *demo_engine_open(const char *path, int ctx)
{
    struct ds4_error e = {0};
    ds4_engine *g = NULL;
    const struct ds4_options o = {
        .model_paths = &path, .n_model_paths = 1, .threads = 2, .ctx = ctx, .log = errors_only};
    check(ds4_engine_open(&o, &g, &e), &e);
    return g;
}

ds4_session *demo_session(ds4_engine *g, int ctx)
{
    struct ds4_error e = {0};
    ds4_session *s = NULL;
    check(ds4_session_create(g, ctx, &s, &e), &e);
    return s;
}

void demo_tokenize(const ds4_engine *g, const char *text, struct ds4_tokens *out)
{
    struct ds4_error e = {0};
    check(ds4_tokenize(g, text, strlen(text), true, out, &e), &e);
}

void demo_sync(ds4_session *s, const struct ds4_tokens *t, size_t n)
{
    struct ds4_error e = {0};
    check(ds4_session_sync(s, t->p, (int)n, NULL, NULL, NULL, &e), &e);
}

/* ---------------------------------------------------------------- golden texts */

FILE *demo_text_open(const char *path)
{
    FILE *f = fopen(path, "r");
    if (!f) fail_msg("cannot open %s", path);
    return f;
}

bool demo_text_word(FILE *f, char word[16])
{
    while (fscanf(f, "%15s", word) == 1) {
        if (word[0] != '#') return true;
        for (int c = fgetc(f); c != '\n' && c != EOF;) c = fgetc(f);
    }
    return false;
}

char *demo_text_bytes(FILE *f, size_t n)
{
    char *text = mem_alloc(n + 1);
    if (fgetc(f) != '\n' || fread(text, 1, n, f) != n || fgetc(f) != '\n') fail_msg("%zu bytes are not there", n);
    text[n] = 0;
    return text;
}
