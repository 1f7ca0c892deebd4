/* SPDX-License-Identifier: MIT */
/* Reading job files: a corpus of them, and every way to be refused, with the words. */
#include "fake_engine.h"
#include "job/jobs.h"
#include <unistd.h>

static void append(char *text, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void append(char *text, size_t size, const char *format, ...)
{
	size_t at = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + at, size - at, format, args);
	va_end(args);
}

static void dump_spread(char *text, size_t size, const struct spread *s)
{
	append(text, size, "random_distribution=%d%s", (int)s->kind, s->absolute ? "abs" : "");
	for (int dir = 0; dir < 2 && s->kind == SPREAD_ZONED; dir++) {
		if (dir && !memcmp(&s->zones[0], &s->zones[1], sizeof(s->zones[0])))
			break;
		append(text, size, dir ? "," : "");
		for (u32 i = 0; i < s->zones[dir].count; i++)
			append(text, size, ":%u/%llu", s->zones[dir].zone[i].access_percent,
			       (unsigned long long)s->zones[dir].zone[i].size);
	}
	if (s->kind != SPREAD_ZONED)
		append(text, size, ":%g", s->value);
	if (s->center >= 0)
		append(text, size, ":%g", s->center);
	append(text, size, "\n");
}

static void dump_pair(char *text, size_t size, const char *name, u64 low, u64 high)
{
	append(text, size, "%s=%llu", name, (unsigned long long)low);
	if (high != low)
		append(text, size, "-%llu", (unsigned long long)high);
	append(text, size, "\n");
}

static void dump_splits(char *text, size_t size, const struct job_options *o)
{
	for (int dir = 0; dir < JOB_DIRS; dir++) {
		const struct splits *s = &o->splits[dir];

		if (s->count)
			append(text, size, "bssplit %d", dir);
		for (u32 i = 0; i < s->count; i++)
			append(text, size, " %llu/%llu", (unsigned long long)s->part[i].bytes,
			       (unsigned long long)s->part[i].percent);
		if (s->count)
			append(text, size, "\n");
	}
}

/* Options with a syntax of their own. */
static void dump_own(char *text, size_t size, const struct job_options *o, const char *name)
{
	if (!strcmp(name, "random_distribution") && o->spread.kind)
		dump_spread(text, size, &o->spread);
	if (!strcmp(name, "filesize"))
		dump_pair(text, size, name, o->filesize_bytes, o->filesize_max_bytes);
	if (!strcmp(name, "startdelay"))
		dump_pair(text, size, name, o->startdelay_ns, o->startdelay_max_ns);
	if (!strcmp(name, "sync_file_range"))
		dump_pair(text, size, name, o->sync_range_flags, o->sync_range);
	if (!strcmp(name, "bsrange"))
		for (int dir = 0; dir < JOB_DIRS; dir++)
			dump_pair(text, size, name, o->bsrange_min[dir], o->bsrange_max[dir]);
	if (!strcmp(name, "bssplit"))
		dump_splits(text, size, o);
	if (!strcmp(name, "percentile_list") && o->percentiles.count != 17)
		for (u32 i = 0; i < o->percentiles.count; i++)
			append(text, size, "percentile=%g\n", o->percentiles.percent[i]);
}

/* What follows the colon of a choice. */
static void dump_suffix(char *text, size_t size, const struct job_options *o, const char *name)
{
	if (!strcmp(name, "rw") && o->rw_skip)
		append(text, size, "rw_skip=%lld\n", (long long)o->rw_skip);
	if (!strcmp(name, "rw") && o->rw_burst != 1)
		append(text, size, "rw_burst=%llu\n", (unsigned long long)o->rw_burst);
	if (!strcmp(name, "file_service_type") && o->file_service_nr != 1)
		append(text, size, "file_service_nr=%llu\n",
		       (unsigned long long)o->file_service_nr);
}

