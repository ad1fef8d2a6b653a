/* Byte-level BPE and its pre-tokenizer: pieces and ids from the specification and from an independent encoder
 * (tests/golden/demo_bpe.txt), merging against the plain definition, bytes that are no UTF-8, special tokens, and that
 * nothing is quadratic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "text/bpe.h"
#include "text/bpe_cache.h"
#include "../support/bpe_golden.h"
#include "../support/byte_vocabulary.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* ------------------------------------------------------------------------------------------------ pieces */

struct pieces {
    struct str joined; /* the pieces, a bar after each */
    size_t n, length[4096];
    size_t n_bytes;
};

static int piece_note(void *arg, const char *piece, size_t n, struct err *e)
{
    struct pieces *const p = arg;
    assert_true(n > 0);
    str_add(&p->joined, piece, n);
    str_puts(&p->joined, "|");
    if (p->n < COUNT(p->length)) p->length[p->n] = n;
    p->n++;
    p->n_bytes += n;
    return 0;
}

static void pieces_by(enum pretokenizer kind, const char *text, size_t n, struct pieces *p)
{
    struct presplit *s;
    memset(p, 0, sizeof *p);
    assert_int_equal(presplit_create(kind, &s, NULL), 0);
    assert_int_equal(presplit_run(s, text, n, piece_note, p, NULL), 0);
    presplit_free(s);
}

static void pieces_of(const char *text, size_t n, struct pieces *p)
{
    pieces_by(PRETOKENIZER_JOYAI, text, n, p);
}

static void expect_pieces_by(enum pretokenizer kind, const char *text, const char *want)
{
    struct pieces p;
    pieces_by(kind, text, strlen(text), &p);
    assert_string_equal(str_c(&p.joined), want);
    str_free(&p.joined);
}

static void expect_pieces(const char *text, const char *want)
{
    expect_pieces_by(PRETOKENIZER_JOYAI, text, want);
}

static void expect_qwen(const char *text, const char *want)
{
    expect_pieces_by(PRETOKENIZER_QWEN35, text, want);
}

/* spec qwen38 6, rule by rule. */
static void test_pieces_of_qwen(void **state)
{
    expect_qwen("", "");
    expect_qwen("it's I'M we'Re they'VE he'lL she'd o'clock",
                "it|'s| I|'M| we|'Re| they|'VE| he|'lL| she|'d| o|'clock|");
    expect_qwen("'sun 'tis", "'s|un| '|tis|");
    expect_qwen("a'sx a'\u017fx", "a|'s|x| a|'\u017fx|"); /* the long s is no s */
    expect_qwen("Hello, (world)!", "Hello|,| (|world|)!|");
    expect_qwen("12345 6\u0663\u00bd", "1|2|3|4|5| |6|\u0663|\u00bd|");
    expect_qwen("x1y -2", "x|1|y| -|2|");
    /* a mark belongs to words: it continues them and may begin them, also as the character in front */
    expect_qwen("e\u0301t \u0301t\u0302 1\u0301", "e\u0301t| \u0301t\u0302| |1|\u0301|");
    expect_qwen("\u0939\u093f\u0928\u094d\u0926\u0940", "\u0939\u093f\u0928\u094d\u0926\u0940|");
    expect_qwen("\ta\n\tb\r\nc", "\ta|\n|\tb|\r\n|c|");
    expect_qwen("a.b ...\r\n\n c", "a|.b| ...\r\n\n| c|");
    expect_qwen("a  \n \n  b", "a|  \n \n| | b|");
    expect_qwen("a   b  ", "a|  | b|  |");
    expect_qwen("a \u3000\n\u00a0c", "a| \u3000\n|\u00a0c|");
    expect_qwen("\u4f60\u597d\uff0c123", "\u4f60\u597d|\uff0c|1|2|3|");
    expect_qwen("\xc2\x85\xc2\x85x  \u180e", "\xc2\x85|\xc2\x85x| | \u180e|");
    expect_qwen("\U0001F44D\U0001F3FD ok", "\U0001F44D\U0001F3FD| ok|");
    expect_qwen("a\xff\xfe b", "a|\xff\xfe| b|");
}

