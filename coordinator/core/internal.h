/* internal.h: the functions behind core.h, shared by the files of this folder and included by no
 * other. Their state is in state.h.
 *
 * core.c         joins, reports, bans, time: what comes in
 * slots.c        which members are in memory, and where; which one gives way to another
 * queue.c        decisions waiting to be durable
 * record.c       ... and what a durable one changes (live and in replay: the same code)
 * members.c      which members are alive, hold the state, have a contribution
 * rivals.c       whose reports count when two processes have one key
 * roster.c       OPEN: when the roster is frozen
 * slow.c         ... which members stay out of it, because of their lines
 * arrivals.c     ... and for which members that are catching up it waits
 * exclusion.c    ... which members stay out, or are not waited for, because of what they have cost
 * reopen.c       ... again, after a roster of none
 * votes.c        REDUCE: votes, commit, the next attempt
 * deadline.c     REDUCE: how long an attempt may take
 * majority.c     ... and how long a majority waits for the other votes
 * disputes.c     REDUCE: votes that differ, and votes of few
 * disputes_rows.c ... in two rows
 * dispute_lists.c ... and what participants show of them
 * proofs.c       proofs of equivocation
 * signed_roots.c roots of contributions, and members that sign two
 * accusations.c  REDUCE: who accuses whom
 * suspects.c     ... and who is believed
 * pairs.c        which members reach each other
 * odds.c         which accuse each other alone, or with few
 * owners.c       which can own chunks, by that
 * apart.c        ... in a roster of several rows
 * meetings.c     ... and in its columns
 * deal.c         ... and who shares a row there
 * notice.c       the notice in a reply to a member's report
 * ownership.c    which member owns which chunks
 * shares.c       ... and how many
 * kept_owners.c  ... and how many stay with their owner from round to round
 * kept_chunks.c  ... and which
 * rows.c         ... in a roster of several rows
 * leases.c       which sequences of the text each member reads
 * audits.c       which averages members check, and what follows
 * scores.c       whose training members check, and what follows
 * audits_rows.c  the same in rosters of several rows
 * evasion.c      members that keep their auditors away
 * reputation.c   strikes, quarantine and appeals; and how much newcomers weigh
 * snapshot.c     which full hash the majority vouches for
 * standstill.c   ... and which members vote on it when too few have the state
 * past.c         committed rounds and vouched snapshots, to go back to
 * rollback.c     which members still hold the state; committed rounds are taken back
 * houses.c       which members are in one house
 * document.c     what is announced
 * views.c        ... to each member, where one document for all would be too long
 * relays.c       the relays that documents list
 * invariants.c   what must hold of the state after every record and step */
#ifndef RV_COORDINATOR_CORE_INTERNAL_H
#define RV_COORDINATOR_CORE_INTERNAL_H

#include "coordinator/core/state.h"

/* ---- core.c ---- */

/* Does what follows from a change: decisions, then the document. */
void core_step(struct core *c, int64_t now_us);
/* Logs an event of the member in `slot`: each type once per member and (round, attempt), but for
 * ALIVE, DEAD and LEFT. */
void core_say(struct core *c, enum core_event_type type, uint32_t slot, uint64_t round);
/* Does the same, with core_event.other. */
void core_say_of(struct core *c, enum core_event_type type, uint32_t slot, uint64_t round, uint32_t other);
void core_say_all(struct core *c, enum core_event_type type, uint64_t round); /* about no member */
void core_say_pair(struct core *c, uint32_t slot, uint32_t other);            /* APART */

static inline bool core_same_places(const struct core_places *a, const struct core_places *b) {
	return candidates_equal(a->at, a->n, b->at, b->n);
}

/* Those that own chunks: sets of places in a row. */
struct core_owners {
	uint64_t all;
	uint64_t relayed; /* those of them that need a relay, while others do not: half a part each */
};

/* ---- slots.c ---- */

/* Rounds without a roster after which a member that a coordinator awaits when it starts may give up
 * its slot: with 4,096 here and rosters of 1,024 all have their turn within 4. */
enum { CORE_GONE_ROUNDS = 16 };

/* Gives a free slot, of which there must be one, to the member of these facts, and returns it.
 * Neither its number nor its key is in memory. */
uint32_t core_slots_take(struct core *c, const struct core_facts *f);
/* Takes the slot from its member: no set and no pair names it from then on. */
void core_slots_give(struct core *c, uint32_t slot);
/* Returns the slot of the member that gives way to another: of those with nothing under way the one
 * that is silent for longest; -1: none. */
int core_slots_find_idle(const struct core *c);
/* Returns true if an AWAY record of the member waits to be durable. */
bool core_is_leaving(const struct core *c, uint32_t slot);
/* Writes what is durable of the member in `slot`. */
void core_facts_of(const struct core *c, uint32_t slot, struct core_facts *out);
void core_facts_of_record(const struct core_record *rec, struct core_facts *out); /* MEMBER, AWAY */

/* ---- queue.c ---- */

/* Appends a record of a decision to the queue and returns it, with id, round and document numbers
 * filled in; there is no other in the queue. */
struct core_record *core_push(struct core *c, enum core_record_type type);
/* Appends a MEMBER or AWAY record; core_has_queue_room. */
void core_push_facts(struct core *c, enum core_record_type type, const struct core_facts *f);
void core_push_seq(struct core *c); /* likewise */
bool core_has_queue_room(const struct core *c, int records);
void core_queue_drop_first(struct core *c);
/* Returns the facts that a record in the queue makes of `key`, which is not in memory; NULL: none
 * does. */
const struct core_facts *core_find_pending(const struct core *c, const uint8_t key[NET_KEY_BYTES]);
/* Count the slots that records in the queue will take, less those that they give up; and the
 * numbers that they will give out. */
int core_count_pending_slots(const struct core *c);
uint32_t core_count_pending_joins(const struct core *c);

/* ---- record.c ---- */

/* Sets `set` to the slots of the participants that a record names; returns false if one is not in
 * memory. */
bool core_named(const struct core *c, const struct core_record *rec, uint64_t *set);
/* Plants the bug that the simulator must find: a decision takes effect before it is durable. */
void core_apply_ahead(struct core *c);
/* Asserts that a new roster can be applied, before it is durable: a core that wrote one that cannot
 * would not start again. */
