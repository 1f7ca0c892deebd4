// SPDX-License-Identifier: MIT
/*
 * One run: a world, an engine over disks that lose power, tasks that work through the schedule,
 * one more that does harm, and at the end, with all harm undone, a look at everything.
 */
#include "base/alloc.h"
#include "base/bits.h"
#include "torture/inner.h"
#include "writeback/wb.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The operation that fails, and with it those under way. */
static void tell_operations(struct torture *t)
{
	char *text = t->report->doing;
	size_t room = sizeof(t->report->doing), used = 0;

	for (u32 pass = 0; pass < 2; pass++)
		for (u32 i = 0; i < t->tasks && used + 1 < room; i++) {
			const struct ttask *task = &t->task[i];

			if (!task->busy || (task->id == world_task_id()) == pass)
				continue;
			used += (size_t)snprintf(text + used, room - used, "%s", used ? "; " : "");
			if (used + 1 < room)
				describe_op(t, task->op, text + used, room - used);
			used += strlen(text + min_u64(used, room - 1));
		}
}

void torture_fail(struct torture *t, const char *format, ...)
{
	va_list args;

	tell_operations(t);

	va_start(args, format);
	vsnprintf(t->report->why, sizeof(t->report->why), format, args);
	va_end(args);
	t->report->failed = true;
	_exit(1);
}

/* --- tasks */

static void begin_op(struct ttask *task, u32 number)
{
	struct torture *t = task->t;
	char *text = t->report->doing;
	size_t size = sizeof(t->report->doing);

	t->report->step++;
	task->op = number;
	task->next = number + 1;
	task->busy = true;
	task->injected = t->injected;
	task->refused = t->refused;
	task->failing = atomic_load(&engine_writeback(t->engine)->failing);
	describe_op(t, number, text, size);
	if (t->config->show)
		t->config->show(t->config->ctx, text);
}

static void work(void *arg)
{
	struct ttask *task = arg;
	struct torture *t = task->t;

	task->id = world_task_id();
	tenants_enter(task);
	for (u32 i = task->next; i < t->config->steps; i++) {
		const struct op *op = &t->op[i];

		if (op->task != task->number || (t->config->keep && !t->config->keep[i]))
			continue;
		if (op->pause_ns)
			world_sleep_until(world_now() + op->pause_ns);
		begin_op(task, i);
		if (op->kind >= OP_POWER) {
			faults_do(t, op);
			continue;
		}
		op_do(task, op);
		task->busy = false;
		watch_audit(t);
		world_breathe();
	}
	engine_task_exit(t->engine);
	t->working--;
}

/* --- setting up */

static void add_devices(struct torture *t)
{
	static const u32 read_ahead_kb[] = { 0, 4, 128, 4096 };
	u64 pages = t->capacity >> PAGE_SHIFT;

	for (u32 i = 0; i < t->devices; i++) {
		struct device_config c;
		struct device *device;
		bool strict = draw_one_in(&t->rng, 8);

		t->strict = t->strict || strict;
		draw_device(t, &c);
		if (device_create(&c, &device))
			torture_fail(t, "a device cannot be made");
		disk_init(&t->disk[i], device,
			  t->config->seed ^ (i + 0xd15c + 0x100 * life_number(t)));
		if (draw_one_in(&t->rng, 3) && t->config->faults & TORTURE_FULL)
			t->disk[i].room_pages = 1 + rng_below(&t->rng, pages * t->files);
		faults_attach(t, i);
		if (engine_add_device(t->engine, device, read_ahead_kb[rng_below(&t->rng, 4)],
				      strict))
			torture_fail(t, "a device cannot be added");
	}
}

static void add_store(struct torture *t, u32 number)
{
	struct tfile *f = &t->file[number];

	f->number = number;
	f->block_bytes = 512u << rng_below(&t->rng, 4);
	f->device = (u32)rng_below(&t->rng, t->devices);
	f->kind = draw_kind_of_file(&t->rng);
	rwsem_init(&f->lock, RANK_NONE);
	model_init(&f->model, t->capacity, &t->clock);
	if (disk_store_create(&t->disk[f->device], f->kind, t->capacity, &f->store))
		torture_fail(t, "no memory for a file");
	life_restore(t, f, f->store);
}

static void add_file(struct torture *t, struct tfile *f)
{
	if (inode_create_on(t->engine, f->device, f->block_bytes, f->store, &f->inode))
		torture_fail(t, "a file cannot be made");
	outlive_enter(t, f);
	life_model(t, f);
	for (u32 i = 0; i < t->tasks; i++)
		op_open(t, f, i, draw_one_in(&t->rng, 6));
}

