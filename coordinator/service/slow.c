/* slow.c: what becomes of members whose lines cannot make the deadline of an exchange
 * (slow-members), for people. Decides nothing. */
#include "coordinator/service/internal.h"

#include "base/round_number.h"

#include "outer/codec.h"

#include <inttypes.h>

enum { LINE_BYTES = 128, LESS_BYTES = 64 };

/* Writes "needs 3.4 s for one payload at 10.0 Mbit/s, and an exchange has 0.6 s". */
static void write_line(const struct core_slow *slow, bool rests, char out[LINE_BYTES]) {
	(void)snprintf(out, LINE_BYTES, "needs %.1f s for %s at %.1f Mbit/s, and an exchange has %.1f s",
				   slow->why.needs_ms / 1e3, rests ? "one payload" : "a whole contribution",
				   (double)slow->why.rate * 8e-6, slow->why.deadline_ms / 1e3);
}

/* Writes "its contribution as int4", or "1 of 4 chunks of its contribution". */
static void write_less(uint8_t codec, uint8_t part, char out[LESS_BYTES]) {
	const struct codec *c = codec_by_id(codec);
	if (part > 0)
		(void)snprintf(out, LESS_BYTES, "1 of %u chunks of its contribution", part);
	else
		(void)snprintf(out, LESS_BYTES, "its contribution as %s", c ? c->name : "the run's codec");
}

void service_tell_slow(struct service *s, const struct core_event *ev) {
	char line[LINE_BYTES], less[LESS_BYTES];
	const int slot = core_find(s->core, ev->member);
	if (slot < 0)
		return;
	const struct core_slow slow = core_view(s->core, (uint32_t)slot).slow;
	write_line(&slow, ev->type == CORE_EVENT_RESTS, line);
	write_less((uint8_t)ev->other, (uint8_t)(ev->other >> 8), less);
	if (ev->type == CORE_EVENT_RESTS)
		service_tell(s, RV_INFO, "rests",
					 "member %u rests until round %" PRIu64 ": its line %s (slow-members = %s). It trains on, and no "
					 "round waits for it until then",
					 ev->member, round_number(ev->round), line,
					 s->run.slow_members == SLOW_SKIP ? "skip" : "part, in rows");
	else
		service_tell(s, RV_INFO, "sends_less", "member %u sends %s from round %" PRIu64 " on: its uplink %s",
					 ev->member, less, round_number(ev->round), line);
}

json_t *service_slow_json(const struct core_slow *slow) {
	const struct codec *codec = codec_by_id(slow->codec);
	char line[LINE_BYTES];
	if (slow->rests_until == 0 && slow->codec == 0 && slow->part == 0)
		return json_null();
	write_line(slow, slow->rests_until > 0, line);
	return json_pack("{so so so ss}", "rests_until",
					 slow->rests_until > 0 ? json_integer((json_int_t)slow->rests_until) : json_null(), "codec",
					 codec ? json_string(codec->name) : json_null(), "part",
					 slow->part > 0 ? json_integer(slow->part) : json_null(), "why", line);
}
