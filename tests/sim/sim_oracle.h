/* sim_oracle.h: what must hold at every step, judged independently of the cores. */
#ifndef RV_TESTS_SIM_SIM_ORACLE_H
#define RV_TESTS_SIM_SIM_ORACLE_H

#include "outer/global.h"
#include "tests/sim/sim_worker.h"

struct sim_oracle;

struct sim_contribution {
	uint64_t round, boot;
	uint32_t member;
	int host;
	struct sim_progress progress;
	uint8_t *bytes;
	float *left;     /* (n) what its encoding leaves of the fragment; NULL: no error feedback */
	uint64_t losses; /* of the worker's residual, before it was given */
	struct sim_contribution *next;
};
/* ---- rosters, as records and documents state them (sim_rosters.c) ---- */

struct sim_participant {
	uint32_t member, weight; /* weight 0: no document has said it yet */
	uint64_t boot;
	struct contribution_form form; /* as its record says */
};
struct sim_row {
	uint32_t weight, since; /* 0: out of the mean; as document.row_since */
	uint16_t first, n;      /* places; known once a document was about this row */
	uint16_t laid;          /* its length when it was laid out; 0: not known */
	bool known;
};
struct sim_column { /* chunks, and the member that owns them in each row; NET_NO_MEMBER: not known */
	uint32_t first, count;
	uint32_t owner[NET_MAX_ROWS];
};
struct sim_roster {
	uint64_t round;
	uint32_t attempt;
	struct rv_hash hash; /* one row: of everything in the document that concerns it */
	bool announced;
	int n;
	struct sim_participant *of; /* by place */
	int n_rows;                 /* 0: not announced yet */
	struct sim_row rows[NET_MAX_ROWS];
	int n_columns; /* 0: one row */
	struct sim_column *columns;
	int16_t owner[SIM_MAX_CHUNKS]; /* one row: host, by chunk of the round's vector */
	bool held[SIM_MAX_CHUNKS];     /* the (final) owner had a residual of it when the attempt began */
	struct sim_roster *next;
};
struct sim_roster *roster_of(const struct sim *s, uint64_t round, uint32_t attempt); /* NULL: none */
void roster_record(struct sim *s, const struct core_record *rec);
/* Is announced to a host: agrees with the record, and with every other document of the attempt. */
void roster_document(struct sim *s, int host, const struct document *d);
/* Finds out which rows are in the mean, and of whom they are; false: that cannot be known. */
bool roster_settle(struct sim *s, struct sim_roster *r);
/* Returns the host that encodes the mean of a chunk; SIM_NOBODY: not known. */
int roster_encoder(const struct sim *s, const struct sim_roster *r, uint32_t chunk);
/* Returns the host that gives the mean of a chunk to the row of a participant; SIM_NOBODY: not
 * known. */
int roster_row_owner(const struct sim *s, const struct sim_roster *r, int host, uint32_t chunk);
void rosters_forget(struct sim_oracle *o, uint64_t from_round);

/* ---- means of a liar (sim_oracle_given.c) ---- */

void given_vote(struct sim *s, int host, const struct report *rep);  /* its report reached the coordinator */
void given_shown(struct sim *s, int host, const struct evidence *e); /* so did its evidence */
/* Returns true if a digest is that of a list that the liar gave; sets `mean`, what it should be, to
 * that list. Complains of what is not promised. */
bool given_explains(struct sim *s, const struct sim_roster *r, const struct rv_hash *digest, uint8_t *mean);
/* Returns true if the host was given what it voted for in that attempt by a liar, perhaps: it may
 * disagree, and that says nothing against it. */
bool given_was_voted(const struct sim *s, int host, const struct core_event *ev);
void given_release(struct sim *s);

