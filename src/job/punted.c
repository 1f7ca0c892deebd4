// SPDX-License-Identifier: MIT
/*
 * Buffered writes by io_uring. The kernel does those that have to wait in workers, and hashes them
 * by file: of one file's writes one is done at a time, in the order they were submitted, by one
 * worker after the other and nearly always the same. So iodepth of them are not iodepth writers:
 * they are a queue before one writer, and each one's latency is its time in that queue too.
 * (Linux's io_uring: io_queue_iowq() and the flag IO_WQ_WORK_HASHED.)
 *
 * In the simulated world one task is that worker. The queue is a ring of the times at which places
 * in it were taken: a place is taken anew when the write that had it is done.
 */
#include "job/clone.h"
#include <stdlib.h>

bool punted_wanted(const struct clone *c)
{
	const struct job_options *o = &c->job->o;

	return world_is_sim() && o->ioengine == IO_URING && o->iodepth > 1 && !o->direct &&
	       (o->rw & RW_WRITE) && !(o->rw & RW_READ) && c->plans.count == 1 &&
	       !c->rate_bps[JOB_DIR_WRITE] && !o->thinktime_ns && !o->latency_target_ns;
}

void punted_begin(struct clone *c)
{
	u64 depth = c->job->o.iodepth;

	c->punted = malloc(depth * sizeof(*c->punted));
	for (u64 i = 0; c->punted && i < depth; i++)
		c->punted[i] = c->epoch_ns;
	c->punted_next = 0;
}

u64 punted_took(struct clone *c, u64 end_ns)
{
	u64 *place = &c->punted[c->punted_next++ % c->job->o.iodepth];
	u64 submitted = *place;

	*place = end_ns;
	return submitted;
}

void punted_end(struct clone *c)
{
	free(c->punted);
	c->punted = NULL;
}
