/* SPDX-License-Identifier: MIT */
/*
 * What a hit costs: reads and overwrites of cached bytes through the engine in the real world,
 * beside a bare memcpy of the same pattern and the kernel's pread and pwrite of a cached file. Each
 * figure is the median over rounds in which every contestant gets its turn, in CPU time of the
 * thread, so that ratios compare like with like, whatever else the machine does.
 *
 *	bench_hit [DIRECTORY]		of the kernel's file; else $SLUICE_BENCH_DIR, else /var/tmp;
 *					./dev bench has it on XFS (bench/on_xfs.py)
 */
#include "file/inner.h"
#include "together.h"
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB    (1ull << 20)
#define GIB    (1ull << 30)
#define ROUNDS 7
#define MOVES  65536 /* of a contestant's turn */

/* Random places: multiples of `unit` below `span`. */
struct pattern {
	u64 span, unit;
	u64 state;
};

static inline u64 next_offset(struct pattern *p)
{
	/* Knuth's multiplier; the high bits are as good as need be */
	p->state = p->state * 6364136223846793005ull + 1442695040888963407ull;
	return ((p->state >> 32) * (p->span / p->unit) >> 32) * p->unit;
}

/* A contestant: who moves `bytes` at each offset of the pattern, n times. */
struct run;
typedef void (*mover)(struct run *r, u64 n);

struct run {
	const char *name;
	mover move;
	struct pattern pattern;
	size_t bytes;
	char *memory;
	struct file *file;
	int fd;
	char *buf;
	double ns[ROUNDS];
};

static struct engine *engine;
static struct device *device;
static const struct pattern hot = { MIB, PAGE_SIZE, 1 }, large = { GIB, PAGE_SIZE, 1 },
			    small = { GIB, 512, 1 };

static void by_memcpy(struct run *r, u64 n)
{
	for (u64 i = 0; i < n; i++) {
		memcpy(r->buf, r->memory + next_offset(&r->pattern), r->bytes);
		bench_keep(r->buf);
	}
}

static void into_memory(struct run *r, u64 n)
{
	for (u64 i = 0; i < n; i++) {
		memcpy(r->memory + next_offset(&r->pattern), r->buf, r->bytes);
		bench_keep(r->memory);
	}
}

static void check(ssize_t got, size_t wanted)
{
	if (got != (ssize_t)wanted) {
		fprintf(stderr, "hit: moved %zd bytes, not %zu\n", got, wanted);
		exit(1);
	}
}

static void by_pread(struct run *r, u64 n)
{
	for (u64 i = 0; i < n; i++)
		check(pread(r->fd, r->buf, r->bytes, (off_t)next_offset(&r->pattern)), r->bytes);
}

static void by_pwrite(struct run *r, u64 n)
{
	for (u64 i = 0; i < n; i++)
		check(pwrite(r->fd, r->buf, r->bytes, (off_t)next_offset(&r->pattern)), r->bytes);
}

static void by_read_hit(struct run *r, u64 n)
{
	for (u64 i = 0; i < n; i++)
		check(file_pread(r->file, r->buf, r->bytes, next_offset(&r->pattern)), r->bytes);
}

static void by_write_hit(struct run *r, u64 n)
{
	for (u64 i = 0; i < n; i++)
		check(file_pwrite(r->file, r->buf, r->bytes, next_offset(&r->pattern)), r->bytes);
}

static double median_of(const double *ns)
{
	double sorted[ROUNDS];

	memcpy(sorted, ns, sizeof(sorted));
	qsort(sorted, ROUNDS, sizeof(sorted[0]), bench_compare);
	return sorted[ROUNDS / 2];
}

/*
 * Runs all contestants in turn, and prints each one's median and how the first compares; and what
 * is wanted of that. What any cache must pay is in bench_limits.
 */
static void contest(const char *title, const char *wanted, struct run *runs, unsigned count, u64 n)
{
	for (unsigned i = 0; i < count; i++)
		runs[i].move(&runs[i], n / 4); /* warm */
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < count; i++) {
			u64 start = bench_cpu_now();

			runs[i].move(&runs[i], n);
			runs[i].ns[round] = (double)(bench_cpu_now() - start) / (double)n;
		}
	}
	printf("%-28s %s %7.1f ns", title, runs[0].name, median_of(runs[0].ns));
	for (unsigned i = 1; i < count; i++) {
		double ratio[ROUNDS];

		for (unsigned round = 0; round < ROUNDS; round++)
			ratio[round] = runs[0].ns[round] / runs[i].ns[round];
		printf("   %s %7.1f ns (%.2fx)", runs[i].name, median_of(runs[i].ns),
		       median_of(ratio));
	}
	printf("   %s\n", wanted);
	fflush(stdout);
}

