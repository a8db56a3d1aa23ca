/* run_about.c: see run_about.h. */
#include "base/run_about.h"

#include "base/assert.h"
#include "base/clean_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX          "#: "
#define TEXT_MOST_BYTES (UINT64_C(1) << 60)

#define FIELD(f) offsetof(struct run_about, f)
#define TEXT_OPT(name, f, help)                                                                                        \
	{ name, RV_OPT_STRING, FIELD(f), sizeof(((struct run_about *)0)->f), "", 0, 0, NULL, help, "About the run" }

const struct rv_option run_about_options[] = {
	TEXT_OPT("run-name", name, "What the run is called. People read this and the texts below before they join."),
	TEXT_OPT("purpose", purpose, "What the model is trained for, in a sentence or two."),
	TEXT_OPT("operator", operator_name, "Who runs it, and how to reach them."),
	TEXT_OPT("text-license", text_license,
			 "License of the training text; empty: --license, or the one that published text states."),
	TEXT_OPT("text-hosts", text_hosts,
			 "Hosts from which workers may fetch the text, beside the coordinator and each other, as a.example, "
			 "b.example; empty: those of its mirrors. People read it before they join, and agree to no other host."),
	TEXT_OPT("model-license", model_license, "License under which the trained model will be given away."),
	TEXT_OPT("model-at", model_at,
			 "Where the trained model will be given away, such as a URL: computers that want to join after the end are "
			 "sent there. `serve --model-at` states it later, or anew."),
	{.name = NULL},
};

enum { TEXTS = sizeof run_about_options / sizeof run_about_options[0] - 1, TEXT_MOST = 641 };

static char *text_of(struct run_about *a, const struct rv_option *o) {
	return (char *)a + o->offset;
}

static const char *const_text_of(const struct run_about *a, const struct rv_option *o) {
	return (const char *)a + o->offset;
}

static bool is_plain(const char *text) {
	char clean[TEXT_MOST];
	const size_t n = strlen(text);
	RV_ASSERT(n < sizeof clean);
	memcpy(clean, text, n + 1);
	clean_text(clean);
	return strcmp(text, clean) == 0 && text[0] != '#' && !strstr(text, " #") && text[0] != ' ' &&
		   (n == 0 || text[n - 1] != ' ');
}

enum rv_err run_about_check(const struct run_about *a, struct rv_errtext *et) {
	for (int i = 0; i < TEXTS; i++)
		if (!is_plain(const_text_of(a, &run_about_options[i])))
			return rv_fail(et, RV_E_INVALID,
						   "%s: must be one line of text, without control characters, a blank at its ends, or a '#' "
						   "behind a blank",
						   run_about_options[i].name);
	return RV_OK;
}

void run_about_print(const struct run_about *a, char out[RUN_ABOUT_BYTES]) {
	size_t n = 0;
	out[0] = '\0';
	for (int i = 0; i < TEXTS; i++) {
		const char *text = const_text_of(a, &run_about_options[i]);
		if (text[0])
			n += (size_t)snprintf(out + n, RUN_ABOUT_BYTES - n, PREFIX "%s = %s\n", run_about_options[i].name, text);
		RV_ASSERT(n < RUN_ABOUT_BYTES);
	}
	if (a->round_s > 0)
		n += (size_t)snprintf(out + n, RUN_ABOUT_BYTES - n, PREFIX "round-seconds = %.3g\n", a->round_s);
	if (a->text_bytes > 0)
		n += (size_t)snprintf(out + n, RUN_ABOUT_BYTES - n, PREFIX "text-bytes = %" PRIu64 "\n", a->text_bytes);
	if (a->text_least_bytes > 0)
		n += (size_t)snprintf(out + n, RUN_ABOUT_BYTES - n, PREFIX "text-least-bytes = %" PRIu64 "\n",
							  a->text_least_bytes);
	RV_ASSERT(n < RUN_ABOUT_BYTES);
}

/* Returns 0 for what is no size of a text. */
static uint64_t read_size(const char *value) {
	char *end;
	const unsigned long long v = strtoull(value, &end, 10);
	return end != value && *end == '\0' && value[0] != '-' && v <= TEXT_MOST_BYTES ? v : 0;
}

/* Takes "name = value", n bytes. */
static void take(struct run_about *out, const char *line, size_t n) {
	static const char sign[] = " = ";
	char text[RUN_ABOUT_BYTES];
	if (n >= sizeof text)
		return;
	memcpy(text, line, n);
	text[n] = '\0';
	char *value = strstr(text, sign);
	if (!value)
		return;
	*value = '\0';
	value += sizeof sign - 1;
	clean_text(value);
	if (strcmp(text, "round-seconds") == 0) {
		const double s = strtod(value, NULL);
		out->round_s = s > 0 && s < 1e9 ? s : 0;
	}
	if (strcmp(text, "text-bytes") == 0)
		out->text_bytes = read_size(value);
	if (strcmp(text, "text-least-bytes") == 0)
		out->text_least_bytes = read_size(value);
	for (int i = 0; i < TEXTS; i++)
		if (strcmp(text, run_about_options[i].name) == 0)
			(void)snprintf(text_of(out, &run_about_options[i]), run_about_options[i].cap, "%s", value);
}

void run_about_read(const char *text, struct run_about *out) {
	const size_t n_prefix = sizeof PREFIX - 1;
	*out = (struct run_about){.round_s = 0};
	while (strncmp(text, PREFIX, n_prefix) == 0) {
		const size_t n = strcspn(text, "\n");
		take(out, text + n_prefix, n - n_prefix);
		text += n + (text[n] == '\n');
	}
}

void run_about_where(const struct run_about *a, char out[RUN_ABOUT_MODEL_BYTES]) {
	if (a->model_at[0])
		(void)snprintf(out, RUN_ABOUT_MODEL_BYTES, "Its weights: %s", a->model_at);
	else if (a->operator_name[0])
		(void)snprintf(out, RUN_ABOUT_MODEL_BYTES, "For its weights ask the run's operator: %s", a->operator_name);
	else
		(void)snprintf(out, RUN_ABOUT_MODEL_BYTES, "For its weights ask the run's operator, who gave you the link");
}

const char *run_about_skip(const char *text) {
	while (strncmp(text, PREFIX, strlen(PREFIX)) == 0) {
		const char *end = strchr(text, '\n');
		if (end == NULL)
			return text + strlen(text);
		text = end + 1;
	}
	return text;
}
