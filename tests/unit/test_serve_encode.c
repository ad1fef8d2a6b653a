/* Answers of the four APIs, byte by byte: streamed and whole. Ids are numbered in the order of their first appearance.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "base/mem.h"
#include "serve/api.h"
#include "../support/serve_kit.h"

struct told {
    struct request *r;
    struct encoder *e;
    struct str out;
};

static void begin(struct told *t, enum api api, const char *json)
{
    struct api_error why = {0};
    *t = (struct told){0};
    if (api_read(api, mem_strdup(json), strlen(json), &t->r, &why)) fail_msg("%s", why.message);
    t->r->created = 1700000000;
    t->e = encoder_new(t->r, "own-name");
}

static void started(struct told *t, int prompt, int cached)
{
    encoder_started(t->e, &(struct usage){.prompt = prompt, .cached = cached}, &t->out);
}

static void say(struct told *t, enum event_kind kind, const char *bytes)
{
    encoder_event(t->e, &(struct event){.kind = kind, .bytes = bytes, .n = strlen(bytes)}, &t->out);
}

static void call(struct told *t, int tool, const char *id, const char *a, const char *b, bool whole)
{
    encoder_event(t->e, &(struct event){.kind = EVENT_CALL_BEGIN, .bytes = "x", .n = 1, .id = id, .tool = tool},
                  &t->out);
    say(t, EVENT_CALL_ARGUMENTS, a);
    if (*b) say(t, EVENT_CALL_ARGUMENTS, b);
    if (whole) encoder_event(t->e, &(struct event){.kind = EVENT_CALL_END, .tool = tool}, &t->out);
}

static void end(struct told *t, enum finish finish, const char *stop, struct usage u)
{
    const struct answer_result result = {.finish = finish, .stop_string = stop, .thinking_closed = true, .usage = u};
    encoder_end(t->e, &result, &t->out);
}

/* Random ids become prefix#1, prefix#2, ... */
static void number_ids(const struct str *in, struct str *out)
{
    char seen[16][33];
    int n = 0;
    for (size_t i = 0; i < in->n;) {
        const size_t digits = strspn(in->p + i, "0123456789abcdef");
        if (digits != 32) {
            str_add(out, in->p + i, digits ? digits : 1);
            i += digits ? digits : 1;
            continue;
        }
        int k = 0;
        while (k < n && memcmp(seen[k], in->p + i, 32)) k++;
        if (k == n) memcpy(seen[n++], in->p + i, 32);
        str_printf(out, "#%d", k + 1);
        i += 32;
    }
}

/* wanted: with ' for ". */
static void expect(struct told *t, const char *wanted)
{
    struct str got = {0}, want = {0};
    number_ids(&t->out, &got);
    str_puts(&want, wanted);
    for (size_t i = 0; i < want.n; i++)
        if (want.p[i] == '\'') want.p[i] = '"';
    if (strcmp(str_c(&got), want.p)) {
        size_t at = 0;
        while (got.p && got.p[at] && got.p[at] == want.p[at]) at++;
        const size_t from = at > 60 ? at - 60 : 0;
        fail_msg("at %zu:\n  got    %.300s\n  wanted %.300s", at, str_c(&got) + from, want.p + from);
    }
    str_free(&got);
    str_free(&want);
    encoder_free(t->e);
    request_free(t->r);
    str_free(&t->out);
}

static const struct usage counts = {.prompt = 10, .cached = 4, .completion = 7, .reasoning = 3};

/* ---------------------------------------------------------------- chat */

#define CHAT_TOOLS "'tools':[{'type':'function','function':{'name':'run'}},{'type':'custom','custom':{'name':'patch'}}]"
#define CHAT_ASK   "'model':'m','messages':[{'role':'user','content':'Hi'}]," CHAT_TOOLS
#define CHUNK_HEAD                                                                                                     \
    "data: {'id':'chatcmpl-#1','object':'chat.completion.chunk','created':1700000000,'model':'m','choices':["
#define CHUNK_WITH(delta, finish, tail)                                                                                \
    CHUNK_HEAD "{'index':0,'delta':{" delta "},'finish_reason':" finish "}]" tail "}\n\n"
#define CHUNK(delta, finish)   CHUNK_WITH(delta, finish, "")
#define CHUNK_U(delta, finish) CHUNK_WITH(delta, finish, ",'usage':null")
#define CHAT_USAGE                                                                                                     \
    "{'prompt_tokens':10,'completion_tokens':7,'total_tokens':17,'prompt_tokens_details':{'cached_tokens':4},"         \
    "'completion_tokens_details':{'reasoning_tokens':3}}"
#define WHOLE(message, finish)                                                                                         \
    "{'id':'chatcmpl-#1','object':'chat.completion','created':1700000000,'model':'m','choices':[{'index':0,'message':" \
    "{'role':'assistant'," message "},'logprobs':null,'finish_reason':'" finish "'}],'usage':" CHAT_USAGE "}\n"

