/* replica_file.h: a worker's own state on the disk that is open for reading, in pieces: it may be
 * larger than what memory is free. Functions block on the disk. */
#ifndef RV_WORKER_STATE_REPLICA_FILE_H
#define RV_WORKER_STATE_REPLICA_FILE_H

#include "base/byte_source.h"
#include "worker/state/state_format.h"

struct replica_file;

/* Opens a file; checks its header, and that it is as long as that states. RV_E_NOTFOUND,
 * RV_E_CORRUPT, RV_E_UNSUPPORTED, RV_E_IO, RV_E_NOMEM. The text does not name the file. */
enum rv_err replica_file_open(const struct global_config *c, const char *path, struct replica_file **out,
							  struct rv_errtext *et);
/* Opens a descriptor, which is taken over whatever is returned. Faults of replica_file_open. */
enum rv_err replica_file_of(const struct global_config *c, int fd, struct replica_file **out, struct rv_errtext *et);
void replica_file_free(struct replica_file *f); /* NULL is fine */

const struct state_replica_info *replica_file_info(const struct replica_file *f);
/* Returns its replica_save() bytes, payload_bytes of its info, not checked. Borrows `f`. */
struct byte_source replica_file_payload(struct replica_file *f);

#endif
