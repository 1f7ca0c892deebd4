// SPDX-License-Identifier: MIT
/*
 * What the kernel has looked up is a node: an O_PATH descriptor, which keeps meaning the same file
 * through renames and unlinks, and lets nobody lead us elsewhere. Nodes are found by device and
 * inode number, so that all names of a file are one node; the descriptor keeps that number from
 * being used again. The kernel counts the lookups it was given, and a node goes when it has
 * forgotten them all.
 *
 * A file's times move when its data is accepted, but the source's move when the data is
 * written. So a node remembers the times until the data is on the source, and then sets them there,
 * all but ctime, which nobody can set: of that it goes on telling what it told before, as long as
 * the source's is the one that setting the times has left.
 *
 * These times are read from the clock that file systems take theirs from, which goes in ticks. But
 * since Linux 6.13 a change of a file that somebody has looked at gets a finer time, and what comes
 * after it none that is earlier, within the system. So neither do we give one that is earlier than
 * any ctime of the source that the kernel was told of.
 *
 * A read moves atime by the source's own rule, whatever of it came from a cache. (What the kernel
 * reads from its own it does not tell: an open that may do so counts as a read.)
 *
 * One that is forgotten earlier lingers without lookups, in a list that is looked through a
 * little at each forgetting, and as a whole by a sync and at the end.
 *
 * The kernel forgets only what it needs the memory of, and we may have fewer descriptors than it
 * has memory. So when there are many, a task of its own goes around the table and asks the kernel
 * to forget what is not in use, and has what lingers written, so that it can go. Before Linux 6.18
 * the kernel can only be asked to drop names, which takes folders away from under those who are in
 * them, so it is not asked for those. It must be a task of its own, since the kernel takes the lock
 * of the folder, which the request that we serve may hold.
 */
#include "mount/mount_inner.h"
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <unistd.h>

#define TRIM_BATCH  64
#define TRIM_NS     (1 * NSEC_PER_MSEC)       /* until what was asked for is forgotten */
#define TICK_NS     (s64)(10 * NSEC_PER_MSEC) /* as coarse as a system's clock for files may be */
#define DAY_S       86400
#define SETTLED_MAX 4 /* lingering nodes looked at in one call */

/* Of times that are too far off for a word: the last that is not. */
static s64 nanoseconds(const struct timespec *t)
{
	if (time_is_far(t))
		return t->tv_sec < 0 ? TIME_OF_SOURCE + 1 : INT64_MAX;
	return (s64)t->tv_sec * (s64)NSEC_PER_SEC + t->tv_nsec;
}

static struct timespec timespec_of(s64 ns)
{
	struct timespec t = { .tv_sec = ns / (s64)NSEC_PER_SEC, .tv_nsec = ns % (s64)NSEC_PER_SEC };

	if (t.tv_nsec < 0) {
		t.tv_nsec += (s64)NSEC_PER_SEC;
		t.tv_sec--;
	}
	return t;
}

/* Whether the size is not yet the source's. To be asked before the source is: it may become so. */
static bool is_cached(struct mount *m, const struct node *n, u64 *size)
{
	struct stat key = { .st_dev = n->dev, .st_ino = n->ino, .st_mode = n->kind };

	return S_ISREG(n->kind) && m->cache && path_size(m->cache->paths, &key, size);
}

/* --- the clock */

/* What the source says of a file: its times are not to be later than those of what comes next. */
static void clock_told(struct mount *m, const struct stat *st)
{
	s64 told = nanoseconds(&st->st_ctim), known = atomic_load(&m->clock_ns);

	while (told > known && told < (s64)world_file_ns() + TICK_NS &&
	       !atomic_compare_exchange_weak(&m->clock_ns, &known, told))
		;
}

static s64 clock_now(struct mount *m)
{
	s64 now = (s64)world_file_ns(), told = atomic_load(&m->clock_ns);

	/* not one from before the clock was set back */
	return told > now && told < now + TICK_NS ? told : now;
}