static void chat_answer(struct told *t, const char *more)
{
    begin(t, API_CHAT, serve_json("{" CHAT_ASK "%s}", more));
    started(t, 10, 4);
    say(t, EVENT_REASONING, "why\n");
    say(t, EVENT_TEXT, "a \xc3\xa9");
    say(t, EVENT_TEXT, "b\\");
    call(t, 0, "call_1", "{", "\x01}", true);
    call(t, 1, "call_2", "*** x", "", true);
    end(t, FINISH_CALLS, NULL, counts);
}

static void test_chat(void **state)
{
    struct told t;
    chat_answer(&t, ",'stream':true,'stream_options':{'include_usage':true}");
    expect(&t,
           CHUNK_U("'role':'assistant','content':''", "null") CHUNK_U("'reasoning_content':'why\\n'", "null")
               CHUNK_U("'content':'a \xc3\xa9'", "null") CHUNK_U("'content':'b\\\\'", "null")
                   CHUNK_U("'tool_calls':[{'index':0,'id':'call_1','type':'function','function':{'name':'run',"
                           "'arguments':''}}]",
                           "null") CHUNK_U("'tool_calls':[{'index':0,'function':{'arguments':'{'}}]", "null")
                       CHUNK_U("'tool_calls':[{'index':0,'function':{'arguments':'\\u0001}'}}]", "null")
                           CHUNK_U("'tool_calls':[{'index':1,'id':'call_2','type':'custom','custom':{'name':"
                                   "'patch','input':''}}]",
                                   "null") CHUNK_U("'tool_calls':[{'index':1,'custom':{'input':'*** x'}}]", "null")
                               CHUNK_U("", "'tool_calls'") CHUNK_HEAD "],'usage':" CHAT_USAGE "}\n\ndata: [DONE]\n\n");
    chat_answer(&t, "");
    expect(&t,
           WHOLE("'content':'a \xc3\xa9"
                 "b\\\\','reasoning_content':'why\\n','refusal':null,'tool_calls':[{'id':'call_1','type':'function',"
                 "'function':{'name':'run','arguments':'{\\u0001}'}},{'id':'call_2','type':'custom','custom':{'name':"
                 "'patch','input':'*** x'}}]",
                 "tool_calls"));
}

static void test_chat_endings(void **state)
{
    struct told t;
    const char *stream = serve_json("{" CHAT_ASK ",'stream':true}"), *plain = serve_json("{" CHAT_ASK "}");
    /* nothing said */
    begin(&t, API_CHAT, plain);
    started(&t, 10, 4);
    end(&t, FINISH_STOP, NULL, counts);
    expect(&t, WHOLE("'content':'','refusal':null", "stop"));
    begin(&t, API_CHAT, stream);
    started(&t, 10, 4);
    end(&t, FINISH_STOP_STRING, "END", counts);
    expect(&t, CHUNK("'role':'assistant','content':''", "null") CHUNK("", "'stop'") "data: [DONE]\n\n");
    /* a call that the limit cut is none */
    begin(&t, API_CHAT, plain);
    call(&t, 0, "call_1", "{}", "", true);
    call(&t, 0, "call_2", "{", "", false);
    end(&t, FINISH_LENGTH, NULL, counts);
    expect(&t, WHOLE("'content':null,'refusal':null,'tool_calls':[{'id':'call_1','type':'function','function':{'name':"
                     "'run','arguments':'{}'}}]",
                     "length"));
    begin(&t, API_CHAT, plain);
    call(&t, 0, "call_2", "{", "", false);
    end(&t, FINISH_LENGTH, NULL, counts);
    expect(&t, WHOLE("'content':'','refusal':null", "length"));
    /* signs of life: the first is the beginning */
    begin(&t, API_CHAT, stream);
    encoder_alive(t.e, &t.out);
    encoder_alive(t.e, &t.out);
    started(&t, 10, 4);
    expect(&t, CHUNK("'role':'assistant','content':''", "null") CHUNK("", "null"));
    begin(&t, API_CHAT, plain);
    encoder_alive(t.e, &t.out);
    expect(&t, "");
    /* a failure within the answer */
    begin(&t, API_CHAT, stream);
    started(&t, 10, 4);
    say(&t, EVENT_TEXT, "a");
    encoder_error(t.e, &(struct api_error){.status = 503, .type = "server_error", .message = "device \"lost\""},
                  &t.out);
    expect(&t, CHUNK("'role':'assistant','content':''", "null")
                   CHUNK("'content':'a'", "null") "data: {'error':{'message':'device \\'lost\\'','type':'server_error',"
                                                  "'param':null,'code':null}}\n\ndata: [DONE]\n\n");
    /* without a name the server's own */
    begin(&t, API_CHAT, serve_json("{'messages':[{'content':'Hi'}],'stream':true}"));
    end(&t, FINISH_LENGTH, NULL, counts);
    expect(&t, "data: {'id':'chatcmpl-#1','object':'chat.completion.chunk','created':1700000000,'model':'own-name',"
               "'choices':[{'index':0,'delta':{},'finish_reason':'length'}]}\n\ndata: [DONE]\n\n");
}

