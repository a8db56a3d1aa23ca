/* status_text.c: see status_text.h. */
#include "worker/local/status_text.h"

#include "base/clean_text.h"
#include "base/short_number.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

enum { TEXT_BYTES = 1024 };

/* ---- values ---- */

static const json_t *part(const json_t *o, const char *key) {
	return json_object_get(o, key);
}

static double number(const json_t *o, const char *key) {
	return json_number_value(part(o, key));
}

/* Copies a text without control characters; "" if there is none. */
static const char *text(const json_t *o, const char *key, char out[TEXT_BYTES]) {
	const char *s = json_string_value(part(o, key));
	(void)snprintf(out, TEXT_BYTES, "%s", s ? s : "");
	clean_text(out);
	return out;
}

struct short_text {
	char at[RV_SHORT_NUMBER_BYTES];
};

static struct short_text brief(double v) {
	struct short_text t;
	(void)rv_short_number(v > 0 ? v : 0, t.at);
	return t;
}

static void print_span(double s, FILE *out) {
	const int64_t minutes = (int64_t)(s / 60);
	if (minutes >= 48 * 60)
		(void)fprintf(out, "%" PRId64 " days", minutes / (24 * 60));
	else if (minutes >= 60)
		(void)fprintf(out, "%" PRId64 " h %" PRId64 " min", minutes / 60, minutes % 60);
	else if (minutes > 0)
		(void)fprintf(out, "%" PRId64 " min", minutes);
	else
		(void)fprintf(out, "%.0f s", s);
}

/* ---- lines ---- */

static void print_run(const json_t *run, FILE *out) {
	char name[TEXT_BYTES], operator[TEXT_BYTES];
	text(run, "name", name);
	text(run, "operator", operator);
	if (name[0])
		(void)fprintf(out, "The run:      %s%s%s\n", name, operator[0] ? ", run by " : "", operator);
}

/* The reason of a pause is in the status's text. */
static void print_until(const json_t *allowed, FILE *out) {
	char at[64];
	const time_t until = (time_t)number(allowed, "until");
	struct tm local;
	if (until > 0 && localtime_r(&until, &local) && strftime(at, sizeof at, "%a %H:%M", &local) > 0)
		(void)fprintf(out, "Until:        %s\n", at);
}

static void print_last_round(const json_t *last, FILE *out) {
	char why[TEXT_BYTES];
	if (!json_is_object(last))
		return;
	const json_int_t number_of = json_integer_value(part(last, "round")) + 1;
	if (json_is_true(part(last, "counted")))
		(void)fprintf(out, "Last round:   round %" JSON_INTEGER_FORMAT " counted this computer\n", number_of);
	else
		(void)fprintf(out, "Last round:   round %" JSON_INTEGER_FORMAT " did not count this computer: %s\n", number_of,
					  text(last, "why_not", why));
}

static void print_given(const json_t *given, FILE *out) {
	const double rounds = number(given, "rounds");
	(void)fprintf(out, "Given so far: %.0f round%s, %s tokens", rounds, rounds == 1 ? "" : "s",
				  brief(number(given, "tokens")).at);
	if (json_is_number(part(given, "share")))
		(void)fprintf(out, ", %.3g %% of the run", 100 * number(given, "share"));
	(void)fputc('\n', out);
}

static void print_progress(const json_t *status, FILE *out) {
	const json_t *p = part(status, "progress");
	char device[TEXT_BYTES];
	if (!p)
		return;
	const double rounds = number(part(status, "run"), "rounds"), round = number(p, "round") + 1;
	(void)fprintf(out, "Progress:     round %.0f of %.0f, step %.0f of %.0f", round < rounds ? round : rounds, rounds,
				  number(p, "step"), number(p, "steps_per_round"));
	if (json_is_number(part(p, "eta_s"))) {
		(void)fputs(", ends in ", out);
		print_span(number(p, "eta_s"), out);
	}
	(void)fprintf(out, "\nComputes on:  %s", text(p, "device", device));
	if (number(p, "tokens_per_s") > 0)
		(void)fprintf(out, ", %s tokens/s", brief(number(p, "tokens_per_s")).at);
	(void)fputc('\n', out);
}

static void print_line(const json_t *line, FILE *out) {
	if (!line)
		return;
	(void)fprintf(out, "Line:         %sB sent, %sB received since the start", brief(number(line, "sent_bytes")).at,
				  brief(number(line, "received_bytes")).at);
	const double up = number(line, "up_bytes_per_s"), down = number(line, "down_bytes_per_s");
	if (up > 0)
		(void)fprintf(out, "; it carries %sbit/s up", brief(8 * up).at);
	if (down > 0)
		(void)fprintf(out, "%s %sbit/s down", up > 0 ? "," : "; it carries", brief(8 * down).at);
	(void)fputc('\n', out);
}

static void print_most(const json_t *bytes, const char *key, FILE *out) {
	if (number(bytes, key) > 0)
		(void)fprintf(out, " of %sB", brief(number(bytes, key)).at);
}

static void print_bytes(const json_t *allowed, FILE *out) {
	if (!allowed)
		return;
	(void)fprintf(out, "Used:         %sB", brief(number(allowed, "bytes_today")).at);
	print_most(allowed, "max_per_day", out);
	(void)fprintf(out, " today, %sB", brief(number(allowed, "bytes_this_month")).at);
	print_most(allowed, "max_per_month", out);
	(void)fputs(" this month\n", out);
}

void status_text_print(const json_t *status, FILE *out) {
	char now[TEXT_BYTES], waits[TEXT_BYTES], trouble[TEXT_BYTES];
	(void)fprintf(out, "Now:          %s%s%s\n", text(status, "text", now),
				  text(status, "waits_for", waits)[0] ? " " : "", waits);
	print_until(part(status, "allowed"), out);
	if (text(status, "trouble", trouble)[0])
		(void)fprintf(out, "Trouble:      %s\n", trouble);
	print_run(part(status, "run"), out);
	print_last_round(part(status, "last_round"), out);
	print_given(part(status, "given"), out);
	print_progress(status, out);
	print_line(part(status, "line"), out);
	print_bytes(part(status, "allowed"), out);
}
