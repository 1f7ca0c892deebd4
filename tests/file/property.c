/* SPDX-License-Identifier: MIT */
/*
 * A run of the property test: draws the machine from the seed, sets tasks to work on it, walks
 * over all state as often as the profile asks, and takes everything down again.
 */
#include "property.h"
#include "base/bits.h"
#include "file/inner.h"
#include "file/tenant.h"
#include "writeback/pause.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WATCH_NS (2000 * NSEC_PER_SEC) /* so long no operation ends only if something is stuck */

u32 prop_refuse_one_in;
static struct prop *current; /* the run at work, for signals and refusals */

u64 prop_between(struct rng *r, u64 least, u64 most)
{
	return least + rng_below(r, most - least + 1);
}

u64 prop_scaled(struct rng *r, u64 least, u64 most)
{
	u64 low = ilog2(least), high = ilog2(most);
	u64 top = 2ull << prop_between(r, low, high);

	return prop_between(r, least, max_u64(least, min_u64(top - 1, most)));
}

static u64 drawn(struct rng *r, struct prop_range range)
{
	return prop_between(r, range.least, range.most);
}

static u64 scaled(struct rng *r, struct prop_range range)
{
	return prop_scaled(r, range.least, range.most);
}

/* A number of the environment, or `otherwise`. */
static u64 setting(const char *name, u64 otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

/* --- telling */

static void describe(const struct prop *p)
{
	char label[256], files[256] = "";
	size_t used = 0;

	for (u32 i = 0; i < p->files; i++)
		used += (size_t)snprintf(files + used, sizeof(files) - used, " %u/%llu/%llu",
					 p->file[i].block_bytes,
					 (unsigned long long)p->file[i].capacity,
					 (unsigned long long)p->file[i].stripe_bytes);
	printf("# seed %llu of profile %s, step %u of %u: %u tasks, %u noise, %u devices\n"
	       "# policy %s; %llu pages, reserve %llu; hz %u, %u cpus; "
	       "dirty_bytes %llu, background %llu\n"
	       "# files (block bytes/capacity/stripe):%s\n",
	       (unsigned long long)p->seed, p->profile->name, p->step, p->steps, p->tasks, p->noise,
	       p->devices, policy_label(&p->config.policy, label, sizeof(label)),
	       (unsigned long long)p->config.memory_bytes / PAGE_SIZE,
	       (unsigned long long)p->config.reserve_bytes / PAGE_SIZE, p->sim.hz, p->sim.cpus,
	       (unsigned long long)p->config.vm.dirty_bytes,
	       (unsigned long long)p->config.vm.dirty_background_bytes, files);
	for (u32 i = 0; i < p->tenants; i++) {
		struct tenant_stats t;

		engine_tenant_stats(p->engine, p->tenant[i], &t);
		printf("# tenant %s: %llu dirty, %llu in flight, background %llu, limit %llu\n",
		       engine_tenant_name(p->tenant[i]), (unsigned long long)t.dirty,
		       (unsigned long long)t.writeback, (unsigned long long)t.background_thresh,
		       (unsigned long long)t.thresh);
	}
	for (u64 i = p->traced > PROP_TRACE ? p->traced - PROP_TRACE : 0; i < p->traced; i++)
		printf("#   %s\n", p->trace[i % PROP_TRACE]);
	fflush(stdout);
}

void prop_trace(struct prop *p, const char *format, ...)
{
	char *line = p->trace[p->traced++ % PROP_TRACE];
	int used = snprintf(line, sizeof(p->trace[0]), "[%u %lluus] ", p->step,
			    (unsigned long long)world_now() / NSEC_PER_USEC);
	va_list args;

	va_start(args, format);
	vsnprintf(line + used, sizeof(p->trace[0]) - (size_t)used, format, args);
	va_end(args);
	if (getenv("SLUICE_TRACE")) {
		printf("# %s\n", line);
		fflush(stdout);
	}
}

void prop_fail(struct prop *p, const char *format, ...)
{
	va_list args;

	printf("# PROPERTY FAILS: ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	describe(p);
	signal(SIGABRT, SIG_DFL);
	abort();
}

/* A failed assertion, or the test runner's patience at its end: it tells the seed. */
static void tell_and_die(int number)
{
	signal(number, SIG_DFL);
	if (current) {
		printf("# signal %d\n", number);
		describe(current);
	}
	raise(number);
}

/* --- faults */

static int fault(void *ctx, const struct io *io)
{
	struct prop *p = ctx;
	struct prop_faults *f = &p->faults;
	bool wanted = io->op == IO_WRITE ? f->writes : io->op == IO_READ ? f->reads : f->flushes;

	if (!wanted || rng_below(&f->rng, f->one_in))
		return 0;
	if (io->op != IO_FLUSH && (io->offset_bytes >= f->end_byte ||
				   io->offset_bytes + io->length_bytes <= f->first_byte))
		return 0;
	f->injected++;
	f->last_ns = world_now();
	prop_trace(p, "device: fails %s [%llu, +%u)",
		   io->op == IO_WRITE ? "write" : "read or flush",
		   (unsigned long long)io->offset_bytes, io->length_bytes);
	return -5; /* EIO */
}

bool prop_refuses(void)
{
	if (!current || !prop_refuse_one_in || rng_below(&current->faults.rng, prop_refuse_one_in))
		return false;
	current->faults.injected++;
	current->faults.last_ns = world_now();
	return true;
}

static void heal(struct prop *p)
{
	p->faults.writes = p->faults.reads = p->faults.flushes = false;
	prop_refuse_one_in = 0;
	prop_trace(p, "faults end");
}

static void hurt(struct prop *p, struct rng *r)
{
	struct prop_faults *f = &p->faults;
	u64 kinds = prop_between(r, 1, 7), first = 0, end = ~0ull;
	u32 one_in = (u32)prop_scaled(r, 1, 8);

	if (prop_chance(r, 2)) {
		first = rng_below(r, p->file[0].capacity);
		end = first + prop_scaled(r, 1, p->file[0].capacity);
	}
	if (p->profile->refusals)
		prop_refuse_one_in = (u32)prop_scaled(r, 2, 64);
	if (!p->profile->faults)
		return;
	f->writes = kinds & 1 || prop_chance(r, 2);
	f->reads = kinds & 2;
	f->flushes = kinds & 4;
	f->first_byte = first;
	f->end_byte = end;
	f->one_in = one_in;
	prop_trace(p, "faults begin: kinds %llu, one in %u, [%llu, %llu)",
		   (unsigned long long)kinds, one_in, (unsigned long long)first,
		   (unsigned long long)end);
}

static void faults_task(void *arg)
{
	struct prop *p = arg;
	struct rng r;

	rng_init(&r, p->seed ^ 0xfa01);
	while (p->running) {
		world_sleep_until(world_now() + prop_scaled(&r, 10000, NSEC_PER_SEC));
		hurt(p, &r);
		world_sleep_until(world_now() + prop_scaled(&r, 10000, NSEC_PER_SEC));
		heal(p);
	}
}

/* --- checks of the whole */

/* How far above the limit the last look of each task may let dirty go. */
static u64 slack(const struct prop *p)
{
	u64 pages = 0, folio = 1ull << p->config.policy.max_order;
	u64 cpus = p->sim.cpus;

	for (u32 i = 0; i < p->tasks; i++)
		pages += p->task[i].widest_interval + folio;
	/* devices with next to nothing dirty let their writers pass (wb_stat_error) */
	return pages + p->devices * (cpus * 8 * (1 + ilog2(cpus)) + folio);
}

static void audit(struct prop *p)
{
	struct engine_stats stats;
	char why[256];

	if (mutex_is_held(&p->engine->inodes_lock))
		return; /* a sync has it; waiting would change what is tested */
	if (!engine_audit(p->engine, why, sizeof(why)))
		prop_fail(p, "audit: %s", why);
	engine_stats(p->engine, &stats);
	if (stats.cached + stats.free > p->config.memory_bytes / PAGE_SIZE)
		prop_fail(p, "%llu pages cached and %llu free", (unsigned long long)stats.cached,
			  (unsigned long long)stats.free);
	if (!p->profile->faults && !p->profile->refusals &&
	    stats.dirty + stats.writeback > stats.dirty_limit + slack(p))
		prop_fail(p, "%llu dirty and %llu in flight of %llu, slack %llu",
			  (unsigned long long)stats.dirty, (unsigned long long)stats.writeback,
			  (unsigned long long)stats.dirty_limit, (unsigned long long)slack(p));
}

static void watch(struct sim_event *e)
{
	struct prop *p = container_of(e, struct prop, watchdog);

	if (p->step == p->watched_step)
		prop_fail(p, "stuck: no operation ended in %llu s",
			  (unsigned long long)(WATCH_NS / NSEC_PER_SEC));
	p->watched_step = p->step;
	sim_event_at(e, world_now() + WATCH_NS);
}

/* --- tasks */

static void worker(void *arg)
{
	struct prop_task *t = arg;
	struct prop *p = t->p;

	while (p->step < p->steps) {
		p->step++;
		prop_step(t);
		/* what throttle.c keeps of a task: the pages until it looks again, and one */
		t->widest_interval = max_u64(t->widest_interval, *world_local(1));
		if (p->step % p->audit_every == 0)
			audit(p);
		if (prop_chance(&t->rng, 16))
			world_sleep_until(world_now() +
					  prop_scaled(&t->rng, 1, 10 * NSEC_PER_MSEC));
		world_breathe();
	}
	engine_task_exit(p->engine);
	p->running--;
}

static void noise(void *arg)
{
	struct prop_task *t = arg;
	struct prop *p = t->p;

	while (p->running) {
		prop_noise_step(t);
		world_sleep_until(world_now() + prop_scaled(&t->rng, 1, NSEC_PER_MSEC));
	}
}

/* --- setting up */

static void draw_policy(struct prop *p)
{
	static const char *const accounting[] = { "folio", "page", "debt" };
	struct policy *policy = &p->config.policy;
	size_t presets = 0;
	char value[16];

	while (policy_preset(presets))
		presets++;
	*policy = *policy_preset(rng_below(&p->rng, presets));
	if (prop_chance(&p->rng, 2))
		policy_set(policy, "accounting", accounting[rng_below(&p->rng, 3)], NULL);
	if (prop_chance(&p->rng, 2))
		policy->small_write = (enum policy_small_write)rng_below(&p->rng, 3);
	if (prop_chance(&p->rng, 2))
		policy->pinned = (enum policy_pinned)rng_below(&p->rng, 2);
	if (prop_chance(&p->rng, 3))
		policy->write_lock = (enum policy_write_lock)rng_below(&p->rng, 2);
	if (prop_chance(&p->rng, 3))
		policy->writeout = (enum policy_writeout)rng_below(&p->rng, 2);
	policy->dontcache = (enum policy_dontcache)rng_below(&p->rng, 3);
	policy->flush_depth = (enum policy_flush_depth)rng_below(&p->rng, 2);
	rng_init(&p->tenant_rng, p->seed);
	policy->foreign = (enum policy_foreign)rng_below(&p->tenant_rng, 4);
	policy->tenant_limits = (enum policy_tenant_limits)rng_below(&p->tenant_rng, 2);
	if (prop_chance(&p->rng, 3)) {
		snprintf(value, sizeof(value), "%u", (u32)rng_below(&p->rng, 10));
		policy_set(policy, "max_order", value, NULL);
	}
}

static void draw_limits(struct prop *p)
{
	static const u32 intervals[] = { 0, 1, 20, 500 };
	struct vm_settings *vm = &p->config.vm;

	vm_settings_init(vm);
	vm->dirty_writeback_centisecs = intervals[rng_below(&p->rng, 4)];
	vm->dirty_expire_centisecs = intervals[rng_below(&p->rng, 4)] * 6;
	if (prop_chance(&p->rng, 2))
		return;
	vm->dirty_bytes = scaled(&p->rng, p->profile->dirty_pages) * PAGE_SIZE;
	vm->dirty_background_bytes = vm->dirty_bytes / prop_between(&p->rng, 1, 8);
}

static void draw(struct prop *p)
{
	static const unsigned hz[] = { 100, 250, 1000 };
	const struct prop_profile *f = p->profile;

	sim_config_init(&p->sim);
	p->sim.seed = p->seed;
	p->sim.hz = hz[rng_below(&p->rng, 3)];
	p->sim.cpus = (unsigned)setting("SLUICE_CPUS", prop_scaled(&p->rng, 1, 8));
	p->steps = (u32)setting("SLUICE_STEPS", f->steps);
	p->tasks = (u32)setting("SLUICE_TASKS", drawn(&p->rng, f->tasks));
	p->files = (u32)setting("SLUICE_FILES", drawn(&p->rng, f->files));
	p->noise = (u32)setting("SLUICE_NOISE", drawn(&p->rng, f->noise));
	p->devices = (u32)drawn(&p->rng, f->devices);
	p->audit_every = f->audit_every;
	p->op_bytes = scaled(&p->rng, f->op_bytes);
	p->config.memory_bytes = scaled(&p->rng, f->memory_pages) * PAGE_SIZE;
	p->config.reserve_bytes =
		round_down(rng_below(&p->rng, p->config.memory_bytes / 4), PAGE_SIZE);
	p->config.contents = true;
	draw_policy(p);
	draw_limits(p);
}

static void draw_device(struct prop *p, struct device_config *c)
{
	static const char *const models[] = { "memory", "rate", "nvme", "ebs" };
	u64 model = p->profile->only_memory ? 0 : rng_below(&p->rng, 4);

	device_config_init(c, models[model]);
	c->seed = rng_u64(&p->rng);
	c->queue_depth = (u32)prop_scaled(&p->rng, 1, 64);
	c->max_io_bytes = (u32)prop_scaled(&p->rng, 1, 320) * PAGE_SIZE;
	if (model == 1 || model == 3) {
		c->iops = (double)prop_scaled(&p->rng, 500, 100000);
		c->bytes_per_s = (double)prop_scaled(&p->rng, 4 << 20, 1u << 30);
		c->latency_ns = prop_scaled(&p->rng, 1, 5 * NSEC_PER_MSEC);
	}
}

static void add_devices(struct prop *p)
{
	static const u32 read_ahead_kb[] = { 0, 4, 128, 4096 };

	for (u32 i = 0; i < p->devices; i++) {
		struct device_config c;

		draw_device(p, &c);
		if (device_create(&c, &p->device[i]))
			prop_fail(p, "no device");
		device_set_fault(p->device[i], fault, p);
		if (engine_add_device(p->engine, p->device[i], read_ahead_kb[rng_below(&p->rng, 4)],
				      prop_chance(&p->rng, 8)))
			prop_fail(p, "device not added");
	}
}

int prop_create(struct prop *p, struct prop_file *f)
{
	return inode_create(p->engine, f->device, f->block_bytes, &f->inode);
}

static void open_one(struct prop *p, struct prop_file *f, unsigned flags, struct file **out)
{
	while (file_open(f->inode, flags, out))
		if (!prop_refuse_one_in)
			prop_fail(p, "open fails");
}

void prop_open(struct prop *p, struct prop_file *f, u32 task, bool sync)
{
	f->sync[task] = sync;
	open_one(p, f, sync ? FILE_SYNC : 0, &f->buffered[task]);
	open_one(p, f, FILE_DIRECT, &f->direct[task]);
}

void prop_close(struct prop_file *f, u32 task)
{
	file_close(f->buffered[task]);
	file_close(f->direct[task]);
}

static void add_file(struct prop *p, u32 number)
{
	struct prop_file *f = &p->file[number];

	f->number = number;
	f->block_bytes = 512u << ((p->seed + number) % 4);
	f->device = (u32)rng_below(&p->rng, p->devices);
	f->capacity = scaled(&p->rng, p->profile->file_bytes);
	if (p->tasks > 1 && prop_chance(&p->rng, 2))
		f->stripe_bytes = f->block_bytes * prop_scaled(&p->rng, 1, 64);
	f->bytes = calloc(1, f->capacity);
	rwsem_init(&f->lock, RANK_NONE);
	if (!f->bytes || prop_create(p, f))
		prop_fail(p, "no file");
	for (u32 i = 0; i < p->tasks + p->noise; i++)
		prop_open(p, f, i, false);
}

static void add_task(struct prop *p, u32 number)
{
	struct prop_task *t = &p->task[number];
	bool works = number < p->tasks;

	t->p = p;
	t->number = number;
	t->widest_interval = DIRTY_POLL_PAGES + 1;
	rng_init(&t->rng, p->seed * 64 + number);
	t->buf = malloc(p->op_bytes);
	t->task =
		t->buf ? world_spawn(works ? "worker" : "noise", works ? worker : noise, t) : NULL;
	if (!t->task)
		prop_fail(p, "no task");
}

/* --- the run */

/* Every other run syncs first and looks; the others take down what is dirty and in flight. */
static void finish(struct prop *p)
{
	struct prop_task *t = &p->task[0];
	bool last_look = p->seed % 2;
	int rc = 0;

	t->alone = true;
	audit(p);
	for (u32 i = 0; last_look && i < p->files; i++)
		prop_check_file(t, &p->file[i]);
	rc = last_look ? engine_sync(p->engine) : 0;
	if (rc)
		prop_fail(p, "the last sync gave %d", rc);
	for (u32 i = 0; i < p->files; i++) {
		struct prop_file *f = &p->file[i];

		if (last_look)
			prop_check_store(p, f, 0, f->capacity);
		for (u32 j = 0; j < p->tasks + p->noise; j++)
			prop_close(f, j);
		if (prop_chance(&p->rng, 2))
			inode_destroy(f->inode);
		free(f->bytes);
	}
	rc = engine_destroy(p->engine);
	if (rc)
		prop_fail(p, "engine_destroy gave %d", rc);
}

static void first_task(void *arg)
{
	struct prop *p = arg;
	bool faults = (p->profile->faults || p->profile->refusals) && setting("SLUICE_FAULTS", 1);
	struct task *gremlin = NULL;

	if (engine_create(&p->config, &p->engine))
		prop_fail(p, "no engine");
	add_devices(p);
	prop_add_tenants(p);
	for (u32 i = 0; i < p->files; i++)
		add_file(p, i);
	sim_event_init(&p->watchdog, watch);
	p->watched_step = ~0ull;
	sim_event_at(&p->watchdog, WATCH_NS);
	p->running = p->tasks;
	for (u32 i = 0; i < p->tasks + p->noise; i++)
		add_task(p, i);
	if (faults)
		gremlin = world_spawn("faults", faults_task, p);
	for (u32 i = 0; i < p->tasks + p->noise; i++)
		world_join(p->task[i].task);
	if (gremlin)
		world_join(gremlin);
	sim_event_cancel(&p->watchdog);
	finish(p);
	for (u32 i = 0; i < p->tasks + p->noise; i++)
		free(p->task[i].buf);
	for (u32 i = 0; i < p->devices; i++) {
		if (!device_idle(p->device[i]))
			prop_fail(p, "device %u is not idle", i);
		device_destroy(p->device[i]);
	}
}

static void fill_pool(struct prop *p)
{
	p->pool_bytes = 2 * p->op_bytes;
	p->pool = malloc(p->pool_bytes + sizeof(u64));
	if (!p->pool)
		prop_fail(p, "no memory");
	for (u64 at = 0; at < p->pool_bytes; at += sizeof(u64)) {
		u64 word = rng_u64(&p->rng);

		memcpy(p->pool + at, &word, sizeof(word));
	}
}

/* Returns how many failures it met. */
static u64 run_seed(const struct prop_profile *profile, u64 seed)
{
	struct prop *p = calloc(1, sizeof(*p));
	char why[512] = "";
	struct world *w;
	u64 injected;

	assert(p);
	p->profile = profile;
	p->seed = seed;
	rng_init(&p->rng, seed);
	rng_init(&p->faults.rng, seed + 1);
	current = p;
	draw(p);
	fill_pool(p);
	if (getenv("SLUICE_TRACE"))
		describe(p);
	w = sim_create(&p->sim);
	if (!w || sim_run(w, first_task, p, why, sizeof(why)))
		prop_fail(p, "tasks are stuck: %s", why);
	sim_destroy(w);
	current = NULL;
	injected = p->faults.injected;
	free(p->pool);
	free(p);
	return injected;
}

void prop_run(const struct prop_profile *profile)
{
	const char *only = getenv("SLUICE_PROFILE");
	u64 runs = profile->runs, first = setting("SLUICE_SEED", 1), injected = 0;

	if (only && strcmp(only, profile->name))
		return;
	if (getenv("SLUICE_SOAK"))
		runs *= 10;
	else if (getenv("SLUICE_SEED"))
		runs = 1;
	signal(SIGABRT, tell_and_die);
	signal(SIGTERM, tell_and_die);
	for (u64 i = 0; i < runs; i++)
		injected += run_seed(profile, first + i);
	print_message("# %s: %llu runs of %u steps, %llu failures injected\n", profile->name,
		      (unsigned long long)runs, profile->steps, (unsigned long long)injected);
	if ((profile->faults || profile->refusals) && runs >= profile->runs)
		assert_true(injected > runs);
}
