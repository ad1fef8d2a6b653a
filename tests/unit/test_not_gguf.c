/* Files that are no model: what each is, and what to do about it, is told by its first bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "gguf/gguf_internal.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define TERMS    "accept the model's terms on its page, give the downloader your access token, and download again"

static bool tells(const void *bytes, size_t n, char what[GGUF_WHAT_ELSE])
{
    memset(what, 0, GGUF_WHAT_ELSE);
    return gguf_what_else(bytes, n, what);
}

/* Whole sentences of short texts. */
static void texts(void **state)
{
    static const struct {
        const char *text, *what;
    } cases[] = {
        {"Entry not found", "it is a server's message: 'Entry not found': look at the address (repository, branch and "
                            "file name) and download again"},
        {"Access to model a/b is restricted and you are not in the authorized list. Visit https://x.y/a/b to ask.\n",
         "it is a server's message: 'Access to model a/b is restricted and you are not in the authorized list. Visit "
         "...': " TERMS},
        {"{\"error\":\"Invalid username or password.\"}",
         "it is a server's message: '{\"error\":\"Invalid username or password.\"}': look at the address and at the "
         "access token, and download again"},
        {"\n\r\n{\"detail\": \"Forbidden\"}\n", "it is a server's message: '{\"detail\": \"Forbidden\"}': give the "
                                                "downloader your access token, and download again"},
        {"../../blobs/3f2c5b7e1d0a94c6b8e7f1a2d3c4b5a6\n",
         "it is a link of a download cache that was copied as text ('../../blobs/3f2c5b7e1d0a94c6b8e7f1a2d3c4b5a6'): "
         "put the file that it names in its place, or download the model again"},
        {"something else\nand more", "it is a text, maybe a server's message: 'something else': look at the address "
                                     "and download again"},
        {"\xC3\xBC"
         "bel",
         "it is a text, maybe a server's message: '\xC3\xBC"
         "bel': look at the address and download again"},
        {"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
         "it is Git LFS's note of where the file is: fetch the file itself (git lfs pull)"},
        {" \n<html><body>Entry not found</body></html>",
         "it is a web page: the server sent that in place of the file; look at the page, and download again"},
        {"<!DOCTYPE html><html><head><title>\n  Sign in to continue\n</title></head>",
         "it is a web page, 'Sign in to continue': the server sent that in place of the file; look at the page, and "
         "download again"},
        {"<html><HEAD><TITLE class=\"a\">404 Not Found</TITLE>",
         "it is a web page, '404 Not Found': the server sent that in place of the file; look at the address "
         "(repository, branch and file name) and download again"},
        {"<html><title>a\033[31mred</title>",
         "it is a web page: the server sent that in place of the file; look at the page, and download again"},
        {"<html><title", "it is a web page: the server sent that in place of the file; look at the page, and download "
                         "again"},
    };
    char what[GGUF_WHAT_ELSE];
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_true(tells(cases[i].text, strlen(cases[i].text), what));
        assert_string_equal(what, cases[i].what);
    }
    char large[5000];
    memset(large, 'a', sizeof large);
    memcpy(large, "# A book\n", 9);
    assert_true(tells(large, sizeof large, what));
    assert_string_equal(what, "it is a text that begins with '# A book': give the model's .gguf file");
}

/* Formats by their magic numbers: the first words. */
static void formats(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *what;
    } cases[] = {
        {"PK\3\4\24\0\0\0\0\0aaaabbbbccccdddd\x0C\0\0\0m.gguf", 36, "it is an archive (zip): unpack it first"},
        {"PK\3\4\0\0\10\10\0\0aaaabbbbccccdddd\x10\0\0\0archive/data.pkl", 46, "it is a checkpoint of PyTorch: "},
        {"\x80\2\x8A\12\x6C\xFC\x9C\x46", 8, "it is a checkpoint of PyTorch: "},
        {"\x80\4\x95\0\0\0\0\0", 8, "it is a checkpoint of PyTorch: "},
        {"7z\xBC\xAF\x27\x1C\0\4", 8, "it is an archive (7z): unpack it (7z x)"},
        {"Rar!\x1A\7\1\0", 8, "it is an archive (rar): unpack it (unrar x)"},
        {"\x1F\x8B\10\0\0\0\0\0", 8, "it is compressed (gzip): unpack it first"},
        {"BZh91AY&SY", 10, "it is compressed (bzip2): unpack it first"},
        {"MZqFpD='\n\0\0\0", 12, "it is a llamafile, a program with a model inside: unzip takes out the .gguf file"},
        {"\x7F"
         "ELF\2\1\1\0",
         8, "it is a program: give the model's .gguf file"},
        {"\x40\1\0\0\0\0\0\0{\"a\":", 12, "it is a part of a checkpoint in safetensors: ds4-gguf convert"},
        {"ggjt\3\0\0\0", 8, "it is of a format from before GGUF; look for a newer conversion"},
    };
    char what[GGUF_WHAT_ELSE], tar[512] = "model.gguf";
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_true(tells(cases[i].bytes, cases[i].n, what));
        if (strncmp(what, cases[i].what, strlen(cases[i].what)) != 0) fail_msg("\"%s\", not %s", what, cases[i].what);
    }
    memcpy(tar + 257, "ustar", 5);
    assert_true(tells(tar, sizeof tar, what));
    assert_string_equal(what, "it is an archive (tar): unpack it (tar -xf), and give the .gguf file that comes out");
}

static void zeros(void **state)
{
    uint8_t bytes[4096] = {0};
    char what[GGUF_WHAT_ELSE];
    bytes[100] = 1;
    assert_true(tells(bytes, sizeof bytes, what));
    assert_string_equal(what, "it begins with zeros: the download has not written this part yet; continue it, or get "
                              "the file again");
    bytes[8] = 1;
    assert_false(tells(bytes, sizeof bytes, what));
}

/* Of a GGUF file, or its beginning, and of bytes that are nothing known nothing is told. */
static void nothing(void **state)
{
    char what[GGUF_WHAT_ELSE];
    for (size_t n = 0; n <= 4; n++) assert_false(tells("GGUF", n, what));
    assert_false(tells("GGUF\3\0\0\0", 8, what));
    assert_false(tells("\1,\xA1\x9D any bytes", 14, what));
    assert_false(tells("text, but\1 not only", 19, what));
    assert_false(tells("abcd", 4, what));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),
        cmocka_unit_test(formats),
        cmocka_unit_test(zeros),
        cmocka_unit_test(nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