void core_check_roster(const struct core *c, const struct core_record *rec);
/* Applies a durable record. RV_E_CORRUPT: it cannot follow the records before it. */
enum rv_err core_apply(struct core *c, const struct core_record *rec, struct rv_errtext *et);

/* ---- members.c ---- */

/* Set `out` to the members of which `is` is true; to the participants, by roster place. Return
 * their number. */
typedef bool core_is(const struct core *c, const struct core_member *m);
int core_members_that(const struct core *c, core_is *is, uint64_t *out);
int core_participants_that(const struct core *c, core_is *is, uint64_t *out);
int core_count_that(const struct core *c, core_is *is);
/* Returns true if `is` is true of so many; looks at no more of them. */
bool core_are_that(const struct core *c, core_is *is, int many);
bool core_alive(const struct core *c, const struct core_member *m);
/* Returns true if `m` is alive, and neither banned, nor distrusted by its peers, nor leaving. */
bool core_available(const struct core *c, const struct core_member *m);
static inline bool core_is_banned(const struct core *c, const struct core_member *m) {
	(void)c;
	return m->banned;
}
static inline int core_count_available(const struct core *c) {
	return core_count_that(c, core_available);
}
/* Returns true if the disk of `m` takes results of rounds, as far as is known: else it cannot vote,
 * and no round begins with it. */
bool core_stores(const struct core_member *m);
bool core_are_able(const struct core *c, int many); /* so many members are available, and can vote */
/* Returns true if the full hash of `m` at the snapshot's round is not the majority's: it must
 * resync until its reports say otherwise. */
bool core_diverged(const struct core *c, const struct core_member *m);
/* Returns true if `m` cuts its round's vector into as many chunks as the run does. */
bool core_right_size(const struct core *c, const struct core_member *m);
/* Returns true if `m` reports that it holds state_hash(round), and is not known to hold other
 * bits. */
bool core_in_sync(const struct core *c, const struct core_member *m);
/* Returns true if `m` is SYNCING, and yet proves the state of the open round: it trains that round
 * again, as its contribution was unusable. It is not waited for, but it holds the state. */
bool core_spoiled(const struct core *c, const struct core_member *m);
/* Returns true if the encoded outer gradient of `m` for the round is ready to be reduced. */
bool core_contributes(const struct core *c, const struct core_member *m);
/* Returns true if the member holds the result of the last commit, which it took part in, by its
 * last report: one of before that commit, or one while it applies it. A member that came back
 * without that result (killed before its vote, an empty disk) is behind as any other is, and
 * reports it: SYNCING, and no proof. */
bool core_about_to(const struct core *c, uint32_t slot);
/* Returns the time from which a round does not wait for `m`, unless it reports again. */
int64_t core_silent_at(const struct core *c, const struct core_member *m);
/* Returns the time from which the address of `m` may be recorded again: each change is a record,
 * and a document for all members. */
int64_t core_moves_at(const struct core_member *m);
void core_count_move(struct core_member *m, int64_t now_us);
/* Returns true if a freeze waits for the member: it trains this round, or is about to. */
bool core_waited_for(const struct core *c, const struct core_member *m);
/* Returns true if `m` is core_spoiled, and a round that would need an excluded member waits for it
 * instead. */
bool core_trains_again(const struct core *c, const struct core_member *m);
/* Sets `out` to the available members with core_contributes; returns their number. */
int core_contributors(const struct core *c, uint64_t *out);
/* Call it before c->now_us becomes `now_us`. Counts members that were alive as having reported now,
 * if the coordinator itself was away. */
void core_forgive_own_absence(struct core *c, int64_t now_us);
/* Logs the members that came alive and those that died. */
void core_watch_liveness(struct core *c);

/* ---- rivals.c ---- */

/* Returns true if `rep` is older than what is known. A machine's clock may have been set back
 * between two starts of a worker: if `m` was silent for long, or has hung up, another process is
 * believed whatever its boot. */
bool core_is_stale(const struct core *c, const struct core_member *m, const struct report *rep, int64_t now_us);
/* Follows the process of `rep`, which is not stale, before it becomes the last report of `m`. */
void core_follow(struct core_member *m, const struct report *rep);
/* Takes a stale report. RV_OK: ignore it; RV_E_AUTH: its process lives beside the one that is
 * followed. */
enum rv_err core_stale_report(struct core *c, uint32_t slot, const struct report *rep, int64_t now_us,
							  struct rv_errtext *et);

/* ---- roster.c, votes.c, suspects.c, snapshot.c: decisions. At most one record each. ---- */

enum { CORE_ACCUSATIONS = NET_MAX_ROSTER * NET_MAX_ROW };
/* Which participants accuse which, by roster place, in their last reports. Neither accusers nor
 * accused are in core_missed. Those of `i` are out[out_first[i]..out_first[i + 1]), its accusers
 * in[in_first[i]..]: ascending. */
struct core_accusations {
	int n;                               /* participants */
	int n_all;                           /* accusations */
	int n_any;                           /* participants that are accused */
	uint64_t present[CORE_ROSTER_WORDS]; /* those that are not missed, and not put away since */
	int out_first[NET_MAX_ROSTER + 1], in_first[NET_MAX_ROSTER + 1];
	uint16_t out[CORE_ACCUSATIONS], in[CORE_ACCUSATIONS];
	int accuses[NET_MAX_ROSTER], accusers[NET_MAX_ROSTER]; /* numbers of those that are present */
	int idle[NET_MAX_ROSTER];                              /* those that it accuses, and exchanges nothing with */
	uint64_t at_odds[CORE_ROSTER_WORDS];                   /* those of pairs that are at odds */
	uint64_t doubted[CORE_ROSTER_WORDS];                   /* accusers that are at odds with too many */
	bool whole;                                            /* no participant was missed when they were weighed */
};

void core_decide_roster(struct core *c);
/* Returns a number that is another one in each round, by which members of equal claim draw lots. */
uint64_t core_lot(const struct core *c, uint32_t member);
/* Sets the weights of the roster from its tokens. */
void core_weigh(struct core *c);
/* Takes participant `i`'s last report into account, if it is a vote of the current attempt. */
void core_take_vote(struct core *c, uint32_t i);
void core_decide_reduce(struct core *c);
/* Sets `out` (roster places) to the participants that no longer count: dead, banned, distrusted,
 * leaving, without their contribution, or with a vote that is not believed. */
