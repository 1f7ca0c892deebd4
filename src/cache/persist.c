// SPDX-License-Identifier: MIT
/*
 * A file that holds an arena:
 *
 *	header | a record for each frame | frames, from a border of 2 MiB on | table of files
 *
 * It is mapped as a whole, for life. Everything up to the table gets its memory when the file is
 * made, and the table, at its end, a piece at a time before it is used, so that a file system that
 * fills up later cannot take memory away from under us (SIGBUS). The file gets its name when it is
 * complete: what is found under PATH is an arena, or is not ours.
 *
 * A lock (flock) says that the arena has a living process. It goes when the last thread of that has
 * left the kernel, and I/O that it had begun is over by then. The header names the boot of the
 * kernel: what a file system kept of the file through a crash of the machine is of no one moment,
 * and is refused.
 *
 * Whoever finds the file reads it, sees to what is owed, and removes it; nobody ever goes on with
 * an arena of somebody else. So recovery may be killed, too, at any time, and begin anew.
 */
#include "cache/persist.h"
#include "cache/memory.h"
#include "cache/owed.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX   (1u << 20)
#define FILES_STEP  64                 /* entries get their memory so many at a time */
#define LOCK_NS     (3 * NSEC_PER_SEC) /* the end of a killed process is waited for */
#define LOCK_POLL   (20 * NSEC_PER_MSEC)
#define FIELD(name) offsetof(struct persist_header, name)

static u32 check_of(const void *bytes, size_t count)
{
	const u8 *at = bytes;
	u32 hash = 2166136261u; /* FNV-1a */

	for (size_t i = 0; i < count; i++)
		hash = (hash ^ at[i]) * 16777619u;
	return hash;
}

static void lay_out(struct persist_header *h, u32 frames)
{
	*h = (struct persist_header){ .magic = PERSIST_MAGIC,
				      .version = PERSIST_VERSION,
				      .page_bytes = PAGE_SIZE,
				      .frames = frames,
				      .files_max = FILES_MAX,
				      .owed_from = PAGE_SIZE,
				      .owed_bytes = sizeof(struct owed),
				      .file_bytes = sizeof(struct persist_file) };
	h->arena_at = round_up(h->owed_from + (u64)frames * sizeof(struct owed), HUGE_PAGE_BYTES);
	h->files_at = round_up(h->arena_at + (u64)frames * PAGE_SIZE, HUGE_PAGE_BYTES);
	h->end = round_up(h->files_at + (u64)FILES_MAX * sizeof(struct persist_file),
			  HUGE_PAGE_BYTES);
}

/* A line of a file of /proc. */
static void read_line(const char *path, char *to, size_t size)
{
	FILE *f = fopen(path, "re");

	if (!f || !fgets(to, (int)size, f))
		snprintf(to, size, "unknown");
	to[strcspn(to, "\n")] = 0;
	if (f)
		fclose(f);
}

static void read_boot(char boot[40])
{
	memset(boot, 0, 40);
	read_line("/proc/sys/kernel/random/boot_id", boot, 40);
}

/* Maps it on a border of 2 MiB, so that the arena begins on one. */
static int map_file(struct persist *p, int protection)
{
	u64 reserve = p->map_bytes + 2 * HUGE_PAGE_BYTES;
	char *all = mmap(NULL, reserve, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			 0),
	     *at;

	if (all == MAP_FAILED)
		return -ENOMEM;
	at = (char *)round_up((uintptr_t)all + 1, HUGE_PAGE_BYTES);
	munmap(all, (size_t)(at - all));
	munmap(at + p->map_bytes, (size_t)(all + reserve - (at + p->map_bytes)));
	if (mmap(at, p->map_bytes, protection, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, p->fd, 0) ==
	    MAP_FAILED) {
		int rc = -errno;

		munmap(at, p->map_bytes);
		return rc;
	}
	madvise(at, p->map_bytes, MADV_DONTFORK);
	p->map = at;
	return 0;
}

static void find_parts(struct persist *p)
{
	p->header = (struct persist_header *)p->map;
	p->owed = (struct owed *)(p->map + p->header->owed_from);
	p->arena = p->map + p->header->arena_at;
	p->files = (struct persist_file *)(p->map + p->header->files_at);
}

static struct persist *new_persist(int fd, const char *path)
{
	struct persist *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->fd = fd;
	p->path = path ? strdup(path) : NULL;
	mutex_init(&p->lock, RANK_NONE);
	if (path && !p->path) {
		free(p);
		return NULL;
	}
	return p;
}

