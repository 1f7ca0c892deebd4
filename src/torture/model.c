// SPDX-License-Identifier: MIT
/*
 * The reference model of a file: a plain array of bytes, and on top of it one version for each
 * operation that set bytes since, with the times at which it began and ended.
 *
 * One rule says what a read may give: the bytes of any version that began before the read ended,
 * unless another one, which began after that version had ended, was itself over before the read
 * began. So what is overwritten for certain is gone, and of what happens at the same time each
 * outcome is right, byte by byte (this is Lamport's regular register, "On interprocess
 * communication", 1986, with several writers).
 *
 * The same rule says what a disk may hold after a power loss: it is a read that began when the
 * last fsync that succeeded began, and ends now.
 *
 * Bytes of one sector come from one moment: of the outcomes that are right byte by byte, those are
 * wrong that no moment has. It is enough to try the moments right before and after an operation
 * begins or ends, since in between nothing changes; and to try them where not a single
 * operation explains all of the sector. A sector in which the file was cut is left out: a size may
 * reach the disk before data that was written earlier.
 *
 * Versions go into the array when they are on the disk for certain, nothing else is under way, and
 * no version that overlaps them could be older or of the same time.
 */
#include "torture/model.h"
#include "base/bits.h"
#include <stdlib.h>
#include <string.h>

#define MODEL_SEEN_MAX 1024 /* versions of one byte that may be seen */

void model_init(struct model *m, u64 capacity, u64 *clock)
{
	*m = (struct model){ .clock = clock, .capacity = capacity };
	m->base = calloc(1, capacity);
	if (!m->base)
		abort();
}

void model_finish(struct model *m)
{
	while (m->past) {
		struct past *next = m->past->next;

		free(m->past);
		m->past = next;
	}
	free(m->base);
	free(m->version);
}

void model_restart(struct model *m, const u8 *base)
{
	for (u32 i = 0; i < m->count; i++)
		m->version[i].used = false;
	m->count = 0;
	memcpy(m->base, base, m->capacity);
}

void model_past(struct model *m, u64 from, u64 to, const u8 *bytes)
{
	u8 *copy = NULL;

	if (bytes) {
		struct past *p = malloc(sizeof(*p) + (to - from));

		if (!p)
			abort();
		copy = p->bytes;
		memcpy(copy, bytes, to - from);
		p->next = m->past;
		m->past = p;
	}
	model_end(m, model_begin(m, from, to, copy), from, to, false, false);
}

u64 model_tick(struct model *m)
{
	return ++*m->clock;
}

u32 model_begin(struct model *m, u64 from, u64 to, const u8 *bytes)
{
	u32 i = 0;

	assert(from <= to && to <= m->capacity);
	while (i < m->count && m->version[i].used)
		i++;
	if (i == m->room) {
		m->room = m->room ? 2 * m->room : 64;
		m->version = realloc(m->version, m->room * sizeof(*m->version));
		if (!m->version)
			abort();
	}
	if (i == m->count)
		m->count++;
	m->version[i] = (struct version){ .start = model_tick(m),
					  .end = MODEL_NEVER,
					  .from = from,
					  .to = to,
					  .bytes = bytes,
					  .used = true };
	return i;
}

void model_end(struct model *m, u32 number, u64 from, u64 to, bool maybe, bool safe)
{
	struct version *v = &m->version[number];

	assert(v->used && from >= v->from && to <= v->to);
	if (v->bytes)
		v->bytes += from - v->from;
	v->from = from;
	v->to = to;
	v->end = model_tick(m);
	v->maybe = maybe;
	v->safe = safe && !maybe;
	if (from >= to)
		v->used = false;
}

static bool overlap(const struct version *a, const struct version *b)
{
	return a->from < b->to && b->from < a->to;
}

/* Nothing that overlaps it is older than it or of its time. */
static bool is_oldest(const struct model *m, const struct version *v)
{
	for (u32 i = 0; i < m->count; i++) {
		const struct version *w = &m->version[i];

		if (w != v && w->used && overlap(v, w) && w->start < v->end)
			return false;
	}
	return true;
}

static bool fold_one(struct model *m)
{
	for (u32 i = 0; i < m->count; i++) {
		struct version *v = &m->version[i];

		if (!v->used || v->maybe || v->end > m->durable || !is_oldest(m, v))
			continue;
		if (v->bytes)
			memcpy(m->base + v->from, v->bytes, v->to - v->from);
		else
			memset(m->base + v->from, 0, v->to - v->from);
		v->used = false;
		return true;
	}
	return false;
}

/* A version that failed is gone when a later one covers it. */
static void drop_hidden(struct model *m)
{
	for (u32 i = 0; i < m->count; i++) {
		struct version *v = &m->version[i];

		for (u32 j = 0; v->used && v->end <= m->durable && j < m->count; j++) {
			const struct version *w = &m->version[j];

			if (w->used && !w->maybe && w->end <= m->durable && w->start >= v->end &&
			    w->from <= v->from && w->to >= v->to)
				v->used = false;
		}
	}
}

void model_synced(struct model *m, u64 start)
{
	if (start > m->durable)
		m->durable = start;
	if (m->active)
		return;
	drop_hidden(m);
	while (fold_one(m))
		;
	while (m->count && !m->version[m->count - 1].used)
		m->count--;
}

/* Whether byte `at` of v (NULL: of the array) was overwritten before `start` for certain. */
static bool is_hidden(const struct model *m, const struct version *v, u64 at, u64 start, bool disk)
{
	for (u32 i = 0; i < m->count; i++) {
		const struct version *w = &m->version[i];

		if (w->used && !w->maybe && at >= w->from && at < w->to &&
		    (w->end <= start || (disk && w->safe)) && (!v || w->start >= v->end))
			return true;
	}
	return false;
}

