#include "bench/segments.h"

#include <linux/virtio_net.h>
#include <string.h>

_Static_assert(sizeof(struct virtio_net_hdr) == SEGMENTS_VNET_BYTES, "the header of a TUN device");

enum { IPV4_HEADER = 20, TCP_HEADER = 20, TCP = 6, TCP_FIN_PSH = 0x09, TCP_CWR = 0x80 };

static uint32_t get16(const uint8_t *p) {
	return (uint32_t)p[0] << 8 | p[1];
}

static void put16(uint8_t *p, uint32_t v) {
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* Returns the ones' complement sum of big-endian 16-bit words (RFC 1071); `n` is even. */
static uint32_t sum(const uint8_t *p, uint32_t n, uint32_t start) {
	uint32_t s = start;
	for (uint32_t i = 0; i < n; i += 2)
		s += get16(p + i);
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return s;
}

struct segments segments_of(const uint8_t *frame, uint32_t bytes) {
	struct virtio_net_hdr h;
	struct segments s = {.n = 1, .all_bytes = bytes - SEGMENTS_VNET_BYTES};
	const uint8_t *ip = frame + SEGMENTS_VNET_BYTES;
	memcpy(&h, frame, sizeof h);
	if (h.gso_type != VIRTIO_NET_HDR_GSO_TCPV4 || h.gso_size == 0 || s.all_bytes < IPV4_HEADER + TCP_HEADER ||
		ip[9] != TCP)
		return s;
	uint32_t ip_header = (ip[0] & 15u) * 4;
	if (ip_header < IPV4_HEADER || ip_header + TCP_HEADER > s.all_bytes)
		return s;
	uint32_t header = ip_header + (ip[ip_header + 12] >> 4) * 4u;
	if (header + h.gso_size >= s.all_bytes)
		return s;
	s.ip_header_bytes = ip_header;
	s.header_bytes = header;
	s.payload_bytes = h.gso_size;
	s.n = (s.all_bytes - header + h.gso_size - 1) / h.gso_size;
	return s;
}

/* Returns where in the payload segment i begins; i == n: its end. */
static uint32_t offset(const struct segments *s, uint32_t i) {
	return i == s->n ? s->all_bytes - s->header_bytes : i * s->payload_bytes;
}

uint32_t segments_ip_bytes(const struct segments *s, uint32_t i) {
	return s->header_bytes + offset(s, i + 1) - offset(s, i);
}

uint32_t segments_copy_bytes(const struct segments *s, uint32_t first, uint32_t n) {
	return SEGMENTS_VNET_BYTES + s->header_bytes + offset(s, first + n) - offset(s, first);
}

static void write_ip(const struct segments *s, uint8_t *ip, uint32_t first, uint32_t bytes) {
	put16(ip + 2, bytes);
	put16(ip + 4, get16(ip + 4) + first);
	put16(ip + 10, 0);
	put16(ip + 10, ~sum(ip, s->ip_header_bytes, 0));
}

static void write_tcp(const struct segments *s, uint8_t *ip, uint32_t first, uint32_t n, uint32_t bytes) {
	uint8_t *tcp = ip + s->ip_header_bytes;
	uint32_t sequence = (get16(tcp + 4) << 16 | get16(tcp + 6)) + offset(s, first);
	put16(tcp + 4, sequence >> 16);
	put16(tcp + 6, sequence);
	if (first + n < s->n)
		tcp[13] &= (uint8_t)~TCP_FIN_PSH;
	if (first > 0)
		tcp[13] &= (uint8_t)~TCP_CWR;
	put16(tcp + 16, sum(ip + 12, 8, TCP + bytes - s->ip_header_bytes));
}

void segments_copy(const struct segments *s, const uint8_t *frame, uint32_t first, uint32_t n, uint8_t *to) {
	uint32_t headers = SEGMENTS_VNET_BYTES + s->header_bytes, bytes = segments_copy_bytes(s, first, n);
	memcpy(to, frame, headers);
	memcpy(to + headers, frame + headers + offset(s, first), bytes - headers);
	if (n == s->n)
		return;
	struct virtio_net_hdr h;
	memcpy(&h, to, sizeof h);
	h.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	h.csum_start = (uint16_t)s->ip_header_bytes;
	h.csum_offset = 16;
	h.hdr_len = (uint16_t)s->header_bytes;
	if (n == 1) {
		h.gso_type = VIRTIO_NET_HDR_GSO_NONE;
		h.gso_size = 0;
	}
	memcpy(to, &h, sizeof h);
	uint8_t *ip = to + SEGMENTS_VNET_BYTES;
	write_ip(s, ip, first, bytes - SEGMENTS_VNET_BYTES);
	write_tcp(s, ip, first, n, bytes - SEGMENTS_VNET_BYTES);
}
