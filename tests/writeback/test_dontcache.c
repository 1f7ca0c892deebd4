// SPDX-License-Identifier: MIT
/*
 * DONTCACHE under each choice of who writes: Linux writeback reference, section 8. CPU time is
 * free, the device does 1 GiB a second, and 64 MiB of memory have 16,385 dirtyable pages.
 */
#include "../file/rig.h"

#define MS NSEC_PER_MSEC

static struct rig *open_sized(const char *policy, const char *dontcache, u64 memory_bytes)
{
	struct rig *r = rig_new(policy, memory_bytes);

	r->config.contents = false;
	assert_int_equal(policy_set(&r->config.policy, "dontcache", dontcache, NULL), 0);
	rig_start(r);
	return r;
}

static struct rig *open_with(const char *policy, const char *dontcache)
{
	return open_sized(policy, dontcache, 64 * MIB);
}

static void write_with(struct file *f, unsigned flags, u64 offset, u64 length)
{
	struct iovec iov = { NULL, length };

	assert_int_equal(file_pwritev(f, &iov, 1, offset, flags), length);
}

static void write_drop(struct file *f, u64 offset, u64 length)
{
	write_with(f, FILE_IO_DONTCACHE, offset, length);
}

static u64 level(struct rig *r, enum ledger_level l)
{
	return ledger_level(&r->e->cache.ledger, l);
}

static u64 cached(struct rig *r)
{
	return cache_pages(&r->e->cache);
}

static void after_ms(u64 ms)
{
	world_sleep_until(world_now() + ms * MS);
}

/* --- the count (8.4) */

/* +n when a marked folio becomes dirty, -n when it is taken for I/O. */
RIG_TEST(test_count_follows_marked_folios)
{
	struct rig *r = open_with("linux-6.18", "kick");
	struct file *f = rig_file(rig_inode(r, 4096), 0);

	r->e->all.wb[0]->dontcache.asked = 1; /* nobody is woken */
	write_drop(f, 0, 64 * KIB);
	assert_int_equal(rig_order(f, 0), 4);
	assert_int_equal(level(r, LEVEL_DROP), 16);
	assert_int_equal(level(r, LEVEL_FOLIO_DROP), 16);
	write_drop(f, 0, 64 * KIB); /* dirty already */
	assert_int_equal(level(r, LEVEL_DROP), 16);
	write_with(f, 0, MIB, 64 * KIB); /* without the flag nothing is marked */
	assert_int_equal(level(r, LEVEL_DROP), 16);
	assert_int_equal(level(r, LEVEL_DEBT), 32);
	rig_audit(r);
	assert_int_equal(file_sync_range(f, 0, 64 * KIB, FILE_WRITE), 0);
	assert_int_equal(level(r, LEVEL_DROP), 0);
	assert_int_equal(level(r, LEVEL_FOLIO_DROP), 0);
	rig_audit(r);
	after_ms(10);
	assert_int_equal(rig_order(f, 0), -1);
	assert_int_equal(cached(r), 16);
	rig_end(r, f);
}

/* -n when it is cancelled, in part too; folios count whole for Linux, by page for us. */
RIG_TEST(test_count_follows_truncation)
{
	struct rig *r = open_with("linux-6.18", "kick");
	struct file *f = rig_file(rig_inode(r, 4096), 0);

	r->e->all.wb[0]->dontcache.asked = 1;
	write_drop(f, 0, 64 * KIB);
	assert_int_equal(inode_truncate(f->inode, 12 * KIB), 0);
	assert_int_equal(level(r, LEVEL_DROP), 3);
	assert_int_equal(level(r, LEVEL_FOLIO_DROP), 16);
	rig_audit(r);
	assert_int_equal(inode_truncate(f->inode, 0), 0);
	assert_int_equal(level(r, LEVEL_DROP), 0);
	assert_int_equal(level(r, LEVEL_FOLIO_DROP), 0);
	rig_audit(r);
	rig_end(r, f);
}

