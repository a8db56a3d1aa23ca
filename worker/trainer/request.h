/* request.h: what the trainer is asked for and what it answers. Requests are done and answered in
 * order; a TRAIN under way stops at the next step boundary when APPLY, INSTALL, SAVE or END
 * comes. */
#ifndef RV_WORKER_TRAINER_REQUEST_H
#define RV_WORKER_TRAINER_REQUEST_H

#include "outer/committer.h"
#include "train/participant/participant.h"
#include "train/repeat.h"
#include "train/score.h"
#include "worker/state/blob.h"
#include "worker/state/store_job.h"

enum trainer_work {
	TRAINER_TRAIN,         /* steps [from, from + steps) of `round`: that of the shared state, or the next one, ahead */
	TRAINER_ENCODE,        /* the contribution to `round` */
	TRAINER_APPLY,         /* the outer step of `round`, with its reduced bytes */
	TRAINER_INSTALL,       /* a full state, if its full hash is `expect` */
	TRAINER_EVALUATE,      /* the shared theta's held-out loss */
	TRAINER_SAVE,          /* a copy of the replica */
	TRAINER_END,           /* the same, and no evaluation any longer: one under way stops, later ones are refused */
	TRAINER_COPY_SNAPSHOT, /* a copy of the shared state */
	TRAINER_SCORE,         /* gains of contributions, at the shared theta */
	TRAINER_REPEAT,        /* some steps of another member's round, and after the last its distances */
	TRAINER_WORKS
};

struct trainer_request {
	enum trainer_work work;
	uint64_t round;                   /* TRAIN, ENCODE, APPLY, INSTALL */
	uint64_t from, steps;             /* TRAIN */
	bool has_leases;                  /* TRAIN: it reads `reading` */
	bool starts_over;                 /* TRAIN: from theta, as its earlier steps are lost */
	struct reading reading;           /* TRAIN */
	bool want_replica, want_snapshot; /* ENCODE, APPLY: what the copy for the disk should hold */
	struct blob *reduced;             /* APPLY: referenced until done */
	struct rv_hash expect;            /* APPLY: digest. INSTALL: full hash; all zero: of the run's init_hash */
	enum participant_adopt adopt;     /* APPLY */
	struct contribution_form form;    /* APPLY, ADOPT: how this worker's contribution was sent */
	void *snapshot;                   /* INSTALL: of the platform's type, taken over; NULL: theta0 */
	uint64_t max_tokens;              /* EVALUATE: as replica_eval takes it */
	bool last;                        /* EVALUATE: at the end of the run; the answer gives it back */
	struct score_job *score;          /* SCORE: borrowed until it is answered; its results are set */
	/* SCORE: sets score->own, if that was not read yet. On the trainer thread; may block. */
	enum rv_err (*read_own)(void *ctx, struct score_job *job, struct rv_errtext *et);
	/* REPEAT: the same before the first step: fills job->before. */
	enum rv_err (*read_before)(void *ctx, struct repeat_job *job, struct rv_errtext *et);
	void *read_ctx;
	struct repeat_job *repeat; /* REPEAT: borrowed until it is answered; `text` is what its author read */
	struct reading text;
	/* ENCODE: keeps the inner state, and the weights with which the round began, for auditors, and
	 * sets its root. On the trainer thread; may block. NULL: it is not kept. */
	enum rv_err (*keep_inner)(void *ctx, uint64_t round, const struct replica *r, const float *theta,
							  struct rv_hash *root, struct rv_errtext *et);
	void *keep_ctx;
};

struct trainer_answer {
	enum trainer_work work;
	uint64_t round;
	/* TRAIN, RV_E_RANGE: the loss is repeatedly not finite. ENCODE, RV_E_RANGE: the outer gradient
	 * is not finite, or too large to be averaged. After either, in the shared state's round,
	 * theta_local is theta again, and no step is done; after any other fault of TRAIN, and one of
	 * steps ahead, training cannot continue. APPLY, RV_OK: the shared state is at round + 1.
	 * EVALUATE, RV_E_CANCELLED: after END; otherwise the faults of replica_eval. SCORE,
	 * RV_E_CANCELLED: the same, or it would wait for text while there is other work. REPEAT: also
	 * if not all steps are made; RV_E_RANGE: they cannot be. */
	enum rv_err err;
	struct rv_errtext text;
	struct participant_progress progress; /* after it */
	struct commitment commitment;         /* ENCODE, RV_OK: to the contribution */
	enum rv_err kept;                     /* ENCODE: what keep_inner returned; `text` has why */
	bool time_up;                         /* TRAIN: the run's round_ms are over */
	bool read_out;                        /* TRAIN: it ended where its leases do */
	bool has_leases, started_over;        /* TRAIN */
	struct reading reads;                 /* TRAIN, has_leases: what it read */
	uint64_t from;                        /* TRAIN: its first step */
	struct rv_hash chain;                 /* APPLY: of the shared state after it */
	double loss;                          /* EVALUATE */
	bool last;
	int reads_again; /* INSTALL: how often the disk failed behind the check, and the state was read again */
	bool lost;       /* INSTALL, not RV_OK: the shared state is neither the old nor the new one */
	/* ENCODE (if wanted), APPLY, SAVE, END, COPY_SNAPSHOT: passes to the owner. SAVE, END: without
	 * the replica if steps ahead are in theta_local: the copy made at the encoding is the one to
	 * save. */
	bool has_copy;
	struct state_copy copy;
};

#endif