s64 node_settled_ctime(const struct stat *st)
{
	s64 ctime = nanoseconds(&st->st_ctim);

	return ctime + TICK_NS < (s64)world_file_ns() ? ctime : 0;
}

u64 shown_number(const struct mount *m, dev_t device, u64 number)
{
	return number ^ (device - m->root.dev) * 0x9e3779b97f4a7c15ull; /* Fibonacci */
}

int node_stat(struct mount *m, struct node *n, struct stat *st)
{
	s64 mtime = atomic_load(&n->mtime_ns), ctime = atomic_load(&n->ctime_ns);
	s64 atime = atomic_load(&n->atime_ns), hidden = atomic_load(&n->hidden_ns);
	u64 size;
	bool ours = is_cached(m, n, &size);

	if (fstatat(n->fd, "", st, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW))
		return -errno;
	clock_told(m, st);
	st->st_ino = shown_number(m, n->dev, st->st_ino);
	if (ours)
		st->st_size = (off_t)size;
	if (ctime != TIME_OF_SOURCE &&
	    (mtime != TIME_OF_SOURCE || nanoseconds(&st->st_ctim) == hidden))
		st->st_ctim = timespec_of(ctime);
	if (mtime != TIME_OF_SOURCE)
		st->st_mtim = timespec_of(mtime);
	if (mtime != TIME_OF_SOURCE && atime != TIME_OF_SOURCE)
		st->st_atim = timespec_of(atime);
	return 0;
}

/* --- the times */

void node_modified(struct mount *m, struct node *n)
{
	s64 now = clock_now(m);

	atomic_store(&n->mtime_ns, now);
	atomic_store(&n->ctime_ns, now);
	atomic_fetch_add(&n->changes, 1);
}

void node_changed(struct mount *m, struct node *n, const struct stat *after)
{
	if (atomic_load(&n->mtime_ns) != TIME_OF_SOURCE)
		atomic_store(&n->ctime_ns, after ? nanoseconds(&after->st_ctim) : clock_now(m));
	atomic_fetch_add(&n->changes, 1);
}

void node_mtime_set(struct node *n, const struct timespec *t)
{
	struct stat st;

	if (!S_ISREG(n->kind) || fstatat(n->fd, "", &st, AT_EMPTY_PATH))
		return;
	if (t)
		st.st_mtim = *t;
	atomic_store(&n->mtime_ns,
		     time_is_far(&st.st_mtim) ? TIME_OF_SOURCE : nanoseconds(&st.st_mtim));
	atomic_store(&n->ctime_ns, nanoseconds(&st.st_ctim));
	atomic_fetch_add(&n->changes, 1);
}