void core_missed(const struct core *c, uint64_t *out);
/* Reads who accuses whom; returns false if there is no accusation. */
bool core_read_accusations(const struct core *c, struct core_accusations *a);
/* Returns true if participant `i` accuses the other one. */
bool core_has_accused(const struct core_accusations *a, uint32_t i, uint32_t of);
/* Collects accusations; when the time is over, marks the accused as distrusted. */
void core_weigh_suspects(struct core *c);
/* Ends the attempt so that others own what in the next one; returns false if that has happened too
 * often in this round. */
bool core_deal_anew(struct core *c);
/* Ends the attempt, as rows were given different means; returns false as the former, by a count of
 * its own: members that say they are apart do not use it up. */
bool core_void_attempt(struct core *c);
/* Returns the time after the first accusation within which every live member has reported. */
static inline int64_t core_unclear_us(const struct core *c) {
	int64_t us = c->cfg.liveness_us / 2;
	return us > c->cfg.suspect_gather_us ? us : c->cfg.suspect_gather_us;
}
void core_decide_snapshot(struct core *c);
/* Returns state_hash(round) for snapshot_round <= round <= the current one. */
struct rv_hash core_chain_at(const struct core *c, uint64_t round);

/* ---- deadline.c ---- */

/* Returns how long the attempt of the roster may take: document.deadline_ms. */
uint32_t core_attempt_ms(const struct core *c);
/* Returns how many attempts of the round have run into their deadline, as the present one ends. */
uint8_t core_count_overran(const struct core *c);
/* Takes that from the record of a roster. */
void core_take_overran(struct core *c, const struct core_record *rec);
/* Returns the time at which the coordinator ends the attempt by itself, without any accusation. */
int64_t core_overdue_at_us(const struct core *c);
/* Distrusts the participants that hold the attempt up past that time; returns false if there are
 * none. */
bool core_end_overdue(struct core *c);

/* ---- majority.c ---- */

/* Returns true if so many equal votes decide the attempt. */
bool core_is_majority(const struct core *c, int votes);
/* Notes whether there are so many; the time of a majority begins with the first call with one. */
void core_note_majority(struct core *c, int votes);
/* Returns true if a majority of equal votes is to wait for one of the participants in `present`
 * that are not in `votes`. */
bool core_majority_waits(const struct core *c, const uint64_t *present, const uint64_t *votes);
int64_t core_majority_waits_until_us(const struct core *c); /* INT64_MAX: there is no majority */
/* Returns how long a majority waits for what others say. There must be one. */
int64_t core_majority_wait_us(const struct core *c);
/* Returns true if the participants beside so many accusers may still make a majority. */
bool core_may_be_outvoted(const struct core *c, int accusers);

/* ---- disputes.c ---- */

enum core_settling {
	CORE_SETTLING, /* that takes time, or a record of it waits */
	CORE_SETTLED,  /* by votes that no longer count */
	CORE_UNSETTLED /* it cannot be settled, or a majority waits no longer for it */
};
/* Settles votes of present participants (roster places) that differ: asks two of them, one of the
 * most that are alike, `best`, and one of the others, and weighs what they show. */
enum core_settling core_dispute(struct core *c, const uint64_t *votes, const uint64_t *best);
/* Asks one of few participants that voted alike what it got: a digest that no majority has voted
 * for counts if one of them has shown it. CORE_UNSETTLED: none of them can. */
enum core_settling core_vouch(struct core *c, const uint64_t *alike);
void core_dispute_end(struct core *c); /* a new attempt, or a commit */
/* Returns the time at which those asked are late; INT64_MAX: nobody is asked. */
int64_t core_dispute_until_us(const struct core *c);
void core_disputes_put(const struct core *c, struct document *d);
/* Drops the vote of a participant, and puts it away. */
void core_disbelieve(struct core *c, int place, enum core_event_type why);
/* Returns true if the participant is the process that got the means. */
bool core_has_seals(const struct core *c, int place);
/* Makes the proof that the owner at a place has signed two lists of one scope. */
void core_dispute_proves(struct core *c, int place, const struct seal_scope *scope, const struct seal *a,
						 const struct seal *b);

/* ---- disputes_rows.c ---- */

/* Asks the owners of the chunk in which two rows differ. Returns false if that is not possible:
 * the voters are of one row, or one of the owners is gone, or has not voted. */
bool core_ask_owners(struct core *c, const uint64_t *votes);
/* Makes the attempt void, as these owners cannot show what they gave: those that are here are put
 * away. Returns false if that has happened too often in this round. */
bool core_void_what_differs(struct core *c, const uint64_t *votes);
/* Returns to the voters if one of the owners that were asked is gone. */
void core_watch_owners(struct core *c, const uint64_t *votes);
/* Returns the row whose member is the final owner of a chunk (net/reduce/grid.h). */
int core_final_row(const struct core *c, uint32_t chunk);
/* Takes what an owner shows that was asked: its vote, sealed by its row (`seals`). */
enum rv_err core_owner_shows(struct core *c, int k, const struct evidence *e, const struct seal seals[NET_MAX_ROW],
							 struct rv_errtext *et);

/* ---- proofs.c ---- */

/* Applies a PROOF record; returns NULL, or why it cannot follow the records before it. */
const char *core_apply_proof(struct core *c, const struct core_record *rec);
void core_note_banned(struct core *c, uint32_t member, bool banned); /* record.c */
/* Returns true if one more member can be banned, beside those whose bans are not durable yet. */
bool core_has_ban_room(const struct core *c);
/* Makes a record of a proof that holds. */
void core_push_proof(struct core *c, const struct equivocation *e);
/* Takes a proof that a member shows. RV_E_INVALID: it does not hold, or is too old. RV_OK while
 * another record waits, too: it is shown again. */
