/* faults_hit.h: the one question that everything asks that can fail on demand. Inner part of faults.h. */
#ifndef TESTS_TORTURE_FAULTS_HIT_H
#define TESTS_TORTURE_FAULTS_HIT_H

#include <stdbool.h>

/* Counts the call made at `site` and tells whether it shall fail. */
bool faults_hit(const void *site);

#endif
