#include "tty.h"
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int tty_width(FILE *f)
{
    struct winsize size;
    return !ioctl(fileno(f), TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : 80;
}

bool tty_escapes(FILE *f)
{
    const char *term = getenv("TERM");
    return isatty(fileno(f)) && term && *term && strcmp(term, "dumb") != 0;
}

bool tty_colour(FILE *f)
{
    const char *none = getenv("NO_COLOR");
    return tty_escapes(f) && !(none && *none);
}
