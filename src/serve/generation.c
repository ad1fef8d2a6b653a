/* An answer, token by token: what comes next is sampled, or put there by the server; its bytes go through the parser,
 * the parser's events through the stop strings, and out to the client. */
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "serve/scheduler_internal.h"

enum { ROOM_TO_ANSWER = 1024 }; /* tokens that a budget of thinking leaves of a token limit, or half of it */

static const struct served_ops *ops_of(const struct slot *t)
{
    return t->session->ops;
}

static const struct request *request_of(const struct slot *t)
{
    return t->job->ask.request;
}

/* ---------------------------------------------------------------- events */

static void tell(struct slot *t, const struct event *e)
{
    t->job->client->event(t->job->arg, e);
}

static void tell_text(struct slot *t, const struct str *text)
{
    if (text->n) tell(t, &(struct event){.kind = EVENT_TEXT, .bytes = text->p, .n = text->n});
}

/* What the stop strings still held cannot become one any more. */
static void flush_stops(struct slot *t)
{
    struct str text = {0};
    if (t->stops && t->stop < 0) t->stop = stop_strings_end(t->stops, &text);
    tell_text(t, &text);
    str_free(&text);
}

/* Behind an opener of the server's own nothing is text: a call comes of it, or an error. */
static bool is_owed_a_call(const struct slot *t)
{
    return t->call_forced && !t->n_calls;
}

static void on_text(struct slot *t, const char *bytes, size_t n)
{
    struct str text = {0};
    if (t->stop >= 0 || is_owed_a_call(t)) return;
    if (!t->stops)
        str_add(&text, bytes, n);
    else
        t->stop = stop_strings_feed(t->stops, bytes, n, &text);
    tell_text(t, &text);
    str_free(&text);
}

static int tool_named(const struct request *r, const char *name, size_t n)
{
    for (size_t i = 0; i < r->n_tools; i++)
        if (r->tool[i].name.n == n && !memcmp(r->tool[i].name.p, name, n)) return (int)i;
    return -1;
}

static void on_call(struct slot *t, const char *name, size_t n)
{
    flush_stops(t);
    if (t->n_calls == t->cap_calls)
        t->call = mem_grow(t->call, (t->cap_calls = 2 * t->cap_calls + 4) * sizeof *t->call);
    char *id = t->call[t->n_calls++];
    tool_memory_id(request_of(t)->api == API_MESSAGES ? "toolu_" : "call_", id);
    t->tool = tool_named(request_of(t), name, n);
    tell(t, &(struct event){.kind = EVENT_CALL_BEGIN, .bytes = name, .n = n, .id = id, .tool = t->tool});
}

static void on_answer(void *arg, enum answer_kind kind, const char *bytes, size_t n)
{
    struct slot *t = arg;
    switch (kind) {
    case ANSWER_REASONING:
        str_add(&t->reasoning, bytes, n);
        tell(t, &(struct event){.kind = EVENT_REASONING, .bytes = bytes, .n = n});
        break;
    case ANSWER_TEXT:
        on_text(t, bytes, n);
        break;
    case ANSWER_CALL_BEGIN:
        if (t->stop < 0) on_call(t, bytes, n);
        break;
    case ANSWER_CALL_ARGUMENTS:
        if (t->stop < 0)
            tell(t, &(struct event){.kind = EVENT_CALL_ARGUMENTS, .bytes = bytes, .n = n, .tool = t->tool});
        break;
    case ANSWER_CALL_END:
        if (t->stop < 0) tell(t, &(struct event){.kind = EVENT_CALL_END, .tool = t->tool});
        break;
    }
}

/* ---------------------------------------------------------------- begin and end */

static int least_of(int a, int b)
{
    return a < b ? a : b;
}

static void set_limits(const struct scheduler *s, struct slot *t)
{
    const struct request *r = request_of(t);
    const int room = s->o.ctx - ops_of(t)->length(t->session);
    t->max_tokens = least_of(r->max_tokens >= 0 ? r->max_tokens : s->o.max_tokens, room);
    const int keep = least_of(ROOM_TO_ANSWER, t->max_tokens / 2);
    t->budget = r->thinking_budget ? least_of(r->thinking_budget, t->max_tokens - keep) : 0;
}

static void finish(struct scheduler *s, struct slot *t, enum answer_cause cause);

