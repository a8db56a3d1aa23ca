/* lab_checkpoint.c: a run of the lab on disk. Little-endian, in this order:
 *   "rivuletL", u32 version
 *   what the run is: method (16 bytes, NUL-padded), u32 workers, u32 threads, run hash, identity of the data
 *   BLAKE2b-256 of everything before
 *   u64 rounds done, tokens done, bytes sent, steps of all replicas
 *   diloco: chain hash, theta, outer states
 *   each replica: f64 loss sum, u64 steps, u64 tokens, i64 compute time, u64 size, replica_save's bytes
 *   BLAKE2b-256 of everything before
 */
#include "lab/lab_run.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAGIC_BYTES = 8,
	VERSION = 2,
	METHOD_BYTES = 16,
	HEADER_BYTES = MAGIC_BYTES + 4 + METHOD_BYTES + 4 + 4 + 3 * RV_HASH_BYTES,
	FIXED_BYTES = HEADER_BYTES + 4 * 8,
	WORKER_BYTES = 5 * 8
};

static const char magic[MAGIC_BYTES] = {'r', 'i', 'v', 'u', 'l', 'e', 't', 'L'};

struct method_name {
	char text[METHOD_BYTES]; /* NUL-padded */
};

static struct method_name method_of(const struct lab_run *r) {
	struct method_name m = {{0}};
	size_t n = strlen(r->cfg.method->name);
	RV_ASSERT(n < sizeof m.text);
	memcpy(m.text, r->cfg.method->name, n);
	return m;
}

static void write_header(const struct lab_run *r, struct rv_writer *w) {
	const struct method_name method = method_of(r);
	const struct rv_hash data = dataset_identity(r->data);
	rv_write_bytes(w, magic, sizeof magic);
	rv_write_u32(w, VERSION);
	rv_write_bytes(w, method.text, sizeof method.text);
	rv_write_u32(w, (uint32_t)r->cfg.workers);
	rv_write_u32(w, (uint32_t)r->cfg.threads);
	rv_write_bytes(w, r->cfg.run_hash.b, RV_HASH_BYTES);
	rv_write_bytes(w, data.b, sizeof data.b);
	const struct rv_hash sum = rv_hash_of(w->begin, rv_writer_len(w));
	rv_write_bytes(w, sum.b, sizeof sum.b);
}

static enum rv_err differs(struct rv_errtext *et, const char *what) {
	return rv_fail(et, RV_E_PROTOCOL, "belongs to a run with another %s; choose another --out, or remove it", what);
}

/* Resuming with anything else than what was started would silently be another run. */
static enum rv_err check_header(const struct lab_run *r, const uint8_t header[static HEADER_BYTES],
								struct rv_errtext *et) {
	struct rv_reader reader = rv_reader_of(header, HEADER_BYTES), *in = &reader;
	const struct rv_hash sum = rv_hash_of(header, HEADER_BYTES - RV_HASH_BYTES);
	struct method_name method, mine = method_of(r);
	struct rv_hash run_hash, data, now = dataset_identity(r->data);
	if (memcmp(rv_read_span(in, sizeof magic), magic, sizeof magic) != 0)
		return rv_fail(et, RV_E_CORRUPT, "not a checkpoint of the lab");
	uint32_t version = rv_read_u32(in);
	if (version != VERSION)
		return rv_fail(et, RV_E_UNSUPPORTED, "version %u; this program reads %d", version, VERSION);
	if (memcmp(header + HEADER_BYTES - RV_HASH_BYTES, sum.b, sizeof sum.b) != 0)
		return rv_fail(et, RV_E_CORRUPT, "damaged: its header's hash does not match");
	rv_read_copy(in, method.text, sizeof method.text);
	int workers = (int)rv_read_u32(in), threads = (int)rv_read_u32(in);
	rv_read_copy(in, run_hash.b, sizeof run_hash.b);
	rv_read_copy(in, data.b, sizeof data.b);
	if (memcmp(method.text, mine.text, sizeof mine.text) != 0)
		return differs(et, "method");
	if (workers != r->cfg.workers)
		return differs(et, "number of workers");
	if (threads != r->cfg.threads)
		return differs(et, "number of threads (the bits of a result depend on it)");
	if (!rv_hash_equal(&run_hash, &r->cfg.run_hash))
		return differs(et, "configuration (run.conf beside it has its own)");
	return rv_hash_equal(&data, &now) ? RV_OK : differs(et, "text");
}

static size_t global_vectors(const struct lab_run *r) {
	return r->global.theta ? 1 + (size_t)r->global.cfg.optimizer->n_states : 0;
}

static size_t checkpoint_bytes(const struct lab_run *r) {
	size_t n = FIXED_BYTES + RV_HASH_BYTES;
	if (global_vectors(r) > 0)
		n += RV_HASH_BYTES + global_vectors(r) * r->global.cfg.n * sizeof(float);
	for (int i = 0; i < r->n_replicas; i++)
		n += WORKER_BYTES + replica_state_bytes(r->replicas[i]);
	return n;
}

static float *global_vector(const struct lab_run *r, size_t k) {
	return k == 0 ? r->global.theta : r->global.state[k - 1];
}

static void write_global(const struct lab_run *r, struct rv_writer *w) {
	if (global_vectors(r) == 0)
		return;
	rv_write_bytes(w, r->global.chain.b, RV_HASH_BYTES);
	for (size_t k = 0; k < global_vectors(r); k++)
		rv_write_bytes(w, global_vector(r, k), r->global.cfg.n * sizeof(float));
}