/* The source's own rule, by a read of nothing: it moves atime, but not ctime as setting it would */
static void access_source(const struct node *n, const struct stat *st)
{
	char path[PROC_PATH_MAX], byte;
	int fd = open(proc_path(path, n->fd), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	ssize_t none;

	if (fd < 0)
		return;
	none = pread(fd, &byte, 1, st->st_size);
	(void)none;
	close(fd);
}

void node_accessed(struct mount *m, struct node *n, struct handle *h)
{
	u32 changes = atomic_load_explicit(&n->changes, memory_order_relaxed) + 1;
	s64 now, atime;
	struct stat st;

	if (m->no_atime || (h && !m->strict_atime && atomic_load(&h->seen_changes) == changes))
		return;
	if (h)
		atomic_store(&h->seen_changes, changes);
	if (!S_ISREG(n->kind) || fstatat(n->fd, "", &st, AT_EMPTY_PATH))
		return;
	if (atomic_load(&n->mtime_ns) == TIME_OF_SOURCE) {
		access_source(n, &st);
		return;
	}
	now = clock_now(m);
	atime = atomic_load(&n->atime_ns);
	if (atime == TIME_OF_SOURCE)
		atime = nanoseconds(&st.st_atim);
	/* relatime, as mount(8) describes it */
	if (m->strict_atime || atime <= atomic_load(&n->mtime_ns) ||
	    atime <= atomic_load(&n->ctime_ns) || atime < now - DAY_S * (s64)NSEC_PER_SEC)
		atomic_store(&n->atime_ns, now);
}

/* Gives the source our mtime; false: data is still to be written, which would move it again. */
static bool settle(struct mount *m, struct node *n)
{
	s64 mtime = atomic_load(&n->mtime_ns), atime = atomic_load(&n->atime_ns);
	struct stat before, after;
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };
	u64 size;

	if (mtime == TIME_OF_SOURCE)
		return true;
	if (is_cached(m, n, &size))
		return false;
	before = (struct stat){ .st_dev = n->dev, .st_ino = n->ino, .st_mode = n->kind };
	if (m->cache)
		path_settle(m->cache->paths, &before);
	if (fstatat(n->fd, "", &before, AT_EMPTY_PATH))
		return true;
	after = before;
	if (atime != TIME_OF_SOURCE)
		times[0] = timespec_of(atime);
	if (before.st_nlink && (nanoseconds(&before.st_mtim) != mtime || atime != TIME_OF_SOURCE)) {
		times[1] = timespec_of(mtime);
		utimensat(n->fd, "", times, AT_EMPTY_PATH);
		if (m->cache && !fstatat(n->fd, "", &after, AT_EMPTY_PATH))
			path_touched(m->cache->paths, &before, &after);
	}
	/* the source's ctime tells when we wrote: who has seen another one still sees that */
	atomic_store(&n->hidden_ns, nanoseconds(&after.st_ctim));
	if (atomic_compare_exchange_strong(&n->mtime_ns, &mtime, TIME_OF_SOURCE))
		atomic_store(&n->atime_ns, TIME_OF_SOURCE);
	return true;
}

void node_settle(struct mount *m, struct node *n)
{
	struct stat key = { .st_dev = n->dev, .st_ino = n->ino, .st_mode = n->kind };

	if (atomic_load(&n->mtime_ns) != TIME_OF_SOURCE && !path_size(m->cache->paths, &key, NULL))
		settle(m, n);
}

/* --- the table; with its lock held */

static struct node **slot_of(struct mount *m, dev_t dev, ino_t ino)
{
	u64 hash = (dev * 31 + ino) * 0x9e3779b97f4a7c15ull; /* Fibonacci */
	struct node **at = &m->bucket[(hash >> 32) % NODE_BUCKETS];

	while (*at && ((*at)->dev != dev || (*at)->ino != ino))
		at = &(*at)->next;
	return at;
}

static void node_free(struct mount *m, struct node *n)
{
	struct node **at = slot_of(m, n->dev, n->ino);

	assert(*at == n && !n->lookups);
	*at = n->next;
	m->nodes--;
	atomic_fetch_add(&m->nodes_freed, 1);
	list_del(&n->lingering);
	close(n->fd);
	free(n);
}

static void settle_lingering(struct mount *m, u32 most)
{
	struct list_node *at, *next;

	list_for_each_safe (at, next, &m->lingering) {
		struct node *n = list_entry(at, struct node, lingering);

		if (!most--)
			return;
		list_del(at);
		list_add_tail(&m->lingering, at); /* others are looked at next time */
		if (settle(m, n))
			node_free(m, n);
	}
}

/* --- the calls */

