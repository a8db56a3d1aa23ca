/* run_silence.c: see run_silence.h. Each factor leaves room for one lost and repeated message: two
 * and a half reports, four PINGs within one silence. */
#include "base/run_silence.h"

#include "base/assert.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	REPORT_MOST_MS = 2000,
	GATHER_LEAST_MS = 50,
	GATHER_MOST_MS = 1000,
	COORDINATOR_LEAST_MS = 2000, /* a connection that lost three segments in a row has recovered by then */
	COORDINATOR_MOST_MS = 10000
};

static int64_t within(int64_t ms, int64_t least, int64_t most) {
	return ms < least ? least : ms > most ? most : ms;
}

struct run_silence run_silence_of(const struct run_config *c) {
	int64_t s = c->silence_ms;
	return (struct run_silence){.silent = s,
								.report = within(2 * s / 5, 1, REPORT_MOST_MS),
								.ping = s / 4,
								.withheld = 2 * s,
								.gather = within(s / 8, GATHER_LEAST_MS, GATHER_MOST_MS),
								.dead = 5 * s / 2,
								.coordinator = within(5 * s / 2, COORDINATOR_LEAST_MS, COORDINATOR_MOST_MS)};
}

void run_silence_print(const struct run_config *c, char out[RUN_SILENCE_TEXT_BYTES]) {
	const struct run_silence s = run_silence_of(c);
	const struct {
		const char *what;
		int64_t ms;
	} lines[] = {
		{"a worker reports at least every", s.report},
		{"a peer that has nothing to send pings every", s.ping},
		{"a silent peer is suspected, a silent member not waited for, after", s.silent},
		{"a peer that withholds what it owes is suspected after", s.withheld},
		{"accusations are collected for up to", s.gather},
		{"a silent member is taken for dead after", s.dead},
		{"a connection to the coordinator without acknowledgements is dropped after", s.coordinator},
	};
	int n = snprintf(out, RUN_SILENCE_TEXT_BYTES, "# from silence-ms = %" PRId64 " follow:\n", c->silence_ms);
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		n += snprintf(out + n, RUN_SILENCE_TEXT_BYTES - (size_t)n, "#   %s %" PRId64 " ms\n", lines[i].what,
					  lines[i].ms);
	RV_ASSERT(n < RUN_SILENCE_TEXT_BYTES);
}
