/* worker_dir.c: see worker_dir.h. */
#include "tests/lab/worker_dir.h"

#include "lab/worker_files/worker_rounds.h"
#include "net/invite.h"
#include "tests/train/train_fixture.h"

#include "base/assert.h"
#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_text(const struct worker_dir *w, const char *name, const char *text) {
	char path[400];
	snprintf(path, sizeof path, "%s/%s", w->dir, name);
	RV_ASSERT(rv_file_write_atomic(path, text, strlen(text), 0600, NULL) == RV_OK);
}

static void write_link(const struct worker_dir *w) {
	struct invite invite = {.run_id = "a run of rivule"};
	char text[INVITE_MAX_BYTES];
	RV_ASSERT(address_parse("127.0.0.1:7433", &invite.coordinator, NULL) == RV_OK);
	invite_format(&invite, text);
	write_text(w, "run.link", text);
}

static void write_config(const struct worker_dir *w, const char *options) {
	struct run_config c = fixture_config();
	char text[8192];
	RV_ASSERT(rv_options_parse_text(run_config_options, &c, "test", options, NULL) == RV_OK);
	RV_ASSERT(rv_options_print(run_config_options, &c, text, sizeof text) < sizeof text);
	write_text(w, "run.conf", text);
}

/* The weights that every worker draws from the seed. */
static void begin(struct worker_dir *w, const struct run_config *run) {
	const struct backend_options device = {.threads = 1, .compute = DTYPE_F32, .isa = "auto"};
	const struct model_options options = {.max_batch = 1, .forward_only = true};
	const struct model_shape shape = model_shape_of(run);
	struct backend *be;
	struct model *m;
	RV_ASSERT(backend_open("ref", &device, &be, NULL) == RV_OK);
	RV_ASSERT(model_new(model_family(run), &shape, &options, be, &m, NULL) == RV_OK);
	float *theta = calloc(m->layout.n_params, sizeof *theta);
	RV_ASSERT(theta);
	model_init_params(m, theta, (uint64_t)run->seed);
	RV_ASSERT(global_init(&w->g, &w->store.cfg, theta, NULL) == RV_OK);
	w->full[0] = global_full_hash(&w->g);
	free(theta);
	model_free(m);
	backend_close(be);
}

static void open_events(struct worker_dir *w) {
	w->out = open_memstream(&w->told, &w->told_bytes);
	RV_ASSERT(w->out);
	const struct rv_events_config events = {.out = w->out, .json = true, .level = RV_INFO};
	RV_ASSERT(rv_events_new(&events, &w->events, NULL) == RV_OK);
}

void worker_dir_init(struct worker_dir *w, const char *options) {
	struct worker_rounds rounds;
	*w = (struct worker_dir){.g = {.round = 0}};
	open_events(w);
	scratch_make(w->dir, sizeof w->dir);
	write_link(w);
	write_config(w, options);
	write_text(w, "member.conf", "member = 3\nticket = " WORKER_DIR_TICKET "\nname = anna\n");
	assert_ok(worker_rounds_open(w->dir, &rounds, &et));
	w->store = rounds.store;
	begin(w, &rounds.run);
	worker_rounds_release(&rounds);
}

void worker_dir_release(struct worker_dir *w) {
	rv_events_free(w->events);
	(void)fclose(w->out);
	free(w->told);
	global_release(&w->g);
	scratch_remove(w->dir);
}

static void play_one(struct worker_dir *w, uint32_t attempt) {
	struct global_state *g = &w->g;
	float *local = malloc(g->cfg.n * sizeof *local);
	uint8_t *payload = malloc(state_payload_bytes(&g->cfg, STATE_KIND_LOG, g->round));
	RV_ASSERT(local && payload);
	for (size_t i = 0; i < g->cfg.n; i++)
		local[i] = g->theta[i] - 0.001f * (float)((i + g->round) % 7);
	RV_ASSERT(global_encode_delta(g, local, payload, NULL) == RV_OK);
	struct state_log_info info = {.round = g->round, .attempt = attempt};
	RV_ASSERT(statestore_write_log(&w->store, &info, payload, NULL) == RV_OK);
	RV_ASSERT(global_apply(g, payload, &info.digest, NULL) == RV_OK);
	w->full[g->round] = global_full_hash(g);
	free(payload);
	free(local);
}

void worker_dir_play(struct worker_dir *w, uint64_t rounds, uint32_t attempt) {
	RV_ASSERT(rounds <= WORKER_DIR_ROUNDS);
	while (w->g.round < rounds) {
		play_one(w, attempt);
		uint64_t round = w->g.round;
		if (round % WORKER_DIR_SNAPSHOT_EVERY == 0 && round < rounds)
			RV_ASSERT(statestore_write_snapshot(&w->store, &w->g, NULL, NULL) == RV_OK);
	}
}

void worker_dir_save_replica(struct worker_dir *w, uint64_t round) {
	static const uint8_t bytes[64];
	const struct state_replica_info info = {.round = round, .chain = w->g.chain, .payload_bytes = sizeof bytes};
	struct state_whole whole = {bytes, sizeof bytes};
	const struct state_pieces_of payload = state_pieces_of_whole(&whole);
	RV_ASSERT(statestore_write_replica(&w->store, &info, &payload, NULL) == RV_OK);
}

void worker_dir_remove(struct worker_dir *w, enum statestore_file kind, uint64_t round) {
	char path[STATESTORE_PATH_BYTES];
	statestore_path(&w->store, kind, round, path);
	RV_ASSERT(unlink(path) == 0);
}

void worker_dir_damage(const struct worker_dir *w, const char *name, long at) {
	char path[400];
	snprintf(path, sizeof path, "%s/%s", w->dir, name);
	FILE *f = fopen(path, "r+b");
	RV_ASSERT(f && fseek(f, at, SEEK_SET) == 0);
	int c = fgetc(f);
	RV_ASSERT(c != EOF && fseek(f, at, SEEK_SET) == 0);
	RV_ASSERT(fputc(c ^ 1, f) != EOF && fclose(f) == 0);
}

const char *worker_dir_told(struct worker_dir *w) {
	RV_ASSERT(fflush(w->out) == 0);
	return w->told;
}
