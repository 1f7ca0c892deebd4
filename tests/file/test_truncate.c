// SPDX-License-Identifier: MIT
/* Truncation: what is cut off is gone, from the cache, the debt and the device. */
#include "rig.h"

RIG_TEST(test_the_tail_of_the_last_page_is_zero)
{
	static const u64 sizes[] = { 1, 511, 512, 4095, 4096, 4097, 5000, 8192, 100000, 262143 };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (unsigned how = 0; how < 3; how++) { /* not cached; cached clean; dirty */
			struct rig *r = rig_open(i % 2 ? "sluice" : "linux-7.4");
			struct file *f = rig_laid_out(r, i % 3 ? 4096 : 512, 256 * KIB);
			u8 version = how == 2 ? 2 : 1;

			if (how == 1)
				rig_expect_bytes(f, 0, 256 * KIB, 1);
			if (how == 2)
				rig_write(f, 0, 256 * KIB, 2);
			assert_int_equal(inode_truncate(f->inode, sizes[i]), 0);
			assert_int_equal(inode_size(f->inode), sizes[i]);
			assert_int_equal(inode_truncate(f->inode, MIB), 0);
			rig_expect_bytes(f, 0, sizes[i], version);
			rig_expect_bytes(f, sizes[i], MIB - sizes[i], 0);
			assert_int_equal(file_fsync(f, false), 0);
			engine_drop_caches(r->e);
			assert_int_equal(f->inode->m.pages, 0);
			rig_expect_bytes(f, 0, sizes[i], version);
			rig_expect_bytes(f, sizes[i], MIB - sizes[i], 0);
			rig_end(r, f);
		}
	}
}

/* Nothing that was cut off is written, and its charge is refunded (3.1: cancel; P1: refund). */
RIG_TEST(test_what_is_cut_off_dirty_is_refunded_and_not_written)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_file(rig_inode(r, 4096), 0);
	struct ledger *l = &f->inode->m.ledger;

	rig_write(f, 0, 2 * MIB, 1); /* one folio of 512 pages */
	assert_int_equal(inode_truncate(f->inode, MIB + 5000), 0);
	assert_int_equal(ledger_level(l, LEVEL_DEBT), 258);
	assert_int_equal(ledger_total(l, TOTAL_PAGES_CANCELLED), 254);
	assert_int_equal(ledger_total(l, TOTAL_PAGES_DIRTIED), 512); /* stays */
	/* a dirty folio is not split (11.6): it is kept whole, zeroed past the end */
	assert_int_equal(rig_order(f, 0), 9);
	assert_int_equal(ledger_level(l, LEVEL_FOLIO_DIRTY), 512);
	assert_int_equal(file_fsync(f, false), 0);
	for (u32 i = 0; i < r->logged; i++)
		assert_true(r->log[i].offset + r->log[i].length <= 258 * 4096);
	assert_int_equal(inode_truncate(f->inode, 0), 0);
	assert_int_equal(f->inode->m.pages, 0);
	rig_end(r, f);
}

/* A clean folio is split at the new end, and so is a dirty one where shedding is allowed. */
RIG_TEST(test_partial_folios_are_split)
{
	for (unsigned dirty = 0; dirty < 2; dirty++) {
		struct rig *r = rig_open(dirty ? "sluice" : "linux-7.4");
		struct file *f = rig_file(rig_inode(r, 4096), 0);

		rig_write(f, 0, 2 * MIB, 1);
		if (!dirty)
			assert_int_equal(file_fsync(f, false), 0);
		assert_int_equal(inode_truncate(f->inode, 5 * 4096 + 1), 0);
		/* 0-3, 4, 5; nothing of 6..511 */
		rig_expect_orders(f, 0, 2, 0, 0);
		assert_int_equal(f->inode->m.pages, 6);
		assert_int_equal(ledger_level(&f->inode->m.ledger, LEVEL_PINNED), dirty ? 6 : 0);
		rig_audit(r);
		rig_end(r, f);
	}
}

