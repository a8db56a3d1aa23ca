/* The file of a backup: whatever byte of it differs, it is refused; without a seal it is one of an earlier release. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "coordinator/backup/backup_file.h"

enum { PAGES_BYTES = 1536, SEAL_BYTES = 40, ALL_BYTES = PAGES_BYTES + SEAL_BYTES, STRIDE = 13 };

struct place {
	char dir[64], from[96], sealed[96], to[96];
	uint8_t bytes[PAGES_BYTES];
};

static int set_up(void **state) {
	struct place *p = calloc(1, sizeof *p);
	struct rv_errtext et = {0};
	*state = p;
	(void)snprintf(p->dir, sizeof p->dir, "/tmp/rivulet-backup-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	(void)snprintf(p->from, sizeof p->from, "%s/copy.db", p->dir);
	(void)snprintf(p->sealed, sizeof p->sealed, "%s/backup", p->dir);
	(void)snprintf(p->to, sizeof p->to, "%s/restored.db", p->dir);
	for (size_t i = 0; i < PAGES_BYTES; i++)
		p->bytes[i] = (uint8_t)(i * 7 + i / 256);
	assert_int_equal(rv_file_write_atomic(p->from, p->bytes, PAGES_BYTES, 0600, &et), RV_OK);
	assert_int_equal(backup_file_seal(p->from, p->sealed, &et), RV_OK);
	return 0;
}

static int tear_down(void **state) {
	struct place *p = *state;
	(void)unlink(p->from);
	(void)unlink(p->sealed);
	(void)unlink(p->to);
	assert_int_equal(rmdir(p->dir), 0);
	free(p);
	return 0;
}

static void assert_opens(const struct place *p, bool is_sealed) {
	struct rv_errtext et = {0};
	bool sealed = !is_sealed;
	uint8_t *got = NULL;
	size_t n = 0;
	assert_int_equal(backup_file_open(p->sealed, p->to, &sealed, &et), RV_OK);
	assert_int_equal(sealed, is_sealed);
	assert_int_equal(rv_file_read(p->to, ALL_BYTES, &got, &n, &et), RV_OK);
	assert_int_equal(n, PAGES_BYTES);
	assert_memory_equal(got, p->bytes, n);
	free(got);
}

static void assert_refused(const struct place *p, const char *words) {
	struct rv_errtext et = {0};
	bool sealed;
	assert_int_equal(backup_file_open(p->sealed, p->to, &sealed, &et), RV_E_CORRUPT);
	if (strstr(et.text, words) == NULL || strstr(et.text, "nothing was restored") == NULL)
		fail_msg("'%s' is not in: %s", words, et.text);
	assert_int_equal(access(p->to, F_OK), -1);
}

static void test_what_was_sealed_is_opened(void **state) {
	assert_opens(*state, true);
}

static void test_every_flip_is_noticed(void **state) {
	const struct place *p = *state;
	for (long at = 0; at < ALL_BYTES; at += at < PAGES_BYTES - STRIDE ? STRIDE : 1) {
		FILE *f = fopen(p->sealed, "r+b");
		assert_non_null(f);
		for (int times = 0; times < 2; times++) {
			assert_int_equal(fseek(f, at, SEEK_SET), 0);
			int c = fgetc(f);
			assert_int_equal(fseek(f, at, SEEK_SET), 0);
			assert_int_not_equal(fputc(c ^ (1 << at % 8), f), EOF);
			assert_int_equal(fflush(f), 0);
			if (times == 0)
				assert_refused(p, "does not match its hash");
		}
		assert_int_equal(fclose(f), 0);
	}
	assert_opens(p, true);
}

static void test_what_was_cut_off_is_refused(void **state) {
	const struct place *p = *state;
	for (long n = ALL_BYTES - 1; n >= 0; n -= STRIDE) {
		assert_int_equal(truncate(p->sealed, n), 0);
		if (n % 512 != SEAL_BYTES && (n % 512 != 0 || n == 0))
			assert_refused(p, "are not the size of a backup");
	}
	assert_int_equal(truncate(p->sealed, 0), 0);
	assert_refused(p, "0 bytes are not the size of a backup");
}

static void test_no_seal_is_an_earlier_release(void **state) {
	const struct place *p = *state;
	assert_int_equal(truncate(p->sealed, PAGES_BYTES), 0);
	assert_opens(p, false);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_was_sealed_is_opened, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_every_flip_is_noticed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_was_cut_off_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_seal_is_an_earlier_release, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
