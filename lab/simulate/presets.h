/* presets.h: published runs over the internet, for `rivulet simulate --preset NAME`: their size and
 * lines, and their own figure to print beside ours. */
#ifndef RV_LAB_SIMULATE_PRESETS_H
#define RV_LAB_SIMULATE_PRESETS_H

#include "base/presets.h"

extern const struct rv_preset simulate_presets[]; /* ended by name == NULL */

#endif
