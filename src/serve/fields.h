/* Reading the fields of a JSON object as an API defines them: null is the same as absent, a wrong type or range is an
 * error that names the field. The first error sticks, so a reader asks for all fields and looks once. */
#ifndef SERVE_FIELDS_H
#define SERVE_FIELDS_H
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "serve/events.h"

struct fields {
    json_t *object;
    const char *path;      /* in front of names in messages: "", "reasoning.", "messages[3]." */
    struct api_error *why; /* status 0: no error so far */
};

/* A member that is there and not null, else NULL. */
json_t *field(const struct fields *f, const char *name);
/* Sets a 400 for path + name, unless there is an error already; returns false. */
bool field_wrong(const struct fields *f, const char *name, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
bool fields_good(const struct fields *f);

bool field_bool(const struct fields *f, const char *name, bool absent);
double field_number(const struct fields *f, const char *name, double low, double high, double absent);
/* Whole numbers; beyond high they are high, below low an error. 1.0 is one. low INT64_MIN: all of them are. */
int64_t field_integer(const struct fields *f, const char *name, int64_t low, int64_t high, int64_t absent);
const char *field_string(const struct fields *f, const char *name, const char *absent);
json_t *field_array(const struct fields *f, const char *name);
json_t *field_object(const struct fields *f, const char *name);

#endif
