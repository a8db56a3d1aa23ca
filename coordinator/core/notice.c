/* notice.c: why a member's training does not count, for the person who runs it. Reads, and decides
 * nothing. */
#include "base/assert.h"
#include "coordinator/core/internal.h"

static void note_apart(const struct core *c, uint32_t slot, struct notice *out) {
	uint64_t set[CORE_HERE_WORDS];
	(void)core_apart_from(c, slot, set, &out->until_round);
	core_drop_ended(c, set);
	if (core_size_of(c, set) == 0) {
		out->until_round = 0;
		return;
	}
	out->kind = NOTICE_APART;
	out->left_out = core_left_out_apart(c, slot);
	for (int k = 0; k < c->slots.n && out->n_others < NOTICE_MAX_OTHERS; k++)
		if (set_has(set, c->slots.order[k]))
			out->others[out->n_others++] = c->slots.numbers[k];
}

static void note_not_counted(const struct core *c, uint32_t slot, struct notice *out) {
	const struct core_member *m = &c->members[slot];
	if (!core_right_size(c, m))
		out->reason = NOTICE_WRONG_SIZE;
	else if (core_diverged(c, m))
		out->reason = NOTICE_DIVERGED;
	else if (c->roster.n > 0 && set_has(c->left_out, slot))
		out->reason = NOTICE_UNREACHED;
	out->kind = out->reason != 0 ? NOTICE_NOT_COUNTED : NOTICE_NONE;
}

static void note_rests(const struct core *c, uint32_t slot, struct notice *out) {
	const struct core_slow slow = core_slow_of(c, &c->members[slot]);
	if (slow.rests_until == 0)
		return;
	out->kind = NOTICE_RESTS;
	out->until_round = slow.rests_until;
	out->rate = slow.why.rate;
	out->needs_ms = slow.why.needs_ms;
	out->deadline_ms = slow.why.deadline_ms;
}

static void note_struck(const struct core *c, uint32_t slot, struct notice *out) {
	const struct core_member *m = &c->members[slot];
	if (!core_in_quarantine(c, m))
		return;
	out->kind = NOTICE_STRUCK;
	out->reason = m->reputation.reason;
	out->final = m->reputation.appealed;
	out->until_round = m->reputation.quarantined_until;
}

bool core_notice(const struct core *c, const uint8_t key[NET_KEY_BYTES], struct notice *out) {
	int slot = core_find_key(c, key);
	*out = (struct notice){.round = c->round};
	if (slot < 0 || c->members[slot].banned)
		return false;
	note_struck(c, (uint32_t)slot, out);
	if (out->kind == NOTICE_NONE)
		note_apart(c, (uint32_t)slot, out);
	RV_ASSERT((out->kind == NOTICE_APART) == (out->n_others > 0));
	if (out->kind == NOTICE_NONE)
		note_not_counted(c, (uint32_t)slot, out);
	if (out->kind == NOTICE_NONE)
		note_rests(c, (uint32_t)slot, out);
	return out->kind != NOTICE_NONE;
}
