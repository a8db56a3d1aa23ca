/* joins.c: computers that become members, and members that come back. A join takes a record, and
 * its answer waits for the disk: joins that come together wait for it together. */
#include "coordinator/service/internal.h"

#include "base/failpoint.h"

#include <string.h>

/* Joins that one transaction holds at most: the core's queue has room for as many, each with the
 * member that gives up its slot. */
enum { JOINS_TOGETHER = 32 };

static void write_join_reply(const struct service *s, uint32_t member, uint32_t version,
							 const uint8_t key[NET_KEY_BYTES], struct rv_writer *w) {
	struct join_reply reply = {.member = member, .run_hash = s->run_hash};
	memcpy(reply.run_id, s->cfg.run_id, sizeof reply.run_id);
	memcpy(reply.config, s->config, sizeof reply.config);
	ticket_sign(s->cfg.serving, s->cfg.run_id, member, key, reply.ticket);
	join_reply_encode(&reply, version, w);
}

/* Takes a join into the core; its record waits, unless the key is a member's. */
static enum rv_err take(struct service *s, int64_t now_us, const uint8_t key[NET_KEY_BYTES], const void *body, size_t n,
						struct join_request *rq, uint32_t *member, struct rv_errtext *et) {
	RV_TRY(service_fault(s, et));
	RV_TRY(join_request_decode(body, n, rq, et));
	RV_TRY(core_check_join(s->core, rq, et));
	/* A ban, or a use, that waited for room precedes the answer. */
	if (!s->joins_gather || core_has_decision(s->core) || core_count_member_records(s->core) >= JOINS_TOGETHER)
		RV_TRY(service_pump(s, now_us, et));
	RV_TRY(service_recall(s, now_us, key, et));
	bool is_new = core_find_key(s->core, key) < 0 && !core_is_joining(s->core, key);
	if (is_new)
		RV_TRY(service_check_open(s, et));
	if (is_new)
		RV_TRY(service_admit(s, now_us, key, rq, et));
	return core_join(s->core, now_us, key, rq, is_new, member, et);
}

/* Counts a join that was refused; returns its fault. */
static enum rv_err note(struct service *s, int64_t now_us, enum rv_err e, const struct rv_errtext *why,
						struct rv_errtext *et) {
	if (e == RV_E_AUTH || e == RV_E_INVALID || e == RV_E_FULL || e == RV_E_OVER)
		service_note_refused_join(s, now_us, why->text);
	return e == RV_OK ? RV_OK : rv_fail(et, e, "%s", why->text);
}

static enum rv_err look(const struct service *s, const uint8_t key[NET_KEY_BYTES], const void *body, size_t n,
						struct rv_errtext *et) {
	struct join_request rq;
	struct core_record away;
	bool is_member = false;
	RV_TRY(join_request_decode(body, n, &rq, et));
	RV_TRY(core_check_join(s->core, &rq, et));
	if (core_find_key(s->core, key) >= 0 || core_is_joining(s->core, key))
		return RV_OK;
	RV_TRY(s->cfg.store->ops->away(s->cfg.store, key, 0, &away, &is_member, et));
	if (is_member)
		return RV_OK;
	RV_TRY(service_check_open(s, et));
	return service_look_at_invite(s, key, &rq, et);
}

enum rv_err service_check_invite(struct service *s, int64_t now_us, const uint8_t key[NET_KEY_BYTES], const void *body,
								 size_t n, struct rv_errtext *et) {
	struct rv_errtext why = {0};
	return note(s, now_us, look(s, key, body, n, &why), &why, et);
}

enum rv_err service_begin_join(struct service *s, int64_t now_us, const uint8_t key[NET_KEY_BYTES], const void *body,
							   size_t n, bool *waits, struct rv_errtext *et) {
	struct join_request rq;
	struct rv_errtext why = {0};
	uint32_t member = 0;
	*waits = false;
	RV_FAILPOINT("join.before");
	enum rv_err e = take(s, now_us, key, body, n, &rq, &member, &why);
	*waits = e == RV_OK && core_is_joining(s->core, key);
	if (*waits)
		s->joins_gather = true;
	return note(s, now_us, e, &why, et);
}

static enum rv_err join(struct service *s, int64_t now_us, const uint8_t key[NET_KEY_BYTES], const void *body, size_t n,
						struct rv_writer *reply, struct rv_errtext *et) {
	struct join_request rq;
	uint32_t member = 0;
	RV_TRY(take(s, now_us, key, body, n, &rq, &member, et));
	RV_TRY(service_pump(s, now_us, et));
	write_join_reply(s, member, control_version_common(rq.protocol_min, rq.protocol), key, reply);
	RV_FAILPOINT("join.after");
	return RV_OK;
}

enum rv_err service_join(struct service *s, int64_t now_us, const uint8_t key[NET_KEY_BYTES], const void *body,
						 size_t n, struct rv_writer *reply, struct rv_errtext *et) {
	struct rv_errtext why = {0};
	return note(s, now_us, join(s, now_us, key, body, n, reply, &why), &why, et);
}

bool service_joins_gather(const struct service *s) {
	return s->joins_gather;
}

void service_write_joins(struct service *s, int64_t now_us) {
	if (s->joins_gather)
		(void)service_pump(s, now_us, NULL);
}

/* ---- members that come back ---- */

static enum rv_err recall(struct service *s, int64_t now_us, const struct core_record *rec, struct rv_errtext *et) {
	if (rec->banned)
		return rv_fail(et, RV_E_AUTH,
					   "member %u is banned from this run: ask its operator to take that back (`unban %u`), then start "
					   "again",
					   rec->member, rec->member);
	RV_TRY(core_return(s->core, now_us, rec, et));
	return service_pump(s, now_us, et);
}

enum rv_err service_recall(struct service *s, int64_t now_us, const uint8_t key[NET_KEY_BYTES], struct rv_errtext *et) {
	struct core_record rec;
	bool found = false;
	if (core_find_key(s->core, key) >= 0)
		return RV_OK;
	RV_TRY(service_fault(s, et));
	RV_TRY(s->cfg.store->ops->away(s->cfg.store, key, 0, &rec, &found, et));
	return found ? recall(s, now_us, &rec, et) : RV_OK;
}
