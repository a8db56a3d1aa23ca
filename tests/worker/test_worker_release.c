/* Releases: which version is newer, and what of a feed is believed. */
#include "tests/common/check.h"
#include "tests/common/scratch.h"
#include "worker/update/release.h"

#include <stdio.h>
#include <string.h>

enum { SIGNATURE_CHARACTERS = 88 }; /* 64 bytes in base64: the last line of a signature */

struct feed {
	char dir[256];
	struct rv_minisign_secret key;
};

static const char sums[] =
	"0123456789012345678901234567890123456789012345678901234567890123  rivulet-coordinator_0.2.0_amd64.deb\n"
	"not a line of sums\n"
	"abcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcd  rivulet-worker_0.2.0_amd64.deb\n"
	"abcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcd  rivulet-worker-0.2.0-\x1b[31m.tar.xz";

static void write_text(const struct feed *f, const char *name, const char *text) {
	scratch_write(f->dir, name, text, strlen(text));
}

/* Makes a feed of these sums with a trusted comment. */
static void make_feed(struct feed *f, const char *comment) {
	char signature[RV_MINISIGN_TEXT_BYTES];
	scratch_make(f->dir, sizeof f->dir);
	assert_int_equal(rv_minisign_new(&f->key, NULL), RV_OK);
	rv_minisign_sign(&f->key, sums, strlen(sums), comment, signature);
	write_text(f, "SHA256SUMS", sums);
	write_text(f, "SHA256SUMS.minisig", signature);
}

static void expect_refused(const struct feed *f, const struct rv_minisign_public *key, enum rv_err e,
						   const char *words) {
	struct release r;
	struct rv_errtext et = {0};
	assert_int_equal(release_fetch(f->dir, key, &r, &et), e);
	if (!strstr(et.text, words))
		fail_msg("\"%s\" is not in: %s", words, et.text);
	assert_null(r.sums);
}

static void versions_are_numbers(void **state) {
	(void)state;
	static const char *const in_order[] = {"0.1.0", "rivulet 0.1.2+0123456789ab", "0.1.10", "0.2.0+x-dirty", "1.0.0"};
	static const char *const wrong[] = {"",       "0.1",         "0.1.",    "0.1.0-1", "v0.1.0",
										"0.1.0 ", "0.1.9999999", "rivulet", "0..1"};
	struct release_version a, b;
	for (size_t i = 0; i < sizeof in_order / sizeof in_order[0]; i++) {
		for (size_t j = 0; j < sizeof in_order / sizeof in_order[0]; j++) {
			assert_true(release_version_parse(in_order[i], &a) && release_version_parse(in_order[j], &b));
			const int order = release_version_compare(&a, &b);
			assert_true(i == j ? order == 0 : i < j ? order < 0 : order > 0);
		}
	}
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		assert_false(release_version_parse(wrong[i], &a));
}

static void a_signed_release_is_believed(void **state) {
	(void)state;
	struct feed f;
	struct release r;
	struct release_file file;
	make_feed(&f, "rivulet 0.2.0+0123456789ab");
	assert_int_equal(release_fetch(f.dir, &f.key.public, &r, NULL), RV_OK);
	assert_string_equal(r.comment, "rivulet 0.2.0+0123456789ab");
	assert_int_equal(r.version.minor, 2);
	const char *at = r.sums;
	assert_true(release_next_file(&at, "rivulet-worker", &file));
	assert_string_equal(file.name, "rivulet-worker_0.2.0_amd64.deb");
	assert_int_equal(strlen(file.sha256), 64);
	assert_true(release_next_file(&at, "rivulet-worker", &file));
	assert_null(strchr(file.name, '\x1b'));
	assert_false(release_next_file(&at, "rivulet-worker", &file));
	release_free(&r);
	scratch_remove(f.dir);
}

static void nothing_else_is(void **state) {
	(void)state;
	struct feed f;
	struct rv_minisign_secret other;
	char changed[sizeof sums], path[300];
	make_feed(&f, "rivulet 0.2.0");
	assert_int_equal(rv_minisign_new(&other, NULL), RV_OK);
	expect_refused(&f, &other.public, RV_E_AUTH, "signed by the key");
	memcpy(changed, sums, sizeof sums);
	changed[0] = '1';
	write_text(&f, "SHA256SUMS", changed);
	expect_refused(&f, &f.key.public, RV_E_AUTH, "the file was changed");
	scratch_write(f.dir, "SHA256SUMS", "a\0b", 3);
	expect_refused(&f, &f.key.public, RV_E_INVALID, "not a text");
	write_text(&f, "SHA256SUMS", sums);
	(void)snprintf(path, sizeof path, "%s/SHA256SUMS.minisig", f.dir);
	scratch_flip(path, -1 - SIGNATURE_CHARACTERS - 2); /* rivulet 0.2.1 */
	expect_refused(&f, &f.key.public, RV_E_AUTH, "trusted comment");
	assert_int_equal(remove(path), 0);
	expect_refused(&f, &f.key.public, RV_E_NOTFOUND, "SHA256SUMS.minisig");
	scratch_remove(f.dir);
	make_feed(&f, "timestamp:1795495289");
	expect_refused(&f, &f.key.public, RV_E_CORRUPT, "is not: rivulet VERSION");
	scratch_remove(f.dir);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions_are_numbers),
		cmocka_unit_test(a_signed_release_is_believed),
		cmocka_unit_test(nothing_else_is),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
