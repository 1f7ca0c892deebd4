/* SPDX-License-Identifier: MIT */
/*
 * What any cache must pay, whatever it is made of: a bare memcpy of the pattern that bench_hit
 * reads and writes, and beside it the same with the least that a cache adds. Each page has an entry
 * of 32 bytes in one table, or in two, as a descriptor and a line of an index. It is only looked
 * at; or it says where the bytes are, so that they cannot be fetched before it is there; or it is a
 * lock. Then instructions that do nothing, but of which the processor has only so many under way.
 * And whether two threads do twice the work of one here, with nothing between them.
 *
 * Ratios are to the bare copy of the same round, CPU time of the thread.
 */
#include "base/bits.h"
#include "together.h"
#include <string.h>
#include <sys/mman.h>

#define MIB    (1ull << 20)
#define GIB    (1ull << 30)
#define HUGE   (2 * MIB)
#define ROUNDS 15
#define MOVES  32768

struct entry {
	_Atomic u32 seq, lock;
	u64 at; /* of the bytes, in the memory */
	u64 pad[2];
};

/* A thread's work: copies of `bytes` to or from places of `span` bytes of memory. */
struct work {
	const char *name;
	void (*move)(struct work *w, u64 n);
	u64 span, bytes;
	char *memory, *buf;
	struct entry *table, *other;
	u64 state;
	double ns[ROUNDS];
};

static char *memory;
static struct entry *huge_table, *small_table, *other_table;
static _Alignas(64) _Atomic u64 shared;

static inline u64 next_page(struct work *w)
{
	w->state = w->state * 6364136223846793005ull + 1442695040888963407ull;
	return (w->state >> 32) * (w->span / PAGE_SIZE) >> 32;
}

static inline char *place(const struct work *w, u64 page)
{
	return w->memory + page * PAGE_SIZE;
}

static void out(struct work *w, u64 page)
{
	memcpy(w->buf, place(w, page), w->bytes);
	bench_keep(w->buf);
}

static void in(struct work *w, u64 page)
{
	memcpy(place(w, page), w->buf, w->bytes);
	bench_keep(w->memory);
}

static void read_bare(struct work *w, u64 n)
{
	for (u64 i = 0; i < n; i++)
		out(w, next_page(w));
}

/* As a reader of a sequence lock: looks before and after. */
static void read_look(struct work *w, u64 n)
{
	for (u64 i = 0; i < n; i++) {
		u64 page = next_page(w);
		struct entry *e = &w->table[page];
		u32 seq = atomic_load_explicit(&e->seq, memory_order_acquire);

		if (seq & 1)
			abort();
		if (w->other && w->other[page].at != page)
			abort();
		out(w, page);
		atomic_thread_fence(memory_order_acquire);
		if (atomic_load_explicit(&e->seq, memory_order_relaxed) != seq)
			abort();
	}
}

/* In a row: the end of a loop would be guessed wrong. */
static inline void do_nothing(void)
{
	__asm__ volatile(".rept 200\n\tnop\n\t.endr");
}

/* The same, with the instructions of a short way through a cache, which do nothing. */
static void read_busy(struct work *w, u64 n)
{
	for (u64 i = 0; i < n; i++) {
		u64 page = next_page(w);
		struct entry *e = &w->table[page];

		if (atomic_load_explicit(&e->seq, memory_order_acquire) & 1 ||
		    w->other[page].at != page)
			abort();
		do_nothing();
		out(w, page);
	}
}

/* The entry says where; with two tables the first says which entry of the second does. */
static void read_told(struct work *w, u64 n)
{
	for (u64 i = 0; i < n; i++) {
		u64 page = next_page(w);

		if (w->other)
			page = w->other[page].at;
		out(w, w->table[page].at);
	}
}

static void write_bare(struct work *w, u64 n)
{
	for (u64 i = 0; i < n; i++)
		in(w, next_page(w));
}

/* Under a lock of the page's, given up by a store, or by an exchange; then other work, or none. */
static inline void write_under(struct work *w, u64 n, bool by_exchange, bool busy)
{
	for (u64 i = 0; i < n; i++) {
		u64 page = next_page(w);
		struct entry *e = &w->table[page];

		if (atomic_exchange_explicit(&e->lock, 1, memory_order_acquire))
			abort();
		in(w, page);
		if (by_exchange)
			atomic_exchange_explicit(&e->lock, 0, memory_order_release);
		else
			atomic_store_explicit(&e->lock, 0, memory_order_release);
		if (busy)
			do_nothing();
	}
}

static void write_locked(struct work *w, u64 n)
{
	write_under(w, n, false, false);
}

static void write_exchanged(struct work *w, u64 n)
{
	write_under(w, n, true, false);
}

static void write_locked_busy(struct work *w, u64 n)
{
	write_under(w, n, false, true);
}

static void write_exchanged_busy(struct work *w, u64 n)
{
	write_under(w, n, true, true);
}

/* The entry is the lock, and says where. */
static void write_told(struct work *w, u64 n)
{
	for (u64 i = 0; i < n; i++) {
		struct entry *e = &w->table[next_page(w)];

		if (atomic_exchange_explicit(&e->lock, 1, memory_order_acquire))
			abort();
		in(w, e->at);
		atomic_store_explicit(&e->lock, 0, memory_order_release);
	}
}

/* All count on one line. */
static void write_counted(struct work *w, u64 n)
{
	for (u64 i = 0; i < n; i++) {
		atomic_fetch_add_explicit(&shared, 1, memory_order_relaxed);
		in(w, next_page(w));
	}
}

