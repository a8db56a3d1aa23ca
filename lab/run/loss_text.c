/* loss_text.c: see loss_text.h. */
#include "lab/run/loss_text.h"

#include <math.h>
#include <stdio.h>

static const double many_nats = 1e4, much_perplexity = 1e6;

struct loss_text loss_text(double nats) {
	struct loss_text t = {"not finite"};
	if (isfinite(nats))
		snprintf(t.text, sizeof t.text, fabs(nats) < many_nats ? "%.4f" : "%.4g", nats);
	return t;
}

struct loss_text perplexity_text(double nats) {
	struct loss_text t = {"not finite"};
	double perplexity = exp(nats);
	if (isfinite(perplexity))
		snprintf(t.text, sizeof t.text, perplexity < much_perplexity ? "%.3f" : "%.2g", perplexity);
	else if (!isnan(nats))
		snprintf(t.text, sizeof t.text, "infinite");
	return t;
}
