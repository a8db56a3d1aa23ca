/* text_hear.c: members as sources of text (worker/text/text_thread_state.h). */
#include "base/assert.h"
#include "base/clock.h"
#include "worker/text/text_thread_state.h"

#include <stdio.h>
#include <stdlib.h>

enum { MEMBERS_US = 1000 * 1000 }; /* in which links come up and members answer */

/* ---- links ---- */

/* Names the source of a member, which may have been another's. */
static void note_origin(struct text *t, int source, uint32_t member) {
	struct text_origin *o = &t->origins[source];
	RV_ASSERT(source <= t->n_origins);
	if (source < t->n_origins && o->member == member)
		return;
	if (source == t->n_origins)
		t->n_origins++;
	*o = (struct text_origin){.kind = TEXT_MEMBER, .member = member};
	(void)snprintf(o->name, sizeof o->name, "member %u", member);
}

static void hear_links(struct text *t, int64_t now_us) {
	struct member_set linked, lost;
	bool meets;
	const bool changed = text_members_links(t->members, &meets, &linked, &lost);
	if (!changed)
		return;
	if (meets)
		text_core_expect_members(t->core, MEMBERS_US);
	for (int i = 0; i < lost.n; i++)
		(void)text_core_member(t->core, now_us, lost.members[i], false);
	for (int i = 0; i < linked.n; i++) {
		const int source = text_core_member(t->core, now_us, linked.members[i], true);
		if (source >= 0)
			note_origin(t, source, linked.members[i]);
	}
}

/* ---- what they say and send ---- */

static void hear_held(struct text *t, const struct text_member_event *e, int64_t now_us) {
	const int source = text_core_source_of(t->core, e->member);
	if (source >= 0)
		text_core_answer(t->core, now_us, source, e->files, e->n, e->held);
}

static void hear(struct text *t, const struct text_member_event *e, int64_t now_us) {
	switch (e->type) {
	case TEXT_MEMBER_HELD:
		hear_held(t, e, now_us);
		break;
	case TEXT_MEMBER_NONE:
		text_forget_ask(t, e->ask);
		text_core_failed(t->core, now_us, e->ask, TEXT_GONE, 0);
		break;
	case TEXT_MEMBER_PROGRESS:
		text_core_progress(t->core, now_us, e->ask, e->bytes);
		break;
	case TEXT_MEMBER_RANGE:
		text_take_range(t, e->ask, e->range, e->bytes);
		free(e->range);
		break;
	}
}

void text_hear_members(struct text *t) {
	struct text_member_event e;
	hear_links(t, rv_clock_monotonic_us());
	while (text_members_next(t->members, &e))
		hear(t, &e, rv_clock_monotonic_us());
}

void text_question_member(struct text *t, int source, int64_t now_us) {
	const struct text_origin *o = &t->origins[source];
	uint64_t files[TEXT_FILES_MAX];
	if (o->kind != TEXT_MEMBER || !text_members_may_question(t->members, o->member))
		return;
	const int n = text_core_question(t->core, now_us, source, files);
	if (n > 0)
		text_members_question(t->members, o->member, files, n);
}
