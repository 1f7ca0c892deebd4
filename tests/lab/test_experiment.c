/* SPDX-License-Identifier: MIT */
/*
 * Reading experiments: what a good one says, the order in which overrides win, and
 * the exact complaint about each kind of mistake.
 */
#include "lab/experiment.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/test-experiment-XXXXXX";

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

/* Lines 1 to 11; what a test adds starts on line 12, inside [case a]. */
#define HEAD                   \
	"[experiment]\n"       \
	"name = x\n"           \
	"machine = m.ini\n"    \
	"policy = linux-7.4\n" \
	"[phase load]\n"       \
	"job = load.fio\n"     \
	"[phase write]\n"      \
	"job = write.fio\n"    \
	"measure = yes\n"      \
	"[case a]\n"           \
	"title = A\n"

static int enter_folder(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	write_file("m.ini", "[machine]\ncpus = 2\nmemory = 64M\n[device]\nmodel = rate\niops = "
			    "100\n[vm]\ndirty_ratio = 30\n");
	write_file("load.fio", "[load]\nrw=read\nbs=64k\nsize=4m\nfilename=f\n");
	write_file("write.fio", "[write]\nrw=randwrite\nbs=4k\nsize=4m\nfilename=f\n");
	write_file("other.fio", "[other]\nrw=read\nbs=4k\nsize=8m\nfilename=f\n");
	write_file("bad.fio", "[bad]\nrw=read\nsize=4m\nfilename=f\nbogus=1\n");
	return 0;
}

