/* receipt.h: what a worker says of another one's line: the rate at which its contribution came, as
 * one byte. Bands are an eighth of a factor of two wide. */
#ifndef RV_NET_CONTROL_RECEIPT_H
#define RV_NET_CONTROL_RECEIPT_H

#include <stdint.h>

/* Returns the band of a rate in bytes/s: 1 up to 8 B/s, 255 from some 25 GB/s on. */
uint8_t receipt_band(uint64_t bytes_per_s);
/* Returns the middle of a band (1..255), bytes/s. */
uint64_t receipt_rate(uint8_t band);

#endif
