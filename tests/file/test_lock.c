// SPDX-License-Identifier: MIT
/*
 * Who waits for whom on one file: under write_lock=inode for a writer even while the throttle
 * makes it sleep (Linux writeback reference, 2.1), under write_lock=folio for nobody.
 */
#include "rig.h"

/* A writer that is certain to be throttled: it goes on until it has slept for some time. */
struct writer {
	struct rig *r;
	struct file *f;
	u64 at, bytes;
	u64 from_ns, began_ns, ended_ns;
	bool reads;
};

static void writer_main(void *arg)
{
	struct writer *w = arg;

	world_sleep_until(w->from_ns);
	w->began_ns = world_now();
	if (w->reads)
		assert_int_equal(file_pread(w->f, NULL, w->bytes, w->at), w->bytes);
	else
		assert_int_equal(file_pwrite(w->f, NULL, w->bytes, w->at), w->bytes);
	w->ended_ns = world_now();
	engine_task_exit(w->r->e);
}

/*
 * One writer fills memory with dirty data at once and is put to sleep over and over; another
 * comes at 1 s with one page that is dirty already. A new task's first 32 pages are free, so it
 * owes nothing: what it waits is only for the lock.
 */
static u64 second_waits(const char *write_lock, bool reads)
{
	struct rig *r = rig_new("linux-7.4", 256 * MIB);
	struct writer big, small;
	struct task *task[2];
	struct err e;
	u64 start = world_now(), waits;

	r->config.contents = false;
	r->device_config.iops = 100;
	r->device_config.bytes_per_s = 4.0 * MIB;
	assert_int_equal(policy_set(&r->config.policy, "write_lock", write_lock, &e), 0);
	rig_start(r);
	big = (struct writer){ .r = r, .f = rig_file(rig_inode(r, 4096), 0), .bytes = 80 * MIB };
	small = (struct writer){ .r = r,
				 .f = big.f,
				 .at = 4096,
				 .bytes = 4096,
				 .from_ns = start + NSEC_PER_SEC,
				 .reads = reads };
	assert_int_equal(file_pwrite(big.f, NULL, 4096, 4096), 4096);
	task[0] = world_spawn("big", writer_main, &big);
	task[1] = world_spawn("small", writer_main, &small);
	world_join(task[0]);
	world_join(task[1]);
	assert_true(big.ended_ns > start + 3 * NSEC_PER_SEC); /* it was throttled */
	assert_int_equal(small.began_ns, start + NSEC_PER_SEC);
	waits = small.ended_ns - small.began_ns;
	if (waits)
		assert_true(small.ended_ns >= big.ended_ns);
	rig_drop(big.f);
	rig_close(r);
	return waits;
}

RIG_TEST(test_a_writer_waits_for_a_sleeping_writer_under_the_inode_lock)
{
	assert_true(second_waits("inode", false) > 2 * NSEC_PER_SEC);
}

RIG_TEST(test_a_reader_waits_for_a_sleeping_writer_under_the_inode_lock)
{
	assert_true(second_waits("inode", true) > 2 * NSEC_PER_SEC);
}

RIG_TEST(test_nobody_waits_for_a_sleeping_writer_under_folio_locks)
{
	assert_int_equal(second_waits("folio", false), 0);
	assert_int_equal(second_waits("folio", true), 0);
}

/* Two large writes into pages of one file that are there, which take a MiB's copying each. */
static u64 both_take(const char *policy)
{
	struct rig *r = rig_new(policy, 64 * MIB);
	struct writer w[2];
	struct task *task[2];
	u64 start, last = 0;

	r->config.contents = false;
	rig_start(r);
	w[0] = (struct writer){ .r = r, .f = rig_file(rig_inode(r, 4096), 0), .bytes = MIB };
	w[1] = (struct writer){ .r = r, .f = w[0].f, .at = MIB, .bytes = MIB };
	for (u64 at = 0; at < 2 * MIB; at += MIB)
		assert_int_equal(file_pwrite(w[0].f, NULL, MIB, at), MIB);
	world_current->cost_ns[COST_COPY] = 1000;
	start = world_now();
	for (unsigned i = 0; i < 2; i++)
		task[i] = world_spawn("writer", writer_main, &w[i]);
	for (unsigned i = 0; i < 2; i++) {
		world_join(task[i]);
		last = max_u64(last, w[i].ended_ns);
	}
	world_current->cost_ns[COST_COPY] = 0;
	rig_drop(w[0].f);
	rig_close(r);
	return last - start;
}

RIG_TEST(test_the_inode_lock_is_held_while_a_write_is_copied)
{
	assert_int_equal(both_take("linux-7.4"), 2 * 256 * 1000);
	assert_int_equal(both_take("sluice"), 256 * 1000);
}

/* Writers of the same pages, in small steps: all bytes of a page are of one of them. */
struct rival {
	struct file *f;
	u8 version;
};

static void rival_main(void *arg)
{
	struct rival *v = arg;

	for (u64 i = 0; i < 50; i++) {
		rig_write(v->f, i % 8 * 4096, 4096, v->version);
		world_sleep_until(world_now() + 1000 * v->version);
	}
}

