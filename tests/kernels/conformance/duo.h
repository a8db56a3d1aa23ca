/* duo.h: one call of an operation on two backends: `ref`, whose memory is the host's, and the one under test, whose
 * memory may be a device's and whose activations may be bf16. An array exists on both; a case fills it, calls the
 * operation on each side with its pointers, and compares. */
#ifndef RV_TESTS_KERNELS_DUO_H
#define RV_TESTS_KERNELS_DUO_H

#include "tests/kernels/fixture.h"

enum { DUO_ARRAYS_MAX = 16 };

/* Activations are in the backend's type, parameters and statistics in fp32. DUO_WEIGHT: fp32 of numbers that a bf16
 * backend's rounding of its products' operands does not change. */
enum duo_kind { DUO_ACT, DUO_F32, DUO_WEIGHT };

struct duo_array {
	const char *name;
	enum duo_kind kind;
	size_t n;
	float *host;  /* ref's */
	void *device; /* the other's */
};

struct duo {
	struct backend *ref, *be;
	struct duo_array arrays[DUO_ARRAYS_MAX];
	int n_arrays;
	uint64_t seed;
	long checked;    /* arrays compared so far */
	uint64_t digest; /* of all that was read back from the backend: the same bits, the same digest */
};

/* Which side a call is for: pointers of the arrays there. */
struct duo_side {
	struct duo *duo;
	struct backend *be;
};

void duo_init(struct duo *d, struct backend *ref, struct backend *be);
/* Frees the arrays of a case, so that the next can begin. */
void duo_clear(struct duo *d);

/* An array of n random numbers in [-amplitude, amplitude), the same on both sides: rounded to what the backend's type
 * holds. Returns its number. */
int duo_random(struct duo *d, const char *name, enum duo_kind kind, size_t n, float amplitude);
/* The same of given numbers. */
int duo_given(struct duo *d, const char *name, enum duo_kind kind, const float *values, size_t n);

act_t *duo_act(struct duo_side s, int array);
float *duo_f32(struct duo_side s, int array);

/* ref's and the backend's contents agree: |got - want| <= tolerance * (|want| + rms(want)), where for activations of a
 * bf16 backend the rounding of one store comes on top. */
void duo_check(struct duo *d, int array, double tolerance);
/* Makes the backend's contents the reference's: what follows has the same inputs. */
void duo_follow(struct duo *d, int array);

/* The backend's contents as floats; free() them. */
float *duo_download(struct duo *d, int array);

/* Numbers of the backend's that are in no array: they count in the digest. */
void duo_digest(struct duo *d, const void *bytes, size_t n);

/* What a bf16 backend may be off by, given as the error of an fp32 one. */
double duo_tolerance(const struct duo *d, double fp32, double bf16);
bool duo_is_bf16(const struct duo *d);

#endif
