/* counting_backend.c: see counting_backend.h. */
#include "tests/train/counting_backend.h"

#include "base/assert.h"
#include "tests/train/train_fixture.h"

static struct counting_backend *counted; /* alloc is given the backend, which has no room for a pointer to us */

static enum rv_err counting_alloc(struct backend *be, size_t bytes, void **out, struct rv_errtext *et) {
	RV_ASSERT(counted && counted->be == be);
	counted->calls++;
	counted->bytes += bytes;
	return counted->inner->alloc(be, bytes, out, et);
}

void counting_backend_open(struct counting_backend *c, const char *name, int threads) {
	struct backend_options opt = {.threads = threads, .compute = DTYPE_F32, .isa = "auto"};
	RV_ASSERT(!counted);
	*c = (struct counting_backend){.calls = 0};
	assert_ok(backend_open(name, &opt, &c->be, &et));
	c->inner = c->be->ops;
	c->ops = *c->inner;
	c->ops.alloc = counting_alloc;
	c->be->ops = &c->ops;
	counted = c;
}

void counting_backend_close(struct counting_backend *c) {
	c->be->ops = c->inner;
	backend_close(c->be);
	counted = NULL;
}
