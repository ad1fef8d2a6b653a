/* What the readers of the APIs share: the body, contents, fields that mean the same everywhere, tools. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/mem.h"
#include "base/random.h"
#include "serve/api_internal.h"
#include "text/tool_schema.h"

/* ---------------------------------------------------------------- the body */

static int hex4(const char *p)
{
    int v = 0;
    for (int i = 0; i < 4; i++) {
        const char c = p[i];
        const int d = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
        if (d < 0) return -1;
        v = v << 4 | d;
    }
    return v;
}

/* Clients cut texts in the middle of a character and send half a surrogate pair: that is U+FFFD. */
static void mend_surrogates(char *p, size_t n)
{
    for (size_t i = 0; i + 6 <= n;) {
        if (p[i] != '\\') {
            i++;
            continue;
        }
        const int c = p[i + 1] == 'u' ? hex4(p + i + 2) : -1;
        if (c < 0xD800 || c > 0xDFFF) {
            i += 2;
            continue;
        }
        const bool pair =
            c < 0xDC00 && i + 12 <= n && p[i + 6] == '\\' && p[i + 7] == 'u' && (hex4(p + i + 8) & ~0x3FF) == 0xDC00;
        if (!pair) memcpy(p + i + 2, "FFFD", 4);
        i += pair ? 12 : 6;
    }
}

/* A body of nothing but small values takes twenty times its size once it is read, and seconds. */
static bool too_many_values(const char *p, size_t n)
{
    size_t values = 0;
    bool string = false;
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '"')
            string = !string;
        else if (string)
            i += p[i] == '\\';
        else
            values += p[i] == ',' || p[i] == '[' || p[i] == '{';
    }
    return values > API_MAX_VALUES;
}

static int bad_body(struct api_error *why, const char *what)
{
    *why = (struct api_error){.status = 400, .type = "invalid_request_error"};
    snprintf(why->message, sizeof why->message, "invalid JSON request: %s", what);
    return DS4_E_FORMAT;
}

static int body_parse(struct request *r, char *body, size_t n, struct api_error *why)
{
    json_error_t e;
    r->raw = body;
    r->n_raw = n;
    if (!body) return bad_body(why, "the body is empty");
    if (too_many_values(body, n)) return bad_body(why, "more than a million values in it");
    mend_surrogates(body, n);
    r->body = json_loadb(body, n, JSON_ALLOW_NUL, &e);
    /* schemas and arguments hold numbers of any size; they are copied as text */
    if (!r->body && json_error_code(&e) == json_error_numeric_overflow)
        r->body = json_loadb(body, n, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &e);
    if (!r->body) {
        text_defuse(e.text, strlen(e.text));
        return bad_body(why, e.text);
    }
    return json_is_object(r->body) ? 0 : bad_body(why, "not an object");
}

/* The model answers the user or results of calls; an answer of its own cannot be gone on with. */
static void check_turns(struct reading *g)
{
    const struct request *r = g->r;
    size_t n = r->n_messages;
    while (n > 0 && r->message[n - 1].role == CHAT_SYSTEM) n--;
    if (n == 0)
        request_message(g->r, CHAT_USER);
    else if (r->message[n - 1].role == CHAT_ASSISTANT)
        field_wrong(&g->f, r->api == API_RESPONSES ? "input" : "messages",
                    "the last message is the assistant's, and this server does not continue answers; add a message of "
                    "the user");
}

