// SPDX-License-Identifier: MIT
/* Cached bytes on loan: they stay where they are, whatever becomes of the file. */
#include "rig.h"

static void expect_lent(const struct iovec *iov, u64 offset, u64 length, u8 version)
{
	while (length) {
		const u8 *bytes = iov->iov_base;

		assert_true(iov->iov_len <= length);
		for (u64 i = 0; i < iov->iov_len; i++)
			assert_int_equal(bytes[i], rig_byte(offset + i, version));
		offset += iov->iov_len;
		length -= iov->iov_len;
		iov++;
	}
}

static u64 free_pages(struct rig *r)
{
	struct engine_stats s;

	engine_stats(r->e, &s);
	return s.free;
}

RIG_TEST(test_borrow)
{
	struct rig *r = rig_open("sluice");
	struct file *f = rig_laid_out(r, 4096, MIB);
	struct file *blind = rig_file(f->inode, FILE_NO_READ);
	struct file_loan *loan = NULL;
	struct iovec iov[64];
	ssize_t n;

	n = file_borrow(f, 5000, 100000, iov, 64, 0, &loan);
	assert_int_equal(n, 100000);
	assert_non_null(loan);
	expect_lent(iov, 5000, 100000, 1);
	file_give_back(loan);
	/* few pieces reach less far; the end of the file ends it */
	n = file_borrow(f, 5000, 1000000, iov, 1, 0, &loan);
	assert_true(n > 0 && n < 1000000);
	assert_int_equal(n, iov[0].iov_len);
	expect_lent(iov, 5000, (u64)n, 1);
	file_give_back(loan);
	assert_int_equal(file_borrow(f, MIB - 10, 100, iov, 1, 0, &loan), 10);
	expect_lent(iov, MIB - 10, 10, 1);
	file_give_back(loan);
	assert_int_equal(file_borrow(f, MIB, 100, iov, 1, 0, &loan), 0);
	assert_null(loan);
	file_give_back(NULL);
	assert_int_equal(file_borrow(f, 0, 100, iov, 0, 0, &loan), 0);
	assert_int_equal(file_borrow(f, 0, 100, iov, 1, FILE_IO_DSYNC, &loan), -EINVAL);
	assert_int_equal(file_borrow(f, UINT64_MAX, 100, iov, 1, 0, &loan), -EINVAL);
	assert_int_equal(file_borrow(blind, 0, 100, iov, 1, 0, &loan), -EBADF);
	engine_drop_caches(r->e);
	assert_int_equal(file_borrow(f, 0, 100, iov, 1, FILE_IO_NOWAIT, &loan), -EAGAIN);
	r->read_error = -EIO;
	r->failures = 2;
	assert_int_equal(file_borrow(f, 500000, 100, iov, 1, 0, &loan), -EIO);
	assert_null(loan);
	file_close(blind);
	rig_end(r, f);
}

/* Reclaim, eviction, splitting, truncation, a hole and the end of the inode leave the bytes. */
RIG_TEST(test_stays_in_place)
{
	struct rig *r = rig_new("sluice", 4 * MIB);
	struct file_loan *loan, *second;
	struct iovec iov[64], again[8];
	struct file *f, *g;
	u64 before;

	r->config.policy.small_write = SMALL_WRITE_SPLIT;
	rig_start(r);
	before = free_pages(r);
	f = rig_laid_out(r, 4096, 256 * KIB);
	g = rig_file(rig_inode(r, 4096), 0);
	assert_int_equal(file_borrow(f, 0, 100 * KIB, iov, 64, 0, &loan), 100 * KIB);
	assert_int_equal(file_borrow(f, 50 * KIB, 1000, again, 8, 0, &second), 1000);
	for (u64 at = 0; at < 16 * MIB; at += 64 * KIB)
		rig_write(g, at, 64 * KIB, 2);
	engine_drop_caches(r->e);
	expect_lent(iov, 0, 100 * KIB, 1);
	rig_write(f, 200 * KIB, 1, 1); /* would split a large clean folio */
	assert_int_equal(file_advise(f, 0, 0, FILE_ADV_DONTNEED), 0);
	expect_lent(iov, 0, 100 * KIB, 1);
	assert_int_equal(file_fallocate(f, FILE_PUNCH_HOLE | FILE_KEEP_SIZE, 100 * KIB, 100 * KIB),
			 0);
	expect_lent(iov, 0, 100 * KIB, 1);
	assert_int_equal(inode_truncate(f->inode, 0), 0);
	expect_lent(iov, 0, 96 * KIB, 1); /* whole folios before the cut are not touched */
	expect_lent(again, 50 * KIB, 1000, 1);
	rig_drop(f);
	rig_audit(r);
	expect_lent(again, 50 * KIB, 1000, 1);
	file_give_back(second);
	file_give_back(loan);
	rig_drop(g);
	assert_int_equal(free_pages(r), before);
	rig_close(r);
}

