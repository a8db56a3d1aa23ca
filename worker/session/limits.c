/* limits.c: what the person allows of the processors and GPUs, handed to the gate that all
 * computing threads pass (kernels/gate.h). Memory is limited by the plan (memory.c), threads by the
 * backend. */
#include "worker/session/internal.h"

#include "kernels/gate.h"

void session_apply_limits(const struct session *s) {
	const struct worker_options *o = s->opt;
	gate_set_cpu_share((int)o->cpu_share);
	gate_set_device_share((int)o->gpu_share);
	gate_set_threads((int)o->threads);
	gate_set_priority((enum os_priority)o->priority);
}
