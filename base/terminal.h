/* terminal.h: whether a line that was written can be drawn over. */
#ifndef RV_BASE_TERMINAL_H
#define RV_BASE_TERMINAL_H

#include <stdbool.h>

/* `fd` is a terminal that understands ECMA-48 control sequences: TERM is set, and not "dumb". */
bool rv_terminal_can_redraw(int fd);

#endif
