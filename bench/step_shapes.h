/* step_shapes.h: the models of the step benchmark, and the ratios that are their goals. */
#ifndef RV_BENCH_STEP_SHAPES_H
#define RV_BENCH_STEP_SHAPES_H

/* Goals for tokens per second, relative to a peer's. */
struct step_goal {
	double least, stretch; /* 0: none */
};

struct step_shape {
	char letter;
	const char *name;
	int layers, heads, channels, vocab, context, batch;
	int steps; /* in a round: about half a second's worth or more */
	struct step_goal torch_fp32, torch_bf16, llmc_fp32, llmc_bf16;
	double rss; /* peak, ours / PyTorch's, in fp32 if that was measured: at most */
};

enum { N_STEP_SHAPES = 3 };
extern const struct step_shape step_shapes[N_STEP_SHAPES];

/* Returns the shape called `letter`; NULL: there is none. */
const struct step_shape *step_shape_of(char letter);

#endif
