/* invites.c: links that admit members: made, listed, revoked, and checked before a join. The store
 * spends a use in the record that makes the member, so here it is only counted. */
#include "coordinator/service/internal.h"

#include "base/clock.h"
#include "base/failpoint.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { INVITES_SHOWN = 1000, CAME_SHOWN = 64, DATE_BYTES = 32 };
#define LASTS_MAX_MS ((int64_t)SERVICE_LASTS_MAX_DAYS * 24 * 3600 * 1000)

enum rv_err service_for_the_asker(enum rv_err e) {
	return e == RV_E_FULL ? RV_E_BUSY : e;
}

/* ---- making ---- */

static enum rv_err check_terms(const struct invite_terms *t, int count, struct rv_errtext *et) {
	if (count < 1 || count > SERVICE_INVITES_MAX)
		return rv_fail(et, RV_E_RANGE, "count = %d: must be 1..%d", count, (int)SERVICE_INVITES_MAX);
	if (t->uses < 1 || t->uses > SERVICE_USES_MAX)
		return rv_fail(et, RV_E_RANGE, "uses = %" PRId64 ": must be 1..%d", t->uses, (int)SERVICE_USES_MAX);
	if (t->lasts_ms < 0 || t->lasts_ms > LASTS_MAX_MS)
		return rv_fail(et, RV_E_RANGE, "expires = %" PRId64 " ms: must be at most %d days", t->lasts_ms,
					   (int)SERVICE_LASTS_MAX_DAYS);
	return RV_OK;
}

static enum rv_err make(const struct service *s, const struct store_invite *as, char link[INVITE_MAX_BYTES],
						struct rv_errtext *et) {
	struct invite in = {.coordinator = s->cfg.advertise, .has_token = true};
	memcpy(in.run_id, s->cfg.run_id, sizeof in.run_id);
	memcpy(in.key, s->cfg.root, NET_KEY_BYTES);
	randombytes_buf(in.token, sizeof in.token);
	struct rv_hash hash = core_token_hash(s->cfg.run_id, in.token);
	RV_FAILPOINT("token.before");
	enum rv_err e = s->cfg.store->ops->invite_add(s->cfg.store, &hash, as, et);
	if (e != RV_OK)
		return service_for_the_asker(e);
	RV_FAILPOINT("token.after");
	invite_format(&in, link);
	return RV_OK;
}

enum rv_err service_invite(struct service *s, const struct invite_terms *terms, int count,
						   char (*links)[INVITE_MAX_BYTES], struct rv_errtext *et) {
	static const struct invite_terms usual = {.uses = 1};
	const struct invite_terms *t = terms != NULL ? terms : &usual;
	RV_TRY(check_terms(t, count, et));
	RV_TRY(service_fault(s, et));
	int64_t now_us = rv_clock_wall_us();
	const struct store_invite as = {.made_us = now_us,
									.ends_us = t->lasts_ms > 0 ? now_us + t->lasts_ms * RV_US_PER_MS : 0,
									.uses = (uint32_t)t->uses,
									.approve = t->approve};
	for (int i = 0; i < count; i++)
		RV_TRY(make(s, &as, links[i], et));
	service_tell(s, RV_INFO, "invited", "%d invite link%s made", count, count == 1 ? "" : "s");
	return RV_OK;
}

/* ---- before a join ---- */

static bool has_ended(const struct store_invite *in) {
	return in->ends_us != 0 && rv_clock_wall_us() >= in->ends_us;
}

static void write_date(int64_t wall_us, char out[DATE_BYTES]) {
	time_t at = (time_t)(wall_us / RV_US_PER_S);
	struct tm tm;
	out[0] = '\0';
	if (gmtime_r(&at, &tm) != NULL)
		(void)strftime(out, DATE_BYTES, "%Y-%m-%d %H:%M:%S", &tm);
}

/* Checks that the invite admits one more. `asked`: this one asked for approval, which its end does
 * not take back. */
static enum rv_err check_usable(const struct store_invite *in, bool asked, struct rv_errtext *et) {
	char date[DATE_BYTES];
	if (in->revoked_us != 0)
		return rv_fail(et, RV_E_AUTH, "join: the run's operator has revoked this invite: ask for a new one");
	if (has_ended(in) && !asked) {
		write_date(in->ends_us, date);
		return rv_fail(et, RV_E_AUTH,
					   "join: this invite ended at %s UTC by the coordinator's clock: ask the run's operator for a new "
					   "one",
					   date);
	}
	if (in->used >= in->uses)
		return rv_fail(et, RV_E_AUTH,
					   "join: this invite was for %u computer%s, and is spent: ask the run's operator for a new one; a "
					   "computer that has joined by it starts again in its own --dir",
					   in->uses, in->uses == 1 ? "" : "s");
	return RV_OK;
}

