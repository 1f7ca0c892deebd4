/* SPDX-License-Identifier: MIT */
/* Once a second cold memory is looked at, until the machine is taken down. */
#include "lab/page_out.h"
#include <errno.h>
#include <stdlib.h>

struct page_out {
	struct engine *engine;
	u64 pages; /* a second */
	_Atomic u32 stop;
	struct task *task;
};

static void page_out(void *arg)
{
	struct page_out *p = arg;

	while (world_park(&p->stop, 0, world_now() + NSEC_PER_SEC) == -ETIMEDOUT)
		engine_page_out(p->engine, p->pages);
}

int page_out_start(struct engine *e, u64 bytes_per_s, struct page_out **out)
{
	struct page_out *p = malloc(sizeof(*p));

	if (!p)
		return -ENOMEM;
	*p = (struct page_out){ .engine = e, .pages = bytes_per_s / PAGE_SIZE };
	p->task = world_spawn("page out", page_out, p);
	if (!p->task) {
		free(p);
		return -ENOMEM;
	}
	*out = p;
	return 0;
}

void page_out_stop(struct page_out *p)
{
	atomic_store(&p->stop, 1);
	world_unpark(&p->stop, 1);
	world_join(p->task);
	free(p);
}
