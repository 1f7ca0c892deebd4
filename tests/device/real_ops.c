// SPDX-License-Identifier: MIT
/*
 * Random operations on a store of the real world, and on a model of it. The area is cut into
 * lanes, one for each I/O in flight, so that no two I/Os overlap and the model needs no order.
 * Everything past the end of the file in a written block is 0xee, which must never be seen.
 */
#include "real_rig.h"

struct play {
	struct store *store;
	struct real_model *m;
	struct rng rng;
	u32 unit;
	struct real_io lanes[REAL_LANES];
	u64 offset[REAL_LANES];
	u32 length[REAL_LANES];
};

#define LANE_BYTES (REAL_BYTES / REAL_LANES)

static void set_end(struct play *p, u64 end)
{
	p->m->end = end;
	store_set_end(p->store, end);
}

/* Chooses what a lane writes, [from, to), for the file's users. */
static void choose(struct play *p, unsigned lane, u64 *from, u64 *to)
{
	*from = lane * LANE_BYTES + rng_below(&p->rng, LANE_BYTES);
	*to = *from + 1 + rng_below(&p->rng, (lane + 1) * LANE_BYTES - *from);
	if (*to > p->m->end)
		set_end(p, *to);
	for (u64 i = *from; i < *to; i++)
		p->m->bytes[i] = (u8)(rng_u64(&p->rng) | 1);
}

/* What the file layer makes of it: the blocks that [first, last) is in. */
static void start_write(struct play *p, unsigned lane, u64 first, u64 last, u32 unit)
{
	struct real_model *m = p->m;
	u8 *buf = p->lanes[lane].buf;

	first -= first % unit;
	last += (unit - last % unit) % unit;
	for (u64 i = first; i < last; i++)
		buf[i - first] = i < m->end ? m->bytes[i] : 0xee;
	m->size = max_u64(m->size, min_u64(last, m->end));
	real_submit(&p->lanes[lane], p->store, IO_WRITE, first, (u32)(last - first), unit, &p->rng);
}

static void write_some(struct play *p)
{
	unsigned lanes = 1 + (unsigned)rng_below(&p->rng, REAL_LANES);
	u32 unit = rng_below(&p->rng, 8) ? p->unit : 1;
	u64 from[REAL_LANES], to[REAL_LANES];

	for (unsigned i = 0; i < lanes; i++) /* all first: the end must not move under an I/O */
		choose(p, i, &from[i], &to[i]);
	for (unsigned i = 0; i < lanes; i++)
		start_write(p, i, from[i], to[i], unit);
	for (unsigned i = 0; i < lanes; i++)
		assert_int_equal(real_wait(&p->lanes[i]), 0);
}

static void read_some(struct play *p)
{
	unsigned lanes = 1 + (unsigned)rng_below(&p->rng, REAL_LANES);
	u32 unit = rng_below(&p->rng, 8) ? p->unit : 1;

	for (unsigned i = 0; i < lanes; i++) {
		u64 units = REAL_BYTES / unit, first = rng_below(&p->rng, units);
		u64 n = 1 + rng_below(&p->rng, min_u64(units - first, LANE_BYTES / unit));

		p->offset[i] = first * unit;
		p->length[i] = (u32)n * unit;
		memset(p->lanes[i].buf, 0xdd, p->length[i]);
		real_submit(&p->lanes[i], p->store, IO_READ, p->offset[i], p->length[i], unit,
			    &p->rng);
	}
	for (unsigned i = 0; i < lanes; i++) {
		assert_int_equal(real_wait(&p->lanes[i]), 0);
		assert_memory_equal(p->lanes[i].buf, p->m->bytes + p->offset[i], p->length[i]);
	}
}

