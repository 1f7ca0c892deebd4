// SPDX-License-Identifier: MIT
/*
 * Stores of a caller's own making: a backing in memory that moves as few bytes at a time as it
 * likes, is interrupted, fails, lacks functions, and blocks.
 */
#include "real_rig.h"
#include <pthread.h>

struct backing {
	pthread_mutex_t lock; /* protects all below */
	struct rng rng;
	u8 bytes[REAL_BYTES];
	u64 size;
	u32 at_most;      /* bytes moved in one call; 0: as many as asked for */
	bool interrupted; /* now and then */
	int error;        /* what all calls but size and close return; 0: work */
	ssize_t answer;   /* if not 0, what read and write return, less 1 */
	u32 calls, flushes, closes;
	size_t longest; /* bytes asked for in one call */
	u64 reserved_to;
};

static struct backing *backing_new(u64 seed)
{
	struct backing *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	pthread_mutex_init(&b->lock, NULL);
	rng_init(&b->rng, seed);
	return b;
}

/* Moves bytes between the vector and the backing; write: `to_store`. */
static ssize_t move(struct backing *b, const struct iovec *vec, unsigned count, u64 offset,
		    bool to_store)
{
	size_t asked = 0, moved = 0, limit;

	for (unsigned i = 0; i < count; i++) {
		assert_true(vec[i].iov_len > 0);
		asked += vec[i].iov_len;
	}
	assert_true(asked > 0);
	b->calls++;
	b->longest = max_u64(b->longest, asked);
	if (b->answer)
		return b->answer - 1;
	if (b->error)
		return b->error;
	if (b->interrupted && !rng_below(&b->rng, 4))
		return rng_below(&b->rng, 8) ? -EINTR : -EAGAIN;
	limit = b->at_most ? 1 + rng_below(&b->rng, b->at_most) : asked;
	if (!to_store)
		limit = min_u64(limit, offset < b->size ? b->size - offset : 0);
	for (unsigned i = 0; i < count && moved < limit; i++) {
		size_t n = min_u64(vec[i].iov_len, limit - moved);

		assert_true(offset + moved + n <= REAL_BYTES);
		if (to_store)
			memcpy(b->bytes + offset + moved, vec[i].iov_base, n);
		else
			memcpy(vec[i].iov_base, b->bytes + offset + moved, n);
		moved += n;
	}
	if (to_store)
		b->size = max_u64(b->size, offset + moved);
	return (ssize_t)moved;
}

static ssize_t backing_read(void *ctx, const struct iovec *vec, unsigned count, u64 offset)
{
	struct backing *b = ctx;
	ssize_t moved;

	pthread_mutex_lock(&b->lock);
	moved = move(b, vec, count, offset, false);
	pthread_mutex_unlock(&b->lock);
	return moved;
}

static ssize_t backing_write(void *ctx, const struct iovec *vec, unsigned count, u64 offset)
{
	struct backing *b = ctx;
	ssize_t moved;

	pthread_mutex_lock(&b->lock);
	moved = move(b, vec, count, offset, true);
	pthread_mutex_unlock(&b->lock);
	return moved;
}

static int backing_flush(void *ctx)
{
	struct backing *b = ctx;
	int error;

	pthread_mutex_lock(&b->lock);
	b->flushes++;
	error = b->error ? b->error : b->interrupted && rng_below(&b->rng, 2) ? -EINTR : 0;
	pthread_mutex_unlock(&b->lock);
	return error;
}

static int backing_truncate(void *ctx, u64 size)
{
	struct backing *b = ctx;
	int error;

	pthread_mutex_lock(&b->lock);
	error = b->error;
	if (!error && size < b->size)
		memset(b->bytes + size, 0, b->size - size);
	if (!error)
		b->size = size;
	pthread_mutex_unlock(&b->lock);
	return error;
}

static int backing_reserve(void *ctx, u64 offset, u64 length)
{
	struct backing *b = ctx;

	if (offset + length > REAL_BYTES)
		return -ENOSPC;
	b->reserved_to = max_u64(b->reserved_to, offset + length);
	return b->error;
}

