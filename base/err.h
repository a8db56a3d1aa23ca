/* err.h: how faults travel.
 *
 * A *fault* comes from outside (a peer, a disk, the network, a file, an option) and is returned: an
 * `enum rv_err` gives its kind, for code to branch on, and a `struct rv_errtext` explains it to
 * people: what, where, the value, the limit, the next step. A *bug* in our own code is never
 * returned: it hits RV_ASSERT (base/assert.h). */
#ifndef RV_BASE_ERR_H
#define RV_BASE_ERR_H

enum rv_err {
	RV_OK = 0,
	RV_E_INVALID,     /* malformed input: config, option, frame, file */
	RV_E_RANGE,       /* well-formed, but outside a limit */
	RV_E_IO,          /* the operating system refused: open, read, write, fsync, socket */
	RV_E_FULL,        /* no space left: disk, quota, a bounded table */
	RV_E_NOMEM,       /* allocation failed */
	RV_E_CORRUPT,     /* bytes do not match their hash, or cannot be what they claim */
	RV_E_AUTH,        /* wrong key, bad signature, refused token */
	RV_E_PROTOCOL,    /* valid bytes at the wrong time, or of the wrong version */
	RV_E_TIMEOUT,     /* no progress within the limit */
	RV_E_CLOSED,      /* the other side went away */
	RV_E_NOTFOUND,    /* the named thing does not exist */
	RV_E_BUSY,        /* taken by somebody else: port, lock, directory */
	RV_E_UNSUPPORTED, /* valid, but this build or machine cannot do it */
	RV_E_CANCELLED,   /* the user or the caller asked to stop */
	RV_E_DIVERGED,    /* training: values became NaN or infinite */
	RV_E_WAITING,     /* not yet: a person has to allow it first */
	RV_E_OVER,        /* no longer: it has ended, as it should */
	RV_E_COUNT
};

enum { RV_ERRTEXT_BYTES = 512 };

/* The text of a fault, written by the function that found it: always NUL-terminated, cut at the
 * limit. Initialise with `= {0}`. Every function that takes one accepts NULL if the caller does not
 * want the text. */
struct rv_errtext {
	char text[RV_ERRTEXT_BYTES];
};

/* Formats the text and returns `e`, so that a fault is one statement:
 *     return rv_fail(et, RV_E_RANGE, "lr = %g: must be in (0, 1]", lr); */
enum rv_err rv_fail(struct rv_errtext *et, enum rv_err e, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts "context: " before the text that the callee wrote, and returns `e`. */
enum rv_err rv_fail_context(struct rv_errtext *et, enum rv_err e, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Formats the text, appends ": strerror(errno_value)" and returns the kind: RV_E_FULL for ENOSPC,
 * EDQUOT and EFBIG, RV_E_NOTFOUND for ENOENT, RV_E_NOMEM for ENOMEM, RV_E_BUSY for EADDRINUSE,
 * EAGAIN and EWOULDBLOCK, RV_E_IO for all others. */
enum rv_err rv_fail_errno(struct rv_errtext *et, int errno_value, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Tells the analyzer, which cannot see across files, that these return the fault that they take. */
#ifdef __clang_analyzer__
#define rv_fail(et, e, ...)         (rv_fail(et, e, __VA_ARGS__), (e))
#define rv_fail_context(et, e, ...) (rv_fail_context(et, e, __VA_ARGS__), (e))
#define rv_fail_errno(et, n, ...)   (rv_fail_errno(et, n, __VA_ARGS__), RV_E_IO)
#endif

/* Returns the stable name used in JSON events: "invalid", "range", ... */
const char *rv_err_name(enum rv_err e);

/* Returns the fault of `expr` from the enclosing function. Use `goto out` where something must be
 * released. */
#define RV_TRY(expr)                                                                                                   \
	do {                                                                                                               \
		enum rv_err rv_e_ = (expr);                                                                                    \
		if (rv_e_ != RV_OK)                                                                                            \
			return rv_e_;                                                                                              \
	} while (0)

#endif
