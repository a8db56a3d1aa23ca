/* reduce_points.c: the failpoints of what an all-reduce sends: the first, the middle and the last
 * chunk of each kind, by the ownership map of the attempt; in a run of rows those of the row, and
 * those of each column that the worker owns. The linker puts it between the links and the
 * all-reduce cores (--wrap). */
#include "base/assert.h"
#include "base/failpoint.h"
#include "net/reduce/reduce.h"

#include <stdio.h>

typedef struct reduce *init_fn(void *memory, const struct reduce_config *cfg, const struct reduce_memory *mem,
							   const struct reduce_roster *roster, int64_t now_us);
typedef void restart_fn(struct reduce *c, const struct reduce_roster *roster, int64_t now_us);
typedef bool send_fn(struct reduce *c, int64_t now_us, int to, struct reduce_msg *out);
init_fn __real_reduce_init, __wrap_reduce_init;
restart_fn __real_reduce_restart, __wrap_reduce_restart;
send_fn __real_reduce_send, __wrap_reduce_send;

/* A core: of the row, or of a column. */
struct points {
	const struct reduce *core;
	bool column;
	uint32_t n_chunks;
	uint32_t scatter, n_scatter, gather, n_gather; /* sent so far, and in all if nothing is resumed */
};

/* The cores that were ever made: a grid makes each of its own again at the same address. */
static struct points all[1 + NET_MAX_ROW];
static int n_all;

static struct points *points_of(const struct reduce *core) {
	int i = 0;
	while (i < n_all && all[i].core != core)
		i++;
	RV_ASSERT(i < (int)(sizeof all / sizeof all[0]));
	n_all += i == n_all;
	all[i].core = core;
	return &all[i];
}

static void begin_attempt(struct points *p, const struct reduce_roster *roster) {
	static uint8_t owner[1 << 16];
	uint32_t own = 0;
	RV_ASSERT(p->n_chunks <= sizeof owner);
	roster->own(roster->ctx, owner);
	for (uint32_t c = 0; c < p->n_chunks; c++)
		own += owner[c] == roster->self;
	p->scatter = p->gather = 0;
	p->n_scatter = p->n_chunks - own;
	p->n_gather = own * (uint32_t)(roster->n - 1);
}

static void reach(const char *kind, uint32_t i, uint32_t n) {
	char name[32];
	static const char *const ends[] = {"first", "mid", "last"};
	const bool at[] = {i == 0, i == n / 2, i + 1 == n};
	for (int k = 0; k < 3; k++) {
		(void)snprintf(name, sizeof name, "%s-%s", kind, ends[k]);
		if (at[k])
			RV_FAILPOINT(name);
	}
}

static void sending(struct points *p, const struct reduce_msg *m) {
	if (m->type == REDUCE_SCATTER)
		reach(p->column ? "column.sum" : "reduce.scatter", p->scatter++, p->n_scatter);
	else if (m->type == REDUCE_GATHER)
		reach(p->column ? "column.mean" : "reduce.gather", p->gather++, p->n_gather);
}

struct reduce *__wrap_reduce_init(void *memory, const struct reduce_config *cfg, const struct reduce_memory *mem,
								  const struct reduce_roster *roster, int64_t now_us) {
	struct points *p = points_of(memory);
	p->column = cfg->later_own;
	p->n_chunks = cfg->n_chunks;
	begin_attempt(p, roster);
	return __real_reduce_init(memory, cfg, mem, roster, now_us);
}

void __wrap_reduce_restart(struct reduce *c, const struct reduce_roster *roster, int64_t now_us) {
	begin_attempt(points_of(c), roster);
	__real_reduce_restart(c, roster, now_us);
}

bool __wrap_reduce_send(struct reduce *c, int64_t now_us, int to, struct reduce_msg *out) {
	bool any = __real_reduce_send(c, now_us, to, out);
	if (any)
		sending(points_of(c), out);
	return any;
}
