/* fuzz_loss_curve.c: a text of losses by round that a coordinator sends. What is accepted is
 * bounded and ascends, and its own text says the same. */
#include "base/loss_curve.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static char text[LOSS_CURVE_TEXT_BYTES], printed[LOSS_CURVE_TEXT_BYTES];
	static struct loss_point point[LOSS_CURVE_POINTS], again[LOSS_CURVE_POINTS];
	struct loss_curve c, read;
	struct rv_errtext et = {0};
	if (size >= sizeof text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (loss_curve_parse(text, &c, &et) != RV_OK) {
		RV_ASSERT(et.text[0] && c.seen == 0);
		return 0;
	}
	const int n = loss_curve_points(&c, point);
	for (int i = 0; i < n; i++)
		RV_ASSERT(point[i].loss > 0 && point[i].loss <= LOSS_CURVE_MOST &&
				  (i == 0 || point[i].round > point[i - 1].round));
	loss_curve_print(&c, printed);
	RV_ASSERT(loss_curve_parse(printed, &read, &et) == RV_OK && loss_curve_points(&read, again) == n);
	RV_ASSERT(n == 0 || again[n - 1].round == point[n - 1].round);
	return 0;
}
