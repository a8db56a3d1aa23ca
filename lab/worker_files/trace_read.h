/* trace_read.h: reads DIR/trace.jsonl (worker/session/trace.h). Its content comes from outside:
 * bounded and checked. */
#ifndef RV_LAB_TRACE_READ_H
#define RV_LAB_TRACE_READ_H

#include "base/run_config.h"
#include "kernels/device.h"
#include "train/savings.h"
#include "worker/session/trace.h"

enum { TRACE_MAX_FILE_BYTES = 1 << 28, TRACE_MAX_EVENTS = 4 << 20 };

enum trace_kind {
	TRACE_START,
	TRACE_TRAIN,
	TRACE_ENCODE,
	TRACE_APPLY,
	TRACE_INSTALL,
	TRACE_SAVE,
	TRACE_ROLLBACK,
	TRACE_VOTE,
	TRACE_OWNS,
	TRACE_START_OVER
};

struct trace_event {
	enum trace_kind kind;
	uint64_t round;
	uint64_t from, to;       /* TRAIN; START: round and steps of the saved replica; SAVE: to = steps */
	uint64_t boot;           /* START, ENCODE */
	bool saved, exact;       /* START */
	struct savings savings;  /* START */
	bool ok;                 /* ENCODE */
	bool participated, keep; /* APPLY */
	bool copy;               /* APPLY, ENCODE */
	struct rv_hash chain;    /* APPLY: of the state after it */
	uint64_t attempt;        /* VOTE, OWNS; APPLY: of this worker's vote whose result it is; 0: fetched, not known */
	struct trace_roster *roster; /* VOTE; owned */
	struct trace_owns *owns;     /* OWNS; owned */
	struct reading *reads;       /* TRAIN, in a run that leases its text: positions, from number 0 on; owned */
};

struct trace_record {
	uint32_t member;
	int threads;
	enum run_dtype dtype;           /* of its products; RUN_DTYPE_AUTO: no start yet */
	bool dtype_changed;             /* one of its processes had another than the first */
	char device[DEVICE_TEXT_BYTES]; /* device_kind of its backend; "": not known */
	bool device_changed;
	bool has_savings;       /* there was a start, of: */
	struct savings savings; /* later processes may have had others */
	struct trace_event *events;
	int n;
};

/* Reads a trace; the caller releases *out. RV_E_NOTFOUND, RV_E_RANGE (too large); RV_E_CORRUPT and
 * RV_E_UNSUPPORTED (of a newer version) name file and line. A torn last line is ignored. On a fault
 * there is nothing to release. */
enum rv_err trace_read(const char *path, struct trace_record *out, struct rv_errtext *et);
void trace_record_release(struct trace_record *t);

#endif
