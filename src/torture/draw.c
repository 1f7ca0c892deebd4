// SPDX-License-Identifier: MIT
/*
 * What a seed stands for. Everything is drawn before the run begins, the schedule as a table of
 * operations: so leaving some of them out leaves all others as they were, and that is what makes
 * a failing run short.
 */
#include "base/bits.h"
#include "torture/inner.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

u64 draw_scaled(struct rng *r, u64 least, u64 most)
{
	u64 low = ilog2(least), high = ilog2(most);
	u64 top = 2ull << (low + rng_below(r, high - low + 1));

	top = max_u64(least, min_u64(top - 1, most));
	return least + rng_below(r, top - least + 1);
}

/* One of the words of "folio|page|debt"; false: the values are no words. */
static bool draw_word(struct rng *r, const char *values, char *out, size_t size)
{
	u64 words = 1, want;

	for (const char *c = values; *c; c++)
		words += *c == '|';
	if (words == 1)
		return false;
	want = rng_below(r, words);
	while (want--)
		values = strchr(values, '|') + 1;
	snprintf(out, size, "%.*s", (int)strcspn(values, "|"), values);
	return true;
}

static void draw_policy(struct torture *t)
{
	struct policy *p = &t->engine_config.policy;
	size_t presets = 0;
	char value[32];

	while (policy_preset(presets))
		presets++;
	*p = *policy_preset(rng_below(&t->rng, presets));
	for (size_t i = 0; policy_key(i); i++) {
		bool changes = draw_one_in(&t->rng, 3);

		if (draw_word(&t->rng, policy_values(i), value, sizeof(value)) && changes)
			policy_set(p, policy_key(i), value, NULL);
	}
	if (draw_one_in(&t->rng, 3)) {
		snprintf(value, sizeof(value), "%u", (u32)rng_below(&t->rng, 10));
		policy_set(p, "max_order", value, NULL);
	}
}

/*
 * Where there are tenants, each choice of what they are for each other is as likely as the others.
 * A generator of its own leaves all else as it is drawn.
 */
static void draw_tenants_policy(struct torture *t)
{
	struct policy *p = &t->engine_config.policy;
	struct rng r;

	rng_init(&r, t->config->seed ^ 0x7e4a47);
	p->foreign = (enum policy_foreign)rng_below(&r, 4);
	p->tenant_limits = (enum policy_tenant_limits)rng_below(&r, 2);
	if (p->foreign == FOREIGN_TARGETED) /* which it needs */
		p->accounting = ACCOUNT_DEBT;
}

static void draw_vm(struct rng *r, struct vm_settings *vm)
{
	static const u32 intervals[] = { 0, 1, 20, 500 };

	vm_settings_init(vm);
	vm->dirty_writeback_centisecs = intervals[rng_below(r, 4)];
	vm->dirty_expire_centisecs = intervals[rng_below(r, 4)] * 6;
	vm->retry_min_ms = draw_one_in(r, 4) ? 0 : (u32)draw_scaled(r, 1, 1000);
	vm->retry_max_ms = (u32)draw_scaled(r, 1, 5000);
	if (draw_one_in(r, 2))
		return;
	vm->dirty_bytes = draw_scaled(r, 2, 256) * PAGE_SIZE;
	vm->dirty_background_bytes = vm->dirty_bytes / (1 + rng_below(r, 8));
}

