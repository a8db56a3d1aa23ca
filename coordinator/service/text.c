/* text.c: who trains on what, for people: texts that members brought instead of the run's, bytes of
 * the run's by source, and what this coordinator hands out of it. Decides nothing. */
#include "coordinator/service/internal.h"

#include "base/hex.h"

enum { SHOWN_BYTES = 8 };

void service_show_text(struct service *s, const struct text_totals *totals) {
	s->text = totals;
}

void service_watch_text(struct service *s, int64_t now_us, uint32_t slot) {
	const struct core_member_view v = core_view(s->core, slot);
	struct rv_hash *told = &s->members[slot].own_text_told;
	char hex[2 * SHOWN_BYTES + 1], who[SERVICE_MEMBER_BYTES];
	if (!s->run.data_hash[0] || rv_hash_equal(told, &v.last->own_text) || !service_may_tell(s, v.member, now_us))
		return;
	*told = v.last->own_text;
	rv_hex_encode(told->b, SHOWN_BYTES, hex);
	service_member_text(&v, who);
	if (rv_hash_is_zero(told))
		service_tell(s, RV_INFO, "member_own_text", "%s trains on the run's text again", who);
	else
		service_tell_operator(s, RV_WARN, "member_own_text", hex, "%s trains on a text of its own, not on the run's",
							  who);
}

static void set_int(json_t *o, const char *key, uint64_t v) {
	(void)json_object_set_new(o, key, json_integer(v < INT64_MAX ? (json_int_t)v : INT64_MAX));
}

/* Returns the value of "own": null, or the start of the text's hash, which is for the operator. */
static json_t *own_text_json(const struct rv_hash *own, bool details) {
	char hex[2 * SHOWN_BYTES + 1];
	if (rv_hash_is_zero(own))
		return json_null();
	rv_hex_encode(own->b, SHOWN_BYTES, hex);
	return details ? json_string(hex) : json_true();
}

json_t *service_member_text_json(const struct service *s, const struct report *last, bool details) {
	if (!s->run.data_hash[0])
		return json_null();
	json_t *o = json_object();
	(void)json_object_set_new(o, "own", own_text_json(&last->own_text, details));
	set_int(o, "mirror_bytes", last->text_mirror_bytes);
	set_int(o, "member_bytes", last->text_member_bytes);
	set_int(o, "coordinator_bytes", last->text_coordinator_bytes);
	set_int(o, "stall_us", last->text_stall_us);
	return o;
}

json_t *service_text_json(const struct service *s) {
	const struct text_totals *t = s->text;
	if (!s->run.data_hash[0])
		return json_null();
	json_t *o = json_object();
	(void)json_object_set_new(o, "data_hash", json_string(s->run.data_hash));
	(void)json_object_set_new(o, "own_allowed", json_boolean(s->run.data == RUN_DATA_OWN));
	(void)json_object_set_new(o, "served", json_boolean(t != NULL));
	if (t == NULL)
		return o;
	set_int(o, "sent_bytes", t->bytes);
	set_int(o, "answers", t->files);
	set_int(o, "refused", t->refused);
	set_int(o, "damaged_shards", t->damaged);
	set_int(o, "requests", t->now);
	return o;
}

static void head(FILE *f, const char *name, const char *type, const char *help) {
	(void)fprintf(f, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void one(FILE *f, const char *name, const char *type, const char *help, uint64_t v) {
	head(f, name, type, help);
	(void)fprintf(f, "%s %llu\n", name, (unsigned long long)v);
}

static void write_members(const struct service *s, FILE *f) {
	static const char fetched[] = "rivulet_member_text_bytes_total",
					  stalled[] = "rivulet_member_text_stall_seconds_total", own[] = "rivulet_member_own_text";
	head(f, fetched, "counter", "Text that it fetched since its process started, by source");
	for (int k = 0; k < core_here(s->core); k++) {
		const struct core_member_view v = core_view(s->core, core_nth(s->core, k));
		const uint64_t bytes[] = {v.last->text_mirror_bytes, v.last->text_member_bytes, v.last->text_coordinator_bytes};
		static const char *const sources[] = {"mirror", "member", "coordinator"};
		for (int i = 0; i < 3; i++)
			(void)fprintf(f, "%s{member=\"%u\",source=\"%s\"} %llu\n", fetched, v.member, sources[i],
						  (unsigned long long)bytes[i]);
	}
	head(f, stalled, "counter", "Time in which its training waited for text since its process started");
	for (int k = 0; k < core_here(s->core); k++) {
		const struct core_member_view v = core_view(s->core, core_nth(s->core, k));
		(void)fprintf(f, "%s{member=\"%u\"} %.17g\n", stalled, v.member, (double)v.last->text_stall_us / 1e6);
	}
	head(f, own, "gauge", "1 if it trains on a text of its own");
	for (int k = 0; k < core_here(s->core); k++) {
		const struct core_member_view v = core_view(s->core, core_nth(s->core, k));
		(void)fprintf(f, "%s{member=\"%u\"} %d\n", own, v.member, !rv_hash_is_zero(&v.last->own_text));
	}
}

void service_text_metrics(const struct service *s, FILE *f) {
	const struct text_totals *t = s->text;
	if (!s->run.data_hash[0])
		return;
	write_members(s, f);
	if (t == NULL)
		return;
	one(f, "rivulet_text_sent_bytes_total", "counter", "Text that members fetched from this coordinator", t->bytes);
	one(f, "rivulet_text_refused_total", "counter", "Requests for text that were too many at once", t->refused);
	one(f, "rivulet_text_damaged_shards", "gauge", "Shards of its copy that are damaged, and not served", t->damaged);
}
