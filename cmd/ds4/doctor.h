/* --doctor: what this machine is, how fast its memory, processor and disk are, and what that means for a model. */
#ifndef DOCTOR_H
#define DOCTOR_H
#include "ds4.h"
#include "options.h"

/* Prints the report on standard output; the lines about a model only where one is given. An error is that of a model
 * which cannot be opened, or of threads; what cannot be measured is said in its line. */
int doctor_run(const struct options *o, struct ds4_error *e);

#endif
