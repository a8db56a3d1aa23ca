/* notices.h: what a sweep reports before it begins: likely mistakes, and things that it will not
 * do. */
#ifndef RV_LAB_SWEEP_NOTICES_H
#define RV_LAB_SWEEP_NOTICES_H

#include "base/event.h"
#include "lab/sweep/run.h"

/* Reports workers that read the same text; runs that are nothing but warm-up; options that have an
 * effect in no cell; combinations that are the same run; directories in OUT that are no cells of
 * this sweep. Reads OUT. */
void sweep_notices(const struct sweep *s, struct rv_events *events);

#endif
