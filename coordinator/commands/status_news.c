/* status_news.c: see status_news.h. Fields that are missing in the JSON are left out. */
#include "coordinator/commands/status_news.h"

#include "coordinator/commands/status_fields.h"

#include <string.h>

static void print_line(json_t *o, FILE *out) {
	(void)json_dumpf(o, out, JSON_COMPACT | JSON_REAL_PRECISION(9));
	(void)fputc('\n', out);
	(void)fflush(out);
	json_decref(o);
}

void status_print_json(const json_t *status, bool online, FILE *out) {
	json_t *o = json_copy((json_t *)status); /* jansson has no const copy; it is not changed */
	(void)json_object_set_new(o, "online", json_boolean(online));
	print_line(o, out);
}

/* Copies the field, if it exists. */
static void take(json_t *to, const char *as, const json_t *from, const char *key) {
	json_t *v = json_object_get(from, key);
	if (v != NULL)
		(void)json_object_set(to, as, v);
}

static json_t *event(const char *name, double round, const json_t *status) {
	json_t *o = json_object();
	(void)json_object_set_new(o, "event", json_string(name));
	(void)json_object_set_new(o, "round", json_integer((json_int_t)round));
	take(o, "rounds_total", status, "rounds_total");
	return o;
}

static void print_round(const json_t *commit, const json_t *status, FILE *out) {
	static const char *const fields[] = {"participants", "loss",      "tokens_per_s", "tx_bytes",
										 "compute_us",   "reduce_us", "duration_us"};
	json_t *o = event("round", status_number(commit, "round") + 1, status);
	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
		take(o, fields[i], commit, fields[i]);
	take(o, "alive", status, "alive");
	take(o, "eta_s", status, "eta_s");
	print_line(o, out);
}

static void print_change(const char *name, const json_t *status, bool online, FILE *out) {
	json_t *o = event(name, status_number(status, "round"), status);
	(void)json_object_set_new(o, "online", json_boolean(online));
	print_line(o, out);
}

/* Prints `yes` or `no` if `now` differs from the last one printed. */
static void print_if_changed(bool *told, bool now, const char *yes, const char *no, const json_t *status, bool online,
							 FILE *out) {
	if (*told != now)
		print_change(now ? yes : no, status, online, out);
	*told = now;
}

static void print_missing(const json_t *status, FILE *out) {
	json_t *o = event("missing", status_number(status, "round"), status), *names = json_array();
	const json_t *m;
	char name[STATUS_NAME_BYTES];
	for (size_t i = 0; (m = status_missing_member(status, i)) != NULL; i++) {
		status_member_name(m, name);
		(void)json_array_append_new(names, json_string(name));
	}
	take(o, "alive", status, "alive");
	take(o, "min_workers", status, "min_workers");
	take(o, "waiting_s", status, "waiting_s");
	(void)json_object_set_new(o, "missing", names);
	print_line(o, out);
}

static void print_phase(struct status_news *told, const json_t *status, FILE *out) {
	const char *phase = status_string(status, "phase");
	bool worth_telling = strcmp(phase, "waiting") == 0 || strcmp(phase, "done") == 0;
	if (worth_telling && strcmp(phase, told->phase) != 0) {
		json_t *o = event(phase, status_number(status, "round"), status);
		take(o, "alive", status, "alive");
		take(o, "min_workers", status, "min_workers");
		print_line(o, out);
	}
	(void)snprintf(told->phase, sizeof told->phase, "%s", phase);
	if (status_waits_long(status) && !told->missing)
		print_missing(status, out);
	told->missing = status_waits_long(status);
}

/* Prints one line for each member whose disk begins to fail, or works again. */
static void print_storage_news(struct status_news *told, const json_t *status, FILE *out) {
	const json_t *m;
	size_t i;
	char name[STATUS_NAME_BYTES];
	json_array_foreach(json_object_get(status, "members"), i, m) {
		json_t *fails = json_object_get(m, "storage");
		uint64_t bit = i < 64 ? UINT64_C(1) << i : 0;
		if (json_is_object(fails) == ((told->storage & bit) != 0))
			continue;
		told->storage ^= bit;
		json_t *o = event(json_is_object(fails) ? "member_storage" : "member_storage_back",
						  status_number(status, "round"), status);
		take(o, "member", m, "member");
		status_member_name(m, name);
		(void)json_object_set_new(o, "name", json_string(name));
		take(o, "fails", fails, "fails");
		take(o, "full", fails, "full");
		print_line(o, out);
	}
}

void status_news_print(struct status_news *told, const json_t *status, bool online, FILE *out) {
	const json_t *commit;
	size_t i;
	if (!told->begun)
		told->round = status_number(status, "round") - 1; /* of the past, the last round is enough */
	told->begun = true;
	print_if_changed(&told->offline, !online, "offline", "online", status, online, out);
	json_array_foreach(json_object_get(status, "history"), i, commit) {
		if (status_number(commit, "round") < told->round)
			continue;
		print_round(commit, status, out);
		told->round = status_number(commit, "round") + 1;
	}
	if (!online)
		return; /* members and the state of the store are unknown */
	print_if_changed(&told->store_full, json_is_true(json_object_get(status, "store_full")), "store_full", "store_ok",
					 status, online, out);
	print_storage_news(told, status, out);
	print_phase(told, status, out);
}
