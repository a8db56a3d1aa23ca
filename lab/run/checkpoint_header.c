/* checkpoint_header.c: see checkpoint_header.h. */
#include "lab/run/checkpoint_header.h"

#include "base/assert.h"
#include "base/option_value.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAGIC_BYTES = 8, CONFIG_TEXT_BYTES = 16384 };

static const char magic[MAGIC_BYTES] = {'r', 'i', 'v', 'u', 'l', 'e', 't', 'L'};

static void hash_text(struct rv_hasher *h, const char *text) {
	rv_hash_update(h, text, strlen(text) + 1);
}

static void hash_device(struct rv_hasher *h, const struct lab_config *c) {
	hash_text(h, c->device.backend);
	if (c->device.n > 1)
		rv_hash_u64(h, (uint64_t)c->device.n);
}

static void hash_isa(struct rv_hasher *h, const struct lab_config *c) {
	hash_text(h, c->isa);
}

/* Hashes the meaning of dtype = auto on this machine: another one would continue with other
 * bits. */
static void hash_dtype(struct rv_hasher *h, const struct lab_config *c) {
	hash_text(h, dtype_name(run_config_compute(&c->run, &c->device, c->isa)));
}

static void hash_drop_sync(struct rv_hasher *h, const struct lab_config *c) {
	rv_hash_update(h, &c->drop_sync, sizeof c->drop_sync);
}

static void hash_move_owners(struct rv_hasher *h, const struct lab_config *c) {
	rv_hash_update(h, &c->move_owners, sizeof c->move_owners);
}

static void hash_attack(struct rv_hasher *h, const struct lab_config *c) {
	if (c->attack.kind == LAB_ATTACK_NONE || c->attack.workers == 0)
		return;
	rv_hash_u64(h, (uint64_t)c->attack.kind);
	rv_hash_update(h, &c->attack.value, sizeof c->attack.value);
	rv_hash_u64(h, (uint64_t)c->attack.workers);
}

static void hash_speeds(struct rv_hasher *h, const struct lab_config *c) {
	rv_hash_update(h, c->speeds, (size_t)c->workers * sizeof c->speeds[0]);
}

static void hash_step_ms(struct rv_hasher *h, const struct lab_config *c) {
	rv_hash_update(h, &c->step_ms, sizeof c->step_ms);
}

static void hash_lines(struct rv_hasher *h, const struct lab_config *c) {
	if (c->lines[0].up == 0)
		return; /* as before there were any */
	rv_hash_update(h, c->lines, (size_t)c->workers * sizeof c->lines[0]);
}

static void hash_dylu(struct rv_hasher *h, const struct lab_config *c) {
	rv_hash_u64(h, c->dylu);
}

/* The options of the lab that make a run another one, beside those of its configuration; hashed in
 * this order. */
static const struct hashed_option {
	const char *name;
	void (*hash)(struct rv_hasher *h, const struct lab_config *c);
} of_the_lab[] = {{"device", hash_device},
				  {"isa", hash_isa},
				  {"dtype", hash_dtype},
				  {"drop-sync", hash_drop_sync},
				  {"move-owners", hash_move_owners},
				  {"speeds", hash_speeds},
				  {"step-ms", hash_step_ms},
				  {"dylu", hash_dylu},
				  {"lines", hash_lines},
				  {"attack", hash_attack},
				  {"attackers", hash_attack}};

enum { OF_THE_LAB = sizeof of_the_lab / sizeof of_the_lab[0] };

static struct rv_hash config_hash(const struct lab_config *c) {
	char text[CONFIG_TEXT_BYTES];
	struct rv_hasher h = rv_hasher_of("rivulet lab run");
	struct run_config run = c->run;
	run.dtype = run_config_compute(&c->run, &c->device, c->isa) == DTYPE_BF16 ? RUN_DTYPE_BF16 : RUN_DTYPE_FP32;
	size_t n = rv_options_print(run_config_options, &run, text, sizeof text);
	RV_ASSERT(n < sizeof text);
	hash_text(&h, text);
	for (int i = 0; i < OF_THE_LAB; i++)
		of_the_lab[i].hash(&h, c);
	return rv_hash_final(&h);
}

