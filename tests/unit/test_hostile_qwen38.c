/* Headers of Qwen3.8 files with one fault each: what cannot be run is refused in one line that names what is wrong and
 * is over in no time; what tensors tell as well makes no difference. */
#include "../support/hostile_qwen38.h"
#include "../support/temp_files.h"
#include "dialect/canonical.h"
#include "models/family.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static char base[TEMP_PATH], edited[TEMP_PATH];
static int n_wrong;

static void wrong(const struct hostile_qwen38 *c, const char *what, const char *message)
{
    if (n_wrong++ < 20) print_message("%s: %s: \"%s\"\n", c->name, what, message);
}

/* A model of the file, bound; NULL: refused. */
static struct canonical *bound(const char *path, struct err *e)
{
    struct canonical *c = NULL;
    struct dev *dev;
    void *model = NULL;
    if (canonical_open(&path, 1, NULL, &c, e)) return NULL;
    if (dev_ref_create(&dev, e)) fail_msg("%s", e->msg);
    const struct plan plan = {.dev = dev};
    const struct bind_options o = {.draft_max = 4, .draft = true};
    const struct family *f = family_of(canonical_family(c));
    const int rc = f->bind(c, &plan, &o, &model, e);
    if (rc == 0) f->unbind(model);
    dev->op->free(dev);
    if (rc == 0) return c;
    canonical_close(c);
    return NULL;
}

static void check_refused(const struct hostile_qwen38 *c, const struct err *e)
{
    if (strchr(e->msg, '\n')) wrong(c, "more than a line", e->msg);
    if (!strstr(e->msg, c->about)) wrong(c, "does not say what about", e->msg);
}

static void check_opened(const struct hostile_qwen38 *c, const struct canonical *want, const struct canonical *got)
{
    const int blocks = canonical_n_blocks(want) - (c->end == END_ALONE ? 1 : 0);
    const bool same = canonical_digest(want) == canonical_digest(got);
    if (c->end == END_REFUSED) wrong(c, "opened", "");
    if (c->end == END_SAME && !same) wrong(c, "another model", "");
    if (canonical_n_blocks(got) != blocks && c->end != END_EITHER) wrong(c, "other blocks", "");
}

static void every_fault(void **state)
{
    struct hostile_qwen38 c;
    struct err e = {0};
    int opened = 0;
    struct canonical *want = bound(base, &e);
    if (!want) fail_msg("%s", e.msg);
    for (int i = 0; i < hostile_qwen38_count(); i++) {
        hostile_qwen38_at(i, &c);
        forge_write(base, edited, &c.edit, 1);
        e = (struct err){0};
        struct canonical *got = bound(edited, &e);
        if (!got && (c.end == END_SAME || c.end == END_ALONE)) wrong(&c, "refused", e.msg);
        if (!got) check_refused(&c, &e);
        if (got) check_opened(&c, want, got);
        opened += got != NULL;
        canonical_close(got);
    }
    print_message("%d faults, %d of them in files that run\n", hostile_qwen38_count(), opened);
    canonical_close(want);
    assert_int_equal(n_wrong, 0);
}

static int begin(void **state)
{
    struct err e = {0};
    temp_file(base);
    temp_file(edited);
    if (hostile_qwen38_base(base, false, &e)) fail_msg("%s", e.msg);
    return 0;
}

static int end(void **state)
{
    temp_remove(base);
    temp_remove(edited);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_fault)};
    return cmocka_run_group_tests(tests, begin, end);
}
