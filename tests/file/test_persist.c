// SPDX-License-Identifier: MIT
/*
 * The records of what is owed, looked at by recovery at every step of the simulated world: after
 * each store to them, at each lock that a task takes, at each end of an I/O, and around each call.
 * What the stores have then, together with what recovery would write, has to be what was accepted.
 *
 * Nothing is copied for that and nobody is killed: recovery only reads. The cache is small, so that
 * pages are reclaimed, moved and split all the time, and the device fails now and then.
 */
#include "rig.h"

#include "accepted.h"
#include "cache/owed.h"
#include "file/recover.h"

#define TASKS     3
#define SLOTS     (TASKS + 1)
#define SHARED    TASKS /* the last file: all tasks write to it, each its own records */
#define MOST      (40 * KIB)
#define RECORD    61
#define STEPS     120
#define PAGES     64
#define PAGES_MAX 128
#define FILLERS   5 /* times MOST: a file that is only read, so that memory does not suffice */

struct stage {
	struct rig *rig;
	struct persist *persist;
	struct inode *inode[SLOTS];
	struct file *filler;
	struct accepted_slot slot[SLOTS];
	struct accepted_note note[TASKS];
	u64 looks, owed, twice, seed;
	u32 version;
	bool looking;
};

static struct stage *stage; /* of the run that is on */

static u8 byte_of(u64 at, unsigned version)
{
	return rig_byte(at, (u8)version);
}

/* --- recovery into memory */

struct into_copy {
	struct recover_target target;
	u64 size;
	u8 bytes[MOST + PAGE_SIZE];
};

static struct into_copy *copy_of(struct recover_target *t)
{
	return container_of(t, struct into_copy, target);
}

static int copy_shrink(struct recover_target *t, u64 size)
{
	struct into_copy *to = copy_of(t);

	if (size < sizeof(to->bytes))
		memset(to->bytes + size, 0, sizeof(to->bytes) - size);
	to->size = min_u64(to->size, size);
	return 0;
}

static int copy_zero(struct recover_target *t, u64 from, u64 to)
{
	to = min_u64(to, sizeof(copy_of(t)->bytes));
	if (from < to)
		memset(copy_of(t)->bytes + from, 0, to - from);
	return 0;
}

static int copy_write(struct recover_target *t, u64 offset, const void *data, u64 length)
{
	assert_true(offset + length <= MOST);
	memcpy(copy_of(t)->bytes + offset, data, length);
	copy_of(t)->size = max_u64(copy_of(t)->size, offset + length);
	return 0;
}

static int copy_lengthen(struct recover_target *t, u64 size)
{
	copy_of(t)->size = max_u64(copy_of(t)->size, size);
	return 0;
}

/* The simulated store writes whole blocks: where the file ends stands in the table alone. */
static u64 end_of(const struct persist_file *f)
{
	u64 size = atomic_load(&f->size), from = atomic_load(&f->op_from);

	return atomic_load(&f->op) == PERSIST_SHRINK ? min_u64(size, from) : size;
}

static void look_at(const struct recover_plan *plan, unsigned slot)
{
	static struct into_copy to;
	const struct accepted_slot *s = &stage->slot[slot];
	u32 number = stage->inode[slot]->m.persist_file;
	u64 bytes, size = end_of(&plan->p->files[number]);

	to = (struct into_copy){ .target = { copy_shrink, copy_zero, copy_write, copy_lengthen } };
	to.size = store_size(stage->inode[slot]->m.store);
	store_peek(stage->inode[slot]->m.store, 0, to.bytes, MOST);
	assert_int_equal(recover_file(plan, number, &to.target, &bytes), 0);
	stage->owed += bytes;
	if (!accepted_size(stage->note, TASKS, slot, s, size))
		fail_msg("seed %llu, look %llu, file %u: %llu bytes, not %llu",
			 (unsigned long long)stage->seed, (unsigned long long)stage->looks, slot,
			 (unsigned long long)size, (unsigned long long)s->size);
	if (to.size < size || (to.size > size && plan->p->files[number].op == PERSIST_SHRINK))
		fail_msg("seed %llu, look %llu, file %u: it ends at %llu, not %llu",
			 (unsigned long long)stage->seed, (unsigned long long)stage->looks, slot,
			 (unsigned long long)to.size, (unsigned long long)size);
	if (size == s->size && !memcmp(to.bytes, s->bytes, size))
		return;
	for (u64 at = 0; at < size; at++)
		if (!accepted_byte(stage->note, TASKS, slot, s, at, to.bytes[at], byte_of))
			fail_msg("seed %llu, look %llu, file %u: byte %llu is %02x, not %02x",
				 (unsigned long long)stage->seed, (unsigned long long)stage->looks,
				 slot, (unsigned long long)at, to.bytes[at],
				 at < s->size ? s->bytes[at] : 0);
}

