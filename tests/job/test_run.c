/* SPDX-License-Identifier: MIT */
/* What the runner does with files, call by call, on the fake engine. */
#include "fake_engine.h"

static void reads_in_sequence(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	fake_run(&k, "[j]\nrw=read\nbs=4k\nsize=16k\n", &r);
	assert_string_equal(fake_trace(&k, "lrwa"),
			    "l j.0.0 0+16384; a j.0.0 0+16384; a j.0.0 0+16384; "
			    "r j.0.0 0+4096; r j.0.0 4096+4096; "
			    "r j.0.0 8192+4096; r j.0.0 12288+4096");
	assert_int_equal(r.count, 1);
	assert_string_equal(r.rows[0].name, "j");
	assert_int_equal(r.rows[0].dir[JOB_DIR_READ].ios, 4);
	assert_int_equal(r.rows[0].dir[JOB_DIR_READ].bytes, 16384);
	assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].ios, 0);
	assert_int_equal(r.rows[0].clones, 1);
	job_results_finish(&r);
	fake_finish(&k);
}

/* A file that is to be written gets its size, but no data. */
static void writes_in_sequence(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	fake_run(&k, "[j]\nrw=write\nbs=8k\nsize=20k\ninvalidate=0\nfadvise_hint=0\n", &r);
	assert_string_equal(fake_trace(&k, "ltrwa"),
			    "t j.0.0 0+20480; w j.0.0 0+8192; w j.0.0 8192+8192");
	assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].bytes, 16384);
	job_results_finish(&r);
	fake_finish(&k);
}

/* fio: size is where blocks may begin, and the file's end is where they must end. */
static void last_block_may_pass_size(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	fake_file(&k, "f", 100000);
	fake_run(&k, "[j]\nrw=read\nfilename=f\nbs=4k\nsize=10k\ninvalidate=0\nfadvise_hint=0", &r);
	assert_string_equal(fake_trace(&k, "rwal"), "r f 0+4096; r f 4096+4096; r f 8192+4096");
	job_results_finish(&r);
	fake_finish(&k);
}

