/* fuzz_text_core.c: sources of text that answer whatever they like, whenever they like. No answer
 * breaks what the core promises: its own checks hold, no request is made twice at once of a source,
 * or beyond the file. */
#include "tests/fuzz/fuzz.h"
#include "worker/text/text_core.h"

#include <stdlib.h>

enum { RANGES = 4, FILES = 5, OTHERS = 3, MEMBERS = 60, ASKS = TEXT_ASKS_MAX };

struct world {
	struct text_core *core;
	int n_sources;
	int64_t now_us;
	struct text_request asks[ASKS]; /* id 0: free */
	uint32_t got[ASKS];
};

static uint64_t bytes_of(uint64_t file) {
	return file == 0 ? 32 : (RANGES - 1) * (uint64_t)TEXT_RANGE_BYTES + file;
}

static void want(struct world *w, uint8_t which) {
	struct text_need needs[FILES];
	int n = 0;
	for (uint64_t i = 0; i < FILES; i++)
		if (which >> i & 1)
			needs[n++] = (struct text_need){.id = i, .bytes = bytes_of(i), .urgent = which & 0x80};
	text_core_want(w->core, w->now_us, needs, n);
}

static void send_to(struct world *w, int source) {
	struct text_request q;
	if (!text_core_send(w->core, w->now_us, source, &q))
		return;
	RV_ASSERT(q.id != 0 && q.source == source && q.n > 0 && q.first + q.n <= text_core_ranges(bytes_of(q.file)));
	int at = 0;
	for (; at < ASKS && w->asks[at].id != 0; at++)
		RV_ASSERT(w->asks[at].id != q.id);
	RV_ASSERT(at < ASKS);
	w->asks[at] = q;
	w->got[at] = 0;
}

static void drop(struct world *w) {
	uint32_t id;
	while (text_core_drop(w->core, &id))
		for (int i = 0; i < ASKS; i++)
			if (w->asks[i].id == id)
				w->asks[i].id = 0;
}

static void verdict(struct world *w, uint64_t file, bool good) {
	int liars[TEXT_SOURCES_MAX];
	const int n = text_core_verdict(w->core, w->now_us, file, good, liars);
	RV_ASSERT(n >= 0 && n <= w->n_sources);
}

static void answer(struct world *w, struct text_request *q, uint8_t how, uint8_t value) {
	if (how < 8) {
		text_core_failed(w->core, w->now_us, q->id, (enum text_failure)(how % 4), value * INT64_C(10000000));
		q->id = 0;
	} else if (how < 24) {
		text_core_progress(w->core, w->now_us, q->id, value % 2);
	} else {
		const struct text_arrival a = text_core_arrived(w->core, w->now_us, q->id, value % 2);
		if (a.ended)
			q->id = 0;
		if (a.complete)
			verdict(w, a.file, value & 2);
	}
}

/* A member is linked or not, and answers its question, now or much later. */
static void member(struct world *w, uint8_t value) {
	const uint32_t number = value % MEMBERS;
	const int source = text_core_member(w->core, w->now_us, number, value < 3 * MEMBERS);
	if (source >= w->n_sources)
		w->n_sources = source + 1;
	RV_ASSERT(w->n_sources <= TEXT_SOURCES_MAX && source == text_core_source_of(w->core, number));
}

static void question(struct world *w, int source, uint8_t value) {
	uint64_t files[TEXT_FILES_MAX];
	const int n = text_core_question(w->core, w->now_us, source, files);
	RV_ASSERT(n >= 0 && n <= FILES);
	if (n > 0 && value % 8 != 0)
		text_core_answer(w->core, w->now_us, source, files, n, value & (((uint64_t)1 << n) - 1));
}

static void step(struct world *w, uint8_t what, uint8_t value) {
	w->now_us += value * INT64_C(1000) << what % 16;
	switch (what >> 5) {
	case 0:
		want(w, value);
		break;
	case 1:
		if (what & 16)
			member(w, value);
		else
			text_core_here(w->core, w->now_us, what % OTHERS, value & 1);
		break;
	case 2:
		text_core_tick(w->core, w->now_us);
		break;
	case 3:
		if (what & 16)
			text_core_expect_members(w->core, value * INT64_C(10000));
		else
			text_core_whole(w->core, 1);
		break;
	case 4:
		text_core_want(w->core, w->now_us, NULL, 0);
		break;
	default:
		if (w->asks[value % ASKS].id != 0)
			answer(w, &w->asks[value % ASKS], what % 32, value);
	}
	drop(w);
	for (int i = 0; i < w->n_sources; i++) {
		question(w, i, value);
		send_to(w, i);
	}
	drop(w);
	RV_ASSERT(text_core_deadline_us(w->core) >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	const struct text_core_config cfg = {.ranges_max = RANGES, .stall_us = 10000000};
	struct world w = {0};
	void *memory = malloc(text_core_bytes(&cfg));
	RV_ASSERT(memory);
	w.core = text_core_init(memory, &cfg, 0);
	for (int i = 0; i < OTHERS; i++)
		RV_ASSERT(text_core_add(w.core, i < 2 ? TEXT_MIRROR : TEXT_COORDINATOR) == i);
	w.n_sources = OTHERS;
	for (size_t i = 0; i + 1 < size; i += 2)
		step(&w, data[i], data[i + 1]);
	free(memory);
	return 0;
}