static int leave_folder(void **state)
{
	static const char *const files[] = { "m.ini",   "load.fio", "write.fio", "other.fio",
					     "bad.fio", "x.ini",    "bad.ini",   "big.fio" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		unlink(files[i]);
	assert_int_equal(chdir("/"), 0);
	return rmdir(folder);
}

static void load_good(struct experiment *x, const char *text)
{
	struct err e = { "" };
	int error;

	write_file("x.ini", text);
	error = experiment_load(x, "x.ini", &e);
	assert_string_equal(e.text, "");
	assert_int_equal(error, 0);
}

static void an_experiment_says_what_stands_in_it(void **state)
{
	struct experiment x;

	(void)state;
	load_good(&x, HEAD "accounting = page\n"
			   "[case b]\n"
			   "policy = sluice\n"
			   "skip_phase = load\n"
			   "[reference a]\n"
			   "source = somebody\n"
			   "write_iops = 4061\n"
			   "max_dirty_bytes = 23.5G\n"
			   "[tolerance]\n"
			   "write_iops = 3 %\n"
			   "write_p99_ms = factor 1.6 above 1\n"
			   "first_throttle_s = 2\n");
	assert_string_equal(x.name, "x");
	assert_null(x.title);
	assert_int_equal(x.phase_count, 2);
	assert_string_equal(x.phases[0].name, "load");
	assert_false(x.phases[0].measure);
	assert_true(x.phases[1].measure);
	assert_int_equal(x.measured, 1);
	assert_int_equal(x.case_count, 2);
	assert_string_equal(x.cases[0].title, "A");
	assert_string_equal(x.cases[0].policy.name, "linux-7.4");
	assert_int_equal(x.cases[0].policy.accounting, ACCOUNT_PAGE);
	assert_non_null(experiment_jobs(&x, &x.cases[0], 0));
	assert_string_equal(x.cases[1].policy.name, "sluice");
	assert_null(experiment_jobs(&x, &x.cases[1], 0));
	assert_non_null(experiment_jobs(&x, &x.cases[1], 1));
	assert_string_equal(x.cases[0].reference->source, "somebody");
	assert_true(x.cases[0].reference->values.value[METRIC_MAX_DIRTY] == 23.5 * (1 << 30));
	assert_int_equal(x.cases[0].reference->values.state[METRIC_SLEEP], METRIC_ABSENT);
	assert_null(x.cases[1].reference);
	assert_int_equal(x.tolerance[METRIC_WRITE_IOPS].kind, TOLERANCE_PERCENT);
	assert_int_equal(x.tolerance[METRIC_WRITE_P99].kind, TOLERANCE_FACTOR);
	assert_true(x.tolerance[METRIC_WRITE_P99].above == 1);
	assert_int_equal(x.tolerance[METRIC_FIRST_THROTTLE].kind, TOLERANCE_ABSOLUTE);
	assert_int_equal(x.tolerance[METRIC_SLEEP].kind, TOLERANCE_NONE);
	experiment_finish(&x);
}

static void a_job_may_stand_in_its_phase(void **state)
{
	struct experiment x;
	struct err e = { "" };

	(void)state;
	load_good(&x, "[experiment]\nname = x\nmachine = m.ini\n[phase p]\nline = [w]\nline = "
		      "rw=write\nline = size=12m\nline = filename=f\nmeasure = yes\n[case a]\n");
	assert_int_equal(jobs_file_bytes(x.phases[0].jobs), 12 << 20);
	assert_string_equal(x.cases[0].policy.name, "sluice");
	experiment_finish(&x);
	/* A mistake in it is complained about at its own line. */
	write_file("x.ini", "[experiment]\nname = x\nmachine = m.ini\n[phase p]\nmeasure = yes\n"
			    "line = [w]\nline = size=12m\nline = bogus=write\n[case a]\n");
	assert_int_equal(experiment_load(&x, "x.ini", &e), -EINVAL);
	assert_memory_equal(e.text, "x.ini:8: ", 9);
}

static void make_plan(struct plan *p, struct experiment *x, const char *const *policies,
		      size_t policy_count, const char *const *settings, size_t setting_count)
{
	struct selection s = { .policies = policies,
			       .policy_count = policy_count,
			       .settings = settings,
			       .setting_count = setting_count };
	struct err e = { "" };
	int error = plan_make(p, x, &s, &e);

	assert_string_equal(e.text, "");
	assert_int_equal(error, 0);
}

/* Machine file, experiment, case, command line: the later wins. */
static void overrides_win_in_order(void **state)
{
	static const char *const settings[] = { "device.iops=400", "max_order=2",
						"phase.load.job=other.fio" };
	struct experiment x;
	struct plan p;

	(void)state;
	load_good(&x, HEAD "device.iops = 300\nvm.dirty_ratio = 50\nmax_order = 4\n"
			   "[case b]\n[device]\niops = 200\n[vm]\ndirty_ratio = 40\n"
			   "dirty_background_ratio = 15\n");
	assert_true(x.cases[1].setup.device[0].config.iops == 200);
	assert_int_equal(x.cases[1].setup.vm.dirty_ratio, 40);
	assert_true(x.cases[0].setup.device[0].config.iops == 300);
	assert_int_equal(x.cases[0].setup.vm.dirty_ratio, 50);
	assert_int_equal(x.cases[0].setup.vm.dirty_background_ratio, 15);
	assert_int_equal(x.cases[0].policy.max_order, 4);
	make_plan(&p, &x, NULL, 0, settings, ARRAY_SIZE(settings));
	assert_int_equal(p.count, 2);
	assert_true(p.cases[0].setup.device[0].config.iops == 400);
	assert_true(p.cases[1].setup.device[0].config.iops == 400);
	assert_int_equal(p.cases[0].setup.vm.dirty_ratio, 50);
	assert_int_equal(p.cases[0].policy.max_order, 2);
	assert_int_equal(jobs_file_bytes(experiment_jobs(&x, &p.cases[0], 0)), 8 << 20);
	/* The experiment itself is as it was. */
	assert_int_equal(x.cases[0].policy.max_order, 4);
	assert_true(x.cases[0].setup.device[0].config.iops == 300);
	assert_int_equal(jobs_file_bytes(experiment_jobs(&x, &x.cases[0], 0)), 4 << 20);
	plan_finish(&p);
	experiment_finish(&x);
}

static void phases_may_have_their_own_device(void **state)
{
	static const char *const policies[] = { "linux-6.1", "sluice" };
	static const char *const settings[] = { "phase.load.device.iops=400" };
	struct experiment x;
	struct plan p;

	(void)state;
	load_good(&x, HEAD "phase.load.device.iops = 300\nphase.load.device.latency_us = 7\n"
			   "[phase third]\njob = load.fio\ndevice.iops = 900\n[case b]\n");
	assert_true(x.cases[0].setup.device[0].config.iops == 100);
	assert_true(x.cases[0].phase_devices[0][0].config.iops == 300);
	assert_null(x.cases[0].phase_devices[1]);
	assert_true(x.cases[0].phase_devices[2][0].config.iops == 900);
	assert_null(x.cases[1].phase_devices[0]);
	assert_true(x.cases[1].phase_devices[2][0].config.iops == 900);
	make_plan(&p, &x, policies, 2, settings, 1);
	assert_int_equal(p.count, 4);
	for (size_t i = 0; i < p.count; i++) {
		assert_true(p.cases[i].phase_devices[0][0].config.iops == 400);
		assert_int_equal(p.cases[i].phase_devices[0][0].config.latency_ns,
				 i < 2 ? 7000 : 0);
		assert_int_equal(p.cases[i].phase_settings[0].count, i < 2 ? 3 : 1);
	}
	/* The experiment itself is as it was. */
	assert_int_equal(x.cases[0].phase_settings[0].count, 2);
	assert_int_equal(x.cases[1].phase_settings[0].count, 0);
	plan_finish(&p);
	experiment_finish(&x);
}

/* A case's figures were published for its policy: under another one they say nothing. */
static void references_stay_with_their_policy(void **state)
{
	static const char *const policies[] = { "sluice", "linux-7.4" };
	static const char *const policy_choice[] = { "max_order=3" };
	static const char *const device_choice[] = { "device.iops=50" };
	struct experiment x;
	struct plan p;

	(void)state;
	load_good(&x, HEAD "[reference a]\nsource = s\nwrite_iops = 1\n");
	make_plan(&p, &x, policies, 2, NULL, 0);
	assert_int_equal(p.count, 2);
	assert_string_equal(p.cases[0].policy.name, "sluice");
	assert_null(p.cases[0].reference);
	assert_string_equal(p.cases[1].policy.name, "linux-7.4");
	assert_non_null(p.cases[1].reference);
	plan_finish(&p);
	make_plan(&p, &x, NULL, 0, policy_choice, 1);
	assert_null(p.cases[0].reference);
	plan_finish(&p);
	make_plan(&p, &x, NULL, 0, device_choice, 1);
	assert_non_null(p.cases[0].reference);
	plan_finish(&p);
	experiment_finish(&x);
}

static void assert_refused(const char *text, const char *complaint)
{
	struct experiment x;
	struct err e = { "" };

	write_file("x.ini", text);
	assert_true(experiment_load(&x, "x.ini", &e) < 0);
	assert_string_equal(e.text, complaint);
}

static void wrong_sections_are_refused(void **state)
{
	(void)state;
	assert_refused("[case a]\n", "x.ini: there is no [experiment]: this is no experiment");
	assert_refused(HEAD "[machin]\n",
		       "x.ini:12: unknown section [machin]; did you mean [machine]?");
	assert_refused(HEAD "[case]\n", "x.ini:12: section [case] needs a name, as in [case NAME]");
	assert_refused(HEAD "[case a]\n",
		       "x.ini:12: section [case a] stands twice, first on line 10");
	assert_refused(HEAD "[vm]\n[vm]\n",
		       "x.ini:13: section [vm] stands twice, first on line 12");
	assert_refused("[experiment]\ntitle = t\n", "x.ini:1: section [experiment] needs \"name\"");
	assert_refused("[experiment]\nname = x\ntitel = t\n",
		       "x.ini:3: unknown key \"titel\" in section [experiment]; did you mean "
		       "\"title\"?");
	assert_refused("[experiment]\nname = x\npolicy = linux-7.5\n",
		       "x.ini:3: unknown policy \"linux-7.5\"; did you mean \"linux-7.4\"?");
	assert_refused("[experiment]\nname = x\nmachine = none.ini\n",
		       "x.ini:3: the machine file \"none.ini\" cannot be read: No such file or "
		       "directory");
	write_file("bad.ini", "[machine]\ncpus = 2\n[case a]\n");
	assert_refused("[experiment]\nname = x\nmachine = bad.ini\n",
		       "bad.ini:3: unknown section [case a]");
	write_file("bad.ini", "[machine]\ncpus = none\nmemory = 1G\n[device]\nmodel = rate\n");
	assert_refused("[experiment]\nname = x\nmachine = bad.ini\n[phase p]\nmeasure = yes\njob = "
		       "write.fio\n[case a]\n",
		       "bad.ini:2: cpus cannot be \"none\", only 1 to 1024");
}

static void wrong_phases_are_refused(void **state)
{
	static const char head[] = "[experiment]\nname = x\nmachine = m.ini\n[phase p]\n";
	static const struct {
		const char *rest, *complaint;
	} wrong[] = {
		{ "", "x.ini:4: phase \"p\" needs \"job = FILE\" or lines of a job" },
		{ "job = write.fio\n[case a]\n",
		  "x.ini: no phase is measured: one needs \"measure = yes\"" },
		{ "job = write.fio\nmeasure = perhaps\n",
		  "x.ini:6: measure cannot be \"perhaps\", only yes or no" },
		{ "job = write.fio\nline = [w]\n",
		  "x.ini:6: phase \"p\" has both a job file and job lines: one of them" },
		{ "job = write.fio\nmesure = yes\n", "x.ini:6: unknown key \"mesure\" in section "
						     "[phase p]; did you mean \"measure\"?" },
		{ "job = write.fio\nmeasure = yes\n[phase q]\njob = load.fio\nmeasure = yes\n",
		  "x.ini:7: two phases are measured, \"p\" and \"q\": only one can be" },
		{ "job = write.fio\nmeasure = yes\n",
		  "x.ini: there is no [case NAME]: nothing to run" },
		{ "job = write.fio\nmeasure = yes\n[phase q.r]\n",
		  "x.ini:7: the name of a phase cannot have a dot" },
	};
	char text[512];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		snprintf(text, sizeof(text), "%s%s", head, wrong[i].rest);
		assert_refused(text, wrong[i].complaint);
	}
}

