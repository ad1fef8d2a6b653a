/* Sampling and log probabilities: filters against a sorted model of their definition, shares against the softmax. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "ds4.h"

enum { V = 500 };

static uint64_t rng_state;

static uint64_t rng(void)
{
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 7;
    rng_state ^= rng_state << 17;
    return rng_state;
}

/* Values with many ties and both signs. */
static void random_logits(float *x, int n, int levels)
{
    for (int i = 0; i < n; i++) x[i] = (float)((int)(rng() % (unsigned)levels) - levels / 2) * 0.25f;
}

/* ---------------------------------------------------------------- the definition, with a sort */

static const float *sort_by;

static int by_logit(const void *a, const void *b)
{
    const int i = *(const int *)a, j = *(const int *)b;
    if (sort_by[i] != sort_by[j]) return sort_by[i] < sort_by[j] ? 1 : -1;
    return i - j;
}

/* Weights after all filters, by id. */
static void filtered(const float *x, const struct ds4_sampling *p, double *weight)
{
    int order[V], n = V;
    double w[V], total = 0, sum = 0;
    for (int i = 0; i < V; i++) order[i] = i, weight[i] = 0;
    sort_by = x;
    qsort(order, V, sizeof *order, by_logit);
    for (int i = 0; i < V; i++) w[i] = exp(((double)x[order[i]] - (double)x[order[0]]) / (double)p->temperature);
    if (p->top_k > 0 && p->top_k < n) n = p->top_k;
    for (int i = 0; i < n; i++) total += w[i];
    if (p->top_p < 1) {
        int keep = 0;
        while (keep < n && (keep == 0 || sum < (double)p->top_p * total * (1 - 1e-12))) sum += w[keep++];
        n = keep;
    }
    for (int i = 0; i < n; i++)
        if (w[i] >= (double)p->min_p) weight[order[i]] = w[i];
}

static void check_shares(const float *x, struct ds4_sampling p, int draws)
{
    double weight[V], total = 0;
    int count[V] = {0};
    filtered(x, &p, weight);
    for (int i = 0; i < V; i++) total += weight[i];
    for (int i = 0; i < draws; i++) {
        p.seed = rng();
        const int32_t id = ds4_sample(x, V, &p, (uint64_t)i);
        assert_in_range(id, 0, V - 1);
        assert_true(weight[id] > 0); /* never something that the filters took out */
        count[id]++;
    }
    for (int i = 0; i < V; i++) {
        const double mean = draws * weight[i] / total;
        assert_true(fabs(count[i] - mean) <= 6 * sqrt(mean) + 6);
    }
}

/* ---------------------------------------------------------------- tests */

static void test_greedy(void **state)
{
    const float x[6] = {1, 3, NAN, 3, INFINITY * -1, 2};
    struct ds4_sampling p = {.temperature = 0, .top_p = 1};
    assert_int_equal(ds4_sample(x, 6, &p, 0), 1);
    p.temperature = 1, p.top_k = 1;
    assert_int_equal(ds4_sample(x, 6, &p, 7), 1); /* the lower id of two equals */
    p = (struct ds4_sampling){.temperature = 1, .top_p = 0};
    assert_int_equal(ds4_sample(x, 6, &p, 7), 1);
    p = (struct ds4_sampling){.temperature = 1, .top_p = 1, .min_p = 2};
    for (uint64_t i = 0; i < 50; i++) {
        const int32_t id = ds4_sample(x, 6, &p, i);
        assert_true(id == 1 || id == 3);
    }
}

static void test_not_finite(void **state)
{
    float x[8];
    struct ds4_sampling p = {.temperature = 1, .top_k = 3, .top_p = 0.9f, .min_p = 0.1f, .seed = 5};
    for (int i = 0; i < 8; i++) x[i] = NAN;
    assert_int_equal(ds4_sample(x, 8, &p, 0), 0);
    assert_int_equal(ds4_top_logprobs(x, 8, 3, (struct ds4_logprob[3]){{0, 0}}), 0);
    assert_true(ds4_token_logprob(x, 8, 3) == -INFINITY);
    x[5] = -1;
    for (uint64_t i = 0; i < 20; i++) assert_int_equal(ds4_sample(x, 8, &p, i), 5);
    assert_true(ds4_token_logprob(x, 8, 5) == 0);
    x[2] = INFINITY;
    for (uint64_t i = 0; i < 20; i++) assert_int_equal(ds4_sample(x, 8, &p, i), 2);
    p.temperature = 1e-40f;
    assert_int_equal(ds4_sample(x, 8, &p, 1), 2);
    p.temperature = NAN;
    assert_int_equal(ds4_sample(x, 8, &p, 1), 2);
    p = (struct ds4_sampling){.temperature = INFINITY, .top_p = 1};
    for (uint64_t i = 0; i < 20; i++) assert_int_equal(ds4_sample(x, 8, &p, i), 2);
    x[7] = INFINITY; /* they share everything */
    assert_true(fabsf(ds4_token_logprob(x, 8, 7) + logf(2)) < 1e-6f);
    assert_true(ds4_token_logprob(x, 8, 5) == -INFINITY);
}

