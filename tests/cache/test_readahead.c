// SPDX-License-Identifier: MIT
/*
 * Readahead windows and folio orders, against what Linux does: Linux writeback reference,
 * sections 7.2 to 7.6, with the windows seen live on 6.18 quoted there.
 */
#include "rig.h"

struct window {
	u32 order, size; /* order: as asked for, before it is bounded by the mapping's */
};

/* A reader of the file, and the windows it caused. */
struct reader {
	struct rig *r;
	struct readahead ra;
	struct readahead_limits limits;
	struct window window[64];
	u32 windows;
};

/* What matters of the flavours is below; 6.18 is `file_order`. */
static struct rig *open_file(u64 pages)
{
	struct rig *r = rig_open(2 * pages + 8192, 0);

	assert_int_equal(store_lay_out(r->store, pages << PAGE_SHIFT), 0);
	return r;
}

static struct reader reader_of(struct rig *r, u32 ra_pages, u32 io_pages, bool file_order)
{
	struct reader d = { .r = r,
			    .limits = { .eof_page = store_size(r->store) >> PAGE_SHIFT,
					.io_pages = io_pages,
					.file_order = file_order } };

	readahead_init(&d.ra, ra_pages);
	return d;
}

static void note_window(struct reader *d, const struct readahead *before)
{
	if (d->ra.start == before->start && d->ra.size == before->size)
		return; /* it was not a new window */
	if (d->windows < ARRAY_SIZE(d->window))
		d->window[d->windows] = (struct window){ d->ra.order, d->ra.size };
	d->windows++;
}

/* One read call of n pages, as the file layer makes it. */
static void read_pages(struct reader *d, u64 page, u64 n)
{
	u64 end = min_u64(page + n, d->limits.eof_page);

	for (u64 at = page; at < end;) {
		struct readahead before = d->ra;
		struct folio *f = mapping_find(&d->r->m, at);

		if (!f) {
			readahead_miss(&d->r->m, &d->ra, &d->limits, at, end - at);
			note_window(d, &before);
			f = mapping_find(&d->r->m, at);
			assert_non_null(f);
		}
		before = d->ra;
		if (atomic_load(&f->flags) & FOLIO_MARK) {
			readahead_mark(&d->r->m, &d->ra, &d->limits, f, end - f->index);
			note_window(d, &before);
		}
		assert_true(folio_is_uptodate(f));
		at = folio_end(f);
		folio_unpin(&d->r->cache, f);
	}
	d->ra.previous_end = end << PAGE_SHIFT;
}

static void read_file(struct reader *d, u64 first, u64 end, u64 n)
{
	for (u64 page = first; page < end; page += n)
		read_pages(d, page, n);
}

static void expect_windows(const struct reader *d, const struct window *expected, u32 n)
{
	assert_true(d->windows >= n);
	for (u32 i = 0; i < n; i++) {
		assert_int_equal(d->window[i].order, expected[i].order);
		assert_int_equal(d->window[i].size, expected[i].size);
	}
}

/* How many cached folios of each order there are in [first, end). */
static void count_orders(struct rig *r, u64 first, u64 end, u64 *count)
{
	memset(count, 0, ARENA_ORDERS * sizeof(*count));
	for (u64 page = first; page < end;) {
		struct folio *f = mapping_find_from(&r->m, page);

		if (!f)
			break;
		if (f->index < end)
			count[f->order]++;
		page = folio_end(f);
		folio_unpin(&r->cache, f);
	}
}

static void expect_orders(struct rig *r, u64 first, u64 end, const u64 *expected)
{
	u64 count[ARENA_ORDERS];

	count_orders(r, first, end, count);
	for (unsigned o = 0; o < ARENA_ORDERS; o++)
		assert_int_equal(count[o], expected[o]);
}

static u64 device_reads(struct rig *r)
{
	struct device_stats s;

	device_stats(r->device, &s);
	return s.reads;
}

/* --- window sizes */

static void test_first_window_sizes(void **state)
{
	(void)state;
	/* 7.2 with max 32: up to 1 page four times, up to 8 twice, else all */
	assert_int_equal(readahead_first_size(1, 32), 4);
	assert_int_equal(readahead_first_size(2, 32), 4);
	assert_int_equal(readahead_first_size(3, 32), 8);
	assert_int_equal(readahead_first_size(8, 32), 16);
	assert_int_equal(readahead_first_size(9, 32), 32);
	assert_int_equal(readahead_first_size(256, 32), 32);
	assert_int_equal(readahead_first_size(1, 2048), 4);
	assert_int_equal(readahead_first_size(64, 2048), 256);
	assert_int_equal(readahead_first_size(65, 2048), 256);
	assert_int_equal(readahead_first_size(256, 2048), 512);
	assert_int_equal(readahead_first_size(513, 2048), 2048);
}