int api_read(enum api api, char *body, size_t n, struct request **out, struct api_error *why)
{
    struct request *r = mem_alloc(sizeof *r);
    *r = (struct request){.api = api, .max_tokens = -1, .created = (int64_t)time(NULL), .thinking = CHAT_THINK_DEFAULT};
    *why = (struct api_error){0};
    *out = NULL;
    int rc = body_parse(r, body, n, why);
    if (rc == 0) {
        struct reading g = {.r = r, .f = {r->body, "", why}, .text = json_text_read(body, n)};
        if (g.text.kind == JSON_TEXT_NONE) rc = bad_body(why, "nested too deeply");
        switch (api) {
        case API_COMPLETIONS:
            read_completions(&g);
            break;
        case API_CHAT:
            read_chat(&g);
            break;
        case API_RESPONSES:
            read_responses(&g);
            break;
        case API_MESSAGES:
            read_messages(&g);
            break;
        }
        if (fields_good(&g.f)) check_turns(&g);
        if (why->status) rc = DS4_E_ARG;
    }
    if (rc)
        request_free(r);
    else
        *out = r;
    return rc;
}

/* ---------------------------------------------------------------- arrays */

void read_elements(struct reading *g, const struct fields *f, const char *name, struct json_text text,
                   element_reader *read)
{
    json_t *list = field_array(f, name), *element;
    struct json_text_items it = json_text_items(json_text_member(text, name));
    struct json_text one;
    size_t i;
    json_array_foreach(list, i, element)
    {
        if (!json_text_next(&it, NULL, &one)) break;
        if (json_is_object(element))
            read(g, element, one);
        else
            field_wrong(f, name, "its elements must be objects");
    }
}

void read_message_list(struct reading *g, element_reader *read)
{
    json_t *list = field_array(&g->f, "messages");
    if (fields_good(&g->f) && !json_array_size(list)) field_wrong(&g->f, "messages", "at least one is needed");
    read_elements(g, &g->f, "messages", g->text, read);
}

/* ---------------------------------------------------------------- contents */

struct bpe_text text_of(const char *s)
{
    return (struct bpe_text){s, strlen(s)};
}

struct bpe_text text_of_json(const json_t *string)
{
    return (struct bpe_text){json_string_value(string), json_string_length(string)};
}

static bool is_one_of(const char *word, const char *const *list)
{
    for (; word && *list; list++)
        if (!strcmp(word, *list)) return true;
    return false;
}

static const char *const text_types[] = {"text",           "input_text", "output_text", "summary_text",
                                         "reasoning_text", "refusal",    NULL};
static const char *const image_types[] = {"image_url", "input_image", "image", NULL};

/* One part of a content: its text to *out. */
static void read_part(struct reading *g, const struct fields *f, const char *name, const json_t *part,
                      enum content_role role, struct str *out)
{
    const char *type = json_string_value(json_object_get(part, "type"));
    const json_t *text = json_object_get(part, type && !strcmp(type, "refusal") ? "refusal" : "text");
    if (json_is_string(part))
        str_add(out, json_string_value(part), json_string_length(part));
    else if (!json_is_object(part))
        field_wrong(f, name, "its parts must be objects with a type");
    else if (is_one_of(type, image_types) && role == CONTENT_RESULT)
        str_puts(out, "[image left out: this model runs without vision]");
    else if (is_one_of(type, image_types))
        field_wrong(f, name, "this model runs without vision: it cannot take a part of type %s (image)", type);
    else if ((!type || is_one_of(type, text_types)) && json_is_string(text))
        str_add(out, json_string_value(text), json_string_length(text));
    else if (is_one_of(type, text_types) && (!text || json_is_null(text)))
        return;
    else
        field_wrong(f, name, "a part of type %.60s is not supported", type ? type : "(none)");
}

struct bpe_text read_content(struct reading *g, const struct fields *f, const char *name, enum content_role role,
                             const char *between)
{
    const json_t *v = field(f, name), *part;
    size_t i;
    if (!v) return (struct bpe_text){"", 0};
    if (json_is_string(v)) return text_of_json(v);
    if (!json_is_array(v)) {
        field_wrong(f, name, "must be a string or an array of parts");
        return (struct bpe_text){"", 0};
    }
    struct str text = {0};
    json_array_foreach(v, i, part)
    {
        if (text.n && (size_t)i > 0 && text.p[text.n - 1] != between[0]) str_puts(&text, between);
        read_part(g, f, name, part, role, &text);
    }
    const struct bpe_text out = {request_text(g->r, text.p, text.n), text.n};
    str_free(&text);
    return out;
}