static void wrong_job_files_are_refused(void **state)
{
	struct experiment x;
	struct err e = { "" };

	(void)state;
	write_file("x.ini", "[experiment]\nname = x\nmachine = m.ini\n[phase p]\njob = bad.fio\n");
	assert_int_equal(experiment_load(&x, "x.ini", &e), -EINVAL);
	assert_memory_equal(e.text, "bad.fio:5: ", 11);
	assert_non_null(strstr(e.text, "bogus"));
	assert_refused("[experiment]\nname = x\nmachine = m.ini\n[phase p]\njob = none.fio\n",
		       "x.ini:5: the job file \"none.fio\" cannot be read: No such file or "
		       "directory");
	write_file("big.fio", "[w]\nrw=write\nsize=1g\nfilename=f\n");
	assert_refused("[experiment]\nname = x\nmachine = m.ini\n[device]\nsize = 512M\n"
		       "[phase p]\nmeasure = yes\njob = big.fio\n[case a]\n",
		       "x.ini:8: the files of phase \"p\" have 1G, but the device holds 512M");
	assert_refused(
		"[experiment]\nname = x\n[machine]\ncpus = 1\nmemory = 64M\n"
		"[device]\nmodel = rate\n"
		"[phase p]\nmeasure = yes\nline = [w]\nline = size=1m\nline = direct=1\n"
		"line = bs=777\n[case a]\n",
		"x.ini:13: the blocks of job w have 777 bytes: past the cache only multiples "
		"of block_bytes go, 4096 here");
	assert_refused(
		"[experiment]\nname = x\n[machine]\ncpus = 1\nmemory = 64M\n"
		"[device]\nmodel = rate\n"
		"[phase p]\nmeasure = yes\nline = [w]\nline = size=1m\nline = bs=2m\n[case a]\n",
		"x.ini:12: the blocks of job w are larger than its size");
	assert_refused(HEAD "phase.load.job = big.fio\n[device]\nsize = 512M\n",
		       "x.ini:12: the files of phase \"load\" have 1G, but the device holds 512M");
}

