// SPDX-License-Identifier: MIT
/* Over stores of a caller's own that run full, or fail: who accepts data has room for it. */
#include "base/alloc.h"
#include "real_rig.h"

#define BLOCK       4096
#define STORE_BYTES (4 * MIB)

/* Bytes in memory; a block can be written if room was made for it, or if it was there before. */
struct backing {
	struct mutex lock;
	u8 bytes[STORE_BYTES];
	bool roomy[STORE_BYTES / BLOCK];
	u64 size, room; /* bytes; blocks that are left */
	u64 reserves, overruns;
	int write_error;
};

static ssize_t backing_read(void *ctx, const struct iovec *vec, unsigned count, u64 offset)
{
	struct backing *b = ctx;
	ssize_t done = 0;

	mutex_lock(&b->lock);
	for (unsigned i = 0; i < count && offset < b->size; i++) {
		u64 n = min_u64(vec[i].iov_len, b->size - offset);

		memcpy(vec[i].iov_base, b->bytes + offset, n);
		offset += n;
		done += (ssize_t)n;
	}
	mutex_unlock(&b->lock);
	return done;
}

static ssize_t backing_write(void *ctx, const struct iovec *vec, unsigned count, u64 offset)
{
	struct backing *b = ctx;
	ssize_t done = 0;

	mutex_lock(&b->lock);
	if (b->write_error) {
		mutex_unlock(&b->lock);
		return b->write_error;
	}
	for (unsigned i = 0; i < count; i++) {
		u64 n = vec[i].iov_len;

		assert_true(offset + n <= STORE_BYTES);
		for (u64 block = offset / BLOCK; block * BLOCK < offset + n; block++)
			b->overruns += !b->roomy[block];
		memcpy(b->bytes + offset, vec[i].iov_base, n);
		offset += n;
		done += (ssize_t)n;
	}
	b->size = max_u64(b->size, offset);
	mutex_unlock(&b->lock);
	return done;
}

static int backing_truncate(void *ctx, u64 size)
{
	struct backing *b = ctx;

	mutex_lock(&b->lock);
	for (u64 block = div_roundup(size, BLOCK); block < STORE_BYTES / BLOCK; block++) {
		b->room += b->roomy[block];
		b->roomy[block] = false;
	}
	if (size < b->size)
		memset(b->bytes + size, 0, b->size - size);
	b->size = size;
	mutex_unlock(&b->lock);
	return 0;
}

/* All or nothing. */
static int backing_reserve(void *ctx, u64 offset, u64 length)
{
	struct backing *b = ctx;
	u64 end = div_roundup(offset + length, BLOCK), wanted = 0;
	int rc = 0;

	mutex_lock(&b->lock);
	b->reserves++;
	if (end > STORE_BYTES / BLOCK)
		rc = -ENOSPC;
	for (u64 block = offset / BLOCK; block < end && !rc; block++)
		wanted += !b->roomy[block];
	if (wanted > b->room)
		rc = -ENOSPC;
	for (u64 block = offset / BLOCK; block < end && !rc; block++)
		b->roomy[block] = true;
	if (!rc)
		b->room -= wanted;
	mutex_unlock(&b->lock);
	return rc;
}

static int backing_size(void *ctx, u64 *size)
{
	*size = ((struct backing *)ctx)->size;
	return 0;
}

static const struct store_backing all_ops = { .read = backing_read,
					      .write = backing_write,
					      .truncate = backing_truncate,
					      .reserve = backing_reserve,
					      .size = backing_size };

static struct backing *backing_new(u64 size, u64 room)
{
	struct backing *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	mutex_init(&b->lock, RANK_NONE);
	b->size = size;
	b->room = room;
	memset(b->bytes, 'o', size);
	memset(b->roomy, true, div_roundup(size, BLOCK));
	return b;
}

static const struct path_config no_paths = { 0 };

/* A cache, and in it a file over a backing. */
static struct file *begin(struct real *r, const struct store_backing *ops, struct backing *b)
{
	struct inode *inode;
	struct store *store;
	struct file *f;

