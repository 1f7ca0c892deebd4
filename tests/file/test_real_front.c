// SPDX-License-Identifier: MIT
/*
 * Threads that share two files and do to them whatever can be done. Of the first each thread owns
 * every THREADS-th stripe, whose bytes it knows; to the second all append records that tell who
 * wrote them. Besides, limits change, and syncs are begun and left.
 */
#include "base/rng.h"
#include "real_rig.h"

#define THREADS      4
#define STRIPE       10000 /* no multiple of a block */
#define STRIPES      64
#define ROUNDS       (getenv("SLUICE_SOAK") ? 20000u : 1000u)
#define RECORD_BYTES 3000
#define PUNCH        (FILE_PUNCH_HOLE | FILE_KEEP_SIZE)

struct shared {
	struct real *r;
};

struct worker {
	struct shared *s;
	u32 number, records;
	struct rng rng;
	struct file *f, *log;
	u8 bytes[STRIPES / THREADS][STRIPE]; /* what its stripes hold */
	u8 buf[STRIPE];
};

static u64 offset_of(const struct worker *w, u32 stripe)
{
	return (u64)(stripe * THREADS + w->number) * STRIPE;
}

/* Part of a stripe. */
static void draw(struct worker *w, u32 *stripe, u64 *from, u64 *length)
{
	*stripe = (u32)rng_below(&w->rng, STRIPES / THREADS);
	*from = rng_below(&w->rng, STRIPE);
	*length = 1 + rng_below(&w->rng, STRIPE - *from);
}

static unsigned draw_flags(struct worker *w)
{
	static const unsigned flags[] = { 0, 0, FILE_IO_DONTCACHE, FILE_IO_NOWAIT,
					  FILE_IO_NOWAIT | FILE_IO_DONTCACHE };

	return flags[rng_below(&w->rng, ARRAY_SIZE(flags))];
}

static void do_write(struct worker *w)
{
	unsigned flags = rng_below(&w->rng, 20) ? draw_flags(w) : FILE_IO_DSYNC;
	u64 from, length;
	u32 stripe;
	ssize_t n;

	draw(w, &stripe, &from, &length);
	memset(w->buf, (int)rng_below(&w->rng, 256), length);
	n = file_pwritev(w->f,
			 (struct iovec[]){ { w->buf, length / 3 },
					   { w->buf + length / 3, length - length / 3 } },
			 2, offset_of(w, stripe) + from, flags);
	if (n == -EAGAIN && flags & FILE_IO_NOWAIT)
		return;
	assert_true(n > 0 && (u64)n <= length);
	assert_true((u64)n == length || flags & FILE_IO_NOWAIT);
	memcpy(w->bytes[stripe] + from, w->buf, (size_t)n);
}

static void do_read(struct worker *w)
{
	unsigned flags = draw_flags(w);
	u64 from, length;
	u32 stripe;
	ssize_t n;

	draw(w, &stripe, &from, &length);
	n = file_preadv(w->f,
			(struct iovec[]){ { w->buf, length / 2 },
					  { w->buf + length / 2, length - length / 2 } },
			2, offset_of(w, stripe) + from, flags);
	if (n == -EAGAIN && flags & FILE_IO_NOWAIT)
		return;
	assert_true(n > 0);
	assert_true((u64)n == length || flags & FILE_IO_NOWAIT);
	assert_memory_equal(w->buf, w->bytes[stripe] + from, (size_t)n);
}

static void do_borrow(struct worker *w)
{
	struct file_loan *loan;
	struct iovec iov[4];
	u64 from, length;
	u32 stripe;
	ssize_t n;

	draw(w, &stripe, &from, &length);
	n = file_borrow(w->f, offset_of(w, stripe) + from, length, iov, 4, 0, &loan);
	if (n == -ENOBUFS)
		return;
	assert_true(n > 0 && (u64)n <= length);
	for (unsigned i = 0; n > 0; n -= (ssize_t)iov[i++].iov_len) {
		assert_memory_equal(iov[i].iov_base, w->bytes[stripe] + from, iov[i].iov_len);
		from += iov[i].iov_len;
	}
	file_give_back(loan);
}

static void do_punch(struct worker *w)
{
	unsigned mode = rng_below(&w->rng, 2) ? PUNCH : FILE_ZERO_RANGE;
	u64 from, length;
	u32 stripe;

	draw(w, &stripe, &from, &length);
	assert_int_equal(file_fallocate(w->f, mode, offset_of(w, stripe) + from, length), 0);
	memset(w->bytes[stripe] + from, 0, length);
}