static enum rv_err find(const struct service *s, const uint8_t token[NET_TOKEN_BYTES], struct store_invite *in,
						bool *found, struct rv_errtext *et) {
	struct rv_hash hash = core_token_hash(s->cfg.run_id, token);
	return s->cfg.store->ops->invite_find(s->cfg.store, &hash, in, found, et);
}

/* *state: of the one that asks by this invite; -1: it does not. */
static enum rv_err find_state(const struct service *s, const uint8_t key[NET_KEY_BYTES], const struct store_invite *in,
							  int *state, struct rv_errtext *et) {
	struct service_askers all;
	*state = -1;
	if (!in->approve)
		return RV_OK;
	RV_TRY(service_load_askers(s, &all, et));
	const struct store_asker *a = service_find_asker(&all, key);
	*state = a != NULL && (a->invite == in->id || a->state == ASKER_REFUSED) ? a->state : -1;
	return RV_OK;
}

/* Finds the invite of a join; makes joins by it durable that wait, where they may have its last
 * uses: so only what is durable refuses another. */
static enum rv_err find_settled(struct service *s, int64_t now_us, const uint8_t token[NET_TOKEN_BYTES],
								struct store_invite *in, bool *found, struct rv_errtext *et) {
	const struct rv_hash hash = core_token_hash(s->cfg.run_id, token);
	RV_TRY(find(s, token, in, found, et));
	int joining = *found ? core_count_joining(s->core, &hash) : 0;
	if (joining == 0 || (!in->approve && in->used + (uint32_t)joining < in->uses))
		return RV_OK;
	RV_TRY(service_pump(s, now_us, et));
	return find(s, token, in, found, et);
}

/* Checks, for a computer that is approved, that the uses left are not all kept for others: it may
 * have been approved by another invite. */
static enum rv_err check_kept(const struct service *s, const uint8_t key[NET_KEY_BYTES], const struct store_invite *in,
							  struct rv_errtext *et) {
	struct service_askers all;
	bool own = false;
	RV_TRY(service_load_askers(s, &all, et));
	uint32_t kept = service_count_approved(&all, in->id, key, &own);
	if (own || in->used + kept < in->uses)
		return RV_OK;
	return rv_fail(et, RV_E_AUTH,
				   "join: all uses of this invite that are left are kept for other computers, which the run's operator "
				   "has approved: come by the link with which this one asked, or ask for a new one");
}

static enum rv_err unknown_invite(struct rv_errtext *et) {
	return rv_fail(et, RV_E_AUTH,
				   "join: this invite is not known here: is the link whole? Else ask the run's operator for a new one");
}

static enum rv_err no_invite(struct rv_errtext *et) {
	return rv_fail(et, RV_E_AUTH,
				   "join: this computer's key is no member's, and its link has no token: ask the run's operator for an "
				   "invite link, or start in the --dir with which it joined");
}

enum rv_err service_look_at_invite(const struct service *s, const uint8_t key[NET_KEY_BYTES],
								   const struct join_request *rq, struct rv_errtext *et) {
	struct store_invite in;
	bool found = false;
	int state;
	if (!rq->has_token)
		return no_invite(et);
	RV_TRY(find(s, rq->token, &in, &found, et));
	if (!found)
		return unknown_invite(et);
	RV_TRY(find_state(s, key, &in, &state, et));
	return check_usable(&in, state >= 0, et);
}

enum rv_err service_admit(struct service *s, int64_t now_us, const uint8_t key[NET_KEY_BYTES],
						  const struct join_request *rq, struct rv_errtext *et) {
	struct store_invite in;
	bool found = false;
	int state;
	if (!rq->has_token)
		return no_invite(et);
	RV_TRY(find_settled(s, now_us, rq->token, &in, &found, et));
	if (!found)
		return unknown_invite(et);
	RV_TRY(find_state(s, key, &in, &state, et));
	RV_TRY(check_usable(&in, state >= 0, et));
	if (!in.approve)
		return RV_OK;
	RV_TRY(service_ask_approval(s, key, rq->name, &in, et));
	return check_kept(s, key, &in, et);
}

enum rv_err service_holds_invite(const struct service *s, const uint8_t key[NET_KEY_BYTES],
								 const uint8_t token[NET_TOKEN_BYTES], bool *holds, struct rv_errtext *et) {
	struct store_invite in;
	bool found = false;
	int state;
	*holds = false;
	RV_TRY(find(s, token, &in, &found, et));
	if (!found)
		return RV_OK;
	RV_TRY(find_state(s, key, &in, &state, et));
	*holds = state != ASKER_REFUSED && check_usable(&in, state >= 0, NULL) == RV_OK;
	return RV_OK;
}

/* ---- for the operator ---- */

