/* Where clients come in: TCP addresses of both families and a Unix socket. */
#include "serve/http_internal.h"

#include "base/mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct place {
    struct http *http;
    evconnlistener_cb on_accept;
    evconnlistener_errorcb on_error;
};

static bool is_loopback(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET) return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127;
    if (a->sa_family != AF_INET6) return a->sa_family == AF_UNIX;
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *)a)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127);
}

/* "127.0.0.1:8000", "[::1]:8000" */
static void address_text(const struct sockaddr *a, char *text, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "?";
    if (a->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)a;
        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
        snprintf(text, size, "%s:%d", host, ntohs(v4->sin_port));
    } else if (a->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)a;
        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
        snprintf(text, size, "[%s]:%d", host, ntohs(v6->sin6_port));
    } else {
        snprintf(text, size, "unix");
    }
}

void http_client_text(int fd, const struct sockaddr *peer, struct http_conn *c)
{
    struct sockaddr_storage local = {0};
    socklen_t n = sizeof local;
    getsockname(fd, (struct sockaddr *)&local, &n);
    c->unix_socket = local.ss_family == AF_UNIX;
    c->loopback = is_loopback((struct sockaddr *)&local);
    address_text(c->unix_socket ? (struct sockaddr *)&local : peer, c->client, sizeof c->client);
}

/* ---- listeners ---- */

static int add_listener(const struct place *at, int fd, const char *address, struct err *e)
{
    struct http *h = at->http;
    if (evutil_make_socket_nonblocking(fd) || listen(fd, 1024)) {
        int why = errno;
        close(fd);
        return err_set(e, ERR_IO, "cannot listen on %s: %s", address, strerror(why));
    }
    struct evconnlistener *l =
        evconnlistener_new(h->base, at->on_accept, h, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
    if (!l) {
        close(fd);
        return err_set(e, ERR_MEMORY, "cannot listen on %s: the event loop takes no more sockets", address);
    }
    evconnlistener_set_error_cb(l, at->on_error);
    h->listener = mem_grow(h->listener, (h->n_listener + 1) * sizeof *h->listener);
    h->address = mem_grow(h->address, (h->n_address + 1) * sizeof *h->address);
    h->address[h->n_address++] = mem_strdup(address);
    h->listener[h->n_listener++] = l;
    return 0;
}

static int listen_at(const struct place *at, const struct addrinfo *ai, bool v6_alone, struct err *e)
{
    int on = 1, fd = socket(ai->ai_family, SOCK_STREAM, 0);
    char text[80], address[100];
    struct sockaddr_storage bound = {0};
    socklen_t n = sizeof bound;
    address_text(ai->ai_addr, text, sizeof text);
    if (fd >= 0) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (ai->ai_family == AF_INET6 && v6_alone) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    }
    if (fd < 0 || bind(fd, ai->ai_addr, ai->ai_addrlen) || getsockname(fd, (struct sockaddr *)&bound, &n)) {
        int why = errno;
        if (fd >= 0) close(fd);
        errno = why;
        return err_set(e, ERR_IO, "cannot listen on %s: %s%s", text, strerror(why),
                       why == EADDRINUSE ? "; another program has this port: end it, or choose another one with --port"
                                         : "");
    }
    address_text((struct sockaddr *)&bound, text, sizeof text);
    at->http->port = ntohs(bound.ss_family == AF_INET ? ((struct sockaddr_in *)&bound)->sin_port
                                                      : ((struct sockaddr_in6 *)&bound)->sin6_port);
    snprintf(address, sizeof address, "http://%s", text);
    if (!is_loopback((struct sockaddr *)&bound)) at->http->is_public = true;
    return add_listener(at, fd, address, e);
}

/* All addresses of a name. One that this machine cannot have at all is left out if another works: "localhost" where
 * there is no IPv6. */
