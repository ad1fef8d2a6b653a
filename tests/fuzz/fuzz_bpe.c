/* libFuzzer target of the encoder: the ids of any bytes give back these bytes, plain text never holds a special token,
 * and rendered chat encodes each of its spans as plain text does. */
#include <stdlib.h>
#include <string.h>
#include "text/bpe.h"
#include "../support/byte_vocabulary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char *const merges[] = {"t h", "th e", "Ġ the", "a a", "aa aa", "1 2", "12 3", "Ċ Ċ", "Ġ Ġ",
                                     "å ¥", "ä ½",  "ä½ ł",  "ð Ł", "ðŁ ĳ",  "à ¤", "< t",  "| D"};
static const char *const specials[] = {"<t>", "<t>x", "｜D｜", "</t>"};

static void require(int condition)
{
    if (!condition) abort();
}

static void check(const struct bpe *b, const char *text, size_t n, bool rendered)
{
    struct bpe_ids ids = {0}, span = {0};
    require((rendered ? bpe_encode_rendered : bpe_encode)(b, text, n, &ids, NULL) == 0);
    size_t at = 0, span_from = 0, id_from = 0;
    for (size_t i = 0; i <= ids.n; i++) {
        const bool special = i < ids.n && bpe_is_special(b, ids.p[i]);
        require(rendered || !special);
        if (rendered && (special || i == ids.n)) {
            span.n = 0;
            require(bpe_encode(b, text + span_from, at - span_from, &span, NULL) == 0);
            require(span.n == i - id_from);
            require(span.n == 0 || memcmp(span.p, ids.p + id_from, span.n * sizeof *span.p) == 0);
        }
        if (i == ids.n) break;
        const char *bytes;
        const size_t len = bpe_token_bytes(b, ids.p[i], &bytes);
        require(len > 0 && len <= n - at && memcmp(bytes, text + at, len) == 0);
        at += len;
        if (special) {
            span_from = at;
            id_from = i + 1;
        }
    }
    require(at == n);
    bpe_ids_free(&span);
    bpe_ids_free(&ids);
}

static void check_all(const struct bpe *b, const char *text, size_t n)
{
    enum { LONG = 5000 };
    static char repeated[LONG];
    check(b, text, n, false);
    check(b, text, n, true);
    if (n == 0 || n > LONG / 2) return;
    for (size_t i = 0; i < LONG; i++) repeated[i] = text[i % n]; /* words that come again are remembered */
    check(b, repeated, LONG, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct byte_vocabulary *vocabulary[PRETOKENIZER_COUNT];
    for (int pre = 0; pre < PRETOKENIZER_COUNT; pre++) {
        if (!vocabulary[pre])
            vocabulary[pre] = byte_vocabulary_split((enum pretokenizer)pre, merges, sizeof merges / sizeof *merges,
                                                    specials, sizeof specials / sizeof *specials);
        check_all(byte_vocabulary_bpe(vocabulary[pre]), (const char *)data, n);
    }
    return 0;
}
