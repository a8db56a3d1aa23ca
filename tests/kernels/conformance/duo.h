/* duo.h: one call of an operation on two backends: `ref`, whose memory is the host's, and the one
 * under test, whose memory may be a device's and whose activations may be bf16. An array exists on
 * both; a case fills it, calls the operation on each side with its pointers, and compares. */
#ifndef RV_TESTS_KERNELS_DUO_H
#define RV_TESTS_KERNELS_DUO_H

#include "tests/kernels/fixture.h"

enum { DUO_ARRAYS_MAX = 16, DUO_PARTS_MAX = 8, DUO_TEXT_BYTES = 160 };

/* DUO_TEST: the first difference fails the test. DUO_MEASURE: differences are counted, and the
 * worst is kept. DUO_TIME: the backend under test alone is called; nothing is compared. */
enum duo_mode { DUO_TEST, DUO_MEASURE, DUO_TIME };

/* Activations are in the backend's type, parameters and statistics in fp32. DUO_WEIGHT: fp32 of
 * numbers that a bf16 backend's rounding of its products' operands does not change. */
enum duo_kind { DUO_ACT, DUO_F32, DUO_WEIGHT };

struct duo_array {
	const char *name;
	enum duo_kind kind;
	size_t n;
	float *host;  /* ref's */
	void *device; /* the other's */
};

/* An operation of a case: its calls on the backend under test, each waited for. */
struct duo_part {
	const char *name;
	int calls;
	double ms; /* of all calls */
};

/* What a case found at one size, since duo_begin. */
struct duo_findings {
	char shape[DUO_TEXT_BYTES];
	double worst;                  /* largest error / limit of any number compared; DUO_INFINITE: beyond measure */
	char worst_at[DUO_TEXT_BYTES]; /* what and where that was */
	long differences;              /* numbers beyond their limit, and expectations that were not met */
	struct duo_part parts[DUO_PARTS_MAX];
	int n_parts;
};
#define DUO_INFINITE 1e9

struct duo {
	struct backend *ref, *be;
	enum duo_mode mode;
	int repetitions; /* of each call in DUO_TIME */
	struct duo_findings found;
	struct duo_array arrays[DUO_ARRAYS_MAX];
	int n_arrays;
	uint64_t seed;
	long checked;    /* arrays compared so far */
	uint64_t digest; /* of all that was read back from the backend: the same bits, the same digest */
};

/* Which side a call is for: pointers of the arrays there. */
struct duo_side {
	struct duo *duo;
	struct backend *be; /* NULL: both were called */
	const char *part;
	int left; /* calls still to make */
	double began_ms;
};

void duo_init(struct duo *d, struct backend *ref, struct backend *be);
/* Starts a case in that mode, in DUO_TIME with so many calls for one (>= 1): forgets what the last
 * one found. */
void duo_begin(struct duo *d, enum duo_mode mode, int repetitions);
/* The sides of one call, `part`: a name that outlives the duo. Used by ON_BOTH. */
struct duo_side duo_first(struct duo *d, const char *part);
void duo_next(struct duo_side *s);
/* Names the sizes of the case, for a reader. */
void duo_shape(struct duo *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Frees the arrays of a case, so that the next can begin. */
void duo_clear(struct duo *d);

/* An array of n random numbers in [-amplitude, amplitude), the same on both sides: rounded to what
 * the backend's type holds. Returns its number. */
int duo_random(struct duo *d, const char *name, enum duo_kind kind, size_t n, float amplitude);
/* The same of given numbers. */
int duo_given(struct duo *d, const char *name, enum duo_kind kind, const float *values, size_t n);

act_t *duo_act(struct duo_side s, int array);
float *duo_f32(struct duo_side s, int array);

/* ref's and the backend's contents agree: |got - want| <= tolerance * (|want| + rms(want)), where
 * for activations of a bf16 backend the rounding of one store comes on top. */
void duo_check(struct duo *d, int array, double tolerance);
/* The same of numbers on the host, which count in the digest. */
void duo_check_host(struct duo *d, const char *name, const float *got, const float *want, size_t n, double tolerance);
/* The backend's numbers have the same bits as `want`, its own too. */
void duo_check_same(struct duo *d, const char *name, const float *got, const float *want, size_t n);
void duo_expect(struct duo *d, bool met, const char *what);
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