void draw_machine(struct torture *t)
{
	static const unsigned hz[] = { 100, 250, 1000 };
	struct engine_config *e = &t->engine_config;
	u64 pages;

	sim_config_init(&t->sim);
	t->sim.seed = t->config->seed;
	t->sim.hz = hz[rng_below(&t->rng, 3)];
	t->sim.cpus = (unsigned)draw_scaled(&t->rng, 1, 8);
	t->tasks = 1 + (u32)rng_below(&t->rng, TASKS_MAX);
	t->files = 1 + (u32)rng_below(&t->rng, FILES_MAX);
	t->devices = 1 + (u32)rng_below(&t->rng, DEVICES_MAX);
	t->tenants = draw_one_in(&t->rng, 2) ? 0 : (u32)rng_below(&t->rng, TENANTS_MAX + 1);
	t->strict = t->tenants; /* those have limits of their own */
	t->persists = draw_one_in(&t->rng, 4);
	t->drops = draw_one_in(&t->rng, 3) ? (u32)draw_scaled(&t->rng, 1, 8) : 0;
	t->capacity = round_up(draw_scaled(&t->rng, 8 << 10, DISK_BYTES_MAX), PAGE_SIZE);
	t->op_bytes = draw_scaled(&t->rng, 2 << 10, 64 << 10);
	pages = draw_scaled(&t->rng, 64, 1024);
	e->memory_bytes = pages * PAGE_SIZE;
	e->max_memory_bytes = e->memory_bytes * (1 + rng_below(&t->rng, 3));
	e->reserve_bytes = rng_below(&t->rng, pages / 4) * PAGE_SIZE;
	e->contents = true;
	e->huge_pages = HUGE_NEVER;
	t->jitter_ns = draw_one_in(&t->rng, 2) ? draw_scaled(&t->rng, 1, 20 * NSEC_PER_MSEC) : 0;
	if (!(t->config->faults & TORTURE_SLOW))
		t->jitter_ns = 0;
	draw_policy(t);
	if (t->tenants)
		draw_tenants_policy(t);
	draw_vm(&t->rng, &e->vm);
}

enum disk_kind draw_kind_of_file(struct rng *r)
{
	static const enum disk_kind kinds[] = { DISK_BLOCKS, DISK_BLOCKS, DISK_FILE,   DISK_FILE,
						DISK_FILE,   DISK_CUSTOM, DISK_CUSTOM, DISK_BARE };

	return kinds[rng_below(r, ARRAY_SIZE(kinds))];
}

void draw_device(struct torture *t, struct device_config *c)
{
	static const char *const models[] = { "memory", "rate", "nvme", "ebs" };
	u64 model = rng_below(&t->rng, 4);

	/* tried again at once, what fails at once keeps the flusher busy and time standing still */
	if (!model && !t->engine_config.vm.retry_min_ms)
		model = 1;

	device_config_init(c, models[model]);
	c->seed = rng_u64(&t->rng);
	c->queue_depth = (u32)draw_scaled(&t->rng, 1, 64);
	c->max_io_bytes = (u32)draw_scaled(&t->rng, 1, 320) * PAGE_SIZE;
	if (model == 1 || model == 3) {
		c->iops = (double)draw_scaled(&t->rng, 500, 100000);
		c->bytes_per_s = (double)draw_scaled(&t->rng, 4 << 20, 1u << 30);
		c->latency_ns = draw_scaled(&t->rng, 1, 5 * NSEC_PER_MSEC);
	}
}

static enum op_kind draw_kind(struct rng *r)
{
	static const u8 weight[OP_POWER] = {
		[OP_WRITE] = 90,     [OP_READ] = 60,  [OP_APPEND] = 16, [OP_TRUNCATE] = 14,
		[OP_FALLOCATE] = 12, [OP_SEEK] = 5,   [OP_FSYNC] = 16,  [OP_SYNC_RANGE] = 6,
		[OP_ADVISE] = 10,    [OP_BORROW] = 6, [OP_SYNC] = 3,    [OP_DROP] = 6,
		[OP_RESIZE] = 2,     [OP_SET_VM] = 2, [OP_REOPEN] = 6,  [OP_FORGET] = 1,
		[OP_TELL] = 3,       [OP_TENANT] = 4,
	};
	u64 sum = 0, dice;
	u32 kind = 0;

	for (u32 i = 0; i < OP_POWER; i++)
		sum += weight[i];
	dice = rng_below(r, sum);
	while (dice >= weight[kind])
		dice -= weight[kind++];
	return (enum op_kind)kind;
}

