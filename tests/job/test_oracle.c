/* SPDX-License-Identifier: MIT */
/*
 * fio itself as the judge of our parser: what it takes we take, with the same options and
 * the same numbers, and what it refuses we refuse. Job files whose name begins with "bad-"
 * are refused by both, with "strict-" by us alone. Everything is skipped where there is no fio.
 */
#include "fake_engine.h"
#include "job/jobs.h"
#include <dirent.h>
#include <unistd.h>

#define ORACLE      SOURCE_ROOT "/tests/job/oracle"
#define ENVIRONMENT "SLUICE_SIZE=12 SLUICE_DIR=dd SLUICE_EMPTY= SLUICE_BS=s "

static char scratch[] = "/tmp/sluice-oracle-XXXXXX";

static void need_fio(void)
{
	if (system("command -v fio >/dev/null 2>&1") == 0)
		return;
	print_message("# skip: fio is not installed\n");
	skip();
}

/* Runs a command of the shell; returns what it said, to be freed. */
static char *say(const char *format, ...) __attribute__((format(printf, 1, 2)));

static char *say(const char *format, ...)
{
	char command[8192], *text = NULL;
	size_t size = 0, got;
	char buffer[4096];
	FILE *in, *out = open_memstream(&text, &size);
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	in = popen(command, "r");
	assert_non_null(in);
	while ((got = fread(buffer, 1, sizeof(buffer), in)))
		fwrite(buffer, 1, got, out);
	pclose(in);
	fclose(out);
	return text;
}

/* True if fio complained of a job file. */
static bool fio_refuses(const char *said)
{
	static const char *const signs[] = { "dropped",         "outside of []", "unable to open",
					     "No new sections", "Bad option",    "failed parsing" };

	for (size_t i = 0; i < ARRAY_SIZE(signs); i++)
		if (strstr(said, signs[i]))
			return true;
	return false;
}

static struct jobs *load(const char *path, struct err *e)
{
	struct jobs *jobs = NULL;

