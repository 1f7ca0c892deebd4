// SPDX-License-Identifier: MIT
/*
 * Doing harm. Rules say which I/Os fail or come late; they are asked when an I/O is sent (how late)
 * and when it is over (whether it failed). The same two moments count down to the next look at
 * the disks: at that instant images are made of what the disks might hold, some for a power loss
 * and one for a killed process, and held against the models. The run then goes on, so that
 * one run stands for many that ended; or this life of it ends here, with such an image.
 */
#include "base/alloc.h"
#include "base/bits.h"
#include "torture/inner.h"
#include <errno.h>
#include <string.h>

#define IMAGES 3

static _Thread_local struct torture *current;

static bool rule_holds(struct torture *t, struct rule *r, const struct io *io, u32 kinds)
{
	const struct disk *d = &t->disk[r->device];

	if (!(r->kind & kinds) || !r->left || store_device(io->store) != d->device)
		return false;
	if (world_now() > r->until_ns) {
		r->kind = 0;
		return false;
	}
	if (r->kind == TORTURE_GONE || r->kind == TORTURE_HANG)
		return true;
	if (!(r->ops >> io->op & 1) || rng_below(&t->fault_rng, r->one_in))
		return false;
	if (io->op != IO_FLUSH &&
	    (io->offset_bytes >= r->to || io->offset_bytes + io->length_bytes <= r->from))
		return false;
	if (r->left != ~0ull)
		r->left--;
	return true;
}

/*
 * Whether a rule refuses the calls (of store.h, that are no I/O) of an operation: all of them or
 * none, so that it has not happened by half.
 */
static int refuses_call(void *ctx, struct disk *d)
{
	struct torture *t = ctx;
	u64 id = world_task_id();
	struct rng rng;
	u32 task = 0;

	while (task < t->tasks && t->task[task].id != id)
		task++;
	for (u32 i = 0; i < RULES_MAX && task < t->tasks; i++) {
		const struct rule *r = &t->rule[i];

		rng_init(&rng, t->config->seed ^ ((u64)t->task[task].op << 8 | i));
		if (r->kind != TORTURE_EIO || !(r->ops & RULE_CALLS) || !r->left ||
		    world_now() > r->until_ns || &t->disk[r->device] != d ||
		    rng_below(&rng, r->one_in))
			continue;
		t->injected++;
		return -EIO;
	}
	return 0;
}

static struct disk *disk_of(struct torture *t, const struct io *io)
{
	u32 i = 0;

	while (t->disk[i].device != store_device(io->store))
		i++;
	return &t->disk[i];
}

void faults_step(struct torture *t)
{
	if (!t->power_in || --t->power_in)
		return;
	if (t->ends)
		life_end(t, t->killed);
	faults_power(t);
}

static int fault(void *ctx, const struct io *io)
{
	struct torture *t = ctx;

	faults_step(t);
	for (u32 i = 0; i < RULES_MAX; i++) {
		struct rule *r = &t->rule[i];

		if (!rule_holds(t, r, io, TORTURE_EIO | TORTURE_GONE))
			continue;
		t->injected++;
		t->flushes_failed += io->op == IO_FLUSH;
		if (io->op == IO_WRITE && t->engine_config.policy.errors == ERRORS_LINUX)
			t->lossy = true;
		if (r->kind == TORTURE_EIO && io->op != IO_FLUSH &&
		    t->config->faults & TORTURE_SHORT && draw_one_in(&t->fault_rng, 3)) {
			disk_of(t, io)->breaks = -EIO; /* in the midst of it */
			disk_of(t, io)->breaks_in = (u32)rng_below(&t->fault_rng, 4);
			return 0;
		}
		if (io->op == IO_WRITE && r->kind == TORTURE_EIO)
			disk_tear(disk_of(t, io), io);
		disk_over(disk_of(t, io), io);
		return r->kind == TORTURE_GONE ? -ENODEV : -EIO;
	}
	return 0;
}

static u64 delay(void *ctx, const struct io *io)
{
	struct torture *t = ctx;
	u64 late = t->jitter_ns ? rng_below(&t->fault_rng, t->jitter_ns) : 0;

	disk_sent(disk_of(t, io), io);
	if (disk_of(t, io)->sabotage == SABOTAGE_ANSWER && draw_one_in(&t->fault_rng, 8))
		return 3600 * NSEC_PER_SEC;
	for (u32 i = 0; i < RULES_MAX; i++) {
		struct rule *r = &t->rule[i];

		if (!rule_holds(t, r, io, TORTURE_HANG | TORTURE_SLOW))
			continue;
		if (r->kind == TORTURE_HANG)
			late = max_u64(late, r->until_ns - world_now());
		else
			late += draw_scaled(&t->fault_rng, 1, 500 * NSEC_PER_MSEC);
		t->late_ns = max_u64(t->late_ns, world_now() + late);
	}
	return late;
}