	real_start(r, no_paths, 16 * MIB);
	assert_int_equal(store_open_custom(r->d, ops, b, &store), 0);
	assert_int_equal(inode_create_on(r->e, 0, BLOCK, store, &inode), 0);
	assert_int_equal(file_open(inode, 0, &f), 0);
	return f;
}

/* Whatever was written, there had been room for it. */
static void end(struct real *r, struct file *f, struct backing *b)
{
	struct inode *inode = file_inode(f);

	file_close(f);
	inode_destroy(inode);
	real_end(r);
	assert_int_equal(b->overruns, 0);
	free(b);
}

static ssize_t write_bytes(struct file *f, u8 byte, u64 length, u64 offset)
{
	static u8 buf[STORE_BYTES];

	memset(buf, byte, length);
	return file_pwrite(f, buf, length, offset);
}

static void expect_byte(struct file *f, u8 byte, u64 offset)
{
	u8 got;

	assert_int_equal(file_pread(f, &got, 1, offset), 1);
	assert_int_equal(got, byte);
}

/* Growing: the write is cut where the device is full, and the file ends there. */
static void test_full_at_the_end(void **state)
{
	struct backing *b = backing_new(2 * BLOCK, 10);
	struct real r;
	struct file *f;
	u64 at;

	(void)state;
	f = begin(&r, &all_ops, b);
	assert_int_equal(inode_size(file_inode(f)), 2 * BLOCK);
	assert_int_equal(write_bytes(f, 1, 5 * BLOCK, 2 * BLOCK), 5 * BLOCK);
	/* five more fit; of this all up to their end */
	assert_int_equal(write_bytes(f, 2, 9 * BLOCK, 7 * BLOCK + 100), 5 * BLOCK - 100);
	assert_int_equal(inode_size(file_inode(f)), 12 * BLOCK);
	assert_int_equal(write_bytes(f, 3, 1, 12 * BLOCK), -ENOSPC);
	assert_int_equal(file_append(f, &(struct iovec){ "x", 1 }, 1, 0, &at), -ENOSPC);
	assert_int_equal(inode_size(file_inode(f)), 12 * BLOCK);
	/* what has its place can be written anew */
	assert_int_equal(write_bytes(f, 4, 12 * BLOCK, 0), 12 * BLOCK);
	expect_byte(f, 4, 12 * BLOCK - 1);
	assert_int_equal(file_fsync(f, false), 0);
	assert_int_equal(b->overruns, 0);
	assert_int_equal(b->bytes[0], 4);
	/* and room that comes back can be used */
	assert_int_equal(file_truncate(f, 10 * BLOCK), 0);
	assert_int_equal(write_bytes(f, 5, BLOCK, 10 * BLOCK), BLOCK);
	assert_int_equal(file_fallocate(f, 0, 0, 12 * BLOCK + 1), -ENOSPC);
	assert_int_equal(inode_size(file_inode(f)), 11 * BLOCK);
	assert_int_equal(file_fallocate(f, 0, 0, 12 * BLOCK), 0);
	assert_int_equal(inode_size(file_inode(f)), 12 * BLOCK);
	end(&r, f, b);
}

/* Who only goes on where the file ends has room made ahead; where that does not fit he does. */
static void test_full_ahead(void **state)
{
	struct backing *b = backing_new(0, 12);
	struct real r;
	struct file *f;

	(void)state;
	f = begin(&r, &all_ops, b);
	assert_int_equal(write_bytes(f, 1, 2 * BLOCK, 0), 2 * BLOCK);
	assert_int_equal(write_bytes(f, 1, BLOCK, 2 * BLOCK), BLOCK);
	assert_true(b->room < 9);
	assert_int_equal(write_bytes(f, 2, 10 * BLOCK, 3 * BLOCK), 9 * BLOCK);
	assert_int_equal(b->room, 0);
	assert_int_equal(write_bytes(f, 3, 1, 12 * BLOCK), -ENOSPC);
	assert_int_equal(file_fsync(f, false), 0);
	assert_int_equal(b->bytes[12 * BLOCK - 1], 2);
	end(&r, f, b);
}

