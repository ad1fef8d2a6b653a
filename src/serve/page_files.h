/* The files of the web page (src/serve/page), inside the program. */
#ifndef SERVE_PAGE_FILES_H
#define SERVE_PAGE_FILES_H
#include <stddef.h>

struct page_file {
    const char *path, *type;
    const unsigned char *bytes;
    size_t n;
};

extern const struct page_file page_files[];
extern const int n_page_files;

#endif
