/* status_view.c: see status_view.h. Fields that are missing or of another type in the JSON are left
 * out. */
#include "coordinator/commands/status_view.h"

#include "base/round_number.h"
#include "base/short_number.h"
#include "coordinator/commands/status_fields.h"
#include "coordinator/commands/status_paths.h"
#include "coordinator/commands/status_table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { BAR_CELLS = 24, NAME_COLUMNS = 16, MISSING_SHOWN = 4 };

/* Writes a duration: "1:02:03", "2:03". */
static const char *span(double s, char out[24]) {
	long t = s > 0 && s < 1e9 ? (long)(s + 0.5) : 0;
	if (t >= 3600)
		(void)snprintf(out, 24, "%ld:%02ld:%02ld", t / 3600, t / 60 % 60, t % 60);
	else
		(void)snprintf(out, 24, "%ld:%02ld", t / 60, t % 60);
	return out;
}

/* Returns the number of the round whose index the status has. */
static double shown_round(const json_t *o, const char *name) {
	return (double)round_number((uint64_t)status_number(o, name));
}

static void print_head(const json_t *o, bool online, FILE *out) {
	char bar[BAR_CELLS + 1], speed[24], eta[24], tokens[24];
	double round = status_number(o, "round"), total = status_number(o, "rounds_total");
	int filled = total > 0 ? (int)(BAR_CELLS * round / total) : 0;
	for (int i = 0; i < BAR_CELLS; i++)
		bar[i] = i < filled ? '#' : '.';
	bar[BAR_CELLS] = '\0';
	(void)fprintf(out, "[%s] %.0f of %.0f rounds committed, %s", bar, round, total,
				  online ? status_string(o, "phase") : "not running");
	if (status_number(o, "attempt") > 1)
		(void)fprintf(out, " (attempt %.0f)", status_number(o, "attempt"));
	if (json_is_number(json_object_get(o, "loss")))
		(void)fprintf(out, "  loss %.4f", status_number(o, "loss"));
	(void)fprintf(out, "  %s tokens/s", rv_short_number(status_number(o, "tokens_per_s"), speed));
	(void)fprintf(out, "  %s tokens", rv_short_number(status_number(o, "total_tokens"), tokens));
	bool known = json_is_number(json_object_get(o, "eta_s"));
	(void)fprintf(out, "  ETA %s", known ? span(status_number(o, "eta_s"), eta) : "unknown");
	(void)fprintf(out, "%s\n", json_is_true(json_object_get(o, "store_full")) ? "  DISK FULL" : "");
}

/* Prints when the attempt under way closes, and what exchanges should take (slow-members). */
static void print_deadlines(const json_t *o, FILE *out) {
	if (json_is_number(json_object_get(o, "closes_in_s")))
		(void)fprintf(out, "  round %.0f closes in %.0f s (%.1f s for the attempt)\n", shown_round(o, "round"),
					  status_number(o, "closes_in_s"), status_number(o, "deadline_ms") / 1e3);
	if (json_is_number(json_object_get(o, "slow_deadline_ms")))
		(void)fprintf(out, "  an exchange should take %.1f s: slow-members = %s\n",
					  status_number(o, "slow_deadline_ms") / 1e3, status_string(o, "slow_members"));
}

/* Prints what the coordinator's relay has carried, once there was a call. */
static void print_relay(const json_t *status, FILE *out) {
	const json_t *o = json_object_get(status, "relay"), *n;
	const char *reason;
	double refused = 0;
	char bytes[24];
	json_object_foreach((json_t *)json_object_get(o, "refused"), reason, n) refused += json_number_value(n);
	if (status_number(o, "calls") + refused == 0)
		return;
	(void)fprintf(out, "relay: %.0f member%s connected, %.0f pair%s at present, %sB forwarded",
				  status_number(o, "stations"), status_number(o, "stations") == 1 ? "" : "s", status_number(o, "links"),
				  status_number(o, "links") == 1 ? "" : "s", rv_short_number(status_number(o, "bytes"), bytes));
	(void)fprintf(out, refused > 0 ? ", %.0f calls refused\n" : "\n", refused);
}