static void open_flags_and_advice(void **state)
{
	static const struct {
		const char *options;
		u32 flags, advice;
	} cases[] = {
		{ "rw=read", JOB_READ, JOB_ADV_SEQUENTIAL },
		{ "rw=randread", JOB_READ, JOB_ADV_RANDOM },
		{ "rw=write", JOB_READ | JOB_WRITE | JOB_CREATE, JOB_ADV_SEQUENTIAL },
		{ "rw=randrw\ndirect=1", JOB_READ | JOB_WRITE | JOB_CREATE | JOB_DIRECT,
		  JOB_ADV_RANDOM },
		{ "rw=randread\nfadvise_hint=sequential\nbuffered=0", JOB_READ | JOB_DIRECT,
		  JOB_ADV_SEQUENTIAL },
		{ "rw=write\nfadvise_hint=random\nsync=1",
		  JOB_READ | JOB_WRITE | JOB_CREATE | JOB_SYNC, JOB_ADV_RANDOM },
		{ "rw=write\nsync=dsync", JOB_READ | JOB_WRITE | JOB_CREATE | JOB_DSYNC,
		  JOB_ADV_SEQUENTIAL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fake_call *open = NULL, *advice[2] = { NULL };
		struct job_results r;
		char text[256];
		size_t advised = 0;
		struct fake k;

		snprintf(text, sizeof(text), "[j]\n%s\nfilename=f\nsize=64k\noffset=4k\n",
			 cases[i].options);
		fake_init(&k);
		fake_file(&k, "f", 68 << 10);
		fake_run(&k, text, &r);
		for (size_t c = 0; c < k.count; c++) {
			if (k.calls[c].kind == FAKE_OPEN)
				open = &k.calls[c];
			if (k.calls[c].kind == FAKE_ADVISE && advised < 2)
				advice[advised++] = &k.calls[c];
		}
		assert_int_equal(open->flags, cases[i].flags);
		assert_int_equal(advised, 2);
		assert_int_equal(advice[0]->flags, JOB_ADV_DONTNEED);
		assert_int_equal(advice[0]->offset, 4096);
		assert_int_equal(advice[0]->length, 65536);
		assert_int_equal(advice[1]->flags, cases[i].advice);
		job_results_finish(&r);
		fake_finish(&k);
	}
}

static void files_take_turns(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	fake_run(&k, "[j]\nrw=write\nbs=4k\nsize=24k\nfilename=a:b\\:c:d\nfadvise_hint=0\n", &r);
	assert_string_equal(fake_trace(&k, "rw"), "w a 0+4096; w b:c 0+4096; w d 0+4096; "
						  "w a 4096+4096; w b:c 4096+4096; w d 4096+4096");
	job_results_finish(&r);
	fake_finish(&k);

	fake_init(&k);
	fake_run(&k, "[j]\nrw=write\nsize=16k\nnrfiles=2\nfile_service_type=sequential\n", &r);
	assert_string_equal(fake_trace(&k, "rw"), "w j.0.0 0+4096; w j.0.0 4096+4096; "
						  "w j.0.1 0+4096; w j.0.1 4096+4096");
	job_results_finish(&r);
	fake_finish(&k);
}

/* Equal shares; what does not divide goes to the first files, a block each. */
static void size_is_shared_by_files(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	fake_run(&k, "[j]\nrw=write\nsize=27k\nbs=3k\nnrfiles=2\nfadvise_hint=0\n", &r);
	assert_int_equal(k.inodes[0].size, 27 * 512);
	assert_int_equal(k.inodes[1].size, 27 * 512);
	assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].ios, 8);
	job_results_finish(&r);
	fake_finish(&k);

	fake_init(&k);
	fake_run(&k, "[j]\nrw=write\nsize=9\nbs=1\nnrfiles=4\nfadvise_hint=0\n", &r);
	assert_int_equal(k.inodes[0].size, 3);
	assert_int_equal(k.inodes[1].size, 2);
	assert_int_equal(k.inodes[3].size, 2);
	assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].ios, 9);
	job_results_finish(&r);
	fake_finish(&k);
}

static void filesize_fixes_each(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	fake_run(&k, "[j]\nrw=write\nfilesize=8k\nnrfiles=3\n", &r);
	assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].bytes, 24 << 10);
	for (int i = 0; i < 3; i++)
		assert_int_equal(k.inodes[i].size, 8 << 10);
	job_results_finish(&r);
	fake_finish(&k);

	/* size then only bounds what is written */
	fake_init(&k);
	fake_run(&k, "[j]\nrw=write\nfilesize=8k\nsize=12k\nnrfiles=3\n", &r);
	assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].bytes, 12 << 10);
	assert_int_equal(k.inodes[2].size, 8 << 10);
	job_results_finish(&r);
	fake_finish(&k);
}

static void size_of_existing_files(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	fake_file(&k, "f", 40960);
	fake_run(&k, "[j]\nrw=read\nfilename=f\n", &r);
	assert_int_equal(r.rows[0].dir[JOB_DIR_READ].bytes, 40960);
	job_results_finish(&r);
	fake_finish(&k);

	fake_init(&k);
	fake_file(&k, "f", 40960);
	fake_run(&k, "[j]\nrw=read\nfilename=f\nsize=25%\n", &r);
	assert_int_equal(r.rows[0].dir[JOB_DIR_READ].bytes, 8192);
	job_results_finish(&r);
	fake_finish(&k);

	/* as fio 3.33: 10 % is rounded up to a block, 25 % down */
	fake_init(&k);
	fake_file(&k, "f", 100000);
	fake_run(&k, "[j]\nrw=read\nfilename=f\nsize=25%\noffset=10%\n", &r);
	assert_string_equal(fake_trace(&k, "r"),
			    "r f 12288+4096; r f 16384+4096; r f 20480+4096; r f 24576+4096; "
			    "r f 28672+4096; r f 32768+4096");
	job_results_finish(&r);
	fake_finish(&k);

	fake_init(&k);
	fake_file(&k, "f", 40960);
	fake_run(&k, "[j]\nrw=read\nfilename=f\noffset=50%\ninvalidate=0\nfadvise_hint=0", &r);
	assert_string_equal(fake_trace(&k, "rwal"), "r f 20480+4096; r f 24576+4096; "
						    "r f 28672+4096; r f 32768+4096; "
						    "r f 36864+4096");
	job_results_finish(&r);
	fake_finish(&k);
}

