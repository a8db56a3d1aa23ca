/* reach_test.c: how others reach this worker, tested before the invite is spent and again when
 * something has changed (worker/join/reach_check.h); and the probes that this worker makes for
 * others (net/mesh/probe.h). */
#include "worker/session/internal.h"

#include "net/portmap/portmap.h"
#include "worker/join/reach_text.h"
#include "worker/reach/relay_names.h"

#include <string.h>

enum {
	LOOK_US = 100 * RV_US_PER_MS,      /* between two looks at the router's answer */
	SETTLE_US = 5 * RV_US_PER_S,       /* for the station and the router, at the start and after a change */
	AGAIN_LEAST_US = 60 * RV_US_PER_S, /* after a test that could not be had; doubles */
	AGAIN_MOST_US = 16 * 60 * RV_US_PER_S
};

/* ---- a check ---- */

static void ask(void *ctx, const struct reach_test_request *rq) {
	control_client_ask_reach(((struct session *)ctx)->control, rq);
}

/* Finds the relay by the family by which the coordinator sees this worker. */
static enum name_state find_relay(struct session *s, int64_t now_us, const struct relay_ref *relay,
								  struct address *out) {
	struct sockaddr_storage sa;
	struct address met, found[REACH_FAMILIES];
	enum reach_family first;
	const char *why;
	socklen_t n;
	if (address_parse(relay->addr, out, NULL) != RV_OK || !http_client_met(s->http, &met))
		return NAME_FAILED;
	bool at_coordinator = strcmp(out->host, s->member.invite.coordinator.host) == 0;
	if (at_coordinator)
		memcpy(out->host, met.host, sizeof out->host);
	if (address_to_socket(out, &sa, &n))
		return NAME_FOUND;
	enum name_state state = relay_names_find(s->reachability.names, now_us, out->host, found, &first, &why);
	if (state != NAME_FOUND)
		return state;
	const struct address *at = &found[strchr(met.host, ':') != NULL ? REACH_V6 : REACH_V4];
	memcpy(out->host, at->host, sizeof out->host);
	return at->host[0] != '\0' ? NAME_FOUND : NAME_FAILED;
}

/* Asks the next relay of the list, once its address is known; the check learns when none is
 * left. */
static void move_reflections(struct session *s, int64_t now_us) {
	static const struct address none = {.port = 0};
	struct session_reachability *r = &s->reachability;
	struct address relay;
	if (r->reflects && (!reflection_ended(&r->reflection) || r->reflection.lines[0].seen.host[0] != '\0'))
		return; /* it is under way, or was answered */
	if (r->next_relay == r->relays.n_relays) {
		reach_check_reflected(&r->check, now_us, &none, &none);
		return;
	}
	enum name_state state = find_relay(s, now_us, &r->relays.relays[r->next_relay], &relay);
	if (state == NAME_SOUGHT)
		return;
	r->next_relay++;
	if (state == NAME_FAILED)
		return;
	if (r->reflects)
		reflection_close(&r->reflection);
	r->reflects = true;
	reflection_open(&r->reflection, r->check.cfg.port, &relay);
}

static void reflect(void *ctx, const struct reach_test_reply *reply) {
	struct session_reachability *r = &((struct session *)ctx)->reachability;
	r->relays = *reply;
	r->next_relay = 0;
}

static struct reach_router look_at_router(const struct session *s) {
	struct portmap_state m = {.asked = false};
	if (s->portmap == NULL)
		return (struct reach_router){.asked = true};
	portmap_peek(s->portmap, &m);
	return (struct reach_router){.asked = m.asked,
								 .mapped = m.protocol != NULL ? m.outside.port : 0,
								 .behind_another = m.protocol != NULL && m.text[0] != '\0'};
}

/* Returns how the router maps the port, as the home station sees it; *at: where. */
static enum check_mapping look_at_station(const struct session *s, struct address *at) {
	struct address met;
	*at = (struct address){.port = 0};
	if (!session_is_up(s) || !http_client_met(s->http, &met))
		return CHECK_MAPPING_NOT_KNOWN;
	enum reach_family family = strchr(met.host, ':') != NULL ? REACH_V6 : REACH_V4;
	const struct reach_mapping *m = reach_core_mapping(reach_core_of(s->reach), family);
	*at = m->at;
	return m->at.port == 0                        ? CHECK_MAPPING_NOT_KNOWN
		   : m->kind == REACH_MAPPING_INDEPENDENT ? CHECK_MAPPING_INDEPENDENT
		   : m->kind == REACH_MAPPING_DEPENDENT   ? CHECK_MAPPING_DEPENDENT
												  : CHECK_MAPPING_NOT_KNOWN;
}

