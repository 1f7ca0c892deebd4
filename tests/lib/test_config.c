// SPDX-License-Identifier: MIT
/* Settings: what each key sets, and what is said of those that are wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/config.h"
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct lib_config given(const char *const *settings)
{
	struct lib_config c;
	struct err e = { "" };
	size_t n = 0;

	while (settings[n])
		n++;
	lib_config_init(&c);
	if (lib_config_read(&c, settings, n, &e))
		fail_msg("%s", e.text);
	assert_string_equal(e.text, "");
	return c;
}

#define GIVEN(...) given((const char *const[]){ __VA_ARGS__, NULL })

static void refused(const char *setting, const char *text)
{
	struct lib_config c;
	struct err e = { "" };

	lib_config_init(&c);
	assert_int_equal(lib_config_read(&c, &setting, 1, &e), -EINVAL);
	assert_string_equal(e.text, text);
}

static void test_defaults(void **state)
{
	struct lib_config c = given((const char *const[]){ NULL });

	(void)state;
	assert_int_equal(c.engine.memory_bytes, 256 << 20);
	assert_int_equal(c.engine.max_memory_bytes, 0);
	assert_int_equal(c.engine.reserve_bytes, 0);
	assert_true(c.engine.contents);
	assert_string_equal(c.engine.policy.name, "sluice");
	assert_int_equal(c.engine.vm.dirty_ratio, 20);
	assert_int_equal(c.engine.vm.dirty_background_ratio, 10);
	assert_int_equal(c.engine.vm.dirty_expire_centisecs, 3000);
	assert_int_equal(c.engine.vm.retry_min_ms, 100);
	assert_int_equal(c.engine.vm.retry_max_ms, 10000);
	assert_int_equal(c.engine.vm.dirty_writeback_centisecs, 500);
	assert_int_equal(c.read_ahead_kb, 128);
	assert_int_equal(c.block_bytes, 4096);
	assert_string_equal(c.device.model, "file");
}

static void test_every_key_sets_its_field(void **state)
{
	struct lib_config c =
		GIVEN("memory=64M", "max_memory=1G", "huge_pages=never", "register_memory=yes",
		      "reserve=1M", "vm.dirty_ratio=30", "vm.dirty_background_ratio=5",
		      "vm.dirty_writeback_centisecs=0", "vm.dirty_expire_centisecs=100",
		      "vm.retry_min_ms=5", "retry_max_ms=0", "read_ahead_kb=512",
		      "strict_limit=yes", "block_bytes=512", "idle_files=7", "io_engine=threads",
		      "queue_depth=9", "max_io_kb=256", "direct=0");

	(void)state;
	assert_int_equal(c.engine.memory_bytes, 64 << 20);
	assert_int_equal(c.engine.max_memory_bytes, 1 << 30);
	assert_int_equal(c.engine.huge_pages, HUGE_NEVER);
	assert_true(c.engine.register_memory);
	assert_int_equal(c.engine.reserve_bytes, 1 << 20);
	assert_int_equal(c.engine.vm.dirty_ratio, 30);
	assert_int_equal(c.engine.vm.dirty_background_ratio, 5);
	assert_int_equal(c.engine.vm.dirty_writeback_centisecs, 0);
	assert_int_equal(c.engine.vm.dirty_expire_centisecs, 100);
	assert_int_equal(c.engine.vm.retry_min_ms, 5);
	assert_int_equal(c.engine.vm.retry_max_ms, 0);
	assert_int_equal(c.read_ahead_kb, 512);
	assert_true(c.strict_limit);
	assert_int_equal(c.block_bytes, 512);
	assert_int_equal(c.idle_files, 7);
	assert_int_equal(c.device.io_engine, IO_ENGINE_THREADS);
	assert_int_equal(c.device.queue_depth, 9);
	assert_int_equal(c.device.max_io_bytes, 256 << 10);
	assert_int_equal(c.device.direct, 0);
	c = GIVEN("huge_pages=always");
	assert_int_equal(c.engine.huge_pages, HUGE_ALWAYS);
	c = GIVEN("huge_pages=auto");
	assert_int_equal(c.engine.huge_pages, HUGE_AUTO);
}

static void test_sections_may_be_written_or_left_out(void **state)
{
	struct lib_config c = GIVEN("machine.memory=32M", "device.read_ahead_kb=64",
				    "dirty_ratio=12", "device.io_engine=threads");

	(void)state;
	assert_int_equal(c.engine.memory_bytes, 32 << 20);
	assert_int_equal(c.read_ahead_kb, 64);
	assert_int_equal(c.engine.vm.dirty_ratio, 12);
	assert_int_equal(c.device.io_engine, IO_ENGINE_THREADS);
}

static void test_the_later_setting_wins(void **state)
{
	struct lib_config c = GIVEN("vm.dirty_ratio=30", "vm.dirty_ratio=40");

	(void)state;
	assert_int_equal(c.engine.vm.dirty_ratio, 40);
	/* as the kernel's knobs: of a pair of ratio and bytes the last one written counts */
	c = GIVEN("vm.dirty_bytes=1M", "vm.dirty_ratio=40");
	assert_int_equal(c.engine.vm.dirty_bytes, 0);
	c = GIVEN("vm.dirty_background_bytes=1M", "vm.dirty_background_ratio=4");
	assert_int_equal(c.engine.vm.dirty_background_bytes, 0);
	c = GIVEN("vm.dirty_ratio=40", "vm.dirty_bytes=1M");
	assert_int_equal(c.engine.vm.dirty_bytes, 1 << 20);
}

