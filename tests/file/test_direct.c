// SPDX-License-Identifier: MIT
/* Direct I/O beside cached data: both always see the newest. */
#include "base/rng.h"
#include "rig.h"

RIG_TEST(test_a_direct_write_replaces_cached_data)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_laid_out(r, 4096, MIB), *direct = rig_file(f->inode, FILE_DIRECT);

	rig_expect_bytes(f, 0, MIB, 1);
	rig_write(direct, 64 * KIB, 8 * KIB, 2);
	rig_expect_stored(f->inode, 64 * KIB, 8 * KIB, 2);
	rig_expect_bytes(f, 0, 64 * KIB, 1);
	rig_expect_bytes(f, 64 * KIB, 8 * KIB, 2);
	rig_expect_bytes(f, 72 * KIB, 100 * KIB, 1);
	file_close(direct);
	rig_end(r, f);
}

RIG_TEST(test_a_direct_read_sees_what_is_dirty)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_laid_out(r, 4096, MIB), *direct = rig_file(f->inode, FILE_DIRECT);

	rig_write(f, 64 * KIB, 8 * KIB, 2);
	rig_write(f, 512 * KIB, 4 * KIB, 2);
	rig_expect_bytes(direct, 60 * KIB, 4 * KIB, 1);
	assert_int_equal(rig_logged_of(r, IO_WRITE), 0); /* not in the range: not written */
	rig_expect_bytes(direct, 64 * KIB, 8 * KIB, 2);
	assert_int_equal(rig_logged_of(r, IO_WRITE), 1);
	assert_int_equal(ledger_level(&f->inode->m.ledger, LEVEL_DEBT), 1);
	file_close(direct);
	rig_end(r, f);
}

/* Dirty data under a direct write: what lies beside it in its pages and folio is not lost. */
RIG_TEST(test_a_direct_write_over_dirty_data)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_laid_out(r, 512, MIB), *direct = rig_file(f->inode, FILE_DIRECT);

	rig_write(f, 64 * KIB, 64 * KIB, 2); /* one folio */
	rig_write(direct, 64 * KIB + 1024, 512, 3);
	rig_expect_bytes(f, 64 * KIB, 1024, 2);
	rig_expect_bytes(f, 64 * KIB + 1024, 512, 3);
	rig_expect_bytes(f, 64 * KIB + 1536, 64 * KIB - 1536, 2);
	rig_expect_bytes(f, 128 * KIB, 4096, 1);
	file_close(direct);
	rig_end(r, f);
}

/* The folio is dirty, but not where the direct write goes: it must not stay with old data. */
RIG_TEST(test_a_direct_write_into_a_folio_dirty_elsewhere)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_laid_out(r, 4096, MIB), *direct = rig_file(f->inode, FILE_DIRECT);

	rig_write(f, 64 * KIB, 64 * KIB, 2);
	assert_int_equal(file_fsync(f, false), 0);
	rig_write(f, 120 * KIB, 4 * KIB, 3);
	rig_write(direct, 64 * KIB, 4 * KIB, 4);
	rig_expect_bytes(f, 64 * KIB, 4 * KIB, 4);
	rig_expect_bytes(f, 68 * KIB, 52 * KIB, 2);
	rig_expect_bytes(f, 120 * KIB, 4 * KIB, 3);
	rig_expect_bytes(f, 124 * KIB, 4 * KIB, 2);
	file_close(direct);
	rig_end(r, f);
}

/* A folio that somebody holds stays; what the direct write replaced is read anew. */
RIG_TEST(test_a_direct_write_under_a_held_folio)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_laid_out(r, 4096, MIB), *direct = rig_file(f->inode, FILE_DIRECT);
	struct folio *held;

	rig_expect_bytes(f, 0, 64 * KIB, 1);
	held = mapping_find(&f->inode->m, 3);
	rig_write(direct, 12 * KIB, 4 * KIB, 2);
	assert_false(folio_blocks_uptodate(held, 3, 1));
	rig_expect_bytes(f, 12 * KIB, 4 * KIB, 2);
	assert_ptr_equal(held->mapping, &f->inode->m);
	folio_unpin(f->inode->m.cache, held);
	file_close(direct);
	rig_end(r, f);
}

RIG_TEST(test_alignment_and_ends)
{
	struct rig *r = rig_open("linux-7.4");
	struct inode *inode = rig_inode(r, 512);
	struct file *direct = rig_file(inode, FILE_DIRECT);
	u8 buf[8192] = { 0 };

	assert_int_equal(file_pwrite(direct, buf, 511, 0), -EINVAL);
	assert_int_equal(file_pwrite(direct, buf, 512, 100), -EINVAL);
	assert_int_equal(file_pread(direct, buf, 100, 0), -EINVAL);
	assert_int_equal(inode_size(inode), 0);
	assert_int_equal(file_pwrite(direct, buf, 1024, 512), 1024);
	assert_int_equal(inode_size(inode), 1536);
	assert_int_equal(file_pread(direct, buf, 4096, 1024), 512); /* up to the end */
	assert_int_equal(file_pread(direct, buf, 4096, 4096), 0);
	assert_int_equal(file_pwrite(direct, buf, 512, STORE_SIZE_MAX), -EFBIG);
	assert_int_equal(file_pwrite(direct, buf, 0, 512), 0);
	file_close(direct);
	inode_destroy(inode);
	rig_close(r);
}

