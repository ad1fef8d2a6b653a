/* Schema lines of tools, and closing tags inside of what they close. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "text/closing.h"
#include "text/tool_schema.h"

/* ------------------------------------------------------------------------------------------------ schemas */

static void expect_schema(enum tool_schema_kind kind, const char *tool, const char *name, const char *want)
{
    struct str line = {0};
    const struct json_text t = json_text_read(tool, strlen(tool));
    assert_int_equal(t.kind, JSON_TEXT_OBJECT);
    tool_schema(&line, t, (struct bpe_text){name, strlen(name)}, kind);
    assert_string_equal(str_c(&line), want);
    assert_int_equal(json_text_read(line.p, line.n).kind, JSON_TEXT_OBJECT);
    assert_null(strchr(line.p, '\n'));
    str_free(&line);
}

static void test_functions_of_all_apis(void **state)
{
#define PARAMETERS "{\"type\": \"object\", \"properties\": {\"city\": {\"type\": \"string\", \"maximum\": 1e2}}}"
    static const char want[] =
        "{\"name\": \"w\", \"description\": \"Wetter für \\\"x\\\"\", \"parameters\": " PARAMETERS "}";
    expect_schema(TOOL_SCHEMA_FUNCTION,
                  "{\"name\":\"w\",\"description\":\"Wetter f\\u00fcr \\\"x\\\"\",\"parameters\":" PARAMETERS
                  ",\"strict\":true}",
                  "", want);
    expect_schema(TOOL_SCHEMA_FUNCTION,
                  "{\"name\":\"w\",\n\"description\":\"Wetter für \\\"x\\\"\",\n\"input_schema\":" PARAMETERS
                  ",\"cache_control\":{\"type\":\"ephemeral\"},\"eager_input_streaming\":true}",
                  "", want);
    expect_schema(TOOL_SCHEMA_FUNCTION,
                  "{\"type\":\"function\",\"name\":\"w\",\"description\":\"Wetter für \\\"x\\\"\",\"strict\":null,"
                  "\"parameters\":" PARAMETERS "}",
                  "", want);
}

static void test_order_and_absence(void **state)
{
    expect_schema(TOOL_SCHEMA_FUNCTION, "{\"parameters\":{\"b\":1,\"a\":2},\"name\":\"f\"}", "",
                  "{\"parameters\": {\"b\": 1, \"a\": 2}, \"name\": \"f\"}");
    expect_schema(TOOL_SCHEMA_FUNCTION, "{\"name\":\"f\"}", "", "{\"name\": \"f\"}");
    expect_schema(TOOL_SCHEMA_FUNCTION, "{\"name\":\"f\",\"description\":null,\"parameters\":null}", "",
                  "{\"name\": \"f\"}");
    expect_schema(TOOL_SCHEMA_FUNCTION, "{\"name\":\"f\",\"description\":\"\",\"parameters\":{}}", "",
                  "{\"name\": \"f\", \"description\": \"\", \"parameters\": {}}");
    expect_schema(TOOL_SCHEMA_FUNCTION, "{\"name\":\"f\",\"parameters\":{\"a\":1},\"input_schema\":{\"b\":1}}", "",
                  "{\"name\": \"f\", \"parameters\": {\"a\": 1}}");
    expect_schema(TOOL_SCHEMA_FUNCTION_FULL, "{\"name\":\"f\"}", "",
                  "{\"name\": \"f\", \"parameters\": {\"type\": \"object\", \"properties\": {}}}");
    expect_schema(TOOL_SCHEMA_FUNCTION_FULL, "{\"name\":\"f\",\"parameters\":{\"a\":1}}", "",
                  "{\"name\": \"f\", \"parameters\": {\"a\": 1}}");
}

static void test_other_names(void **state)
{
    expect_schema(TOOL_SCHEMA_FUNCTION, "{\"description\":\"d\",\"name\":\"send\"}", "mail__send",
                  "{\"description\": \"d\", \"name\": \"mail__send\"}");
    expect_schema(TOOL_SCHEMA_FUNCTION_FULL, "{\"type\":\"tool_search\",\"description\":\"d\"}", "tool_search",
                  "{\"name\": \"tool_search\", \"description\": \"d\", \"parameters\": {\"type\": \"object\", "
                  "\"properties\": {}}}");
}

