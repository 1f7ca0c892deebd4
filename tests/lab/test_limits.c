/* SPDX-License-Identifier: MIT */
/*
 * Limits of a machine file against the engine's own, limits of a system against what
 * its kernel said (tests/lab/linux-6.18 was copied from a running one, a FUSE mount and
 * an unused loop device added), and every warning.
 */
#include "lab/limits.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define GIB_PAGES (1ull << 18)

static struct setup plain(void)
{
	struct setup s = { .memory_bytes = 16ull << 30, .device_count = 1 };

	sim_config_init(&s.sim);
	s.sim.cpus = 4;
	vm_settings_init(&s.vm);
	bdi_settings_init(&s.device[0].bdi);
	strcpy(s.device[0].config.model, "rate");
	s.device[0].config.bytes_per_s = 100 << 20;
	return s;
}

struct asked {
	const struct setup *setup;
	struct engine_stats stats;
};

static void ask_engine(void *arg)
{
	struct asked *a = arg;
	struct engine_config c = { .memory_bytes = a->setup->memory_bytes,
				   .reserve_bytes = a->setup->reserve_bytes,
				   .policy = *policy_find("linux-7.4"),
				   .vm = a->setup->vm };
	struct engine *e;

	assert_int_equal(engine_create(&c, &e), 0);
	engine_stats(e, &a->stats);
	engine_discard(e);
}

static void assert_as_the_engine(const struct setup *setup)
{
	struct asked a = { .setup = setup };
	struct world *w = sim_create(&setup->sim);
	struct limits_view v;
	char why[128];

	assert_non_null(w);
	assert_int_equal(sim_run(w, ask_engine, &a, why, sizeof(why)), 0);
	sim_destroy(w);
	assert_int_equal(limits_of_setup(&v, setup), 0);
	assert_int_equal(limits_work_out(&v), 0);
	assert_int_equal(v.limit, a.stats.thresh);
	assert_int_equal(v.bg, a.stats.background_thresh);
	limits_finish(&v);
}

static void the_engine_has_the_same_limits(void **state)
{
	struct setup s = plain();

	(void)state;
	assert_as_the_engine(&s);
	s.reserve_bytes = 5ull << 30;
	s.vm.dirty_ratio = 33;
	assert_as_the_engine(&s);
	s.vm.dirty_bytes = 1 << 30;
	assert_as_the_engine(&s);
	s.vm.dirty_background_bytes = 2ull << 30;
	assert_as_the_engine(&s);
}

static void levels_stand_between_each_other(void **state)
{
	struct setup s = plain();
	struct limits_view v;

	(void)state;
	s.vm.dirty_bytes = 8ull << 30;
	s.vm.dirty_background_bytes = 4ull << 30;
	assert_int_equal(limits_of_setup(&v, &s), 0);
	assert_int_equal(limits_work_out(&v), 0);
	assert_int_equal(v.avail, 16 * GIB_PAGES + 1);
	assert_int_equal(v.bg, 4 * GIB_PAGES);
	assert_int_equal(v.freerun, 6 * GIB_PAGES);
	assert_int_equal(v.setpoint, 7 * GIB_PAGES);
	assert_int_equal(v.limit, 8 * GIB_PAGES);
	assert_int_equal(v.poll, 8 * GIB_PAGES / 32 / 4);
	assert_int_equal(v.warning_count, 0);
	assert_false(v.kernel_says);
	limits_finish(&v);
}

static const char copied[] = SOURCE_ROOT "/tests/lab/linux-6.18";

static void a_system_has_its_kernels_limits(void **state)
{
	struct limits_view v;
	struct err e = { "" };

	(void)state;
	assert_int_equal(limits_of_system(&v, copied, &e), 0);
	assert_int_equal(limits_work_out(&v), 0);
	/* DMA: all of its 3840 pages; DMA32: 4278 + 15616; Normal: 22141; Movable is empty */
	assert_int_equal(v.reserve, 3840 + 19894 + 22141);
	assert_int_equal(v.avail, 21986360 / 4 - 45875 + 188802 + 292294 + 1);
	assert_true(v.kernel_says);
	assert_int_equal(v.limit, 1186072);
	assert_int_equal(v.kernel_thresh, 1186072);
	assert_int_equal(v.bg, 592312);
	assert_int_equal(v.kernel_bg, 592312);
	limits_finish(&v);
}