void generation_begin(struct scheduler *s, struct slot *t)
{
    const struct request *r = request_of(t);
    const bool named = r->choice == CHOICE_NAMED; /* then nothing else is a call */
    const struct answer_options o = {.syntax = s->info.codec->answer,
                                     .thinking = r->thinking != CHAT_THINK_OFF,
                                     .tools = named ? &r->tool[r->chosen] : r->tool,
                                     .n_tools = named                      ? 1
                                                : r->choice == CHOICE_NONE ? 0
                                                                           : r->n_tools,
                                     .one_call = r->one_call};
    t->answering = true;
    t->began = clock_s();
    t->read_s = t->began - t->job->placed;
    t->answer = answer_create(&o, on_answer, t);
    t->stops = r->n_stops ? stop_strings_create(r->stop, r->n_stops) : NULL;
    t->stop = -1;
    t->call_forced = false;
    t->repetition = (struct repetition){0};
    t->n_calls = 0;
    str_clear(&t->reasoning);
    set_limits(s, t);
    if (t->max_tokens)
        generation_next(s, t);
    else
        finish(s, t, CAUSE_LENGTH);
}

static void end_slot(struct scheduler *s, struct slot *t)
{
    answer_free(t->answer);
    t->answer = NULL;
    stop_strings_free(t->stops);
    t->stops = NULL;
    slot_release(s, t);
}

static const char *const finish_names[] = {[FINISH_STOP] = "stop",
                                           [FINISH_LENGTH] = "length",
                                           [FINISH_CALLS] = "tool_calls",
                                           [FINISH_STOP_STRING] = "stop_sequence"};

static void remember_calls(struct scheduler *s, struct slot *t)
{
    size_t n;
    const char *bytes = answer_block(t->answer, &n);
    struct str block = {0};
    str_add(&block, bytes, n);
    tool_memory_put(s->o.memory, request_of(t)->key, t->call, t->n_calls, &block, &t->reasoning);
    str_free(&block);
}

static void count(struct scheduler *s, const struct slot *t, enum finish finished)
{
    pthread_mutex_lock(&s->lock);
    struct scheduler_counts *c = &s->counts;
    c->finished[finished]++;
    c->completion_tokens += (uint64_t)t->usage.completion;
    c->decode_s += clock_s() - t->began;
    pthread_mutex_unlock(&s->lock);
}

static void finish(struct scheduler *s, struct slot *t, enum answer_cause cause)
{
    const struct request *r = request_of(t);
    const enum answer_end end = answer_finish(t->answer, cause);
    flush_stops(t);
    struct answer_result result = {.usage = t->usage, .thinking_closed = !answer_inside_thinking(t->answer)};
    result.finish = t->stop >= 0        ? FINISH_STOP_STRING
                    : end == END_CALLS  ? FINISH_CALLS
                    : end == END_LENGTH ? FINISH_LENGTH
                                        : FINISH_STOP;
    if (t->stop >= 0) result.stop_string = r->stop[t->stop];
    if (result.finish == FINISH_STOP && (r->choice == CHOICE_REQUIRED || r->choice == CHOICE_NAMED)) {
        struct api_error why = {.status = 500, .type = "server_error"};
        snprintf(why.message, sizeof why.message, "the model did not make the call that tool_choice asks for");
        generation_fail(s, t, &why);
        return;
    }
    if (answer_note(t->answer))
        log_msg(LOG_INFO, "request", "#%llu: %s", (unsigned long long)t->job->number, answer_note(t->answer));
    if (result.finish == FINISH_CALLS) remember_calls(s, t);
    count(s, t, result.finish);
    request_log(s, t, finish_names[result.finish]);
    t->job->client->end(t->job->arg, &result);
    end_slot(s, t);
}

void generation_fail(struct scheduler *s, struct slot *t, const struct api_error *why)
{
    pthread_mutex_lock(&s->lock);
    s->counts.failed++;
    pthread_mutex_unlock(&s->lock);
    request_log(s, t, why->message);
    t->job->client->error(t->job->arg, why);
    end_slot(s, t);
}

void generation_drop(struct scheduler *s, struct slot *t)
{
    pthread_mutex_lock(&s->lock);
    s->counts.cancelled++;
    pthread_mutex_unlock(&s->lock);
    request_log(s, t, "client gone");
    end_slot(s, t);
}

/* ---------------------------------------------------------------- tokens */

static void fail_with(struct scheduler *s, struct slot *t, const struct ds4_error *e)
{
    struct api_error why;
    failure_of_model(s, e, &why);
    generation_fail(s, t, &why);
}

/* Bytes of the answer, sampled or forced; true: it is over and has been ended. */
static bool take_bytes(struct scheduler *s, struct slot *t, const char *bytes, size_t n)
{
    const bool over = answer_feed(t->answer, bytes, n);
    if (!over && t->stop < 0) return false;
    finish(s, t, t->stop >= 0 ? CAUSE_STOP_STRING : CAUSE_STOP);
    return true;
}

/* Tokens that belong to the answer go into the session. */
static void submit(struct scheduler *s, struct slot *t, const int32_t *tokens, int n)
{
    struct ds4_error e = {0};
    const int length = ops_of(t)->length(t->session);
    if (t->usage.completion >= t->max_tokens || length + n >= s->o.ctx) {
        finish(s, t, CAUSE_LENGTH);
        return;
    }
    memset(t->sampled + length, 1, (size_t)n * sizeof *t->sampled);
    if (ops_of(t)->submit(t->session, tokens, n, &e)) fail_with(s, t, &e);
}

