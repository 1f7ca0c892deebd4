/* SPDX-License-Identifier: MIT */
/*
 * Our own cache as an engine for jobs: a flat table of paths, each with its inode on one
 * device. Names are looked up in a hash table with chains; nothing depends on its order. An
 * unlinked file lives on until its last close. Calls on an open file are engine_file.c's.
 *
 * Which device a new file is on is told by its name, as with mounted file systems: each device
 * but the first has a folder, and the longest folder that a name is in counts.
 */
#include "job/engine_sluice.h"
#include "job/engine_file.h"
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

struct open_entry {
	struct job_file f; /* what jobs know of it */
	struct table *table;
	struct entry *entry;
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
	struct open_entry *o = calloc(1, sizeof(*o));
	struct entry *e;
	int rc;

	if (!o)
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
				       &o->f.file);
		if (rc)
			put_entry(t, e);
	}
	if (rc) {
		free(o);
		return rc;
	}
	o->table = t;
	o->entry = e;
	o->f.io_flags = engine_file_flags(flags);
	o->f.direct = flags & JOB_DIRECT;
	*out = &o->f;
	return 0;
}

static void sluice_close(struct job_file *f)
{
	struct open_entry *o = container_of(f, struct open_entry, f);

	engine_file_unmap(f);
	file_close(f->file);
	put_entry(o->table, o->entry);
	free(o);
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

/* Devices have room as it is asked for: what is left of an allocation is the size. */
static int sluice_allocate(struct job_file *f, u64 offset, u64 len, bool keep_size)
{
	struct inode *inode = file_inode(f->file);

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
	return engine_file_act_for(table_of(je)->engine, name);
}

static int sluice_find_tenant(struct job_engine *je, const char *name)
{
	return engine_tenant(table_of(je)->engine, name) ? 0 : -ENOENT;
}

static void set_calls(struct job_engine *je)
{
	engine_file_calls(je);
	je->open = sluice_open;
	je->close = sluice_close;
	je->unlink = sluice_unlink;
	je->lay_out = sluice_lay_out;
	je->allocate = sluice_allocate;
	je->map = world_is_sim() ? engine_file_map : NULL;
	je->act_for = sluice_act_for;
	je->find_tenant = sluice_find_tenant;
	je->task_exit = sluice_task_exit;
}

int engine_sluice_create(struct engine *e, unsigned device, u32 block_bytes,
			 struct job_engine **out)
{
	struct table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	set_calls(&t->ops);
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