static void test_next_window_sizes(void **state)
{
	(void)state;
	assert_int_equal(readahead_next_size(1, 32), 4);
	assert_int_equal(readahead_next_size(2, 32), 4); /* not below max / 16: twice */
	assert_int_equal(readahead_next_size(16, 32), 32);
	assert_int_equal(readahead_next_size(17, 32), 32);
	assert_int_equal(readahead_next_size(127, 2048), 508);
	assert_int_equal(readahead_next_size(128, 2048), 256);
	assert_int_equal(readahead_next_size(1024, 2048), 2048);
	assert_int_equal(readahead_next_size(1025, 2048), 2048);
}

/* --- seen live on 6.18, ra_pages 2048 (7.4) */

static void test_live_1_mib_reads_from_the_start(void **state)
{
	static const struct window expected[] = {
		{ 0, 512 }, { 2, 1024 }, { 4, 2048 }, { 6, 2048 }, { 8, 2048 }
	};
	struct rig *r = open_file(16384);
	struct reader d = reader_of(r, 2048, 64, true);

	(void)state;
	read_file(&d, 0, 12288, 256);
	expect_windows(&d, expected, ARRAY_SIZE(expected));
	assert_int_equal(d.window[5].order, 9);
	assert_int_equal(rig_order(r, 7680), 9);
	assert_int_equal(rig_order(r, 11264), 9);
	rig_close(r);
}

static void test_live_4_kib_reads_from_the_start(void **state)
{
	static const struct window expected[] = {
		{ 0, 4 }, { 2, 16 }, { 4, 60 }, { 6, 240 }, { 8, 448 }
	};
	struct rig *r = open_file(16384);
	struct reader d = reader_of(r, 2048, 64, true);

	(void)state;
	read_file(&d, 0, 700, 1);
	expect_windows(&d, expected, ARRAY_SIZE(expected));
	rig_close(r);
}

static void test_live_1_mib_reads_from_the_middle(void **state)
{
	static const struct window expected[] = {
		{ 0, 512 }, { 2, 1021 }, { 4, 2032 }, { 6, 2000 }
	};
	u64 first = (40 << 8) + 3; /* 40 MiB + 12 KiB */
	struct rig *r = open_file(32768);
	struct reader d = reader_of(r, 2048, 64, true);

	(void)state;
	read_pages(&d, first, 256);
	assert_int_equal(d.windows, 0); /* a random read: just what was asked for */
	expect_orders(r, 0, 32768, (u64[ARENA_ORDERS]){ 256 });
	read_file(&d, first + 256, first + 256 * 20, 256);
	expect_windows(&d, expected, ARRAY_SIZE(expected));
	rig_close(r);
}

/* --- P2: read_ahead_kb 128, max_sectors_kb 256, 1 MiB reads (7.5) */

static void test_p2_windows(void **state)
{
	static const struct window expected[] = { { 0, 64 }, { 2, 64 }, { 4, 64 },
						  { 6, 64 }, { 6, 64 }, { 6, 64 } };
	struct rig *r = open_file(4096);
	struct reader d = reader_of(r, 32, 64, true);

	(void)state;
	read_file(&d, 0, 4096, 256);
	expect_windows(&d, expected, ARRAY_SIZE(expected));
	assert_int_equal(device_reads(r), 4096 / 64); /* an I/O a window */
	rig_close(r);
}

/*
 * Measured on 6.18 (XFS, 16 files of 384 MiB): 256 folios of order 2, 64 of order 4, 24528 of
 * order 6, and of order 0 what was mixed with the machine's other files. Of one file so 64 (by the
 * first window), 16, 4 and 1533.
 */
static void test_p2_folio_orders_are_those_measured(void **state)
{
	struct rig *r = open_file(98304);
	struct reader d = reader_of(r, 32, 64, true);

	(void)state;
	read_file(&d, 0, 98304, 256);
	expect_orders(
		r, 0, 98304,
		(u64[ARENA_ORDERS]){ [0] = 64, [2] = 256 / 16, [4] = 64 / 16, [6] = 24528 / 16 });
	rig_close(r);
}

