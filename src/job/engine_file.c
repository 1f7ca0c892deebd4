/* SPDX-License-Identifier: MIT */
/*
 * The engine's front as the calls that a job makes on an open file. How a path becomes an open
 * file is what tells job engines apart; from there on they do the same.
 */
#include "job/engine_file.h"
#include <errno.h>

/* A map has no O_DIRECT: as in fio, what was touched is written out at once instead. */
static ssize_t touched(struct job_file *f, ssize_t bytes, u64 offset)
{
	int rc = f->direct && bytes > 0 ? file_map_sync(f->map, offset, (u64)bytes) : 0;

	return rc ? rc : bytes;
}

static ssize_t call_pread(struct job_file *f, void *buf, size_t len, u64 offset)
{
	struct iovec v = { buf, len };

	if (unlikely(f->map != NULL))
		return touched(f, file_map_load(f->map, buf, len, offset), offset);
	if (likely(!f->io_flags))
		return file_pread(f->file, buf, len, offset);
	return file_preadv(f->file, &v, 1, offset, f->io_flags);
}

static ssize_t call_pwrite(struct job_file *f, const void *buf, size_t len, u64 offset)
{
	struct iovec v = { (void *)buf, len };

	if (unlikely(f->map != NULL))
		return touched(f, file_map_store(f->map, buf, len, offset), offset);
	if (likely(!f->io_flags))
		return file_pwrite(f->file, buf, len, offset);
	return file_pwritev(f->file, &v, 1, offset, f->io_flags);
}

static void call_expect(struct job_file *f, u64 offset)
{
	file_expect(f->file, offset);
}

static int call_fsync(struct job_file *f, bool data_only)
{
	if (f->map)
		return file_map_sync(f->map, 0, 0);
	return file_fsync(f->file, data_only);
}

static int call_advise(struct job_file *f, u64 offset, u64 len, enum job_advice advice)
{
	static const enum file_advice to_file[] = {
		[JOB_ADV_NORMAL] = FILE_ADV_NORMAL,     [JOB_ADV_SEQUENTIAL] = FILE_ADV_SEQUENTIAL,
		[JOB_ADV_RANDOM] = FILE_ADV_RANDOM,     [JOB_ADV_WILLNEED] = FILE_ADV_WILLNEED,
		[JOB_ADV_DONTNEED] = FILE_ADV_DONTNEED, [JOB_ADV_NOREUSE] = FILE_ADV_NOREUSE,
	};

	if ((size_t)advice >= ARRAY_SIZE(to_file))
		return -EINVAL;
	if (f->map)
		file_map_advise(f->map, to_file[advice]); /* if it means something there */
	return file_advise(f->file, offset, len, to_file[advice]);
}

static int call_truncate(struct job_file *f, u64 size)
{
	return file_truncate(f->file, size);
}

static u64 call_size(struct job_file *f)
{
	return inode_size(file_inode(f->file));
}

static int call_sync_range(struct job_file *f, u64 offset, u64 len, unsigned flags)
{
	unsigned to_file = (flags & JOB_RANGE_WAIT_BEFORE ? FILE_WAIT_BEFORE : 0) |
			   (flags & JOB_RANGE_WRITE ? FILE_WRITE : 0) |
			   (flags & JOB_RANGE_WAIT_AFTER ? FILE_WAIT_AFTER : 0);

	return file_sync_range(f->file, offset, len, to_file);
}

int engine_file_map(struct job_file *f, u64 offset, u64 len)
{
	return file_map(f->file, offset, len, &f->map);
}

void engine_file_unmap(struct job_file *f)
{
	if (f->map)
		file_unmap(f->map);
	f->map = NULL;
}

unsigned engine_file_flags(unsigned job_flags)
{
	return job_flags & JOB_DONTCACHE ? FILE_IO_DONTCACHE : 0;
}

void engine_file_calls(struct job_engine *je)
{
	je->name = "sluice";
	je->features = JOB_CAN_DONTCACHE;
	je->pread = call_pread;
	je->pwrite = call_pwrite;
	je->expect = call_expect;
	je->fsync = call_fsync;
	je->advise = call_advise;
	je->truncate = call_truncate;
	je->size = call_size;
	je->sync_range = call_sync_range;
}

int engine_file_act_for(struct engine *e, const char *tenant)
{
	struct tenant *t = engine_tenant(e, tenant);

	if (t)
		engine_act_for(t);
	return t ? 0 : -ENOENT;
}
