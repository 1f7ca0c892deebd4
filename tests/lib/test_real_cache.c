// SPDX-License-Identifier: MIT
/* Caches as a whole: their making, size, statistics, sync and end. */
#include "rig.h"
#include <signal.h>
#include <sys/resource.h>

static void test_making_a_cache(void **state)
{
	char why[SLUICE_ERROR_MAX] = "old", tiny[8] = "old";
	struct sluice *c = NULL;

	(void)state;
	assert_int_equal(sluice_create(GIVEN("memroy=1G"), why, sizeof(why), &c), -EINVAL);
	assert_string_equal(why, "unknown setting \"memroy\"; did you mean \"memory\"?");
	assert_int_equal(sluice_create(GIVEN("memroy=1G"), tiny, sizeof(tiny), &c), -EINVAL);
	assert_string_equal(tiny, "unknown"); /* cut */
	assert_int_equal(sluice_create(GIVEN("memroy=1G"), NULL, 0, &c), -EINVAL);
	assert_null(c);
	assert_int_equal(sluice_create(NULL, why, sizeof(why), &c), 0);
	assert_string_equal(why, "");
	assert_int_equal(rig_stats(c).memory_bytes, 256 * MIB);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
	assert_true(strlen(sluice_version()) >= 5);
}

/* More than machines that run tests have set aside. */
static void test_what_has_no_memory_says_which_setting_wants_it(void **state)
{
	const char *const *settings = GIVEN("memory=64G", "huge_pages=always");
	char why[SLUICE_ERROR_MAX] = "";
	struct sluice *c;

	(void)state;
	assert_int_equal(sluice_create(settings, why, sizeof(why), &c), -ENOMEM);
	assert_string_equal(why, "huge_pages=always: memory=64G is more than is set aside in pages "
				 "of 2 MiB (vm.nr_hugepages); auto needs none");
}

static void test_two_caches_side_by_side(void **state)
{
	struct sluice *a = rig_cache(GIVEN("memory=16M")), *b = rig_cache(GIVEN("memory=32M"));
	struct sluice_file *f = rig_open(a, "f", O_RDWR | O_CREAT | O_TRUNC);
	struct sluice_file *g = rig_open(b, "g", O_RDWR | O_CREAT | O_TRUNC);

	(void)state;
	rig_write(f, 0, 100000, 1);
	rig_write(g, 0, 50000, 2);
	assert_int_equal(rig_stats(a).debt_bytes, 25 * 4096);
	assert_int_equal(rig_stats(b).debt_bytes, 13 * 4096);
	rig_expect(f, 0, 100000, 1);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_destroy(a, NULL, NULL), 0);
	rig_expect(g, 0, 50000, 2);
	assert_int_equal(sluice_close(g), 0);
	assert_int_equal(sluice_destroy(b, NULL, NULL), 0);
}

