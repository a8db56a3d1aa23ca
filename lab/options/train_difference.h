/* train_difference.h: the differences between a run that was begun and one that is requested. */
#ifndef RV_LAB_TRAIN_DIFFERENCE_H
#define RV_LAB_TRAIN_DIFFERENCE_H

#include "lab/options/train_options.h"

#include <stddef.h>

/* Writes "lr 0.001 there, 0.002 here; seed 1 there, 2 here": the options of DIR/run.conf whose
 * values differ from `mine` (train_options_as_run) and make it another run; cut at `cap`. "": none,
 * or the file cannot be read. */
void train_difference(const char *dir, const struct train_options *mine, char *out, size_t cap);

#endif