/* Begins a check of the port on which this worker listens. */
static void begin(struct session *s, int64_t now_us, uint16_t port) {
	struct session_reachability *r = &s->reachability;
	struct address own;
	struct reach_check_config cfg = {.ops = {.ctx = s, .ask = ask, .reflect = session_is_up(s) ? NULL : reflect},
									 .request = {.has_token = s->member.invite.has_token && !s->member.joined},
									 .port = port,
									 .router = look_at_router(s)};
	cfg.mapping = look_at_station(s, &cfg.reflected);
	if (cfg.mapping == CHECK_MAPPING_NOT_KNOWN) /* its relay does not answer now */
		cfg.mapping = r->check.facts.mapping;
	memcpy(cfg.request.run_id, s->member.invite.run_id, NET_RUN_ID_BYTES);
	memcpy(cfg.request.token, s->member.invite.token, NET_TOKEN_BYTES);
	(void)address_parse(s->opt->advertised, &cfg.given, NULL);
	r->again_us = INT64_MAX;
	reach_check_begin(&r->check, now_us, &cfg);
	if (http_client_own(s->http, &own))
		reach_check_local(&r->check, own.host);
}

static void log_reach(struct session *s, uint8_t kind) {
	const struct reach_facts *f = &s->reachability.check.facts;
	const struct reach_place *open = reach_open_place(f);
	char text[REACH_TEXT_BYTES];
	reach_text(f, text);
	rv_event(s->events, RV_INFO, "reach",
			 RV_FIELDS(rv_field_str("reach", reach_name(kind)), rv_field_str("seen", f->seen),
					   rv_field_str("addr", open != NULL ? open->addr : ""),
					   rv_field_bool("symmetric", f->mapping == CHECK_MAPPING_DEPENDENT),
					   rv_field_bool("mapping_refuted", reach_mapping_refuted(f))),
			 "%s", text);
}

/* A member has logged before that its router forwards the port (network.c). */
static void log_refuted(struct session *s) {
	uint16_t port = s->reachability.check.facts.router.mapped;
	rv_event(
		s->events, RV_WARN, "port_map", RV_FIELDS(rv_field_int("port", port)),
		"the router says that it forwards its TCP port %u to this worker, but nobody gets through to it from outside: "
		"it is not announced",
		port);
}

/* Takes the conclusion; one that is not known leaves the former one, and is asked for again. */
static void conclude(struct session *s, int64_t now_us) {
	struct session_reachability *r = &s->reachability;
	uint8_t kind = (uint8_t)reach_of_facts(&r->check.facts);
	bool known = kind != REACH_NOT_KNOWN;
	r->concludes = false;
	bool refuted = known ? reach_mapping_refuted(&r->check.facts) : r->refuted;
	if (refuted && !r->refuted && session_is_up(s))
		log_refuted(s);
	r->refuted = refuted;
	r->pause_us = known || r->pause_us == 0         ? AGAIN_LEAST_US
				  : 2 * r->pause_us < AGAIN_MOST_US ? 2 * r->pause_us
													: AGAIN_MOST_US;
	r->again_us = known ? INT64_MAX : now_us + r->pause_us;
	if (!r->logged || (known && kind != r->kind))
		log_reach(s, kind);
	r->logged = true;
	r->kind = known ? kind : r->kind;
}

void session_on_reach(void *ctx, const struct reach_test_reply *reply, bool final, const char *why) {
	struct session *s = ctx;
	reach_check_answer(&s->reachability.check, rv_clock_monotonic_us(), reply, final, why);
}

/* ---- before the join ---- */

static void close_answer(struct session_reachability *r) {
	probe_answer_free(r->answer);
	r->answer = NULL;
	if (r->reflects)
		reflection_close(&r->reflection);
	r->reflects = false;
	relay_names_free(r->names);
	r->names = NULL;
}

bool session_test_reach(struct session *s, int64_t now_us) {
	struct session_reachability *r = &s->reachability;
	const struct probe_answer_config cfg = {.identity = &s->member.identity, .listen = s->listen};
	r->names = relay_names_new();
	if (r->names == NULL || probe_answer_new(&cfg, &r->answer, NULL) != RV_OK)
		return false; /* another program took the port: the mesh reports it, or takes the next one */
	session_map_port(s, probe_answer_port(r->answer));
	r->concludes = true;
	begin(s, now_us, probe_answer_port(r->answer));
	return true;
}

/* ---- as a member ---- */

enum rv_err session_open_prober(struct session *s, struct rv_errtext *et) {
	const struct prober_config cfg = {.identity = &s->member.identity};
	if (!s->reachability.logged)
		session_retest_reach(s, rv_clock_monotonic_us());
	return prober_new(&cfg, &s->reachability.prober, et);
}

