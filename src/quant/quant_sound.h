/* Damage that the structure of a file does not show: a scale of a block, or a plain number, that is NaN or infinite
 * (spec more-quants 2.9). Codes cannot be wrong: every one of them is a value of its type. */
#ifndef QUANT_SOUND_H
#define QUANT_SOUND_H
#include <stdbool.h>
#include <stdint.h>

/* True if the type has numbers that can be unsound: known block types and plain floats. */
bool quant_can_be_unsound(uint32_t id);
/* Scales of a block type that are F16 numbers: how many, and at which bytes of a block. 0: none, or not of that kind.
 */
int quant_f16_scales(uint32_t id, int at[2]);
/* The first of n blocks of a type, which lie one behind the other, with an unsound scale or value; -1: there is none.
 * A block of a plain type is one value. */
int64_t quant_first_unsound(uint32_t id, const void *blocks, int64_t n);

#endif
