/* status_view.c: see status_view.h. Whatever is missing or of another type in the JSON shows as nothing. */
#include "coordinator/status_view.h"

#include <string.h>

enum { BAR_CELLS = 24, NAME_COLUMNS = 16 };

static double number(const json_t *o, const char *key) {
	return json_number_value(json_object_get(o, key));
}

static const char *string(const json_t *o, const char *key) {
	const char *s = json_string_value(json_object_get(o, key));
	return s != NULL ? s : "";
}

/* "12.3 k", without a unit. */
static const char *short_number(double v, char out[24]) {
	static const char units[] = " kMGTP";
	int u = 0;
	while (v >= 999.5 && units[u + 1] != '\0') {
		v /= 1000;
		u++;
	}
	(void)snprintf(out, 24, v < 9.995 && u > 0 ? "%.2f %c" : v < 99.95 && u > 0 ? "%.1f %c" : "%.0f %c", v, units[u]);
	if (u == 0)
		out[strcspn(out, " ")] = '\0';
	return out;
}

/* "1:02:03", "2:03". */
static const char *span(double s, char out[24]) {
	long t = s > 0 && s < 1e9 ? (long)(s + 0.5) : 0;
	if (t >= 3600)
		(void)snprintf(out, 24, "%ld:%02ld:%02ld", t / 3600, t / 60 % 60, t % 60);
	else
		(void)snprintf(out, 24, "%ld:%02ld", t / 60, t % 60);
	return out;
}

static void print_head(const json_t *o, bool online, FILE *out) {
	char bar[BAR_CELLS + 1], speed[24], eta[24], tokens[24];
	double round = number(o, "round"), total = number(o, "rounds_total");
	int filled = total > 0 ? (int)(BAR_CELLS * round / total) : 0;
	for (int i = 0; i < BAR_CELLS; i++)
		bar[i] = i < filled ? '#' : '.';
	bar[BAR_CELLS] = '\0';
	(void)fprintf(out, "[%s] round %.0f of %.0f, %s", bar, round, total, online ? string(o, "phase") : "not running");
	if (number(o, "attempt") > 1)
		(void)fprintf(out, " (attempt %.0f)", number(o, "attempt"));
	if (number(o, "loss") > 0)
		(void)fprintf(out, "  loss %.4f", number(o, "loss"));
	(void)fprintf(out, "  %s tokens/s", short_number(number(o, "tokens_per_s"), speed));
	(void)fprintf(out, "  %s tokens", short_number(number(o, "total_tokens"), tokens));
	if (json_is_number(json_object_get(o, "eta_s")))
		(void)fprintf(out, "  ETA %s", span(number(o, "eta_s"), eta));
	(void)fprintf(out, "%s\n", json_is_true(json_object_get(o, "store_full")) ? "  DISK FULL" : "");
}

static void print_member(const json_t *m, FILE *out) {
	char name[64], speed[24], sent[24], compute[24], reduce[24];
	bool alive = json_is_true(json_object_get(m, "alive"));
	const char *phase = json_is_true(json_object_get(m, "banned")) ? "banned" : string(m, "phase");
	if (string(m, "name")[0] != '\0')
		(void)snprintf(name, sizeof name, "%s", string(m, "name"));
	else
		(void)snprintf(name, sizeof name, "worker %.0f", number(m, "member"));
	(void)fprintf(out, "  %-*.*s %-10s %6.0f %8.4f %9s %9sB %9s %9s  ", NAME_COLUMNS, NAME_COLUMNS, name,
				  phase[0] ? phase : "joined", number(m, "round"), number(m, "loss"),
				  short_number(number(m, "tokens_per_s"), speed), short_number(number(m, "tx_bytes"), sent),
				  span(number(m, "compute_us") / 1e6, compute), span(number(m, "reduce_us") / 1e6, reduce));
	if (!json_is_number(json_object_get(m, "silent_s")))
		(void)fprintf(out, "never reported\n");
	else
		(void)fprintf(out, "%.1f s ago%s\n", number(m, "silent_s"), alive ? "" : ", taken for dead");
}

int status_view_print(const json_t *status, bool online, FILE *out) {
	const json_t *members = json_object_get(status, "members"), *m;
	size_t i;
	print_head(status, online, out);
	(void)fprintf(out, "  %-*s %-10s %6s %8s %9s %10s %9s %9s  %s\n", NAME_COLUMNS, "worker", "phase", "round", "loss",
				  "tokens/s", "sent", "compute", "reduce", "last report");
	json_array_foreach(members, i, m) print_member(m, out);
	(void)fflush(out);
	return 2 + (int)json_array_size(members);
}

void status_view_print_json(const json_t *status, bool online, FILE *out) {
	json_t *o = json_copy((json_t *)status); /* jansson has no const copy; it is not changed */
	(void)json_object_del(o, "history");
	(void)json_object_del(o, "events");
	(void)json_object_set_new(o, "online", json_boolean(online));
	(void)json_dumpf(o, out, JSON_COMPACT);
	(void)fputc('\n', out);
	(void)fflush(out);
	json_decref(o);
}
