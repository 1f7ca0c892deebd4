/* SPDX-License-Identifier: MIT */
/*
 * A calibration as the [cpu] section of a machine file. Each cost says in a comment
 * how it was measured and how far the rounds were apart; what could not be measured
 * is left to its default. At the end whole calls stand beside the sums of their
 * steps: what the lab would charge for them.
 */
#include "base/infile.h"
#include "base/outfile.h"
#include "base/units.h"
#include "lab/calibrate.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

static const struct {
	const char *key;
	double standard;
} costs[COST_MAX] = {
#define COST_ROW(name, key, ns, text) [COST_##name] = { #key, ns },
	COSTS(COST_ROW)
#undef COST_ROW
};

static const char *const methods[COST_MAX] = {
	[COST_SYSCALL] = "a pread() of no bytes",
	[COST_LOOKUP] = "a pwrite() of one byte into a dirty page, without the call itself",
	[COST_ALLOC] = ("what a pwrite() of a page takes longer when it is not cached, but for the "
			"page itself"),
	[COST_PAGE] = "what each further page adds to that in a pwrite() of 64 KiB",
	[COST_FETCH] = "not measured without --fresh: a page that the host has taken back",
	[COST_COPY] = "what a pwrite() of a page takes longer than one of a byte",
	[COST_DIRTY] = "what a pwrite() of a page takes longer when it is clean",
	[COST_SPLIT] = "not measured: no system call does only that",
	[COST_EVICT] = "a page's share of posix_fadvise(POSIX_FADV_DONTNEED)",
	[COST_ACTIVATE] = "not measured: it is part of the second use of a page",
	[COST_BEGIN] = "not measured: it is part of lookup_ns, which is measured by pwrite()",
	[COST_SUBMIT] = "CPU time of the thread in a direct pread(), without the call itself",
	[COST_COMPLETE] = "not measured: an interrupt's CPU time is on no process's account",
	[COST_ESTIMATE] =
		"not measured: in a trace of bdi_dirty_ratelimit two CPUs' updates follow so",
	[COST_WAKE] = "from waking a thread by a futex until it runs",
};

_Static_assert(COST_MAX == 15, "a new cost needs a method, and a place in whole calls");

static const struct {
	const char *about;
	enum cost steps[6];
	size_t count;
} wholes[WHOLE_MAX] = {
	[WHOLE_READ] = { "pread() of a cached page", { COST_SYSCALL, COST_LOOKUP, COST_COPY }, 3 },
	[WHOLE_WRITE_DIRTY] = { "pwrite() of a dirty page",
				{ COST_SYSCALL, COST_LOOKUP, COST_COPY },
				3 },
	[WHOLE_WRITE_CLEAN] = { "pwrite() of a clean page",
				{ COST_SYSCALL, COST_LOOKUP, COST_COPY, COST_DIRTY },
				4 },
	[WHOLE_WRITE_NEW] = { "pwrite() of a page that is not cached",
			      { COST_SYSCALL, COST_LOOKUP, COST_COPY, COST_DIRTY, COST_ALLOC,
				COST_PAGE },
			      6 },
};

double calibrate_default(enum cost cost)
{
	assert(cost < COST_MAX);
	return costs[cost].standard;
}

const char *calibrate_method(enum cost cost)
{
	assert(cost < COST_MAX && methods[cost]);
	return methods[cost];
}

const char *calibrate_whole(enum whole w)
{
	assert(w < WHOLE_MAX);
	return wholes[w].about;
}

double calibrate_sum(const struct calibration *c, enum whole w)
{
	double sum_ns = 0;

	for (size_t i = 0; i < wholes[w].count; i++) {
		enum cost cost = wholes[w].steps[i];

		sum_ns += c->cost[cost].known ? c->cost[cost].ns : costs[cost].standard;
	}
	return sum_ns;
}

static void print_cost(FILE *out, const struct calibration *c, enum cost cost)
{
	const struct measured *m = &c->cost[cost];
	char text[UNITS_TEXT_MAX];

	if (cost == COST_FETCH && c->ready_bytes)
		fprintf(out,
			"# what touching such a page takes longer beyond the first %s; belongs "
			"with "
			"ready = %s in [machine]",
			units_print_bytes(text, c->ready_bytes),
			units_print_bytes(text, c->ready_bytes));
	else if (cost == COST_PAGE && c->ready_bytes)
		fprintf(out, "# the mean of touching the first %s of memory that nobody used",
			units_print_bytes(text, c->ready_bytes));
	else if (cost == COST_PAGE && c->fresh_bytes)
		fprintf(out, "# the mean of touching %s of memory that nobody used",
			units_print_bytes(text, c->fresh_bytes));
	else
		fprintf(out, "# %s", methods[cost]);
	if (m->known)
		fprintf(out, " (half of the rounds: %.0f to %.0f; default %.0f)\n%s = %.0f\n",
			m->low_ns, m->high_ns, costs[cost].standard, costs[cost].key, m->ns);
	else
		fprintf(out, "%s; the default counts\n# %s = %.0f\n",
			strncmp(methods[cost], "not ", 4) ? ": could not be measured here" : "",
			costs[cost].key, costs[cost].standard);
}

void calibrate_print(FILE *out, const struct calibration *c)
{
	struct utsname u;

	fputs("[cpu]\n", out);
	if (!uname(&u))
		fprintf(out, "# Measured by sluice calibrate: %s %s, %s.\n", u.sysname, u.release,
			u.machine);
	for (enum cost cost = 0; cost < COST_MAX; cost++)
		print_cost(out, c, cost);
	fputs("# Whole calls of 4 KiB, and the sums of their steps:\n", out);
	for (enum whole w = 0; w < WHOLE_MAX; w++)
		fprintf(out, "# %s: %.0f, %.0f\n", wholes[w].about, c->whole[w].ns,
			calibrate_sum(c, w));
}

struct merge {
	const struct calibration *c;
	const char *old; /* what stands in the file, or "" */
};

/* Whether a line begins a section, and whether that is [cpu]. */
static bool begins(const char *line, size_t len, bool *cpu)
{
	size_t blanks = strspn(line, " \t");

	if (blanks >= len || line[blanks] != '[')
		return false;
	*cpu = !strncmp(line + blanks, "[cpu]", 5);
	return true;
}

/* The old file without its [cpu] section, and the new section behind it. */
static int put(FILE *out, void *ctx)
{
	const struct merge *m = ctx;
	bool skip = false, blank = true;

	for (const char *line = m->old; *line;) {
		size_t len = strcspn(line, "\n");

		begins(line, len, &skip);
		if (!skip) {
			fprintf(out, "%.*s\n", (int)len, line);
			blank = !len;
		}
		line += len + (line[len] == '\n');
	}
	if (!blank)
		fputc('\n', out);
	calibrate_print(out, m->c);
	return ferror(out) ? -EIO : 0;
}

int calibrate_write(const char *path, const struct calibration *c, struct err *e)
{
	struct merge m = { .c = c, .old = "" };
	int fd = infile_open(path), error;
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	char *old = NULL;
	size_t room = 0;
	ssize_t len;

	if (!f && fd != -ENOENT)
		return err_set(e, path, 0, "cannot be read: %s",
			       infile_error(fd < 0 ? fd : -ENOMEM));
	len = f ? getdelim(&old, &room, 0, f) : 0;
	if (f)
		fclose(f);
	if (len > 0)
		m.old = old;
	error = outfile_write(path, put, &m, e);
	free(old);
	return error;
}
