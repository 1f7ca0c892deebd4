// SPDX-License-Identifier: MIT
/* sluice device: a disk of exactly known speed, to put a loop device and a file system on. */
#include "base/units.h"
#include "cli/cli.h"
#include "mount/slow_disk.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct request {
	double iops, mbps, latency_us;
	u64 size_bytes;
	bool daemon, quiet;
};

#define DEVICE_OPTION(...) OPTION_IN(struct request, __VA_ARGS__)

static const struct option options[] = {
	DEVICE_OPTION(iops, REAL, "iops", 0, "N", "requests a second (default 3000)", 1, 1e9),
	DEVICE_OPTION(mbps, REAL, "mbps", 0, "N", "million bytes a second (default 131.072)", 0.001,
		      1e6),
	DEVICE_OPTION(latency_us, REAL, "latency-us", 0, "N", "added to each answer (default 0)", 0,
		      6e7),
	DEVICE_OPTION(size_bytes, SIZE, "size", 0, "BYTES",
		      "make the backing, or lengthen it to that", 4096, 1ull << 43),
	OPTION(struct request, daemon, FLAG, "daemon", 0, NULL,
	       "go to the background once it is mounted"),
	OPTION_QUIET(struct request, "say nothing when it begins and ends"),
	{ 0 },
};

static void print_start(const struct request *r, const struct slow_disk *d, const char *mountpoint)
{
	char size[UNITS_TEXT_MAX];

	printf("%s/disk: %s, %.15g requests and %.15g million bytes a second, %.15g us\n",
	       mountpoint, units_print_bytes(size, slow_disk_size(d)), r->iops, r->mbps,
	       r->latency_us);
	fflush(stdout);
}

static void print_end(struct slow_disk *d)
{
	struct slow_disk_stats s;

	slow_disk_stats(d, &s);
	printf("%" PRIu64 " reads of %" PRIu64 " bytes, %" PRIu64 " writes of %" PRIu64
	       " bytes, %" PRIu64 " flushes, %" PRIu64 " discards, %" PRIu64 " failed\n",
	       s.reads, s.read_bytes, s.writes, s.write_bytes, s.flushes, s.discards, s.errors);
}

static int failed(const struct command *self, int error, const char *why)
{
	usage_error(self, "%s", why);
	return error == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
}

static int serve(const struct command *self, const struct request *r, struct slow_disk *d,
		 const char *mountpoint)
{
	int rc = 0;

	if (!r->quiet)
		print_start(r, d, mountpoint);
	if (r->daemon)
		rc = slow_disk_detach(d);
	if (!rc)
		rc = slow_disk_serve(d);
	if (rc)
		return failed(self, -EIO, strerror(-rc));
	if (!r->quiet)
		print_end(d);
	return EXIT_OK;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct request r = { .iops = 3000, .mbps = 131.072 };
	struct slow_disk_config c;
	struct words plain = { 0 };
	struct slow_disk *d;
	struct err e = { "" };
	int status, rc;

	if (!args_read(self, argc, argv, &r, &plain, &status))
		return status;
	if (plain.count != 2)
		return usage_error(self, "a backing and a folder to mount on are needed");
	c = (struct slow_disk_config){
		.backing = plain.word[0],
		.mountpoint = plain.word[1],
		.size_bytes = r.size_bytes,
		.iops = r.iops,
		.bytes_per_s = r.mbps * 1e6,
		.latency_ns = (u64)(r.latency_us * NSEC_PER_USEC),
	};
	rc = slow_disk_open(&c, &d, &e);
	if (rc)
		return failed(self, rc, e.text);
	status = serve(self, &r, d, plain.word[1]);
	slow_disk_close(d);
	return status;
}

const struct command command_device = {
	.name = "device",
	.arguments = "BACKING MOUNTPOINT",
	.about = "serve a file that is a disk of known speed",
	.text = "Mounts a file, MOUNTPOINT/disk, that behaves like a disk of exactly this speed: "
		"put\n"
		"a loop device with direct I/O on it, and a file system on that, to measure what\n"
		"page caches do on such a disk. MOUNTPOINT/stats counts what reached it. It ends\n"
		"when it is unmounted, and on SIGTERM or SIGINT.",
	.examples = "  sluice device --iops 3000 --size 8G /dev/shm/disk.img /mnt/dev\n"
		    "  losetup --find --show --direct-io=on /mnt/dev/disk\n"
		    "  cat /mnt/dev/stats\n"
		    "  umount /mnt/dev\n",
	.options = options,
	.run = run,
};
