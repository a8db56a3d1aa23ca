/* notice.c: why a member's training does not count, for the person who runs it. Reads, and decides
 * nothing. */
#include "base/assert.h"
#include "coordinator/core/internal.h"

static void note_apart(const struct core *c, uint32_t member, struct notice *out) {
	uint64_t set = core_apart_from(c, member, &out->until_round);
	if (set == 0)
		return;
	out->kind = NOTICE_APART;
	out->left_out = core_left_out_apart(c, member);
	for (uint32_t i = 0; i < NET_MAX_MEMBERS && out->n_others < NOTICE_MAX_OTHERS; i++)
		if (set & core_bit(i))
			out->others[out->n_others++] = i;
}

static void note_not_counted(const struct core *c, uint32_t member, struct notice *out) {
	const struct core_member *m = &c->members[member];
	if (!core_right_size(c, m))
		out->reason = NOTICE_WRONG_SIZE;
	else if (core_diverged(c, m))
		out->reason = NOTICE_DIVERGED;
	else if (c->roster.n > 0 && (c->left_out & core_bit(member)))
		out->reason = NOTICE_UNREACHED;
	out->kind = out->reason != 0 ? NOTICE_NOT_COUNTED : NOTICE_NONE;
}

bool core_notice(const struct core *c, const uint8_t key[NET_KEY_BYTES], struct notice *out) {
	int member = core_find_member(c, key);
	*out = (struct notice){.round = c->round};
	if (member < 0 || c->members[member].banned)
		return false;
	note_apart(c, (uint32_t)member, out);
	RV_ASSERT((out->kind == NOTICE_APART) == (out->n_others > 0));
	if (out->kind == NOTICE_NONE)
		note_not_counted(c, (uint32_t)member, out);
	return out->kind != NOTICE_NONE;
}
