/* The APIs: requests in, answers out. Both sides are words of a protocol only: they know neither HTTP nor a model. */
#ifndef SERVE_API_H
#define SERVE_API_H
#include "serve/request.h"

/* ---- requests ---- */

enum { API_MAX_VALUES = 1 << 20, API_MODEL_BYTES = 1024 };
/* Reads a request's body, which it takes over (mem_free). 0 and the request, or negative and *why. A body may hold
 * API_MAX_VALUES values, the name of a model API_MODEL_BYTES. */
int api_read(enum api api, char *body, size_t n, struct request **out, struct api_error *why);

/* ---- answers ---- */

/* Writes one answer: with r->stream events as they come, otherwise one JSON body at the end. */
struct encoder;
/* The request must outlive it. model: what is called so if the request does not say. */
struct encoder *encoder_new(const struct request *r, const char *model);
void encoder_free(struct encoder *e);
/* Each appends what goes to the client now, possibly nothing. */
void encoder_started(struct encoder *e, const struct usage *usage, struct str *out);
void encoder_alive(struct encoder *e, struct str *out);
void encoder_event(struct encoder *e, const struct event *event, struct str *out);
void encoder_end(struct encoder *e, const struct answer_result *result, struct str *out);
/* Of a stream that has begun; other errors are api_error_body's. */
void encoder_error(struct encoder *e, const struct api_error *why, struct str *out);

/* The body of an error answer in the form of the API that the path belongs to. */
void api_error_body(const char *path, const struct api_error *why, struct str *out);

#endif