/* Whether a page is owed by two records: it is about to move. */
static bool is_twice(const struct recover_plan *plan)
{
	u64 records = 0;

	for (u32 i = 0; i < plan->p->header->frames; i++)
		records += (atomic_load(&plan->p->owed[i].blocks) & OWED_BLOCKS) != 0;
	assert_true(records >= plan->count);
	return records > plan->count;
}

/* As if the process had been killed here. */
static void look(void)
{
	struct recover_plan plan;
	struct persist *p;

	if (!stage || !stage->inode[SHARED] || stage->looking)
		return;
	stage->looking = true;
	stage->looks++;
	assert_int_equal(
		persist_open_image(stage->persist->map, stage->persist->map_bytes, &p, NULL), 0);
	assert_int_equal(recover_plan(p, &plan), 0);
	for (unsigned i = 0; i < SLOTS; i++)
		look_at(&plan, i);
	stage->twice += is_twice(&plan);
	recover_plan_finish(&plan);
	persist_close(p, false);
	stage->looking = false;
}

static void look_after_store(void *ctx)
{
	(void)ctx;
	look();
}

#ifdef SLUICE_CHECKS
void __real_world_shake_now(void);
void __wrap_world_shake_now(void);

/* Before each lock. */
void __wrap_world_shake_now(void)
{
	static u32 which;

	if (stage && stage->looking) /* who looks does not sleep */
		return;
	if (which++ % 4 == 0)
		look();
	__real_world_shake_now();
}
#endif

static int at_end_of_io(void *ctx, const struct io *io)
{
	int error = rig_observe(ctx, io);

	look();
	return error;
}

/* --- the tasks */

struct task_of {
	unsigned number;
	u64 random;
	struct file *file, *shared, *direct;
	u8 buf[MOST];
};

static u64 draw(struct task_of *t, u64 below)
{
	t->random ^= t->random << 13; /* xorshift64, Marsaglia 2003 */
	t->random ^= t->random >> 7;
	t->random ^= t->random << 17;
	return t->random % below;
}

static struct accepted_note *begin(struct task_of *t, enum accepted_kind kind, unsigned slot,
				   u64 from, u64 to)
{
	struct accepted_note *n = &stage->note[t->number];

	n->version = 1 + stage->version++ % 250;
	accepted_begin(n, &stage->slot[slot], kind, slot, from, to);
	look();
	return n;
}

static void end(struct task_of *t)
{
	struct accepted_note *n = &stage->note[t->number];

	accepted_enter(n, &stage->slot[n->slot], t->buf);
	atomic_store(&n->kind, NOTHING);
	look();
}

static void write_to(struct task_of *t, struct file *f, unsigned slot, u64 from, u64 length,
		     unsigned flags)
{
	struct accepted_note *n = begin(t, WRITE, slot, from, from + length);
	struct iovec v = { t->buf, length };
	ssize_t rc;

	for (u64 i = 0; i < length; i++)
		t->buf[i] = byte_of(from + i, n->version);
	rc = file_pwritev(f, &v, 1, from, flags);
	/* the device fails: what was accepted is safe here all the same */
	assert_true(rc == (ssize_t)length || rc == -EIO);
	if (rc == -EIO && f == t->direct) /* which is in no cache, and left no trace */
		atomic_store(&n->kind, NOTHING);
	end(t);
}

