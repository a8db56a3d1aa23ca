/* completion.h: what a shell offers at the Tab key for a program, made of its table of commands and
 * options. */
#ifndef RV_BASE_COMPLETION_H
#define RV_BASE_COMPLETION_H

#include "base/program.h"

#include <stdio.h>

/* Prints the script for `shell`: bash, zsh or fish. RV_E_INVALID: another shell. */
enum rv_err rv_completion_print(const struct rv_program *p, const char *shell, FILE *out, struct rv_errtext *et);

#endif