static void io_size_goes_round_or_stops_early(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	fake_run(&k, "[j]\nrw=write\nsize=8k\nio_size=20k\nfadvise_hint=0\ninvalidate=0\n", &r);
	assert_string_equal(fake_trace(&k, "rw"), "w j.0.0 0+4096; w j.0.0 4096+4096; "
						  "w j.0.0 0+4096; w j.0.0 4096+4096; "
						  "w j.0.0 0+4096");
	job_results_finish(&r);
	fake_finish(&k);

	fake_init(&k);
	fake_run(&k, "[j]\nrw=write\nsize=80k\nio_size=10%\n", &r);
	assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].ios, 2);
	job_results_finish(&r);
	fake_finish(&k);

	fake_init(&k);
	fake_run(&k, "[j]\nrw=write\nsize=8k\nloops=3\nnrfiles=2\n", &r);
	assert_string_equal(fake_trace(&k, "rw"), "w j.0.0 0+4096; w j.0.1 0+4096; "
						  "w j.0.0 0+4096; w j.0.1 0+4096; "
						  "w j.0.0 0+4096; w j.0.1 0+4096");
	job_results_finish(&r);
	fake_finish(&k);
}

static void clones_have_their_own_files(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	fake_run(&k,
		 "[a b, c]\nrw=write\nsize=4k\nnumjobs=2\nnrfiles=1\n"
		 "[g]\nrw=write\nsize=8k\nnumjobs=2\nnrfiles=2\nfilename_format=x$jobnum.$filenum-$"
		 "jobname\n"
		 "[d]\nrw=write\nsize=4k\nnumjobs=3\ndirectory=p:q\n"
		 "[s]\nrw=write\nsize=4k\nnumjobs=2\ndirectory=p:q\nfilename=z\n",
		 &r);
	assert_string_equal(fake_trace(&k, "w"),
			    "w a b, c.0.0 0+4096; w a b, c.1.0 0+4096; "
			    "w x0.0-g 0+4096; w x0.1-g 0+4096; w x1.0-g 0+4096; w x1.1-g 0+4096; "
			    "w p/d.0.0 0+4096; w q/d.1.0 0+4096; w p/d.2.0 0+4096; "
			    "w p/z 0+4096; w p/z 0+4096");
	assert_int_equal(r.count, 9);
	job_results_finish(&r);
	fake_finish(&k);
}

/* All files are made before anything starts, so a reader finds what a writer's set-up made. */
static void files_are_made_first(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	fake_run(&k,
		 "[global]\nfilename=f\nsize=8k\ninvalidate=0\nfadvise_hint=0\n"
		 "[w]\nrw=write\n[r]\nrw=read\nstonewall\n",
		 &r);
	assert_string_equal(fake_trace(&k, "ltrw"), "t f 0+8192; w f 0+4096; w f 4096+4096; "
						    "r f 0+4096; r f 4096+4096");
	job_results_finish(&r);
	fake_finish(&k);

	fake_init(&k);
	fake_file(&k, "f", 4096);
	fake_run(&k, "[w]\nrw=write\nfilename=f\nsize=8k\noverwrite=1\n", &r);
	assert_string_equal(fake_trace(&k, "lt"), "l f 0+8192");
	job_results_finish(&r);
	fake_finish(&k);

	fake_init(&k);
	fake_run(&k, "[w]\nrw=write\nfilename=f\nsize=8k\ncreate_on_open=1\n", &r);
	assert_string_equal(fake_trace(&k, "ltw"), "w f 0+4096; w f 4096+4096");
	job_results_finish(&r);
	fake_finish(&k);
}

