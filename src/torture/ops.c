// SPDX-License-Identifier: MIT
/*
 * One operation after the other, each with what the model says of it. Reads meet everything that
 * others do to a file. Writers meet writers, but what makes a file shorter, or ends where only
 * the engine could say, has the file to itself, so that there is one right size afterwards.
 */
#include "base/bits.h"
#include "torture/inner.h"
#include "writeback/wb.h"
#include <errno.h>
#include <string.h>

void op_enter(struct tfile *f)
{
	f->model.active++;
}

void op_leave(struct tfile *f)
{
	if (!--f->model.active)
		model_synced(&f->model, 0);
}

void op_cause(struct ttask *task, s64 rc, unsigned flags, const char *what)
{
	struct torture *t = task->t;
	const struct op *op = &t->op[task->op];
	bool ok = rc >= 0, writes = op->kind == OP_WRITE || op->kind == OP_APPEND;

	task->failing = task->failing || atomic_load(&engine_writeback(t->engine)->failing);
	if (rc == -EIO || rc == -ENODEV)
		ok = t->injected > (t->lossy ? 0 : task->injected) || (writes && task->failing);
	else if (rc == -ENOMEM)
		ok = t->refused > task->refused || task->failing;
	else if (rc == -ENOSPC)
		ok = t->config->faults & TORTURE_FULL;
	else if (rc == -EAGAIN)
		ok = flags & FILE_IO_NOWAIT;
	else if (rc == -EOPNOTSUPP)
		ok = t->file[op->file].kind == DISK_BARE && op->kind == OP_TRUNCATE;
	if (!ok)
		torture_fail(t, "%s gave %lld without any reason", what, (long long)rc);
}

void op_set_size(struct torture *t, struct tfile *f, u64 least, u64 most)
{
	f->model.size_least = least;
	f->model.size_most = most;
	f->safe_least = min_u64(f->safe_least, least);
	f->safe_most = max_u64(f->safe_most, most);
	for (u32 i = 0; i < t->tasks; i++) {
		struct reading *r = &t->task[i].reading;

		if (r->file != f)
			continue;
		r->least = min_u64(r->least, least);
		r->most = max_u64(r->most, most);
	}
}

void op_check_size(struct torture *t, struct tfile *f)
{
	u64 size = inode_size(f->inode);

	if (size != f->model.size_least)
		torture_fail(t, "file %u is %llu bytes long, not %llu", f->number,
			     (unsigned long long)size, (unsigned long long)f->model.size_least);
}

void op_settle_size(struct torture *t, struct tfile *f, u64 least, u64 most)
{
	u64 size = inode_size(f->inode);

	if (size < least || size > most)
		torture_fail(t, "file %u is %llu bytes long, not from %llu to %llu", f->number,
			     (unsigned long long)size, (unsigned long long)least,
			     (unsigned long long)most);
	op_set_size(t, f, size, size);
}

/* Cuts a buffer into pieces; direct ones at blocks. */
static u32 cut(const struct op *op, const struct tfile *f, u8 *bytes, u64 length, struct iovec *iov)
{
	u64 unit = op->direct ? f->block_bytes : 1, at = 0, piece;
	u32 n = 0;

	piece = max_u64(round_up(length / op->cuts, unit), unit);
	while (at < length) {
		u64 here = n == CUTS_MAX - 1 ? length - at : min_u64(piece, length - at);

		iov[n++] = (struct iovec){ bytes + at, here };
		at += here;
	}
	return n;
}

/* --- reading */

static void check_count(struct ttask *task, const struct op *op, u64 length, ssize_t n)
{
	const struct reading *r = &task->reading;
	u64 most = r->most > op->offset ? min_u64(length, r->most - op->offset) : 0;
	u64 least = r->least > op->offset ? min_u64(length, r->least - op->offset) : 0;
	bool cut_short = op->flags & FILE_IO_NOWAIT || task->t->injected > task->injected ||
			 task->t->refused > task->refused;

	if ((u64)n > most)
		torture_fail(task->t, "read %zd bytes of a file of %llu at most", n,
			     (unsigned long long)r->most);
	if ((u64)n < least && (!cut_short || !n))
		torture_fail(task->t, "read only %zd bytes of a file of %llu at least", n,
			     (unsigned long long)r->least);
}

