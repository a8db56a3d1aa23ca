/* run_files.c: see run_files.h. */
#include "lab/run_files.h"

#include "base/assert.h"
#include "worker/train/initial_weights.h"
#include "worker/train/run_tokenizer.h"

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

enum rv_err run_files_adopt(const struct run_files *f, struct run_config *c, struct rv_errtext *et) {
	struct run_config usual;
	struct tokenizer *t = NULL;
	run_config_defaults(&usual);
	if (f->init[0])
		RV_TRY(initial_weights_adopt(f->init, c, et));
	bool vocab_given = f->init[0] || c->vocab != usual.vocab;
	enum rv_err e = run_tokenizer_adopt(c, vocab_given, f->tokenizer, &t, et);
	tokenizer_free(t);
	return e;
}
