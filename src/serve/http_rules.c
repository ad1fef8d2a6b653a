#include "serve/http_rules.h"

#include "base/mem.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

/* ---- a copy of the options ---- */

static void copy_list(char ***to, size_t *n_to, const char *const *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        *to = mem_grow(*to, (*n_to + 1) * sizeof **to);
        (*to)[(*n_to)++] = mem_strdup(from[i]);
    }
}

static void free_list(char **list, size_t n)
{
    for (size_t i = 0; i < n; i++) mem_free(list[i]);
    mem_free(list);
}

void http_rules_take(struct http_rules *r, const struct http_options *o)
{
    memset(r, 0, sizeof *r);
    copy_list(&r->keys, &r->n_keys, o->keys, o->n_keys);
    copy_list(&r->hosts, &r->n_hosts, o->allow_hosts, o->n_allow_hosts);
    copy_list(&r->hosts, &r->n_hosts, o->hosts,
              o->n_hosts); /* a name that was asked to listen on is a name of this machine */
    copy_list(&r->origins, &r->n_origins, o->allow_origins, o->n_allow_origins);
    r->routes = o->routes;
    r->n_routes = o->n_routes;
}

void http_rules_free(struct http_rules *r)
{
    free_list(r->keys, r->n_keys);
    free_list(r->hosts, r->n_hosts);
    free_list(r->origins, r->n_origins);
    memset(r, 0, sizeof *r);
}

void http_verdict_clear(struct http_verdict *v)
{
    str_free(&v->extra);
    str_free(&v->cors);
    memset(v, 0, sizeof *v);
}

static void refuse(struct http_verdict *v, int status, const char *why)
{
    v->status = status;
    v->why = why;
}

/* ---- Host and Origin ---- */

/* Length of the host in "host:port". */
static size_t host_length(const char *authority)
{
    const char *colon = *authority == '[' ? strchr(authority, ']') : authority;
    colon = colon ? strchr(colon, ':') : NULL;
    return colon ? (size_t)(colon - authority) : strlen(authority);
}