/* A write is seen by those who have the bytes on loan: it is a view. */
RIG_TEST(test_is_a_view)
{
	struct rig *r = rig_open("sluice");
	struct file *f = rig_laid_out(r, 4096, 64 * KIB);
	struct file_loan *loan;
	struct iovec iov[16];

	assert_int_equal(file_borrow(f, 0, 4096, iov, 16, 0, &loan), 4096);
	rig_write(f, 0, 4096, 2);
	expect_lent(iov, 0, 4096, 2);
	file_give_back(loan);
	rig_end(r, f);
}

/* Together an eighth of memory; then less than asked for, then nothing. What is back is free. */
RIG_TEST(test_bounds)
{
	static struct iovec iov[2048];
	struct rig *r = rig_new("sluice", 8 * MIB);
	struct file_loan *loan, *more, *third;
	struct file *f;
	ssize_t n;

	r->config.policy.max_order = 2;
	rig_start(r);
	f = rig_laid_out(r, 4096, 4 * MIB);
	n = file_borrow(f, 0, 900 * KIB, iov, 2048, 0, &loan);
	assert_int_equal(n, 900 * KIB);
	n = file_borrow(f, MIB, MIB, iov, 2048, 0, &more);
	assert_true(n > 0 && (u64)n <= 124 * KIB);
	expect_lent(iov, MIB, (u64)n, 1);
	assert_true(atomic_load(&r->e->lent_pages) <= 8 * MIB / 4096 / 8);
	file_give_back(loan);
	n = file_borrow(f, 0, 256 * KIB, iov, 2048, 0, &loan);
	assert_int_equal(n, 256 * KIB);
	file_give_back(loan);
	n = file_borrow(f, 2 * MIB, MIB, iov, 2048, 0, &loan);
	assert_true(n > 0);
	assert_int_equal(file_borrow(f, 3 * MIB, 512 * KIB, iov, 2048, 0, &third), -ENOBUFS);
	assert_null(third);
	file_give_back(more);
	file_give_back(loan);
	assert_int_equal(atomic_load(&r->e->lent_pages), 0);
	rig_end(r, f);
}

/* One page, borrowed over and over, can't be pinned more often than can be counted. */
RIG_TEST(test_many_loans_of_a_page)
{
	enum { MANY = 40000 };
	struct rig *r = rig_new("sluice", 2048 * MIB); /* an eighth is 65,536 pages */
	struct file_loan **loans = calloc(MANY, sizeof(*loans));
	struct iovec iov;
	struct file *f;
	u32 n = 0;
	int rc = 1;

	rig_start(r);
	f = rig_file(rig_inode(r, 4096), 0);
	rig_write(f, 0, 4096, 1);
	while (n < MANY && (rc = (int)file_borrow(f, 0, 1, &iov, 1, 0, &loans[n])) == 1)
		n++;
	assert_int_equal(rc, -ENOBUFS);
	assert_true(n > 1000);
	rig_expect_bytes(f, 0, 4096, 1);
	while (n)
		file_give_back(loans[--n]);
	free(loans);
	rig_end(r, f);
}

RIG_TEST(test_without_contents)
{
	struct rig *r = rig_new("sluice", 8 * MIB);
	struct file_loan *loan;
	struct iovec iov;
	struct file *f;

	r->config.contents = false;
	rig_start(r);
	f = rig_file(rig_inode(r, 4096), 0);
	assert_int_equal(file_pwrite(f, NULL, 4096, 0), 4096);
	assert_int_equal(file_borrow(f, 0, 10, &iov, 1, 0, &loan), -EOPNOTSUPP);
	rig_end(r, f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_borrow),
		cmocka_unit_test(test_stays_in_place),
		cmocka_unit_test(test_is_a_view),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_many_loans_of_a_page),
		cmocka_unit_test(test_without_contents),
	};

	return cmocka_run_group_tests_name("borrow", tests, NULL, NULL);
}
