/* fuzz_trace.c: a trace.jsonl as `rivulet replay` reads it. What is accepted is bounded. */
#include "lab/worker_files/trace_read.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	char path[64];
	struct trace_record t;
	struct rv_errtext et = {0};
	int fd = memory_file(data, size, path);
	if (trace_read(path, &t, &et) == RV_OK) {
		RV_ASSERT(t.n > 0 && t.events[0].kind == TRACE_START && t.member != NET_NO_MEMBER);
		for (int i = 0; i < t.n; i++) {
			const struct trace_event *e = &t.events[i];
			RV_ASSERT(e->kind != TRACE_TRAIN || e->from <= e->to);
			RV_ASSERT(e->kind != TRACE_VOTE || (e->attempt > 0 && e->roster && e->roster->attempt == e->attempt));
			RV_ASSERT(!e->roster || (e->roster->n > 0 && e->roster->n <= NET_MAX_ROW));
		}
		trace_record_release(&t);
	} else {
		RV_ASSERT(et.text[0]);
	}
	(void)close(fd);
	return 0;
}
