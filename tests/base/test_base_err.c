/* Fault texts: formatting, context, errno mapping, cutting at the limit. */
#include "base/err.h"
#include "tests/common/check.h"

#include <errno.h>
#include <string.h>

static void fail_formats_and_returns(void **state) {
	(void)state;
	struct rv_errtext et = {0};
	assert_int_equal(rv_fail(&et, RV_E_RANGE, "lr = %g: must be in (0, 1]", 2.5), RV_E_RANGE);
	assert_string_equal(et.text, "lr = 2.5: must be in (0, 1]");
	assert_int_equal(rv_fail(NULL, RV_E_AUTH, "nobody reads %s", "this"), RV_E_AUTH);
}

static void context_goes_in_front(void **state) {
	(void)state;
	struct rv_errtext et = {"inner"};
	assert_int_equal(rv_fail_context(&et, RV_E_IO, "file %d", 7), RV_E_IO);
	assert_string_equal(et.text, "file 7: inner");
	assert_int_equal(rv_fail_context(NULL, RV_E_IO, "x"), RV_E_IO);
}

static void long_texts_are_cut_not_overflowed(void **state) {
	(void)state;
	struct {
		struct rv_errtext et;
		char guard[8];
	} s;
	char longer[2 * RV_ERRTEXT_BYTES];
	memset(longer, 'x', sizeof longer);
	longer[sizeof longer - 1] = '\0';
	memset(s.guard, 'g', sizeof s.guard);
	(void)rv_fail(&s.et, RV_E_INVALID, "%s", longer);
	assert_int_equal(strlen(s.et.text), RV_ERRTEXT_BYTES - 1);
	(void)rv_fail_context(&s.et, RV_E_INVALID, "%s", "front");
	assert_int_equal(strlen(s.et.text), RV_ERRTEXT_BYTES - 1);
	assert_memory_equal(s.et.text, "front: xxx", 10);
	(void)rv_fail_context(&s.et, RV_E_INVALID, "%s", longer);
	assert_int_equal(strlen(s.et.text), RV_ERRTEXT_BYTES - 1);
	(void)rv_fail_errno(&s.et, EIO, "%s", longer);
	assert_int_equal(strlen(s.et.text), RV_ERRTEXT_BYTES - 1);
	assert_memory_equal(s.guard, "gggggggg", 8);
}

static void errno_is_mapped_and_named(void **state) {
	(void)state;
	static const struct {
		int errno_value;
		enum rv_err e;
	} cases[] = {{ENOSPC, RV_E_FULL},  {EDQUOT, RV_E_FULL},     {EFBIG, RV_E_FULL},  {ENOENT, RV_E_NOTFOUND},
				 {ENOMEM, RV_E_NOMEM}, {EADDRINUSE, RV_E_BUSY}, {EAGAIN, RV_E_BUSY}, {EWOULDBLOCK, RV_E_BUSY},
				 {EIO, RV_E_IO},       {EACCES, RV_E_IO},       {0x7ffffff, RV_E_IO}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_int_equal(rv_fail_errno(NULL, cases[i].errno_value, "x"), cases[i].e);
	struct rv_errtext et = {0};
	(void)rv_fail_errno(&et, ENOSPC, "%s: cannot write", "log-3.rvl");
	assert_string_equal(et.text, "log-3.rvl: cannot write: No space left on device");
}

static void every_kind_has_its_own_name(void **state) {
	(void)state;
	assert_string_equal(rv_err_name(RV_OK), "ok");
	assert_string_equal(rv_err_name(RV_E_CANCELLED), "cancelled");
	for (int a = 0; a < RV_E_COUNT; a++) {
		assert_non_null(rv_err_name((enum rv_err)a));
		for (int b = 0; b < a; b++)
			assert_string_not_equal(rv_err_name((enum rv_err)a), rv_err_name((enum rv_err)b));
	}
}

static enum rv_err tries(enum rv_err inner, int *reached) {
	RV_TRY(inner);
	*reached += 1;
	return RV_OK;
}

static void try_returns_the_fault(void **state) {
	(void)state;
	int reached = 0;
	assert_int_equal(tries(RV_E_BUSY, &reached), RV_E_BUSY);
	assert_int_equal(reached, 0);
	assert_int_equal(tries(RV_OK, &reached), RV_OK);
	assert_int_equal(reached, 1);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fail_formats_and_returns),          cmocka_unit_test(context_goes_in_front),
		cmocka_unit_test(long_texts_are_cut_not_overflowed), cmocka_unit_test(errno_is_mapped_and_named),
		cmocka_unit_test(every_kind_has_its_own_name),       cmocka_unit_test(try_returns_the_fault),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
