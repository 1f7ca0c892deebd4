/* SPDX-License-Identifier: MIT */
/*
 * One file of 8 MiB on a real filesystem, all of its blocks written. A round takes its
 * pages through the states that the engine charges for, in random order, 4 KiB at a time,
 * and times every step:
 *
 *	cached, clean	-> evicted		evict
 *	not cached	-> dirty, by write	"new"; of 64 KiB: one large folio
 *	dirty		-> dirty, by write	"dirty"; of 1 byte: "touch"; reads likewise
 *	clean (fsync)	-> dirty, by write	"clean"
 *
 * What two of these differ by is what one step costs: "clean" - "dirty" is making a
 * clean folio dirty, "new" - "clean" allocating one, "dirty" - "touch" copying a page.
 * "new" - "clean" of 64 KiB allocates one folio with 15 more pages, so the difference
 * tells pages from folios, if the filesystem makes large ones.
 * The filesystem's own part of a write (its journal, its locks) so counts as finding the
 * folio: the engine has no other place for it.
 *
 * Pages are timed in batches of 64, so that the clock costs nothing; a step's figure
 * in a round is the median batch, because some other process runs now and then. The
 * result is the median over the rounds.
 */
#include "lab/calibrate.h"
#include "base/bits.h"
#include "base/rng.h"
#include "world/world.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PAGES    2048u
#define LARGE    16ul /* pages of a large write */
#define BATCH    64u
#define BATCHES  (PAGES / BATCH)
#define DIRECT   256u /* direct reads a round */
#define WAKES    200u /* wake-ups a round */
#define WAKE_GAP (50 * NSEC_PER_USEC)
#define BYTES    ((size_t)PAGES * PAGE_SIZE)

/* What is timed in a round. */
enum sample {
	S_NOTHING,
	S_READ_TOUCH,
	S_READ,
	S_TOUCH,
	S_DIRTY,
	S_CLEAN,
	S_NEW,
	S_CLEAN_LARGE,
	S_NEW_LARGE,
	S_EVICT,
	S_DIRECT,
	S_WAKE,
	SAMPLES
};

struct bench {
	int fd, direct_fd; /* direct_fd < 0: the filesystem has no direct I/O */
	char *buf;         /* LARGE pages, aligned */
	u32 order[PAGES];
	struct rng rng;
	double round[SAMPLES][CALIBRATE_ROUNDS_MAX];
	unsigned rounds;
	/* the one who is woken */
	_Atomic u32 bell;
	_Atomic u64 woken_ns;
};

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The value at a part of sorted ones. */
static double at_part(const double *sorted, unsigned count, double part)
{
	return sorted[(unsigned)((count - 1) * part + 0.5)];
}

/* The order of the first `count` pages or large places. */
static void shuffle(struct bench *b, u32 count)
{
	for (u32 i = 0; i < count; i++)
		b->order[i] = i;
	for (u32 i = count - 1; i > 0; i--) {
		u32 j = (u32)rng_below(&b->rng, i + 1), keep = b->order[i];

		b->order[i] = b->order[j];
		b->order[j] = keep;
	}
}

enum call { CALL_READ, CALL_WRITE };

/*
 * Calls once a page, with so many bytes of each, or once for each place of that size if it is
 * larger; the time of one call, or a negative errno.
 */
static double time_calls(struct bench *b, enum call call, size_t bytes)
{
	size_t place = bytes > PAGE_SIZE ? bytes : PAGE_SIZE;
	u32 length = (u32)(BYTES / place / BATCHES);
	double batches[BATCHES];

	shuffle(b, length * BATCHES);
	for (u32 batch = 0; batch < BATCHES; batch++) {
		u64 start_ns = world_now_real();

		for (u32 i = batch * length; i < (batch + 1) * length; i++) {
			off_t at = (off_t)(b->order[i] * place);
			ssize_t n = call == CALL_READ ? pread(b->fd, b->buf, bytes, at)
						      : pwrite(b->fd, b->buf, bytes, at);

			if (n != (ssize_t)bytes)
				return n < 0 ? -errno : -EIO;
		}
		batches[batch] = (double)(world_now_real() - start_ns) / length;
	}
	qsort(batches, BATCHES, sizeof(*batches), by_size);
	return at_part(batches, BATCHES, 0.5);
}

