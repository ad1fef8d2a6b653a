/* What the readers of the APIs share. */
#ifndef SERVE_API_INTERNAL_H
#define SERVE_API_INTERNAL_H
#include "serve/api.h"
#include "serve/fields.h"
#include "text/json_text.h"

/* A request that is being read. */
struct reading {
    struct request *r;
    struct fields f;       /* of the whole body */
    struct json_text text; /* the body, for what must keep its spelling */
    bool asked;            /* a user message was seen: system messages stay where they are from here on */
};

void read_completions(struct reading *g);
void read_chat(struct reading *g);
void read_responses(struct reading *g);
void read_messages(struct reading *g);

/* Reads the elements of an array one by one; they are objects, or an error for `name`. f: of the object that has the
 * array, text: its spelling. */
typedef void element_reader(struct reading *g, json_t *element, struct json_text text);
void read_elements(struct reading *g, const struct fields *f, const char *name, struct json_text text,
                   element_reader *read);
/* The messages of chats; there must be some. */
void read_message_list(struct reading *g, element_reader *read);

/* ---- contents ---- */

enum content_role { CONTENT_SYSTEM, CONTENT_USER, CONTENT_ASSISTANT, CONTENT_RESULT };
/* The text of a string, of null, or of an array of parts of any API, joined by `between`. Pictures in results leave a
 * stand-in; elsewhere, and other media, they are an error. */
struct bpe_text read_content(struct reading *g, const struct fields *f, const char *name, enum content_role role,
                             const char *between);
struct bpe_text text_of(const char *s);
struct bpe_text text_of_json(const json_t *string);
/* A member as it is spelled in the body; absent or null: `absent`, which lives as long as the program. */
struct bpe_text raw_member(struct json_text object, const char *name, const char *absent);
/* The arguments of a custom tool's call whose text is the member "input". */
struct bpe_text custom_arguments(struct reading *g, struct json_text object);
/* A message of a system kind: at the start, or as the user where it comes later. */
void add_system(struct reading *g, struct bpe_text text);
/* An assistant message that calls can be added to: the last one, or a new one. */
struct chat_message *last_assistant(struct reading *g);

/* ---- fields that APIs share ---- */

void read_sampling(struct reading *g);
void read_max_tokens(struct reading *g, const char *name);
void read_stops(struct reading *g, const char *name, bool array_only);
void read_stream(struct reading *g);
/* An effort by name; sets thinking. */
void read_effort(struct reading *g, const struct fields *f, const char *name);
/* Whether to think and how much, in all the ways that clients of any API have for it; the later ones here win:
 * "reasoning_effort", "reasoning": {"effort"}, "chat_template_kwargs" (how vLLM and SGLang are told), "think": true or
 * false, "thinking": true, false or {"type": ...}. */
void read_thinking(struct reading *g);
/* Aliases of models that say whether to think. */
void read_model(struct reading *g);
/* Refuses a field that is there with another value than a harmless one: null, false, 0, [], {} or `harmless`, which may
 * be NULL. */
void refuse_field(const struct fields *f, const char *name, const char *harmless);
/* Refuses a field that means something whatever its value: all but null. */
void refuse_given(const struct fields *f, const char *name);
/* Refuses an object that asks for a format of the answer: its "type" is other than "text". */
void refuse_format(const struct fields *f, const char *name);

/* ---- tools ---- */

/* The "name" of a tool, or NULL after an error: there is none, or no call could be written with it. */
const char *read_tool_name(const struct fields *f);
/* Adds a function or custom tool described by an object of the body. name: in the prompt. */
void add_tool(struct reading *g, struct request_tool form, struct json_text object);
int find_tool(const struct request *r, const char *wire_name);
/* Sets the tool that must be called; an error if there is none of that name and kind. */
void choose_tool(struct reading *g, const char *field, const char *name, bool custom);
/* required: an error if there are no tools. */
void choose_any(struct reading *g, const char *field);
/* OpenAI's "tool_choice"; a tool's name stands in it, or, nested, in its member that is called like the tool's type. */
void read_openai_choice(struct reading *g, bool nested);

#endif
