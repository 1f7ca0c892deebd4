/* SPDX-License-Identifier: MIT */
/*
 * The running system's limits, from the files in which it tells what they depend on:
 *
 *	/proc/meminfo		free memory; with memory that is not set up yet, which
 *				/proc/vmstat does not count
 *	/proc/vmstat		file pages, and the kernel's own two thresholds
 *	/proc/zoneinfo		the reserve: for each zone its high watermark and the most
 *				it keeps back from allocations that prefer a higher zone
 *	/proc/sys/vm/dirty_*	the settings
 *	/sys/class/bdi/		the devices, named by /sys/dev/block/
 *
 * The reserve (totalreserve_pages) is nowhere to be read, but follows from the zones
 * as the kernel sums it: over all zones the high watermark plus the largest of the
 * "protection" values, at most the zone's pages. In /proc/zoneinfo "high" may be
 * raised for a while by "boost", which the sum does not know.
 */
#include "base/units.h"
#include "lab/limits.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_SIZE 512
#define SECTOR    512 /* bytes: the unit of /sys/block/X/size */

static FILE *open_at(const char *root, const char *path)
{
	char full[PATH_SIZE];

	snprintf(full, sizeof(full), "%s%s", root, path);
	return fopen(full, "re");
}

static int unreadable(const char *root, const char *path, int error, struct err *e)
{
	char full[PATH_SIZE];

	snprintf(full, sizeof(full), "%s%s", root, path);
	err_set(e, full, 0, "cannot be read: %s", strerror(error));
	return error ? -error : -EIO;
}

static int read_free(struct limits_view *v, const char *root, struct err *e)
{
	FILE *f = open_at(root, "/proc/meminfo");
	char *line = NULL;
	size_t room = 0;
	uintmax_t kb;
	bool found = false;

	if (!f)
		return unreadable(root, "/proc/meminfo", errno, e);
	while (!found && getline(&line, &room, f) > 0)
		found = sscanf(line, "MemFree: %ju kB", &kb) == 1;
	free(line);
	fclose(f);
	if (!found)
		return unreadable(root, "/proc/meminfo", EPROTO, e);
	v->free = kb / (PAGE_SIZE / 1024);
	return 0;
}

/* Reads "name value" lines. */
static int read_vmstat(struct limits_view *v, const char *root, struct err *e)
{
	u64 inactive = 0, active = 0;
	struct {
		const char *name;
		u64 *to;
		bool found;
	} want[] = {
		{ "nr_inactive_file", &inactive, false },
		{ "nr_active_file", &active, false },
		{ "nr_dirty_threshold", &v->kernel_thresh, false },
		{ "nr_dirty_background_threshold", &v->kernel_bg, false },
	};
	FILE *f = open_at(root, "/proc/vmstat");
	char name[64];
	uintmax_t value;

	if (!f)
		return unreadable(root, "/proc/vmstat", errno, e);
	while (fscanf(f, "%63s %ju", name, &value) == 2) {
		for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
			if (strcmp(name, want[i].name) != 0)
				continue;
			*want[i].to = value;
			want[i].found = true;
		}
	}
	fclose(f);
	if (!want[0].found || !want[1].found)
		return unreadable(root, "/proc/vmstat", EPROTO, e);
	v->kernel_says = want[2].found && want[3].found;
	v->file = inactive + active;
	return 0;
}

struct zone {
	u64 high, boost, managed, protection;
};

static u64 zone_reserve(const struct zone *z)
{
	u64 high = z->high - min_u64(z->high, z->boost);

	return min_u64(high + z->protection, z->managed);
}

/* "protection: (0, 3018, 16842)": the largest. */
static u64 largest(const char *list)
{
	u64 most = 0;

	for (const char *at = strpbrk(list, "0123456789"); at; at = strpbrk(at, "0123456789")) {
		char *end;

		most = max_u64(most, strtoull(at, &end, 10));
		at = end;
	}
	return most;
}

static int read_zones(struct limits_view *v, const char *root, struct err *e)
{
	FILE *f = open_at(root, "/proc/zoneinfo");
	struct zone z = { 0 };
	char *line = NULL;
	size_t room = 0;
	bool any = false;

	if (!f)
		return unreadable(root, "/proc/zoneinfo", errno, e);
	while (getline(&line, &room, f) > 0) {
		uintmax_t value;

		if (!strncmp(line, "Node ", 5)) {
			v->reserve += zone_reserve(&z);
			z = (struct zone){ 0 };
		}
		/* "high:" with a colon is another one, of the per-CPU lists */
		if (sscanf(line, " high %ju", &value) == 1)
			z.high = value;
		else if (sscanf(line, " boost %ju", &value) == 1)
			z.boost = value;
		else if (sscanf(line, " managed %ju", &value) == 1)
			z.managed = value;
		else if (strstr(line, "protection:"))
			z.protection = largest(line);
		any |= z.managed > 0;
	}
	v->reserve += zone_reserve(&z);
	free(line);
	fclose(f);
	return any ? 0 : unreadable(root, "/proc/zoneinfo", EPROTO, e);
}

