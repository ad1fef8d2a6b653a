/* The demo model (models/demo) as a GGUF file, for tests that want its answers. */
#ifndef DEMO_MODEL_H
#define DEMO_MODEL_H

enum { DEMO_PATH_MAX = 64 };

/* Converts models/demo with the converter of this build into a new file in /tmp, which the caller unlinks. options:
 * more words for `ds4-gguf convert`, "" for the values of the checkpoint. Fails the running cmocka test with the
 * converter's message. */
void demo_model_convert(const char *options, char path[DEMO_PATH_MAX]);

#endif
