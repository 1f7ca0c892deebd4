// SPDX-License-Identifier: MIT
/*
 * What file systems add: what they write for their metadata, where a pass goes on, who waits for
 * whom. The numbers are those that were read off the requests of Linux 6.18 (src/writeback/fs.c).
 */
#include "../file/rig.h"

#define MS NSEC_PER_MSEC

static struct rig *open_on(enum fs_kind fs, const char *policy)
{
	struct rig *r = rig_new(policy, 64 * MIB);

	r->config.fs = fs;
	r->config.contents = false;
	rig_start(r);
	return r;
}

static u64 flushes(struct rig *r)
{
	struct device_stats s;

	device_stats(r->d, &s);
	return s.flushes;
}

/* The lengths of the writes since `from`. */
static void expect_writes(struct rig *r, u32 from, const u64 *lengths, u32 n)
{
	assert_int_equal(r->logged - from, n);
	for (u32 i = 0; i < n; i++) {
		assert_int_equal(r->log[from + i].op, IO_WRITE);
		assert_int_equal(r->log[from + i].length, lengths[i]);
	}
}

#define EXPECT_WRITES(r, from, ...)                          \
	expect_writes(r, from, (const u64[]){ __VA_ARGS__ }, \
		      (u32)(sizeof((const u64[]){ __VA_ARGS__ }) / sizeof(u64)))

static void test_names(void **state)
{
	(void)state;
	assert_int_equal(fs_find("xfs"), FS_XFS);
	assert_int_equal(fs_find("ext4"), FS_EXT4);
	assert_int_equal(fs_find("none"), FS_NONE);
	assert_int_equal(fs_find("btrfs"), FS_NONE);
	assert_string_equal(fs_of(FS_EXT4)->name, "ext4");
}

/* On ext4 the remedies that count in iomap's folios do nothing, and folios are large since 6.16. */
static void test_policies_on_buffer_heads(void **state)
{
	struct policy p = *policy_find("linux-6.1"), q = p;

	(void)state;
	fs_apply(fs_of(FS_XFS), &p);
	assert_memory_equal(&p, &q, sizeof(p));
	fs_apply(fs_of(FS_EXT4), &p);
	assert_int_equal(p.max_order, 0);
	assert_int_equal(p.writeout, WRITEOUT_BLOCK);
	p = *policy_find("linux-6.12");
	fs_apply(fs_of(FS_EXT4), &p);
	assert_int_equal(p.max_order, 0);
	p = q = *policy_find("linux-6.18");
	p.accounting = ACCOUNT_PAGE;
	p.small_write = SMALL_WRITE_SPLIT;
	fs_apply(fs_of(FS_EXT4), &p);
	assert_memory_equal(&p, &q, sizeof(p));
	assert_int_equal(p.max_order, 9);
	p.accounting = ACCOUNT_DEBT; /* ours counts bits in the index, whatever is below */
	fs_apply(fs_of(FS_EXT4), &p);
	assert_int_equal(p.accounting, ACCOUNT_DEBT);
}

/* One page, synced: as on a file that is there already, so only its times have changed. */
RIG_TEST(test_what_a_sync_writes)
{
	static const struct {
		enum fs_kind fs;
		u64 log[2];
		u32 writes, flushes;
	} cases[] = { { FS_NONE, { 0 }, 0, 1 },
		      { FS_XFS, { 1024 }, 1, 2 },
		      { FS_EXT4, { 8192, 4096 }, 2, 2 } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rig *r = open_on(cases[i].fs, "linux-6.18");
		struct file *f = rig_file(rig_inode(r, 4096), 0);
		u64 before;
		u32 from;

		assert_int_equal(inode_lay_out(f->inode, MIB), 0);
		rig_dirty(f, 3, 1);
		before = flushes(r);
		assert_int_equal(file_fsync(f, true), 0); /* data only: nothing but that */
		EXPECT_WRITES(r, 0, 4096);
		assert_int_equal(flushes(r) - before, 1);
		from = r->logged;
		before = flushes(r);
		assert_int_equal(file_fsync(f, false), 0);
		expect_writes(r, from, cases[i].log, cases[i].writes);
		assert_int_equal(flushes(r) - before, cases[i].flushes);
		from = r->logged;
		assert_int_equal(file_fsync(f, false), 0); /* nothing has changed since */
		assert_int_equal(r->logged, from);
		rig_dirty(f, 256, 1); /* the file grows: its data needs the size */
		before = flushes(r);
		assert_int_equal(file_fsync(f, true), 0);
		assert_int_equal(r->log[from].length, 4096);
		expect_writes(r, from + 1, cases[i].log, cases[i].writes);
		assert_int_equal(flushes(r) - before, cases[i].flushes);
		rig_end(r, f);
	}
}