static void mixed_jobs_keep_two_positions(void **state)
{
	u64 next[2] = { 0, 0 }, count[2] = { 0, 0 };
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	fake_run(&k, "[j]\nrw=rw\nbs=4k,8k\nsize=40m\nrwmixread=70\n", &r);
	for (size_t i = 0; i < k.count; i++) {
		struct fake_call *c = &k.calls[i];
		int dir = c->kind == FAKE_WRITE;

		if (c->kind != FAKE_READ && c->kind != FAKE_WRITE)
			continue;
		assert_int_equal(c->offset, next[dir]);
		assert_int_equal(c->length, dir ? 8192 : 4096);
		next[dir] += c->length;
		count[dir]++;
	}
	/* 70 of 100 are reads, within four standard deviations */
	assert_in_range(count[0] * 1000 / (count[0] + count[1]), 679, 721);
	assert_in_range(next[0] + next[1], 40 << 20, (40 << 20) + 8192);
	job_results_finish(&r);
	fake_finish(&k);
}

static void every_random_block_once(void **state)
{
	static const char *const kinds[] = { "randread", "randwrite", "randrw" };
	bool moved = false;

	(void)state;
	for (size_t n = 0; n < ARRAY_SIZE(kinds); n++) {
		unsigned char seen[2][500] = { 0 };
		struct job_results r;
		char text[128];
		struct fake k;

		snprintf(text, sizeof(text), "[j]\nrw=%s\nfilename=a:b\nsize=4000k\noffset=8k\n",
			 kinds[n]);
		fake_init(&k);
		fake_run(&k, text, &r);
		for (size_t i = 0, at = 0; i < k.count; i++) {
			struct fake_call *c = &k.calls[i];
			u64 block = (c->offset - 8192) / 4096;

			if (c->kind != FAKE_READ && c->kind != FAKE_WRITE)
				continue;
			assert_int_equal(c->length, 4096);
			assert_int_equal(c->offset % 4096, 0);
			assert_in_range(block, 0, 499);
			assert_int_equal(c->file, at++ % 2);
			moved |= block != at / 2;
			seen[c->file][block]++;
		}
		for (int f = 0; f < 2; f++)
			for (int b = 0; b < 500; b++)
				assert_int_equal(seen[f][b], 1);
		job_results_finish(&r);
		fake_finish(&k);
	}
	assert_true(moved);
}

static void errors_stop_the_clone(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	k.fail_at = 3;
	k.fail_error = -ENOSPC;
	fake_run(&k, "[j]\nrw=write\nfilename=f.3\nsize=64k\n[ok]\nrw=write\nsize=8k\n", &r);
	assert_int_equal(r.count, 2);
	assert_int_equal(r.rows[0].error, -ENOSPC);
	assert_string_equal(r.rows[0].error_text, "write f.3 at 8192: No space left on device");
	assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].ios, 2);
	assert_int_equal(r.rows[1].error, 0);
	assert_int_equal(r.rows[1].dir[JOB_DIR_WRITE].ios, 2);
	job_results_finish(&r);
	fake_finish(&k);

	fake_init(&k);
	fake_run(&k,
		 "[j]\nrw=read\nfilename=cannot\nsize=64k\n[n]\nrw=read\nfilename=not\n"
		 "[b]\nrw=write\nsize=1k\n[o]\nrw=read\nfilename=o\nfilesize=8k\noffset=9k\n",
		 &r);
	assert_int_equal(r.rows[0].error, -ENOSPC);
	assert_string_equal(r.rows[0].error_text,
			    "make cannot of 65536 bytes: No space left on device");
	assert_string_equal(r.rows[1].error_text, "job n needs a size, since not does not exist");
	assert_string_equal(r.rows[2].error_text, "the blocks of job b are larger than its data");
	assert_string_equal(r.rows[3].error_text, "offset of job o is behind the end of o");
	assert_int_equal(r.rows[3].error, -EINVAL);
	job_results_finish(&r);
	fake_finish(&k);

	/* created on open, so there is nothing to read */
	fake_init(&k);
	fake_file(&k, "f", 0);
	fake_run(&k, "[j]\nrw=read\nfilename=f\nsize=64k\ncreate_on_open=1\n", &r);
	assert_int_equal(r.rows[0].error, -EIO);
	assert_string_equal(r.rows[0].error_text, "read f at 0: the file ended");
	job_results_finish(&r);
	fake_finish(&k);

	fake_init(&k);
	fake_run(&k, "[j]\nrw=read\nfilename=f\nsize=64k\ncreate_on_open=1\n", &r);
	assert_string_equal(r.rows[0].error_text, "open f: No such file or directory");
	job_results_finish(&r);
	fake_finish(&k);
}

