// SPDX-License-Identifier: MIT
/*
 * The flusher in virtual time: Linux writeback reference, section 6. CPU time is free here, so
 * everything happens at the exact moment the rules say. 64 MiB of memory have 16,385 dirtyable
 * pages: thresh 3276, background 1636, free running up to 2456 (reference 4.1, 4.2, 4.4).
 */
#include "../file/rig.h"

#define SEC NSEC_PER_SEC

static struct rig *open_without_contents(const char *policy)
{
	struct rig *r = rig_new(policy, 64 * MIB);

	r->config.contents = false;
	return r;
}

/* As if the device had written much lately: for minutes its share of the limits is all (4.6). */
static void give_share(struct rig *r)
{
	proportion_add(&r->e->all.proportions, &r->e->all.wb[0]->proportion, 1 << 30,
		       PROPORTION_MAX_FRAC, world_jiffies(), world_hz());
}

/* The world goes on; how many I/Os have ended by then. */
static u32 at_ms(struct rig *r, u64 ms)
{
	world_sleep_until(ms * NSEC_PER_MSEC);
	return r->logged;
}

/* --- periodic work */

/*
 * The timer of 5 s is one of 1,250 ticks, which Linux's timer wheel rounds up to a multiple of
 * 64 of its counter; that stands at 75,000 (300 s) when the world begins. So what becomes dirty
 * at 0 is looked at when the counter stands at 76,288, 1,288 ticks or 5.152 s later, and from
 * then on every 1,280 ticks, 5.12 s: it is 30 s old at the sixth look, at 30.752 s. An I/O takes
 * 10 us.
 */
RIG_TEST(test_a_page_is_written_when_it_is_30_s_old)
{
	struct rig *r = open_without_contents("linux-7.4");
	struct file *f;

	rig_start(r);
	f = rig_file(rig_inode(r, 4096), 0);
	rig_dirty(f, 7, 1);
	assert_int_equal(at_ms(r, 30751), 0);
	assert_int_equal(at_ms(r, 30753), 1);
	rig_expect_io(r, 0, IO_WRITE, 7 * 4096, 4096);
	assert_int_equal(r->log[0].end_ns, 30752 * NSEC_PER_MSEC + 10000);
	rig_end(r, f);
}

/* The wakeups come 5 s after the first dirty inode: at 6.176, 11.296, ..., 31.776 s. */
RIG_TEST(test_wakeups_count_from_the_first_dirty_inode)
{
	struct rig *r = open_without_contents("linux-7.4");
	struct file *a, *b;

	rig_start(r);
	a = rig_file(rig_inode(r, 4096), 0);
	b = rig_file(rig_inode(r, 4096), 0);
	world_sleep_until(SEC);
	rig_dirty(a, 1, 1);
	world_sleep_until(3 * SEC);
	rig_dirty(b, 2, 1); /* an earlier wakeup that is pending is kept */
	assert_int_equal(at_ms(r, 31775), 0);
	assert_int_equal(at_ms(r, 36895), 1);
	assert_int_equal(r->log[0].offset, 4096);
	assert_int_equal(r->log[0].end_ns, 31776 * NSEC_PER_MSEC + 10000);
	assert_int_equal(at_ms(r, 40000), 2); /* b is 28.8 s old at the first, and 33.9 s then */
	assert_int_equal(r->log[1].offset, 8192);
	assert_int_equal(r->log[1].end_ns, 36896 * NSEC_PER_MSEC + 10000);
	rig_drop(a);
	rig_drop(b);
	rig_close(r);
}

RIG_TEST(test_writing_again_does_not_refresh_the_age)
{
	struct rig *r = open_without_contents("linux-7.4");
	struct file *f;

	rig_start(r);
	f = rig_file(rig_inode(r, 4096), 0);
	for (u64 s = 0; s < 30; s++) {
		world_sleep_until(s * SEC);
		rig_dirty(f, s % 3, 1);
	}
	assert_int_equal(r->logged, 0);
	assert_int_equal(at_ms(r, 30753), 1);
	rig_expect_io(r, 0, IO_WRITE, 0, 3 * 4096);
	/* clean: the next write starts a new life, of 30 s from the wakeup it arms */
	world_sleep_until(32 * SEC);
	rig_dirty(f, 0, 1);
	assert_int_equal(at_ms(r, 62751), 1);
	assert_int_equal(at_ms(r, 62753), 2);
	rig_end(r, f);
}

