// SPDX-License-Identifier: MIT
/*
 * Every block of 4 KiB says what it is: each 512 bytes of it hold its stamp, its place and a
 * pattern grown from both, so that a torn or misplaced one is seen. A block has one writer,
 * whose stamps rise, and a record of what it may hold:
 *
 *	begun	the stamp of the newest write that was begun
 *	done	the stamp of the newest write that returned, with the number of wrecks begun
 *		before it, or none if one was under way
 *	dead	no stamp up to this may be seen again: it was cut off or punched out
 *
 * A wreck is a truncation or a hole. Who reads a stamp s: dead < s, s <= begun after the read, and
 * done before the read <= s unless a wreck was begun since; zeros only if nothing was done or a
 * wreck was begun since.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "file/inner.h"
#include "stress.h"
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static u64 seed_now; /* so that a failure can be had again */

/* Tasks are not the test's own thread, which alone may fail it. */
#define wrong(...)                                                               \
	do {                                                                     \
		fprintf(stderr, "# " __VA_ARGS__);                               \
		fprintf(stderr, " (seed %llu)\n", (unsigned long long)seed_now); \
		abort();                                                         \
	} while (0)
#define must(x)                                                 \
	do {                                                    \
		if (!(x))                                       \
			wrong("line %d: not %s", __LINE__, #x); \
	} while (0)

#define SECTOR_WORDS 64
#define BLOCK_WORDS  (PAGE_SIZE / 8)
#define SPAN_MAX     24 /* blocks of one call */

struct record {
	_Atomic u32 begun, dead;
	_Atomic u64 done; /* stamp | wrecks << 32 */
};

struct shared {
	const struct stress *s;
	struct engine *engine;
	struct inode **inode;
	struct record *record;
	_Atomic u32 wrecks, wrecks_ended; /* wrecks: begun */
};

struct actor {
	struct shared *all;
	struct task *task;
	struct rng rng;
	u32 number;
	struct file **file;
	u64 *buf;
};

static u64 place(u32 file, u64 sector)
{
	return (u64)file << 40 | (sector + 1);
}

static void fill_block(u64 *words, u32 file, u64 block, u32 stamp)
{
	for (u64 i = 0; i < BLOCK_WORDS; i++) {
		u64 where = place(file, block * 8 + i / SECTOR_WORDS);

		words[i] = i % SECTOR_WORDS == 0   ? stamp
			   : i % SECTOR_WORDS == 1 ? where
						   : (stamp + i) * 0x9e3779b97f4a7c15ull ^ where;
	}
}

/* The stamp of a number of sectors from `first` on that must all be of one write; 0: zeros. */
static u32 stamp_of(const u64 *words, u32 file, u64 sector, u64 sectors)
{
	u64 expected[BLOCK_WORDS];

	if (!words[0]) {
		for (u64 i = 0; i < sectors * SECTOR_WORDS; i++)
			if (words[i])
				wrong("file %u sector %llu: torn, zeros and word %llu is %llx",
				      file, (unsigned long long)sector, (unsigned long long)i,
				      (unsigned long long)words[i]);
		return 0;
	}
	fill_block(expected, file, sector / 8, (u32)words[0]);
	if (memcmp(expected + sector % 8 * SECTOR_WORDS, words, sectors * SECTOR_WORDS * 8))
		wrong("file %u sector %llu: torn or not its own: stamps %llx %llx, place %llx",
		      file, (unsigned long long)sector, (unsigned long long)words[0],
		      (unsigned long long)words[(sectors - 1) * SECTOR_WORDS],
		      (unsigned long long)words[1]);
	return (u32)words[0];
}

static struct record *record_of(struct shared *all, u32 file, u64 block)
{
	return &all->record[file * all->s->blocks + block];
}

/* What a reader knew of a block before he read it. */
struct known {
	u64 done;
	u32 dead;
};

static struct known look(struct shared *all, u32 file, u64 block)
{
	struct record *r = record_of(all, file, block);

	return (struct known){ atomic_load(&r->done), atomic_load(&r->dead) };
}

static void judge(struct shared *all, u32 file, u64 block, struct known k, u32 stamp)
{
	u32 begun = atomic_load(&record_of(all, file, block)->begun);
	bool wrecked = atomic_load(&all->wrecks) != k.done >> 32;
	u32 done = (u32)k.done;

	if (!stamp && done && !wrecked)
		wrong("file %u block %llu: zeros, though %u was written", file,
		      (unsigned long long)block, done);
	if (stamp && stamp <= k.dead)
		wrong("file %u block %llu: %u is back, dead up to %u", file,
		      (unsigned long long)block, stamp, k.dead);
	if (stamp && stamp < done && !wrecked)
		wrong("file %u block %llu: stale, %u after %u", file, (unsigned long long)block,
		      stamp, done);
	if (stamp > begun)
		wrong("file %u block %llu: %u of the future, newest %u", file,
		      (unsigned long long)block, stamp, begun);
}

/* One block, or a few sectors of it. */
static void read_one(struct actor *a, u32 file, u64 block)
{
	u64 first = rng_below(&a->rng, 2) ? 0 : rng_below(&a->rng, 8);
	u64 sectors = first ? 1 + rng_below(&a->rng, 8 - first) : 8;
	struct known k = look(a->all, file, block);
	ssize_t want = (ssize_t)sectors * 512;
	ssize_t got =
		file_pread(a->file[file], a->buf, (size_t)want, block * PAGE_SIZE + first * 512);

	if (got < 0 || got > want)
		wrong("read: %zd", got);
	judge(a->all, file, block, k,
	      got == want ? stamp_of(a->buf, file, block * 8 + first, sectors) : 0);
}

static void read_span(struct actor *a, u32 file, u64 block, u64 n)
{
	struct known k[SPAN_MAX];
	ssize_t got;

	for (u64 i = 0; i < n; i++)
		k[i] = look(a->all, file, block + i);
	got = file_pread(a->file[file], a->buf, n * PAGE_SIZE, block * PAGE_SIZE);
	if (got < 0 || got > (ssize_t)(n * PAGE_SIZE))
		wrong("read: %zd", got);
	for (u64 i = 0; i < n; i++) {
		bool whole = got >= (ssize_t)((i + 1) * PAGE_SIZE);

		judge(a->all, file, block + i, k[i],
		      whole ? stamp_of(a->buf + i * BLOCK_WORDS, file, (block + i) * 8, 8) : 0);
	}
}

static u64 some_span(struct actor *a, u64 *block)
{
	u64 n = rng_below(&a->rng, 4) ? 1 : 1 + rng_below(&a->rng, SPAN_MAX);

	*block = rng_below(&a->rng, a->all->s->blocks - n + 1);
	return n;
}

static void reader(void *arg)
{
	struct actor *a = arg;

	for (u32 i = 0; i < a->all->s->steps; i++) {
		u32 file = (u32)rng_below(&a->rng, a->all->s->files);
		u64 block, n = some_span(a, &block);

		if (n == 1)
			read_one(a, file, block);
		else
			read_span(a, file, block, n);
	}
}

/* Writers share the files in stripes of SPAN_MAX blocks. */
static void writer(void *arg)
{
	struct actor *a = arg;
	const struct stress *s = a->all->s;
	u64 stripes = s->blocks / SPAN_MAX;

	for (u32 i = 0; i < s->steps; i++) {
		u32 file = (u32)rng_below(&a->rng, s->files);
		u64 stripe = rng_below(&a->rng, stripes / s->writers) * s->writers + a->number;
		u64 n = rng_below(&a->rng, 4) ? 1 : 1 + rng_below(&a->rng, SPAN_MAX);
		u64 block = stripe * SPAN_MAX + rng_below(&a->rng, SPAN_MAX - n + 1);
		u64 ended = atomic_load(&a->all->wrecks_ended);
		u64 wrecks = atomic_load(&a->all->wrecks);

		if (ended != wrecks)
			wrecks = UINT32_MAX; /* one is under way: as if another came after */
		for (u64 b = 0; b < n; b++) {
			struct record *r = record_of(a->all, file, block + b);

			fill_block(a->buf + b * BLOCK_WORDS, file, block + b,
				   atomic_fetch_add(&r->begun, 1) + 1);
		}
		must(file_pwrite(a->file[file], a->buf, n * PAGE_SIZE, block * PAGE_SIZE) ==
		     (ssize_t)(n * PAGE_SIZE));
		for (u64 b = 0; b < n; b++)
			atomic_store(&record_of(a->all, file, block + b)->done,
				     (u32)a->buf[b * BLOCK_WORDS] | wrecks << 32);
	}
	engine_task_exit(a->all->engine);
}

/* Truncates and lengthens again, or punches a hole. */
static void wreck(struct actor *a, u32 file)
{
	struct shared *all = a->all;
	u64 block, n = some_span(a, &block), end = block + n;
	bool punch = rng_below(&a->rng, 2);
	u32 was[SPAN_MAX];
	int rc;

	if (!punch) { /* only what lies near the cut is judged */
		end = all->s->blocks;
		block = end - n;
	}
	for (u64 b = block; b < end; b++)
		was[b - block] = (u32)atomic_load(&record_of(all, file, b)->done);
	atomic_fetch_add(&all->wrecks, 1);
	if (punch) {
		rc = file_fallocate(a->file[file], FILE_PUNCH_HOLE | FILE_KEEP_SIZE,
				    block * PAGE_SIZE, n * PAGE_SIZE);
	} else {
		rc = inode_truncate(all->inode[file], block * PAGE_SIZE);
		for (u64 b = block; b < end; b++)
			atomic_store(&record_of(all, file, b)->dead, was[b - block]);
		if (!rc && rng_below(&a->rng, 2))
			rc = inode_truncate(all->inode[file], all->s->blocks * (u64)PAGE_SIZE);
	}
	must(rc == 0);
	for (u64 b = block; b < end; b++)
		atomic_store(&record_of(all, file, b)->dead, was[b - block]);
	atomic_fetch_add(&all->wrecks_ended, 1);
}

static void wrecker(void *arg)
{
	struct actor *a = arg;

	for (u32 i = 0; i < a->all->s->steps / 16; i++) {
		wreck(a, (u32)rng_below(&a->rng, a->all->s->files));
		world_sleep_until(world_now() + rng_below(&a->rng, 500 * NSEC_PER_USEC));
	}
}

static void syncer(void *arg)
{
	struct actor *a = arg;

	for (u32 i = 0; i < a->all->s->steps / 16; i++) {
		struct file *f = a->file[rng_below(&a->rng, a->all->s->files)];
		u64 block, n = some_span(a, &block);

		switch (rng_below(&a->rng, 5)) {
		case 0:
			must(file_fsync(f, false) == 0);
			break;
		case 1:
			must(file_sync_range(f, block * PAGE_SIZE, n * PAGE_SIZE,
					     FILE_WRITE | FILE_WAIT_AFTER) == 0);
			break;
		case 2:
			must(file_advise(f, block * PAGE_SIZE, n * PAGE_SIZE, FILE_ADV_DONTNEED) ==
			     0);
			break;
		case 3:
			engine_drop_caches(a->all->engine);
			break;
		default:
			must(engine_sync(a->all->engine) == 0);
		}
		world_sleep_until(world_now() + rng_below(&a->rng, 300 * NSEC_PER_USEC));
	}
}

static void start(struct actor *a, struct shared *all, void (*fn)(void *arg), u32 number, u64 seed)
{
	const struct stress *s = all->s;

	*a = (struct actor){ .all = all, .number = number };
	rng_init(&a->rng, s->seed * 1000 + seed);
	a->buf = malloc(SPAN_MAX * PAGE_SIZE);
	a->file = calloc(s->files, sizeof(struct file *));
	assert_true(a->buf && a->file);
	for (u32 i = 0; i < s->files; i++)
		assert_int_equal(file_open(all->inode[i], 0, &a->file[i]), 0);
	a->task = world_spawn("stress", fn, a);
	assert_non_null(a->task);
}

static void join(struct actor *a)
{
	world_join(a->task);
	for (u32 i = 0; i < a->all->s->files; i++)
		file_close(a->file[i]);
	free(a->file);
	free(a->buf);
}

/* Nothing is under way any more: all must be there, in the cache and on the device. */
static void check_all(struct shared *all)
{
	struct actor a = { .all = all };
	struct file *f;
	char why[200] = "";

	a.buf = malloc(PAGE_SIZE);
	a.file = &f;
	rng_init(&a.rng, 1);
	for (u32 round = 0; round < 2; round++) {
		for (u32 file = 0; file < all->s->files; file++) {
			assert_int_equal(file_open(all->inode[file], 0, &f), 0);
			for (u64 b = 0; b < all->s->blocks; b++) {
				struct known k = look(all, file, b);
				ssize_t got = file_pread(f, a.buf, PAGE_SIZE, b * PAGE_SIZE);

				judge(all, file, b, k,
				      got == (ssize_t)PAGE_SIZE ? stamp_of(a.buf, file, b * 8, 8)
								: 0);
			}
			file_close(f);
		}
		assert_int_equal(engine_sync(all->engine), 0);
		if (!engine_audit(all->engine, why, sizeof(why)))
			wrong("audit: %s", why);
		engine_drop_caches(all->engine);
	}
	free(a.buf);
}

static void make_engine(struct shared *all, struct device **device)
{
	const struct stress *s = all->s;
	struct engine_config c = { .memory_bytes = s->memory_bytes, .contents = true };
	struct device_config dc;

	c.policy = *policy_find(s->policy);
	vm_settings_init(&c.vm);
	c.vm.dirty_ratio = 60; /* memory is short, not the limits */
	c.vm.dirty_background_ratio = 5;
	assert_int_equal(device_config_init(&dc, s->device), 0);
	assert_int_equal(device_create(&dc, device), 0);
	assert_int_equal(engine_create(&c, &all->engine), 0);
	assert_int_equal(engine_add_device(all->engine, *device, 64, false), 0);
	for (u32 i = 0; i < s->files; i++)
		assert_int_equal(inode_create(all->engine, 0, s->block_bytes, &all->inode[i]), 0);
}

void stress_run(const struct stress *s)
{
	u32 actors = s->writers + s->readers + s->wreckers + s->syncers, n = 0;
	struct shared all = { .s = s };
	struct actor *a = calloc(actors, sizeof(*a));
	struct device *device;

	seed_now = s->seed;
	all.inode = calloc(s->files, sizeof(struct inode *));
	all.record = calloc((size_t)s->files * s->blocks, sizeof(struct record));
	assert_true(a && all.inode && all.record);
	assert_true(s->blocks / SPAN_MAX >= s->writers);
	make_engine(&all, &device);
	for (u32 i = 0; i < s->writers; i++, n++)
		start(&a[n], &all, writer, i, n);
	for (u32 i = 0; i < s->readers; i++, n++)
		start(&a[n], &all, reader, i, n);
	for (u32 i = 0; i < s->wreckers; i++, n++)
		start(&a[n], &all, wrecker, i, n);
	for (u32 i = 0; i < s->syncers; i++, n++)
		start(&a[n], &all, syncer, i, n);
	while (n)
		join(&a[--n]);
	check_all(&all);
	assert_int_equal(engine_destroy(all.engine), 0);
	device_destroy(device);
	free(all.record);
	free(all.inode);
	free(a);
}
