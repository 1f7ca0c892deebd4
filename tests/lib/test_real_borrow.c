// SPDX-License-Identifier: MIT
/* Loans: bytes in place, for as long as they are held. */
#include "rig.h"

static struct sluice *cache;
static struct sluice_file *file;

#define SIZE (4 * MIB + 100)

static int set_up(void **state)
{
	(void)state;
	cache = rig_cache(GIVEN("memory=32M"));
	file = rig_open(cache, "f", O_RDWR | O_CREAT | O_TRUNC);
	for (uint64_t at = 0; at < 4 * MIB; at += 64 * KIB)
		rig_write(file, at, 64 * KIB, 1);
	rig_write(file, 4 * MIB, 100, 1);
	return sluice_fsync(file);
}

static int tear_down(void **state)
{
	(void)state;
	if (file)
		assert_int_equal(sluice_close(file), 0);
	return sluice_destroy(cache, NULL, NULL);
}

static size_t compare_loan(const struct iovec *iov, size_t bytes, uint64_t offset, unsigned version)
{
	size_t done = 0, pieces = 0;

	for (; done < bytes; pieces++) {
		rig_compare(iov[pieces].iov_base, offset + done, iov[pieces].iov_len, version);
		done += iov[pieces].iov_len;
	}
	assert_int_equal(done, bytes);
	return pieces;
}

static void test_bytes_in_place(void **state)
{
	struct sluice_loan *loan;
	struct iovec iov[64];

	(void)state;
	assert_int_equal(sluice_borrow(file, iov, 64, 300000, 12345, 0, &loan), 300000);
	assert_true(compare_loan(iov, 300000, 12345, 1) >= 1);
	sluice_give_back(loan);
	/* from the device, as a read would */
	assert_int_equal(sluice_advise(file, 0, 0, SLUICE_DONTNEED), 0);
	assert_int_equal(sluice_borrow(file, iov, 64, 100, 0, SLUICE_NOWAIT, &loan), -EAGAIN);
	assert_int_equal(sluice_borrow(file, iov, 64, 100, 0, 0, &loan), 100);
	compare_loan(iov, 100, 0, 1);
	sluice_give_back(loan);
	assert_int_equal(sluice_borrow(file, iov, 64, 100, 0, SLUICE_NOWAIT, &loan), 100);
	sluice_give_back(loan);
}

static void test_at_the_end_of_the_file(void **state)
{
	struct sluice_loan *loan = (void *)1;
	struct iovec iov[8];

	(void)state;
	assert_int_equal(sluice_borrow(file, iov, 8, 4096, 4 * MIB, 0, &loan), 100);
	compare_loan(iov, 100, 4 * MIB, 1);
	sluice_give_back(loan);
	assert_int_equal(sluice_borrow(file, iov, 8, 4096, SIZE, 0, &loan), 0);
	assert_null(loan);
	sluice_give_back(loan);
}

static void test_few_pieces_lend_less(void **state)
{
	struct sluice_loan *loan;
	struct iovec iov[1];
	ssize_t n = sluice_borrow(file, iov, 1, 4 * MIB, 0, 0, &loan);

	(void)state;
	assert_true(n >= 4096 && n < (ssize_t)(4 * MIB));
	assert_int_equal(iov[0].iov_len, n);
	compare_loan(iov, (size_t)n, 0, 1);
	sluice_give_back(loan);
}

static void test_no_more_than_an_eighth(void **state)
{
	struct sluice_loan *loan[64];
	struct iovec iov[64];
	unsigned n = 0;
	ssize_t got = 0, all = 0;

	(void)state;
	for (; n < 64; n++) {
		got = sluice_borrow(file, iov, 64, 128 * KIB, n * 128 * KIB % (4 * MIB), 0,
				    &loan[n]);
		if (got < 0)
			break;
		all += got;
	}
	assert_int_equal(got, -ENOBUFS);
	assert_true(all <= (ssize_t)(4 * MIB) && all > 0);
	while (n)
		sluice_give_back(loan[--n]);
	assert_true(sluice_borrow(file, iov, 64, 128 * KIB, 0, 0, &loan[0]) > 0);
	sluice_give_back(loan[0]);
}

/* What is lent stays, whatever becomes of the file. */
static void test_lent_bytes_outlive_reclaim_truncate_and_close(void **state)
{
	struct sluice_loan *loan;
	struct sluice_file *other = rig_open(cache, "g", O_RDWR | O_CREAT | O_TRUNC);
	struct iovec iov[64];

	(void)state;
	assert_int_equal(sluice_borrow(file, iov, 64, 256 * KIB, 1 * MIB, 0, &loan), 256 * KIB);
	for (uint64_t at = 0; at < 64 * MIB; at += 1 * MIB)
		rig_write(other, at, 1 * MIB, 2);
	compare_loan(iov, 256 * KIB, 1 * MIB, 1);
	assert_int_equal(sluice_truncate(file, 0), 0);
	assert_int_equal(sluice_truncate(other, 0), 0);
	for (uint64_t at = 0; at < 16 * MIB; at += 1 * MIB)
		rig_write(other, at, 1 * MIB, 2);
	compare_loan(iov, 256 * KIB, 1 * MIB, 1);
	assert_int_equal(sluice_close(file), 0);
	file = NULL;
	compare_loan(iov, 256 * KIB, 1 * MIB, 1);
	sluice_give_back(loan);
	assert_int_equal(sluice_close(other), 0);
}

/* A loan holds memory of the cache, not the file: that may go before it. */
static void test_loans_hold_the_cache(void **state)
{
	struct sluice *c = rig_cache(GIVEN("memory=16M"));
	struct bucket *b = bucket_new();
	struct sluice_file *f = bucket_open(c, b, O_RDWR);
	struct sluice_loan *loan;
	struct iovec iov[8];

	(void)state;
	rig_write(f, 0, 20000, 1);
	assert_int_equal(sluice_borrow(f, iov, 8, 20000, 0, 0, &loan), 20000);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(b->releases, 1);
	compare_loan(iov, 20000, 0, 1);
	assert_int_equal(sluice_destroy(c, NULL, NULL), -EBUSY);
	compare_loan(iov, 20000, 0, 1);
	sluice_give_back(loan);
	sluice_give_back(NULL);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
	bucket_free(b);
}

static void test_what_is_refused(void **state)
{
	struct sluice_loan *loan;
	struct sluice_file *f = rig_open(cache, "f", O_WRONLY);
	struct iovec iov[2];

	(void)state;
	assert_int_equal(sluice_borrow(f, iov, 2, 10, 0, 0, &loan), -EBADF);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_borrow(file, iov, 0, 10, 0, 0, &loan), -EINVAL);
	assert_int_equal(sluice_borrow(file, iov, -1, 10, 0, 0, &loan), -EINVAL);
	assert_int_equal(sluice_borrow(file, iov, 2, 10, 0, SLUICE_DSYNC, &loan), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_bytes_in_place, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_at_the_end_of_the_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_few_pieces_lend_less, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_more_than_an_eighth, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_lent_bytes_outlive_reclaim_truncate_and_close,
						set_up, tear_down),
		cmocka_unit_test(test_loans_hold_the_cache),
		cmocka_unit_test_setup_teardown(test_what_is_refused, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, rig_begin, rig_end);
}
