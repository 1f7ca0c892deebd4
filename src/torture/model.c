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
 * Versions go into the array when they are on the disk for certain, nothing else is under way, and
 * no version that overlaps them could be older or of the same time.
 */
#include "torture/model.h"
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
	free(m->base);
	free(m->version);
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

static bool may_be(const struct model *m, const struct stretch *s, u64 at, u8 byte)
{
	if (s->base && m->base[at] == byte)
		return true;
	for (u32 i = s->count; i-- > 0;) {
		const struct version *v = s->seen[i];

		if ((v->bytes ? v->bytes[at - v->from] : 0) == byte)
			return true;
	}
	return false;
}

u64 model_allows(struct model *m, u64 offset, const u8 *bytes, u64 n, u64 start, bool disk)
{
	u64 at = offset, end = offset + n;
	struct stretch s;

	assert(end <= m->capacity);
	while (at < end) {
		look(m, at, end, start, disk, &s);
		for (; at < s.end; at++)
			if (!may_be(m, &s, at, bytes[at - offset]))
				return at - offset;
	}
	return n;
}
