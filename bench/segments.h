/* segments.h: a TCP packet that Linux has not cut into segments yet, as a TUN device with
 * IFF_VNET_HDR gives it (GSO, virtio 1.1 section 5.1.6): what a line carries of it, and copies of a
 * part of it. Only TCP over IPv4 comes uncut (TUN_F_TSO4); everything else is one segment. */
#ifndef RV_BENCH_SEGMENTS_H
#define RV_BENCH_SEGMENTS_H

#include <stdint.h>

enum { SEGMENTS_VNET_BYTES = 10 }; /* of struct virtio_net_hdr, before the IP packet */

struct segments {
	uint32_t n;
	uint32_t ip_header_bytes, header_bytes; /* of IP; of IP and TCP: each segment has them. 0: one segment */
	uint32_t payload_bytes;                 /* of each but the last */
	uint32_t all_bytes;                     /* of the IP packet, as it is */
};

/* Returns the segments of `frame`, `bytes` of virtio header and IP packet, at least of the header.
 * A packet whose own lengths do not fit is one segment. */
struct segments segments_of(const uint8_t *frame, uint32_t bytes);

/* Returns the IP bytes of segment i < n. */
uint32_t segments_ip_bytes(const struct segments *s, uint32_t i);

/* Returns the bytes that segments_copy will write for `n` segments from `first` on. */
uint32_t segments_copy_bytes(const struct segments *s, uint32_t first, uint32_t n);

/* Writes `n` segments of `frame` from `first` on, with the virtio header, as one packet that Linux
 * takes: lengths, sequence number, IP identification and flags are its own, and the TCP checksum is
 * the pseudo-header's (VIRTIO_NET_HDR_F_NEEDS_CSUM). `to` must not overlap. */
void segments_copy(const struct segments *s, const uint8_t *frame, uint32_t first, uint32_t n, uint8_t *to);

#endif