static void short_ios_go_on(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	k.short_bytes = 3000;
	fake_run(&k, "[j]\nrw=write\nfilename=f\nsize=8k\nbs=8k\n", &r);
	assert_string_equal(fake_trace(&k, "w"), "w f 0+8192; w f 3000+5192; w f 6000+2192");
	assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].ios, 1);
	assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].bytes, 8192);
	assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].short_ios, 2);
	job_results_finish(&r);
	fake_finish(&k);
}

static void rows_follow_groups(void **state)
{
	static const char text[] = "[global]\nrw=write\nsize=4k\ngroup_reporting\n"
				   "[a]\nnumjobs=2\n[b]\n[c]\nnew_group\nnumjobs=3\n"
				   "[d]\nstonewall\n[e]\ngroup_reporting=0\nnumjobs=2\n";
	struct job_dir_stats total;
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	fake_run(&k, text, &r);
	assert_int_equal(r.count, 5);
	assert_string_equal(r.rows[0].name, "a");
	assert_int_equal(r.rows[0].clones, 3);
	assert_string_equal(r.rows[1].name, "c");
	assert_int_equal(r.rows[1].clones, 3);
	assert_string_equal(r.rows[2].name, "d");
	assert_int_equal(r.rows[2].clones, 1);
	assert_string_equal(r.rows[4].name, "e");
	assert_int_equal(r.rows[4].clones, 1);
	job_results_total(&r, JOB_DIR_WRITE, &total);
	assert_int_equal(total.ios, 9);
	assert_int_equal(total.bytes, 9 * 4096);
	assert_int_equal(total.clat.samples, 9);
	job_results_finish(&r);
	fake_finish(&k);
}

/* One task of each clone, or one for each I/O in flight, and each tells its end. */
static u32 exits(const struct fake *k)
{
	u32 n = 0;

	for (size_t i = 0; i < k->count; i++)
		n += k->calls[i].kind == FAKE_EXIT;
	return n;
}

static void depth_is_kept(void **state)
{
	static const struct {
		const char *options;
		u32 depth, tasks;
	} cases[] = {
		{ "ioengine=psync\niodepth=8", 1, 1 },
		{ "ioengine=libaio\niodepth=8", 1, 1 },
		{ "ioengine=libaio\niodepth=8\ndirect=1", 8, 9 },
		{ "ioengine=io_uring\niodepth=5\ndirect=1", 5, 6 },
		/* a queue before one writer: the kernel hashes buffered writes by file */
		{ "ioengine=io_uring\niodepth=5", 1, 1 },
		{ "ioengine=io_uring", 1, 1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		unsigned char seen[256] = { 0 };
		struct job_results r;
		char text[256];
		struct fake k;

		snprintf(text, sizeof(text), "[j]\nrw=randwrite\nsize=1m\n%s\n", cases[i].options);
		fake_init(&k);
		k.latency_ns = 1000;
		fake_run(&k, text, &r);
		assert_int_equal(k.most_in_flight, cases[i].depth);
		assert_int_equal(exits(&k), cases[i].tasks);
		for (size_t c = 0; c < k.count; c++)
			if (k.calls[c].kind == FAKE_WRITE)
				seen[k.calls[c].offset / 4096]++;
		for (int b = 0; b < 256; b++)
			assert_int_equal(seen[b], 1);
		assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].ios, 256);
		job_results_finish(&r);
		fake_finish(&k);
	}
}