static void logprob(struct told *t, const char *bytes, float p, int n, const struct event_logprob *others)
{
    encoder_event(
        t->e,
        &(struct event){
            .kind = EVENT_LOGPROBS, .token = {bytes, strlen(bytes), p}, .n_alternatives = n, .alternative = others},
        &t->out);
}

#define TOKEN_A                                                                                                        \
    "{'token':'a','logprob':-0.5,'bytes':[97],'top_logprobs':[{'token':'a','logprob':-0.5,'bytes':[97]},"              \
    "{'token':'b','logprob':-1.25,'bytes':[98]}]}"
#define TOKEN_HALF "{'token':'\xef\xbf\xbd','logprob':-9999,'bytes':[195],'top_logprobs':[]}"

static void test_chat_logprobs(void **state)
{
    const struct event_logprob two[] = {{"a", 1, -0.5f}, {"b", 1, -1.25f}};
    for (int stream = 0; stream < 2; stream++) {
        struct told t;
        begin(&t, API_CHAT,
              serve_json("{" CHAT_ASK ",'logprobs':true,'top_logprobs':2,'stream':%s}", stream ? "true" : "false"));
        logprob(&t, "a", -0.5f, 2, two);
        say(&t, EVENT_TEXT, "a");
        logprob(&t, "\xc3", -1e30f, 0, NULL);
        end(&t, FINISH_LENGTH, NULL, counts);
        if (stream)
            expect(&t, CHUNK_HEAD "{'index':0,'delta':{'content':'a'},'logprobs':{'content':[" TOKEN_A
                                  "],'refusal':null},'finish_reason':null}]}\n\n" CHUNK_HEAD
                                  "{'index':0,'delta':{},'logprobs':{'content':[" TOKEN_HALF
                                  "],'refusal':null},'finish_reason':'length'}]}\n\ndata: [DONE]\n\n");
        else
            expect(
                &t,
                "{'id':'chatcmpl-#1','object':'chat.completion','created':1700000000,'model':'m','choices':[{"
                "'index':0,'message':{'role':'assistant','content':'a','refusal':null},'logprobs':{'content':[" TOKEN_A
                "," TOKEN_HALF "],'refusal':null},'finish_reason':'length'}],'usage':" CHAT_USAGE "}\n");
    }
}

/* ---------------------------------------------------------------- completions */

#define TEXT_HEAD                      "{'id':'cmpl-#1','object':'text_completion','created':1700000000,'model':'m','choices':["
#define TEXT_CHOICE(text, finish)      "{'text':'" text "','index':0,'logprobs':null,'finish_reason':" finish "}]"
#define TEXT_CHUNK(text, finish, tail) "data: " TEXT_HEAD TEXT_CHOICE(text, finish) tail "}\n\n"

static void test_completions(void **state)
{
    for (int stream = 0; stream < 3; stream++) {
        struct told t;
        begin(&t, API_COMPLETIONS,
              serve_json("{'model':'m','prompt':'Hi','stream':%s,'stream_options':{'include_usage':%s}}",
                         stream ? "true" : "false", stream == 2 ? "true" : "false"));
        started(&t, 10, 4);
        say(&t, EVENT_REASONING, "hidden");
        say(&t, EVENT_TEXT, "a");
        encoder_alive(t.e, &t.out);
        say(&t, EVENT_TEXT, "b");
        end(&t, stream ? FINISH_STOP_STRING : FINISH_LENGTH, "END", counts);
        if (stream == 0) expect(&t, TEXT_HEAD TEXT_CHOICE("ab", "'length'") ",'usage':" CHAT_USAGE "}\n");
        if (stream == 1)
            expect(&t, TEXT_CHUNK("a", "null", "") TEXT_CHUNK("", "null", "") TEXT_CHUNK("b", "null", "")
                           TEXT_CHUNK("", "'stop'", "") "data: [DONE]\n\n");
        if (stream == 2)
            expect(&t, TEXT_CHUNK("a", "null", ",'usage':null") TEXT_CHUNK("", "null", ",'usage':null")
                           TEXT_CHUNK("b", "null", ",'usage':null")
                               TEXT_CHUNK("", "'stop'", ",'usage':null") "data: " TEXT_HEAD "],'usage':" CHAT_USAGE
                                                                         "}\n\ndata: [DONE]\n\n");
    }
}

/* ---------------------------------------------------------------- messages */

#define MESSAGES_ASK                                                                                                   \
    "'model':'m','max_tokens':99,'messages':[{'role':'user','content':'Hi'}],'tools':[{'name':'run','input_schema':{}" \
    "}]"