enum rv_err core_take_proof(struct core *c, const struct equivocation *e, struct rv_errtext *et);
/* Returns true if the attempt is void: a participant of it is proven to have equivocated in it. */
bool core_attempt_is_void(const struct core *c);
void core_proofs_put(const struct core *c, struct document *d);
/* Returns true if a proof that holds bans its member: it is not banned yet, nor was for the
 * same. */
bool core_proof_counts(const struct core *c, const struct equivocation *e);

/* ---- signed_roots.c ---- */

/* Returns RV_E_INVALID if the member has not signed a root that its report commits to. */
enum rv_err core_check_signed(const struct core *c, const struct core_member *m, const struct report *rep,
							  struct rv_errtext *et);
/* Compares the roots of the member's last report with those that it has signed for the same
 * before. */
void core_note_signed(struct core *c, uint32_t slot);
/* Records the proof that a member has signed two, if there is one. */
void core_decide_two_roots(struct core *c);

/* ---- exclusion.c ---- */

/* Count members that ended an attempt of this round, and members that took part in a round without
 * that. From records alone. */
void core_blame(struct core *c, const uint64_t *members);
void core_absolve(struct core *c, const uint64_t *members);
void core_forget_blame(struct core *c);
/* Logs which of `members` will stay out of later rounds when core_blame is called. */
void core_say_blamed(struct core *c, const uint64_t *members);
/* Notes the participants that are gone, as the attempt ends without them. */
void core_note_gone(struct core *c);
/* Notes a participant that its peers have put away. */
void core_note_fallen(struct core *c, uint32_t slot);
/* Counts a member that was put away as gone, if it reports as another process, with this boot. */
void core_note_back(struct core *c, struct core_member *m, uint64_t boot);
void core_count_gone(struct core *c); /* that are noted, of the round that is committed */
bool core_is_excluded(const struct core *c, const struct core_member *m);
/* Returns true if rosters of the round without the member have failed. */
bool core_may_be_needed(const struct core *c, uint32_t slot);
/* Logs which members of the roster are in quarantine, once for each. */
void core_say_needed(struct core *c, const struct core_record *rec);
/* Drops the excluded members from `ready`, as far as at least min_workers are left and the round
 * has not been opened again. */
void core_drop_excluded(const struct core *c, uint64_t *ready);
/* Returns true if open rounds have waited for `m` in vain, and no longer do. */
bool core_waits_no_more(const struct core *c, const struct core_member *m);
/* Returns true if majorities have waited for the vote of `m` in vain, and no longer do. */
bool core_is_mute(const struct core *c, const struct core_member *m);
/* Counts the participants in `present` that are not in `votes` (roster places): as at odds with
 * those that they accuse, if these are few, else as mute, if a majority has waited for them. The
 * commit follows. */
void core_count_votes(struct core *c, const uint64_t *present, const uint64_t *votes);
/* Forgets which members rounds waited for in vain, and which one accusation put away: the rounds
 * are taken back. */
void core_forget_waits(struct core *c);
/* Counts the members that the round has waited for in vain, once `roster` is frozen. */
void core_count_waits(struct core *c, const uint64_t *roster);

/* ---- reopen.c ---- */

/* Returns the time before which the open round gets no roster. */
int64_t core_reopened_until_us(const struct core *c);
/* Returns true, and logs UNLIKE, if no majority has voted alike and leaving a member out may help.
 * `best`: the size of the largest set of equal votes; `votes`: number of votes. */
bool core_splits(struct core *c, int best, int votes);
/* Drops from `ready` the member whose turn it is to be left out after that. */
void core_drop_next(const struct core *c, uint64_t *ready);
void core_note_reopened(struct core *c); /* counts a roster of none */
/* Notes that this attempt has shown something that the next roster depends on. The number per round
 * is limited: a member that makes such things up cannot cause rosters without end. */
void core_note_lesson(struct core *c);
/* Closes the round: committed over this set of members; or given up, NULL. */
void core_close_reopened(struct core *c, const uint64_t *participants);

/* ---- standstill.c ---- */

void core_watch_standstill(struct core *c);
int64_t core_standstill_us(const struct core *c); /* duration from which a standstill counts */
bool core_stands_still(const struct core *c);
/* Sets `out` to the members whose full hash counts then. */
void core_electors_standing_still(const struct core *c, uint64_t *out);

/* ---- pairs.c ---- */

/* Counts a strike of participants `i` and `j` (roster indices), which are at odds with each other
 * only. Returns false if they may merely not reach each other. */
bool core_pair_strike(struct core *c, uint32_t i, uint32_t j);
/* Returns true if data passes between two participants (slots) of the roster. */
bool core_exchange(const struct core *c, uint32_t slot_a, uint32_t slot_b);
/* Notes the pairs that have exchanged data in the all-reduce of `participants`, to its end. */
void core_pairs_met(struct core *c, const uint64_t *participants);
/* Forgets the pairs of a member whose address has changed, that have not met since: it may be
 * reachable there. */
void core_pairs_moved(struct core *c, uint32_t slot);
void core_pairs_forget(struct core *c, uint32_t slot); /* those of one that leaves the memory */
/* Drops from `ready` the fewest that must be left out for one of the rest to be linked with all
 * others, and at odds with none for long, if at least min_workers are left. */
void core_drop_apart(const struct core *c, uint64_t *ready);
/* Calls `take` for each two of `set` that cannot exchange data, once. */
typedef void core_take_pair(void *ctx, uint32_t slot_a, uint32_t slot_b);
void core_each_apart(const struct core *c, const uint64_t *set, core_take_pair *take, void *ctx);
bool core_are_apart(const struct core *c, uint32_t slot_a, uint32_t slot_b);
/* Returns true if one of the two reports a link with the other, or both do. */
bool core_are_linked(const struct core *c, uint32_t slot_a, uint32_t slot_b);
/* Returns true if they are apart, neither reports a link with the other, and they have neither met
 * since they cost an attempt nor cost more than show it. */
bool core_may_be_apart(const struct core *c, uint32_t slot_a, uint32_t slot_b);
/* Returns true if the member exchanges data with one of `set` through a relay, as both report. */
bool core_is_relayed(const struct core *c, uint32_t slot, const uint64_t *set);
/* Sets `out` to the members that the one in `slot` does not reach, nor they it; *until_round: where
 * attempts have shown it, the round that tries again; else 0. Returns their number. */