/* A lookup without the flag clears the mark, of a dirty folio with its count (8.1, 8.4). */
RIG_TEST(test_lookups_of_others_unmark)
{
	struct rig *r = open_with("linux-6.18", "kick");
	struct file *f = rig_file(rig_inode(r, 4096), 0);

	r->e->all.wb[0]->dontcache.asked = 1;
	write_drop(f, 0, 16 * KIB);
	write_drop(f, 64 * KIB, 16 * KIB);
	write_drop(f, 128 * KIB, 16 * KIB);
	assert_int_equal(level(r, LEVEL_FOLIO_DROP), 12);
	assert_int_equal(file_pread(f, NULL, 4096, 4096), 4096);
	assert_int_equal(level(r, LEVEL_FOLIO_DROP), 8);
	assert_int_equal(level(r, LEVEL_DROP), 8);
	write_with(f, 0, 64 * KIB, 512);
	assert_int_equal(level(r, LEVEL_FOLIO_DROP), 4);
	rig_audit(r);
	/* those with the flag do not */
	assert_int_equal(
		file_preadv(f, &(struct iovec){ NULL, 4096 }, 1, 128 * KIB, FILE_IO_DONTCACHE),
		4096);
	write_drop(f, 128 * KIB, 512);
	assert_int_equal(level(r, LEVEL_FOLIO_DROP), 4);
	assert_int_equal(level(r, LEVEL_DEBT), 12);
	assert_int_equal(engine_sync(r->e), 0);
	assert_int_equal(rig_order(f, 0), 2);
	assert_int_equal(rig_order(f, 16), 2);
	assert_int_equal(rig_order(f, 32), -1);
	rig_audit(r);
	rig_end(r, f);
}

/* A folio that was there before is not marked (8.1). */
RIG_TEST(test_cached_folios_are_not_marked)
{
	struct rig *r = open_with("linux-6.18", "inline");
	struct file *f = rig_file(rig_inode(r, 4096), 0);

	write_with(f, 0, 0, 16 * KIB);
	write_drop(f, 0, 32 * KIB);
	assert_int_equal(level(r, LEVEL_DROP), 0); /* in flight */
	after_ms(10);
	assert_int_equal(rig_order(f, 0), 2);
	assert_int_equal(rig_order(f, 4), -1);
	rig_end(r, f);
}

/* A write-out that fails leaves the mark, the count and the data (section 13, errors=keep). */
RIG_TEST(test_failure_keeps_the_mark)
{
	struct rig *r = open_with("linux-6.18", "inline");
	struct file *f = rig_file(rig_inode(r, 4096), 0);

	r->write_error = -EIO;
	r->failures = 1;
	write_drop(f, 0, 16 * KIB);
	after_ms(10);
	assert_int_equal(level(r, LEVEL_DROP), 4);
	assert_int_equal(level(r, LEVEL_FOLIO_DROP), 4);
	rig_audit(r);
	assert_int_equal(file_fsync(f, false), 0);
	assert_int_equal(cached(r), 0);
	rig_end(r, f);
}

/* --- inline (8.3) */

/* The writer sends exactly its range before it returns, and nothing else that is dirty. */
RIG_TEST(test_inline_sends_its_own_range)
{
	struct rig *r = open_with("linux-6.18", "inline");
	struct file *f = rig_file(rig_inode(r, 4096), 0);

	write_with(f, 0, MIB, 64 * KIB);
	write_drop(f, 0, 64 * KIB);
	assert_int_equal(level(r, LEVEL_IN_FLIGHT), 16);
	assert_int_equal(level(r, LEVEL_DEBT), 16);
	after_ms(10);
	assert_int_equal(r->logged, 1);
	rig_expect_io(r, 0, IO_WRITE, 0, 64 * KIB);
	assert_int_equal(rig_order(f, 0), -1);
	rig_end(r, f);
}

/* What is dirty again in flight is left until it is old: 30 s and a wakeup. */
RIG_TEST(test_inline_leaves_what_is_in_flight)
{
	struct rig *r = open_with("linux-6.18", "inline");
	struct file *f = rig_file(rig_inode(r, 4096), 0);

	write_drop(f, 0, 4096);
	write_drop(f, 0, 4096);
	after_ms(10);
	assert_int_equal(level(r, LEVEL_DROP), 1);
	after_ms(29000);
	assert_int_equal(level(r, LEVEL_DROP), 1);
	after_ms(6000);
	assert_int_equal(cached(r), 0);
	rig_end(r, f);
}

/* --- kick (8.4) */

