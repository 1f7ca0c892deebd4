// SPDX-License-Identifier: MIT
/*
 * The table of paths: a hash table from a file's identity (device and inode number, for block
 * devices their own number) to the inode of the engine that caches it. A path is opened with the
 * system first, then looked up by what that found, so names never have to be compared.
 *
 * Entries without an open stand in one of two lists, oldest first: those that are settled, which
 * have nothing left to do, and the others, of which each call looks at some few. To drop one means
 * to write what is dirty and destroy its inode; meanwhile it is `busy`, without the table's lock,
 * and whoever wants that file waits. What cannot be written is kept.
 *
 * Whether others changed a file while it was idle is told by its times. Our own write-out
 * changes them as well, so a file that has been written since its last close counts as changed only
 * if its times are later than the moment when our last page landed. What is seen is recorded at
 * the last close, and when an idle file is found clean: then room past its end is given back, too.
 */
#include "file/path.h"
#include "file/inner.h"
#include "file/sysfile.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define BUCKETS     32768
#define SETTLED_MAX 4 /* idle files looked at in one call */
#define VICTIMS_MAX 64

struct key {
	u64 device, number;
	bool block; /* a block device: the number is its own */
};

/* What a file looked like to the system. */
struct sight {
	u64 ctime_ns, mtime_ns;
};

struct entry {
	struct path_table *table; /* immutable, as is the next */
	struct key key;
	_Atomic(char *) path; /* NULL: to be asked for; see path_of_inode() */
	struct entry *next;   /* in its bucket */
	struct inode *inode;
	int fd;        /* the store's: only looked at */
	bool writable; /* fd is */
	bool busy;     /* being dropped: wait for table.changed */
	bool settled;  /* idle and clean, and `seen` is what we left */
	u32 opens;
	struct list_node idle; /* of table.idle or .settled; empty while open or busy */
	struct sight seen;
};

struct path_table {
	struct engine *engine; /* immutable, as are the next two */
	unsigned device;
	u32 block_bytes;
	struct mutex lock;   /* protects all below, and the entries; not held over I/O of data */
	struct cond changed; /* an entry is no longer busy */
	u64 idle_max, inodes_max;
	struct list_node idle, settled;
	u64 inodes, idles, dropped, foreign;
	struct entry *bucket[BUCKETS];
};

/* --- the system's side */

static u64 nanoseconds(struct timespec t)
{
	return (u64)t.tv_sec * NSEC_PER_SEC + (u64)t.tv_nsec;
}

static struct sight sight_of(const struct stat *st)
{
	return (struct sight){ nanoseconds(st->st_ctim), nanoseconds(st->st_mtim) };
}

static struct key key_of(const struct stat *st)
{
	if (S_ISBLK(st->st_mode))
		return (struct key){ .number = st->st_rdev, .block = true };
	return (struct key){ .device = st->st_dev, .number = st->st_ino };
}

/* --- the table; with its lock held */

static struct entry **slot_of(struct path_table *t, const struct key *k)
{
	u64 hash = (k->device * 31 + k->number + k->block) * 0x9e3779b97f4a7c15ull; /* Fibonacci */
	struct entry **at = &t->bucket[hash >> 49];

	while (*at && ((*at)->key.device != k->device || (*at)->key.number != k->number ||
		       (*at)->key.block != k->block))
		at = &(*at)->next;
	return at;
}

static_assert(BUCKETS == 1 << 15, "the hash's top 15 bits");

static void leave_idle(struct entry *e)
{
	if (list_empty(&e->idle))
		return;
	list_del(&e->idle);
	e->table->idles--;
}

static void go_idle(struct entry *e)
{
	list_add_tail(e->settled ? &e->table->settled : &e->table->idle, &e->idle);
	e->table->idles++;
}

/* Takes the entry out and destroys its inode with what is dirty. Gives the lock up meanwhile. */
static void discard(struct entry *e)
{
	struct path_table *t = e->table;
	struct entry **at;

	assert(!e->opens);
	leave_idle(e);
	e->busy = true;
	mutex_unlock(&t->lock);
	inode_destroy(e->inode);
	mutex_lock(&t->lock);
	at = slot_of(t, &e->key);
	assert(*at == e);
	*at = e->next;
	t->inodes--;
	cond_broadcast(&t->changed);
	free(e->path);
	free(e);
}

