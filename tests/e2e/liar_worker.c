/* liar_worker.c: the real worker, which gives joiners pieces with one bit that is not right, by the linker (--wrap). It
 * exists for tests only. Its own files are what they should be: recovery reads them otherwise. */
#include "worker/state/state_file.h"

enum rv_err __real_state_file_read_stored(struct state_file *f, uint32_t i, void *out, struct rv_errtext *et);
enum rv_err __wrap_state_file_read_stored(struct state_file *f, uint32_t i, void *out, struct rv_errtext *et);

enum rv_err __wrap_state_file_read_stored(struct state_file *f, uint32_t i, void *out, struct rv_errtext *et) {
	enum rv_err e = __real_state_file_read_stored(f, i, out, et);
	if (e == RV_OK)
		((uint8_t *)out)[state_file_stored(f, i).bytes / 2] ^= 4;
	return e;
}
