/* descriptors.c: see descriptors.h. */
#include "coordinator/commands/descriptors.h"

#include "net/limits.h"

#include <errno.h>
#include <sys/resource.h>

_Static_assert(DESCRIPTORS_OF_RELAY >= NET_RELAY_MEMBERS + 2 * NET_RELAY_LINKS + NET_RELAY_STRANGERS, "all at once");

static rlim_t least(rlim_t a, rlim_t b) {
	return a < b ? a : b;
}

enum rv_err descriptors_check(int wanted, struct rv_errtext *et) {
	if (wanted > 0 && wanted < DESCRIPTORS_LEAST_CONNECTIONS)
		return rv_fail(et, RV_E_RANGE, "--max-connections %d: at least %d, or 0 for as many as there is room for",
					   wanted, (int)DESCRIPTORS_LEAST_CONNECTIONS);
	return RV_OK;
}

static enum rv_err check_room(int wanted, rlim_t room, rlim_t others, rlim_t hard, struct rv_errtext *et) {
	const int need = wanted > 0 ? wanted : DESCRIPTORS_LEAST_CONNECTIONS;
	if (room >= (rlim_t)need)
		return RV_OK;
	return rv_fail(et, RV_E_RANGE,
				   "%d connections need %llu open files (%llu for other things), and this system's limit is %llu: "
				   "raise it (`ulimit -Hn %llu` as root, or LimitNOFILE= of a systemd unit)%s",
				   need, (unsigned long long)(need + others), (unsigned long long)others, (unsigned long long)hard,
				   (unsigned long long)(need + others), wanted > 0 ? ", or give a lower --max-connections" : "");
}

enum rv_err descriptors_reserve(int wanted, bool relay, int *got, struct rv_errtext *et) {
	struct rlimit limit;
	const rlim_t others = DESCRIPTORS_OTHER + (relay ? DESCRIPTORS_OF_RELAY : 0);
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return rv_fail_errno(et, errno, "the limit of open files cannot be read");
	const rlim_t room = limit.rlim_max > others ? limit.rlim_max - others : 0;
	RV_TRY(check_room(wanted, room, others, limit.rlim_max, et));
	*got = wanted > 0 ? wanted : (int)least(room, DESCRIPTORS_DEFAULT_CONNECTIONS);
	if (limit.rlim_cur >= (rlim_t)*got + others)
		return RV_OK;
	limit.rlim_cur = (rlim_t)*got + others;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		return rv_fail_errno(et, errno, "the limit of open files cannot be raised to %llu",
							 (unsigned long long)limit.rlim_cur);
	return RV_OK;
}
