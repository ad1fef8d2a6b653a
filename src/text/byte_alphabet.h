/* The GPT-2 byte alphabet: one printable character for each byte, in which byte-level vocabularies are written. The
 * bytes 33-126, 161-172 and 174-255 stand for the character of their own number; the other 68 bytes are numbered in
 * ascending order from U+0100. */
#ifndef TEXT_BYTE_ALPHABET_H
#define TEXT_BYTE_ALPHABET_H
#include <stddef.h>
#include <stdint.h>

/* Writes the character of a byte as UTF-8; returns its length, 1 or 2. */
size_t byte_alphabet_text(uint8_t byte, char text[2]);
/* Maps n bytes of text in the alphabet back to the bytes it stands for; bytes has room for n. Returns their number, or
 * -1 if a character is not of the alphabet (bytes then holds nothing of use). */
ptrdiff_t byte_alphabet_bytes(const char *text, size_t n, char *bytes);

#endif
