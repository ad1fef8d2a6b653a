/* libFuzzer target of the HTTP reader and rules. The first byte says how the rest is cut into pieces; what is read must
 * not depend on that. What is accepted has no byte that another reader could take for something else. */
#include <stdlib.h>
#include <string.h>
#include "serve/http_parse.h"
#include "serve/http_rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void require(int condition)
{
    if (!condition) abort();
}

static void no_handler(void *arg, struct http_reply *r, struct http_request *q)
{
}

static const struct http_limits limits = {.head_bytes = 4096, .header_fields = 20};
static const struct http_route routes[] = {
    {"GET", "/a", 0, no_handler}, {"POST", "/a", HTTP_JSON, no_handler}, {"GET", "/b/", HTTP_OPEN, no_handler}};

struct result {
    enum http_read head, body;
    size_t used, n_field, n_body, path_n;
    uint64_t sum;
    int status, verdict, key;
};

static void add_sum(struct result *r, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) r->sum = (r->sum ^ (unsigned char)p[i]) * 1099511628211u;
}

static void check_head(const struct http_head *h)
{
    for (size_t i = 0; i < h->n_field; i++) {
        const char *name = http_head_text(h, h->field[i].name), *value = http_head_text(h, h->field[i].value);
        require(*name && !name[strcspn(name, "\r\n\t :")] && !value[strcspn(value, "\r\n")]);
        require(!*value || (*value != ' ' && value[strlen(value) - 1] != ' '));
    }
    require(h->path.n && strlen(h->path.p) == h->path.n && (*h->path.p == '/' || !strcmp(h->path.p, "*")));
    require(h->minor == 0 || h->host);
    require(h->framing != HTTP_BODY_CHUNKED || !http_head_value(h, "content-length"));
}

static void judge(const struct http_head *h, struct result *r)
{
    static char key[] = "key", origin[] = "https://app", *keys[] = {key}, *origins[] = {origin};
    const struct http_rules rules = {
        .keys = keys, .n_keys = 1, .origins = origins, .n_origins = 1, .routes = routes, .n_routes = 3};
    struct http_verdict v = {0};
    http_rules_judge(&rules, h, true, &v);
    r->verdict = v.status;
    r->key = v.key;
    require(v.status ? v.status == 204 || v.why : v.route != NULL);
    add_sum(r, v.extra.p, v.extra.n);
    add_sum(r, v.cors.p, v.cors.n);
    http_verdict_clear(&v);
}

/* Reads one request in pieces of step bytes. */
static struct result read_request(const char *p, size_t n, size_t step)
{
    struct http_head h = {0};
    struct http_chunks c = {0};
    struct result r = {.head = HTTP_READ_MORE, .body = HTTP_READ_MORE};
    while (r.used < n && r.head == HTTP_READ_MORE) {
        size_t used, k = n - r.used < step ? n - r.used : step;
        r.head = http_head_feed(&h, p + r.used, k, &limits, &used);
        require(used <= k && used);
        r.used += used;
    }
    if (r.head == HTTP_READ_DONE) {
        check_head(&h);
        judge(&h, &r);
        add_sum(&r, h.path.p, h.path.n);
        r.path_n = h.path.n;
    }
    while (r.head == HTTP_READ_DONE && h.framing == HTTP_BODY_CHUNKED && r.used < n &&
           (r.body == HTTP_READ_MORE || r.body == HTTP_READ_DATA)) {
        size_t used, n_data, k = n - r.used < step ? n - r.used : step;
        const char *data;
        r.body = http_chunks_next(&c, p + r.used, k, &used, &data, &n_data);
        require(used <= k && used);
        if (r.body == HTTP_READ_DATA) {
            require(data >= p + r.used && data + n_data == p + r.used + used);
            add_sum(&r, data, n_data);
            r.n_body += n_data;
        }
        r.used += used;
    }
    if (r.body == HTTP_READ_DATA) r.body = HTTP_READ_MORE;
    r.status = h.status;
    r.n_field = h.n_field;
    require(r.head != HTTP_READ_BAD || (h.status >= 400 && h.why));
    http_head_free(&h);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!n) return 0;
    const char *p = (const char *)data + 1;
    const struct result whole = read_request(p, n - 1, n), cut = read_request(p, n - 1, 1 + data[0] % 16);
    require(whole.head == cut.head && whole.body == cut.body && whole.used == cut.used && whole.n_field == cut.n_field);
    require(whole.n_body == cut.n_body && whole.path_n == cut.path_n && whole.sum == cut.sum &&
            whole.status == cut.status);
    require(whole.verdict == cut.verdict && whole.key == cut.key);
    return 0;
}
