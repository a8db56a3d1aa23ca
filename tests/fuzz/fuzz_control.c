/* fuzz_control.c: joins, reports, notices, documents, pair tickets, probes and reachability tests.
 * The first byte chooses the message. Encodings are canonical: what is accepted encodes back to the
 * same bytes. */
#include "net/control/control.h"
#include "net/control/reach_test.h"

#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

union message {
	struct join_request join_request;
	struct join_reply join_reply;
	struct report report;
	struct notice notice;
	struct document document;
	struct pair_request pair_request;
	struct pair_reply pair_reply;
	struct probes probes;
	struct reach_test_request reach_request;
	struct reach_test_reply reach_reply;
};

static enum rv_err decode(int kind, const uint8_t *p, size_t n, union message *m, struct rv_errtext *et) {
	switch (kind) {
	case 0:
		return join_request_decode(p, n, &m->join_request, et);
	case 1:
		return join_reply_decode(p, n, &m->join_reply, et);
	case 2:
		return report_decode(p, n, &m->report, et);
	case 4:
		return notice_decode(p, n, &m->notice, et);
	case 5:
		return pair_request_decode(p, n, &m->pair_request, et);
	case 6:
		return pair_reply_decode(p, n, &m->pair_reply, et);
	case 7:
		return probes_decode(p, n, &m->probes, et);
	case 8:
		return reach_test_request_decode(p, n, &m->reach_request, et);
	case 9:
		return reach_test_reply_decode(p, n, &m->reach_reply, et);
	default:
		return document_decode(p, n, &m->document, et);
	}
}

static void encode(int kind, const union message *m, struct rv_writer *w) {
	switch (kind) {
	case 0:
		join_request_encode(&m->join_request, w);
		return;
	case 1:
		join_reply_encode(&m->join_reply, m->join_reply.version, w);
		return;
	case 2:
		report_encode(&m->report, m->report.version, w);
		return;
	case 4:
		notice_encode(&m->notice, w);
		return;
	case 5:
		pair_request_encode(&m->pair_request, CONTROL_VERSION, w);
		return;
	case 6:
		pair_reply_encode(&m->pair_reply, CONTROL_VERSION, w);
		return;
	case 7:
		probes_encode(&m->probes, w);
		return;
	case 8:
		reach_test_request_encode(&m->reach_request, CONTROL_VERSION, w);
		return;
	case 9:
		reach_test_reply_encode(&m->reach_reply, CONTROL_VERSION, w);
		return;
	default:
		document_encode(&m->document, m->document.version, w);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	if (size == 0)
		return 0;
	int kind = data[0] & 15;
	struct rv_errtext et = {0};
	union message *m = malloc(sizeof *m);
	uint8_t *again = malloc(NET_MAX_DOCUMENT_BYTES);
	RV_ASSERT(m && again);
	if (decode(kind, data + 1, size - 1, m, &et) == RV_OK) {
		struct rv_writer w = rv_writer_of(again, NET_MAX_DOCUMENT_BYTES);
		encode(kind, m, &w);
		/* Of a join request of a later version only what all versions have is decoded. */
		bool foreign = kind == 0 && m->join_request.protocol > CONTROL_VERSION;
		RV_ASSERT(foreign || (!w.failed && rv_writer_len(&w) == size - 1 && memcmp(again, data + 1, size - 1) == 0));
	} else {
		RV_ASSERT(et.text[0]);
	}
	free(again);
	free(m);
	return 0;
}