/* A file of that size, all cached, in folios of the policy's largest order. */
static struct file *make_file(u64 size, u32 order, bool dirty)
{
	struct inode *inode;
	struct file *f;
	u64 step = (u64)PAGE_SIZE << order;
	char *zeros = calloc(1, step);

	engine->all.policy.max_order = order;
	if (!zeros || inode_create(engine, 0, PAGE_SIZE, &inode) || file_open(inode, 0, &f))
		abort();
	for (u64 at = 0; at < size; at += step)
		check(file_pwrite(f, zeros, step, at), step);
	if (!dirty)
		file_fsync(f, false);
	free(zeros);
	return f;
}

static void drop_file(struct file *f)
{
	struct inode *inode = f->inode;

	file_close(f);
	inode_destroy(inode);
}

static char *make_memory(u64 size)
{
	char *memory = mmap(NULL, size + 2 * MIB, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		abort();
	memory = (char *)round_up((u64)memory, 2 * MIB);
	madvise(memory, size, MADV_HUGEPAGE);
	memset(memory, 1, size);
	return memory;
}

static int make_kernel_file(const char *directory, u64 size)
{
	char path[512];
	char *bytes = malloc(MIB);
	int fd;

	snprintf(path, sizeof(path), "%s/sluice-bench-XXXXXX", directory);
	fd = mkstemp(path);
	if (fd < 0 || !bytes) {
		fprintf(stderr, "hit: cannot make a file in %s\n", directory);
		exit(1);
	}
	unlink(path);
	memset(bytes, 1, MIB);
	for (u64 at = 0; at < size; at += MIB)
		check(pwrite(fd, bytes, MIB, (off_t)at), MIB);
	fsync(fd);
	free(bytes);
	return fd;
}

static void reads(const char *title, const char *wanted, struct pattern pattern, size_t bytes,
		  char *memory, struct file *f, int fd)
{
	char *buf = malloc(bytes);
	struct run runs[] = {
		{ .name = "sluice", .move = by_read_hit, .file = f },
		{ .name = "memcpy", .move = by_memcpy, .memory = memory },
		{ .name = "pread", .move = by_pread, .fd = fd },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(runs); i++) {
		runs[i].pattern = pattern;
		runs[i].bytes = bytes;
		runs[i].buf = buf;
	}
	contest(title, wanted, runs, ARRAY_SIZE(runs), MOVES);
	free(buf);
}

static void writes(const char *title, const char *wanted, struct pattern pattern, size_t bytes,
		   char *memory, struct file *f, int fd)
{
	char *buf = calloc(1, bytes);
	struct run runs[] = {
		{ .name = "sluice", .move = by_write_hit, .file = f },
		{ .name = "memcpy", .move = into_memory, .memory = memory },
		{ .name = "pwrite", .move = by_pwrite, .fd = fd },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(runs); i++) {
		runs[i].pattern = pattern;
		runs[i].bytes = bytes;
		runs[i].buf = buf;
	}
	contest(title, wanted, runs, ARRAY_SIZE(runs) - (fd < 0), MOVES);
	free(buf);
}

/* Two threads at one open file, each in its own buffer; and two bare copies in the same rounds. */
static void move_all(void *arg)
{
	struct run *r = arg;

	r->move(r, MOVES);
}

struct pair {
	struct run run[2];
	double alone_ns[ROUNDS], times[ROUNDS];
};

static void make_pair(struct pair *p, const struct run *both)
{
	for (unsigned i = 0; i < 2; i++) {
		p->run[i] = *both;
		p->run[i].pattern = (struct pattern){ GIB, PAGE_SIZE, i + 1 };
		p->run[i].bytes = PAGE_SIZE;
		p->run[i].buf = calloc(1, PAGE_SIZE);
		if (!p->run[i].buf)
			abort();
	}
}

static void together(const char *title, const struct run *ours, const struct run *bare)
{
	double ratio[ROUNDS], beside[ROUNDS];
	struct pair pair[2]; /* ours, bare */

	make_pair(&pair[0], ours);
	make_pair(&pair[1], bare);
	for (unsigned round = 0; round < ROUNDS; round++) {
		beside[round] = 1;
		for (unsigned i = 0; i < 2; i++) {
			struct pair *p = &pair[i];
			struct gain g = gain_of_two(move_all, &p->run[0], &p->run[1]);

			p->alone_ns[round] = g.alone_ns / MOVES;
			p->times[round] = g.times;
			beside[round] = g.beside < beside[round] ? g.beside : beside[round];
		}
		ratio[round] = pair[0].times[round] / pair[1].times[round];
	}
	printf("%-28s one thread %7.1f ns   two do %.2fx its work   two bare copies %.2fx (%.2f of "
	       "theirs; side by side %.0f %% of the time)   wanted: 1.8x\n",
	       title, median_of(pair[0].alone_ns), median_of(pair[0].times),
	       median_of(pair[1].times), median_of(ratio), 100 * median_of(beside));
	for (unsigned i = 0; i < 4; i++)
		free(pair[i / 2].run[i % 2].buf);
}

static void reads_together(const char *title, struct file *f, char *memory)
{
	together(title, &(struct run){ .move = by_read_hit, .file = f },
		 &(struct run){ .move = by_memcpy, .memory = memory });
}

static void writes_together(const char *title, struct file *f, char *memory)
{
	together(title, &(struct run){ .move = by_write_hit, .file = f },
		 &(struct run){ .move = into_memory, .memory = memory });
}

static void make_engine(void)
{
	struct engine_config c = { .memory_bytes = 3 * GIB, .contents = true };
	struct device_config dc;

	c.policy = *policy_find("sluice");
	vm_settings_init(&c.vm);
	c.vm.dirty_ratio = 95;
	c.vm.dirty_background_ratio = 90;
	c.vm.dirty_writeback_centisecs = 0;
	if (device_config_init(&dc, "memory") || device_create(&dc, &device) ||
	    engine_create(&c, &engine) || engine_add_device(engine, device, 128, false))
		abort();
}

int main(int argc, char **argv)
{
	const char *directory = argc > 1 ? argv[1] : getenv("SLUICE_BENCH_DIR");
	char *memory = make_memory(GIB);
	struct file *f;
	int fd = make_kernel_file(directory ? directory : "/var/tmp", GIB);

	make_engine();
	for (u32 order = 0; order <= 9; order += 3) {
		char title[64];

		f = make_file(GIB, order, false);
		snprintf(title, sizeof(title), "read 4 KiB, 1 GiB, order %u", order);
		reads(title, "wanted: 1.12x, 0.9x", large, PAGE_SIZE, memory, f, fd);
		snprintf(title, sizeof(title), "read 4 KiB, 1 MiB, order %u", order);
		reads(title, "wanted: 0.35x of pread", hot, PAGE_SIZE, memory, f, fd);
		snprintf(title, sizeof(title), "read 512 B, 1 GiB, order %u", order);
		reads(title, "wanted: 0.25x of pread", small, 512, memory, f, fd);
		if (order == 9)
			reads_together("read 4 KiB, two, order 9", f, memory);
		drop_file(f);
	}
	for (u32 order = 0; order <= 9; order++) {
		char title[64];

		f = make_file(GIB, order, true);
		snprintf(title, sizeof(title), "write 4 KiB, 1 GiB, order %u", order);
		writes(title, order ? "wanted: as order 0, +-10 %" : "wanted: 0.75x of pwrite",
		       large, PAGE_SIZE, memory, f, order ? -1 : fd);
		snprintf(title, sizeof(title), "write 4 KiB, 1 MiB, order %u", order);
		writes(title, order ? "wanted: as order 0, +-10 %" : "wanted: 0.3x of pwrite", hot,
		       PAGE_SIZE, memory, f, order ? -1 : fd);
		if (order == 0)
			writes_together("write 4 KiB, two, order 0", f, memory);
		if (order == 9)
			writes_together("write 4 KiB, two, order 9", f, memory);
		drop_file(f);
	}
	engine_destroy(engine);
	device_destroy(device);
	return 0;
}
