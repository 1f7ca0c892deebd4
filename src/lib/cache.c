// SPDX-License-Identifier: MIT
/*
 * The cache of a program: a device that executes I/O, an engine over it, and the table of its open
 * paths, made in that order and taken down in the opposite one. Flushers and I/O threads are tasks
 * of a real world that belongs to the cache; threads of the program come as they are.
 */
#include "base/units.h"
#include "lib/inner.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HZ        250 /* of threads that nobody bound to a world: world.c */
#define RESIZE_NS (10 * NSEC_PER_SEC)

const char *sluice_version(void)
{
	return SLUICE_VERSION;
}

static int make_device(struct sluice *c, struct err *e)
{
	int rc = device_create(&c->config.device, &c->device);

	if (rc && c->config.device.io_engine == IO_ENGINE_URING)
		err_set(e, NULL, 0, "io_engine=uring: the kernel refuses (%s); auto is right",
			strerror(-rc));
	else if (rc)
		err_set(e, NULL, 0, "starting I/O: %s", strerror(-rc));
	return rc;
}

static int make_engine(struct sluice *c, struct err *e)
{
	char memory[UNITS_TEXT_MAX];
	int rc = engine_create(&c->config.engine, &c->engine);

	units_print_bytes(memory, c->config.engine.memory_bytes);
	if (rc == -ENOMEM && c->config.engine.huge_pages == HUGE_ALWAYS)
		err_set(e, NULL, 0,
			"huge_pages=always: memory=%s is more than is set aside in pages of 2 MiB "
			"(vm.nr_hugepages); auto needs none",
			memory);
	else if (rc)
		err_set(e, NULL, 0, "memory=%s: %s", memory, strerror(-rc));
	return rc;
}

static int add_device(struct sluice *c, struct err *e)
{
	int rc = engine_add_device(c->engine, c->device, c->config.read_ahead_kb,
				   c->config.strict_limit);

	if (rc && c->config.engine.register_memory)
		err_set(e, NULL, 0,
			"register_memory=yes: %s; it needs io_uring, and as much to be locked as "
			"RLIMIT_MEMLOCK allows",
			strerror(-rc));
	return rc;
}

static int make_paths(struct sluice *c)
{
	const struct path_config paths = { .block_bytes = c->config.block_bytes,
					   .idle_max = c->config.idle_files };

	return path_table_create(c->engine, &paths, &c->paths);
}

/* Frees what there is of it: not all, if it could not be made. */
static int take_down(struct sluice *c, struct engine_losses *losses)
{
	int error = 0, rc;

	if (c->paths)
		error = path_table_destroy(c->paths, losses);
	if (c->engine) {
		rc = engine_destroy_telling(c->engine, losses);
		error = error ? error : rc;
	}
	if (c->device)
		device_destroy(c->device);
	lib_survival_end(&c->survival);
	free(c);
	return error;
}

static int build(struct sluice *c, struct err *e)
{
	int rc = lib_survive(&c->config, &c->survival, e);

	if (!rc)
		rc = make_device(c, e);
	if (!rc)
		rc = make_engine(c, e);
	if (!rc)
		rc = add_device(c, e);
	return rc ? rc : make_paths(c);
}

static int create(const struct lib_config *config, struct err *e, struct sluice **out)
{
	struct sluice *c = calloc(1, sizeof(*c));
	struct world *before = world_current;
	int rc;

	if (!c)
		return -ENOMEM;
	c->config = *config;
	mutex_init(&c->stores_lock, RANK_NAMESPACE);
	mutex_init(&c->trace_lock, RANK_NONE);
	list_init(&c->stores);
	world_init_real(&c->world, HZ);
	world_bind(&c->world); /* what is spawned now inherits it */
	rc = build(c, e);
	if (rc)
		take_down(c, NULL);
	else
		*out = c;
	world_bind(before);
	return rc;
}

int sluice_create(const char *const *settings, char *error, size_t error_size, struct sluice **out)
{
	struct err e = { "" };
	struct lib_config config;
	size_t count = 0;
	int rc;

	while (settings && settings[count])
		count++;
	lib_config_init(&config);
	rc = lib_config_read(&config, settings, count, &e);
	if (!rc)
		rc = create(&config, &e, out);
	if (rc)
		err_set(&e, NULL, 0, "%s", strerror(-rc)); /* if nobody said more */
	if (error_size)
		snprintf(error, error_size, "%s", e.text);
	return rc;
}

int sluice_resize(struct sluice *c, uint64_t memory_bytes)
{
	int rc = lib_config_check_memory(memory_bytes);
	u64 left;

	return rc ? rc : engine_resize(c->engine, memory_bytes, RESIZE_NS, &left);
}

/* --- the end */

static void lose(void *ctx, struct inode *inode, u64 bytes, int error)
{
	(void)bytes;
	lib_tell_losses(ctx, inode, error);
}

int sluice_destroy(struct sluice *c, void (*lost)(void *ctx, const struct sluice_loss *loss),
		   void *ctx)
{
	struct lib_losing losing = { .lost = lost, .ctx = ctx };
	struct engine_losses losses = { .lost = lost ? lose : NULL, .ctx = &losing };

	if (atomic_load(&c->files_open) || engine_has_loans(c->engine))
		return -EBUSY;
	trace_stop(&engine_writeback(c->engine)->trace);
	return take_down(c, &losses);
}

/* --- sync */

struct sync {
	void (*progress)(void *ctx, uint64_t done_bytes, uint64_t all_bytes);
	void *ctx;
	u64 all, done; /* pages */
};

/* What others dirty meanwhile hides what was written: then nothing is said to have happened. */
static int sync_progress(void *ctx, u64 left)
{
	struct sync *s = ctx;

	if (left < s->all)
		s->done = max_u64(s->done, s->all - left);
	s->progress(s->ctx, s->done * PAGE_SIZE, s->all * PAGE_SIZE);
	return 0;
}

int sluice_sync(struct sluice *c,
		void (*progress)(void *ctx, uint64_t done_bytes, uint64_t all_bytes), void *ctx)
{
	struct sync s = { .progress = progress, .ctx = ctx };
	struct engine_stats stats;
	int rc;

	if (!progress)
		return engine_sync(c->engine);
	engine_stats(c->engine, &stats);
	s.all = stats.debt + stats.in_flight;
	rc = engine_sync_progress(c->engine, sync_progress, &s);
	if (!rc && s.done != s.all)
		progress(ctx, s.all * PAGE_SIZE, s.all * PAGE_SIZE);
	return rc;
}
