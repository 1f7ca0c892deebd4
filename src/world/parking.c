/* SPDX-License-Identifier: MIT */
/*
 * A hash table from the address of a word to the queue of those who are parked on it.
 * There can be no more queues than parked tasks, so every task brings one queue along
 * when it is made and parking never allocates: the first who parks on a word takes any
 * spare queue for it, and when the last leaves, the queue is spare again (the turnstiles
 * of Solaris: Mauro and McDougall, "Solaris Internals", 3.5). The table doubles
 * with the number of tasks.
 *
 * Addresses differ from run to run, so nothing that can be seen may depend on the
 * order of queues in a bucket, and nothing does: only the order within one queue shows.
 */
#include "world/parking.h"
#include <stdlib.h>

#define BUCKET_BITS_AT_START 6

static u32 bucket_of(const struct parking *p, const void *word)
{
	/* Knuth's multiplicative hash: the high bits of address * 2^64/phi */
	return (u32)((u64)(uintptr_t)word * 0x9e3779b97f4a7c15ull >> (64 - p->bucket_bits));
}

bool parking_init(struct parking *p)
{
	*p = (struct parking){ .bucket_bits = BUCKET_BITS_AT_START };
	p->buckets = calloc(1ull << p->bucket_bits, sizeof(*p->buckets));
	return p->buckets;
}

void parking_finish(struct parking *p)
{
	free(p->buckets);
	p->buckets = NULL;
}

static bool grow(struct parking *p)
{
	struct parking old = *p;
	struct park_queue *q, *next, **bucket;

	p->bucket_bits++;
	p->buckets = calloc(1ull << p->bucket_bits, sizeof(*p->buckets));
	if (!p->buckets) {
		*p = old;
		return false;
	}
	for (u64 i = 0; i < 1ull << old.bucket_bits; i++) {
		for (q = old.buckets[i]; q; q = next) {
			next = q->next;
			bucket = &p->buckets[bucket_of(p, q->word)];
			q->next = *bucket;
			*bucket = q;
		}
	}
	free(old.buckets);
	return true;
}

bool parking_enter(struct parking *p, struct parked *t)
{
	if (p->tasks >> p->bucket_bits && !grow(p))
		return false;
	p->tasks++;
	t->queue = NULL;
	t->brought.next = p->spare;
	p->spare = &t->brought;
	return true;
}

static struct park_queue *find(const struct parking *p, const void *word)
{
	struct park_queue *q = p->buckets[bucket_of(p, word)];

	while (q && q->word != word)
		q = q->next;
	assert(!q || !list_empty(&q->waiting));
	return q;
}

void parking_add(struct parking *p, struct parked *t, const void *word)
{
	struct park_queue *q = find(p, word), **bucket;

	assert(!t->queue);
	if (!q) {
		q = p->spare;
		assert(q);
		p->spare = q->next;
		bucket = &p->buckets[bucket_of(p, word)];
		q->word = word;
		q->next = *bucket;
		*bucket = q;
		list_init(&q->waiting);
	}
	t->queue = q;
	list_add_tail(&q->waiting, &t->link);
}

void parking_remove(struct parking *p, struct parked *t)
{
	struct park_queue *q = t->queue, **link;

	assert(q);
	t->queue = NULL;
	list_del(&t->link);
	if (!list_empty(&q->waiting))
		return;
	link = &p->buckets[bucket_of(p, q->word)];
	while (*link != q)
		link = &(*link)->next;
	*link = q->next;
	q->next = p->spare;
	p->spare = q;
}

struct parked *parking_first(struct parking *p, const void *word)
{
	struct park_queue *q = find(p, word);

	return q ? list_entry(q->waiting.next, struct parked, link) : NULL;
}
