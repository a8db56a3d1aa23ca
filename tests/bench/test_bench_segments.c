/* test_bench_segments.c: what shaped_net cuts out of an uncut TCP packet. */
#include "bench/segments.h"
#include "tests/common/check.h"

#include <linux/virtio_net.h>
#include <string.h>

enum {
	IP = 24,
	TCP = 32,
	MSS = 1000,
	N = 6,
	LAST = 300,
	PAYLOAD = (N - 1) * MSS + LAST,
	IP_BYTES = IP + TCP + PAYLOAD
};
enum { VNET = SEGMENTS_VNET_BYTES, FRAME = VNET + IP_BYTES, SEQUENCE = 0x7ffffe0c };
enum { FIN = 0x01, PSH = 0x08, ACK = 0x10, CWR = 0x80 };

static uint32_t get(const uint8_t *p, int bytes) {
	uint32_t v = 0;
	for (int i = 0; i < bytes; i++)
		v = v << 8 | p[i];
	return v;
}

static void make_frame(uint8_t frame[FRAME]) {
	struct virtio_net_hdr h = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
							   .gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
							   .hdr_len = IP + TCP,
							   .gso_size = MSS,
							   .csum_start = IP,
							   .csum_offset = 16};
	const uint8_t ip[IP] = {0x46, 0, IP_BYTES >> 8, IP_BYTES & 255, 0xff, 0xfe, 0x40, 0, 64, 6, 0, 0, 10, 86, 0, 2, 10,
							86,   0, 0xff,          0x01,           1,    1,    0};
	memset(frame, 0, FRAME);
	memcpy(frame, &h, sizeof h);
	memcpy(frame + VNET, ip, IP);
	uint8_t *tcp = frame + VNET + IP;
	for (int i = 0; i < 4; i++)
		tcp[4 + i] = (uint8_t)(SEQUENCE >> 8 * (3 - i));
	tcp[12] = TCP / 4 << 4;
	tcp[13] = FIN | PSH | ACK | CWR;
	for (int i = 0; i < PAYLOAD; i++)
		tcp[TCP + i] = (uint8_t)(i * 2654435761u >> 24);
}

/* Returns the folded sum of big-endian words. */
static uint32_t fold(const uint8_t *p, int n, uint32_t s) {
	for (int i = 0; i < n; i += 2)
		s += get(p + i, 2);
	return (s & 0xffff) + (s >> 16);
}

static void check_part(const uint8_t *frame, uint32_t first, uint32_t n) {
	uint8_t out[FRAME];
	struct virtio_net_hdr h;
	struct segments s = segments_of(frame, FRAME);
	uint32_t bytes = segments_copy_bytes(&s, first, n), at = first * MSS, payload = bytes - VNET - IP - TCP;
	segments_copy(&s, frame, first, n, out);
	const uint8_t *ip = out + VNET, *tcp = ip + IP;
	assert_int_equal(payload, first + n == N ? PAYLOAD - at : n * MSS);
	assert_memory_equal(tcp + TCP, frame + VNET + IP + TCP + at, payload);
	assert_int_equal(get(ip + 2, 2), bytes - VNET);
	assert_int_equal(get(ip + 4, 2), (0xfffe + first) & 0xffff);
	assert_int_equal(fold(ip, IP, 0), 0xffff);
	assert_int_equal(get(tcp + 4, 4), SEQUENCE + at);
	assert_int_equal(tcp[13], ACK | (first == 0 ? CWR : 0) | (first + n == N ? FIN | PSH : 0));
	assert_int_equal(get(tcp + 16, 2), fold(ip + 12, 8, 6 + TCP + payload));
	memcpy(&h, out, sizeof h);
	assert_int_equal(h.flags, VIRTIO_NET_HDR_F_NEEDS_CSUM);
	assert_int_equal(h.gso_type, n == 1 ? VIRTIO_NET_HDR_GSO_NONE : VIRTIO_NET_HDR_GSO_TCPV4);
	assert_int_equal(h.gso_size, n == 1 ? 0 : MSS);
	assert_int_equal(segments_of(out, bytes).n, n);
}

static void test_each_part_is_a_packet_of_its_own(void **state) {
	(void)state;
	uint8_t frame[FRAME];
	make_frame(frame);
	for (uint32_t first = 0; first < N; first++)
		for (uint32_t n = 1; first + n <= N; n++)
			if (n < N)
				check_part(frame, first, n);
}

static void test_a_line_carries_headers_with_each_segment(void **state) {
	(void)state;
	uint8_t frame[FRAME], out[FRAME];
	make_frame(frame);
	struct segments s = segments_of(frame, FRAME);
	assert_int_equal(s.n, N);
	assert_int_equal(segments_ip_bytes(&s, 0), IP + TCP + MSS);
	assert_int_equal(segments_ip_bytes(&s, N - 1), IP + TCP + LAST);
	segments_copy(&s, frame, 0, N, out); /* all of it: as it is */
	assert_memory_equal(out, frame, FRAME);
}

static void test_what_is_not_uncut_tcp_is_one_segment(void **state) {
	(void)state;
	uint8_t frame[FRAME];
	make_frame(frame);
	frame[VNET + 9] = 17;
	assert_int_equal(segments_of(frame, FRAME).n, 1);
	make_frame(frame);
	frame[1] = VIRTIO_NET_HDR_GSO_NONE;
	assert_int_equal(segments_of(frame, FRAME).n, 1);
	assert_int_equal(segments_ip_bytes(&(struct segments){.n = 1, .all_bytes = 52}, 0), 52);
	make_frame(frame);
	assert_int_equal(segments_of(frame, VNET + IP + 19).n, 1);        /* ends in the TCP header */
	assert_int_equal(segments_of(frame, VNET + IP + TCP + MSS).n, 1); /* one segment's worth */
	assert_int_equal(segments_of(frame, VNET + IP + TCP + MSS + 1).n, 2);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_part_is_a_packet_of_its_own),
		cmocka_unit_test(test_a_line_carries_headers_with_each_segment),
		cmocka_unit_test(test_what_is_not_uncut_tcp_is_one_segment),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
