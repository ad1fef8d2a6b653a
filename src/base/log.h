/* Log with levels and one process-wide sink (the only mutable global of base beside the memory handler).
 * Library code logs here and never writes to stdout. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

typedef void log_sink(void *arg, enum log_level level, const char *subject, const char *text);

/* Installs the sink (NULL: stderr, "subject: text") and the highest level that is passed on. */
void log_to(log_sink *sink, void *arg, enum log_level max_level);
void log_msg(enum log_level level, const char *subject, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
