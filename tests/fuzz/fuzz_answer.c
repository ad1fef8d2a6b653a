/* libFuzzer target of the answer parser. The first byte chooses family, thinking and the like, the second one how the
 * rest, which is what a model says, is cut. answer_run demands what must hold for every answer; here also that the cut
 * does not matter, and stop strings are fed on the way. */
#include <stdlib.h>
#include <string.h>
#include "text/stop_strings.h"
#include "../support/answer_run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void require(int condition)
{
    if (!condition) abort();
}

/* The second run in pieces of 1 to 8 bytes, after the bits of `how`. */
static void run_cut(struct answer_run *r, const struct answer_options *o, const char *text, size_t n,
                    enum answer_cause cause, uint8_t how)
{
    size_t *const ends = malloc((n + 1) * sizeof *ends);
    require(ends != NULL);
    size_t count = 0, at = 0;
    for (size_t k = 0; at < n; k++) {
        at += 1 + (((size_t)how * (k + 1)) >> 3) % 8;
        ends[count++] = at < n ? at : n;
    }
    answer_run(r, o, text, ends, count, cause);
    free(ends);
}

static void stop_strings_hold(const char *text, size_t n, uint8_t how)
{
    static const char *const stops[] = {"</", "<\xef\xbd\x9c", "\n\n", "a"};
    struct str whole = {0}, bytes = {0};
    struct stop_strings *s = stop_strings_create(stops, 1 + how % 4);
    stop_strings_feed(s, text, n, &whole);
    const int first = stop_strings_end(s, &whole);
    stop_strings_free(s);
    s = stop_strings_create(stops, 1 + how % 4);
    for (size_t i = 0; i < n; i++) stop_strings_feed(s, text + i, 1, &bytes);
    require(stop_strings_end(s, &bytes) == first);
    stop_strings_free(s);
    require(whole.n == bytes.n && memcmp(str_c(&whole), str_c(&bytes), whole.n) == 0);
    require(first >= 0 ? whole.n < n : whole.n == n);
    str_free(&whole);
    str_free(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 2) return 0;
    const struct answer_options o = {.syntax = data[0] & 1 ? &answer_xml : &answer_dsml,
                                     .thinking = data[0] & 2,
                                     .one_call = data[0] & 4,
                                     .tools = answer_tools,
                                     .n_tools = data[0] & 8 ? 0 : answer_n_tools};
    const enum answer_cause cause = (enum answer_cause)((data[0] >> 4) % 3);
    const char *const text = (const char *)data + 2;
    struct answer_run whole = {0}, cut = {0};
    answer_run_whole(&whole, &o, text, n - 2, cause);
    run_cut(&cut, &o, text, n - 2, cause, data[1]);
    require(whole.line.n == cut.line.n && memcmp(str_c(&whole.line), str_c(&cut.line), cut.line.n) == 0);
    require(whole.block.n == cut.block.n && memcmp(str_c(&whole.block), str_c(&cut.block), cut.block.n) == 0);
    answer_run_free(&whole);
    answer_run_free(&cut);
    stop_strings_hold(text, n - 2, data[1]);
    return 0;
}
