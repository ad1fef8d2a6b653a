/* ds4-gguf synth: valid models of random weights. */
#include "commands.h"

int command_synth(int argc, char **argv)
{
    return 2;
}