RIG_TEST(test_errors_of_the_device)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_laid_out(r, 4096, MIB), *direct = rig_file(f->inode, FILE_DIRECT);
	u8 buf[4096] = { 0 };

	r->write_error = r->read_error = -EIO;
	r->failures = 1;
	assert_int_equal(file_pwrite(direct, buf, 4096, 0), -EIO);
	r->failures = 1;
	assert_int_equal(file_pread(direct, buf, 4096, 0), -EIO);
	assert_int_equal(file_pwrite(direct, buf, 4096, MIB), 4096); /* grows */
	r->failures = 1;
	assert_int_equal(file_pwrite(direct, buf, 4096, 2 * MIB), -EIO);
	assert_int_equal(inode_size(f->inode), MIB + 4096); /* does not */
	/* dirty data that cannot be written first: the direct write does not happen */
	rig_write(f, 0, 4096, 2);
	r->failures = 1;
	assert_int_equal(file_pwrite(direct, buf, 4096, 0), -EIO);
	rig_expect_stored(f->inode, 0, 4096, 1);
	rig_expect_bytes(f, 0, 4096, 2);
	file_close(direct);
	rig_end(r, f);
}

/* Random reads and writes of both kinds against an array of versions, one a block. */
#define BLOCKS 512

RIG_TEST(test_random_mixture_against_an_array)
{
	for (unsigned seed = 1; seed <= 4; seed++) {
		struct rig *r = rig_open(seed % 2 ? "linux-7.4" : "sluice");
		struct file *f = rig_laid_out(r, 512, BLOCKS * 512);
		struct file *direct = rig_file(f->inode, FILE_DIRECT);
		u8 version[BLOCKS];
		struct rng rng;

		rng_init(&rng, seed);
		memset(version, 1, sizeof(version));
		for (unsigned step = 0; step < 600; step++) {
			struct file *through = rng_below(&rng, 2) ? f : direct;
			u64 first = rng_below(&rng, BLOCKS);
			u64 n = 1 + rng_below(&rng, min_u64(BLOCKS - first, 64));
			u8 v = (u8)(2 + step % 250);

			if (rng_below(&rng, 2)) {
				rig_write(through, first * 512, n * 512, v);
				memset(version + first, v, n);
			} else {
				for (u64 b = first; b < first + n; b++)
					rig_expect_bytes(through, b * 512, 512, version[b]);
			}
			r->logged = 0;
		}
		rig_audit(r);
		assert_int_equal(file_fsync(f, false), 0);
		for (u64 b = 0; b < BLOCKS; b++)
			rig_expect_stored(f->inode, b * 512, 512, version[b]);
		file_close(direct);
		rig_end(r, f);
	}
}

/* The same where the folio is larger than a leaf, and a read begins in a part that is valid. */
RIG_TEST(test_a_read_into_what_was_forgotten)
{
	struct rig *r = rig_open("sluice");
	struct file *f = rig_file(rig_inode(r, 4096), 0), *direct = rig_file(f->inode, FILE_DIRECT);
	static u8 buf[8192];
	struct file_loan *loan;
	struct iovec iov;

	rig_write(f, 0, 2 * MIB, 1);
	assert_int_equal(rig_order(f, 0), 9);
	assert_int_equal(file_borrow(f, 0, 4096, &iov, 1, 0, &loan), 4096);
	rig_write(direct, MIB, MIB, 2);
	assert_int_equal(rig_order(f, 0), 9);
	rig_expect_bytes(f, 0, MIB, 1);
	rig_expect_bytes(f, MIB, MIB, 2);
	rig_write(direct, MIB, MIB, 3);
	rig_expect_bytes(f, MIB - 4096, 4096, 1);
	rig_expect_bytes(f, MIB + 4096, MIB - 4096, 3);
	rig_write(direct, MIB, MIB, 4);
	assert_int_equal(file_pread(f, buf, sizeof(buf), MIB - 4096), sizeof(buf));
	assert_int_equal(buf[4095], rig_byte(MIB - 1, 1));
	assert_int_equal(buf[4096], rig_byte(MIB, 4));
	file_give_back(loan);
	file_close(direct);
	rig_end(r, f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_direct_write_replaces_cached_data),
		cmocka_unit_test(test_a_direct_read_sees_what_is_dirty),
		cmocka_unit_test(test_a_direct_write_over_dirty_data),
		cmocka_unit_test(test_a_direct_write_into_a_folio_dirty_elsewhere),
		cmocka_unit_test(test_a_direct_write_under_a_held_folio),
		cmocka_unit_test(test_alignment_and_ends),
		cmocka_unit_test(test_errors_of_the_device),
		cmocka_unit_test(test_random_mixture_against_an_array),
		cmocka_unit_test(test_a_read_into_what_was_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
