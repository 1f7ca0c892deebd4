/* SPDX-License-Identifier: MIT */
/*
 * An explanation goes through a case in the order of cause and effect: what the jobs did, what
 * was charged for it, when the background limit was passed and how much had to be written then,
 * when the throttle began and how long writers slept, what the device did meanwhile, what the
 * policy did to folios. Its conclusion names the one thing that held the jobs back most, by
 * these rules, of which the first that fits is taken. "Busy" is the share of time in
 * which the device had something to do: since the first sleep if there was one; "in calls" the
 * share of the jobs' time that their calls took.
 *
 *	writers slept, in calls >= 10 %, and at the first sleep
 *	at least twice as much was charged, with what was in flight,
 *	as was still to be written					the charge
 *	writers slept, in calls >= 10 %, busy >= 90 %			the device
 *	writers slept, in calls >= 10 %					the limits
 *	tasks waited for memory, in calls >= 10 %			memory
 *	in calls >= 50 %, busy >= 90 %					the device
 *	in calls >= 50 %						the CPU
 *	else								the jobs
 *
 * A writer that sleeps may hold its file's lock, and others queue behind it; they sleep
 * little themselves, and so the rules look at the time in calls and not at that of sleep.
 */
#include "lab/explain.h"
#include "base/units.h"
#include <math.h>
#include <stdarg.h>
#include <string.h>

#define IN_CALLS_SOME 0.10
#define IN_CALLS_MUCH 0.50
#define BUSY_ALL      0.90
#define CHARGED_MUCH  2.0 /* times what had to be written */

/* The facts of a case that the sentences share. */
struct facts {
	const struct series *s;
	const struct setup *setup;
	const struct policy *policy;
	const struct engine_stats *before, *after;
	double seconds;
	double first_sleep_s; /* < 0: never */
	double sleep_s, in_calls;
	double busy;        /* of the busiest device, since the first sleep, 0..1 */
	size_t first_sleep; /* the point at or after it, or 0 */
	u64 written_bytes;  /* by the jobs */
};

const char *verdict_name(enum verdict v)
{
	static const char *const names[] = {
		"charge", "device", "limits", "memory", "CPU", "jobs"
	};

	assert(v < ARRAY_SIZE(names));
	return names[v];
}

static const struct series_point *last_point(const struct series *s)
{
	return &s->points[s->count - 1];
}

/* The first point at or after a world time. */
static size_t point_at(const struct series *s, u64 when_ns)
{
	size_t i = 0;

	while (i + 1 < s->count && s->started_ns + s->points[i].t_ns < when_ns)
		i++;
	return i;
}

static double busy_of(const struct series *s, u32 device, size_t from, size_t to)
{
	const struct series_point *a = &s->points[from], *b = &s->points[to];

	if (b->t_ns == a->t_ns)
		return 0;
	return (double)(b->device[device].busy_ns - a->device[device].busy_ns) /
	       (double)(b->t_ns - a->t_ns);
}

/* Of several devices the busiest one decides. */
static double busy_share(const struct series *s, size_t from, size_t to)
{
	double most = 0;

	for (u32 i = 0; i < s->device_count; i++)
		most = fmax(most, busy_of(s, i, from, to));
	return most;
}

static void find_facts(const struct lab_result *r, struct facts *f)
{
	const struct series *s = r->series;
	const struct series_point *last = last_point(s);
	double calls_ns = s->in_syncs_ns;

	*f = (struct facts){ .s = s, .policy = &r->c->policy, .first_sleep_s = -1 };
	f->setup = &r->c->setup;
	f->before = &s->points[0].engine;
	f->after = &last->engine;
	f->seconds = (double)last->t_ns / NSEC_PER_SEC;
	f->sleep_s =
		(double)(f->after->throttle_sleep_ns - f->before->throttle_sleep_ns) / NSEC_PER_SEC;
	f->written_bytes = last->bytes[JOB_DIR_WRITE];
	for (int dir = 0; dir < JOB_DIRS; dir++)
		calls_ns += s->in_calls_ns[dir];
	if (s->clones_all && last->t_ns)
		f->in_calls = fmin(1, calls_ns / ((double)s->clones_all * (double)last->t_ns));
	if (f->sleep_s > 0) {
		f->first_sleep_s =
			(double)(f->after->first_throttle_ns - s->started_ns) / NSEC_PER_SEC;
		f->first_sleep = point_at(s, f->after->first_throttle_ns);
	}
	f->busy = busy_share(s, f->first_sleep, s->count - 1);
}

