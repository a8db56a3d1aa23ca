/* askers.c: computers that ask to join by an invite that needs the operator's approval. They are in
 * the store only: no member number and no slot is theirs before they join. */
#include "coordinator/service/internal.h"

#include "base/clock.h"
#include "base/hex.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#define ASKER_LASTS_US ((int64_t)7 * 24 * 3600 * RV_US_PER_S) /* then it is forgotten, and may ask anew */
enum { FINGERPRINT_BYTES = 8, KEY_DIGITS = 2 * NET_KEY_BYTES };

static void write_fingerprint(const uint8_t key[NET_KEY_BYTES], char out[2 * FINGERPRINT_BYTES + 1]) {
	rv_hex_encode(key, FINGERPRINT_BYTES, out);
}

enum rv_err service_load_askers(const struct service *s, struct service_askers *out, struct rv_errtext *et) {
	return s->cfg.store->ops->askers(s->cfg.store, out->at, &out->n, et);
}

static bool is_old(const struct store_asker *a) {
	return rv_clock_wall_us() - a->asked_us > ASKER_LASTS_US;
}

const struct store_asker *service_find_asker(const struct service_askers *all, const uint8_t key[NET_KEY_BYTES]) {
	for (int i = 0; i < all->n; i++)
		if (memcmp(all->at[i].key, key, NET_KEY_BYTES) == 0 && !is_old(&all->at[i]))
			return &all->at[i];
	return NULL;
}

uint32_t service_count_approved(const struct service_askers *all, int64_t id, const uint8_t key[NET_KEY_BYTES],
								bool *own) {
	uint32_t n = 0;
	bool found = false;
	for (int i = 0; i < all->n; i++) {
		const struct store_asker *a = &all->at[i];
		if (a->invite != id || a->state != ASKER_APPROVED || is_old(a))
			continue;
		const bool is_own = key != NULL && memcmp(a->key, key, NET_KEY_BYTES) == 0;
		found = found || is_own;
		n += !is_own;
	}
	if (own != NULL)
		*own = found;
	return n;
}

int service_count_waiting(const struct service *s) {
	struct service_askers all;
	int n = 0;
	if (service_load_askers(s, &all, NULL) != RV_OK)
		return 0;
	for (int i = 0; i < all.n; i++)
		n += all.at[i].state == ASKER_ASKS && !is_old(&all.at[i]);
	return n;
}

/* ---- asking ---- */

static enum rv_err drop(struct service *s, struct service_askers *all, int i, struct rv_errtext *et) {
	RV_TRY(s->cfg.store->ops->asker_drop(s->cfg.store, all->at[i].key, et));
	memmove(&all->at[i], &all->at[i + 1], (size_t)(all->n - i - 1) * sizeof all->at[0]);
	all->n--;
	return RV_OK;
}

/* Drops those that asked long ago. */
static enum rv_err drop_old(struct service *s, struct service_askers *all, struct rv_errtext *et) {
	for (int i = all->n - 1; i >= 0; i--)
		if (is_old(&all->at[i]))
			RV_TRY(drop(s, all, i, et));
	return RV_OK;
}

/* Drops the first one refused, where there is no room for another. */
static enum rv_err drop_refused(struct service *s, struct service_askers *all, struct rv_errtext *et) {
	for (int i = 0; all->n == STORE_ASKERS_MAX && i < all->n; i++)
		if (all->at[i].state == ASKER_REFUSED)
			RV_TRY(drop(s, all, i, et));
	return RV_OK;
}

/* Logs what becomes of one that asks; its fingerprint and name are for the operator. */
static void tell_asker(struct service *s, enum rv_level level, const char *event, const struct store_asker *a,
					   const char *text) {
	char print[2 * FINGERPRINT_BYTES + 1], detail[sizeof print + sizeof a->name + 16];
	write_fingerprint(a->key, print);
	(void)snprintf(detail, sizeof detail, "fingerprint %s%s%s", print, a->name[0] ? ", " : "", a->name);
	service_tell_operator(s, level, event, detail, "%s", text);
}

/* Returns true if one more may wait: there is room in all, and one link does not take all of it. */
static bool has_room(const struct service_askers *all, const struct store_invite *in) {
	uint32_t by_it = 0;
	for (int i = 0; i < all->n; i++)
		by_it += all->at[i].invite == in->id && all->at[i].state != ASKER_REFUSED;
	return all->n < STORE_ASKERS_MAX && by_it < in->uses - in->used + SERVICE_ASKERS_SPARE;
}

static enum rv_err add(struct service *s, struct service_askers *all, const struct store_asker *a,
					   const struct store_invite *in, struct rv_errtext *et) {
	RV_TRY(drop_old(s, all, et));
	RV_TRY(drop_refused(s, all, et));
	if (!has_room(all, in))
		return rv_fail(et, RV_E_WAITING,
					   "join: many computers wait for the operator's approval: this one asks again until there is "
					   "room");
	RV_TRY(s->cfg.store->ops->asker_put(s->cfg.store, a, et));
	tell_asker(
		s, RV_WARN, "asks", a,
		"a computer asks to join, and waits: `rivulet-coordinator members approve FINGERPRINT --dir DIR` lets it in, "
		"once its person has read you the same fingerprint; or `members refuse`");
	return RV_OK;
}