static void a_system_has_its_devices(void **state)
{
	struct limits_view v;
	struct err e = { "" };

	(void)state;
	assert_int_equal(limits_of_system(&v, copied, &e), 0);
	assert_int_equal(limits_work_out(&v), 0);
	/* not the loop device without a file */
	assert_int_equal(v.device_count, 2);
	assert_string_equal(v.devices[0].name, "0:52");
	assert_true(v.devices[0].strict);
	assert_int_equal(v.devices[0].read_ahead_kb, 1024);
	assert_true(v.devices[0].max_ratio == 1);
	assert_int_equal(v.devices[0].most, 11860);
	assert_string_equal(v.devices[1].name, "vda");
	assert_false(v.devices[1].strict);
	assert_true(v.devices[1].max_ratio == 100);
	assert_int_equal(v.devices[1].most, 1186072);
	assert_int_equal(v.warning_count, 0);
	limits_finish(&v);
}

static void a_system_that_does_not_tell_is_an_error(void **state)
{
	struct limits_view v;
	struct err e = { "" };

	(void)state;
	assert_int_equal(limits_of_system(&v, SOURCE_ROOT "/tests/lab", &e), -ENOENT);
	assert_string_equal(e.text, SOURCE_ROOT
			    "/tests/lab/proc/meminfo: cannot be read: No such file or directory");
}

static void assert_warning(const struct setup *s, const char *warning)
{
	struct limits_view v;

	assert_int_equal(limits_of_setup(&v, s), 0);
	assert_int_equal(limits_work_out(&v), 0);
	assert_int_equal(v.warning_count, 1);
	assert_string_equal(v.warnings[0], warning);
	limits_finish(&v);
}

static void settings_that_cannot_work_are_warned_of(void **state)
{
	struct setup s = plain();

	(void)state;
	s.vm.dirty_background_ratio = 30;
	assert_warning(&s, "dirty_background_ratio = 30 (4.8G) is not below dirty_ratio = 20 "
			   "(3.2G): half of the limit, 1.6G, counts instead");
	s = plain();
	s.vm.dirty_background_bytes = 8ull << 30;
	assert_warning(&s, "dirty_background_bytes = 8G (8G) is not below dirty_ratio = 20 (3.2G): "
			   "half of the limit, 1.6G, counts instead");
	s = plain();
	s.vm.dirty_ratio = 0;
	assert_warning(&s, "dirty_ratio = 0: nothing may be dirty, every writer waits for its data "
			   "to be written");
	s = plain();
	s.vm.dirty_background_ratio = 0;
	assert_warning(&s, "dirty_background_ratio = 0: the flusher never rests while anything is "
			   "dirty");
	s = plain();
	s.vm.dirty_bytes = 32ull << 30;
	assert_warning(&s, "dirty_bytes = 32G: the limit of 32G is all of the dirtyable memory or "
			   "more: memory runs out before writers are stopped");
	s = plain();
	s.vm.dirty_writeback_centisecs = 0;
	assert_warning(&s, "dirty_writeback_centisecs = 0: what is dirty may stay so for ever, "
			   "below the background threshold nothing is written");
	s = plain();
	s.sim.cpus = 64;
	s.device[0].config.bytes_per_s = 0;
	s.vm.dirty_bytes = 8 << 20;
	s.vm.dirty_background_bytes = 4 << 20;
	assert_warning(&s, "64 CPUs may each dirty 64K before somebody looks: 4M, more than the 2M "
			   "between freerun and limit");
}