static void wrong_cases_are_refused(void **state)
{
	(void)state;
	assert_refused(HEAD "policy = linux\n",
		       "x.ini:12: unknown policy \"linux\"; \"sluice policies\" lists them");
	assert_refused(HEAD "acounting = page\n",
		       "x.ini:12: unknown key \"acounting\" in a case; did you mean "
		       "\"accounting\"?");
	assert_refused(HEAD "accounting = pages\n",
		       "x.ini:12: accounting cannot be \"pages\", only folio|page|debt");
	assert_refused(HEAD "skip_phase = laod\n",
		       "x.ini:12: skip_phase names \"laod\", no such phase");
	assert_refused(HEAD "skip_phase = load, write\n",
		       "x.ini:10: case \"a\" skips the phase that is measured");
	assert_refused(HEAD "devise.iops = 3\n", "x.ini:12: \"devise.iops\" is in no section there "
						 "is; did you mean \"device.\"?");
	assert_refused(HEAD "vm.dirty_ratio = 200\n",
		       "x.ini:12: dirty_ratio cannot be \"200\", only 0 to 100 (percent)");
	assert_refused(HEAD "phase.lod.job = other.fio\n",
		       "x.ini:12: \"phase.lod.job\" names a phase there is not");
	assert_refused(HEAD "phase.load.measure = yes\n",
		       "x.ini:12: unknown key \"phase.load.measure\": of a phase only "
		       "phase.NAME.job, phase.NAME.device.KEY and phase.NAME.vm.KEY can be set");
	assert_refused(HEAD "phase.load.device.iosp = 5\n",
		       "x.ini:12: unknown key \"iosp\" (did you mean \"iops\"?) for a device of "
		       "model \"rate\", which takes model, name, max_sectors_kb, nr_requests, "
		       "wbt_lat_us, write_cache, iops, mbps, bandwidth, latency_us, "
		       "path_us");
	assert_refused(HEAD "phase.load.device.model = nvme\n",
		       "x.ini:12: a phase cannot change the model of the device");
}