/* Whether the allocation at hand is to be refused. */
static bool count_refusal(struct torture *t)
{
	if (t->refuse_at) {
		t->refuse_at--;
		return false;
	}
	t->refuse_run--;
	t->refused++;
	return true;
}

static bool refuses(void)
{
	struct torture *t = current;

	if (!t || !t->refuse_run || t->refuse_what || t->looking)
		return false;
	return count_refusal(t);
}

static bool refuses_frames(void)
{
	struct torture *t = current;

	return t && t->refuse_run && t->refuse_what && count_refusal(t);
}

void faults_attach(struct torture *t, u32 device)
{
	struct disk *d = &t->disk[device];

	current = t;
	alloc_refuses = refuses;
	alloc_refuses_frames = refuses_frames;
	device_set_fault(d->device, fault, t);
	device_set_delay(d->device, delay, t);
	d->sabotage = t->config->sabotage;
	d->refuses = refuses_call;
	d->ctx = t;
	d->cuts = t->config->faults & TORTURE_SHORT;
}

void faults_do(struct torture *t, const struct op *op)
{
	struct rule *r = &t->rule[op->value % RULES_MAX];

	switch (op->kind) {
	case OP_POWER:
	case OP_CRASH:
	case OP_KILL:
		t->killed = op->kind == OP_KILL;
		t->ends = op->kind != OP_POWER;
		t->power_in = op->value;
		if (t->ends && op->flags & 1)
			life_end(t, t->killed); /* not with an I/O, but now */
		break;
	case OP_HEAL:
		memset(t->rule, 0, sizeof(t->rule));
		t->refuse_run = 0;
		break;
	default:
		if (op->rule.kind == TORTURE_MEMORY) {
			t->refuse_at = (u32)op->rule.from % 64;
			t->refuse_run = (u32)min_u64(op->rule.left, 64);
			t->refuse_what = op->rule.ops & 1;
			break;
		}
		*r = op->rule;
		r->until_ns += r->until_ns == WORLD_NEVER ? 0 : world_now();
	}
}

void faults_end(struct torture *t, bool harmed)
{
	if (!harmed)
		memset(t->rule, 0, sizeof(t->rule));
	t->refuse_run = 0;
	t->jitter_ns = 0;
	t->power_in = 0;
}

void faults_look(struct torture *t, struct tfile *f, bool killed)
{
	struct model *m = &f->model;
	/* of appends under way nobody knows the place */
	u64 n = f->appends ? f->append_base : m->capacity, good, below;

	disk_image(inode_store(f->inode), &t->fault_rng, killed, t->image, m->capacity);
	if (t->lossy)
		return;
	good = model_allows(m, 0, t->image, n, m->durable, true);
	if (good < n)
		torture_fail(
			t,
			"after %s byte %llu of file %u would be %02x: that is neither what was "
			"last safe nor anything newer",
			killed ? "a kill" : "a power loss", (unsigned long long)good, f->number,
			t->image[good]);
	below = min_u64(n, store_size(inode_store(f->inode))); /* past the end nobody looks */
	good = model_allows_sectors(m, 0, t->image, below, m->durable);
	if (good < below)
		torture_fail(t,
			     "after %s the sector at byte %llu of file %u would be partly old and "
			     "partly new",
			     killed ? "a kill" : "a power loss", (unsigned long long)good,
			     f->number);
}

void faults_power(struct torture *t)
{
	if (t->lossy)
		return;
	for (u32 i = 0; i < t->files; i++) {
		for (u32 image = 0; image < IMAGES; image++)
			faults_look(t, &t->file[i], false);
		faults_look(t, &t->file[i], true);
		if (t->persist)
			outlive_look(t, &t->file[i]);
	}
}

bool faults_at_work(const struct torture *t)
{
	if (t->refuse_run || world_now() <= t->late_ns)
		return true;
	for (u32 i = 0; i < RULES_MAX; i++)
		if (t->rule[i].kind && t->rule[i].left && world_now() <= t->rule[i].until_ns)
			return true;
	return false;
}