struct bpe_text raw_member(struct json_text object, const char *name, const char *absent)
{
    const struct json_text v = json_text_member(object, name);
    if (v.kind == JSON_TEXT_NONE || v.kind == JSON_TEXT_NULL) return text_of(absent);
    return (struct bpe_text){v.p, v.n};
}

struct bpe_text custom_arguments(struct reading *g, struct json_text object)
{
    struct str s = {0};
    const struct json_text input = json_text_member(object, "input");
    if (input.kind == JSON_TEXT_STRING) {
        str_puts(&s, "{\"input\":");
        str_add(&s, input.p, input.n);
        str_puts(&s, "}");
    } else {
        str_puts(&s, "{}");
    }
    const struct bpe_text out = {request_text(g->r, s.p, s.n), s.n};
    str_free(&s);
    return out;
}

void add_system(struct reading *g, struct bpe_text text)
{
    request_message(g->r, g->asked ? CHAT_USER : CHAT_SYSTEM)->text = text;
}

struct chat_message *last_assistant(struct reading *g)
{
    struct request *r = g->r;
    if (r->n_messages && r->message[r->n_messages - 1].role == CHAT_ASSISTANT) return &r->message[r->n_messages - 1];
    return request_message(r, CHAT_ASSISTANT);
}

/* ---------------------------------------------------------------- fields */

void read_sampling(struct reading *g)
{
    struct ds4_sampling *s = &g->r->sampling;
    s->temperature = (float)field_number(&g->f, "temperature", 0, 100, 1);
    s->top_p = (float)field_number(&g->f, "top_p", 0, 1, 1);
    s->min_p = (float)field_number(&g->f, "min_p", 0, 1, 0.05);
    s->top_k = (int)field_integer(&g->f, "top_k", 0, INT_MAX, 0);
    const int64_t seed = field_integer(&g->f, "seed", INT64_MIN, INT64_MAX, 0);
    if (seed > 0)
        s->seed = (uint64_t)seed;
    else
        random_fill(&s->seed, sizeof s->seed);
}

void read_max_tokens(struct reading *g, const char *name)
{
    g->r->max_tokens = (int)field_integer(&g->f, name, 0, INT_MAX, g->r->max_tokens);
}

void read_stops(struct reading *g, const char *name, bool array_only)
{
    json_t *v = field(&g->f, name);
    const size_t n = json_is_array(v) ? json_array_size(v) : v ? 1 : 0;
    if (json_is_string(v) && array_only) field_wrong(&g->f, name, "must be an array of strings");
    g->r->stop = mem_alloc((n + 1) * sizeof *g->r->stop);
    for (size_t i = 0; i < n; i++) {
        const json_t *s = json_is_array(v) ? json_array_get(v, i) : v;
        if (!json_is_string(s))
            field_wrong(&g->f, name,
                        array_only ? "must be an array of strings" : "must be a string or an array of strings");
        else if (json_string_length(s))
            g->r->stop[g->r->n_stops++] = json_string_value(s);
    }
}

void read_stream(struct reading *g)
{
    g->r->stream = field_bool(&g->f, "stream", false);
    const struct fields o = {field_object(&g->f, "stream_options"), "stream_options.", g->f.why};
    if (o.object) g->r->include_usage = field_bool(&o, "include_usage", false);
}

void read_effort(struct reading *g, const struct fields *f, const char *name)
{
    static const struct {
        const char *name;
        enum chat_thinking thinking;
    } efforts[] = {{"none", CHAT_THINK_OFF},      {"minimal", CHAT_THINK_LOW}, {"low", CHAT_THINK_LOW},
                   {"medium", CHAT_THINK_MEDIUM}, {"high", CHAT_THINK_HIGH},   {"xhigh", CHAT_THINK_HIGH},
                   {"max", CHAT_THINK_MAX}};
    const char *word = field_string(f, name, NULL);
    if (!word) return;
    for (size_t i = 0; i < sizeof efforts / sizeof *efforts; i++)
        if (!strcmp(word, efforts[i].name)) {
            g->r->thinking = efforts[i].thinking;
            return;
        }
    field_wrong(f, name, "\"%.40s\" is not none, minimal, low, medium, high, xhigh or max", word);
}

