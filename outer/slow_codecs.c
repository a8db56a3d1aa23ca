/* slow_codecs.c: see slow_codecs.h. */
#include "outer/slow_codecs.h"

#include "base/assert.h"

/* Adds a codec behind those that are finer. */
static void insert(struct slow_codecs *s, const struct codec *codec) {
	int at = s->n++;
	RV_ASSERT(s->n <= SLOW_LINES_STEPS);
	for (; at > 0 && codec_is_coarser(s->step[at - 1], codec); at--)
		s->step[at] = s->step[at - 1];
	s->step[at] = codec;
}

struct slow_codecs slow_codecs_of(const struct run_config *run) {
	const struct codec *sent = codec_registry[run->codec];
	struct slow_codecs s = {.n = 0};
	if (run->slow_members != SLOW_COARSER)
		return s;
	for (int i = 0; codec_registry[i]; i++) {
		const bool chosen = run->slow_codec == 1 + i, sparse = codec_facts[i].facts & CODEC_SPARSE;
		const bool usual = run->slow_codec == MEAN_CODEC_auto && (!sparse || run->error_feedback > 0);
		if ((chosen || usual) && codec_is_coarser(codec_registry[i], sent))
			insert(&s, codec_registry[i]);
	}
	return s;
}

enum rv_err slow_codecs_check(const struct run_config *run, struct rv_errtext *et) {
	const char *name = codec_facts[run->codec].name;
	if (run->slow_members != SLOW_COARSER || slow_codecs_of(run).n > 0)
		return RV_OK;
	if (run->slow_codec != MEAN_CODEC_auto)
		return rv_fail(
			et, RV_E_INVALID,
			"slow-members = coarser: slow-codec = %s is not coarser than codec = %s; choose a coarser one, or "
			"slow-codec = auto",
			codec_facts[run->slow_codec - 1].name, name);
	struct run_config with = *run;
	with.error_feedback = 1;
	if (slow_codecs_of(&with).n > 0)
		return rv_fail(
			et, RV_E_INVALID,
			"slow-members = coarser with codec = %s: what is coarser sends a few of the values, and the rest is "
			"lost without error-feedback; set error-feedback = 0.95, name one with slow-codec = topk64, or "
			"slow-members = skip or part",
			name);
	return rv_fail(et, RV_E_INVALID,
				   "slow-members = coarser: no codec is coarser than codec = %s; use slow-members = skip or part, or a "
				   "finer codec",
				   name);
}
