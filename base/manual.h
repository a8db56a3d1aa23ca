/* manual.h: a program's manual page, made of its table of commands and options. */
#ifndef RV_BASE_MANUAL_H
#define RV_BASE_MANUAL_H

#include "base/program.h"

#include <stdio.h>

/* Prints the page of section 1 in man(7) macros, which groff and mandoc read. `date` is that of
 * the program, "2026-11-24". */
void rv_manual_print(const struct rv_program *p, const char *date, FILE *out);

#endif