static void some_write(struct task_of *t)
{
	u64 from = draw(t, MOST - 1),
	    length = 1 + draw(t, min_u64(MOST - from, draw(t, 3) ? 600 : 20000));
	static const unsigned flags[8] = { [6] = FILE_IO_DSYNC, [7] = FILE_IO_DONTCACHE };

	if (draw(t, 3))
		write_to(t, t->file, t->number, from, length, flags[draw(t, 8)]);
	else
		write_to(t, t->shared, SHARED,
			 (draw(t, MOST / RECORD / TASKS) * TASKS + t->number) * RECORD, RECORD, 0);
}

static void some_direct_write(struct task_of *t)
{
	u64 from = draw(t, MOST / PAGE_SIZE) * PAGE_SIZE;

	write_to(t, t->direct, t->number, from, min_u64(MOST - from, PAGE_SIZE << draw(t, 2)), 0);
}

static void some_truncate(struct task_of *t)
{
	u64 size = draw(t, draw(t, 3) ? MOST : stage->slot[t->number].size + 1);

	begin(t, TRUNCATE, t->number, stage->slot[t->number].size, size);
	assert_int_equal(file_truncate(t->file, size), 0);
	end(t);
}

static void some_hole(struct task_of *t)
{
	u64 from = draw(t, MOST - 1), to = from + 1 + draw(t, MOST - from);
	unsigned mode = FILE_KEEP_SIZE | (draw(t, 2) ? FILE_PUNCH_HOLE : FILE_ZERO_RANGE);

	begin(t, ZERO, t->number, from, to);
	assert_int_equal(file_fallocate(t->file, mode, from, to - from), 0);
	end(t);
}

static void read_filler(struct task_of *t)
{
	for (u64 i = 0; i < FILLERS; i++)
		assert_int_equal(file_pread(stage->filler, t->buf, MOST, i * MOST), MOST);
}

static void some_other(struct task_of *t)
{
	u64 size = stage->slot[t->number].size, left;

	switch (draw(t, 8)) {
	case 0:
		file_fsync(t->file, false);
		break;
	case 1:
		file_sync_range(t->file, draw(t, MOST), 8192, FILE_WRITE);
		break;
	case 2:
		file_advise(t->file, 0, 0, FILE_ADV_DONTNEED);
		break;
	case 3:
		assert_int_equal(file_pread(t->file, t->buf, MOST, 0), size);
		assert_memory_equal(t->buf, stage->slot[t->number].bytes, size);
		read_filler(t);
		break;
	case 4: /* so many writes fail now */
		stage->rig->write_error = -EIO;
		stage->rig->failures = (u32)draw(t, 3);
		break;
	default:
		engine_resize(stage->rig->e, (draw(t, 2) ? PAGES : PAGES_MAX) * (u64)PAGE_SIZE,
			      NSEC_PER_MSEC, &left);
	}
}

static void play(void *arg)
{
	struct task_of *t = arg;

	for (unsigned i = 0; i < STEPS; i++) {
		u64 what = draw(t, 100);

		if (what < 60)
			some_write(t);
		else if (what < 65)
			some_direct_write(t);
		else if (what < 75)
			some_truncate(t);
		else if (what < 85)
			some_hole(t);
		else
			some_other(t);
	}
	engine_task_exit(stage->rig->e);
}

/* Nothing is owed any more, and no record says so. */
static void settle(void)
{
	stage->rig->failures = 0;
	assert_int_equal(engine_sync(stage->rig->e), 0);
	rig_audit(stage->rig);
	stage->owed = 0;
	look();
	assert_int_equal(stage->owed, 0);
	for (unsigned i = 0; i < SLOTS; i++)
		assert_int_equal(inode_size(stage->inode[i]), stage->slot[i].size);
}

static void make_filler(struct rig *r)
{
	struct inode *inode = rig_inode(r, PAGE_SIZE);

	assert_int_equal(inode_survive_as_store(inode), 0);
	stage->filler = rig_file(inode, 0);
	rig_write(stage->filler, 0, FILLERS * MOST, 1);
	assert_int_equal(file_fsync(stage->filler, false), 0);
}

struct scene {
	const char *policy;
	u32 block_bytes;
	u64 seed;
};