enum rv_err service_ask_approval(struct service *s, const uint8_t key[NET_KEY_BYTES], const char *name,
								 const struct store_invite *in, struct rv_errtext *et) {
	struct service_askers all;
	char print[2 * FINGERPRINT_BYTES + 1];
	write_fingerprint(key, print);
	RV_TRY(service_load_askers(s, &all, et));
	const struct store_asker *known = service_find_asker(&all, key);
	if (known != NULL && known->state == ASKER_REFUSED)
		return rv_fail(et, RV_E_AUTH,
					   "join: the run's operator has refused this computer (fingerprint %s): ask the operator, who can "
					   "still approve it",
					   print);
	if (known != NULL && known->state == ASKER_APPROVED) /* by whichever link */
		return RV_OK;
	if (known == NULL) {
		struct store_asker a = {.invite = in->id, .asked_us = rv_clock_wall_us(), .state = ASKER_ASKS};
		memcpy(a.key, key, sizeof a.key);
		memcpy(a.name, name, strnlen(name, sizeof a.name - 1));
		enum rv_err e = add(s, &all, &a, in, et);
		if (e != RV_OK)
			return service_for_the_asker(e);
	}
	return rv_fail(et, RV_E_WAITING, "join: the operator has to approve this computer: fingerprint %s", print);
}

/* ---- for the operator ---- */

enum rv_err service_list_askers(const struct service *s, json_t **out, struct rv_errtext *et) {
	static const char *const states[] = {
		[ASKER_ASKS] = "asks", [ASKER_APPROVED] = "approved", [ASKER_REFUSED] = "refused"};
	struct service_askers all;
	char key[KEY_DIGITS + 1];
	*out = NULL;
	RV_TRY(service_load_askers(s, &all, et));
	json_t *list = json_array();
	for (int i = 0; i < all.n; i++) {
		if (is_old(&all.at[i]))
			continue;
		json_t *o = json_object();
		rv_hex_encode(all.at[i].key, NET_KEY_BYTES, key);
		(void)json_object_set_new(o, "key", json_string(key));
		(void)json_object_set_new(o, "name", json_string(all.at[i].name));
		(void)json_object_set_new(o, "invite", json_integer(all.at[i].invite));
		(void)json_object_set_new(o, "asked_us", json_integer(all.at[i].asked_us));
		(void)json_object_set_new(o, "state", json_string(states[all.at[i].state]));
		(void)json_array_append_new(list, o);
	}
	*out = list;
	return list != NULL ? RV_OK : rv_fail(et, RV_E_NOMEM, "no memory for the list of computers");
}

/* Finds the one computer whose key begins so. */
static enum rv_err find(const struct service_askers *all, const char *prefix, struct store_asker *out,
						struct rv_errtext *et) {
	size_t n = strlen(prefix);
	int found = 0;
	if (n < SERVICE_PREFIX_LEAST || n > KEY_DIGITS || strspn(prefix, "0123456789abcdefABCDEF") != n)
		return rv_fail(et, RV_E_INVALID, "%.80s: must be the first hex digits of a fingerprint, at least %d", prefix,
					   (int)SERVICE_PREFIX_LEAST);
	for (int i = 0; i < all->n; i++) {
		char key[KEY_DIGITS + 1];
		rv_hex_encode(all->at[i].key, NET_KEY_BYTES, key);
		if (strncasecmp(key, prefix, n) != 0)
			continue;
		*out = all->at[i];
		found++;
	}
	if (found > 1)
		return rv_fail(et, RV_E_INVALID, "%s: the keys of %d computers begin so: give more digits", prefix, found);
	return found == 1 ? RV_OK
					  : rv_fail(et, RV_E_NOTFOUND,
								"%s: no computer that asks to join has this fingerprint: `members pending` lists them",
								prefix);
}

/* Checks that the invite by which `a` asks has a use to keep for it: approved computers have one
 * each until they join. */
static enum rv_err check_use_left(const struct service *s, const struct service_askers *all,
								  const struct store_asker *a, struct rv_errtext *et) {
	struct store_invite in;
	bool found = false, own;
	uint32_t others = service_count_approved(all, a->invite, a->key, &own);
	char print[2 * FINGERPRINT_BYTES + 1];
	RV_TRY(s->cfg.store->ops->invite_get(s->cfg.store, a->invite, &in, &found, et));
	if (own || (found && in.used + others < in.uses))
		return RV_OK;
	write_fingerprint(a->key, print);
	return rv_fail(et, RV_E_INVALID,
				   "computer %s is not approved: of the %u use%s of invite %" PRId64
				   ", %u %s spent and %u kept for others that are approved: `members refuse` one of these, or let it "
				   "come by another link",
				   print, in.uses, in.uses == 1 ? "" : "s", a->invite, in.used, in.used == 1 ? "is" : "are", others);
}

enum rv_err service_decide(struct service *s, int64_t now_us, const char *prefix, bool approve,
						   char text[SERVICE_DECISION_BYTES], struct rv_errtext *et) {
	struct service_askers all;
	struct store_asker a;
	char print[2 * FINGERPRINT_BYTES + 1];
	RV_TRY(service_pump(s, now_us, et)); /* who joins by then asks no more */
	RV_TRY(service_load_askers(s, &all, et));
	RV_TRY(find(&all, prefix, &a, et));
	if (approve)
		RV_TRY(check_use_left(s, &all, &a, et));
	a.state = approve ? ASKER_APPROVED : ASKER_REFUSED;
	enum rv_err e = s->cfg.store->ops->asker_put(s->cfg.store, &a, et);
	if (e != RV_OK)
		return service_for_the_asker(e);
	write_fingerprint(a.key, print);
	(void)snprintf(text, SERVICE_DECISION_BYTES, "computer %s%s%s is %s", print, a.name[0] ? ", " : "", a.name,
				   approve
					   ? "approved: a use of its invite is kept for it, and it joins when it asks next, within seconds"
					   : "refused");
	tell_asker(s, RV_INFO, approve ? "approved" : "refused", &a,
			   approve ? "a computer that asked to join is approved" : "a computer that asked to join is refused");
	return RV_OK;
}