/* Reads of 128 KiB never see the device's largest I/O: 32 pages, order 5 at most. */
static void test_small_reads_stay_within_read_ahead_kb(void **state)
{
	static const struct window expected[] = {
		{ 0, 32 }, { 2, 32 }, { 4, 32 }, { 5, 32 }, { 5, 32 }
	};
	struct rig *r = open_file(1024);
	struct reader d = reader_of(r, 32, 64, true);

	(void)state;
	read_file(&d, 0, 1024, 32);
	expect_windows(&d, expected, ARRAY_SIZE(expected));
	rig_close(r);
}

/* --- the flavour before 6.17 */

static void test_before_6_17_orders_follow_the_marked_folio(void **state)
{
	struct rig *r = open_file(16384);
	struct reader d = reader_of(r, 2048, 64, false);
	/* windows 512, 1024, 2048, ...: orders 2, 4, 6, 8, 9 */
	static const struct {
		u64 first, end;
		unsigned order;
	} windows[] = { { 0, 512, 2 },     { 512, 1536, 4 },  { 1536, 3584, 6 },
			{ 3584, 5632, 8 }, { 5632, 7680, 9 }, { 7680, 9728, 9 } };

	(void)state;
	read_file(&d, 0, 9728, 256);
	for (size_t i = 0; i < ARRAY_SIZE(windows); i++)
		assert_int_equal(d.window[i].size, windows[i].end - windows[i].first);
	assert_int_equal(rig_order(r, 0), 2);
	assert_int_equal(rig_order(r, 508), 2);
	assert_int_equal(rig_order(r, 512), 4);
	assert_int_equal(rig_order(r, 1520), 4);
	assert_int_equal(rig_order(r, 1536), 6);
	assert_int_equal(rig_order(r, 3520), 6);
	assert_int_equal(rig_order(r, 3584), 8);
	/* 5632 = 11 * 512: aligned for order 9 */
	assert_int_equal(rig_order(r, 5632), 9);
	assert_int_equal(rig_order(r, 7680), 9);
	rig_close(r);
}

/* A window of less than 4 pages has no large folios then. */
static void test_before_6_17_tiny_windows_are_single_pages(void **state)
{
	struct rig *r = open_file(64);
	struct reader d = reader_of(r, 2, 2, false);

	(void)state;
	read_file(&d, 0, 32, 1);
	expect_orders(r, 0, 32, (u64[ARENA_ORDERS]){ 32 });
	rig_close(r);
}

/* A small folio under the mark starts the ramp anew; the file's own order does not fall. */
static void test_a_small_folio_at_the_mark(void **state)
{
	(void)state;
	for (int file_order = 0; file_order < 2; file_order++) {
		struct rig *r = open_file(8192);
		struct reader d = reader_of(r, 64, 64, file_order);
		struct folio *f;
		unsigned expected = file_order ? 6 : 2;

		read_file(&d, 0, 512, 64); /* the ramp is over */
		f = rig_get(r, 512);       /* the mark: replaced by a single page */
		assert_true(atomic_load(&f->flags) & FOLIO_MARK);
		assert_int_equal(f->order, 6);
		assert_non_null(folio_split(f, 512, 0, false));
		atomic_fetch_or(&f->flags, FOLIO_MARK);
		rig_put(r, f);
		read_pages(&d, 512, 64);
		assert_int_equal(rig_order(r, 576), expected);
		rig_close(r);
	}
}

/* --- random reads and hints */

static void test_a_random_read_is_exactly_what_was_asked_for(void **state)
{
	struct rig *r = open_file(4096);
	struct reader d = reader_of(r, 32, 64, true);

	(void)state;
	read_pages(&d, 1000, 3);
	read_pages(&d, 500, 20);
	assert_int_equal(r->m.pages, 23);
	assert_int_equal(device_reads(r), 2);
	assert_int_equal(d.windows, 0);
	expect_orders(r, 0, 4096, (u64[ARENA_ORDERS]){ 23 });
	rig_close(r);
}