static void say(struct explanation *out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void say(struct explanation *out, const char *format, ...)
{
	va_list list;

	assert(out->count < EXPLAIN_SENTENCES);
	va_start(list, format);
	vsnprintf(out->sentence[out->count++], sizeof(out->sentence[0]), format, list);
	va_end(list);
}

/* Numbers as sentences have them; each returns buf. */
#define TEXT 32

/* Below 10 KiB units_print_bytes() is exact to the byte, which is more than a mean deserves. */
static const char *bytes(char buf[TEXT], double n)
{
	if (n < 1024 || n >= 10 * 1024)
		return units_print_bytes(buf, (u64)n);
	snprintf(buf, TEXT, "%.2fK", n / 1024);
	return buf;
}

static const char *pages(char buf[TEXT], u64 n)
{
	return units_print_bytes(buf, n * PAGE_SIZE);
}

static const char *percent(char buf[TEXT], double share)
{
	if (share > 0 && share < 0.0005)
		snprintf(buf, TEXT, "less than 0.1 %%");
	else
		snprintf(buf, TEXT, share > 0 && share < 0.0995 ? "%.1f %%" : "%.0f %%",
			 100 * share);
	return buf;
}

/* Three digits, and no fraction of a hundred. */
static const char *number(char buf[TEXT], double n)
{
	snprintf(buf, TEXT, "%.*f", n < 0.9995 ? 3 : n < 9.995 ? 2 : n < 99.95 ? 1 : 0, n);
	return buf;
}

/* A whole number, its digits in threes. */
static const char *count(char buf[TEXT], double n)
{
	char digits[TEXT];
	size_t length, at = 0;

	snprintf(digits, sizeof(digits), "%.0f", n);
	length = strlen(digits);
	for (size_t i = 0; i < length && at + 2 < TEXT; i++) {
		if (i && (length - i) % 3 == 0)
			buf[at++] = ',';
		buf[at++] = digits[i];
	}
	buf[at] = 0;
	return buf;
}

static const char *plural(double n)
{
	return n == 1 ? "" : "s";
}

/* "32 writers made 4,050 writes a second, 15.8M a second." */
static void say_jobs(const struct facts *f, enum job_dir dir, struct explanation *out)
{
	const struct series_point *last = last_point(f->s);
	const char *what = dir == JOB_DIR_READ ? "read" : "write";
	double rate = f->seconds > 0 ? (double)last->ios[dir] / f->seconds : 0;
	double flow = f->seconds > 0 ? (double)last->bytes[dir] / f->seconds : 0;
	char a[TEXT], b[TEXT], c[TEXT], d[TEXT];

	if (!last->ios[dir])
		return;
	say(out, "%s %sr%s made %s %ss a second, %s a second, for %s s.",
	    count(a, f->s->clones[dir]), dir == JOB_DIR_READ ? "reade" : "write",
	    plural(f->s->clones[dir]), count(b, rate), what, bytes(c, flow), number(d, f->seconds));
}

static void say_charge(const struct facts *f, struct explanation *out)
{
	u64 charged = f->after->charged - f->before->charged;
	double factor = (double)charged * PAGE_SIZE / (double)f->written_bytes;
	char a[TEXT], b[TEXT], c[TEXT];
	const char *why = "";

	if (!charged) {
		say(out, "Nothing written was charged as dirty: it went past the cache.");
		return;
	}
	if (f->policy->accounting == ACCOUNT_FOLIO && factor >= CHARGED_MUCH)
		why = ": a folio is charged whole, whatever of it was written";
	else if (factor < 0.995)
		why = "; the rest met pages that were dirty already";
	say(out, "For each byte written %s %s charged as dirty, %s for %s%s.", number(a, factor),
	    factor == 1 ? "was" : "were", pages(b, charged), bytes(c, (double)f->written_bytes),
	    why);
}

/* ", and all of it had to be written" and the like. */
static const char *of_that(char buf[96], u64 dirty, u64 debt)
{
	char a[TEXT], b[TEXT];

	if (debt >= dirty)
		snprintf(buf, 96, "all of which had to be written");
	else
		snprintf(buf, 96, "of which %s, %s, had to be written", pages(a, debt),
			 percent(b, (double)debt / (double)dirty));
	return buf;
}

static void say_background(const struct facts *f, struct explanation *out)
{
	const struct engine_stats *e = f->after;
	char a[TEXT], b[TEXT], c[TEXT], part[96];
	size_t i;

	if (e->background_ns == WORLD_NEVER ||
	    e->background_ns > f->s->started_ns + last_point(f->s)->t_ns) {
		say(out,
		    "At most %s were charged at a time: the background limit of %s was never "
		    "passed.",
		    pages(a, e->dirty_max), pages(b, e->background_thresh));
		return;
	}
	i = point_at(f->s, e->background_ns);
	say(out,
	    "After %s s the background limit was passed: %s were charged, the limit was %s, %s.",
	    number(a, (double)(e->background_ns - f->s->started_ns) / NSEC_PER_SEC),
	    pages(b, e->background_dirty), pages(c, f->s->points[i].engine.background_thresh),
	    of_that(part, e->background_dirty, e->background_debt));
}

static void say_sleep(const struct facts *f, struct explanation *out)
{
	const struct engine_stats *e = f->after;
	double sleeps = (double)(e->throttle_sleeps - f->before->throttle_sleeps);
	double time = (double)f->s->clones[JOB_DIR_WRITE] * f->seconds;
	char a[TEXT], b[TEXT], c[TEXT], d[TEXT], g[TEXT], part[96];

	if (f->first_sleep_s < 0) {
		say(out, "No writer was put to sleep; calls took %s of the jobs' time.",
		    percent(a, f->in_calls));
		return;
	}
	say(out, "After %s s the first writer was put to sleep: %s were charged or in flight, %s.",
	    number(a, f->first_sleep_s), pages(b, e->first_throttle_dirty),
	    of_that(part, e->first_throttle_dirty, e->first_throttle_debt));
	say(out,
	    "Writers slept %s s in all, %s of their time, in %s pause%s of %s ms on average; %s of "
	    "their time went by in calls%s.",
	    number(a, f->sleep_s), percent(b, f->sleep_s / time), count(c, sleeps), plural(sleeps),
	    number(d, 1000 * f->sleep_s / sleeps), percent(g, f->in_calls),
	    f->policy->write_lock == WRITE_LOCK_INODE
		    ? ", which wait for a file whose writer sleeps"
		    : "");
}

/* "3,000 writes a second, 4.08K a write"; "" when there were none. */
static const char *say_requests(char buf[96], const char *what, u64 n, u64 n_bytes, double seconds)
{
	char a[TEXT], b[TEXT];

	buf[0] = 0;
	if (n && seconds > 0)
		snprintf(buf, 96, "%s %ss a second, %s a %s", count(a, (double)n / seconds), what,
			 bytes(b, (double)n_bytes / (double)n), what);
	return buf;
}

static void say_device(const struct facts *f, u32 i, struct explanation *out)
{
	const struct series *s = f->s;
	const struct series_point *from = &s->points[f->first_sleep], *to = last_point(s);
	const struct device_stats *d = &from->device[i], *e = &to->device[i];
	double seconds = (double)(to->t_ns - from->t_ns) / NSEC_PER_SEC;
	char a[TEXT], b[TEXT], which[64] = "The device", when[96] = "", reads[96], writes[96];

	if (s->device_count > 1)
		snprintf(which, sizeof(which), "Device %s",
			 setup_device_name(&f->setup->device[i]));
	if (f->first_sleep_s >= 0)
		snprintf(when, sizeof(when), "%s of the time until then, and since then ",
			 percent(a, busy_of(s, i, 0, f->first_sleep)));
	say_requests(reads, "read", e->reads - d->reads, e->read_bytes - d->read_bytes, seconds);
	say_requests(writes, "write", e->writes - d->writes, e->write_bytes - d->write_bytes,
		     seconds);
	say(out, "%s was busy %s%s%s%s%s%s%s.", which, when,
	    percent(b, busy_of(s, i, f->first_sleep, s->count - 1)),
	    f->first_sleep_s < 0 ? " of the time" : "", reads[0] || writes[0] ? ": " : "", reads,
	    reads[0] && writes[0] ? "; " : "", writes);
}

/* "up to 8K": what requests of a class of sizes have in common. */
static const char *size_class(char buf[TEXT], u32 class)
{
	u32 most_kb = 4u << min_u64(class, DEVICE_SIZES - 2);

	snprintf(buf, TEXT, "%s%u%s",
		 class == DEVICE_SIZES - 1 ? "more than "
		 : class                   ? "up to "
					   : "",
		 most_kb < 1024 ? most_kb : most_kb / 1024, most_kb < 1024 ? "K" : "M");
	return buf;
}

/* The requests that a FUSE server was sent to write, by size. */
static void say_sizes(const struct facts *f, u32 i, struct explanation *out)
{
	const struct device_stats *d = &f->s->points[0].device[i];
	const struct device_stats *e = &last_point(f->s)->device[i];
	char text[200] = "", n[TEXT], size[TEXT];

	if (strcmp(f->setup->device[i].config.model, "fuse") != 0)
		return;
	for (u32 c = 0; c < DEVICE_SIZES; c++) {
		u64 some = e->write_sizes[c] - d->write_sizes[c];
		size_t used = strlen(text);

		if (some)
			snprintf(text + used, sizeof(text) - used, "%s%s of %s", used ? ", " : "",
				 count(n, (double)some), size_class(size, c));
	}
	if (text[0])
		say(out, "Its server was sent requests to write: %s.", text);
}

static void say_folios(const struct facts *f, struct explanation *out)
{
	const struct engine_stats *a = f->before, *b = f->after;
	double shed = (double)(b->folios_shed - a->folios_shed);
	double split = (double)(b->folios_split - a->folios_split) - shed;
	double evicted = (double)(b->folios_evicted - a->folios_evicted);
	double reclaimed = (double)(b->folios_reclaimed - a->folios_reclaimed);
	double waits = (double)(b->reclaim_waits - a->reclaim_waits);
	const struct {
		double n;
		const char *what;
	} parts[] = {
		{ split, "split before a small write" },
		{ evicted, "dropped before a small write" },
		{ shed, "split to let go of clean pages" },
		{ reclaimed, "reclaimed" },
	};
	char text[224] = "", n[TEXT];

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		size_t used = strlen(text);

		if (parts[i].n > 0)
			snprintf(text + used, sizeof(text) - used, "%s%s %s", used ? ", " : "",
				 count(n, parts[i].n), parts[i].what);
	}
	if (text[0])
		say(out, "Folios: %s.", text);
	if (waits > 0)
		say(out, "Tasks waited for memory %s time%s.", count(n, waits), plural(waits));
}