int node_get(struct mount *m, int fd, struct node **out, struct stat *st)
{
	struct node **at, *n;
	u64 crowd, freed = atomic_load(&m->nodes_freed);
	bool made = false, asked_again;

	if (fstatat(fd, "", st, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW)) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	clock_told(m, st);
	if (st->st_dev == m->root.dev && st->st_ino == m->root.ino) {
		close(fd); /* a source that was moved below itself */
		return -ELOOP;
	}
	mutex_lock(&m->lock);
	at = slot_of(m, st->st_dev, st->st_ino);
	n = *at;
	if (!n) {
		n = calloc(1, sizeof(*n));
		if (!n) {
			mutex_unlock(&m->lock);
			close(fd);
			return -ENOMEM;
		}
		*n = (struct node){ .dev = st->st_dev,
				    .ino = st->st_ino,
				    .kind = st->st_mode & S_IFMT,
				    .fd = fd,
				    .generation = ++m->generation,
				    .atime_ns = TIME_OF_SOURCE,
				    .mtime_ns = TIME_OF_SOURCE,
				    .ctime_ns = TIME_OF_SOURCE };
		list_init(&n->lingering);
		*at = n;
		fd = -1;
		made = true;
		if (++m->nodes > m->nodes_max)
			cond_signal(&m->crowded);
	}
	n->lookups++;
	crowd = made ? m->nodes : 0;
	/* nothing is ours of one that is new; unless there was one when the source was asked */
	asked_again = !made || freed != atomic_load(&m->nodes_freed);
	list_del(&n->lingering);
	mutex_unlock(&m->lock);
	if (fd >= 0)
		close(fd);
	*out = n;
	if (crowd > m->nodes_max / 4 * 5)
		world_sleep_until(world_now() +
				  TRIM_NS); /* let them be forgotten faster than found */
	if (asked_again)
		return node_stat(m, n, st);
	st->st_ino = shown_number(m, n->dev, st->st_ino);
	return 0;
}

struct node *node_find(struct mount *m, const struct stat *st)
{
	struct node *n;

	mutex_lock(&m->lock);
	n = *slot_of(m, st->st_dev, st->st_ino);
	if (n) {
		n->lookups++;
		list_del(&n->lingering);
	}
	mutex_unlock(&m->lock);
	return n;
}

void node_forget(struct mount *m, struct node *n, u64 lookups)
{
	if (n == &m->root)
		return;
	mutex_lock(&m->lock);
	assert(n->lookups >= lookups);
	n->lookups -= lookups;
	if (!n->lookups && settle(m, n))
		node_free(m, n);
	else if (!n->lookups)
		list_add_tail(&m->lingering, &n->lingering);
	settle_lingering(m, SETTLED_MAX);
	mutex_unlock(&m->lock);
}

/* --- keeping them few */

struct name {
	fuse_ino_t folder;
	char text[NAME_MAX + 1];
};

/* Where a node is now; false: it has no name, or one in a folder that the kernel doesn't know. */
static bool name_of(struct mount *m, const struct node *n, struct name *out)
{
	char proc[PROC_PATH_MAX], path[PATH_MAX + 1], *slash;
	ssize_t length = readlink(proc_path(proc, n->fd), path, sizeof(path) - 1);
	struct node *folder;
	struct stat st;

	path[length > 0 ? length : 0] = 0;
	slash = strrchr(path, '/');
	if (!slash || slash == path || strlen(slash + 1) > NAME_MAX)
		return false;
	*slash = 0;
	snprintf(out->text, sizeof(out->text), "%s", slash + 1);
	if (stat(path, &st))
		return false;
	folder = *slot_of(m, st.st_dev, st.st_ino);
	out->folder = st.st_dev == m->root.dev && st.st_ino == m->root.ino ? FUSE_ROOT_ID
									   : (fuse_ino_t)folder;
	return out->folder;
}

/* The names of some nodes, from the hand on. */
static u32 some_names(struct mount *m, struct name names[TRIM_BATCH])
{
	u32 count = 0;

	for (u32 i = 0; i < NODE_BUCKETS && count < TRIM_BATCH; i++) {
		struct node *n = m->bucket[m->hand];

		for (; n && count < TRIM_BATCH; n = n->next)
			count += n->lookups && !S_ISDIR(n->kind) && name_of(m, n, &names[count]);
		m->hand = (m->hand + 1) % NODE_BUCKETS;
	}
	return count;
}