/* Before the page lie cached ones: a stream that this file did not read itself (7.2). */
static void test_a_miss_after_cached_pages_is_a_stream(void **state)
{
	struct rig *r = open_file(4096);
	struct reader other = reader_of(r, 2048, 64, true), d = reader_of(r, 2048, 64, true);

	(void)state;
	other.ra.random = true;
	read_file(&other, 1000, 1050, 1);
	read_pages(&d, 1050, 2);
	assert_int_equal(d.ra.start, 1050);
	assert_int_equal(d.ra.size, 52);
	assert_int_equal(d.ra.async_size, 1);
	read_file(&other, 0, 50, 1);
	read_pages(&d, 50, 2); /* from the start of the file: twice */
	assert_int_equal(d.ra.size, 102);
	/* no more before it than is asked for: random */
	read_file(&other, 3000, 3002, 1);
	read_pages(&d, 3002, 2);
	assert_int_equal(d.windows, 2);
	assert_int_equal(mapping_next_hole(&r->m, 3002, 4096), 3004);
	rig_close(r);
}

/* The reader at another's mark goes on after what is cached (7.3). */
static void test_interleaved_readers(void **state)
{
	struct rig *r = open_file(4096);
	struct reader a = reader_of(r, 64, 64, true), b = reader_of(r, 64, 64, true);

	(void)state;
	read_pages(&a, 0, 16); /* window 0..31, mark at 16 */
	assert_int_equal(a.ra.size, 32);
	assert_int_equal(a.ra.async_size, 16);
	read_pages(&b, 16, 16);
	/* b had no window: the hole is at 32, 16 from the mark; next(16 + 16) = 64 */
	assert_int_equal(b.ra.start, 32);
	assert_int_equal(b.ra.size, 64);
	assert_int_equal(mapping_next_hole(&r->m, 0, 4096), 96);
	rig_close(r);
}

/* FADV_RANDOM: 256 pages asked for come in forced reads of max(io_pages, ra_pages), order 0. */
static void test_random_hint(void **state)
{
	struct rig *r = open_file(4096);
	struct reader d = reader_of(r, 32, 64, true);

	(void)state;
	d.ra.random = true;
	read_file(&d, 0, 1024, 256);
	expect_orders(r, 0, 4096, (u64[ARENA_ORDERS]){ 1024 });
	assert_int_equal(device_reads(r), 1024 / 64);
	read_pages(&d, 2000, 1);
	assert_int_equal(r->m.pages, 1025);
	rig_close(r);
}

static void test_no_readahead_at_all(void **state)
{
	struct rig *r = open_file(4096);
	struct reader d = reader_of(r, 0, 64, true);

	(void)state;
	read_pages(&d, 0, 20);
	assert_int_equal(r->m.pages, 20);
	assert_int_equal(device_reads(r), 20); /* forced reads of one page */
	rig_close(r);
}

/* WILLNEED starts no more than max(io_pages, ra_pages), in single pages (7.6). */
static void test_willneed_is_bounded(void **state)
{
	struct rig *r = open_file(4096);
	struct reader d = reader_of(r, 32, 64, true);

	(void)state;
	readahead_force(&r->m, &d.ra, &d.limits, 100, 1000);
	expect_orders(r, 0, 4096, (u64[ARENA_ORDERS]){ 64 });
	assert_int_equal(mapping_next_hole(&r->m, 100, 4096), 164);
	/* what is cached is not read again; 4 MiB go in two batches */
	d.limits.io_pages = 1024;
	readahead_force(&r->m, &d.ra, &d.limits, 100, 5000);
	assert_int_equal(mapping_next_hole(&r->m, 100, 4096), 1124);
	assert_int_equal(device_reads(r), 1 + 2);
	rig_close(r);
}

/* --- edges */

static void test_nothing_past_the_end_of_the_file(void **state)
{
	(void)state;
	for (u64 pages = 1; pages <= 300; pages += 13) {
		struct rig *r = open_file(pages);
		struct reader d = reader_of(r, 64, 64, true);
		struct folio *last;

		read_file(&d, 0, pages, 4);
		assert_int_equal(r->m.pages, pages);
		last = mapping_find(&r->m, pages - 1);
		assert_int_equal(folio_end(last), pages); /* no folio reaches past it */
		folio_unpin(&r->cache, last);
		rig_close(r);
	}
}

