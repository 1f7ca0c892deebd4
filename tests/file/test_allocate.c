// SPDX-License-Identifier: MIT
/* Space and holes: what fallocate makes of a file, and where data is found. */
#include "rig.h"

#define PUNCH (FILE_PUNCH_HOLE | FILE_KEEP_SIZE)

static bool stored(struct file *f, u64 page)
{
	return store_any_written(inode_store(f->inode), page, 1);
}

RIG_TEST(test_what_is_refused)
{
	struct rig *r = rig_open("sluice");
	struct file *f = rig_file(rig_inode(r, 4096), 0);
	struct file *reader = rig_file(f->inode, FILE_NO_WRITE);

	assert_int_equal(file_fallocate(f, 0, 0, 0), -EINVAL);
	assert_int_equal(file_fallocate(f, 0, UINT64_MAX, 2), -EINVAL);
	assert_int_equal(file_fallocate(f, 0, FILE_MAX_BYTES, 1), -EFBIG);
	assert_int_equal(file_fallocate(f, FILE_PUNCH_HOLE, 0, 1), -EOPNOTSUPP);
	assert_int_equal(
		file_fallocate(f, FILE_PUNCH_HOLE | FILE_ZERO_RANGE | FILE_KEEP_SIZE, 0, 1),
		-EOPNOTSUPP);
	assert_int_equal(file_fallocate(f, 8, 0, 1), -EOPNOTSUPP);
	assert_int_equal(file_fallocate(reader, 0, 0, 1), -EBADF);
	assert_int_equal(file_seek(f, 0, (enum file_seek_what)7), -EINVAL);
	file_close(reader);
	rig_end(r, f);
}

RIG_TEST(test_allocate)
{
	struct rig *r = rig_open("sluice");
	struct file *f = rig_file(rig_inode(r, 4096), 0);

	rig_write(f, 0, 5000, 1);
	assert_int_equal(file_fallocate(f, FILE_KEEP_SIZE, 1000, 90000), 0);
	assert_int_equal(inode_size(f->inode), 5000);
	assert_int_equal(file_fallocate(f, 0, 1000, 2000), 0);
	assert_int_equal(inode_size(f->inode), 5000);
	assert_int_equal(file_fallocate(f, 0, 1000, 90000), 0);
	assert_int_equal(inode_size(f->inode), 91000);
	rig_expect_bytes(f, 0, 5000, 1);
	rig_expect_bytes(f, 5000, 86000, 0);
	rig_end(r, f);
}

/* A hole over all states a page can be in: on the device, cached, dirty, and in flight. */
RIG_TEST(test_punch_any_state)
{
	struct rig *r = rig_open("sluice");
	struct file *f = rig_laid_out(r, 4096, 256 * KIB);
	struct engine_stats s;
	u64 written;

	rig_expect_bytes(f, 64 * KIB, 64 * KIB, 1); /* 16..31 cached */
	rig_write(f, 128 * KIB, 32 * KIB, 2);       /* 32..39 in flight */
	assert_int_equal(file_sync_range(f, 0, 0, FILE_WRITE), 0);
	rig_write(f, 144 * KIB, 16 * KIB, 3); /* 36..39 dirty besides */
	rig_write(f, 160 * KIB, 64 * KIB, 4); /* 40..55 dirty */
	assert_int_equal(file_fallocate(f, PUNCH, 16 * KIB, 200 * KIB), 0); /* 4..53 */
	assert_int_equal(inode_size(f->inode), 256 * KIB);
	rig_expect_bytes(f, 0, 16 * KIB, 1);
	rig_expect_bytes(f, 16 * KIB, 200 * KIB, 0);
	rig_expect_bytes(f, 216 * KIB, 8 * KIB, 4);
	rig_expect_bytes(f, 224 * KIB, 32 * KIB, 1);
	engine_stats(r->e, &s);
	assert_int_equal(s.debt, 2); /* the rest of the dirty ones is owed no more */
	written = s.pages_written;
	assert_int_equal(file_fsync(f, false), 0);
	engine_stats(r->e, &s);
	assert_int_equal(s.pages_written - written, 2);
	for (u64 page = 0; page < 64; page++)
		assert_int_equal(stored(f, page), page < 4 || page >= 54);
	rig_expect_stored(f->inode, 16 * KIB, 200 * KIB, 0);
	rig_expect_stored(f->inode, 216 * KIB, 8 * KIB, 4);
	rig_end(r, f);
}

