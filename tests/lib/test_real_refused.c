/* SPDX-License-Identifier: MIT */
/*
 * Each error path of a refused allocation: one scenario of the library's calls, again and again,
 * with the k-th allocation refused, for each k until none is. A call that fails for it says so, has
 * done nothing by half, and succeeds when it is made again; no data is lost, and (in builds with
 * the address sanitizer) nothing leaks.
 */
#include "base/alloc.h"
#include "rig.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

#define NEVER (-1ll)

static _Atomic long long until = NEVER; /* allocations that still succeed; below 0: all do */
static _Atomic unsigned refused;

/* Of any thread. */
static bool refuses(void)
{
	if (atomic_load(&until) < 0 || atomic_fetch_sub(&until, 1) != 0)
		return false;
	atomic_fetch_add(&refused, 1);
	return true;
}

/* The linker sends all allocations of the program here (--wrap). */
void *__wrap_malloc(size_t size)
{
	return refuses() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return refuses() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return refuses() ? NULL : __real_realloc(p, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return refuses() ? NULL : __real_aligned_alloc(alignment, size);
}

static long long frames_until = NEVER;
static unsigned frames_refused;

static bool refuses_frames(void)
{
	if (frames_until < 0 || frames_until-- != 0)
		return false;
	frames_refused++;
	return true;
}

/* The result of a call, made again if memory was refused. */
#define AGAIN(call)                                                            \
	({                                                                     \
		long long result_ = (call);                                    \
		if (result_ < 0) {                                             \
			assert_true(atomic_load(&refused) || frames_refused);  \
			assert_true(result_ == -ENOMEM || result_ == -EAGAIN); \
			result_ = (call);                                      \
		}                                                              \
		result_;                                                       \
	})

static void use_file(struct sluice_file *f)
{
	static char buf[300000];
	struct iovec iov[8] = { { buf, 1000 }, { buf + 1000, 50000 } };
	struct sluice_loan *loan;
	uint64_t at = 0;

	memset(buf, 1, sizeof(buf));
	/* in two calls if the first was cut short by the refusal */
	for (long long done = 0, n; done < 300000; done += n) {
		n = AGAIN(sluice_pwrite(f, buf, 300000 - (size_t)done, (uint64_t)done, 0));
		assert_true(n > 0);
	}
	assert_int_equal(AGAIN(sluice_fsync(f)), 0);
	memset(buf, 2, sizeof(buf));
	assert_true(AGAIN(sluice_pwritev(f, iov, 2, 10, SLUICE_DSYNC)) > 0);
	assert_int_equal(AGAIN(sluice_pwritev(f, iov, 2, 10, SLUICE_DSYNC)), 51000);
	assert_true(AGAIN(sluice_append(f, iov, 1, 0, &at)) > 0);
	assert_true(at >= 300000);
	assert_int_equal(AGAIN(sluice_truncate(f, 290000)), 0);
	assert_int_equal(
		AGAIN(sluice_fallocate(f, SLUICE_PUNCH_HOLE | SLUICE_KEEP_SIZE, 100000, 50001)), 0);
	assert_int_equal(AGAIN(sluice_sync_file_range(f, 0, 0, SLUICE_WRITE | SLUICE_WAIT_AFTER)),
			 0);
	assert_int_equal(AGAIN(sluice_advise(f, 0, 0, SLUICE_DONTNEED)), 0);
	assert_int_equal(AGAIN(sluice_advise(f, 0, 0, SLUICE_WILLNEED)), 0);
	assert_true(AGAIN(sluice_pread(f, buf, 1000, 5, 0)) > 0);
	assert_int_equal(AGAIN(sluice_pread(f, buf, 1000, 5, 0)), 1000);
	assert_int_equal(buf[4], 1);
	assert_int_equal(buf[5], 2);
	iov[0].iov_len = 1000;
	assert_true(AGAIN(sluice_borrow(f, iov, 8, 20000, 60000, 0, &loan)) > 0);
	assert_int_equal(*(char *)iov[0].iov_base, 1);
	sluice_give_back(loan);
	assert_true(AGAIN(sluice_pread(f, buf, 10, 120000, 0)) == 10);
	assert_int_equal(buf[0], 0);
	assert_int_equal(sluice_size(f), 290000);
	assert_true(sluice_seek(f, 0, SLUICE_SEEK_DATA) == 0);
}

static void progress(void *ctx, uint64_t done, uint64_t all)
{
	(void)ctx;
	assert_true(done <= all);
}

/* From now on the k-th is refused, once. */
static void arm(unsigned k, bool frames)
{
	atomic_store(&refused, 0);
	frames_refused = 0;
	if (frames)
		frames_until = k;
	else
		atomic_store(&until, k);
}

static void use_cache(const char *const *settings, unsigned k, bool frames)
{
	static char page[4096];
	struct sluice_stats stats = { .size = sizeof(stats) };
	struct bucket *b = bucket_new();
	char why[SLUICE_ERROR_MAX];
	struct sluice_event events[8];
	struct sluice_file *f, *g;
	struct sluice *c;

	arm(k, frames);
	assert_int_equal(AGAIN(sluice_create(settings, why, sizeof(why), &c)), 0);
	assert_int_equal(AGAIN(sluice_trace_start(c, 64)), 0);
	assert_int_equal(AGAIN(sluice_open(c, rig_path("f"), O_RDWR | O_CREAT | O_TRUNC, 0644, &f)),
			 0);
	assert_int_equal(AGAIN(sluice_open_store(c, &bucket_store, b, 0, O_RDWR, &g)), 0);
	use_file(f);
	use_file(g);
	assert_int_equal(AGAIN(sluice_resize(c, 24 * MIB)), 0);
	assert_int_equal(AGAIN(sluice_sync(c, progress, NULL)), 0);
	assert_int_equal(AGAIN(sluice_stats(c, &stats)), 0);
	assert_true(AGAIN(sluice_trace_read(c, events, 8, NULL)) >= 0);
	assert_int_equal(AGAIN(sluice_trace_stop(c)), 0);
	for (unsigned i = 0; i < sizeof(page); i++)
		page[i] = (char)rig_byte(4096 + i, 3);
	assert_int_equal(AGAIN(sluice_pwrite(f, page, sizeof(page), 4096, 0)), sizeof(page));
	assert_int_equal(AGAIN(sluice_close(g)), 0);
	assert_int_equal(AGAIN(sluice_close(f)), 0);
	atomic_store(&until, NEVER);
	frames_until = NEVER;
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
	rig_expect_file("f", 4096, 4096, 3);
	assert_int_equal(b->size, 290000);
	assert_int_equal(b->bytes[9], 1);
	assert_int_equal(b->bytes[10], 2);
	bucket_free(b);
}

/* For each `step`th k, until no k-th allocation is left to be refused; how many there were. */
static unsigned sweep(const char *const *settings, bool frames, unsigned step)
{
	for (unsigned k = 0;; k += step) {
		use_cache(settings, k, frames);
		if (!atomic_load(&refused) && !frames_refused)
			return k;
	}
}

static void test_each_allocation_refused(void **state)
{
	(void)state;
	assert_in_range(sweep(GIVEN("memory=16M", "max_memory=32M"), false, 1), 40, 5000);
}

static void test_each_folio_refused(void **state)
{
	(void)state;
	alloc_refuses_frames = refuses_frames;
	assert_in_range(sweep(GIVEN("memory=16M", "max_memory=32M"), true, 1), 10, 5000);
	/* many small ones, all alike: who finds none waits, so not each of them */
	assert_in_range(sweep(GIVEN("memory=16M", "max_memory=32M", "policy=linux-6.1"), true, 11),
			40, 5000);
	alloc_refuses_frames = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_allocation_refused),
		cmocka_unit_test(test_each_folio_refused),
	};

	return cmocka_run_group_tests_name("refused", tests, rig_begin, rig_end);
}
