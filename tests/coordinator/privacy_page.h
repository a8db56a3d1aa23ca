/* privacy_page.h: holds docs/privacy.md against the status that anybody reads. */
#ifndef RV_TESTS_COORDINATOR_PRIVACY_PAGE_H
#define RV_TESTS_COORDINATOR_PRIVACY_PAGE_H

#include <jansson.h>

/* Fails the test if the page does not name a key of this status (`key`), at any depth; numbers of
 * members are no keys. */
void privacy_page_names(const json_t *status);

#endif
