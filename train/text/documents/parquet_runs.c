/* parquet_runs.c: see parquet_runs.h. */
#include "train/text/documents/parquet_runs.h"

#include "train/text/documents/thrift.h"

enum { MAX_BLOCK = 1 << 16, MAX_WIDTH = 64, MAX_RUN_WIDTH = 32, PACKED_GROUP = 8 };

static uint64_t mask(int width) {
	return width >= 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
}

/* Takes `width` bits, at most 32. */
static uint64_t take_few(struct packed_bits *b, struct rv_reader *r, int width) {
	while (b->n_held < width) {
		b->held |= (uint64_t)rv_read_u8(r) << b->n_held;
		b->n_held += 8;
	}
	uint64_t v = b->held & mask(width);
	b->held >>= width;
	b->n_held -= width;
	return v;
}

static uint64_t take_bits(struct packed_bits *b, struct rv_reader *r, int width) {
	int low = width < 32 ? width : 32;
	uint64_t v = take_few(b, r, low);
	return width > low ? v | take_few(b, r, width - low) << low : v;
}

/* ---- runs ---- */

struct run_decoder run_decoder_of(struct rv_reader r, int width) {
	if (width < 0 || width > MAX_RUN_WIDTH)
		r.failed = true;
	return (struct run_decoder){.r = r, .width = width};
}

static void begin_run(struct run_decoder *d) {
	uint64_t head = thrift_varint(&d->r);
	d->is_packed = head & 1;
	d->left = d->is_packed ? (head >> 1) * PACKED_GROUP : head >> 1;
	d->bits = (struct packed_bits){0};
	d->value = 0;
	if (head >> 1 > UINT32_MAX || d->left == 0)
		d->r.failed = true;
	for (int at = 0; !d->is_packed && at < d->width; at += 8)
		d->value |= (uint32_t)rv_read_u8(&d->r) << at;
}

uint32_t run_decoder_next(struct run_decoder *d) {
	if (d->left == 0 && rv_reader_ok(&d->r))
		begin_run(d);
	if (!rv_reader_ok(&d->r))
		return 0;
	d->left--;
	return d->is_packed ? (uint32_t)take_bits(&d->bits, &d->r, d->width) : d->value;
}

/* ---- deltas ---- */

static uint64_t unzigzag(uint64_t v) {
	return (v >> 1) ^ (0 - (v & 1));
}

struct delta_decoder delta_decoder_of(struct rv_reader r) {
	struct delta_decoder d = {.r = r, .is_first = true};
	d.block = thrift_varint(&d.r);
	d.minis = thrift_varint(&d.r);
	d.left = thrift_varint(&d.r);
	d.value = unzigzag(thrift_varint(&d.r));
	bool divides = d.minis > 0 && d.block % d.minis == 0 && d.block / d.minis % PACKED_GROUP == 0;
	if (d.block == 0 || d.block > MAX_BLOCK || !divides)
		d.r.failed = true;
	d.part = d.minis;
	return d;
}

static void begin_block(struct delta_decoder *d) {
	d->min_delta = unzigzag(thrift_varint(&d->r));
	d->widths = rv_read_span(&d->r, d->minis);
	d->part = 0;
	for (uint64_t i = 0; d->widths != NULL && i < d->minis; i++)
		if (d->widths[i] > MAX_WIDTH)
			d->r.failed = true;
}

static void begin_part(struct delta_decoder *d) {
	if (d->part == d->minis)
		begin_block(d);
	d->in_part = d->block / d->minis;
	d->bits = (struct packed_bits){0};
}

int64_t delta_decoder_next(struct delta_decoder *d) {
	if (d->left == 0)
		d->r.failed = true;
	if (!rv_reader_ok(&d->r))
		return 0;
	d->left--;
	if (d->is_first) {
		d->is_first = false;
		return (int64_t)d->value;
	}
	if (d->in_part == 0)
		begin_part(d);
	if (!rv_reader_ok(&d->r))
		return 0;
	d->value += d->min_delta + take_bits(&d->bits, &d->r, d->widths[d->part]);
	if (--d->in_part == 0)
		d->part++;
	return (int64_t)d->value;
}

/* A part that has begun is there in whole, so what is left of it is read past. */
struct rv_reader delta_decoder_rest(struct delta_decoder d) {
	while (d.left > 0 && rv_reader_ok(&d.r))
		(void)delta_decoder_next(&d);
	while (d.in_part > 0 && rv_reader_ok(&d.r)) {
		(void)take_bits(&d.bits, &d.r, d.widths[d.part]);
		d.in_part--;
	}
	return d.r;
}