RIG_TEST(test_lengthening_makes_a_hole)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_file(rig_inode(r, 4096), 0);

	rig_write(f, 0, 100, 1);
	assert_int_equal(inode_truncate(f->inode, 10 * MIB), 0);
	assert_int_equal(inode_size(f->inode), 10 * MIB);
	rig_expect_bytes(f, 0, 100, 1);
	rig_expect_bytes(f, 100, 5 * MIB, 0);
	assert_int_equal(rig_logged_of(r, IO_READ), 0);
	assert_int_equal(ledger_level(&f->inode->m.ledger, LEVEL_DEBT), 1);
	rig_end(r, f);
}

/* Space that is laid out is read from the device, and is zeros there. */
RIG_TEST(test_laid_out_space_is_read)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_file(rig_inode(r, 4096), 0);

	assert_int_equal(inode_lay_out(f->inode, MIB), 0);
	assert_int_equal(inode_size(f->inode), MIB);
	rig_expect_bytes(f, 0, 4096, 0);
	assert_true(rig_logged_of(r, IO_READ) > 0);
	assert_int_equal(inode_lay_out(f->inode, 4096), 0); /* never shortens */
	assert_int_equal(inode_size(f->inode), MIB);
	rig_end(r, f);
}

/* What is in flight must land first: it would otherwise come back behind the truncation. */
RIG_TEST(test_truncation_waits_for_what_is_in_flight)
{
	struct rig *r = rig_new("linux-7.4", 64 * MIB);
	struct file *f;

	r->device_config.iops = 10; /* an I/O takes 100 ms */
	rig_start(r);
	f = rig_file(rig_inode(r, 4096), 0);
	rig_write(f, 0, 64 * KIB, 1);
	assert_int_equal(file_advise(f, 0, 64 * KIB, FILE_ADV_DONTNEED), 0); /* starts write-out */
	assert_int_equal(ledger_level(&f->inode->m.ledger, LEVEL_IN_FLIGHT), 16);
	assert_int_equal(world_now(), 0);
	assert_int_equal(inode_truncate(f->inode, 0), 0);
	assert_int_equal(world_now(), 100 * NSEC_PER_MSEC);
	assert_int_equal(store_size(inode_store(f->inode)), 0);
	assert_false(store_any_written(inode_store(f->inode), 0, 16));
	rig_end(r, f);
}

/* Down to the last block: the smallest that can be cut off of a folio. */
RIG_TEST(test_one_dirty_block_is_cut_off)
{
	static const u32 sizes[] = { 512, 1024, 4096 };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct rig *r = rig_open("linux-7.4");
		struct file *f = rig_file(rig_inode(r, sizes[i]), 0);
		struct ledger *l = &f->inode->m.ledger;

		rig_write(f, 0, 8192, 1); /* one folio of two pages */
		assert_int_equal(rig_order(f, 0), 1);
		assert_int_equal(inode_truncate(f->inode, 4096 + (4096 - sizes[i])), 0);
		assert_int_equal(ledger_level(l, LEVEL_DEBT), sizes[i] < 4096 ? 2 : 1);
		assert_int_equal(ledger_total(l, TOTAL_PAGES_CANCELLED), sizes[i] < 4096 ? 0 : 1);
		assert_int_equal(file_fsync(f, false), 0);
		assert_int_equal(r->logged, 1);
		assert_int_equal(r->log[0].length, 8192 - sizes[i]);
		rig_end(r, f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_tail_of_the_last_page_is_zero),
		cmocka_unit_test(test_what_is_cut_off_dirty_is_refunded_and_not_written),
		cmocka_unit_test(test_partial_folios_are_split),
		cmocka_unit_test(test_lengthening_makes_a_hole),
		cmocka_unit_test(test_laid_out_space_is_read),
		cmocka_unit_test(test_truncation_waits_for_what_is_in_flight),
		cmocka_unit_test(test_one_dirty_block_is_cut_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
