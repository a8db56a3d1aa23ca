/* reduce_points.c: the failpoints of what an all-reduce sends: the first, the middle and the last
 * chunk of each kind, by the ownership map of the attempt. The linker puts it between the links and
 * the all-reduce core (--wrap). */
#include "base/assert.h"
#include "base/failpoint.h"
#include "net/reduce/reduce.h"

typedef struct reduce *init_fn(void *memory, const struct reduce_config *cfg, const struct reduce_memory *mem,
							   const struct reduce_roster *roster, int64_t now_us);
typedef void restart_fn(struct reduce *c, const struct reduce_roster *roster, int64_t now_us);
typedef bool send_fn(struct reduce *c, int64_t now_us, int to, struct reduce_msg *out);
init_fn __real_reduce_init, __wrap_reduce_init;
restart_fn __real_reduce_restart, __wrap_reduce_restart;
send_fn __real_reduce_send, __wrap_reduce_send;

static struct {
	uint32_t scatter, n_scatter, gather, n_gather; /* sent so far, and in all if nothing is resumed */
} points;
static uint32_t n_chunks;

static void begin_attempt(const struct reduce_roster *roster) {
	static uint8_t owner[1 << 16];
	uint32_t own = 0;
	RV_ASSERT(n_chunks <= sizeof owner);
	roster->own(roster->ctx, owner);
	for (uint32_t c = 0; c < n_chunks; c++)
		own += owner[c] == roster->self;
	points.scatter = points.gather = 0;
	points.n_scatter = n_chunks - own;
	points.n_gather = own * (uint32_t)(roster->n - 1);
}

static void sending(const struct reduce_msg *m) {
	if (m->type == REDUCE_SCATTER) {
		uint32_t i = points.scatter++;
		if (i == 0)
			RV_FAILPOINT("reduce.scatter-first");
		if (i == points.n_scatter / 2)
			RV_FAILPOINT("reduce.scatter-mid");
		if (i + 1 == points.n_scatter)
			RV_FAILPOINT("reduce.scatter-last");
	} else if (m->type == REDUCE_GATHER) {
		uint32_t i = points.gather++;
		if (i == 0)
			RV_FAILPOINT("reduce.gather-first");
		if (i == points.n_gather / 2)
			RV_FAILPOINT("reduce.gather-mid");
		if (i + 1 == points.n_gather)
			RV_FAILPOINT("reduce.gather-last");
	}
}

struct reduce *__wrap_reduce_init(void *memory, const struct reduce_config *cfg, const struct reduce_memory *mem,
								  const struct reduce_roster *roster, int64_t now_us) {
	n_chunks = cfg->n_chunks;
	begin_attempt(roster);
	return __real_reduce_init(memory, cfg, mem, roster, now_us);
}

void __wrap_reduce_restart(struct reduce *c, const struct reduce_roster *roster, int64_t now_us) {
	begin_attempt(roster);
	__real_reduce_restart(c, roster, now_us);
}

bool __wrap_reduce_send(struct reduce *c, int64_t now_us, int to, struct reduce_msg *out) {
	bool any = __real_reduce_send(c, now_us, to, out);
	if (any)
		sending(out);
	return any;
}
