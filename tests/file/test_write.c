// SPDX-License-Identifier: MIT
/*
 * Buffered writes: steps and folio orders (Linux writeback reference 2.2, 2.3), which blocks are
 * read first (2.4), what is refused.
 */
#include "rig.h"

/* --- folio orders */

/* The example of 2.3: orders 0,2,3,4,5,6,7 and then, by what is left, 1,0. */
RIG_TEST(test_1_mib_at_12_kib_makes_the_orders_of_the_reference)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_file(rig_inode(r, 4096), 0);

	rig_write(f, 12 * KIB, MIB, 1);
	rig_expect_orders(f, 3, 0, 2, 3, 4, 5, 6, 7, 1, 0);
	assert_int_equal(f->inode->m.pages, 256);
	assert_int_equal(rig_order(f, 2), -1);
	assert_int_equal(rig_order(f, 259), -1);
	assert_int_equal(inode_size(f->inode), 12 * KIB + MIB);
	rig_expect_bytes(f, 12 * KIB, MIB, 1);
	rig_expect_bytes(f, 0, 12 * KIB, 0);
	assert_int_equal(rig_logged_of(r, IO_READ), 0);
	rig_end(r, f);
}

RIG_TEST(test_large_aligned_writes_make_2_mib_folios)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_file(rig_inode(r, 4096), 0);

	rig_write(f, 0, 5 * MIB, 1);
	rig_expect_orders(f, 0, 9, 9, 8);
	rig_end(r, f);
}

/* ilog2: 12 KiB make an order 1 and what is left, 4 KiB, an order 0. */
RIG_TEST(test_the_order_is_the_floor_of_the_length)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_file(rig_inode(r, 4096), 0);

	rig_write(f, 0, 12 * KIB, 1);
	rig_expect_orders(f, 0, 1, 0);
	rig_write(f, 64 * KIB, 8 * KIB - 1, 1);
	rig_expect_orders(f, 16, 0, 0);
	rig_write(f, 128 * KIB, 8 * KIB, 1);
	rig_expect_orders(f, 32, 1);
	rig_end(r, f);
}

RIG_TEST(test_appending_4_kib_makes_single_pages)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_file(rig_inode(r, 4096), 0);

	for (u64 i = 0; i < 64; i++)
		rig_write(f, i * 4 * KIB, 4 * KIB, 1);
	for (u64 i = 0; i < 64; i++)
		assert_int_equal(rig_order(f, i), 0);
	rig_end(r, f);
}

RIG_TEST(test_linux_6_1_makes_single_pages_always)
{
	struct rig *r = rig_open("linux-6.1");
	struct file *f = rig_file(rig_inode(r, 4096), 0);

	rig_write(f, 0, MIB, 1);
	for (u64 i = 0; i < 256; i++)
		assert_int_equal(rig_order(f, i), 0);
	rig_end(r, f);
}

RIG_TEST(test_a_cap_bounds_the_orders)
{
	for (unsigned cap = 0; cap <= 9; cap++) {
		struct rig *r = rig_new("linux-7.4", 64 * MIB);
		struct file *f;

		r->config.policy.max_order = cap;
		rig_start(r);
		f = rig_file(rig_inode(r, 4096), 0);
		rig_write(f, 0, 4 * MIB, 1);
		for (u64 page = 0; page < 1024; page += 1ull << cap)
			assert_int_equal(rig_order(f, page), cap);
		rig_end(r, f);
	}
}

/* A cached folio is used whatever its size; the write goes on step by step. */
RIG_TEST(test_cached_folios_are_used_as_they_are)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_file(rig_inode(r, 4096), 0);

	rig_write(f, 0, 64 * KIB, 1);          /* an order 4 */
	rig_write(f, 64 * KIB, 4 * KIB, 1);    /* an order 0 */
	rig_write(f, 256 * KIB, 128 * KIB, 1); /* an order 5 */
	rig_write(f, 4 * KIB, MIB - 4 * KIB, 2);
	/* between them new ones: at page 17 aligned for 0, at 18, 20, 24, 32 likewise; at 96.. */
	rig_expect_orders(f, 0, 4, 0, 0, 1, 2, 3, 5, 5, 5, 7);
	rig_expect_bytes(f, 0, 4 * KIB, 1);
	rig_expect_bytes(f, 4 * KIB, MIB - 4 * KIB, 2);
	rig_end(r, f);
}

