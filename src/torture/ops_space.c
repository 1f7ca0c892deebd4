// SPDX-License-Identifier: MIT
/* Operations on a file's size and holes. All have the file to themselves. */
#include "base/bits.h"
#include "torture/inner.h"
#include <errno.h>
#include <string.h>

static void op_truncate(struct ttask *task, struct tfile *f, const struct op *op)
{
	struct torture *t = task->t;
	u64 old = f->model.size_least, size = op->offset;
	u32 version;
	int rc;

	version = model_begin(&f->model, min_u64(size, old), f->model.capacity, NULL);
	op_set_size(t, f, min_u64(size, old), max_u64(size, old));
	rc = file_truncate(f->open[task->number][0], size);
	op_cause(task, rc, 0, "truncate");
	model_end(&f->model, version, min_u64(size, old), f->model.capacity, rc, false);
	if (rc)
		size = old;
	op_set_size(t, f, size, size);
	op_check_size(t, f);
}

static void op_fallocate(struct ttask *task, struct tfile *f, const struct op *op)
{
	struct torture *t = task->t;
	u64 old = f->model.size_least, end = op->offset + op->length, zeroed = op->offset;
	bool grows = !(op->flags & FILE_KEEP_SIZE);
	u64 new = grows ? max_u64(old, end) : old;
	u32 version;
	int rc;

	if (op->flags & (FILE_PUNCH_HOLE | FILE_ZERO_RANGE))
		zeroed = max_u64(op->offset, min_u64(end, old));
	version = model_begin(&f->model, op->offset, zeroed, NULL);
	op_set_size(t, f, old, new);
	rc = file_fallocate(f->open[task->number][0], op->flags, op->offset, op->length);
	op_cause(task, rc, 0, "fallocate");
	model_end(&f->model, version, op->offset, zeroed, rc, false);
	if (rc)
		op_settle_size(t, f, old, new);
	else
		op_set_size(t, f, new, new);
	op_check_size(t, f);
}

/* [from, to) is a hole: it must read as zeros. */
static void check_hole(struct ttask *task, struct tfile *f, u64 from, u64 to, u64 start)
{
	u64 good;

	if (from >= to || task->t->lossy)
		return;
	memset(task->t->image, 0, to - from);
	good = model_allows(&f->model, from, task->t->image, to - from, start, false);
	if (good < to - from)
		torture_fail(task->t, "byte %llu of file %u is in a hole, but was written",
			     (unsigned long long)(from + good), f->number);
}

static void op_seek(struct ttask *task, struct tfile *f, const struct op *op)
{
	struct torture *t = task->t;
	u64 at = op->offset, size = f->model.size_least, start = model_tick(&f->model);
	s64 data = file_seek(f->open[task->number][0], at, FILE_SEEK_DATA);
	s64 hole = file_seek(f->open[task->number][0], at, FILE_SEEK_HOLE);

	if (at >= size) {
		if (data != -ENXIO || hole != -ENXIO)
			torture_fail(t, "past the end of file %u: data at %lld, a hole at %lld",
				     f->number, (long long)data, (long long)hole);
		return;
	}
	if (data != -ENXIO && (data < (s64)at || data >= (s64)size))
		torture_fail(t, "data at %lld of file %u", (long long)data, f->number);
	if (hole < (s64)at || hole > (s64)size)
		torture_fail(t, "a hole at %lld of file %u", (long long)hole, f->number);
	check_hole(task, f, at, data == -ENXIO ? size : (u64)data, start);
	check_hole(task, f, (u64)hole, min_u64(round_up((u64)hole + 1, PAGE_SIZE), size), start);
}

void op_space(struct ttask *task, struct tfile *f, const struct op *op)
{
	rwsem_lock(&f->lock);
	f->cuts++;
	if (op->kind == OP_TRUNCATE)
		op_truncate(task, f, op);
	else if (op->kind == OP_FALLOCATE)
		op_fallocate(task, f, op);
	else
		op_seek(task, f, op);
	f->cuts++;
	rwsem_unlock(&f->lock);
}
