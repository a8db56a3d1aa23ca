/* check.h: CMocka with the headers that it needs, and assertions for results with a text. */
#ifndef RV_TESTS_COMMON_CHECK_H
#define RV_TESTS_COMMON_CHECK_H

#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Fails the test, with the text of the fault, unless `call` returns RV_OK. `call` may write that
 * text into `&et`, which is declared here. */
#define assert_ok(call)                                                                                                \
	do {                                                                                                               \
		struct rv_errtext et = {0};                                                                                    \
		const enum rv_err got_ = (call);                                                                               \
		if (got_ != RV_OK)                                                                                             \
			fail_msg("%s: %s: %s", #call, rv_err_name(got_), et.text);                                                 \
	} while (0)

#endif
