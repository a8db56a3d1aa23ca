/* probe.c: see probe.h. */
#include "net/mesh/probe.h"

#include "base/assert.h"
#include "net/mesh/handshake.h"

#include <stdlib.h>
#include <string.h>

enum dial_state {
	DIAL_ENDED, /* its result is known, or there is none */
	DIAL_CONNECTING,
	DIAL_SECURING
};

struct dial {
	enum dial_state state;
	struct route to;
	int pipe;
	short events;
	struct handshake tls;
	uint8_t result; /* enum probe_result */
};

/* One of those that are under way. */
struct place {
	bool under_way;
	int64_t begun_us; /* of the latest */
	struct probe probe;
	struct dial dials[PROBE_MAX_ADDRS];
};

struct prober {
	struct pipe_ops net;
	const struct stream_ops *stream;
	void *shared;
	struct place places[PROBES_AT_ONCE];
	struct probed_list ended;
	int next; /* place in `ended` that the next one takes */
};

enum rv_err prober_new(const struct prober_config *cfg, struct prober **out, struct rv_errtext *et) {
	struct prober *p = calloc(1, sizeof *p);
	*out = NULL;
	if (p == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for probes");
	p->net = cfg->pipe != NULL ? *cfg->pipe : socket_pipe;
	p->stream = cfg->stream != NULL ? cfg->stream : &tls_stream;
	for (int i = 0; i < PROBES_AT_ONCE; i++)
		p->places[i].begun_us = INT64_MIN / 2;
	enum rv_err e = p->stream->setup(cfg->identity, &p->shared, et);
	if (e != RV_OK)
		prober_free(p);
	else
		*out = p;
	return e;
}

/* ---- one address ---- */

static void end_dial(struct prober *p, struct dial *d, enum probe_result result) {
	if (d->state == DIAL_CONNECTING)
		p->net.close(p->net.ctx, d->pipe);
	else if (d->state == DIAL_SECURING)
		handshake_close(&d->tls);
	d->state = DIAL_ENDED;
	d->result = (uint8_t)result;
}

static void begin_dial(struct prober *p, struct dial *d, const char *addr, enum address_reach met) {
	*d = (struct dial){.to = {.kind = ROUTE_DIRECT}, .events = POLLOUT, .result = PROBE_UNABLE};
	if (address_parse(addr, &d->to.at, NULL) != RV_OK || !address_is_dialable(&d->to.at, met))
		return;
	enum rv_err e = p->net.connect(p->net.ctx, &d->to, 0, &d->pipe, NULL);
	if (e == RV_OK)
		d->state = DIAL_CONNECTING;
	else if (e == RV_E_NOTFOUND)
		d->result = PROBE_REFUSED;
}

static void secure(struct prober *p, struct dial *d, const uint8_t expected[NET_KEY_BYTES]) {
	uint8_t key[NET_KEY_BYTES];
	enum rv_err e = handshake_step(&d->tls, key, NULL);
	if (e == RV_E_BUSY)
		return;
	bool is_open = e == RV_OK && memcmp(key, expected, NET_KEY_BYTES) == 0;
	end_dial(p, d, is_open ? PROBE_OPEN : PROBE_OTHER_KEY);
}

static void connected(struct prober *p, struct dial *d) {
	enum rv_err e = p->net.connected(p->net.ctx, d->pipe, &d->to, &d->events, NULL);
	if (e == RV_E_BUSY)
		return;
	if (e != RV_OK) { /* an RST, or a router's ICMP error */
		end_dial(p, d, PROBE_REFUSED);
		return;
	}
	int pipe = d->pipe;
	d->state = DIAL_ENDED;
	if (handshake_open(&d->tls, &p->net, p->stream, p->shared, pipe, true, NULL) == RV_OK)
		d->state = DIAL_SECURING;
	else
		d->result = PROBE_UNABLE;
}

/* ---- a probe ---- */

static void add_result(struct prober *p, const struct place *place) {
	struct probed *r = &p->ended.list[p->next];
	*r = (struct probed){.id = place->probe.id, .n = place->probe.n};
	for (int i = 0; i < r->n; i++)
		r->results[i] = place->dials[i].result;
	p->next = (p->next + 1) % PROBES_AT_ONCE;
	if (p->ended.n < PROBES_AT_ONCE)
		p->ended.n++;
}

/* Returns true if all addresses of the probe have a result. */
static bool finish(struct prober *p, struct place *place) {
	for (int i = 0; i < place->probe.n; i++)
		if (place->dials[i].state != DIAL_ENDED)
			return false;
	place->under_way = false;
	add_result(p, place);
	return true;
}

static bool is_known(const struct prober *p, uint64_t id) {
	bool known = false;
	for (int i = 0; i < PROBES_AT_ONCE; i++)
		known = known || (p->places[i].under_way && p->places[i].probe.id == id);
	for (int i = 0; i < p->ended.n; i++)
		known = known || p->ended.list[i].id == id;
	return known;
}

static void begin(struct prober *p, int64_t now_us, const struct probe *probe, enum address_reach met) {
	struct place *place = p->places;
	RV_ASSERT(probe->n >= 1 && probe->n <= PROBE_MAX_ADDRS);
	while (place < p->places + PROBES_AT_ONCE && (place->under_way || now_us - place->begun_us < PROBE_EVERY_US))
		place++;
	if (place == p->places + PROBES_AT_ONCE)
		return;
	place->under_way = true;
	place->begun_us = now_us;
	place->probe = *probe;
	for (int i = 0; i < probe->n; i++)
		begin_dial(p, &place->dials[i], probe->addrs[i].addr, met);
}

void prober_take(struct prober *p, int64_t now_us, const struct probes *probes, enum address_reach met) {
	RV_ASSERT(probes->n <= PROBES_AT_ONCE);
	for (int i = 0; i < probes->n; i++)
		if (!is_known(p, probes->list[i].id))
			begin(p, now_us, &probes->list[i], met);
}

const struct probed_list *prober_results(const struct prober *p) {
	return &p->ended;
}

void prober_free(struct prober *p) {
	if (p == NULL)
		return;
	for (int i = 0; i < PROBES_AT_ONCE; i++)
		for (int k = 0; k < PROBE_MAX_ADDRS; k++)
			end_dial(p, &p->places[i].dials[k], PROBE_NOT_KNOWN);
	p->stream->teardown(p->shared);
	free(p);
}

/* ---- the loop ---- */

static bool dial_pollfd(const struct dial *d, struct pollfd *out) {
	if (d->state == DIAL_CONNECTING)
		*out = (struct pollfd){.fd = d->pipe, .events = d->events};
	else if (d->state == DIAL_SECURING)
		*out = (struct pollfd){.fd = d->tls.pipe, .events = d->tls.events};
	return d->state != DIAL_ENDED;
}

int prober_pollfds(const struct prober *p, struct pollfd *fds, int cap) {
	int n = 0;
	for (int i = 0; i < PROBES_AT_ONCE; i++)
		for (int k = 0; k < PROBE_MAX_ADDRS && n < cap; k++)
			n += dial_pollfd(&p->places[i].dials[k], &fds[n]);
	return n;
}

/* Returns the time at which a dial that is under way is given up. */
static int64_t until_us(const struct place *place, const struct dial *d) {
	return place->begun_us + (d->state == DIAL_CONNECTING ? PROBE_US : PROBE_TLS_US);
}

int64_t prober_deadline_us(const struct prober *p) {
	int64_t at = INT64_MAX;
	for (int i = 0; i < PROBES_AT_ONCE; i++)
		for (int k = 0; p->places[i].under_way && k < p->places[i].probe.n; k++) {
			const struct dial *d = &p->places[i].dials[k];
			if (d->state != DIAL_ENDED && until_us(&p->places[i], d) < at)
				at = until_us(&p->places[i], d);
		}
	return at;
}

static bool is_ready(int pipe, const struct pollfd *fds, int n) {
	for (int i = 0; i < n; i++)
		if (fds[i].fd == pipe && fds[i].revents != 0)
			return true;
	return false;
}

static void move_dial(struct prober *p, const struct place *place, struct dial *d, const struct pollfd *fds, int n) {
	if (d->state == DIAL_CONNECTING && is_ready(d->pipe, fds, n))
		connected(p, d);
	else if (d->state == DIAL_SECURING && is_ready(d->tls.pipe, fds, n))
		secure(p, d, place->probe.key);
}

bool prober_handle(struct prober *p, int64_t now_us, const struct pollfd *fds, int n) {
	bool any = false;
	for (int i = 0; i < PROBES_AT_ONCE; i++) {
		struct place *place = &p->places[i];
		for (int k = 0; place->under_way && k < place->probe.n; k++) {
			struct dial *d = &place->dials[k];
			move_dial(p, place, d, fds, n);
			if (d->state != DIAL_ENDED && now_us >= until_us(place, d))
				end_dial(p, d, d->state == DIAL_CONNECTING ? PROBE_SILENT : PROBE_OTHER_KEY);
		}
		any = (place->under_way && finish(p, place)) || any;
	}
	return any;
}
