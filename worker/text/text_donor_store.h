/* text_donor_store.h: the files of the run's text that this worker can give to others: those of
 * its cache (text_cache.h), or of a copy of the published text that a person brought.
 *
 * A file is checked against its index page, or the page above, by a thread of the store's own
 * before the first piece of it is given: a disk that rots does not make this worker a liar. A few
 * are kept open, and a few pieces in memory; a file that was removed meanwhile is not given, and
 * closed. One thread but that of the store. */
#ifndef RV_WORKER_TEXT_TEXT_DONOR_STORE_H
#define RV_WORKER_TEXT_TEXT_DONOR_STORE_H

#include "train/text/published/manifest.h"
#include "worker/text/text_donor.h"

enum {
	TEXT_DONOR_STORE_FILES = 32, /* kept open */
	TEXT_DONOR_STORE_PIECES = 8  /* kept in memory while somebody asks */
};

struct text_donor_store;

/* Opens a directory. `manifest` is copied. `wake(ctx)` is called, by the store's thread, when a
 * file has been checked: the caller then calls text_donor_store_reap. RV_E_NOMEM, RV_E_BUSY (no
 * thread). */
enum rv_err text_donor_store_open(const char *dir, const struct manifest *manifest, void (*wake)(void *ctx), void *ctx,
								  struct text_donor_store **out, struct rv_errtext *et);
void text_donor_store_close(struct text_donor_store *s); /* NULL is fine */
/* Takes what was checked, and closes removed files every 10 s: call it whenever the loop turns. */
void text_donor_store_reap(struct text_donor_store *s, int64_t now_us);
/* Returns what a text donor gives of. It borrows the store. */
struct text_donor_source text_donor_store_source(struct text_donor_store *s);
/* Returns a source that holds nothing: of a worker that reads a text of its own. */
struct text_donor_source text_donor_store_empty(void);

#endif
