/* SPDX-License-Identifier: MIT */
/*
 * sluice run: the same job files as sluice fio, really executed. All files are read and checked
 * first; then they run one after the other on one engine, so what one leaves in the cache the
 * next one finds there.
 */
#include "base/units.h"
#include "cli/jobs.h"
#include "job/engine_cache.h"
#include "job/engine_posix.h"
#include "mount/rules.h"
#include "world/world.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

struct request {
	struct jobs_request jobs; /* the first: its options have their fields there */
	const char *engine;
	u64 memory_bytes;
	struct words files;
};

static const struct option options[] = {
	OPTION(struct request, engine, TEXT, "engine", 0, "ENGINE",
	       "sluice (our cache, the default) or posix (the kernel's)"),
	OPTION_IN(struct request, memory_bytes, SIZE, "memory", 0, "BYTES",
		  "of our cache (default: a quarter of the machine's)", 16 << 20, 15ull << 40),
	OPTION_SET(struct jobs_request, "KEY=VALUE",
		   "set a choice of the policy, or vm.KEY, device.KEY or tenant.NAME.KEY"),
	JOBS_OPTIONS,
	{ 0 },
};

/* One job file. */
struct run {
	struct jobs *jobs;
	struct job_results results;
	struct report_disk disk; /* these two only of our cache */
	struct report_cache cache;
};

/*
 * A signal ends the jobs; what was measured is reported. A second one from the keyboard (which is
 * the kernel's) ends the program; programs may send theirs twice, as timeout(1) does.
 */
static struct jobs_stop stop;

static void on_signal(int number, siginfo_t *info, void *context)
{
	int saved = errno;

	(void)context;
	if (atomic_load(&stop.asked) && info->si_code == SI_KERNEL) {
		signal(number, SIG_DFL);
		raise(number);
	}
	jobs_stop(&stop);
	errno = saved;
}