static int backing_size(void *ctx, u64 *size)
{
	struct backing *b = ctx;

	*size = b->size;
	return b->error;
}

static void backing_close(void *ctx)
{
	((struct backing *)ctx)->closes++;
}

static const struct store_backing all_of_it = {
	.read = backing_read,
	.write = backing_write,
	.flush = backing_flush,
	.truncate = backing_truncate,
	.reserve = backing_reserve,
	.size = backing_size,
	.close = backing_close,
};

static struct store *open_on(struct device *d, const struct store_backing *ops, struct backing *b)
{
	struct store *s;

	assert_int_equal(store_open_custom(d, ops, b, &s), 0);
	return s;
}

static void close_it(struct store *s, struct backing *b)
{
	struct device *d = store_device(s);

	store_destroy(s);
	device_destroy(d);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

static void play(const char *engine, u32 at_most, bool interrupted, u32 unit, u64 seed)
{
	static struct real_model m;
	struct backing *b = backing_new(seed);
	struct device *d = real_device(engine, "1");
	struct store *s = open_on(d, &all_of_it, b);

	b->at_most = at_most;
	b->interrupted = interrupted;
	real_play(s, &m, seed, real_soak() ? 2000 : 150, unit);
	assert_int_equal(b->size, m.size);
	assert_memory_equal(b->bytes, m.bytes, REAL_BYTES);
	store_destroy(s);
	assert_int_equal(b->closes, 1);
	close_it(open_on(d, &all_of_it, b), b);
}

static void test_model(void **state)
{
	(void)state;
	play("threads", 0, false, 4096, 1);
	play("auto", 0, false, 512, 2);
}

static void test_short_transfers(void **state)
{
	(void)state;
	play("threads", 1000, false, 4096, 3);
	play("auto", 30000, false, 512, 4);
	play("threads", 7, false, 1024, 5);
}

static void test_interruptions(void **state)
{
	(void)state;
	play("threads", 50000, true, 4096, 6);
}

/* One byte at a time, over pieces of all lengths. */
static void test_single_bytes(void **state)
{
	struct backing *b = backing_new(1);
	struct store *s = open_on(real_device("threads", "1"), &all_of_it, b);
	struct real_io io = { .buf = real_buffer(1000) };
	struct rng r;

	(void)state;
	rng_init(&r, 1);
	b->at_most = 1;
	for (unsigned i = 0; i < 1000; i++)
		io.buf[i] = (u8)(i * 7 + 1);
	real_submit(&io, s, IO_WRITE, 100, 900, 1, &r);
	assert_int_equal(real_wait(&io), 0);
	assert_int_equal(b->calls, 900);
	assert_int_equal(b->size, 1000);
	assert_memory_equal(b->bytes + 100, io.buf, 900);
	memset(io.buf, 0, 1000);
	real_submit(&io, s, IO_READ, 0, 1000, 1, &r);
	assert_int_equal(real_wait(&io), 0);
	assert_memory_equal(io.buf, b->bytes, 1000);
	free(io.buf);
	close_it(s, b);
}

/* --- what is absent --- */

static void test_absent(void **state)
{
	const struct store_backing only_read = { .read = backing_read }, nothing = { 0 };
	struct backing *b = backing_new(1);
	struct device_config c;
	struct device *d = real_device("auto", "1"), *memory;
	struct store *s;
	u8 buf[4096];

	(void)state;
	assert_int_equal(store_open_custom(d, &nothing, b, &s), -EINVAL);
	assert_int_equal(device_config_init(&c, "memory"), 0);
	assert_int_equal(device_create(&c, &memory), 0);
	assert_int_equal(store_open_custom(memory, &all_of_it, b, &s), -EINVAL);
	device_destroy(memory);
	memset(b->bytes, 5, 100);
	b->size = 100;
	s = open_on(d, &only_read, b);
	assert_int_equal(store_size(s), 0);
	assert_int_equal(real_transfer(s, IO_READ, 0, buf, 4096), 0);
	assert_int_equal(buf[99], 5);
	assert_int_equal(buf[100], 0);
	assert_int_equal(real_transfer(s, IO_WRITE, 0, buf, 4096), -EROFS);
	assert_int_equal(real_flush(s), 0);
	assert_int_equal(store_reserve(s, 0, 1ull << 40), 0);
	assert_int_equal(store_truncate(s, 5000), 0);
	assert_int_equal(store_size(s), 5000);
	assert_int_equal(store_truncate(s, 4999), -EOPNOTSUPP);
	assert_int_equal(store_size(s), 5000);
	assert_int_equal(store_lay_out(s, 6000), 0);
	assert_int_equal(store_size(s), 6000);
	assert_int_equal(store_punch(s, 0, 1), -EROFS);
	close_it(s, b);
}

static void test_opening(void **state)
{
	struct backing *b = backing_new(1);
	struct device *d = real_device("auto", "1");
	struct store *s;

	(void)state;
	b->error = -EACCES;
	assert_int_equal(store_open_custom(d, &all_of_it, b, &s), -EACCES);
	b->error = 0;
	b->size = STORE_SIZE_MAX + 1;
	assert_int_equal(store_open_custom(d, &all_of_it, b, &s), -EFBIG);
	assert_int_equal(b->closes, 0); /* it was never opened */
	b->size = 12345;
	s = open_on(d, &all_of_it, b);
	assert_int_equal(store_size(s), 12345);
	assert_true(store_any_written(s, 3, 1));
	assert_false(store_any_written(s, 4, 1000));
	assert_int_equal(store_next(s, 1, 10, true), 1);
	assert_int_equal(store_next(s, 1, 10, false), 4);
	assert_int_equal(store_next(s, 5, 10, true), 10);
	close_it(s, b);
}

/* --- errors --- */

static void test_errors(void **state)
{
	static const int errors[] = { -EIO, -ENOSPC, -ENXIO, -ENODEV, -ETIMEDOUT };
	struct backing *b = backing_new(1);
	struct store *s = open_on(real_device("auto", "1"), &all_of_it, b);
	struct real_io io = { .buf = real_buffer(8192) };
	struct rng r;

	(void)state;
	rng_init(&r, 1);
	for (unsigned i = 0; i < ARRAY_SIZE(errors); i++) {
		b->error = errors[i];
		real_submit(&io, s, IO_WRITE, 0, 8192, 512, &r);
		assert_int_equal(real_wait(&io), errors[i]);
		real_submit(&io, s, IO_READ, 0, 8192, 512, &r);
		assert_int_equal(real_wait(&io), errors[i]);
		assert_int_equal(store_truncate(s, 100), errors[i]);
		assert_int_equal(store_size(s), 0);
		assert_int_equal(store_reserve(s, 0, 100), errors[i]);
		assert_int_equal(store_lay_out(s, 100), errors[i]);
	}
	b->error = 0;
	assert_int_equal(store_reserve(s, 5, 100), 0);
	assert_int_equal(b->reserved_to, 105);
	b->reserved_to = 0;
	assert_int_equal(store_reserve(s, 6, 99), 0); /* known: nobody is asked */
	assert_int_equal(b->reserved_to, 0);
	assert_int_equal(store_truncate(s, 50), 0);
	assert_int_equal(store_reserve(s, 6, 99), 0);
	assert_int_equal(b->reserved_to, 105);
	assert_int_equal(store_truncate(s, 0), 0);
	assert_int_equal(store_reserve(s, 0, REAL_BYTES + 1), -ENOSPC);
	b->answer = 1; /* write says 0: no progress, for ever */
	assert_int_equal(real_transfer(s, IO_WRITE, 0, io.buf, 4096), -EIO);
	b->answer = 4096 + 2; /* more than was asked for: nonsense */
	assert_int_equal(real_transfer(s, IO_WRITE, 0, io.buf, 4096), -EIO);
	assert_int_equal(real_transfer(s, IO_READ, 0, io.buf, 4096), -EIO);
	b->answer = -EAGAIN + 1; /* not now, and never */
	assert_int_equal(real_transfer(s, IO_READ, 0, io.buf, 4096), -EAGAIN);
	b->answer = 0;
	assert_int_equal(real_transfer(s, IO_WRITE, 0, io.buf, 4096), 0);
	assert_int_equal(b->size, 4096);
	free(io.buf);
	close_it(s, b);
}

/* What a flush could not make safe is not made safe by asking again. */
static void test_failed_flush_is_remembered(void **state)
{
	struct backing *b = backing_new(1);
	struct store *s = open_on(real_device("auto", "1"), &all_of_it, b);

	(void)state;
	b->interrupted = true;
	assert_int_equal(real_flush(s), 0);
	assert_true(b->flushes >= 1);
	b->interrupted = false;
	b->error = -EIO;
	assert_int_equal(real_flush(s), -EIO);
	b->error = -ENOSPC;
	assert_int_equal(real_flush(s), -EIO);
	b->error = 0;
	b->flushes = 0;
	assert_int_equal(real_flush(s), -EIO);
	assert_int_equal(b->flushes, 0);
	close_it(s, b);
}

/* --- how it is called --- */

static void test_calls_are_not_too_long(void **state)
{
	const char *settings[] = { "max_io_kb", "64", NULL };
	struct backing *b = backing_new(1);
	int rc;
	struct device *d = real_device_try(&rc, settings);
	struct store *s = open_on(d, &all_of_it, b);
	u8 *buf = real_buffer(REAL_BYTES);

	(void)state;
	assert_int_equal(real_transfer(s, IO_WRITE, 0, buf, 1 << 20), 0);
	assert_int_equal(b->longest, 65536);
	assert_int_equal(b->calls, 16);
	assert_int_equal(real_transfer(s, IO_READ, 100, buf, 65536 + 4096), 0);
	assert_int_equal(b->longest, 65536);
	assert_int_equal(b->calls, 18);
	free(buf);
	close_it(s, b);
}

/* A backing that lets nobody out until `wanted` are inside. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	u32 inside, most, wanted;
} gate = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static ssize_t gate_read(void *ctx, const struct iovec *vec, unsigned count, u64 offset)
{
	(void)ctx;
	(void)offset;
	assert_int_equal(count, 1);
	pthread_mutex_lock(&gate.lock);
	gate.inside++;
	gate.most = (u32)max_u64(gate.most, gate.inside);
	pthread_cond_broadcast(&gate.changed);
	while (gate.most < gate.wanted)
		pthread_cond_wait(&gate.changed, &gate.lock);
	gate.inside--;
	pthread_mutex_unlock(&gate.lock);
	memset(vec->iov_base, 1, vec->iov_len);
	return (ssize_t)vec->iov_len;
}

#define GATE_IOS 100

static void pass_gate(const char *depth, u32 wanted)
{
	static struct real_io io[GATE_IOS];
	const struct store_backing ops = { .read = gate_read };
	const char *settings[] = { "queue_depth", depth, NULL };
	struct rng r;
	int rc;
	struct device *d = real_device_try(&rc, settings);
	struct store *s = open_on(d, &ops, NULL);

	rng_init(&r, 1);
	gate.most = 0;
	gate.wanted = wanted;
	for (unsigned i = 0; i < GATE_IOS; i++) {
		io[i].buf = real_buffer(512);
		real_submit(&io[i], s, IO_READ, 0, 512, 512, &r);
	}
	for (unsigned i = 0; i < GATE_IOS; i++) {
		assert_int_equal(real_wait(&io[i]), 0);
		assert_int_equal(io[i].buf[511], 1);
		free(io[i].buf);
	}
	assert_int_equal(gate.most, wanted); /* no more than that, either */
	store_destroy(s);
	device_destroy(d);
}

/* Calls that block do not hold others up, as far as the pool goes. */
static void test_pool_grows(void **state)
{
	(void)state;
	pass_gate("1", 1);
	pass_gate("8", 8);
	pass_gate("256", 32);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_short_transfers),
		cmocka_unit_test(test_interruptions),
		cmocka_unit_test(test_single_bytes),
		cmocka_unit_test(test_absent),
		cmocka_unit_test(test_opening),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_failed_flush_is_remembered),
		cmocka_unit_test(test_calls_are_not_too_long),
		cmocka_unit_test(test_pool_grows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