static void print_waiting(const json_t *o, FILE *out) {
	char name[STATUS_NAME_BYTES], waited[24];
	const json_t *m;
	if (json_is_true(json_object_get(o, "store_full"))) {
		(void)fprintf(out,
					  "  no round is committed: this coordinator's disk is full: make room on it; nothing is lost, "
					  "and it tries again every second\n");
		return;
	}
	if (!status_waits_long(o))
		return;
	(void)fprintf(out, "  waiting for workers since %s: %.0f of %.0f are present",
				  span(status_number(o, "waiting_s"), waited), status_number(o, "alive"),
				  status_number(o, "min_workers"));
	for (size_t i = 0; i < MISSING_SHOWN && (m = status_missing_member(o, i)) != NULL; i++) {
		status_member_name(m, name);
		(void)fprintf(out, "%s %.*s", i == 0 ? "; missing:" : ",", NAME_COLUMNS, name);
	}
	(void)fprintf(out, "%s\n", status_missing_member(o, MISSING_SHOWN) != NULL ? ", ..." : "");
}

/* Prints how many computers wait for the operator's approval. */
static void print_pending(const json_t *o, FILE *out) {
	double n = status_number(o, "pending");
	if (n > 0)
		(void)fprintf(out, "  %.0f computer%s ask%s to join: `members pending` lists %s\n", n, n == 1 ? "" : "s",
					  n == 1 ? "s" : "", n == 1 ? "it" : "them");
}

static void print_old_copy(const json_t *o, FILE *out) {
	const char *command = status_string(o, "command");
	(void)fprintf(out,
				  "  the run waits in the state of round %.0f: workers are ahead of this coordinator (its store is an "
				  "old copy): serve "
				  "the newest store\n",
				  status_number(o, "round"));
	if (command[0] != '\0')
		(void)fprintf(out, "  or give up what was trained since: %s\n", command);
	else
		(void)fprintf(out,
					  "  no present member has proven the state of round %.0f: a rollback to it would leave nothing to "
					  "continue from, "
					  "unless a disk reaches it\n",
					  status_number(o, "round"));
}

static void print_not_held(const json_t *status, FILE *out) {
	const json_t *o = json_object_get(status, "not_held");
	if (!json_is_object(o))
		return;
	if (json_is_true(json_object_get(o, "ahead"))) {
		print_old_copy(o, out);
		return;
	}
	if (json_is_true(json_object_get(o, "complete"))) {
		(void)fprintf(
			out,
			"  the run is complete; the present workers have an older state: to give them the final one, start one "
			"that has it\n");
		return;
	}
	(void)fprintf(out, "  the run waits: %s the state of round %.0f\n",
				  json_is_true(json_object_get(o, "lost")) ? "all members that held it came back without"
														   : "no present member holds",
				  status_number(o, "round"));
	if (status_string(o, "command")[0] == '\0')
		return;
	(void)fprintf(out, "  %s%s\n",
				  json_array_size(json_object_get(o, "absent")) > 0 ? "start one that held it, or give up rounds: "
																	: "to give up rounds: ",
				  status_string(o, "command"));
}

/* Prints what audits of averages and of training found, since the coordinator started. */
static void print_audits(const json_t *status, FILE *out) {
	const json_t *o = json_object_get(status, "audits");
	if (json_is_object(o))
		(void)fprintf(out, "  audits of averages: %.0f right, %.0f wrong, %.0f without an answer, %.0f under way\n",
					  status_number(o, "right"), status_number(o, "wrong"), status_number(o, "unresolved"),
					  status_number(o, "open"));
	o = json_object_get(status, "scores");
	if (json_is_object(o))
		(void)fprintf(out,
					  "  audits of training: %.0f worthy, %.0f worthless, %.0f without an answer, %.0f under way; "
					  "appeals: %.0f, strikes taken back: %.0f\n",
					  status_number(o, "worthy"), status_number(o, "worthless"), status_number(o, "unresolved"),
					  status_number(o, "open"), status_number(o, "appeals"), status_number(o, "lifted"));
}

static void print_shared_text(const json_t *o, FILE *out) {
	double shards = status_number(o, "data_shards");
	if (shards < 1 || status_number(o, "alive") <= shards)
		return;
	(void)fprintf(out, "  %.0f workers share %.0f parts of the text (data-shards): some read the same\n",
				  status_number(o, "alive"), shards);
}

/* Adds to the notes of a row; cut off at its size. */
__attribute__((format(printf, 2, 3))) static void add_note(struct status_row *r, const char *fmt, ...) {
	size_t used = strlen(r->notes);
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(r->notes + used, sizeof r->notes - used, fmt, ap);
	va_end(ap);
}

static void note_silence(struct status_row *r, const json_t *m) {
	if (json_is_number(json_object_get(m, "silent_s")) && !json_is_true(json_object_get(m, "alive")) &&
		strcmp(status_string(m, "phase"), "leaving") != 0)
		add_note(r, "%s", ", taken for dead");
}