int core_apart_from(const struct core *c, uint32_t slot, uint64_t *out, uint64_t *until_round);
/* Drops those of `set` from it that have most likely ended. */
void core_drop_ended(const struct core *c, uint64_t *set);
/* Returns true if, were all present members ready, a round would begin without the member for that
 * reason. */
bool core_left_out_apart(const struct core *c, uint32_t slot);

/* ---- odds.c ---- */

/* Notes that participant `i` accuses `j`, alone or with few others; `outvoted`: and that a majority
 * has voted over it. */
void core_odds_note(struct core *c, uint32_t i, uint32_t j, bool outvoted);
/* Sets `out` to the places of those that have been at odds with participant `i`, just now too. */
void core_odds_with(const struct core *c, uint32_t i, uint64_t *out);
/* Drops those of `ready` from it whom more doubt than members are left that nobody doubts. */
void core_drop_at_odds(struct core *c, uint64_t *ready);
/* Returns the number of others with whom the member in `slot` has been at odds in the last rounds,
 * if both have reported since, the accused one as the same process. */
int core_odds_of(const struct core *c, uint32_t slot);
/* Calls `take` for each two of `set` that have been at odds in two rounds and more, and are not
 * known to be apart, once. */
void core_each_lasting_odds(const struct core *c, const uint64_t *set, core_take_pair *take, void *ctx);
/* Sets `out` to the slots of those that the one in `slot` has so been at odds with. */
void core_lasting_odds_with(const struct core *c, uint32_t slot, uint64_t *out);
/* Returns true if these are so many that it is to blame when it is put away, or outvoted. */
bool core_odds_blame(const struct core *c, uint32_t slot);
/* Returns how many of `n` members in several rows are believed if they agree: an eighth, at least
 * 4, at most 16. */
int core_odds_many(int n);
/* Marks those of a record's participants that have been at odds as apart. */
struct apart;
void core_odds_part(const struct core *c, const struct core_record *rec, struct apart *a);
void core_odds_forget(struct core *c, uint32_t slot); /* those of one that leaves the memory */

/* ---- meetings.c ---- */

/* The rows and columns that a roster's record makes. */
struct core_outcome {
	struct core_rows rows;
	int16_t index[NET_MAX_ROSTER]; /* of the participant at each place of these rows, in the record */
};
/* Makes them as applying the record would, a first attempt in rows or the next one of such; a row
 * that fails there has nobody. */
void core_foresee(const struct core *c, const struct core_record *rec, struct core_outcome *out);
/* Returns true if data passes between two members then. */
bool core_will_exchange(const struct core_outcome *o, const struct core_record *rec, uint32_t a, uint32_t b);
/* Takes one of each two of `linked`, indices of the record's participants, that are apart and would
 * own the same column, from them; returns false if there are none. The record says who owns. */
bool core_part_meeting(const struct core *c, const struct core_record *rec, const struct apart *a, uint64_t *linked);

/* ---- owners.c ---- */

/* Drops from `ready`, the members of a roster in several rows, those that are apart from so many
 * owners that they would cost their row more than themselves; at least min_workers are left. */
void core_drop_apart_from_owners(const struct core *c, uint64_t *ready);
/* Puts the participants of a ROSTER record of a round's first attempt, in ascending order, into the
 * order in which rows are cut from them. With one row nothing changes. */
void core_deal(const struct core *c, struct core_record *rec);
/* Writes into a ROSTER record which of its participants may own chunks: those that are linked with
 * all that they would deal with, as far as is known, without a relay if those are at least a
 * quarter of the roster; the whole roster if nobody is linked. */
void core_put_owners(const struct core *c, struct core_record *rec);
/* Returns true if a participant accuses one that it is known to be apart from, and other members
 * can own the chunks. */
bool core_blames_its_owners(const struct core *c, const struct core_accusations *a);

/* ---- audits.c ---- */

bool core_has_audits(const struct core *c);
/* Draws the audits of the roster's round, which is committed with this digest. */
void core_audits_commit(struct core *c, const struct rv_hash *digest);
/* Drops those of rounds from `to_round` on, which are taken back. */
void core_audits_rollback(struct core *c, uint64_t to_round);
/* Takes the verdicts in the last report of the member in `slot`. */
void core_take_verdicts(struct core *c, uint32_t slot);
/* Weighs verdicts, asks more auditors; bans members, and takes the run back. The queue is empty. */
void core_decide_audits(struct core *c);
/* Returns true if orders have changed since the last call. */
bool core_audits_changed(struct core *c);
/* Writes what the member in `slot` audits into its document. */
void core_audits_put(const struct core *c, uint32_t slot, struct document *d);

/* Returns the secret of a round, from which its draws follow. */
struct rv_hash core_audit_secret(const struct core *c, uint64_t round);
/* Returns true if the member is here, or expected, and may be believed. */
bool core_may_audit(const struct core *c, uint32_t member);

/* ---- audits_named.c ---- */

/* Returns the chunk of the roster's round, which is committed with this digest, that voters name
 * (report.stands_out); -1: none. */
int64_t core_named_chunk(const struct core *c, const struct rv_hash *digest, const struct rv_hash *seed);

/* ---- audits_rows.c ---- */

/* Draws what of the chunk of a->chunk is audited; returns the place of the participant that made
 * it; -1: all rows are too short. */
int core_draw_in_rows(const struct core *c, const struct rv_hash *seed, uint32_t number, struct core_audit *a);
/* Takes what the member in `slot` shows as a final owner. RV_E_INVALID: it is not signed. */
enum rv_err core_take_sums(struct core *c, uint32_t slot, const struct shown_sums *s, struct rv_errtext *et);
/* Returns true if the member has to show sums for the audit. */
bool core_has_to_show(const struct core_audit *a, uint32_t member);
/* Returns true if the audit waits for that. */
bool core_awaits_sums(const struct core *c, struct core_audit *a);
/* Notes which final owners that have shown nothing are in the committed roster; counts the audit
 * against one of them, if its window is over. */
void core_note_unshown(struct core *c);
void core_unshown(struct core *c, const struct core_audit *a);
/* Return an auditor's order; write what the member in `slot` has to show into its document. */
struct audit_order core_order_of(const struct core_audit *a);
void core_sums_put(const struct core *c, uint32_t slot, struct document *d);
/* Adds to a list of `n` slots, up to `most`, the members with which the one in `slot` has audits in
 * rows between them; returns how many there are then. */