static double time_evict(struct bench *b)
{
	u64 start_ns = world_now_real();
	int error = posix_fadvise(b->fd, 0, (off_t)BYTES, POSIX_FADV_DONTNEED);

	return error ? -error : (double)(world_now_real() - start_ns) / PAGES;
}

static double own_cpu_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e9 +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e3;
}

/* CPU time of a read that goes to the device: the time it waits there does not count. */
static double time_direct(struct bench *b)
{
	double start_ns = own_cpu_ns();

	for (u32 i = 0; i < DIRECT; i++) {
		off_t at = (off_t)b->order[i] * PAGE_SIZE;
		ssize_t n = pread(b->direct_fd, b->buf, PAGE_SIZE, at);

		if (n != PAGE_SIZE)
			return n < 0 ? -errno : -EIO;
	}
	return (own_cpu_ns() - start_ns) / DIRECT;
}

#define BELL_LAST (~0u)

static void sleeper(void *arg)
{
	struct bench *b = arg;
	u32 heard = 0;

	while (heard != BELL_LAST) {
		if (b->bell == heard) {
			world_park(&b->bell, heard, WORLD_NEVER);
			continue;
		}
		b->woken_ns = world_now_real();
		heard = b->bell;
	}
}

/* From before the call that wakes a sleeping thread until that thread runs. */
static double time_wakes(struct bench *b)
{
	double ns[WAKES];
	struct task *task;

	b->bell = 0;
	task = world_spawn("sleeper", sleeper, b);
	if (!task)
		return -ENOMEM;
	for (u32 i = 0; i < WAKES; i++) {
		u64 start_ns;

		world_sleep_until(world_now() + WAKE_GAP); /* it is asleep by then */
		b->woken_ns = 0;
		start_ns = world_now_real();
		b->bell = i + 1;
		world_unpark(&b->bell, 1);
		while (!b->woken_ns)
			world_sleep_until(world_now() + WAKE_GAP);
		ns[i] = (double)(b->woken_ns - start_ns);
	}
	b->bell = BELL_LAST;
	world_unpark(&b->bell, 1);
	world_join(task);
	qsort(ns, WAKES, sizeof(*ns), by_size);
	return at_part(ns, WAKES, 0.5);
}

/* Does one step of a round; its error, or 0. */
static int step(struct bench *b, enum sample s)
{
	double ns = 0;

	switch (s) {
	case S_NOTHING:
		ns = time_calls(b, CALL_READ, 0);
		break;
	case S_READ_TOUCH:
		ns = time_calls(b, CALL_READ, 1);
		break;
	case S_READ:
		ns = time_calls(b, CALL_READ, PAGE_SIZE);
		break;
	case S_TOUCH:
		ns = time_calls(b, CALL_WRITE, 1);
		break;
	case S_DIRTY:
	case S_CLEAN:
	case S_NEW:
		ns = time_calls(b, CALL_WRITE, PAGE_SIZE);
		break;
	case S_CLEAN_LARGE:
	case S_NEW_LARGE:
		ns = time_calls(b, CALL_WRITE, LARGE * PAGE_SIZE);
		break;
	case S_EVICT:
		ns = time_evict(b);
		break;
	case S_DIRECT:
		ns = time_direct(b);
		break;
	case S_WAKE:
		ns = time_wakes(b);
		break;
	case SAMPLES:
		break;
	}
	if (ns < 0)
		return (int)ns;
	b->round[s][b->rounds] = ns;
	return 0;
}

/* Does steps, then makes all pages clean. */
static int steps(struct bench *b, const enum sample *samples, size_t count)
{
	int error = 0;

	for (size_t i = 0; i < count && !error; i++)
		error = step(b, samples[i]);
	return !error && fsync(b->fd) ? -errno : error;
}

static int one_round(struct bench *b)
{
	static const enum sample large[] = { S_EVICT, S_NEW_LARGE }, again[] = { S_CLEAN_LARGE };
	static const enum sample small[] = { S_NEW,  S_DIRTY,      S_TOUCH,
					     S_READ, S_READ_TOUCH, S_NOTHING };
	static const enum sample last[] = { S_CLEAN };
	int error;

	/* the pages are cached one by one and clean at its start, and again at its end */
	error = steps(b, large, ARRAY_SIZE(large));
	if (!error)
		error = steps(b, again, ARRAY_SIZE(again));
	if (!error)
		error = -posix_fadvise(b->fd, 0, (off_t)BYTES, POSIX_FADV_DONTNEED);
	if (!error)
		error = steps(b, small, ARRAY_SIZE(small));
	if (!error)
		error = steps(b, last, ARRAY_SIZE(last));
	if (!error && b->direct_fd >= 0 && step(b, S_DIRECT)) {
		close(b->direct_fd); /* it cannot after all */
		b->direct_fd = -1;
	}
	return error ? error : step(b, S_WAKE);
}