RIG_TEST(test_expiry_and_interval_can_be_set)
{
	struct rig *r = open_without_contents("linux-7.4");
	struct file *f;

	r->config.vm.dirty_writeback_centisecs = 100;
	r->config.vm.dirty_expire_centisecs = 250;
	rig_start(r);
	f = rig_file(rig_inode(r, 4096), 0);
	rig_dirty(f, 0, 1);
	/* 250 ticks, rounded up to a multiple of 8: at 1.024, 2.048 and 3.072 s */
	assert_int_equal(at_ms(r, 3071), 0);
	assert_int_equal(at_ms(r, 3073), 1);
	rig_end(r, f);
}

RIG_TEST(test_interval_0_is_never)
{
	struct rig *r = open_without_contents("linux-7.4");
	struct file *f;

	r->config.vm.dirty_writeback_centisecs = 0;
	rig_start(r);
	f = rig_file(rig_inode(r, 4096), 0);
	rig_dirty(f, 0, 100);
	assert_int_equal(at_ms(r, 3600 * 1000), 0);
	rig_end(r, f);
}

/*
 * The budget of a periodic run is NR_FILE_DIRTY and the dirty inodes, but it is spent in folio
 * pages (6.2, 6.4). Page accounting makes it small: 100 folios of 64 pages, each with one dirty
 * page, are a budget of 101 pages, which the first slice of 1024 (16 folios) uses up.
 */
RIG_TEST(test_the_budget_of_periodic_work)
{
	for (unsigned by_page = 0; by_page < 2; by_page++) {
		struct rig *r = open_without_contents("linux-7.4");
		struct file *f;
		u64 start = world_now() / NSEC_PER_MSEC;

		r->config.vm.dirty_bytes = 40 * MIB; /* nothing is above background */
		r->config.vm.dirty_background_bytes = 39 * MIB;
		if (by_page)
			r->config.policy.accounting = ACCOUNT_PAGE;
		rig_start(r);
		give_share(r);
		f = rig_file(rig_inode(r, 4096), 0);
		assert_int_equal(inode_lay_out(f->inode, 100 * 256 * KIB), 0);
		for (u64 i = 0; i < 100; i++) {
			struct folio *folio = folio_alloc(f->inode->m.cache, 6);

			folio_lock(folio);
			assert_int_equal(mapping_add(&f->inode->m, folio, i * 64), 0);
			folio_set_uptodate(folio, i * 64, 64);
			put_locked(f->inode->m.cache, folio);
			rig_dirty(f, i * 64 + 5, 1);
		}
		assert_int_equal(rig_stats(r).dirty, by_page ? 100 : 6400);
		assert_int_equal(at_ms(r, start + 29999), 0);
		assert_int_equal(at_ms(r, start + 34999), by_page ? 16 : 100);
		assert_int_equal(at_ms(r, start + 39999), by_page ? 32 : 100);
		assert_int_equal(at_ms(r, start + 44999), by_page ? 48 : 100);
		for (u32 i = 0; i < r->logged; i++) /* and it goes on where it stopped */
			rig_expect_io(r, i, IO_WRITE, (i * 64 + 5) * 4096, 4096);
		rig_end(r, f);
	}
}

/* --- background work */

/*
 * Since 6.14 an idle device's part of bg is at least (bg - dirty)/8: at the first wakeup, 5 s,
 * what exceeds bg/9 is written. 181 pages: (1636 - 181)/8 = 181. Before, its part was 0.
 */
