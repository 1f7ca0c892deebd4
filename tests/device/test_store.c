// SPDX-License-Identifier: MIT
/* Stores against plain arrays, on the device that takes no time, in the real world. */
#include "base/bits.h"
#include "base/rng.h"
#include "rig.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define BYTES (5u << 20) /* three leaves of 2 MiB, the last not full */
#define PAGES (BYTES / PAGE_SIZE)

/* What the store should be. */
struct model {
	u8 bytes[BYTES];
	bool written[PAGES];
	u64 size;
};

static struct store *memory_store(bool contents)
{
	struct device_config c;

	assert_int_equal(device_config_init(&c, "memory"), 0);
	return rig_store(&c, contents);
}

/* A range within the store: mostly small, now and then large. */
static void pick(struct rng *r, u64 *offset, u64 *length)
{
	*offset = rng_below(r, BYTES);
	*length = 1 + rng_below(r, rng_below(r, 50) ? 3 * PAGE_SIZE : BYTES);
	*length = min_u64(*length, BYTES - *offset);
	if (rng_below(r, 3) == 0) {
		*offset = round_down(*offset, PAGE_SIZE);
		*length = round_up(*length, PAGE_SIZE);
	}
}

/* Submits a read or write of buf through a vector cut at random places. */
static void transfer(struct store *s, struct rng *r, enum io_op op, u64 offset, u8 *buf, u64 length)
{
	struct iovec vec[4];
	struct rig_io io;
	u32 n = 0;
	u64 done = 0;

	while (done < length) {
		u64 piece = n == 3 ? length - done : 1 + rng_below(r, length - done);

		vec[n++] = (struct iovec){ buf + done, piece };
		done += piece;
	}
	rig_io_init(&io, s, op, offset, (u32)length);
	io.io.vec = vec;
	io.io.vec_count = n;
	device_submit(store_device(s), &io.io);
	assert_int_equal(io.ends, 1);
	assert_int_equal(io.error, 0);
}

static void do_write(struct store *s, struct model *m, struct rng *r, u8 *buf)
{
	u64 offset, length;

	pick(r, &offset, &length);
	for (u64 i = 0; i < length; i += sizeof(u64)) {
		u64 word = rng_u64(r) | 0x0101010101010101; /* no byte is zero */

		memcpy(buf + i, &word, min_u64(sizeof(word), length - i));
	}
	transfer(s, r, IO_WRITE, offset, buf, length);
	memcpy(m->bytes + offset, buf, length);
	for (u64 p = offset / PAGE_SIZE; p * PAGE_SIZE < offset + length; p++)
		m->written[p] = true;
	m->size = max_u64(m->size, offset + length);
}

static void do_truncate(struct store *s, struct model *m, struct rng *r)
{
	u64 size = rng_below(r, 4) ? rng_below(r, BYTES + 1) : 0;

	if (rng_below(r, 2))
		size = max_u64(size, m->size); /* keep it from being empty most of the time */
	if (rng_below(r, 2))
		size = round_down(size, 512);
	assert_int_equal(store_truncate(s, size), 0);
	if (size < m->size)
		memset(m->bytes + size, 0, BYTES - size);
	if (size < m->size)
		for (u64 p = div_roundup(size, PAGE_SIZE); p < PAGES; p++)
			m->written[p] = false;
	m->size = size;
}

static void do_punch(struct store *s, struct model *m, struct rng *r)
{
	u64 page = rng_below(r, PAGES), n = 1 + rng_below(r, rng_below(r, 20) ? 8 : 700);

	n = min_u64(n, PAGES - page);
	assert_int_equal(store_punch(s, page, n), 0);
	memset(m->bytes + page * PAGE_SIZE, 0, n * PAGE_SIZE);
	memset(m->written + page, 0, n * sizeof(bool));
}

static void check_next(struct store *s, const struct model *m, u64 page, u64 end)
{
	u64 data = page, hole = page;

	while (data < end && !m->written[data])
		data++;
	while (hole < end && m->written[hole])
		hole++;
	assert_int_equal(store_next(s, page, end, true), data);
	assert_int_equal(store_next(s, page, end, false), hole);
}