static void set_up(struct torture *t)
{
	outlive_begin(t);
	if (engine_create(&t->engine_config, &t->engine))
		torture_fail(t, "an engine cannot be made");
	add_devices(t);
	tenants_begin(t);
	for (u32 i = 0; i < t->files; i++)
		add_store(t, i);
	life_recover(t);
	for (u32 i = 0; i < t->files; i++)
		add_file(t, &t->file[i]);
	for (u32 i = 0; i <= t->tasks; i++) {
		t->task[i] = (struct ttask){
			.t = t, .number = i, .next = life_next_op(t, i), .buf = malloc(t->op_bytes)
		};
		t->task[i].reading.wild = MODEL_NEVER;
	}
	watch_begin(t);
}

/* --- the end */

/* Data grows old for nobody: left alone, all of it is written in its time. */
static void check_age(struct torture *t)
{
	struct engine_stats stats;
	struct vm_settings vm;

	engine_vm(t->engine, &vm);
	if (!vm.dirty_writeback_centisecs)
		return;
	world_sleep_until(world_now() +
			  (vm.dirty_expire_centisecs + 3ull * vm.dirty_writeback_centisecs + 3000) *
				  NSEC_PER_SEC / 100);
	engine_stats(t->engine, &stats);
	if (stats.debt || stats.in_flight)
		torture_fail(
			t, "%llu pages are still dirty and %llu in flight, long after they expired",
			(unsigned long long)stats.debt, (unsigned long long)stats.in_flight);
}

static void check_safe(struct torture *t, struct tfile *f)
{
	u64 start = model_tick(&f->model);
	int rc = file_fsync(f->open[0][0], false);

	if (rc && !t->lossy)
		torture_fail(t, "all is well again, but fsync of file %u gives %d", f->number, rc);
	model_synced(&f->model, start);
}

static void look_at_all(struct torture *t)
{
	struct ttask *last = &t->task[t->tasks];

	if (rng_below(&t->rng, 2))
		check_age(t);
	for (u32 i = 0; i < t->files; i++)
		op_check_whole(last, &t->file[i]);
	for (u32 i = 0; i < t->files; i++)
		check_safe(t, &t->file[i]);
	faults_power(t);
	engine_drop_caches(t->engine);
	for (u32 i = 0; i < t->files; i++)
		op_check_whole(last, &t->file[i]);
	watch_audit(t);
}

static void show_lost(void *ctx, u64 offset, const void *data, u64 length)
{
	struct tfile *f = ctx;
	struct torture *t = container_of(f - f->number, struct torture, file[0]);
	u64 start = model_tick(&f->model), good;

	t->shown += length;
	good = model_allows(&f->model, offset, data, length, start, false);
	if (good < length && !t->lossy)
		torture_fail(t, "byte %llu of file %u is lost as %02x, which nobody has left there",
			     (unsigned long long)(offset + good), f->number,
			     ((const u8 *)data)[good]);
}

/* What an end tells is lost has to be right, and be what a persistent arena keeps. */
static void lose(void *ctx, struct inode *inode, u64 bytes, int error)
{
	struct torture *t = ctx;
	struct tfile *f = t->file;

	while (f->inode != inode)
		f++;
	if (!bytes || !error)
		torture_fail(t, "%llu bytes of file %u are lost, with error %d",
			     (unsigned long long)bytes, f->number, error);
	t->shown = 0;
	inode_show_unwritten(inode, show_lost, f);
	if (!t->shown)
		torture_fail(t, "%llu bytes of file %u are lost, none of them are shown",
			     (unsigned long long)bytes, f->number);
	if (!t->persist)
		return;
	faults_look(t, f, true);
	outlive_look(t, f);
}

/* Whether all was written. */
static bool end_engine(struct torture *t, bool harmed)
{
	struct engine_losses losses = { .lost = lose, .ctx = t };
	u64 flushes = t->flushes_failed;
	int rc = engine_destroy_telling(t->engine, &losses);

	if (rc && !harmed && !t->lossy)
		torture_fail(t, "the end of the engine says that data is lost");
	if (rc && !losses.files && flushes == t->flushes_failed && !t->lossy)
		torture_fail(t, "the end of the engine gives %d, and no loss", rc);
	if (!rc && losses.files)
		torture_fail(t, "the end of the engine tells of losses, and gives 0");
	return !losses.files;
}