/* What error feedback must have kept of a worker's contributions. */
struct sim_residual {
	float *left, *next;                 /* (n) after its latest commit; after the encoding under way */
	uint64_t encoded, life;             /* the latest round that it encoded, and the process that did */
	uint64_t losses;                    /* how often it had reason to lose it */
	bool had_reason[SIM_MAX_FRAGMENTS]; /* it had one, since the latest commit with it was given */
	bool gone[SIM_MAX_FRAGMENTS];       /* its process lost it since */
	bool unknown[SIM_MAX_FRAGMENTS];    /* rounds were taken back */
};
/* What encoding the committed means left (sim_means.c). By chunk of the whole vector, but
 * may_lose. */
struct sim_means {
	float *kept, *next;            /* (n) after the latest commit; after that under judgement */
	int16_t owner[SIM_MAX_CHUNKS]; /* host, in the latest commit that had the chunk; SIM_NOBODY */
	bool unknown[SIM_MAX_CHUNKS];  /* rounds were taken back: what the owner says */
	uint32_t attempt[SIM_MAX_ROUNDS];
	/* A worker had reason to lose it since the latest commit of that fragment. */
	bool may_lose[SIM_MAX_WORKERS][SIM_MAX_FRAGMENTS];
};
/* What an honest participant votes for, beside an owner that gives each peer another mean
 * (sim_oracle_given.c). */
struct sim_given {
	uint64_t round;
	uint32_t attempt;
	bool shown; /* it has shown the coordinator what it got */
	struct rv_hash digest;
	uint8_t *bytes; /* (max_payload) NULL: it has not voted */
};
/* The latest document that a host was sent, where each has its own. */
struct sim_told {
	uint64_t seq;
	struct rv_hash hash;
};
/* What was read, in runs with leases (sim_oracle_leases.c). */
struct sim_reads {
	uint32_t *position[SIM_MAX_WORKERS]; /* by host and number of its stream: position + 1; 0: not read */
	size_t cap[SIM_MAX_WORKERS];
	uint16_t *committed; /* by position: round + 1 in whose commit it is; 0: in none */
	size_t n_committed;
};
/* What honest members have said of lines (sim_lines.c), bytes/s; `most` 0: nothing. */
struct sim_range {
	uint64_t least, most;
};
struct sim_lines {
	bool lied[SIM_MAX_WORKERS];            /* about lines, at any time */
	struct sim_range said;                 /* of their own, in either direction */
	struct sim_range got[SIM_MAX_WORKERS]; /* in receipts, by the host that sent */
	struct sim_range got_from_honest;      /* from any that does not lie */
};
/* Addresses of a member that were recorded, and how often they changed since this coordinator
 * started (sim_candidates.c). */
struct sim_moves {
	struct candidate_ref at[NET_MAX_CANDIDATES];
	uint8_t n;
	uint32_t changes;
};
struct sim_oracle {
	struct sim_reads reads;
	struct sim_means means;
	struct global_state global; /* the run as it must be */
	uint64_t n_committed, term;
	bool in_last[SIM_MAX_WORKERS]; /* hosts of the latest commit's participants */
	uint64_t snapshot_round;       /* the latest that was vouched for */
	struct rv_hash digest[SIM_MAX_ROUNDS], full[SIM_MAX_ROUNDS + 1], chain[SIM_MAX_ROUNDS + 1];
	float *theta[SIM_MAX_ROUNDS + 1], *v[SIM_MAX_ROUNDS + 1];
	struct sim_contribution *contributions; /* newest first */
	struct sim_roster *rosters;
	uint64_t last_seq;
	uint8_t *last_document;     /* (NET_MAX_DOCUMENT_BYTES) */
	size_t last_document_bytes; /* 0: none yet */
	struct sim_residual residuals[SIM_MAX_WORKERS];
	uint16_t *counted[SIM_MAX_WORKERS]; /* (step id, fragment) -> round + 1 in whose commit it is */
	size_t cap_counted[SIM_MAX_WORKERS];
	uint32_t member_of[SIM_MAX_WORKERS]; /* as acknowledged; NET_NO_MEMBER: not yet */
	int16_t host_of[SIM_MAX_WORKERS];    /* by member number; SIM_NOBODY */
	struct sim_told told[SIM_MAX_WORKERS];
	uint64_t uplinks[SIM_MAX_WORKERS][2]; /* bytes/s: the last two different ones of its reports */
	struct sim_lines lines;
	struct sim_moves moves[SIM_ORDINARY];
	int64_t moves_from_us;
	struct sim_given given[SIM_ORDINARY];
	uint64_t last_head; /* of the latest document: what it says to all alike */
	bool stranded;      /* a ban has left a run that cannot end (sim_oracle_end.c) */
	bool under_way;     /* one round may be committed all the same, as it had begun before that */
};
void oracle_init(struct sim *s);

