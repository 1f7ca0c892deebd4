// SPDX-License-Identifier: MIT
/*
 * The device "file" on the disk below the working folder: large sequential I/Os and small
 * random ones, in flight together as write-out and readahead submit them, by each engine; and
 * one small read after another that is waited for, by preadv as the device does it and by a ring
 * of the caller's own. Runs of all variants take turns, so that a disk whose speed changes
 * changes it for all. CPU time is the whole process's.
 */
#include "device/device.h"
#include "base/rng.h"
#include "bench.h"
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define FILE_NAME  "bench-device.tmp"
#define FILE_BYTES (1ull << 30)
#define ROUNDS     9
#define DEPTH      32

struct work {
	const char *name;
	enum io_op op;
	u32 bytes;
	u64 count;
	u32 depth;
	bool random;
};

static const struct work works[] = {
	{ "sequential 1 MiB writes", IO_WRITE, 1 << 20, 1024, 8, false },
	{ "sequential 1 MiB reads", IO_READ, 1 << 20, 1024, 8, false },
	{ "random 4 KiB writes", IO_WRITE, 4096, 50000, DEPTH, true },
	{ "random 4 KiB reads", IO_READ, 4096, 50000, DEPTH, true },
};

struct variant {
	const char *name, *engine;
	bool registered;
};

static const struct variant variants[] = {
	{ "io_uring", "uring", false },
	{ "io_uring, registered memory", "uring", true },
	{ "threads", "threads", false },
};

struct figures {
	double per_s[ROUNDS], cpu[ROUNDS]; /* I/Os a second; CPU seconds of all of them */
};

struct slot {
	struct io io;
	struct iovec vec;
};

static struct slot slots[DEPTH];
static _Atomic u32 slots_free[DEPTH]; /* 1: may be used again */
static _Atomic u32 ended;
static u8 *memory;

static void die(const char *what, int error)
{
	printf("%s: %s\n", what, strerror(-error));
	unlink(FILE_NAME);
	exit(1);
}

static double cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void end(struct io *io, int error)
{
	struct slot *s = container_of(io, struct slot, io);

	if (error)
		die("I/O", error);
	atomic_store_explicit(&slots_free[s - slots], 1, memory_order_release);
	atomic_fetch_add(&ended, 1);
	world_unpark(&ended, 1);
}

static struct slot *free_slot(u32 depth)
{
	for (;;) {
		u32 seen = atomic_load(&ended);

		for (u32 i = 0; i < depth; i++)
			if (atomic_exchange_explicit(&slots_free[i], 0, memory_order_acquire))
				return &slots[i];
		world_park(&ended, seen, WORLD_NEVER);
	}
}

static void run(struct device *d, struct store *store, const struct work *w, struct rng *r)
{
	for (u32 i = 0; i < w->depth; i++)
		atomic_store(&slots_free[i], 1);
	for (u64 n = 0; n < w->count; n++) {
		struct slot *s = free_slot(w->depth);
		u64 block = w->random ? rng_below(r, FILE_BYTES / w->bytes) : n;

		s->vec = (struct iovec){ memory + (size_t)(s - slots) * w->bytes, w->bytes };
		s->io = (struct io){ .store = store,
				     .op = w->op,
				     .offset_bytes = block * w->bytes,
				     .length_bytes = w->bytes,
				     .vec = &s->vec,
				     .vec_count = 1,
				     .end = end };
		device_submit(d, &s->io);
	}
	for (u32 i = 0; i < w->depth; i++)
		free_slot(w->depth);
}

static void measure(const struct variant *v, const struct work *w, struct figures *f,
		    unsigned round)
{
	struct device_config c;
	struct device *d;
	struct store *store = NULL;
	struct rng r;
	struct err e = { "" };
	double cpu;
	u64 start;
	int error;

	device_config_init(&c, "file");
	device_config_set(&c, "io_engine", v->engine, &e);
	error = device_create(&c, &d);
	if (!error && v->registered)
		error = device_register_memory(d, memory, (size_t)DEPTH << 20);
	if (!error)
		error = store_open_fd(d, open(FILE_NAME, O_RDWR), &store);
	if (error)
		die(v->name, error);
	rng_init(&r, round);
	start = bench_now();
	cpu = cpu_seconds();
	run(d, store, w, &r);
	f->cpu[round] = cpu_seconds() - cpu;
	f->per_s[round] = (double)w->count * 1e9 / (double)(bench_now() - start);
	store_destroy(store);
	device_destroy(d);
}

static void print(const char *name, u64 count, u32 bytes, struct figures *f)
{
	double mib = (double)bytes / (1 << 20);

	qsort(f->per_s, ROUNDS, sizeof(double), bench_compare);
	qsort(f->cpu, ROUNDS, sizeof(double), bench_compare);
	printf("  %-30s %9.0f a second (%.0f to %.0f), %7.1f MiB/s, %6.2f us of CPU each\n", name,
	       f->per_s[ROUNDS / 2], f->per_s[0], f->per_s[ROUNDS - 1], f->per_s[ROUNDS / 2] * mib,
	       f->cpu[ROUNDS / 2] * 1e6 / (double)count);
	fflush(stdout);
}

