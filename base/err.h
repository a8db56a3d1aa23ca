/* err.h: how faults travel.
 *
 * A *fault* comes from outside (a peer, a disk, the network, a file, an option) and is returned: an `enum rv_err` says
 * what kind it is, for code to branch on, and a `struct rv_errtext` says it to a human: what, where, the value, the
 * limit, the next step. A *bug* in our own code is never returned: it hits RV_ASSERT (base/assert.h).
 */
#ifndef RV_BASE_ERR_H
#define RV_BASE_ERR_H

enum rv_err {
	RV_OK = 0,
	RV_E_INVALID,     /* malformed input: config, option, frame, file */
	RV_E_RANGE,       /* well-formed, but outside a limit */
	RV_E_IO,          /* the operating system refused: open, read, write, fsync, socket */
	RV_E_FULL,        /* no space left: disk, quota, a bounded table */
	RV_E_NOMEM,       /* allocation failed */
	RV_E_CORRUPT,     /* stored or received bytes do not match their hash, or cannot be what they claim */
	RV_E_AUTH,        /* wrong key, bad signature, refused token */
	RV_E_PROTOCOL,    /* valid bytes at the wrong time, or of the wrong version */
	RV_E_TIMEOUT,     /* no progress within the limit */
	RV_E_CLOSED,      /* the other side went away */
	RV_E_NOTFOUND,    /* the named thing does not exist */
	RV_E_BUSY,        /* taken by somebody else: port, lock, directory */
	RV_E_UNSUPPORTED, /* valid, but this build or machine cannot do it */
	RV_E_CANCELLED,   /* the user or the caller asked to stop */
	RV_E_DIVERGED,    /* training: numbers are no longer finite */
	RV_E_COUNT
};

enum { RV_ERRTEXT_BYTES = 512 };

/* Filled by the function that found the fault; always NUL-terminated, cut (never overflowed) at the limit.
 * Initialise with `= {0}`. Every function that takes one accepts NULL when the caller does not want the text. */
struct rv_errtext {
	char text[RV_ERRTEXT_BYTES];
};

/* Formats the text and returns `e`, so that a fault is one statement:
 *     return rv_fail(et, RV_E_RANGE, "lr = %g: must be in (0, 1]", lr); */
enum rv_err rv_fail(struct rv_errtext *et, enum rv_err e, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts "context: " in front of what the callee wrote, and returns `e`. */
enum rv_err rv_fail_context(struct rv_errtext *et, enum rv_err e, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Like rv_fail, with ": strerror(errno_value)" appended; maps ENOSPC/EDQUOT to RV_E_FULL, ENOENT to RV_E_NOTFOUND,
 * ENOMEM to RV_E_NOMEM, EADDRINUSE/EAGAIN/EWOULDBLOCK to RV_E_BUSY, everything else to RV_E_IO. */
enum rv_err rv_fail_errno(struct rv_errtext *et, int errno_value, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#ifdef __clang_analyzer__ /* what the analyzer cannot see across files: these return a fault, the one they were given  \
						   */
#define rv_fail(et, e, ...)         (rv_fail(et, e, __VA_ARGS__), (e))
#define rv_fail_context(et, e, ...) (rv_fail_context(et, e, __VA_ARGS__), (e))
#define rv_fail_errno(et, n, ...)   (rv_fail_errno(et, n, __VA_ARGS__), RV_E_IO)
#endif

/* "invalid", "range", ...: the stable name used in JSON events. */
const char *rv_err_name(enum rv_err e);

/* Returns the fault of `expr` from the enclosing function. Where something must be released, use a `goto out` instead.
 */
#define RV_TRY(expr)                                                                                                   \
	do {                                                                                                               \
		enum rv_err rv_e_ = (expr);                                                                                    \
		if (rv_e_ != RV_OK)                                                                                            \
			return rv_e_;                                                                                              \
	} while (0)

#endif
