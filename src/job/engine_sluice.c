/* SPDX-License-Identifier: MIT */
/*
 * Our own cache as an engine for jobs: a flat table of paths, each with its inode on one
 * device. Names are looked up in a hash table with chains; nothing depends on its order. An
 * unlinked file lives on until its last close.
 *
 * Which device a new file is on is told by its name, as with mounted file systems: each device
 * but the first has a folder, and the longest folder that a name is in counts.
 */
#include "job/engine_sluice.h"
#include "file/tenant.h"
#include "world/lock.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS (1u << 16)

struct entry {
	char *path; /* NULL once unlinked */
	struct inode *inode;
	u32 opens;
	struct entry *next;
};

/* Where files are. */
struct place {
	unsigned device;
	u32 block_bytes;
};

struct table {
	struct job_engine ops;
	struct engine *engine;
	/* of the files in each folder; the first has none and takes what is in no other */
	struct place place[ENGINE_DEVICES_MAX];
	const char *folder[ENGINE_DEVICES_MAX];
	u32 mounts;
	const char *shared[ENGINE_DEVICES_MAX]; /* files that are everybody's */
	u32 shared_count;
	struct mutex lock; /* protects the chains and entries */
	struct entry *bucket[BUCKETS];
};

struct job_file {
	struct table *table;
	struct entry *entry;
	struct file *file;
	unsigned io_flags; /* of each call */
};

static struct table *table_of(struct job_engine *je)
{
	return container_of(je, struct table, ops);
}

/* FNV-1a (Fowler, Noll, Vo), 64 bits. */
static u64 hash(const char *s)
{
	u64 h = 0xcbf29ce484222325ull;

	for (; *s; s++)
		h = (h ^ (u8)*s) * 0x100000001b3ull;
	return h;
}

static struct entry **slot_of(struct table *t, const char *path)
{
	struct entry **at = &t->bucket[hash(path) % BUCKETS];

	while (*at && strcmp((*at)->path, path) != 0)
		at = &(*at)->next;
	return at;
}

/* Past what stands for nothing at the start of a component: '/' and "./". */
static const char *skip_nothing(const char *s)
{
	while (*s == '/' || (*s == '.' && (s[1] == '/' || !s[1])))
		s++;
	return s;
}

/* How many bytes of `path` say that it is in `folder`; 0: it is not. */
static size_t depth_in(const char *path, const char *folder)
{
	const char *start = path;

	if ((*path == '/') != (*folder == '/'))
		return 0;
	for (;;) {
		size_t n;

		path = skip_nothing(path);
		folder = skip_nothing(folder);
		if (!*folder)
			return *path ? (size_t)(path - start) : 0;
		n = strcspn(folder, "/");
		if (strcspn(path, "/") != n || strncmp(path, folder, n) != 0)
			return 0;
		path += n;
		folder += n;
	}
}

u32 engine_sluice_mount_of(const char *path, const char *const *mounts, u32 count)
{
	size_t deepest = 0;
	u32 best = 0;

	for (u32 i = 1; i < count; i++) {
		size_t depth = depth_in(path, mounts[i]);

		if (depth > deepest) {
			best = i;
			deepest = depth;
		}
	}
	return best;
}

int engine_sluice_mount(struct job_engine *je, const char *path, unsigned device, u32 block_bytes)
{
	struct table *t = table_of(je);

	if (t->mounts == ENGINE_DEVICES_MAX)
		return -ENOSPC;
	t->folder[t->mounts] = path;
	t->place[t->mounts++] = (struct place){ device, block_bytes };
	return 0;
}

int engine_sluice_share(struct job_engine *je, const char *path)
{
	struct table *t = table_of(je);

	if (t->shared_count == ENGINE_DEVICES_MAX)
		return -ENOSPC;
	t->shared[t->shared_count++] = path;
	return 0;
}

static bool is_shared(const struct table *t, const char *path)
{
	for (u32 i = 0; i < t->shared_count; i++)
		if (!strcmp(t->shared[i], path))
			return true;
	return false;
}

/* The entry of a path, made if asked for. With the lock held. */
static int find_entry(struct table *t, const char *path, bool create, struct entry **out)
{
	struct entry **at = slot_of(t, path), *e = *at;
	const struct place *on;
	int rc;

	*out = e;
	if (e)
		return 0;
	if (!create)
		return -ENOENT;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->path = strdup(path);
	on = &t->place[engine_sluice_mount_of(path, t->folder, t->mounts)];
	rc = e->path ? inode_create(t->engine, on->device, on->block_bytes, &e->inode) : -ENOMEM;
	if (rc) {
		free(e->path);
		free(e);
		return rc;
	}
	inode_set_shared(e->inode, is_shared(t, path));
	*out = *at = e;
	return 0;
}

static void entry_free(struct entry *e)
{
	inode_destroy(e->inode);
	free(e->path);
	free(e);
}

static void put_entry(struct table *t, struct entry *e)
{
	bool gone;

	mutex_lock(&t->lock);
	assert(e->opens > 0);
	gone = --e->opens == 0 && !e->path;
	mutex_unlock(&t->lock);
	if (gone)
		entry_free(e);
}

static int sluice_open(struct job_engine *je, const char *path, unsigned flags,
		       struct job_file **out)
{
	struct table *t = table_of(je);
	struct job_file *f = calloc(1, sizeof(*f));
	struct entry *e;
	int rc;