void persist_close(struct persist *p, bool remove)
{
	struct stat ours, found;

	remove = remove && !atomic_load(&p->frozen);
	if (remove && p->path && !fstat(p->fd, &ours) && !lstat(p->path, &found) &&
	    ours.st_dev == found.st_dev && ours.st_ino == found.st_ino)
		unlink(p->path); /* before the lock goes: nobody else may find it */
	if (p->map && p->fd >= 0)
		munmap(p->map, p->map_bytes);
	if (p->fd >= 0)
		close(p->fd);
	free(p->free);
	free(p->path);
	free(p);
}

/* --- making one */

static int take_memory(int fd, u64 from, u64 to)
{
	struct rlimit l;
	int rc;

	if (!getrlimit(RLIMIT_FSIZE, &l) && l.rlim_cur != RLIM_INFINITY && to > l.rlim_cur)
		return -EFBIG;
	do
		rc = fallocate(fd, 0, (off_t)from, (off_t)(to - from));
	while (rc && errno == EINTR);
	return rc ? -errno : 0;
}

/* Without a name it is a test's, which makes thousands of them and uses little of each. */
static int take_all(const struct persist *p, u64 bytes)
{
	if (p->path)
		return take_memory(p->fd, 0, bytes);
	return ftruncate(p->fd, (off_t)bytes) ? -errno : 0;
}

static int make(struct persist *p, u32 frames, struct err *e)
{
	struct persist_header h;
	int rc;

	lay_out(&h, frames);
	read_boot(h.boot);
	read_line("/proc/sys/kernel/random/uuid", h.uuid, sizeof(h.uuid));
	h.check = check_of(&h, FIELD(check));
	atomic_init(&h.pid, (u32)getpid());
	p->map_bytes = h.end;
	rc = flock(p->fd, LOCK_EX | LOCK_NB) ? -errno : take_all(p, h.files_at);
	if (rc)
		return err_set(e, NULL, 0,
			       "persist=%s: %s; it needs %" PRIu64 " MiB there (memory or "
			       "max_memory, and a 200th more)",
			       p->path, strerror(-rc), h.files_at >> 20),
		       rc;
	rc = map_file(p, PROT_READ | PROT_WRITE);
	if (rc)
		return err_set(e, NULL, 0, "persist=%s: mapping it: %s", p->path, strerror(-rc)),
		       rc;
	memcpy(p->map, &h, sizeof(h));
	find_parts(p);
	p->free = calloc(FILES_STEP, sizeof(*p->free));
	return p->free ? 0 : -ENOMEM;
}

/* Gives a complete file its name. */
static int publish(struct persist *p, struct err *e)
{
	char made_as[32];
	int rc;

	snprintf(made_as, sizeof(made_as), "/proc/self/fd/%d", p->fd);
	if (!linkat(AT_FDCWD, made_as, AT_FDCWD, p->path, AT_SYMLINK_FOLLOW))
		return 0;
	rc = errno == EEXIST ? -EBUSY : -errno;
	if (rc == -EBUSY)
		err_set(e, NULL, 0, "persist=%s: another process has just made it", p->path);
	return rc;
}

/* A file without a name as yet, in the folder where it will be: if we are killed it is gone. */
static int open_unnamed(const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX];
	int length = slash && slash > path ? (int)(slash - path) : 1;

	snprintf(folder, sizeof(folder), "%.*s", length, slash ? path : ".");
	return open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

int persist_create(const char *path, u32 frames, struct persist **out, struct err *e)
{
	int fd = path ? open_unnamed(path) : memfd_create("sluice", MFD_CLOEXEC), rc = -errno;
	struct persist *p = fd >= 0 ? new_persist(fd, path) : NULL;

	if (fd >= 0 && !p) {
		rc = -ENOMEM;
		close(fd);
	}
	if (p)
		rc = make(p, frames, e);
	if (p && !rc && path)
		rc = publish(p, e);
	if (rc)
		err_set(e, NULL, 0, "persist=%s: making it: %s", path ? path : "", strerror(-rc));
	if (p && rc)
		persist_close(p, false);
	if (!rc)
		*out = p;
	return rc;
}

/* --- finding one */