/* Adds ", DISK FULL: cannot store checkpoints", or nothing. */
static void note_storage(struct status_row *r, const json_t *m) {
	const json_t *o = json_object_get(m, "storage");
	if (json_is_object(o))
		add_note(r, ", %s: cannot store %s", json_is_true(json_object_get(o, "full")) ? "DISK FULL" : "DISK FAILS",
				 status_string(o, "fails"));
}

/* Adds ", TEXT OF ITS OWN: 0123456789abcdef", or nothing. */
static void note_text(struct status_row *r, const json_t *m) {
	const json_t *own = json_object_get(json_object_get(m, "text"), "own");
	if (json_is_string(own))
		add_note(r, ", TEXT OF ITS OWN: %s", json_string_value(own));
}

/* Adds ", UNLIKE THE OTHERS: loss, cosine", or nothing. */
static void note_outlier(struct status_row *r, const json_t *m) {
	const json_t *kind;
	size_t i;
	json_array_foreach(json_object_get(m, "outlier"), i, kind) {
		add_note(r, "%s %s", i == 0 ? ", UNLIKE THE OTHERS:" : ",", json_string_value(kind));
	}
}

/* Adds ", does not reach members 1, 2: left out", or nothing. */
static void note_apart(struct status_row *r, const json_t *m) {
	const json_t *apart = json_object_get(m, "apart_from"), *other;
	size_t i, n = json_array_size(apart);
	const char *first = n > 1 ? ", does not reach members " : ", does not reach member ";
	json_array_foreach(apart, i, other) {
		add_note(r, "%s%.0f", i > 0 ? ", " : first, json_number_value(other));
	}
	if (n > 0 && json_is_true(json_object_get(m, "left_out")))
		add_note(r, ": left out");
}

/* Adds ", rests until round 12: its line ...", ", sends int4: ...", or nothing. */
static void note_slow(struct status_row *r, const json_t *m) {
	const json_t *o = json_object_get(m, "slow");
	if (!json_is_object(o))
		return;
	if (json_is_number(json_object_get(o, "rests_until")))
		add_note(r, ", rests until round %.0f: its line ", shown_round(o, "rests_until"));
	else if (json_is_number(json_object_get(o, "part")))
		add_note(r, ", sends 1 of %.0f chunks: its uplink ", status_number(o, "part"));
	else
		add_note(r, ", sends %s: its uplink ", status_string(o, "codec"));
	add_note(r, "%s", status_string(o, "why"));
}

/* Adds ", IN QUARANTINE until round 40: false_audit (strike 2)", ", 1 strike: withheld", or
 * nothing. */
static void note_strikes(struct status_row *r, const json_t *m) {
	const json_t *o = json_object_get(m, "reputation");
	const double strikes = json_is_object(o) ? status_number(o, "strikes") : 0;
	if (strikes == 0)
		return;
	if (status_number(o, "quarantined_until") > status_number(m, "round"))
		add_note(r, ", IN QUARANTINE until round %.0f: %s (strike %.0f)", shown_round(o, "quarantined_until"),
				 status_string(o, "reason"), strikes);
	else
		add_note(r, ", %.0f strike%s, the last: %s", strikes, strikes == 1 ? "" : "s", status_string(o, "reason"));
}

#define CELL(r, column, ...) (void)snprintf((r)->cells[column], STATUS_TABLE_CELL_BYTES, __VA_ARGS__)

/* Returns true if the coordinator has a report of the member, since its own start. */
static bool has_reported(const json_t *m) {
	return json_is_string(json_object_get(m, "phase"));
}

static void fill_who(struct status_row *r, const json_t *m, bool online) {
	char name[STATUS_NAME_BYTES];
	bool votes = !json_is_object(json_object_get(m, "storage")); /* else it only cannot vote */
	const char *phase = json_is_true(json_object_get(m, "banned")) ? "banned" : status_string(m, "phase");
	phase = strcmp(phase, "leaving") == 0 && votes ? "left" : phase;
	status_member_name(m, name);
	CELL(r, COLUMN_NUMBER, "%.0f", status_number(m, "member"));
	CELL(r, COLUMN_NAME, "%.16s", name);
	CELL(r, COLUMN_PHASE, "%.16s", phase[0] ? phase : online ? "joined" : "-");
	CELL(r, COLUMN_ROUND, "%s", "-");
	if (has_reported(m))
		CELL(r, COLUMN_ROUND, "%.0f", status_number(m, "round"));
	if (json_is_number(json_object_get(m, "silent_s")))
		CELL(r, COLUMN_SEEN, "%.1f s ago", status_number(m, "silent_s"));
	else
		CELL(r, COLUMN_SEEN, "%s", online ? "not yet" : "not known"); /* reports are not stored */
}

