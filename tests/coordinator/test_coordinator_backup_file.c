/* The file of a backup: whatever byte of it differs, it is refused; so is what has no seal, and a
 * newer version. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "coordinator/backup/backup_file.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"

enum { PAGES_BYTES = 1536, ALL_BYTES = PAGES_BYTES + BACKUP_FILE_SEAL_BYTES, STRIDE = 13 };
enum { VERSION_AT = PAGES_BYTES + RUN_KEYS_BYTES, HASH_AT = ALL_BYTES - RV_HASH_BYTES };

struct place {
	char dir[64], sealed[96], to[96];
	uint8_t bytes[PAGES_BYTES], keys_bytes[RUN_KEYS_BYTES];
	struct run_keys keys;
};

/* Makes the backup of `n` of p->bytes. */
static void seal(const struct place *p, size_t n) {
	struct rv_file_writer w;
	assert_ok(rv_file_writer_begin(&w, p->sealed, 0600, &et));
	assert_ok(rv_file_writer_write(&w, p->bytes, n, &et));
	assert_ok(backup_file_seal(&w, &p->keys, &et));
	assert_ok(rv_file_writer_commit(&w, &et));
}

static int set_up(void **state) {
	struct place *p = calloc(1, sizeof *p);
	*state = p;
	scratch_make(p->dir, sizeof p->dir);
	(void)snprintf(p->sealed, sizeof p->sealed, "%s/backup", p->dir);
	(void)snprintf(p->to, sizeof p->to, "%s/restored.db", p->dir);
	for (size_t i = 0; i < PAGES_BYTES; i++)
		p->bytes[i] = (uint8_t)(i * 7 + i / 256);
	memset(p->keys_bytes, 0x5a, sizeof p->keys_bytes);
	run_keys_decode(p->keys_bytes, &p->keys);
	seal(p, PAGES_BYTES);
	return 0;
}

static int tear_down(void **state) {
	struct place *p = *state;
	scratch_remove_only(p->dir, (const char *const[]){"backup", "restored.db", NULL});
	free(p);
	return 0;
}

static void assert_opens(const struct place *p) {
	uint8_t *got = NULL, keys_bytes[RUN_KEYS_BYTES];
	struct run_keys keys;
	size_t n = 0;
	assert_ok(backup_file_open(p->sealed, p->to, &keys, &et));
	run_keys_encode(&keys, keys_bytes);
	assert_memory_equal(keys_bytes, p->keys_bytes, sizeof keys_bytes);
	assert_ok(rv_file_read(p->to, ALL_BYTES, &got, &n, &et));
	assert_int_equal(n, PAGES_BYTES);
	assert_memory_equal(got, p->bytes, n);
	free(got);
}

static void assert_refused(const struct place *p, enum rv_err want, const char *words) {
	struct rv_errtext et = {0};
	struct run_keys keys;
	assert_int_equal(backup_file_open(p->sealed, p->to, &keys, &et), want);
	if (strstr(et.text, words) == NULL || (want == RV_E_CORRUPT && strstr(et.text, "nothing was restored") == NULL))
		fail_msg("'%s' is not in: %s", words, et.text);
	assert_int_equal(access(p->to, F_OK), -1);
}

static void test_what_was_sealed_is_opened(void **state) {
	assert_opens(*state);
}

static void flip(const struct place *p, long at) {
	FILE *f = fopen(p->sealed, "r+b");
	assert_non_null(f);
	assert_int_equal(fseek(f, at, SEEK_SET), 0);
	int c = fgetc(f);
	assert_int_equal(fseek(f, at, SEEK_SET), 0);
	assert_int_not_equal(fputc(c ^ (1 << at % 8), f), EOF);
	assert_int_equal(fclose(f), 0);
}

static void test_every_flip_is_noticed(void **state) {
	const struct place *p = *state;
	for (long at = 0; at < ALL_BYTES; at += at < PAGES_BYTES - STRIDE ? STRIDE : 1) {
		bool magic = at >= VERSION_AT + 4 && at < HASH_AT;
		flip(p, at);
		assert_refused(p, RV_E_CORRUPT, magic ? "it has no seal at its end" : "does not match its hash");
		flip(p, at);
	}
	assert_opens(p);
}

static void test_what_was_cut_off_is_refused(void **state) {
	const struct place *p = *state;
	for (long n = ALL_BYTES - 1; n >= 0; n -= n > PAGES_BYTES ? 1 : STRIDE) {
		assert_int_equal(truncate(p->sealed, n), 0);
		assert_refused(p, RV_E_CORRUPT,
					   n > BACKUP_FILE_SEAL_BYTES ? "it is no backup, or cut off" : "bytes are no backup");
	}
	assert_int_equal(truncate(p->sealed, 0), 0);
	assert_refused(p, RV_E_CORRUPT, "0 bytes are no backup");
}

static void test_what_is_no_pages_is_refused(void **state) {
	const struct place *p = *state;
	seal(p, PAGES_BYTES - 1);
	assert_refused(p, RV_E_CORRUPT, "no whole pages");
}

/* Sealed as this program would, had it the next version. */
static void test_a_newer_version_is_refused(void **state) {
	const struct place *p = *state;
	uint8_t *bytes = NULL;
	size_t n = 0;
	assert_ok(rv_file_read(p->sealed, ALL_BYTES, &bytes, &n, &et));
	bytes[VERSION_AT] = BACKUP_FILE_VERSION + 1;
	struct rv_hash hash = rv_hash_of(bytes, HASH_AT);
	memcpy(bytes + HASH_AT, hash.b, RV_HASH_BYTES);
	assert_ok(rv_file_write_atomic(p->sealed, bytes, n, 0600, &et));
	free(bytes);
	assert_refused(p, RV_E_UNSUPPORTED,
				   "version 2, this program reads version 1: restore it with the release that made");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_was_sealed_is_opened, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_every_flip_is_noticed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_was_cut_off_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_no_pages_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_newer_version_is_refused, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