/* Filters that are no numbers, or make no sense, filter nothing. */
static void test_filters_not_finite(void **state)
{
    static const struct ds4_sampling odd[] = {{.temperature = 1, .top_p = 1, .min_p = NAN},
                                              {.temperature = 1, .top_p = NAN},
                                              {.temperature = 1, .top_p = 1, .min_p = -3},
                                              {.temperature = 1, .top_p = INFINITY, .top_k = -5}};
    const struct ds4_sampling none = {.temperature = 1, .top_p = 1};
    float x[V];
    random_logits(x, V, 9);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        for (uint64_t at = 0; at < 200; at++)
            assert_int_equal(ds4_sample(x, V, &odd[i], at), ds4_sample(x, V, &none, at));
}

static void test_filters(void **state)
{
    static const struct ds4_sampling cases[] = {
        {.temperature = 1, .top_p = 1},
        {.temperature = 0.3f, .top_p = 1},
        {.temperature = 5, .top_p = 1, .top_k = 40},
        {.temperature = 5, .top_p = 1, .top_k = V},
        {.temperature = 1.5f, .top_p = 0.9f},
        {.temperature = 1.5f, .top_p = 0.31f},
        {.temperature = 20, .top_p = 0.999f},
        {.temperature = 2, .top_p = 1, .min_p = 0.05f},
        {.temperature = 2, .top_p = 0.77f, .top_k = 123, .min_p = 0.2f},
    };
    float x[V];
    rng_state = 88172645463325252u;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        random_logits(x, V, 9);
        check_shares(x, cases[c], 6000);
        random_logits(x, V, 100000);
        for (int i = 0; i < V; i++) x[i] /= 5000;
        check_shares(x, cases[c], 6000);
    }
}

/* Shares that are hit exactly: of 8 equal weights top_p 0.5 leaves the four lowest ids, a little more leaves five. */
static void test_top_p_border(void **state)
{
    float x[8] = {2, 2, 2, 2, 2, 2, 2, 2};
    int seen[8] = {0};
    struct ds4_sampling p = {.temperature = 1, .top_p = 0.5f};
    for (uint64_t i = 0; i < 400; i++) seen[ds4_sample(x, 8, &p, i)]++;
    for (int i = 0; i < 8; i++) assert_int_equal(seen[i] > 0, i < 4);
    p.top_p = 0.501f;
    memset(seen, 0, sizeof seen);
    for (uint64_t i = 0; i < 400; i++) seen[ds4_sample(x, 8, &p, i)]++;
    for (int i = 0; i < 8; i++) assert_int_equal(seen[i] > 0, i < 5);
}

static void test_repeats(void **state)
{
    float x[V];
    int differ = 0;
    const struct ds4_sampling p = {.temperature = 1, .top_p = 1, .seed = 11};
    struct ds4_sampling q = p;
    q.seed = 12;
    rng_state = 99;
    random_logits(x, V, 50);
    for (uint64_t i = 0; i < 100; i++) {
        assert_int_equal(ds4_sample(x, V, &p, i), ds4_sample(x, V, &p, i));
        differ += ds4_sample(x, V, &p, i) != ds4_sample(x, V, &q, i);
    }
    assert_true(differ > 50);
}

static void test_logprobs(void **state)
{
    float x[V];
    int order[V];
    struct ds4_logprob top[V + 1];
    rng_state = 4;
    random_logits(x, V, 60);
    double sum = 0;
    for (int i = 0; i < V; i++) order[i] = i, sum += exp((double)x[i]);
    sort_by = x;
    qsort(order, V, sizeof *order, by_logit);
    for (int k = 0; k <= V; k += 50) {
        assert_int_equal(ds4_top_logprobs(x, V, k, top), k);
        for (int i = 0; i < k; i++) {
            assert_int_equal(top[i].id, order[i]);
            assert_true(fabs((double)top[i].logprob - ((double)x[order[i]] - log(sum))) < 1e-6);
            assert_true(top[i].logprob == ds4_token_logprob(x, V, order[i]));
        }
    }
    assert_int_equal(ds4_top_logprobs(x, V, V + 1, top), V);
    assert_true(ds4_token_logprob(x, V, -1) == -INFINITY && ds4_token_logprob(x, V, V) == -INFINITY);
}

static void test_check(void **state)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY};
    float x[V];
    struct ds4_error e = {0};
    random_logits(x, V, 100);
    x[3] = 3e38f;
    assert_int_equal(ds4_logits_check(x, V, &e), 0);
    for (int i = 0; i < 3; i++) {
        x[V - 1] = odd[i];
        assert_int_equal(ds4_logits_check(x, V, NULL), DS4_E_MODEL);
        assert_int_equal(ds4_logits_check(x, V, &e), DS4_E_MODEL);
        assert_int_equal(e.code, DS4_E_MODEL);
        assert_non_null(strstr(e.message, i ? "says inf of token 499," : "says nan of token 499,"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check),      cmocka_unit_test(test_greedy),
        cmocka_unit_test(test_not_finite), cmocka_unit_test(test_filters_not_finite),
        cmocka_unit_test(test_filters),    cmocka_unit_test(test_top_p_border),
        cmocka_unit_test(test_repeats),    cmocka_unit_test(test_logprobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
