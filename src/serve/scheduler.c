#include "serve/scheduler.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/clock.h"
#include "base/mem.h"
#include "serve/scheduler_internal.h"

enum {
    REMIND_S = 1,
    MOST_UNREAD = 8 << 20, /* bytes of an answer that its client has not read yet */
    LOOK_AGAIN_NS = 1000000
};

/* ---------------------------------------------------------------- jobs */

void ask_free(struct ask *a)
{
    request_free(a->request);
    prompt_free(&a->prompt);
    ds4_tokens_free(&a->tokens);
    mem_free(a->turn);
    mem_free((char *)a->who);
    *a = (struct ask){0};
}

void job_free(struct job *j)
{
    j->client->drop(j->arg);
    ask_free(&j->ask);
    mem_free(j);
}

/* The prompt has been read, or as far as it ever will be. */
static void count_prompt(struct scheduler *s, const struct slot *t)
{
    pthread_mutex_lock(&s->lock);
    s->counts.prompt_tokens += (uint64_t)(t->usage.cached + slot_read(t));
    s->counts.cached_tokens += (uint64_t)t->usage.cached;
    s->counts.prefill_s += clock_s() - t->job->placed;
    pthread_mutex_unlock(&s->lock);
}

void slot_release(struct scheduler *s, struct slot *t)
{
    struct job *j = t->job;
    if (!t->answering) count_prompt(s, t);
    t->used = clock_s();
    pthread_mutex_lock(&s->lock);
    t->job = NULL; /* scheduler_cancel looks for it */
    s->active--;
    pthread_mutex_unlock(&s->lock);
    job_free(j);
}

static void going_down(const struct scheduler *s, struct api_error *why)
{
    *why = (struct api_error){.status = 503, .type = "server_error", .retry_after = s->failure[0] ? 60 : 5};
    if (s->failure[0])
        snprintf(why->message, sizeof why->message, "the model has failed: %s", s->failure);
    else
        snprintf(why->message, sizeof why->message, "the server is shutting down");
}

/* With the lock. */
static bool takes_more(const struct scheduler *s, struct api_error *why)
{
    if (!s->stopping && !s->failure[0]) return true;
    going_down(s, why);
    return false;
}

bool scheduler_open(struct scheduler *s, struct api_error *why)
{
    pthread_mutex_lock(&s->lock);
    const bool open = takes_more(s, why);
    pthread_mutex_unlock(&s->lock);
    return open;
}

uint64_t scheduler_add(struct scheduler *s, struct ask *ask, const struct client *client, void *arg,
                       struct api_error *why)
{
    struct job *j = mem_alloc(sizeof *j);
    *j = (struct job){.ask = *ask, .client = client, .arg = arg, .arrived = clock_s()};
    j->spoken = j->arrived;
    pthread_mutex_lock(&s->lock);
    const bool open = takes_more(s, why);
    const uint64_t number = open ? ++s->numbers : 0;
    if (open) {
        j->number = number;
        *s->queue_end = j;
        s->queue_end = &j->next;
        s->queued++;
        s->counts.requests++;
        *ask = (struct ask){0};
        pthread_cond_signal(&s->wake);
    }
    pthread_mutex_unlock(&s->lock);
    if (!open) mem_free(j);
    return number;
}

