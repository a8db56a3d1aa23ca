/* terminal.c: see terminal.h. */
#include "base/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { COLUMNS_DEFAULT = 100, COLUMNS_MIN = 20 };

bool rv_terminal_can_redraw(int fd) {
	const char *kind = getenv("TERM");
	return isatty(fd) == 1 && kind != NULL && kind[0] != '\0' && strcmp(kind, "dumb") != 0;
}

int rv_terminal_columns(int fd) {
	struct winsize size;
	if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col < COLUMNS_MIN)
		return COLUMNS_DEFAULT;
	return size.ws_col < RV_TERMINAL_COLUMNS_MAX ? size.ws_col : RV_TERMINAL_COLUMNS_MAX;
}
