/* link.h: where the invite link comes from. Its token admits anyone who reads it, so there are ways
 * besides the command line, which `ps` shows to everybody. */
#ifndef RV_WORKER_OPTIONS_LINK_H
#define RV_WORKER_OPTIONS_LINK_H

#include "net/invite.h"
#include "worker/options/options.h"

/* The variable that may hold the link. */
#define WORKER_LINK_VARIABLE "RIVULET_LINK"

struct worker_link {
	char text[INVITE_MAX_BYTES]; /* "": none was given */
};

/* Finds the link: the argument; or the first line of --link-file, or of the standard input if that,
 * or the argument, is "-"; or $RIVULET_LINK, which is removed from the environment. Makes the
 * token of the argument unreadable for `ps`. RV_E_INVALID: two ways at once, or no link;
 * RV_E_NOTFOUND and RV_E_IO: the file. */
enum rv_err worker_link_find(const struct worker_options *o, const struct rv_args *args, struct worker_link *out,
							 struct rv_errtext *et);
/* Returns true if a link is given in one of these ways; reads nothing. */
bool worker_link_is_given(const struct worker_options *o, const struct rv_args *args);
/* Checks that one way is used at most, and the argument's syntax. RV_E_INVALID. */
enum rv_err worker_link_check(const struct worker_options *o, const struct rv_args *args, struct rv_errtext *et);

#endif