static void wait_and_read(struct play *p)
{
	u64 offset = rng_below(&p->rng, REAL_BYTES);
	u32 length = 1 + (u32)rng_below(&p->rng, min_u64(REAL_BYTES - offset, LANE_BYTES));
	u8 *buf = p->lanes[0].buf;

	assert_int_equal(real_transfer(p->store, IO_READ, offset, buf, length), 0);
	assert_memory_equal(buf, p->m->bytes + offset, length);
	memset(buf, 0xdd, length);
	store_peek(p->store, offset, buf, length);
	assert_memory_equal(buf, p->m->bytes + offset, length);
}

static void truncate_it(struct play *p)
{
	u64 size = rng_below(&p->rng, 4) ? rng_below(&p->rng, REAL_BYTES + 1) : 0;

	assert_int_equal(store_truncate(p->store, size), 0);
	memset(p->m->bytes + size, 0, REAL_BYTES - size);
	p->m->size = p->m->end = size;
}

static void punch_it(struct play *p)
{
	u64 pages = REAL_BYTES / PAGE_SIZE, page = rng_below(&p->rng, pages);
	u64 n = 1 + rng_below(&p->rng, min_u64(16, pages - page));

	assert_int_equal(store_punch(p->store, page, n), 0);
	memset(p->m->bytes + page * PAGE_SIZE, 0, n * PAGE_SIZE);
}

static void make_room(struct play *p)
{
	u64 offset = rng_below(&p->rng, REAL_BYTES);
	u64 length = rng_below(&p->rng, REAL_BYTES - offset + 1);

	assert_int_equal(store_reserve(p->store, offset, length), 0);
}

/* What may be said of what was never written. */
static void check_holes(struct play *p)
{
	u64 pages = REAL_BYTES / PAGE_SIZE, page = rng_below(&p->rng, pages);
	u64 n = 1 + rng_below(&p->rng, pages - page), end = page + n, at;

	for (at = page; at < end; at++) { /* bytes that are not zero are never in a hole */
		const u8 *bytes = p->m->bytes + at * PAGE_SIZE;

		if (bytes[0] || memcmp(bytes, bytes + 1, PAGE_SIZE - 1) != 0)
			break;
	}
	assert_true(store_next(p->store, page, end, true) <= at);
	if (at < end)
		assert_true(store_any_written(p->store, page, n));
	if (page * PAGE_SIZE >= p->m->size) {
		assert_false(store_any_written(p->store, page, n));
		assert_int_equal(store_next(p->store, page, end, true), end);
		assert_int_equal(store_next(p->store, page, end, false), page);
	}
}

static void lay_out(struct play *p)
{
	u64 size = rng_below(&p->rng, REAL_BYTES + 1);

	assert_int_equal(store_lay_out(p->store, size), 0);
	if (size > p->m->size)
		p->m->size = p->m->end = max_u64(p->m->end, size);
}

static void one_step(struct play *p)
{
	switch (rng_below(&p->rng, 16)) {
	case 0:
		truncate_it(p);
		break;
	case 1:
		punch_it(p);
		break;
	case 2:
		make_room(p);
		break;
	case 3:
		assert_int_equal(real_flush(p->store), 0);
		break;
	case 4:
		lay_out(p);
		break;
	case 5:
	case 6:
		wait_and_read(p);
		break;
	case 7:
		check_holes(p);
		break;
	case 8:
	case 9:
	case 10:
		read_some(p);
		break;
	default:
		write_some(p);
	}
	assert_int_equal(store_size(p->store), p->m->size);
}

void real_play(struct store *s, struct real_model *m, u64 seed, unsigned rounds, u32 unit)
{
	struct play p = { .store = s, .m = m, .unit = unit };

	rng_init(&p.rng, seed);
	memset(m, 0, sizeof(*m));
	store_set_end(s, 0);
	for (unsigned i = 0; i < REAL_LANES; i++)
		p.lanes[i].buf = real_buffer(LANE_BYTES + PAGE_SIZE);
	for (unsigned i = 0; i < rounds; i++)
		one_step(&p);
	for (unsigned i = 0; i < REAL_LANES; i++)
		free(p.lanes[i].buf);
}
