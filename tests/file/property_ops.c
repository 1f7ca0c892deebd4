/* SPDX-License-Identifier: MIT */
/*
 * The operations, each with what must come of it. An operation may fail only if an I/O or
 * an allocation was made to fail while it ran, and a write that says it wrote n bytes wrote
 * those and no others. After an fsync that says 0 the store holds what the file holds,
 * whatever failed before.
 */
#include "base/bits.h"
#include "property.h"
#include <errno.h>
#include <string.h>

static u64 align_by(struct rng *r, u64 value, u32 block_bytes)
{
	switch (rng_below(r, 4)) {
	case 0:
		return value;
	case 1:
		return round_down(value, PAGE_SIZE);
	default:
		return round_down(value, block_bytes);
	}
}

/* Anywhere in [from, end), not empty. */
static struct prop_span span_in(struct prop_task *t, u64 from, u64 end, u32 block_bytes)
{
	struct rng *r = &t->rng;
	u64 offset = max_u64(from, align_by(r, from + rng_below(r, end - from), block_bytes));
	u64 length = prop_scaled(r, 1, t->p->op_bytes);

	if (prop_chance(r, 2))
		length = max_u64(align_by(r, length, block_bytes), 1);
	return (struct prop_span){ offset, min_u64(length, end - offset) };
}

/* Anywhere in the file as it may become, with a liking for its end and for hot places. */
struct prop_span prop_span_anywhere(struct prop_task *t, struct prop_file *f)
{
	u64 from = 0, end = f->capacity;

	switch (rng_below(&t->rng, 4)) {
	case 0: /* around the end of file */
		from = f->size > 8 * PAGE_SIZE ? f->size - 8 * PAGE_SIZE : 0;
		end = f->size + 2 * PAGE_SIZE;
		break;
	case 1:
		from = f->hot > 2 * PAGE_SIZE ? f->hot - 2 * PAGE_SIZE : 0;
		end = f->hot + 4 * PAGE_SIZE;
		break;
	case 2:
		end = f->size + PAGE_SIZE;
		break;
	}
	from = min_u64(from, f->capacity - 1);
	end = min_u64(end, f->capacity);
	return span_in(t, from, max_u64(end, from + 1), f->block_bytes);
}

/* In a stripe of the task's own, within the size; false if there is none. */
static bool span_own(struct prop_task *t, struct prop_file *f, struct prop_span *s)
{
	u64 stripes = f->size / f->stripe_bytes, mine;

	if (stripes <= t->number)
		return false;
	mine = (stripes - 1 - t->number) / t->p->tasks + 1;
	mine = t->number + rng_below(&t->rng, mine) * t->p->tasks;
	*s = span_in(t, mine * f->stripe_bytes, (mine + 1) * f->stripe_bytes, f->block_bytes);
	return true;
}

/* Where the operation goes: the whole file if it is held alone, else the task's own part. */
bool prop_span_allowed(struct prop_task *t, struct prop_file *f, struct prop_span *s)
{
	if (!t->alone)
		return span_own(t, f, s);
	*s = prop_span_anywhere(t, f);
	return true;
}

/* The blocks of a span; false if it is cut down to nothing. */
static bool to_blocks(struct prop_file *f, struct prop_span *s)
{
	u64 end = round_up(s->offset + s->length, f->block_bytes);

	s->offset = round_down(s->offset, f->block_bytes);
	s->length = end - s->offset;
	return s->offset + s->length <= f->capacity;
}

/*
 * An error that nobody caused is a failure. Where memory is refused, write-out may be waiting for
 * an I/O that failed a moment ago, and a sync that begins now learns of it.
 */
void prop_expect_cause(struct prop_task *t, s64 rc, u64 injected, const char *what)
{
	struct prop *p = t->p;

	if (rc >= 0 || p->faults.injected != injected)
		return;
	if (p->profile->refusals && t->started_ns < p->faults.last_ns + 10 * NSEC_PER_MSEC)
		return;
	prop_fail(p, "task %u: %s gave %lld though nothing was made to fail", t->number, what,
		  (long long)rc);
}

static void compare(struct prop_task *t, struct prop_file *f, u64 offset, u64 length,
		    const char *what)
{
	const u8 *want = f->bytes + offset;

	if (!memcmp(t->buf, want, length))
		return;
	for (u64 i = 0; i < length; i++)
		if (t->buf[i] != want[i])
			prop_fail(t->p,
				  "task %u: %s of file %u: byte %llu (page %llu) is %02x, not %02x",
				  t->number, what, f->number, (unsigned long long)(offset + i),
				  (unsigned long long)((offset + i) >> PAGE_SHIFT), t->buf[i],
				  want[i]);
}

