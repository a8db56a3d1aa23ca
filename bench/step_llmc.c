/* step_llmc.c: llm.c's CPU path as a contestant of the step benchmark. Its checkout is not part of
 * this tree: bench_step compiles this file against it when LLMC_DIR says where it is.
 * usage: step_llmc LAYERS HEADS CHANNELS VOCAB CONTEXT BATCH */
#define TESTING /* leaves out its main() */
#include "train_gpt2.c"

#include "bench/step_peer.h"

struct job {
	GPT2 model;
	int *inputs, *targets;
	int batch, context, t;
};

static void one_step(void *ctx) {
	struct job *j = ctx;
	gpt2_forward(&j->model, j->inputs, j->targets, (size_t)j->batch, (size_t)j->context);
	gpt2_zero_grad(&j->model);
	gpt2_backward(&j->model);
	gpt2_update(&j->model, 1e-4f, 0.9f, 0.95f, 1e-8f, 0.1f, ++j->t);
}

static void build(struct job *j, char **argv) {
	GPT2 *m = &j->model;
	int vocab = atoi(argv[4]);
	j->context = atoi(argv[5]);
	j->batch = atoi(argv[6]);
	m->config = (GPT2Config){.max_seq_len = j->context,
							 .vocab_size = vocab,
							 .padded_vocab_size = (vocab + 127) / 128 * 128,
							 .num_layers = atoi(argv[1]),
							 .num_heads = atoi(argv[2]),
							 .channels = atoi(argv[3])};
	fill_in_parameter_sizes(m->param_sizes, m->config);
	for (int i = 0; i < NUM_PARAMETER_TENSORS; i++)
		m->num_parameters += m->param_sizes[i];
	m->params_memory = malloc_and_point_parameters(&m->params, m->param_sizes);
	for (size_t i = 0; i < m->num_parameters; i++)
		m->params_memory[i] = 0.04f * ((float)rand() / (float)RAND_MAX - 0.5f);
	int n = j->batch * j->context;
	j->inputs = malloc((size_t)n * sizeof(int));
	j->targets = malloc((size_t)n * sizeof(int));
	for (int i = 0; i < n; i++) {
		j->inputs[i] = rand() % 256;
		j->targets[i] = rand() % 256;
	}
}

int main(int argc, char **argv) {
	if (argc != 7)
		return 2;
	FILE *out = fdopen(dup(1), "w"); /* its functions print to stdout, which is not our protocol */
	if (!out || !freopen("/dev/null", "w", stdout))
		return 1;
	struct job j = {0};
	build(&j, argv);
	one_step(&j);
	return step_serve(out, one_step, &j);
}
