/* SPDX-License-Identifier: MIT */
/*
 * Calibrations: that the steps of a write add up, how the result is put into a
 * machine file, and that a real one measures what takes time. How much time says nothing:
 * no test may depend on it.
 */
#include "lab/calibrate.h"
#include "lab/experiment.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/test-calibrate-XXXXXX";

static int enter_folder(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(folder));
	return chdir(folder);
}

static int leave_folder(void **state)
{
	(void)state;
	unlink("m.ini");
	assert_int_equal(chdir("/"), 0);
	return rmdir(folder);
}

static struct calibration made_up(void)
{
	struct calibration c = { 0 };

	c.cost[COST_SYSCALL] = (struct measured){ true, 150.4, 149, 152 };
	c.cost[COST_LOOKUP] = (struct measured){ true, 410, 400, 420 };
	c.cost[COST_DIRTY] = (struct measured){ true, 230, 220, 240 };
	c.cost[COST_ALLOC] = (struct measured){ true, 1250, 1200, 1300 };
	c.cost[COST_PAGE] = (struct measured){ true, 90, 80, 100 };
	return c;
}

static void sums_are_what_the_engine_charges(void **state)
{
	struct calibration c = made_up();

	(void)state;
	/* copying was not measured: its default, 400, counts */
	assert_true(calibrate_sum(&c, WHOLE_READ) == 150.4 + 410 + 400);
	assert_true(calibrate_sum(&c, WHOLE_WRITE_DIRTY) == 150.4 + 410 + 400);
	assert_true(calibrate_sum(&c, WHOLE_WRITE_CLEAN) == 150.4 + 410 + 400 + 230);
	assert_true(calibrate_sum(&c, WHOLE_WRITE_NEW) == 150.4 + 410 + 400 + 230 + 1250 + 90);
}

static void write_machine(const char *text)
{
	FILE *f = fopen("m.ini", "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void read_machine(struct setup *setup)
{
	struct settings s = { 0 };
	struct err e = { "" };
	struct ini ini;

	assert_int_equal(machine_read(&s, &ini, "m.ini", &e), 0);
	assert_int_equal(setup_read(setup, &s, "m.ini", &e), 0);
	settings_finish(&s);
	ini_finish(&ini);
}

static void a_machine_file_keeps_its_other_sections(void **state)
{
	struct calibration c = made_up();
	struct err e = { "" };
	struct setup setup;

	(void)state;
	write_machine("# mine\n[machine]\ncpus = 3\nmemory = 64M\n[cpu]\nwake_ns = 99\ncopy_ns = "
		      "77\n[device]\nmodel = rate\niops = 123");
	assert_int_equal(calibrate_write("m.ini", &c, &e), 0);
	read_machine(&setup);
	assert_int_equal(setup.sim.cpus, 3);
	assert_true(setup.device[0].config.iops == 123);
	assert_int_equal(setup.sim.cost_ns[COST_SYSCALL], 150);
	assert_int_equal(setup.sim.cost_ns[COST_ALLOC], 1250);
	/* not measured: the defaults, not what stood there */
	assert_int_equal(setup.sim.cost_ns[COST_COPY], 400);
	assert_int_equal(setup.sim.cost_ns[COST_WAKE], 3000);
	/* and once more over its own */
	c.cost[COST_ALLOC].ns = 1251;
	assert_int_equal(calibrate_write("m.ini", &c, &e), 0);
	read_machine(&setup);
	assert_int_equal(setup.sim.cost_ns[COST_ALLOC], 1251);
	assert_true(setup.device[0].config.iops == 123);
}

static void a_machine_file_can_be_new(void **state)
{
	struct calibration c = made_up();
	struct settings s = { 0 };
	struct err e = { "" };
	struct ini ini;

	(void)state;
	unlink("m.ini");
	assert_int_equal(calibrate_write("m.ini", &c, &e), 0);
	assert_int_equal(machine_read(&s, &ini, "m.ini", &e), 0);
	assert_int_equal(s.count, 5);
	assert_string_equal(s.all[0].section, "cpu");
	assert_string_equal(s.all[0].key, "syscall_ns");
	assert_string_equal(s.all[0].value, "150");
	settings_finish(&s);
	ini_finish(&ini);
	assert_int_equal(calibrate_write("none/m.ini", &c, &e), -ENOENT);
}

/* What cannot be lost in any noise: calls take time, and so does waking somebody. */
static void a_real_one_measures(void **state)
{
	struct calibration c;
	struct err e = { "" };
	int error = calibrate(&c, folder, 1, &e);

	(void)state;
	if (error && strstr(e.text, "is in memory only")) {
		print_message("# skip: the temporary folder is in memory\n");
		skip();
	}
	assert_string_equal(e.text, "");
	assert_int_equal(error, 0);
	assert_true(c.cost[COST_SYSCALL].known);
	assert_true(c.cost[COST_EVICT].known);
	assert_true(c.cost[COST_WAKE].known);
	assert_false(c.cost[COST_SPLIT].known);
	assert_false(c.cost[COST_COMPLETE].known);
	for (enum whole w = 0; w < WHOLE_MAX; w++)
		assert_true(c.whole[w].known);
	for (enum cost i = 0; i < COST_MAX; i++)
		assert_true(c.cost[i].low_ns <= c.cost[i].ns && c.cost[i].ns <= c.cost[i].high_ns);
}

static void memory_at_hand_is_told_from_what_must_be_fetched(void **state)
{
	const double slow[] = { 2100, 1900, 2000, 13000, 15000, 17000 };
	const double even[] = { 300, 310, 290, 300, 450, 320 };
	struct calibration c = { 0 };

	(void)state;
	calibrate_parts(&c, slow, 6, 1 << 20);
	assert_true(c.cost[COST_PAGE].known && c.cost[COST_PAGE].ns == 2000);
	assert_true(c.cost[COST_FETCH].known && c.cost[COST_FETCH].ns == 13000);
	assert_int_equal(c.fresh_bytes, 6 << 20);
	assert_int_equal(c.ready_bytes, 3 << 20);

	c = (struct calibration){ 0 };
	calibrate_parts(&c, even, 6, 1 << 20);
	assert_in_range(c.cost[COST_PAGE].ns, 328, 329); /* the slow part counts */
	assert_false(c.cost[COST_FETCH].known);
	assert_int_equal(c.ready_bytes, 0);
}

static void a_folder_that_will_not_do_is_named(void **state)
{
	struct calibration c;
	struct err e = { "" };

	(void)state;
	assert_int_equal(calibrate(&c, "/nowhere", 1, &e), -ENOENT);
	assert_string_equal(e.text,
			    "/nowhere: no file can be made there: No such file or directory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_are_what_the_engine_charges),
		cmocka_unit_test(a_machine_file_keeps_its_other_sections),
		cmocka_unit_test(a_machine_file_can_be_new),
		cmocka_unit_test(a_real_one_measures),
		cmocka_unit_test(memory_at_hand_is_told_from_what_must_be_fetched),
		cmocka_unit_test(a_folder_that_will_not_do_is_named),
	};

	return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