void prop_check_size(struct prop_task *t, struct prop_file *f)
{
	if (t->alone && inode_size(f->inode) != f->size)
		prop_fail(t->p, "file %u has size %llu, not %llu", f->number,
			  (unsigned long long)inode_size(f->inode), (unsigned long long)f->size);
}

void prop_check_store(struct prop *p, struct prop_file *f, u64 offset, u64 length)
{
	struct store *s = inode_store(f->inode);
	static u8 held[64 << 10];

	while (length) {
		u64 n = min_u64(length, sizeof(held));

		store_peek(s, offset, held, n);
		for (u64 i = 0; memcmp(held, f->bytes + offset, n) && i < n; i++)
			if (held[i] != f->bytes[offset + i])
				prop_fail(
					p,
					"store of file %u: byte %llu (page %llu) is %02x, not %02x",
					f->number, (unsigned long long)(offset + i),
					(unsigned long long)((offset + i) >> PAGE_SHIFT), held[i],
					f->bytes[offset + i]);
		offset += n;
		length -= n;
	}
}

/* After a sync that went well: everything, what lies past the end included. */
static void check_stored(struct prop_task *t, struct prop_file *f)
{
	u64 size = store_size(inode_store(f->inode));

	if (!t->alone) {
		u64 stripe = f->stripe_bytes;

		for (u64 at = t->number * stripe; at + stripe <= f->size;
		     at += stripe * t->p->tasks)
			prop_check_store(t->p, f, at, stripe);
		return;
	}
	if (size < f->size)
		prop_fail(t->p, "store of file %u has size %llu, the file %llu", f->number,
			  (unsigned long long)size, (unsigned long long)f->size);
	prop_check_store(t->p, f, 0, min_u64(f->size + 4 * PAGE_SIZE, f->capacity));
}

/* Cuts a buffer at random places, of multiples of `unit` bytes. */
unsigned prop_cut(struct prop_task *t, const u8 *buf, u64 length, u32 unit, struct iovec *iov)
{
	unsigned n = 0;

	while (length && n < PROP_CUTS - 1 && !prop_chance(&t->rng, 4)) {
		u64 part = round_down(rng_below(&t->rng, length + 1), unit);

		iov[n++] = (struct iovec){ (void *)buf, part };
		buf += part;
		length -= part;
	}
	iov[n++] = (struct iovec){ (void *)buf, length };
	return n;
}

/* Flags of a call, often none. */
unsigned prop_flags(struct prop_task *t, bool direct, bool writes, bool sync)
{
	unsigned flags = 0;

	if (prop_chance(&t->rng, 2))
		return 0;
	if (!direct && !sync && prop_chance(&t->rng, 3))
		return FILE_IO_NOWAIT | (prop_chance(&t->rng, 3) ? FILE_IO_DONTCACHE : 0);
	if (prop_chance(&t->rng, 2))
		flags |= FILE_IO_DONTCACHE;
	if (writes && prop_chance(&t->rng, 8))
		flags |= FILE_IO_DSYNC;
	return flags;
}

static void op_read(struct prop_task *t, struct prop_file *f, bool direct)
{
	unsigned flags = prop_flags(t, direct, false, false), count;
	struct iovec iov[PROP_CUTS];
	u64 injected = t->p->faults.injected, want;
	struct prop_span s;
	ssize_t n;

	if (!prop_span_allowed(t, f, &s) || (direct && !to_blocks(f, &s)))
		return;
	if (s.length > t->p->op_bytes)
		return;
	want = s.offset < f->size ? min_u64(s.length, f->size - s.offset) : 0;
	memset(t->buf, 0x5a, s.length);
	prop_trace(t->p, "%u: %sread file %u [%llu, +%llu) flags %x", t->number,
		   direct ? "direct " : "", f->number, (unsigned long long)s.offset,
		   (unsigned long long)s.length, flags);
	count = prop_cut(t, t->buf, s.length, direct ? f->block_bytes : 1, iov);
	n = file_preadv(direct ? f->direct[t->number] : f->buffered[t->number], iov, count,
			s.offset, flags);
	if (n == -EAGAIN && flags & FILE_IO_NOWAIT)
		return;
	prop_expect_cause(t, n, injected, "pread");
	if (n < 0)
		return;
	if ((u64)n != want && (u64)n > want)
		prop_fail(t->p, "task %u: read %lld bytes, more than %llu", t->number, (long long)n,
			  (unsigned long long)want);
	if ((u64)n != want && t->p->faults.injected == injected && !(flags & FILE_IO_NOWAIT))
		prop_fail(t->p, "task %u: read %lld bytes, not %llu", t->number, (long long)n,
			  (unsigned long long)want);
	compare(t, f, s.offset, (u64)n, direct ? "direct read" : "read");
	f->hot = s.offset;
}