static const char *state_of(const struct store_invite *in) {
	return in->revoked_us != 0 ? "revoked" : in->used >= in->uses ? "spent" : has_ended(in) ? "ended" : "open";
}

static enum rv_err invite_json(const struct service *s, const struct store_invite *in,
							   const struct service_askers *askers, json_t *list, struct rv_errtext *et) {
	uint32_t came[CAME_SHOWN];
	int n = 0;
	RV_TRY(s->cfg.store->ops->invite_members(s->cfg.store, in->id, came, CAME_SHOWN, &n, et));
	json_t *o = json_object(), *members = json_array();
	for (int i = 0; i < n; i++)
		(void)json_array_append_new(members, json_integer(came[i]));
	(void)json_object_set_new(o, "id", json_integer(in->id));
	(void)json_object_set_new(o, "state", json_string(state_of(in)));
	(void)json_object_set_new(o, "uses", json_integer(in->uses));
	(void)json_object_set_new(o, "used", json_integer(in->used));
	(void)json_object_set_new(o, "kept", json_integer(service_count_approved(askers, in->id, NULL, NULL)));
	(void)json_object_set_new(o, "approve", json_boolean(in->approve));
	(void)json_object_set_new(o, "made_us", json_integer(in->made_us));
	(void)json_object_set_new(o, "ends_us", in->ends_us != 0 ? json_integer(in->ends_us) : json_null());
	(void)json_object_set_new(o, "members", members); /* the first CAME_SHOWN of `used` */
	return json_array_append_new(list, o) == 0 ? RV_OK : rv_fail(et, RV_E_NOMEM, "no memory for the list of invites");
}

enum rv_err service_list_invites(const struct service *s, json_t **out, struct rv_errtext *et) {
	int n = 0;
	struct store_invite *all = calloc(INVITES_SHOWN, sizeof *all);
	*out = NULL;
	if (all == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for the list of invites");
	struct service_askers askers;
	enum rv_err e = s->cfg.store->ops->invites(s->cfg.store, all, INVITES_SHOWN, &n, et);
	if (e == RV_OK)
		e = service_load_askers(s, &askers, et);
	json_t *list = json_array();
	for (int i = 0; e == RV_OK && i < n; i++)
		e = invite_json(s, &all[i], &askers, list, et);
	free(all);
	if (e == RV_OK)
		*out = list;
	else
		json_decref(list);
	return e;
}

static enum rv_err find_link(const struct service *s, const char *link, int64_t *id, struct rv_errtext *et) {
	struct invite in;
	struct store_invite found_in;
	bool found = false;
	RV_TRY(invite_parse(link, &in, et));
	if (memcmp(in.run_id, s->cfg.run_id, NET_RUN_ID_BYTES) != 0 || !in.has_token)
		return rv_fail(et, RV_E_INVALID, "revoke: the link is %s",
					   in.has_token ? "of another run" : "without a token: it admits nobody");
	RV_TRY(find(s, in.token, &found_in, &found, et));
	*id = found_in.id;
	return found ? RV_OK
				 : rv_fail(et, RV_E_NOTFOUND, "revoke: this run has no invite with this link's token: is it whole?");
}

/* Reads an ID, or a link. */
static enum rv_err find_named(const struct service *s, const char *name, int64_t *id, struct rv_errtext *et) {
	enum { DIGITS_MAX = 18 };
	const size_t n = strlen(name);
	if (strncmp(name, INVITE_SCHEME, strlen(INVITE_SCHEME)) == 0)
		return find_link(s, name, id, et);
	if (n == 0 || n > DIGITS_MAX || strspn(name, "0123456789") != n)
		return rv_fail(et, RV_E_INVALID,
					   "revoke %.40s: must be the ID that `invite list` shows, or the link: " INVITE_SCHEME "...",
					   name);
	*id = strtoll(name, NULL, 10);
	return RV_OK;
}

enum rv_err service_revoke(struct service *s, int64_t now_us, const char *name, char text[SERVICE_DECISION_BYTES],
						   struct rv_errtext *et) {
	int64_t id = 0;
	bool found = false;
	RV_TRY(service_pump(s, now_us, et)); /* who came before is a member */
	RV_TRY(find_named(s, name, &id, et));
	enum rv_err e = s->cfg.store->ops->invite_revoke(s->cfg.store, id, rv_clock_wall_us(), &found, et);
	if (e != RV_OK)
		return service_for_the_asker(e);
	if (!found)
		return rv_fail(et, RV_E_NOTFOUND, "invite %" PRId64 ": there is none: `invite list` shows them", id);
	(void)snprintf(text, SERVICE_DECISION_BYTES,
				   "invite %" PRId64 " is revoked: it admits nobody from now on; its members stay (`ban` removes one)",
				   id);
	service_tell(s, RV_INFO, "revoked", "invite %" PRId64 " is revoked", id);
	return RV_OK;
}
