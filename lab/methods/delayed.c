/* delayed.c: every outer step comes one whole round late (arXiv 2502.12996; outer/eager.h): the
 * baseline of eager updates. Real workers do it with updates = delayed. */
#include "lab/methods/methods.h"
#include "lab/methods/preset.h"
#include "lab/methods/synchronous.h"

static void configure(struct lab_config *c) {
	preset_updates(c, UPDATES_DELAYED);
}

static enum rv_err check(const struct run_config *c, int workers, struct rv_errtext *et) {
	(void)workers;
	return preset_check_updates("delayed", c, UPDATES_DELAYED, et);
}

const struct lab_method lab_method_delayed = {
	.name = "delayed", .configure = configure, .check = check, SYNCHRONOUS_METHOD};