static void test_pieces_of_the_specification(void **state)
{
    expect_pieces("x   12345 y", "x|   |123|45| y|");
    expect_pieces("Hello, world! 你好 rfid501.go", "Hello|,| world|!| |你好| rfid|501|.go|");
    expect_pieces("  \n\n  foo", "  \n\n| | foo|");
    expect_pieces("日本語テスト123", "日本語テスト|123|");
    expect_pieces("e.g.foo()", "e|.g|.foo|()|");
    expect_pieces("\t\tif(x)\n", "\t|\tif|(x|)\n|");
}

static void test_pieces_by_rule(void **state)
{
    expect_pieces("", "");
    expect_pieces("1234567", "123|456|7|");
    expect_pieces("a  b", "a| | b|");
    expect_pieces("a  ", "a|  |");
    expect_pieces("a \n b", "a| \n| b|");
    expect_pieces("!\r\n\nx", "!\r\n\n|x|");
    expect_pieces("e\u0301t", "e\u0301t|");
    expect_pieces("\x01\x02", "\x01\x02|");
    expect_pieces("\x01z", "\x01z|");
    expect_pieces("👍🏽 ok", "👍🏽| ok|");
    /* U+0085 is white space, U+180E is not */
    expect_pieces("\xc2\x85\xc2\x85", "\xc2\x85\xc2\x85|");
    expect_pieces("  \u180e", " | |\u180e|");
}

static void test_broken_bytes_are_pieces_of_their_own(void **state)
{
    expect_pieces("\xff", "\xff|");
    expect_pieces("ab\xff\xfe"
                  "cd",
                  "ab|\xff\xfe|cd|");
    expect_pieces("12\xc3"
                  "34",
                  "12|\xc3|34|");
    expect_pieces("x\xe4\xbd", "x|\xe4\xbd|");
    expect_pieces("\xed\xa0\x80 \xf4\x90\x80\x80", "\xed\xa0\x80| |\xf4\x90\x80\x80|");
    expect_pieces("a  \xc0\xaf b", "a|  |\xc0\xaf| b|");
}

/* ------------------------------------------------------------------------------------------------ golden */

static void test_pieces_and_ids_of_the_demo_model(void **state)
{
    struct bpe_golden g;
    bpe_golden_read("tests/golden/demo_bpe.txt", PRETOKENIZER_JOYAI, &g);
    assert_true(g.n > 300);
    for (size_t i = 0; i < g.n; i++) {
        const struct bpe_golden_case *const c = &g.at[i];
        struct bpe_ids ids = {0};
        if (c->rendered) {
            assert_int_equal(bpe_encode_rendered(g.bpe, c->text, c->n, &ids, NULL), 0);
        } else {
            struct pieces p;
            pieces_of(c->text, c->n, &p);
            assert_int_equal(p.n, c->n_pieces);
            assert_memory_equal(p.length, c->piece, p.n * sizeof *p.length);
            str_free(&p.joined);
            assert_int_equal(bpe_encode(g.bpe, c->text, c->n, &ids, NULL), 0);
        }
        assert_int_equal(ids.n, c->ids.n);
        if (ids.n > 0) assert_memory_equal(ids.p, c->ids.p, ids.n * sizeof *ids.p);
        bpe_ids_free(&ids);
    }
    bpe_golden_free(&g);
}

/* ------------------------------------------------------------------------------------------------ own vocabulary */

static const char *const merges[] = {"b c", "a b", "a a", "aa a", "ab ab", "c c", "aa aa", "bc a", "Ġ a", "abab ab"};
static const char *const specials[] = {"<x>", "<x>y", "｜S｜", "<none>"};
enum { N_MERGES = COUNT(merges), ID_X = 256 + N_MERGES, ID_XY, ID_S };