RIG_TEST(test_when_background_begins_on_an_idle_device)
{
	static const struct {
		const char *policy;
		u64 pages;
		bool at_5_s;
	} cases[] = { { "linux-7.4", 181, false },
		      { "linux-7.4", 182, true },
		      { "linux-6.12", 1, true } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rig *r = open_without_contents(cases[i].policy);
		u64 start = world_now() / NSEC_PER_MSEC;
		struct file *f;

		rig_start(r);
		f = rig_file(rig_inode(r, 4096), 0);
		assert_int_equal(rig_stats(r).background_thresh, 1636);
		assert_int_equal(rig_stats(r).thresh, 3276);
		rig_dirty(f, 0, cases[i].pages);
		assert_int_equal(at_ms(r, start + 4999), 0);
		assert_int_equal(at_ms(r, start + 5257), cases[i].at_5_s);
		rig_end(r, f);
	}
}

/*
 * Above the background limit writers wake the flusher; it writes slices of 1024 pages (6.4:
 * min(25600/2, 3276/8) + 1024, rounded) and stops when dirty is no more than the limit; the
 * next pass goes on from there to the end of the file, and the one after begins at its start.
 */
RIG_TEST(test_background_stops_below_its_limit_and_remembers_where)
{
	struct rig *r = open_without_contents("linux-7.4");
	struct file *f;

	r->config.policy.max_order = 0;
	rig_start(r);
	give_share(r);
	f = rig_file(rig_inode(r, 4096), 0);
	rig_dirty(f, 0, 2000); /* somewhere above 1636 a look wakes it */
	world_sleep_until(world_now() + NSEC_PER_SEC);
	assert_int_equal(rig_stats(r).dirty, 2000 - 1024);
	assert_int_equal(f->inode->m.write_cursor, 1024);
	assert_int_equal(r->logged, 4); /* of 256 segments */
	rig_expect_io(r, 3, IO_WRITE, 768 * 4096, 256 * 4096);
	/* 900 more at the beginning, and it is over again */
	rig_dirty(f, 0, 900);
	world_sleep_until(world_now() + NSEC_PER_SEC);
	assert_int_equal(r->log[4].offset, 1024 * 4096);
	assert_int_equal(f->inode->m.write_cursor, 0); /* the end, without wrapping */
	assert_int_equal(rig_stats(r).dirty, 900);
	for (u32 i = 4; i < r->logged; i++)
		assert_true(r->log[i].offset >= 1024 * 4096);
	rig_end(r, f);
}

/* No 30 s age is needed above the limit, and below it nothing happens before. */
RIG_TEST(test_below_background_nothing_is_written_early)
{
	struct rig *r = open_without_contents("linux-7.4");
	struct file *f;
	u64 start;

	r->config.policy.max_order = 0;
	rig_start(r);
	give_share(r);
	f = rig_file(rig_inode(r, 4096), 0);
	start = world_now() / NSEC_PER_MSEC;
	rig_dirty(f, 0, 1600);
	assert_int_equal(at_ms(r, start + 29900), 0);
	assert_true(at_ms(r, start + 36000) > 0);
	assert_int_equal(rig_stats(r).dirty, 0);
	rig_end(r, f);
}

/*
 * Three expired files of 5000 pages, slice 2048: min(12800, 16000/8) + 1024 = 3024, rounded. They
 * take turns: 2048 each, 2048 each, the rest of each. One is at 0, the others at 1 and 2 GiB.
 */
RIG_TEST(test_expired_files_take_turns)
{
	static const u64 base = 1ull << 30 >> PAGE_SHIFT;
	struct rig *r = open_without_contents("linux-7.4");
	struct file *f[3];
	unsigned turn = 0;
	u64 pages = 0;

	r->config.memory_bytes = 256 * MIB;
	r->config.vm.dirty_bytes = 16000 * 4096;
	r->config.vm.dirty_background_bytes = 15998 * 4096;
	r->config.policy.max_order = 0;
	rig_start(r);
	give_share(r);
	for (u64 i = 0; i < 3; i++) {
		f[i] = rig_file(rig_inode(r, 4096), 0);
		rig_dirty(f[i], i * base, 5000);
	}
	assert_int_equal(at_ms(r, 29999), 0);
	world_sleep_until(60 * SEC);
	assert_int_equal(rig_stats(r).dirty, 0);
	for (u32 i = 0; i < r->logged; i++) {
		u64 file = r->log[i].offset / (base * 4096);

		if (file != turn % 3) {
			assert_int_equal(pages, turn < 6 ? 2048 : 904);
			turn++;
			pages = 0;
		}
		assert_int_equal(file, turn % 3);
		assert_int_equal(r->log[i].offset % (base * 4096),
				 (turn / 3 * 2048 + pages) * 4096);
		pages += r->log[i].length / 4096;
	}
	assert_int_equal(turn, 8);
	assert_int_equal(pages, 904);
	for (unsigned i = 0; i < 3; i++)
		rig_drop(f[i]);
	rig_close(r);
}

