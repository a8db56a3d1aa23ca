/* faults_hit.h: the question that everything asks that can fail on demand. Inner part of
 * faults.h. */
#ifndef TESTS_TORTURE_FAULTS_HIT_H
#define TESTS_TORTURE_FAULTS_HIT_H

#include <stdbool.h>

/* Counts the call made at `site` and tells whether it shall fail. */
bool faults_hit(const void *site);
/* The same of a call that removes a file. */
bool faults_hit_removal(const void *site);

#endif
