/* pretokenizer.c: compiles patterns once and matches them from one end of the text to the other. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "train/text/tokenizer/pretokenizer.h"

#include "train/text/tokenizer/buffers.h"
#include "train/text/tokenizer/stand_ins.h"
#include "train/text/tokenizer/utf8.h"

#include <pcre2.h>
#include <stdlib.h>

enum {
	JIT_STACK_START_BYTES = 64 << 10,
	JIT_STACK_MAX_BYTES = 4 << 20,
	HEAP_LIMIT_KIB = 64 << 10, /* limit of the interpreter, used without JIT */
	MATCH_STEPS_LEAST = 100000,
	MATCH_STEPS_PER_BYTE = 16,
};

struct pretokenizer_scratch {
	pcre2_match_data *match;
	pcre2_match_context *context;
	pcre2_jit_stack *stack;
	struct byte_list settled; /* the text with stand-ins */
};

static enum rv_err compile(const char *pattern, size_t n, bool literal, pcre2_code **out, struct rv_errtext *et) {
	int code;
	PCRE2_SIZE where;
	uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;
	if (literal)
		options = PCRE2_UTF | PCRE2_LITERAL;
	*out = pcre2_compile((PCRE2_SPTR)pattern, n, options, &code, &where, NULL);
	if (!*out) {
		PCRE2_UCHAR text[160] = {0};
		pcre2_get_error_message(code, text, sizeof text);
		return rv_fail(et, RV_E_INVALID, "the pattern \"%.100s\": %s, at byte %zu", pattern, (const char *)text, where);
	}
	(void)pcre2_jit_compile(*out, PCRE2_JIT_COMPLETE); /* without JIT the interpreter gives the same matches */
	return RV_OK;
}

/* Refuses a pattern that names an unsettled character, which matching would never find. */
static enum rv_err check_settled(const char *pattern, size_t n, struct rv_errtext *et) {
	size_t at = stand_ins_find((const uint8_t *)pattern, utf8_valid_prefix((const uint8_t *)pattern, n));
	if (at >= utf8_valid_prefix((const uint8_t *)pattern, n))
		return RV_OK;
	return rv_fail(et, RV_E_UNSUPPORTED,
				   "the pattern \"%.100s\": names, at byte %zu, a character that Unicode 14 and 16 class differently",
				   pattern, at);
}

enum rv_err pretokenizer_add(struct pretokenizer *p, const char *pattern, size_t n, bool literal,
							 struct rv_errtext *et) {
	if (p->n_steps == PRETOKENIZER_MAX_STEPS)
		return rv_fail(et, RV_E_RANGE, "more than %d pre-tokenizers in a row", PRETOKENIZER_MAX_STEPS);
	if (n == 0 || n > PRETOKENIZER_MAX_PATTERN_BYTES)
		return rv_fail(et, RV_E_RANGE, "a pre-tokenizer's pattern of %zu bytes: must have 1 to %d", n,
					   PRETOKENIZER_MAX_PATTERN_BYTES);
	RV_TRY(check_settled(pattern, n, et));
	RV_TRY(compile(pattern, n, literal, &p->steps[p->n_steps], et));
	p->n_steps++;
	return RV_OK;
}

void pretokenizer_release(struct pretokenizer *p) {
	for (int i = 0; i < p->n_steps; i++)
		pcre2_code_free(p->steps[i]);
	*p = (struct pretokenizer){0};
}

enum rv_err pretokenizer_scratch_new(struct pretokenizer_scratch **out, struct rv_errtext *et) {
	struct pretokenizer_scratch *s = calloc(1, sizeof *s);
	*out = s;
	if (s) {
		s->match = pcre2_match_data_create(1, NULL);
		s->context = pcre2_match_context_create(NULL);
		s->stack = pcre2_jit_stack_create(JIT_STACK_START_BYTES, JIT_STACK_MAX_BYTES, NULL);
	}
	if (!s || !s->match || !s->context) {
		pretokenizer_scratch_free(s);
		*out = NULL;
		return rv_fail(et, RV_E_NOMEM, "no memory to match patterns");
	}
	pcre2_set_heap_limit(s->context, HEAP_LIMIT_KIB);
	pcre2_jit_stack_assign(s->context, NULL, s->stack);
	return RV_OK;
}

