/* SPDX-License-Identifier: MIT */
/* When jobs sync the files they write: fsync, fdatasync, end_fsync. */
#include "fake_engine.h"

/* fio 3.33: due after every Nth write, to the file whose turn it is, again after each read. */
static void syncs_keep_their_cadence(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	fake_run(&k, "[j]\nrw=write\nsize=16k\nfsync=2\nfilename=f\nend_fsync=1\n", &r);
	assert_string_equal(fake_trace(&k, "wsd"),
			    "w f 0+4096; w f 4096+4096; s f 0+0; w f 8192+4096; w f 12288+4096; "
			    "s f 0+0");
	assert_int_equal(r.rows[0].sync_ios, 1); /* end_fsync does not count */
	assert_int_equal(r.rows[0].sync_lat.samples, 1);
	job_results_finish(&r);
	fake_finish(&k);

	fake_init(&k);
	fake_run(&k, "[j]\nrw=write\nsize=16k\nfdatasync=1\nfilename=a:b\n", &r);
	assert_string_equal(fake_trace(&k, "wsd"),
			    "w a 0+4096; d b 0+0; w a 4096+4096; d b 0+0; w b 0+4096; d b 0+0; "
			    "w b 4096+4096");
	job_results_finish(&r);
	fake_finish(&k);
}

/* After the third write a sync is due, and again after each read until the fourth. */
static void syncs_repeat_after_reads(void **state)
{
	u64 writes = 0, repeated = 0;
	bool synced = false, read_last = false;
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	fake_run(&k, "[j]\nrw=randrw\nsize=1m\nfsync=3\nfilename=f\n", &r);
	for (size_t i = 0; i < k.count; i++) {
		char kind = k.calls[i].kind;
		bool due = !synced && writes && writes % 3 == 0;

		if (kind != FAKE_READ && kind != FAKE_WRITE && kind != FAKE_FSYNC)
			continue;
		assert_int_equal(kind == FAKE_FSYNC, due);
		repeated += due && read_last;
		synced = kind == FAKE_FSYNC;
		read_last = kind == FAKE_READ;
		writes += kind == FAKE_WRITE;
	}
	assert_true(repeated > 10);
	assert_true(r.rows[0].sync_ios > writes / 3);
	job_results_finish(&r);
	fake_finish(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(syncs_keep_their_cadence),
		cmocka_unit_test(syncs_repeat_after_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