static void wrong_comparisons_are_refused(void **state)
{
#define B "[case b]\n[compare c]\n"

	(void)state;
	assert_refused(HEAD B "figure = write_iops\ncase = b\n",
		       "x.ini:13: [compare c] has \"figure\", and needs \"against\" with it");
	assert_refused(HEAD B "against = a\ncase = b\n",
		       "x.ini:13: [compare c] has \"against\", and needs \"figure\" with it");
	assert_refused(HEAD B "case = a\n",
		       "x.ini:13: [compare c] has no \"figure\": it takes \"case\" and \"ours\", "
		       "and no change");
	assert_refused(HEAD B "case = a\nours = b\nours_within = 3\n",
		       "x.ini:13: [compare c] has no \"figure\": it takes \"case\" and \"ours\", "
		       "and no change");
	assert_refused(HEAD B "figure = write_iops\nagainst = a\n",
		       "x.ini:13: [compare c] needs \"case\", or \"ours\", or both");
	assert_refused(HEAD B "figure = write_iops\nagainst = d\ncase = a\n",
		       "x.ini:15: against names \"d\", no case there is");
	assert_refused(HEAD B "figure = iops\nagainst = a\ncase = b\n",
		       "x.ini:14: unknown figure \"iops\"");
	assert_refused(HEAD "[tenant x]\n" B
			    "figure = tenant.y.write_iops\nagainst = a\nours = b\n",
		       "x.ini:16: against: case \"a\" has no tenant \"y\"");
	assert_refused(HEAD "[tenant x]\n" B
			    "figure = write_iops\nagainst = a\nours = b:tenant.x2.write_iops\n",
		       "x.ini:17: ours: case \"b\" has no tenant \"x2\"");
	assert_refused(HEAD B "figures = iops\n",
		       "x.ini:14: unknown key \"figures\" in section [compare c]");
#undef B
}