/* Times go by ticks: of two overwrites within one the second has nothing to commit. */
RIG_TEST(test_times_change_once_a_tick)
{
	static const u64 data[] = { 4096 }, all[] = { 4096, 8192, 4096 };
	struct rig *r = open_on(FS_EXT4, "linux-6.18");
	struct file *f = rig_file(rig_inode(r, 4096), 0);

	assert_int_equal(inode_lay_out(f->inode, MIB), 0);
	for (unsigned tick = 0; tick < 3; tick++) {
		for (unsigned i = 0; i < 3; i++) {
			u32 from = r->logged;

			rig_dirty(f, 3, 1);
			assert_int_equal(file_fsync(f, false), 0);
			expect_writes(r, from, i ? data : all, i ? 1 : 3);
		}
		world_sleep_jiffies(1);
	}
	rig_end(r, f);
}

/* What nobody has written yet is no data, allocated or not: writing it changes more than times. */
RIG_TEST(test_the_first_write_is_committed)
{
	static const u64 data[] = { 4096 }, all[] = { 4096, 8192, 4096 };
	struct rig *r = open_on(FS_EXT4, "linux-6.18");
	struct file *f = rig_file(rig_inode(r, 4096), 0);

	assert_int_equal(file_truncate(f, MIB), 0);
	for (unsigned pass = 0; pass < 2; pass++) {
		for (u64 page = 0; page < 3; page++) {
			u32 from = r->logged;

			rig_dirty(f, page, 1);
			assert_int_equal(file_fsync(f, true), 0);
			expect_writes(r, from, pass ? data : all, pass ? 1 : 3);
		}
	}
	assert_int_equal(file_truncate(f, 4096), 0); /* and what is cut off is no data again */
	assert_int_equal(file_truncate(f, MIB), 0);
	assert_int_equal(file_fsync(f, false), 0);
	rig_dirty(f, 1, 1);
	assert_int_equal(file_fsync(f, true), 0);
	assert_int_equal(r->log[r->logged - 1].length, 4096);
	assert_int_equal(r->log[r->logged - 2].length, 8192);
	rig_end(r, f);
}

/* 5 s after the first change ext4 commits: with 16 changed inodes two blocks of them. */
RIG_TEST(test_ext4_commits_after_5_s)
{
	struct rig *r = open_on(FS_EXT4, "linux-6.18");
	struct file *f[16];

	for (unsigned i = 0; i < 16; i++) {
		f[i] = rig_file(rig_inode(r, 4096), 0);
		assert_int_equal(inode_lay_out(f[i]->inode, MIB), 0);
	}
	world_sleep_until(1000 * MS);
	for (unsigned i = 0; i < 16; i++)
		rig_dirty(f[i], 0, 1);
	world_sleep_until(5900 * MS);
	rig_dirty(f[0], 0, 1); /* no new transaction */
	assert_int_equal(r->logged, 0);
	world_sleep_until(6001 * MS);
	EXPECT_WRITES(r, 0, 3 * 4096, 4096);
	assert_int_equal(r->log[0].end_ns, 6000 * MS + 3 * 4096 * NSEC_PER_SEC / (1024 * MIB));
	assert_int_equal(flushes(r), 2);
	world_sleep_until(20000 * MS); /* nothing has changed since */
	assert_int_equal(r->logged, 2);
	rig_dirty(f[7], 0, 1);
	world_sleep_until(25001 * MS);
	EXPECT_WRITES(r, 2, 2 * 4096, 4096);
	assert_int_equal(r->log[2].offset, 4 * 4096); /* the log goes on where it was */
	for (unsigned i = 0; i < 16; i++)
		rig_drop(f[i]);
	rig_close(r);
}

