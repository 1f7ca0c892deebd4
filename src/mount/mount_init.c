// SPDX-License-Identifier: MIT
/*
 * What a session and the kernel agree on at its beginning, where libfuse's words for it are older
 * than the kernel's: the session reads and writes through us, and we add two flags to the answer
 * to FUSE_INIT if the kernel offers them (linux/fuse.h).
 *
 * With HANDLE_KILLPRIV_V2 it is us who take set-user-id and capabilities from a file that is
 * written to. Without it the kernel asks for the capabilities of a file at each write, which
 * doubles what a small write costs.
 *
 * With DIRECT_IO_ALLOW_MMAP files of which the kernel keeps nothing (reads=direct) can have shared
 * mappings. With SETXATTR_EXT it says who sets an ACL from outside of the file's group.
 *
 * The kernel reads ahead no more than its default for block devices, whatever is agreed on, until
 * root raises the limit of the mount in /sys.
 */
#include "mount/fuse_request.h"
#include "mount/mount_inner.h"
#include <fcntl.h>
#include <linux/fuse.h>
#include <sys/uio.h>
#include <unistd.h>

#define ALLOW_MMAP (1u << 4) /* FUSE_DIRECT_IO_ALLOW_MMAP of the second word */

/* Before the answer: then the kernel takes the smaller of this and what is answered. */
static bool raise_read_ahead(const struct mount *m)
{
	struct statx st;
	char path[64];
	bool raised;
	FILE *f;

	/* without asking us */
	if (statx(AT_FDCWD, m->mountpoint, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, 0, &st))
		return false;
	snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u/read_ahead_kb", st.stx_dev_major,
		 st.stx_dev_minor);
	f = fopen(path, "we");
	if (!f)
		return false;
	raised = fprintf(f, "%u", REQUEST_MAX / 1024) > 0;
	return !fclose(f) && raised;
}

static ssize_t take_request(int fd, void *buf, size_t length, void *mount)
{
	const struct fuse_in_header *head = buf;
	const struct fuse_init_in *init = (const void *)(head + 1);
	struct mount *m = mount;
	ssize_t n;

	do {
		n = fuse_request_read(fd, buf, length);
		if (n >= (ssize_t)sizeof(*head) &&
		    !(n = (ssize_t)young_request(m, fd, buf, (size_t)n)))
			continue;
	} while (!n);
	if (n >= (ssize_t)(sizeof(*head) + offsetof(struct fuse_init_in, unused)) &&
	    head->opcode == FUSE_INIT) {
		m->init_unique = head->unique;
		m->drops_privileges = init->flags & FUSE_HANDLE_KILLPRIV_V2;
		m->extends_setxattr = init->flags & FUSE_SETXATTR_EXT;
		m->maps_direct = init->flags & FUSE_INIT_EXT && init->flags2 & ALLOW_MMAP;
	}
	return n;
}

static ssize_t give_init(const struct mount *m, int fd, const struct iovec *iov)
{
	struct fuse_init_out reply;
	struct iovec parts[2] = { iov[0], { &reply, sizeof(reply) } };

	memcpy(&reply, iov[1].iov_base, sizeof(reply));
	if (m->drops_privileges)
		reply.flags |= FUSE_HANDLE_KILLPRIV_V2;
	if (m->extends_setxattr)
		reply.flags |= FUSE_SETXATTR_EXT;
	if (raise_read_ahead(m))
		reply.max_readahead = REQUEST_MAX;
	if (m->maps_direct) {
		reply.flags |= FUSE_INIT_EXT;
		reply.flags2 |= ALLOW_MMAP;
	}
	return writev(fd, parts, 2);
}

static ssize_t give_reply(int fd, struct iovec *iov, int count, void *mount)
{
	const struct fuse_out_header *head = iov[0].iov_base;
	struct mount *m = mount;

	if (head->unique == m->init_unique && count == 2 && !head->error &&
	    iov[1].iov_len == sizeof(struct fuse_init_out)) {
		ssize_t n = give_init(m, fd, iov);

		m->init_unique = 0; /* requests have other numbers */
		return n;
	}
	return writev(fd, iov, count);
}

int mount_agree(struct mount *m)
{
	static const struct fuse_custom_io io = { .writev = give_reply, .read = take_request };

	return fuse_session_custom_io(m->session, &io, fuse_session_fd(m->session));
}