/* Writes an idle entry's data and discards it: 0, or why it stays. Gives the lock up meanwhile. */
static int drop(struct entry *e)
{
	struct path_table *t = e->table;
	int rc, flushed;

	assert(!e->opens && !e->busy);
	leave_idle(e);
	e->busy = true;
	mutex_unlock(&t->lock);
	rc = inode_sync_range(e->inode, 0, INDEX_MAX_PAGES - 1);
	flushed = atomic_load(&e->inode->unflushed) ? inode_flush_device(e->inode) : 0;
	rc = rc ? rc : flushed;
	mutex_lock(&t->lock);
	if (!rc && !inode_unwritten_bytes(e->inode)) {
		t->dropped++;
		discard(e);
		return 0;
	}
	e->busy = false;
	go_idle(e);
	cond_broadcast(&t->changed);
	return rc ? rc : -EIO;
}

/* The idle entry to give up: the oldest with nothing to do, one with nothing to write, or any. */
static struct entry *victim(struct path_table *t)
{
	struct list_node *n;
	u32 looked = 0;

	if (!list_empty(&t->settled))
		return list_entry(t->settled.next, struct entry, idle);
	list_for_each (n, &t->idle) {
		struct entry *e = list_entry(n, struct entry, idle);

		if (!inode_unwritten_bytes(e->inode))
			return e;
		if (++looked == VICTIMS_MAX)
			break;
	}
	return list_empty(&t->idle) ? NULL : list_entry(t->idle.next, struct entry, idle);
}

static int drop_one(struct path_table *t)
{
	struct entry *e = victim(t);

	return e ? drop(e) : -EMFILE;
}

/* When the inode's last page landed, in the system's time; 0: never. */
static u64 landed_wall_ns(struct inode *inode)
{
	u64 landed = atomic_load_explicit(&inode->landed_ns, memory_order_acquire);

	return landed ? world_wall_ns() - (world_now() - landed) : 0;
}

/* Whether `st` shows that somebody else changed an idle file. `dirty` was asked before. */
static bool is_changed(struct entry *e, bool dirty, const struct stat *st)
{
	u64 size = inode_size(e->inode), on_device = (u64)st->st_size;
	struct sight now = sight_of(st);

	if (on_device > size || (on_device < size && !dirty))
		return true;
	if (now.ctime_ns == e->seen.ctime_ns && now.mtime_ns == e->seen.mtime_ns)
		return false;
	return e->settled || now.ctime_ns > landed_wall_ns(e->inode);
}

static bool has_changed(struct entry *e)
{
	bool dirty = inode_unwritten_bytes(e->inode) > 0; /* asked before the system is */
	struct stat st;

	return !e->key.block && (fstat(e->fd, &st) || is_changed(e, dirty, &st));
}

/* Gives back what was reserved past the end, and records what is seen then. */
static void settle(struct entry *e)
{
	struct inode *inode = e->inode;
	u64 size = inode_size(inode);
	struct stat st;

	if (has_changed(e))
		return; /* the next open will see it */
	if (e->writable && !e->key.block && inode->reserved > size &&
	    !store_keeps_room(inode->m.store)) {
		rwsem_lock(&inode->lock);
		if (!store_truncate(inode->m.store, size))
			inode->reserved = size;
		rwsem_unlock(&inode->lock);
	}
	e->settled = !fstat(e->fd, &st);
	if (e->settled) /* else it will look changed, which is safe */
		e->seen = sight_of(&st);
}

/* Those that are looked at go to the end of their list, so that others are the next time. */
static void settle_some(struct path_table *t)
{
	for (u64 i = min_u64(SETTLED_MAX, t->idles); i && !list_empty(&t->idle); i--) {
		struct entry *e = list_entry(t->idle.next, struct entry, idle);

		if (!inode_unwritten_bytes(e->inode))
			settle(e);
		leave_idle(e);
		go_idle(e);
	}
}

/* Whether every block of the file has its place on the device. */
static bool is_dense(const struct stat *st)
{
	return S_ISBLK(st->st_mode) || (u64)st->st_blocks * 512 >= (u64)st->st_size;
}

/* Makes the entry of an opened file; the descriptor is the entry's on success. */
static int add(struct path_table *t, const char *path, int fd, const struct stat *st, bool writable,
	       struct entry **out)
{
	struct entry *e = calloc(1, sizeof(*e));
	struct store *store;
	int rc = -ENOMEM;

	if (!e)
		goto close_fd;
	*e = (struct entry){ .table = t, .key = key_of(st), .fd = fd, .writable = writable };
	list_init(&e->idle);
	e->path = path ? strdup(path) : NULL;
	if (path && !e->path)
		goto free_entry;
	rc = store_open_fd(t->engine->all.wb[t->device]->device, fd, &store);
	fd = -1;
	if (rc)
		goto free_entry;
	rc = inode_create_on(t->engine, t->device, t->block_bytes, store, &e->inode);
	if (rc) {
		store_destroy(store);
		goto free_entry;
	}
	rc = writable ? inode_survive_as_file(e->inode, e->fd) : 0;
	if (rc) {
		inode_destroy(e->inode);
		goto free_entry;
	}
	if (is_dense(st))
		e->inode->sparse = false;
	inode_set_owner(e->inode, e);
	*slot_of(t, &e->key) = e;
	t->inodes++;
	*out = e;
	return 0;
free_entry:
	free(e->path);
	free(e);
close_fd:
	if (fd >= 0)
		close(fd);
	return rc;
}

