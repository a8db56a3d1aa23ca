/* check.h: refuses or warns if a plan does not fit the memory that is free at the start. */
#ifndef RV_TRAIN_MEMORY_CHECK_H
#define RV_TRAIN_MEMORY_CHECK_H

#include "base/event.h"
#include "base/options.h"
#include "train/memory/fit.h"

enum memory_short { MEMORY_SHORT_REFUSE, MEMORY_SHORT_WARN };

/* Option `short-of-memory` of a program, at `offset` of its struct: int, of enum memory_short. */
#define MEMORY_SHORT_OPTION(offset, group)                                                                             \
	{                                                                                                                  \
		"short-of-memory", RV_OPT_CHOICE, (offset), 0, "refuse", 0, 0, "refuse|warn",                                  \
			"If training needs more host memory and swap than are free now. warn: train anyway, as more will be free " \
			"in time.",                                                                                                \
			group                                                                                                      \
	}

/* Returns what memory_fit returns. `choice`, the option's value, never lets training exceed a room
 * that a person capped. Logs "memory_short" if the host's memory is too small and swap makes up for
 * it, or if `choice` is MEMORY_SHORT_WARN. */
enum rv_err memory_check(const struct memory_request *q, const struct memory_room *room, enum memory_short choice,
						 struct rv_events *ev, struct rv_errtext *et);

#endif