#define EVENT(type, rest) "event: " type "\ndata: {'type':'" type "'" rest "}\n\n"
#define MESSAGE_HEAD      "'id':'msg_#1','type':'message','role':'assistant','model':'m','diagnostics':null"
#define STOPPED(reason, sequence)                                                                                      \
    "'container':null,'stop_details':null,'stop_reason':" reason ",'stop_sequence':" sequence
#define MORE_USAGE ",'cache_creation':null,'inference_geo':null,'service_tier':'standard','speed':null"
#define MESSAGE_START(usage)                                                                                           \
    EVENT("message_start",                                                                                             \
          ",'message':{" MESSAGE_HEAD ",'content':[]," STOPPED("null", "null") ",'usage':{" usage MORE_USAGE "}}")     \
    EVENT("ping", "")
#define FRESH               "'input_tokens':6,'cache_creation_input_tokens':0,'cache_read_input_tokens':4"
#define WRITTEN             "'input_tokens':0,'cache_creation_input_tokens':6,'cache_read_input_tokens':4"
#define NONE_YET            ",'output_tokens':0,'output_tokens_details':null,'server_tool_use':null"
#define SEVEN               ",'output_tokens':7,'output_tokens_details':null,'server_tool_use':null"
#define BLOCK(index, block) EVENT("content_block_start", ",'index':" index ",'content_block':{" block "}")
#define DELTA(index, delta) EVENT("content_block_delta", ",'index':" index ",'delta':{" delta "}")
#define STOP(index)         EVENT("content_block_stop", ",'index':" index)
#define MESSAGE_END(reason, sequence, usage)                                                                           \
    EVENT("message_delta", ",'delta':{" STOPPED("'" reason "'", sequence) "},'usage':{" usage "}")                     \
    EVENT("message_stop", "")
#define MESSAGE(content, reason, sequence, usage)                                                                      \
    "{" MESSAGE_HEAD ",'content':[" content "]," STOPPED("'" reason "'", sequence) ",'usage':{" usage MORE_USAGE "}}"  \
                                                                                   "\n"
#define EMPTY_TEXT "'type':'text','text':''"

static void messages_answer(struct told *t, const char *more)
{
    begin(t, API_MESSAGES, serve_json("{" MESSAGES_ASK "%s}", more));
    started(t, 10, 4);
    say(t, EVENT_REASONING, "w");
    say(t, EVENT_REASONING, "hy");
    say(t, EVENT_TEXT, "a'");
    call(t, 0, "toolu_1", "{\"x\"", ":1}", true);
    call(t, 0, "toolu_2", "{}", "", true);
    end(t, FINISH_CALLS, NULL, counts);
}

static void test_messages(void **state)
{
    struct told t;
    messages_answer(&t, ",'stream':true");
    /* the text holds a ' that is one */
    for (size_t i = 0; i < t.out.n; i++)
        if (t.out.p[i] == '\'') t.out.p[i] = '!';
    expect(
        &t,
        MESSAGE_START(FRESH NONE_YET) BLOCK("0", "'type':'thinking','thinking':'','signature':''") DELTA(
            "0", "'type':'thinking_delta','thinking':'w'") DELTA("0", "'type':'thinking_delta','thinking':'hy'")
            DELTA("0", "'type':'signature_delta','signature':'msg_#1'") STOP("0") BLOCK("1", EMPTY_TEXT)
                DELTA("1", "'type':'text_delta','text':'a!'") STOP("1") BLOCK(
                    "2", "'type':'tool_use','id':'toolu_1','name':'run','input':{},'caller':{'type':'direct'}")
                    DELTA("2", "'type':'input_json_delta','partial_json':'{\\'x\\''")
                        DELTA("2", "'type':'input_json_delta','partial_json':':1}'") STOP("2") BLOCK(
                            "3", "'type':'tool_use','id':'toolu_2','name':'run','input':{},'caller':{'type':'direct'}")
                            DELTA("3", "'type':'input_json_delta','partial_json':'{}'") STOP("3")
                                MESSAGE_END("tool_use", "null", FRESH SEVEN));
    messages_answer(&t, "");
    for (size_t i = 0; i < t.out.n; i++)
        if (t.out.p[i] == '\'') t.out.p[i] = '!';
    expect(&t, MESSAGE("{'type':'thinking','thinking':'why','signature':'msg_#1'},{'type':'text','text':'a!'},{'type':"
                       "'tool_use','id':'toolu_1','name':'run','input':{'x':1},'caller':{'type':'direct'}},{'type':'"
                       "tool_use','id':'toolu_2','name':"
                       "'run','input':{},'caller':{'type':'direct'}}",
                       "tool_use", "null", FRESH SEVEN));
}

