/* SPDX-License-Identifier: MIT */
/*
 * A sequential reader is kept one window ahead: each window carries a mark, and reading
 * the marked folio fetches the next window, larger than the one before until the limit is
 * reached. Folio orders ramp up with the windows, two at a time, so a file read from the
 * start ends up in folios of the window's size. A random miss reads what was asked for,
 * in single pages.
 *
 * The two flavours differ in where a window takes its order from: until 6.16 from the
 * marked folio (a small folio at the mark restarts the ramp), since 6.17 from the open
 * file, and window ends are then aligned to the folio size.
 */
#include "cache/readahead.h"
#include "cache/fill.h"
#include "cache/state.h"
#include <errno.h>

#define FORCE_BATCH (2u << (20 - PAGE_SHIFT)) /* forced reads go in 2 MiB steps */

void readahead_init(struct readahead *ra, u32 ra_pages)
{
	*ra = (struct readahead){ .ra_pages = ra_pages, .previous_end = ~0ull };
}

u32 readahead_first_size(u64 want, u32 max)
{
	u64 size = roundup_pow2(want);

	if (size <= max / 32)
		return (u32)size * 4;
	if (size <= max / 4)
		return (u32)size * 2;
	return max;
}

u32 readahead_next_size(u32 current, u32 max)
{
	if (current < max / 16)
		return current * 4;
	if (current <= max / 2)
		return current * 2;
	return max;
}

/* The largest window for a read of `want` pages: large reads may use the device's largest I/O. */
static u32 window_max(const struct readahead *ra, const struct readahead_limits *l, u64 want)
{
	if (want > ra->ra_pages && l->io_pages > ra->ra_pages)
		return (u32)min_u64(want, l->io_pages);
	return ra->ra_pages;
}

/* Reads [page, end) in single-page folios, skipping what is cached; the mark goes on `mark`. */
static void read_small(struct mapping *m, const struct readahead_limits *l, u64 page, u64 end,
		       u64 mark)
{
	struct fill fill;

	fill_init(&fill, m);
	fill.nowait = l->nowait;
	for (end = min_u64(end, l->eof_page); page < end; page++)
		if (fill_folio(&fill, page, 0, l->folio_flags | (page == mark ? FOLIO_MARK : 0)) ==
		    -ENOMEM)
			break;
	fill_flush(&fill);
}

/* The order of the folio at `page` of a window that wants `order` and ends before `end`. */
static unsigned fit_order(unsigned order, u64 page, u64 end)
{
	if (page & ((1ull << order) - 1))
		order = bits_first(page);
	while (order > 0 && page + (1ull << order) > end)
		order--;
	return order;
}

/* Whether memory in smaller pieces is made use of; Linux goes on in single pages. */
static bool takes_what_there_is(const struct mapping *m)
{
	return m->cache->config.reclaim != RECLAIM_LRU2;
}

/* Reads the current window in folios of up to `order`. */
static void read_window(struct mapping *m, struct readahead *ra, const struct readahead_limits *l,
			unsigned order)
{
	u64 page = ra->start, end = min_u64(ra->start + ra->size, l->eof_page);
	u64 mark = ra->start + ra->size - ra->async_size;
	struct fill fill;
	int rc = 0;

	order = (unsigned)min_u64(min_u64(order, m->max_order), ilog2(ra->size));
	if (!l->file_order && ra->size < 4)
		order = 0;
	if (l->file_order)
		ra->order = order;
	fill_init(&fill, m);
	while (page < end && !rc) {
		unsigned fit = fit_order(order, page, end);
		bool marked = page == round_down(mark, 1ull << fit);

		rc = fill_folio(&fill, page, fit, l->folio_flags | (marked ? FOLIO_MARK : 0));
		if (!rc)
			page += 1ull << fit;
		else if (rc == -ENOMEM && fit && takes_what_there_is(m)) {
			order = fit - 1;
			rc = 0;
		}
	}
	fill_flush(&fill);
	if (rc) /* something is cached here, or memory is short: the rest in small folios */
		read_small(m, l, page, end, mark);
}