static enum verdict judge(const struct facts *f)
{
	const struct engine_stats *e = f->after;
	bool some = f->in_calls >= IN_CALLS_SOME;

	if (f->sleep_s > 0 && some) {
		if ((double)e->first_throttle_dirty >=
		    CHARGED_MUCH * (double)e->first_throttle_debt)
			return VERDICT_CHARGE;
		return f->busy >= BUSY_ALL ? VERDICT_DEVICE : VERDICT_LIMITS;
	}
	if (e->reclaim_waits > f->before->reclaim_waits && some)
		return VERDICT_MEMORY;
	if (f->in_calls >= IN_CALLS_MUCH)
		return f->busy >= BUSY_ALL ? VERDICT_DEVICE : VERDICT_CPU;
	return VERDICT_JOBS;
}

static void conclude(const struct facts *f, struct explanation *out)
{
	const struct engine_stats *e = f->after;
	char a[TEXT];

	out->verdict = judge(f);
	switch (out->verdict) {
	case VERDICT_CHARGE:
		say(out,
		    "The charge decided: writers slept for dirty memory of which %s had to be "
		    "written.",
		    percent(a, (double)e->first_throttle_debt / (double)e->first_throttle_dirty));
		break;
	case VERDICT_DEVICE:
		say(out,
		    f->sleep_s > 0
			    ? "The device decided: the throttle slowed the writers to its speed."
			    : "The device decided: calls waited for it.");
		break;
	case VERDICT_LIMITS:
		say(out,
		    "The limits decided: writers slept while the device was idle %s of the time.",
		    percent(a, 1 - f->busy));
		break;
	case VERDICT_MEMORY:
		say(out, "Memory decided: there was too little that could be reclaimed.");
		break;
	case VERDICT_CPU:
		say(out,
		    "The CPU decided: calls took %s of the jobs' time and waited for nothing "
		    "else.",
		    percent(a, f->in_calls));
		break;
	case VERDICT_JOBS:
		say(out, "Nothing held the jobs back: they asked for no more.");
		break;
	}
}

void explain(const struct lab_result *r, struct explanation *out)
{
	struct facts f;

	assert(!r->error && r->series && r->series->count > 0);
	*out = (struct explanation){ .count = 0 };
	find_facts(r, &f);
	say_jobs(&f, JOB_DIR_READ, out);
	say_jobs(&f, JOB_DIR_WRITE, out);
	if (f.written_bytes) {
		say_charge(&f, out);
		say_background(&f, out);
		say_sleep(&f, out);
	}
	for (u32 i = 0; i < r->series->device_count; i++) {
		say_device(&f, i, out);
		say_sizes(&f, i, out);
	}
	say_folios(&f, out);
	conclude(&f, out);
}

void explain_all(FILE *out, const struct lab_result *results, size_t count)
{
	struct explanation e;

	for (size_t i = 0; i < count; i++) {
		if (results[i].error || !results[i].series)
			continue;
		explain(&results[i], &e);
		fprintf(out, "\n%s, %s\n", results[i].c->name, results[i].policy);
		for (size_t s = 0; s < e.count; s++)
			fprintf(out, "  %s\n", e.sentence[s]);
	}
}
