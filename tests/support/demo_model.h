/* The demo model (models/demo), for tests that want its answers. All functions fail the running cmocka test with the
 * message when something goes wrong. */
#ifndef DEMO_MODEL_H
#define DEMO_MODEL_H
#include <stdio.h>
#include "ds4.h"
#include "temp_files.h"

/* Converts models/demo with the converter of this build into a temporary file (temp_remove). options:
 * more words for `ds4-gguf convert`, "" for the values of the checkpoint. */
void demo_model_convert(const char *options, char path[TEMP_PATH]);

/* For tests that run shell commands: the model and an empty folder, and variables for the commands: DS4 is "ds4 -m
 * MODEL options", GGUF is ds4-gguf, MODEL and FOLDER are the paths. */
void demo_shell(const char *options, char model[TEMP_PATH], char folder[TEMP_PATH]);

/* The cpu backend with 2 threads, logging errors only. */
ds4_engine *demo_engine_open(const char *path, int ctx);
ds4_session *demo_session(ds4_engine *g, int ctx);
/* Appends the ids of a rendered text. */
void demo_tokenize(const ds4_engine *g, const char *text, struct ds4_tokens *out);
/* The session's history becomes the first n of the tokens. */
void demo_sync(ds4_session *s, const struct ds4_tokens *t, size_t n);

/* Golden texts. A line of the file that begins with # is a comment; a word of another line is followed by numbers, the
 * last of which may be a number of bytes that stand behind the line, with a line end of their own. */
FILE *demo_text_open(const char *path);
/* The next word that is no comment into word[16]; false at the end of the file. */
bool demo_text_word(FILE *f, char word[16]);
/* The line end, n bytes and the line end behind them; zero-terminated, to be freed with mem_free. */
char *demo_text_bytes(FILE *f, size_t n);

#endif