/* The entry serves the open, too: makes it writable if need be. Takes the descriptor. */
static int join(struct entry *e, int fd, bool writable)
{
	int rc = 0;

	if (writable && !e->writable)
		rc = inode_survive_as_file(e->inode, fd);
	if (writable && !e->writable && !rc)
		rc = store_reopen_fd(e->inode->m.store, fd);
	else
		close(fd);
	e->writable = e->writable || (writable && !rc);
	return rc;
}

/* Finds or makes the entry of an opened file, and enters the open. *kept: it holds what it held. */
static int enter(struct path_table *t, const char *path, int fd, const struct stat *st,
		 bool writable, struct entry **out, bool *kept)
{
	struct key key = key_of(st);
	bool asked = false; /* whether it was changed */
	int rc = 0;

	for (*kept = false;;) {
		struct entry *e = *slot_of(t, &key);

		*out = e;
		if (e && e->busy) {
			cond_wait(&t->changed, &t->lock);
		} else if (e && !e->opens && !asked && has_changed(e)) {
			asked = true;
			t->foreign++;
			if (drop(e)) /* what we could not write stands against what they did */
				inode_invalidate(e->inode, 0, INDEX_MAX_PAGES);
		} else if (e) {
			*kept = !asked;
			rc = join(e, fd, writable);
			break;
		} else if (t->inodes >= t->inodes_max) {
			rc = drop_one(t);
			if (rc) {
				close(fd);
				break;
			}
		} else {
			rc = add(t, path, fd, st, writable, out);
			break;
		}
	}
	if (rc)
		return rc;
	leave_idle(*out);
	(*out)->settled = false;
	(*out)->opens++;
	return 0;
}

/* The last open went. */
static void left(struct entry *e)
{
	struct path_table *t = e->table;
	struct stat st;

	if (!fstat(e->fd, &st)) {
		e->seen = sight_of(&st);
		if (!e->key.block && !st.st_nlink) {
			discard(e); /* nobody will find it again */
			return;
		}
	}
	go_idle(e);
	settle_some(t);
	while (t->idles > t->idle_max && !drop_one(t))
		;
}

static void leave(struct entry *e)
{
	struct path_table *t = e->table;

	mutex_lock(&t->lock);
	assert(e->opens > 0);
	if (!--e->opens)
		left(e);
	mutex_unlock(&t->lock);
}

/* --- the calls */

static u64 default_inodes_max(void)
{
	struct rlimit fds;

	if (getrlimit(RLIMIT_NOFILE, &fds) || fds.rlim_cur == RLIM_INFINITY)
		return UINT32_MAX;
	return max_u64(fds.rlim_cur / 4 * 3 / PATH_FDS_AN_INODE, 1);
}

int path_table_create(struct engine *e, const struct path_config *c, struct path_table **out)
{
	u32 block_bytes = c->block_bytes ? c->block_bytes : PAGE_SIZE;
	struct path_table *t;

	if (c->device >= e->all.count || block_bytes < 512 || block_bytes > PAGE_SIZE ||
	    (block_bytes & (block_bytes - 1)))
		return -EINVAL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->engine = e;
	t->device = c->device;
	t->block_bytes = block_bytes;
	t->inodes_max = c->inodes_max ? c->inodes_max : default_inodes_max();
	t->idle_max = min_u64(c->idle_max, t->inodes_max);
	mutex_init(&t->lock, RANK_NAMESPACE);
	cond_init(&t->changed);
	list_init(&t->idle);
	list_init(&t->settled);
	*out = t;
	return 0;
}

void path_table_narrow(struct path_table *t, u64 inodes_max)
{
	mutex_lock(&t->lock);
	t->inodes_max = min_u64(t->inodes_max, max_u64(inodes_max, 1));
	t->idle_max = min_u64(t->idle_max, t->inodes_max);
	mutex_unlock(&t->lock);
}

int path_table_destroy(struct path_table *t, struct engine_losses *losses)
{
	int error = 0;

	assert(t->inodes == t->idles);
	/* all at once first, so that devices are kept busy */
	for (struct list_node *n = t->idle.next; n != &t->idle; n = n->next)
		inode_start_write(list_entry(n, struct entry, idle)->inode, 0, INDEX_MAX_PAGES - 1);
	mutex_lock(&t->lock);
	while (t->idles) {
		struct entry *e = victim(t);
		int rc = drop(e);

		if (!rc)
			continue;
		rc = inode_end(e->inode, rc, losses);
		error = error ? error : rc;
		discard(e);
	}
	mutex_unlock(&t->lock);
	free(t);
	return error;
}

