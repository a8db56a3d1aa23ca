/* fuzz_report_facts.c: run.conf and sweep.json as `rivulet report` reads them: the input up to the
 * first 0xff is one, the rest the other. Values are clean, and the hash reads all of them. */
#include "base/clean_text.h"
#include "lab/report/facts.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_dir.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check(const struct report_facts *f) {
	struct facts_cursor c = facts_begin(f);
	int n = 0;
	for (; facts_next(&c); n++) {
		char *copy = strdup(c.value);
		RV_ASSERT(copy && c.name[0]);
		clean_text(copy);
		RV_ASSERT(strcmp(copy, c.value) == 0);
		RV_ASSERT(report_fact(f, c.name));
		(void)report_fact_number(f, c.name, 0);
		free(copy);
	}
	RV_ASSERT(n == f->n && n <= FACTS_MAX);
	(void)report_facts_hash(f, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct report_facts f;
	struct rv_errtext et = {0};
	const uint8_t *cut = memchr(data, 0xff, size);
	size_t first = cut ? (size_t)(cut - data) : size;
	(void)memory_dir_put("run.conf", data, first);
	if (cut)
		(void)memory_dir_put("sweep.json", cut + 1, size - first - 1);
	else
		(void)unlink(memory_dir_path("sweep.json"));
	if (report_facts_read(memory_dir(), &f, &et) == RV_OK)
		check(&f);
	else
		RV_ASSERT(et.text[0]);
	report_facts_release(&f);
	return 0;
}