static void check(struct store *s, struct model *m, struct rng *r, u8 *buf)
{
	u64 offset, length, page = rng_below(r, PAGES);
	u64 n = min_u64(1 + rng_below(r, rng_below(r, 4) ? 4 : PAGES), PAGES - page);

	assert_int_equal(store_size(s), m->size);
	assert_int_equal(store_any_written(s, page, n), !!memchr(m->written + page, true, n));
	check_next(s, m, page, page + n);
	pick(r, &offset, &length);
	if (length > 8 * PAGE_SIZE && rng_below(r, 20))
		length = 8 * PAGE_SIZE;
	if (rng_below(r, 2))
		store_peek(s, offset, buf, length);
	else
		transfer(s, r, IO_READ, offset, buf, length);
	assert_memory_equal(buf, m->bytes + offset, length);
}

static void test_contents_against_an_array(void **state)
{
	struct store *s = memory_store(true);
	struct model *m = calloc(1, sizeof(*m));
	u8 *buf = malloc(BYTES);
	struct rng r;

	(void)state;
	rng_init(&r, 20240607);
	for (unsigned i = 0; i < 100000; i++) {
		u64 what = rng_below(&r, 100);

		if (what < 55)
			check(s, m, &r, buf);
		else if (what < 90)
			do_write(s, m, &r, buf);
		else if (what < 99)
			do_punch(s, m, &r);
		else if (!rng_below(&r, 10))
			do_truncate(s, m, &r);
	}
	store_peek(s, 0, buf, BYTES);
	assert_memory_equal(buf, m->bytes, BYTES);
	for (u64 p = 0; p < PAGES; p++)
		assert_int_equal(store_any_written(s, p, 1), m->written[p]);
	free(buf);
	free(m);
	rig_close(s);
}

/* 400 pages from all over the largest store, edges of words, leaves and nodes among them. */
#define SPOTS 400

