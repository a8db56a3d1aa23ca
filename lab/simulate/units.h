/* units.h: numbers of parameters and line rates as people write them. */
#ifndef RV_LAB_SIMULATE_UNITS_H
#define RV_LAB_SIMULATE_UNITS_H

#include "base/err.h"

/* Reads "350K", "124M", "1.5B", in any case. RV_E_INVALID. */
enum rv_err simulate_read_params(const char *text, double *out, struct rv_errtext *et);
/* Reads "500kbit", "20mbit", "1.5gbit/s"; "unlimited" is INFINITY; "" is 100 Mbit/s.
 * RV_E_INVALID. */
enum rv_err simulate_read_rate(const char *text, double *out_bits_per_s, struct rv_errtext *et);

#endif