/* Opens it with its lock. 0, or -ENOENT, -EBUSY, ... */
static int open_locked(const char *path, int *fd)
{
	u64 deadline = world_now() + LOCK_NS;
	struct stat ours, found;

	for (;;) {
		*fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		if (*fd < 0)
			return -errno;
		if (!flock(*fd, LOCK_EX | LOCK_NB) && !fstat(*fd, &ours) && !lstat(path, &found) &&
		    ours.st_dev == found.st_dev && ours.st_ino == found.st_ino)
			return 0;
		/* it lives, or is about to end, or was removed before we had the lock */
		close(*fd);
		if (world_now() >= deadline)
			return -EBUSY;
		world_sleep_until(world_now() + LOCK_POLL);
	}
}

/* Says who has it. */
static int refuse_living(const char *path, struct err *e)
{
	struct persist_header h = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool known = fd >= 0 && pread(fd, &h, sizeof(h), 0) == sizeof(h) &&
		     !memcmp(h.magic, PERSIST_MAGIC, sizeof(h.magic));

	if (known)
		err_set(e, NULL, 0, "persist=%s: is in use by process %" PRIu32, path,
			atomic_load(&h.pid));
	else
		err_set(e, NULL, 0, "persist=%s: is locked by another process", path);
	if (fd >= 0)
		close(fd);
	return -EBUSY;
}

static const char *what_is_wrong(const struct persist_header *h, u64 file_bytes)
{
	struct persist_header right;
	char boot[40];

	if (memcmp(h->magic, PERSIST_MAGIC, sizeof(h->magic)) != 0)
		return "is no arena of Sluice; name a file that does not exist";
	if (h->version != PERSIST_VERSION)
		return "was made by another version of Sluice; that one has to recover it";
	if (h->check != check_of(h, FIELD(check)))
		return "is torn: its header does not match its checksum";
	lay_out(&right, h->frames);
	if (h->page_bytes != right.page_bytes || h->files_max != right.files_max ||
	    h->owed_from != right.owed_from || h->arena_at != right.arena_at ||
	    h->files_at != right.files_at || h->end != right.end ||
	    h->owed_bytes != right.owed_bytes || h->file_bytes != right.file_bytes)
		return "was made on another kind of machine";
	if (atomic_load(&h->files) > h->files_max)
		return "is torn: its table of files is longer than it can be";
	if (file_bytes < h->files_at + atomic_load(&h->files) * (u64)h->file_bytes)
		return "is torn: it is shorter than its header says";
	read_boot(boot);
	if (memcmp(boot, h->boot, sizeof(boot)) != 0)
		return "is of before the machine was started: what it holds is of no one moment";
	return NULL;
}

static const char *what_is_torn(struct persist *p)
{
	u32 files = atomic_load(&p->header->files);

	for (u32 i = 0; i < p->header->frames; i++) {
		u64 page = atomic_load(&p->owed[i].page), number = page >> 32;

		if (!(atomic_load(&p->owed[i].blocks) & OWED_BLOCKS))
			continue;
		if (!number || number >= files || !persist_file_is_whole(&p->files[number]))
			return "is torn: a page is of a file that is not in its table";
	}
	return NULL;
}

static int check_file(int fd, const char *path, struct persist_header *h, struct err *e)
{
	const char *wrong = "is no arena of Sluice; name a file that does not exist";
	struct stat st;

	if (!fstat(fd, &st) && S_ISREG(st.st_mode) &&
	    pread(fd, h, sizeof(*h), 0) == (ssize_t)sizeof(*h))
		wrong = what_is_wrong(h, (u64)st.st_size);
	return wrong ? err_set(e, NULL, 0, "persist=%s: %s", path, wrong) : 0;
}

int persist_open(const char *path, struct persist **out, struct err *e)
{
	struct persist_header h = { 0 };
	struct persist *p;
	const char *torn;
	int fd, rc = open_locked(path, &fd);

	if (rc == -EBUSY)
		return refuse_living(path, e);
	if (rc == -ENOENT)
		return rc;
	if (rc) {
		err_set(e, NULL, 0, "persist=%s: %s", path, strerror(-rc));
		return rc;
	}
	rc = check_file(fd, path, &h, e);
	if (rc) {
		close(fd);
		return rc;
	}
	p = new_persist(fd, path);
	if (!p) {
		close(fd);
		return -ENOMEM;
	}
	p->map_bytes = h.end;
	rc = map_file(p, PROT_READ);
	if (!rc) {
		find_parts(p);
		torn = what_is_torn(p);
		rc = torn ? err_set(e, NULL, 0, "persist=%s: %s", path, torn) : 0;
	}
	if (rc)
		persist_close(p, false);
	else
		*out = p;
	return rc;
}

