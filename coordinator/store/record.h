/* record.h: a core record as bytes, for the store. Version 1; integers little-endian. */
#ifndef RV_COORDINATOR_RECORD_H
#define RV_COORDINATOR_RECORD_H

#include "base/bytes.h"
#include "coordinator/core/core.h"

enum { RECORD_MAX_BYTES = 159744 };

void record_encode(const struct core_record *rec, struct rv_writer *w);
/* Consumes all n bytes. RV_E_CORRUPT names what is wrong; RV_E_UNSUPPORTED: of a newer version. */
enum rv_err record_decode(const void *p, size_t n, struct core_record *out, struct rv_errtext *et);

#endif