static void set_thinking(struct reading *g, bool on)
{
    if (!on)
        g->r->thinking = CHAT_THINK_OFF;
    else if (g->r->thinking == CHAT_THINK_OFF)
        g->r->thinking = CHAT_THINK_DEFAULT;
}

static void read_thinking_object(struct reading *g, const struct fields *t)
{
    const char *type = field_string(t, "type", "");
    if (strcmp(type, "enabled") && strcmp(type, "disabled") && strcmp(type, "adaptive")) {
        field_wrong(t, "type", "must be enabled, disabled or adaptive");
        return;
    }
    if (!strcmp(type, "adaptive")) return;
    set_thinking(g, !strcmp(type, "enabled"));
    const int64_t budget = field_integer(t, "budget_tokens", 1, INT_MAX, 0);
    if (g->r->thinking != CHAT_THINK_OFF) g->r->thinking_budget = (int)budget;
}

void read_thinking(struct reading *g)
{
    const struct fields reasoning = {field_object(&g->f, "reasoning"), "reasoning.", g->f.why},
                        kwargs = {field_object(&g->f, "chat_template_kwargs"), "chat_template_kwargs.", g->f.why};
    json_t *v = field(&g->f, "thinking");
    read_effort(g, &g->f, "reasoning_effort");
    read_effort(g, &reasoning, "effort");
    read_effort(g, &kwargs, "reasoning_effort");
    if (field(&kwargs, "enable_thinking") && !field_bool(&kwargs, "enable_thinking", true)) set_thinking(g, false);
    if (field(&g->f, "think")) set_thinking(g, field_bool(&g->f, "think", true));
    const struct fields t = {v, "thinking.", g->f.why};
    if (json_is_boolean(v))
        set_thinking(g, json_is_true(v));
    else if (json_is_object(v))
        read_thinking_object(g, &t);
    else if (v)
        field_wrong(&g->f, "thinking", "must be true, false or an object");
}

static bool ends_in(const char *s, const char *end)
{
    const size_t n = strlen(s), m = strlen(end);
    return n >= m && !strcmp(s + n - m, end);
}

void read_model(struct reading *g)
{
    const char *m = g->r->model = field_string(&g->f, "model", NULL);
    if (!m) return;
    if (strlen(m) > API_MODEL_BYTES) { /* every event of a stream says it again */
        field_wrong(&g->f, "model", "longer than %d bytes", API_MODEL_BYTES);
        return;
    }
    if (!strcmp(m, "deepseek-chat") || ends_in(m, "-no-think") || ends_in(m, "-nothink") ||
        ends_in(m, "flash-next-chat"))
        set_thinking(g, false);
}

static bool is_harmless(const json_t *v, const char *harmless)
{
    if (json_is_false(v) || (json_is_number(v) && json_number_value(v) == 0)) return true;
    if ((json_is_array(v) && !json_array_size(v)) || (json_is_object(v) && !json_object_size(v))) return true;
    return harmless && json_is_string(v) && !strcmp(json_string_value(v), harmless);
}

static const char unsupported[] = "is not supported by this server";

void refuse_field(const struct fields *f, const char *name, const char *harmless)
{
    const json_t *v = field(f, name);
    if (v && !is_harmless(v, harmless)) field_wrong(f, name, unsupported);
}

void refuse_given(const struct fields *f, const char *name)
{
    if (field(f, name)) field_wrong(f, name, unsupported);
}

