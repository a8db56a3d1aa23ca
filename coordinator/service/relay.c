/* relay.c: figures of the coordinator's own relay, for people. */
#include "coordinator/service/internal.h"

void service_show_relay(struct service *s, const struct relay_totals *totals) {
	s->relay = totals;
}

json_t *service_relay_json(const struct service *s) {
	const struct relay_totals *t = s->relay;
	if (t == NULL)
		return json_null();
	json_t *refused = json_object();
	for (uint8_t why = RELAY_REFUSE_TICKET; why < RELAY_REFUSALS; why++)
		(void)json_object_set_new(refused, relay_refusal_name(why), json_integer((json_int_t)t->refused[why]));
	return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:o}", "stations", (json_int_t)t->stations_now, "links",
					 (json_int_t)t->links_now, "bytes", (json_int_t)t->bytes, "calls", (json_int_t)t->calls, "joined",
					 (json_int_t)t->links, "openings", (json_int_t)t->openings, "reflections",
					 (json_int_t)t->reflections, "strangers_closed", (json_int_t)t->strangers_closed, "refused",
					 refused);
}

static void one(FILE *f, const char *name, const char *type, const char *help, uint64_t v) {
	(void)fprintf(f, "# HELP %s %s\n# TYPE %s %s\n%s %llu\n", name, help, name, type, name, (unsigned long long)v);
}

void service_relay_metrics(const struct service *s, FILE *f) {
	const struct relay_totals *t = s->relay;
	static const char refusals[] = "rivulet_relay_calls_refused_total";
	if (t == NULL)
		return;
	one(f, "rivulet_relay_stations", "gauge", "Members connected to the coordinator's relay", t->stations_now);
	one(f, "rivulet_relay_links", "gauge", "Pairs whose bytes it forwards", t->links_now);
	one(f, "rivulet_relay_forwarded_bytes_total", "counter", "Forwarded since the start, both ways", t->bytes);
	one(f, "rivulet_relay_calls_total", "counter", "Calls of pairs through it that it made", t->calls);
	one(f, "rivulet_relay_joined_total", "counter", "Calls whose ends both came", t->links);
	one(f, "rivulet_relay_openings_total", "counter", "Calls of pairs that it had dial each other at one moment",
		t->openings);
	one(f, "rivulet_relay_reflections_total", "counter", "Workers that asked at which address they are seen",
		t->reflections);
	one(f, "rivulet_relay_strangers_closed_total", "counter", "Connections closed without a valid ticket or token",
		t->strangers_closed);
	(void)fprintf(f, "# HELP %s Calls that it refused\n# TYPE %s counter\n", refusals, refusals);
	for (uint8_t why = RELAY_REFUSE_TICKET; why < RELAY_REFUSALS; why++)
		(void)fprintf(f, "%s{reason=\"%s\"} %llu\n", refusals, relay_refusal_name(why),
					  (unsigned long long)t->refused[why]);
}
