/* bytes.h: bounded cursors over little-endian bytes. The only way Rivulet reads or writes a wire or
 * file format.
 *
 * A cursor never moves past its end. The first read that does not fit marks the cursor *failed*,
 * returns zero, and every later read returns zero too: a parser reads all its fields and checks
 * once, with rv_reader_ok(), at the end. (Style: picotls' (src, end) pairs; nested blocks are
 * readers over a part.) The caller keeps the bytes alive and owns them. No function allocates or
 * blocks; each cursor belongs to one thread. */
#ifndef RV_BASE_BYTES_H
#define RV_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rv_reader {
	const uint8_t *at, *end;
	bool failed;
};

struct rv_writer {
	uint8_t *begin, *at, *end;
	bool failed; /* something did not fit; nothing was written past `end` */
};

/* Return a cursor at the start of `data` (n or cap bytes; NULL only with 0). */
struct rv_reader rv_reader_of(const void *data, size_t n);
/* Returns the number of bytes not yet read. */
size_t rv_reader_left(const struct rv_reader *r);
/* Returns true if no read has failed. A parser of a whole message also wants rv_reader_done(). */
bool rv_reader_ok(const struct rv_reader *r);
/* Returns true if no read has failed and every byte was consumed: trailing bytes are malformed
 * input. */
bool rv_reader_done(const struct rv_reader *r);
/* Read one value, little-endian; floats are IEEE 754. */
uint8_t rv_read_u8(struct rv_reader *r);
uint16_t rv_read_u16(struct rv_reader *r);
uint32_t rv_read_u32(struct rv_reader *r);
uint64_t rv_read_u64(struct rv_reader *r);
float rv_read_f32(struct rv_reader *r);
double rv_read_f64(struct rv_reader *r);
/* Copies n bytes to `out`; zeros if fewer are left. */
void rv_read_copy(struct rv_reader *r, void *out, size_t n);
/* Returns the next n bytes (valid as long as the underlying buffer), or NULL if fewer are left. */
const uint8_t *rv_read_span(struct rv_reader *r, size_t n);
/* Reads a u16 length, then that many bytes, into `out` (`cap` bytes) as a NUL-terminated string.
 * Fails the reader if the length is >= cap or the bytes hold a NUL or a control character (< 0x20,
 * 0x7f). */
void rv_read_str(struct rv_reader *r, char *out, size_t cap);

struct rv_writer rv_writer_of(void *data, size_t cap);
/* Returns the number of bytes written. */
size_t rv_writer_len(const struct rv_writer *w);
void rv_write_u8(struct rv_writer *w, uint8_t v);
void rv_write_u16(struct rv_writer *w, uint16_t v);
void rv_write_u32(struct rv_writer *w, uint32_t v);
void rv_write_u64(struct rv_writer *w, uint64_t v);
void rv_write_bytes(struct rv_writer *w, const void *data, size_t n);
/* Writes a u16 length and the bytes of a NUL-terminated string (at most 65,535 bytes). */
void rv_write_str(struct rv_writer *w, const char *s);

#endif
