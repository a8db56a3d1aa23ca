/* loss_text.h: losses and perplexities for people: decimals for usual values, an exponent for huge
 * ones. */
#ifndef RV_LAB_LOSS_TEXT_H
#define RV_LAB_LOSS_TEXT_H

struct loss_text {
	char text[32];
};

struct loss_text loss_text(double nats);       /* "1.2345", "3.142e+12", "not finite" */
struct loss_text perplexity_text(double nats); /* of exp(nats): "3.436", "2.5e+40", "infinite" */

#endif
