/* reach_scene.h: a reach core with a scripted platform, for its tests: what it asks for is noted,
 * and tests answer. */
#ifndef RV_TESTS_WORKER_REACH_SCENE_H
#define RV_TESTS_WORKER_REACH_SCENE_H

#include "tests/common/check.h"
#include "worker/reach/reach_core.h"

enum { S = 1000000, MS = 1000, SCENE_MAX_SENT = 64, SCENE_SELF = 3, SCENE_KEY = 99 };

/* A reflection that was asked for. */
struct asked_reflection {
	bool is_asked;
	int n; /* times */
	char relay[NET_ADDR_BYTES];
	uint16_t port;
	uint8_t token[NET_TOKEN_BYTES];
};

struct scene {
	struct reach_core *core;
	int64_t now_us;
	struct document doc;
	int connects, closes, sent, offers, ups, downs, refusals, asks, mappings, openings, bads;
	struct relay_ref at[REACH_STATIONS]; /* of the last connect */
	bool is_connected[REACH_STATIONS];
	int sent_by[SCENE_MAX_SENT]; /* station */
	struct relay_frame frames[SCENE_MAX_SENT];
	uint64_t asked, ponged[REACH_STATIONS];
	struct asked_reflection reflections[REACH_REFLECTIONS];
	uint32_t offered;
	int offered_by; /* station */
	struct route route;
	struct reach_mapping mapping;      /* of the last event */
	enum path_kind paths[NET_MAX_ROW]; /* what the mesh has */
	bool refuses_offers;               /* the mesh */
	bool no_second_port;               /* relays have one: 7436 */
	char text[RV_ERRTEXT_BYTES];
};

int scene_setup(void **state);
int scene_teardown(void **state);
#define SCENE_TEST(f) cmocka_unit_test_setup_teardown(f, scene_setup, scene_teardown)

/* Lists relays 10.0.0.1:7435, ... with the keys 1, ... */
void scene_list_relays(struct scene *s, int n);
/* Puts a member into the document, with its home at the relay of this place (from 1) and a
 * host. */
void scene_add_member(struct scene *s, uint32_t member, uint8_t relay, const char *addr);
void scene_advance(struct scene *s, int64_t us);
void scene_gets(struct scene *s, int station, const struct relay_frame *m, enum rv_err expected);
/* Answers the last PING of each station, if that has not been done. */
void scene_pongs(struct scene *s);
/* Waits until this station connects, and brings it up. */
void scene_comes_up(struct scene *s, int station);
/* Answers a reflection with this address. */
void scene_reflects(struct scene *s, int station, enum reach_family family, enum reach_port port, const char *host,
					uint16_t at);
/* Answers all reflections of a station that were asked for: 192.0.2.7:7434, and [2001:db8::7]:7434
 * by IPv6. */
void scene_reflects_all(struct scene *s, int station);
/* The home station is up at the first of n relays, and the mapping known by IPv4 alone. */
void scene_is_home(struct scene *s, int n_relays);
/* Gives a ticket for each peer that was asked for. */
void scene_gets_tickets(struct scene *s);
/* Returns the last frame that was sent, which is a CALL of this way. */
const struct relay_frame *scene_called(const struct scene *s, uint32_t peer, enum relay_way way);
void scene_refuses(struct scene *s, int station, uint32_t peer, enum relay_way way, enum relay_refusal reason,
				   uint32_t wait_ms);
void scene_opens(struct scene *s, int station, uint32_t peer, const char *host, uint16_t port);
void scene_rings(struct scene *s, int station, uint32_t peer);

#endif
