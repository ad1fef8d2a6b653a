/* What a file is that should have been a model: the usual mistakes of downloads, and formats that models come in. */
#include <string.h>
#include "gguf/gguf_internal.h"

/* Texts begin behind white space. Safetensors begin with a length of 8 bytes, then JSON. */
static const struct {
    const char *begin;
    int at;
    const char *what;
} known[] = {
    {"<!DOCTYPE", 0,
     "it is a web page: the server sent that in place of the file; look at the page, and download again"},
    {"<!doctype", 0,
     "it is a web page: the server sent that in place of the file; look at the page, and download again"},
    {"<html", 0, "it is a web page: the server sent that in place of the file; look at the page, and download again"},
    {"<?xml", 0, "it is a server's message: look into it, and download the file again"},
    {"version https://git-lfs", 0, "it is Git LFS's note of where the file is: fetch the file itself (git lfs pull)"},
    {"{\"__metadata__\"", 8,
     "it is a part of a checkpoint in safetensors: ds4-gguf convert makes a model of the folder"},
    {"{\"", 8, "it is a part of a checkpoint in safetensors: ds4-gguf convert makes a model of the folder"},
    {"PK\003\004", 0, "it is an archive (zip): unpack it first"},
    {"\x1F\x8B", 0, "it is compressed (gzip): unpack it first"},
    {"\x28\xB5\x2F\xFD", 0, "it is compressed (zstd): unpack it first"},
    {"\xFD"
     "7zXZ",
     0, "it is compressed (xz): unpack it first"},
    {"ggjt", 0, "it is of a format from before GGUF; look for a newer conversion"},
    {"tjgg", 0, "it is of a format from before GGUF; look for a newer conversion"},
    {"lmgg", 0, "it is of a format from before GGUF; look for a newer conversion"},
};

const char *gguf_what_else(const uint8_t *data, uint64_t n)
{
    uint64_t text = 0;
    while (text < n && text < 64 && memchr(" \t\r\n", data[text], 4)) text++;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const size_t length = strlen(known[i].begin);
        const uint64_t at = known[i].begin[0] == '<' ? text : (uint64_t)known[i].at;
        if (at + length <= n && memcmp(data + at, known[i].begin, length) == 0) return known[i].what;
    }
    return NULL;
}
