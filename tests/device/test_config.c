// SPDX-License-Identifier: MIT
/* [device] sections: what they give, and what is refused in which words. */
#include "rig.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>

static int read_text(const char *text, struct device_config *c, struct err *e)
{
	struct ini ini;
	int error;

	memset(e, 0, sizeof(*e));
	assert_int_equal(ini_load_text(&ini, "m.ini", text, e), 0);
	error = device_config_read(c, &ini, ini_section(&ini, "device"), e);
	ini_finish(&ini);
	return error;
}

static void expect(const char *text, struct device_config *c)
{
	struct err e;
	int error = read_text(text, c, &e);

	assert_string_equal(e.text, "");
	assert_int_equal(error, 0);
}

static void refuse(const char *text, const char *message)
{
	struct device_config c;
	struct err e;

	assert_int_equal(read_text(text, &c, &e), -EINVAL);
	assert_string_equal(e.text, message);
}

static void test_defaults(void **state)
{
	struct device_config c;

	(void)state;
	expect("[device]\nmodel = rate\n", &c);
	assert_string_equal(c.model, "rate");
	assert_string_equal(c.name, "rate");
	assert_int_equal(c.max_io_bytes, 262144);
	assert_int_equal(c.queue_depth, 128);
	assert_true(c.iops == 3000 && c.bytes_per_s == 131072000);
	assert_int_equal(c.latency_ns, 0);
	expect("[device]\nmodel = ebs\n", &c);
	assert_int_equal(c.io_unit_bytes, 262144);
	assert_int_equal(c.latency_ns, 500000);
	expect("[device]\nmodel = nvme\n", &c);
	assert_int_equal(c.max_io_bytes, 1310720);
	assert_int_equal(c.queue_depth, 1023);
	assert_int_equal(c.channels, 64);
	assert_int_equal(c.read_latency_ns, 80000);
	assert_int_equal(c.write_latency_ns, 20000);
	assert_true(c.read_bytes_per_s == 3e9 && c.write_bytes_per_s == 2e9);
	assert_true(c.latency_sigma == 0.25);
	assert_int_equal(c.seed, 0);
}

static void test_every_key(void **state)
{
	struct device_config c;

	(void)state;
	expect("[device]\nmodel=rate\nname=slow disk\niops=1500.5\nmbps=0.7\nlatency_us=300.25\n"
	       "max_sectors_kb=512\nnr_requests=64\n",
	       &c);
	assert_string_equal(c.name, "slow disk");
	assert_true(c.iops == 1500.5 && c.bytes_per_s == 0.7 * 1e6);
	assert_int_equal(c.latency_ns, 300250);
	assert_int_equal(c.max_io_bytes, 524288);
	assert_int_equal(c.queue_depth, 64);
	expect("[device]\nmodel=ebs\nbandwidth=125MiB\nio_unit_kb=16\n", &c);
	assert_true(c.bytes_per_s == 131072000);
	assert_int_equal(c.io_unit_bytes, 16384);
	expect("[device]\nmodel=nvme\nchannels=8\nread_bandwidth=3GiB\nwrite_bandwidth=1e9\n"
	       "read_latency_us=70\nwrite_latency_us=0.001\nlatency_sigma=0\n",
	       &c);
	assert_int_equal(c.channels, 8);
	assert_true(c.read_bytes_per_s == 3221225472.0 && c.write_bytes_per_s == 1e9);
	assert_int_equal(c.read_latency_ns, 70000);
	assert_int_equal(c.write_latency_ns, 1);
	assert_true(c.latency_sigma == 0);
	expect("[device]\nmodel=memory\nmax_sectors_kb=4\n", &c);
	assert_int_equal(c.max_io_bytes, 4096);
	/* The last of two counts. */
	expect("[device]\nmodel=rate\niops=5\niops=6\n", &c);
	assert_true(c.iops == 6);
}

static void test_model_refused(void **state)
{
	(void)state;
	refuse("[other]\n[device]\niops = 3\n",
	       "m.ini:2: section [device] says no model; the models are rate, ebs, nvme, memory, "
	       "fuse");
	refuse("[device]\nmodel = ebss\n",
	       "m.ini:2: model = ebss: no such model, did you mean ebs?; the models are rate, ebs, "
	       "nvme, memory, fuse");
	refuse("[device]\nmodel = floppy\n",
	       "m.ini:2: model = floppy: no such model; the models are rate, ebs, nvme, "
	       "memory, fuse");
	refuse("[device]\nmodel = file\n", "m.ini:2: model = file: exists in the real world only; "
					   "the models are rate, ebs, nvme, "
					   "memory, fuse");
}

