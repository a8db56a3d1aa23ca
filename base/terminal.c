/* terminal.c: see terminal.h. */
#include "base/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool rv_terminal_can_redraw(int fd) {
	const char *kind = getenv("TERM");
	return isatty(fd) == 1 && kind != NULL && kind[0] != '\0' && strcmp(kind, "dumb") != 0;
}