static bool is_loopback(const char *host, size_t n)
{
    char text[64];
    struct in_addr v4;
    struct in6_addr v6;
    if (!n || n >= sizeof text) return false;
    memcpy(text, host, n);
    text[n] = 0;
    if (!strcasecmp(text, "localhost")) return true;
    if (inet_pton(AF_INET, text, &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
    if (*text != '[') return false;
    text[n - 1] = 0;
    return inet_pton(AF_INET6, text + 1, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

/* A page of a name that its owner points at 127.0.0.1 (DNS rebinding) is recognised by the name it still sends. */
static bool host_allowed(const struct http_rules *r, const char *authority)
{
    size_t n = host_length(authority);
    if (is_loopback(authority, n)) return true;
    for (size_t i = 0; i < r->n_hosts; i++) {
        const char *allowed = r->hosts[i];
        if (!strcmp(allowed, "*") || (strlen(allowed) == n && !strncasecmp(allowed, authority, n))) return true;
    }
    return false;
}

/* Whether a page is of this very server: its origin names the host and port that the request was sent to, or a loopback
 * name with that port. */
static bool origin_is_own(const char *origin, const char *authority)
{
    if (strncasecmp(origin, "http://", 7)) return false;
    origin += 7;
    if (!strcasecmp(origin, authority)) return true;
    size_t n = host_length(origin);
    return is_loopback(origin, n) && !strcmp(origin + n, authority + host_length(authority));
}

static bool origin_listed(const struct http_rules *r, const char *origin, struct str *cors)
{
    for (size_t i = 0; i < r->n_origins; i++) {
        if (!strcmp(r->origins[i], "*"))
            str_puts(cors, "Access-Control-Allow-Origin: *\r\n");
        else if (!strcasecmp(r->origins[i], origin))
            str_printf(cors, "Access-Control-Allow-Origin: %s\r\nVary: Origin\r\n", origin);
        else
            continue;
        return true;
    }
    return false;
}

static bool judge_origin(const struct http_rules *r, const struct http_head *h, bool loopback, struct http_verdict *v)
{
    const char *origin = http_head_value(h, "origin"), *authority = h->host ? http_head_text(h, h->host) : "";
    bool listed = origin && origin_listed(r, origin, &v->cors);
    if (!loopback) return true;
    if (h->host && !host_allowed(r, authority)) {
        refuse(v, 403, "The Host of this request is no name of this server; --allow-host NAME would allow it.");
        return false;
    }
    if (origin && !listed && !origin_is_own(origin, authority)) {
        refuse(v, 403, "Pages of this origin may not ask this server; --allow-origin ORIGIN would allow them.");
        return false;
    }
    return true;
}

/* ---- keys ---- */

/* In a time that depends on the length of what was given alone. */
static bool key_equal(const char *key, size_t n_key, const char *given, size_t n)
{
    unsigned diff = n != n_key;
    for (size_t i = 0; i < n; i++) diff |= (unsigned char)(given[i] ^ key[n_key ? i % n_key : 0]);
    return !diff;
}

static int key_find(const struct http_rules *r, const char *given)
{
    int found = -1;
    size_t n = given ? strlen(given) : 0;
    for (size_t i = 0; n && i < r->n_keys; i++)
        if (key_equal(r->keys[i], strlen(r->keys[i]), given, n)) found = (int)i;
    return found;
}

static bool judge_key(const struct http_rules *r, const struct http_head *h, struct http_verdict *v)
{
    const char *bearer = http_head_value(h, "authorization");
    if (bearer && strncasecmp(bearer, "Bearer ", 7)) bearer = NULL;
    if (bearer) bearer += 7 + strspn(bearer + 7, " ");
    v->key = key_find(r, bearer);
    if (v->key < 0) v->key = key_find(r, http_head_value(h, "x-api-key"));
    if (v->key >= 0 || !r->n_keys || (v->route && v->route->flags & HTTP_OPEN)) return true;
    str_puts(&v->extra, "WWW-Authenticate: Bearer\r\n");
    refuse(v, 401,
           "An API key is needed, as Authorization: Bearer KEY or as x-api-key: KEY, and this request has none that is "
           "known here.");
    return false;
}

/* ---- routes ---- */

/* What stands behind the route's path, or NULL if it is not a route for this path. */
static const char *route_rest(const struct http_route *t, const char *path)
{
    size_t n = strlen(t->path);
    if (n > 1 && t->path[n - 1] == '/') return !strncmp(path, t->path, n) && path[n] ? path + n : NULL;
    return strcmp(path, t->path) ? NULL : "";
}

static bool route_answers(const struct http_route *t, const char *method)
{
    return !strcmp(t->method, method) || (!strcmp(t->method, "GET") && !strcmp(method, "HEAD"));
}

/* Sets route and rest; the methods that the path has are listed in allow. An exact path goes before a prefix. */
static void find_route(const struct http_rules *r, const char *path, const char *method, struct http_verdict *v,
                       struct str *allow)
{
    for (size_t i = 0; i < r->n_routes; i++) {
        const struct http_route *t = &r->routes[i];
        const char *rest = route_rest(t, path);
        if (!rest) continue;
        if (!strstr(str_c(allow), t->method))
            str_printf(allow, "%s%s%s", allow->n ? ", " : "", t->method, strcmp(t->method, "GET") ? "" : ", HEAD");
        if (!route_answers(t, method) || (v->route && *rest)) continue;
        v->route = t;
        v->rest = rest;
    }
}

static bool is_method(const char *m)
{
    static const char *const known[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(m, known[i])) return true;
    return false;
}

static void judge_method(const struct http_head *h, const char *method, const char *allow, struct http_verdict *v)
{
    if (!is_method(method)) {
        refuse(v, 501, "This method is not known here; methods are upper case.");
    } else if (!*allow) {
        refuse(v, 404, "There is nothing at this path.");
    } else if (http_head_lists(h, "upgrade", "websocket")) {
        str_puts(&v->extra, "Upgrade: HTTP/1.1\r\n");
        refuse(v, 426, "Websockets are not spoken here; please use HTTP.");
    } else {
        str_printf(&v->extra, "Allow: %s\r\n", allow);
        refuse(v, 405, "This path does not have this method.");
    }
}

/* OPTIONS: what a browser asks before it lets a foreign page send something, and what anybody may ask. */
static void answer_options(const struct http_head *h, const char *allow, struct http_verdict *v)
{
    const char *headers = http_head_value(h, "access-control-request-headers");
    v->status = 204;
    str_printf(&v->extra, "Allow: %s%sOPTIONS\r\n", allow, *allow ? ", " : "");
    if (!v->cors.n) return;
    str_puts(&v->extra, "Access-Control-Allow-Methods: GET, HEAD, POST, OPTIONS\r\nAccess-Control-Max-Age: 600\r\n");
    /* "*" would leave out Authorization. */
    if (headers) str_printf(&v->extra, "Access-Control-Allow-Headers: %s\r\n", headers);
}

/* ---- bodies ---- */

static bool is_json(const char *type)
{
    static const char json[] = "application/json";
    size_t n = sizeof json - 1;
    return type && !strncasecmp(type, json, n) && (!type[n] || strchr("; \t", type[n]));
}

static void judge_body(const struct http_head *h, struct http_verdict *v)
{
    const char *coding = http_head_value(h, "content-encoding");
    if (coding && strcasecmp(coding, "identity"))
        refuse(v, 415, "Compressed bodies are not read here.");
    else if (v->route->flags & HTTP_JSON && !is_json(http_head_value(h, "content-type")))
        refuse(v, 415, "The body must be sent with Content-Type: application/json.");
}

void http_rules_judge(const struct http_rules *r, const struct http_head *h, bool loopback, struct http_verdict *v)
{
    const char *method = http_head_text(h, h->method);
    struct str allow = {0};
    v->key = -1;
    v->rest = "";
    if (!judge_origin(r, h, loopback, v)) return;
    find_route(r, str_c(&h->path), method, v, &allow);
    if (!v->route && !strcmp(method, "OPTIONS"))
        answer_options(h, str_c(&allow), v);
    else if (judge_key(r, h, v)) {
        if (v->route)
            judge_body(h, v);
        else
            judge_method(h, method, str_c(&allow), v);
    }
    str_free(&allow);
}
