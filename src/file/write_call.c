// SPDX-License-Identifier: MIT
/* The calls that write, and whom each is for: see tenant.h. */
#include "file/hit.h"
#include "file/tenant.h"

ssize_t write_from(struct file *f, const struct iovec *iov, unsigned count, size_t length,
		   u64 *offset, unsigned flags, bool append)
{
	u64 word = atomic_load_explicit(&f->tenant, memory_order_relaxed), before;
	ssize_t n;

	if (likely(!word))
		return write_for_thread(f, iov, count, length, offset, flags, append);
	before = tenant_enter_word(word);
	n = write_for_thread(f, iov, count, length, offset, flags, append);
	tenant_restore(before);
	return n;
}

ssize_t file_pwritev_for(struct file *f, struct tenant *t, const struct iovec *iov, unsigned count,
			 u64 offset, unsigned flags)
{
	ssize_t length = buffers_length(iov, count), n;
	u64 before;

	if (length < 0 || flags & ~FILE_IO_ALL)
		return -EINVAL;
	before = tenant_enter(t);
	n = write_for_thread(f, iov, count, (size_t)length, &offset, flags, false);
	tenant_restore(before);
	return n;
}

ssize_t file_pwritev(struct file *f, const struct iovec *iov, unsigned count, u64 offset,
		     unsigned flags)
{
	ssize_t length = buffers_length(iov, count);

	if (length < 0 || flags & ~FILE_IO_ALL)
		return -EINVAL;
	return write_from(f, iov, count, (size_t)length, &offset, flags, false);
}

ssize_t file_append(struct file *f, const struct iovec *iov, unsigned count, unsigned flags,
		    u64 *offset)
{
	ssize_t length = buffers_length(iov, count);

	if (length < 0 || flags & ~FILE_IO_ALL)
		return -EINVAL;
	*offset = 0;
	return write_from(f, iov, count, (size_t)length, offset, flags, true);
}
