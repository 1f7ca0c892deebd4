/* SPDX-License-Identifier: MIT */
/*
 * Read sections: how a task looks at shared memory without a lock while others take pieces
 * of it away. Who takes a piece away unlinks it, then retires it: it is freed when every
 * section that was open then has ended. See epoch.c for how that is known.
 *
 * A section is short: no lock is waited for in it, nothing parks, and nothing is retired.
 * Sections nest. Any thread may open one, in either world, without having said so before.
 */
#ifndef SLUICE_WORLD_EPOCH_H
#define SLUICE_WORLD_EPOCH_H

#include "base/list.h"
#include "world/fence.h"

/* A thread's record: in its own thread-local storage, on the list of all from first use to exit. */
struct world_reader {
	_Alignas(64) _Atomic u64 epoch; /* in which its section began; 0: it is in none */
	u32 nesting;
	bool registered,
		light;         /* light: registered, and world_fences_light, which stays as it is */
	struct list_node link; /* under epoch.c's registry lock */
};

struct world_epoch {
	_Alignas(64) _Atomic u64 now; /* 1, 2, ... */
	_Atomic u32 waiting;          /* somebody parks on it until a section ends */
};

extern struct world_epoch world_epoch;
extern _Thread_local struct world_reader world_reader TLS_DIRECT;

void world_reader_register(void); /* any number of times */
void world_reader_wake(void);

/* Between the mark of a section and the loads of it, and before looking for one who waits. */
static inline void world_reader_fence(struct world_reader *r)
{
#ifdef WORLD_TSAN
	/* it knows no fences, but this is one everywhere it runs */
	atomic_fetch_add(&r->epoch, 0);
#else
	if (likely(r->light))
		atomic_signal_fence(memory_order_seq_cst);
	else
		atomic_thread_fence(memory_order_seq_cst);
#endif
}

static inline void world_read_begin(void)
{
	struct world_reader *r = &world_reader;

	if (r->nesting++)
		return;
	if (unlikely(!r->light))
		world_reader_register();
	/* a stale epoch only holds up those who free */
	atomic_store_explicit(&r->epoch,
			      atomic_load_explicit(&world_epoch.now, memory_order_relaxed),
			      memory_order_relaxed);
	world_reader_fence(r);
}

static inline void world_read_end(void)
{
	struct world_reader *r = &world_reader;

	assert(r->nesting);
	if (--r->nesting)
		return;
	atomic_store_explicit(&r->epoch, 0, memory_order_release);
	world_reader_fence(r);
	if (unlikely(atomic_load_explicit(&world_epoch.waiting, memory_order_relaxed)))
		world_reader_wake();
}

/* For assertions. */
static inline bool world_is_reading(void)
{
	return world_reader.nesting != 0;
}

/* In what is retired; it may share memory with fields that readers do not look at. */
struct world_retired {
	struct world_retired *next;
	void (*free)(struct world_retired *r);
};

/*
 * Calls `fn`, which takes no lock of anybody's, when no section that may see r is open: in the
 * simulated world at once, since nothing parks in a section; in the real one from a later call, by
 * any thread. Spinlocks may be held. Waits for sections to end only if thousands of retired
 * pieces do.
 */
void world_retire(struct world_retired *r, void (*fn)(struct world_retired *r));
/* Waits until all sections that are open now have ended; then frees what was retired before. */
void world_read_synchronize(void);

#endif