/* Puts text into the answer: what would have closed the thinking, or opened a call. */
static void force(struct scheduler *s, struct slot *t, const char *bytes, size_t n)
{
    struct prompt p = {0};
    struct ds4_tokens tokens = {0};
    struct ds4_error e = {0};
    const bool thinking = answer_inside_thinking(t->answer);
    prompt_marked(&p, bytes, n, s->info.codec);
    const int rc = s->o.model.ops->encode(s->o.model.model, &p, &tokens, NULL, &e);
    if (rc) {
        fail_with(s, t, &e);
    } else {
        ops_of(t)->forced(t->session, bytes, n);
        t->usage.completion += (int)tokens.n;
        if (thinking) t->usage.reasoning += (int)tokens.n;
        if (!take_bytes(s, t, bytes, n)) submit(s, t, tokens.p, (int)tokens.n);
    }
    prompt_free(&p);
    ds4_tokens_free(&tokens);
}

/* Text that has to come now, or false. */
static bool forced_text(const struct scheduler *s, struct slot *t, struct str *out)
{
    const struct request *r = request_of(t);
    const bool thinking = answer_inside_thinking(t->answer);
    if (thinking && t->budget && t->usage.reasoning >= t->budget)
        str_puts(out, answer_think_close(s->info.codec->answer));
    else if (!thinking && !t->call_forced && !t->n_calls &&
             (r->choice == CHOICE_REQUIRED || r->choice == CHOICE_NAMED)) {
        const struct bpe_text name = r->choice == CHOICE_NAMED ? r->tool[r->chosen].name : (struct bpe_text){NULL, 0};
        answer_force_call(t->answer, name.p, name.n, out);
        t->call_forced = out->n > 0;
    }
    return out->n > 0;
}

static void tell_logprobs(struct slot *t, const struct served_choice *c, const char *bytes, size_t n)
{
    struct event_logprob alternative[SERVED_MAX_ALTERNATIVES];
    for (int i = 0; i < c->n_alternatives; i++)
        alternative[i] =
            (struct event_logprob){c->alternative[i].bytes, c->alternative[i].n, c->alternative[i].logprob};
    tell(t, &(struct event){.kind = EVENT_LOGPROBS,
                            .token = {bytes, n, c->logprob},
                            .alternative = alternative,
                            .n_alternatives = c->n_alternatives});
}

/* True if the token is one too many of the same; the answer has been ended then. */
static bool repeats(struct scheduler *s, struct slot *t, int32_t token)
{
    const int period = s->o.repetition_guard ? repetition_add(&t->repetition, token) : 0;
    if (!period) return false;
    log_msg(LOG_WARN, "request", "#%llu: the same %d tokens were repeated for more than %d; the answer ends here",
            (unsigned long long)t->job->number, period, REPETITION_TOKENS);
    finish(s, t, CAUSE_LENGTH);
    return true;
}

static void sampled_token(struct scheduler *s, struct slot *t, const struct served_choice *c)
{
    const char *bytes;
    const size_t n = s->o.model.ops->token_bytes(s->o.model.model, c->id, &bytes);
    const bool thinking = answer_inside_thinking(t->answer);
    t->usage.completion++;
    if (thinking) t->usage.reasoning++;
    const bool told = !thinking && !answer_is_syntax(t->answer) && !is_owed_a_call(t);
    if (request_of(t)->logprobs && told) tell_logprobs(t, c, bytes, n);
    if (!take_bytes(s, t, bytes, n) && !repeats(s, t, c->id)) submit(s, t, &c->id, 1);
}

static void sample(struct scheduler *s, struct slot *t)
{
    const struct request *r = request_of(t);
    struct ds4_sampling sampling = r->sampling;
    if (answer_is_syntax(t->answer)) sampling.temperature = 0;
    const struct served_draw draw = {.sampling = &sampling, .logprobs = r->logprobs, .alternatives = r->top_logprobs};
    struct served_choice c;
    struct ds4_error e = {0};
    const int rc = ops_of(t)->next(t->session, &draw, &c, &e);
    if (rc == DS4_E_LIMIT)
        finish(s, t, CAUSE_LENGTH);
    else if (rc)
        fail_with(s, t, &e);
    else if (s->o.model.ops->token_is_stop(s->o.model.model, c.id))
        finish(s, t, CAUSE_STOP);
    else
        sampled_token(s, t, &c);
}

void generation_next(struct scheduler *s, struct slot *t)
{
    struct str text = {0};
    if (s->o.time_limit > 0 && clock_s() - t->job->placed > s->o.time_limit)
        finish(s, t, CAUSE_LENGTH);
    else if (forced_text(s, t, &text))
        force(s, t, text.p, text.n);
    else
        sample(s, t);
    str_free(&text);
}
