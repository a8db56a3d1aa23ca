/* pattern_space.c: one pass over the pattern that knows escapes, \Q...\E and character classes. */
#include "worker/tokenizer/pattern_space.h"

#include <string.h>

#define SPACE_ITEMS     "\\p{Z}\\t-\\r\\x{85}"
#define NON_SPACE_ITEMS "\\S\\x{180E}"

struct scan {
	const char *at, *end;
	bool in_class;
	struct byte_list *out;
	bool *changed;
	struct rv_errtext *et;
};

static enum rv_err put(struct scan *s, const char *text) {
	return byte_list_append(s->out, text, strlen(text), s->et);
}

static enum rv_err copy(struct scan *s, size_t n) {
	size_t left = (size_t)(s->end - s->at);
	n = n < left ? n : left;
	RV_TRY(byte_list_append(s->out, s->at, n, s->et));
	s->at += n;
	return RV_OK;
}

static enum rv_err put_items(struct scan *s, const char *items) {
	*s->changed = true;
	s->at += 2;
	if (!s->in_class)
		RV_TRY(put(s, "["));
	RV_TRY(put(s, items));
	return s->in_class ? RV_OK : put(s, "]");
}

static enum rv_err escape(struct scan *s) {
	char what = s->end - s->at > 1 ? s->at[1] : '\0';
	if (what == 's')
		return put_items(s, SPACE_ITEMS);
	if (what == 'S')
		return put_items(s, NON_SPACE_ITEMS);
	if (what != 'Q')
		return copy(s, 2);
	const char *stop = memmem(s->at, (size_t)(s->end - s->at), "\\E", 2);
	return copy(s, (size_t)((stop ? stop : s->end) - s->at));
}

/* "[", "[^", and a "]" right after them, which is a member. */
static enum rv_err open_class(struct scan *s) {
	s->in_class = true;
	RV_TRY(copy(s, 1));
	if (s->at < s->end && *s->at == '^')
		RV_TRY(copy(s, 1));
	return s->at < s->end && *s->at == ']' ? copy(s, 1) : RV_OK;
}

/* "[:alpha:]" inside a class; any other "[" there is a member. */
static enum rv_err bracket_in_class(struct scan *s) {
	const char *stop = s->end - s->at > 1 && s->at[1] == ':' ? memmem(s->at, (size_t)(s->end - s->at), ":]", 2) : NULL;
	return copy(s, stop ? (size_t)(stop + 2 - s->at) : 1);
}

enum rv_err pattern_exact_space(const char *pattern, size_t n, struct byte_list *out, bool *changed,
								struct rv_errtext *et) {
	struct scan s = {.at = pattern, .end = pattern + n, .out = out, .changed = changed, .et = et};
	*changed = false;
	while (s.at < s.end) {
		if (*s.at == '\\') {
			RV_TRY(escape(&s));
		} else if (*s.at == '[') {
			RV_TRY(s.in_class ? bracket_in_class(&s) : open_class(&s));
		} else {
			s.in_class = s.in_class && *s.at != ']';
			RV_TRY(copy(&s, 1));
		}
	}
	return RV_OK;
}