/* --- reading before writing */

RIG_TEST(test_aligned_writes_read_nothing)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_laid_out(r, 4096, MIB);

	rig_write(f, 8 * KIB, 4 * KIB, 2);
	rig_write(f, 128 * KIB, 100 * KIB, 2);
	assert_int_equal(r->logged, 0);
	assert_int_equal(file_fsync(f, false), 0);
	rig_expect_stored(f->inode, 0, 8 * KIB, 1);
	rig_expect_stored(f->inode, 8 * KIB, 4 * KIB, 2);
	rig_expect_stored(f->inode, 12 * KIB, 116 * KIB, 1);
	rig_expect_stored(f->inode, 128 * KIB, 100 * KIB, 2);
	rig_end(r, f);
}

RIG_TEST(test_an_unaligned_write_reads_its_block)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_laid_out(r, 4096, MIB);

	rig_write(f, 5000, 100, 2);
	assert_int_equal(r->logged, 1);
	rig_expect_io(r, 0, IO_READ, 4096, 4096);
	rig_expect_bytes(f, 4096, 904, 1);
	rig_expect_bytes(f, 5000, 100, 2);
	rig_expect_bytes(f, 5100, 3092, 1);
	rig_write(f, 6000, 10, 3); /* now it is valid */
	assert_int_equal(r->logged, 1);
	rig_end(r, f);
}

/* 5000..13000 in single pages: the edges of pages 1 and 3 are read, page 2 is not. */
RIG_TEST(test_both_edges_are_read_and_the_middle_is_not)
{
	struct rig *r = rig_open("linux-6.1");
	struct file *f = rig_laid_out(r, 4096, MIB);

	rig_write(f, 5000, 8000, 2);
	assert_int_equal(r->logged, 2);
	rig_expect_io(r, 0, IO_READ, 4096, 4096);
	rig_expect_io(r, 1, IO_READ, 12288, 4096);
	rig_expect_bytes(f, 0, 5000, 1);
	rig_expect_bytes(f, 5000, 8000, 2);
	rig_expect_bytes(f, 13000, 8000, 1);
	rig_end(r, f);
}

/* With 512-byte blocks only those at the edges. */
RIG_TEST(test_small_blocks_read_less)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_laid_out(r, 512, MIB);

	rig_write(f, 5000, 100, 2); /* in block 9 */
	assert_int_equal(r->logged, 1);
	rig_expect_io(r, 0, IO_READ, 4608, 512);
	rig_write(f, 8192 + 512, 1024, 2);
	assert_int_equal(r->logged, 1);
	assert_int_equal(file_fsync(f, false), 0);
	assert_int_equal(r->logged, 3); /* the dirty blocks are written and no others */
	rig_expect_io(r, 1, IO_WRITE, 4608, 512);
	rig_expect_io(r, 2, IO_WRITE, 8192 + 512, 1024);
	rig_expect_bytes(f, 0, 5000, 1); /* reads the rest of what is partly valid */
	rig_expect_bytes(f, 5000, 100, 2);
	rig_expect_bytes(f, 5100, 8704 - 5100, 1);
	rig_expect_bytes(f, 8704, 1024, 2);
	rig_expect_bytes(f, 9728, 1000, 1);
	rig_end(r, f);
}

/* A maximal run of invalid blocks with an edge inside is read in one I/O (2.4). */
RIG_TEST(test_a_run_is_read_as_a_whole)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_laid_out(r, 4096, MIB);

	/* folios of 2, 1 and 1 pages; the first has both blocks invalid, and the edge at 100 */
	rig_write(f, 100, 16000, 2);
	rig_expect_orders(f, 0, 1, 0, 0);
	assert_int_equal(r->logged, 2);
	rig_expect_io(r, 0, IO_READ, 0, 8192);
	rig_expect_io(r, 1, IO_READ, 12288, 4096);
	rig_expect_bytes(f, 0, 100, 1);
	rig_expect_bytes(f, 100, 16000, 2);
	rig_expect_bytes(f, 16100, 200, 1);
	rig_end(r, f);
}

