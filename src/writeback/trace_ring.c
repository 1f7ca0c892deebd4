// SPDX-License-Identifier: MIT
/*
 * Rings of events: one for each thread that comes by, so that each has a single writer, who needs
 * no lock and no atomic exchange. A ring is a power of two of slots and a count of the events ever
 * put into it, which says where the next goes: the oldest gives way. Who reads copies a slot and
 * then looks at the count again: if that has come round so far that the slot may have been
 * written meanwhile, the copy is thrown away and the event counts as lost. So a writer never waits
 * for a reader (Lamport, "Concurrent reading and writing", 1977). The words of a slot are atomics
 * with acquire and release, which cost nothing on x86, so that the second look cannot come too
 * early.
 *
 * A thread finds its ring by a word of its own that remembers the last trace it worked for. When a
 * thread ends its ring is free to be taken by the next, with what is in it. A trace that was
 * stopped is not freed before its cache, since a writer may still be at work in it, but started
 * again when one of its size is wanted.
 *
 * The time of an event is that of the cheapest clock there is (world/ticks.h), turned into
 * nanoseconds by the reader, who has read both clocks at the start and reads them again.
 *
 * In the simulated world all tasks run on one thread: one ring, or a sink that is called at once.
 */
#include "base/list.h"
#include "world/lock.h"
#include "world/ticks.h"
#include "writeback/trace.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#define RINGS_MAX 256 /* threads at a time that can be recorded; events of others are lost */

/* The words of a slot: time, kind and thread, fields. */
struct slot {
	_Atomic u64 word[2 + TRACE_FIELDS];
};

struct ring {
	_Alignas(64) _Atomic u64 head; /* events ever put; the writer's */
	_Atomic u64 owner;             /* task, 0: free to take */
	u32 thread; /* of the owner, for its events; 0: each its own (simulated) */
	struct trace *trace;
	_Alignas(64) u64 tail; /* the reader's: the next to be read */
	struct slot slots[];
};

struct trace {
	u64 serial;           /* of all traces of the process: no two are alike */
	u32 size;             /* slots of a ring, a power of two */
	bool has;             /* world_has_ticks(); immutable, as are size and sink */
	u64 ticks;            /* at the start, the two clocks */
	u64 now_ns;           /* ... */
	u64 last_ns;          /* time of the event that was read last */
	u64 lost;             /* as the reader counts */
	_Atomic u64 homeless; /* events without a ring */
	void (*sink)(void *ctx, const struct trace_event *e);
	void *sink_ctx;
	struct trace *next;    /* of its slot's */
	struct list_node link; /* of `traces` */
	struct spinlock lock;  /* protects the next two against other writers */
	_Atomic u32 count;
	_Atomic(struct ring *) ring[RINGS_MAX];
};

/* All traces of the process, for the end of a thread; `traces_lock` protects the list. */
static struct spinlock traces_lock = { .rank = RANK_NONE };
static struct list_node traces = { &traces, &traces };
static u64 last_serial; /* traces_lock */

/* The ring of this thread in the trace with that number. */
static _Thread_local struct {
	u64 serial;
	struct ring *ring;
} mine TLS_DIRECT;

static void thread_ends(void)
{
	u64 id = world_task_id();
	struct list_node *n;

	mine.serial = 0;
	spin_lock(&traces_lock);
	list_for_each (n, &traces) {
		struct trace *t = list_entry(n, struct trace, link);

		for (u32 i = 0; i < atomic_load(&t->count); i++) {
			struct ring *r = atomic_load(&t->ring[i]);

			if (atomic_load(&r->owner) == id)
				atomic_store(&r->owner, 0);
		}
	}
	spin_unlock(&traces_lock);
}

/* A ring of the trace that `id` has, or that nobody has. */
static struct ring *take_ring(struct trace *t, u64 id)
{
	struct ring *found = NULL;

	for (u32 i = 0; i < atomic_load(&t->count) && !found; i++) {
		struct ring *r = atomic_load(&t->ring[i]);

		if (atomic_load(&r->owner) == id)
			found = r;
	}
	for (u32 i = 0; i < atomic_load(&t->count) && !found; i++) {
		struct ring *r = atomic_load(&t->ring[i]);
		u64 nobody = 0;

		if (atomic_compare_exchange_strong(&r->owner, &nobody, id))
			found = r;
	}
	return found;
}

