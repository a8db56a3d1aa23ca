/* terminal.h: whether a line that was written can be drawn over, and how long it may be. */
#ifndef RV_BASE_TERMINAL_H
#define RV_BASE_TERMINAL_H

#include <stdbool.h>

/* `fd` is a terminal that understands ECMA-48 control sequences: TERM is set, and not "dumb". */
bool rv_terminal_can_redraw(int fd);
/* Returns the width of the terminal in columns, in [20, RV_TERMINAL_COLUMNS_MAX]; 100 if `fd` is none, or does not say. */
enum { RV_TERMINAL_COLUMNS_MAX = 400 };
int rv_terminal_columns(int fd);

#endif
