/* SPDX-License-Identifier: MIT */
/* Operations that are more than reading and writing: see property_ops.c. */
#include "base/bits.h"
#include "file/tenant.h"
#include "property.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/*
 * What an operation that failed left of a range: takes it for the model, if each byte is the old
 * one or zero.
 */
static void reread(struct prop_task *t, struct prop_file *f, u64 offset, u64 length)
{
	while (length) {
		u64 n = min_u64(length, t->p->op_bytes);
		ssize_t got = file_pread(f->buffered[t->number], t->buf, n, offset);

		if (got < 0)
			world_sleep_until(world_now() + NSEC_PER_MSEC);
		if (!got)
			prop_fail(t->p, "nothing to read at %llu", (unsigned long long)offset);
		for (ssize_t i = 0; i < got; i++) {
			u8 *byte = &f->bytes[offset + (u64)i];

			if (t->buf[i] && t->buf[i] != *byte)
				prop_fail(t->p, "byte %llu is %02x, not %02x or zero",
					  (unsigned long long)offset + (u64)i, t->buf[i], *byte);
			*byte = t->buf[i];
		}
		offset += (got > 0 ? (u64)got : 0);
		length -= (got > 0 ? (u64)got : 0);
	}
}

/* At the end of the file; alone, so that the model knows where that is. */
void prop_append(struct prop_task *t, struct prop_file *f)
{
	struct prop *p = t->p;
	u64 injected = p->faults.injected, length = prop_scaled(&t->rng, 1, p->op_bytes), at = 0;
	const u8 *from = p->pool + rng_below(&t->rng, p->pool_bytes - length);
	unsigned flags = prop_flags(t, false, true, f->sync[t->number]), count;
	struct iovec iov[PROP_CUTS];
	u64 size = f->size;
	ssize_t n;

	if (size + length > f->capacity)
		return;
	prop_trace(p, "%u: append %llu to file %u of %llu, flags %x", t->number,
		   (unsigned long long)length, f->number, (unsigned long long)size, flags);
	count = prop_cut(t, from, length, 1, iov);
	n = file_append(f->buffered[t->number], iov, count, flags, &at);
	if (n == -EAGAIN && flags & FILE_IO_NOWAIT) {
		prop_check_size(t, f);
		return;
	}
	prop_expect_cause(t, n, injected, "append");
	if (n > 0 && at != size)
		prop_fail(p, "appended at %llu of %llu", (unsigned long long)at,
			  (unsigned long long)size);
	if (n < 0 && (flags & FILE_IO_DSYNC || f->sync[t->number]))
		prop_settle(t, f, from, (struct prop_span){ size, length });
	else if (n > 0)
		prop_wrote(f, from, size, (u64)n);
	prop_check_size(t, f);
}

void prop_fallocate(struct prop_task *t, struct prop_file *f)
{
	static const unsigned modes[] = { 0,
					  FILE_KEEP_SIZE,
					  FILE_PUNCH_HOLE | FILE_KEEP_SIZE,
					  FILE_PUNCH_HOLE | FILE_KEEP_SIZE,
					  FILE_ZERO_RANGE,
					  FILE_ZERO_RANGE | FILE_KEEP_SIZE };
	unsigned mode = modes[rng_below(&t->rng, ARRAY_SIZE(modes))];
	u64 injected = t->p->faults.injected, end, was = f->size;
	struct prop_span s = prop_span_anywhere(t, f);
	int rc;

	prop_trace(t->p, "%u: fallocate mode %x file %u [%llu, +%llu)", t->number, mode, f->number,
		   (unsigned long long)s.offset, (unsigned long long)s.length);
	rc = file_fallocate(f->buffered[t->number], mode, s.offset, s.length);
	prop_expect_cause(t, rc, injected, "fallocate");
	end = s.offset + s.length;
	if (!rc && !(mode & FILE_KEEP_SIZE))
		f->size = max_u64(f->size, end);
	if (mode & (FILE_PUNCH_HOLE | FILE_ZERO_RANGE)) {
		u64 n = s.offset < was ? min_u64(end, was) - s.offset : 0;

		if (rc) /* an edge could not be read: the rest may be zeroed or not */
			reread(t, f, s.offset, n);
		else
			memset(f->bytes + s.offset, 0, n);
	}
	f->hot = s.offset;
	prop_check_size(t, f);
}