/* Has what lingers written, so that it can go. Takes the lock. */
static void write_lingering(struct mount *m)
{
	struct node *held[TRIM_BATCH];
	u32 count = 0;

	mutex_lock(&m->lock);
	while (count < TRIM_BATCH && !list_empty(&m->lingering)) {
		struct node *n = list_entry(m->lingering.next, struct node, lingering);

		list_del(&n->lingering);
		n->lookups++;
		held[count++] = n;
	}
	mutex_unlock(&m->lock);
	for (u32 i = 0; i < count; i++)
		file_write_out(m, held[i], false);
	for (u32 i = 0; i < count; i++)
		node_forget(m, held[i], 1);
}

static void drop_names(struct mount *m)
{
	struct name names[TRIM_BATCH];
	u32 count;

	mutex_lock(&m->lock);
	count = some_names(m, names);
	mutex_unlock(&m->lock);
	for (u32 i = 0; i < count; i++)
		fuse_lowlevel_notify_inval_entry(m->session, names[i].folder, names[i].text,
						 strlen(names[i].text));
}

/* FUSE_NOTIFY_PRUNE, for which libfuse has no words. */
struct prune {
	struct fuse_out_header head;
	u32 count, spare[3];
	u64 numbers[TRIM_BATCH];
};

/* False: the kernel does not know how. */
static bool prune_nodes(struct mount *m)
{
	struct prune p = { .head.error = 9 };

	mutex_lock(&m->lock);
	for (u32 i = 0; i < NODE_BUCKETS && p.count < TRIM_BATCH; i++) {
		struct node *n = m->bucket[m->hand];

		for (; n && p.count < TRIM_BATCH; n = n->next)
			if (n->lookups)
				p.numbers[p.count++] = (uintptr_t)n;
		m->hand = (m->hand + 1) % NODE_BUCKETS;
	}
	mutex_unlock(&m->lock);
	p.head.len = (u32)(offsetof(struct prune, numbers) + p.count * sizeof(p.numbers[0]));
	return write(fuse_session_fd(m->session), &p, p.head.len) >= 0 || errno != EINVAL;
}

void nodes_trim(void *mount)
{
	struct mount *m = mount;
	bool prunes = true;

	mutex_lock(&m->lock);
	while (!m->ended) {
		if (m->nodes <= m->nodes_max) {
			cond_wait(&m->crowded, &m->lock);
			continue;
		}
		mutex_unlock(&m->lock);
		prunes = prunes && prune_nodes(m);
		if (!prunes)
			drop_names(m);
		write_lingering(m);
		world_sleep_until(world_now() + TRIM_NS);
		mutex_lock(&m->lock);
	}
	mutex_unlock(&m->lock);
}

bool nodes_crowded(struct mount *m)
{
	bool crowded;

	mutex_lock(&m->lock);
	crowded = m->nodes > m->nodes_max;
	mutex_unlock(&m->lock);
	return crowded;
}

void nodes_end(struct mount *m)
{
	mutex_lock(&m->lock);
	m->ended = true;
	cond_signal(&m->crowded);
	mutex_unlock(&m->lock);
}

void nodes_settle(struct mount *m, bool all)
{
	mutex_lock(&m->lock);
	settle_lingering(m, UINT32_MAX);
	for (u32 i = 0; i < NODE_BUCKETS && all; i++)
		for (struct node *n = m->bucket[i]; n; n = n->next)
			settle(m, n);
	mutex_unlock(&m->lock);
}

void nodes_close(struct mount *m)
{
	mutex_lock(&m->lock);
	for (u32 i = 0; i < NODE_BUCKETS; i++) {
		while (m->bucket[i]) {
			m->bucket[i]->lookups = 0;
			settle(m, m->bucket[i]);
			node_free(m, m->bucket[i]);
		}
	}
	mutex_unlock(&m->lock);
	if (m->root.fd >= 0)
		close(m->root.fd);
}
