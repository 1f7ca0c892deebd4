// SPDX-License-Identifier: MIT
/*
 * Loans: cached bytes read in place. A loan is a list of pinned folios. A pin keeps a folio's
 * memory and its place in it: reclaim passes it over, splitting refuses it, and truncation
 * takes it out of its file but leaves the memory to the last pin. Nobody is kept from writing
 * to it.
 *
 * What is on loan cannot be reclaimed, so the engine lends an eighth of its memory at most. A
 * folio counts for each loan it is in, which also bounds its pins.
 */
#include "base/alloc.h"
#include "cache/fill.h"
#include "file/inner.h"
#include <limits.h>

#define LENT_SHARE    8       /* 1/8 of the cache */
#define LENT_PINS_MAX 0x4000u /* of one folio, a quarter of what can be counted */

struct file_loan {
	struct engine *engine;
	u32 count;
	struct folio *folio[];
};

/* Enters a pinned folio into the books; false: there is too much on loan already. */
static bool lend(struct engine *e, struct folio *f)
{
	u64 most = arena_frames(&e->cache.arena) / LENT_SHARE, pages = folio_pages(f);

	if (atomic_load_explicit(&f->pins, memory_order_relaxed) > LENT_PINS_MAX)
		return false;
	if (atomic_fetch_add(&e->lent_pages, pages) + pages <= most)
		return true;
	atomic_fetch_sub(&e->lent_pages, pages);
	return false;
}

/* Borrows folio by folio; 0, or why it went no further: -ENOBUFS, -EAGAIN, an error. */
static int borrow(struct read *r, struct file_loan *loan, struct iovec *iov, u32 count)
{
	int rc = 0;

	while (r->position < r->end && loan->count < count) {
		struct folio *f = read_folio(r, &rc);
		u64 n;

		world_breathe();
		if (!f && rc == -ESTALE)
			continue;
		if (!f)
			return rc;
		if (!lend(loan->engine, f)) {
			folio_unpin(&loan->engine->cache, f);
			return -ENOBUFS;
		}
		n = min_u64(r->end, folio_end(f) << PAGE_SHIFT) - r->position;
		iov[loan->count] =
			(struct iovec){ folio_bytes(&loan->engine->cache, f, r->position), n };
		loan->folio[loan->count++] = f;
		r->position += n;
		folio_mark_accessed(f);
		world_spend(COST_LOOKUP, 1);
	}
	return 0;
}

/* Memory for a loan of as many folios as the range can have, at most `count`. */
static struct file_loan *make_loan(struct engine *e, const struct read *r, unsigned count)
{
	u64 pages = pages_of(r->end) - (r->position >> PAGE_SHIFT);
	u64 most = min_u64(count, pages);
	struct file_loan *loan = alloc_bytes(sizeof(*loan) + most * sizeof(loan->folio[0]));

	if (loan)
		*loan = (struct file_loan){ .engine = e };
	return loan;
}

ssize_t file_borrow(struct file *f, u64 offset, size_t length, struct iovec *iov, unsigned count,
		    unsigned flags, struct file_loan **out)
{
	struct engine *e = container_of(f->inode->wb->all, struct engine, all);
	struct read r = { .file = f, .position = offset, .flags = flags };
	struct file_loan *loan;
	int rc;

	*out = NULL;
	if (f->flags & FILE_NO_READ)
		return -EBADF;
	if (!e->cache.config.contents)
		return -EOPNOTSUPP;
	if (offset + length < offset || length > SSIZE_MAX || flags & ~(unsigned)FILE_IO_NOWAIT)
		return -EINVAL;
	world_spend(COST_SYSCALL, 1);
	r.end = min_u64(offset + length, size_now(f->inode));
	if (offset >= r.end || !count)
		return 0;
	loan = make_loan(e, &r, count);
	if (!loan)
		return -ENOMEM;
	rc = borrow(&r, loan, iov, count);
	if (r.position == offset) {
		free(loan);
		return rc;
	}
	read_note_end(&r);
	*out = loan;
	return (ssize_t)(r.position - offset);
}

void file_give_back(struct file_loan *loan)
{
	u64 pages = 0;

	if (!loan)
		return;
	for (u32 i = 0; i < loan->count; i++) {
		pages += folio_pages(loan->folio[i]);
		folio_unpin(&loan->engine->cache, loan->folio[i]);
	}
	atomic_fetch_sub(&loan->engine->lent_pages, pages);
	free(loan);
}

bool engine_has_loans(struct engine *e)
{
	return atomic_load(&e->lent_pages) > 0;
}
