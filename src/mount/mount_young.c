// SPDX-License-Identifier: MIT
/*
 * Requests that are younger than libfuse: they are seen before libfuse sees them, and are either
 * turned into one that it knows, or answered here (linux/fuse.h; what that lacks on older systems
 * is spelled out).
 *
 * TMPFILE makes a file without a name, and is CREATE but for its number: what is to be made is told
 * by O_TMPFILE among the flags of the open, which it lacks if the kernel asks for itself, as
 * overlayfs does. SETXATTR has two words more if that was agreed on.
 * STATX is asked for when somebody wants to know when a file was born.
 */
#include "mount/mount_inner.h"
#include <fcntl.h>
#include <linux/fuse.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#define OP_TMPFILE 51
#define OP_STATX   52

struct statx_time {
	s64 seconds;
	u32 ns;
	u32 reserved;
};

struct statx_reply {
	struct fuse_out_header head;
	u64 valid_s;
	u32 valid_ns, flags;
	u64 spare[2];
	/* as struct statx, without the padding */
	u32 mask, blksize;
	u64 attributes;
	u32 nlink, uid, gid;
	u16 mode, spare0;
	u64 ino, size, blocks, attributes_mask;
	struct statx_time atime, btime, ctime, mtime;
	u32 rdev_major, rdev_minor, dev_major, dev_minor;
	u64 spare2[14];
};

static_assert(sizeof(struct statx_reply) == 16 + 32 + 256, "as the kernel has it");

static struct statx_time time_of(const struct timespec *t)
{
	return (struct statx_time){ t->tv_sec, (u32)t->tv_nsec, 0 };
}

static void answer_statx(struct mount *m, int fd, const struct fuse_in_header *head)
{
	struct node *n = head->nodeid == FUSE_ROOT_ID ? &m->root : (struct node *)head->nodeid;
	struct statx_reply r = { .head.unique = head->unique, .valid_s = (u64)TIMEOUT_S };
	struct statx birth = { 0 };
	struct stat st;
	int rc = node_stat(m, n, &st);

	r.head.len = rc ? sizeof(r.head) : sizeof(r);
	r.head.error = rc;
	if (!rc) {
		if (statx(n->fd, "", AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, STATX_BTIME, &birth))
			birth.stx_mask = 0;
		r.mask = STATX_BASIC_STATS | (birth.stx_mask & STATX_BTIME);
		r.blksize = (u32)st.st_blksize;
		r.nlink = (u32)st.st_nlink;
		r.uid = st.st_uid;
		r.gid = st.st_gid;
		r.mode = (u16)st.st_mode;
		r.ino = st.st_ino;
		r.size = (u64)st.st_size;
		r.blocks = (u64)st.st_blocks;
		r.atime = time_of(&st.st_atim);
		r.btime = (struct statx_time){ birth.stx_btime.tv_sec, birth.stx_btime.tv_nsec, 0 };
		r.ctime = time_of(&st.st_ctim);
		r.mtime = time_of(&st.st_mtim);
		r.rdev_major = major(st.st_rdev);
		r.rdev_minor = minor(st.st_rdev);
	}
	if (write(fd, &r, r.head.len) < 0)
		return; /* nobody waits for it any more */
}

/* The two words go, and what the first of them says becomes a flag. */
static size_t shorten_setxattr(struct fuse_in_header *head, size_t length)
{
	const size_t old = FUSE_COMPAT_SETXATTR_IN_SIZE,
		     gone = sizeof(struct fuse_setxattr_in) - old;
	struct fuse_setxattr_in in;
	char *body = (char *)(head + 1);

	if (length < sizeof(*head) + sizeof(in))
		return length;
	memcpy(&in, body, sizeof(in));
	if (in.setxattr_flags & FUSE_SETXATTR_ACL_KILL_SGID)
		in.flags |= XATTR_KILLS_SGID;
	memcpy(body, &in, old);
	memmove(body + old, body + old + gone, length - sizeof(*head) - old - gone);
	head->len -= (u32)gone;
	return length - gone;
}

static void become_create(struct fuse_in_header *head, size_t length)
{
	struct fuse_create_in *in = (struct fuse_create_in *)(head + 1);

	head->opcode = FUSE_CREATE;
	if (length >= sizeof(*head) + sizeof(*in))
		in->flags |= O_TMPFILE;
}

size_t young_request(struct mount *m, int fd, void *request, size_t length)
{
	struct fuse_in_header *head = request;

	if (head->opcode == OP_TMPFILE) {
		become_create(head, length);
	} else if (head->opcode == OP_STATX) {
		answer_statx(m, fd, head);
		return 0;
	} else if (head->opcode == FUSE_SETXATTR && m->extends_setxattr) {
		return shorten_setxattr(head, length);
	}
	return length;
}
