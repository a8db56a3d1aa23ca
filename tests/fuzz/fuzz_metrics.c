/* fuzz_metrics.c: a metrics.jsonl as `rivulet report` reads it. What is accepted is in order. */
#include "lab/run/run_record.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	char path[64];
	struct run_record r;
	struct rv_errtext et = {0};
	int fd = memory_file(data, size, path);
	if (run_record_read(path, &r, &et) == RV_OK) {
		for (int i = 1; i < r.n_rounds; i++)
			RV_ASSERT(r.rounds[i - 1].round < r.rounds[i].round);
		for (int i = 1; i < r.n_evals; i++)
			RV_ASSERT(r.evals[i - 1].round < r.evals[i].round);
		(void)run_record_totals(&r);
		(void)run_record_ddp_bytes(&r);
		run_record_release(&r);
	} else {
		RV_ASSERT(et.text[0]);
	}
	(void)close(fd);
	return 0;
}