RIG_TEST(test_holes_and_the_end_of_the_file_are_zeros_without_io)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_file(rig_inode(r, 4096), 0);

	rig_write(f, 5000, 100, 2); /* past the end of an empty file */
	assert_int_equal(inode_truncate(f->inode, MIB), 0);
	rig_write(f, 100000, 100, 2); /* in the hole */
	rig_expect_bytes(f, 0, 5000, 0);
	rig_expect_bytes(f, 5000, 100, 2);
	rig_expect_bytes(f, 5100, 94900, 0);
	rig_expect_bytes(f, 100000, 100, 2);
	rig_expect_bytes(f, 100100, MIB - 100100, 0);
	assert_int_equal(r->logged, 0);
	assert_int_equal(file_fsync(f, false), 0);
	assert_int_equal(r->logged, 2);
	rig_expect_io(r, 0, IO_WRITE, 4096, 4096);
	rig_expect_io(r, 1, IO_WRITE, 98304, 4096);
	rig_end(r, f);
}

/* The block the file ends in is read before it is appended to. */
RIG_TEST(test_appending_to_a_partial_block)
{
	struct rig *r = rig_open("linux-7.4");
	struct inode *inode = rig_inode(r, 512);
	struct file *f = rig_file(inode, 0);

	rig_write(f, 0, 700, 1);
	assert_int_equal(file_fsync(f, false), 0);
	engine_drop_caches(r->e);
	assert_int_equal(inode->m.pages, 0);
	r->logged = 0;
	rig_write(f, 700, 50, 1);
	assert_int_equal(r->logged, 1);
	rig_expect_io(r, 0, IO_READ, 512, 512);
	rig_write(f, 1100, 10, 1); /* the next block, past the end: nothing to read */
	assert_int_equal(r->logged, 1);
	rig_expect_bytes(f, 0, 750, 1);
	rig_expect_bytes(f, 750, 350, 0);
	rig_expect_bytes(f, 1100, 10, 1);
	rig_end(r, f);
}

RIG_TEST(test_an_edge_that_cannot_be_read)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_laid_out(r, 4096, MIB);
	struct engine_stats s;
	u8 buf[8192] = { 0 };

	r->read_error = -EIO;
	r->failures = 1;
	assert_int_equal(file_pwrite(f, buf, 100, 5000), -EIO);
	engine_stats(r->e, &s);
	assert_int_equal(s.debt, 0);
	/* what comes before the edge is written, and says so */
	r->failures = 1;
	assert_int_equal(file_pwrite(f, buf, 8000, 8192), 4096);
	engine_stats(r->e, &s);
	assert_int_equal(s.debt, 1);
	assert_int_equal(file_pwrite(f, buf, 100, 5000), 100);
	rig_end(r, f);
}

/* --- sizes and refusals */

RIG_TEST(test_what_is_refused)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_file(rig_inode(r, 4096), 0);
	struct inode *inode;
	u8 b = 7;

	assert_int_equal(file_pwrite(f, &b, 1, ~0ull), -EINVAL);
	assert_int_equal(file_pwrite(f, &b, 1, STORE_SIZE_MAX), -EFBIG);
	assert_int_equal(file_pwrite(f, &b, 2, STORE_SIZE_MAX - 1), -EFBIG);
	assert_int_equal(inode_size(f->inode), 0);
	assert_int_equal(inode_truncate(f->inode, STORE_SIZE_MAX + 1), -EFBIG);
	assert_int_equal(inode_lay_out(f->inode, STORE_SIZE_MAX + 1), -EFBIG);
	assert_int_equal(file_pread(f, &b, 2, ~0ull), -EINVAL);
	assert_int_equal(inode_create(r->e, 1, 4096, &inode), -EINVAL);
	assert_int_equal(inode_create(r->e, 0, 256, &inode), -EINVAL);
	assert_int_equal(inode_create(r->e, 0, 8192, &inode), -EINVAL);
	assert_int_equal(inode_create(r->e, 0, 3072, &inode), -EINVAL);
	rig_end(r, f);
}

/* The last byte there can be is accepted, and is written. */
RIG_TEST(test_the_last_byte)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_file(rig_inode(r, 4096), 0);
	u8 b = 7, back = 0;

	assert_int_equal(file_pwrite(f, &b, 1, STORE_SIZE_MAX - 1), 1);
	assert_int_equal(inode_size(f->inode), STORE_SIZE_MAX);
	assert_int_equal(file_fsync(f, false), 0);
	rig_expect_io(r, 0, IO_WRITE, STORE_SIZE_MAX - 4096, 4096);
	engine_drop_caches(r->e);
	assert_int_equal(file_pread(f, &back, 1, STORE_SIZE_MAX - 1), 1);
	assert_int_equal(back, 7);
	rig_end(r, f);
}