struct syncer {
	struct file *f;
	struct task *task;
};

static void sync_main(void *arg)
{
	struct syncer *s = arg;

	rig_dirty(s->f, 0, 1);
	assert_int_equal(file_fsync(s->f, false), 0);
}

/* Four who sync at once: one commit is enough. */
RIG_TEST(test_commits_are_shared)
{
	struct rig *r = open_on(FS_XFS, "linux-6.18");
	struct syncer s[4];
	u32 logs = 0;

	for (unsigned i = 0; i < 4; i++) {
		s[i].f = rig_file(rig_inode(r, 4096), 0);
		assert_int_equal(inode_lay_out(s[i].f->inode, MIB), 0);
	}
	for (unsigned i = 0; i < 4; i++)
		s[i].task = world_spawn("syncer", sync_main, &s[i]);
	for (unsigned i = 0; i < 4; i++)
		world_join(s[i].task);
	for (u32 i = 0; i < r->logged; i++)
		logs += r->log[i].length == 1024;
	assert_int_equal(r->logged, 4 + logs);
	assert_int_equal(logs, 1); /* all were in the transaction that the first committed */
	for (unsigned i = 0; i < 4; i++)
		rig_drop(s[i].f);
	rig_close(r);
}

/* What changes during a commit is in the next one. */
RIG_TEST(test_a_commit_takes_in_nothing_new)
{
	struct rig *r = rig_new("linux-6.18", 64 * MIB);
	struct syncer s;
	struct file *other;
	u32 logs = 0;

	r->config.fs = FS_XFS;
	r->config.contents = false;
	r->device_config.bytes_per_s = 102400; /* a record takes 10 ms */
	rig_start(r);
	s.f = rig_file(rig_inode(r, 4096), 0);
	other = rig_file(rig_inode(r, 4096), 0);
	assert_int_equal(inode_lay_out(s.f->inode, MIB), 0);
	assert_int_equal(inode_lay_out(other->inode, MIB), 0);
	s.task = world_spawn("syncer", sync_main, &s);
	while (!r->logged) /* its data is there: the commit begins */
		world_sleep_until(world_now() + MS);
	world_sleep_until(world_now() + MS);
	rig_dirty(other, 0, 1);
	world_join(s.task);
	EXPECT_WRITES(r, 0, 4096, 1024);
	assert_int_equal(file_fsync(other, false), 0);
	for (u32 i = 2; i < r->logged; i++)
		logs += r->log[i].length == 1024;
	assert_int_equal(logs, 1);
	rig_drop(s.f);
	rig_drop(other);
	rig_close(r);
}

struct log_watch {
	struct store *file;
	u64 end, rounds;
};

static int watch_log(void *ctx, const struct io *io)
{
	struct log_watch *w = ctx;

	if (io->op != IO_WRITE || io->store == w->file)
		return 0;
	assert_true(io->offset_bytes + io->length_bytes <= 64 * MIB);
	assert_true(io->offset_bytes == w->end || io->offset_bytes == 0);
	w->rounds += io->offset_bytes == 0;
	w->end = io->offset_bytes + io->length_bytes;
	return 0;
}