/* --- one read after another --- */

#define SYNC_COUNT 4000

/* What the time of SYNC_COUNT reads is taken of; setting up is not. */
struct stretch {
	double cpu;
	u64 start;
};

static struct stretch begin(void)
{
	return (struct stretch){ cpu_seconds(), bench_now() };
}

static void finish(const struct stretch *s, struct figures *f, unsigned round)
{
	f->cpu[round] = cpu_seconds() - s->cpu;
	f->per_s[round] = SYNC_COUNT * 1e9 / (double)(bench_now() - s->start);
}

static u64 random_place(struct rng *r)
{
	return rng_below(r, FILE_BYTES / 4096) * 4096;
}

static void sync_by_device(struct rng *r, struct figures *f, unsigned round)
{
	struct device_config c;
	struct device *d;
	struct store *store;
	struct iovec vec = { memory, 4096 };
	struct stretch stretch;

	device_config_init(&c, "file");
	if (device_create(&c, &d) || store_open_fd(d, open(FILE_NAME, O_RDWR), &store))
		die("device", -EIO);
	stretch = begin();
	for (u64 n = 0; n < SYNC_COUNT; n++) {
		struct io io = { .store = store,
				 .op = IO_READ,
				 .offset_bytes = random_place(r),
				 .length_bytes = 4096,
				 .vec = &vec,
				 .vec_count = 1 };

		if (device_submit_wait(d, &io))
			die("read", -EIO);
	}
	finish(&stretch, f, round);
	store_destroy(store);
	device_destroy(d);
}

static void sync_by_pread(struct rng *r, struct figures *f, unsigned round)
{
	int fd = open(FILE_NAME, O_RDWR | O_DIRECT);
	struct stretch stretch = begin();

	for (u64 n = 0; n < SYNC_COUNT; n++)
		if (pread(fd, memory, 4096, (off_t)random_place(r)) != 4096)
			die("read", -EIO);
	finish(&stretch, f, round);
	close(fd);
}

static void sync_by_ring(struct rng *r, struct figures *f, unsigned round)
{
	struct io_uring ring;
	struct stretch stretch;
	int fd = open(FILE_NAME, O_RDWR | O_DIRECT);

	if (fd < 0 ||
	    io_uring_queue_init(8, &ring, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN))
		die("ring", -EIO);
	stretch = begin();
	for (u64 n = 0; n < SYNC_COUNT; n++) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
		struct io_uring_cqe *cqe;

		io_uring_prep_read(sqe, fd, memory, 4096, random_place(r));
		io_uring_submit_and_wait(&ring, 1);
		if (io_uring_wait_cqe(&ring, &cqe) || cqe->res != 4096)
			die("read", -EIO);
		io_uring_cqe_seen(&ring, cqe);
	}
	finish(&stretch, f, round);
	io_uring_queue_exit(&ring);
	close(fd);
}

static void compare_sync(void)
{
	static void (*const ways[])(struct rng * r, struct figures * f,
				    unsigned round) = { sync_by_device, sync_by_pread,
							sync_by_ring };
	static const char *const names[] = { "the device", "pread", "a ring of one's own" };
	struct figures f[ARRAY_SIZE(ways)];

	printf("single 4 KiB reads, waited for\n");
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned i = 0; i < ARRAY_SIZE(ways); i++) {
			unsigned way = (i + round) % ARRAY_SIZE(ways);
			struct rng r;

			rng_init(&r, round);
			ways[way](&r, &f[way], round);
		}
	for (unsigned i = 0; i < ARRAY_SIZE(ways); i++)
		print(names[i], SYNC_COUNT, 4096, &f[i]);
}

int main(void)
{
	struct figures f[ARRAY_SIZE(variants)];
	int fd = open(FILE_NAME, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT, 0600);

	if (fd < 0 || posix_memalign((void **)&memory, 2 << 20, (size_t)DEPTH << 20)) {
		printf("no O_DIRECT here, or no memory: nothing to measure\n");
		return 0;
	}
	memset(memory, 1, (size_t)DEPTH << 20);
	for (u64 at = 0; at < FILE_BYTES; at += 1 << 20)
		if (pwrite(fd, memory, 1 << 20, (off_t)at) != 1 << 20)
			die("writing the file", -errno);
	fsync(fd);
	close(fd);
	for (unsigned w = 0; w < ARRAY_SIZE(works); w++) {
		printf("%s, %u in flight\n", works[w].name, works[w].depth);
		for (unsigned round = 0; round < ROUNDS; round++)
			for (unsigned i = 0; i < ARRAY_SIZE(variants); i++) {
				unsigned v = (i + round) % ARRAY_SIZE(variants);

				measure(&variants[v], &works[w], &f[v], round);
			}
		for (unsigned v = 0; v < ARRAY_SIZE(variants); v++)
			print(variants[v].name, works[w].count, works[w].bytes, &f[v]);
	}
	compare_sync();
	unlink(FILE_NAME);
	return 0;
}
