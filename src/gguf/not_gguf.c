/* What a file is that should have been a model: the usual mistakes of downloads, and formats that models come in. */
#include <stdio.h>
#include <string.h>
#include "base/str.h"
#include "gguf/gguf_internal.h"

#define PAGE    "a web page"
#define SENT    "the server sent that in place of the file"
#define SAFE    "a part of a checkpoint in safetensors: ds4-gguf convert makes a model of the folder"
#define TORCH   "a checkpoint of PyTorch: look for a GGUF file of that model, or for its safetensors (ds4-gguf convert)"
#define OLD     "of a format from before GGUF; look for a newer conversion"
#define PROGRAM "a program: give the model's .gguf file"
#define LLAMAFILE                                                                                                      \
    "a llamafile, a program with a model inside: unzip takes out the .gguf file, if it is a model that ds4 runs"

/* Known beginnings. Pages begin behind white space, safetensors with a length of 8 bytes, then JSON. */
static const struct {
    const char *begin;
    int at;
    const char *what;
} known[] = {
    {"<!DOCTYPE", 0, PAGE},
    {"<!doctype", 0, PAGE},
    {"<html", 0, PAGE},
    {"<?xml", 0, "a server's message: look into it, and download the file again"},
    {"version https://git-lfs", 0, "Git LFS's note of where the file is: fetch the file itself (git lfs pull)"},
    {"{\"__metadata__\"", 8, SAFE},
    {"{\"", 8, SAFE},
    {"MZqFpD", 0, LLAMAFILE},
    {"jartsr", 0, LLAMAFILE},
    {"\x7F"
     "ELF",
     0, PROGRAM},
    {"PK\003\004", 0, "an archive (zip): unpack it first"},
    {"ustar", 257, "an archive (tar): unpack it (tar -xf), and give the .gguf file that comes out"},
    {"7z\xBC\xAF\x27\x1C", 0, "an archive (7z): unpack it (7z x), and give the .gguf file that comes out"},
    {"Rar!\x1A\x07", 0, "an archive (rar): unpack it (unrar x), and give the .gguf file that comes out"},
    {"\x1F\x8B", 0, "compressed (gzip): unpack it first"},
    {"\x28\xB5\x2F\xFD", 0, "compressed (zstd): unpack it first"},
    {"BZh", 0, "compressed (bzip2): unpack it first"},
    {"\xFD"
     "7zXZ",
     0, "compressed (xz): unpack it first"},
    {"\x80\x02", 0, TORCH},
    {"\x80\x03", 0, TORCH},
    {"\x80\x04\x95", 0, TORCH},
    {"\x80\x05\x95", 0, TORCH},
    {"ggjt", 0, OLD},
    {"tjgg", 0, OLD},
    {"lmgg", 0, OLD},
};

/* Words of short messages, and what to do. */
static const struct {
    const char *word, *what;
} answers[] = {
    {"not found", "look at the address (repository, branch and file name) and download again"},
    {"Not Found", "look at the address (repository, branch and file name) and download again"},
    {"restricted", "accept the model's terms on its page, give the downloader your access token, and download again"},
    {"gated", "accept the model's terms on its page, give the downloader your access token, and download again"},
    {"nauthorized", "give the downloader your access token, and download again"},
    {"username or password", "look at the address and at the access token, and download again"},
    {"orbidden", "give the downloader your access token, and download again"},
    {"oo many requests", "wait a while, and download again"},
    {"ate limit", "wait a while, and download again"},
};

/* SHOWN of LOOKED bytes are quoted; a longer text than MESSAGE is no server's. A page has its title in its HEAD. */
enum { ZEROS = 64, MINIMUM = 5, LOOKED = 256, SHOWN = 80, MESSAGE = 4096, HEAD = 65536 };

bool gguf_zeros(const uint8_t *p, uint64_t n)
{
    uint64_t i = 0;
    while (i < n && !p[i]) i++;
    return i == n;
}

static bool begins(const uint8_t *data, uint64_t n, uint64_t at, const char *text)
{
    const size_t length = strlen(text);
    return at + length <= n && memcmp(data + at, text, length) == 0;
}

/* PyTorch's archives hold NAME/data.pkl; the name of the first file stands at byte 30. */
static bool is_torch_archive(const uint8_t *data, uint64_t n)
{
    const uint64_t end = n < LOOKED ? n : LOOKED;
    bool pickle = false;
    for (uint64_t at = 30; at < end && !pickle; at++) pickle = begins(data, end, at, "data.pkl");
    return pickle && begins(data, n, 0, "PK\003\004");
}

