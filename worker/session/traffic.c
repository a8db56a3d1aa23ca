/* traffic.c: the bytes of this worker's line: what the mesh counts, and what goes past it: the
 * coordinator, mirrors of the text, the relay for others. */
#include "worker/session/internal.h"

#include "worker/own_relay/own_relay.h"

/* What the line carries for bytes at a socket: headers of TCP/IP (net/mesh/rate.h), and in the
 * other direction acknowledgements. */
enum { SEGMENT_BYTES = 1448, PACKET_BYTES = 1500, ACK_SHARE = 40 };

static uint64_t on_line(uint64_t bytes, uint64_t other_way) {
	return bytes * PACKET_BYTES / SEGMENT_BYTES + other_way / ACK_SHARE;
}

/* Returns the bytes at sockets that the mesh does not count. */
static struct peers_traffic beside_the_mesh(const struct session *s) {
	struct peers_traffic t = {0};
	if (s->http) {
		const struct http_traffic h = http_client_traffic(s->http);
		t.tx_bytes += h.tx_bytes;
		t.rx_bytes += h.rx_bytes;
	}
	if (s->text) {
		const struct text_stats text = text_stats(s->text);
		t.rx_bytes += text.bytes[TEXT_MIRROR] + text.bytes[TEXT_COORDINATOR] + text.wasted_bytes;
	}
	uint64_t relayed = s->own_relay.closed_bytes;
	if (s->own_relay.relay)
		relayed += own_relay_look(s->own_relay.relay).bytes;
	t.tx_bytes += relayed;
	t.rx_bytes += relayed;
	return t;
}

struct session_line_bytes session_line_bytes(const struct session *s) {
	struct peers_traffic t = beside_the_mesh(s);
	if (s->mesh) {
		const struct peers_traffic mesh = peers_total(meshlink_peers(s->mesh));
		t.tx_bytes += mesh.tx_bytes;
		t.rx_bytes += mesh.rx_bytes;
	}
	const uint64_t up = on_line(t.tx_bytes, t.rx_bytes), down = on_line(t.rx_bytes, t.tx_bytes);
	return (struct session_line_bytes){.up = up, .down = down, .both = up + down};
}

void session_charge_caps(struct session *s) {
	const struct peers_traffic now = beside_the_mesh(s), *then = &s->charged;
	peers_charge(meshlink_peers(s->mesh), now.tx_bytes - then->tx_bytes, now.rx_bytes - then->rx_bytes);
	s->charged = now;
}
