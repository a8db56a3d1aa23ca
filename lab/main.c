/* main.c: rivulet, the researcher's program. */
#include "kernels/wait_policy.h"
#include "lab/commands/commands.h"

int main(int argc, char **argv) {
	struct rv_option train_table[TRAIN_OPTIONS_MAX], config_table[TRAIN_OPTIONS_MAX], sweep_table[SWEEP_OPTIONS_MAX];
	const struct rv_command commands[] = {
		train_command(train_table),
		sweep_command_of(sweep_table),
		config_command(config_table),
		sample_command,
		eval_command,
		report_command,
		replay_command,
		tokenize_command,
		data_command,
		tokenizer_command,
		simulate_command,
		export_command,
		checkpoint_command,
		inspect_command,
		{.run = NULL},
	};
	const struct rv_program program = {
		.name = "rivulet",
		.summary =
			"The lab: trains in one process with the very code that the distributed run uses, samples, evaluates,\n"
			"draws reports, and tells beforehand what a line costs.",
		.commands = commands,
		.examples =
			"    rivulet train --data book.txt --workers 4 --out runs/diloco\n"
			"    rivulet train --data book.txt --workers 4 --method ddp --out runs/ddp\n"
			"    rivulet sweep --data book.txt --sync-every 1,8,32 --workers 2,4 --seed 1,2,3 --total-steps 960\n"
			"    rivulet report runs/diloco runs/ddp --out report.html\n"
			"    rivulet sample runs/diloco --prompt 'Once upon' --tokens 200\n"
			"    rivulet simulate --params 124M --rate 20mbit\n",
	};
	wait_policy_choose(argv);
	return rv_program_main(&program, argc, argv);
}