int core_audits_partners(const struct core *c, uint32_t slot, uint16_t *out, int n, int most);

/* ---- scores.c ---- */

bool core_has_scores(const struct core *c);
/* Draws the audits of training of the roster's round, which is committed with this digest; what its
 * participants have read is still leased to them. */
void core_scores_commit(struct core *c, const struct rv_hash *digest);
/* Drops those of rounds from `to_round` on, which are taken back. */
void core_scores_rollback(struct core *c, uint64_t to_round);
/* The member was struck: its open audits, of rounds before that, no longer vouch for any. */
void core_scores_struck(struct core *c, uint32_t member);
/* Takes the measurements, and an appeal, in the last report of the member in `slot`. */
void core_take_scores(struct core *c, uint32_t slot);
/* Weighs measurements, asks more auditors, strikes members. The queue is empty. */
void core_decide_scores(struct core *c);
/* Returns true if orders have changed since the last call. */
bool core_scores_changed(struct core *c);
/* Writes what the member in `slot` scores into its document. */
void core_scores_put(const struct core *c, uint32_t slot, struct document *d);

/* Lists the slots of members that the one in `slot` has open audits of training with, as auditor or
 * author; returns how many. One may be listed twice. */
int core_scores_partners(const struct core *c, uint32_t slot, uint16_t out[NET_MAX_SYNCING]);
/* Notes that another member is in memory, or one no more: documents may name others as partners. */
void core_scores_note_who(struct core *c);

/* Adds a sequence to those of an order; returns false if there is no room. */
bool core_score_reads(struct score_order *o, uint64_t position);

/* ---- repeats.c ---- */

/* Notes with which inner state the participants of the committed round ended it, and reports those
 * whose rounds cannot be repeated: after its audits are drawn. */
void core_note_inner(struct core *c);
/* Makes an order of the committed round one to repeat the steps of the participant at `place`, if
 * that can be done. */
void core_put_repeat(const struct core *c, uint32_t place, struct score_order *o);

/* An auditor's finding about a contribution to training: NONE, it did not get all; BLIND, its own
 * is worth nothing, so that it can measure nothing. */
enum core_look { CORE_LOOK_NONE, CORE_LOOK_WORTHY, CORE_LOOK_WORTHLESS, CORE_LOOK_BLIND, CORE_LOOKS };
enum core_look core_look_of(const struct core_scorer *by);

/* ---- evasion.c ---- */

/* Notes which auditors of open audits of training the committed roster has together with the
 * author. */
void core_note_met(struct core *c);
/* Returns how many auditors the author kept away, for an audit whose window is over; 0: not all, or
 * too few. */
uint32_t core_count_evaded(const struct core_score *s);
/* Returns true if the auditor says that it does not get what it needs, though the author is linked,
 * or might be. */
bool core_says_away(const struct core_scorer *by);
/* Counts an audit of that round which the member in `slot` has evaded, by so many auditors: the
 * second in a row strikes it. */
void core_evade(struct core *c, uint32_t slot, uint64_t round, uint32_t kept_away);

/* ---- reputation.c ---- */

/* Returns true if the next strike bans the member, where enough auditors find it. */
bool core_is_last_chance(const struct core_member *m);
/* Counts a strike of the member in `slot`, for an audit of that round, found by so many auditors;
 * its record follows. Returns true if it is the member's last strike: now, or since before a
 * restart, and not yet appealed. */
bool core_strike(struct core *c, uint32_t slot, uint64_t round, uint32_t found, enum core_strike_reason reason);
/* Take back the strike for that round, or end its appeal without that; the record follows. */
void core_lift_strike(struct core *c, uint32_t slot, uint64_t round);
void core_uphold_strike(struct core *c, uint32_t slot, uint64_t round);
/* Returns true if a strike or the end of an appeal waits for its record. */
bool core_reputation_is_due(const struct core_member *m);
/* Returns its reputation after the first of those that are due: an appeal's end, then a strike. */
struct core_reputation core_struck(const struct core *c, const struct core_member *m);
/* Takes the reputation of a record: what it says is due no more. */
void core_take_reputation(struct core_member *m, const struct core_reputation *r);
/* Returns true if an audit of training may look again at the member's last strike. */
bool core_may_appeal(const struct core *c, const struct core_member *m);
/* Counts the committed round for its participants (slots). */
void core_count_round(struct core *c, const uint64_t *participants);
bool core_in_quarantine(const struct core *c, const struct core_member *m);
/* Notes that an audit found the training of the member in `slot` worthy: in a run with `probation`
 * its first `rounds` rounds count, up to the one that was audited. */
void core_note_worthy(struct core *c, uint32_t slot, uint32_t rounds);
/* Marks the last strike of the member, if it is in memory, as one that has taken the run back. */
void core_spend_strike(struct core *c, uint32_t member);
/* Returns true if the member has not behind it all rounds of the run's `probation`. */
bool core_on_probation(const struct core *c, const struct core_member *m);
/* Returns what a weight becomes by the rounds that the member has behind it. */
uint32_t core_probation_weight(const struct core *c, const struct core_member *m, uint32_t weight);

/* ---- rollback.c ---- */

/* Pushes a rollback to a committed round because of what a member did; returns false if it cannot
 * be returned to. The queue is empty. */
bool core_push_rollback(struct core *c, uint64_t to_round, uint32_t because_of);

/* ---- leases.c ---- */

bool core_has_leases(const struct core *c); /* whether the run has them */
void core_leases_init(struct core *c);
/* Grant to a member that has just come into memory; make free what one has that leaves it. */
void core_leases_join(struct core *c, uint32_t slot);
void core_leases_away(struct core *c, uint32_t slot);
/* Consumes what the roster's contributions have read, and grants its members what they lack. */
void core_leases_commit(struct core *c);
/* Makes free what rounds from `round` on have read. */
void core_leases_rollback(struct core *c, uint64_t round);
/* Applies a LEASES record; returns NULL, or why it cannot follow the records before it. */
const char *core_leases_apply(struct core *c, const struct core_record *rec);
/* Return why the sequences of a ROSTER, of a COMMIT of the roster under way, are impossible; NULL:
 * they are not. Members are in memory. */
