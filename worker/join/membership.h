/* membership.h: what a worker's directory remembers of the join, so that the second start needs no
 * link.
 *
 *     identity.key   Ed25519 seed (net/identity.h)
 *     run.link       the invite link, without the token; mode 0600
 *     member.conf    member number, ticket, name, data
 *     run.conf       the run's configuration, as received
 *
 * run.conf is written last: if it exists, the worker is a member. */
#ifndef RV_WORKER_JOIN_MEMBERSHIP_H
#define RV_WORKER_JOIN_MEMBERSHIP_H

#include "base/run_config.h"
#include "net/control/control.h"
#include "net/identity.h"
#include "net/invite.h"
#include "net/serving_cert.h"

#include <stdbool.h>
#include <stdio.h>

struct membership {
	struct identity identity;
	struct invite invite; /* coordinator and run; the token only before the join */
	bool joined;
	uint32_t member;
	uint8_t ticket[NET_SIG_BYTES];
	struct run_trust trust;    /* the run's root key, and the newest serving key that was seen */
	uint64_t term;             /* term of the state here: the rollbacks that it has followed */
	char name[NET_NAME_BYTES]; /* sent at the join; "": not known */
	char data[1024];           /* place of the training text */
	char tokenizer[512];       /* "": none was given; "bytes"; or its file */
	char config_text[NET_MAX_CONFIG_BYTES];
	struct run_config config;
	struct rv_hash run_hash;
	struct rv_hash agreed; /* the run hash that the person agreed to, or that is stored; zero: none yet */
};

/* Loads what `dir` has, and makes the key if there is none. `link` (NULL: none given) must be for
 * the stored run, possibly with a new address. RV_E_INVALID: neither a link nor a stored one, or
 * another run. */
enum rv_err membership_load(const char *dir, const char *link, struct membership *m, struct rv_errtext *et);
/* Reads member, ticket, term, name, data and tokenizer from DIR/member.conf, which only its owner
 * may read. RV_E_NOTFOUND, RV_E_IO; RV_E_INVALID, RV_E_RANGE, RV_E_CORRUPT: it is damaged. */
enum rv_err membership_read_member(const char *dir, struct membership *m, struct rv_errtext *et);
/* Checks the coordinator's answer (run id, run hash, ticket by the key that m->trust believes in,
 * configuration, which must be the one that m->agreed names) and stores it, and m->trust; leaves *m
 * unchanged if it refuses. RV_E_PROTOCOL, RV_E_CORRUPT, RV_E_AUTH and the faults of
 * run_config_parse: the answer is not of this run; RV_E_FULL, RV_E_IO: storing failed. */
enum rv_err membership_join(const char *dir, struct membership *m, const struct join_reply *reply,
							struct rv_errtext *et);
/* Stores a changed link or data source. RV_E_FULL, RV_E_IO; RV_E_RANGE: too long. */
enum rv_err membership_store(const char *dir, const struct membership *m, struct rv_errtext *et);
/* Prints, as comments, the options that member.conf supplies if they are not given (name, data,
 * tokenizer); nothing before the join. */
void membership_print_kept(const char *dir, FILE *out);
void membership_release(struct membership *m);

#endif