static unsigned draw_flags(struct rng *r, enum op_kind kind, u32 drops)
{
	static const unsigned modes[] = { 0,
					  FILE_KEEP_SIZE,
					  FILE_PUNCH_HOLE | FILE_KEEP_SIZE,
					  FILE_PUNCH_HOLE | FILE_KEEP_SIZE,
					  FILE_ZERO_RANGE,
					  FILE_ZERO_RANGE | FILE_KEEP_SIZE };
	u64 dice = rng_below(r, 12);

	switch (kind) {
	case OP_WRITE:
	case OP_APPEND:
	case OP_READ:
	case OP_BORROW:
		if (dice == 0)
			return FILE_IO_NOWAIT;
		if ((dice == 1 || rng_below(r, 8) < drops) && kind != OP_BORROW)
			return FILE_IO_DONTCACHE;
		return dice == 2 && kind < OP_TRUNCATE && kind != OP_READ ? FILE_IO_DSYNC : 0;
	case OP_FALLOCATE:
		return modes[dice % 6];
	case OP_ADVISE:
		return dice % (FILE_ADV_NOREUSE + 1);
	case OP_SYNC_RANGE:
		return (unsigned)rng_below(r, 8);
	default:
		return (unsigned)dice;
	}
}

static void draw_range(struct torture *t, struct op *op)
{
	static const u32 grains[] = { 1, 512, 4096 };
	u32 grain = grains[rng_below(&t->rng, 3)];

	op->offset = rng_below(&t->rng, t->capacity);
	if (draw_one_in(&t->rng, 3))
		op->offset = rng_below(&t->rng, min_u64(t->capacity, 16 << 10));
	op->length = draw_scaled(&t->rng, 1, t->op_bytes);
	op->offset = round_down(op->offset, grain);
	op->length = round_up(op->length, grain);
	op->length = min_u64(min_u64(op->length, t->op_bytes), t->capacity - op->offset);
}

static void draw_rule(struct torture *t, struct op *op)
{
	static const u32 kinds[] = { TORTURE_EIO,  TORTURE_EIO,    TORTURE_EIO, TORTURE_HANG,
				     TORTURE_GONE, TORTURE_MEMORY, TORTURE_SLOW };
	struct rng *r = &t->rng;
	struct rule *rule = &op->rule;

	rule->kind = kinds[rng_below(r, ARRAY_SIZE(kinds))];
	rule->ops = 1 + (u32)rng_below(r, 15);
	rule->device = (u32)rng_below(r, t->devices);
	rule->one_in = draw_one_in(r, 2) ? 1 : (u32)draw_scaled(r, 1, 8);
	rule->to = ~0ull;
	if (draw_one_in(r, 2)) {
		rule->from = rng_below(r, t->capacity);
		rule->to = rule->from + draw_scaled(r, 1, t->capacity);
	}
	rule->left = draw_one_in(r, 2) ? draw_scaled(r, 1, 8) : ~0ull;
	rule->until_ns = draw_scaled(r, NSEC_PER_USEC, 20 * NSEC_PER_SEC);
	if (rule->kind != TORTURE_HANG && draw_one_in(r, 6))
		rule->until_ns = WORLD_NEVER; /* until it is healed */
	if (!(rule->kind & t->config->faults))
		rule->kind = 0;
}

static void draw_harm(struct torture *t, struct op *op)
{
	u64 dice = rng_below(&t->rng, 8);

	op->task = t->tasks;
	op->kind = dice < 3 ? OP_POWER : dice < 7 ? OP_FAULT : OP_HEAL;
	op->value = draw_scaled(&t->rng, 1, 32);
	op->pause_ns = draw_scaled(&t->rng, NSEC_PER_USEC, 200 * NSEC_PER_MSEC);
	draw_rule(t, op);
	if (op->kind == OP_POWER && !(t->config->faults & TORTURE_POWER))
		op->kind = OP_HEAL;
	op->flags = (unsigned)rng_below(&t->rng, 4);
	if (draw_one_in(&t->rng, 30) && t->config->faults & TORTURE_DEATH)
		op->kind = draw_one_in(&t->rng, 2) ? OP_KILL : OP_CRASH;
}

