#include "serve/http_parse.h"

#include "base/mem.h"

#include <string.h>
#include <strings.h>

enum {
    METHOD_MAX = 32,
    TARGET_MAX = 8 * 1024,
    SIZE_LINE_MAX = 256,  /* a chunk's size with its extensions, which mean nothing here */
    SIZE_DIGITS_MAX = 16, /* leading zeros included */
    TRAILERS_MAX = 16 * 1024
};

static enum http_read bad(struct http_head *h, int status, const char *why)
{
    h->status = status;
    h->why = why;
    return HTTP_READ_BAD;
}

static bool is_token(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* A byte that may stand in a head: visible, blank, tab, or beyond ASCII. */
static bool is_text(unsigned char c)
{
    return (c >= 0x20 && c != 0x7f) || c == '\t';
}

bool http_digits(const char *text, uint64_t *value)
{
    uint64_t v = 0;
    if (!*text) return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9') return false;
        uint64_t d = (uint64_t)(*text - '0');
        v = v > (UINT64_MAX - d) / 10 ? UINT64_MAX : v * 10 + d;
    }
    *value = v;
    return true;
}

/* ---- the request line ---- */

static enum http_read decode_path(struct http_head *h, const char *p)
{
    for (; *p && *p != '?'; p++) {
        char c = *p;
        if (c == '%') {
            int hi = hex_digit(p[1]), lo = hi < 0 ? -1 : hex_digit(p[2]);
            if (lo < 0) return bad(h, 400, "The path has a percent sign without two hexadecimal digits.");
            c = (char)(16 * hi + lo);
            p += 2;
        }
        if ((unsigned char)c < 0x20 || c == 0x7f) return bad(h, 400, "The path has a control character.");
        str_add(&h->path, &c, 1);
    }
    return HTTP_READ_MORE;
}

/* "http://host/path": the host of the target stands for the Host field. It is moved to the front to get room for its
 * zero. */
static enum http_read read_absolute(struct http_head *h, char *target)
{
    const size_t scheme = strlen("http://"), n = strcspn(target + scheme, "/?");
    char *rest = target + scheme + n;
    if (!n) return bad(h, 400, "The target of the request names no host.");
    memmove(target, target + scheme, n);
    h->host = h->target;
    if (*rest != '/') str_puts(&h->path, "/");
    target[n] = 0;
    return decode_path(h, rest);
}

/* What is asked for: "/path", "http://host/path", "*" for OPTIONS; "host:port" of CONNECT is refused. */
static enum http_read read_target(struct http_head *h)
{
    char *target = h->bytes.p + h->target;
    if (*target == '/') return decode_path(h, target);
    if (!strncasecmp(target, "http://", strlen("http://"))) return read_absolute(h, target);
    if (strcmp(target, "*") || strcmp(http_head_text(h, h->method), "OPTIONS"))
        return bad(h, 400, "The target of the request is neither a path nor an http address.");
    str_puts(&h->path, "*");
    return HTTP_READ_MORE;
}

static enum http_read read_version(struct http_head *h, const char *v)
{
    if (strncmp(v, "HTTP/", 5) || v[5] < '0' || v[5] > '9' || v[6] != '.' || v[7] < '0' || v[7] > '9' || v[8])
        return bad(h, 400, "The request line does not end in an HTTP version.");
    if (v[5] != '1') return bad(h, 505, "Only HTTP/1.1 and HTTP/1.0 are spoken here.");
    h->minor = v[7] == '0' ? 0 : 1;
    return HTTP_READ_MORE;
}

/* method SP target SP version, in place; from .. end is the line without CRLF. */
static enum http_read read_request_line(struct http_head *h, size_t from, size_t end)
{
    char *p = h->bytes.p;
    size_t i = from;
    while (i < end && is_token(p[i])) i++;
    if (i == from || i - from > METHOD_MAX || i == end || p[i] != ' ')
        return bad(h, 400, "The request does not begin with a method and a blank; this port speaks plain HTTP/1.1.");
    p[i++] = 0;
    h->method = from;
    h->target = i;
    while (i < end && p[i] > ' ' && p[i] < 0x7f && p[i] != '#') i++;
    if (i == end) return bad(h, 400, "The request line has no HTTP version; HTTP/0.9 is not spoken here.");
    if (i == h->target || p[i] != ' ')
        return bad(h, 400, "The target of the request has characters that it must not have.");
    if (i - h->target > TARGET_MAX) return bad(h, 414, "The target of the request is longer than 8 KiB.");
    p[i++] = 0;
    h->have_line = true;
    if (read_version(h, p + i) == HTTP_READ_BAD) return HTTP_READ_BAD;
    return read_target(h);
}