/* Adds a new ring, the owner's from the start; it is freed again if there is no place. */
static struct ring *add_ring(struct trace *t, u64 id)
{
	size_t bytes = sizeof(struct ring) + t->size * sizeof(struct slot);
	struct ring *r = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
	u32 n;

	if (!r)
		return NULL;
	atomic_init(&r->head, 0);
	atomic_init(&r->owner, id);
	r->trace = t;
	r->tail = 0;
	spin_lock(&t->lock);
	n = atomic_load(&t->count);
	if (n < RINGS_MAX) {
		atomic_store(&t->ring[n], r);
		atomic_store(&t->count, n + 1);
	}
	spin_unlock(&t->lock);
	if (n < RINGS_MAX)
		return r;
	free(r);
	return NULL;
}

static struct ring *find_ring(struct trace *t)
{
	/* in the simulated world the ring is the thread's, whatever task runs on it */
	u64 id = world_is_sim() ? UINT64_MAX : world_task_id();
	struct ring *r = take_ring(t, id);

	if (!r)
		r = add_ring(t, id);
	if (!r)
		return NULL;
	r->thread = world_is_sim() ? 0 : (u32)gettid();
	mine.serial = t->serial;
	mine.ring = r;
	return r;
}

static void put_sink(struct trace *t, enum trace_kind kind, const s64 *field, u32 n)
{
	struct trace_event e = { .time_ns = world_now(),
				 .kind = kind,
				 .thread = (u32)world_task_id() };

	for (u32 i = 0; i < n; i++)
		e.field[i] = field[i];
	t->sink(t->sink_ctx, &e);
}

void trace_put(struct trace_slot *slot, enum trace_kind kind, const s64 *field, u32 n)
{
	struct trace *t = atomic_load_explicit(&slot->on, memory_order_acquire);
	struct ring *r;
	struct slot *to;
	u64 head;
	u32 thread;

	if (!t)
		return;
	if (unlikely(t->sink)) {
		put_sink(t, kind, field, n);
		return;
	}
	r = likely(mine.serial == t->serial) ? mine.ring : find_ring(t);
	if (unlikely(!r)) {
		atomic_fetch_add_explicit(&t->homeless, 1, memory_order_relaxed);
		return;
	}
	head = atomic_load_explicit(&r->head, memory_order_relaxed);
	to = &r->slots[head & (t->size - 1)];
	thread = r->thread ? r->thread : (u32)world_task_id();
	atomic_store_explicit(&to->word[0], world_ticks(t->has), memory_order_release);
	atomic_store_explicit(&to->word[1], (u64)thread << 32 | kind, memory_order_release);
	for (u32 i = 0; i < n; i++)
		atomic_store_explicit(&to->word[2 + i], (u64)field[i], memory_order_release);
	atomic_store_explicit(&r->head, head + 1, memory_order_release);
}

/* --- reading */

/* Moves the tail past what has given way or is about to; true if there is something to read. */
static bool catch_up(struct trace *t, struct ring *r)
{
	u64 head = atomic_load_explicit(&r->head, memory_order_acquire);

	if (head - r->tail >= t->size) {
		u64 oldest = head - t->size + 1; /* the one before it may be written just now */

		t->lost += oldest - r->tail;
		r->tail = oldest;
	}
	return r->tail != head;
}

static u64 load(const struct slot *s, u32 i)
{
	return atomic_load_explicit(&s->word[i], memory_order_acquire);
}

/* The oldest event of all rings, with its time in ticks; false: there is none. */
static bool read_oldest(struct trace *t, struct trace_event *out)
{
	for (;;) {
		struct ring *oldest = NULL;
		u64 at = 0, word;
		const struct slot *s;

		for (u32 i = 0; i < atomic_load(&t->count); i++) {
			struct ring *r = atomic_load(&t->ring[i]);
			u64 ticks;

			if (!catch_up(t, r))
				continue;
			ticks = load(&r->slots[r->tail & (t->size - 1)], 0);
			if (!oldest || ticks < at) {
				oldest = r;
				at = ticks;
			}
		}
		if (!oldest)
			return false;
		s = &oldest->slots[oldest->tail & (t->size - 1)];
		word = load(s, 1);
		*out = (struct trace_event){ load(s, 0), (u32)word, (u32)(word >> 32), { 0 } };
		for (u32 i = 0; i < TRACE_FIELDS && trace_field(out->kind, i); i++)
			out->field[i] = (s64)load(s, 2 + i);
		word = atomic_load_explicit(&oldest->head, memory_order_acquire);
		if (word - oldest->tail < t->size) { /* it was not written meanwhile */
			oldest->tail++;
			return true;
		}
	}
}