/* What a stretch, over which the versions that cover it stay the same, may hold. */
struct stretch {
	const struct version *seen[MODEL_SEEN_MAX];
	u32 count;
	bool base;
	u64 end;
};

static void look(const struct model *m, u64 at, u64 end, u64 start, bool disk, struct stretch *s)
{
	*s = (struct stretch){ .end = end, .base = !is_hidden(m, NULL, at, start, disk) };
	for (u32 i = 0; i < m->count; i++) {
		const struct version *v = &m->version[i];

		if (!v->used)
			continue;
		if (v->from > at)
			s->end = min_u64(s->end, v->from);
		else if (v->to > at)
			s->end = min_u64(s->end, v->to);
		if (v->from > at || v->to <= at || is_hidden(m, v, at, start, disk))
			continue;
		assert(s->count < MODEL_SEEN_MAX);
		s->seen[s->count++] = v;
	}
}

/* How many of these bytes, from the first on, are those of v (NULL: of the array). */
static u64 alike(const struct model *m, const struct version *v, u64 at, const u8 *bytes, u64 n)
{
	const u8 *of = !v ? m->base + at : v->bytes ? v->bytes + (at - v->from) : NULL;
	u64 i = 0;

	if (of && !memcmp(of, bytes, n))
		return n;
	while (i < n && bytes[i] == (of ? of[i] : 0))
		i++;
	return i;
}

/* How many of these bytes, from the first on, the stretch may hold: as a rule all are of one. */
static u64 may_be(const struct model *m, const struct stretch *s, u64 at, const u8 *bytes, u64 n)
{
	u64 most = s->base ? alike(m, NULL, at, bytes, n) : 0;

	for (u32 i = s->count; most < n && i-- > 0;)
		most = max_u64(most, alike(m, s->seen[i], at, bytes, n));
	return most;
}

u64 model_allows(struct model *m, u64 offset, const u8 *bytes, u64 n, u64 start, bool disk)
{
	u64 at = offset, end = offset + n;
	struct stretch s;

	assert(end <= m->capacity);
	while (at < end) {
		look(m, at, end, start, disk, &s);
		while (at < s.end) {
			u64 good = may_be(m, &s, at, bytes + (at - offset), s.end - at);

			if (!good)
				return at - offset;
			at += good;
		}
	}
	return n;
}

/* --- sectors */

#define SECTOR      512u
#define MOMENTS_MAX 256

/* The byte of v (NULL: of the array) at `at`. */
static u8 byte_of(const struct model *m, const struct version *v, u64 at)
{
	if (!v)
		return m->base[at];
	return v->bytes ? v->bytes[at - v->from] : 0;
}

/* Whether all bytes are those of v. */
static bool explains(const struct model *m, const struct version *v, u64 at, const u8 *bytes, u64 n)
{
	if (v && (!v->used || v->from > at || v->to < at + n))
		return false;
	return alike(m, v, at, bytes, n) == n;
}

/* Whether the byte may be seen at that moment. */
static bool may_be_at(const struct model *m, u64 at, u8 byte, u64 moment)
{
	if (byte_of(m, NULL, at) == byte && !is_hidden(m, NULL, at, moment, false))
		return true;
	for (u32 i = 0; i < m->count; i++) {
		const struct version *v = &m->version[i];

		if (v->used && v->start <= moment && at >= v->from && at < v->to &&
		    byte_of(m, v, at) == byte && !is_hidden(m, v, at, moment, false))
			return true;
	}
	return false;
}

static bool all_at(const struct model *m, u64 at, const u8 *bytes, u64 n, u64 moment)
{
	for (u64 i = 0; i < n; i++)
		if (!may_be_at(m, at + i, bytes[i], moment))
			return false;
	return true;
}

/*
 * The moments from `start` on at which something changes in [at, at + n); 0: too many, or the file
 * was cut there.
 */
static u32 moments_of(const struct model *m, u64 at, u64 n, u64 start, u64 *moment)
{
	u32 count = 0;

	moment[count++] = start;
	moment[count++] = *m->clock;
	for (u32 i = 0; i < m->count; i++) {
		const struct version *v = &m->version[i];

		if (!v->used || v->from >= at + n || v->to <= at)
			continue;
		if (count + 3 > MOMENTS_MAX || (v->from > at && v->to == m->capacity && !v->bytes))
			return 0;
		if (v->start >= start)
			moment[count++] = v->start;
		if (v->end != MODEL_NEVER && v->end >= start)
			moment[count++] = v->end;
		if (v->end != MODEL_NEVER && v->end > start)
			moment[count++] = v->end - 1;
	}
	return count;
}

static bool sector_is_of_one_moment(const struct model *m, u64 at, const u8 *bytes, u64 n,
				    u64 start)
{
	u64 moment[MOMENTS_MAX];
	u32 count;

	if (explains(m, NULL, at, bytes, n))
		return true;
	for (u32 i = m->count; i-- > 0;)
		if (explains(m, &m->version[i], at, bytes, n))
			return true;
	count = moments_of(m, at, n, start, moment);
	for (u32 i = 0; i < count; i++)
		if (all_at(m, at, bytes, n, moment[i]))
			return true;
	return !count;
}

u64 model_allows_sectors(struct model *m, u64 offset, const u8 *bytes, u64 n, u64 start)
{
	for (u64 at = offset, next; at < offset + n; at = next) {
		next = min_u64(round_down(at, SECTOR) + SECTOR, offset + n);
		if (!sector_is_of_one_moment(m, at, bytes + (at - offset), next - at, start))
			return at - offset;
	}
	return n;
}
