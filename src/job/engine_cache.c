// SPDX-License-Identifier: MIT
/*
 * Our own cache as an engine for jobs on real paths: the table of open paths finds the file, and
 * the calls on it are engine_file.c's. Files are laid out by system calls, behind the
 * cache's back: nobody has them open then, and the table finds out at the next open that they
 * have changed.
 */
#include "job/engine_cache.h"
#include "base/units.h"
#include "job/engine_file.h"
#include "job/engine_posix.h"
#include "lib/survival.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

struct cache_jobs {
	struct job_engine ops;
	struct device *device;
	struct engine *engine;
	struct path_table *paths;
	struct lib_survival survival;
};

static struct cache_jobs *jobs_of(struct job_engine *je)
{
	return container_of(je, struct cache_jobs, ops);
}

static int open_flags(unsigned flags)
{
	return (flags & JOB_WRITE ? O_RDWR : O_RDONLY) | (flags & JOB_CREATE ? O_CREAT : 0) |
	       (flags & JOB_DIRECT ? O_DIRECT : 0) | (flags & JOB_SYNC ? O_SYNC : 0) |
	       (flags & JOB_DSYNC ? O_DSYNC : 0) | (flags & JOB_TRUNCATE ? O_TRUNC : 0);
}

static int cache_open(struct job_engine *je, const char *path, unsigned flags,
		      struct job_file **out)
{
	struct job_file *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		return -ENOMEM;
	rc = path_open(jobs_of(je)->paths, path, open_flags(flags), 0644, &f->file);
	if (rc) {
		free(f);
		return rc;
	}
	f->io_flags = engine_file_flags(flags);
	*out = f;
	return 0;
}

static void cache_close(struct job_file *f)
{
	path_close(f->file);
	free(f);
}

static int cache_unlink(struct job_engine *je, const char *path)
{
	return path_unlink(jobs_of(je)->paths, path);
}

static int cache_lay_out(struct job_engine *je, const char *path, u64 size)
{
	(void)je;
	return posix_lay_out(path, size);
}

static int cache_folder(struct job_engine *je, const char *path)
{
	(void)je;
	return posix_folder(path);
}

static int cache_allocate(struct job_file *f, u64 offset, u64 len, bool keep_size)
{
	return file_fallocate(f->file, keep_size ? FILE_KEEP_SIZE : 0, offset, len);
}

static void cache_task_exit(struct job_engine *je)
{
	engine_task_exit(jobs_of(je)->engine);
}

static int cache_act_for(struct job_engine *je, const char *tenant)
{
	return engine_file_act_for(jobs_of(je)->engine, tenant);
}

static int cache_find_tenant(struct job_engine *je, const char *tenant)
{
	return engine_tenant(jobs_of(je)->engine, tenant) ? 0 : -ENOENT;
}

static void set_calls(struct job_engine *je)
{
	engine_file_calls(je);
	je->open = cache_open;
	je->close = cache_close;
	je->unlink = cache_unlink;
	je->lay_out = cache_lay_out;
	je->folder = cache_folder;
	je->allocate = cache_allocate;
	je->act_for = cache_act_for;
	je->find_tenant = cache_find_tenant;
	je->task_exit = cache_task_exit;
}

static int build(struct cache_jobs *j, struct lib_config *c, struct err *e)
{
	const struct path_config paths = { .block_bytes = c->block_bytes,
					   .idle_max = c->idle_files };
	int rc = lib_survive(c, &j->survival, e);

	if (!rc)
		rc = device_create(&c->device, &j->device);
	if (!rc)
		rc = engine_create(&c->engine, &j->engine);
	if (!rc)
		rc = engine_add_device(j->engine, j->device, c->read_ahead_kb, c->strict_limit);
	return rc ? rc : path_table_create(j->engine, &paths, &j->paths);
}

int engine_cache_destroy(struct job_engine *je, struct engine_losses *losses)
{
	struct cache_jobs *j = jobs_of(je);
	int error = 0, rc;

	if (j->paths)
		error = path_table_destroy(j->paths, losses);
	if (j->engine) {
		rc = engine_destroy_telling(j->engine, losses);
		error = error ? error : rc;
	}
	if (j->device)
		device_destroy(j->device);
	lib_survival_end(&j->survival);
	free(j);
	return error;
}

int engine_cache_create(const struct lib_config *c, struct job_engine **out, struct err *e)
{
	struct cache_jobs *j = calloc(1, sizeof(*j));
	struct lib_config config = *c;
	char memory[UNITS_TEXT_MAX];
	int rc = -ENOMEM;

	if (j) {
		set_calls(&j->ops);
		rc = build(j, &config, e);
	}
	if (!rc) {
		*out = &j->ops;
		return 0;
	}
	if (j)
		engine_cache_destroy(&j->ops, NULL);
	err_set(e, NULL, 0, "making a cache of %s (memory): %s",
		units_print_bytes(memory, c->engine.memory_bytes), strerror(-rc));
	return rc;
}

struct engine *engine_cache_engine(struct job_engine *je)
{
	return jobs_of(je)->engine;
}

struct device *engine_cache_device(struct job_engine *je)
{
	return jobs_of(je)->device;
}
