/* SPDX-License-Identifier: MIT */
/*
 * Building a machine: each device is made and attached to the page cache with its knobs, and
 * the files are one table of names in which each device but the first has a folder. The knobs
 * that are shares of the limit are set when all devices are there, since their sum counts.
 */
#include "lab/rig.h"
#include "job/engine_sluice.h"
#include "lab/fuse_server.h"
#include "lab/page_out.h"

static int make_devices(struct rig *r, const struct setup *s, u64 seed)
{
	int error = 0;

	for (u32 i = 0; i < s->device_count && !error; i++) {
		struct device_config config = s->device[i].config;

		/* each has random numbers of its own; a machine's only one has the run's */
		config.seed = seed + i;
		error = device_create(&config, &r->device[i]);
		r->device_count += !error;
	}
	return error;
}

/* The devices' min parts are taken back before they are given anew: on the way their sum counts. */
static int set_parts(struct rig *r, const struct setup_device *as)
{
	int error = 0;

	for (u32 i = 0; i < r->device_count && !error; i++) {
		struct bdi_settings none = as[i].bdi;

		none.min_ratio = 0;
		none.min_bytes = 0;
		error = engine_set_bdi(r->engine, i, &none);
	}
	for (u32 i = 0; i < r->device_count && !error; i++)
		error = engine_set_bdi(r->engine, i, &as[i].bdi);
	return error;
}

static int add_devices(struct rig *r, const struct setup *s)
{
	int error = 0;

	for (u32 i = 0; i < s->device_count && !error; i++)
		error = engine_add_device(r->engine, r->device[i], s->device[i].bdi.read_ahead_kb,
					  s->device[i].bdi.strict_limit);
	return error ? error : set_parts(r, s->device);
}

static int add_files(struct rig *r, const struct setup *s)
{
	int error = engine_sluice_create(r->engine, 0, s->device[0].block_bytes, &r->files);

	for (u32 i = 1; i < s->device_count && !error; i++)
		error = engine_sluice_mount(r->files, s->device[i].mount, i,
					    s->device[i].block_bytes);
	for (u32 i = 0; i < s->device_count && !error; i++)
		if (s->device[i].shared_file)
			error = engine_sluice_share(r->files, s->device[i].shared_file);
	return error;
}

static int add_tenants(struct rig *r, const struct setup *s)
{
	struct tenant *t;
	int error = 0;

	for (u32 i = 0; i < s->tenant_count && !error; i++)
		error = engine_add_tenant(r->engine, s->tenant[i].name, &s->tenant[i].settings, &t);
	return error;
}

static int start_servers(struct rig *r, const struct setup *s)
{
	int error = 0;

	for (u32 i = 0; i < s->device_count && !error; i++)
		if (device_is_fuse(r->device[i]))
			error = fuse_server_start(r->engine, r->device[i],
						  setup_backing(s, &s->device[i].config),
						  &r->server[i]);
	return error;
}

int rig_build(struct rig *r, const struct setup *s, const struct policy *policy, u64 seed,
	      const char **doing)
{
	const struct engine_config engine = {
		.memory_bytes = s->memory_bytes,
		.reserve_bytes = s->reserve_bytes,
		.ready_bytes = s->ready_bytes,
		.fs = s->fs,
		.policy = *policy,
		.vm = s->vm,
	};
	int error;

	*r = (struct rig){ 0 };
	*doing = s->device_count > 1 ? "making the devices" : "making the device";
	error = make_devices(r, s, seed);
	if (error)
		return error;
	*doing = "making the page cache";
	error = engine_create(&engine, &r->engine);
	if (error)
		return error;
	*doing = "attaching the devices";
	error = add_devices(r, s);
	if (error)
		return error;
	*doing = "starting the servers";
	error = start_servers(r, s);
	if (error)
		return error;
	*doing = "making the files";
	error = add_files(r, s);
	if (error)
		return error;
	*doing = "making the tenants";
	error = add_tenants(r, s);
	if (error || !s->page_out_bytes)
		return error;
	*doing = "starting to page out";
	return page_out_start(r->engine, s->page_out_bytes, &r->page_out);
}

static void wait_until_idle(const struct device *d)
{
	while (!device_idle(d))
		world_sleep_until(world_now() + NSEC_PER_MSEC);
}

void rig_take_down(struct rig *r)
{
	if (r->page_out)
		page_out_stop(r->page_out);
	if (r->files)
		engine_sluice_destroy(r->files);
	for (u32 i = 0; i < r->device_count; i++)
		if (r->server[i]) {
			wait_until_idle(r->device[i]);
			fuse_server_stop(r->server[i]);
		}
	if (r->engine)
		engine_discard(r->engine);
	for (u32 i = 0; i < r->device_count; i++)
		device_destroy(r->device[i]);
	*r = (struct rig){ 0 };
}

int rig_set(struct rig *r, const struct vm_settings *vm, const struct setup_device *as, u64 seed)
{
	int error = 0;

	for (u32 i = 0; i < r->device_count; i++)
		wait_until_idle(r->device[i]);
	for (u32 i = 0; i < r->device_count && !error; i++) {
		struct device_config config = as[i].config;

		config.seed = seed + i;
		error = device_reconfigure(r->device[i], &config);
	}
	engine_set_vm(r->engine, vm); /* before the devices' parts of it */
	return error ? error : set_parts(r, as);
}