/* Enters a write into the model. */
void prop_wrote(struct prop_file *f, const u8 *from, u64 offset, u64 n)
{
	memcpy(f->bytes + offset, from, n);
	if (n)
		f->size = max_u64(f->size, offset + n);
}

/*
 * A synchronous write that failed did not say how far it came. Reads back what there is: some
 * of the new bytes, then the old.
 */
void prop_settle(struct prop_task *t, struct prop_file *f, const u8 *from, struct prop_span s)
{
	u64 size = t->alone ? inode_size(f->inode) : f->size, end = s.offset + s.length, n = 0;
	struct prop *p = t->p;

	if (size < f->size || size > max_u64(f->size, end))
		prop_fail(p, "a write of [%llu, +%llu) left size %llu of %llu",
			  (unsigned long long)s.offset, (unsigned long long)s.length,
			  (unsigned long long)size, (unsigned long long)f->size);
	s.length = s.offset < size ? min_u64(end, size) - s.offset : 0;
	for (u64 got = 0; got < s.length;) {
		ssize_t rc = file_pread(f->buffered[t->number], t->buf + got, s.length - got,
					s.offset + got);

		if (rc < 0)
			world_sleep_until(world_now() + NSEC_PER_MSEC);
		else
			got += (u64)rc;
		if (!rc)
			prop_fail(p, "nothing to read before the end of file %u", f->number);
	}
	while (n < s.length && t->buf[n] == from[n])
		n++;
	memcpy(f->bytes + s.offset, from, n);
	f->size = size;
	compare(t, f, s.offset, s.length, "what a failed write left");
}

static void op_write(struct prop_task *t, struct prop_file *f, bool direct)
{
	struct prop *p = t->p;
	bool sync = !direct && f->sync[t->number];
	unsigned flags = prop_flags(t, direct, true, sync), count;
	bool safe = direct || sync || flags & FILE_IO_DSYNC;
	u64 injected = p->faults.injected;
	struct iovec iov[PROP_CUTS];
	const u8 *from;
	struct prop_span s;
	ssize_t n;

	if (!prop_span_allowed(t, f, &s) || (direct && !to_blocks(f, &s)))
		return;
	if (s.length > p->op_bytes)
		return;
	from = p->pool + rng_below(&t->rng, p->pool_bytes - s.length);
	prop_trace(p, "%u: %swrite file %u [%llu, +%llu)%s flags %x", t->number,
		   direct ? "direct " : "", f->number, (unsigned long long)s.offset,
		   (unsigned long long)s.length, sync ? " sync" : "", flags);
	count = prop_cut(t, from, s.length, direct ? f->block_bytes : 1, iov);
	n = file_pwritev(direct ? f->direct[t->number] : f->buffered[t->number], iov, count,
			 s.offset, flags);
	if (n == -EAGAIN && flags & FILE_IO_NOWAIT) {
		prop_check_size(t, f);
		return;
	}
	prop_expect_cause(t, n, injected, "pwrite");
	if ((u64)n != s.length && p->faults.injected == injected && !(flags & FILE_IO_NOWAIT))
		prop_fail(p, "task %u: wrote %lld bytes of %llu", t->number, (long long)n,
			  (unsigned long long)s.length);
	if (n < 0 && safe && (!direct || flags & FILE_IO_DSYNC))
		prop_settle(t, f, from, s);
	else if (n > 0)
		prop_wrote(f, from, s.offset, (u64)n);
	prop_check_size(t, f);
	f->hot = s.offset;
	if (n > 0 && safe)
		prop_check_store(p, f, s.offset, (u64)n);
}