/* The number that is dirty for DONTCACHE, of the oldest file, whoever dirtied that. */
RIG_TEST(test_kick_writes_that_much_of_the_oldest)
{
	struct rig *r = open_with("linux-7.4", "kick");
	struct file *old = rig_file(rig_inode(r, 4096), 0);
	struct file *f = rig_file(rig_inode(r, 4096), 0);

	/* as if the device had written much: its share of the background limit is all (4.6) */
	proportion_add(&r->e->all.proportions, &r->e->all.wb[0]->proportion, 1 << 30,
		       PROPORTION_MAX_FRAC, world_jiffies(), world_hz());
	write_with(old, 0, 0, 5 * MIB);
	after_ms(100);
	write_drop(f, 0, MIB);                          /* 256 pages; slices are of 1,024 */
	assert_int_equal(level(r, LEVEL_IN_FLIGHT), 0); /* not by the writer */
	after_ms(500);
	assert_int_equal(r->e->all.wb[0]->dontcache.asked, 0);
	assert_int_equal(level(r, LEVEL_DROP), 256);
	assert_int_equal(level(r, LEVEL_DEBT), 1280 + 256 - 1024);
	assert_true(rig_order(f, 0) >= 0);
	rig_drop(old);
	rig_end(r, f);
}

/* Many writes ask once; who asks while the flusher works is served after it. */
RIG_TEST(test_kicks_coalesce)
{
	struct rig *r = open_with("linux-7.4", "kick");
	struct file *f = rig_file(rig_inode(r, 4096), 0);
	struct wb *wb;

	wb = r->e->all.wb[0];
	for (u64 at = 0; at < 16; at++)
		write_drop(f, at * 64 * KIB, 64 * KIB);
	assert_int_equal(wb->dontcache.asked, 1);
	assert_int_equal(level(r, LEVEL_DROP), 256);
	after_ms(20);
	assert_int_equal(wb->dontcache.asked, 0);
	assert_int_equal(level(r, LEVEL_DROP), 0);
	assert_int_equal(cached(r), 0);
	rig_end(r, f);
}

/* Not for O_DSYNC, whose data is written already (8.4). */
RIG_TEST(test_dsync_kicks_nobody)
{
	struct rig *r = open_with("linux-7.4", "kick");
	struct file *f = rig_file(rig_inode(r, 4096), 0);

	write_with(f, FILE_IO_DONTCACHE | FILE_IO_DSYNC, 0, 64 * KIB);
	assert_int_equal(r->e->all.wb[0]->dontcache.asked, 0);
	assert_int_equal(cached(r), 0);
	rig_end(r, f);
}

/* --- own */

/* Just the marked pages, in file order, when the first is 20 ms old. */
RIG_TEST(test_own_writes_marked_pages_in_file_order)
{
	struct rig *r = open_with("sluice", "own");
	struct file *f = rig_file(rig_inode(r, 4096), 0);

	write_with(f, 0, 512 * KIB, 64 * KIB);
	for (u64 i = 8; i-- > 0;)
		write_drop(f, i * 128 * KIB + (i == 4 ? 64 * KIB : 0), 4096);
	after_ms(18);
	assert_int_equal(r->logged, 0);
	after_ms(4);
	assert_int_equal(r->logged, 8);
	for (u32 i = 0; i < 8; i++)
		rig_expect_io(r, i, IO_WRITE, i * 128 * KIB + (i == 4 ? 64 * KIB : 0), 4096);
	assert_int_equal(level(r, LEVEL_DEBT), 16);
	assert_int_equal(cached(r), 16);
	rig_end(r, f);
}

/* A MiB is enough to begin at once. */
RIG_TEST(test_own_begins_with_a_mib)
{
	struct rig *r = open_with("sluice", "own");
	struct file *f = rig_file(rig_inode(r, 4096), 0);

	write_drop(f, 0, MIB);
	after_ms(2);
	assert_int_equal(level(r, LEVEL_DROP), 0);
	assert_int_equal(cached(r), 0);
	rig_end(r, f);
}

/* What is dirty again in flight, or was held when it landed, goes in the next round. */
RIG_TEST(test_own_leaves_nothing_behind)
{
	struct rig *r = open_with("sluice", "own");
	struct file *f = rig_file(rig_inode(r, 4096), 0);
	struct folio *held;

	r->device_config.latency_ns = 5 * MS;
	assert_int_equal(device_reconfigure(r->d, &r->device_config), 0);
	write_drop(f, 0, MIB);
	after_ms(2);
	assert_int_equal(level(r, LEVEL_IN_FLIGHT), 256);
	write_drop(f, 0, 4096);
	write_drop(f, MIB, MIB);
	held = mapping_find(&f->inode->m, 300);
	after_ms(15);
	assert_non_null(held->mapping); /* it has landed, but stays */
	assert_int_equal(level(r, LEVEL_IN_FLIGHT), 0);
	folio_unpin(&r->e->cache, held);
	after_ms(40);
	assert_int_equal(cached(r), 0);
	rig_end(r, f);
}

