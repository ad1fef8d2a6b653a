/* JSON files of a source folder: whole files and values with checks that name file and key. */
#ifndef HF_JSON_H
#define HF_JSON_H
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

/* Reads a JSON object. The caller frees it with json_decref. */
int hf_json_read(const char *path, json_t **out, struct err *e);

/* A sticky reader of one object: after the first mistake the others return without effect, e keeps the first. */
struct hf_reader {
    const char *path;
    const json_t *object;
    struct err *e;
};
int64_t hf_int(struct hf_reader *r, const char *key, int64_t min, int64_t max); /* required */
int64_t hf_int_or(struct hf_reader *r, const char *key, int64_t min, int64_t max,
                  int64_t none);                                               /* null or missing: none */
double hf_float(struct hf_reader *r, const char *key, double min, double max); /* required */
double hf_float_or(struct hf_reader *r, const char *key, double min, double max, double none);
bool hf_bool_or(struct hf_reader *r, const char *key, bool none);
/* The string must be want; a missing key is fine unless required. */
void hf_expect(struct hf_reader *r, const char *key, const char *want, bool required);

#endif
