/* run_files.c: see run_files.h. */
#include "lab/run/run_files.h"

#include "base/assert.h"
#include "base/option_value.h"
#include "lab/model/weights_tokenizer.h"
#include "train/files/initial_weights.h"
#include "train/model/model.h"
#include "train/text/run_tokenizer.h"

#include <stdio.h>
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

/* Refuses options of the model that contradict the weights. */
static enum rv_err check_asked(const char *init, const struct run_config *asked, const struct run_config *is,
							   struct rv_errtext *et) {
	struct run_config usual;
	run_config_defaults(&usual);
	for (const struct rv_option *o = run_config_options; o->name; o++) {
		char want[RV_OPTION_TEXT_BYTES], have[RV_OPTION_TEXT_BYTES];
		if (strcmp(o->group, "Model") != 0 || rv_option_value_same(o, asked, &usual) ||
			rv_option_value_same(o, asked, is))
			continue;
		rv_option_value_print(o, asked, want);
		rv_option_value_print(o, is, have);
		return rv_fail(et, RV_E_INVALID, "--%s %s: the weights in %s have %s; leave it out, they determine the model",
					   o->name, want, init, have);
	}
	return RV_OK;
}

static enum rv_err adopt_weights(const struct run_files *f, struct run_config *c, struct rv_errtext *et) {
	const struct run_config asked = *c;
	if (f->init[0]) {
		RV_TRY(initial_weights_adopt(f->init, c, et));
		return check_asked(f->init, &asked, c, et);
	}
	if (c->init_hash[0])
		return rv_fail(et, RV_E_INVALID,
					   "the run starts from the weights with hash %.16s...: give them with --init DIR", c->init_hash);
	return RV_OK;
}

static enum rv_err find_tokenizer(struct run_files *f, const struct run_config *c, struct rv_errtext *et) {
	char beside[PATH_MAX] = "";
	struct tokenizer *t = NULL;
	if (strcmp(f->tokenizer, "auto") != 0)
		return RV_OK;
	if (f->init[0])
		RV_TRY(weights_tokenizer_beside(f->init, c, beside, &t, et));
	tokenizer_free(t);
	if (strlen(beside) >= sizeof f->tokenizer)
		return rv_fail(et, RV_E_RANGE, "%.100s...: the path of a tokenizer has at most %zu bytes", beside,
					   sizeof f->tokenizer - 1);
	snprintf(f->tokenizer, sizeof f->tokenizer, "%s", beside[0] ? beside : c->tokenizer_hash[0] ? "" : "bytes");
	return RV_OK;
}

/* Sets the vocabulary: that of given weights, else the tokenizer's, or a larger one if
 * requested. */
static enum rv_err adopt_tokenizer(const struct run_files *f, struct run_config *c, struct rv_errtext *et) {
	struct run_config usual;
	struct tokenizer *t = NULL;
	const int64_t asked = c->vocab;
	if (!f->tokenizer[0])
		return RV_OK;
	run_config_defaults(&usual);
	enum rv_err e = run_tokenizer_adopt(c, f->init[0] != '\0', f->tokenizer, &t, et);
	tokenizer_free(t);
	if (e == RV_OK && asked != usual.vocab && asked > c->vocab)
		c->vocab = asked;
	return e;
}

enum rv_err run_files_adopt(struct run_files *f, struct run_config *c, struct rv_errtext *et) {
	RV_TRY(adopt_weights(f, c, et));
	RV_TRY(find_tokenizer(f, c, et));
	return adopt_tokenizer(f, c, et);
}