static void dump_amount(char *text, size_t size, const char *name, const struct amount *a)
{
	append(text, size, "%s=%llu%s\n", name, (unsigned long long)(a->percent ?: a->bytes),
	       a->percent ? "%" : "");
}

/* One option, if it is not at its default. */
static void dump_option(char *text, size_t size, const struct job_options *o,
			const struct job_options *normal, const struct option *option)
{
	const char *field = (const char *)o + option->field;
	const char *other = (const char *)normal + option->field;
	const unsigned long long *n = (const void *)field;

	if (option->no_effect)
		return;
	switch (option->type) {
	case OPTION_TEXT:
	case OPTION_TEXT_MAYBE:
		if (*(const char *const *)field && strcmp(option->name, "name"))
			append(text, size, "%s=%s\n", option->name, *(const char *const *)field);
		break;
	case OPTION_AMOUNT:
		if (memcmp(field, other, sizeof(struct amount)))
			dump_amount(text, size, option->name, (const void *)field);
		break;
	case OPTION_BYTES_DIR:
	case OPTION_COUNT_DIR:
	case OPTION_TIME_DIR:
		if (memcmp(field, other, sizeof(u64[JOB_DIRS])))
			append(text, size, "%s=%llu,%llu,%llu\n", option->name, n[0], n[1], n[2]);
		break;
	case OPTION_BOOL:
	case OPTION_FLAG:
		if (*field != *other && !option->invert)
			append(text, size, "%s=%d\n", option->name, *field);
		break;
	case OPTION_OWN:
		dump_own(text, size, o, option->name);
		break;
	default:
		if (memcmp(field, other, sizeof(u64)))
			append(text, size, "%s=%llu\n", option->name, n[0]);
		if (option->type == OPTION_CHOICE)
			dump_suffix(text, size, o, option->name);
	}
}

static void dump(char *text, size_t size, const struct jobs *jobs)
{
	struct job_options normal;
	u64 duration = jobs_duration_ns(jobs);

	options_defaults(&normal);
	text[0] = 0;
	for (size_t i = 0; i < jobs->count; i++) {
		const struct job *j = &jobs->list[i];

		append(text, size, "[%s] line %d\n", j->o.name, jobs->origins[j->at].line);
		for (size_t n = 0; n < options_count; n++)
			if (j->option_at[n] || !strcmp(options_table[n].name, "rwmixread"))
				dump_option(text, size, &j->o, &normal, &options_table[n]);
	}
	for (size_t i = 0; jobs_note(jobs, i); i++)
		append(text, size, "note %s\n", strstr(jobs_note(jobs, i), "/corpus/") + 8);
	append(text, size, "bytes %llu\n", (unsigned long long)jobs_file_bytes(jobs));
	if (duration)
		append(text, size, "duration %llu\n", (unsigned long long)duration);
	else
		append(text, size, "duration open\n");
}

static const char *corpus(const char *name, const char *suffix)
{
	static char path[4096];

	snprintf(path, sizeof(path), SOURCE_ROOT "/tests/job/corpus/%s%s", name, suffix);
	return path;
}

static void corpus_is_read_as_expected(void **state)
{
	static const char *const names[] = {
		"p2", "oddities", "crlf", "database", "units", "wide"
	};
	static char expected[8192], found[8192];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct err e = { 0 };
		struct jobs *jobs;
		size_t size;
		FILE *f;

		if (jobs_load(corpus(names[i], ".fio"), &jobs, &e))
			fail_msg("%s", e.text);
		f = fopen(corpus(names[i], ".expect"), "r");
		assert_non_null(f);
		size = fread(expected, 1, sizeof(expected) - 1, f);
		expected[size] = 0;
		fclose(f);
		dump(found, sizeof(found), jobs);
		assert_string_equal(found, expected);
		jobs_free(jobs);
	}
}