/* The first line of what is a text as far as it is looked at, "" of other bytes. */
static void first_line(const uint8_t *data, uint64_t n, char line[SHOWN + 4])
{
    char looked[LOOKED], safe[LOOKED];
    size_t end = n < LOOKED ? (size_t)n : LOOKED, at = 0, to;
    line[0] = 0;
    while (n > LOOKED && end > LOOKED - 4 && (data[end - 1] & 0x80)) end--; /* a character may be cut off */
    for (size_t i = 0; i < end; i++) looked[i] = memchr("\t\r\n", data[i], 3) ? ' ' : (char)data[i];
    memcpy(safe, looked, end);
    text_defuse(safe, end);
    if (end < MINIMUM || memcmp(safe, looked, end) != 0) return;
    while (at < end && safe[at] == ' ') at++;
    for (to = at; to < end && to - at < SHOWN && !memchr("\r\n", data[to], 2); to++) {
    }
    while (to < end && ((uint8_t)safe[to] & 0xC0) == 0x80) to--; /* whole characters */
    const bool cut = to - at >= SHOWN - 3;
    snprintf(line, SHOWN + 4, "%.*s%s", (int)(to - at), safe + at, cut ? "..." : "");
}

static const char *answer_to(const uint8_t *data, uint64_t n)
{
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        for (uint64_t at = 0; at < n; at++)
            if (begins(data, n, at, answers[i].word)) return answers[i].what;
    return NULL;
}

/* What stands between the marks of the title; "" of a page without. */
static void title_of(const uint8_t *data, uint64_t n, char line[SHOWN + 4])
{
    const uint64_t end = n < HEAD ? n : HEAD;
    uint64_t at = 0, to;
    line[0] = 0;
    while (at < end && !begins(data, end, at, "<title") && !begins(data, end, at, "<TITLE")) at++;
    while (at < end && data[at] != '>') at++;
    if (at >= end) return;
    for (to = ++at; to < end && data[to] != '<'; to++) {
    }
    first_line(data + at, to - at, line);
}

static void tell_page(const uint8_t *data, uint64_t n, char what[GGUF_WHAT_ELSE])
{
    char title[SHOWN + 4];
    title_of(data, n, title);
    const char *answer = answer_to((const uint8_t *)title, strlen(title));
    snprintf(what, GGUF_WHAT_ELSE, "it is " PAGE "%s%s%s: " SENT "; %s", *title ? ", '" : "", title, *title ? "'" : "",
             answer ? answer : "look at the page, and download again");
}

static void tell_text(const uint8_t *data, uint64_t n, const char *line, char what[GGUF_WHAT_ELSE])
{
    const char *answer = n <= MESSAGE ? answer_to(data, n) : NULL;
    if (!strncmp(line, "../", 3) && strstr(line, "blobs/"))
        snprintf(what, GGUF_WHAT_ELSE,
                 "it is a link of a download cache that was copied as text ('%s'): put the file that it names in its "
                 "place, or download the model again",
                 line);
    else if (answer)
        snprintf(what, GGUF_WHAT_ELSE, "it is a server's message: '%s': %s", line, answer);
    else if (n <= MESSAGE)
        snprintf(what, GGUF_WHAT_ELSE,
                 "it is a text, maybe a server's message: '%s': look at the address and download again", line);
    else
        snprintf(what, GGUF_WHAT_ELSE, "it is a text that begins with '%s': give the model's .gguf file", line);
}

bool gguf_what_else(const uint8_t *data, uint64_t n, char what[GGUF_WHAT_ELSE])
{
    char line[SHOWN + 4];
    uint64_t text = 0;
    if (n == 0 || memcmp(data, "GGUF", n < 4 ? (size_t)n : 4) == 0) return false;
    while (text < n && text < 64 && memchr(" \t\r\n", data[text], 4)) text++;
    if (is_torch_archive(data, n)) return snprintf(what, GGUF_WHAT_ELSE, "it is %s", TORCH) > 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!begins(data, n, known[i].begin[0] == '<' ? text : (uint64_t)known[i].at, known[i].begin)) continue;
        if (strcmp(known[i].what, PAGE) == 0)
            tell_page(data, n, what);
        else
            snprintf(what, GGUF_WHAT_ELSE, "it is %s", known[i].what);
        return true;
    }
    if (n >= MINIMUM && gguf_zeros(data, n < ZEROS ? n : ZEROS))
        return snprintf(what, GGUF_WHAT_ELSE,
                        "it begins with zeros: the download has not written this part yet; continue it, or get the "
                        "file again") > 0;
    first_line(data, n, line);
    if (line[0]) tell_text(data, n, line, what);
    return line[0] != 0;
}
