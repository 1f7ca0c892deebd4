// SPDX-License-Identifier: MIT
/*
 * What a write pays for persist=PATH: writes of 4 KiB to cached pages, in turns, of a cache with
 * its memory in a file and of two without: on pages of 4 KiB, and on huge ones where the system
 * grants them. A page that is clean gets a record of what is owed; one that is dirty has it.
 * Medians, in CPU time of the thread. What the records cost is the difference to the cache on the
 * same kind of pages: that of 4 KiB, unless DIRECTORY is on a tmpfs with huge=always or the like.
 *
 *	bench_persist [DIRECTORY]	of the arena; else /dev/shm. The file written to is in
 *					$SLUICE_BENCH_DIR, else in /var/tmp
 */
#include "bench.h"
#include "sluice.h"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define PAGES  (24u << 10) /* 96 MiB */
#define STRIDE 7919        /* a prime: every page, in no order */
#define ROUNDS 15

enum order { IN_ORDER, SCATTERED, ORDERS };
enum page { CLEAN, DIRTY, KINDS };

enum contestant { SMALL, HUGE, KEPT, CONTESTANTS };

struct run {
	struct sluice *cache;
	struct sluice_file *file;
	char path[256];
	double ns[ORDERS][KINDS][ROUNDS];
};

static char page_bytes[PAGE_SIZE] __attribute__((aligned(PAGE_SIZE)));

static void must(int rc, const char *what)
{
	if (rc) {
		fprintf(stderr, "%s: %s\n", what, strerror(-rc));
		exit(1);
	}
}

/* Writes every page once; ns a write. */
static double write_all(struct run *r, enum order order)
{
	u64 step = order == SCATTERED ? STRIDE : 1, at = 0, start = bench_cpu_now();

	for (u32 i = 0; i < PAGES; i++) {
		if (sluice_pwrite(r->file, page_bytes, PAGE_SIZE, at * PAGE_SIZE, 0) != PAGE_SIZE)
			exit(1);
		at = (at + step) % PAGES;
	}
	return (double)(bench_cpu_now() - start) / PAGES;
}

static void open_run(struct run *r, enum contestant which, const char *folder, const char *memory)
{
	const char *settings[] = { "memory=512M",
				   "vm.dirty_writeback_centisecs=0",
				   "vm.dirty_ratio=90",
				   "vm.dirty_background_ratio=80",
				   memory,
				   NULL };
	char why[SLUICE_ERROR_MAX];

	if (sluice_create(settings, why, sizeof(why), &r->cache)) {
		fprintf(stderr, "%s\n", why);
		exit(1);
	}
	snprintf(r->path, sizeof(r->path), "%.200s/sluice-bench-%d-%d", folder, getpid(), which);
	must(sluice_open(r->cache, r->path, O_RDWR | O_CREAT | O_EXCL, 0600, &r->file), r->path);
	write_all(r, IN_ORDER);
	must(sluice_fsync(r->file), "fsync");
}

static void close_run(struct run *r)
{
	must(sluice_close(r->file), "close");
	must(sluice_destroy(r->cache, NULL, NULL), "destroy");
	unlink(r->path);
}

static void turn(struct run *r, unsigned round)
{
	for (unsigned order = 0; order < ORDERS; order++) {
		for (unsigned kind = 0; kind < KINDS; kind++)
			r->ns[order][kind][round] = write_all(r, order);
		must(sluice_fsync(r->file), "fsync");
	}
}

static double middle(const struct run *r, unsigned order, unsigned kind)
{
	double ns[ROUNDS];

	memcpy(ns, r->ns[order][kind], sizeof(ns));
	qsort(ns, ROUNDS, sizeof(*ns), bench_compare);
	return ns[ROUNDS / 2];
}

int main(int argc, char **argv)
{
	static const char *const orders[ORDERS] = { "in order", "scattered" };
	static const char *const kinds[KINDS] = { "clean", "dirty" };
	const char *folder = getenv("SLUICE_BENCH_DIR");
	static struct run runs[CONTESTANTS];
	char persist[300];

	snprintf(persist, sizeof(persist), "persist=%.200s/sluice-bench-%d",
		 argc > 1 ? argv[1] : "/dev/shm", getpid());
	folder = folder ? folder : "/var/tmp";
	memset(page_bytes, 'x', sizeof(page_bytes));
	open_run(&runs[SMALL], SMALL, folder, "huge_pages=never");
	open_run(&runs[HUGE], HUGE, folder, "huge_pages=auto");
	open_run(&runs[KEPT], KEPT, folder, persist);
	for (unsigned i = 0; i < ROUNDS; i++)
		for (unsigned at = 0; at < CONTESTANTS; at++)
			turn(&runs[(i + at) % CONTESTANTS], i);
	printf("%-29s %10s %10s %10s\n", "ns a write of 4 KiB", "4 KiB", "huge", "persist");
	for (unsigned order = 0; order < ORDERS; order++)
		for (unsigned kind = 0; kind < KINDS; kind++)
			printf("to %s pages, %-14s %10.1f %10.1f %10.1f\n", kinds[kind],
			       orders[order], middle(&runs[SMALL], order, kind),
			       middle(&runs[HUGE], order, kind), middle(&runs[KEPT], order, kind));
	for (unsigned at = 0; at < CONTESTANTS; at++)
		close_run(&runs[at]);
	return 0;
}
