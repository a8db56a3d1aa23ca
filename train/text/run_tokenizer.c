/* run_tokenizer.c: compares hashes and words the refusals. */
#include "train/text/run_tokenizer.h"

#include "base/hex.h"

#include <inttypes.h>
#include <string.h>

enum { HEX_BYTES = 2 * RV_HASH_BYTES + 1, SHOWN_DIGITS = 16 };

static bool means_bytes(const char *option) {
	return option[0] == '\0' || strcmp(option, "bytes") == 0;
}

static void hash_hex(const struct tokenizer *t, char hex[static HEX_BYTES]) {
	rv_hex_encode(tokenizer_hash(t)->b, RV_HASH_BYTES, hex);
}

static enum rv_err check_vocab(const struct tokenizer *t, const char *file, int64_t vocab, struct rv_errtext *et) {
	if (tokenizer_vocab(t) > vocab)
		return rv_fail(et, RV_E_RANGE,
					   "tokenizer %s: it has %u tokens, but the model's vocab is %" PRId64 ": set vocab to at least %u",
					   file, tokenizer_vocab(t), vocab, tokenizer_vocab(t));
	return RV_OK;
}

enum rv_err run_tokenizer_check(const char *run_hash, const struct tokenizer *t, const char *path,
								struct rv_errtext *et) {
	char hex[HEX_BYTES] = "";
	if (t)
		hash_hex(t, hex);
	if (strcmp(hex, run_hash) == 0)
		return RV_OK;
	if (!t)
		return rv_fail(et, RV_E_INVALID,
					   "training data %s: this is text, but the tokenizer %.*s... makes the run's tokens: give "
					   "its file with --tokenizer FILE, or token files made with it",
					   path, SHOWN_DIGITS, run_hash);
	if (run_hash[0] == '\0')
		return rv_fail(
			et, RV_E_INVALID,
			"training data %s: the run trains on the bytes of text and has no tokenizer; leave out --tokenizer", path);
	return rv_fail(et, RV_E_INVALID,
				   "training data %s: the tokenizer %.*s... makes the run's tokens, not the given one, %.*s...", path,
				   SHOWN_DIGITS, run_hash, SHOWN_DIGITS, hex);
}

enum rv_err run_tokenizer_check_file(const struct run_config *run, const char *file, const struct tokenizer *t,
									 struct rv_errtext *et) {
	char hex[HEX_BYTES];
	hash_hex(t, hex);
	if (run->tokenizer_hash[0] != '\0' && strcmp(hex, run->tokenizer_hash) != 0)
		return rv_fail(et, RV_E_INVALID,
					   "tokenizer %s: the run expects the file with hash %.*s..., this one is %.*s...; ask the run's "
					   "operator for its tokenizer file",
					   file, SHOWN_DIGITS, run->tokenizer_hash, SHOWN_DIGITS, hex);
	return check_vocab(t, file, run->vocab, et);
}

/* Opens a file, and frees it if it is not the run's tokenizer. */
static enum rv_err open_checked(const struct run_config *run, const char *file, struct tokenizer **out,
								struct rv_errtext *et) {
	RV_TRY(tokenizer_open(file, "auto", out, et));
	enum rv_err e = run_tokenizer_check_file(run, file, *out, et);
	if (e != RV_OK) {
		tokenizer_free(*out);
		*out = NULL;
	}
	return e;
}

enum rv_err run_tokenizer_open(const struct run_config *run, const char *option, struct tokenizer **out,
							   struct rv_errtext *et) {
	*out = NULL;
	bool run_has_one = run->tokenizer_hash[0] != '\0';
	if (means_bytes(option)) {
		if (run_has_one && option[0] != '\0')
			return rv_fail(et, RV_E_INVALID,
						   "tokenizer = bytes: the run expects the tokenizer file with hash %.*s...: give that file",
						   SHOWN_DIGITS, run->tokenizer_hash);
		return RV_OK;
	}
	if (!run_has_one)
		return rv_fail(et, RV_E_INVALID,
					   "tokenizer %s: the run trains on the bytes of text and has no tokenizer; leave out --tokenizer",
					   option);
	return open_checked(run, option, out, et);
}

enum rv_err run_tokenizer_adopt(struct run_config *run, bool vocab_given, const char *option, struct tokenizer **out,
								struct rv_errtext *et) {
	struct run_config made = *run;
	if (means_bytes(option) || run->tokenizer_hash[0] != '\0')
		return run_tokenizer_open(run, option, out, et);
	RV_TRY(tokenizer_open(option, "auto", out, et));
	_Static_assert(sizeof made.tokenizer_hash == HEX_BYTES, "a hash in hex");
	hash_hex(*out, made.tokenizer_hash);
	if (!vocab_given)
		made.vocab = tokenizer_vocab(*out);
	enum rv_err e = check_vocab(*out, option, made.vocab, et);
	if (e == RV_OK) {
		*run = made;
		return RV_OK;
	}
	tokenizer_free(*out);
	*out = NULL;
	return e;
}