void pretokenizer_scratch_free(struct pretokenizer_scratch *s) {
	if (!s)
		return;
	pcre2_match_data_free(s->match);
	pcre2_match_context_free(s->context);
	pcre2_jit_stack_free(s->stack);
	byte_list_release(&s->settled);
	free(s);
}

/* One pass through the steps; a piece of step i is the text of step i + 1. */
struct walk {
	const struct pretokenizer *p;
	struct pretokenizer_scratch *s;
	const uint8_t *given, *matched; /* the text, and the text with stand-ins */
	piece_fn *piece;
	void *ctx;
};

static enum rv_err match_fault(int rc, size_t n, struct rv_errtext *et) {
	PCRE2_UCHAR text[160] = {0};
	pcre2_get_error_message(rc, text, sizeof text);
	enum rv_err e = rc == PCRE2_ERROR_NOMEMORY ? RV_E_NOMEM : RV_E_RANGE;
	return rv_fail(et, e, "the pre-tokenizer's pattern on %zu bytes of text: %s", n, (const char *)text);
}

/* Finds the next nonempty match in text[at, n); *begin == n if there is none. */
static enum rv_err next_match(const struct walk *w, const pcre2_code *code, const uint8_t *text, size_t n, size_t at,
							  size_t *begin, size_t *end, struct rv_errtext *et) {
	*begin = *end = n;
	int rc = pcre2_match(code, text, n, at, PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, w->s->match, w->s->context);
	if (rc == PCRE2_ERROR_NOMATCH)
		return RV_OK;
	if (rc < 0)
		return match_fault(rc, n, et);
	const PCRE2_SIZE *found = pcre2_get_ovector_pointer(w->s->match);
	if (found[0] < at || found[1] <= found[0] || found[1] > n)
		return rv_fail(et, RV_E_INVALID, "the pre-tokenizer's pattern matches bytes %zu to %zu after %zu", found[0],
					   found[1], at);
	*begin = found[0];
	*end = found[1];
	return RV_OK;
}

static enum rv_err walk_step(const struct walk *w, int step, const uint8_t *text, size_t n, struct rv_errtext *et);

static enum rv_err give(const struct walk *w, int step, const uint8_t *text, size_t n, struct rv_errtext *et) {
	if (n == 0)
		return RV_OK;
	return step == w->p->n_steps ? w->piece(w->ctx, w->given + (text - w->matched), n, et)
								 : walk_step(w, step, text, n, et);
}

static void limit_steps(const struct walk *w, size_t n) {
	size_t steps = MATCH_STEPS_LEAST + MATCH_STEPS_PER_BYTE * n;
	pcre2_set_match_limit(w->s->context, steps < UINT32_MAX ? (uint32_t)steps : UINT32_MAX);
}

static enum rv_err walk_step(const struct walk *w, int step, const uint8_t *text, size_t n, struct rv_errtext *et) {
	const pcre2_code *code = w->p->steps[step];
	for (size_t at = 0; at < n;) {
		size_t begin, end;
		limit_steps(w, n);
		RV_TRY(next_match(w, code, text, n, at, &begin, &end, et));
		RV_TRY(give(w, step + 1, text + at, begin - at, et));
		RV_TRY(give(w, step + 1, text + begin, end - begin, et));
		at = end;
	}
	return RV_OK;
}

enum rv_err pretokenizer_run(const struct pretokenizer *p, struct pretokenizer_scratch *s, const uint8_t *text,
							 size_t n, piece_fn *piece, void *ctx, struct rv_errtext *et) {
	struct walk w = {.p = p, .s = s, .given = text, .matched = text, .piece = piece, .ctx = ctx};
	if (p->n_steps > 0 && stand_ins_find(text, n) < n) {
		s->settled.n = 0;
		RV_TRY(byte_list_append(&s->settled, text, n, et));
		stand_ins_put(s->settled.bytes, n);
		w.matched = s->settled.bytes;
	}
	return give(&w, 0, w.matched, n, et);
}