static double median_of(const double *values)
{
	double sorted[ROUNDS];

	memcpy(sorted, values, sizeof(sorted));
	qsort(sorted, ROUNDS, sizeof(sorted[0]), bench_compare);
	return sorted[ROUNDS / 2];
}

/* Lets all have their turns, and compares each with the first. */
static void contest(const char *title, struct work *works, unsigned count, u64 bytes)
{
	printf("%s\n", title);
	for (unsigned i = 0; i < count; i++) {
		works[i].span = GIB;
		works[i].bytes = bytes;
		works[i].memory = memory;
		works[i].buf = calloc(1, PAGE_SIZE);
		works[i].state = 1;
		works[i].move(&works[i], MOVES);
	}
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned i = 0; i < count; i++) {
			u64 start = bench_cpu_now();

			works[i].move(&works[i], MOVES);
			works[i].ns[round] = (double)(bench_cpu_now() - start) / MOVES;
		}
	for (unsigned i = 0; i < count; i++) {
		double ratio[ROUNDS];

		for (unsigned round = 0; round < ROUNDS; round++)
			ratio[round] = works[i].ns[round] / works[0].ns[round];
		printf("  %-46s %7.1f ns (%.2fx)\n", works[i].name, median_of(works[i].ns),
		       median_of(ratio));
		free(works[i].buf);
	}
	fflush(stdout);
}

static void reads(const char *title, u64 bytes)
{
	struct work works[] = {
		{ .name = "a bare memcpy", .move = read_bare },
		{ .name = "and a look at a line", .move = read_look, .table = huge_table },
		{ .name = "... at two lines",
		  .move = read_look,
		  .table = huge_table,
		  .other = other_table },
		{ .name = "... at a line, table on pages of 4 KiB",
		  .move = read_look,
		  .table = small_table },
		{ .name = "... at two lines, and 200 instructions",
		  .move = read_busy,
		  .table = huge_table,
		  .other = other_table },
		{ .name = "a line says where", .move = read_told, .table = huge_table },
		{ .name = "a line says which line says where",
		  .move = read_told,
		  .table = huge_table,
		  .other = other_table },
	};

	contest(title, works, ARRAY_SIZE(works), bytes);
}

static void writes(const char *title, u64 bytes)
{
	struct work works[] = {
		{ .name = "a bare memcpy", .move = write_bare },
		{ .name = "under a lock, given up by a store",
		  .move = write_locked,
		  .table = huge_table },
		{ .name = "... by an exchange", .move = write_exchanged, .table = huge_table },
		{ .name = "by a store, and 200 instructions",
		  .move = write_locked_busy,
		  .table = huge_table },
		{ .name = "by an exchange, and 200 instructions",
		  .move = write_exchanged_busy,
		  .table = huge_table },
		{ .name = "the lock's line says where", .move = write_told, .table = huge_table },
	};

	contest(title, works, ARRAY_SIZE(works), bytes);
}

/* --- two threads --- */

static void move_all(void *arg)
{
	struct work *w = arg;

	w->move(w, 4 * MOVES);
}

static void together(const char *name, struct work work, bool apart)
{
	struct work halves[2] = { work, work };
	double times[ROUNDS], alone[ROUNDS];

	for (unsigned i = 0; i < 2; i++) {
		halves[i].bytes = PAGE_SIZE;
		halves[i].state = i + 1;
		halves[i].buf = calloc(1, PAGE_SIZE);
		halves[i].memory = memory + (apart ? i * (GIB / 2) : 0);
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct gain g = gain_of_two(move_all, &halves[0], &halves[1]);

		alone[round] = g.alone_ns;
		times[round] = g.times;
	}
	printf("  %-46s %7.1f ns alone   two do %.2fx\n", name, median_of(alone) / (4 * MOVES),
	       median_of(times));
	fflush(stdout);
	free(halves[0].buf);
	free(halves[1].buf);
}

static void pairs(void)
{
	struct work read_all = { .move = read_bare, .span = GIB },
		    read_half = { .move = read_bare, .span = GIB / 2 },
		    write_all = { .move = write_bare, .span = GIB },
		    write_half = { .move = write_bare, .span = GIB / 2 },
		    hot = { .move = write_bare, .span = MIB },
		    counted = { .move = write_counted, .span = GIB };

	printf("two threads, bare memcpys of 4 KiB\n");
	together("reads of the same 1 GiB", read_all, false);
	together("reads of 512 MiB each", read_half, true);
	together("writes of the same 1 GiB", write_all, false);
	together("writes of 512 MiB each", write_half, true);
	together("writes of the same 1 MiB", hot, false);
	together("writes of 1 MiB each", hot, true);
	together("writes of the same 1 GiB, and one shared count", counted, false);
}

/* `huge`: on pages of 2 MiB where the system grants them. */
static void *make(u64 size, bool huge)
{
	char *at =
		mmap(NULL, size + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		abort();
	at = (char *)round_up((u64)at, HUGE);
	madvise(at, size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	memset(at, 0, size);
	return at;
}

static struct entry *make_table(bool huge)
{
	u64 pages = GIB / PAGE_SIZE;
	struct entry *table = make(pages * sizeof(*table), huge);

	for (u64 page = 0; page < pages; page++)
		table[page].at = page;
	return table;
}

int main(void)
{
	memory = make(GIB, true);
	huge_table = make_table(true);
	other_table = make_table(true);
	small_table = make_table(false);
	reads("reads of 4 KiB at random over 1 GiB", PAGE_SIZE);
	reads("reads of 512 bytes at random over 1 GiB", 512);
	writes("writes of 4 KiB at random over 1 GiB", PAGE_SIZE);
	pairs();
	return 0;
}
