/* Types of parameters out of schemas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "text/tool_types.h"

#define BIT(kind) (1u << JSON_TEXT_##kind)
#define ANY       ((unsigned)TOOL_TYPES_ANY)

static const struct {
    const char *schema;
    unsigned types;
} cases[] = {
    {"{\"type\": \"string\"}", BIT(STRING)},
    {"{\"type\": \"string\", \"enum\": [1]}", BIT(STRING)},
    {"{\"type\": \"integer\"}", BIT(NUMBER)},
    {"{\"type\": \"number\"}", BIT(NUMBER)},
    {"{\"type\": \"boolean\"}", BIT(BOOL)},
    {"{\"type\": \"null\"}", BIT(NULL)},
    {"{\"type\": \"array\", \"items\": {\"type\": \"string\"}}", BIT(ARRAY)},
    {"{\"type\": \"object\", \"properties\": {}}", BIT(OBJECT)},
    {"{\"type\": [\"string\", \"null\"]}", BIT(STRING) | BIT(NULL)},
    {"{\"anyOf\": [{\"type\": \"integer\"}, {\"oneOf\": [{\"type\": \"array\"}, {\"const\": null}]}]}",
     BIT(NUMBER) | BIT(ARRAY) | BIT(NULL)},
    {"{\"enum\": [\"a\", 1, false]}", BIT(STRING) | BIT(NUMBER) | BIT(BOOL)},
    {"{\"const\": \"a\"}", BIT(STRING)},
    {"{}", ANY},
    {"true", ANY},
    {"{\"type\": \"date\"}", ANY},
    {"{\"type\": 5}", ANY},
    {"{\"type\": []}", ANY},
    {"{\"enum\": []}", ANY},
    {"{\"$ref\": \"#/$defs/x\"}", ANY},
    {"{\"anyOf\": [{\"type\": \"string\"}, {\"$ref\": \"#/$defs/x\"}]}", ANY},
    {"{\"anyOf\":[{\"anyOf\":[{\"anyOf\":[{\"anyOf\":[{\"anyOf\":[{\"anyOf\":[{\"anyOf\":[{\"anyOf\":[{\"type\":"
     "\"null\"}]}]}]}]}]}]}]}]}",
     ANY},
};

static void test_types(void **state)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct str text = {0};
        struct tool_types t = {0};
        str_printf(&text,
                   "{\"name\": \"f\", \"parameters\": {\"type\": \"object\", \"properties\": {\"o\\u0074her\": 1, "
                   "\"x\": %s}}}",
                   cases[i].schema);
        tool_types_read(&t, text.p, text.n);
        assert_int_equal(t.n, 2);
        if (tool_types_find(&t, "x", 1)->types != cases[i].types) print_message("%s\n", cases[i].schema);
        assert_int_equal(tool_types_find(&t, "x", 1)->types, cases[i].types);
        assert_non_null(tool_types_find(&t, "other", 5));
        assert_null(tool_types_find(&t, "othe", 4));
        assert_false(tool_types_all_given(&t));
        t.p[0].given = t.p[1].given = true;
        assert_true(tool_types_all_given(&t));
        tool_types_free(&t);
        str_free(&text);
    }
}

static void test_schemas_that_declare_nothing(void **state)
{
    static const char *const schemas[] = {"",
                                          "{",
                                          "[]",
                                          "{}",
                                          "{\"parameters\": null}",
                                          "{\"parameters\": {}}",
                                          "{\"parameters\": {\"properties\": []}}",
                                          "{\"parameters\": {\"properties\": {}}}"};
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        struct tool_types t = {0};
        tool_types_read(&t, schemas[i], strlen(schemas[i]));
        assert_int_equal(t.n, 0);
        assert_false(tool_types_all_given(&t));
        tool_types_free(&t);
    }
    static const char other_name[] = "{\"input_schema\": {\"properties\": {\"a\": {}}}}";
    struct tool_types t = {0};
    tool_types_read(&t, other_name, strlen(other_name));
    assert_int_equal(t.n, 1);
    tool_types_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_types),
                                       cmocka_unit_test(test_schemas_that_declare_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
