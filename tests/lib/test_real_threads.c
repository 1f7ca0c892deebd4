// SPDX-License-Identifier: MIT
/*
 * Threads that nobody registered, on everything at once: several on each file, caches small enough
 * that all is throttled and reclaimed. Each byte read is one that was written there.
 */
#include "rig.h"

#define THREADS 4
#define FILES   3
#define BLOCK   4096u
#define BLOCKS  512u /* of a file: 2 MiB */

static struct sluice *cache;
static struct bucket *bucket;
static _Atomic unsigned calls;

struct worker {
	pthread_t thread;
	unsigned number, steps;
	uint64_t random;
};

static uint64_t next_random(struct worker *w)
{
	w->random ^= w->random << 13; /* xorshift (Marsaglia 2003) */
	w->random ^= w->random >> 7;
	return w->random ^= w->random << 17;
}

/* A block says of itself where it is, in which file; all its words the same, or nobody wrote it. */
static void fill(uint64_t *block, unsigned file, uint64_t number)
{
	for (unsigned i = 0; i < BLOCK / 8; i++)
		block[i] = (uint64_t)(file + 1) << 32 | number;
}

static void check(const uint64_t *block, unsigned file, uint64_t number)
{
	uint64_t right = (uint64_t)(file + 1) << 32 | number;

	if (block[0] != 0 && block[0] != right)
		fail_msg("block %llu of file %u: %llx", (unsigned long long)number, file,
			 (unsigned long long)block[0]);
	for (unsigned i = 1; i < BLOCK / 8; i++)
		if (block[i] != 0 && block[i] != right)
			fail_msg("a torn block of somebody else's");
}

static struct sluice_file *open_one(unsigned file)
{
	static const char *const names[] = { "f", "g" };

	return file < 2 ? rig_open(cache, names[file], O_RDWR | O_CREAT)
			: bucket_open(cache, bucket, O_RDWR);
}

static void step(struct worker *w, struct sluice_file *f, unsigned file)
{
	uint64_t block[BLOCK / 8], r = next_random(w), number = r % BLOCKS, at = number * BLOCK;
	struct sluice_loan *loan;
	struct iovec iov[4];
	ssize_t n;

	switch (r >> 32 & 31) {
	case 0:
		assert_int_equal(sluice_fsync(f), 0);
		break;
	case 1:
		assert_int_equal(sluice_advise(f, at, 64 * KIB, SLUICE_DONTNEED), 0);
		break;
	case 2:
		assert_int_equal(sluice_advise(f, at, 64 * KIB, SLUICE_WILLNEED), 0);
		break;
	case 3:
		assert_int_equal(sluice_truncate(f, at + BLOCK), 0);
		break;
	case 4:
		assert_true(sluice_sync_file_range(f, at, 64 * KIB, SLUICE_WRITE) == 0);
		break;
	case 5:
		assert_true(rig_stats(cache).memory_bytes >= 16 * MIB);
		break;
	case 6:
		n = sluice_borrow(f, iov, 4, BLOCK, at, 0, &loan);
		assert_true(n >= 0 || n == -ENOBUFS);
		if (n > 0)
			sluice_give_back(loan);
		break;
	case 7:
		if (w->number == 0 && r >> 40 & 1)
			assert_int_equal(sluice_sync(cache, NULL, NULL), 0);
		break;
	case 8:
		fill(block, file, number);
		n = sluice_pwrite(f, block, BLOCK, at, SLUICE_NOWAIT);
		assert_true(n == BLOCK || n == -EAGAIN);
		break;
	case 9:
		fill(block, file, number);
		assert_int_equal(sluice_pwrite(f, block, BLOCK, at, SLUICE_DSYNC), BLOCK);
		break;
	case 10 ... 19:
		fill(block, file, number);
		assert_int_equal(sluice_pwrite(f, block, BLOCK, at, 0), BLOCK);
		break;
	default:
		n = sluice_pread(f, block, BLOCK, at, 0);
		assert_true(n == 0 || n == BLOCK);
		if (n)
			check(block, file, number);
		break;
	}
	atomic_fetch_add(&calls, 1);
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (unsigned i = 0; i < w->steps; i++) {
		unsigned file = (unsigned)(next_random(w) % FILES);
		struct sluice_file *f = open_one(file);

		for (unsigned k = 0; k < 40; k++)
			step(w, f, file);
		assert_int_equal(sluice_close(f), 0);
	}
	return NULL;
}