void session_on_probes(void *ctx, const struct probes *p) {
	struct session *s = ctx;
	struct address met;
	if (http_client_met(s->http, &met))
		prober_take(s->reachability.prober, rv_clock_monotonic_us(), p, address_reach(&met));
}

void session_retest_reach(struct session *s, int64_t now_us) {
	struct session_reachability *r = &s->reachability;
	r->again_us = now_us + SETTLE_US;
	r->pause_us = 0;
}

/* Returns true if the router or the station has another answer than was tested. */
static bool has_changed(const struct session *s, const struct reach_router *router) {
	const struct reach_check *c = &s->reachability.check;
	struct address at;
	enum check_mapping mapping = look_at_station(s, &at);
	bool moved = at.port != c->cfg.reflected.port || strcmp(at.host, c->cfg.reflected.host) != 0;
	return router->mapped != c->facts.router.mapped ||
		   (mapping != CHECK_MAPPING_NOT_KNOWN && mapping != c->facts.mapping) ||
		   (mapping == CHECK_MAPPING_INDEPENDENT && moved);
}

/* Begins another check when it is time, or something has changed. */
static void check_again(struct session *s, int64_t now_us) {
	struct session_reachability *r = &s->reachability;
	struct reach_router router = look_at_router(s);
	if (reach_check_runs(&r->check)) {
		reach_check_router(&r->check, now_us, &router);
		return;
	}
	bool changed = r->logged && now_us - r->check.begun_us >= AGAIN_LEAST_US && has_changed(s, &router);
	if (!changed && now_us < r->again_us)
		return;
	r->concludes = true;
	begin(s, now_us, peers_port(meshlink_peers(s->mesh)));
}

/* ---- the loop ---- */

int session_reach_pollfds(struct session *s, struct pollfd fds[SESSION_REACH_FDS]) {
	struct session_reachability *r = &s->reachability;
	int n = r->answer != NULL ? probe_answer_pollfds(r->answer, fds) : 0;
	n += r->reflects ? reflection_pollfds(&r->reflection, fds + n) : 0;
	return n + (r->prober != NULL ? prober_pollfds(r->prober, fds + n, PROBE_MAX_FDS) : 0);
}

static int64_t earlier(int64_t a, int64_t b) {
	return a < b ? a : b;
}

int64_t session_reach_deadline_us(struct session *s, int64_t now_us) {
	struct session_reachability *r = &s->reachability;
	int64_t at = reach_check_deadline_us(&r->check);
	if (r->check.state == REACH_CHECK_GATHERING)
		at = earlier(at, now_us + LOOK_US);
	if (r->answer != NULL)
		at = earlier(at, probe_answer_deadline_us(r->answer));
	if (r->prober != NULL)
		at = earlier(at, prober_deadline_us(r->prober));
	return session_is_up(s) ? earlier(at, r->again_us) : at;
}

static void move_check(struct session *s, int64_t now_us, const struct pollfd *fds, int n) {
	struct session_reachability *r = &s->reachability;
	struct reach_router router = look_at_router(s);
	if (r->answer != NULL)
		probe_answer_handle(r->answer, now_us, fds, n); /* its listener comes first */
	if (r->reflects)
		reflection_handle(&r->reflection, fds, n);
	if (r->check.state == REACH_CHECK_GATHERING && !r->check.reflected)
		move_reflections(s, now_us);
	if (r->reflects && reflection_ended(&r->reflection) && r->reflection.lines[0].seen.host[0] != '\0')
		reach_check_reflected(&r->check, now_us, &r->reflection.lines[0].seen, &r->reflection.lines[1].seen);
	reach_check_router(&r->check, now_us, &router);
	reach_check_tick(&r->check, now_us);
}

void session_reach_handle(struct session *s, int64_t now_us, const struct pollfd *fds, int n) {
	struct session_reachability *r = &s->reachability;
	if (r->prober != NULL && prober_handle(r->prober, now_us, fds, n))
		control_client_probed(s->control, prober_results(r->prober));
	if (session_is_up(s))
		check_again(s, now_us);
	if (reach_check_runs(&r->check))
		move_check(s, now_us, fds, n);
	if (!r->concludes || reach_check_runs(&r->check))
		return;
	bool before_join = r->answer != NULL;
	conclude(s, now_us);
	close_answer(r);
	if (before_join)
		session_send_join(s);
}

void session_release_reach(struct session *s) {
	close_answer(&s->reachability);
	prober_free(s->reachability.prober);
	s->reachability.prober = NULL;
}
