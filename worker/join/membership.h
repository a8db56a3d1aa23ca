/* membership.h: what a worker remembers of having joined, in its directory: so the second start needs no link.
 *
 *     identity.key   Ed25519 seed (net/identity.h)      run.link   the invite link, without the token; mode 0600
 *     member.conf    member number, ticket, name, data    run.conf   the run's configuration, as the coordinator sent
 * it
 *
 * run.conf is written last: when it is there, the worker is a member.
 */
#ifndef RV_WORKER_JOIN_MEMBERSHIP_H
#define RV_WORKER_JOIN_MEMBERSHIP_H

#include "base/run_config.h"
#include "net/control/control.h"
#include "net/identity.h"
#include "net/invite.h"

#include <stdbool.h>

struct membership {
	struct identity identity;
	struct invite invite; /* where and which run; the token only before the join */
	bool joined;
	uint32_t member;
	uint8_t ticket[NET_SIG_BYTES];
	uint64_t term;             /* in which the state here was made: rollbacks of the run that it has followed */
	char name[NET_NAME_BYTES]; /* what the run knows it by: told at the join; "": not known */
	char data[1024];           /* where the training text is */
	char tokenizer[512];       /* "": none was given; "bytes"; or its file */
	char config_text[NET_MAX_CONFIG_BYTES];
	struct run_config config;
	struct rv_hash run_hash;
};

/* Loads what DIR has, makes the key when there is none. `link` (NULL: none given) must be for the same run as what is
 * stored; it may bring a new address. RV_E_INVALID: neither a link nor a stored one, or another run. */
enum rv_err membership_load(const char *dir, const char *link, struct membership *m, struct rv_errtext *et);
/* Takes over the coordinator's answer, checked (run id, run hash, ticket, configuration), and stores everything.
 * RV_E_PROTOCOL, RV_E_CORRUPT, RV_E_AUTH, and what run_config_parse refuses: the answer is not of this run;
 * RV_E_FULL, RV_E_IO: it could not be stored. */
enum rv_err membership_join(const char *dir, struct membership *m, const struct join_reply *reply,
							struct rv_errtext *et);
/* Stores a changed link or data source. RV_E_FULL, RV_E_IO; RV_E_RANGE: too long. */
enum rv_err membership_store(const char *dir, const struct membership *m, struct rv_errtext *et);
void membership_release(struct membership *m);

#endif
