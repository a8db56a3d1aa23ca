/* err.c: formatting of fault texts. */
#include "base/err.h"

#include "base/assert.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Drops the analyzer's macros of err.h, which are for callers. */
#undef rv_fail
#undef rv_fail_context
#undef rv_fail_errno

enum rv_err rv_fail(struct rv_errtext *et, enum rv_err e, const char *fmt, ...) {
	RV_ASSERT(e > RV_OK && e < RV_E_COUNT);
	if (!et)
		return e;
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(et->text, sizeof et->text, fmt, ap);
	va_end(ap);
	return e;
}

enum rv_err rv_fail_context(struct rv_errtext *et, enum rv_err e, const char *fmt, ...) {
	RV_ASSERT(e > RV_OK && e < RV_E_COUNT);
	if (!et)
		return e;
	struct rv_errtext inner = *et;
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(et->text, sizeof et->text, fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof et->text)
		(void)snprintf(et->text + n, sizeof et->text - (size_t)n, ": %s", inner.text);
	return e;
}

static enum rv_err err_of_errno(int errno_value) {
	switch (errno_value) {
	case ENOSPC:
	case EDQUOT:
	case EFBIG: /* RLIMIT_FSIZE: a quota too */
		return RV_E_FULL;
	case ENOENT:
		return RV_E_NOTFOUND;
	case ENOMEM:
		return RV_E_NOMEM;
	case EADDRINUSE:
	case EAGAIN:
		return RV_E_BUSY;
	default:
		return RV_E_IO;
	}
}

enum rv_err rv_fail_errno(struct rv_errtext *et, int errno_value, const char *fmt, ...) {
	enum rv_err e = err_of_errno(errno_value);
	if (!et)
		return e;
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(et->text, sizeof et->text, fmt, ap);
	va_end(ap);
	char why[128];
	const char *text = strerror_r(errno_value, why, sizeof why); /* the GNU one: returns the text */
	if (n >= 0 && (size_t)n < sizeof et->text)
		(void)snprintf(et->text + n, sizeof et->text - (size_t)n, ": %s", text);
	return e;
}

const char *rv_err_name(enum rv_err e) {
	static const char *const names[RV_E_COUNT] = {
		[RV_OK] = "ok",
		[RV_E_INVALID] = "invalid",
		[RV_E_RANGE] = "range",
		[RV_E_IO] = "io",
		[RV_E_FULL] = "full",
		[RV_E_NOMEM] = "nomem",
		[RV_E_CORRUPT] = "corrupt",
		[RV_E_AUTH] = "auth",
		[RV_E_PROTOCOL] = "protocol",
		[RV_E_TIMEOUT] = "timeout",
		[RV_E_CLOSED] = "closed",
		[RV_E_NOTFOUND] = "notfound",
		[RV_E_BUSY] = "busy",
		[RV_E_UNSUPPORTED] = "unsupported",
		[RV_E_CANCELLED] = "cancelled",
		[RV_E_DIVERGED] = "diverged",
		[RV_E_WAITING] = "waiting",
		[RV_E_OVER] = "over",
	};
	RV_ASSERT(e >= RV_OK && e < RV_E_COUNT);
	return names[e];
}