/* A whole file, or with a leading '+' what follows "[j]\nsize=4k\n". */
static const char *const refused[][2] = {
	{ "+sizee=4k", "t:3: unknown option sizee, did you mean size?" },
	{ "+qwertyuiop=4k", "t:3: unknown option qwertyuiop" },
	{ "+DIRECT=1", "t:3: unknown option DIRECT, did you mean direct?" },
	{ "+=4k", "t:3: unknown option " },
	{ "+exec_prerun=x", "t:3: fio's option exec_prerun is not supported" },
	{ "+atomic=1", "t:3: fio's option atomic is not supported" },
	{ "+rate_min=1m",
	  "t:3: fio's option rate_min is not supported; the nearest that is: rate" },
	{ "+read_iolog=x", "t:3: fio's option read_iolog is not supported" },
	{ "+include other.fio", "t:3: include other.fio: No such file or directory" },
	{ "include other.fio\n[j]\n", "t:1: include other.fio: options must follow a [section]" },
	{ "+include", "t:3: unknown option include" },
	{ "+rw=reed", "t:3: rw=reed is unknown, did you mean read? (read, write, randread, "
		      "randwrite, rw, readwrite, randrw)" },
	{ "+rw=RANDREAD", "t:3: rw=RANDREAD is unknown, did you mean randread? (read, "
			  "write, randread, randwrite, rw, readwrite, randrw)" },
	{ "+rw=randtrim", "t:3: rw=randtrim is not supported; possible are read, write, "
			  "randread, randwrite, rw, readwrite, randrw" },
	{ "+readwrite=trim", "t:3: rw=trim is not supported; possible are read, write, "
			     "randread, randwrite, rw, readwrite, randrw" },
	{ "+rw=reed:17m", "t:3: rw=reed:17m is unknown, did you mean read? (read, write, "
			  "randread, randwrite, rw, readwrite, randrw)" },
	{ "+rw=read:x", "t:3: rw=read:x: behind the colon a number is needed, as in read:17m or "
			"randread:8" },
	{ "+rw=randread:0",
	  "t:3: rw=randread:0: behind the colon of a random job a number from 1 is needed" },
	{ "+ioengine=splice",
	  "t:3: ioengine=splice is not supported; possible are psync, sync, vsync, pvsync, "
	  "pvsync2, libaio, io_uring, posixaio, mmap, null" },
	{ "+ioengine=libai",
	  "t:3: ioengine=libai is unknown, did you mean libaio? (psync, sync, vsync, pvsync, "
	  "pvsync2, libaio, io_uring, posixaio, mmap, null)" },
	{ "+ioengine=", "t:3: ioengine needs a value" },
	{ "+rw", "t:3: rw needs a value" },
	{ "+direct", "t:3: direct needs a value" },
	{ "+direct=yes", "t:3: direct=yes: 0 or 1 is needed" },
	{ "+direct=2", "t:3: direct=2: 0 or 1 is needed" },
	{ "+disk_util=2", "t:3: disk_util=2: 0 or 1 is needed" },
	{ "+gtod_reduce", "t:3: gtod_reduce needs a value" },
	{ "+thread=x", "t:3: thread=x: it stands alone, or with 0 or 1" },
	{ "+bs=0", "t:3: bs=0: it must be from 1 to 1073741824" },
	{ "+bs=4k-8k", "t:3: bs=4k-8k: one size is needed; a range goes to bsrange or filesize" },
	{ "+bs=4x", "t:3: bs=4x: a size is needed, as 4096, 4k or 1m" },
	{ "+bs=4k,8k,16k,1k",
	  "t:3: bs=4k,8k,16k,1k: at most three values are possible: reads,writes,trims" },
	{ "+bsrange=4k", "t:3: bsrange=4k: a range of sizes from 1 to 1g is needed, as 4k-64k" },
	{ "+bsrange=0-4k",
	  "t:3: bsrange=0-4k: a range of sizes from 1 to 1g is needed, as 4k-64k" },
	{ "+bssplit=4k/60:8k/60",
	  "t:3: bssplit=4k/60:8k/60: the percentages add up to more than 100" },
	{ "+bssplit=4k/60:x/40", "t:3: bssplit=4k/60:x/40: sizes and percentages are needed, as "
				 "in 4k/60:64k/40" },
	{ "+size=1.5g", "t:3: size=1.5g: a size is needed, as 4096, 4k or 1m, or a percentage" },
	{ "+size=2*", "t:3: size=2*: a size is needed, as 4096, 4k or 1m, or a percentage" },
	{ "+size=120%", "t:3: size=120%: a percentage from 1 to 100 is needed" },
	{ "+size=%", "t:3: size=%: a percentage from 1 to 100 is needed" },
	{ "+size=99999999999t",
	  "t:3: size=99999999999t: a size is needed, as 4096, 4k or 1m, or a percentage" },
	{ "+offset=9000p", "t:3: offset=9000p: it must be at most 4096p" },
	{ "+size=-1", "t:3: size=-1: a size is needed, as 4096, 4k or 1m, or a percentage" },
	{ "+filesize=4k-8x", "t:3: filesize=4k-8x: a size is needed, as 4096, 4k or 1m, or a "
			     "range, as 4k-1m" },
	{ "+numjobs=0", "t:3: numjobs=0: it must be from 1 to 65536" },
	{ "+numjobs=1.5", "t:3: numjobs=1.5: a whole number is needed" },
	{ "+iodepth=0", "t:3: iodepth=0: it must be from 1 to 65536" },
	{ "+rwmixread=120", "t:3: rwmixread=120: it must be from 0 to 100" },
	{ "+rwmixwrite=101", "t:3: rwmixwrite=101: a number from 0 to 100 is needed" },
	{ "+percentage_random=50,150", "t:3: percentage_random=50,150: it must be from 0 to 100" },
	{ "+runtime=10x",
	  "t:3: runtime=10x: a time is needed, as 500us, 20ms, 10, 10s, 3m, 1h or 2d" },
	{ "+timeout=1h30m",
	  "t:3: runtime=1h30m: a time is needed, as 500us, 20ms, 10, 10s, 3m, 1h or 2d" },
	{ "+startdelay=1-x", "t:3: startdelay=1-x: a time is needed, as 500us, 20ms, 10, 10s, 3m, "
			     "1h or 2d, or a range, as 5s-10s" },
	{ "+time_based", "t:3: time_based needs a runtime in job j" },
	{ "+latency_target=5ms", "t:3: latency_target needs a latency_window in job j" },
	{ "+latency_percentile=99:100",
	  "t:3: latency_percentile=99:100: one percentage is needed" },
	{ "+percentile_list=50:101", "t:3: percentile_list=50:101: percentages above 0 and up to "
				     "100 are needed, as 50:99:99.9" },
	{ "+fadvise_hint=2", "t:3: fadvise_hint=2 is unknown; possible are 0, 1, none, random, "
			     "sequential" },
	{ "+sync=2", "t:3: sync=2 is unknown; possible are none, 0, sync, 1, dsync" },
	{ "+sync_file_range=foo:8",
	  "t:3: sync_file_range=foo:8: wait_before, write and wait_after are possible, as in "
	  "wait_before,write:8" },
	{ "+file_service_type=zipf:1", "t:3: file_service_type=zipf:1: zipf needs a theta above 0 "
				       "that is not 1" },
	{ "+file_service_type=random:0",
	  "t:3: file_service_type=random:0: behind the colon a number of I/Os is needed, as in "
	  "random:16" },
	{ "+randseed=abc", "t:3: randseed=abc: a number is needed" },
	{ "+random_distribution=zipf:1",
	  "t:3: random_distribution=zipf:1: zipf needs a theta above 0 that is not 1" },
	{ "+random_distribution=zipf:1.2:2",
	  "t:3: random_distribution=zipf:1.2:2: the center must be from 0 to 1" },
	{ "+random_distribution=pareto:2",
	  "t:3: random_distribution=pareto:2: pareto needs a value between 0 and 1" },
	{ "+random_distribution=normal:200", "t:3: random_distribution=normal:200: normal "
					     "needs a deviation between 0 and 100 (percent)" },
	{ "+random_distribution=normal", "t:3: random_distribution=normal: zipf, pareto and "
					 "normal need a number, as in zipf:1.2" },
	{ "+random_distribution=zoned:60/10:30/20",
	  "t:3: random_distribution=zoned:60/10:30/20: the access shares of the zones must add "
	  "up to 100" },
	{ "+random_distribution=zoned:60/10:40/20",
	  "t:3: random_distribution=zoned:60/10:40/20: the size shares of zoned must add "
	  "up to 100" },
	{ "+random_distribution=zoned:60",
	  "t:3: random_distribution=zoned:60: zones are pairs, as in 60/10:40/90" },
	{ "+random_distribution=zoned_abs:60/10g:40/x",
	  "t:3: random_distribution=zoned_abs:60/10g:40/x: the second of a pair is a size, as in "
	  "60/10g:40/20g" },
	{ "+random_distribution=sequence:2,0,1",
	  "t:3: random_distribution=sequence:2,0,1: random, zipf:THETA, pareto:H, "
	  "normal:PERCENT, zoned:LIST or zoned_abs:LIST is needed" },
	{ "+zonemode=strided", "t:3: zonemode=strided needs a zonesize in job j" },
	{ "+zonesize=1k", "t:3: the blocks are larger than the zones in job j" },
	{ "+zonemode=zbd", "t:3: zonemode=zbd is not supported; possible are none, strided" },
	{ "+wait_for=k\n[k]", "t:3: wait_for must name a job before it in job j" },
	{ "+[j]\n[k]\nwait_for=j", "t:5: wait_for names two jobs in job k" },
	{ "+flow=1001", "t:3: flow=1001: it must be from 0 to 1000" },
	{ "+verify=crc33", "t:3: verify=crc33 is unknown, did you mean crc32? (0, md5, crc64, "
			   "crc32, crc32c, crc32c-intel, crc16, crc7, sha1, sha256, sha512, "
			   "sha3-224, sha3-256, sha3-384, sha3-512, xxhash, meta, pattern, null)" },
	{ "+verify_interval=10", "t:3: verify_interval=10: it must be from 80 to 1073741824" },
	{ "+verify_pattern=\"ab", "t:3: verify_pattern=\"ab: a text in it has no end" },
	{ "+kb_base=512", "t:3: kb_base=512 is unknown; possible are 1024, 1000" },
	{ "+filename=:", "t:3: filename=: names no file" },
	{ "+size=${NO_SUCH_VARIABLE}",
	  "t:3: size=${NO_SUCH_VARIABLE}: the environment has no variable NO_SUCH_VARIABLE" },
	{ "+numjobs=$ncpus", "t:3: numjobs=$ncpus: no machine is known here that has a $ncpus" },
	{ "bs=4k\n[j]\nsize=4k\n", "t:1: bs=4k: options must follow a [section]" },
	{ "x\n[j]\nsize=4k\n", "t:1: x: options must follow a [section]" },
	{ "\n[j\nsize=4k\n", "t:2: [j: the section's name must end in ]" },
	{ "[]\nsize=4k\n", "t:1: []: a section needs a name" },
	{ "[global]\nbs=4k\n", "t: there is no job: a [section] is needed" },
	{ "", "t: there is no job: a [section] is needed" },
	{ "[global]\nruntime=0\ntime_based\n[a]\nruntime=1\n[b]\n",
	  "t:3: time_based needs a runtime in job b" },
};

