/* greedy_worker.c: the real worker, which asks every peer for the run's state without end and
 * throws it away, by the linker (--wrap). It exists for tests only. */
#include "worker/transfer/fetcher.h"

enum { WINDOW = 16, ROUNDS = 64 };

struct fetcher *__real_fetcher_init(void *memory, const struct fetcher_config *cfg);
struct fetcher *__wrap_fetcher_init(void *memory, const struct fetcher_config *cfg);
bool __wrap_fetcher_send(struct fetcher *f, int64_t now_us, uint32_t member, struct peers_message *out);
enum rv_err __wrap_fetcher_receive(struct fetcher *f, int64_t now_us, uint32_t member, const struct frame_header *h,
								   const uint8_t *body, struct rv_errtext *et);
void __real_fetcher_link_up(struct fetcher *f, int64_t now_us, uint32_t member);
void __wrap_fetcher_link_up(struct fetcher *f, int64_t now_us, uint32_t member);

static uint64_t run_tag;

static struct {
	int owed; /* requests without a whole answer */
	uint64_t round;
	uint8_t body[FRAME_FETCH_BYTES];
} peers[NET_MAX_ROW];

struct fetcher *__wrap_fetcher_init(void *memory, const struct fetcher_config *cfg) {
	run_tag = cfg->run_tag;
	return __real_fetcher_init(memory, cfg);
}

void __wrap_fetcher_link_up(struct fetcher *f, int64_t now_us, uint32_t member) {
	peers[member].owed = 0;
	__real_fetcher_link_up(f, now_us, member);
}

bool __wrap_fetcher_send(struct fetcher *f, int64_t now_us, uint32_t member, struct peers_message *out) {
	(void)f, (void)now_us;
	struct frame_fetch ask = {.kind = FRAME_FETCH_LOG, .part = FRAME_PART_PIECE};
	if (peers[member].owed == WINDOW)
		return false;
	peers[member].owed++;
	ask.round = peers[member].round++ % ROUNDS;
	*out = (struct peers_message){.header = frame_fetch_encode(&ask, run_tag, peers[member].body),
								  .part = {peers[member].body, NULL},
								  .part_bytes = {FRAME_FETCH_BYTES, 0}};
	return true;
}

enum rv_err __wrap_fetcher_receive(struct fetcher *f, int64_t now_us, uint32_t member, const struct frame_header *h,
								   const uint8_t *body, struct rv_errtext *et) {
	struct frame_piece piece;
	(void)f, (void)now_us;
	if (h->type == FRAME_PIECE)
		RV_TRY(frame_piece_decode(h, body, &piece, et));
	if (h->type == FRAME_NONE || piece.offset + piece.data_bytes == piece.total)
		peers[member].owed--;
	return RV_OK;
}