/* The mapping's largest order bounds the folios, and the order remembered with them. */
static void test_a_cap_on_the_order(void **state)
{
	(void)state;
	for (unsigned cap = 0; cap <= 5; cap++) {
		struct cache_config config = { .memory_pages = 8192 };
		struct rig *r = rig_open_config(&config, 0, cap);
		struct reader d;

		assert_int_equal(store_lay_out(r->store, 4096 << PAGE_SHIFT), 0);
		d = reader_of(r, 32, 64, true);
		read_file(&d, 0, 4096, 256);
		assert_int_equal(rig_order(r, 2048), cap);
		assert_int_equal(d.ra.order, cap);
		rig_close(r);
	}
}

/* Where a window runs into cached pages the rest is read around them in single pages. */
static void test_windows_around_cached_pages(void **state)
{
	struct rig *r = open_file(1024);
	struct reader d = reader_of(r, 64, 64, true);
	u64 count[ARENA_ORDERS];

	(void)state;
	rig_put(r, rig_folio(r, 200, 0)); /* in window 192..255 that wants order 6 */
	read_file(&d, 0, 512, 256);
	count_orders(r, 192, 256, count);
	assert_int_equal(count[0], 64);
	assert_int_equal(mapping_next_hole(&r->m, 0, 512), 512);
	/* afterwards the ramp is where it was */
	assert_int_equal(rig_order(r, 256), 6);
	rig_close(r);
}

/* Holes of the store are zeros, and no I/O. */
static void test_holes_cost_no_io(void **state)
{
	struct cache_config config = { .memory_pages = 1024, .contents = true };
	struct rig *r = rig_open_config(&config, 0, 9);
	struct reader d = { .r = r,
			    .limits = { .eof_page = 256, .io_pages = 64, .file_order = true } };
	u8 zero[PAGE_SIZE] = { 0 };

	(void)state;
	readahead_init(&d.ra, 32);
	read_file(&d, 0, 256, 64);
	assert_int_equal(device_reads(r), 0);
	assert_int_equal(r->m.pages, 256);
	for (u64 page = 0; page < 256; page++) {
		struct folio *f = mapping_find(&r->m, page);

		assert_memory_equal(folio_address(f, page << PAGE_SHIFT), zero, PAGE_SIZE);
		folio_unpin(&r->cache, f);
	}
	rig_close(r);
}

static int fail_reads(void *ctx, const struct io *io)
{
	(void)ctx;
	return io->op == IO_READ ? -5 : 0;
}

/* A window that could not be read leaves invalid folios; whoever needs one learns why. */
static void test_a_failed_window(void **state)
{
	struct rig *r = open_file(256);
	struct reader d = reader_of(r, 32, 64, true);
	struct folio *f;

	(void)state;
	device_set_fault(r->device, fail_reads, NULL);
	readahead_miss(&r->m, &d.ra, &d.limits, 0, 1);
	f = rig_get(r, 0);
	assert_false(folio_is_uptodate(f));
	assert_int_equal(folio_read(f, 0, 1), -5);
	device_set_fault(r->device, NULL, NULL);
	assert_int_equal(folio_read(f, 0, 1), 0);
	assert_true(folio_is_uptodate(f));
	rig_put(r, f);
	rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_window_sizes),
		cmocka_unit_test(test_next_window_sizes),
		cmocka_unit_test(test_live_1_mib_reads_from_the_start),
		cmocka_unit_test(test_live_4_kib_reads_from_the_start),
		cmocka_unit_test(test_live_1_mib_reads_from_the_middle),
		cmocka_unit_test(test_p2_windows),
		cmocka_unit_test(test_p2_folio_orders_are_those_measured),
		cmocka_unit_test(test_small_reads_stay_within_read_ahead_kb),
		cmocka_unit_test(test_before_6_17_orders_follow_the_marked_folio),
		cmocka_unit_test(test_before_6_17_tiny_windows_are_single_pages),
		cmocka_unit_test(test_a_small_folio_at_the_mark),
		cmocka_unit_test(test_a_random_read_is_exactly_what_was_asked_for),
		cmocka_unit_test(test_a_miss_after_cached_pages_is_a_stream),
		cmocka_unit_test(test_interleaved_readers),
		cmocka_unit_test(test_random_hint),
		cmocka_unit_test(test_no_readahead_at_all),
		cmocka_unit_test(test_willneed_is_bounded),
		cmocka_unit_test(test_nothing_past_the_end_of_the_file),
		cmocka_unit_test(test_a_cap_on_the_order),
		cmocka_unit_test(test_windows_around_cached_pages),
		cmocka_unit_test(test_holes_cost_no_io),
		cmocka_unit_test(test_a_failed_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