	e->text[0] = 0;
	jobs_load(path, &jobs, e);
	return jobs;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *trim(char *text)
{
	char *end = text + strlen(text);

	while (end > text && strchr(" \n", end[-1]))
		*--end = 0;
	return text + strspn(text, " ");
}

/* Prints the words of a list sorted, one a line (fio gives options in an order of its own),
 * and frees them. */
static void print_in_order(FILE *out, char **word, size_t count)
{
	if (count)
		qsort(word, count, sizeof(*word), by_text);
	for (size_t i = 0; i < count; i++) {
		fprintf(out, "%s\n", word[i]);
		free(word[i]);
	}
}

/* "fio --bs=4k --name=a --rw=read": the options of each job, the jobs in order. */
static char *what_fio_read(const char *said)
{
	char *copy = strdup(said), *rest = strstr(copy, "fio "), *word[256], *text = NULL;
	size_t size, count = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(rest);
	rest += 3;
	while (rest) {
		char *next = strstr(rest, " --"), *after = next ? strstr(next + 1, " --") : NULL;

		if (!next)
			break;
		if (!strncmp(next, " --name=", 8)) {
			print_in_order(out, word, count);
			count = 0;
		}
		if (after)
			*after = 0;
		next = trim(next + 3);
		if (!strncmp(next, "name=", 5)) {
			fprintf(out, "[%s]\n", trim(next + 5));
		} else {
			char *value = strchr(next, '=');

			if (value) /* " 2" of "numjobs = 2" */
				memmove(value + 1, trim(value + 1), strlen(trim(value + 1)) + 1);
			word[count++] = strdup(next);
		}
		rest = after;
		if (after)
			*after = ' ';
	}
	print_in_order(out, word, count);
	fclose(out);
	free(copy);
	return text;
}

static void print_given(FILE *out, const struct givens *g)
{
	char *word[256];

	for (u32 i = 0; i < g->count; i++) {
		const struct given *o = &g->option[i];

		assert_true(asprintf(&word[i], "%s%s%s", options_find(o->name)->name,
				     o->value ? "=" : "", o->value ? o->value : "") > 0);
	}
	print_in_order(out, word, g->count);
}

static char *what_we_read(const struct jobs *jobs)
{
	char *text = NULL, name[256];
	size_t size;
	FILE *out = open_memstream(&text, &size);

	print_given(out, &jobs->globals);
	for (size_t i = 0; i < jobs->count; i++) {
		snprintf(name, sizeof(name), "%s", jobs->list[i].o.name);
		fprintf(out, "[%s]\n", trim(name));
		print_given(out, &jobs->list[i].given);
	}
	fclose(out);
	return text;
}

static void check_file(const char *name)
{
	char *said = say("cd " ORACLE " && " ENVIRONMENT "fio --showcmd %s 2>&1", name);
	bool bad = !strncmp(name, "bad-", 4), strict = !strncmp(name, "strict-", 7);
	char path[512], *ours, *theirs;
	struct jobs *jobs;
	struct err e;

	snprintf(path, sizeof(path), ORACLE "/%s", name);
	jobs = load(path, &e);
	if (fio_refuses(said) != bad)
		fail_msg("%s: fio says: %s", name, said);
	if (!jobs != (bad || strict))
		fail_msg("%s: we say: %s", name, jobs ? "well" : e.text);
	if (jobs) {
		ours = what_we_read(jobs);
		theirs = what_fio_read(said);
		if (strcmp(ours, theirs) != 0)
			fail_msg("%s: we read\n%s\nfio reads\n%s", name, ours, theirs);
		free(ours);
		free(theirs);
		jobs_free(jobs);
	}
	free(said);
}

static void files_are_read_as_fio_reads_them(void **state)
{
	struct dirent *entry;
	unsigned files = 0;
	DIR *dir;

	(void)state;
	need_fio();
	setenv("SLUICE_SIZE", "12", 1);
	setenv("SLUICE_DIR", "dd", 1);
	setenv("SLUICE_EMPTY", "", 1);
	setenv("SLUICE_BS", "s", 1);
	dir = opendir(ORACLE);
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		if (!strstr(entry->d_name, ".fio"))
			continue;
		check_file(entry->d_name);
		files++;
	}
	closedir(dir);
	assert_in_range(files, 15, 1000);
}

/* Options that are one number, and how many of fio's units are in one of ours. */
static const struct {
	const char *name;
	u64 divisor;
	const char *values[10];
} numbers[] = {
	{ "bs", 1, { "4k", "512", "1m", "0x1000", "8kb", "4ki", "8kib", "3b", "1M" } },
	{ "ba", 1, { "512", "4K", "2mib" } },
	{ "rate", 1, { "1m", "100k", "3g", "2Ki" } },
	{ "rate_iops", 1, { "100", "2k" } },
	{ "number_ios", 1, { "5k", "100", "0x20" } },
	{ "offset_increment", 1, { "1g", "128k" } },
	{ "offset_align", 1, { "4k", "1m" } },
	{ "zonesize", 1, { "1m", "256k" } },
	{ "zoneskip", 1, { "2m", "7k" } },
	{ "numjobs", 1, { "2", "0x10", "1k", "010" } },
	{ "nrfiles", 1, { "3", "1k" } },
	{ "iodepth", 1, { "16", "0x20" } },
	{ "fsync", 1, { "32" } },
	{ "rwmixread", 1, { "70" } },
	{ "size", 1, { "1g", "64m", "1t", "123456789", "9999T" } },
	{ "offset", 1, { "4k", "1g" } },
	{ "io_size", 1, { "1p", "10m" } },
	{ "runtime", 1000, { "10", "10s", "500ms", "3m", "2h", "1d", "20us", "7msec", "9usec" } },
	{ "ramp_time", 1000, { "5", "30s", "1m" } },
	{ "thinktime", 1000, { "10", "1ms", "2s", "30us" } },
	{ "thinktime_spin", 1000, { "10", "1ms" } },
	{ "thinktime_iotime", 1000, { "9", "10ms" } },
	{ "latency_target", 1000, { "50ms", "50" } },
	{ "latency_window", 1000, { "5s", "100" } },
	{ "max_latency", 1000, { "10ms", "7" } },
	{ "log_avg_msec", 1, { "500" } },
	{ "flow", 1, { "3" } },
	{ "percentage_random", 1, { "50" } },
};