/* --- where an inode goes after a pass (6.4) */

static void expect_list(struct list_node *list, struct inode *const *inodes, unsigned n)
{
	struct list_node *at = list->next;

	for (unsigned i = 0; i < n; i++, at = at->next)
		assert_ptr_equal(list_entry(at, struct inode, link), inodes[i]);
	assert_ptr_equal(at, list);
}

RIG_TEST(test_requeue)
{
	struct rig *r = open_without_contents("linux-7.4");
	struct pass used_up = { .budget = 0 }, left = { .budget = 5 }, sync = { .sync = true };
	struct inode *a, *b;
	struct file *fa, *fb;
	struct wb *wb;
	u64 when_a, when_b;

	rig_start(r);
	wb = r->e->all.wb[0];
	a = rig_inode(r, 4096);
	b = rig_inode(r, 4096);
	fa = rig_file(a, 0);
	fb = rig_file(b, 0);
	rig_dirty(fa, 0, 1);
	when_a = world_jiffies();
	world_sleep_until(SEC);
	rig_dirty(fb, 0, 1);
	when_b = world_jiffies();
	world_sleep_until(2 * SEC);
	spin_lock(&wb->list_lock);
	expect_list(&wb->dirty, (struct inode *[]){ b, a }, 2); /* the newest in front */
	assert_int_equal(a->dirtied_when, when_a);

	/* the cut-off takes the old one only, then the other; the oldest is worked off first */
	wb_queue_io(wb, when_a);
	expect_list(&wb->io, (struct inode *[]){ a }, 1);
	expect_list(&wb->dirty, (struct inode *[]){ b }, 1);
	/* slice used up and expired: comes again in the next round, with its time */
	wb_requeue(wb, a, &used_up, when_a);
	expect_list(&wb->more_io, (struct inode *[]){ a }, 1);
	assert_int_equal(a->dirtied_when, when_a);
	wb_queue_io(wb, when_b);
	expect_list(&wb->io, (struct inode *[]){ b, a }, 2);
	expect_list(&wb->more_io, NULL, 0);

	/* slice left (something was skipped): to the young end, its time kept while it fits */
	wb_requeue(wb, a, &left, when_b);
	assert_int_equal(a->dirtied_when, when_a);
	expect_list(&wb->dirty, (struct inode *[]){ a }, 1);
	wb_requeue(wb, b, &left, when_b);
	assert_int_equal(b->dirtied_when, when_b);
	expect_list(&wb->dirty, (struct inode *[]){ b, a }, 2);
	/* now it would be out of order: it becomes now */
	wb_requeue(wb, a, &left, when_b);
	assert_int_equal(a->dirtied_when, world_jiffies());
	expect_list(&wb->dirty, (struct inode *[]){ a, b }, 2);
	/* used up, but dirtied after the cut-off: no more of it in this work */
	wb_requeue(wb, a, &used_up, when_b);
	expect_list(&wb->dirty, (struct inode *[]){ a, b }, 2);
	/* dirtied anew while a sync wrote it: now */
	wb_requeue(wb, b, &sync, when_b);
	assert_int_equal(b->dirtied_when, world_jiffies());
	expect_list(&wb->dirty, (struct inode *[]){ b, a }, 2);
	assert_int_equal(wb->dirty_inodes, 2);
	/* as old as the youngest is not out of order */
	a->dirtied_when = b->dirtied_when = when_b;
	wb_requeue(wb, a, &left, when_b);
	assert_int_equal(a->dirtied_when, when_b);
	spin_unlock(&wb->list_lock);

	/* clean: off the lists */
	assert_int_equal(file_fsync(fa, false), 0);
	spin_lock(&wb->list_lock);
	wb_requeue(wb, a, &left, when_b);
	expect_list(&wb->dirty, (struct inode *[]){ b }, 1);
	assert_int_equal(wb->dirty_inodes, 1);
	spin_unlock(&wb->list_lock);
	rig_drop(fa);
	rig_drop(fb);
	rig_close(r);
}