void refuse_format(const struct fields *f, const char *name)
{
    const json_t *v = field_object(f, name);
    const char *type = json_string_value(json_object_get(v, "type"));
    if (v && (!type || strcmp(type, "text")))
        field_wrong(f, name, "only {\"type\": \"text\"} is supported by this server");
}

/* ---------------------------------------------------------------- tools */

enum { MAX_NAME = 200 }; /* two of them, of a namespace and a tool, fit the tag of a call */

/* Models write a name into a tag as it is. What would end the tag or the name, or read as an escape of something else,
 * cannot be in it: the call would never be understood. */
static bool is_callable(const char *name, size_t n)
{
    if (!n || n > MAX_NAME || name[0] == ' ' || name[n - 1] == ' ') return false;
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)name[i];
        if (c < ' ' || c == 0x7f || strchr("\"<>&", c)) return false;
        /* U+201C to U+201F, quotes */
        if (n - i >= 3 && !memcmp(name + i, "\xe2\x80", 2) && (name[i + 2] & 0xfc) == 0x9c) return false;
    }
    return true;
}

const char *read_tool_name(const struct fields *f)
{
    const char *name = field_string(f, "name", NULL);
    if (!name || !*name)
        field_wrong(f, "name", "is missing");
    else if (!is_callable(name, json_string_length(field(f, "name"))))
        field_wrong(f, "name",
                    "no call can be made with it: at most %d bytes, and no quotes, <, >, &, control characters or "
                    "spaces at its ends",
                    MAX_NAME);
    else
        return name;
    return NULL;
}

void add_tool(struct reading *g, struct request_tool form, struct json_text object)
{
    struct str schema = {0};
    const bool custom = form.form == TOOL_CUSTOM, full = form.namespace_ || form.form == TOOL_SEARCH;
    struct chat_tool *t = request_tool(g->r, form);
    tool_schema(&schema, object, text_of(form.name),
                custom ? TOOL_SCHEMA_CUSTOM
                : full ? TOOL_SCHEMA_FUNCTION_FULL
                       : TOOL_SCHEMA_FUNCTION);
    t->schema = (struct bpe_text){request_text(g->r, schema.p, schema.n), schema.n};
    t->custom = custom;
    str_free(&schema);
}

int find_tool(const struct request *r, const char *wire_name)
{
    for (size_t i = 0; i < r->n_tools; i++)
        if (!strcmp(r->tool_form[i].wire_name, wire_name)) return (int)i;
    return -1;
}

void choose_any(struct reading *g, const char *name)
{
    g->r->choice = CHOICE_REQUIRED;
    if (!g->r->n_tools) field_wrong(&g->f, name, "asks for a call, but there are no tools");
}

void choose_tool(struct reading *g, const char *name, const char *tool, bool custom)
{
    if (!tool) {
        field_wrong(&g->f, name, "needs the name of a tool");
        return;
    }
    g->r->choice = CHOICE_NAMED;
    g->r->chosen = find_tool(g->r, tool);
    if (g->r->chosen < 0 || (g->r->tool_form[g->r->chosen].form == TOOL_CUSTOM) != custom)
        field_wrong(&g->f, name, "there is no %s tool named \"%.80s\"", custom ? "custom" : "function", tool);
}

void read_openai_choice(struct reading *g, bool nested)
{
    json_t *v = field(&g->f, "tool_choice");
    const char *word = json_string_value(v), *type = json_string_value(json_object_get(v, "type"));
    if (!v || (word && !strcmp(word, "auto"))) return;
    if (word && !strcmp(word, "none"))
        g->r->choice = CHOICE_NONE;
    else if (word && !strcmp(word, "required"))
        choose_any(g, "tool_choice");
    else if (type && (!strcmp(type, "function") || !strcmp(type, "custom")))
        choose_tool(g, "tool_choice", json_string_value(json_object_get(nested ? json_object_get(v, type) : v, "name")),
                    !strcmp(type, "custom"));
    else
        field_wrong(&g->f, "tool_choice", "must be none, auto, required or a function by name");
}