/* In holes below the size there must be room as well. */
static void test_full_in_a_hole(void **state)
{
	struct backing *b = backing_new(0, 6);
	struct real r;
	struct file *f;

	(void)state;
	f = begin(&r, &all_ops, b);
	assert_int_equal(file_truncate(f, MIB), 0);
	assert_int_equal(b->room, 6);
	assert_int_equal(write_bytes(f, 1, 2 * BLOCK, 10 * BLOCK), 2 * BLOCK);
	assert_int_equal(write_bytes(f, 1, 2 * BLOCK, 10 * BLOCK), 2 * BLOCK); /* has it */
	assert_int_equal(write_bytes(f, 2, 8 * BLOCK, 100 * BLOCK), 4 * BLOCK);
	assert_int_equal(write_bytes(f, 3, 1, 200 * BLOCK), -ENOSPC);
	expect_byte(f, 0, 200 * BLOCK);
	assert_int_equal(inode_size(file_inode(f)), MIB);
	assert_int_equal(file_fsync(f, false), 0);
	end(&r, f, b);
}

static bool refuse_all(void)
{
	return true;
}

/* A store that will not have the hole: what was written to the range before is not lost for it. */
static void test_a_refused_hole_costs_nothing(void **state)
{
	struct backing *b = backing_new(16 * BLOCK, 64);
	u8 buf[BLOCK];
	struct real r;
	struct file *f;

	(void)state;
	f = begin(&r, &all_ops, b);
	assert_int_equal(write_bytes(f, 7, 4 * BLOCK, 4 * BLOCK), 4 * BLOCK);
	b->write_error = -EIO; /* zeros cannot be written either */
	assert_int_equal(file_fallocate(f, FILE_PUNCH_HOLE | FILE_KEEP_SIZE, 2 * BLOCK, 8 * BLOCK),
			 -EIO);
	assert_int_equal(inode_unwritten_bytes(file_inode(f)), 4 * BLOCK);
	b->write_error = 0;
	assert_int_equal(file_fsync(f, false), 0);
	for (unsigned i = 4; i < 8; i++) {
		assert_int_equal(file_pread(f, buf, BLOCK, i * BLOCK), BLOCK);
		assert_int_equal(buf[0], 7);
		assert_int_equal(b->bytes[i * BLOCK], 7);
	}
	assert_int_equal(file_fallocate(f, FILE_PUNCH_HOLE | FILE_KEEP_SIZE, 2 * BLOCK, 8 * BLOCK),
			 0);
	assert_int_equal(b->bytes[4 * BLOCK], 0);
	assert_int_equal(file_pread(f, buf, BLOCK, 5 * BLOCK), BLOCK);
	assert_int_equal(buf[0], 0);
	end(&r, f, b);
}

/* Between the size and what is reserved there may be a hole, too. */
static void test_full_past_a_write_that_failed(void **state)
{
	struct backing *b = backing_new(0, 6);
	struct real r;
	struct file *f;

	(void)state;
	f = begin(&r, &all_ops, b);
	alloc_refuses = refuse_all;
	assert_int_equal(write_bytes(f, 1, 2 * BLOCK, 20 * BLOCK), -ENOMEM);
	alloc_refuses = NULL;
	assert_int_equal(b->room, 4); /* it had been made */
	assert_int_equal(inode_size(file_inode(f)), 0);
	assert_int_equal(write_bytes(f, 2, 8 * BLOCK, 3 * BLOCK), 4 * BLOCK);
	assert_int_equal(write_bytes(f, 3, 1, 15 * BLOCK), -ENOSPC);
	assert_int_equal(file_fsync(f, false), 0);
	end(&r, f, b);
}