static void check_bytes(struct ttask *task, struct tfile *f, u64 offset, const u8 *bytes, u64 n,
			u64 start, const char *what)
{
	u64 wild = task->reading.wild, good;

	if (offset >= wild || task->t->lossy)
		return;
	n = min_u64(n, wild - offset);
	good = model_allows(&f->model, offset, bytes, n, start, false);
	if (good == n) {
		good = model_allows_sectors(&f->model, offset, bytes, n, start);
		if (good < n)
			torture_fail(task->t,
				     "%s: the sector at %llu of file %u has bytes of two moments",
				     what, (unsigned long long)(offset + good), f->number);
	}
	if (good < n)
		torture_fail(task->t,
			     "%s: byte %llu of file %u is %02x, which nobody has left there", what,
			     (unsigned long long)(offset + good), f->number, bytes[good]);
}

static void begin_reading(struct ttask *task, struct tfile *f)
{
	task->reading = (struct reading){ .file = f,
					  .least = f->model.size_least,
					  .most = f->model.size_most,
					  .wild = f->forgets   ? 0
						  : f->appends ? f->append_base
							       : MODEL_NEVER };
}

static void op_read(struct ttask *task, struct tfile *f, const struct op *op)
{
	struct torture *t = task->t;
	struct op o = *op;
	struct iovec iov[CUTS_MAX];
	u64 start;
	ssize_t n;

	if (o.direct) {
		o.offset = round_down(o.offset, f->block_bytes);
		o.length = round_down(o.length, f->block_bytes);
		o.flags = 0;
	}
	if (!o.length)
		return;
	if (f->sync[task->number])
		o.flags &= ~(unsigned)FILE_IO_NOWAIT;
	start = model_tick(&f->model);
	begin_reading(task, f);
	n = file_preadv(f->open[task->number][o.direct], iov, cut(&o, f, task->buf, o.length, iov),
			o.offset, o.flags);
	op_cause(task, n, o.flags, "read");
	if (n >= 0)
		check_count(task, &o, o.length, n);
	if (n > 0 && t->config->sabotage == SABOTAGE_READ && draw_one_in(&t->fault_rng, 16))
		task->buf[n / 2] ^= 0x5a;
	if (n > 0)
		check_bytes(task, f, o.offset, task->buf, (u64)n, start, "read");
	task->reading.file = NULL;
}

/* Reads a file from end to end, and wants each byte right. */
void op_check_whole(struct ttask *task, struct tfile *f)
{
	u64 start = model_tick(&f->model), size = f->model.size_least;

	op_check_size(task->t, f);
	task->reading.wild = MODEL_NEVER;
	for (u64 at = 0; at < size;) {
		ssize_t n = file_pread(f->open[0][0], task->buf,
				       min_u64(task->t->op_bytes, size - at), at);

		if (n <= 0)
			torture_fail(task->t, "the last look at %llu of file %u gave %zd",
				     (unsigned long long)at, f->number, n);
		check_bytes(task, f, at, task->buf, (u64)n, start, "the last look");
		at += (u64)n;
	}
}

static void op_borrow(struct ttask *task, struct tfile *f, const struct op *op)
{
	struct torture *t = task->t;
	struct iovec iov[CUTS_MAX];
	struct file_loan *loan;
	u64 start, at = op->offset;
	ssize_t n;

	rwsem_lock(&f->lock);
	start = model_tick(&f->model);
	begin_reading(task, f);
	n = file_borrow(f->open[task->number][0], at, op->length, iov, op->cuts, op->flags, &loan);
	if (n != -ENOBUFS)
		op_cause(task, n, op->flags, "borrow");
	if (n > 0) {
		if (op->value & 1)
			engine_drop_caches(t->engine);
		if (op->value & 2)
			world_sleep_until(world_now() + op->value);
		for (u32 i = 0; at < op->offset + (u64)n; at += iov[i++].iov_len)
			check_bytes(task, f, at, iov[i].iov_base, iov[i].iov_len, start, "loan");
	}
	if (n >= 0)
		file_give_back(loan);
	task->reading.file = NULL;
	rwsem_unlock(&f->lock);
}

/* --- writing */

/*
 * Locks the file for a write; true: alone, since it will be longer, or since a write past the cache
 * and one through it, of parts of one block, may undo each other.
 */