/*
 * Who marks pages may look whether their file is queued before another thread queues it, and come
 * to the queue when it has been taken from there and is being written. It stands there once.
 */
RIG_TEST(test_own_queues_a_file_once)
{
	struct rig *r = open_with("sluice", "own");
	struct file *f = rig_file(rig_inode(r, 4096), 0);
	struct inode *inode = f->inode;
	struct wb *wb = r->e->all.wb[0];

	r->device_config.bytes_per_s = 10 * MIB;
	assert_int_equal(device_reconfigure(r->d, &r->device_config), 0);
	write_drop(f, 0, 13 * MIB);
	after_ms(50); /* as much is in flight as may be: the flusher waits, amid this file */
	assert_true(inode->state & INODE_SYNC);
	assert_int_equal(wb->dontcache.queued, 0);
	atomic_store(&inode->known_drop, 0);
	atomic_store(&wb->dontcache.stuck, 1); /* nobody waits for room */
	write_drop(f, 20 * MIB, 4096);
	assert_int_equal(wb->dontcache.queued, 1);
	for (u32 i = 0; i < 300; i++) {
		after_ms(10);
		assert_in_range(wb->dontcache.queued, 0, 1);
	}
	assert_int_equal(cached(r), 0);
	assert_true(list_empty(&wb->dontcache.files));
	rig_end(r, f);
}

static void write_stream(void *file)
{
	for (u64 i = 0; i < 64; i++)
		write_drop(file, i * MIB, MIB);
}

/* 2,560 pages are written in 100 ms, but it is an eighth of memory; a writer has a MiB more. */
RIG_TEST(test_own_backlog_is_bounded)
{
	struct rig *r = open_with("sluice", "own");
	struct file *f = rig_file(rig_inode(r, 4096), 0);
	struct task *t;
	u64 most = 0, start = world_now();

	r->device_config.bytes_per_s = 100 * MIB;
	assert_int_equal(device_reconfigure(r->d, &r->device_config), 0);
	assert_int_equal(dontcache_bound(r->e->all.wb[0]), 2048);
	t = world_spawn("writer", write_stream, f);
	for (u32 i = 0; i < 580; i++) {
		after_ms(1);
		most = max_u64(most, level(r, LEVEL_PINNED));
	}
	assert_in_range(most, 2048, 2048 + 256);
	world_join(t);
	/* the device was never idle: 64 MiB less what is left, at 100 MiB/s */
	assert_in_range(world_now() - start, 550 * MS, 620 * MS);
	after_ms(100);
	assert_int_equal(cached(r), 0);
	rig_end(r, f);
}

static void write_elsewhere(void *file)
{
	write_drop(file, 64 * MIB, MIB);
}

/* Who overwrites what is owed already passes those who wait for room. */
RIG_TEST(test_own_overwriters_need_no_room)
{
	struct rig *r = open_sized("sluice", "own", 512 * MIB);
	struct file *f = rig_file(rig_inode(r, 4096), 0);
	struct task *t;
	u64 start;

	r->device_config.bytes_per_s = 10 * MIB;
	assert_int_equal(device_reconfigure(r->d, &r->device_config), 0);
	write_drop(f, 0, 32 * MIB); /* the bound is 24, and 12 may be in flight */
	after_ms(20);
	t = world_spawn("other", write_elsewhere, f);
	after_ms(1);
	assert_int_equal(r->e->all.wb[0]->dontcache.waits, 1);
	assert_true(level(r, LEVEL_DROP) >= 256);
	start = world_now();
	for (u32 i = 0; i < 16; i++) {
		write_drop(f, 31 * MIB, MIB);
		write_drop(f, 31 * MIB + 100, MIB - 200);
	}
	assert_int_equal(world_now(), start);
	assert_int_equal(r->e->all.wb[0]->dontcache.waits, 1);
	write_drop(f, 31 * MIB + 4096, MIB); /* its last page is new */
	assert_true(world_now() - start > 400 * MS);
	world_join(t);
	after_ms(5000);
	assert_int_equal(cached(r), 0);
	rig_end(r, f);
}

