/* libFuzzer target of what a client puts into a prompt: JSON is judged as another library judges it and means the same
 * when it is written again; closing tags are escaped; schemas are one line; no bytes of a call, its result or a tool
 * make a special token. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/str.h"
#include "models/family.h"
#include "text/closing.h"
#include "text/json_text.h"
#include "text/tool_schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void require(int condition)
{
    if (!condition) abort();
}

static void require_same(const struct str *a, const struct str *b)
{
    require(a->n == b->n && memcmp(str_c(a), str_c(b), a->n) == 0);
}

static void check_written(struct json_text v, json_t *meaning)
{
    struct str official = {0}, minified = {0}, again = {0};
    json_text_official(&official, v);
    json_text_minified(&minified, v);
    require(!memchr(official.p, '\n', official.n));
    const struct json_text o = json_text_read(official.p, official.n), m = json_text_read(minified.p, minified.n);
    require(o.kind == v.kind && o.n == official.n && m.kind == v.kind && m.n == minified.n);
    json_text_official(&again, m);
    require_same(&again, &official);
    str_clear(&again);
    json_text_minified(&again, o);
    require_same(&again, &minified);
    if (meaning) {
        json_t *const read = json_loadb(official.p, official.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        require(read && json_equal(read, meaning));
        json_decref(read);
    }
    str_free(&official);
    str_free(&minified);
    str_free(&again);
}

static void check_json(const char *text, size_t n)
{
    const struct json_text v = json_text_read(text, n);
    /* behind a number the judge overlooks a zero byte, which is never JSON */
    const bool zero = n > 0 && memchr(text, '\0', n);
    require(!zero || v.kind == JSON_TEXT_NONE);
    json_t *const meaning = zero ? NULL : json_loadb(text, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    require(v.kind != JSON_TEXT_NONE || !meaning);
    if (v.kind != JSON_TEXT_NONE) check_written(v, meaning);
    if (v.kind == JSON_TEXT_OBJECT)
        for (int kind = TOOL_SCHEMA_FUNCTION; kind <= TOOL_SCHEMA_CUSTOM; kind++) {
            struct str line = {0};
            tool_schema(&line, v, (struct bpe_text){"n", kind == TOOL_SCHEMA_FUNCTION}, (enum tool_schema_kind)kind);
            require(json_text_read(line.p, line.n).kind == JSON_TEXT_OBJECT && !memchr(line.p, '\n', line.n));
            str_free(&line);
        }
    json_decref(meaning);
}

static void check_closing(struct bpe_text text, const char *closing, bool json)
{
    struct str escaped = {0};
    closing_escape(&escaped, text, closing, json);
    require(!memmem(str_c(&escaped), escaped.n, closing, strlen(closing)));
    str_free(&escaped);
}

/* The same bytes at every place of a conversation with one call; returns the number of special tokens. */
static size_t count_specials(const struct prompt_codec *codec, struct bpe_text bytes, struct bpe_text arguments)
{
    const struct chat_call call = {.id = bytes, .name = bytes, .arguments = arguments};
    const struct chat_message m[] = {
        {.role = CHAT_SYSTEM, .text = bytes},
        {.role = CHAT_USER, .text = bytes},
        {.role = CHAT_ASSISTANT, .text = bytes, .reasoning = bytes, .calls = &call, .n_calls = 1},
        {.role = CHAT_TOOL, .text = bytes, .call_id = bytes}};
    const struct chat_tool tool = {.name = bytes, .schema = bytes};
    const struct chat_options o = {.thinking = CHAT_THINK_HIGH, .tools = &tool, .n_tools = 1};
    struct prompt p = {0};
    require(codec->render(m, 4, &o, &p, NULL) == 0);
    size_t specials = 0;
    for (size_t i = 0; i < p.n; i++) specials += p.part[i].special != NULL;
    prompt_free(&p);
    return specials;
}

static void check_specials(struct bpe_text text)
{
    static const struct bpe_text none = {"", 0};
    const struct prompt_codec *const deepseek4 = family_prompt("deepseek4"), *const qwen38 = family_prompt("qwen38");
    require(count_specials(deepseek4, text, none) == count_specials(deepseek4, none, none));
    /* a tool whose loading is deferred takes its block with it */
    const bool deferred = *json_text_member(json_text_read(text.p, text.n), "defer_loading").p == 't';
    require(count_specials(qwen38, text, none) + (deferred ? 4 : 0) == count_specials(qwen38, none, none));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n > JSON_TEXT_DEPTH) return 0;
    char *const exact = calloc(n + (n == 0), 1);
    if (n > 0) memcpy(exact, data, n);
    const struct bpe_text text = {exact, n}, none = {"", 0};
    check_json(exact, n);
    check_closing(text, "</parameter>", false);
    check_closing(text, ">", true);
    check_specials(text);
    count_specials(family_prompt("deepseek4"), none, text);
    count_specials(family_prompt("qwen38"), none, text);
    free(exact);
    return 0;
}