static void test_choices_go_over_the_preset_wherever_it_stands(void **state)
{
	struct lib_config c = GIVEN("accounting=page", "policy=linux-6.1", "max_order=3");

	(void)state;
	assert_string_equal(c.engine.policy.name, "linux-6.1");
	assert_int_equal(c.engine.policy.accounting, ACCOUNT_PAGE);
	assert_int_equal(c.engine.policy.max_order, 3);
	assert_int_equal(c.engine.policy.write_lock, WRITE_LOCK_INODE);
}

static void test_complaints(void **state)
{
	(void)state;
	refused("memory", "\"memory\" is no setting: KEY=VALUE is needed");
	refused("=64M", "\"=64M\" is no setting: KEY=VALUE is needed");
	refused("memory=15M",
		"memory cannot be \"15M\", only whole pages of 4096 bytes, 16M to 15T");
	refused("memory=16777217",
		"memory cannot be \"16777217\", only whole pages of 4096 bytes, 16M to 15T");
	refused("machine.memory=much",
		"machine.memory cannot be \"much\", only whole pages of 4096 bytes, 16M to 15T");
	refused("memroy=1G", "unknown setting \"memroy\"; did you mean \"memory\"?");
	refused("vm.dirty_rati=1", "unknown setting \"vm.dirty_rati\"; did you mean "
				   "\"vm.dirty_ratio\"?");
	refused("acounting=page", "unknown setting \"acounting\"; did you mean \"accounting\"?");
	refused("zzzzzzzzzzzz=1",
		"unknown setting \"zzzzzzzzzzzz\"; the settings stand in sluice(3)");
	refused("vm.memory=1G", "unknown setting \"vm.memory\"; did you mean \"memory\"?");
	refused("vm.dirty_ratio=101", "vm.dirty_ratio cannot be \"101\", only 0 to 100 (percent)");
	refused("vm.dirty_bytes=8191",
		"vm.dirty_bytes cannot be \"8191\", only a size of at least 8192");
	refused("read_ahead_kb=6",
		"read_ahead_kb cannot be \"6\", only a multiple of 4, at most 1048576");
	refused("block_bytes=1536", "block_bytes cannot be \"1536\", only 512, 1024, 2048 or 4096");
	refused("strict_limit=perhaps", "strict_limit cannot be \"perhaps\", only yes or no");
	refused("huge_pages=nev", "huge_pages cannot be \"nev\", only auto|never|always");
	refused("huge_pages=", "huge_pages cannot be \"\", only auto|never|always");
	refused("io_engine=fast", "io_engine cannot be \"fast\", only auto, uring or threads");
	refused("queue_depth=0", "queue_depth cannot be \"0\", only 1 to 4096");
	refused("max_io_kb=2", "max_io_kb cannot be \"2\", only 4 to 1048576 (KiB)");
	refused("direct=2", "direct cannot be \"2\", only 0 or 1");
	refused("policy=linux-6.2", "unknown policy \"linux-6.2\"; did you mean \"linux-6.1\"?");
	refused("policy=zzz", "unknown policy \"zzz\"; sluice-policies(1) lists them");
	refused("accounting=pages", "accounting cannot be \"pages\", only folio|page|debt");
	refused("reserve=256M", "reserve must be smaller than memory");
	refused("max_memory=128M", "max_memory must not be smaller than memory");
}

/* The table says of each device key what the device itself takes. */
static void test_the_limits_of_device_keys_are_the_devices(void **state)
{
	static const struct {
		const char *least, *most;
	} edges[] = { { "queue_depth=1", "queue_depth=4096" },
		      { "max_io_kb=4", "max_io_kb=1048576" },
		      { "idle_files=0", "idle_files=1048576" } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(edges); i++)
		GIVEN(edges[i].least, edges[i].most);
	refused("queue_depth=4097", "queue_depth cannot be \"4097\", only 1 to 4096");
	refused("max_io_kb=1048577", "max_io_kb cannot be \"1048577\", only 4 to 1048576 (KiB)");
}

static void test_keys_can_be_listed(void **state)
{
	char buf[64];
	size_t n = 0;

	(void)state;
	assert_string_equal(lib_config_key(0, buf), "machine.memory");
	assert_string_equal(lib_config_values(0), "whole pages of 4096 bytes, 16M to 15T");
	while (lib_config_key(n, buf)) {
		assert_non_null(strchr(buf, '.'));
		n++;
	}
	assert_int_equal(n, 24);
	assert_null(lib_config_values(n));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_every_key_sets_its_field),
		cmocka_unit_test(test_sections_may_be_written_or_left_out),
		cmocka_unit_test(test_the_later_setting_wins),
		cmocka_unit_test(test_choices_go_over_the_preset_wherever_it_stands),
		cmocka_unit_test(test_complaints),
		cmocka_unit_test(test_the_limits_of_device_keys_are_the_devices),
		cmocka_unit_test(test_keys_can_be_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
