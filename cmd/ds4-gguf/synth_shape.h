/* Shapes of random models: the presets, and what --set and --layers make of them. */
#ifndef SYNTH_SHAPE_H
#define SYNTH_SHAPE_H
#include "deepseek4_layout.h"
#include "synth_settings.h"

struct synth_preset;
/* NULL: none has the name. */
const struct synth_preset *synth_preset_find(const char *name);
const char *synth_preset_name(const struct synth_preset *p);

/* The preset's parameters as changed by the settings, checked. */
int synth_shape(const struct synth_preset *preset, const struct synth_settings *s, struct deepseek4_params *p,
                struct err *e);

#endif