/* Edges within pages are zeroed; where there is nothing, nothing is made. */
RIG_TEST(test_punch_edges)
{
	struct rig *r = rig_open("sluice");
	struct file *f = rig_laid_out(r, 512, 64 * KIB);

	assert_int_equal(file_fallocate(f, PUNCH, 1000, 100), 0); /* within a page and a block */
	rig_expect_bytes(f, 0, 1000, 1);
	rig_expect_bytes(f, 1000, 100, 0);
	rig_expect_bytes(f, 1100, 2996, 1);
	assert_int_equal(file_fallocate(f, PUNCH, 10000, 20000),
			 0); /* 3..6, and parts of 2 and 7 */
	rig_expect_bytes(f, 8192, 10000 - 8192, 1);
	rig_expect_bytes(f, 10000, 20000, 0);
	rig_expect_bytes(f, 30000, 10000, 1);
	assert_int_equal(file_fallocate(f, PUNCH, 5000, 4000),
			 0); /* parts of 1 and 2, nothing whole */
	rig_expect_bytes(f, 4096, 904, 1);
	rig_expect_bytes(f, 5000, 4000, 0);
	rig_expect_bytes(f, 9000, 1000, 1);
	assert_int_equal(file_fsync(f, false), 0);
	for (u64 page = 0; page < 16; page++)
		assert_int_equal(stored(f, page), page < 3 || page > 6);
	/* edges in the hole itself, and past the end */
	assert_int_equal(file_fallocate(f, PUNCH, 13000, 7000), 0);
	assert_int_equal(file_fallocate(f, PUNCH, 64 * KIB, 7000), 0);
	assert_int_equal(file_fallocate(f, PUNCH, 64 * KIB - 100, 7000), 0);
	assert_int_equal(inode_size(f->inode), 64 * KIB);
	assert_int_equal(file_fsync(f, false), 0);
	assert_false(stored(f, 3));
	assert_false(stored(f, 4));
	/* the last page had nothing but zeros left past its 3,996 bytes */
	rig_expect_bytes(f, 60 * KIB, 4 * KIB - 100, 1);
	rig_expect_bytes(f, 64 * KIB - 100, 100, 0);
	rig_end(r, f);
}

/* A file whose last pages, not written yet, are punched keeps its size on the device, too. */
RIG_TEST(test_punched_end)
{
	struct rig *r = rig_open("sluice");
	struct file *f = rig_file(rig_inode(r, 4096), 0);

	rig_write(f, 0, 50000, 1);
	assert_int_equal(file_fallocate(f, PUNCH, 8192, 100000), 0);
	assert_int_equal(file_fsync(f, false), 0);
	assert_int_equal(inode_size(f->inode), 50000);
	assert_int_equal(store_size(inode_store(f->inode)), 50000);
	rig_expect_stored(f->inode, 0, 8192, 1);
	rig_end(r, f);
}

/* Also if the page before them cannot be read, which is to be zeroed in part. */
RIG_TEST(test_punched_end_of_a_file_that_cannot_be_read)
{
	struct rig *r = rig_open("sluice");
	struct file *f = rig_laid_out(r, 4096, 8192);

	rig_write(f, 8192, 20000, 2);
	assert_int_equal(file_fallocate(f, FILE_ZERO_RANGE, 6000, 40000), 0);
	assert_int_equal(file_fsync(f, false), 0);
	engine_drop_caches(r->e);
	rig_write(f, 46000, 4000, 3);
	r->read_error = -EIO;
	r->failures = 1;
	assert_int_equal(file_fallocate(f, FILE_ZERO_RANGE, 5000, 60000), -EIO);
	assert_int_equal(inode_size(f->inode), 50000);
	assert_int_equal(file_fsync(f, false), 0);
	assert_int_equal(store_size(inode_store(f->inode)), 50000);
	rig_end(r, f);
}

RIG_TEST(test_zero_range)
{
	struct rig *r = rig_open("sluice");
	struct file *f = rig_laid_out(r, 4096, 64 * KIB);

	rig_write(f, 32 * KIB, 8 * KIB, 2);
	assert_int_equal(file_fallocate(f, FILE_ZERO_RANGE, 10000, 40000), 0);
	rig_expect_bytes(f, 0, 10000, 1);
	rig_expect_bytes(f, 10000, 40000, 0);
	rig_expect_bytes(f, 50000, 10000, 1);
	assert_int_equal(file_fallocate(f, FILE_ZERO_RANGE | FILE_KEEP_SIZE, 60000, 40000), 0);
	assert_int_equal(inode_size(f->inode), 64 * KIB);
	rig_expect_bytes(f, 60000, 5536, 0);
	assert_int_equal(file_fallocate(f, FILE_ZERO_RANGE, 60000, 40000), 0);
	assert_int_equal(inode_size(f->inode), 100000);
	rig_expect_bytes(f, 60000, 40000, 0);
	rig_end(r, f);
}

