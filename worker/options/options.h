/* options.h: the options of rivulet-worker. */
#ifndef RV_WORKER_OPTIONS_OPTIONS_H
#define RV_WORKER_OPTIONS_OPTIONS_H

#include "base/options.h"
#include "base/os_priority.h"
#include "base/os_sandbox.h"
#include "base/program.h"
#include "kernels/device.h"
#include "train/memory/check.h"
#include "train/text/documents/documents.h"

struct worker_options {
	char dir[256];
	char data[1024];
	char field[DOCUMENTS_FIELD_BYTES]; /* of `data` */
	int64_t data_cache;                /* bytes of the run's text that are kept */
	char tokenizer[512];               /* "": the remembered one, or none */
	char init[512];
	int64_t shard;                         /* -1: member modulo data-shards */
	int64_t threads, cpu_share, gpu_share; /* shares in percent */
	int priority;                          /* enum os_priority */
	int64_t max_memory, gpu_memory;        /* bytes; 0: what is free */
	int64_t free_memory_after;             /* seconds of a pause; -1: never */
	int64_t free_gpu_memory_after;         /* the same, on a GPU */
	int64_t max_disk;                      /* bytes of `dir`; 0: what is free */
	int64_t max_per_day, max_per_month;    /* bytes on the line, both directions; 0: any number */
	char hours[256];                       /* as allow_hours_parse (worker/allow/hours.h) takes it */
	int64_t only_idle;                     /* minutes without a key or motion before it works; 0: does not matter */
	bool on_battery, on_metered;           /* works there, too */
	int64_t max_cpu_temp, max_gpu_temp;    /* degrees Celsius; 0: no limit */
	char device[DEVICE_TEXT_BYTES];
	int64_t micro_batch;    /* 0: chosen */
	int64_t logits;         /* rows; 0: chosen */
	int recompute, moments; /* 0: chosen; else 1 + enum recompute, 1 + enum moments */
	int offload;            /* 0: chosen; else 1 + savings.offload */
	int stream_state;       /* 0: chosen; else 1 + savings.stream */
	int zero;               /* 0: chosen; else 1 + enum zero */
	int short_of_memory;    /* enum memory_short */
	char listen[128];       /* "": the usual port, or the next free one */
	char advertise[128];
	bool map_port;
	char advertised[128];                 /* no option: advertise, looked up; "": none */
	int64_t max_up, max_down, max_donate; /* bytes per second; 0: no cap */
	char relay_for_others[32];            /* worker_options_relay_rate() */
	int64_t relay_per_day;                /* bytes; 0: any number */
	int64_t relay_port;                   /* 0: the usual one, or the next free one */
	bool yes;                             /* agrees to the run's terms */
	char link_file[256];                  /* of the invite link; "-": the standard input */
	bool sandbox;
	struct os_sandbox sandboxed; /* no option: what the system enforces, if `sandbox` */
	char name[64];
	bool verbose;
	char log_file[256];
	int64_t local_port; /* of the page, on 127.0.0.1; 0: that of last time, or any; -1: none */
	int64_t eval_every, eval_tokens;
	int64_t keep_snapshots, keep_log; /* struct checkpoint_policy */
};

extern const struct rv_option worker_options_table[];

/* Checks, for --check, that there is a link and that text, tokenizer and initial weights can be
 * read (worker/options/input_checks.h, with its faults; a URL is not fetched). */
enum rv_err worker_options_check_files(const void *opts, const struct rv_args *args, struct rv_errtext *et);
/* Reads what the worker forwards for others, in bytes per second; *out 0: it runs no relay.
 * RV_E_INVALID, RV_E_RANGE name the option. */
enum rv_err worker_options_relay_rate(const struct worker_options *o, int64_t *out, struct rv_errtext *et);
/* Checks the link's syntax and rules that span several options. RV_E_INVALID, RV_E_RANGE name the
 * option. */
enum rv_err worker_options_check(const void *opts, const struct rv_args *args, struct rv_errtext *et);

#endif