void scheduler_cancel(struct scheduler *s, uint64_t number)
{
    pthread_mutex_lock(&s->lock);
    for (struct job *j = s->queue; j; j = j->next)
        if (j->number == number) atomic_store(&j->cancelled, true);
    if (s->placing && s->placing->number == number) atomic_store(&s->placing->cancelled, true);
    for (int i = 0; i < s->n_slots; i++) {
        struct slot *t = &s->slot[i];
        if (!t->job || t->job->number != number) continue;
        atomic_store(&t->job->cancelled, true);
        t->session->ops->cancel(t->session);
    }
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

static bool has_failed(struct scheduler *s)
{
    return scheduler_failed(s, NULL, 0);
}

/* The first of the queue; NULL: it is empty. */
static struct job *queue_take(struct scheduler *s)
{
    pthread_mutex_lock(&s->lock);
    struct job *j = s->placing = s->queue;
    if (j) {
        s->queue = j->next;
        if (!s->queue) s->queue_end = &s->queue;
        s->queued--;
    }
    pthread_mutex_unlock(&s->lock);
    return j;
}

/* The first of the queue again. */
static void queue_return(struct scheduler *s, struct job *j)
{
    pthread_mutex_lock(&s->lock);
    s->placing = NULL;
    j->next = s->queue;
    if (!s->queue) s->queue_end = &j->next;
    s->queue = j;
    s->queued++;
    pthread_mutex_unlock(&s->lock);
}

/* Those whose clients have gone leave the queue. */
static void queue_sweep(struct scheduler *s)
{
    struct job *gone = NULL;
    pthread_mutex_lock(&s->lock);
    for (struct job **at = &s->queue; *at;) {
        struct job *j = *at;
        if (!atomic_load(&j->cancelled)) {
            at = &j->next;
            continue;
        }
        *at = j->next;
        j->next = gone;
        gone = j;
        s->queued--;
        s->counts.cancelled++;
    }
    s->queue_end = &s->queue;
    while (*s->queue_end) s->queue_end = &(*s->queue_end)->next;
    pthread_mutex_unlock(&s->lock);
    while (gone) {
        struct job *j = gone;
        gone = j->next;
        job_free(j);
    }
}

/* ---------------------------------------------------------------- failures */

void failure_of_model(struct scheduler *s, const struct ds4_error *e, struct api_error *out)
{
    *out = (struct api_error){.status = e->code == DS4_E_DEVICE ? 503 : 500, .type = "server_error"};
    snprintf(out->message, sizeof out->message, "%s", e->message);
    if (e->code != DS4_E_DEVICE) return;
    out->retry_after = 60;
    pthread_mutex_lock(&s->lock);
    if (!s->failure[0]) snprintf(s->failure, sizeof s->failure, "%s", e->message);
    pthread_mutex_unlock(&s->lock);
}

bool scheduler_failed(struct scheduler *s, char *reason, size_t n)
{
    pthread_mutex_lock(&s->lock);
    const bool failed = s->failure[0] != 0;
    if (reason) snprintf(reason, n, "%s", s->failure);
    pthread_mutex_unlock(&s->lock);
    return failed;
}

/* ---------------------------------------------------------------- placing */

static void reject(struct scheduler *s, struct job *j, const struct api_error *why)
{
    pthread_mutex_lock(&s->lock);
    s->placing = NULL;
    s->counts.failed++;
    pthread_mutex_unlock(&s->lock);
    j->client->error(j->arg, why);
    job_free(j);
}

static void start(struct scheduler *s, struct slot *t, struct job *j)
{
    pthread_mutex_lock(&s->lock);
    s->placing = NULL;
    t->job = j;
    s->active++;
    pthread_mutex_unlock(&s->lock);
    j->client->started(j->arg, &t->usage);
    if (atomic_load(&j->cancelled)) t->session->ops->cancel(t->session);
}

/* False: it has to wait a moment longer. */
static bool place(struct scheduler *s, struct job *j)
{
    struct slot *t;
    struct ds4_error e = {0};
    struct api_error why;
    if (has_failed(s)) {
        going_down(s, &why);
        reject(s, j, &why);
        return true;
    }
    j->placed = clock_s();
    const int rc = slot_place(s, j, &t, &e);
    if (rc == SLOT_LATER) {
        queue_return(s, j);
        return false;
    }
    if (rc) {
        failure_of_model(s, &e, &why);
        reject(s, j, &why);
    } else {
        start(s, t, j);
    }
    return true;
}

/* A model that has failed keeps nobody waiting. */
static void place_all(struct scheduler *s)
{
    struct job *j;
    queue_sweep(s);
    while ((s->active < s->o.sessions || has_failed(s)) && (j = queue_take(s)))
        if (!place(s, j)) return;
}

/* ---------------------------------------------------------------- the loop */

/* What a session has done since it was looked at last. */
static void collect(struct scheduler *s, struct slot *t)
{
    struct ds4_error e = {0};
    struct api_error why;
    const enum ds4_state state = t->session->ops->collect(t->session, NULL, &e);
    if (state == DS4_BUSY) return;
    if (state == DS4_CANCELLED || atomic_load(&t->job->cancelled)) {
        generation_drop(s, t);
    } else if (state == DS4_FAILED) {
        failure_of_model(s, &e, &why);
        generation_fail(s, t, &why);
    } else {
        t->ready = true;
    }
}

/* What comes next in an answer. */
static void go_on(struct scheduler *s, struct slot *t)
{
    t->ready = false;
    if (t->answering) {
        generation_next(s, t);
        return;
    }
    count_prompt(s, t);
    generation_begin(s, t);
}

/* An answer is not made faster than its client reads it. */
static bool client_is_behind(const struct slot *t)
{
    const struct client *const c = t->job->client;
    return c->unread && c->unread(t->job->arg) > MOST_UNREAD;
}

/* After a failure of the model nothing that it says can be trusted. */
static void fail_all(struct scheduler *s)
{
    struct api_error why;
    going_down(s, &why);
    for (int i = 0; i < s->n_slots; i++)
        if (s->slot[i].job) generation_fail(s, &s->slot[i], &why);
}

static void speak(struct job *j, double now)
{
    if (now - j->spoken < REMIND_S) return;
    j->spoken = now;
    j->client->alive(j->arg);
}

static void keep_alive(struct scheduler *s)
{
    const double now = clock_s();
    for (int i = 0; i < s->n_slots; i++)
        if (s->slot[i].job) speak(s->slot[i].job, now);
    pthread_mutex_lock(&s->lock);
    for (struct job *j = s->queue; j; j = j->next) speak(j, now);
    pthread_mutex_unlock(&s->lock);
}

/* Until there is something to do; false: the server goes down. */
static bool wait_for_work(struct scheduler *s)
{
    pthread_mutex_lock(&s->lock);
    while (!s->queue && !s->stopping) {
        pthread_cond_wait(&s->wake, &s->lock);
    }
    const bool go_on = s->queue != NULL;
    pthread_mutex_unlock(&s->lock);
    return go_on;
}

/* Between two steps: new answers begin while those that are ready have a whole history, then these go on. How many
 * wait for their clients instead. */
static int between_steps(struct scheduler *s)
{
    int behind = 0;
    for (int i = 0; i < s->n_slots; i++)
        if (s->slot[i].job) collect(s, &s->slot[i]);
    if (has_failed(s)) fail_all(s);
    place_all(s);
    for (int i = 0; i < s->n_slots; i++) {
        struct slot *const t = &s->slot[i];
        if (!t->job || !t->ready) continue;
        if (client_is_behind(t))
            behind++;
        else
            go_on(s, t);
    }
    return behind;
}

void scheduler_run(struct scheduler *s)
{
    do {
        place_all(s);
        while (s->active) {
            const int behind = between_steps(s);
            const bool idle = s->o.model.ops->step(s->o.model.model, NULL) == 0;
            if (behind && idle) nanosleep(&(struct timespec){.tv_nsec = LOOK_AGAIN_NS}, NULL);
            keep_alive(s);
        }
    } while (wait_for_work(s));
}

void scheduler_stop(struct scheduler *s)
{
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

/* ---------------------------------------------------------------- making and freeing */

int scheduler_create(const struct scheduler_options *o, struct scheduler **out, struct err *e)
{
    struct scheduler *s = mem_alloc(sizeof *s);
    struct ds4_error why = {0};
    s->o = *o;
    s->queue_end = &s->queue;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->wake, NULL);
    o->model.ops->info(o->model.model, &s->info);
    s->n_slots = o->sessions + 1;
    s->slot = mem_alloc((size_t)s->n_slots * sizeof *s->slot);
    int rc = 0;
    for (int i = 0; i < s->n_slots && rc == 0; i++) {
        s->slot[i].sampled = mem_alloc((size_t)o->ctx * sizeof *s->slot[i].sampled);
        rc = o->model.ops->session_create(o->model.model, o->ctx, &s->slot[i].session, &why);
    }
    *out = s;
    if (rc == 0) return 0;
    scheduler_free(s);
    *out = NULL;
    return err_set(e, rc, "%s", why.message);
}

void scheduler_free(struct scheduler *s)
{
    if (!s) return;
    for (struct job *j; (j = queue_take(s));) job_free(j);
    for (int i = 0; i < s->n_slots; i++) {
        struct slot *t = &s->slot[i];
        if (t->session) t->session->ops->session_free(t->session);
        str_free(&t->reasoning);
        mem_free(t->sampled);
        mem_free(t->call);
    }
    mem_free(s->slot);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    mem_free(s);
}

struct scheduler_counts scheduler_counts(struct scheduler *s)
{
    pthread_mutex_lock(&s->lock);
    struct scheduler_counts c = s->counts;
    c.active = s->active;
    c.queued = s->queued;
    c.sessions = s->o.sessions;
    pthread_mutex_unlock(&s->lock);
    return c;
}
