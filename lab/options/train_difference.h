/* train_difference.h: in what a run that was begun differs from the one that is asked for. */
#ifndef RV_LAB_TRAIN_DIFFERENCE_H
#define RV_LAB_TRAIN_DIFFERENCE_H

#include "lab/options/train_options.h"

#include <stddef.h>

/* "lr 0.001 there, 0.002 here; seed 1 there, 2 here": the options of DIR/run.conf whose values are not those of `mine`
 * (train_options_as_run), of those that make a run another one; cut at `cap`. "": none, or the file cannot be read. */
void train_difference(const char *dir, const struct train_options *mine, char *out, size_t cap);

#endif