static void take_down(struct torture *t, bool harmed)
{
	bool discards = !harmed && draw_one_in(&t->rng, 4), written = false;

	for (u32 i = 0; i < t->files; i++) {
		for (u32 j = 0; j < t->tasks; j++) {
			file_close(t->file[i].open[j][0]);
			file_close(t->file[i].open[j][1]);
		}
	}
	watch_end(t);
	if (discards)
		engine_discard(t->engine);
	else
		written = end_engine(t, harmed);
	outlive_end(t, written);
	for (u32 i = 0; i < t->files; i++)
		model_finish(&t->file[i].model);
	for (u32 i = 0; i < t->devices; i++)
		device_destroy(t->disk[i].device);
	for (u32 i = 0; i <= t->tasks; i++)
		free(t->task[i].buf);
}

static void first_task(void *arg)
{
	struct torture *t = arg;
	bool looks = rng_below(&t->rng, 8), harmed = draw_one_in(&t->rng, 8);

	set_up(t);
	for (u32 i = 0; i <= t->tasks; i++) {
		t->working++;
		t->task[i].task = world_spawn(i < t->tasks ? "worker" : "harm", work, &t->task[i]);
		if (!t->task[i].task)
			torture_fail(t, "no memory for a task");
	}
	for (u32 i = 0; i <= t->tasks; i++)
		world_join(t->task[i].task);
	faults_end(t, harmed);
	snprintf(t->report->doing, sizeof(t->report->doing), "the end, with all harm %s",
		 harmed ? "done" : "undone");
	for (u32 i = 0; i < t->files; i++)
		op_check_size(t, &t->file[i]);
	if (looks && !harmed)
		look_at_all(t);
	take_down(t, harmed);
}

static u8 *random_bytes(u64 seed)
{
	u8 *pool = malloc(POOL_BYTES);
	struct rng r;

	if (!pool)
		abort();
	rng_init(&r, seed ^ 0xb17e5);
	for (u64 i = 0; i < POOL_BYTES; i += 8) {
		u64 word = rng_u64(&r);

		memcpy(pool + i, &word, 8);
	}
	return pool;
}

static void live(struct torture *t)
{
	struct world *w = sim_create(&t->sim);
	char why[256] = "";

	if (!w)
		abort();
	rng_init(&t->fault_rng, t->config->seed ^ (0xfa017 + life_number(t)));
	if (sim_run(w, first_task, t, why, sizeof(why)))
		torture_fail(t, "tasks wait for ever: %s", why);
	sim_destroy(w);
	alloc_refuses = alloc_refuses_frames = NULL;
}

void torture_run(const struct torture_config *c, struct torture_report *report)
{
	struct torture *t = calloc(1, sizeof(*t));

	if (!t)
		abort();
	t->config = c;
	t->report = report;
	report->seed = c->seed;
	report->ops = c->steps;
	report->step = 0;
	rng_init(&t->rng, c->seed);
	draw_machine(t);
	draw_schedule(t);
	describe_machine(t);
	t->pool = random_bytes(c->seed);
	t->image = malloc(t->capacity);
	if (!t->image)
		abort();
	life_all(t, live);
	free(t->pool);
	free(t->image);
	free(t->op);
	free(t);
}

int torture_faults_parse(const char *text, u32 *faults, struct err *e)
{
	static const struct {
		const char *name;
		u32 bits;
	} names[] = {
		{ "eio", TORTURE_EIO },
		{ "full", TORTURE_FULL },
		{ "hang", TORTURE_HANG },
		{ "gone", TORTURE_GONE },
		{ "slow", TORTURE_SLOW },
		{ "memory", TORTURE_MEMORY },
		{ "power", TORTURE_POWER },
		{ "short", TORTURE_SHORT },
		{ "death", TORTURE_DEATH },
		{ "all", TORTURE_ALL },
		{ "none", 0 },
	};

	*faults = 0;
	for (;;) {
		size_t n = strcspn(text, ","), i = 0;

		while (i < ARRAY_SIZE(names) &&
		       (strlen(names[i].name) != n || memcmp(names[i].name, text, n) != 0))
			i++;
		if (i == ARRAY_SIZE(names))
			return err_set(e, NULL, 0,
				       "no fault is called \"%.*s\"; there are eio, full, hang, "
				       "gone, slow, memory, power, short, death, all and none",
				       (int)n, text);
		*faults |= names[i].bits;
		if (!text[n])
			return 0;
		text += n + 1;
	}
}