static void refusals(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		const char *text = refused[i][0];
		struct jobs *jobs = NULL;
		struct err e = { 0 };
		char whole[512];

		snprintf(whole, sizeof(whole), "%s%s", *text == '+' ? "[j]\nsize=4k\n" : "",
			 text + (*text == '+'));
		assert_int_equal(jobs_parse("t", whole, &jobs, &e), -EINVAL);
		assert_null(jobs);
		assert_string_equal(e.text, refused[i][1]);
	}
}

static const struct jobs_reading machine = { .memory_bytes = 3ull << 30, .cpus = 12 };

static struct jobs *parse(const char *text, const struct jobs_reading *how)
{
	struct jobs *jobs = NULL;
	struct err e = { 0 };

	if (jobs_parse_as("t", text, how, &jobs, &e))
		fail_msg("%s", e.text);
	return jobs;
}

static void variables_and_keywords(void **state)
{
	struct jobs *jobs;

	(void)state;
	setenv("SLUICE_TEST_A", "12", 1);
	setenv("SLUICE_TEST_B", "ize", 1);
	setenv("SLUICE_TEST_EMPTY", "", 1);
	jobs = parse("[$ncpus]\ns${SLUICE_TEST_B}=${SLUICE_TEST_A}k # ${NONE}\n"
		     "directory=/x/${SLUICE_TEST_A}/${SLUICE_TEST_B}${SLUICE_TEST_EMPTY}/$jobname\n"
		     "filename=${}:${:$x\nnumjobs=2*$ncpus\nbs=$pagesize\nio_size=$mb_memory*1m\n",
		     &machine);
	assert_string_equal(jobs->list[0].o.name, "$ncpus");
	assert_int_equal(jobs->list[0].o.size.bytes, 12 << 10);
	assert_string_equal(jobs->list[0].o.directory, "/x/12/ize/$jobname");
	assert_string_equal(jobs->list[0].o.filename, "${}:${:$x");
	assert_int_equal(jobs->list[0].o.numjobs, 24);
	assert_int_equal(jobs->list[0].o.bs_bytes[JOB_DIR_READ], 4096);
	assert_true(jobs->list[0].o.io_size.bytes == 3ull << 30);
	jobs_free(jobs);
}

