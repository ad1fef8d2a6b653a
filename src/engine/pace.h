/* How many rows of a prompt go through a layer at a time while somebody else's answer is being written. A decoding
 * session waits for one layer of the prompt between two of its tokens; large pieces read prompts faster, small ones let
 * the answer go on. What both take is measured as they run. Results do not depend on it: any cut of a prompt gives the
 * same bits. */
#ifndef ENGINE_PACE_H
#define ENGINE_PACE_H

enum { PACES = 10 }; /* sizes: the prefill chunk, its half, and so on */

struct pace {
    int chunk, least;      /* rows: of the largest size; no size is smaller than least */
    double decode_s;       /* seconds that a decode step usually takes; 0: none yet */
    double layer_s[PACES]; /* the same of a layer step, on average, of chunk >> i rows */
    double sum;            /* seconds of the layers of the piece that is in flight */
};

void pace_init(struct pace *p, int chunk, int least);
/* A decode step took so long. */
void pace_decode(struct pace *p, double seconds);
/* Layer number layer, from 0, of n_layers took so long for a piece of so many rows. */
void pace_layer(struct pace *p, int rows, int layer, int n_layers, double seconds);
/* Rows of the next piece, with an answer being written: the largest size whose layer steps are expected to take no
 * longer than twice a decode step and 20 ms. But none that is known to cost a fifth more time a row than the next
 * larger one, as where a layer's weights have to be read from memory whatever the number of rows; that is tried again
 * now and then. Where nothing is known yet, the smallest. */
int pace_rows(struct pace *p);

#endif