static struct byte_vocabulary *vocabulary(void)
{
    return byte_vocabulary_new(merges, N_MERGES, specials, 3);
}

static void expect_ids(const struct bpe_ids *ids, const int32_t *want, size_t n)
{
    assert_int_equal(ids->n, n);
    if (n > 0) assert_memory_equal(ids->p, want, n * sizeof *want);
}

static void expect_encoded(const struct bpe *b, const char *text, size_t n, bool rendered)
{
    struct bpe_ids ids = {0};
    assert_int_equal((rendered ? bpe_encode_rendered : bpe_encode)(b, text, n, &ids, NULL), 0);
    size_t at = 0;
    for (size_t i = 0; i < ids.n; i++) {
        const char *bytes;
        const size_t len = bpe_token_bytes(b, ids.p[i], &bytes);
        assert_true(len > 0 && len <= n - at);
        assert_memory_equal(bytes, text + at, len);
        at += len;
        if (!rendered) assert_false(bpe_is_special(b, ids.p[i]));
    }
    assert_int_equal(at, n);
    bpe_ids_free(&ids);
}

static void test_lowest_rank_leftmost(void **state)
{
    struct byte_vocabulary *v = vocabulary();
    struct bpe_ids ids = {0};
    assert_int_equal(bpe_encode(byte_vocabulary_bpe(v), "abc", 3, &ids, NULL), 0); /* b c before a b */
    assert_int_equal(bpe_encode(byte_vocabulary_bpe(v), "aaa", 3, &ids, NULL), 0);
    assert_int_equal(bpe_encode(byte_vocabulary_bpe(v), "ccc", 3, &ids, NULL), 0);
    expect_ids(&ids, (const int32_t[]){'a', 256, 259, 261, 'c'}, 5);
    bpe_ids_free(&ids);
    byte_vocabulary_free(v);
}

/* The definition, word by word: join the leftmost pair of the lowest rank until none is left. */
static size_t merged_by_definition(int32_t *ids, size_t n)
{
    static const int32_t pair[N_MERGES][2] = {{'b', 'c'}, {'a', 'b'}, {'a', 'a'}, {258, 'a'}, {257, 257},
                                              {'c', 'c'}, {258, 258}, {256, 'a'}, {' ', 'a'}, {260, 257}};
    for (size_t rank = 0; rank < N_MERGES;) {
        size_t i = 0;
        while (i + 1 < n && (ids[i] != pair[rank][0] || ids[i + 1] != pair[rank][1])) i++;
        if (i + 1 >= n) {
            rank++;
            continue;
        }
        ids[i] = 256 + (int32_t)rank;
        memmove(&ids[i + 1], &ids[i + 2], (n - i - 2) * sizeof *ids);
        n--;
        rank = 0;
    }
    return n;
}

static void test_merging_is_as_defined(void **state)
{
    struct byte_vocabulary *v = vocabulary();
    uint32_t random = 1;
    for (size_t n = 1; n <= 200; n++) {
        char text[200];
        int32_t want[200];
        for (size_t i = 0; i < n; i++) {
            random = random * 1664525 + 1013904223;
            text[i] = "aaabbc"[(random >> 16) % 6];
            want[i] = text[i];
        }
        struct bpe_ids ids = {0};
        assert_int_equal(bpe_encode(byte_vocabulary_bpe(v), text, n, &ids, NULL), 0);
        expect_ids(&ids, want, merged_by_definition(want, n));
        bpe_ids_free(&ids);
    }
    byte_vocabulary_free(v);
}

/* Words that come again in a long text, more of them than are remembered, have the ids that they have alone. Pieces of
 * other kinds stand between: some differ by zero bytes only. */