static bool lock_for_write(struct tfile *f, u64 end, bool direct)
{
	rwsem_lock_shared(&f->lock);
	if (end <= f->model.size_least && !direct)
		return false;
	rwsem_unlock_shared(&f->lock);
	rwsem_lock(&f->lock);
	return true;
}

static bool may_be_short(struct ttask *task, unsigned flags)
{
	return flags & FILE_IO_NOWAIT || task->t->injected > task->injected ||
	       task->t->refused > task->refused || task->t->config->faults & TORTURE_FULL;
}

static void wrote(struct ttask *task, struct tfile *f, const struct op *op, u32 version, ssize_t n,
		  bool safe)
{
	u64 end = op->offset + op->length, size = f->model.size_least;

	op_cause(task, n, op->flags, "write");
	if (n == 0 || (n > 0 && (u64)n != op->length && !may_be_short(task, op->flags)))
		torture_fail(task->t, "wrote %zd bytes of %llu", n, (unsigned long long)op->length);
	if (n > 0)
		end = op->offset + (u64)n;
	else if (!safe && !op->direct)
		end = op->offset; /* nothing */
	model_end(&f->model, version, op->offset, end, n < 0, safe);
	if (end <= size)
		return;
	if (n > 0)
		op_set_size(task->t, f, end, end);
	else
		op_settle_size(task->t, f, size, end);
}

static void op_write(struct ttask *task, struct tfile *f, const struct op *op)
{
	struct torture *t = task->t;
	struct op o = *op;
	struct iovec iov[CUTS_MAX];
	u32 version;
	bool alone, safe;
	ssize_t n;

	/* such a store cannot be freed of what a failed write past its end has left */
	if (f->kind == DISK_BARE)
		o.direct = false;
	if (o.direct) {
		o.offset = round_down(o.offset, f->block_bytes);
		o.length = round_down(o.length, f->block_bytes);
		o.flags &= FILE_IO_DSYNC;
	}
	if (!o.length)
		return;
	safe = o.flags & FILE_IO_DSYNC || f->sync[task->number];
	if (safe)
		o.flags &= ~(unsigned)FILE_IO_NOWAIT;
	alone = lock_for_write(f, o.offset + o.length, o.direct);
	version = model_begin(&f->model, o.offset, o.offset + o.length, t->pool + o.value);
	if (alone)
		op_set_size(t, f, f->model.size_least,
			    max_u64(f->model.size_least, o.offset + o.length));
	task->writing = !safe && !o.direct;
	n = file_pwritev(f->open[task->number][o.direct], iov,
			 cut(&o, f, t->pool + o.value, o.length, iov), o.offset, o.flags);
	task->writing = false;
	wrote(task, f, &o, version, n, safe);
	if (alone) {
		op_set_size(t, f, f->model.size_least, f->model.size_least);
		op_check_size(t, f);
		rwsem_unlock(&f->lock);
	} else {
		rwsem_unlock_shared(&f->lock);
	}
}

/* From now on readers behind the end of the file may see anything of the append. */
static void begin_append(struct torture *t, struct tfile *f, u64 length)
{
	if (!f->appends++)
		f->append_base = f->model.size_least;
	op_set_size(t, f, f->model.size_least, f->model.size_most + length);
	for (u32 i = 0; i < t->tasks; i++)
		if (t->task[i].reading.file == f)
			t->task[i].reading.wild = min_u64(t->task[i].reading.wild, f->append_base);
}

static void appended(struct ttask *task, struct tfile *f, const struct op *op, u64 start, u64 at,
		     ssize_t n, bool safe)
{
	struct model *m = &f->model;
	u64 size = m->size_least;
	u32 version;

	op_cause(task, n, op->flags, "append");
	if (n == 0 || (n > 0 && (u64)n != op->length && !may_be_short(task, op->flags)))
		torture_fail(task->t, "appended %zd bytes of %llu", n,
			     (unsigned long long)op->length);
	if (n > 0 && (at < f->append_base || at + (u64)n > m->size_most))
		torture_fail(task->t, "appended at %llu, between %llu and %llu",
			     (unsigned long long)at, (unsigned long long)f->append_base,
			     (unsigned long long)m->size_most);
	if (n > 0) {
		version = model_begin(m, at, at + (u64)n, task->t->pool + op->value);
		m->version[version].start = start;
		model_end(m, version, at, at + (u64)n, false, safe);
		size = max_u64(size, at + (u64)n);
	} else if (safe) { /* alone: it was accepted, and is not on the disk */
		u64 now = inode_size(f->inode);

		if (now < size || now > size + op->length)
			torture_fail(task->t, "file %u is %llu bytes long after an append to %llu",
				     f->number, (unsigned long long)now, (unsigned long long)size);
		version = model_begin(m, size, now, task->t->pool + op->value);
		m->version[version].start = start;
		model_end(m, version, size, now, true, false);
		size = now;
	}
	op_set_size(task->t, f, size, --f->appends ? m->size_most : size);
}

