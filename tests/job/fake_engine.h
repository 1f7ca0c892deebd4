/* SPDX-License-Identifier: MIT */
/*
 * An engine of nothing but file sizes, for tests of the job runner: it records every
 * call with its time and its task, takes the time it is told to, and fails on demand.
 */
#ifndef SLUICE_TEST_FAKE_ENGINE_H
#define SLUICE_TEST_FAKE_ENGINE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "job/job.h"
#include "world/sim.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum fake_kind {
	FAKE_OPEN = 'o',
	FAKE_CLOSE = 'c',
	FAKE_READ = 'r',
	FAKE_WRITE = 'w',
	FAKE_FSYNC = 's',
	FAKE_FDATASYNC = 'd',
	FAKE_ADVISE = 'a',
	FAKE_TRUNCATE = 't',
	FAKE_LAY_OUT = 'l',
	FAKE_EXIT = 'x',
	FAKE_RANGE = 'g',
	FAKE_ALLOCATE = 'f',
	FAKE_UNLINK = 'u',
};

struct fake_call {
	char kind;
	u32 flags; /* of open, or the advice */
	u32 file;
	u64 offset, length;
	u64 start_ns, end_ns;
	bool buffer;
	u64 first_word; /* of a written buffer */
};

struct fake_inode {
	char path[64];
	u64 size;
	bool exists;
};

#define FAKE_FILES 128

struct fake {
	struct job_engine engine;
	struct fake_inode inodes[FAKE_FILES];
	u32 inode_count;
	struct fake_call *calls;
	size_t count, room;
	bool record; /* else only counted */
	u64 latency_ns;
	/* The I/O with this number (of reads and writes, from 1) takes so long instead. */
	u64 slow_number, slow_ns;
	u64 ios;
	u64 fail_at; /* the I/O with this number fails with fail_error */
	int fail_error;
	u64 limit_bytes; /* no file may be larger, 0: no limit */
	u64 short_bytes; /* no call does more, 0: all */
	u32 in_flight, most_in_flight, open_files;
};

struct job_file {
	struct fake *fake;
	struct fake_inode *inode;
	u32 number;
};

static struct fake_call *fake_note(struct fake *k, char kind, u32 file)
{
	static struct fake_call scratch;
	struct fake_call *c = &scratch;

	if (k->record) {
		if (k->count == k->room) {
			k->room = k->room ? 2 * k->room : 1024;
			k->calls = realloc(k->calls, k->room * sizeof(*k->calls));
			assert_non_null(k->calls);
		}
		c = &k->calls[k->count++];
	}
	*c = (struct fake_call){ .kind = kind, .file = file, .start_ns = world_now() };
	c->end_ns = c->start_ns;
	return c;
}

static u32 fake_find(struct fake *k, const char *path)
{
	for (u32 i = 0; i < k->inode_count; i++)
		if (!strcmp(k->inodes[i].path, path))
			return i;
	assert_true(k->inode_count < FAKE_FILES);
	assert_true(strlen(path) < sizeof(k->inodes[0].path));
	strcpy(k->inodes[k->inode_count].path, path);
	return k->inode_count++;
}

/* A file that is there before the jobs. */
static inline void fake_file(struct fake *k, const char *path, u64 size)
{
	struct fake_inode *i = &k->inodes[fake_find(k, path)];

	i->exists = true;
	i->size = size;
}

static int fake_open(struct job_engine *e, const char *path, unsigned flags, struct job_file **out)
{
	struct fake *k = container_of(e, struct fake, engine);
	u32 number = fake_find(k, path);
	struct fake_inode *i = &k->inodes[number];
	struct job_file *f;

	if (!i->exists && !(flags & JOB_CREATE))
		return -ENOENT;
	if (!i->exists || (flags & JOB_TRUNCATE))
		i->size = 0;
	i->exists = true;
	fake_note(k, FAKE_OPEN, number)->flags = flags;
	f = calloc(1, sizeof(*f));
	assert_non_null(f);
	*f = (struct job_file){ k, i, number };
	k->open_files++;
	*out = f;
	return 0;
}

