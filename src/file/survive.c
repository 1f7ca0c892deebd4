// SPDX-License-Identifier: MIT
/*
 * What of a file has to be known to give it its unwritten bytes when this process is no more: how
 * it is found, how long it is, and what is just being cut off or zeroed. It stands beside the
 * arena (cache/persist.h). Only files that are open for writing have an entry.
 *
 * Most changes are safe as they are: data counts from the store into its page's record on, and a
 * file that grows has its new size entered after its data. Truncation and holes are different. They
 * take accepted data out of the cache before the file itself is cut, and in between a part of what
 * was accepted is neither here nor there. So they are promised first; who recovers the file makes
 * the promise good before it writes what is owed.
 */
#include "cache/persist.h"
#include "file/inner.h"
#include <fcntl.h>
#include <linux/stat.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct persist *persist_of(struct inode *inode)
{
	return inode->m.persist_file ? inode->m.cache->config.persist : NULL;
}

void inode_note_size(struct inode *inode, u64 size_bytes)
{
	if (persist_of(inode))
		persist_set_size(persist_of(inode), inode->m.persist_file, size_bytes);
}

void inode_promise_size(struct inode *inode, u64 size_bytes)
{
	if (persist_of(inode))
		persist_begin(persist_of(inode), inode->m.persist_file, PERSIST_SHRINK, size_bytes,
			      size_bytes);
}

void inode_promise_zeros(struct inode *inode, u64 from, u64 to)
{
	if (persist_of(inode))
		persist_begin(persist_of(inode), inode->m.persist_file, PERSIST_ZERO, from, to);
}

void inode_promise_kept(struct inode *inode)
{
	if (persist_of(inode))
		persist_end(persist_of(inode), inode->m.persist_file);
}

void inode_note_unlinked(struct inode *inode)
{
	if (persist_of(inode))
		persist_set_unlinked(persist_of(inode), inode->m.persist_file);
}

void inode_forget_survival(struct inode *inode)
{
	if (persist_of(inode))
		persist_drop(persist_of(inode), inode->m.persist_file);
	inode->m.persist_file = 0;
}

static int enter(struct inode *inode, struct persist_name *name)
{
	name->block_bytes = inode->block_bytes;
	return persist_add(inode->m.cache->config.persist, name, size_now(inode),
			   &inode->m.persist_file);
}

int inode_survive_as_store(struct inode *inode)
{
	struct persist_name name = { .kind = PERSIST_STORE };

	if (!inode->m.cache->config.persist || inode->m.persist_file)
		return 0;
	return enter(inode, &name);
}

/* What tells the file apart from a later one that gets its number. */
void persist_name_life(struct persist_name *name, int fd)
{
	union {
		struct file_handle head;
		char room[sizeof(struct file_handle) + sizeof(name->handle)];
	} handle = { .head.handle_bytes = sizeof(name->handle) };
	struct statx sx;
	int mount;

	if (!statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &sx) && sx.stx_mask & STATX_BTIME)
		name->born_ns = sx.stx_btime.tv_sec * (s64)NSEC_PER_SEC + sx.stx_btime.tv_nsec;
	if (name_to_handle_at(fd, "", &handle.head, &mount, AT_EMPTY_PATH))
		return;
	name->handle_bytes = handle.head.handle_bytes;
	name->handle_type = handle.head.handle_type;
	memcpy(name->handle, handle.head.f_handle, name->handle_bytes);
}

int inode_survive_as_file(struct inode *inode, int fd)
{
	struct persist_name name = { 0 };
	struct stat st;
	char proc[32];
	ssize_t length;
	int rc;

	if (!inode->m.cache->config.persist || inode->m.persist_file)
		return 0;
	if (fstat(fd, &st))
		return -errno;
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	length = readlink(proc, name.path, sizeof(name.path) - 1);
	if (length < 0)
		return -errno;
	name.path[length] = 0;
	if (S_ISBLK(st.st_mode)) {
		name.kind = PERSIST_BLOCK_DEVICE;
		name.number = st.st_rdev;
	} else {
		name.kind = PERSIST_FILE;
		name.device = st.st_dev;
		name.number = st.st_ino;
		persist_name_life(&name, fd);
	}
	rc = enter(inode, &name);
	if (!rc && !st.st_nlink) /* it goes with us, unless it gets a name before */
		inode_note_unlinked(inode);
	return rc;
}