static void phases_may_have_their_own_limits(void **state)
{
	static const char *const settings[] = { "phase.load.vm.dirty_ratio=40" };
	struct experiment x;
	struct plan p;

	(void)state;
	load_good(&x, HEAD "vm.dirty_bytes = 1G\nphase.load.vm.dirty_ratio = 30\n"
			   "[phase third]\njob = load.fio\nvm.dirty_bytes = 2G\n[case b]\n");
	assert_int_equal(x.cases[0].setup.vm.dirty_bytes, 1 << 30);
	assert_int_equal(x.cases[0].phase_vm[0].dirty_bytes, 0); /* the ratio takes it away */
	assert_int_equal(x.cases[0].phase_vm[0].dirty_ratio, 30);
	assert_int_equal(x.cases[0].phase_vm[1].dirty_bytes, 1 << 30);
	assert_int_equal(x.cases[0].phase_vm[2].dirty_bytes, 2ull << 30);
	assert_int_equal(x.cases[1].phase_vm[1].dirty_bytes, 0);
	make_plan(&p, &x, NULL, 0, settings, 1);
	assert_int_equal(p.cases[0].phase_vm[0].dirty_ratio, 40);
	assert_int_equal(p.cases[1].phase_vm[0].dirty_ratio, 40);
	assert_int_equal(x.cases[0].phase_vm[0].dirty_ratio, 30);
	plan_finish(&p);
	experiment_finish(&x);
	assert_refused(HEAD "phase.load.vm.dirty_ratio = 101\n",
		       "x.ini:12: dirty_ratio cannot be \"101\", only 0 to 100 (percent)");
}

static void cases_may_come_after_others(void **state)
{
	struct experiment x;
	struct plan p;

	(void)state;
	load_good(&x, HEAD "after = c, b\n[case b]\n[case c]\nafter = a\n");
	assert_int_equal(x.cases[0].after_count, 2);
	assert_int_equal(x.cases[0].after[0], 2);
	assert_int_equal(x.cases[0].after[1], 1);
	assert_int_equal(x.cases[1].after_count, 0);
	assert_int_equal(x.cases[2].after[0], 0);
	make_plan(&p, &x, NULL, 0, NULL, 0);
	assert_int_equal(p.cases[0].after[0], 2);
	plan_finish(&p);
	experiment_finish(&x);
	assert_refused(HEAD "after = b\n", "x.ini:12: after names \"b\", no other case");
	assert_refused(HEAD "after = a\n", "x.ini:12: after names \"a\", no other case");
	assert_refused(HEAD "after = b b b b b b b b b\n[case b]\n",
		       "x.ini:12: a case can be after 8 others at most");
}

