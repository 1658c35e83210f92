/* The one program: find the command's row, bind its options, run it. */
#include <stdio.h>

#include "app/cmd.h"

const struct cmd *const cmds[] = { NULL };

int main(int argc, char **argv)
{
    (void)argc;
    fprintf(stderr, "%s: no commands yet\n", argv[0]);
    return 2;
}
