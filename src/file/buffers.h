/* SPDX-License-Identifier: MIT */
/*
 * The caller's side of a copy: a cursor over his buffers. Reads, writes and loans are steps of a
 * folio; each step copies what it has and moves the cursor on, across the borders of the
 * buffers. Where no contents are kept there are no buffers, and the cursor only counts.
 */
#ifndef SLUICE_FILE_BUFFERS_H
#define SLUICE_FILE_BUFFERS_H

#include "cache/folio.h"
#include <string.h>
#include <sys/uio.h>

struct buffers {
	const struct iovec *iov; /* the buffer the cursor is in */
	size_t used;             /* bytes of it */
};

/* Of a call's buffers, in bytes; -EINVAL if that is more than a call can count. */
ssize_t buffers_length(const struct iovec *iov, unsigned count);

/* The part of the next n bytes that lies in one buffer; *at is NULL if nobody keeps them. */
static inline size_t buffers_next(struct buffers *b, size_t n, char **at)
{
	while (b->used == b->iov->iov_len) {
		b->iov++;
		b->used = 0;
	}
	*at = b->iov->iov_base ? (char *)b->iov->iov_base + b->used : NULL;
	n = min_u64(n, b->iov->iov_len - b->used);
	b->used += n;
	return n;
}

/*
 * Copies n bytes to the caller, of a folio that may be changing (folio_look); `from` NULL: moves on
 * only. The buffers have that much room.
 */
static inline void buffers_fill(struct buffers *b, const void *from, size_t n)
{
	const char *source = from;

	while (n) {
		char *to;
		size_t part = buffers_next(b, n, &to);

		if (to && source)
			folio_copy_racy(to, source, part);
		source = source ? source + part : NULL;
		n -= part;
	}
}

/* Copies n bytes from the caller, to a folio that the device may be reading (folio_zero_racy). */
static inline void buffers_drain(struct buffers *b, void *to, size_t n)
{
	char *target = to;

	while (n) {
		char *from;
		size_t part = buffers_next(b, n, &from);

		if (target && from)
			folio_copy_racy(target, from, part);
		target = target ? target + part : NULL;
		n -= part;
	}
}

#endif