/* --- sync */

struct constant_writer {
	struct file *f;
	u64 until_ns;
};

static void write_constantly(void *arg)
{
	struct constant_writer *w = arg;

	for (u64 i = 0; world_now() < w->until_ns; i++) {
		rig_dirty(w->f, i * 37 % 1000 * 2, 1);
		world_sleep_until(world_now() + NSEC_PER_MSEC / 2);
	}
}

/*
 * 200 scattered pages at 1000 I/Os a second take 0.2 s. A writer dirties 2000 pages a second
 * meanwhile and for 10 s: sync and fsync write what was dirty when they began, and return.
 */
RIG_TEST(test_sync_ends_under_a_constant_writer)
{
	for (unsigned whole = 0; whole < 2; whole++) {
		struct rig *r = open_without_contents("linux-7.4");
		struct constant_writer w;
		struct task *task;
		u64 began;

		r->device_config.iops = 1000;
		rig_start(r);
		w = (struct constant_writer){ rig_file(rig_inode(r, 4096), 0),
					      world_now() + 10 * SEC };
		for (u64 i = 0; i < 200; i++)
			rig_dirty(w.f, i * 2, 1);
		task = world_spawn("writer", write_constantly, &w);
		began = world_now();
		if (whole)
			assert_int_equal(engine_sync(r->e), 0);
		else
			assert_int_equal(file_fsync(w.f, false), 0);
		assert_true(world_now() - began >= 200 * NSEC_PER_MSEC);
		assert_true(world_now() - began < 450 * NSEC_PER_MSEC);
		for (u64 i = 0; i < 200; i++)
			assert_true(store_any_written(inode_store(w.f->inode), i * 2, 1));
		world_join(task);
		r->logged = 0;
		rig_drop(w.f);
		rig_close(r);
	}
}

/* --- how I/Os are built (6.6) */

static u64 fsync_ios(struct rig *r, struct file *f)
{
	r->logged = 0;
	assert_int_equal(file_fsync(f, false), 0);
	return rig_logged_of(r, IO_WRITE);
}

RIG_TEST(test_runs_join_across_folios)
{
	struct rig *r = open_without_contents("linux-7.4");
	struct file *f;

	rig_start(r);
	f = rig_file(rig_inode(r, 4096), 0);
	assert_int_equal(file_pwrite(f, NULL, MIB, 12 * KIB), MIB); /* nine folios */
	assert_int_equal(fsync_ios(r, f), 1);
	rig_expect_io(r, 0, IO_WRITE, 12 * KIB, MIB);
	/* the end of one folio (pages 64..127) and the beginning of the next */
	rig_dirty(f, 126, 2);
	rig_dirty(f, 128, 3);
	assert_int_equal(fsync_ios(r, f), 1);
	rig_expect_io(r, 0, IO_WRITE, 126 * 4096, 5 * 4096);
	rig_end(r, f);
}

RIG_TEST(test_separate_runs_are_separate_ios)
{
	struct rig *r = open_without_contents("linux-7.4");
	struct file *f;

	rig_start(r);
	f = rig_file(rig_inode(r, 4096), 0);
	assert_int_equal(file_pwrite(f, NULL, 256 * KIB, 0), 256 * KIB);
	fsync_ios(r, f);
	for (u64 i = 0; i < 10; i++)
		rig_dirty(f, i * 6, 1 + i % 3);
	assert_int_equal(fsync_ios(r, f), 10);
	for (u32 i = 0; i < 10; i++)
		rig_expect_io(r, i, IO_WRITE, i * 6 * 4096, (1 + i % 3) * 4096);
	rig_end(r, f);
}

