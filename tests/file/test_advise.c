// SPDX-License-Identifier: MIT
/* Hints: Linux writeback reference, section 7.6, and what readers see of readahead. */
#include "rig.h"

static bool cached(const struct file *f, u64 page)
{
	return rig_order(f, page) >= 0;
}

/* P2's loads: 1 MiB reads with read_ahead_kb 128 leave 256 KiB folios, with RANDOM 4 KiB ones. */
RIG_TEST(test_loading_as_p2_does)
{
	for (unsigned random = 0; random < 2; random++) {
		struct rig *r = rig_open("linux-7.4");
		struct file *f = rig_laid_out(r, 4096, 4 * MIB);

		if (random)
			assert_int_equal(file_advise(f, 0, 0, FILE_ADV_RANDOM), 0);
		for (u64 at = 0; at < 4 * MIB; at += MIB)
			rig_expect_bytes(f, at, MIB, 1);
		assert_int_equal(rig_order(f, 0), 0);
		assert_int_equal(rig_order(f, 64), random ? 0 : 2);
		assert_int_equal(rig_order(f, 128), random ? 0 : 4);
		for (u64 page = 192; page < 1024; page += 64)
			assert_int_equal(rig_order(f, page), random ? 0 : 6);
		assert_int_equal(r->logged, 16); /* 256 KiB each, either way */
		rig_end(r, f);
	}
}

RIG_TEST(test_sequential_doubles_and_normal_restores)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_laid_out(r, 4096, 4 * MIB);

	assert_int_equal(f->ra.ra_pages, 32);
	assert_int_equal(file_advise(f, 0, 0, FILE_ADV_SEQUENTIAL), 0);
	assert_int_equal(f->ra.ra_pages, 64);
	assert_int_equal(file_advise(f, 0, 0, FILE_ADV_RANDOM), 0);
	assert_true(f->ra.random);
	assert_int_equal(file_advise(f, 0, 0, FILE_ADV_NORMAL), 0);
	assert_int_equal(f->ra.ra_pages, 32);
	assert_false(f->ra.random);
	rig_end(r, f);
}

/* Starts at most max(io_pages, ra_pages), 64 pages, and does not wait for them. */
RIG_TEST(test_willneed)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_laid_out(r, 4096, 4 * MIB);
	u64 began = world_now();

	assert_int_equal(file_advise(f, 100 * 4096 + 5, 3 * MIB, FILE_ADV_WILLNEED), 0);
	assert_int_equal(world_now(), began);
	assert_false(cached(f, 99));
	assert_true(cached(f, 100));
	assert_true(cached(f, 163));
	assert_false(cached(f, 164));
	rig_expect_bytes(f, 100 * 4096, 64 * 4096, 1);
	assert_int_equal(r->logged, 1);
	rig_end(r, f);
}

/* Write-out is started, not waited for; clean folios fully inside go, those on the edge stay. */
RIG_TEST(test_dontneed)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_laid_out(r, 4096, 4 * MIB);
	u64 began;

	rig_expect_bytes(f, 0, 64 * KIB, 1); /* pages 0..: single ones, 64 by now */
	rig_write(f, 5 * 4096, 4096, 2);
	began = world_now();
	assert_int_equal(file_advise(f, 2 * 4096 + 1, 10 * 4096, FILE_ADV_DONTNEED), 0);
	assert_int_equal(world_now(), began);
	/* bytes 2*4096+1 .. 12*4096+1: pages 3..11 as a whole */
	assert_true(cached(f, 2));
	assert_false(cached(f, 3));
	assert_false(cached(f, 4));
	assert_true(cached(f, 5)); /* in flight */
	assert_false(cached(f, 6));
	assert_false(cached(f, 11));
	assert_true(cached(f, 12));
	world_sleep_until(began + NSEC_PER_SEC);
	rig_expect_stored(f->inode, 5 * 4096, 4096, 2);
	assert_int_equal(file_advise(f, 2 * 4096 + 1, 10 * 4096, FILE_ADV_DONTNEED), 0);
	assert_false(cached(f, 5));
	rig_end(r, f);
}

RIG_TEST(test_dontneed_keeps_a_large_folio_on_the_edge)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_file(rig_inode(r, 4096), 0);

	rig_write(f, 0, 64 * KIB, 1);
	rig_write(f, 64 * KIB, 64 * KIB, 1);
	assert_int_equal(file_fsync(f, false), 0);
	rig_expect_orders(f, 0, 4, 4);
	assert_int_equal(file_advise(f, 4 * KIB, 124 * KIB, FILE_ADV_DONTNEED), 0);
	assert_true(cached(f, 0));
	assert_true(cached(f, 15));
	assert_false(cached(f, 16));
	/* length 0 is to the end of the file, its partial last page included */
	rig_write(f, 128 * KIB, 100, 1);
	assert_int_equal(file_fsync(f, false), 0);
	assert_int_equal(file_advise(f, 0, 0, FILE_ADV_DONTNEED), 0);
	assert_int_equal(f->inode->m.pages, 0);
	rig_end(r, f);
}

/* Reads of a file that says NOREUSE leave no trace in the order of reclaim. */
RIG_TEST(test_noreuse_does_not_promote)
{
	for (unsigned noreuse = 0; noreuse < 2; noreuse++) {
		struct rig *r = rig_open("linux-7.4");
		struct file *f = rig_laid_out(r, 4096, MIB);
		struct folio *folio;

		if (noreuse)
			assert_int_equal(file_advise(f, 0, 0, FILE_ADV_NOREUSE), 0);
		rig_expect_bytes(f, 0, 4096, 1);
		rig_expect_bytes(f, 0, 4096, 1);
		folio = mapping_find(&f->inode->m, 0);
		assert_int_equal(atomic_load(&folio->uses), noreuse ? 0 : FOLIO_HOT);
		folio_unpin(f->inode->m.cache, folio);
		assert_int_equal(file_advise(f, 0, 0, FILE_ADV_NORMAL), 0);
		assert_false(f->noreuse);
		rig_end(r, f);
	}
}

RIG_TEST(test_what_is_refused)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_laid_out(r, 4096, MIB);

	assert_int_equal(file_advise(f, ~0ull, 2, FILE_ADV_WILLNEED), -EINVAL);
	assert_int_equal(file_advise(f, 0, 0, (enum file_advice)99), -EINVAL);
	/* nothing cached, nothing there: no harm */
	assert_int_equal(file_advise(f, 0, 0, FILE_ADV_DONTNEED), 0);
	assert_int_equal(file_advise(f, 100 * MIB, 0, FILE_ADV_WILLNEED), 0);
	assert_int_equal(file_advise(f, 100 * MIB, MIB, FILE_ADV_WILLNEED), 0);
	assert_int_equal(f->inode->m.pages, 0);
	rig_end(r, f);
}

/* A read that fails says so, and the next one tries again. */
RIG_TEST(test_read_errors)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_laid_out(r, 4096, MIB);
	u8 buf[4096];

	r->read_error = -EIO;
	r->failures = 2; /* the window's, and the page's own */
	assert_int_equal(file_pread(f, buf, 4096, 0), -EIO);
	rig_expect_bytes(f, 0, MIB, 1);
	rig_end(r, f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loading_as_p2_does),
		cmocka_unit_test(test_sequential_doubles_and_normal_restores),
		cmocka_unit_test(test_willneed),
		cmocka_unit_test(test_dontneed),
		cmocka_unit_test(test_dontneed_keeps_a_large_folio_on_the_edge),
		cmocka_unit_test(test_noreuse_does_not_promote),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_read_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