static int listen_host(const struct place *at, const char *host, int port, bool v6_alone, struct err *e)
{
    struct addrinfo want = {.ai_family = AF_UNSPEC,
                            .ai_socktype = SOCK_STREAM,
                            .ai_flags = AI_PASSIVE | AI_NUMERICSERV},
                    *list = NULL;
    char text[16];
    size_t before = at->http->n_listener;
    struct err left_out = {0};
    snprintf(text, sizeof text, "%d", port);
    int rc = getaddrinfo(host, text, &want, &list);
    if (rc)
        return err_set(e, ERR_ARG, "cannot listen on '%s': %s; an address of this machine is wanted, or a name of one",
                       host, gai_strerror(rc));
    rc = 0;
    for (const struct addrinfo *ai = list; ai && !rc; ai = ai->ai_next) {
        struct err failed = {0};
        if (ai->ai_family != AF_INET && ai->ai_family != AF_INET6) continue;
        struct sockaddr_in *v4 = (struct sockaddr_in *)ai->ai_addr;
        if (!port && at->http->port)
            v4->sin_port = htons((uint16_t)at->http->port); /* at the same place in both families */
        if (!listen_at(at, ai, v6_alone, &failed)) continue;
        bool absent = errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT;
        if (absent)
            err_set(&left_out, failed.code, "%s", failed.msg);
        else
            rc = err_set(e, failed.code, "%s", failed.msg);
    }
    freeaddrinfo(list);
    if (!rc && at->http->n_listener == before) return err_set(e, ERR_IO, "%s", left_out.msg);
    return rc;
}

/* Whether the socket file is left over from a process that is gone. */
static bool is_stale(const struct sockaddr_un *a)
{
    struct stat st;
    if (lstat(a->sun_path, &st) || !S_ISSOCK(st.st_mode)) return false;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    bool stale = fd >= 0 && connect(fd, (const struct sockaddr *)a, sizeof *a) && errno == ECONNREFUSED;
    if (fd >= 0) close(fd);
    return stale;
}

static int listen_unix(const struct place *at, const char *path, struct err *e)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof a.sun_path)
        return err_set(e, ERR_ARG, "the path of the Unix socket is too long (%zu bytes, at most %zu): %s", strlen(path),
                       sizeof a.sun_path - 1, path);
    strcpy(a.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), failed = fd < 0;
    if (!failed) fcntl(fd, F_SETFD, FD_CLOEXEC);
    failed = failed || bind(fd, (struct sockaddr *)&a, sizeof a);
    if (failed && errno == EADDRINUSE && is_stale(&a) && !unlink(path))
        failed = bind(fd, (struct sockaddr *)&a, sizeof a);
    if (failed) {
        int why = errno;
        if (fd >= 0) close(fd);
        return err_set(e, ERR_IO, "cannot listen on the Unix socket %s: %s%s", path, strerror(why),
                       why == EADDRINUSE ? "; a program listens there, or it is no socket" : "");
    }
    at->http->unix_path = mem_strdup(path);
    struct str address = {0};
    str_printf(&address, "unix:%s", path);
    int rc = add_listener(at, fd, str_c(&address), e);
    str_free(&address);
    return rc;
}

int http_listen(struct http *h, const struct http_options *o, evconnlistener_cb on_accept,
                evconnlistener_errorcb on_error, struct err *e)
{
    static const char *const usual = "127.0.0.1";
    const struct place at = {h, on_accept, on_error};
    const char *const *hosts = o->n_hosts ? o->hosts : &usual;
    size_t n = o->n_hosts || o->unix_path ? o->n_hosts : 1;
    if (o->port < 0 || o->port > 65535) return err_set(e, ERR_ARG, "port %d is not between 0 and 65535", o->port);
    for (size_t i = 0; i < n; i++) {
        int rc = listen_host(&at, hosts[i], o->port, n > 1, e);
        if (rc) return rc;
    }
    return o->unix_path ? listen_unix(&at, o->unix_path, e) : 0;
}

void http_unlisten(struct http *h)
{
    for (size_t i = 0; i < h->n_listener; i++) evconnlistener_free(h->listener[i]);
    h->n_listener = 0;
    if (h->unix_path) unlink(h->unix_path);
    mem_free(h->unix_path);
    h->unix_path = NULL;
}
