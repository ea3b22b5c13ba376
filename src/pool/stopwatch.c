#include "pool/stopwatch.h"

#include "base/clock.h"

bool stopwatch_runs(const struct stopwatch *watch)
{
	return watch->since_us;
}

static int64_t cpu_ms(const struct process *process)
{
	int64_t ms = process ? process_cpu_ms(process) : 0;

	return ms > 0 ? ms : 0;
}

void stopwatch_go(struct stopwatch *watch, const struct process *process)
{
	if (watch->since_us)
		return;
	if (watch->cpu_ms) /* it stood still before */
		stopwatch_look(watch, process);
	watch->since_us = clock_us();
}

void stopwatch_stop(struct stopwatch *watch, const struct process *process)
{
	if (!watch->since_us)
		return;
	watch->spent_us += clock_us() - watch->since_us;
	watch->since_us = 0;
	watch->cpu_ms = cpu_ms(process);
}

void stopwatch_look(struct stopwatch *watch, const struct process *process)
{
	int64_t now = cpu_ms(process);

	if (watch->cpu_ms && now > watch->cpu_ms)
		watch->spent_us += (now - watch->cpu_ms) * 1000;
	watch->cpu_ms = now;
}

int64_t stopwatch_end(struct stopwatch *watch, const struct process *process)
{
	bool ran = stopwatch_runs(watch);
	int64_t ms;

	stopwatch_stop(watch, process);
	ms = stopwatch_ms(watch);
	*watch = (struct stopwatch){.cpu_ms = ran ? watch->cpu_ms : cpu_ms(process)};
	return ms;
}

int64_t stopwatch_ms(const struct stopwatch *watch)
{
	return watch->spent_us / 1000;
}
