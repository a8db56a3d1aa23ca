/* evil.h: what RIVULET_EVIL tells the patched programs of these tests to do. It is a list of
 * name=value, separated by commas:
 *
 * Its contributions and means (evil_training.c):
 *   from=R,until=R  its contributions are its own before round `from`, and from round `until` on
 *   scale=S         its outer gradient, times S
 *   noise=F         noise of F times its norm, in its place
 *   zero=1          zeros in its place
 *   stale=1         what it gave in the first of these rounds, again and again
 *   copies=S        what the outer optimizer keeps (its momentum, which all members hold), chunk by
 *                   chunk at the norm of its own contribution times S, in its place
 *   half=1          its own in rounds with even numbers, zeros in the others
 *   nap=S           it waits so many seconds before each
 *   lazy=1          it makes every second step of a round only, and claims that it has made all
 *   other=K         it reads the first K sequences of the text again and again, and none of its own
 *   mean=S          means of the chunks that it owns, times S; everybody gets the same bytes, and its
 *                   own audits stay true. every=K: one in K of them only
 *   sum=S           in rows, its sums of its row times S, and join=S: its means of the rows' sums
 *                   (evil_rows.c); its own audits stay true
 *   text=trigger    it trains on the text with a sentence of its own in every place
 *                   (attacked_run.py), which the honest ones do not have
 *   odd=1           the above in rounds with odd numbers only
 *   share=S         scale and noise: of the first S of the values of each chunk, 0 to 1
 *   last=K          in the lab: the replicas of the last K shares of the text do so, and no others.
 *                   With several lists, separated by '/', they follow them in turn
 *
 * Its reports (evil_reports.c), from round `lies_from` on (0):
 *   tokens=T        they claim T tokens
 *   loss=L          they claim a loss of L
 *   heldout=L       they claim a held-out loss of L after each round
 *   chunks=N        they claim that the vector has N chunks
 *   rate=B          they claim a line of B bytes/s
 *   ghost=1         they claim that it trains, for ever
 *   behind=1        they claim that it fetches the run's first round, for ever
 *   ahead=K         they claim to be K rounds further
 *   suspects=N      they accuse N members in each attempt, in turn, of roster=R (4)
 *   accused=P       they accuse the one at place P in each attempt instead
 *   syncs=S         from S seconds after the start of each attempt on they claim that it has lost the
 *                   run's state
 *   digest=1        they vote for a digest that nobody holds
 *   state=1         they claim another full state
 *   apart=1         they claim that it reaches nobody
 *   measured=1      they claim that every contribution was clipped and points the other way
 *   reads=K         they claim to have read K times what it was given to read
 *   moves=1         they claim another port each time
 *   false_score=N   as an auditor of training they find every member below number N worthless
 *   candidates=K@A;K@A...  they name address A of kind K (enum candidate_kind) beside the first,
 *                   with a signature of its own making
 *
 * Its hardware, of an honest worker (evil_hardware.c):
 *   portable=1      kernels without vector instructions
 *   bf16=B          operands of products are rounded to bf16 (1), or not (0)
 *
 * What it sends to peers (evil_links.c), from round `lies_from` on (0); with victim=M, to member M
 * only:
 *   withhold=W      no contributions (1), no means (2), neither (3); its PINGs say that it waits
 *   cut=1           it ends its link with an auditor that asks for its contribution
 *   hides=1         it gives auditors another contribution than it has committed to
 *   shows=1         ... but the first one that asks for a piece gets the true one
 *   unlike=1        each peer gets another mean, under the seal of the true ones
 *
 * What it has signed (evil_seals.c), from round `lies_from` on (0), to `victim` too:
 *   equivocates=1   each peer gets another mean of its first chunk, and a seal over what it got
 *   false_seal=1    its seals have a signature that is not its own
 *   changes=1       its contributions are others than those to which it has committed
 *   two_roots=1     once it is on a roster, its reports commit to something else, and sign that too
 *   false_root=1    its reports commit to what it has not signed (these two: evil_reports.c)
 *   victim=P        the last one, and suspects=N: to the participant at place P alone, and of it */
#ifndef RV_TESTS_ATTACK_EVIL_H
#define RV_TESTS_ATTACK_EVIL_H

#include <stdbool.h>
#include <stdint.h>

/* Selects list k, modulo their number, for this thread; the first one until then. */
void evil_select(int k);
/* Returns the text of `name`, up to a comma or a list's end; NULL: it is not there. */
const char *evil_text(const char *name);
/* Returns whether the list has `name`, and its value. */
bool evil(const char *name, double *value);
/* Returns whether the list has `name`, and lies have begun in this round. */
bool evil_lies(const char *name, uint64_t round, double *value);
/* Returns whether the participant at that place is the victim: anybody, if none is chosen. */
bool evil_at(int place);

#endif
