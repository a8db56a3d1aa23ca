/* feedback.c: see feedback.h. */
#include "outer/feedback.h"

#include "base/assert.h"
#include "outer/elementwise.h"

RV_ELEMENTWISE_BODY add_kept_body(float beta, const float *kept, float *a, size_t n) {
	for (size_t i = 0; i < n; i++)
		a[i] = beta * kept[i] + a[i];
}

RV_ELEMENTWISE(add_kept, (float beta, const float *kept, float *a, size_t n), (beta, kept, a, n))

RV_ELEMENTWISE_BODY left_body(const float *a, float *decoded, size_t n) {
	for (size_t i = 0; i < n; i++)
		decoded[i] = a[i] - decoded[i];
}

RV_ELEMENTWISE(left, (const float *a, float *decoded, size_t n), (a, decoded, n))

enum rv_err feedback_encode(const struct codec *codec, float *x, size_t n, const struct feedback *f, uint8_t *out,
							struct rv_errtext *et) {
	if (f && f->kept)
		add_kept(f->beta, f->kept, x, n);
	RV_TRY(codec->encode(codec, x, n, out, et));
	if (!f)
		return RV_OK;
	RV_ASSERT(f->beta > 0 && f->left && f->left != f->kept);
	RV_TRY(codec->decode(codec, out, n, f->left, et));
	left(x, f->left, n);
	return RV_OK;
}
