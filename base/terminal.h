/* terminal.h: whether a line on a terminal can be redrawn, and its width. */
#ifndef RV_BASE_TERMINAL_H
#define RV_BASE_TERMINAL_H

#include <stdbool.h>

/* Returns true if `fd` is a terminal with ECMA-48 control sequences: TERM is set, and not
 * "dumb". */
bool rv_terminal_can_redraw(int fd);
/* Returns the terminal's width in columns, in [20, RV_TERMINAL_COLUMNS_MAX]; 100 if `fd` is no
 * terminal or has no known width. */
enum { RV_TERMINAL_COLUMNS_MAX = 400 };
int rv_terminal_columns(int fd);

#endif