/* It goes down by an eighth of what lands, since who waits would have to wait for all of it. */
RIG_TEST(test_own_bound_falls_slowly)
{
	struct rig *r = open_with("sluice", "own");
	struct file *f = rig_file(rig_inode(r, 4096), 0);
	struct dontcache *d = &r->e->all.wb[0]->dontcache;

	atomic_store(&d->bound, 10000);
	assert_int_equal(dontcache_bound(r->e->all.wb[0]), 2048); /* an eighth of memory */
	write_drop(f, 0, MIB);
	after_ms(10);
	assert_int_equal(d->bound, 10000 - 32);
	atomic_store(&d->bound, 2000); /* up at once */
	write_drop(f, 0, MIB);
	after_ms(10);
	assert_int_equal(d->bound, 2048);
	rig_end(r, f);
}

/* A device that answers nothing holds nobody for ever. */
RIG_TEST(test_own_lets_go_when_nothing_lands)
{
	struct rig *r = open_with("sluice", "own");
	struct file *f = rig_file(rig_inode(r, 4096), 0);
	u64 start = world_now();

	r->device_config.latency_ns = 60 * NSEC_PER_SEC;
	assert_int_equal(device_reconfigure(r->d, &r->device_config), 0);
	for (u64 i = 0; i < 9; i++)
		write_drop(f, i * MIB, MIB);
	assert_in_range(world_now() - start, 200 * MS, 300 * MS);
	after_ms(200000);
	assert_int_equal(cached(r), 0);
	rig_end(r, f);
}

/* Nor while what lands has failed: it stays, and no room comes of it. */
RIG_TEST(test_own_lets_go_when_all_fails)
{
	struct rig *r = open_with("sluice", "own");
	struct file *f = rig_file(rig_inode(r, 4096), 0);
	u64 start = world_now();

	r->write_error = -EIO;
	r->failures = UINT32_MAX;
	for (u64 i = 0; i < 12; i++) /* the bound is 8 MiB */
		write_drop(f, i * MIB / 4 * 3, MIB / 4 * 3);
	assert_true(world_now() - start <= 500 * MS);
	r->failures = 0;
	assert_int_equal(file_fsync(f, false), 0);
	after_ms(100);
	assert_int_equal(cached(r), 0);
	rig_end(r, f);
}

/* Files take turns of 4 MiB. */
RIG_TEST(test_own_goes_round)
{
	struct rig *r = open_with("sluice", "own");
	struct file *a = rig_file(rig_inode(r, 4096), 0), *b = rig_file(rig_inode(r, 4096), 0);

	r->e->all.wb[0]->dontcache.asked = 1;
	write_drop(a, 0, 4 * MIB);
	write_drop(b, 16 * MIB, MIB / 2);
	write_drop(a, 4 * MIB, MIB / 4);
	r->e->all.wb[0]->dontcache.asked = 0;
	after_ms(60);
	assert_int_equal(cached(r), 0);
	/* the other file's come before the rest of this one's */
	assert_true(r->log[r->logged - 1].offset >= 4 * MIB);
	assert_true(r->log[r->logged - 1].offset < 16 * MIB);
	rig_drop(a);
	rig_drop(b);
	rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_count_follows_marked_folios),
		cmocka_unit_test(test_count_follows_truncation),
		cmocka_unit_test(test_lookups_of_others_unmark),
		cmocka_unit_test(test_cached_folios_are_not_marked),
		cmocka_unit_test(test_failure_keeps_the_mark),
		cmocka_unit_test(test_inline_sends_its_own_range),
		cmocka_unit_test(test_inline_leaves_what_is_in_flight),
		cmocka_unit_test(test_kick_writes_that_much_of_the_oldest),
		cmocka_unit_test(test_kicks_coalesce),
		cmocka_unit_test(test_dsync_kicks_nobody),
		cmocka_unit_test(test_own_writes_marked_pages_in_file_order),
		cmocka_unit_test(test_own_begins_with_a_mib),
		cmocka_unit_test(test_own_leaves_nothing_behind),
		cmocka_unit_test(test_own_queues_a_file_once),
		cmocka_unit_test(test_own_backlog_is_bounded),
		cmocka_unit_test(test_own_overwriters_need_no_room),
		cmocka_unit_test(test_own_bound_falls_slowly),
		cmocka_unit_test(test_own_lets_go_when_nothing_lands),
		cmocka_unit_test(test_own_lets_go_when_all_fails),
		cmocka_unit_test(test_own_goes_round),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
