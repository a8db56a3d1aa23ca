/* faults.h: fallible calls that fail when a test says so: the N-th of them, once, or that and all
 * later ones.
 *
 * Our own calls are caught by the linker (--wrap, the list is in CMakeLists.txt), in our libraries
 * and nowhere else; what libraries allocate, and what SQLite asks of the operating system, through
 * the hooks that they have (faults_hook_*; libevent's memory is left alone: it is not safe against
 * every failure). What is left out is in unwrapped.txt, with the reason; a test holds that against
 * the libraries. Only calls of the thread that arms fail: what plays the other side in a thread of
 * its own is spared. */
#ifndef TESTS_TORTURE_FAULTS_H
#define TESTS_TORTURE_FAULTS_H

#include <stdbool.h>

enum faults_mode { FAULTS_ONCE, FAULTS_FROM_THEN };

/* The `nth` fallible call from now on fails (1: the next; 0: none, calls are only counted). */
void faults_arm(long nth, enum faults_mode mode);
/* Calls of all threads fail, from now on, or again only those of the one that arms. */
void faults_of_all_threads(bool all);
/* Nothing fails any more. Returns how many calls failed. */
long faults_disarm(void);
long faults_calls(void);      /* since armed */
bool faults_kept_files(void); /* since armed something that was to be removed was not */
int faults_sites(void);       /* distinct places in our programs whose call has failed, of the process' life */

void faults_hook_sqlite(void); /* before SQLite's first use */
void faults_hook_jansson(void);

#endif