static void catch_signals(void)
{
	struct sigaction action = { .sa_sigaction = on_signal,
				    .sa_flags = SA_SIGINFO | SA_RESTART };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

struct report {
	const struct request *request;
	const struct run *runs;
	size_t count;
	bool ours;
};

static void print_heading(FILE *out, const struct request *r, const char *path)
{
	struct utsname u;

	uname(&u);
	fprintf(out, "%s on this machine: %ld CPUs, Linux %s; engine %s\n\n", path,
		sysconf(_SC_NPROCESSORS_ONLN), u.release, r->engine);
}

/* fio's JSON; of several files, a list of such. */
static int print_json(FILE *out, const struct report *r)
{
	bool list = r->request->files.count > 1;
	int rc = 0;

	for (size_t i = 0; i < r->count && !rc; i++) {
		if (list)
			fputs(i ? ",\n" : "[\n", out);
		rc = report_fio_json(out, r->runs[i].jobs, &r->runs[i].results,
				     r->ours ? &r->runs[i].disk : NULL,
				     r->ours ? &r->runs[i].cache : NULL);
	}
	if (list)
		fputs(r->count ? "]\n" : "[]\n", out);
	return rc ? rc : ferror(out) ? -EIO : 0;
}

static int print_report(FILE *out, void *ctx)
{
	const struct report *r = ctx;

	if (r->request->jobs.json)
		return print_json(out, r);
	for (size_t i = 0; i < r->count; i++) {
		if (i)
			fputc('\n', out);
		print_heading(out, r->request, r->request->files.word[i]);
		report_fio_table(out, &r->runs[i].results, r->ours ? &r->runs[i].disk : NULL,
				 r->ours ? &r->runs[i].cache : NULL);
	}
	return ferror(out) ? -EIO : 0;
}

static void show_progress(void *ctx, u64 now_ns)
{
	fprintf(stderr, "\r\033[K%.0f s", (double)(now_ns - *(u64 *)ctx) / NSEC_PER_SEC);
	fflush(stderr);
}

static bool is_ours(const struct request *r)
{
	return !strcmp(r->engine, "sluice");
}

/* One job file, and what the cache and its disk did meanwhile. */
static int run_file(const struct request *r, struct job_engine *engine,
		    const struct jobs_options *o, struct run *run)
{
	struct engine_stats before, after;
	struct device_stats from, to;
	int rc;

	if (!is_ours(r))
		return jobs_run(run->jobs, engine, o, &run->results);
	engine_stats_reset(engine_cache_engine(engine));
	engine_stats(engine_cache_engine(engine), &before);
	device_stats(engine_cache_device(engine), &from);
	rc = jobs_run(run->jobs, engine, o, &run->results);
	engine_stats(engine_cache_engine(engine), &after);
	device_stats(engine_cache_device(engine), &to);
	run->disk = (struct report_disk){
		.name = "files",
		.reads = to.reads - from.reads,
		.writes = to.writes - from.writes,
		.busy_ns = to.busy_ns - from.busy_ns,
		.elapsed_ns = run->results.ended_ns - run->results.started_ns,
	};
	run->cache = (struct report_cache){
		.max_dirty_bytes = after.dirty_max * PAGE_SIZE,
		.max_debt_bytes = after.debt_max * PAGE_SIZE,
		.max_pinned_bytes = after.pinned_max * PAGE_SIZE,
		.sleep_ns = after.throttle_sleep_ns - before.throttle_sleep_ns,
		.sleeps = after.throttle_sleeps - before.throttle_sleeps,
	};
	return rc;
}

/* Runs files until one is stopped; returns how many were begun. */
static size_t run_files(const struct command *self, const struct request *r,
			struct job_engine *engine, struct run *runs, int *status)
{
	bool show = !r->jobs.quiet && isatty(STDERR_FILENO);
	u64 start = world_now();
	struct jobs_options o = {
		.seed = r->jobs.seed,
		.contents = true,
		.progress = show ? show_progress : NULL,
		.progress_ctx = &start,
		.progress_ns = NSEC_PER_SEC / 2,
		.stop = &stop,
	};
	size_t count = 0;

	for (; count < r->files.count && !atomic_load(&stop.asked); count++) {
		int rc = run_file(r, engine, &o, &runs[count]);

		if (show)
			fprintf(stderr, "\r\033[K");
		if (rc) {
			usage_error(self, "%s: %s", r->files.word[count], strerror(-rc));
			*status = EXIT_FAILED;
			break;
		}
		if (jobs_failed(self, &r->jobs, runs[count].jobs, &runs[count].results))
			*status = EXIT_FAILED;
	}
	if (atomic_load(&stop.asked)) {
		usage_error(self, "stopped before all was done");
		*status = EXIT_FAILED;
	}
	return count;
}

static int report(const struct command *self, const struct request *r, const struct run *runs,
		  size_t count)
{
	struct report report = { r, runs, count, is_ours(r) };
	struct err e = { "" };
	int rc = jobs_report(&r->jobs, print_report, &report, &e);

	for (size_t i = 0; i < count && !rc; i++)
		rc = job_results_write_logs(&runs[i].results, &e);
	if (rc)
		usage_error(self, "%s", e.text[0] ? e.text : strerror(-rc));
	return rc ? EXIT_FAILED : EXIT_OK;
}

static int no_memory(const struct command *self)
{
	usage_error(self, "not enough memory");
	return EXIT_FAILED;
}

/* One setting, of the cache or of a tenant. 0, or a negative errno with `e` set. */
static int read_setting(const char *setting, struct lib_config *config, struct rules *tenants,
			struct err *e)
{
	int rc;

	if (!rules_is_setting(setting))
		return lib_config_read(config, &setting, 1, e);
	rc = rules_read(tenants, setting, e);
	if (!rc && tenants->count) /* as a mount has them */
		return err_set(e, NULL, 0,
			       "whose a job is says its option cgroup; a tenant has figures here, "
			       "as tenant.NAME.dirty_bytes=64M");
	return rc;
}

static int add_tenants(const struct rules *tenants, struct job_engine *engine, struct err *e)
{
	int rc = 0;

	for (u32 i = 0; i < tenants->tenants && !rc; i++) {
		const struct rules_tenant *one = &tenants->tenant[i];
		struct tenant *t;

		rc = engine_add_tenant(engine_cache_engine(engine), one->name, &one->settings, &t);
		if (rc)
			err_set(e, NULL, 0, "tenant %s: %s", one->name, strerror(-rc));
	}
	return rc;
}

/* Our cache, as the options say. 0, or the status to end with. */
static int make_cache(const struct command *self, const struct request *r, struct rules *tenants,
		      struct job_engine **out)
{
	u64 memory =
		r->memory_bytes ? r->memory_bytes : (u64)sysconf(_SC_PHYS_PAGES) / 4 * PAGE_SIZE;
	struct lib_config config;
	struct err e = { "" };
	int rc = 0;

	lib_config_init(&config);
	config.engine.policy = *r->jobs.preset;
	config.engine.memory_bytes = memory / PAGE_SIZE * PAGE_SIZE;
	for (size_t i = 0; i < r->jobs.settings.count && !rc; i++)
		if (read_setting(r->jobs.settings.word[i], &config, tenants, &e))
			rc = usage_error(self, "-s %s: %s", r->jobs.settings.word[i], e.text);
	if (rc || r->jobs.parse_only)
		return rc;
	if (engine_cache_create(&config, out, &e) || add_tenants(tenants, *out, &e)) {
		usage_error(self, "%s", e.text);
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

/* The job engine. 0, or the status to end with; none is needed to read only. */
static int make_engine(const struct command *self, const struct request *r, struct job_engine **out)
{
	*out = NULL;
	if (is_ours(r)) {
		struct rules *tenants = calloc(1, sizeof(*tenants));
		int status = tenants ? make_cache(self, r, tenants, out) : no_memory(self);

		if (tenants)
			rules_free(tenants);
		free(tenants);
		return status;
	}
	if (r->jobs.settings.count)
		return usage_error(self,
				   "-s %s: the kernel's cache has its settings in /proc/sys/vm",
				   r->jobs.settings.word[0]);
	return engine_posix_create(out) ? no_memory(self) : EXIT_OK;
}

static void tell_loss(void *self, struct inode *inode, u64 bytes, int error)
{
	usage_error(self, "%s: %llu bytes could not be written: %s", path_of_inode(inode),
		    (unsigned long long)bytes, strerror(-error));
}

/* 0, or EXIT_FAILED if not all data could be written back. */
static int end_engine(const struct command *self, const struct request *r,
		      struct job_engine *engine)
{
	struct engine_losses losses = { .lost = tell_loss, .ctx = (void *)self };
	int rc = 0;

	if (!engine)
		return EXIT_OK;
	if (is_ours(r))
		rc = engine_cache_destroy(engine, &losses);
	else
		engine_posix_destroy(engine);
	if (rc && !losses.files)
		usage_error(self, "writing back: %s", strerror(-rc));
	return rc ? EXIT_FAILED : EXIT_OK;
}

static int run_all(const struct command *self, const struct request *r, struct run *runs,
		   struct job_engine *engine)
{
	int status = EXIT_OK, reported;
	struct err e = { "" };
	size_t count;

	for (size_t i = 0; i < r->files.count; i++)
		if (jobs_check_engine(runs[i].jobs, engine, &e))
			return usage_error(self, "%s", e.text);
	catch_signals();
	count = run_files(self, r, engine, runs, &status);
	reported = report(self, r, runs, count);
	for (size_t i = 0; i < count; i++)
		job_results_finish(&runs[i].results);
	return status ? status : reported;
}

static int run_request(const struct command *self, const struct request *r)
{
	struct jobs_reading reading = {
		.lenient = r->jobs.lenient,
		.memory_bytes = (u64)sysconf(_SC_PHYS_PAGES) * PAGE_SIZE,
		.cpus = (u32)sysconf(_SC_NPROCESSORS_ONLN),
	};
	struct run *runs = calloc(r->files.count, sizeof(*runs));
	struct job_engine *engine = NULL;
	struct err e = { "" };
	int status = EXIT_OK, ended;

	if (!runs)
		return no_memory(self);
	for (size_t i = 0; i < r->files.count && !status; i++) {
		if (jobs_load_as(r->files.word[i], &reading, &runs[i].jobs, &e))
			status = usage_error(self, "%s", e.text);
	}
	if (!status)
		status = make_engine(self, r, &engine);
	for (size_t i = 0; i < r->files.count && !status; i++) {
		if (engine && jobs_note_engine(runs[i].jobs, engine))
			status = no_memory(self);
		else
			jobs_print_notes(&r->jobs, runs[i].jobs);
	}
	if (!status && !r->jobs.parse_only)
		status = run_all(self, r, runs, engine);
	ended = end_engine(self, r, engine);
	for (size_t i = 0; i < r->files.count; i++)
		if (runs[i].jobs)
			jobs_free(runs[i].jobs);
	free(runs);
	return status ? status : ended;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct request r = { .jobs = JOBS_REQUEST, .engine = "sluice" };
	int status;

	if (!args_read(self, argc, argv, &r, &r.files, &status))
		return status;
	if (!r.files.count)
		return usage_error(self, "which job file? \"sluice run --help\" says more");
	if (strcmp(r.engine, "sluice") != 0 && strcmp(r.engine, "posix") != 0)
		return usage_error(self, "--engine cannot be \"%s\", only sluice or posix",
				   r.engine);
	if (jobs_request_check(self, &r.jobs, &r.files))
		return EXIT_USAGE;
	return run_request(self, &r);
}

const struct command command_run = {
	.name = "run",
	.arguments = "JOBFILE...",
	.about = "run fio job files for real",
	.text = "Runs the jobs of files in fio's own language on real files, with real threads "
		"and\n"
		"in real time, through our page cache or through the kernel's, and reports as\n"
		"sluice fio does. Several files run one after the other on the same cache.\n"
		"SIGINT ends the jobs and reports what was measured.",
	.examples = "  sluice run jobs.fio --engine posix\n"
		    "  sluice run load.fio write.fio --memory 2G -p sluice\n"
		    "  sluice run write.fio -s accounting=folio -s vm.dirty_bytes=400M\n"
		    "  sluice run batch.fio -s tenant.batch.dirty_bytes=64M\n",
	.options = options,
	.run = run,
};