/* The first line of a small file; false: there is none. */
static bool read_line(const char *root, const char *folder, const char *name, char buf[64])
{
	char path[PATH_SIZE];
	FILE *f;
	bool read;

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return false;
	f = open_at(root, path);
	read = f && fgets(buf, 64, f);
	if (f)
		fclose(f);
	if (read)
		buf[strcspn(buf, "\n")] = 0;
	return read;
}

static int read_knobs(struct limits_view *v, const char *root, struct err *e)
{
	static const char folder[] = "/proc/sys/vm";
	const struct {
		const char *name;
		u32 *narrow;
		u64 *wide;
	} knobs[] = {
		{ "dirty_ratio", &v->vm.dirty_ratio, NULL },
		{ "dirty_background_ratio", &v->vm.dirty_background_ratio, NULL },
		{ "dirty_bytes", NULL, &v->vm.dirty_bytes },
		{ "dirty_background_bytes", NULL, &v->vm.dirty_background_bytes },
		{ "dirty_writeback_centisecs", &v->vm.dirty_writeback_centisecs, NULL },
		{ "dirty_expire_centisecs", &v->vm.dirty_expire_centisecs, NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(knobs); i++) {
		char path[PATH_SIZE], line[64];
		u64 value;

		snprintf(path, sizeof(path), "%s/%s", folder, knobs[i].name);
		if (!read_line(root, folder, knobs[i].name, line))
			return unreadable(root, path, errno, e);
		if (units_parse_u64(line, &value))
			return unreadable(root, path, EPROTO, e);
		if (knobs[i].wide)
			*knobs[i].wide = value;
		else
			*knobs[i].narrow = (u32)value;
	}
	return 0;
}

/* "254:0" is "vda" if it is a disk. False: a disk without a size, such as an unused loop. */
static bool name_device(struct limits_device *d, const char *root, const char *number)
{
	char path[PATH_SIZE], link[PATH_SIZE], line[64];
	ssize_t len;
	u64 sectors;

	snprintf(d->name, sizeof(d->name), "%.31s", number);
	snprintf(path, sizeof(path), "%s/sys/dev/block/%.31s", root, number);
	len = readlink(path, link, sizeof(link) - 1);
	if (len > 0) {
		const char *slash;

		link[len] = 0;
		slash = strrchr(link, '/');
		snprintf(d->name, sizeof(d->name), "%.31s", slash ? slash + 1 : link);
	}
	snprintf(path, sizeof(path), "/sys/dev/block/%.31s", number);
	return !read_line(root, path, "size", line) || units_parse_u64(line, &sectors) ||
	       sectors * SECTOR > 0;
}

/* False: it is gone, or no device that anything can be written to. */
static bool read_device(struct limits_device *d, const char *root, const char *number)
{
	char folder[PATH_SIZE], line[64];
	u64 value;

	*d = (struct limits_device){ .max_ratio = 100 };
	snprintf(folder, sizeof(folder), "/sys/class/bdi/%.31s", number);
	if (!name_device(d, root, number) || !read_line(root, folder, "read_ahead_kb", line) ||
	    units_parse_u64(line, &value))
		return false;
	d->read_ahead_kb = (u32)value;
	/* in 1/10000 % since 6.2, before that in whole ones */
	if (read_line(root, folder, "max_ratio_fine", line) && !units_parse_u64(line, &value))
		d->max_ratio = (double)value / 10000;
	else if (read_line(root, folder, "max_ratio", line) && !units_parse_u64(line, &value))
		d->max_ratio = (double)value;
	if (read_line(root, folder, "min_ratio_fine", line) && !units_parse_u64(line, &value))
		d->min_ratio = (double)value / 10000;
	else if (read_line(root, folder, "min_ratio", line) && !units_parse_u64(line, &value))
		d->min_ratio = (double)value;
	d->strict = read_line(root, folder, "strict_limit", line) && !strcmp(line, "1");
	return true;
}

static int by_name(const void *a, const void *b)
{
	const struct limits_device *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* A system without the folder has no devices to tell about. */
static int read_devices(struct limits_view *v, const char *root)
{
	char path[PATH_SIZE];
	struct dirent *entry;
	DIR *folder;

	v->devices = calloc(LIMITS_DEVICES_MAX, sizeof(*v->devices));
	if (!v->devices)
		return -ENOMEM;
	snprintf(path, sizeof(path), "%s/sys/class/bdi", root);
	folder = opendir(path);
	while (folder && v->device_count < LIMITS_DEVICES_MAX && (entry = readdir(folder)))
		if (entry->d_name[0] != '.' &&
		    read_device(&v->devices[v->device_count], root, entry->d_name))
			v->device_count++;
	if (folder)
		closedir(folder);
	qsort(v->devices, v->device_count, sizeof(*v->devices), by_name);
	return 0;
}

int limits_of_system(struct limits_view *v, const char *root, struct err *e)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int error;

	*v = (struct limits_view){ .cpus = cpus > 0 ? (unsigned)cpus : 1 };
	error = read_free(v, root, e);
	if (!error)
		error = read_vmstat(v, root, e);
	if (!error)
		error = read_zones(v, root, e);
	if (!error)
		error = read_knobs(v, root, e);
	if (!error && read_devices(v, root))
		error = err_set(e, NULL, 0, "not enough memory");
	if (error)
		limits_finish(v);
	return error;
}