/* Its pages are never clean, and never evicted. */
static bool in_memory(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

/* A file without a name, its blocks written and its pages cached one by one and clean. */
static int make_file(struct bench *b, const char *folder, struct err *e)
{
	char *path;
	int error;

	if (asprintf(&path, "%s/sluice-calibrate-XXXXXX", folder) < 0)
		return -ENOMEM;
	b->fd = mkostemp(path, O_CLOEXEC);
	error = b->fd < 0 ? -errno : 0;
	if (error) {
		err_set(e, folder, 0, "no file can be made there: %s", strerror(-error));
	} else {
		b->direct_fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
		unlink(path);
	}
	free(path);
	if (!error && in_memory(b->fd))
		error = err_set(
			e, folder, 0,
			"is in memory only: a folder on a disk is needed, where pages can be "
			"clean");
	memset(b->buf, 0x5a, LARGE * PAGE_SIZE);
	if (!error && time_calls(b, CALL_WRITE, PAGE_SIZE) < 0)
		error = err_set(e, folder, 0, "the file cannot be written");
	if (!error && fsync(b->fd))
		error = err_set(e, folder, 0, "the file cannot be written: %s", strerror(errno));
	return error;
}

/* Sorts the rounds. */
static struct measured summary(double *ns, unsigned rounds)
{
	struct measured m;

	qsort(ns, rounds, sizeof(*ns), by_size);
	m.ns = at_part(ns, rounds, 0.5);
	m.low_ns = at_part(ns, rounds, 0.25);
	m.high_ns = at_part(ns, rounds, 0.75);
	m.known = m.ns > 0; /* else it is lost in the noise */
	return m;
}

/* The median over the rounds of one sample, less another's (SAMPLES: nothing less). */
static struct measured result(const struct bench *b, enum sample s, enum sample less)
{
	double ns[CALIBRATE_ROUNDS_MAX];

	for (unsigned i = 0; i < b->rounds; i++)
		ns[i] = b->round[s][i] - (less == SAMPLES ? 0 : b->round[less][i]);
	return summary(ns, b->rounds);
}

/*
 * A new folio of one page takes alloc + page, one of 16 takes alloc + 16 * page. If next to nothing
 * is left for alloc, the filesystem made 16 small folios: then they cannot be told apart.
 */
static void tell_pages_from_folios(const struct bench *b, struct calibration *c)
{
	double page[CALIBRATE_ROUNDS_MAX], alloc[CALIBRATE_ROUNDS_MAX];
	struct measured both = result(b, S_NEW, S_CLEAN);

	for (unsigned i = 0; i < b->rounds; i++) {
		double one = b->round[S_NEW][i] - b->round[S_CLEAN][i];
		double many = b->round[S_NEW_LARGE][i] - b->round[S_CLEAN_LARGE][i];

		page[i] = (many - one) / (LARGE - 1);
		alloc[i] = one - page[i];
	}
	c->cost[COST_PAGE] = summary(page, b->rounds);
	c->cost[COST_ALLOC] = summary(alloc, b->rounds);
	if (c->cost[COST_ALLOC].ns > both.ns / LARGE)
		return;
	c->cost[COST_PAGE].known = false;
	c->cost[COST_ALLOC] = result(b, S_NEW, S_CLEAN);
	c->cost[COST_ALLOC].ns -= calibrate_default(COST_PAGE);
	c->cost[COST_ALLOC].known = c->cost[COST_ALLOC].ns > 0;
}

static void conclude(const struct bench *b, struct calibration *c)
{
	*c = (struct calibration){ 0 };
	c->cost[COST_SYSCALL] = result(b, S_NOTHING, SAMPLES);
	c->cost[COST_LOOKUP] = result(b, S_TOUCH, S_NOTHING);
	c->cost[COST_COPY] = result(b, S_DIRTY, S_TOUCH);
	c->cost[COST_DIRTY] = result(b, S_CLEAN, S_DIRTY);
	tell_pages_from_folios(b, c);
	c->cost[COST_EVICT] = result(b, S_EVICT, SAMPLES);
	if (b->direct_fd >= 0)
		c->cost[COST_SUBMIT] = result(b, S_DIRECT, S_NOTHING);
	c->cost[COST_WAKE] = result(b, S_WAKE, SAMPLES);
	c->whole[WHOLE_READ] = result(b, S_READ, SAMPLES);
	c->whole[WHOLE_WRITE_DIRTY] = result(b, S_DIRTY, SAMPLES);
	c->whole[WHOLE_WRITE_CLEAN] = result(b, S_CLEAN, SAMPLES);
	c->whole[WHOLE_WRITE_NEW] = result(b, S_NEW, SAMPLES);
}

int calibrate(struct calibration *c, const char *folder, unsigned rounds, struct err *e)
{
	struct bench *b = calloc(1, sizeof(*b));
	int error = -ENOMEM;

	assert(rounds && rounds <= CALIBRATE_ROUNDS_MAX && !world_is_sim());
	if (b) {
		b->fd = b->direct_fd = -1;
		rng_init(&b->rng, 1);
		if (!posix_memalign((void **)&b->buf, PAGE_SIZE, LARGE * PAGE_SIZE))
			error = make_file(b, folder, e);
		/* the first round warms up, and does not count */
		for (unsigned i = 0; i <= rounds && !error; i++) {
			error = one_round(b);
			b->rounds = i;
		}
		if (!error)
			conclude(b, c);
		if (b->fd >= 0)
			close(b->fd);
		if (b->direct_fd >= 0)
			close(b->direct_fd);
		free(b->buf);
		free(b);
	}
	if (error)
		err_set(e, folder, 0, "%s", strerror(-error));
	return error;
}

#define FRESH_PARTS 32

static double mean(const double *ns, unsigned n)
{
	double sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += ns[i];
	return n ? sum / n : 0;
}

/* The squares of the distances from two means, one before part k and one from it on. */
static double misfit(const double *ns, unsigned parts, unsigned k)
{
	double before = mean(ns, k), beyond = mean(ns + k, parts - k), sum = 0;

	for (unsigned i = 0; i < parts; i++) {
		double d = ns[i] - (i < k ? before : beyond);

		sum += d * d;
	}
	return sum;
}

void calibrate_parts(struct calibration *c, const double *ns, unsigned parts, u64 part)
{
	double beyond, sorted[FRESH_PARTS];
	unsigned k = 0;

	assert(parts && parts <= FRESH_PARTS);
	for (unsigned i = 1; i < parts; i++)
		if (misfit(ns, parts, i) < misfit(ns, parts, k))
			k = i;
	beyond = mean(ns + k, parts - k);
	if (!k || beyond < 2 * mean(ns, k))
		k = parts;
	memcpy(sorted, ns, parts * sizeof(*ns));
	c->cost[COST_PAGE] = summary(sorted, k);
	c->cost[COST_PAGE].ns = mean(ns, k); /* slow parts count, however few */
	c->fresh_bytes = parts * part;
	c->ready_bytes = 0;
	if (k == parts)
		return;
	memcpy(sorted, ns + k, (parts - k) * sizeof(*ns));
	c->cost[COST_FETCH] = summary(sorted, parts - k);
	c->cost[COST_FETCH].ns = beyond - c->cost[COST_PAGE].ns;
	c->cost[COST_FETCH].low_ns -= c->cost[COST_PAGE].ns;
	c->cost[COST_FETCH].high_ns -= c->cost[COST_PAGE].ns;
	c->ready_bytes = k * part;
}

int calibrate_fresh(struct calibration *c, u64 bytes, struct err *e)
{
	size_t part = (size_t)round_down(bytes / FRESH_PARTS, PAGE_SIZE), size = part * FRESH_PARTS;
	double ns[FRESH_PARTS];
	volatile char *memory;

	assert(part);
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return err_set(e, NULL, 0, "no room for fresh memory: %s", strerror(errno));
	madvise((void *)memory, size, MADV_NOHUGEPAGE);
	for (unsigned i = 0; i < FRESH_PARTS; i++) {
		u64 start = world_now_real();

		for (size_t at = i * part; at < (i + 1) * part; at += PAGE_SIZE)
			memory[at] = 1;
		ns[i] = (double)(world_now_real() - start) / (double)(part / PAGE_SIZE);
	}
	munmap((void *)memory, size);
	calibrate_parts(c, ns, FRESH_PARTS, part);
	return 0;
}
