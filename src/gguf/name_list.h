/* Names behind one another in a sentence: "a", "a and b", "a, b and c"; of many the first ten, and how many more. */
#ifndef GGUF_NAME_LIST_H
#define GGUF_NAME_LIST_H
#include "base/str.h"

struct name_list {
    struct str text; /* of all but the last that is shown */
    struct str last;
    int n;
};

/* All zero = empty. */
void name_list_add(struct name_list *l, const char *name);
void name_list_put(const struct name_list *l, struct str *out);
void name_list_free(struct name_list *l);

#endif
