// SPDX-License-Identifier: MIT
/*
 * Our own cache as an engine for jobs on real paths: the table of open paths finds the file, and
 * the calls are those of the engine's front. Files are laid out by system calls, behind the
 * cache's back: nobody has them open then, and the table finds out at the next open that they
 * have changed.
 */
#include "job/engine_cache.h"
#include "base/units.h"
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

struct job_file {
	struct file *file;
	unsigned io_flags; /* of each call */
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
	f->io_flags = flags & JOB_DONTCACHE ? FILE_IO_DONTCACHE : 0;
	*out = f;
	return 0;
}

static void cache_close(struct job_file *f)
{
	path_close(f->file);
	free(f);
}

static ssize_t cache_pread(struct job_file *f, void *buf, size_t len, u64 offset)
{
	struct iovec v = { buf, len };

	if (likely(!f->io_flags))
		return file_pread(f->file, buf, len, offset);
	return file_preadv(f->file, &v, 1, offset, f->io_flags);
}

static ssize_t cache_pwrite(struct job_file *f, const void *buf, size_t len, u64 offset)
{
	struct iovec v = { (void *)buf, len };

	if (likely(!f->io_flags))
		return file_pwrite(f->file, buf, len, offset);
	return file_pwritev(f->file, &v, 1, offset, f->io_flags);
}

static int cache_fsync(struct job_file *f, bool data_only)
{
	return file_fsync(f->file, data_only);
}

static int cache_advise(struct job_file *f, u64 offset, u64 len, enum job_advice advice)
{
	static const enum file_advice to_file[] = {
		[JOB_ADV_NORMAL] = FILE_ADV_NORMAL,     [JOB_ADV_SEQUENTIAL] = FILE_ADV_SEQUENTIAL,
		[JOB_ADV_RANDOM] = FILE_ADV_RANDOM,     [JOB_ADV_WILLNEED] = FILE_ADV_WILLNEED,
		[JOB_ADV_DONTNEED] = FILE_ADV_DONTNEED, [JOB_ADV_NOREUSE] = FILE_ADV_NOREUSE,
	};

	if ((size_t)advice >= ARRAY_SIZE(to_file))
		return -EINVAL;
	return file_advise(f->file, offset, len, to_file[advice]);
}

static int cache_truncate(struct job_file *f, u64 size)
{
	return file_truncate(f->file, size);
}

static u64 cache_size(struct job_file *f)
{
	return inode_size(file_inode(f->file));
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

static int cache_sync_range(struct job_file *f, u64 offset, u64 len, unsigned flags)
{
	unsigned to_file = (flags & JOB_RANGE_WAIT_BEFORE ? FILE_WAIT_BEFORE : 0) |
			   (flags & JOB_RANGE_WRITE ? FILE_WRITE : 0) |
			   (flags & JOB_RANGE_WAIT_AFTER ? FILE_WAIT_AFTER : 0);

	return file_sync_range(f->file, offset, len, to_file);
}

static int cache_allocate(struct job_file *f, u64 offset, u64 len, bool keep_size)
{
	return file_fallocate(f->file, keep_size ? FILE_KEEP_SIZE : 0, offset, len);
}

static void cache_task_exit(struct job_engine *je)
{
	engine_task_exit(jobs_of(je)->engine);
}

static const struct job_engine operations = {
	.name = "sluice",
	.open = cache_open,
	.close = cache_close,
	.pread = cache_pread,
	.pwrite = cache_pwrite,
	.fsync = cache_fsync,
	.advise = cache_advise,
	.truncate = cache_truncate,
	.size = cache_size,
	.unlink = cache_unlink,
	.lay_out = cache_lay_out,
	.task_exit = cache_task_exit,
	.features = JOB_CAN_DONTCACHE,
	.sync_range = cache_sync_range,
	.folder = cache_folder,
	.allocate = cache_allocate,
};

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
		j->ops = operations;
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
