// SPDX-License-Identifier: MIT
/* Buffers of a call, checked once before anything is copied. */
#include "file/buffers.h"
#include <errno.h>
#include <limits.h>

ssize_t buffers_length(const struct iovec *iov, unsigned count)
{
	size_t sum = 0;

	for (unsigned i = 0; i < count; i++) {
		if (iov[i].iov_len > SSIZE_MAX - sum)
			return -EINVAL;
		sum += iov[i].iov_len;
	}
	return (ssize_t)sum;
}
