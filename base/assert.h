/* assert.h: assertions that stay on in release builds. For bugs in our own code only; faults are
 * returned (err.h). */
#ifndef RV_BASE_ASSERT_H
#define RV_BASE_ASSERT_H

/* Prints file, line, function and the failed expression to stderr, then aborts (so that a core can
 * be had). */
_Noreturn void rv_assert_failed(const char *file, int line, const char *func, const char *expr);

/* `cond` must have no side effects. */
#define RV_ASSERT(cond) ((cond) ? (void)0 : rv_assert_failed(__FILE__, __LINE__, __func__, #cond))

/* Aborts where control cannot come. `why` states what was taken for granted, as at the end of a
 * switch over an enum. */
#define RV_UNREACHABLE(why) rv_assert_failed(__FILE__, __LINE__, __func__, why)

#endif