static void fake_close(struct job_file *f)
{
	fake_note(f->fake, FAKE_CLOSE, f->number);
	f->fake->open_files--;
	free(f);
}

static void fake_pass(struct fake *k, size_t call)
{
	u64 ns = k->ios == k->slow_number ? k->slow_ns : k->latency_ns;

	if (++k->in_flight > k->most_in_flight)
		k->most_in_flight = k->in_flight;
	if (ns)
		world_sleep_until(world_now() + ns);
	k->in_flight--;
	if (k->record)
		k->calls[call].end_ns = world_now();
}

static ssize_t fake_io(struct job_file *f, char kind, const void *buf, size_t len, u64 offset)
{
	struct fake *k = f->fake;
	struct fake_call *c = fake_note(k, kind, f->number);
	size_t number = k->count - 1;

	c->offset = offset;
	c->length = len;
	c->buffer = buf;
	if (buf && kind == FAKE_WRITE && len >= sizeof(u64))
		memcpy(&c->first_word, buf, sizeof(u64));
	k->ios++;
	if (k->ios == k->fail_at)
		return k->fail_error;
	fake_pass(k, number);
	if (k->short_bytes && len > k->short_bytes)
		len = k->short_bytes;
	if (kind == FAKE_WRITE && k->limit_bytes && offset + len > k->limit_bytes)
		return -ENOSPC;
	if (kind == FAKE_WRITE) {
		f->inode->size = max_u64(f->inode->size, offset + len);
		return (ssize_t)len;
	}
	if (offset >= f->inode->size)
		return 0;
	return (ssize_t)min_u64(len, f->inode->size - offset);
}

static ssize_t fake_pread(struct job_file *f, void *buf, size_t len, u64 offset)
{
	return fake_io(f, FAKE_READ, buf, len, offset);
}

static ssize_t fake_pwrite(struct job_file *f, const void *buf, size_t len, u64 offset)
{
	return fake_io(f, FAKE_WRITE, buf, len, offset);
}

static int fake_fsync(struct job_file *f, bool data_only)
{
	fake_note(f->fake, data_only ? FAKE_FDATASYNC : FAKE_FSYNC, f->number);
	fake_pass(f->fake, f->fake->count - 1);
	return 0;
}

static int fake_advise(struct job_file *f, u64 offset, u64 len, enum job_advice advice)
{
	struct fake_call *c = fake_note(f->fake, FAKE_ADVISE, f->number);

	c->offset = offset;
	c->length = len;
	c->flags = advice;
	return 0;
}

static int fake_truncate(struct job_file *f, u64 size)
{
	fake_note(f->fake, FAKE_TRUNCATE, f->number)->length = size;
	f->inode->size = size;
	return 0;
}

static u64 fake_size(struct job_file *f)
{
	return f->inode->size;
}

static int fake_lay_out(struct job_engine *e, const char *path, u64 size)
{
	struct fake *k = container_of(e, struct fake, engine);
	u32 number = fake_find(k, path);

	if (strstr(path, "cannot"))
		return -ENOSPC;
	fake_note(k, FAKE_LAY_OUT, number)->length = size;
	fake_file(k, path, size);
	return 0;
}

static int fake_unlink(struct job_engine *e, const char *path)
{
	struct fake *k = container_of(e, struct fake, engine);
	u32 number = fake_find(k, path);

	if (!k->inodes[number].exists)
		return -ENOENT;
	fake_note(k, FAKE_UNLINK, number);
	k->inodes[number].exists = false;
	return 0;
}

static int fake_sync_range(struct job_file *f, u64 offset, u64 len, unsigned flags)
{
	struct fake_call *c = fake_note(f->fake, FAKE_RANGE, f->number);

	c->offset = offset;
	c->length = len;
	c->flags = flags;
	fake_pass(f->fake, f->fake->count - 1);
	return 0;
}