int path_open(struct path_table *t, const char *path, int flags, mode_t mode, struct file **out)
{
	int fd, rc = 0;
	bool kept;

	if (!sysfile_flags_are_known(flags))
		return -EINVAL;
	while ((fd = sysfile_open(path, flags, mode)) == -EMFILE && !rc) {
		mutex_lock(&t->lock);
		rc = drop_one(t);
		mutex_unlock(&t->lock);
	}
	return fd < 0 ? fd : path_open_fd(t, fd, path, flags, &kept, out);
}

int path_open_fd(struct path_table *t, int fd, const char *path, int flags, bool *kept,
		 struct file **out)
{
	struct entry *e;
	struct stat st;
	int rc = sysfile_flags_are_known(flags) ? sysfile_check(fd, &st) : -EINVAL;

	if (rc) {
		close(fd);
		return rc;
	}
	mutex_lock(&t->lock);
	settle_some(t);
	rc = enter(t, path, fd, &st, sysfile_writes(flags), &e, kept);
	mutex_unlock(&t->lock);
	if (rc)
		return rc;
	if (flags & O_TRUNC && !e->key.block)
		rc = inode_truncate(e->inode, 0);
	if (!rc)
		rc = file_open(e->inode, sysfile_file_flags(flags), out);
	if (rc)
		leave(e);
	return rc;
}

void path_close(struct file *f)
{
	struct entry *e = inode_owner(f->inode);

	file_close(f);
	leave(e);
}

int path_unlink(struct path_table *t, const char *path)
{
	struct stat st;

	if (lstat(path, &st) || unlink(path))
		return -errno;
	path_unlinked(t, &st);
	return 0;
}

/* The entry of what `st` is of, not busy; NULL: there is none. */
static struct entry *find(struct path_table *t, const struct stat *st)
{
	struct key key = key_of(st);
	struct entry *e;

	while ((e = *slot_of(t, &key)) && e->busy)
		cond_wait(&t->changed, &t->lock);
	return e;
}

void path_unlinked(struct path_table *t, const struct stat *st)
{
	struct entry *e;
	struct stat now;

	mutex_lock(&t->lock);
	e = find(t, st);
	if (e && !e->key.block && !fstat(e->fd, &now) && !now.st_nlink) {
		inode_note_unlinked(e->inode);
		if (!e->opens)
			discard(e);
	}
	mutex_unlock(&t->lock);
}

void path_touched(struct path_table *t, const struct stat *before, const struct stat *after)
{
	struct entry *e;

	mutex_lock(&t->lock);
	e = find(t, before);
	if (e && !e->opens && !is_changed(e, inode_unwritten_bytes(e->inode) > 0, before))
		e->seen = sight_of(after);
	mutex_unlock(&t->lock);
}

bool path_size(struct path_table *t, const struct stat *st, u64 *size_bytes)
{
	struct entry *e;
	bool ours;

	mutex_lock(&t->lock);
	e = find(t, st);
	ours = e && (e->opens || inode_unwritten_bytes(e->inode));
	if (ours)
		*size_bytes = inode_size(e->inode);
	mutex_unlock(&t->lock);
	return ours;
}

void path_settle(struct path_table *t, const struct stat *st)
{
	struct entry *e;

	mutex_lock(&t->lock);
	e = find(t, st);
	if (e && !e->opens && !e->settled && !inode_unwritten_bytes(e->inode)) {
		settle(e);
		leave_idle(e);
		go_idle(e);
	}
	mutex_unlock(&t->lock);
}

const char *path_of_inode(struct inode *inode)
{
	struct entry *e = inode_owner(inode);
	char proc[32], name[PATH_MAX + 1], *none = NULL, *found;
	ssize_t n;

	if (!e->path) {
		snprintf(proc, sizeof(proc), "/proc/self/fd/%d", e->fd);
		n = readlink(proc, name, sizeof(name) - 1);
		name[n > 0 ? n : 0] = 0;
		found = n > 0 ? strdup(name) : NULL;
		if (found && !atomic_compare_exchange_strong(&e->path, &none, found))
			free(found);
	}
	return e->path ? e->path : "(a file whose name is not known)";
}

void path_stats(struct path_table *t, struct path_stats *out)
{
	mutex_lock(&t->lock);
	*out = (struct path_stats){ t->inodes - t->idles, t->idles, t->dropped, t->foreign };
	mutex_unlock(&t->lock);
}