static void write_worker(struct lab_run *r, int i, struct rv_writer *w) {
	const struct lab_worker_sums *s = &r->sums[i];
	size_t n = replica_state_bytes(r->replicas[i]);
	rv_write_f64(w, s->loss);
	rv_write_u64(w, s->steps);
	rv_write_u64(w, s->tokens);
	rv_write_u64(w, (uint64_t)s->compute_us);
	rv_write_u64(w, n);
	RV_ASSERT((size_t)(w->end - w->at) >= n);
	replica_save(r->replicas[i], w->at);
	w->at += n;
}

static void write_all(struct lab_run *r, struct rv_writer *w) {
	write_header(r, w);
	rv_write_u64(w, r->rounds_done);
	rv_write_u64(w, r->tokens_done);
	rv_write_u64(w, r->bytes_sent);
	rv_write_u64(w, atomic_load(&r->steps_done));
	write_global(r, w);
	for (int i = 0; i < r->n_replicas; i++)
		write_worker(r, i, w);
	struct rv_hash sum = rv_hash_of(w->begin, rv_writer_len(w));
	rv_write_bytes(w, sum.b, sizeof sum.b);
}

enum rv_err lab_run_save(struct lab_run *r, const char *path, struct rv_errtext *et) {
	size_t n = checkpoint_bytes(r);
	uint8_t *bytes = malloc(n);
	if (!bytes)
		return rv_fail(et, RV_E_NOMEM, "no memory for a checkpoint of %zu bytes", n);
	struct rv_writer w = rv_writer_of(bytes, n);
	write_all(r, &w);
	RV_ASSERT(!w.failed && rv_writer_len(&w) == n);
	enum rv_err e = rv_file_write_atomic(path, bytes, n, 0644, et);
	free(bytes);
	return e;
}

static void read_global(struct lab_run *r, struct rv_reader *in) {
	if (global_vectors(r) == 0)
		return;
	rv_read_copy(in, r->global.chain.b, RV_HASH_BYTES);
	for (size_t k = 0; k < global_vectors(r); k++)
		rv_read_copy(in, global_vector(r, k), r->global.cfg.n * sizeof(float));
	r->global.round = r->rounds_done;
}

static enum rv_err read_worker(struct lab_run *r, int i, struct rv_reader *in, struct rv_errtext *et) {
	struct lab_worker_sums *s = &r->sums[i];
	s->loss = rv_read_f64(in);
	s->steps = rv_read_u64(in);
	s->tokens = rv_read_u64(in);
	s->compute_us = (int64_t)rv_read_u64(in);
	size_t n = rv_read_u64(in);
	const uint8_t *state = rv_read_span(in, n);
	if (!state)
		return rv_fail(et, RV_E_CORRUPT, "ends in the state of worker %d", i);
	return replica_load(r->replicas[i], state, n, et);
}

static enum rv_err read_all(struct lab_run *r, const uint8_t *bytes, size_t n, struct rv_errtext *et) {
	struct rv_reader in = rv_reader_of(bytes, n - RV_HASH_BYTES);
	const struct rv_hash sum = rv_hash_of(bytes, n - RV_HASH_BYTES);
	if (memcmp(bytes + n - RV_HASH_BYTES, sum.b, sizeof sum.b) != 0)
		return rv_fail(et, RV_E_CORRUPT, "damaged: its hash does not match");
	(void)rv_read_span(&in, HEADER_BYTES);
	r->rounds_done = rv_read_u64(&in);
	r->tokens_done = rv_read_u64(&in);
	r->bytes_sent = rv_read_u64(&in);
	atomic_store(&r->steps_done, rv_read_u64(&in));
	read_global(r, &in);
	for (int i = 0; i < r->n_replicas; i++)
		RV_TRY(read_worker(r, i, &in, et));
	if (!rv_reader_done(&in) || r->rounds_done > (uint64_t)r->cfg.run.rounds)
		return rv_fail(et, RV_E_CORRUPT, "not of the size that this run's checkpoint has");
	return RV_OK;
}

/* What the file is, before its size is held against what this run's would have. */
static enum rv_err check_file(const struct lab_run *r, const char *path, struct rv_errtext *et) {
	uint8_t header[HEADER_BYTES];
	FILE *f = fopen(path, "rb");
	if (!f)
		return rv_fail_errno(et, errno, "cannot open");
	size_t n = fread(header, 1, sizeof header, f);
	(void)fclose(f);
	if (n < sizeof header)
		return rv_fail(et, RV_E_CORRUPT, "only %zu bytes", n);
	return check_header(r, header, et);
}

enum rv_err lab_run_load(struct lab_run *r, const char *path, struct rv_errtext *et) {
	uint8_t *bytes = NULL;
	size_t n = 0;
	enum rv_err e = check_file(r, path, et);
	if (e != RV_OK)
		return rv_fail_context(et, e, "%s", path);
	RV_TRY(rv_file_read(path, 2 * checkpoint_bytes(r), &bytes, &n, et));
	e = n >= FIXED_BYTES + RV_HASH_BYTES ? read_all(r, bytes, n, et) : rv_fail(et, RV_E_CORRUPT, "only %zu bytes", n);
	free(bytes);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "%s", path);
}