RIG_TEST(test_writers_of_one_page_do_not_mix)
{
	static const char *const policies[] = { "linux-7.4", "sluice" };

	for (unsigned p = 0; p < 2; p++) {
		struct rig *r = rig_open(policies[p]);
		struct file *f = rig_file(rig_inode(r, 4096), 0);
		struct rival v[4];
		struct task *task[4];
		u8 page[4096];

		for (u8 i = 0; i < 4; i++) {
			v[i] = (struct rival){ f, (u8)(i + 1) };
			task[i] = world_spawn("rival", rival_main, &v[i]);
		}
		for (unsigned i = 0; i < 4; i++)
			world_join(task[i]);
		for (u64 at = 0; at < 8 * 4096; at += 4096) {
			u8 version = 1;

			assert_int_equal(file_pread(f, page, 4096, at), 4096);
			while (version < 5 && page[0] != rig_byte(at, version))
				version++;
			assert_true(version < 5);
			for (u64 i = 0; i < 4096; i++)
				assert_int_equal(page[i], rig_byte(at + i, version));
		}
		rig_end(r, f);
	}
}

/* Two appenders under folio locks: the file grows by both, and nothing is lost. */
static void append_main(void *arg)
{
	struct writer *w = arg;

	for (u64 at = w->at; at < MIB; at += 2 * w->bytes) {
		rig_write(w->f, at, w->bytes, 1);
		world_sleep_until(world_now() + 777);
	}
}

RIG_TEST(test_growing_from_two_tasks)
{
	struct rig *r = rig_open("sluice");
	struct file *f = rig_file(rig_inode(r, 4096), 0);
	struct writer w[2] = { { .f = f, .at = 0, .bytes = 5000 },
			       { .f = f, .at = 5000, .bytes = 5000 } };
	struct task *task[2];

	for (unsigned i = 0; i < 2; i++)
		task[i] = world_spawn("append", append_main, &w[i]);
	for (unsigned i = 0; i < 2; i++)
		world_join(task[i]);
	assert_int_equal(inode_size(f->inode), div_roundup(MIB, 5000) * 5000);
	rig_expect_bytes(f, 0, inode_size(f->inode), 1);
	rig_end(r, f);
}

/* A writer of more than memory ends, under every policy: reclaim and write-out keep up. */
RIG_TEST(test_a_write_larger_than_memory_ends)
{
	static const char *const policies[] = { "linux-6.1", "linux-6.12", "linux-7.4", "sluice" };

	for (unsigned p = 0; p < ARRAY_SIZE(policies); p++) {
		struct rig *r = rig_new(policies[p], 16 * MIB);
		struct file *f;

		r->config.contents = false;
		r->device_config.bytes_per_s = 100.0 * MIB;
		rig_start(r);
		f = rig_file(rig_inode(r, 4096), 0);
		for (u64 at = 0; at < 64 * MIB; at += MIB)
			assert_int_equal(file_pwrite(f, NULL, MIB, at), MIB);
		assert_int_equal(file_fsync(f, false), 0);
		assert_true(world_now() >= 64 * NSEC_PER_SEC / 100);
		assert_int_equal(store_size(inode_store(f->inode)), 64 * MIB);
		rig_end(r, f);
	}
}

/* The same with limits so high that nothing but the size of memory stops the writer. */
RIG_TEST(test_memory_full_of_dirty_data_still_moves)
{
	static const char *const policies[] = { "linux-7.4", "sluice" };

	for (unsigned p = 0; p < ARRAY_SIZE(policies); p++) {
		struct rig *r = rig_new(policies[p], 4 * MIB);
		struct engine_stats s;
		struct file *f;

		r->config.contents = false;
		r->config.vm.dirty_bytes = 1024 * MIB;
		r->config.vm.dirty_background_bytes = 512 * MIB;
		rig_start(r);
		f = rig_file(rig_inode(r, 4096), 0);
		for (u64 i = 0; i < 2048; i++) { /* 8 MiB in scattered pages */
			u64 page = i * 7919 % (64 * 1024);

			assert_int_equal(file_pwrite(f, NULL, 4096, page * 4096), 4096);
		}
		engine_stats(r->e, &s);
		assert_int_equal(s.throttle_sleeps, 0);
		assert_true(s.debt_max > 900); /* of 1024: memory was full */
		assert_int_equal(file_fsync(f, false), 0);
		rig_end(r, f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_writer_waits_for_a_sleeping_writer_under_the_inode_lock),
		cmocka_unit_test(test_a_reader_waits_for_a_sleeping_writer_under_the_inode_lock),
		cmocka_unit_test(test_nobody_waits_for_a_sleeping_writer_under_folio_locks),
		cmocka_unit_test(test_the_inode_lock_is_held_while_a_write_is_copied),
		cmocka_unit_test(test_writers_of_one_page_do_not_mix),
		cmocka_unit_test(test_growing_from_two_tasks),
		cmocka_unit_test(test_a_write_larger_than_memory_ends),
		cmocka_unit_test(test_memory_full_of_dirty_data_still_moves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