/* Where whole folios are written, what is a hole under them is not. */
static void test_whole_folios_and_holes(void **state)
{
	struct backing *b = backing_new(0, 3);
	u8 buf[BLOCK];
	struct real r;
	struct file *f;

	(void)state;
	f = begin(&r, &all_ops, b);
	r.e->all.policy.writeout = WRITEOUT_FOLIO;
	assert_int_equal(file_truncate(f, MIB), 0);
	for (u64 at = 0; at < MIB; at += BLOCK) /* readahead makes larger and larger folios */
		assert_int_equal(file_pread(f, buf, BLOCK, at), BLOCK);
	assert_int_equal(write_bytes(f, 1, BLOCK, MIB - 10 * BLOCK), BLOCK);
	assert_int_equal(file_fsync(f, false), 0);
	assert_int_equal(b->overruns, 0);
	assert_int_equal(b->room, 2);
	end(&r, f, b);
}

/* Appending little by little asks the device now and then only. */
static void test_room_ahead(void **state)
{
	struct backing *b = backing_new(0, STORE_BYTES / BLOCK);
	struct real r;
	struct file *f;

	(void)state;
	f = begin(&r, &all_ops, b);
	for (u64 at = 0; at < 2 * MIB; at += 1000)
		assert_int_equal(write_bytes(f, 1, 1000, at), 1000);
	assert_in_range(b->reserves, 5, 20);
	assert_int_equal(file_fsync(f, false), 0);
	assert_int_equal(b->overruns, 0);
	assert_int_equal(b->size, inode_size(file_inode(f)));
	end(&r, f, b);
}

/* Who must not wait does not ask for room: he gets what somebody else's asking has left. */
static void test_nowait(void **state)
{
	struct backing *b = backing_new(0, 1000);
	struct iovec iov = { (u8[BLOCK]){ 1 }, BLOCK };
	struct real r;
	struct file *f;

	(void)state;
	f = begin(&r, &all_ops, b);
	assert_int_equal(file_pwritev(f, &iov, 1, 0, FILE_IO_NOWAIT), -EAGAIN);
	assert_int_equal(b->reserves, 0);
	assert_int_equal(write_bytes(f, 1, 10 * BLOCK, 0), 10 * BLOCK);
	assert_int_equal(write_bytes(f, 1, BLOCK, 10 * BLOCK), BLOCK); /* and as much ahead */
	assert_int_equal(file_pwritev(f, &iov, 1, 11 * BLOCK, FILE_IO_NOWAIT), BLOCK);
	assert_int_equal(file_pwritev(f, &iov, 1, 0, FILE_IO_NOWAIT), BLOCK);
	assert_int_equal(file_truncate(f, MIB), 0); /* a hole */
	assert_int_equal(file_pwritev(f, &iov, 1, MIB / 2, FILE_IO_NOWAIT), -EAGAIN);
	assert_int_equal(write_bytes(f, 1, BLOCK, MIB / 2), BLOCK);
	assert_int_equal(file_pwritev(f, &iov, 1, MIB / 2, FILE_IO_NOWAIT), BLOCK); /* dirty */
	end(&r, f, b);
}

/* A store that can't be cut says so, and keeps what it has, dirty or not. */
static void test_no_truncate(void **state)
{
	struct store_backing ops = all_ops;
	struct backing *b = backing_new(10 * BLOCK, 100);
	struct real r;
	struct file *f;

	(void)state;
	ops.truncate = NULL;
	f = begin(&r, &ops, b);
	assert_int_equal(write_bytes(f, 1, 100, 9 * BLOCK), 100);
	assert_int_equal(file_truncate(f, BLOCK), -EOPNOTSUPP);
	assert_int_equal(inode_size(file_inode(f)), 10 * BLOCK);
	expect_byte(f, 1, 9 * BLOCK);
	expect_byte(f, 'o', 8 * BLOCK);
	end(&r, f, b);
}

static void tell(void *ctx, struct inode *inode, u64 bytes, int error)
{
	assert_ptr_equal(inode_owner(inode), ctx);
	assert_int_equal(bytes, 2 * BLOCK);
	assert_int_equal(error, -EIO);
}