/* Fills in a measured rate of a line; "-" if it is 0: not measured yet. */
static void fill_line(char cell[static STATUS_TABLE_CELL_BYTES], double bytes_per_s) {
	char text[24];
	if (bytes_per_s > 0)
		(void)snprintf(cell, STATUS_TABLE_CELL_BYTES, "%sb/s", rv_short_number(8 * bytes_per_s, text));
}

/* Fills in loss, speed and line; "-" if the worker has not reported one. */
static void fill_training(struct status_row *r, const json_t *m) {
	static const int all[] = {COLUMN_LOSS, COLUMN_SPEED,   COLUMN_SENT,   COLUMN_UP,
							  COLUMN_DOWN, COLUMN_COMPUTE, COLUMN_REDUCE, COLUMN_OWNS};
	char text[24];
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		CELL(r, all[i], "%s", "-");
	if (status_number(m, "n_chunks") > 0)
		CELL(r, COLUMN_OWNS, "%.0f %%", 100 * status_number(m, "owned_chunks") / status_number(m, "n_chunks"));
	if (!has_reported(m))
		return;
	if (json_is_number(json_object_get(m, "loss")))
		CELL(r, COLUMN_LOSS, "%.4f", status_number(m, "loss"));
	CELL(r, COLUMN_SPEED, "%s", rv_short_number(status_number(m, "tokens_per_s"), text));
	CELL(r, COLUMN_SENT, "%sB", rv_short_number(status_number(m, "tx_bytes"), text));
	fill_line(r->cells[COLUMN_UP], status_number(m, "up_bytes_per_s"));
	fill_line(r->cells[COLUMN_DOWN], status_number(m, "down_bytes_per_s"));
	CELL(r, COLUMN_COMPUTE, "%s", span(status_number(m, "compute_us") / 1e6, text));
	CELL(r, COLUMN_REDUCE, "%s", span(status_number(m, "reduce_us") / 1e6, text));
}

/* Fills in norm and cosine of its last contribution; "-" if unknown. */
static void fill_contribution(struct status_row *r, const json_t *m) {
	const json_t *c = json_object_get(m, "contribution");
	CELL(r, COLUMN_NORM, "%s", "-");
	CELL(r, COLUMN_COSINE, "%s", "-");
	if (!json_is_object(c))
		return;
	if (status_number(c, "norm") < 999.5)
		CELL(r, COLUMN_NORM, "%.2f", status_number(c, "norm"));
	else
		CELL(r, COLUMN_NORM, "%s", "> 999");
	CELL(r, COLUMN_COSINE, "%.2f", status_number(c, "cosine"));
}

static void fill_row(struct status_row *r, const json_t *m, bool online) {
	*r = (struct status_row){.notes = ""};
	fill_who(r, m, online);
	fill_training(r, m);
	fill_contribution(r, m);
	note_silence(r, m);
	note_storage(r, m);
	note_text(r, m);
	note_outlier(r, m);
	note_apart(r, m);
	note_strikes(r, m);
	note_slow(r, m);
}

static void print_members(const json_t *members, bool online, int width, FILE *out) {
	size_t i, n = json_array_size(members);
	struct status_row *rows = calloc(n + 1, sizeof *rows);
	const json_t *m;
	if (rows == NULL)
		return;
	json_array_foreach(members, i, m) {
		fill_row(&rows[i], m, online);
	}
	status_table_print(rows, (int)n, width, out);
	free(rows);
}

/* Returns how many lines a terminal of that width makes of the text; all of it is ASCII but for
 * names. */
static int lines_of(const char *text, int width) {
	int lines = 0;
	while (*text != '\0') {
		int n = (int)strcspn(text, "\n");
		lines += n > width ? (n + width - 1) / width : 1;
		text += n + (text[n] == '\n');
	}
	return lines;
}

int status_view_print(const json_t *status, bool online, bool matrix, int width, FILE *out) {
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	if (f == NULL)
		return 0;
	print_head(status, online, f);
	if (online) {
		print_waiting(status, f);
		print_not_held(status, f);
		print_deadlines(status, f);
		print_shared_text(status, f);
		print_audits(status, f);
		status_paths_summary(status, f);
		print_relay(status, f);
	}
	print_pending(status, f);
	print_members(json_object_get(status, "members"), online, width, f);
	if (online && matrix)
		status_paths_matrix(status, f);
	if (fclose(f) != 0) {
		free(text);
		return 0;
	}
	(void)fputs(text, out);
	(void)fflush(out);
	int lines = lines_of(text, width);
	free(text);
	return lines;
}
