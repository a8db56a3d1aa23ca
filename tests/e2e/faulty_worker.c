/* faulty_worker.c: the real worker on a machine that computes wrongly, put in by the linker
 * (--wrap). It exists for tests only.
 *
 * RIVULET_FAULTY=VALUE@STEP (replica_step_over): the inner step that makes STEP global steps leaves
 * VALUE (nan, inf, 3e31) in a parameter, once; with a * behind, so does each one from there on.
 * With :FILE behind, the round is trained again when FILE is there, so that a test sees what is
 * said in between. */
#include "train/replica.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

typedef enum rv_err step_fn(struct replica *r, const uint32_t *shards, int n, struct step_stats *out,
							struct rv_errtext *et);
step_fn __real_replica_step_over, __wrap_replica_step_over;

struct fault {
	float value;
	uint64_t step;
	bool always;
	const char *go_on; /* NULL: at once */
};

static bool find_fault(struct fault *f) {
	const char *text = getenv("RIVULET_FAULTY");
	char *at = NULL;
	*f = (struct fault){0};
	if (text == NULL)
		return false;
	f->value = strtof(text, &at);
	if (*at != '@')
		return false;
	f->step = strtoull(at + 1, &at, 10);
	f->always = *at == '*';
	f->go_on = *at == ':' ? at + 1 : NULL;
	return true;
}

static void wait_for(const char *file) {
	while (access(file, F_OK) != 0)
		(void)usleep(10 * 1000);
}

enum rv_err __wrap_replica_step_over(struct replica *r, const uint32_t *shards, int n, struct step_stats *out,
									 struct rv_errtext *et) {
	static bool done; /* steps are one thread's work */
	struct fault f;
	if (!find_fault(&f))
		return __real_replica_step_over(r, shards, n, out, et);
	if (done && f.go_on != NULL && replica_global_step(r) < f.step)
		wait_for(f.go_on);
	enum rv_err e = __real_replica_step_over(r, shards, n, out, et);
	uint64_t step = replica_global_step(r);
	if (e != RV_OK || done || (f.always ? step < f.step : step != f.step))
		return e;
	done = !f.always;
	replica_set_part(r, replica_n_params(r) / 2, 1, &f.value);
	return e;
}