/* ---- forms of contributions (sim_forms.c) ---- */

/* Returns the bytes of a contribution by the codec that needs most. */
size_t forms_most_bytes(const struct global_config *g);
/* Returns how a member's contribution is sent, as a document says. */
struct contribution_form forms_of(const struct document *d, uint32_t member);
/* Returns true if such a contribution to `round` has the chunk. */
bool forms_has(const struct contribution_form *f, uint64_t round, uint32_t chunk);
void forms_report(struct sim *s, int host, const struct report *rep); /* reached the coordinator */
/* Judges the forms of a roster that has become durable. */
void forms_record(struct sim *s, const struct core_record *rec);
/* A participant of a document is to send as its record says. */
bool forms_agree(const struct sim_participant *p, const struct member_ref *m);
/* Decodes chunk `c` of a contribution, as it is sent in this form, to `x` (n). Returns the sum of
 * its squares. */
double forms_sent(const struct sim *s, const uint8_t *encoded, const struct contribution_form *f, uint64_t round,
				  uint32_t c, float *x);
/* Adds to `left`, (n) what the encoding of the contribution left, what its form left besides. */
void forms_leave(struct sim *s, const uint8_t *encoded, const struct contribution_form *f, uint64_t round, float *left);

/* ---- lines (sim_lines.c) ---- */

void lines_report(struct sim *s, int host, const struct report *rep); /* reached the coordinator */
/* Judges what the lines of a roster that has become durable count with. */
void lines_record(struct sim *s, const struct core_record *rec);

/* ---- residuals of means (sim_means.c) ---- */
void means_open(struct sim *s, int host); /* a process starts; its state is loaded */
bool means_left(void *ctx, struct blob **out);
void means_commit(void *ctx, uint64_t round, uint32_t attempt);
void means_forget(void *ctx);
void means_oracle_init(struct sim *s);
void means_oracle_release(struct sim *s);
void means_begin(struct sim *s, int host, const struct document *d); /* an attempt */
/* Returns what the mean of chunk i of r's round was encoded with: *room, or NULL. */
const struct feedback *means_oracle_of(struct sim *s, const struct sim_roster *r, uint32_t i, struct feedback *room);
void means_oracle_commit(struct sim *s, const struct sim_roster *r);
void means_oracle_rollback(struct sim *s);
void oracle_loses_residual(struct sim *s, int host);   /* its process has none from now on */
void oracle_resumes_residual(struct sim *s, int host); /* another process has what was saved, or none */
void oracle_forgets_residuals(struct sim *s);
void oracle_encoded(struct sim *s, int host);
/* Takes its contribution, sent in this form, for one of the mean. */
void oracle_adopts(struct sim *s, int host, uint64_t round, const struct contribution_form *form);
void oracle_commits_residual(struct sim *s, const struct sim_contribution *c, const struct contribution_form *form);
void oracle_contribution(struct sim *s, int host);                /* at the start of an attempt */
void oracle_record(struct sim *s, const struct core_record *rec); /* became durable */
/* Is about to be announced to a host; `own`: each member has another one. */
void oracle_document(struct sim *s, int host, const uint8_t *bytes, size_t n, bool own);
/* Returns the host of a member; SIM_NOBODY. */
int oracle_host_of(const struct sim *s, uint32_t member);
/* Encodes the mean over the roster in `out`, as it must be (sim_oracle_mean.c). */
bool oracle_mean(struct sim *s, const struct sim_roster *r, const struct sim_contribution *const *from, uint8_t *out);
void oracle_applied(struct sim *s, int host); /* or loaded */
void oracle_installed(struct sim *s, int host);
/* Its state is not the run's, or was not when it told its full hash: it may take itself for
 * wrong. */