static void test_statistics(void **state)
{
	struct sluice *c =
		rig_cache(GIVEN("memory=64M", "vm.dirty_bytes=32M", "vm.dirty_background_bytes=16M",
				"policy=linux-7.4", "io_engine=threads"));
	struct sluice_file *f = rig_open(c, "f", O_RDWR | O_CREAT | O_TRUNC);
	struct sluice_stats s;

	(void)state;
	s = rig_stats(c);
	assert_int_equal(s.memory_bytes, 64 * MIB);
	assert_int_equal(s.free_bytes, 64 * MIB);
	assert_int_equal(s.cached_bytes, 0);
	assert_int_equal(s.dirty_thresh_bytes, 32 * MIB);
	assert_int_equal(s.background_thresh_bytes, 16 * MIB);
	assert_int_equal(s.freerun_bytes, 24 * MIB);
	assert_int_equal(s.setpoint_bytes, 28 * MIB);
	assert_int_equal(s.dirty_limit_bytes, 32 * MIB);
	assert_non_null(strstr(s.device, "threads"));
	rig_write(f, 0, 1 * MIB, 1); /* in folios of 1 MiB */
	assert_int_equal(sluice_fsync(f), 0);
	rig_write(f, 0, 4096, 2);
	s = rig_stats(c);
	assert_int_equal(s.debt_bytes, 4096);
	assert_int_equal(s.folio_dirty_bytes, 1 * MIB); /* Linux charges the folio */
	assert_int_equal(s.dirty_bytes, 1 * MIB);
	assert_int_equal(s.pinned_bytes, 1 * MIB);
	assert_int_equal(s.cached_bytes, 1 * MIB);
	assert_int_equal(s.free_bytes, 63 * MIB);
	assert_int_equal(s.in_flight_bytes + s.writeback_bytes + s.folio_writeback_bytes, 0);
	assert_int_equal(s.dirtied_bytes, 1 * MIB + 4096);
	assert_int_equal(s.charged_bytes, 2 * MIB);
	assert_int_equal(s.written_bytes, 1 * MIB);
	assert_int_equal(s.cancelled_bytes, 0);
	assert_int_equal(s.device_write_bytes, 1 * MIB);
	assert_true(s.device_writes >= 1 && s.device_flushes >= 1);
	assert_true(s.resident_bytes >= 1 * MIB && s.resident_bytes <= 64 * MIB);
	assert_true(s.huge_bytes <= s.resident_bytes);
	assert_true(s.overhead_bytes > 0 && s.overhead_bytes < 2 * MIB);
	assert_int_equal(s.write_bandwidth, 100 * MIB); /* as it begins */
	assert_int_equal(s.files_open, 1);
	assert_int_equal(s.throttle_calls + s.throttle_sleeps + s.throttle_sleep_ns, 0);
	assert_int_equal(sluice_truncate(f, 0), 0);
	assert_int_equal(rig_stats(c).cancelled_bytes, 4096);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(rig_stats(c).files_open, 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
}

static void test_statistics_of_other_ages(void **state)
{
	struct {
		struct sluice_stats known;
		uint64_t unknown;
	} newer;
	struct sluice_stats s;
	struct sluice *c = rig_cache(NULL);

	(void)state;
	memset(&s, 0xee, sizeof(s));
	s.size = 32; /* size, memory_bytes, cached_bytes, free_bytes */
	assert_int_equal(sluice_stats(c, &s), 0);
	assert_int_equal(s.size, 32);
	assert_int_equal(s.memory_bytes, 256 * MIB);
	assert_int_equal(s.free_bytes, 256 * MIB);
	assert_int_equal(s.resident_bytes, 0xeeeeeeeeeeeeeeee);
	memset(&newer, 0xee, sizeof(newer));
	newer.known.size = sizeof(newer);
	assert_int_equal(sluice_stats(c, &newer.known), 0);
	assert_int_equal(newer.known.size, sizeof(s));
	assert_int_equal(newer.known.memory_bytes, 256 * MIB);
	assert_int_equal(newer.unknown, 0xeeeeeeeeeeeeeeee);
	s.size = 8;
	assert_int_equal(sluice_stats(c, &s), -EINVAL);
	s.size = 33;
	assert_int_equal(sluice_stats(c, &s), -EINVAL);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
}

static void test_resizing(void **state)
{
	struct sluice *c = rig_cache(GIVEN("memory=64M", "max_memory=128M"));
	struct sluice_file *f = rig_open(c, "f", O_RDWR | O_CREAT | O_TRUNC);

	(void)state;
	for (uint64_t at = 0; at < 48 * MIB; at += 1 * MIB)
		rig_write(f, at, 1 * MIB, 1);
	assert_int_equal(sluice_resize(c, 128 * MIB), 0);
	assert_int_equal(rig_stats(c).memory_bytes, 128 * MIB);
	assert_int_equal(sluice_resize(c, 16 * MIB), 0);
	assert_int_equal(rig_stats(c).memory_bytes, 16 * MIB);
	assert_true(rig_stats(c).cached_bytes <= 16 * MIB);
	assert_true(rig_stats(c).resident_bytes <= 17 * MIB);
	for (uint64_t at = 0; at < 48 * MIB; at += 1 * MIB)
		rig_expect(f, at, 1 * MIB, 1);
	assert_int_equal(sluice_resize(c, 129 * MIB), -EINVAL);
	assert_int_equal(sluice_resize(c, 15 * MIB), -EINVAL);
	assert_int_equal(sluice_resize(c, 16 * MIB + 1), -EINVAL);
	assert_int_equal(rig_stats(c).memory_bytes, 16 * MIB);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
}

struct progress {
	uint64_t calls, done, all;
};

static void note_progress(void *ctx, uint64_t done, uint64_t all)
{
	struct progress *p = ctx;

	assert_true(done >= p->done && done <= all);
	assert_true(!p->calls || all == p->all);
	p->done = done;
	p->all = all;
	p->calls++;
}

/* Bytes stay right while the device's I/O goes by registered memory, over changes of the size. */
static void test_registered_memory(void **state)
{
	char why[SLUICE_ERROR_MAX];
	struct sluice *c;
	struct sluice_file *f;
	int rc;

	(void)state;
	assert_int_equal(
		sluice_create(GIVEN("memory=16M", "register_memory=yes", "io_engine=threads"), why,
			      sizeof(why), &c),
		-ENOTSUP);
	assert_non_null(strstr(why, "register_memory=yes: "));
	rc = sluice_create(
		GIVEN("memory=16M", "max_memory=32M", "register_memory=yes", "io_engine=uring"),
		why, sizeof(why), &c);
	if (rc == -ENOSYS || rc == -EPERM || rc == -ENOMEM) {
		print_message("# skip: io_uring or locked memory is not to be had: %s\n", why);
		skip();
	}
	assert_int_equal(rc, 0);
	f = rig_open(c, "f", O_RDWR | O_CREAT | O_TRUNC);
	for (unsigned round = 0; round < 3; round++) {
		for (uint64_t at = 0; at < 24 * MIB; at += 1 * MIB)
			rig_write(f, at, 1 * MIB, round);
		assert_int_equal(sluice_resize(c, round % 2 ? 16 * MIB : 32 * MIB), 0);
		assert_int_equal(sluice_fsync(f), 0);
		assert_int_equal(sluice_advise(f, 0, 0, SLUICE_DONTNEED), 0);
		for (uint64_t at = 0; at < 24 * MIB; at += 1 * MIB)
			rig_expect(f, at, 1 * MIB, round);
	}
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
}

static void test_syncing_everything(void **state)
{
	struct sluice *c = rig_cache(GIVEN("vm.dirty_writeback_centisecs=0"));
	struct sluice_file *f = rig_open(c, "f", O_RDWR | O_CREAT | O_TRUNC);
	struct sluice_file *g = rig_open(c, "g", O_RDWR | O_CREAT | O_TRUNC);
	struct bucket *b = bucket_new();
	struct sluice_file *h = bucket_open(c, b, O_RDWR);
	struct progress p = { 0 };

	(void)state;
	rig_write(f, 0, 8 * MIB, 1);
	rig_write(g, 0, 1 * MIB, 2);
	rig_write(h, 0, 1 * MIB, 3);
	assert_int_equal(sluice_sync(c, note_progress, &p), 0);
	assert_true(p.calls >= 2);
	assert_int_equal(p.done, 10 * MIB);
	assert_int_equal(p.all, 10 * MIB);
	assert_int_equal(rig_stats(c).debt_bytes, 0);
	rig_expect_file("f", 0, 8 * MIB, 1);
	rig_expect_file("g", 0, 1 * MIB, 2);
	rig_compare(b->bytes, 0, 1 * MIB, 3);
	assert_true(b->flushes > 0); /* safe, not only written */
	rig_write(f, 0, 1 * MIB, 4);
	assert_int_equal(sluice_sync(c, NULL, NULL), 0);
	rig_expect_file("f", 0, 1 * MIB, 4);
	memset(&p, 0, sizeof(p));
	assert_int_equal(sluice_sync(c, note_progress, &p), 0); /* with nothing to do */
	assert_int_equal(p.done, p.all);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_close(g), 0);
	assert_int_equal(sluice_close(h), 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
	bucket_free(b);
}

static void test_a_busy_cache_is_not_destroyed(void **state)
{
	struct sluice *c = rig_cache(NULL);
	struct sluice_file *f = rig_open(c, "f", O_RDWR | O_CREAT | O_TRUNC);

	(void)state;
	rig_write(f, 0, 4096, 1);
	assert_int_equal(sluice_destroy(c, NULL, NULL), -EBUSY);
	rig_expect(f, 0, 4096, 1);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
}

struct lost {
	uint64_t bytes, end;
	int error;
	char path[128];
};

static void lose(void *ctx, const struct sluice_loss *loss)
{
	struct lost *l = ctx;

	assert_int_equal(loss->size, sizeof(*loss));
	assert_true(loss->offset >= l->end && loss->length > 0);
	rig_compare(loss->data, loss->offset, loss->length, 1);
	l->bytes += loss->length;
	l->end = loss->offset + loss->length;
	l->error = loss->error;
	assert_null(loss->store_ctx);
	snprintf(l->path, sizeof(l->path), "%s", loss->path);
}

/* The system takes no byte of a file past its limit: writes are accepted, and can't be written. */
static void test_what_cannot_be_written_is_told_at_the_end(void **state)
{
	struct rlimit old, small;
	struct lost lost = { 0 };
	struct sluice *c = rig_cache(GIVEN("io_engine=threads", "vm.dirty_writeback_centisecs=0"));
	struct sluice_file *f = rig_open(c, "f", O_RDWR | O_CREAT | O_TRUNC);

	(void)state;
	rig_write(f, 0, 256 * KIB, 1);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = old;
	small.rlim_cur = 64 * KIB;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(sluice_fsync(f), -EFBIG);
	assert_int_equal(sluice_close(f), 0); /* the data stays in the cache */
	f = rig_open(c, "f", O_RDWR);
	rig_expect(f, 0, 256 * KIB, 1);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_destroy(c, lose, &lost), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_true(lost.bytes >= 192 * KIB && lost.bytes <= 256 * KIB);
	assert_int_equal(lost.end, 256 * KIB);
	assert_int_equal(lost.error, -EFBIG);
	assert_string_equal(lost.path, rig_path("f"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_making_a_cache),
		cmocka_unit_test(test_what_has_no_memory_says_which_setting_wants_it),
		cmocka_unit_test(test_two_caches_side_by_side),
		cmocka_unit_test(test_statistics),
		cmocka_unit_test(test_statistics_of_other_ages),
		cmocka_unit_test(test_resizing),
		cmocka_unit_test(test_registered_memory),
		cmocka_unit_test(test_syncing_everything),
		cmocka_unit_test(test_a_busy_cache_is_not_destroyed),
		cmocka_unit_test(test_what_cannot_be_written_is_told_at_the_end),
	};

	return cmocka_run_group_tests(tests, rig_begin, rig_end);
}