static u64 value_of(const struct job_options *o, const char *name)
{
	const struct option *option = options_find(name);

	return *(const u64 *)((const char *)o + option->field);
}

static void numbers_are_fios(void **state)
{
	char path[64], *said, *at;
	FILE *f;
	struct jobs *jobs;
	struct err e;
	size_t job = 0;

	(void)state;
	need_fio();
	snprintf(path, sizeof(path), "%s/numbers.fio", scratch);
	f = fopen(path, "w");
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		for (size_t v = 0; v < 10 && numbers[i].values[v]; v++)
			fprintf(f, "[j]\nlatency_window=1\n%s=%s\n", numbers[i].name,
				numbers[i].values[v]);
	fclose(f);
	jobs = load(path, &e);
	if (!jobs)
		fail_msg("%s", e.text);
	said = say("cd %s && fio --debug=parse --parse-only numbers.fio 2>&1", scratch);
	at = said;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		for (size_t v = 0; v < 10 && numbers[i].values[v]; v++, job++) {
			u64 ours = value_of(&jobs->list[job].o, numbers[i].name);
			unsigned long long theirs = 0;
			char wanted[128];

			snprintf(wanted, sizeof(wanted), " handle_option=%s, ptr=%s\n",
				 numbers[i].name, numbers[i].values[v]);
			at = strstr(at, wanted);
			if (!at || !(at = strstr(at, "ret=0, out=")))
				fail_msg("fio does not take %s=%s", numbers[i].name,
					 numbers[i].values[v]);
			sscanf(at, "ret=0, out=%llu", &theirs);
			if (ours != theirs * numbers[i].divisor)
				fail_msg("%s=%s: %llu, fio %llu", numbers[i].name,
					 numbers[i].values[v], (unsigned long long)ours, theirs);
		}
	}
	jobs_free(jobs);
	free(said);
}

static const char *const both_refuse[] = {
	"rw=foo",
	"direct=yes",
	"direct",
	"bsrange=4k",
	"percentage_random=150",
	"random_distribution=zipf:",
	"random_distribution=zipf:1",
	"random_distribution=pareto:1",
	"random_distribution=normal:200",
	"random_distribution=zoned",
	"file_service_type=zipf:1.1:8",
	"sync_file_range=foo:8",
	"fallocate=2",
	"fallocate",
	"flow=2000",
	"wait_for=",
	"unlink",
	"percentile_list=101",
	"verify=foo",
	"verify",
	"verify_pattern=",
	"verify_interval=10",
	"thinktime_blocks_type=x",
	"zonemode=foo",
	"size=%",
	"size=",
	"size",
	"iodepth=0",
	"group_reporting=no",
	"sync=foo",
	"randseed=abc",
	"gtod_reduce",
	"prio=9",
	"kb_base=10",
	"filename=",
	"name",
	"fadvise_hint=2",
	"rate_process=foo",
	"significant_figures=11",
	"do_verify",
	"rwmixread=101",
	"SIZE=1m",
	"=4k",
	"size==1m",
};