static void test_repeated_words(void **state)
{
    enum { WORDS = 150000 };
    static const char *const between[] = {" ", "\x01", "\0", "  ", "12 ", "!", "\n", "\xff"};
    struct byte_vocabulary *v = vocabulary();
    const struct bpe *b = byte_vocabulary_bpe(v);
    struct bpe_ids whole = {0}, parts = {0};
    struct str text = {0};
    uint32_t random = 1;
    for (int w = 0; w < WORDS; w++) {
        char word[24];
        random = random * 1664525 + 1013904223;
        const size_t n = 1 + (random >> 24) % 18, k = (random >> 20) % COUNT(between);
        for (size_t i = 0; i < n; i++) {
            random = random * 1664525 + 1013904223;
            word[i] = "aabc"[(random >> 20) % 4];
        }
        const size_t from = text.n;
        str_add(&text, k == 2 ? "\0\0\0" : between[k], k == 2 ? 1 + n % 3 : strlen(between[k]));
        str_add(&text, word, n);
        assert_int_equal(bpe_encode(b, text.p + from, text.n - from, &parts, NULL), 0);
    }
    assert_int_equal(bpe_encode(b, text.p, text.n, &whole, NULL), 0);
    expect_ids(&whole, parts.p, parts.n);
    bpe_ids_free(&whole);
    bpe_ids_free(&parts);
    str_free(&text);
    byte_vocabulary_free(v);
}

/* What is found is what was put there: pieces that share their first or last bytes, or differ by zero bytes. */
static void test_piece_cache(void **state)
{
    enum { PIECES = 400000 };
    static char put[PIECES][PIECE_CACHE_BYTES];
    static size_t length[PIECES];
    struct piece_cache *c = piece_cache_new();
    uint32_t random = 1;
    int hits = 0;
    assert_non_null(c);
    for (int i = 0; i < PIECES; i++) {
        random = random * 1664525 + 1013904223;
        const uint32_t value = (random >> 8) % (i % 3 ? 200000 : 30000);
        length[i] = i % 3 == 0 ? 1 + value % PIECE_CACHE_BYTES : PIECE_CACHE_BYTES;
        if (length[i] >= 4 && i % 3 == 1) memcpy(put[i], &value, sizeof value);
        if (i % 3 == 2) memcpy(put[i] + 12, &value, sizeof value);
        if (i % 3 == 0) put[i][0] = (char)(value % 7);
        struct piece_slot *s = piece_cache_find(c, put[i], length[i]);
        if (s->n_ids > 0) {
            hits++;
            assert_int_equal(length[s->ids[0]], length[i]);
            assert_memory_equal(put[s->ids[0]], put[i], length[i]);
        }
        s->ids[0] = i, s->n_ids = 1;
    }
    assert_true(hits > 1000);
    piece_cache_free(c);
}

static void test_special_tokens(void **state)
{
    struct byte_vocabulary *v = vocabulary();
    const struct bpe *b = byte_vocabulary_bpe(v);
    assert_int_equal(bpe_special(b, "<x>"), ID_X);
    assert_int_equal(bpe_special(b, "｜S｜"), ID_S);
    assert_int_equal(bpe_special(b, "<none>"), -1);
    assert_int_equal(bpe_special(b, "a"), -1);
    assert_true(bpe_is_special(b, ID_XY) && !bpe_is_special(b, 'a') && !bpe_is_special(b, -1));
    assert_int_equal(bpe_n_tokens(b), ID_S + 1);

    const char *const text = "a<x>yb｜S｜<x><";
    struct bpe_ids ids = {0};
    assert_int_equal(bpe_encode_rendered(b, text, strlen(text), &ids, NULL), 0);
    expect_ids(&ids, (const int32_t[]){'a', ID_XY, 'b', ID_S, ID_X, '<'}, 6);
    bpe_ids_free(&ids);
    expect_encoded(b, text, strlen(text), false);
    byte_vocabulary_free(v);
}