/* ---- header fields ---- */

static enum http_read add_field(struct http_head *h, size_t name, size_t value, int most)
{
    if (h->n_field >= (size_t)most) return bad(h, 431, "The request has too many header fields.");
    if (h->n_field == h->cap_field) {
        h->cap_field = h->cap_field ? 2 * h->cap_field : 32;
        h->field = mem_grow(h->field, h->cap_field * sizeof *h->field);
    }
    h->field[h->n_field].name = name;
    h->field[h->n_field++].value = value;
    return HTTP_READ_MORE;
}

static enum http_read read_field(struct http_head *h, size_t from, size_t end, int most)
{
    char *p = h->bytes.p;
    if (p[from] == ' ' || p[from] == '\t')
        return bad(h, 400, "A header field is continued on a second line, which HTTP/1.1 no longer has.");
    size_t i = from;
    while (i < end && is_token(p[i])) i++;
    if (i == end) return bad(h, 400, "A header field has no colon.");
    if (i == from || p[i] != ':')
        return bad(h, 400, "The name of a header field has a character that it must not have.");
    p[i++] = 0;
    while (i < end && (p[i] == ' ' || p[i] == '\t')) i++;
    while (end > i && (p[end - 1] == ' ' || p[end - 1] == '\t')) end--;
    p[end] = 0;
    return add_field(h, from, i, most);
}

const char *http_head_value(const struct http_head *h, const char *name)
{
    for (size_t i = 0; i < h->n_field; i++)
        if (!strcasecmp(http_head_text(h, h->field[i].name), name)) return http_head_text(h, h->field[i].value);
    return NULL;
}

bool http_head_lists(const struct http_head *h, const char *name, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i < h->n_field; i++) {
        if (strcasecmp(http_head_text(h, h->field[i].name), name)) continue;
        for (const char *p = http_head_text(h, h->field[i].value); *p;) {
            p += strspn(p, " \t,");
            size_t k = strcspn(p, " \t,");
            if (k == n && !strncasecmp(p, word, n)) return true;
            p += k;
        }
    }
    return false;
}

/* ---- what a complete head says ---- */

/* Two of these would let two readers take different ones. */
static enum http_read check_single(struct http_head *h)
{
    static const char *const single[] = {
        "content-length", "transfer-encoding", "host",   "content-type", "content-encoding",
        "authorization",  "x-api-key",         "origin", "expect"};
    for (size_t s = 0; s < sizeof single / sizeof *single; s++) {
        int n = 0;
        for (size_t i = 0; i < h->n_field; i++) n += !strcasecmp(http_head_text(h, h->field[i].name), single[s]);
        if (n > 1)
            return bad(h, 400, "A header field that has one value comes twice (Content-Length, Host or the like).");
    }
    return HTTP_READ_MORE;
}

static enum http_read read_framing(struct http_head *h)
{
    const char *length = http_head_value(h, "content-length"), *coding = http_head_value(h, "transfer-encoding");
    const char *expect = http_head_value(h, "expect");
    if (coding && length) return bad(h, 400, "Content-Length and Transfer-Encoding exclude each other.");
    if (coding && h->minor == 0) return bad(h, 400, "HTTP/1.0 has no Transfer-Encoding.");
    if (coding && strcasecmp(coding, "chunked"))
        return bad(h, 501, "The only Transfer-Encoding known here is chunked.");
    if (length && !http_digits(length, &h->length)) return bad(h, 400, "Content-Length is not a number.");
    if (coding)
        h->framing = HTTP_BODY_CHUNKED;
    else if (length && h->length)
        h->framing = HTTP_BODY_LENGTH;
    if (expect && strcasecmp(expect, "100-continue"))
        return bad(h, 417, "The only expectation known here is 100-continue.");
    h->expect_continue = expect && h->minor == 1 && h->framing != HTTP_BODY_NONE;
    h->keep_alive =
        !http_head_lists(h, "connection", "close") && (h->minor == 1 || http_head_lists(h, "connection", "keep-alive"));
    return HTTP_READ_MORE;
}

