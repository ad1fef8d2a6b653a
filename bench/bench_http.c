/* Speed of the HTTP layer alone, server and clients in this process. Not a test.
 *
 *   build/release/bench/bench_http [connections [seconds]]
 *
 * Requests: each connection asks for a few bytes and reads the answer, one after the other. Events: one thread, as an
 * engine would, writes events of the size of a token in the Chat API to all connections in turn and waits only if a
 * client has 1 MiB to read. First byte: from the request to the head of a streamed answer that another thread begins.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/err.h"
#include "serve/http.h"

enum { MAX = 64 };

static const char event[] =
    "data: "
    "{\"id\":\"chatcmpl-0123456789abcdef0123456789abcdef\",\"object\":\"chat.completion.chunk\",\"created\":1767225600,"
    "\"model\":\"deepseek-v4-flash\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" "
    "token\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n";

static struct {
    struct http *http;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct http_reply *reply[MAX];
    int n;
} server = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static int n_connections = 8;
static double seconds = 2;
static atomic_bool over;
static atomic_uint_fast64_t bytes_read;

static void say(void *arg, struct http_reply *r, struct http_request *q)
{
    http_reply_send(r, 200, "text/plain", "hello", 5, NULL);
    http_reply_release(r);
}

static void give(void *arg, struct http_reply *r, struct http_request *q)
{
    pthread_mutex_lock(&server.lock);
    server.reply[server.n++] = r;
    pthread_cond_signal(&server.changed);
    pthread_mutex_unlock(&server.lock);
}

static void *run(void *arg)
{
    http_run(server.http);
    return NULL;
}

static int client(const char *request)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)http_port(server.http)),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&a, sizeof a) || send(fd, request, strlen(request), MSG_NOSIGNAL) < 0) exit(1);
    return fd;
}

static void *ask(void *count)
{
    static const char request[] = "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n";
    char text[4096];
    int fd = client(request);
    for (uint64_t n = 0;; n++) {
        if (recv(fd, text, sizeof text, 0) <= 0) exit(1);
        *(uint64_t *)count = n + 1;
        if (over || send(fd, request, sizeof request - 1, MSG_NOSIGNAL) < 0) break;
    }
    close(fd);
    return NULL;
}

static void *read_all(void *arg)
{
    char text[65536];
    int fd = client("GET /stream HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    for (ssize_t n; (n = recv(fd, text, sizeof text, 0)) > 0;) atomic_fetch_add(&bytes_read, (uint64_t)n);
    close(fd);
    return NULL;
}

static void bench_requests(void)
{
    pthread_t t[MAX];
    static uint64_t count[MAX];
    uint64_t sum = 0;
    over = false;
    double begun = clock_s();
    for (int i = 0; i < n_connections; i++) pthread_create(&t[i], NULL, ask, &count[i]);
    usleep((useconds_t)(seconds * 1e6));
    over = true;
    for (int i = 0; i < n_connections; i++) pthread_join(t[i], NULL), sum += count[i];
    printf("%8.0f requests/s\n", (double)sum / (clock_s() - begun));
}

static void take(int n)
{
    pthread_mutex_lock(&server.lock);
    while (server.n < n) pthread_cond_wait(&server.changed, &server.lock);
    server.n = 0;
    pthread_mutex_unlock(&server.lock);
}

static void bench_events(void)
{
    pthread_t t[MAX];
    uint64_t sum = 0, waits = 0;
    for (int i = 0; i < n_connections; i++) pthread_create(&t[i], NULL, read_all, NULL);
    take(n_connections);
    for (int i = 0; i < n_connections; i++) http_reply_begin(server.reply[i], 200, "text/event-stream", NULL);
    double begun = clock_s();
    while (clock_s() - begun < seconds) {
        for (int i = 0; i < n_connections; i++) {
            while (http_reply_unread(server.reply[i]) > 1 << 20) usleep(100), waits++;
            if (!http_reply_write(server.reply[i], event, sizeof event - 1)) exit(1);
            sum++;
        }
    }
    for (int i = 0; i < n_connections; i++) http_reply_end(server.reply[i]), http_reply_release(server.reply[i]);
    for (int i = 0; i < n_connections; i++) pthread_join(t[i], NULL);
    double spent = clock_s() - begun;
    printf("%8.0f events/s of %zu bytes, all read (%.0f MB/s; the writer waited %llu times)\n", (double)sum / spent,
           sizeof event - 1, (double)bytes_read / spent / 1e6, (unsigned long long)waits);
}

static int by_size(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static void bench_first_byte(void)
{
    enum { N = 500 };
    static double ms[N];
    char byte;
    for (int i = 0; i < N; i++) {
        double begun = clock_s();
        int fd = client("GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
        take(1);
        http_reply_begin(server.reply[0], 200, "text/event-stream", NULL);
        if (recv(fd, &byte, 1, 0) != 1) exit(1);
        ms[i] = (clock_s() - begun) * 1e3;
        http_reply_end(server.reply[0]);
        http_reply_release(server.reply[0]);
        close(fd);
    }
    qsort(ms, N, sizeof *ms, by_size);
    printf("%8.3f ms to the first byte with a new connection (median; 99 of 100 within %.3f ms)\n", ms[N / 2],
           ms[N * 99 / 100]);
}

int main(int argc, char **argv)
{
    static const struct http_route routes[] = {{"GET", "/hello", 0, say}, {"GET", "/stream", 0, give}};
    const struct http_options o = {.routes = routes, .n_routes = 2};
    struct err e = {0};
    pthread_t t;
    if (argc > 1) n_connections = atoi(argv[1]);
    if (argc > 2) seconds = atof(argv[2]);
    if (n_connections < 1 || n_connections > MAX || http_open(&o, &server.http, &e)) {
        fprintf(stderr, "bench_http: %s\n", e.code ? e.msg : "1 to 64 connections");
        return 1;
    }
    pthread_create(&t, NULL, run, NULL);
    bench_requests();
    bench_events();
    bench_first_byte();
    http_stop(server.http);
    pthread_join(t, NULL);
    http_close(server.http);
    return 0;
}
