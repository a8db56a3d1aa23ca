/* own_text.c: a text that a person brings to a run that has one: the same, or, where the operator
 * allows it, another, which everybody sees. */
#include "worker/session/internal.h"

#include "base/hex.h"
#include "train/text/published/manifest.h"

#include <string.h>

enum { SHOWN_DIGITS = 16 };

/* Returns true if `path` is a copy of the published text with this data-hash. */
static bool is_copy(const char *path, const char *data_hash) {
	struct manifest m;
	struct rv_hash is, expected;
	return manifest_recognise(path) && manifest_read(path, &m, NULL) == RV_OK &&
		   manifest_hash(&m, &is, NULL) == RV_OK && rv_hex_decode(data_hash, expected.b, sizeof expected.b) &&
		   rv_hash_equal(&is, &expected);
}

static bool brings_another(const struct session *s, const struct run_config *run) {
	return run->data_hash[0] && s->data_path[0] && s->member.data[0] && !is_copy(s->data_path, run->data_hash);
}

bool session_has_runs_text(const struct session *s, const struct run_config *run) {
	return run->data_hash[0] && s->data_path[0] && !brings_another(s, run);
}

enum rv_err session_check_own_text(const struct session *s, const struct run_config *run, struct rv_errtext *et) {
	if (!brings_another(s, run) || run->data == RUN_DATA_OWN)
		return RV_OK;
	return rv_fail(
		et, RV_E_INVALID,
		"--data %.300s: the run trains on a text of its own (data-hash = %.*s...), and this is another: leave "
		"--data out, and it is fetched; remove `data` from %s/member.conf if an earlier start gave it",
		s->member.data, SHOWN_DIGITS, run->data_hash, s->opt->dir);
}

void session_note_own_text(struct session *s) {
	const struct run_config *run = &s->member.config;
	s->own_text = (struct rv_hash){{0}};
	if (!brings_another(s, run))
		return;
	s->own_text = rv_hash_of(s->content.text, strlen(s->content.text));
	rv_event(s->events, RV_WARN, "own_text", RV_FIELDS(rv_field_str("data", s->member.data)),
			 "training on %s, not on the run's text; the operator allows that, and all members see it", s->member.data);
}
