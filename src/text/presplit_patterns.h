/* The patterns of the pre-tokenizers, in the order in which they are applied. They are part of the formats (NOTICE).
 *
 * \s and \S are written out as Unicode's White_Space: PCRE2's own \s also takes U+180E, which lost that property in
 * Unicode 6.3 and is no white space for the tokenizers that made the vocabularies. */
#ifndef TEXT_PRESPLIT_PATTERNS_H
#define TEXT_PRESPLIT_PATTERNS_H
#include "text/presplit.h"

#define WHITE     "[\\t-\\r\\x{85}\\p{Z}]"
#define NON_WHITE "[^\\t-\\r\\x{85}\\p{Z}]"

enum { PRESPLIT_MAX_STEPS = 3 };

static const char *const presplit_patterns[PRETOKENIZER_COUNT][PRESPLIT_MAX_STEPS] = {
    [PRETOKENIZER_JOYAI] =
        {
            /* spec deepseek-v4 1.1 */
            "\\p{N}{1,3}",
            "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}]+",
            "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
            "|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
            "| ?[\\p{P}\\p{S}]+[\\r\\n]*"
            "|" WHITE "*[\\r\\n]+"
            "|" WHITE "+(?!" NON_WHITE ")"
            "|" WHITE "+",
        },
    [PRETOKENIZER_QWEN35] =
        {
            /* spec qwen38 6; the letters behind the apostrophe are ASCII, whatever else folds to them */
            "'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])"
            "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+"
            "|\\p{N}"
            "| ?[^\\t-\\r\\x{85}\\p{Z}\\p{L}\\p{M}\\p{N}]+[\\r\\n]*"
            "|" WHITE "*[\\r\\n]+"
            "|" WHITE "+(?!" NON_WHITE ")"
            "|" WHITE "+",
        },
};

#undef WHITE
#undef NON_WHITE

#endif
