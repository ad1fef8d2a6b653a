/* Reads HTTP/1.1 requests: heads and chunked bodies, byte-fed, without I/O. What two readers could understand
 * differently is refused rather than repaired (RFC 9112 allows both): line ends other than CRLF, control characters,
 * folded lines, blanks around a name, two values for what has one, lengths that are not plain digits, Content-Length
 * beside Transfer-Encoding. */
#ifndef SERVE_HTTP_PARSE_H
#define SERVE_HTTP_PARSE_H
#include "base/str.h"
#include "serve/http.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum http_read { HTTP_READ_MORE, HTTP_READ_DATA, HTTP_READ_DONE, HTTP_READ_BAD };

enum http_framing { HTTP_BODY_NONE, HTTP_BODY_LENGTH, HTTP_BODY_CHUNKED };

/* Zero-initialised = nothing read yet. Offsets point into bytes and end there with a zero. */
struct http_head {
    struct str bytes; /* the head as it came; separators overwritten with zeros */
    size_t line;      /* where the line that is being read begins */
    struct http_field {
        size_t name, value;
    } * field;
    size_t n_field, cap_field;
    size_t method, target;
    bool have_line; /* the request line was read: method and target hold */
    bool blank_line;
    int minor;       /* HTTP/1.minor: 0 or 1 */
    struct str path; /* decoded, without query; "*" for OPTIONS; known as soon as the request line is */
    /* after HTTP_READ_DONE */
    enum http_framing framing;
    uint64_t length; /* with HTTP_BODY_LENGTH; UINT64_MAX for everything that does not fit */
    bool keep_alive, expect_continue;
    size_t host; /* authority the request is for, from the target or the Host field; an offset, or 0 */
    /* after HTTP_READ_BAD */
    int status;
    const char *why; /* one sentence, constant */
};

/* Takes bytes up to the end of the head: *used of n. DONE, MORE, or BAD with status and why. limits: all filled in. */
enum http_read http_head_feed(struct http_head *h, const char *p, size_t n, const struct http_limits *limits,
                              size_t *used);
void http_head_clear(struct http_head *h); /* ready for the next head; memory kept unless it is much */
void http_head_free(struct http_head *h);
/* Value of the first field of this name, or NULL. */
const char *http_head_value(const struct http_head *h, const char *name);
/* Whether a field that is a list of words holds this one (in any case). */
bool http_head_lists(const struct http_head *h, const char *name, const char *word);
static inline const char *http_head_text(const struct http_head *h, size_t offset)
{
    return h->bytes.p + offset;
}

/* Zero-initialised = at the start of a chunked body. */
struct http_chunks {
    int state;
    int digits;
    uint64_t left;      /* of the chunk that is being read */
    size_t line, extra; /* bytes of this size line; of all trailer fields */
    const char *why;    /* after BAD (400) */
};

/* Takes the next piece: *used bytes of p[0 .. n). DATA: data[0 .. n_data) are bytes of the body; call again for the
 * rest. DONE: the body is complete, trailer fields were read and dropped. */
enum http_read http_chunks_next(struct http_chunks *c, const char *p, size_t n, size_t *used, const char **data,
                                size_t *n_data);
/* Bytes that the chunk in hand still promises; 0 while its size is being read. */
uint64_t http_chunks_promised(const struct http_chunks *c);

/* Digits of a Content-Length: false if there is anything but digits; saturates at UINT64_MAX. */
bool http_digits(const char *text, uint64_t *value);

#endif