/* An option that is not ours is a remark then; a wrong value is still an error. */
static void lenience_ignores_options(void **state)
{
	const struct jobs_reading lenient = { .lenient = true };
	struct jobs *jobs = NULL;
	struct err e = { 0 };

	(void)state;
	jobs = parse("[j]\nsize=4k\nfrobnicate=7\nexec_prerun=5\n", &lenient);
	assert_string_equal(jobs_note(jobs, 0), "t:3: the unknown option frobnicate is ignored");
	assert_string_equal(jobs_note(jobs, 1), "t:4: fio's option exec_prerun is ignored");
	assert_null(jobs_note(jobs, 2));
	jobs_free(jobs);
	assert_int_equal(jobs_parse_as("t", "[j]\nsize=x\n", &lenient, &jobs, &e), -EINVAL);
	e.text[0] = 0;
	assert_int_equal(jobs_parse_as("t", "[j]\nioengine=foo\n", &lenient, &jobs, &e), -EINVAL);
}

/* Relative to the current folder first, then to the including file; never with sections. */
static void includes_are_found(void **state)
{
	const struct jobs_reading none = { .no_includes = true };
	struct jobs *jobs = NULL;
	struct err e = { 0 };
	char text[8192];

	(void)state;
	jobs = parse("[j]\ninclude " SOURCE_ROOT "/tests/job/corpus/inc/deeper.inc\nsize=4k\n",
		     NULL);
	assert_true(jobs->list[0].o.thread);
	assert_int_equal(jobs->list[0].o.size.bytes, 4096);
	jobs_free(jobs);
	assert_int_equal(jobs_parse_as("t", "[j]\ninclude x\n", &none, &jobs, &e), -EINVAL);
	assert_string_equal(e.text, "t:2: include x: no file may be included here");
	e.text[0] = 0;
	snprintf(text, sizeof(text), "[j]\ninclude %s\n", corpus("p2", ".fio"));
	assert_int_equal(jobs_parse("t", text, &jobs, &e), -EINVAL);
	snprintf(text, sizeof(text), "%s:2: [global]: an included file begins no sections",
		 corpus("p2", ".fio"));
	assert_string_equal(e.text, text);
}