/* What is not zero is data; what is in a hole is zero; and the ends of both are in the file. */
void prop_seek(struct prop_task *t, struct prop_file *f)
{
	u64 at = rng_below(&t->rng, f->capacity), end = f->size;
	struct file *file = f->buffered[t->number];
	s64 data = file_seek(file, at, FILE_SEEK_DATA), hole = file_seek(file, at, FILE_SEEK_HOLE);
	u64 page = round_down(at, PAGE_SIZE);

	prop_trace(t->p, "%u: seek in file %u from %llu: data %lld, hole %lld", t->number,
		   f->number, (unsigned long long)at, (long long)data, (long long)hole);
	if (at >= end) {
		if (data != -ENXIO || hole != -ENXIO)
			prop_fail(t->p, "past the end there is data at %lld and a hole at %lld",
				  (long long)data, (long long)hole);
		return;
	}
	if (data != -ENXIO && (data < (s64)at || data >= (s64)end))
		prop_fail(t->p, "data at %lld", (long long)data);
	if (hole < (s64)at || hole > (s64)end || (data == (s64)at && hole == (s64)at))
		prop_fail(t->p, "a hole at %lld", (long long)hole);
	for (u64 i = data == (s64)at ? at : page; i < (data == -ENXIO ? end : (u64)data); i++)
		if (f->bytes[i])
			prop_fail(t->p, "byte %llu of a hole is %02x", (unsigned long long)i,
				  f->bytes[i]);
	page = round_down((u64)hole, PAGE_SIZE);
	for (u64 i = page; (u64)hole < end && i < min_u64(page + PAGE_SIZE, end); i++)
		if (f->bytes[i])
			prop_fail(t->p, "byte %llu of the hole at %lld is %02x",
				  (unsigned long long)i, (long long)hole, f->bytes[i]);
}

/* Bytes on loan are those of the file, and stay in memory whatever others do with the cache. */
void prop_borrow(struct prop_task *t, struct prop_file *f)
{
	u64 injected = t->p->faults.injected, at;
	unsigned flags = prop_chance(&t->rng, 4) ? FILE_IO_NOWAIT : 0, pieces;
	struct file_loan *loan;
	struct iovec iov[PROP_CUTS];
	struct prop_span s;
	ssize_t n;

	if (!prop_span_allowed(t, f, &s))
		return;
	at = s.offset;
	pieces = 1 + (unsigned)rng_below(&t->rng, PROP_CUTS);
	n = file_borrow(f->buffered[t->number], s.offset, s.length, iov, pieces, flags, &loan);
	prop_trace(t->p, "%u: borrow file %u [%llu, +%llu) flags %x: %lld", t->number, f->number,
		   (unsigned long long)s.offset, (unsigned long long)s.length, flags, (long long)n);
	if (n == -ENOBUFS || (n == -EAGAIN && flags))
		return;
	prop_expect_cause(t, n, injected, "borrow");
	if (n < 0)
		return;
	if (s.offset + (u64)n > max_u64(f->size, s.offset) || (u64)n > s.length)
		prop_fail(t->p, "borrowed %lld bytes", (long long)n);
	if (prop_chance(&t->rng, 4))
		engine_drop_caches(t->p->engine);
	if (prop_chance(&t->rng, 4))
		world_sleep_until(world_now() + prop_scaled(&t->rng, 1, NSEC_PER_MSEC));
	for (unsigned i = 0; at < s.offset + (u64)n; at += iov[i++].iov_len)
		if (memcmp(iov[i].iov_base, f->bytes + at, iov[i].iov_len))
			prop_fail(t->p, "piece %u on loan, at %llu, differs", i,
				  (unsigned long long)at);
	file_give_back(loan);
}

/* Direct I/O knows only whole blocks. */
void prop_unaligned(struct prop_task *t, struct prop_file *f)
{
	u64 offset = rng_below(&t->rng, f->capacity - PAGE_SIZE), length = PAGE_SIZE;
	ssize_t rc;

	if (offset % f->block_bytes == 0)
		length -= 1 + rng_below(&t->rng, f->block_bytes - 1);
	rc = prop_chance(&t->rng, 2)
		     ? file_pread(f->direct[t->number], t->buf, length, offset)
		     : file_pwrite(f->direct[t->number], t->p->pool, length, offset);
	if (rc != -EINVAL)
		prop_fail(t->p, "unaligned direct I/O gave %lld", (long long)rc);
}

void prop_add_tenants(struct prop *p)
{
	struct rng *r = &p->tenant_rng;
	u32 count = prop_chance(r, 2) ? 0 : (u32)prop_between(r, 1, PROP_TENANTS);
	char name[16];

	p->tenants = 0;
	for (u32 i = 0; i < count; i++) {
		struct tenant_settings s = {
			.dirty_bytes = prop_chance(r, 3) ? 0 : prop_scaled(r, 2, 64) * PAGE_SIZE,
			.floor_bytes = prop_chance(r, 2) ? 0 : prop_scaled(r, 1, 16) * PAGE_SIZE,
			.memory_bytes = prop_chance(r, 2) ? 0 : prop_scaled(r, 1, 256) * PAGE_SIZE,
		};

		snprintf(name, sizeof(name), "t%u", i);
		if (!engine_add_tenant(p->engine, name, &s, &p->tenant[p->tenants]))
			p->tenants++;
	}
}

void prop_act(struct prop *p)
{
	struct rng *r = &p->tenant_rng;
	char name[32];
	u32 i;

	if (!p->tenants)
		return;
	i = (u32)rng_below(r, p->tenants + 1);
	engine_act_for(i < p->tenants ? p->tenant[i] : NULL);
	if (i == p->tenants || !prop_chance(r, 60))
		return;
	/* its place may be taken at once by another, who then is acted for */
	snprintf(name, sizeof(name), "u%llu", (unsigned long long)rng_u64(r));
	engine_close_tenant(p->engine, p->tenant[i]);
	if (engine_add_tenant(p->engine, name, &(struct tenant_settings){ 0 }, &p->tenant[i]))
		p->tenant[i] = p->tenant[--p->tenants];
}
