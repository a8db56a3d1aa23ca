/* bench_rows.c: the all-reduce of large rosters, in rows and columns: the links of a worker, the
 * bytes that it sends and receives, how often a value is encoded, and the bytes that a death costs.
 * Real grids (net/reduce/grid.h) on the virtual network of the tests (tests/net/grid_world.h).
 *
 *     bench_rows [--codec NAME] [N[:ROW_SIZE]...]
 *
 * 64, 256, ... workers; default 16:4 64:8 64 256 1024. The codec of contributions and means;
 * default int8.
 *
 * One JSON line a roster, then a table. Bytes are in payloads: an encoded contribution to the whole
 * vector, without headers, which cost 64 bytes a chunk. */
#include "tests/net/grid_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNKS = 256, LONG_CHUNKS = 64, MAX_CASES = 16 };

struct result {
	int n, rows, links;
	double tx_mean, tx_most, rx_most; /* payloads */
	double encodings;                 /* of a value: in a contribution, and in means */
	double late_death, half_death;    /* bytes of the next attempt, as a share of those of the first */
};

static struct grid_world *new_world(int n, int row_size, const struct codec *codec) {
	const uint32_t chunks = codec->block > GRID_CHUNK_ELEMS ? LONG_CHUNKS : CHUNKS; /* of 4,096 values */
	return grid_world_of(n, row_size, chunks, &merge_mean, codec, 3);
}

static double payload_of(const struct grid_world *w) {
	return (double)chunking_total_bytes(&w->chunks, w->cfg.codec);
}

/* Chunks have about the same size, so headers are shared out by bytes. */
static void measure_bytes(const struct grid_world *w, struct result *r) {
	const struct reduce_info all = grid_world_info(w);
	const double headers = (double)w->data_frames * REDUCE_HEADER_BYTES;
	const double scale = ((double)all.tx_bytes - headers) / (double)all.tx_bytes / payload_of(w);
	for (int i = 0; i < w->n; i++) {
		const struct reduce_info one = grid_info(w->nodes[i].grid);
		const double tx = (double)one.tx_bytes * scale, rx = (double)one.rx_bytes * scale;
		r->tx_mean += tx / w->n;
		r->tx_most = tx > r->tx_most ? tx : r->tx_most;
		r->rx_most = rx > r->rx_most ? rx : r->rx_most;
	}
}

/* Returns the share of the bytes that are sent again after an owner's death, when `share` of all
 * frames have been delivered. */
static double death(int n, int row_size, const struct codec *codec, uint64_t frames) {
	struct grid_world *w = new_world(n, row_size, codec);
	while (w->delivered < frames && grid_world_step(w, 64))
		;
	for (int i = 0; i < n; i++)
		grid_world_start(w, i);
	const double whole = payload_of(w) * n;
	grid_world_kill(w, n / 2, true);
	grid_world_next_attempt(w, 0);
	if (!grid_world_run(w, 0) || !grid_world_is_right(w))
		exit(1);
	const double again = (double)grid_world_info(w).resent_bytes;
	grid_world_free(w);
	return again / whole;
}

static struct result measure(int n, int row_size, const struct codec *codec) {
	struct result r = {.n = n};
	struct grid_world *w = new_world(n, row_size, codec);
	if (!grid_world_run(w, 0) || !grid_world_is_right(w))
		exit(1);
	r.rows = w->plan.n_rows;
	r.links = grid_world_most_links(w);
	r.encodings = 1 + (double)w->encodings / w->chunks.n_chunks;
	measure_bytes(w, &r);
	const uint64_t frames = w->delivered;
	grid_world_free(w);
	r.half_death = death(n, row_size, codec, frames / 2);
	r.late_death = death(n, row_size, codec, frames);
	return r;
}

static void print_json(const struct result *r) {
	printf("{\"workers\":%d,\"rows\":%d,\"links\":%d,\"tx_mean\":%.3f,\"tx_most\":%.3f,\"rx_most\":%.3f,\"encodings\":%"
		   ".0f,"
		   "\"death_half\":%.3f,\"death_late\":%.3f}\n",
		   r->n, r->rows, r->links, r->tx_mean, r->tx_most, r->rx_most, r->encodings, r->half_death, r->late_death);
	(void)fflush(stdout);
}

static void print_table(const struct result *results, int n) {
	printf("\n%8s %5s %6s %22s %17s %9s %26s\n", "", "", "most", "sent by a worker,", "received by", "encodings",
		   "sent again after a death,");
	printf("%8s %5s %6s %22s %17s %9s %26s\n", "workers", "rows", "links", "payloads: mean, most", "one, most",
		   "of a value", "payloads: half-way, at end");
	for (int i = 0; i < n; i++) {
		const struct result *r = &results[i];
		printf("%8d %5d %6d %13.3f, %7.3f %17.3f %9.0f %17.3f, %7.3f\n", r->n, r->rows, r->links, r->tx_mean,
			   r->tx_most, r->rx_most, r->encodings, r->half_death, r->late_death);
	}
}

/* Takes `--codec NAME` off the arguments; returns NULL for a name that is not known. */
static const struct codec *take_codec(int *argc, char ***argv) {
	if (*argc < 3 || strcmp((*argv)[1], "--codec") != 0)
		return &codec_int8;
	const char *name = (*argv)[2];
	*argc -= 2;
	*argv += 2;
	for (int i = 0; codec_registry[i] != NULL; i++)
		if (strcmp(codec_registry[i]->name, name) == 0)
			return codec_registry[i];
	return NULL;
}

int main(int argc, char **argv) {
	static char *usual[] = {"16:4", "64:8", "64", "256", "1024"};
	const struct codec *codec = take_codec(&argc, &argv);
	if (codec == NULL) {
		(void)fprintf(stderr, "bench_rows: --codec: a codec of base/codecs.def\n");
		return 2;
	}
	char **cases = argc > 1 ? argv + 1 : usual;
	const int n = argc > 1 ? argc - 1 : (int)(sizeof usual / sizeof usual[0]);
	struct result results[MAX_CASES];
	for (int i = 0; i < n && i < MAX_CASES; i++) {
		int workers = 0, row_size = 64;
		if (sscanf(cases[i], "%d:%d", &workers, &row_size) < 1 || workers < 1 || workers > GRID_MAX_NODES ||
			row_size < 2 || row_size > ROWS_MAX_LENGTH) {
			(void)fprintf(stderr, "bench_rows: %s: N or N:ROW_SIZE, with N 1 to %d and ROW_SIZE 2 to %d\n", cases[i],
						  (int)GRID_MAX_NODES, (int)ROWS_MAX_LENGTH);
			return 2;
		}
		results[i] = measure(workers, row_size, codec);
		print_json(&results[i]);
	}
	print_table(results, n < MAX_CASES ? n : MAX_CASES);
	return 0;
}
