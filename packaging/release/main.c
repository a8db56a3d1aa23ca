/* main.c: rivulet-release: keys and signatures of releases, in the format of minisign. */
#include "base/file.h"
#include "base/minisign.h"
#include "base/program.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 1 << 26, PATH_BYTES = 1024 };

struct options {
	char key[PATH_BYTES];
	char comment[RV_MINISIGN_COMMENT_BYTES];
};

static const struct rv_option sign_table[] = {
	{"key", RV_OPT_STRING, offsetof(struct options, key), PATH_BYTES, NULL, 1, 0, NULL, "The secret key's file.", NULL},
	{"comment", RV_OPT_STRING, offsetof(struct options, comment), RV_MINISIGN_COMMENT_BYTES, "", 0, 0, NULL,
	 "The trusted comment: `rivulet VERSION`, which `rivulet-worker update --check` reads.", NULL},
	{.name = NULL},
};
static const struct rv_option verify_table[] = {
	{"key", RV_OPT_STRING, offsetof(struct options, key), PATH_BYTES, NULL, 1, 0, NULL,
	 "The public key: its file, or the key itself.", NULL},
	{.name = NULL},
};

static enum rv_err path_of_signature(const char *file, char out[PATH_BYTES], struct rv_errtext *et) {
	const int n = snprintf(out, PATH_BYTES, "%s.minisig", file);
	return n < PATH_BYTES ? RV_OK : rv_fail(et, RV_E_RANGE, "%.200s: the path is too long", file);
}

static enum rv_err write_text(const char *path, const char *text, mode_t mode, struct rv_errtext *et) {
	return rv_file_write_atomic(path, text, strlen(text), mode, et);
}

static enum rv_err new_key(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	struct rv_minisign_secret key;
	char text[RV_MINISIGN_TEXT_BYTES], path[PATH_BYTES];
	(void)opts;
	const int n = snprintf(path, sizeof path, "%s.pub", args->at[0]);
	if (n >= PATH_BYTES)
		return rv_fail(et, RV_E_RANGE, "%.200s: the path is too long", args->at[0]);
	if (access(args->at[0], F_OK) == 0)
		return rv_fail(et, RV_E_INVALID, "%s: is there already; a key is never overwritten", args->at[0]);
	RV_TRY(rv_minisign_new(&key, et));
	rv_minisign_print_secret(&key, text);
	enum rv_err e = write_text(args->at[0], text, 0600, et);
	sodium_memzero(text, sizeof text);
	rv_minisign_print_public(&key.public, text);
	if (e == RV_OK)
		e = write_text(path, text, 0644, et);
	if (e == RV_OK)
		(void)printf("%s", text);
	sodium_memzero(&key, sizeof key);
	return e;
}

static enum rv_err read_secret(const char *path, struct rv_minisign_secret *key, struct rv_errtext *et) {
	uint8_t *text;
	size_t n;
	RV_TRY(rv_file_read(path, RV_MINISIGN_TEXT_BYTES, &text, &n, et));
	enum rv_err e = rv_minisign_read_secret((const char *)text, key, et);
	sodium_memzero(text, n);
	free(text);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "%s", path);
}

static enum rv_err sign(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct options *o = opts;
	struct rv_minisign_secret key;
	char text[RV_MINISIGN_TEXT_BYTES], path[PATH_BYTES];
	uint8_t *data;
	size_t n;
	if (strpbrk(o->comment, "\r\n"))
		return rv_fail(et, RV_E_INVALID, "--comment: must be one line");
	RV_TRY(path_of_signature(args->at[0], path, et));
	RV_TRY(rv_file_read(args->at[0], FILE_BYTES_MAX, &data, &n, et));
	enum rv_err e = read_secret(o->key, &key, et);
	if (e == RV_OK) {
		rv_minisign_sign(&key, data, n, o->comment, text);
		e = write_text(path, text, 0644, et);
	}
	sodium_memzero(&key, sizeof key);
	free(data);
	return e;
}

/* Reads a public key from a file, or from the text itself. */
static enum rv_err read_public(const char *from, struct rv_minisign_public *key, struct rv_errtext *et) {
	uint8_t *text;
	size_t n;
	if (access(from, F_OK) != 0)
		return rv_minisign_read_public(from, key, et);
	RV_TRY(rv_file_read(from, RV_MINISIGN_TEXT_BYTES, &text, &n, et));
	enum rv_err e = rv_minisign_read_public((const char *)text, key, et);
	free(text);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "%s", from);
}

static enum rv_err verify(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct options *o = opts;
	struct rv_minisign_public key;
	char path[PATH_BYTES], comment[RV_MINISIGN_COMMENT_BYTES];
	uint8_t *data, *signature;
	size_t n, n_signature;
	RV_TRY(read_public(o->key, &key, et));
	RV_TRY(path_of_signature(args->at[0], path, et));
	RV_TRY(rv_file_read(path, RV_MINISIGN_TEXT_BYTES, &signature, &n_signature, et));
	enum rv_err e = rv_file_read(args->at[0], FILE_BYTES_MAX, &data, &n, et);
	if (e == RV_OK) {
		e = rv_minisign_verify(&key, data, n, (const char *)signature, comment, et);
		free(data);
	}
	free(signature);
	if (e == RV_OK)
		(void)printf("%s\n", comment);
	return e;
}

int main(int argc, char **argv) {
	static const struct rv_command commands[] = {
		{.name = "new-key",
		 .synopsis = "FILE",
		 .args_min = 1,
		 .args_max = 1,
		 .help = "Makes a key without a password: FILE, for nobody else to read, and FILE.pub.",
		 .run = new_key},
		{.name = "sign",
		 .synopsis = "FILE",
		 .args_min = 1,
		 .args_max = 1,
		 .help = "Signs FILE, at most 64 MiB: writes FILE.minisig.",
		 .options = sign_table,
		 .opts_bytes = sizeof(struct options),
		 .run = sign},
		{.name = "verify",
		 .synopsis = "FILE",
		 .args_min = 1,
		 .args_max = 1,
		 .help = "Checks FILE against FILE.minisig and prints the trusted comment.",
		 .options = verify_table,
		 .opts_bytes = sizeof(struct options),
		 .run = verify},
		{.run = NULL},
	};
	static const struct rv_program program = {
		.name = "rivulet-release",
		.holds_keys = true,
		.summary = "Makes release keys, signs and checks files, in the format of minisign.",
		.commands = commands,
		.examples = "    rivulet-release sign SHA256SUMS --key ~/rivulet-release.key --comment 'rivulet 0.1.0'",
	};
	return rv_program_main(&program, argc, argv);
}