static void do_append(struct worker *w)
{
	u64 at;

	memset(w->buf, (int)w->number + 1, RECORD_BYTES);
	assert_int_equal(file_append(w->log, &(struct iovec){ w->buf, RECORD_BYTES }, 1,
				     rng_below(&w->rng, 2) ? FILE_IO_DONTCACHE : 0, &at),
			 RECORD_BYTES);
	assert_int_equal(at % RECORD_BYTES, 0);
	w->records++;
	at = rng_below(&w->rng, at / RECORD_BYTES + 1) * RECORD_BYTES;
	assert_int_equal(file_pread(w->log, w->buf, RECORD_BYTES, at), RECORD_BYTES);
	assert_in_range(w->buf[0], 1, THREADS);
	for (unsigned i = 1; i < RECORD_BYTES; i++)
		assert_int_equal(w->buf[i], w->buf[0]);
}

static int leave(void *ctx, u64 pages)
{
	(void)pages;
	return (*(u32 *)ctx)-- == 0;
}

static void do_other(struct worker *w)
{
	struct engine *e = w->s->r->e;
	struct vm_settings vm;
	u32 calls = (u32)rng_below(&w->rng, 3);
	u64 at = rng_below(&w->rng, STRIPES * STRIPE);
	s64 hole;
	int rc;

	switch (rng_below(&w->rng, 6)) {
	case 0:
		vm_settings_init(&vm);
		vm.dirty_bytes = MIB << rng_below(&w->rng, 4);
		vm.dirty_background_bytes = vm.dirty_bytes / 2;
		assert_int_equal(engine_set_vm(e, &vm), 0);
		break;
	case 1:
		rc = engine_sync_progress(e, leave, &calls);
		assert_true(rc == 0 || rc == 1);
		break;
	case 2:
		assert_int_equal(file_fsync(w->f, false), 0);
		break;
	case 3:
		engine_drop_caches(e);
		break;
	case 4:
		hole = file_seek(w->f, at, FILE_SEEK_HOLE);
		assert_true(hole >= (s64)at && hole <= STRIPES * STRIPE);
		break;
	default:
		assert_int_equal(
			file_advise(w->f, at, 100000, (enum file_advice)rng_below(&w->rng, 6)), 0);
	}
}

static void worker_main(void *arg)
{
	struct worker *w = arg;

	for (u32 i = 0; i < ROUNDS; i++) {
		u64 dice = rng_below(&w->rng, 20);

		if (dice < 7)
			do_write(w);
		else if (dice < 12)
			do_read(w);
		else if (dice < 14)
			do_borrow(w);
		else if (dice < 15)
			do_punch(w);
		else if (dice < 18)
			do_append(w);
		else
			do_other(w);
	}
	for (u32 i = 0; i < STRIPES / THREADS; i++) {
		assert_int_equal(file_pread(w->f, w->buf, STRIPE, offset_of(w, i)), STRIPE);
		assert_memory_equal(w->buf, w->bytes[i], STRIPE);
	}
	engine_task_exit(w->s->r->e);
}

static void expect_stored(struct worker *w, const char *path)
{
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	for (u32 t = 0; t < THREADS; t++) {
		for (u32 i = 0; i < STRIPES / THREADS; i++) {
			assert_int_equal(pread(fd, w->buf, STRIPE, (off_t)offset_of(&w[t], i)),
					 STRIPE);
			assert_memory_equal(w->buf, w[t].bytes[i], STRIPE);
		}
	}
	close(fd);
}

static void test_all_at_once(void **state)
{
	static struct worker w[THREADS];
	struct task *task[THREADS];
	struct shared s = { 0 };
	u64 records = 0;
	struct real r;

	(void)state;
	real_start(&r, (struct path_config){ .idle_max = 4 }, 4 * MIB);
	s.r = &r;
	for (u32 i = 0; i < THREADS; i++) {
		w[i].s = &s;
		w[i].number = i;
		rng_init(&w[i].rng, i + 1);
		w[i].f = real_open(&r, "stripes", O_RDWR | O_CREAT);
		w[i].log = real_open(&r, "log", O_RDWR | O_CREAT);
	}
	assert_int_equal(file_truncate(w[0].f, STRIPES * STRIPE), 0);
	for (u32 i = 0; i < THREADS; i++) {
		task[i] = world_spawn("worker", worker_main, &w[i]);
		assert_non_null(task[i]);
	}
	for (u32 i = 0; i < THREADS; i++) {
		world_join(task[i]);
		records += w[i].records;
	}
	assert_int_equal(inode_size(file_inode(w[0].log)), records * RECORD_BYTES);
	assert_int_equal(engine_sync(r.e), 0);
	expect_stored(w, real_name(&r, "stripes"));
	for (u32 i = 0; i < THREADS; i++) {
		path_close(w[i].f);
		path_close(w[i].log);
	}
	real_end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_at_once),
	};

	return cmocka_run_group_tests_name("real_front", tests, NULL, NULL);
}