/* A merge that ends in the text of a special token must not make it. */
static void test_text_never_merges_into_a_special_token(void **state)
{
    static const char *const to_special[] = {"x y", "xy z"};
    static const char *const special[] = {"xyz"};
    struct byte_vocabulary *v = byte_vocabulary_new(to_special, 2, special, 1);
    const struct bpe *b = byte_vocabulary_bpe(v);
    struct bpe_ids ids = {0};
    assert_int_equal(bpe_encode(b, "xyz", 3, &ids, NULL), 0);
    expect_ids(&ids, (const int32_t[]){256, 'z'}, 2);
    ids.n = 0;
    assert_int_equal(bpe_encode_rendered(b, "xyz", 3, &ids, NULL), 0);
    expect_ids(&ids, (const int32_t[]){bpe_special(b, "xyz")}, 1);
    bpe_ids_free(&ids);
    byte_vocabulary_free(v);
}

static void test_token_bytes(void **state)
{
    struct byte_vocabulary *v = vocabulary();
    const struct bpe *b = byte_vocabulary_bpe(v);
    const char *bytes;
    for (int byte = 0; byte < 256; byte++) {
        assert_int_equal(bpe_token_bytes(b, byte, &bytes), 1);
        assert_int_equal((unsigned char)bytes[0], byte);
    }
    assert_int_equal(bpe_token_bytes(b, 264, &bytes), 2);
    assert_memory_equal(bytes, " a", 2);
    assert_int_equal(bpe_token_bytes(b, ID_S, &bytes), 7);
    assert_memory_equal(bytes, "｜S｜", 7);
    assert_int_equal(bpe_token_bytes(b, -1, &bytes), 0);
    assert_int_equal(bpe_token_bytes(b, ID_S + 1, &bytes), 0);
    byte_vocabulary_free(v);
}

static void test_any_bytes_come_back(void **state)
{
    static const char text[] = "ab\xff\0<x>\xe4\xbd\xa0\xe4\xbd \x80\xf0\x9f\x91\x8d\xf0\x9f\r\n\xed\xbf\xbf\xc3";
    struct byte_vocabulary *v = vocabulary();
    for (size_t from = 0; from < sizeof text; from++)
        for (size_t n = 0; n <= sizeof text - from; n++) {
            expect_encoded(byte_vocabulary_bpe(v), text + from, n, false);
            expect_encoded(byte_vocabulary_bpe(v), text + from, n, true);
        }
    byte_vocabulary_free(v);
}

/* A vocabulary that was cut keeps its list of merges; those that cannot apply change nothing. */
static void test_idle_merges(void **state)
{
    const struct bpe_text tokens[] = {{"a", 1}, {"b", 1}, {"ab", 2}};
    const struct bpe_text rules[] = {{"a c", 3}, {"b a", 3}, {"a b", 3}, {"c b", 3}};
    struct bpe *b;
    struct err e = {0};
    struct bpe_ids ids = {0};
    assert_int_equal(bpe_create(tokens, 3, rules, 4, NULL, 0, PRETOKENIZER_JOYAI, NULL, &b, &e), 0);
    assert_int_equal(bpe_n_idle_merges(b), 3);
    assert_int_equal(bpe_encode(b, "aba", 3, &ids, &e), 0);
    expect_ids(&ids, (const int32_t[]){2, 0}, 2);
    bpe_ids_free(&ids);
    bpe_free(b);
}

static int refuse(const struct bpe *b, struct err *e)
{
    return bpe_special(b, "ab") == 2 ? err_set(e, ERR_LIMIT, "refused") : 0;
}

/* Whoever needs special tokens refuses before merges are looked at. */
static void test_check(void **state)
{
    static const char *const special[] = {"ab"};
    const struct bpe_text tokens[] = {{"a", 1}, {"b", 1}, {"ab", 2}};
    const struct bpe_text rules[] = {{"a c", 3}, {"none", 4}};
    struct bpe *b;
    struct err e = {0};
    assert_int_equal(bpe_create(tokens, 3, rules, 2, special, 1, PRETOKENIZER_JOYAI, refuse, &b, &e), ERR_LIMIT);
    assert_string_equal(e.msg, "refused");
    assert_null(b);
    err_clear(&e);
    assert_int_equal(bpe_create(tokens, 2, rules, 1, special, 1, PRETOKENIZER_JOYAI, refuse, &b, &e), 0);
    bpe_free(b);
}