static void test_messages_endings(void **state)
{
    struct told t;
    const char *stream = serve_json("{" MESSAGES_ASK ",'stream':true}"), *plain = serve_json("{" MESSAGES_ASK "}");
    /* a stop sequence, named; usage of a request that marks what to cache */
    begin(&t, API_MESSAGES, serve_json("{" MESSAGES_ASK ",'stream':true,'cache_control':{'type':'ephemeral'}}"));
    started(&t, 10, 4);
    say(&t, EVENT_TEXT, "a");
    end(&t, FINISH_STOP_STRING, "E\"", counts);
    expect(&t, MESSAGE_START(WRITTEN NONE_YET) BLOCK("0", EMPTY_TEXT) DELTA("0", "'type':'text_delta','text':'a'")
                   STOP("0") MESSAGE_END("stop_sequence", "'E\\''", WRITTEN SEVEN));
    begin(&t, API_MESSAGES, plain);
    say(&t, EVENT_TEXT, "a");
    end(&t, FINISH_STOP_STRING, "END", counts);
    expect(&t, MESSAGE("{'type':'text','text':'a'}", "stop_sequence", "'END'", FRESH SEVEN));
    /* nothing but thinking: an empty text */
    begin(&t, API_MESSAGES, stream);
    say(&t, EVENT_REASONING, "w");
    end(&t, FINISH_LENGTH, NULL, counts);
    expect(&t, BLOCK("0", "'type':'thinking','thinking':'','signature':''")
                   DELTA("0", "'type':'thinking_delta','thinking':'w'")
                       DELTA("0", "'type':'signature_delta','signature':'msg_#1'") STOP("0") BLOCK("1", EMPTY_TEXT)
                           STOP("1") MESSAGE_END("max_tokens", "null", FRESH SEVEN));
    begin(&t, API_MESSAGES, plain);
    end(&t, FINISH_STOP, NULL, counts);
    expect(&t, MESSAGE("{" EMPTY_TEXT "}", "end_turn", "null", FRESH SEVEN));
    /* a call that the limit cut */
    begin(&t, API_MESSAGES, plain);
    call(&t, 0, "toolu_1", "{", "", false);
    end(&t, FINISH_LENGTH, NULL, counts);
    expect(&t, MESSAGE("{" EMPTY_TEXT "}", "max_tokens", "null", FRESH SEVEN));
    begin(&t, API_MESSAGES, stream);
    call(&t, 0, "toolu_1", "{", "", false);
    end(&t, FINISH_LENGTH, NULL, counts);
    expect(&t, BLOCK("0", "'type':'tool_use','id':'toolu_1','name':'run','input':{},'caller':{'type':'direct'}")
                   DELTA("0", "'type':'input_json_delta','partial_json':'{'") STOP("0")
                       MESSAGE_END("max_tokens", "null", FRESH SEVEN));
    /* signs of life and a failure */
    begin(&t, API_MESSAGES, stream);
    encoder_alive(t.e, &t.out);
    encoder_error(t.e, &(struct api_error){.status = 503, .message = "lost"}, &t.out);
    expect(&t,
           EVENT("ping",
                 "") "event: error\ndata: {'type':'error','error':{'type':'overloaded_error','message':'lost'}}\n\n");
}

/* ---------------------------------------------------------------- responses */

#define RESPONSES_ASK                                                                                                  \
    "'model':'m','input':'Hi','tools':[{'type':'function','name':'run'},{'type':'custom','name':'patch'},{'type':"     \
    "'namespace','name':'ns__','tools':[{'name':'send'}]},{'type':'tool_search'},{'type':'local_shell'}]"
#define TOOLS_ECHO                                                                                                     \
    "[{'type':'function','name':'run','parameters':null,'strict':null},{'type':'custom','name':'patch'},{'type':'"     \
    "namespace','name':'ns__','tools':[{"                                                                              \
    "'name':'send'}]},{'type':'tool_search'},{'type':'local_shell'}]"
#define RESPONSE(status, error, incomplete, output, usage, summary)                                                    \
    "{'id':'resp_#1','object':'response','created_at':1700000000,'status':'" status "','model':'m','error':" error     \
    ",'incomplete_details':" incomplete ",'output':[" output "],'instructions':null,'max_output_tokens':null,"         \
    "'metadata':{},'parallel_tool_calls':true,'previous_response_id':null,'store':false,'temperature':1,"              \
    "'tool_choice':'auto','top_p':1,'user':null,'prompt_cache_key':null,'tools':" TOOLS_ECHO ",'reasoning':{'effort':" \
    "null,'summary':" summary "},'text':{'format':{'type':'text'}},'truncation':'disabled','background':false,"        \
    "'service_tier':'default','access_programs':null,'usage':" usage "}"
#define RESPONSES_USAGE                                                                                                \
    "{'input_tokens':10,'input_tokens_details':{'cached_tokens':4,'cache_write_tokens':6},'output_tokens':7,"          \
    "'output_tokens_details':{'reasoning_tokens':3},'total_tokens':17}"
#define SEQ(type, n, rest) "event: " type "\ndata: {'type':'" type "','sequence_number':" n rest "}\n\n"
#define RUNNING(summary)                                                                                               \
    SEQ("response.created", "0", ",'response':" RESPONSE("in_progress", "null", "null", "", "null", summary))          \
    SEQ("response.in_progress", "1", ",'response':" RESPONSE("in_progress", "null", "null", "", "null", summary))
