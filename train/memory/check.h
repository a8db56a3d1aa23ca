/* check.h: what becomes of a plan that does not fit the memory that is free when a program starts. */
#ifndef RV_TRAIN_MEMORY_CHECK_H
#define RV_TRAIN_MEMORY_CHECK_H

#include "base/event.h"
#include "base/options.h"
#include "train/memory/fit.h"

enum { MEMORY_SHORT_BYTES = 8 };

/* Option `short-of-memory` of a program, at `offset` of its struct: char[MEMORY_SHORT_BYTES]. */
#define MEMORY_SHORT_OPTION(offset, group)                                                                             \
	{                                                                                                                  \
		"short-of-memory", RV_OPT_ENUM, (offset), MEMORY_SHORT_BYTES, "refuse", 0, 0, "refuse|warn",                   \
			"Where training needs more of the host's memory and swap than are free now. warn: train all the same, "    \
			"where more "                                                                                              \
			"will be free in time.",                                                                                   \
			group                                                                                                      \
	}

/* RV_E_NOMEM as memory_fit has it, and what else it refuses. The event "memory_short" where the host's memory is too
 * little, and swap makes up for it or `choice`, the option's value, is "warn". */
enum rv_err memory_check(const struct memory_request *q, const struct memory_room *room, const char *choice,
						 struct rv_events *ev, struct rv_errtext *et);

#endif