/* Ticks since the start are to nanoseconds as the two clocks are now. */
static u64 time_of(struct trace *t, u64 ticks, u64 ticks_now, u64 ns_now)
{
	u64 ns = ticks;

	if (ticks_now != ns_now || t->ticks != t->now_ns)
		ns = t->now_ns +
		     (u64)((double)(s64)(ticks - t->ticks) * (double)(ns_now - t->now_ns) /
			   (double)max_u64(ticks_now - t->ticks, 1));
	t->last_ns = max_u64(ns, t->last_ns);
	return t->last_ns;
}

ssize_t trace_read(struct trace_slot *slot, struct trace_event *out, size_t count, u64 *lost)
{
	struct trace *t = atomic_load(&slot->on);
	u64 ticks_now, ns_now;
	size_t n = 0;

	if (!t || t->sink)
		return -ENODATA;
	while (n < count && read_oldest(t, &out[n]))
		n++;
	ticks_now = world_ticks(t->has);
	ns_now = world_now();
	for (size_t i = 0; i < n; i++)
		out[i].time_ns = time_of(t, out[i].time_ns, ticks_now, ns_now);
	if (lost)
		*lost = t->lost + atomic_load(&t->homeless);
	return (ssize_t)n;
}

/* --- starting and stopping */

/* What a writer reads of a trace is set here once: one may still be at it when it starts anew. */
static struct trace *make_trace(struct trace_slot *slot, u32 size,
				void (*sink)(void *ctx, const struct trace_event *e), void *ctx)
{
	struct trace *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->size = size;
	t->sink = sink;
	t->sink_ctx = ctx;
	t->has = world_has_ticks();
	spin_init(&t->lock, RANK_NONE);
	spin_lock(&traces_lock);
	t->serial = ++last_serial;
	list_add_tail(&traces, &t->link);
	spin_unlock(&traces_lock);
	t->next = slot->all;
	slot->all = t;
	return t;
}

static int start(struct trace_slot *slot, u32 size,
		 void (*sink)(void *ctx, const struct trace_event *e), void *ctx)
{
	struct trace *t = slot->all;

	if (atomic_load(&slot->on))
		return -EBUSY;
	while (t && (t->size != size || t->sink))
		t = t->next;
	if (!t)
		t = make_trace(slot, size, sink, ctx);
	if (!t || world_at_task_end(thread_ends))
		return -ENOMEM;
	for (u32 i = 0; i < atomic_load(&t->count); i++) {
		struct ring *r = atomic_load(&t->ring[i]);

		r->tail = atomic_load(&r->head);
	}
	t->lost = 0;
	atomic_store(&t->homeless, 0);
	t->ticks = world_ticks(t->has);
	t->now_ns = t->last_ns = world_now();
	atomic_fetch_add(&trace_word, 1u << 16);
	atomic_store(&slot->on, t);
	return 0;
}

int trace_start(struct trace_slot *slot, u32 events)
{
	u32 size = 2;

	assert(events && events <= TRACE_RING_MAX);
	while (size <= events) /* one slot is always at risk */
		size *= 2;
	return start(slot, size, NULL, NULL);
}

int trace_start_sink(struct trace_slot *slot, void (*sink)(void *ctx, const struct trace_event *e),
		     void *ctx)
{
	return start(slot, 0, sink, ctx);
}

int trace_stop(struct trace_slot *slot)
{
	if (!atomic_load(&slot->on))
		return -ENODATA;
	atomic_store(&slot->on, NULL);
	atomic_fetch_sub(&trace_word, 1u << 16);
	return 0;
}

void trace_finish(struct trace_slot *slot)
{
	trace_stop(slot);
	while (slot->all) {
		struct trace *t = slot->all;

		slot->all = t->next;
		spin_lock(&traces_lock);
		list_del(&t->link);
		spin_unlock(&traces_lock);
		for (u32 i = 0; i < atomic_load(&t->count); i++)
			free(atomic_load(&t->ring[i]));
		free(t);
	}
}
