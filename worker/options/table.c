/* table.c: the option table of rivulet-worker. */
#include "net/mesh/rate.h"
#include "train/eval_schedule.h"
#include "train/savings.h"
#include "worker/options/options.h"
#include "worker/state/checkpoint_index.h"

#define FIELD(f) offsetof(struct worker_options, f)
#define STRING_OPT(name, f, fallback, group, help)                                                                     \
	{ name, RV_OPT_STRING, FIELD(f), sizeof(((struct worker_options *)0)->f), fallback, 0, 0, NULL, help, group }
#define INT_OPT(name, f, fallback, lo, hi, group, help)                                                                \
	{ name, RV_OPT_INT, FIELD(f), 0, fallback, lo, hi, NULL, help, group }
#define CAP_OPT(name, f, fallback, group, help)                                                                        \
	{                                                                                                                  \
		name, RV_OPT_RATE, FIELD(f), 0, fallback, RATE_LEAST_BYTES_PER_S, (double)RATE_MAX_BYTES_PER_S, NULL, help,    \
			group                                                                                                      \
	}
#define BYTES_OPT(name, f, help)                                                                                       \
	{ name, RV_OPT_BYTES, FIELD(f), 0, "0", 0, 9007199254740992.0, NULL, help, "Limits" }

const struct rv_option worker_options_table[] = {
	STRING_OPT(
		"dir", dir, "rivulet-worker", "Worker",
		"Directory of this worker's key and state. A later start with the same one goes on where this one stopped."),
	STRING_OPT("data", data, "", "Worker",
			   "Training text or token shards: a file, a directory, a pattern, or https://URL#sha256=HEX. Remembered "
			   "in --dir until another is given. Not needed where the run hands out its text."),
	STRING_OPT("field", field, DOCUMENTS_FIELD_DEFAULT, "Worker", "Of --data: " DOCUMENTS_FIELD_HELP),
	{"data-cache", RV_OPT_BYTES, FIELD(data_cache), 0, "20GB", 1, 9007199254740992.0, NULL,
	 "Most of the run's text that is kept on the disk, in DIR/data, if the run hands it out: the parts that will be "
	 "read soon, then those read last. At least two of its shards, which are 4 MiB as a rule; all of a text below 33 "
	 "MB.",
	 "Worker"},
	STRING_OPT("tokenizer", tokenizer, "", "Worker",
			   "The run's tokenizer (tokenizer.json), which makes tokens of text; token shards and runs on bytes need "
			   "none. Remembered in --dir."),
	STRING_OPT("init", init, "", "Worker",
			   "The initial weights, if the run starts from given ones: a Hugging Face directory or a safetensors "
			   "file. Without it they are fetched from another worker."),
	INT_OPT("shard", shard, "-1", -1, 1023, "Worker",
			"The run's data shard to read; -1: this member's number modulo data-shards."),
	{"yes", RV_OPT_BOOL, FIELD(yes), 0, "no", 0, 0, NULL,
	 "Agrees to what the run needs and does, which is printed and asked for before a worker joins; for scripts. Not "
	 "needed after that.",
	 "Worker"},
	STRING_OPT(
		"link-file", link_file, "", "Worker",
		"File whose first line is the invite link; -: the standard input. The command line is shown to all users "
		"of a computer, this is not. The variable RIVULET_LINK is a third way."),
	{"sandbox", RV_OPT_BOOL, FIELD(sandbox), 0, RV_SANDBOX_USUAL, 0, 0, NULL,
	 "Gives up, for good, what training does not need: other files of yours than those named here, and system calls "
	 "that serve to attack (Linux: Landlock and seccomp).",
	 "Worker"},
	STRING_OPT("name", name, "", "Worker",
			   "This worker's name in the run's status; empty: \"worker\" and its number. Sent once, at the join."),
	INT_OPT("keep-snapshots", keep_snapshots, "2", 0, CHECKPOINT_MAX_KEEP, "Worker",
			"Snapshots kept on disk, for joiners and restarts: the one that joiners start from and those before it; 0: "
			"all."),
	INT_OPT("keep-log", keep_log, "0", 0, CHECKPOINT_MAX_KEEP, "Worker",
			"Least number of rounds of the log to keep, for workers that were away and for `rivulet export --round`; "
			"0: those after the oldest snapshot."),
	INT_OPT("threads", threads, "0", 0, 256, "Computing", "Threads for training; 0: all processors."),
	INT_OPT("cpu-share", cpu_share, "100", 1, 100, "Limits",
			"Most of the time of all this computer's processors that the program uses, in percent, over any 10 s."),
	{"priority", RV_OPT_CHOICE, FIELD(priority), 0, "normal", 0, 0, "normal|low|idle",
	 "What training weighs against your other programs. low: a tenth of one (nice 10); idle: only what nothing else "
	 "wants.",
	 "Limits"},
	BYTES_OPT("max-memory", max_memory,
			  "Most memory that training may take, such as 4GiB, looked at before the join; 0: what is free."),
	INT_OPT("free-memory-after", free_memory_after, "60", -1, 1000000, "Limits",
			"Seconds of a pause after which the worker's memory is free for others until it goes on; loading it again "
			"takes a moment. -1: it is kept."),
	INT_OPT(
		"free-gpu-memory-after", free_gpu_memory_after, "0", -1, 1000000, "Limits",
		"The same for a worker that trains on a GPU, whichever comes first; 0: the GPU's memory is free within 2 s, or "
		"once a micro-batch that takes longer ends."),
	BYTES_OPT(
		"max-disk", max_disk,
		"Most that DIR takes of the disk, state and text together, such as 20GB, looked at before the join; 0: what "
		"is free, and --data-cache."),
	BYTES_OPT("max-per-day", max_per_day,
			  "Most bytes a day on the line, both directions together, such as 2GB; the worker then pauses until "
			  "midnight. 0: any number."),
	BYTES_OPT("max-per-month", max_per_month, "The same for a month; it pauses until the first of the next one."),
	STRING_OPT("hours", hours, "", "Limits",
			   "Hours of the week at which it works, such as 'mon-fri 18:00-8:00, sat, sun', in local time; empty: "
			   "always."),
	INT_OPT("only-idle", only_idle, "0", 0, 1440, "Limits",
			"Works only once nobody has used the computer for so many minutes; 0: that does not matter."),
	{"on-battery", RV_OPT_BOOL, FIELD(on_battery), 0, "no", 0, 0, NULL,
	 "Works on battery, too; without it, it pauses there.", "Limits"},
	{"on-metered", RV_OPT_BOOL, FIELD(on_metered), 0, "no", 0, 0, NULL,
	 "Works on a line that costs by the byte, too; without it, it pauses there.", "Limits"},
	INT_OPT("max-cpu-temp", max_cpu_temp, "0", 0, 120, "Limits",
			"Pauses when the processor is this hot, in degrees Celsius, until it is 5 degrees cooler; 0: no limit."),
	INT_OPT("max-gpu-temp", max_gpu_temp, "0", 0, 120, "Limits", "The same for NVIDIA GPUs."),
	INT_OPT("gpu-share", gpu_share, "100", 1, 100, "Limits",
			"Most of the time that a GPU works on training, in percent; it rests after each micro-batch."),
	BYTES_OPT("gpu-memory", gpu_memory,
			  "Most of a GPU's memory that training may take, its driver's part included; 0: what is free."),
	STRING_OPT("device", device, "auto", "Computing", DEVICE_HELP),
	{"recompute", RV_OPT_CHOICE, FIELD(recompute), 0, "auto", 0, 0, "auto|" RECOMPUTE_NAMES,
	 "What is stored for the backward pass, and what is computed again. gelu, norms: a little less of each, and about "
	 "as "
	 "fast; block: much less memory, about a third slower. auto: what memory needs.",
	 "Computing"},
	INT_OPT("micro-batch", micro_batch, "0", 0, 1 << 20, "Computing",
			"Sequences that are computed at a time; a step adds up as many as the run's steps have. Fewer take less "
			"memory, and sum in another order: other last bits. 0: as many as memory allows, up to the run's batch."),
	INT_OPT("logits", logits, "0", 0, 1 << 30, "Computing",
			"With a GPU: rows of logits that exist at a time, a multiple of 256. Fewer take less memory, and sum in "
			"another order: other last bits. 0: as many as memory allows, up to all of a micro-batch."),
	{"moments", RV_OPT_CHOICE, FIELD(moments), 0, "auto", 0, 0, "auto|" MOMENTS_NAMES,
	 "Adam's moments. int8: in 8 bits, 6 bytes less per parameter, with about the same loss. auto: int8 where memory "
	 "needs it.",
	 "Computing"},
	{"offload", RV_OPT_CHOICE, FIELD(offload), 0, "auto", 0, 0, "auto|" OFFLOAD_NAMES,
	 "With a GPU: weights in fp32 and moments in the computer's memory, where its processors make the optimizer's "
	 "steps; 6 bytes per parameter stay on the card. auto: where memory needs it.",
	 "Computing"},
	{"zero", RV_OPT_CHOICE, FIELD(zero), 0, "auto", 0, 0, "auto|" ZERO_NAMES,
	 "With several GPUs: what they divide among them. 1: moments; 2: gradients too; 3: weights too, gathered layer by "
	 "layer for every pass. Less memory on each, more bytes between them; several micro-batches are summed in another "
	 "order: other last bits. auto: what memory needs.",
	 "Computing"},
	{"stream-state", RV_OPT_CHOICE, FIELD(stream_state), 0, "auto", 0, 0, "auto|" STREAM_NAMES,
	 "Writes its state to the disk from where it lies, without a copy in memory; training waits for the disk before it "
	 "changes what is not written yet. auto: where memory needs it.",
	 "Computing"},
	MEMORY_SHORT_OPTION(FIELD(short_of_memory), "Computing"),
	INT_OPT("eval-every", eval_every, EVAL_EVERY_DEFAULT, EVAL_EVERY_CHOSEN, 1000000, "Computing",
			"Rounds between measurements of the held-out loss, by the first participant; it also measures at the end. "
			"0: never; -1: as often as takes about a tenth of its time, at least four times."),
	INT_OPT("eval-tokens", eval_tokens, EVAL_TOKENS_DEFAULT, 0, 1e12, "Computing", EVAL_TOKENS_HELP),
	STRING_OPT("listen", listen, "", "Network",
			   "HOST:PORT on which to accept other workers; port 0: any free one. Empty: port 7434 of all addresses, "
			   "or the next free one."),
	{"map-port", RV_OPT_BOOL, FIELD(map_port), 0, "yes", 0, 0, NULL,
	 "Asks your router to forward a port to this worker (PCP, NAT-PMP, UPnP), so that others can reach it; removed at "
	 "the end. Not asked if the coordinator is on your own network, or with --advertise.",
	 "Network"},
	STRING_OPT("advertise", advertise, "", "Network",
			   "HOST:PORT at which other workers reach this one (a name is looked up once, at the start); empty: the "
			   "address that the coordinator sees, with the listening port."),
	CAP_OPT("max-up", max_up, "0", "Network",
			"Most that it sends to other workers, such as 5mbit or 600KB: TCP/IP headers included, over any 10 s. "
			"unlimited: no cap."),
	CAP_OPT("max-down", max_down, "0", "Network", "Most that it receives from them."),
	CAP_OPT("max-donate", max_donate, "100mbit", "Network",
			"Most that it sends of the run's state and text to workers that lack it; unlimited: no cap of its own. A "
			"worker gets at most two whole states an hour besides the result of each round; and while the workers "
			"average, a joiner gets a tenth of what averaging sends, one that lacks text another tenth, and one that "
			"fell behind at most as much again."),
	STRING_OPT("relay-for-others", relay_for_others, "none", "Network",
			   "Runs a relay for members that cannot reach each other, and forwards (ciphertext) up to this rate for "
			   "them, such as 5mbit: your line receives it and sends it. The run lists it once another member has "
			   "reached it. none: no relay."),
	{"relay-for-others-per-day", RV_OPT_BYTES, FIELD(relay_per_day), 0, "20GiB", 0, 9007199254740992.0, NULL,
	 "Most that it forwards in 24 hours; 0: any number.", "Network"},
	INT_OPT(
		"relay-for-others-port", relay_port, "0", 0, 65535, "Network",
		"Port of that relay; 0: 7435, or the next free one. Your router is asked to forward it, as with --map-port."),
	{"verbose", RV_OPT_BOOL, FIELD(verbose), 0, "no", 0, 0, NULL,
	 "Print details on a terminal, too: attempts, connections, libraries, files. Elsewhere all events are always "
	 "written.",
	 "Output"},
	INT_OPT(
		"local-port", local_port, "0", -1, 65535, "Output",
		"Port, on this computer only, of the worker's page and of `rivulet-worker status`; 0: that of last time, or "
		"any free one; -1: neither."),
	STRING_OPT("log-file", log_file, "", "Output", "Also write every event to this file, one JSON object per line."),
	{NULL, RV_OPT_BOOL, 0, 0, NULL, 0, 0, NULL, NULL, NULL},
};