bool oracle_is_wrong(const struct sim *s, int host);
void oracle_full_hash(struct sim *s, int host, uint64_t round,
					  const struct rv_hash *hash);                  /* is about to be told to the core */
void oracle_rollback(struct sim *s, const struct core_record *rec); /* became durable */
/* A worker takes itself for wrong. */
void oracle_wrong_state(struct sim *s, int host, const char *text);
void oracle_finished(struct sim *s, int host);
void oracle_named(struct sim *s, uint32_t member); /* by the coordinator: its full hash is not the majority's */
void oracle_member(struct sim *s, int host, uint32_t member); /* was acknowledged */
void oracle_bytes(struct sim *s, int host);                   /* the all-reduce is over; calm universes only */
/* The full hash of `g`: what the run's is where the bits are the same. */
struct rv_hash oracle_full_hash_of(const struct sim *s, const struct global_state *g);
/* Without the files of `host` the run's state can still be had from disks: a snapshot and every log
 * entry since. */
bool oracle_others_hold_the_run(const struct sim *s, int host);
void oracle_release(struct sim *s);

/* sim_oracle_leases.c: a step reads a sequence; a round is committed, rounds are taken back; the
 * universe ends. */
void oracle_reads(struct sim *s, int host, uint64_t number, uint64_t position);
void oracle_leases_commit(struct sim *s, const struct core_record *rec);
void oracle_leases_rollback(struct sim *s, uint64_t from_round);
void oracle_leases_end(struct sim *s);
void oracle_leases_release(struct sim *s);

/* ---- runs that cannot end (sim_oracle_end.c) ---- */

void oracle_bans(struct sim *s); /* a member was banned */
/* Judge that no round is committed, or is to be again, in a run that cannot end. */
void oracle_stranded_commit(struct sim *s, uint64_t round);
void oracle_stranded_rollback(struct sim *s);
/* All that are left wait. */
void oracle_stranded_end(struct sim *s);

/* sim_oracle_mesh.c: what the mesh may do */
void oracle_frame(struct sim *s, int host, int peer);   /* came, as if from `peer` */
void oracle_link_up(struct sim *s, int host, int peer); /* SIM_NOBODY: of a member that does not exist */
void oracle_link_down(struct sim *s, int host, int peer, enum rv_err why, const char *text);
void oracle_trouble(struct sim *s, int host, enum rv_err why, const char *text); /* something that became no link */
void oracle_mesh_start(struct sim *s);
void oracle_dial(struct sim *s, int host, int peer, const struct sim_where *to);
/* A relay has the host and `peer` dial each other at one moment; the host's mesh dials. */
void oracle_opens(struct sim *s, int host, int peer, int relay, const char *at);
void oracle_punches(struct sim *s, int host, int peer, bool v6);
void oracle_opening_over(struct sim *s, int a, int b);
/* The host pauses or goes on: its openings lead to no link. */
void oracle_pauses(struct sim *s, int host);
/* The host takes the relay for one that connects nobody. */
void oracle_bad_relay(struct sim *s, int host, int relay, const char *text);
void oracle_relay_fault(struct sim *s, int host, int relay, const char *text); /* what a relay sends is refused */
void oracle_asks(struct sim *s, int host);                                     /* its mesh asks for another route */
void oracle_written(struct sim *s, int host, size_t n);

#endif
