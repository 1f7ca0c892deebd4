/* SPDX-License-Identifier: MIT */
/* Setups: defaults, layers, every range, and complaints at the place of the mistake. */
#include "lab/setup.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* "section.key=value ..." in layer order; the n-th stands on line n of "x.ini". */
struct text_settings {
	struct settings all;
	char *copy;
};

static void parse(struct text_settings *s, const char *text)
{
	int line = 1;
	char *rest;

	*s = (struct text_settings){ .copy = strdup(text) };
	rest = s->copy;
	for (char *word; (word = strsep(&rest, " ")); line++) {
		char *value = strchr(word, '='), *key = strchr(word, '.');
		struct setting new = { word, key + 1, value + 1, { "x.ini", line } };

		*value = *key = 0;
		assert_int_equal(settings_add(&s->all, &new), 0);
	}
}

static int read_text(struct setup *out, const char *text, struct err *e)
{
	struct text_settings s;
	int error;

	parse(&s, text);
	error = setup_read(out, &s.all, "exp.ini", e);
	settings_finish(&s.all);
	free(s.copy);
	return error;
}

#define LEAST "machine.cpus=4 machine.memory=1G device.model=rate"

static void what_is_not_said_has_its_default(void **state)
{
	struct setup s;
	struct err e = { "" };

	(void)state;
	assert_int_equal(read_text(&s, LEAST, &e), 0);
	assert_string_equal(e.text, "");
	assert_int_equal(s.sim.cpus, 4);
	assert_int_equal(s.sim.hz, 250);
	assert_int_equal(s.sim.cost_ns[COST_COPY], 400);
	assert_int_equal(s.memory_bytes, 1 << 30);
	assert_int_equal(s.reserve_bytes, 0);
	assert_int_equal(s.vm.dirty_ratio, 20);
	assert_int_equal(s.vm.dirty_background_ratio, 10);
	assert_int_equal(s.vm.dirty_writeback_centisecs, 500);
	assert_int_equal(s.vm.dirty_expire_centisecs, 3000);
	assert_int_equal(s.device[0].bdi.read_ahead_kb, 128);
	assert_int_equal(s.device[0].block_bytes, 4096);
	assert_int_equal(s.device[0].size_bytes, 0);
	assert_false(s.device[0].bdi.strict_limit);
	assert_string_equal(s.device[0].config.model, "rate");
}

static void every_key_lands_in_its_field(void **state)
{
	struct setup s;
	struct err e = { "" };

	(void)state;
	assert_int_equal(read_text(&s,
				   LEAST
				   " machine.hz=100 machine.fs=ext4 machine.reserve=64M "
				   "machine.page_size=4096 "
				   "cpu.copy_ns=111 cpu.wake_ns=222 vm.dirty_ratio=40 "
				   "vm.dirty_background_bytes=1M vm.dirty_writeback_centisecs=100 "
				   "vm.dirty_expire_centisecs=0 device.size=10G "
				   "device.read_ahead_kb=4096 device.block_bytes=1024 "
				   "device.strict_limit=yes device.iops=500",
				   &e),
			 0);
	assert_int_equal(s.sim.hz, 100);
	assert_int_equal(s.fs, FS_EXT4);
	assert_int_equal(s.reserve_bytes, 64 << 20);
	assert_int_equal(s.sim.cost_ns[COST_COPY], 111);
	assert_int_equal(s.sim.cost_ns[COST_WAKE], 222);
	assert_int_equal(s.vm.dirty_ratio, 40);
	assert_int_equal(s.vm.dirty_background_bytes, 1 << 20);
	assert_int_equal(s.vm.dirty_writeback_centisecs, 100);
	assert_int_equal(s.vm.dirty_expire_centisecs, 0);
	assert_true(s.device[0].size_bytes == 10ull << 30);
	assert_int_equal(s.device[0].bdi.read_ahead_kb, 4096);
	assert_int_equal(s.device[0].block_bytes, 1024);
	assert_true(s.device[0].bdi.strict_limit);
	assert_true(s.device[0].config.iops == 500);
}