/* What can't be written is told at the end. */
static void test_losses(void **state)
{
	struct backing *b = backing_new(0, 100);
	struct engine_losses losses = { .lost = tell, .ctx = b };
	struct real r;
	struct file *f;

	(void)state;
	f = begin(&r, &all_ops, b);
	inode_set_owner(file_inode(f), b);
	b->write_error = -EIO;
	assert_int_equal(write_bytes(f, 1, 2 * BLOCK, 0), 2 * BLOCK);
	assert_int_equal(file_fsync(f, false), -EIO);
	assert_int_equal(file_fsync(f, false), -EIO);
	file_close(f);
	assert_int_equal(path_table_destroy(r.t, NULL), 0);
	assert_int_equal(engine_destroy_telling(r.e, &losses), -EIO);
	assert_int_equal(losses.files, 1);
	assert_int_equal(losses.bytes, 2 * BLOCK);
	assert_int_equal(losses.error, -EIO);
	device_destroy(r.d);
	real_clean(r.folder);
	free(b);
}

static void test_bad_stores(void **state)
{
	struct backing *b = backing_new(0, 0);
	struct device_config c;
	struct device *other;
	struct store *store;
	struct inode *inode;
	struct real r;

	(void)state;
	real_start(&r, no_paths, 16 * MIB);
	assert_int_equal(device_config_init(&c, "file"), 0);
	assert_int_equal(device_create(&c, &other), 0);
	assert_int_equal(store_open_custom(other, &all_ops, b, &store), 0);
	assert_int_equal(inode_create_on(r.e, 0, BLOCK, store, &inode), -EINVAL);
	assert_int_equal(inode_create_on(r.e, 1, BLOCK, store, &inode), -EINVAL);
	assert_int_equal(inode_create_on(r.e, 0, 1000, store, &inode), -EINVAL);
	store_destroy(store);
	device_destroy(other);
	real_end(&r);
	free(b);
}

/* What is cached over a hole, and clean, has no room yet, however it is written. */
static void test_full_in_a_cached_hole(void **state)
{
	struct backing *b = backing_new(0, 1);
	struct real r;
	struct file *f;

	(void)state;
	f = begin(&r, &all_ops, b);
	assert_int_equal(file_truncate(f, MIB), 0);
	for (u64 block = 0; block < 16; block++)
		expect_byte(f, 0, block * BLOCK);
	assert_int_equal(write_bytes(f, 1, BLOCK, 3 * BLOCK), BLOCK);
	assert_int_equal(write_bytes(f, 2, BLOCK, 4 * BLOCK), -ENOSPC);
	assert_int_equal(write_bytes(f, 3, BLOCK, 3 * BLOCK), BLOCK);
	assert_int_equal(file_fsync(f, false), 0);
	end(&r, f, b);
}

/* A file that was cut has to ask for room again. */
static void test_full_after_a_cut(void **state)
{
	struct backing *b = backing_new(0, 8);
	struct real r;
	struct file *f;

	(void)state;
	f = begin(&r, &all_ops, b);
	assert_int_equal(write_bytes(f, 1, 8 * BLOCK, 0), 8 * BLOCK);
	assert_int_equal(file_truncate(f, BLOCK), 0);
	assert_int_equal(b->room, 7);
	b->room = 2; /* others were faster */
	assert_int_equal(write_bytes(f, 2, 4 * BLOCK, BLOCK), 2 * BLOCK);
	assert_int_equal(write_bytes(f, 2, BLOCK, 3 * BLOCK), -ENOSPC);
	assert_int_equal(file_fsync(f, false), 0);
	end(&r, f, b);
}

/* What a failed write left past the end is cut off, and with it the room that was made ahead. */
static void test_full_after_a_direct_write_failed(void **state)
{
	static _Alignas(4096) u8 page[BLOCK];
	struct backing *b = backing_new(0, 8);
	struct file *f, *direct;
	struct real r;

	(void)state;
	f = begin(&r, &all_ops, b);
	assert_int_equal(file_open(file_inode(f), FILE_DIRECT, &direct), 0);
	assert_int_equal(write_bytes(f, 1, 2 * BLOCK, 0), 2 * BLOCK);
	assert_int_equal(write_bytes(f, 1, BLOCK, 2 * BLOCK), BLOCK); /* as much again ahead */
	assert_int_equal(file_fsync(f, false), 0);
	assert_int_equal(b->room, 3);
	b->write_error = -ENOSPC;
	assert_int_equal(file_pwrite(direct, page, BLOCK, 3 * BLOCK), -ENOSPC);
	b->write_error = 0;
	assert_int_equal(b->room, 5);
	b->room = 0; /* others were faster */
	assert_int_equal(write_bytes(f, 2, BLOCK, 3 * BLOCK), -ENOSPC);
	assert_int_equal(write_bytes(f, 2, BLOCK, 2 * BLOCK), BLOCK);
	assert_int_equal(file_fsync(f, false), 0);
	assert_int_equal(b->overruns, 0);
	file_close(direct);
	end(&r, f, b);
}