static struct rv_hash hash_alone(const struct hashed_option *o, const struct lab_config *c) {
	struct rv_hasher h = rv_hasher_of(o->name);
	o->hash(&h, c);
	return rv_hash_final(&h);
}

bool checkpoint_header_tells_apart(const char *option, const struct lab_config *a, const struct lab_config *b) {
	for (int i = 0; i < OF_THE_LAB; i++) {
		if (strcmp(of_the_lab[i].name, option) != 0)
			continue;
		const struct rv_hash x = hash_alone(&of_the_lab[i], a), y = hash_alone(&of_the_lab[i], b);
		return !rv_hash_equal(&x, &y);
	}
	for (const struct rv_option *o = run_config_options; o->name; o++)
		if (strcmp(o->name, option) == 0)
			return !rv_option_value_same(o, &a->run, &b->run);
	return false;
}

struct checkpoint_header checkpoint_header_of(const struct lab_run *r) {
	struct checkpoint_header h = {.workers = (uint32_t)r->cfg.workers,
								  .threads = (uint32_t)r->cfg.threads,
								  .run_hash = r->cfg.run_hash,
								  .config = config_hash(&r->cfg),
								  .data = dataset_identity(r->data),
								  .rounds_done = r->rounds_done,
								  .tokens_done = r->tokens_done,
								  .bytes_sent = r->bytes_sent,
								  .steps_done = atomic_load(&r->steps_done)};
	size_t n = strlen(r->cfg.method->name);
	RV_ASSERT(n < sizeof h.method);
	memcpy(h.method, r->cfg.method->name, n);
	return h;
}

void checkpoint_header_write(const struct checkpoint_header *h, struct rv_writer *w) {
	const uint8_t *begin = w->at;
	rv_write_bytes(w, magic, sizeof magic);
	rv_write_u32(w, CHECKPOINT_VERSION);
	rv_write_bytes(w, h->method, sizeof h->method);
	rv_write_u32(w, h->workers);
	rv_write_u32(w, h->threads);
	rv_write_bytes(w, h->run_hash.b, RV_HASH_BYTES);
	rv_write_bytes(w, h->config.b, RV_HASH_BYTES);
	rv_write_bytes(w, h->data.b, RV_HASH_BYTES);
	rv_write_u64(w, h->rounds_done);
	rv_write_u64(w, h->tokens_done);
	rv_write_u64(w, h->bytes_sent);
	rv_write_u64(w, h->steps_done);
	const struct rv_hash sum = rv_hash_of(begin, (size_t)(w->at - begin));
	rv_write_bytes(w, sum.b, sizeof sum.b);
}

static enum rv_err other_version(uint32_t version, struct rv_errtext *et) {
	return rv_fail(et, RV_E_UNSUPPORTED,
				   "version %" PRIu32 "; this program reads %d; finish it with the program that wrote it, or "
				   "remove it: the same command trains anew",
				   version, CHECKPOINT_VERSION);
}

/* Returns the version if it is a newer one whose header may have another length, and so another
 * place for its hash; else 0. A header that is whole with this program's version instead is damaged
 * in its version. */
static uint32_t newer_version(const uint8_t *bytes, size_t n) {
	enum { VERSION_AT = MAGIC_BYTES, BEFORE_HASH = CHECKPOINT_HEADER_BYTES - RV_HASH_BYTES, VERSIONS_PLAUSIBLE = 1000 };
	uint8_t as_ours[BEFORE_HASH];
	struct rv_reader in = rv_reader_of(bytes, n);
	struct rv_writer version_of = rv_writer_of(as_ours + VERSION_AT, sizeof(uint32_t));
	(void)rv_read_span(&in, VERSION_AT);
	const uint32_t version = rv_read_u32(&in);
	if (!rv_reader_ok(&in) || version <= CHECKPOINT_VERSION || version > VERSIONS_PLAUSIBLE)
		return 0;
	if (n < CHECKPOINT_HEADER_BYTES)
		return version;
	memcpy(as_ours, bytes, sizeof as_ours);
	rv_write_u32(&version_of, CHECKPOINT_VERSION);
	const struct rv_hash sum = rv_hash_of(as_ours, sizeof as_ours);
	return memcmp(bytes + BEFORE_HASH, sum.b, sizeof sum.b) == 0 ? 0 : version;
}