static void test_errors(void **state)
{
    const struct bpe_text tokens[] = {{"a", 1}, {"b", 1}, {"ab", 2}};
    static const char *const bad[] = {"ab", "a ", ""};
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct bpe *b;
        struct err e = {0};
        const struct bpe_text merge = {bad[i], strlen(bad[i])};
        assert_int_equal(bpe_create(tokens, 3, &merge, 1, NULL, 0, PRETOKENIZER_JOYAI, NULL, &b, &e), ERR_MODEL);
        assert_null(b);
        assert_non_null(strstr(e.msg, "merge 0"));
    }
    struct bpe *b;
    struct err e = {0};
    struct bpe_ids ids = {0};
    const struct bpe_text merge = {"a b", 3};
    assert_int_equal(bpe_create(tokens, 3, &merge, 1, NULL, 0, PRETOKENIZER_JOYAI, NULL, &b, &e), 0);
    assert_int_equal(bpe_encode(b, "ab", 2, &ids, &e), 0);
    assert_int_equal(bpe_encode(b, "ab\nab", 5, &ids, &e), ERR_MODEL);
    assert_non_null(strstr(e.msg, "0x0a"));
    expect_ids(&ids, (const int32_t[]){2}, 1);
    bpe_ids_free(&ids);
    bpe_free(b);
}

/* Two million bytes of one kind: quadratic work would take minutes. */
static void encode_long_runs(enum pretokenizer pre)
{
    static const char *const unit[] = {"a",  "ab",   "abc", " ",  "\n", " \n", "1",     "!",      "\x01", "\xff",
                                       "你", "\xe4", "<",   "<x", "一", "\t ", " \x01", "\u0301", "a1",   "｜"};
    enum { BYTES = 1000000 };
    struct byte_vocabulary *v = byte_vocabulary_split(pre, merges, N_MERGES, specials, 3);
    char *text = malloc(BYTES);
    for (size_t u = 0; u < COUNT(unit); u++) {
        for (size_t i = 0; i < BYTES; i++) text[i] = unit[u][i % strlen(unit[u])];
        struct bpe_ids ids = {0};
        const double start = clock_s();
        assert_int_equal(bpe_encode_rendered(byte_vocabulary_bpe(v), text, BYTES, &ids, NULL), 0);
        assert_true(clock_s() - start < 20);
        size_t n = 0;
        for (size_t i = 0; i < ids.n; i++) {
            const char *bytes;
            n += bpe_token_bytes(byte_vocabulary_bpe(v), ids.p[i], &bytes);
        }
        assert_int_equal(n, BYTES);
        bpe_ids_free(&ids);
    }
    free(text);
    byte_vocabulary_free(v);
}

static void test_long_runs_are_not_quadratic(void **state)
{
    for (int pre = 0; pre < PRETOKENIZER_COUNT; pre++) encode_long_runs((enum pretokenizer)pre);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_of_the_specification),
        cmocka_unit_test(test_pieces_by_rule),
        cmocka_unit_test(test_pieces_of_qwen),
        cmocka_unit_test(test_broken_bytes_are_pieces_of_their_own),
        cmocka_unit_test(test_pieces_and_ids_of_the_demo_model),
        cmocka_unit_test(test_lowest_rank_leftmost),
        cmocka_unit_test(test_merging_is_as_defined),
        cmocka_unit_test(test_repeated_words),
        cmocka_unit_test(test_piece_cache),
        cmocka_unit_test(test_special_tokens),
        cmocka_unit_test(test_text_never_merges_into_a_special_token),
        cmocka_unit_test(test_token_bytes),
        cmocka_unit_test(test_any_bytes_come_back),
        cmocka_unit_test(test_idle_merges),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_long_runs_are_not_quadratic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