/* Under the names of /sys/class/bdi; of a ratio and its bytes the last counts. */
static void a_devices_part_of_the_limit(void **state)
{
	struct setup s;
	struct err e = { "" };

	(void)state;
	assert_int_equal(read_text(&s, LEAST " device.min_ratio=5 device.max_ratio=50", &e), 0);
	assert_int_equal(s.device[0].bdi.min_ratio, 50000);
	assert_int_equal(s.device[0].bdi.max_ratio, 500000);
	assert_int_equal(read_text(&s,
				   LEAST " device.max_bytes=16M device.max_ratio_fine=123456 "
					 "device.min_ratio_fine=10 device.min_bytes=4M",
				   &e),
			 0);
	assert_int_equal(s.device[0].bdi.max_ratio, 123456);
	assert_int_equal(s.device[0].bdi.max_bytes, 0);
	assert_int_equal(s.device[0].bdi.min_bytes, 4 << 20);
	assert_int_equal(read_text(&s, LEAST, &e), 0);
	assert_int_equal(s.device[0].bdi.max_ratio, BDI_RATIO_ALL);
	/* 1 GiB * 819/4096 */
	assert_int_equal(setup_limit(&s), 52416);
}

static void devices_have_folders(void **state)
{
	static const struct {
		const char *path;
		u32 device;
	} files[] = {
		{ "f", 0 },         { "/f", 0 },           { "/fast", 0 },
		{ "/fast/f", 1 },   { "/fast//a/f", 1 },   { "/./fast/f", 1 },
		{ "/faster/f", 0 }, { "fast/f", 0 },       { "/fast/log/f", 2 },
		{ "rel/f", 3 },     { "./rel/./f", 3 },    { "/rel/f", 0 },
		{ "/fast/log", 1 }, { "/fast/logs/f", 1 }, { "/fast/./log/f", 2 },
	};
	struct text_settings t;
	struct setup s;
	struct err e = { "" };

	(void)state;
	parse(&t, LEAST " d1.model=ebs d1.mount=/fast d1.iops=7 d2.model=rate d2.mount=/fast/log/ "
			"d3.model=rate d3.mount=rel d3.strict_limit=yes");
	for (size_t i = 0; i < t.all.count; i++) {
		static const char *const names[] = { "device one", "device two", "device three" };

		if (t.all.all[i].section[0] == 'd' && t.all.all[i].section[1] != 'e')
			t.all.all[i].section = names[t.all.all[i].section[1] - '1'];
	}
	if (setup_read(&s, &t.all, "exp.ini", &e))
		fail_msg("%s", e.text);
	assert_int_equal(s.device_count, 4);
	assert_string_equal(setup_device_name(&s.device[0]), "rate");
	assert_string_equal(setup_device_name(&s.device[1]), "one");
	assert_string_equal(s.device[1].config.name, "one");
	assert_true(s.device[1].config.iops == 7);
	assert_true(s.device[3].bdi.strict_limit && !s.device[0].bdi.strict_limit);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (setup_device_of(&s, files[i].path) != &s.device[files[i].device])
			fail_msg("%s", files[i].path);
	settings_finish(&t.all);
	free(t.copy);
}

static void later_layers_win(void **state)
{
	struct setup s;
	struct err e = { "" };

	(void)state;
	assert_int_equal(read_text(&s, LEAST " device.iops=500 machine.cpus=8 device.iops=700", &e),
			 0);
	assert_int_equal(s.sim.cpus, 8);
	assert_true(s.device[0].config.iops == 700);
	/* What a later layer replaces must still make sense: a file is right or wrong by itself. */
	assert_int_equal(read_text(&s, "machine.cpus=0 " LEAST, &e), -EINVAL);
	assert_string_equal(e.text, "x.ini:1: cpus cannot be \"0\", only 1 to 1024");
}

/* As in /proc/sys/vm: the last of the pair counts. */
static void ratios_and_bytes_replace_each_other(void **state)
{
	struct setup s;
	struct err e = { "" };

	(void)state;
	assert_int_equal(read_text(&s, LEAST " vm.dirty_bytes=64M", &e), 0);
	assert_int_equal(s.vm.dirty_bytes, 64 << 20);
	assert_int_equal(read_text(&s, LEAST " vm.dirty_bytes=64M vm.dirty_ratio=30", &e), 0);
	assert_int_equal(s.vm.dirty_bytes, 0);
	assert_int_equal(s.vm.dirty_ratio, 30);
	assert_int_equal(
		read_text(&s, LEAST " vm.dirty_background_ratio=5 vm.dirty_background_bytes=1M",
			  &e),
		0);
	assert_int_equal(s.vm.dirty_background_bytes, 1 << 20);
}

static void assert_refused(const char *text, const char *complaint)
{
	struct setup s;
	struct err e = { "" };

	assert_int_equal(read_text(&s, text, &e), -EINVAL);
	assert_string_equal(e.text, complaint);
}