/* The log has 64 MiB, and then begins anew. */
RIG_TEST(test_the_log_goes_round)
{
	struct rig *r = open_on(FS_EXT4, "linux-6.18");
	struct file *f = rig_file(rig_inode(r, 4096), 0);
	struct log_watch watch = { .file = inode_store(f->inode) };

	assert_int_equal(inode_lay_out(f->inode, MIB), 0);
	device_set_fault(r->d, watch_log, &watch);
	for (u32 i = 0; i < 64 * MIB / (3 * 4096) + 10; i++) {
		rig_dirty(f, 0, 1);
		assert_int_equal(file_fsync(f, false), 0);
		world_sleep_jiffies(1); /* or the times of the file stay what they were */
	}
	assert_int_equal(watch.rounds, 2);
	rig_end(r, f);
}

/*
 * A pass that begins in the middle: that of ext4 wraps and uses its slice up, that of XFS ends
 * with the file, and its next one begins at the start.
 */
RIG_TEST(test_where_a_pass_goes_on)
{
	for (unsigned wraps = 0; wraps < 2; wraps++) {
		struct rig *r = open_on(wraps ? FS_EXT4 : FS_XFS, "linux-6.18");
		struct file *f = rig_file(rig_inode(r, 4096), 0);
		struct block_run *runs = malloc(FOLIO_MAX_RUNS * sizeof(*runs));
		struct pass pass = { .cyclic = true, .background = true, .budget = 150 };

		assert_int_equal(inode_lay_out(f->inode, 4 * MIB), 0);
		rig_dirty(f, 0, 300);
		f->inode->m.write_cursor = 200;
		inode_write_pages(f->inode, &pass, runs);
		assert_int_equal(pass.budget, wraps ? 0 : 50);
		assert_int_equal(f->inode->m.write_cursor, wraps ? 50 : 0);
		inode_wait_pages(f->inode, 0, 999);
		assert_int_equal(r->log[0].offset, 200 * 4096);
		assert_int_equal(r->log[0].length, 100 * 4096);
		assert_int_equal(r->logged, 1 + wraps);
		if (wraps) {
			assert_int_equal(r->log[1].offset, 0);
			assert_int_equal(r->log[1].length, 50 * 4096);
		}
		free(runs);
		rig_end(r, f);
	}
}

struct reader {
	struct file *f;
	u64 ended_ns;
};

static void read_main(void *arg)
{
	struct reader *reader = arg;

	assert_int_equal(file_pread(reader->f, NULL, 4096, 0), 4096);
	reader->ended_ns = world_now();
}

/* Whoever holds the lock of a file for writing keeps readers of XFS waiting, not those of ext4. */
RIG_TEST(test_readers_and_writers)
{
	for (unsigned ext4 = 0; ext4 < 2; ext4++) {
		struct rig *r = open_on(ext4 ? FS_EXT4 : FS_XFS, "linux-6.18");
		struct reader reader = { .f = rig_file(rig_inode(r, 4096), 0) };
		u64 start = world_now();
		struct task *task;

		assert_int_equal(inode_lay_out(reader.f->inode, MIB), 0);
		rig_dirty(reader.f, 0, 1);
		rwsem_lock(&reader.f->inode->lock);
		task = world_spawn("reader", read_main, &reader);
		world_sleep_until(start + 100 * MS);
		rwsem_unlock(&reader.f->inode->lock);
		world_join(task);
		assert_int_equal(reader.ended_ns - start, ext4 ? 0 : 100 * MS);
		rig_drop(reader.f);
		rig_close(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_policies_on_buffer_heads),
		cmocka_unit_test(test_what_a_sync_writes),
		cmocka_unit_test(test_times_change_once_a_tick),
		cmocka_unit_test(test_the_first_write_is_committed),
		cmocka_unit_test(test_ext4_commits_after_5_s),
		cmocka_unit_test(test_commits_are_shared),
		cmocka_unit_test(test_a_commit_takes_in_nothing_new),
		cmocka_unit_test(test_the_log_goes_round),
		cmocka_unit_test(test_where_a_pass_goes_on),
		cmocka_unit_test(test_readers_and_writers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