static enum rv_err parse(const uint8_t *bytes, size_t n, struct checkpoint_header *h, struct rv_errtext *et) {
	struct rv_reader in = rv_reader_of(bytes, n);
	const size_t summed = CHECKPOINT_HEADER_BYTES - RV_HASH_BYTES;
	const uint8_t *begin = rv_read_span(&in, sizeof magic);
	if (begin && memcmp(begin, magic, sizeof magic) != 0)
		return rv_fail(et, RV_E_CORRUPT, "not a checkpoint of the lab");
	const uint32_t newer = newer_version(bytes, n);
	if (newer > 0)
		return other_version(newer, et);
	if (n < CHECKPOINT_HEADER_BYTES)
		return rv_fail(et, RV_E_CORRUPT, "only %zu bytes", n);
	const struct rv_hash sum = rv_hash_of(bytes, summed);
	if (memcmp(bytes + summed, sum.b, sizeof sum.b) != 0)
		return rv_fail(et, RV_E_CORRUPT, "damaged: its header's hash does not match");
	const uint32_t version = rv_read_u32(&in);
	if (version != CHECKPOINT_VERSION)
		return other_version(version, et);
	rv_read_copy(&in, h->method, sizeof h->method);
	h->workers = rv_read_u32(&in);
	h->threads = rv_read_u32(&in);
	rv_read_copy(&in, h->run_hash.b, RV_HASH_BYTES);
	rv_read_copy(&in, h->config.b, RV_HASH_BYTES);
	rv_read_copy(&in, h->data.b, RV_HASH_BYTES);
	h->rounds_done = rv_read_u64(&in);
	h->tokens_done = rv_read_u64(&in);
	h->bytes_sent = rv_read_u64(&in);
	h->steps_done = rv_read_u64(&in);
	return RV_OK;
}

enum rv_err checkpoint_header_read(const char *path, struct checkpoint_header *h, struct rv_errtext *et) {
	uint8_t bytes[CHECKPOINT_HEADER_BYTES];
	FILE *f = fopen(path, "rb");
	if (!f)
		return rv_fail_errno(et, errno, "%s: cannot open", path);
	errno = 0;
	size_t n = fread(bytes, 1, sizeof bytes, f);
	const int fault = ferror(f) ? errno : 0;
	(void)fclose(f);
	if (fault)
		return rv_fail_errno(et, fault, "%s: cannot read", path);
	enum rv_err e = parse(bytes, n, h, et);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "%s", path);
}

static enum rv_err differs(struct rv_errtext *et, const char *what) {
	return rv_fail(et, RV_E_PROTOCOL, "belongs to a run with another %s; choose another --out, or remove it", what);
}

enum rv_err checkpoint_header_check(const struct checkpoint_header *file, const struct checkpoint_header *run,
									struct rv_errtext *et) {
	if (memcmp(file->method, run->method, sizeof run->method) != 0)
		return differs(et, "method");
	if (file->workers != run->workers)
		return differs(et, "number of workers");
	if (file->threads != run->threads)
		return differs(et, "number of threads (the bits of a result depend on it)");
	if (!rv_hash_equal(&file->config, &run->config))
		return differs(et, "configuration (run.conf beside it has its own)");
	if (!rv_hash_equal(&file->run_hash, &run->run_hash))
		return differs(et, "run-hash");
	return rv_hash_equal(&file->data, &run->data) ? RV_OK : differs(et, "text");
}
