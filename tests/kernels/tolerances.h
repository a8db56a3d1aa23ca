/* tolerances.h: how far the `cpu` backend may be from `ref`, as |got - want| <= tolerance * (|want|
 * + rms(want)). `ref` sums in double; the rounding of one fp32 operation is 6e-8. */
#ifndef RV_TESTS_KERNELS_TOLERANCES_H
#define RV_TESTS_KERNELS_TOLERANCES_H

#define TOL_EXACT        0.0  /* same operations in the same order */
#define TOL_ELEMENTWISE  1e-6 /* a handful of roundings, one exponential */
#define TOL_REDUCTION    5e-6 /* sums over a row or a column */
#define TOL_PRODUCT      1e-5 /* fp32 matrix products up to k = 1000 */
#define TOL_LONG_PRODUCT 1e-4 /* up to k of 3 M, in whatever order it is added: sqrt(k) roundings of 2^-24 */
#define TOL_ATTENTION    3e-5 /* two products and a softmax; backward: five */
#define TOL_LARGE_SCORES 1e-2 /* attention: the rounding of scores of thousands moves probabilities by 1e-4 */
#define TOL_DIFFERENCE   2e-3 /* central differences of an fp32 function, against its derivative */

/* With `compute` bf16, against `ref` in fp32, as rms(got - want) / rms(want): every operand is off
 * by up to 2^-9. */
#define TOL_BF16_PRODUCT   4e-3 /* one product: of two operands, in the worst case of one element */
#define TOL_BF16_ATTENTION 8e-3 /* two products; backward five, of probabilities whose scores were rounded too */
#define TOL_BF16_SOFTMAX   8e-3 /* a product, a softmax, and a product of its gradient */
#define TOL_BF16_SAME      2e-4 /* between instruction sets: the same roundings but for other orders of summation */

#endif