static void draw_op(struct torture *t, struct op *op)
{
	struct rng *r = &t->rng;

	*op = (struct op){ 0 };
	if (draw_one_in(r, 12)) {
		draw_harm(t, op);
		return;
	}
	op->task = (u32)rng_below(r, t->tasks);
	op->file = (u32)rng_below(r, t->files);
	op->kind = draw_kind(r);
	op->flags = draw_flags(r, op->kind, t->drops);
	op->direct = draw_one_in(r, 8);
	draw_range(t, op);
	op->cuts = 1 + (u32)rng_below(r, CUTS_MAX);
	op->value = rng_below(r, POOL_BYTES - t->op_bytes);
	if (draw_one_in(r, 4))
		op->pause_ns = draw_scaled(r, 1, 20 * NSEC_PER_MSEC);
	if (draw_one_in(r, 60))
		op->pause_ns = draw_scaled(r, NSEC_PER_MSEC, 8 * NSEC_PER_SEC);
}

void draw_schedule(struct torture *t)
{
	t->op = calloc(t->config->steps, sizeof(*t->op));
	if (!t->op)
		abort();
	for (u32 i = 0; i < t->config->steps; i++)
		draw_op(t, &t->op[i]);
}

void describe_machine(struct torture *t)
{
	char label[200];
	const struct engine_config *e = &t->engine_config;

	snprintf(
		t->report->machine, sizeof(t->report->machine),
		"%s%u tasks, %u tenants, %u files of up to %llu bytes, %u devices, %u cpus, hz %u; "
		"%llu pages of "
		"cache, reserve %llu; dirty_bytes %llu, background %llu; policy %s",
		t->persists ? "persist, " : "", t->tasks, t->tenants, t->files,
		(unsigned long long)t->capacity, t->devices, t->sim.cpus, t->sim.hz,
		(unsigned long long)e->memory_bytes / PAGE_SIZE,
		(unsigned long long)e->reserve_bytes / PAGE_SIZE,
		(unsigned long long)e->vm.dirty_bytes,
		(unsigned long long)e->vm.dirty_background_bytes,
		policy_label(&e->policy, label, sizeof(label)));
}

static const char *rule_name(const struct rule *r)
{
	switch (r->kind) {
	case TORTURE_EIO:
		return "I/O errors";
	case TORTURE_HANG:
		return "hang";
	case TORTURE_GONE:
		return "device gone";
	case TORTURE_MEMORY:
		return "memory refused";
	case TORTURE_SLOW:
		return "slow";
	default:
		return "nothing";
	}
}

void describe_op(const struct torture *t, u32 number, char *text, size_t size)
{
	static const char *const names[OP_KINDS] = {
		"write",
		"read",
		"append",
		"truncate",
		"fallocate",
		"seek",
		"fsync",
		"sync_range",
		"advise",
		"borrow",
		"sync",
		"drop caches",
		"resize",
		"set vm",
		"reopen",
		"forget",
		"tell unsafe",
		"tenant",
		"power loss, looked at",
		"power loss",
		"kill",
		"fault",
		"heal",
	};
	const struct op *op = &t->op[number];
	const struct rule *r = &op->rule;

	if (op->kind == OP_FAULT)
		snprintf(text, size,
			 "%u: %s on device %u, operations %x, one in %u, [%llu, %llu), %lld times",
			 number, rule_name(r), r->device, r->ops, r->one_in,
			 (unsigned long long)r->from, (unsigned long long)r->to,
			 (long long)r->left);
	else if (op->kind >= OP_POWER)
		snprintf(text, size, "%u: %s (%llu)", number, names[op->kind],
			 (unsigned long long)op->value);
	else
		snprintf(text, size, "%u: task %u: %s%s file %u [%llu, +%llu) flags %x", number,
			 op->task, op->direct ? "direct " : "", names[op->kind], op->file,
			 (unsigned long long)op->offset, (unsigned long long)op->length, op->flags);
}