static void test_key_refused(void **state)
{
	(void)state;
	refuse("[device]\nmodel = rate\n\nchannels = 4\n",
	       "m.ini:4: unknown key \"channels\" for a device of model \"rate\", which takes "
	       "model, name, max_sectors_kb, nr_requests, wbt_lat_us, write_cache, iops, mbps, "
	       "bandwidth, latency_us, path_us");
	refuse("[device]\nmodel = ebs\niosp = 4\n",
	       "m.ini:3: unknown key \"iosp\" (did you mean \"iops\"?) for a device of model "
	       "\"ebs\", which takes model, name, max_sectors_kb, nr_requests, wbt_lat_us, "
	       "write_cache, iops, mbps, bandwidth, latency_us, io_unit_kb");
	refuse("[device]\nmodel = nvme\niops = 4\n",
	       "m.ini:3: unknown key \"iops\" for a device of model \"nvme\", which takes model, "
	       "name, max_sectors_kb, nr_requests, wbt_lat_us, write_cache, channels, "
	       "read_bandwidth, write_bandwidth, read_latency_us, write_latency_us, shared, "
	       "latency_sigma");
	refuse("[device]\nmodel = memory\nnr_requests = 4\n",
	       "m.ini:3: unknown key \"nr_requests\" for a device of model \"memory\", which takes "
	       "model, name, max_sectors_kb");
	refuse("[device]\nmodel = rate\nmbps = 5\niops = 7\nbandwidth = 5m\n",
	       "m.ini:5: bandwidth: the speed stands in line 3 already, as mbps");
	refuse("[device]\nmodel = rate\nname = a name that is longer than a name can be\n",
	       "m.ini:3: name = a name that is longer than a name can be: must have 1 to 31 "
	       "characters");
}

/* Key by key: the model, a value it cannot have, and the end of the message. */
static const struct {
	const char *model, *key, *value, *range;
} bad_values[] = {
	{ "rate", "iops", "0", "a number from 1 to 1000000000 I/Os a second" },
	{ "rate", "iops", "-3000", "a number from 1 to 1000000000 I/Os a second" },
	{ "rate", "iops", "1e10", "a number from 1 to 1000000000 I/Os a second" },
	{ "rate", "iops", "3000/s", "a number from 1 to 1000000000 I/Os a second" },
	{ "rate", "iops", "nan", "a number from 1 to 1000000000 I/Os a second" },
	{ "rate", "mbps", "0", "a number from 0.001 to 1000000 million bytes a second" },
	{ "rate", "mbps", "1000001", "a number from 0.001 to 1000000 million bytes a second" },
	{ "ebs", "bandwidth", "0",
	  "a number from 1000 to 1000000000000 bytes a second, or with a unit as in 125MiB" },
	{ "ebs", "bandwidth", "125MB/s",
	  "a number from 1000 to 1000000000000 bytes a second, or with a unit as in 125MiB" },
	{ "ebs", "bandwidth", "2t",
	  "a number from 1000 to 1000000000000 bytes a second, or with a unit as in 125MiB" },
	{ "rate", "latency_us", "-1", "a number from 0 to 60000000 microseconds" },
	{ "rate", "latency_us", "1e8", "a number from 0 to 60000000 microseconds" },
	{ "rate", "max_sectors_kb", "0", "a whole number from 4 to 1048576 KiB" },
	{ "rate", "max_sectors_kb", "4.5", "a whole number from 4 to 1048576 KiB" },
	{ "memory", "max_sectors_kb", "1048577", "a whole number from 4 to 1048576 KiB" },
	{ "nvme", "nr_requests", "0", "a whole number from 1 to 65536 requests" },
	{ "nvme", "nr_requests", "65537", "a whole number from 1 to 65536 requests" },
	{ "ebs", "io_unit_kb", "0", "a whole number from 1 to 1048576 KiB" },
	{ "nvme", "channels", "0", "a whole number from 1 to 1024 channels" },
	{ "nvme", "channels", "1025", "a whole number from 1 to 1024 channels" },
	{ "nvme", "read_bandwidth", "999",
	  "a number from 1000 to 1000000000000 bytes a second, or with a unit as in 3GiB" },
	{ "nvme", "write_bandwidth", "-1",
	  "a number from 1000 to 1000000000000 bytes a second, or with a unit as in 3GiB" },
	{ "nvme", "read_latency_us", "0", "a number from 0.001 to 60000000 microseconds" },
	{ "nvme", "write_latency_us", "60000001", "a number from 0.001 to 60000000 microseconds" },
	{ "nvme", "latency_sigma", "3.1", "a number from 0 to 3 (log-normal sigma)" },
};