/* Whether text is a host with an optional port: a name, an IPv4 address, or [an IPv6 address]. */
static bool is_authority(const char *t)
{
    if (*t == '[') {
        t += 1 + strspn(t + 1, "0123456789abcdefABCDEF:.");
        if (*t++ != ']') return false;
    } else {
        t += strspn(t, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~");
    }
    if (*t == ':') t += 1 + strspn(t + 1, "0123456789");
    return !*t;
}

static enum http_read read_host(struct http_head *h)
{
    const char *host = http_head_value(h, "host");
    if (h->minor == 1 && !host) return bad(h, 400, "HTTP/1.1 wants a Host field.");
    if (host && !is_authority(host)) return bad(h, 400, "The Host field holds no host.");
    if (h->host && !is_authority(http_head_text(h, h->host)))
        return bad(h, 400, "The target of the request holds no host.");
    if (host && !h->host) h->host = (size_t)(host - h->bytes.p);
    return HTTP_READ_MORE;
}

static enum http_read finish(struct http_head *h)
{
    if (check_single(h) == HTTP_READ_BAD || read_framing(h) == HTTP_READ_BAD || read_host(h) == HTTP_READ_BAD)
        return HTTP_READ_BAD;
    return HTTP_READ_DONE;
}

/* ---- bytes to lines ---- */

static enum http_read read_line(struct http_head *h, const struct http_limits *limits)
{
    size_t from = h->line, end = h->bytes.n - 2;
    h->line = h->bytes.n;
    h->bytes.p[end] = 0;
    if (!h->have_line) {
        if (end != from) return read_request_line(h, from, end);
        /* One empty line in front is left over by some old clients behind a body. */
        if (h->blank_line) return bad(h, 400, "The request begins with empty lines.");
        h->blank_line = true;
        return HTTP_READ_MORE;
    }
    return end == from ? finish(h) : read_field(h, from, end, limits->header_fields);
}

/* What a head that is cut off at its limit was too long in. */
static enum http_read too_long(struct http_head *h)
{
    if (!h->have_line) return bad(h, 414, "The request line is too long.");
    return bad(h, 431, "The header fields of the request are too long.");
}

enum http_read http_head_feed(struct http_head *h, const char *p, size_t n, const struct http_limits *limits,
                              size_t *used)
{
    size_t i = 0, copied = 0;
    enum http_read r = HTTP_READ_MORE;
    size_t most = limits->head_bytes;
    while (r == HTTP_READ_MORE && i < n) {
        size_t line_most = h->have_line ? most : METHOD_MAX + TARGET_MAX + 32;
        unsigned char c = (unsigned char)p[i], before = i            ? (unsigned char)p[i - 1]
                                                        : h->bytes.n ? (unsigned char)h->bytes.p[h->bytes.n - 1]
                                                                     : 0;
        bool end = c == '\n' && before == '\r';
        if (before == '\r' && !end)
            r = bad(h, 400, "A carriage return stands alone.");
        else if (c == '\n' && !end)
            r = bad(h, 400, "A line of the head ends without a carriage return.");
        else if (c != '\r' && c != '\n' && !is_text(c))
            r = bad(h, 400, "The head has a control character; this port speaks plain HTTP/1.1.");
        else if (h->bytes.n + (i - copied) >= (most < line_most ? most : line_most))
            r = too_long(h);
        i++;
        if (!end || r != HTTP_READ_MORE) continue;
        str_add(&h->bytes, p + copied, i - copied);
        copied = i;
        r = read_line(h, limits);
    }
    if (r == HTTP_READ_MORE) str_add(&h->bytes, p + copied, i - copied);
    *used = i;
    return r;
}

void http_head_clear(struct http_head *h)
{
    /* A connection that once had a large head does not keep the memory for it while it is idle. */
    if (h->bytes.cap > 8 * 1024) http_head_free(h);
    struct http_head kept = {.bytes = h->bytes, .field = h->field, .cap_field = h->cap_field, .path = h->path};
    str_clear(&kept.bytes);
    str_clear(&kept.path);
    *h = kept;
}

void http_head_free(struct http_head *h)
{
    str_free(&h->bytes);
    str_free(&h->path);
    mem_free(h->field);
    memset(h, 0, sizeof *h);
}

/* ---- chunks ---- */

enum {
    CHUNK_SIZE,
    CHUNK_EXTENSION,
    CHUNK_SIZE_LF,
    CHUNK_DATA,
    CHUNK_DATA_CR,
    CHUNK_DATA_LF,
    TRAILER_START,
    TRAILER_NAME,
    TRAILER_VALUE,
    TRAILER_LF,
    CHUNKS_LF
};

static bool chunk_size_byte(struct http_chunks *c, char b)
{
    int d = hex_digit(b);
    c->line++;
    if (d >= 0) {
        c->left = c->left << 4 | (uint64_t)d;
        return ++c->digits <= SIZE_DIGITS_MAX && c->left <= INT64_MAX;
    }
    if (!c->digits) return false;
    c->state = b == '\r' ? CHUNK_SIZE_LF : CHUNK_EXTENSION;
    return b == '\r' || b == ';';
}

/* One byte outside data; false if it must not stand there. */
static bool chunk_byte(struct http_chunks *c, char b)
{
    switch (c->state) {
    case CHUNK_SIZE:
        return chunk_size_byte(c, b);
    case CHUNK_EXTENSION:
        if (b == '\r') c->state = CHUNK_SIZE_LF;
        return ++c->line <= SIZE_LINE_MAX && (b == '\r' || is_text((unsigned char)b));
    case CHUNK_SIZE_LF:
        c->state = c->left ? CHUNK_DATA : TRAILER_START;
        return b == '\n';
    case CHUNK_DATA_CR:
        c->state = CHUNK_DATA_LF;
        return b == '\r';
    case CHUNK_DATA_LF:
        c->state = CHUNK_SIZE;
        c->digits = 0;
        c->line = 0;
        return b == '\n';
    case TRAILER_START:
        c->state = b == '\r' ? CHUNKS_LF : TRAILER_NAME;
        return b == '\r' || is_token(b);
    case TRAILER_NAME:
        if (b == ':') c->state = TRAILER_VALUE;
        return ++c->extra <= TRAILERS_MAX && (b == ':' || is_token(b));
    case TRAILER_VALUE:
        if (b == '\r') c->state = TRAILER_LF;
        return ++c->extra <= TRAILERS_MAX && (b == '\r' || is_text((unsigned char)b));
    case TRAILER_LF:
        c->state = TRAILER_START;
        return b == '\n';
    default:
        return b == '\n'; /* CHUNKS_LF */
    }
}

uint64_t http_chunks_promised(const struct http_chunks *c)
{
    return c->state == CHUNK_DATA ? c->left : 0;
}

enum http_read http_chunks_next(struct http_chunks *c, const char *p, size_t n, size_t *used, const char **data,
                                size_t *n_data)
{
    for (size_t i = 0; i < n; i++) {
        if (c->state == CHUNK_DATA) {
            size_t k = n - i < c->left ? n - i : (size_t)c->left;
            *data = p + i;
            *n_data = k;
            *used = i + k;
            c->left -= k;
            if (!c->left) c->state = CHUNK_DATA_CR;
            return HTTP_READ_DATA;
        }
        bool last = c->state == CHUNKS_LF;
        if (!chunk_byte(c, p[i])) {
            c->why = c->state >= TRAILER_START ? "A trailer field behind the chunked body is malformed."
                                               : "The chunked body is malformed.";
            *used = i + 1;
            return HTTP_READ_BAD;
        }
        if (last) {
            *used = i + 1;
            return HTTP_READ_DONE;
        }
    }
    *used = n;
    return HTTP_READ_MORE;
}