static void buffers_only_where_contents_count(void **state)
{
	struct jobs_options o = { .seed = 1, .contents = true };
	u64 words[4] = { 0 };
	struct job_results r;
	struct fake k;
	u32 n = 0;

	(void)state;
	fake_init(&k);
	fake_run(&k, "[j]\nrw=write\nsize=8k\nloops=2\n", &r);
	for (size_t i = 0; i < k.count; i++)
		assert_false(k.calls[i].buffer);
	job_results_finish(&r);
	fake_finish(&k);

	fake_init(&k);
	fake_run_with(&k, "[j]\nrw=write\nsize=8k\nloops=2\n", &o, &r);
	for (size_t i = 0; i < k.count; i++)
		if (k.calls[i].kind == FAKE_WRITE)
			words[n++] = k.calls[i].first_word;
	assert_int_equal(n, 4);
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < i; j++)
			assert_int_not_equal(words[i], words[j]);
	job_results_finish(&r);
	fake_finish(&k);
}

/* What looks on is told of the same I/Os that the results have, ramps left out. */
static void ios_are_entered_for_whoever_looks_on(void **state)
{
	struct job_dir_stats *live = calloc(JOB_DIRS, sizeof(*live));
	struct jobs_options o = { .seed = 1, .live = live };
	struct job_results r;
	struct fake k;

	(void)state;
	assert_non_null(live);
	for (int dir = 0; dir < JOB_DIRS; dir++)
		hist_init(&live[dir].clat);
	fake_init(&k);
	k.latency_ns = 1000000;
	fake_run_with(&k, "[j]\nrw=randrw\nsize=1m\nnumjobs=2\nramp_time=50ms\n", &o, &r);
	assert_int_equal(r.count, 2);
	for (int dir = 0; dir < JOB_DIR_TRIM; dir++) {
		struct job_dir_stats *sum = malloc(sizeof(*sum));

		assert_non_null(sum);
		job_results_total(&r, dir, sum);
		assert_true(sum->ios > 0 && sum->ios < 256);
		assert_int_equal(live[dir].ios, sum->ios);
		assert_int_equal(live[dir].bytes, sum->bytes);
		assert_memory_equal(live[dir].clat.bucket, sum->clat.bucket,
				    sizeof(sum->clat.bucket));
		free(sum);
	}
	job_results_finish(&r);
	fake_finish(&k);
	free(live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_in_sequence),
		cmocka_unit_test(writes_in_sequence),
		cmocka_unit_test(last_block_may_pass_size),
		cmocka_unit_test(open_flags_and_advice),
		cmocka_unit_test(files_take_turns),
		cmocka_unit_test(size_is_shared_by_files),
		cmocka_unit_test(filesize_fixes_each),
		cmocka_unit_test(size_of_existing_files),
		cmocka_unit_test(io_size_goes_round_or_stops_early),
		cmocka_unit_test(clones_have_their_own_files),
		cmocka_unit_test(files_are_made_first),
		cmocka_unit_test(mixed_jobs_keep_two_positions),
		cmocka_unit_test(every_random_block_once),
		cmocka_unit_test(errors_stop_the_clone),
		cmocka_unit_test(short_ios_go_on),
		cmocka_unit_test(rows_follow_groups),
		cmocka_unit_test(depth_is_kept),
		cmocka_unit_test(buffers_only_where_contents_count),
		cmocka_unit_test(ios_are_entered_for_whoever_looks_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