struct scanner {
	struct rig *r;
	struct file *f;
	bool stop;
};

/* Reads all the time: what it brings back in must not outlive the hole. */
static void scanner_main(void *arg)
{
	struct scanner *s = arg;
	static u8 buf[256 * 1024];

	for (u64 at = 0; !s->stop; at = (at + 20 * KIB) % (200 * KIB)) {
		assert_true(file_pread(s->f, buf, 40 * KIB, at) > 0);
		engine_drop_caches(s->r->e);
		world_sleep_until(world_now() + 3 * NSEC_PER_USEC);
	}
}

RIG_TEST(test_punch_beside_readers)
{
	struct rig *r = rig_open("sluice");
	struct file *f = rig_laid_out(r, 4096, 256 * KIB);
	struct scanner s = { r, f, false };
	struct task *task = world_spawn("scanner", scanner_main, &s);

	for (unsigned i = 0; i < 50; i++) {
		u64 offset = (i * 13 % 50) * 4 * KIB + (i % 3) * 1000,
		    length = 4 * KIB * (i % 9 + 1);

		assert_int_equal(file_fallocate(f, PUNCH, offset, length), 0);
		rig_expect_bytes(f, offset, length, 0);
		world_sleep_until(world_now() + (i * 7 % 50) * NSEC_PER_USEC);
		rig_expect_bytes(f, offset, length, 0);
		rig_write(f, offset, length, 5);
		if (i % 2)
			assert_int_equal(file_fsync(f, true), 0);
	}
	s.stop = true;
	world_join(task);
	rig_end(r, f);
}

RIG_TEST(test_seek)
{
	struct rig *r = rig_open("sluice");
	struct file *f = rig_file(rig_inode(r, 4096), 0);

	assert_int_equal(file_seek(f, 0, FILE_SEEK_DATA), -ENXIO);
	assert_int_equal(file_seek(f, 0, FILE_SEEK_HOLE), -ENXIO);
	assert_int_equal(inode_truncate(f->inode, 1000000), 0);
	assert_int_equal(file_seek(f, 0, FILE_SEEK_DATA), -ENXIO);
	assert_int_equal(file_seek(f, 0, FILE_SEEK_HOLE), 0);
	assert_int_equal(file_seek(f, 999999, FILE_SEEK_HOLE), 999999);
	assert_int_equal(file_seek(f, 1000000, FILE_SEEK_HOLE), -ENXIO);

	/* dirty data in the hole is data before it is anywhere else */
	rig_write(f, 300000, 100000, 1); /* pages 73 to 97 */
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(file_seek(f, 0, FILE_SEEK_DATA), 73 * 4096);
		assert_int_equal(file_seek(f, 350000, FILE_SEEK_DATA), 350000);
		assert_int_equal(file_seek(f, 350000, FILE_SEEK_HOLE), 98 * 4096);
		assert_int_equal(file_seek(f, 98 * 4096, FILE_SEEK_DATA), -ENXIO);
		assert_int_equal(file_seek(f, 1000, FILE_SEEK_HOLE), 1000);
		if (!i) /* in flight */
			assert_int_equal(file_sync_range(f, 0, 0, FILE_WRITE), 0);
		else
			assert_int_equal(file_fsync(f, false), 0);
	}
	/* zeros that are merely cached are none */
	rig_expect_bytes(f, 600000, 10000, 0);
	assert_int_equal(file_seek(f, 98 * 4096, FILE_SEEK_DATA), -ENXIO);
	/* some stored, some dirty, side by side; and the end of the file in data */
	rig_write(f, 98 * 4096, 4096, 2);
	assert_int_equal(file_seek(f, 300000, FILE_SEEK_HOLE), 99 * 4096);
	rig_write(f, 999999, 1, 2);
	assert_int_equal(file_seek(f, 500000, FILE_SEEK_DATA), 244 * 4096);
	assert_int_equal(file_seek(f, 244 * 4096, FILE_SEEK_HOLE), 1000000);
	rig_end(r, f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_allocate),
		cmocka_unit_test(test_punch_any_state),
		cmocka_unit_test(test_punch_edges),
		cmocka_unit_test(test_punched_end_of_a_file_that_cannot_be_read),
		cmocka_unit_test(test_punched_end),
		cmocka_unit_test(test_zero_range),
		cmocka_unit_test(test_punch_beside_readers),
		cmocka_unit_test(test_seek),
	};

	return cmocka_run_group_tests_name("allocate", tests, NULL, NULL);
}