/* A flush that failed is owed: every sync asks for it, and says so, until the data is given up. */
static int flush_error;
static u32 flushes;

static int counted_flush(void *ctx)
{
	(void)ctx;
	flushes++;
	return flush_error;
}

static void test_a_failed_flush_is_owed(void **state)
{
	struct backing *b = backing_new(0, STORE_BYTES / BLOCK);
	struct store_backing ops = all_ops;
	struct real r;
	struct file *f;

	(void)state;
	ops.flush = counted_flush;
	flush_error = -EIO;
	f = begin(&r, &ops, b);
	assert_int_equal(write_bytes(f, 1, BLOCK, 0), BLOCK);
	assert_int_equal(file_fsync(f, false), -EIO);
	flush_error = 0; /* what it lost does not come back by that */
	assert_int_equal(engine_sync(r.e), -EIO);
	assert_int_equal(engine_sync(r.e), -EIO);
	assert_int_equal(file_fsync(f, false), -EIO);
	assert_int_equal(inode_forget(file_inode(f)), 0);
	assert_int_equal(write_bytes(f, 2, BLOCK, 0), BLOCK);
	assert_int_equal(file_fsync(f, false), 0);
	assert_int_equal(engine_sync(r.e), 0);
	end(&r, f, b);
}

/* What went past the cache is not safe before a flush either; nobody flushes twice. */
static void test_a_direct_write_is_flushed(void **state)
{
	static u8 bytes[BLOCK] __attribute__((aligned(BLOCK)));
	struct backing *b = backing_new(4 * BLOCK, STORE_BYTES / BLOCK);
	struct store_backing ops = all_ops;
	struct file *f, *direct;
	struct real r;

	(void)state;
	ops.flush = counted_flush;
	flush_error = 0;
	f = begin(&r, &ops, b);
	assert_int_equal(file_open(file_inode(f), FILE_DIRECT, &direct), 0);
	flushes = 0;
	assert_int_equal(engine_sync(r.e), 0);
	assert_int_equal(flushes, 0);
	assert_int_equal(file_pwrite(direct, bytes, BLOCK, BLOCK), BLOCK);
	assert_int_equal(engine_sync(r.e), 0);
	assert_int_equal(flushes, 1);
	assert_int_equal(engine_sync(r.e), 0);
	assert_int_equal(flushes, 1);
	file_close(direct);
	end(&r, f, b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full_at_the_end),
		cmocka_unit_test(test_full_ahead),
		cmocka_unit_test(test_full_in_a_hole),
		cmocka_unit_test(test_a_refused_hole_costs_nothing),
		cmocka_unit_test(test_full_past_a_write_that_failed),
		cmocka_unit_test(test_whole_folios_and_holes),
		cmocka_unit_test(test_nowait),
		cmocka_unit_test(test_room_ahead),
		cmocka_unit_test(test_no_truncate),
		cmocka_unit_test(test_losses),
		cmocka_unit_test(test_bad_stores),
		cmocka_unit_test(test_full_in_a_cached_hole),
		cmocka_unit_test(test_full_after_a_cut),
		cmocka_unit_test(test_full_after_a_direct_write_failed),
		cmocka_unit_test(test_a_failed_flush_is_owed),
		cmocka_unit_test(test_a_direct_write_is_flushed),
	};

	return cmocka_run_group_tests_name("real_space", tests, NULL, NULL);
}
