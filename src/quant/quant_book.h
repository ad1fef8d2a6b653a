/* How the files of the code books make their tables: each has one list BOOK(X) of packed entries. */
#ifndef QUANT_QUANT_BOOK_H
#define QUANT_QUANT_BOOK_H

/* Bytes 0..3 or 0..7 of an entry, from BYTE(code, i). */
#define BOOK_BYTES4(BYTE, T, code)                                                                                     \
    (T)(BYTE(code, 0)) | (T)(BYTE(code, 1)) << 8 | (T)(BYTE(code, 2)) << 16 | (T)(BYTE(code, 3)) << 24
#define BOOK_BYTES8(BYTE, T, code)                                                                                     \
    BOOK_BYTES4(BYTE, T, code) | (T)(BYTE(code, 4)) << 32 | (T)(BYTE(code, 5)) << 40 | (T)(BYTE(code, 6)) << 48 |      \
        (T)(BYTE(code, 7)) << 56
/* The magnitudes of IQ2_XXS, IQ2_XS and IQ2_S, two bits each. */
#define BOOK_IQ2(code, i)    ((code) >> 2 * (i)&2 ? 43 : (code) >> 2 * (i)&1 ? 25 : 8)
#define BOOK_IQ2_ENTRY(code) BOOK_BYTES8(BOOK_IQ2, uint64_t, code),
#define BOOK_CODE(code)      code,
/* The same, doubled: nibbles of values i and i + 4 in byte i. */
#define BOOK_IQ2_PAIR(code, i) (((code) >> 2 * (i)&3) << 1 | ((code) >> 2 * ((i) + 4) & 3) << 5)
#define BOOK_IQ2_NIBBLES(code) BOOK_BYTES4(BOOK_IQ2_PAIR, uint32_t, code),
/* Bytes of packed entries: the lower one, those from bit 6 and from bit 8 on. */
#define BOOK_LOW(code)    (code) & 255,
#define BOOK_FROM_6(code) (code) >> 6 & 255,
#define BOOK_FROM_8(code) (code) >> 8 & 255,

#endif
