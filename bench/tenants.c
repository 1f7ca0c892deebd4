// SPDX-License-Identifier: MIT
/*
 * What a tenant costs that goes away: with a page dirty in each of so many files, how long its end
 * takes, for each file, and the longest step between which others can go on. In the real world,
 * with ownership of inodes as Linux has it, and of pages as ours. A step in which the thread was
 * preempted is as long as what ran instead: so it is told how often that was. Where others use the
 * machine see chrt(1), and note that even then they have 5 % of each second.
 */
#include "bench.h"
#include "file/tenant.h"
#include <sys/resource.h>

static long preemptions(void)
{
	struct rusage r;

	return getrusage(RUSAGE_THREAD, &r) ? 0 : r.ru_nivcsw;
}

static void run(const char *policy, u64 files)
{
	struct engine_config c = { .memory_bytes = (files * 2 + 4096) * PAGE_SIZE,
				   .policy = *policy_find(policy) };
	struct inode **inode = calloc(files, sizeof(struct inode *));
	u64 before, start, inodes, longest_ns;
	struct device_config dc;
	struct device *device;
	struct engine *engine;
	struct tenant *t;
	long preempted;
	struct file *f;

	vm_settings_init(&c.vm);
	c.vm.dirty_writeback_centisecs = 0;
	c.vm.dirty_ratio = 100;
	c.vm.dirty_background_ratio = 99;
	if (!inode || device_config_init(&dc, "memory") || device_create(&dc, &device) ||
	    engine_create(&c, &engine) || engine_add_device(engine, device, 128, false) ||
	    engine_add_tenant(engine, "many", &(struct tenant_settings){ 0 }, &t))
		abort();
	before = engine_act_for(t);
	for (u64 i = 0; i < files; i++) {
		if (inode_create(engine, 0, PAGE_SIZE, &inode[i]) || file_open(inode[i], 0, &f) ||
		    file_pwrite(f, NULL, PAGE_SIZE, 0) != PAGE_SIZE)
			abort();
		file_close(f);
	}
	engine_restore(before);
	preempted = preemptions();
	start = bench_now();
	engine_close_tenant_telling(engine, t, &inodes, &longest_ns);
	start = bench_now() - start;
	preempted = preemptions() - preempted;
	if (inodes < files * 9 / 10) /* the rest was written meanwhile */
		abort();
	printf("%s, %llu files: %.3f s, %.0f ns a file, longest step %.3f ms, preempted %ld "
	       "times\n",
	       policy, (unsigned long long)inodes, (double)start / 1e9,
	       (double)start / (double)inodes, (double)longest_ns / 1e6, preempted);
	engine_discard(engine);
	device_destroy(device);
	free(inode);
}

int main(void)
{
	static const char *const policies[] = { "linux-7.4", "sluice" };

	for (unsigned p = 0; p < ARRAY_SIZE(policies); p++)
		for (u64 files = 10000; files <= 1000000; files *= 10)
			run(policies[p], files);
	return 0;
}
