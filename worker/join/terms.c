/* terms.c: see terms.h. */
#include "worker/join/terms.h"

#include "base/file.h"
#include "base/hex.h"
#include "base/short_number.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MOST_BYTES = 4096, SECRET_MODE = 0600 };

/* ---- the text ---- */

struct text {
	char *at;
	size_t n;
};

static void add(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct text *t, const char *format, ...) {
	va_list args;
	va_start(args, format);
	int n = vsnprintf(t->at + t->n, TERMS_BYTES - t->n, format, args);
	va_end(args);
	t->n += (size_t)n < TERMS_BYTES - t->n ? (size_t)n : TERMS_BYTES - 1 - t->n;
}

struct brief {
	char at[RV_SHORT_NUMBER_BYTES];
};

static struct brief brief(uint64_t v) {
	struct brief b;
	(void)rv_short_number((double)v, b.at);
	return b;
}

static const char *stated(const char *text) {
	return text[0] ? text : "not stated by the operator";
}

static void add_run(struct text *t, const struct run_about *a, const struct terms_needs *n) {
	add(t, "This run\n");
	add(t, "  name:       %s\n", stated(a->name));
	add(t, "  purpose:    %s\n", stated(a->purpose));
	add(t, "  operator:   %s; coordinator %s\n", stated(a->operator_name), n->coordinator);
	add(t, "  text:       license: %s\n", stated(a->text_license));
	add(t, "  model:      %s parameters; license of the result: %s\n", brief(n->parameters).at,
		stated(a->model_license));
	if (a->model_at[0])
		add(t, "              given away at %s\n", a->model_at);
	if (n->text_bytes > 0)
		add(t, "  fetched:    the text comes from the coordinator and other members%s%s\n",
			a->text_hosts[0] ? ", and from " : "", a->text_hosts);
}

static void add_disk(struct text *t, const struct terms_needs *n) {
	add(t, "  disk:       %sB at least", brief(n->state_disk_bytes + n->text_least_bytes).at);
	if (n->text_least_bytes > 0)
		add(t, ", of these %sB of the run's text", brief(n->text_least_bytes).at);
	if (n->text_bytes > n->text_least_bytes)
		add(t, ", and up to %sB of %s (--data-cache)", brief(n->text_bytes).at,
			n->text_least_bytes > 0 ? "that" : "the run's text");
	add(t, "\n");
}

static void add_needs(struct text *t, const struct run_about *a, const struct terms_needs *n) {
	add(t, "On this computer it takes\n");
	add(t, "  computing:  %s, whenever this program runs; %s tokens a round, %" PRIu64 " rounds\n", n->computes,
		brief(n->tokens_per_round).at, n->rounds);
	if (a->round_s > 0)
		add(t, "  time:       a round took %.3g s of late, as the run's members are now\n", a->round_s);
	else
		add(t, "  time:       not known yet: the run has not finished a round\n");
	if (n->memory_bytes > 0)
		add(t, "  memory:     %sB\n", brief(n->memory_bytes).at);
	add_disk(t, n);
	add(t, "  line:       %sB to begin with, then about %sB up and as much down a round", brief(n->state_bytes).at,
		brief(n->round_bytes).at);
	if (a->round_s > 0)
		add(t, " (%sbit/s each way on average)", brief((uint64_t)(8.0 * (double)n->round_bytes / a->round_s)).at);
	add(t, "; --max-up and --max-down limit it\n"
		   "              on top come the text that it reads, what it gives others that lack text or state\n"
		   "              (--max-donate limits that), and audits, if the run has any\n");
}

static void add_privacy(struct text *t, bool shows_moments, bool has_mirrors) {
	add(t,
		"What others learn of you\n"
		"  members:    this computer's IP address, when it takes part, and what its training changes in the model;\n"
		"              from that, parts of a text that you bring yourself might be guessed. None of your files\n"
		"%s"
		"  operator:   the same, and its speed, its line and the name that you give it (--name)\n"
		"  relays:     its IP address and ciphertext, if others cannot reach it directly\n"
		"%s"
		"  more:       docs/privacy.md\n"
		"You can stop at any time with Ctrl-C, pause it (rivulet-worker pause), and limit hours, bytes and more\n"
		"(rivulet-worker set); what it has given stays in the model.\n",
		shows_moments ? "              In this run they may have the moments of its optimizer, too\n" : "",
		has_mirrors ? "  those hosts: its IP address, and which parts of the text it fetches there\n" : "");
}

void terms_text(const struct run_about *about, const struct terms_needs *needs, char out[TERMS_BYTES]) {
	struct text t = {.at = out};
	out[0] = '\0';
	add_run(&t, about, needs);
	add_needs(&t, about, needs);
	add_privacy(&t, needs->shows_moments, needs->text_bytes > 0 && about->text_hosts[0]);
}

struct rv_hash terms_hash(const struct run_about *about, const char *config) {
	struct rv_hasher h = rv_hasher_of("rivulet terms");
	struct run_about stated_only = *about;
	char lines[RUN_ABOUT_BYTES];
	stated_only.round_s = 0;
	stated_only.model_at[0] = '\0'; /* asks nothing of anybody, and may be known only at the end */
	run_about_print(&stated_only, lines);
	rv_hash_update(&h, lines, strlen(lines) + 1);
	rv_hash_update(&h, config, strlen(config));
	return rv_hash_final(&h);
}

/* ---- the file ---- */

static const char SIGN[] = "accepted = ";

static enum rv_err path_in(const char *dir, char out[PATH_MAX], struct rv_errtext *et) {
	if (snprintf(out, PATH_MAX, "%s/terms.conf", dir) < PATH_MAX)
		return RV_OK;
	return rv_fail(et, RV_E_RANGE, "%.100s...: the path is longer than %d bytes", dir, PATH_MAX - 1);
}

bool terms_read(const char *dir, struct run_about *about, struct rv_hash *accepted) {
	char path[PATH_MAX], *text;
	size_t n;
	*about = (struct run_about){.round_s = 0};
	if (path_in(dir, path, NULL) != RV_OK || rv_file_read(path, FILE_MOST_BYTES, (uint8_t **)&text, &n, NULL) != RV_OK)
		return false;
	char *sign = strstr(text, SIGN), *hex = sign ? sign + sizeof SIGN - 1 : text + n;
	hex[strcspn(hex, "\n")] = '\0';
	const bool ok = rv_hex_decode(hex, accepted->b, RV_HASH_BYTES);
	if (ok)
		run_about_read(text, about);
	free(text);
	return ok;
}

enum rv_err terms_write(const char *dir, const struct run_about *about, const struct rv_hash *accepted,
						struct rv_errtext *et) {
	char path[PATH_MAX], hex[2 * RV_HASH_BYTES + 1], text[RUN_ABOUT_BYTES + 128];
	RV_TRY(path_in(dir, path, et));
	run_about_print(about, text);
	rv_hex_encode(accepted->b, RV_HASH_BYTES, hex);
	const size_t n = strlen(text);
	(void)snprintf(text + n, sizeof text - n, "%s%s\n", SIGN, hex);
	return rv_file_write_atomic(path, text, strlen(text), SECRET_MODE, et);
}