static void test_custom_tools(void **state)
{
    expect_schema(TOOL_SCHEMA_CUSTOM, "{\"type\":\"custom\",\"name\":\"note\"}", "",
                  "{\"name\": \"note\", \"parameters\": {\"type\": \"object\", \"properties\": {\"input\": {\"type\": "
                  "\"string\"}}, \"required\": [\"input\"]}}");
    expect_schema(
        TOOL_SCHEMA_CUSTOM,
        "{\"type\":\"custom\",\"name\":\"patch\",\"description\":\"d\",\"parameters\":{},\"format\":{\"type\":"
        "\"grammar\",\"syntax\":\"lark\",\"definition\":\"start: \\\"x\\\"\\n\"}}",
        "",
        "{\"name\": \"patch\", \"description\": \"d\", \"parameters\": {\"type\": \"object\", "
        "\"properties\": {\"input\": {\"type\": \"string\", \"description\": \"Plain text, not JSON. It "
        "follows this grammar (lark):\\nstart: \\\"x\\\"\\n\"}}, \"required\": [\"input\"]}}");
    expect_schema(TOOL_SCHEMA_CUSTOM, "{\"name\":\"t\",\"format\":{\"type\":\"text\"}}", "",
                  "{\"name\": \"t\", \"parameters\": {\"type\": \"object\", \"properties\": {\"input\": {\"type\": "
                  "\"string\"}}, \"required\": [\"input\"]}}");
}

/* ------------------------------------------------------------------------------------------------ closing tags */

static struct bpe_text text(const char *s)
{
    return (struct bpe_text){s, strlen(s)};
}

static void test_replaced(void **state)
{
    static const char *const cases[][2] = {
        {"", ""},       {"abc", "abc"},        {"</t>", "&lt;/t>"},    {"a</t></t>b", "a&lt;/t>&lt;/t>b"},
        {"</t", "</t"}, {"<</t>", "<&lt;/t>"}, {"&lt;/t>", "&lt;/t>"}, {"</T></t >", "</T></t >"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct str out = {0};
        closing_replace(&out, text(cases[i][0]), "</t>", "&lt;");
        assert_string_equal(str_c(&out), cases[i][1]);
        str_free(&out);
    }
}

static void test_escaped(void **state)
{
    static const char *const cases[][4] = {
        {"</t>", "a</t>b", "a&lt;/t>b", "a\\u003c/t>b"},
        {"</t>", "&lt;/t>", "&amp;lt;/t>", "\\u0026lt;/t>"},
        {"</t>", "&amp;lt;/t>", "&amp;amp;lt;/t>", "\\u0026amp;lt;/t>"},
        {"</t>", "&amp;amp;lt;/t></t>", "&amp;amp;amp;lt;/t>&lt;/t>", "\\u0026amp;amp;lt;/t>\\u003c/t>"},
        {"</t>", "&lt; &amp; &lt;/x> &lt;/t & <", "&lt; &amp; &lt;/x> &lt;/t & <", "&lt; &amp; &lt;/x> &lt;/t & <"},
        {"</t>", "&&lt;/t>&amp;&amp;lt;/t>", "&&amp;lt;/t>&amp;&amp;amp;lt;/t>",
         "&\\u0026lt;/t>&amp;\\u0026amp;lt;/t>"},
        {">", "a>b", "a&gt;b", "a\\u003eb"},
        {">", "a&gt;b&lt;<", "a&amp;gt;b&lt;<", "a\\u0026gt;b&lt;<"},
        {"</t>", "", "", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct str escaped = {0};
        closing_escape(&escaped, text(cases[i][1]), cases[i][0], false);
        assert_string_equal(str_c(&escaped), cases[i][2]);
        str_clear(&escaped);
        closing_escape(&escaped, text(cases[i][1]), cases[i][0], true);
        assert_string_equal(str_c(&escaped), cases[i][3]);
        str_free(&escaped);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions_of_all_apis),
        cmocka_unit_test(test_order_and_absence),
        cmocka_unit_test(test_other_names),
        cmocka_unit_test(test_custom_tools),
        cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