/* A file that includes itself ends in words, not in a loop. */
static void includes_end(void **state)
{
	char path[] = "/tmp/sluice-include-XXXXXX", text[128];
	int fd = mkstemp(path);
	struct jobs *jobs = NULL;
	struct err e = { 0 };

	(void)state;
	assert_true(fd >= 0);
	snprintf(text, sizeof(text), "include %s\n", path);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	snprintf(text, sizeof(text), "[j]\ninclude %s\n", path);
	assert_int_equal(jobs_parse("t", text, &jobs, &e), -EINVAL);
	assert_non_null(strstr(e.text, "too many files within files"));
	unlink(path);
}

static void remarks_are_made_once(void **state)
{
	struct jobs *jobs = parse("[global]\nsize=2*4k\ndisk_util=0\n[a]\ndisk_util=1\n"
				  "iodepth=16\nnumjobs=(2*3)\n[b]\nioengine=mmap\nbs=8k/2\n",
				  NULL);
	static const char *const wanted[] = {
		"t:2: size=2*4k is computed; fio does so only in parentheses, and else reads the "
		"first number",
		"t:3: disk_util has no effect here: what is measured does not depend on it here",
		"t:10: bs=8k/2 is computed; fio does so only in parentheses, and else reads the "
		"first number",
		"t:6: iodepth has no effect in job a: its ioengine does one I/O at a time",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		assert_string_equal(jobs_note(jobs, i), wanted[i]);
	assert_null(jobs_note(jobs, ARRAY_SIZE(wanted)));
	assert_int_equal(jobs->list[0].o.numjobs, 6);
	jobs_free(jobs);
}

static void missing_files_are_named(void **state)
{
	struct jobs *jobs = NULL;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(jobs_load("no/such.fio", &jobs, &e), -ENOENT);
	assert_string_equal(e.text, "no/such.fio: No such file or directory");
	e.text[0] = 0;
	assert_int_equal(jobs_load("/", &jobs, &e), -EISDIR);
}

/* Every option can be found, defaulted and is not at once said to be unsupported. */
static void table_is_consistent(void **state)
{
	(void)state;
	for (size_t i = 0; i < options_count; i++) {
		const struct option *o = &options_table[i];

		assert_ptr_equal(options_find(o->name), o);
		assert_false(options_is_fios(o->name));
		assert_non_null(o->help);
		if (o->alias) {
			assert_ptr_equal(options_find(o->alias), o);
			assert_false(options_is_fios(o->alias));
		}
		assert_int_equal(o->type == OPTION_CHOICE, o->choices != NULL);
		assert_true(o->own || o->type != OPTION_OWN);
	}
	assert_null(options_find("exec_prerun"));
	assert_true(options_is_fios("exec_prerun"));
}

static void words(void **state)
{
	struct words w;

	(void)state;
	assert_int_equal(words_split(&w, "a:b\\:c::\\d:"), 0);
	assert_int_equal(w.count, 3);
	assert_string_equal(w.word[0], "a");
	assert_string_equal(w.word[1], "b:c");
	assert_string_equal(w.word[2], "\\d");
	words_finish(&w);
	assert_int_equal(words_split(&w, ":"), 0);
	assert_int_equal(w.count, 0);
	words_finish(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(corpus_is_read_as_expected),
		cmocka_unit_test(refusals),
		cmocka_unit_test(variables_and_keywords),
		cmocka_unit_test(lenience_ignores_options),
		cmocka_unit_test(includes_are_found),
		cmocka_unit_test(includes_end),
		cmocka_unit_test(remarks_are_made_once),
		cmocka_unit_test(missing_files_are_named),
		cmocka_unit_test(table_is_consistent),
		cmocka_unit_test(words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