const char *core_leases_check_roster(const struct core *c, const struct core_record *rec);
const char *core_leases_check_commit(const struct core *c, const struct core_record *rec);
/* Returns true if what the contribution of `m` has read, by its last report, is leased to it; or if
 * the run has no leases. */
bool core_lease_covers(const struct core *c, const struct core_member *m);
/* Returns the most tokens of a contribution to which `missed` earlier rounds added theirs. */
uint64_t core_tokens_with(const struct core *c, uint64_t missed);
void core_decide_leases(struct core *c);
/* Writes the leases of the member in `slot` into its document. */
void core_leases_put(const struct core *c, uint32_t slot, struct document *d);
/* Returns true if leases have changed, since the last call, by a record that changes nothing else
 * in a document. */
bool core_leases_changed(struct core *c);
void core_leases_check(const struct core *c); /* invariants */

/* ---- past.c ---- */

/* Keeps what `rec` commits; called before c->round moves on. */
void core_past_commit(struct core *c, const struct core_record *rec, const uint64_t *participants);
void core_past_forget(struct core *c, uint32_t slot);
void core_past_snapshot(struct core *c, uint64_t round, const struct rv_hash *hash);
bool core_past_chain(const struct core *c, uint64_t round, struct rv_hash *chain); /* false: not known */
const struct rv_hash *core_past_digest(const struct core *c, uint64_t round);      /* past.first <= round < c->round */
/* Forgets what is after `round`, and resets the fields of `c` to their values when it was opened.
 * Returns false, and changes nothing, if the past is not known that far back. */
bool core_past_return(struct core *c, uint64_t round);
bool core_past_can_return(const struct core *c, uint64_t round); /* whether it would */
/* Returns the first round that it can return to: that of the oldest snapshot that the known rounds
 * reach. */
uint64_t core_past_earliest(const struct core *c);

/* ---- rollback.c ---- */

/* Logs when the state of the round is no longer on any member's disk, and when it is back. */
void core_watch_state(struct core *c);
/* Applies the record; returns NULL, or why it cannot follow the records before it. */
const char *core_apply_rollback(struct core *c, const struct core_record *rec);

/* Returns the time that a member behind others has for its next round, before what it may hold
 * after that counts as lost. */
static inline int64_t core_catch_up_us(const struct core *c) {
	enum { LIVENESS_TIMES = 4 };
	return LIVENESS_TIMES * c->cfg.liveness_us;
}

/* ---- arrivals.c ---- */

/* Notes whether `m` comes or catches up, before `rep` becomes its last report. */
void core_note_arrival(const struct core *c, struct core_member *m, const struct report *rep, int64_t now_us);
/* Returns true if the round waits for members that catch up; all others are ready. False: it begins
 * without them, or there are none. */
bool core_waits_for_arrivals(struct core *c);
/* Ends the wait and counts its time. */
void core_end_arrivals(struct core *c);
/* Returns the latest end of the wait; INT64_MAX: there is none. */
int64_t core_arrival_deadline_us(const struct core *c);

/* ---- receipts.c ---- */

/* Limits the rates of a ROSTER, as its members state them, by what others got from them. */
void core_put_rates(const struct core *c, struct core_record *rec);

/* ---- slow.c ---- */

/* Computes the deadline of an exchange from the members' lines. Does nothing with slow-members =
 * wait. */
void core_watch_lines(struct core *c);
/* Says in a new roster how the members with slow lines send their contributions, and by which
 * deadline. */
void core_put_forms(struct core *c, struct core_record *rec);
/* Makes one participant contribute to all chunks, if those that did are gone. */
void core_keep_one_whole(const struct core *c, struct core_record *rec);
/* Logs the members that begin to send less with this roster. */
void core_say_forms(struct core *c, const struct core_record *rec);
/* Counts after which exchanges lines look slow: the first roster of the next round is durable. */
void core_count_looks(struct core *c);
/* Keeps the figures by which members rest, or send less in a new roster, for people. */
void core_keep_figures(struct core *c, const struct core_record *rec);
/* Marks a participant of a durable roster as slow, if that or the one before it shows that it is.
 * m->rostered_at is still that of the one before. */
void core_recall_line(const struct core *c, struct core_member *m, bool less);
/* Marks the members that the latest roster was without as slow: the records were replayed. */
void core_recall_rests(struct core *c);
struct core_slow core_slow_of(const struct core *c, const struct core_member *m);
/* Returns true if `m` leaves out this round, because its line is slow and its turn not there. */
bool core_rests(const struct core *c, const struct core_member *m);
/* Drops the members that rest from `ready`, unless too few would be left. */
void core_drop_resting(const struct core *c, uint64_t *ready);
/* Logs the members whose rest begins with this roster, a set that they are not in. */
void core_say_resting(struct core *c, const uint64_t *roster);

/* ---- ownership.c ---- */

/* Splits `n_chunks` among the `owners` (indices, not empty) of a roster of `n`, whose lines
 * carry `rates` (core_shares); returns the number of ranges. */
uint16_t core_ownership_split(uint32_t n_chunks, int n, struct core_owners owners, const uint64_t *rates,
							  struct owner_range out[NET_MAX_RANGES]);
/* Hands the chunks of those that are not in `keep` (set of old indices), or no longer in `owners`,
 * to the owners; renumbers them to the new roster, whose owners and rates these are. In place;
 * returns the number of ranges. */
uint16_t core_ownership_hand_over(struct owner_range *ranges, uint16_t n_ranges, uint64_t keep,
								  struct core_owners owners, const uint64_t *rates);
/* Appends [first, first + count) of `owner`, joined to the last range when it continues it; returns
 * the number of ranges. */
uint16_t core_ownership_append(struct owner_range *ranges, uint16_t n, uint32_t first, uint32_t count, uint16_t owner);
enum { CORE_NOBODY = UINT16_MAX };
/* Counts the chunks of each owner; of CORE_NOBODY it counts none. */
void core_ownership_count(const struct owner_range *ranges, uint16_t n_ranges, uint32_t owned[NET_MAX_ROW]);