static void hammer(const char *const *settings)
{
	struct worker w[THREADS];
	struct sluice_file *kept;
	unsigned steps = getenv("SLUICE_SOAK") ? 2000 : 25;

	cache = rig_cache(settings);
	bucket = bucket_new();
	kept = bucket_open(cache, bucket, O_RDWR);
	for (unsigned i = 0; i < THREADS; i++) {
		w[i] = (struct worker){ .number = i,
					.steps = steps,
					.random = 88172645463325252 + i * 77 };
		assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(w[i].thread, NULL);
	assert_int_equal(sluice_sync(cache, NULL, NULL), 0);
	assert_int_equal(rig_stats(cache).debt_bytes, 0);
	assert_int_equal(rig_stats(cache).files_open, 1);
	assert_int_equal(sluice_close(kept), 0);
	assert_int_equal(bucket->releases, 1);
	assert_int_equal(sluice_destroy(cache, NULL, NULL), 0);
	assert_int_equal(calls, THREADS * steps * 40);
	calls = 0;
	bucket_free(bucket);
}

static void test_hammering(void **state)
{
	(void)state;
	hammer(GIVEN("memory=16M", "vm.dirty_bytes=1M", "vm.dirty_background_bytes=256K"));
}

static void test_hammering_as_linux(void **state)
{
	(void)state;
	hammer(GIVEN("memory=16M", "policy=linux-7.4", "io_engine=threads", "block_bytes=1024",
		     "vm.dirty_bytes=4M", "vm.dirty_background_bytes=1M"));
}

/* Appends of many threads: each whole, none over another. */
#define APPENDS 300u

static void *append(void *arg)
{
	struct sluice_file *f = rig_open(cache, "h", O_WRONLY | O_APPEND);
	uint64_t record[20], at;
	const struct iovec iov[2] = { { record, 40 }, { record + 5, 120 } };

	for (uint64_t n = 0; n < APPENDS; n++) {
		for (unsigned i = 0; i < 20; i++)
			record[i] = *(unsigned *)arg * 1000 + n;
		assert_int_equal(sluice_append(f, iov, 2, 0, &at), sizeof(record));
		assert_int_equal(at % sizeof(record), 0);
	}
	assert_int_equal(sluice_close(f), 0);
	return NULL;
}

static void test_appends_are_atomic(void **state)
{
	static unsigned number[THREADS] = { 0, 1, 2, 3 };
	uint64_t next[THREADS] = { 0 }, record[20];
	struct sluice_file *f;
	pthread_t t[THREADS];

	(void)state;
	cache = rig_cache(NULL);
	f = rig_open(cache, "h", O_RDWR | O_CREAT | O_TRUNC);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, append, &number[i]), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(sluice_size(f), THREADS * APPENDS * sizeof(record));
	for (uint64_t at = 0; at < sluice_size(f); at += sizeof(record)) {
		uint64_t who;

		assert_int_equal(sluice_pread(f, record, sizeof(record), at, 0), sizeof(record));
		who = record[0] / 1000;
		assert_true(who < THREADS);
		assert_int_equal(record[0] % 1000, next[who]++);
		for (unsigned i = 1; i < 20; i++)
			assert_int_equal(record[i], record[0]);
	}
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_destroy(cache, NULL, NULL), 0);
}

static ssize_t slow_write(void *ctx, const struct iovec *iov, int count, uint64_t offset)
{
	usleep(2000);
	return bucket_write(ctx, iov, count, offset);
}

/* A writer faster than its disk is paced, and told of. */
static void test_a_throttled_writer_leaves_a_trace(void **state)
{
	struct sluice_store store = bucket_store;
	struct sluice_event e[64];
	struct sluice_file *f;
	uint64_t lost = 99, pauses_ms = 0, looks = 0, then = 0;
	ssize_t n;
	char text[512];

	(void)state;
	store.write = slow_write;
	cache = rig_cache(GIVEN("memory=16M", "vm.dirty_bytes=512K", "policy=linux-7.4",
				"vm.dirty_background_bytes=128K", "max_io_kb=16"));
	bucket = bucket_new();
	assert_int_equal(sluice_trace_read(cache, e, 64, &lost), -ENODATA);
	assert_int_equal(sluice_trace_stop(cache), -ENODATA);
	assert_int_equal(sluice_trace_start(cache, (1 << 18) + 1), -EINVAL);
	assert_int_equal(sluice_trace_start(cache, 10000), 0);
	assert_int_equal(sluice_trace_start(cache, 0), -EBUSY);
	assert_int_equal(sluice_open_store(cache, &store, bucket, 0, O_RDWR, &f), 0);
	for (uint64_t at = 0; at < 4 * MIB; at += 64 * KIB)
		rig_write(f, at, 64 * KIB, 1);
	while ((n = sluice_trace_read(cache, e, 64, &lost)) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			assert_true(e[i].time_ns >= then);
			then = e[i].time_ns;
			assert_true(sluice_event_print(&e[i], text, sizeof(text)) > 0);
			if (strcmp(sluice_event_name(e[i].kind), "balance_dirty_pages") != 0)
				continue;
			assert_string_equal(sluice_event_field(e[i].kind, 11), "pause");
			assert_int_equal(e[i].thread, gettid());
			pauses_ms += e[i].field[11] > 0 ? (uint64_t)e[i].field[11] : 0;
			looks++;
		}
	}
	assert_int_equal(n, 0);
	assert_int_equal(lost, 0);
	assert_int_equal(looks, rig_stats(cache).throttle_calls);
	assert_true(pauses_ms > 0);
	assert_int_equal(pauses_ms, rig_stats(cache).throttle_sleep_ns / 1000000);
	assert_int_equal(sluice_trace_stop(cache), 0);
	assert_null(sluice_event_name(1000));
	e[0].kind = 1000;
	assert_int_equal(sluice_event_print(&e[0], text, sizeof(text)), -EINVAL);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_destroy(cache, NULL, NULL), 0);
	bucket_free(bucket);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hammering),
		cmocka_unit_test(test_hammering_as_linux),
		cmocka_unit_test(test_appends_are_atomic),
		cmocka_unit_test(test_a_throttled_writer_leaves_a_trace),
	};

	return cmocka_run_group_tests(tests, rig_begin, rig_end);
}
