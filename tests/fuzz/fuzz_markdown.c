/* libFuzzer target of the Markdown colours: nothing but SGR sequences is added to any bytes, no colour is left on, and
 * it does not matter how the text was cut. Bytes of ESC are left out of the text: they are those that are taken away.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "text/markdown.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void require(int condition)
{
    if (!condition) abort();
}

/* Takes away "ESC [ digits ; m"; true if the last of them, if any, switched everything off. */
static bool strip(struct str *s)
{
    size_t n = 0;
    bool off = true;
    for (size_t i = 0; i < s->n; i++) {
        if (s->p[i] != '\033') {
            s->p[n++] = s->p[i];
            continue;
        }
        off = !strncmp(s->p + i, "\033[0m", 4);
        require(s->p[++i] == '[');
        while (s->p[++i] != 'm') require(s->p[i] && strchr("0123456789;", s->p[i]));
    }
    s->n = n;
    return off;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct str text = {0}, once = {0}, cut = {0};
    struct markdown m = {0};
    for (size_t i = 0; i < n; i++)
        if (data[i] != 033) str_add(&text, data + i, 1);
    markdown_feed(&m, str_c(&text), text.n, &once);
    markdown_end(&m, &once);
    for (size_t i = 0; i < text.n; i += (size_t)data[i] % 5 + 1) {
        const size_t step = (size_t)data[i] % 5 + 1;
        markdown_feed(&m, text.p + i, step < text.n - i ? step : text.n - i, &cut);
    }
    markdown_end(&m, &cut);
    require(cut.n == once.n && (!cut.n || !memcmp(cut.p, once.p, cut.n)));
    require(strip(&once));
    require(once.n == text.n && (!text.n || !memcmp(once.p, text.p, text.n)));
    str_free(&text);
    str_free(&once);
    str_free(&cut);
    return 0;
}