static void op_truncate(struct prop_task *t, struct prop_file *f)
{
	u64 size = f->size;
	int rc;

	switch (rng_below(&t->rng, 8)) {
	case 0:
		size = 0;
		break;
	case 1:
		size = rng_below(&t->rng, f->capacity + 1);
		break;
	case 2: /* up a little */
		size = min_u64(f->capacity, size + prop_scaled(&t->rng, 1, 16 * PAGE_SIZE));
		break;
	case 3:
		size = f->capacity;
		break;
	default: /* down a little */
		size -= min_u64(size, prop_scaled(&t->rng, 1, 16 * PAGE_SIZE));
	}
	size = align_by(&t->rng, size, f->block_bytes);
	prop_trace(t->p, "%u: truncate file %u from %llu to %llu", t->number, f->number,
		   (unsigned long long)f->size, (unsigned long long)size);
	rc = inode_truncate(f->inode, size);
	if (rc)
		prop_fail(t->p, "truncate gave %d", rc);
	if (size < f->size)
		memset(f->bytes + size, 0, f->size - size);
	f->size = size;
	f->hot = size;
	prop_check_size(t, f);
}

static void op_lay_out(struct prop_task *t, struct prop_file *f)
{
	u64 injected = t->p->faults.injected, size = rng_below(&t->rng, f->capacity + 1);
	int rc;

	prop_trace(t->p, "%u: lay out %llu of file %u", t->number, (unsigned long long)size,
		   f->number);
	rc = inode_lay_out(f->inode, size);
	prop_expect_cause(t, rc, injected, "lay out");
	if (!rc)
		f->size = max_u64(f->size, size);
	prop_check_size(t, f);
}

static void op_fsync(struct prop_task *t, struct prop_file *f)
{
	u64 injected = t->p->faults.injected;
	int rc;

	prop_trace(t->p, "%u: fsync file %u%s", t->number, f->number, t->alone ? "" : " shared");
	rc = file_fsync(f->buffered[t->number], prop_chance(&t->rng, 2));
	prop_expect_cause(t, rc, injected, "fsync");
	if (!rc)
		check_stored(t, f);
}

static void op_reopen(struct prop_task *t, struct prop_file *f)
{
	bool sync = prop_chance(&t->rng, 6);

	prop_trace(t->p, "%u: reopen file %u%s", t->number, f->number, sync ? " sync" : "");
	prop_close(f, t->number);
	prop_open(t->p, f, t->number, sync);
}

/* The file goes, whatever is dirty or in flight, and another takes its place. */
static void op_replace(struct prop_task *t, struct prop_file *f)
{
	struct prop *p = t->p;

	if (p->noise)
		return;
	prop_trace(p, "%u: replace file %u", t->number, f->number);
	for (u32 i = 0; i < p->tasks; i++)
		prop_close(f, i);
	inode_destroy(f->inode);
	memset(f->bytes, 0, f->size);
	f->size = f->hot = 0;
	while (prop_create(p, f))
		;
	for (u32 i = 0; i < p->tasks; i++)
		prop_open(p, f, i, false);
}

static void op_advise(struct prop_task *t, struct prop_file *f)
{
	u64 injected = t->p->faults.injected;
	enum file_advice advice = (enum file_advice)rng_below(&t->rng, FILE_ADV_NOREUSE + 1);
	struct prop_span s = span_in(t, 0, f->capacity, f->block_bytes);
	int rc;

	if (prop_chance(&t->rng, 2))
		advice = prop_chance(&t->rng, 2) ? FILE_ADV_DONTNEED : FILE_ADV_WILLNEED;
	if (prop_chance(&t->rng, 4))
		s = (struct prop_span){ prop_chance(&t->rng, 2) ? s.offset : 0, 0 };
	prop_trace(t->p, "%u: advise %d file %u [%llu, +%llu)", t->number, (int)advice, f->number,
		   (unsigned long long)s.offset, (unsigned long long)s.length);
	rc = file_advise(f->buffered[t->number], s.offset, s.length, advice);
	prop_expect_cause(t, rc, injected, "advise");
}

void prop_check_file(struct prop_task *t, struct prop_file *f)
{
	prop_trace(t->p, "%u: check file %u", t->number, f->number);
	prop_check_size(t, f);
	for (u64 at = 0; at < f->size;) {
		u64 injected = t->p->faults.injected;
		u64 length = min_u64(t->p->op_bytes, f->size - at);
		ssize_t n = file_pread(f->buffered[t->number], t->buf, length, at);

		prop_expect_cause(t, n, injected, "pread");
		if (n < 0)
			return;
		if (!n)
			prop_fail(t->p, "nothing to read at %llu of file %u of %llu bytes",
				  (unsigned long long)at, f->number, (unsigned long long)f->size);
		compare(t, f, at, (u64)n, "check");
		at += (u64)n;
	}
}

