/* The byte alphabet, computed in both directions: it needs no table. */
#include "text/byte_alphabet.h"

/* The bytes without a printable character of their own: 0-32, 127-160, 173. */
enum { FIRST_MOVED = 0x100, N_LOW = 33, HIGH_FROM = 127, N_HIGH = 34, SOFT_HYPHEN = 173 };

static unsigned character_of(uint8_t byte)
{
    if (byte < N_LOW) return FIRST_MOVED + byte;
    if (byte >= HIGH_FROM && byte < HIGH_FROM + N_HIGH) return FIRST_MOVED + N_LOW + (byte - HIGH_FROM);
    if (byte == SOFT_HYPHEN) return FIRST_MOVED + N_LOW + N_HIGH;
    return byte;
}

/* -1 if the character stands for no byte. */
static int byte_of(unsigned character)
{
    if (character < FIRST_MOVED) return character_of((uint8_t)character) == character ? (int)character : -1;
    const unsigned moved = character - FIRST_MOVED;
    if (moved < N_LOW) return (int)moved;
    if (moved < N_LOW + N_HIGH) return (int)(HIGH_FROM + moved - N_LOW);
    return moved == N_LOW + N_HIGH ? SOFT_HYPHEN : -1;
}

size_t byte_alphabet_text(uint8_t byte, char text[2])
{
    const unsigned c = character_of(byte);
    if (c < 0x80) {
        text[0] = (char)c;
        return 1;
    }
    text[0] = (char)(0xc0 | c >> 6);
    text[1] = (char)(0x80 | (c & 0x3f));
    return 2;
}

ptrdiff_t byte_alphabet_bytes(const char *text, size_t n, char *bytes)
{
    ptrdiff_t n_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned c = (unsigned char)text[i];
        if (c >= 0x80) { /* the alphabet needs no character of three bytes */
            if (c < 0xc2 || c > 0xdf || i + 1 == n || ((unsigned char)text[i + 1] & 0xc0) != 0x80) return -1;
            c = (c & 0x1f) << 6 | ((unsigned char)text[++i] & 0x3f);
        }
        const int byte = byte_of(c);
        if (byte < 0) return -1;
        bytes[n_bytes++] = (char)byte;
    }
    return n_bytes;
}