static void run_scene(void *arg)
{
	const struct scene *scene = arg;
	struct rig *r = rig_new(scene->policy, PAGES * (u64)PAGE_SIZE);
	struct task_of *tasks = calloc(TASKS, sizeof(*tasks));
	struct task *spawned[TASKS];

	stage->rig = r;
	r->config.max_memory_bytes = PAGES_MAX * (u64)PAGE_SIZE;
	r->config.vm.dirty_writeback_centisecs = 1;
	r->config.vm.dirty_expire_centisecs = 1;
	r->config.vm.retry_min_ms = r->config.vm.retry_max_ms = 1;
	assert_int_equal(persist_create(NULL, PAGES_MAX, &stage->persist, NULL), 0);
	r->config.persist = stage->persist;
	rig_start(r);
	device_set_fault(r->d, at_end_of_io, r);
	make_filler(r);
	for (unsigned i = 0; i < SLOTS; i++) {
		struct inode *inode = rig_inode(r, scene->block_bytes);

		assert_int_equal(inode_survive_as_store(inode), 0);
		stage->inode[i] = inode;
	}
	stage->persist->stepped = look_after_store;
	for (unsigned i = 0; i < TASKS; i++) {
		tasks[i] = (struct task_of){ .number = i, .random = scene->seed * TASKS + i + 1 };
		tasks[i].file = rig_file(stage->inode[i], 0);
		tasks[i].direct = rig_file(stage->inode[i], FILE_DIRECT);
		tasks[i].shared = rig_file(stage->inode[SHARED], 0);
		spawned[i] = world_spawn("writer", play, &tasks[i]);
	}
	for (unsigned i = 0; i < TASKS; i++)
		world_join(spawned[i]);
	assert_true(stage->owed > 0);
	settle();
	stage->persist->stepped = NULL;
	for (unsigned i = 0; i < TASKS; i++) {
		file_close(tasks[i].file);
		file_close(tasks[i].direct);
		file_close(tasks[i].shared);
	}
	file_close(stage->filler);
	stage->inode[SHARED] = NULL; /* no more looks */
	rig_close(r);
	persist_close(stage->persist, true);
	free(tasks);
}

/* How often it looked at a page that was about to move. */
static u64 run(const char *policy, u32 block_bytes, u64 seed)
{
	struct scene scene = { policy, block_bytes, seed };
	struct sim_config c;
	struct world *w;
	char why[256] = "";
	u64 twice;

	stage = calloc(1, sizeof(*stage));
	assert_non_null(stage);
	stage->seed = seed;
	sim_config_init(&c);
	c.cpus = 4;
	c.seed = c.shake_seed = seed;
	w = sim_create(&c);
	assert_non_null(w);
	if (sim_run(w, run_scene, &scene, why, sizeof(why)))
		fail_msg("seed %llu: %s", (unsigned long long)seed, why);
	sim_destroy(w);
	if (getenv("SLUICE_VERBOSE"))
		print_message("# %s %u: %llu looks, %llu at moves\n", policy, block_bytes,
			      (unsigned long long)stage->looks, (unsigned long long)stage->twice);
	assert_true(stage->looks > STEPS);
	twice = stage->twice;
	free(stage);
	stage = NULL;
	return twice;
}

static void test_at_every_step(const char *policy, u32 block_bytes)
{
	u64 seeds = getenv("SLUICE_SOAK") ? 400 : 4, twice = 0;

	for (u64 seed = 1; seed <= seeds; seed++)
		twice += run(policy, block_bytes, seed);
	assert_true(twice > 0);
}

static void test_whole_pages(void **state)
{
	(void)state;
	test_at_every_step("sluice", 4096);
}

static void test_blocks_of_a_page(void **state)
{
	(void)state;
	test_at_every_step("sluice", 512);
}

static void test_whole_folios(void **state)
{
	(void)state;
	test_at_every_step("linux-7.4", 4096);
	test_at_every_step("linux-7.4", 1024);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_pages),
		cmocka_unit_test(test_blocks_of_a_page),
		cmocka_unit_test(test_whole_folios),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
