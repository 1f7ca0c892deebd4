/* SPDX-License-Identifier: MIT */
/*
 * What a buffered write costs beside finding its folio and copying: the throttle's poll, and,
 * when it newly dirties a page, the change of state with its entry in three books and the
 * charge to the task. Below all limits.
 */
#include "bench.h"
#include "file/inner.h"

#define PAGES 4096

static struct engine *engine;
static struct device *device;
static struct inode *inode;
static struct folio *folios[PAGES];

static void poll(void *arg, u64 n)
{
	(void)arg;
	for (u64 i = 0; i < n; i++)
		bench_keep(throttle_poll(inode, false));
}

static void post(void *arg, u64 n)
{
	struct ledger_entry e = {
		.level = { [LEVEL_DEBT] = 1, [LEVEL_FOLIO_DIRTY] = 1, [LEVEL_PINNED] = 1 },
		.total = { [TOTAL_PAGES_DIRTIED] = 1, [TOTAL_FOLIO_DIRTIED] = 1 }
	};
	static struct ledger own, wb, all;
	struct ledger *books[] = { &own, &wb, &all };
	struct spinlock lock;

	(void)arg;
	spin_init(&lock, RANK_BOOKS);
	for (u64 i = 0; i < n; i++)
		ledger_post_all(books, ARRAY_SIZE(books), &e, &lock);
}

/* Each page in turn, so that all are clean when they are dirtied. */
static void dirty(void *arg, u64 n)
{
	(void)arg;
	for (u64 done = 0; done < n; done += PAGES) {
		for (u64 i = 0; i < PAGES && done + i < n; i++) {
			struct dirtied d = folio_set_dirty(folios[i], i, 1);

			throttle_charge(inode->wb->all, d.pages);
			inode_mark_dirty(inode);
		}
		for (u64 i = 0; i < PAGES && done + i < n; i++)
			folio_cancel_dirty(folios[i], i, 1);
	}
}

static void cancel(void *arg, u64 n)
{
	(void)arg;
	for (u64 i = 0; i < n; i++)
		folio_cancel_dirty(folios[i % PAGES], i % PAGES, 1);
}

int main(void)
{
	struct engine_config c = { .memory_bytes = 64u << 20, .contents = true };
	struct device_config dc;
	struct file *f;
	char page[PAGE_SIZE] = { 0 };

	c.policy = *policy_find("sluice");
	c.policy.max_order = 0;
	vm_settings_init(&c.vm);
	c.vm.dirty_ratio = 95;
	c.vm.dirty_background_ratio = 90;
	c.vm.dirty_writeback_centisecs = 0;
	if (device_config_init(&dc, "memory") || device_create(&dc, &device) ||
	    engine_create(&c, &engine) || engine_add_device(engine, device, 128, false) ||
	    inode_create(engine, 0, PAGE_SIZE, &inode) || file_open(inode, 0, &f))
		abort();
	for (u64 i = 0; i < PAGES; i++) {
		if (file_pwrite(f, page, PAGE_SIZE, i * PAGE_SIZE) != PAGE_SIZE)
			abort();
		folios[i] = mapping_find(&inode->m, i);
	}
	file_fsync(f, false);
	for (u64 i = 0; i < PAGES; i++)
		folio_lock(folios[i]);
	bench_op("poll of the throttle", poll, NULL);
	bench_op("an entry in three books", post, NULL);
	bench_op("cancelling nothing", cancel, NULL);
	bench_op("dirtying and cancelling a page", dirty, NULL);
	for (u64 i = 0; i < PAGES; i++) {
		folio_unlock(folios[i]);
		folio_unpin(&engine->cache, folios[i]);
	}
	file_close(f);
	engine_destroy(engine);
	device_destroy(device);
	return 0;
}