/* ---- kept_owners.c ---- */

/* Chunks by which a share may differ from the fair one before any move: this part of the fair
 * share, and one. It costs an exchange some 3 % at most. */
enum { CORE_KEPT_PART = 16 };
static inline uint32_t core_kept_band(uint32_t fair) {
	return fair > 0 ? 1 + fair / CORE_KEPT_PART : 0;
}
/* Sets share (n) so that the fewest chunks change their owner of those that `owned` says and those
 * that nobody owns, each share is at most core_kept_band from fair[i], and they add up to
 * `n_chunks`, as `fair` does. */
void core_kept_shares(uint32_t n_chunks, int n, const uint32_t *fair, const uint32_t *owned, uint32_t *share);
/* Divides a roster of one row as the last committed round that exchanged the same chunks was, and
 * moves what must move. Returns false if nothing is kept: nothing is changed then. */
bool core_kept_split(struct core *c, const struct core_record *rec, struct core_owners owners, const uint64_t *rates);
/* Lays out the rows of a round's first attempt; in a run that keeps owners with the columns of the
 * last committed round that exchanged the same chunks, if they are as many and near enough. */
void core_lay_out(const struct core *c, const struct core_record *rec, struct core_rows *rows);
/* Notes the attempt under way as committed. */
void core_kept_note(struct core *c);
/* Forgets all: rounds were taken back. */
void core_kept_forget(struct core *c);
/* Returns the attempt that was committed in the last round that exchanged what this one does; 0:
 * not known. */
uint32_t core_kept_attempt(const struct core *c);

/* ---- kept_chunks.c ---- */

/* Gives each of a roster the chunks that it has in `old`, up to share[i] of them, and deals the
 * others, among them those of CORE_NOBODY, to those that have less. n_old <= CORE_KEPT_RANGES.
 * Returns the number of ranges: at most n_old + 2 x NET_MAX_ROW. */
uint16_t core_kept_chunks(const struct owner_range *old, uint16_t n_old, const uint32_t share[NET_MAX_ROW],
						  struct owner_range out[NET_MAX_RANGES]);

/* ---- shares.c ---- */

/* The most equal parts that an owner has, unless it has more already: an owner holds all
 * contributions to its chunks, so this bounds its memory. */
enum { CORE_SHARE_MOST = 2 };
/* Sets how many of `n_chunks` each of a roster of `n` should own: an owner (`owners`: indices, not
 * empty) at least have[i], the others none. A relayed one gets half of what each other owner gets
 * in equal parts, and no more unless it has more already. `rates`: bytes/s of the slower direction
 * of each one's line, 0: not known. Equal parts if the rates are (about) equal, all unknown, or
 * make no difference. */
void core_shares(uint32_t n_chunks, int n, struct core_owners owners, const uint64_t *rates, const uint32_t *have,
				 uint32_t *share);

/* ---- relays.c ---- */

bool core_same_relay(const struct relay_ref *a, const struct relay_ref *b);
/* Returns true if documents do not name the relay that `m` last reported; returns the time from
 * which they may: each change is a document for all members. */
bool core_station_moved(const struct core_member *m);
int64_t core_station_moves_at(const struct core_member *m);
/* Names the relays that members have reported, as far as it is time. */
void core_follow_stations(struct core *c);

/* ---- houses.c ---- */

/* Puts the member in `slot` into the houses of its addresses; takes it out, before these change and
 * before its slot is given back. */
void core_houses_enter(struct core *c, uint32_t slot);
void core_houses_leave(struct core *c, uint32_t slot);
/* Counts members that have become available, or have ceased to be, and marks those whose private
 * addresses count or not because of that (core_views_touch). */
void core_houses_follow(struct core *c);
/* Returns true if one of the addresses of `m` is a private one. */
bool core_has_private(const struct core_member *m);
/* Returns true if another member, available at the last core_houses_follow, was seen at the same
 * host as the one in `slot`, which has a private address (candidates_share_host). */
bool core_has_housemate(const struct core *c, uint32_t slot);

/* ---- views.c ---- */

/* Marks that how the member in `slot` is reached may have changed. */
void core_views_touch(struct core *c, uint32_t slot);
void core_views_touch_all(struct core *c);
/* Returns true if members have documents of their own: the roster has several rows, or more members
 * are here than a document lists. */
bool core_views_many(const struct core *c);
/* Brings the parts up to date, if members have documents of their own; returns true if one has
 * changed. */
bool core_views_refresh(struct core *c);
/* Puts the lists of the member in `slot` into its document; -1: those of one that takes no part. */
void core_views_put(const struct core *c, int slot, struct document *d);

/* ---- document.c ---- */

/* Returns how the member in `slot` is reached. */
struct member_ref core_ref(const struct core *c, uint32_t slot, uint32_t weight);
/* Return true if the member has what a joiner needs: the state of this round, or the result that
 * leads to it; if it is present, and may have some of the files; if it lacks the state. */
bool core_is_donor(const struct core *c, const struct core_member *m);
bool core_may_have_parts(const struct core *c, const struct core_member *m);
bool core_is_behind(const struct core *c, const struct core_member *m);
/* Returns true if a document lists the i-th of `n` members that are behind: NET_MAX_SYNCING of
 * them, in each round the next ones. */
static inline bool core_lists_behind(const struct core *c, int i, int n) {
	const int first = n > NET_MAX_SYNCING ? (int)(c->round * NET_MAX_SYNCING % (uint64_t)n) : 0;
	return (i - first + n) % n < NET_MAX_SYNCING;
}

/* Announces the current state if it differs from the document and a number for it is durable:
 * lists of members alone at a pace. */
void core_publish(struct core *c);
/* Returns the time from which lists that wait for that are announced; INT64_MAX: none wait. */
int64_t core_lists_at_us(const struct core *c);
/* Makes the document of a core that was just made or rebuilt. */
void core_republish(struct core *c);

/* ---- invariants.c ---- */

/* Asserts what must hold of the state after every record and every step, and that nothing has gone
 * back since the last call. */
void core_check(struct core *c);
/* Asserts that the ranges of the roster cover its chunks exactly, in order, each with an owner. */
void core_check_ranges(const struct core_roster *r);

#endif