#define ITEM(event, n, index, item) SEQ("response.output_item." event, n, ",'output_index':" index ",'item':{" item "}")
#define AT(id, index)               ",'item_id':'" id "','output_index':" index

#define REASONING_ITEM                                                                                                 \
    "{'id':'rs_#2','type':'reasoning','status':'completed','summary':[{'type':'summary_text','text':'why'}]}"
#define TEXT_PART(text) "{'type':'output_text','text':'" text "','annotations':[],'logprobs':[]}"
#define MESSAGE_ITEM(id, status, text)                                                                                 \
    "{'id':'" id "','type':'message','status':'" status "','role':'assistant','content':[" TEXT_PART(text) "]}"

static void test_responses(void **state)
{
    struct told t;
    begin(&t, API_RESPONSES, serve_json("{" RESPONSES_ASK ",'stream':true,'reasoning':{'summary':'auto'}}"));
    started(&t, 10, 4);
    say(&t, EVENT_REASONING, "w");
    say(&t, EVENT_REASONING, "hy");
    say(&t, EVENT_TEXT, "hel");
    say(&t, EVENT_TEXT, "lo");
    end(&t, FINISH_STOP, NULL, counts);
    expect(
        &t,
        RUNNING("'auto'") ITEM("added", "2", "0", "'id':'rs_#2','type':'reasoning','status':'in_progress','summary':[]")
            SEQ("response.reasoning_summary_part.added", "3",
                AT("rs_#2", "0") ",'summary_index':0,'part':{'type':'summary_text','text':''}")
                SEQ("response.reasoning_summary_text.delta", "4", AT("rs_#2", "0") ",'summary_index':0,'delta':'w'")
                    SEQ("response.reasoning_summary_text.delta", "5",
                        AT("rs_#2", "0") ",'summary_index':0,'delta':'hy'")
                        SEQ("response.reasoning_summary_text.done", "6",
                            AT("rs_#2", "0") ",'summary_index':0,'text':'why'")
                            SEQ("response.reasoning_summary_part.done", "7",
                                AT("rs_#2", "0") ",'summary_index':0,'part':{'type':'summary_text','text':'why'}")
                                SEQ("response.output_item.done", "8", ",'output_index':0,'item':" REASONING_ITEM) ITEM(
                                    "added", "9", "1",
                                    "'id':'msg_#3','type':'message','status':'in_progress','role':"
                                    "'assistant','content':[]") SEQ("response.content_part.added", "10",
                                                                    AT("msg_#3",
                                                                       "1") ",'content_index':0,'part':" TEXT_PART(""))
                                    SEQ("response.output_text.delta", "11",
                                        AT("msg_#3", "1") ",'content_index':0,'delta':'hel','logprobs':[]")
                                        SEQ("response.output_text.delta", "12",
                                            AT("msg_#3", "1") ",'content_index':0,'delta':'lo','logprobs':[]")
                                            SEQ("response.output_text.done", "13",
                                                AT("msg_#3", "1") ",'content_index':0,'text':'hello',"
                                                                  "'logprobs':[]")
                                                SEQ("response.content_part.done", "14",
                                                    AT("msg_#3", "1") ",'content_index':0,'part':" TEXT_PART("hello"))
                                                    SEQ("response.output_item.done", "15",
                                                        ",'output_index':1,'item':" MESSAGE_ITEM("msg_#3", "completed",
                                                                                                 "hello"))
                                                        SEQ("response.completed", "16",
                                                            ",'response':" RESPONSE("completed", "null", "null",
                                                                                    REASONING_ITEM "," MESSAGE_ITEM(
                                                                                        "msg_#3", "completed", "hello"),
                                                                                    RESPONSES_USAGE, "'auto'")));
    /* whole; without summaries reasoning is not told */
    begin(&t, API_RESPONSES, serve_json("{" RESPONSES_ASK "}"));
    started(&t, 10, 4);
    say(&t, EVENT_REASONING, "why");
    say(&t, EVENT_TEXT, "hello");
    end(&t, FINISH_STOP, NULL, counts);
    expect(&t, RESPONSE("completed", "null", "null", MESSAGE_ITEM("msg_#2", "completed", "hello"), RESPONSES_USAGE,
                        "null") "\n");
}

#define RUN_ITEM(status, arguments)                                                                                    \
    "'id':'fc_#2','type':'function_call','status':'" status                                                            \
    "','call_id':'call_1','name':'run','arguments':'" arguments "'"
#define PATCH_ITEM(status, input)                                                                                      \
    "'id':'ctc_#3','type':'custom_tool_call','status':'" status "','call_id':'call_2','name':'patch','input':'" input  \
    "'"
#define SEND_ITEM(status, arguments)                                                                                   \
    "'id':'fc_#4','type':'function_call','status':'" status                                                            \
    "','call_id':'call_3','name':'send','namespace':'ns__','arguments':'" arguments "'"
