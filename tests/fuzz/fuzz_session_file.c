/* Fuzz target: session files, as they come and with checksums, size and model put right, so that everything behind
 * those checks is reached too. A refusal says why and changes nothing; what is taken can be gone on with. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif
#include "../support/synth_model.h"
#include "../support/temp_files.h"
#include "base/checksum.h"
#include "base/file.h"
#include "base/mem.h"
#include "ds4.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* The fields that are put right, as docs/sessions.md has them. */
enum { CTX = 64, HEADER = 112, AT_BYTES = 24, AT_MODEL = 32, AT_SUM = 104 };

static const int32_t known[] = {3, 1, 4};
static ds4_engine *engine;
static ds4_session *session; /* of the known tokens */
static void *three;          /* its snapshot */
static size_t n_three;
static char path[TEMP_PATH];
static uint64_t identity;

static void require(int condition)
{
    if (!condition) abort();
}

static void no_log(void *arg, int level, const char *subject, const char *text)
{
}

static void write_input(const uint8_t *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    require(f && fwrite(data, 1, n, f) == n && fclose(f) == 0);
}

static void begin(void)
{
    char model[TEMP_PATH], *saved;
    size_t n;
    const struct synth_shape shape = synth_tiny();
    const char *const models[] = {model};
    const struct ds4_options o = {.model_paths = models, .n_model_paths = 1, .threads = 1, .ctx = CTX, .log = no_log};
    temp_file(model);
    temp_file(path);
    require(!synth_deepseek4(model, &shape, NULL));
    require(!ds4_engine_open(&o, &engine, NULL));
    require(!ds4_session_create(engine, CTX, &session, NULL));
    require(!ds4_session_sync(session, known, 3, NULL, NULL, NULL, NULL) && !ds4_session_save(session, path, NULL));
    require(!ds4_session_snapshot(session, &three, &n_three, NULL));
    require(!file_read(path, 1 << 20, &saved, &n, NULL));
    memcpy(&identity, saved + AT_MODEL, sizeof identity);
    mem_free(saved);
#ifdef __linux__ /* in memory: ten times as many inputs */
    const int fd = memfd_create("input", 0);
    if (fd >= 0) snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
#endif
}

/* The file that there is now, into a session of three tokens, which a refusal leaves alone. */
static void load(void)
{
    struct ds4_error e = {0};
    void *snapshot;
    size_t n;
    if (ds4_session_load(session, path, &e)) {
        require(e.code < 0 && strstr(e.message, path));
        require(ds4_session_length(session) == 3 && !memcmp(ds4_session_tokens(session), known, sizeof known));
        return;
    }
    if (ds4_session_length(session) < CTX) {
        require(!ds4_session_submit(session, known, 1, NULL));
        while (ds4_engine_step(engine, NULL) > 0) {
        }
        require(ds4_session_collect(session, NULL, NULL) == DS4_DONE);
    }
    require(!ds4_session_snapshot(session, &snapshot, &n, NULL) && !ds4_session_restore(session, snapshot, n, NULL));
    ds4_free(snapshot);
    require(!ds4_session_restore(session, three, n_three, NULL));
}

static void put_sum(uint8_t *at, const uint8_t *data, size_t n)
{
    struct checksum c = {0};
    checksum_add(&c, data, n);
    const uint64_t sum = checksum_value(&c);
    memcpy(at, &sum, sizeof sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!engine) begin();
    write_input(data, n);
    load();
    if (n < HEADER + 8) return 0;
    uint8_t *right = mem_alloc(n);
    const uint64_t bytes = n;
    memcpy(right, data, n);
    memcpy(right + AT_BYTES, &bytes, sizeof bytes);
    memcpy(right + AT_MODEL, &identity, sizeof identity);
    put_sum(right + AT_SUM, right, AT_SUM);
    put_sum(right + n - 8, right, n - 8);
    write_input(right, n);
    load();
    mem_free(right);
    return 0;
}