int persist_open_image(char *image, u64 bytes, struct persist **out, struct err *e)
{
	const char *wrong = what_is_wrong((struct persist_header *)image, bytes);
	struct persist *p;

	if (wrong)
		return err_set(e, NULL, 0, "%s", wrong);
	p = new_persist(-1, NULL);
	if (!p)
		return -ENOMEM;
	p->map = image;
	p->map_bytes = bytes;
	find_parts(p);
	wrong = what_is_torn(p);
	if (wrong) {
		persist_close(p, false);
		return err_set(e, NULL, 0, "%s", wrong);
	}
	*out = p;
	return 0;
}

/* --- the table of files */

bool persist_file_is_whole(const struct persist_file *f)
{
	u32 kind = atomic_load(&f->kind);

	return kind != PERSIST_FREE && kind == f->name.kind &&
	       f->check == check_of(&f->name, sizeof(f->name));
}

/* More entries, with memory behind them. With the lock held. */
static int more_files(struct persist *p)
{
	u32 files = atomic_load(&p->header->files), first = files ? files : 1;
	u64 at = p->header->files_at + (u64)files * sizeof(struct persist_file);
	u32 *free_ones;
	int rc;

	if (files + FILES_STEP > FILES_MAX)
		return -ENFILE;
	free_ones = realloc(p->free, (files + FILES_STEP) * sizeof(*free_ones));
	if (!free_ones)
		return -ENOMEM;
	p->free = free_ones;
	rc = take_memory(p->fd, at, at + FILES_STEP * sizeof(struct persist_file));
	if (rc)
		return rc;
	files += FILES_STEP;
	atomic_store_explicit(&p->header->files, files, memory_order_release);
	for (u32 i = files - 1; i >= first; i--)
		p->free[p->free_count++] = i;
	return 0;
}

int persist_add(struct persist *p, const struct persist_name *name, u64 size, u32 *number)
{
	struct persist_file *f;
	int rc = 0;

	mutex_lock(&p->lock);
	if (!p->free_count)
		rc = more_files(p);
	if (rc) {
		mutex_unlock(&p->lock);
		return rc;
	}
	*number = p->free[--p->free_count];
	f = &p->files[*number];
	assert(f->kind == PERSIST_FREE);
	f->name = *name;
	f->check = check_of(name, sizeof(*name));
	atomic_store_explicit(&f->size, size, memory_order_relaxed);
	atomic_store_explicit(&f->op, PERSIST_IDLE, memory_order_relaxed);
	atomic_store_explicit(&f->unlinked, 0, memory_order_relaxed);
	atomic_store_explicit(&f->order, ++p->order, memory_order_relaxed);
	atomic_store_explicit(&f->kind, name->kind, memory_order_release);
	mutex_unlock(&p->lock);
	persist_stepped(p);
	return 0;
}

void persist_drop(struct persist *p, u32 number)
{
	assert(number);
	if (atomic_load(&p->frozen))
		return;
	mutex_lock(&p->lock);
	atomic_store_explicit(&p->files[number].kind, PERSIST_FREE, memory_order_release);
	p->free[p->free_count++] = number;
	mutex_unlock(&p->lock);
	persist_stepped(p);
}

void persist_set_size(struct persist *p, u32 number, u64 size)
{
	atomic_store_explicit(&p->files[number].size, size, memory_order_release);
	persist_stepped(p);
}

void persist_begin(struct persist *p, u32 number, enum persist_op op, u64 from, u64 to)
{
	struct persist_file *f = &p->files[number];

	assert(f->op == PERSIST_IDLE);
	atomic_store_explicit(&f->op_from, from, memory_order_relaxed);
	atomic_store_explicit(&f->op_to, to, memory_order_relaxed);
	atomic_store_explicit(&f->op, op, memory_order_release);
	persist_stepped(p);
}

void persist_end(struct persist *p, u32 number)
{
	atomic_store_explicit(&p->files[number].op, PERSIST_IDLE, memory_order_release);
	persist_stepped(p);
}

void persist_freeze(struct persist *p)
{
	atomic_store(&p->frozen, true);
}

void persist_set_unlinked(struct persist *p, u32 number)
{
	atomic_store_explicit(&p->files[number].unlinked, 1, memory_order_relaxed);
	persist_stepped(p);
}