static int fake_allocate(struct job_file *f, u64 offset, u64 len, bool keep_size)
{
	struct fake_call *c = fake_note(f->fake, FAKE_ALLOCATE, f->number);

	c->offset = offset;
	c->length = len;
	c->flags = keep_size;
	if (!keep_size)
		f->inode->size = max_u64(f->inode->size, offset + len);
	return 0;
}

static void fake_task_exit(struct job_engine *e)
{
	fake_note(container_of(e, struct fake, engine), FAKE_EXIT, 0);
}

static inline void fake_init(struct fake *k)
{
	*k = (struct fake){
		.engine = {
			.name = "fake",
			.open = fake_open,
			.close = fake_close,
			.pread = fake_pread,
			.pwrite = fake_pwrite,
			.fsync = fake_fsync,
			.advise = fake_advise,
			.truncate = fake_truncate,
			.size = fake_size,
			.unlink = fake_unlink,
			.lay_out = fake_lay_out,
			.task_exit = fake_task_exit,
			.features = JOB_CAN_DONTCACHE,
			.sync_range = fake_sync_range,
			.allocate = fake_allocate,
		},
		.record = true,
	};
}

static inline void fake_finish(struct fake *k)
{
	assert_int_equal(k->open_files, 0);
	assert_int_equal(k->in_flight, 0);
	free(k->calls);
}

struct fake_run {
	const struct jobs *jobs;
	struct fake *fake;
	const struct jobs_options *options;
	struct job_results *results;
	int rc;
};

static void fake_run_main(void *arg)
{
	struct fake_run *r = arg;

	r->rc = jobs_run(r->jobs, &r->fake->engine, r->options, r->results);
}

/* Runs a job file's text in a simulated world where nothing but the fake takes time. */
static inline void fake_run_with(struct fake *k, const char *text, const struct jobs_options *o,
				 struct job_results *results)
{
	struct fake_run run = { .fake = k, .options = o, .results = results };
	struct sim_config config;
	struct err e = { 0 };
	struct world *world;
	char why[256] = "";
	struct jobs *jobs;

	if (jobs_parse("test.fio", text, &jobs, &e))
		fail_msg("%s", e.text);
	run.jobs = jobs;
	sim_config_init(&config);
	memset(config.cost_ns, 0, sizeof(config.cost_ns));
	config.cpus = 64;
	world = sim_create(&config);
	assert_non_null(world);
	if (sim_run(world, fake_run_main, &run, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(run.rc, 0);
	sim_destroy(world);
	jobs_free(jobs);
}

static inline void fake_run(struct fake *k, const char *text, struct job_results *results)
{
	fake_run_with(k, text, NULL, results);
}

/* Reads and writes only, as "r f 0 4096;": what was done, in order. */
static inline const char *fake_trace(const struct fake *k, const char *kinds)
{
	static char text[16384];
	size_t at = 0;

	text[0] = 0;
	for (size_t i = 0; i < k->count; i++) {
		const struct fake_call *c = &k->calls[i];

		if (!strchr(kinds, c->kind))
			continue;
		assert_true(at + 128 < sizeof(text));
		at += (size_t)sprintf(text + at, "%s%c %s %llu+%llu", at ? "; " : "", c->kind,
				      k->inodes[c->file].path, (unsigned long long)c->offset,
				      (unsigned long long)c->length);
	}
	return text;
}

/* One number for everything that was called, and when. */
static inline u64 fake_hash(const struct fake *k)
{
	u64 hash = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < k->count; i++) {
		const struct fake_call *c = &k->calls[i];
		u64 words[] = { (u64)c->kind, c->file,     c->flags, c->offset,
				c->length,    c->start_ns, c->end_ns };

		for (size_t w = 0; w < ARRAY_SIZE(words); w++)
			hash = (hash ^ words[w]) * 0x100000001b3ull;
	}
	return hash;
}

#endif