static void op_append(struct ttask *task, struct tfile *f, const struct op *op)
{
	struct torture *t = task->t;
	struct op o = *op;
	struct iovec iov[CUTS_MAX];
	bool safe = o.flags & FILE_IO_DSYNC || f->sync[task->number];
	u64 at = 0, start;
	ssize_t n;

	o.direct = false;
	if (safe)
		o.flags &= ~(unsigned)FILE_IO_NOWAIT;
	if (safe)
		rwsem_lock(&f->lock);
	else
		rwsem_lock_shared(&f->lock);
	if (f->model.size_most + o.length <= f->model.capacity) {
		start = model_tick(&f->model);
		begin_append(t, f, o.length);
		task->writing = !safe;
		n = file_append(f->open[task->number][0], iov,
				cut(&o, f, t->pool + o.value, o.length, iov), o.flags, &at);
		task->writing = false;
		appended(task, f, &o, start, at, n, safe);
		if (!f->appends)
			op_check_size(t, f);
	}
	if (safe)
		rwsem_unlock(&f->lock);
	else
		rwsem_unlock_shared(&f->lock);
}

/* --- safety */

/*
 * Whether all that was there when a sync began is safe when it has succeeded. Not what was given
 * up; and data whose write-out failed and that was then cut off is nobody's error, though the cut
 * may be lost with the power, and old data come back in place of both.
 */
static bool counts(const struct ttask *task, const struct tfile *f, u64 cuts)
{
	return !f->forgets &&
	       (task->injected == task->t->injected || (cuts == f->cuts && !(cuts & 1)));
}

static void op_fsync(struct ttask *task, struct tfile *f, const struct op *op)
{
	u64 start = model_tick(&f->model), cuts = f->cuts;
	int rc;

	begin_reading(task, f); /* to know the sizes meanwhile */
	rc = file_fsync(f->open[task->number][0], op->flags & 1);
	op_cause(task, rc, 0, "fsync");
	if ((!rc && counts(task, f, cuts)) || task->t->config->sabotage == SABOTAGE_FSYNC) {
		model_synced(&f->model, start);
		f->safe_least = task->reading.least;
		f->safe_most = task->reading.most;
	}
	task->reading.file = NULL;
}

/* Leaves a sync with progress after so many looks at it; 0: never. */
static int leave_after(void *ctx, u64 pages)
{
	u32 *looks = ctx;

	(void)pages;
	return *looks && !--*looks ? -ECANCELED : 0;
}

static void op_sync(struct ttask *task, const struct op *op)
{
	struct torture *t = task->t;
	u64 start = ++t->clock, cuts[FILES_MAX];
	u32 looks = op->flags / 2;
	int rc;

	for (u32 i = 0; i < t->files; i++)
		cuts[i] = t->file[i].cuts;

	if (op->flags & 1)
		rc = engine_sync_progress(t->engine, leave_after, &looks);
	else
		rc = engine_sync(t->engine);
	if (rc == -ECANCELED)
		return;
	op_cause(task, rc, 0, "sync");
	for (u32 i = 0; !rc && i < t->files; i++)
		if (counts(task, &t->file[i], cuts[i]))
			model_synced(&t->file[i].model, start);
}

void op_open(struct torture *t, struct tfile *f, u32 task, bool sync)
{
	unsigned flags[2] = { sync ? FILE_SYNC : 0, FILE_DIRECT | (sync ? FILE_SYNC : 0) };

	f->sync[task] = sync;
	for (u32 i = 0; i < 2; i++) {
		u64 refused;

		do {
			refused = t->refused;
			if (!file_open(f->inode, flags[i], &f->open[task][i]))
				break;
			if (t->refused == refused)
				torture_fail(t, "a file cannot be opened");
		} while (true);
	}
}

