/* weights_tokenizer.c: see weights_tokenizer.h. */
#include "lab/model/weights_tokenizer.h"

#include "train/files/hf_tokenizer.h"
#include "train/files/weights_set.h"
#include "train/text/run_tokenizer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum rv_err open_fitting(const char *path, const struct run_config *c, struct tokenizer **out,
								struct rv_errtext *et) {
	RV_TRY(tokenizer_open(path, "auto", out, et));
	enum rv_err e = run_tokenizer_check_file(c, path, *out, et);
	if (e != RV_OK) {
		tokenizer_free(*out);
		*out = NULL;
	}
	return e;
}

static enum rv_err directory_of(const char *where, char out[static PATH_MAX], struct rv_errtext *et) {
	struct stat st;
	const char *slash = strrchr(where, '/');
	int n;
	if (stat(where, &st) == 0 && S_ISDIR(st.st_mode))
		n = snprintf(out, PATH_MAX, "%s", where);
	else if (slash)
		n = snprintf(out, PATH_MAX, "%.*s", slash == where ? 1 : (int)(slash - where), where);
	else
		n = snprintf(out, PATH_MAX, ".");
	return n < PATH_MAX ? RV_OK
						: rv_fail(et, RV_E_RANGE, "%.100s...: path is longer than %d bytes", where, PATH_MAX - 1);
}

/* Opens the first file beside the weights that made the tokens. path "": there is none. Fails only
 * after all were tried: an export of an earlier run may lie there too. */
static enum rv_err open_beside(const char *where, const struct run_config *c, char path[static PATH_MAX],
							   struct tokenizer **out, struct rv_errtext *et) {
	static const char *const names[] = {HF_TOKENIZER_FILE, HF_RANKS_FILE};
	char dir[PATH_MAX];
	enum rv_err e = RV_OK;
	*out = NULL;
	RV_TRY(directory_of(where, dir, et));
	for (size_t i = 0; i < sizeof names / sizeof names[0] && !*out; i++) {
		RV_TRY(weights_path(dir, names[i], path, et));
		if (access(path, F_OK) == 0)
			e = open_fitting(path, c, out, et);
	}
	if (*out)
		return RV_OK;
	path[0] = '\0';
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "%s: use --tokenizer FILE for another", where);
}

/* Returns true if `t` is the tokenizer.json of a run on bytes; the bytes themselves are equivalent,
 * and faster. */
static bool stands_for_bytes(const struct tokenizer *t) {
	struct tokenizer *of_bytes = NULL;
	char *text = hf_tokenizer_of_bytes();
	bool same = text &&
				tokenizer_load("bytes", (const uint8_t *)text, strlen(text), "auto", &of_bytes, NULL) == RV_OK &&
				rv_hash_equal(tokenizer_hash(of_bytes), tokenizer_hash(t));
	tokenizer_free(of_bytes);
	free(text);
	return same;
}

static enum rv_err open_bytes(const char *where, const struct run_config *c, struct tokenizer **out,
							  struct rv_errtext *et) {
	if (c->tokenizer_hash[0])
		return rv_fail(et, RV_E_INVALID,
					   "%s: the run's tokenizer is not beside the weights: use --tokenizer FILE (its hash is %.64s)",
					   where, c->tokenizer_hash);
	return tokenizer_open("bytes", "auto", out, et);
}

enum rv_err weights_tokenizer_beside(const char *where, const struct run_config *c, char path[static PATH_MAX],
									 struct tokenizer **out, struct rv_errtext *et) {
	RV_TRY(open_beside(where, c, path, out, et));
	if (*out && hf_tokenizer_is_of_bytes(c) && stands_for_bytes(*out)) {
		tokenizer_free(*out);
		*out = NULL;
		path[0] = '\0';
	}
	return RV_OK;
}

enum rv_err weights_tokenizer_open(const char *where, const char *given, const struct run_config *c,
								   char path[static PATH_MAX], struct tokenizer **out, struct rv_errtext *et) {
	*out = NULL;
	path[0] = '\0';
	if (strcmp(given, "bytes") == 0)
		return open_bytes(where, c, out, et);
	if (given[0]) {
		if (snprintf(path, PATH_MAX, "%s", given) >= PATH_MAX)
			return rv_fail(et, RV_E_RANGE, "--tokenizer %.100s...: longer than a path may be", given);
		return open_fitting(path, c, out, et);
	}
	RV_TRY(weights_tokenizer_beside(where, c, path, out, et));
	if (*out)
		return RV_OK;
	if (!c->tokenizer_hash[0] && !hf_tokenizer_is_of_bytes(c))
		return rv_fail(et, RV_E_INVALID,
					   "%s: a vocabulary of %" PRId64 " tokens, and no %s beside it for them: use --tokenizer FILE",
					   where, c->vocab, HF_TOKENIZER_FILE);
	return open_bytes(where, c, out, et);
}
