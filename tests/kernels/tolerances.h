/* tolerances.h: how far the `cpu` backend may be from `ref`, as |got - want| <= tolerance * (|want| + rms(want)).
 * `ref` sums in double; the rounding of one fp32 operation is 6e-8. */
#ifndef RV_TESTS_KERNELS_TOLERANCES_H
#define RV_TESTS_KERNELS_TOLERANCES_H

#define TOL_EXACT        0.0  /* same operations in the same order */
#define TOL_ELEMENTWISE  1e-6 /* a handful of roundings, one exponential */
#define TOL_REDUCTION    5e-6 /* sums over a row or a column */
#define TOL_PRODUCT      1e-5 /* fp32 matrix products up to k = 1000 */
#define TOL_ATTENTION    3e-5 /* two products and a softmax; backward: five */
#define TOL_LARGE_SCORES 1e-2 /* attention: the rounding of scores of thousands moves probabilities by 1e-4 */
#define TOL_DIFFERENCE   2e-3 /* central differences of an fp32 function, against its derivative */

#endif