#define SEARCH_ITEM(status, arguments)                                                                                 \
    "'id':'tsc_#5','type':'tool_search_call','status':'" status                                                        \
    "','call_id':'call_4','execution':'client','arguments':" arguments
#define SHELL_ITEM(status, command)                                                                                    \
    "'id':'lsh_#6','type':'local_shell_call','status':'" status                                                        \
    "','call_id':'call_5','action':{'type':'exec','env':{},'command':" command "}"
#define ALL_CALLS                                                                                                      \
    "{" RUN_ITEM("completed", "{\\'a\\':1}") "},{" PATCH_ITEM("completed", "*** x") "},{" SEND_ITEM(                   \
        "completed", "{}") "},{" SEARCH_ITEM("completed", "{'query':'q'}") "},{" SHELL_ITEM("completed", "['ls']") "}"

static void responses_calls(struct told *t, const char *more)
{
    begin(t, API_RESPONSES, serve_json("{" RESPONSES_ASK "%s}", more));
    started(t, 10, 4);
    call(t, 0, "call_1", "{\"a\"", ":1}", true);
    call(t, 1, "call_2", "*** x", "", true);
    call(t, 2, "call_3", "{}", "", true);
    call(t, 3, "call_4", "{\"query\":\"q\"}", "", true);
    call(t, 4, "call_5", "{\"command\":[\"ls\"]}", "", true);
    end(t, FINISH_CALLS, NULL, counts);
}

static void test_responses_calls(void **state)
{
    struct told t;
    responses_calls(&t, ",'stream':true");
    expect(&t,
           RUNNING("null") ITEM("added", "2", "0", RUN_ITEM("in_progress", ""))
               SEQ("response.function_call_arguments.delta", "3", AT("fc_#2", "0") ",'delta':'{\\'a\\''") SEQ(
                   "response.function_call_arguments.delta", "4",
                   AT("fc_#2", "0") ",'delta':':1}'") SEQ("response.function_call_arguments.done", "5",
                                                          AT("fc_#2", "0") ",'arguments':'{\\'a\\':1}','name':'run'")
                   ITEM("done", "6", "0", RUN_ITEM("completed", "{\\'a\\':1}")) ITEM("added", "7", "1",
                                                                                     PATCH_ITEM("in_progress", ""))
                       SEQ("response.custom_tool_call_input.delta", "8", AT("ctc_#3", "1") ",'delta':'*** x'")
                           SEQ("response.custom_tool_call_input.done", "9", AT("ctc_#3", "1") ",'input':'*** x'")
                               ITEM("done", "10", "1", PATCH_ITEM("completed", "*** x"))
                                   ITEM("added", "11", "2", SEND_ITEM("in_progress", "")) SEQ(
                                       "response.function_call_arguments.delta", "12", AT("fc_#4", "2") ",'delta':'{}'")
                                       SEQ("response.function_call_arguments.done", "13",
                                           AT("fc_#4", "2") ",'arguments':'{}','name':'send'")
                                           ITEM("done", "14", "2", SEND_ITEM("completed", "{}"))
                                               ITEM("added", "15", "3", SEARCH_ITEM("in_progress", "{}"))
                                                   ITEM("done", "16", "3", SEARCH_ITEM("completed", "{'query':'q'}"))
                                                       ITEM("added", "17", "4", SHELL_ITEM("in_progress", "[]"))
                                                           ITEM("done", "18", "4", SHELL_ITEM("completed", "['ls']"))
                                                               SEQ("response.completed", "19",
                                                                   ",'response':" RESPONSE("completed", "null", "null",
                                                                                           ALL_CALLS, RESPONSES_USAGE,
                                                                                           "null")));
    responses_calls(&t, "");
    expect(&t, RESPONSE("completed", "null", "null", ALL_CALLS, RESPONSES_USAGE, "null") "\n");
}

#define CUT "{'reason':'max_output_tokens'}"

