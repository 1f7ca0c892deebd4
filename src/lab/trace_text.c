// SPDX-License-Identifier: MIT
/*
 * A line for each event, as `trace` of tracefs has them, so that what reads the one reads the
 * other: task and number, CPU, time in seconds, and the event. Time and numbers are the simulated
 * world's, so the same case gives the same file.
 */
#include "lab/trace_text.h"
#include "writeback/wb.h"

static void write_event(void *ctx, const struct trace_event *e)
{
	char text[512];

	trace_print(e, text, sizeof(text));
	fprintf(ctx, "%16s-%-7u [%03u] ..... %5llu.%06llu: %s\n", world_task_name(), e->thread,
		world_cpu(), (unsigned long long)(e->time_ns / NSEC_PER_SEC),
		(unsigned long long)(e->time_ns % NSEC_PER_SEC / NSEC_PER_USEC), text);
}

void trace_text_head(FILE *out)
{
	fprintf(out, "# tracer: sluice\n#\n"
		     "#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n"
		     "#              | |         |   |||||     |         |\n");
}

int trace_text_begin(struct engine *e, FILE *out)
{
	return trace_start_sink(&engine_writeback(e)->trace, write_event, out);
}

void trace_text_note(FILE *out, const char *text)
{
	fprintf(out, "# %s\n", text);
}