static int compare_u64(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static void pick_spots(struct rng *r, u64 spot[SPOTS])
{
	for (unsigned i = 0; i < SPOTS; i++) {
		u64 edge = 1ull << rng_below(r, 32), at = rng_below(r, 1ull << 31);

		spot[i] = i % 2 ? at : round_down(at, edge) + rng_below(r, 2) * (edge - 1);
		spot[i] = min_u64(spot[i], (1ull << 31) - 1);
	}
	spot[0] = 0;
	spot[1] = (1ull << 31) - 1;
	qsort(spot, SPOTS, sizeof(*spot), compare_u64);
}

static void test_map_of_a_huge_store(void **state)
{
	struct store *s = memory_store(false);
	u64 spot[SPOTS];
	bool written[SPOTS] = { false };
	struct rng r;

	(void)state;
	rng_init(&r, 7);
	pick_spots(&r, spot);
	for (unsigned i = 0; i < 20000; i++) {
		unsigned first = (unsigned)rng_below(&r, SPOTS);
		unsigned n = 1 + (unsigned)rng_below(&r, min_u64(SPOTS - first, 9));
		u64 page = spot[first], pages = spot[first + n - 1] - page + 1;
		struct rig_io io;

		if (rng_below(&r, 3)) {
			rig_submit(&io, s, IO_WRITE, page * PAGE_SIZE, PAGE_SIZE);
			assert_int_equal(io.error, 0);
			for (unsigned j = 0; j < SPOTS; j++)
				written[j] |= spot[j] == page;
		} else if (rng_below(&r, 3)) {
			store_punch(s, page, pages);
			for (unsigned j = 0; j < SPOTS; j++)
				if (spot[j] >= page && spot[j] < page + pages)
					written[j] = false;
		}
		first = (unsigned)rng_below(&r, SPOTS);
		n = 1 + (unsigned)rng_below(&r, SPOTS - first);
		assert_int_equal(
			store_any_written(s, spot[first], spot[first + n - 1] - spot[first] + 1),
			!!memchr(written + first, true, n));
		for (n = first; n < SPOTS && !written[n]; n++)
			;
		assert_int_equal(store_next(s, spot[first], ~0ull, true),
				 n < SPOTS ? spot[n] : ~0ull);
	}
	rig_close(s);
}

static void test_sizes(void **state)
{
	struct store *s = memory_store(true);
	struct rig_io io;
	u8 buf[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	struct iovec vec = { buf, sizeof(buf) };

	(void)state;
	assert_int_equal(store_size(s), 0);
	assert_false(store_any_written(s, 0, ~0ull));
	rig_io_init(&io, s, IO_WRITE, STORE_SIZE_MAX - 8, 8);
	io.io.vec = &vec;
	io.io.vec_count = 1;
	device_submit(store_device(s), &io.io);
	assert_int_equal(io.error, 0);
	assert_int_equal(store_size(s), STORE_SIZE_MAX);
	assert_true(store_any_written(s, 0, ~0ull));
	assert_false(store_any_written(s, 0, (1ull << 31) - 1));
	memset(buf, 9, sizeof(buf));
	store_peek(s, STORE_SIZE_MAX - 6, buf, 6);
	assert_memory_equal(buf, ((u8[]){ 3, 4, 5, 6, 7, 8 }), 6);
	store_peek(s, STORE_SIZE_MAX - 4, buf, 8);
	assert_memory_equal(buf, ((u8[]){ 5, 6, 7, 8, 0, 0, 0, 0 }), 8);
	rig_submit(&io, s, IO_WRITE, STORE_SIZE_MAX - 8, 9);
	assert_int_equal(io.error, -EFBIG);
	rig_submit(&io, s, IO_WRITE, STORE_SIZE_MAX + 1, 1);
	assert_int_equal(io.error, -EFBIG);
	assert_int_equal(store_size(s), STORE_SIZE_MAX);
	assert_int_equal(store_truncate(s, STORE_SIZE_MAX + 1), -EFBIG);
	assert_int_equal(store_truncate(s, STORE_SIZE_MAX - 3), 0);
	assert_int_equal(store_truncate(s, STORE_SIZE_MAX), 0);
	store_peek(s, STORE_SIZE_MAX - 8, buf, 8);
	assert_memory_equal(buf, ((u8[]){ 1, 2, 3, 4, 5, 0, 0, 0 }), 8);
	assert_int_equal(store_truncate(s, 0), 0);
	assert_false(store_any_written(s, 0, ~0ull));
	rig_close(s);
}

static void test_lay_out(void **state)
{
	struct store *s = memory_store(true);
	struct rig_io io;
	u8 buf[4] = { 1, 2, 3, 4 };
	struct iovec vec = { buf, sizeof(buf) };

	(void)state;
	rig_io_init(&io, s, IO_WRITE, PAGE_SIZE, 4);
	io.io.vec = &vec;
	io.io.vec_count = 1;
	device_submit(store_device(s), &io.io);
	assert_int_equal(store_lay_out(s, 0), 0);
	assert_int_equal(store_size(s), PAGE_SIZE + 4);
	assert_int_equal(store_lay_out(s, 3 * PAGE_SIZE + 1), 0);
	assert_int_equal(store_size(s), 3 * PAGE_SIZE + 1);
	for (u64 p = 0; p < 4; p++)
		assert_true(store_any_written(s, p, 1));
	assert_false(store_any_written(s, 4, ~0ull));
	memset(buf, 9, sizeof(buf));
	store_peek(s, PAGE_SIZE + 2, buf, 4);
	assert_memory_equal(buf, ((u8[]){ 3, 4, 0, 0 }), 4);
	assert_int_equal(store_lay_out(s, STORE_SIZE_MAX + 1), -EFBIG);
	assert_int_equal(store_lay_out(s, 1), 0);
	assert_int_equal(store_size(s), 3 * PAGE_SIZE + 1);
	rig_close(s);
}

/* Writes without bytes mark pages; readers of a store without contents get zeros. */
static void test_without_bytes(void **state)
{
	struct store *s = memory_store(false), *t = memory_store(true);
	struct rig_io io;
	u8 buf[4] = { 1, 2, 3, 4 };
	struct iovec vec = { buf, sizeof(buf) };

	(void)state;
	rig_submit(&io, s, IO_WRITE, 100, PAGE_SIZE);
	assert_true(store_any_written(s, 0, 1) && store_any_written(s, 1, 1));
	assert_false(store_any_written(s, 2, 1));
	assert_int_equal(store_size(s), 100 + PAGE_SIZE);
	rig_io_init(&io, s, IO_WRITE, 100, 4);
	io.io.vec = &vec;
	io.io.vec_count = 1;
	device_submit(store_device(s), &io.io);
	store_peek(s, 100, buf, 4);
	assert_memory_equal(buf, ((u8[]){ 0, 0, 0, 0 }), 4);

	memcpy(buf, (u8[]){ 1, 2, 3, 4 }, 4);
	io.io.store = t;
	device_submit(store_device(t), &io.io);
	rig_submit(&io, t, IO_WRITE, 0, 2 * PAGE_SIZE);
	store_peek(t, 99, buf, 4);
	assert_memory_equal(buf, ((u8[]){ 0, 1, 2, 3 }), 4);
	assert_true(store_any_written(t, 1, 1));
	rig_close(s);
	rig_close(t);
}

static int refuse_odd(void *ctx, const struct io *io)
{
	++*(unsigned *)ctx;
	return io->offset_bytes / PAGE_SIZE % 2 ? -EIO : 0;
}

static void test_faults(void **state)
{
	struct store *s = memory_store(true);
	struct device *d = store_device(s);
	u8 buf[4] = { 1, 2, 3, 4 };
	struct iovec vec = { buf, sizeof(buf) };
	struct rig_io io;
	unsigned asked = 0;

	(void)state;
	device_set_fault(d, refuse_odd, &asked);
	rig_io_init(&io, s, IO_WRITE, PAGE_SIZE, 4);
	io.io.vec = &vec;
	io.io.vec_count = 1;
	assert_int_equal(device_submit_wait(d, &io.io), -EIO);
	assert_int_equal(io.io.error, -EIO);
	assert_int_equal(io.ends, 0); /* the caller waits: its own end() is not called */
	assert_int_equal(store_size(s), 0);
	assert_false(store_any_written(s, 0, ~0ull));
	device_submit(d, &io.io);
	assert_int_equal(io.ends, 1);
	assert_int_equal(io.error, -EIO);
	io.io.offset_bytes = 0;
	assert_int_equal(device_submit_wait(d, &io.io), 0);
	assert_int_equal(store_size(s), 4);
	assert_int_equal(asked, 3);
	device_set_fault(d, NULL, NULL);
	io.io.offset_bytes = PAGE_SIZE;
	assert_int_equal(device_submit_wait(d, &io.io), 0);
	assert_int_equal(asked, 3);
	/* A read that fails leaves the reader's bytes alone. */
	device_set_fault(d, refuse_odd, &asked);
	memset(buf, 7, sizeof(buf));
	io.io.op = IO_READ;
	assert_int_equal(device_submit_wait(d, &io.io), -EIO);
	assert_memory_equal(buf, ((u8[]){ 7, 7, 7, 7 }), 4);
	rig_close(s);
}

#define THREADS 3
#define ROUNDS  2000

static struct store *shared;

/* Each thread has every third page, in the same leaves as its neighbours. */
static void *thread_main(void *arg)
{
	unsigned id = *(unsigned *)arg;
	u8 buf[PAGE_SIZE], back[PAGE_SIZE];
	struct iovec vec = { buf, sizeof(buf) };
	struct rig_io io;

	for (unsigned i = 0; i < ROUNDS; i++) {
		u64 page = (u64)(i % 500) * THREADS + id;

		memset(buf, (int)(i % 251 + id), sizeof(buf));
		memset(&io, 0, sizeof(io));
		io.io.store = shared;
		io.io.op = IO_WRITE;
		io.io.offset_bytes = page * PAGE_SIZE;
		io.io.length_bytes = PAGE_SIZE;
		io.io.vec = &vec;
		io.io.vec_count = 1;
		if (device_submit_wait(store_device(shared), &io.io))
			abort();
		store_peek(shared, page * PAGE_SIZE, back, sizeof(back));
		if (memcmp(buf, back, sizeof(buf)))
			abort();
		if (i % 7 == 0)
			store_punch(shared, page, 1);
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t thread[THREADS];
	unsigned id[THREADS];
	struct device_stats stats;

	(void)state;
	shared = memory_store(true);
	for (unsigned i = 0; i < THREADS; i++) {
		id[i] = i;
		assert_int_equal(pthread_create(&thread[i], NULL, thread_main, &id[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	device_stats(store_device(shared), &stats);
	assert_int_equal(stats.writes, THREADS * ROUNDS);
	assert_int_equal(stats.write_bytes, (u64)THREADS * ROUNDS * PAGE_SIZE);
	assert_int_equal(stats.in_flight, 0);
	rig_close(shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_contents_against_an_array),
		cmocka_unit_test(test_map_of_a_huge_store),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_lay_out),
		cmocka_unit_test(test_without_bytes),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