static void op_reopen(struct ttask *task, struct tfile *f, const struct op *op)
{
	file_close(f->open[task->number][0]);
	file_close(f->open[task->number][1]);
	op_open(task->t, f, task->number, op->flags < 3);
}

/* --- the engine as a whole */

static void op_resize(struct ttask *task, const struct op *op)
{
	struct torture *t = task->t;
	const struct engine_config *e = &t->engine_config;
	u64 least = e->reserve_bytes / PAGE_SIZE + 64, left;
	u64 most = max_u64(e->max_memory_bytes / PAGE_SIZE, least);
	u64 pages = least + op->value % (most - least + 1);
	int rc = engine_resize(t->engine, pages * PAGE_SIZE, op->pause_ns, &left);

	if (rc == -EINVAL || rc == -EAGAIN)
		return;
	op_cause(task, rc, 0, "resize");
}

static void op_set_vm(struct ttask *task, const struct op *op)
{
	struct bdi_settings bdi;
	struct vm_settings vm;

	bdi_settings_init(&bdi);
	bdi.read_ahead_kb = 4u << op->flags;
	bdi.min_ratio = (u32)(op->value % 3 * BDI_RATIO_ALL / 8);
	bdi.max_ratio = (u32)(BDI_RATIO_ALL / (1 + op->value % 4));
	if (op->flags & 2 &&
	    engine_set_bdi(task->t->engine, (u32)op->value % task->t->devices, &bdi))
		torture_fail(task->t, "the part of a device that is right was refused");
	engine_vm(task->t->engine, &vm);
	vm.dirty_bytes = (2 + op->value % 128) * PAGE_SIZE;
	vm.dirty_background_bytes = op->flags & 1 ? vm.dirty_bytes / 2 : PAGE_SIZE;
	if (engine_set_vm(task->t->engine, &vm))
		torture_fail(task->t, "limits that are right were refused");
}

/* All that is not on the disk goes: the file is what the disk has. */
static void op_forget(struct ttask *task, struct tfile *f)
{
	struct torture *t = task->t;

	rwsem_lock(&f->lock);
	/* who reads meanwhile may see what is there, or what goes */
	f->forgets = true;
	for (u32 i = 0; i < t->tasks; i++)
		if (t->task[i].reading.file == f)
			t->task[i].reading.wild = 0;
	op_cause(task, inode_forget(f->inode), 0, "forget");
	f->forgets = false;
	faults_look(t, f, true);
	life_check_size(t, f, inode_size(f->inode));
	life_model(t, f);
	op_check_size(t, f);
	rwsem_unlock(&f->lock);
}

void op_do(struct ttask *task, const struct op *op)
{
	struct tfile *f = &task->t->file[op->file];
	struct file *file = f->open[task->number][0];

	op_enter(f);
	switch (op->kind) {
	case OP_WRITE:
		op_write(task, f, op);
		break;
	case OP_READ:
		op_read(task, f, op);
		break;
	case OP_APPEND:
		op_append(task, f, op);
		break;
	case OP_BORROW:
		op_borrow(task, f, op);
		break;
	case OP_FSYNC:
		op_fsync(task, f, op);
		break;
	case OP_SYNC_RANGE:
		op_cause(task, file_sync_range(file, op->offset, op->length, op->flags), 0,
			 "sync_range");
		break;
	case OP_ADVISE:
		op_cause(task,
			 file_advise(file, op->offset, op->length, (enum file_advice)op->flags), 0,
			 "advise");
		break;
	case OP_SYNC:
		op_sync(task, op);
		break;
	case OP_DROP:
		engine_drop_caches(task->t->engine);
		break;
	case OP_RESIZE:
		op_resize(task, op);
		break;
	case OP_SET_VM:
		op_set_vm(task, op);
		break;
	case OP_FORGET:
		op_forget(task, f);
		break;
	case OP_TELL:
		watch_unsafe(task->t);
		break;
	case OP_TENANT:
		op_tenant(task, f, op);
		break;
	case OP_REOPEN:
		op_reopen(task, f, op);
		break;
	default:
		op_space(task, f, op);
	}
	op_leave(f);
}