	if (!f)
		return -ENOMEM;
	mutex_lock(&t->lock);
	rc = find_entry(t, path, flags & JOB_CREATE, &e);
	if (!rc)
		e->opens++;
	mutex_unlock(&t->lock);
	if (!rc) {
		if (flags & JOB_TRUNCATE)
			rc = inode_truncate(e->inode, 0);
		if (!rc)
			rc = file_open(e->inode,
				       (flags & JOB_DIRECT ? FILE_DIRECT : 0) |
					       (flags & (JOB_SYNC | JOB_DSYNC) ? FILE_SYNC : 0),
				       &f->file);
		if (rc)
			put_entry(t, e);
	}
	if (rc) {
		free(f);
		return rc;
	}
	f->table = t;
	f->entry = e;
	f->io_flags = flags & JOB_DONTCACHE ? FILE_IO_DONTCACHE : 0;
	*out = f;
	return 0;
}

static void sluice_close(struct job_file *f)
{
	file_close(f->file);
	put_entry(f->table, f->entry);
	free(f);
}

static ssize_t sluice_pread(struct job_file *f, void *buf, size_t len, u64 offset)
{
	struct iovec v = { buf, len };

	if (likely(!f->io_flags))
		return file_pread(f->file, buf, len, offset);
	return file_preadv(f->file, &v, 1, offset, f->io_flags);
}

static ssize_t sluice_pwrite(struct job_file *f, const void *buf, size_t len, u64 offset)
{
	struct iovec v = { (void *)buf, len };

	if (likely(!f->io_flags))
		return file_pwrite(f->file, buf, len, offset);
	return file_pwritev(f->file, &v, 1, offset, f->io_flags);
}

static int sluice_fsync(struct job_file *f, bool data_only)
{
	return file_fsync(f->file, data_only);
}

static int sluice_advise(struct job_file *f, u64 offset, u64 len, enum job_advice advice)
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

static int sluice_truncate(struct job_file *f, u64 size)
{
	return inode_truncate(f->entry->inode, size);
}

static u64 sluice_size(struct job_file *f)
{
	return inode_size(f->entry->inode);
}

static int sluice_unlink(struct job_engine *je, const char *path)
{
	struct table *t = table_of(je);
	struct entry **at, *e;
	bool gone = false;

	mutex_lock(&t->lock);
	at = slot_of(t, path);
	e = *at;
	if (e) {
		*at = e->next;
		free(e->path);
		e->path = NULL;
		gone = !e->opens;
	}
	mutex_unlock(&t->lock);
	if (gone)
		entry_free(e);
	return e ? 0 : -ENOENT;
}

static int sluice_lay_out(struct job_engine *je, const char *path, u64 size)
{
	struct table *t = table_of(je);
	struct entry *e;
	int rc;

	mutex_lock(&t->lock);
	rc = find_entry(t, path, true, &e);
	mutex_unlock(&t->lock);
	return rc ? rc : inode_lay_out(e->inode, size);
}

static int sluice_sync_range(struct job_file *f, u64 offset, u64 len, unsigned flags)
{
	unsigned to_file = (flags & JOB_RANGE_WAIT_BEFORE ? FILE_WAIT_BEFORE : 0) |
			   (flags & JOB_RANGE_WRITE ? FILE_WRITE : 0) |
			   (flags & JOB_RANGE_WAIT_AFTER ? FILE_WAIT_AFTER : 0);

	return file_sync_range(f->file, offset, len, to_file);
}

/* Devices have room as it is asked for: what is left of an allocation is the size. */
static int sluice_allocate(struct job_file *f, u64 offset, u64 len, bool keep_size)
{
	struct inode *inode = f->entry->inode;

	if (offset + len < offset)
		return -EINVAL;
	if (keep_size || offset + len <= inode_size(inode))
		return 0;
	return inode_truncate(inode, offset + len);
}

static void sluice_task_exit(struct job_engine *je)
{
	engine_task_exit(table_of(je)->engine);
}

static int sluice_act_for(struct job_engine *je, const char *name)
{
	struct tenant *t = engine_tenant(table_of(je)->engine, name);

	if (t)
		engine_act_for(t);
	return t ? 0 : -ENOENT;
}

static int sluice_find_tenant(struct job_engine *je, const char *name)
{
	return engine_tenant(table_of(je)->engine, name) ? 0 : -ENOENT;
}

int engine_sluice_create(struct engine *e, unsigned device, u32 block_bytes,
			 struct job_engine **out)
{
	struct table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->ops = (struct job_engine){ .name = "sluice",
				      .open = sluice_open,
				      .close = sluice_close,
				      .pread = sluice_pread,
				      .pwrite = sluice_pwrite,
				      .fsync = sluice_fsync,
				      .advise = sluice_advise,
				      .truncate = sluice_truncate,
				      .size = sluice_size,
				      .unlink = sluice_unlink,
				      .lay_out = sluice_lay_out,
				      .task_exit = sluice_task_exit,
				      .features = JOB_CAN_DONTCACHE,
				      .sync_range = sluice_sync_range,
				      .allocate = sluice_allocate,
				      .act_for = sluice_act_for,
				      .find_tenant = sluice_find_tenant };
	t->engine = e;
	t->place[t->mounts++] = (struct place){ device, block_bytes };
	mutex_init(&t->lock, RANK_NAMESPACE);
	*out = &t->ops;
	return 0;
}

void engine_sluice_destroy(struct job_engine *je)
{
	struct table *t = table_of(je);

	for (unsigned i = 0; i < BUCKETS; i++) {
		while (t->bucket[i]) {
			struct entry *e = t->bucket[i];

			t->bucket[i] = e->next;
			assert(!e->opens);
			free(e->path);
			free(e);
		}
	}
	free(t);
}
