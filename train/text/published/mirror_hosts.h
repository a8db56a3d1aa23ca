/* mirror_hosts.h: the hosts of mirrors, as people read them and agree to them before they join: a
 * list as "a.example, s3://bucket". A worker connects to no mirror of a manifest elsewhere, since
 * the manifest's mirrors are not part of its hash. */
#ifndef RV_TRAIN_TEXT_PUBLISHED_MIRROR_HOSTS_H
#define RV_TRAIN_TEXT_PUBLISHED_MIRROR_HOSTS_H

#include "train/text/published/manifest.h"

enum { MIRROR_HOST_BYTES = 256 };

/* Writes the host of a mirror's URL in lower case, without a port, or s3://BUCKET. Returns false if
 * it is no URL, or one that programs may read in two ways: with a user, or a byte that no host name
 * has. */
bool mirror_host(const char *url, char out[static MIRROR_HOST_BYTES]);
/* Returns true if the host of `url` is one of the list. */
bool mirror_hosts_have(const char *hosts, const char *url);
/* Writes as a list what a person gives as one: with or without spaces at the commas, in any case.
 * RV_E_INVALID names what is no host, as a URL, or a host with a port; RV_E_RANGE: no room. */
enum rv_err mirror_hosts_read(const char *text, char *out, size_t cap, struct rv_errtext *et);
/* Adds the host of `url` to the list in `hosts` (cap), unless it is there. Returns false if it is
 * no URL, or has no room. */
bool mirror_hosts_add(char *hosts, size_t cap, const char *url);
/* Returns true if the mirror with this number is at a host of the list, and the first one there: a
 * host is one source, however often it is named. */
bool mirror_hosts_take(const char *hosts, const struct manifest *m, int64_t i);

#endif