/* 100 MiB a second: 20 MiB in 200 ms. */
static void limits_must_last_for_a_pause(void **state)
{
	struct setup s = plain();
	struct limits_view v;

	(void)state;
	s.vm.dirty_bytes = 19 << 20;
	s.vm.dirty_background_bytes = 9 << 20;
	assert_warning(&s, "rate: may have 19M dirty, but writes 20M in 200 ms: it runs dry while "
			   "writers sleep");
	s.vm.dirty_bytes = 21 << 20;
	assert_warning(&s, "rate: writes 20M in 200 ms, more than the 6M between freerun and "
			   "limit: its writers are stopped instead of slowed");
	s.vm.dirty_bytes = 49 << 20;
	assert_int_equal(limits_of_setup(&v, &s), 0);
	assert_int_equal(limits_work_out(&v), 0);
	assert_int_equal(v.warning_count, 0);
	limits_finish(&v);
}

static void a_strict_device_needs_room_for_a_folio(void **state)
{
	struct setup s = plain();

	(void)state;
	s.device[0].bdi.strict_limit = true;
	s.device[0].config.bytes_per_s = 0;
	s.device[0].bdi.read_ahead_kb = 8192;
	s.vm.dirty_bytes = 7 << 20;
	s.vm.dirty_background_bytes = 2 << 20;
	assert_warning(&s,
		       "rate: has a strict limit of 7M, and readahead makes folios of up to "
		       "2M: one small write into such a folio can take its writers from free to "
		       "stopped");
}

/* As experiments/field/strict-limit.ini: 4,095 pages, half of them background. */
static void a_strict_devices_pace_is_exact(void **state)
{
	static const struct {
		u64 dirty, ratio, allowed;
	} paces[] = { { 3072, 1024, 25600 }, { 3319, 1009, 25225 }, { 4095, 0, 0 } };
	struct setup s = plain();
	struct limits_view v;

	(void)state;
	s.memory_bytes = 8ull << 30;
	s.vm.dirty_ratio = 40;
	s.vm.dirty_background_ratio = 20;
	s.device[0].bdi.strict_limit = true;
	s.device[0].bdi.max_bytes = 16 << 20;
	assert_int_equal(limits_of_setup(&v, &s), 0);
	assert_int_equal(limits_work_out(&v), 0);
	assert_int_equal(v.devices[0].most, 4095);
	for (size_t i = 0; i < ARRAY_SIZE(paces); i++) {
		struct limits_pace p = limits_pace(&v, &v.devices[0], paces[i].dirty);

		assert_int_equal(p.freerun, 3071);
		assert_int_equal(p.rate, 25600);
		assert_int_equal(p.pos_ratio, paces[i].ratio);
		assert_int_equal(p.allowed, paces[i].allowed);
	}
	limits_finish(&v);
}

static void several_devices_are_all_there(void **state)
{
	struct setup s = plain();
	struct limits_view v;

	(void)state;
	s.device_count = 2;
	s.device[1] = s.device[0];
	strcpy(s.device[1].name, "slow");
	s.device[1].bdi.max_ratio = 10000;
	s.device[1].config.bytes_per_s = 1 << 20;
	assert_int_equal(limits_of_setup(&v, &s), 0);
	assert_int_equal(limits_work_out(&v), 0);
	assert_int_equal(v.device_count, 2);
	assert_string_equal(v.devices[1].name, "slow");
	assert_int_equal(v.devices[1].most, v.limit / 100);
	assert_int_equal(v.devices[0].most, v.limit);
	limits_finish(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_engine_has_the_same_limits),
		cmocka_unit_test(levels_stand_between_each_other),
		cmocka_unit_test(a_system_has_its_kernels_limits),
		cmocka_unit_test(a_system_has_its_devices),
		cmocka_unit_test(a_system_that_does_not_tell_is_an_error),
		cmocka_unit_test(settings_that_cannot_work_are_warned_of),
		cmocka_unit_test(limits_must_last_for_a_pause),
		cmocka_unit_test(a_strict_device_needs_room_for_a_folio),
		cmocka_unit_test(a_strict_devices_pace_is_exact),
		cmocka_unit_test(several_devices_are_all_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