static void test_values_refused(void **state)
{
	char text[256], message[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad_values); i++) {
		snprintf(text, sizeof(text), "[device]\nmodel = %s\n%s = %s\n", bad_values[i].model,
			 bad_values[i].key, bad_values[i].value);
		snprintf(message, sizeof(message), "m.ini:3: %s = %s: must be %s",
			 bad_values[i].key, bad_values[i].value, bad_values[i].range);
		refuse(text, message);
	}
}

static void test_what_others_read_is_theirs(void **state)
{
	struct device_config c;
	struct ini ini;
	struct err e = { "" };
	struct ini_section *s;

	(void)state;
	assert_int_equal(
		ini_load_text(&ini, "m.ini", "[device]\nmodel = rate\nread_ahead_kb = 128\n", &e),
		0);
	s = ini_section(&ini, "device");
	assert_non_null(ini_get(s, "read_ahead_kb"));
	assert_int_equal(device_config_read(&c, &ini, s, &e), 0);
	ini_finish(&ini);
}

static void test_init_and_create(void **state)
{
	struct device_config c;
	struct device *d;

	(void)state;
	assert_int_equal(device_config_init(&c, "tape"), -EINVAL);
	assert_int_equal(device_config_init(&c, "rate"), 0);
	assert_string_equal(c.name, "rate");
	/* In the real world only memory and file can be. */
	assert_int_equal(device_create(&c, &d), -ENOTSUP);
	c.iops = 0;
	assert_int_equal(device_create(&c, &d), -EINVAL);
	c.iops = NAN;
	assert_int_equal(device_create(&c, &d), -EINVAL);
	assert_int_equal(device_config_init(&c, "nvme"), 0);
	c.channels = 1025;
	assert_int_equal(device_create(&c, &d), -EINVAL);
	c.channels = 1024;
	c.queue_depth = 0;
	assert_int_equal(device_create(&c, &d), -EINVAL);
	assert_int_equal(device_config_init(&c, "memory"), 0);
	strcpy(c.model, "tape");
	assert_int_equal(device_create(&c, &d), -EINVAL);
	strcpy(c.model, "memory");
	c.name[0] = 0;
	assert_int_equal(device_create(&c, &d), 0);
	assert_string_equal(device_config(d)->name, "memory");
	device_destroy(d);
}

static void set(struct device_config *c, const char *key, const char *value, const char *message)
{
	struct err e = { "" };

	assert_int_equal(device_config_set(c, key, value, &e), *message ? -EINVAL : 0);
	assert_string_equal(e.text, message);
}

static void test_set(void **state)
{
	struct device_config c;

	(void)state;
	assert_int_equal(device_config_init(&c, "file"), 0);
	assert_int_equal(c.io_engine, IO_ENGINE_AUTO);
	assert_int_equal(c.direct, 1);
	set(&c, "io_engine", "threads", "");
	assert_int_equal(c.io_engine, IO_ENGINE_THREADS);
	set(&c, "io_engine", "uring", "");
	assert_int_equal(c.io_engine, IO_ENGINE_URING);
	set(&c, "io_engine", "auto", "");
	assert_int_equal(c.io_engine, IO_ENGINE_AUTO);
	set(&c, "io_engine", "aio", "io_engine = aio: must be auto, uring or threads");
	set(&c, "io_engine", "", "io_engine = : must be auto, uring or threads");
	set(&c, "max_io_kb", "256", "");
	assert_int_equal(c.max_io_bytes, 256 << 10);
	set(&c, "queue_depth", "0",
	    "queue_depth = 0: must be a whole number from 1 to 4096 requests");
	set(&c, "queue_depth", "7", "");
	assert_int_equal(c.queue_depth, 7);
	set(&c, "direct", "0", "");
	assert_int_equal(c.direct, 0);
	set(&c, "direkt", "0",
	    "unknown key \"direkt\" (did you mean \"direct\"?) for a device of model \"file\", "
	    "which takes model, name, max_io_kb, queue_depth, io_engine, direct");
	set(&c, "iops", "5",
	    "unknown key \"iops\" for a device of model \"file\", which takes model, name, "
	    "max_io_kb, queue_depth, io_engine, direct");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_every_key),
		cmocka_unit_test(test_model_refused),
		cmocka_unit_test(test_key_refused),
		cmocka_unit_test(test_values_refused),
		cmocka_unit_test(test_what_others_read_is_theirs),
		cmocka_unit_test(test_init_and_create),
		cmocka_unit_test(test_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