void readahead_force(struct mapping *m, const struct readahead *ra,
		     const struct readahead_limits *l, u64 page, u64 want)
{
	u64 end = page + min_u64(want, max_u64(ra->ra_pages, l->io_pages));

	for (; page < end; page += FORCE_BATCH)
		read_small(m, l, page, min_u64(end, page + FORCE_BATCH), ~0ull);
}

/* The order a window wants, given that of the marked folio (0 on a miss). */
static unsigned wanted_order(const struct mapping *m, const struct readahead *ra,
			     const struct readahead_limits *l, unsigned mark_order)
{
	if (l->file_order)
		return ra->order;
	return mark_order < m->max_order ? mark_order + 2 : mark_order;
}

void readahead_miss(struct mapping *m, struct readahead *ra, const struct readahead_limits *l,
		    u64 page, u64 want)
{
	u32 max = window_max(ra, l, want);
	u64 previous = atomic_load_explicit(&ra->previous_end, memory_order_relaxed);

	previous = previous == ~0ull ? previous : previous >> PAGE_SHIFT;
	if (!ra->ra_pages)
		want = 1;
	if (!ra->ra_pages || ra->random) {
		readahead_force(m, ra, l, page, want);
		return;
	}
	ra->order = 0;
	if (!page || want > max || page - previous <= 1) {
		ra->size = readahead_first_size(want, max);
		ra->async_size = ra->size > want ? ra->size - (u32)want : ra->size / 2;
	} else {
		u64 cached = mapping_cached_before(m, page, max);

		if (cached <= want) { /* a random read */
			read_small(m, l, page, page + want, ~0ull);
			return;
		}
		if (cached == page) /* cached from the start of the file: trust it twice as far */
			cached *= 2;
		ra->size = (u32)min_u64(cached + want, max);
		ra->async_size = 1;
	}
	ra->start = page;
	read_window(m, ra, l, wanted_order(m, ra, l, 0));
}

void readahead_around(struct mapping *m, struct readahead *ra, const struct readahead_limits *l,
		      u64 page)
{
	u32 before = ra->ra_pages / 2;

	ra->start = page > before ? page - before : 0;
	ra->size = ra->ra_pages;
	ra->async_size = ra->ra_pages / 4;
	ra->order = 0;
	read_window(m, ra, l, 0);
}

/* Since 6.17: cuts the window so that it ends on a folio of the order just grown to. */
static void align_end(struct readahead *ra, u32 max)
{
	unsigned order = (unsigned)min_u64(ra->order, bits_first(max));
	u64 end = ra->start + ra->size, aligned = round_down(end, 1ull << order);

	if (aligned > ra->start)
		ra->size = (u32)(aligned - ra->start);
}

void readahead_mark(struct mapping *m, struct readahead *ra, const struct readahead_limits *l,
		    struct folio *f, u64 want)
{
	u32 max = window_max(ra, l, want);
	u64 expected = round_down(ra->start + ra->size - ra->async_size, folio_pages(f));
	unsigned order = f->order;

	if (!ra->ra_pages || folio_in_writeback(f))
		return;
	atomic_fetch_and_explicit(&f->flags, ~(u32)FOLIO_MARK, memory_order_relaxed);
	if (ra->size && f->index == expected) {
		ra->start += ra->size;
		ra->size = (u32)max_u64(ra->size, readahead_next_size(ra->size, max));
	} else { /* another reader's mark: go on after what is cached */
		u64 hole = mapping_next_hole(m, f->index + 1ull, f->index + 1ull + max);

		if (hole - f->index > max)
			return;
		ra->start = hole;
		ra->size = readahead_next_size((u32)(hole - f->index + want), max);
	}
	if (l->file_order) {
		ra->order += 2;
		align_end(ra, max);
	}
	ra->async_size = ra->size;
	if (!l->congested)
		read_window(m, ra, l, wanted_order(m, ra, l, order));
}