static void test_responses_endings(void **state)
{
    struct told t;
    const char *stream = serve_json("{" RESPONSES_ASK ",'stream':true}"), *plain = serve_json("{" RESPONSES_ASK "}");
    begin(&t, API_RESPONSES, plain);
    say(&t, EVENT_TEXT, "hel");
    end(&t, FINISH_LENGTH, NULL, counts);
    expect(&t, RESPONSE("incomplete", "null", CUT, MESSAGE_ITEM("msg_#2", "incomplete", "hel"), RESPONSES_USAGE,
                        "null") "\n");
    /* a call that the limit cut: whole, nobody has seen it; streamed, it is told as it is */
    begin(&t, API_RESPONSES, plain);
    call(&t, 0, "call_1", "{", "", false);
    end(&t, FINISH_LENGTH, NULL, counts);
    expect(&t, RESPONSE("incomplete", "null", CUT, "", RESPONSES_USAGE, "null") "\n");
    begin(&t, API_RESPONSES, stream);
    started(&t, 10, 4);
    call(&t, 0, "call_1", "{", "", false);
    end(&t, FINISH_LENGTH, NULL, counts);
    expect(&t,
           RUNNING("null") ITEM("added", "2", "0", RUN_ITEM("in_progress", ""))
               SEQ("response.function_call_arguments.delta", "3", AT("fc_#2", "0") ",'delta':'{'")
                   SEQ("response.function_call_arguments.done", "4", AT("fc_#2", "0") ",'arguments':'{','name':'run'")
                       ITEM("done", "5", "0", RUN_ITEM("incomplete", "{"))
                           SEQ("response.incomplete", "6",
                               ",'response':" RESPONSE("incomplete", "null", CUT, "{" RUN_ITEM("incomplete", "{") "}",
                                                       RESPONSES_USAGE, "null")));
    /* signs of life, then a failure within a text */
    begin(&t, API_RESPONSES, stream);
    encoder_alive(t.e, &t.out);
    encoder_alive(t.e, &t.out);
    str_clear(&t.out);
    say(&t, EVENT_TEXT, "a");
    str_clear(&t.out);
    encoder_error(t.e, &(struct api_error){.status = 503, .message = "lost"}, &t.out);
    expect(
        &t,
        SEQ("response.output_text.done", "6", AT("msg_#1", "0") ",'content_index':0,'text':'a','logprobs':[]")
            SEQ("response.content_part.done", "7", AT("msg_#1", "0") ",'content_index':0,'part':" TEXT_PART("a")) SEQ(
                "response.output_item.done", "8", ",'output_index':0,'item':" MESSAGE_ITEM("msg_#1", "incomplete", "a"))
                SEQ("response.failed", "9",
                    ",'response':{'id':'resp_#2','object':'response','created_at':1700000000,'status':'failed',"
                    "'model':'m','error':{'code':'server_error','message':'lost'},'incomplete_details':null,"
                    "'output':[" MESSAGE_ITEM(
                        "msg_#1", "incomplete",
                        "a") "],'instructions':null,"
                             "'max_output_tokens':null,'metadata':{},'parallel_tool_calls':true,'previous_response_id':"
                             "null,'store':false,'temperature':1,'tool_choice':'auto','top_p':1,'user':null,'prompt_"
                             "cache_key':null,'tools':" TOOLS_ECHO ",'reasoning':{'effort':null,'summary':null},"
                             "'text':{'format':{'type':'text'}},'truncation':'disabled','background':false,"
                             "'service_tier':'default','access_programs':null,'usage':null}"));
}

/* ---------------------------------------------------------------- errors */

static void error_body(const char *path, const struct api_error *why, const char *wanted)
{
    struct str out = {0};
    api_error_body(path, why, &out);
    assert_string_equal(str_c(&out), serve_json("%s\n", wanted));
    str_free(&out);
}

static void test_errors(void **state)
{
    const struct api_error bad = {.status = 400, .type = "invalid_request_error", .param = "n", .message = "n: no"};
    const struct api_error full = {.status = 400,
                                   .type = "invalid_request_error",
                                   .param = "messages",
                                   .code = "context_length_exceeded",
                                   .n_prompt = 9,
                                   .n_ctx = 8,
                                   .message = "long"};
    error_body("/v1/chat/completions", &bad,
               "{'error':{'message':'n: no','type':'invalid_request_error','param':'n','code':null}}");
    error_body("/v1/responses", &full,
               "{'error':{'message':'long','type':'invalid_request_error','param':'messages','code':"
               "'context_length_exceeded','n_prompt_tokens':9,'n_ctx':8}}");
    error_body("/v1/messages", &bad, "{'type':'error','error':{'type':'invalid_request_error','message':'n: no'}}");
    error_body(
        "/v1/messages/count_tokens", &full,
        "{'type':'error','error':{'type':'invalid_request_error','message':'long','n_prompt_tokens':9,'n_ctx':8}}");
    const struct {
        int status;
        const char *type;
    } types[] = {{401, "authentication_error"},
                 {403, "permission_error"},
                 {404, "not_found_error"},
                 {405, "invalid_request_error"},
                 {413, "request_too_large"},
                 {429, "rate_limit_error"},
                 {500, "api_error"},
                 {503, "overloaded_error"},
                 {529, "overloaded_error"}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct str want = {0};
        str_printf(&want, "{'type':'error','error':{'type':'%s','message':'m'}}", types[i].type);
        error_body("/v1/messages", &(struct api_error){.status = types[i].status, .message = "m"}, want.p);
        str_free(&want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chat),
        cmocka_unit_test(test_chat_endings),
        cmocka_unit_test(test_chat_logprobs),
        cmocka_unit_test(test_completions),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_messages_endings),
        cmocka_unit_test(test_responses),
        cmocka_unit_test(test_responses_calls),
        cmocka_unit_test(test_responses_endings),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