RIG_TEST(test_nothing_to_write_and_reads_past_the_end)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_file(rig_inode(r, 4096), 0);
	u8 buf[100];

	assert_int_equal(file_pwrite(f, buf, 0, 1000), 0);
	assert_int_equal(inode_size(f->inode), 0);
	assert_int_equal(file_pread(f, buf, 100, 0), 0);
	rig_write(f, 0, 50, 1);
	assert_int_equal(file_pread(f, buf, 100, 20), 30);
	assert_int_equal(file_pread(f, buf, 100, 50), 0);
	assert_int_equal(file_pread(f, buf, 100, 5000), 0);
	assert_int_equal(f->inode->m.pages, 1); /* reading past it caches nothing */
	rig_end(r, f);
}

/* Each write of such a file is on the device when it returns, and only what it wrote is waited
 * for. */
RIG_TEST(test_file_sync)
{
	struct rig *r = rig_open("linux-7.4");
	struct inode *inode = rig_inode(r, 4096);
	struct file *f = rig_file(inode, 0), *synced = rig_file(inode, FILE_SYNC);

	rig_write(f, 100 * KIB, 4 * KIB, 1);
	rig_write(synced, 8 * KIB, 8 * KIB, 1);
	assert_int_equal(r->logged, 1);
	rig_expect_io(r, 0, IO_WRITE, 8 * KIB, 8 * KIB);
	rig_expect_stored(inode, 8 * KIB, 8 * KIB, 1);
	assert_int_equal(ledger_level(&inode->m.ledger, LEVEL_DEBT), 1);
	/* 8 KiB at 1 GiB/s take 7629 ns, less than an I/O takes at least: 10 us */
	assert_int_equal(world_now(), 10000);
	r->write_error = -EIO;
	r->failures = 1;
	assert_int_equal(file_pwrite(synced, "x", 1, 0), -EIO);
	file_close(synced);
	rig_end(r, f);
}

/* Who copies from a folio without its lock sees that it was written to. */
RIG_TEST(test_a_write_is_seen)
{
	struct rig *r = rig_open("sluice");
	struct file *f = rig_file(rig_inode(r, 4096), 0);
	struct folio *folio;
	u32 seq;

	rig_write(f, 0, 16 * KIB, 1);
	for (u8 version = 2; version < 4; version++) {
		folio = mapping_find(&f->inode->m, 0);
		assert_non_null(folio);
		assert_true(folio_look(folio, &seq));
		assert_true(folio_unchanged(folio, seq));
		rig_write(f, 4 * KIB, 4 * KIB, version);
		assert_false(folio_unchanged(folio, seq));
		folio_unpin(&r->e->cache, folio);
		assert_int_equal(file_fsync(f, false), 0); /* the next one meets a clean folio */
	}
	rig_end(r, f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_1_mib_at_12_kib_makes_the_orders_of_the_reference),
		cmocka_unit_test(test_large_aligned_writes_make_2_mib_folios),
		cmocka_unit_test(test_the_order_is_the_floor_of_the_length),
		cmocka_unit_test(test_appending_4_kib_makes_single_pages),
		cmocka_unit_test(test_linux_6_1_makes_single_pages_always),
		cmocka_unit_test(test_a_cap_bounds_the_orders),
		cmocka_unit_test(test_cached_folios_are_used_as_they_are),
		cmocka_unit_test(test_aligned_writes_read_nothing),
		cmocka_unit_test(test_an_unaligned_write_reads_its_block),
		cmocka_unit_test(test_both_edges_are_read_and_the_middle_is_not),
		cmocka_unit_test(test_small_blocks_read_less),
		cmocka_unit_test(test_a_run_is_read_as_a_whole),
		cmocka_unit_test(test_holes_and_the_end_of_the_file_are_zeros_without_io),
		cmocka_unit_test(test_appending_to_a_partial_block),
		cmocka_unit_test(test_an_edge_that_cannot_be_read),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_the_last_byte),
		cmocka_unit_test(test_nothing_to_write_and_reads_past_the_end),
		cmocka_unit_test(test_file_sync),
		cmocka_unit_test(test_a_write_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