/* All files held still, everything must be on the devices after engine_sync(). */
static void op_sync_all(struct prop_task *t)
{
	struct prop *p = t->p;
	u64 injected;
	int rc;

	for (u32 i = 0; i < p->files; i++)
		rwsem_lock(&p->file[i].lock);
	injected = p->faults.injected;
	prop_trace(p, "%u: sync all", t->number);
	rc = engine_sync(p->engine);
	prop_expect_cause(t, rc, injected, "engine_sync");
	t->alone = true;
	for (u32 i = 0; i < p->files; i++) {
		if (!rc)
			check_stored(t, &p->file[i]);
		rwsem_unlock(&p->file[i].lock);
	}
}

static void op_drop_caches(struct prop_task *t)
{
	prop_trace(t->p, "%u: drop caches", t->number);
	engine_drop_caches(t->p->engine);
}

static void op_sync(struct prop_task *t)
{
	u64 injected = t->p->faults.injected;

	prop_trace(t->p, "%u: sync", t->number);
	prop_expect_cause(t, engine_sync(t->p->engine), injected, "engine_sync");
}

/* What may be done sharing the file, by weight; above it what needs it alone. */
static void shared_op(struct prop_task *t, struct prop_file *f, u64 dice)
{
	if (dice < 42)
		op_write(t, f, false);
	else if (dice < 77)
		op_read(t, f, false);
	else if (dice < 81)
		op_write(t, f, true);
	else if (dice < 85)
		op_read(t, f, true);
	else if (dice < 89 || t->p->profile->fsync_often)
		op_fsync(t, f);
	else if (dice < 92)
		prop_borrow(t, f);
	else if (dice < 96)
		op_advise(t, f);
	else
		op_reopen(t, f);
}

static void alone_op(struct prop_task *t, struct prop_file *f, u64 dice)
{
	if (dice < 6)
		op_truncate(t, f);
	else if (dice < 7)
		prop_check_file(t, f);
	else if (dice < 10)
		prop_append(t, f);
	else if (dice < 13)
		prop_fallocate(t, f);
	else if (dice < 15)
		prop_seek(t, f);
	else if (prop_chance(&t->rng, 200))
		op_replace(t, f);
	else if (prop_chance(&t->rng, 200))
		op_lay_out(t, f);
	else if (prop_chance(&t->rng, 200))
		prop_unaligned(t, f);
	else
		shared_op(t, f, rng_below(&t->rng, 100));
}

void prop_step(struct prop_task *t)
{
	struct prop *p = t->p;
	struct prop_file *f = &p->file[rng_below(&t->rng, p->files)];
	u64 dice = rng_below(&t->rng, 1000);

	t->started_ns = world_now();
	prop_act(p);
	if (dice < 4) {
		op_sync_all(t);
		return;
	}
	if (dice < 8) {
		op_sync(t);
		return;
	}
	if (dice < 20) {
		op_drop_caches(t);
		return;
	}
	t->alone = !f->stripe_bytes || prop_chance(&t->rng, 4);
	if (t->alone) {
		rwsem_lock(&f->lock);
		alone_op(t, f, rng_below(&t->rng, 100));
		rwsem_unlock(&f->lock);
	} else {
		rwsem_lock_shared(&f->lock);
		shared_op(t, f, rng_below(&t->rng, 100));
		rwsem_unlock_shared(&f->lock);
	}
}

/* Takes no lock: what it reads may be of any moment, but nothing may come of it. */
void prop_noise_step(struct prop_task *t)
{
	struct prop *p = t->p;
	struct prop_file *f = &p->file[rng_below(&t->rng, p->files)];
	struct prop_span s = span_in(t, 0, f->capacity, f->block_bytes);
	u64 injected = p->faults.injected;

	t->started_ns = world_now();
	switch (rng_below(&t->rng, 10)) {
	case 0:
		op_drop_caches(t);
		break;
	case 1:
		op_sync(t);
		break;
	case 2:
		prop_expect_cause(t, file_fsync(f->buffered[t->number], false), injected, "fsync");
		break;
	case 3:
		if (to_blocks(f, &s) && s.length <= p->op_bytes)
			prop_expect_cause(
				t, file_pread(f->direct[t->number], t->buf, s.length, s.offset),
				injected, "direct pread");
		break;
	case 4:
	case 5:
		op_advise(t, f);
		break;
	default:
		prop_expect_cause(t, file_pread(f->buffered[t->number], t->buf, s.length, s.offset),
				  injected, "pread");
	}
}