static void wrong_references_are_refused(void **state)
{
	(void)state;
	assert_refused(HEAD "[reference b]\nsource = s\nwrite_iops = 3\n",
		       "x.ini:12: [reference b] is for a case there is not");
	assert_refused(HEAD "[reference a]\nwrite_iops = 3\n",
		       "x.ini:12: [reference a] needs a source: who published it");
	assert_refused(HEAD "[reference a]\nsource = s\nwrite_ipos = 3\n",
		       "x.ini:14: unknown figure \"write_ipos\" in section [reference a]; did you "
		       "mean \"write_iops\"?");
	assert_refused(HEAD "[reference a]\nsource = s\nmax_dirty_bytes = much\n",
		       "x.ini:14: max_dirty_bytes cannot be \"much\", only a size, as 23.5G");
	assert_refused(HEAD "[reference a]\nsource = s\nwrite_iops = -4\n",
		       "x.ini:14: write_iops cannot be \"-4\", only a number of 0 or more");
	for (size_t i = 0; i < 7; i++) {
		static const char *const wrong[] = {
			"3 percent", "-3 %", "factor 0.5", "factor 1.6 below 1", "factor 2 above",
			"3 % or so", ""
		};
		char text[512], complaint[256];

		snprintf(text, sizeof(text), HEAD "[tolerance]\nwrite_iops = %s\n", wrong[i]);
		snprintf(complaint, sizeof(complaint),
			 "x.ini:13: the tolerance of write_iops cannot be \"%s\", only \"3 %%\", "
			 "\"factor 1.6\", \"factor 1.6 above 1\", \"at least 90 %%\", \"at most "
			 "110 %%\" or a number",
			 wrong[i]);
		assert_refused(text, complaint);
	}
}

static void assert_plan_refused(const struct selection *s, const char *complaint)
{
	struct experiment x;
	struct plan p;
	struct err e = { "" };

	load_good(&x, HEAD "[case both]\n");
	assert_true(plan_make(&p, &x, s, &e) < 0);
	assert_string_equal(e.text, complaint);
	experiment_finish(&x);
}

static void wrong_selections_are_refused(void **state)
{
	static const struct {
		const char *setting, *complaint;
	} wrong[] = {
		{ "accounting", "-s accounting: a setting is KEY=VALUE" },
		{ "=page", "-s =page: a setting is KEY=VALUE" },
		{ "policy=sluice", "-s policy=sluice: a policy is chosen with -p" },
		{ "accounting=all", "-s accounting=all: accounting cannot be \"all\", only "
				    "folio|page|debt" },
		{ "machine.hz=3", "-s machine.hz=3: hz cannot be \"3\", only 100, 250 or 1000" },
		{ "acounting=page", "-s acounting=page: unknown policy key \"acounting\"; did you "
				    "mean \"accounting\"?" },
	};
	const char *words[] = { "bot" };

	(void)state;
	assert_plan_refused(&(struct selection){ .cases = words, .case_count = 1 },
			    "x.ini: there is no case \"bot\"; did you mean \"both\"?");
	words[0] = "linux-7.3";
	assert_plan_refused(&(struct selection){ .policies = words, .policy_count = 1 },
			    "-p: unknown policy \"linux-7.3\"; did you mean \"linux-7.4\"?");
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		words[0] = wrong[i].setting;
		assert_plan_refused(&(struct selection){ .settings = words, .setting_count = 1 },
				    wrong[i].complaint);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_experiment_says_what_stands_in_it),
		cmocka_unit_test(a_job_may_stand_in_its_phase),
		cmocka_unit_test(overrides_win_in_order),
		cmocka_unit_test(phases_may_have_their_own_device),
		cmocka_unit_test(wrong_comparisons_are_refused),
		cmocka_unit_test(phases_may_have_their_own_limits),
		cmocka_unit_test(cases_may_come_after_others),
		cmocka_unit_test(references_stay_with_their_policy),
		cmocka_unit_test(wrong_sections_are_refused),
		cmocka_unit_test(wrong_phases_are_refused),
		cmocka_unit_test(wrong_job_files_are_refused),
		cmocka_unit_test(wrong_cases_are_refused),
		cmocka_unit_test(wrong_references_are_refused),
		cmocka_unit_test(wrong_selections_are_refused),
	};

	return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