/* A segment a folio piece, 256 of them to an I/O. */
RIG_TEST(test_256_segments_to_an_io)
{
	struct rig *r = open_without_contents("linux-6.1");
	struct file *f;

	rig_start(r);
	f = rig_file(rig_inode(r, 4096), 0);
	rig_dirty(f, 0, 300);
	assert_int_equal(fsync_ios(r, f), 2);
	rig_expect_io(r, 0, IO_WRITE, 0, 256 * 4096);
	rig_expect_io(r, 1, IO_WRITE, 256 * 4096, 44 * 4096);
	rig_end(r, f);
}

/* 6.1 writes every valid block of a dirty folio, later versions the dirty ones. */
RIG_TEST(test_what_of_a_dirty_folio_is_written)
{
	static const struct {
		const char *policy;
		u64 offset, length;
	} cases[] = { { "linux-6.1", 192 * 4096, 256 * KIB },
		      { "linux-6.6", 200 * 4096, 4096 },
		      { "linux-7.4", 200 * 4096, 4096 },
		      { "sluice", 200 * 4096, 4096 } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rig *r = open_without_contents(cases[i].policy);
		struct file *f;

		rig_start(r);
		f = rig_file(rig_inode(r, 4096), 0);
		assert_int_equal(inode_lay_out(f->inode, 4 * MIB), 0);
		for (u64 at = 0; at < 2 * MIB; at += MIB)
			assert_int_equal(file_pread(f, NULL, MIB, at), MIB);
		world_sleep_until(world_now() + SEC); /* readahead has landed */
		assert_int_equal(rig_order(f, 192), 6);
		rig_dirty(f, 200, 1);
		assert_int_equal(fsync_ios(r, f), 1);
		rig_expect_io(r, 0, IO_WRITE, cases[i].offset, cases[i].length);
		rig_end(r, f);
	}
}

/* --- the estimate of the device's speed */

/* After a burst the estimate is brought up to date 200 ms after its last page landed (5.4 c). */
RIG_TEST(test_the_end_of_a_burst_is_counted)
{
	struct rig *r = open_without_contents("linux-7.4");
	struct bandwidth *bw;
	struct file *f;

	r->device_config.bytes_per_s = 4096 * 1000; /* 1000 pages a second */
	rig_start(r);
	bw = &r->e->all.wb[0]->bw;
	f = rig_file(rig_inode(r, 4096), 0);
	world_sleep_until(2 * SEC);
	rig_dirty(f, 0, 1000);
	assert_int_equal(file_fsync(f, false), 0); /* lands at 3 s */
	assert_int_equal(bw->write_bw, BANDWIDTH_INIT);
	world_sleep_until(3210 * NSEC_PER_MSEC);
	/* 1000 pages in 1.204 s (a timer of 50 ticks takes 51) of a window of 1024 ticks:
	 * (1000*250 + 25600*723)/1024 */
	assert_int_equal(bw->write_bw, 18319);
	rig_end(r, f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_page_is_written_when_it_is_30_s_old),
		cmocka_unit_test(test_wakeups_count_from_the_first_dirty_inode),
		cmocka_unit_test(test_writing_again_does_not_refresh_the_age),
		cmocka_unit_test(test_expiry_and_interval_can_be_set),
		cmocka_unit_test(test_interval_0_is_never),
		cmocka_unit_test(test_the_budget_of_periodic_work),
		cmocka_unit_test(test_when_background_begins_on_an_idle_device),
		cmocka_unit_test(test_background_stops_below_its_limit_and_remembers_where),
		cmocka_unit_test(test_below_background_nothing_is_written_early),
		cmocka_unit_test(test_expired_files_take_turns),
		cmocka_unit_test(test_requeue),
		cmocka_unit_test(test_sync_ends_under_a_constant_writer),
		cmocka_unit_test(test_runs_join_across_folios),
		cmocka_unit_test(test_separate_runs_are_separate_ios),
		cmocka_unit_test(test_256_segments_to_an_io),
		cmocka_unit_test(test_what_of_a_dirty_folio_is_written),
		cmocka_unit_test(test_the_end_of_a_burst_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
