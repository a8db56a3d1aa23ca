/* run_files.c: see run_files.h. */
#include "lab/run_files.h"

#include "base/assert.h"
#include "base/option_value.h"
#include "worker/train/initial_weights.h"
#include "worker/train/run_tokenizer.h"

#include <string.h>

void run_config_table(const struct rv_option *own, struct rv_option *table, int cap) {
	const struct rv_option *const parts[] = {own, run_config_options};
	int n = 0;
	for (int i = 0; i < 2; i++)
		for (const struct rv_option *o = parts[i]; o->name; o++) {
			RV_ASSERT(n + 1 < cap);
			table[n++] = *o;
		}
	table[n] = (struct rv_option){.name = NULL};
}

static bool same_value(const struct rv_option *o, const struct run_config *a, const struct run_config *b) {
	char x[RV_OPTION_TEXT_BYTES], y[RV_OPTION_TEXT_BYTES];
	rv_option_value_print(o, a, x);
	rv_option_value_print(o, b, y);
	return strcmp(x, y) == 0;
}

/* What was asked for of the model, and is not what the weights are. */
static enum rv_err check_asked(const char *init, const struct run_config *asked, const struct run_config *is,
							   struct rv_errtext *et) {
	struct run_config usual;
	run_config_defaults(&usual);
	for (const struct rv_option *o = run_config_options; o->name; o++) {
		char want[RV_OPTION_TEXT_BYTES], have[RV_OPTION_TEXT_BYTES];
		if (strcmp(o->group, "Model") != 0 || same_value(o, asked, &usual) || same_value(o, asked, is))
			continue;
		rv_option_value_print(o, asked, want);
		rv_option_value_print(o, is, have);
		return rv_fail(et, RV_E_INVALID, "--%s %s: the weights in %s have %s; leave it out, they say what the model is",
					   o->name, want, init, have);
	}
	return RV_OK;
}

enum rv_err run_files_adopt(const struct run_files *f, struct run_config *c, struct rv_errtext *et) {
	const struct run_config asked = *c;
	struct run_config usual;
	struct tokenizer *t = NULL;
	run_config_defaults(&usual);
	if (f->init[0]) {
		RV_TRY(initial_weights_adopt(f->init, c, et));
		RV_TRY(check_asked(f->init, &asked, c, et));
	}
	bool vocab_given = f->init[0] || c->vocab != usual.vocab;
	enum rv_err e = run_tokenizer_adopt(c, vocab_given, f->tokenizer, &t, et);
	tokenizer_free(t);
	return e;
}