static void mistakes_are_named_where_they_stand(void **state)
{
	(void)state;
	assert_refused(LEAST " machine.cpus=0", "x.ini:4: cpus cannot be \"0\", only 1 to 1024");
	assert_refused(LEAST " machine.cpus=many",
		       "x.ini:4: cpus cannot be \"many\", only 1 to 1024");
	assert_refused(LEAST " machine.fs=btrfs",
		       "x.ini:4: fs cannot be \"btrfs\", only xfs or ext4");
	assert_refused(LEAST " machine.hz=300",
		       "x.ini:4: hz cannot be \"300\", only 100, 250 or 1000");
	assert_refused(LEAST " machine.page_size=16384", "x.ini:4: page_size can only be 4096");
	assert_refused(LEAST " machine.memory=100",
		       "x.ini:4: memory cannot be \"100\", only whole pages of 4096 bytes, "
		       "16M to 15T");
	assert_refused(LEAST " machine.reserve=1G", "x.ini:4: reserve must be smaller than memory");
	assert_refused("machine.cpus=1 machine.memory=1G device.model=fuse device.backing=x",
		       "x.ini:4: backing = x: there is no [device x]");
	assert_refused(LEAST " machine.cpu=3",
		       "x.ini:4: unknown key \"cpu\" in section [machine]; did you mean \"cpus\"?");
	assert_refused(
		LEAST " cpu.cop_ns=3",
		"x.ini:4: unknown key \"cop_ns\" in section [cpu]; did you mean \"copy_ns\"?");
	assert_refused(LEAST " vm.swappiness=3",
		       "x.ini:4: unknown key \"swappiness\" in section [vm], which takes "
		       "dirty_ratio, dirty_background_ratio, dirty_bytes, dirty_background_bytes, "
		       "dirty_writeback_centisecs, dirty_expire_centisecs");
	assert_refused(LEAST " cpu.copy_ns=-3", "x.ini:4: copy_ns cannot be \"-3\", only 0 to "
						"1000000000 (nanoseconds)");
	assert_refused(LEAST " vm.dirty_ratio=101",
		       "x.ini:4: dirty_ratio cannot be \"101\", only 0 to 100 (percent)");
	assert_refused(LEAST " vm.dirty_bytes=4096",
		       "x.ini:4: dirty_bytes cannot be \"4096\", only a size of at least 8192");
	assert_refused(LEAST " device.read_ahead_kb=6",
		       "x.ini:4: read_ahead_kb cannot be \"6\", only a multiple of 4, at most "
		       "1048576");
	assert_refused(LEAST " device.block_bytes=1536",
		       "x.ini:4: block_bytes cannot be \"1536\", only 512, 1024, 2048 or 4096");
	assert_refused(LEAST " device.strict_limit=maybe",
		       "x.ini:4: strict_limit cannot be \"maybe\", only yes or no");
	assert_refused("machine.cpus=4 device.model=rate",
		       "exp.ini: section [machine] needs \"memory\"");
	assert_refused("machine.cpus=4 machine.memory=1G",
		       "exp.ini: there is no [device]: an experiment needs one");
}

/* The device's own reader complains about lines of its making; people see theirs. */
static void the_devices_complaints_are_led_back(void **state)
{
	struct setup s;
	struct err e = { "" };

	(void)state;
	assert_int_equal(read_text(&s, LEAST " machine.hz=100 device.iops=0 vm.dirty_ratio=3", &e),
			 -EINVAL);
	assert_memory_equal(e.text, "x.ini:5: iops", 13);
	e.text[0] = 0;
	assert_int_equal(read_text(&s, "machine.cpus=4 machine.memory=1G device.iops=3", &e),
			 -EINVAL);
	assert_memory_equal(e.text, "x.ini:3: ", 9);
	assert_non_null(strstr(e.text, "model"));
	e.text[0] = 0;
	assert_int_equal(read_text(&s, LEAST " device.ipos=3", &e), -EINVAL);
	assert_memory_equal(e.text, "x.ini:4: ", 9);
	assert_non_null(strstr(e.text, "\"iops\""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_said_has_its_default),
		cmocka_unit_test(every_key_lands_in_its_field),
		cmocka_unit_test(a_devices_part_of_the_limit),
		cmocka_unit_test(devices_have_folders),
		cmocka_unit_test(later_layers_win),
		cmocka_unit_test(ratios_and_bytes_replace_each_other),
		cmocka_unit_test(mistakes_are_named_where_they_stand),
		cmocka_unit_test(the_devices_complaints_are_led_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
