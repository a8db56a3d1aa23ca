/* portmap.c: the thread that keeps the mapping (net/portmap/portmap.h). */
#include "net/portmap/portmap.h"

#include "base/clock.h"
#include "base/os_threads.h"
#include "net/address_reach.h"
#include "net/portmap/protocol.h"

#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEASE_S = 3600, RETRY_S = 600, RENEW_LEAST_S = 30, STOP_S = 5, STOP_ASKING_S = 1 };

static const struct portmap_protocol *const protocols[] = {&portmap_pcp, &portmap_natpmp, &portmap_upnp};
enum { PROTOCOLS = sizeof protocols / sizeof protocols[0] };

struct portmap {
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	bool stops, hurries;
	bool is_new; /* `state` was not looked at since it changed */
	struct portmap_state state;
	/* The thread's own. */
	struct portmap_lease lease;
	const struct portmap_protocol *in_use; /* NULL: no mapping */
};

static void describe(const struct portmap *p, const struct rv_errtext *why, struct portmap_state *out) {
	*out = (struct portmap_state){.asked = true, .protocol = p->in_use != NULL ? p->in_use->name : NULL};
	if (p->in_use == NULL) {
		(void)snprintf(out->text, sizeof out->text, "%s", why->text);
		return;
	}
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr = p->lease.address, .sin_port = htons(p->lease.outside)};
	struct sockaddr_storage any = {0};
	memcpy(&any, &sa, sizeof sa);
	address_of_socket(&any, &out->outside);
	if (p->lease.address.s_addr != 0 && address_reach(&out->outside) != ADDRESS_PUBLIC)
		(void)snprintf(
			out->text, sizeof out->text,
			"the router's own address, %s, is not a public one: another router, most likely the provider's, is "
			"before it",
			out->outside.host);
}

/* Asks by the protocol in use; without an answer, by all in turn. */
static void ask(struct portmap *p, struct portmap_state *state) {
	struct rv_errtext why = {.text = "the router answers neither PCP nor NAT-PMP nor UPnP"}, et = {0};
	const struct portmap_protocol *before = p->in_use;
	p->in_use = NULL;
	for (int i = before != NULL ? -1 : 0; i < PROTOCOLS && p->in_use == NULL; i++) {
		const struct portmap_protocol *by = i < 0 ? before : protocols[i];
		p->lease.seconds = LEASE_S;
		enum rv_err e = by->map(&p->lease, &et);
		if (e == RV_OK && p->lease.outside == 0)
			e = rv_fail(&et, RV_E_IO, "the router grants port 0, which nobody can dial");
		if (p->lease.seconds > LEASE_S)
			p->lease.seconds = LEASE_S; /* it may forget the mapping at a restart */
		if (e == RV_OK)
			p->in_use = by;
		else if (e != RV_E_UNSUPPORTED)
			(void)snprintf(why.text, sizeof why.text, "%s: %s", by->name, et.text);
	}
	describe(p, &why, state);
}

/* Returns the seconds until it asks again. */
static int64_t pause_s(const struct portmap *p) {
	if (p->in_use == NULL || p->lease.seconds == 0)
		return RETRY_S;
	int64_t half = p->lease.seconds / 2;
	return half > RENEW_LEAST_S ? half : RENEW_LEAST_S;
}

static void wait_for_change(struct portmap *p) {
	const int64_t until_us = rv_clock_monotonic_us() + pause_s(p) * RV_US_PER_S;
	while (!p->stops && !p->hurries && os_cond_wait_until(&p->changed, &p->lock, until_us))
		;
	p->hurries = false;
}

static bool same(const struct portmap_state *a, const struct portmap_state *b) {
	return a->asked == b->asked && a->protocol == b->protocol && a->outside.port == b->outside.port &&
		   strcmp(a->outside.host, b->outside.host) == 0 && strcmp(a->text, b->text) == 0;
}

static void *run(void *arg) {
	struct portmap *p = arg;
	struct portmap_state state;
	(void)pthread_mutex_lock(&p->lock);
	while (!p->stops) {
		(void)pthread_mutex_unlock(&p->lock);
		ask(p, &state);
		(void)pthread_mutex_lock(&p->lock);
		p->is_new = p->is_new || !same(&state, &p->state);
		p->state = state;
		wait_for_change(p);
	}
	(void)pthread_mutex_unlock(&p->lock);
	if (p->in_use != NULL)
		p->in_use->unmap(&p->lease);
	return NULL;
}

static void init_waiting(struct portmap *p) {
	os_cond_init(&p->changed);
	(void)pthread_mutex_init(&p->lock, NULL);
}

enum rv_err portmap_start(uint16_t port, struct portmap **out, struct rv_errtext *et) {
	struct portmap *p = calloc(1, sizeof *p);
	*out = NULL;
	if (p == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for a port mapping");
	p->lease.inside = p->lease.outside = port;
	randombytes_buf(p->lease.nonce, sizeof p->lease.nonce);
	init_waiting(p);
	if (pthread_create(&p->thread, NULL, run, p) != 0) {
		free(p);
		return rv_fail(et, RV_E_NOMEM, "no thread for a port mapping");
	}
	*out = p;
	return RV_OK;
}

/* Returns true if the router has granted a mapping, as far as is known. */
static bool notify(struct portmap *p, bool stops) {
	(void)pthread_mutex_lock(&p->lock);
	bool granted = p->state.protocol != NULL;
	p->stops = p->stops || stops;
	p->hurries = true;
	(void)pthread_cond_signal(&p->changed);
	(void)pthread_mutex_unlock(&p->lock);
	return granted;
}

void portmap_stop(struct portmap *p) {
	if (p == NULL)
		return;
	bool granted = notify(p, true);
	if (!os_thread_join_until(p->thread, rv_clock_monotonic_us() + (granted ? STOP_S : STOP_ASKING_S) * RV_US_PER_S)) {
		(void)pthread_detach(p->thread); /* it waits for the router, and keeps its memory */
		return;
	}
	(void)pthread_cond_destroy(&p->changed);
	(void)pthread_mutex_destroy(&p->lock);
	free(p);
}

void portmap_hurry(struct portmap *p) {
	(void)notify(p, false);
}

bool portmap_look(struct portmap *p, struct portmap_state *out) {
	(void)pthread_mutex_lock(&p->lock);
	bool is_new = p->is_new;
	p->is_new = false;
	*out = p->state;
	(void)pthread_mutex_unlock(&p->lock);
	return is_new;
}

void portmap_peek(struct portmap *p, struct portmap_state *out) {
	(void)pthread_mutex_lock(&p->lock);
	*out = p->state;
	(void)pthread_mutex_unlock(&p->lock);
}