static const char *const both_take[] = {
	"rw=read:",
	"rw=read:-4k",
	"bssplit=4k",
	"bssplit=4k/10:8k/20",
	"bssplit=4k/:8k/",
	"bssplit=,4k/100",
	"bsrange=8k-4k",
	"bsrange=4k:8k",
	"bsrange=,4k-8k",
	"bs=4k,,8k",
	"bs=,,4k",
	"random_distribution=zipf",
	"random_distribution=zipf:1.2:0.5",
	"random_distribution=normal:20",
	"random_distribution=zoned_abs:50/1m:50/2m",
	"file_service_type=zipf:1.1",
	"file_service_type=normal:20",
	"sync_file_range=write",
	"fallocate=0",
	"percentile_list=99.0,99.9",
	"percentile_list=99:",
	"verify=md5:32",
	"verify_pattern=\"abc\"",
	"verify_pattern=%o",
	"write_bw_log=",
	"startdelay=1:5",
	"filesize=4k-8k",
	"io_size=50%",
	"loops=0",
	"time_based=0",
	"thread=32",
	"stonewall=2",
	"filename=a:b",
	"ignore_error=EIO,ENOSPC:EIO",
	"hugepage-size=4m",
	"softrandommap=1",
	"bs=4k,",
	"ss=iops:0.3%",
	"ss_dur=10m",
	"steadystate_ramp_time=5",
	"replay_no_stall=1",
	"flow_watermark=100",
	"serialize_overlap=1",
	"max_open_zones=4",
	"trim_backlog=8",
	"log_alternate_epoch=1",
};

static bool fio_takes(const char *line)
{
	char path[64], *said;
	FILE *f;
	bool refuses;

	snprintf(path, sizeof(path), "%s/line.fio", scratch);
	f = fopen(path, "w");
	fprintf(f, "[j]\n%s\n", line);
	fclose(f);
	said = say("cd %s && fio --parse-only line.fio 2>&1", scratch);
	refuses = fio_refuses(said);
	free(said);
	return !refuses;
}

static bool we_take(const char *line)
{
	char text[256];
	struct jobs *jobs = NULL;

	snprintf(text, sizeof(text), "[j]\n%s\n", line);
	if (jobs_parse("t", text, &jobs, NULL))
		return false;
	jobs_free(jobs);
	return true;
}

static void values_are_judged_as_fio_judges(void **state)
{
	(void)state;
	need_fio();
	for (size_t i = 0; i < ARRAY_SIZE(both_refuse); i++)
		if (we_take(both_refuse[i]) || fio_takes(both_refuse[i]))
			fail_msg("%s is taken by %s", both_refuse[i],
				 we_take(both_refuse[i]) ? "us" : "fio");
	for (size_t i = 0; i < ARRAY_SIZE(both_take); i++)
		if (!we_take(both_take[i]) || !fio_takes(both_take[i]))
			fail_msg("%s is refused by %s", both_take[i],
				 we_take(both_take[i]) ? "fio" : "us");
}

/* Each of fio's options is one of ours, or refused as fio's; its aliases are ours. */
static void all_options_are_known(void **state)
{
	char *said, *rest, *line, list[8192] = "";
	unsigned known = 0, aliases = 0;

	(void)state;
	need_fio();
	said = say("fio --cmdhelp=all");
	for (rest = said; (line = strsep(&rest, "\n"));) {
		char name[64] = "";

		if (sscanf(line, " %63[a-z0-9_-]", name) != 1)
			continue;
		if (!options_find(name) && !options_is_fios(name))
			fail_msg("%s is unknown", name);
		known++;
	}
	free(said);
	assert_in_range(known, 200, 500);
	for (size_t i = 0; i < options_count; i++)
		if (options_table[i].alias)
			strcat(strcat(list, " "), options_table[i].name);
	said = say("for o in%s; do fio --cmdhelp=$o | sed -n 's/.*alias: */'$o' /p'; done", list);
	for (rest = said; (line = strsep(&rest, "\n"));) {
		char name[64], alias[64];

		if (sscanf(line, "%63s %63s", name, alias) != 2)
			continue;
		if (options_find(name) != options_find(alias))
			fail_msg("%s is an alias of %s", alias, name);
		aliases++;
	}
	free(said);
	assert_in_range(aliases, 15, 100);
}

static int make_scratch(void **state)
{
	(void)state;
	return mkdtemp(scratch) ? 0 : -1;
}

static int remove_scratch(void **state)
{
	char *said = say("rm -r %s", scratch);

	(void)state;
	free(said);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_read_as_fio_reads_them),
		cmocka_unit_test(numbers_are_fios),
		cmocka_unit_test(values_are_judged_as_fio_judges),
		cmocka_unit_test(all_options_are_known),
	};

	return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
