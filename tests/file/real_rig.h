/* SPDX-License-Identifier: MIT */
/*
 * An engine in the real world over a device of model "file", a table of paths, and a folder of
 * its own for files, which goes with it. Stores of a caller's own in memory, that fail when
 * told to.
 */
#ifndef SLUICE_TESTS_FILE_REAL_RIG_H
#define SLUICE_TESTS_FILE_REAL_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "file/inner.h"
#include "file/path.h"
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KIB 1024ull
#define MIB (1024 * KIB)

struct real {
	struct engine *e;
	struct device *d;
	struct path_table *t;
	char folder[64];
	char name[8][96]; /* of real_name(), in turn */
	unsigned names;
};

static inline const char *real_name(struct real *r, const char *file)
{
	char *name = r->name[r->names++ % ARRAY_SIZE(r->name)];

	snprintf(name, sizeof(r->name[0]), "%s/%s", r->folder, file);
	return name;
}

static inline void real_clean(const char *folder)
{
	DIR *d = opendir(folder);
	struct dirent *entry;

	while (d && (entry = readdir(d))) {
		char name[400];

		snprintf(name, sizeof(name), "%s/%s", folder, entry->d_name);
		if (entry->d_name[0] != '.' && unlink(name))
			rmdir(name);
	}
	if (d)
		closedir(d);
	rmdir(folder);
}

/* The folders of tests that failed go when the program ends. */
static char real_folders[64][64];
static unsigned real_folder_count;

static inline void real_clean_all(void)
{
	for (unsigned i = 0; i < real_folder_count; i++)
		real_clean(real_folders[i]);
}

static inline void real_start(struct real *r, struct path_config paths, u64 memory_bytes)
{
	struct engine_config c = { .memory_bytes = memory_bytes,
				   .contents = true,
				   .policy = *policy_find("sluice") };
	struct device_config d;

	*r = (struct real){ 0 };
	vm_settings_init(&c.vm);
	snprintf(r->folder, sizeof(r->folder), "sluice-test-XXXXXX");
	assert_non_null(mkdtemp(r->folder));
	if (!real_folder_count)
		atexit(real_clean_all);
	assert_true(real_folder_count < ARRAY_SIZE(real_folders));
	strcpy(real_folders[real_folder_count++], r->folder);
	assert_int_equal(device_config_init(&d, "file"), 0);
	assert_int_equal(device_create(&d, &r->d), 0);
	assert_int_equal(engine_create(&c, &r->e), 0);
	assert_int_equal(engine_add_device(r->e, r->d, 128, false), 0);
	assert_int_equal(path_table_create(r->e, &paths, &r->t), 0);
}

static inline void real_end(struct real *r)
{
	char why[200] = "";

	assert_int_equal(path_table_destroy(r->t, NULL), 0);
	if (!engine_audit(r->e, why, sizeof(why)))
		fail_msg("audit: %s", why);
	assert_int_equal(engine_destroy(r->e), 0);
	device_destroy(r->d);
	real_clean(r->folder);
}

static inline struct file *real_open(struct real *r, const char *file, int flags)
{
	struct file *f = NULL;
	int rc = path_open(r->t, real_name(r, file), flags, 0644, &f);

	if (rc)
		fail_msg("open of %s gave %d", file, rc);
	return f;
}

static inline void real_write(struct file *f, const char *text, u64 offset)
{
	assert_int_equal(file_pwrite(f, text, strlen(text), offset), strlen(text));
}

static inline void real_expect(struct file *f, const char *text, u64 offset)
{
	char buf[256] = "";

	assert_true(strlen(text) < sizeof(buf));
	assert_int_equal(file_pread(f, buf, strlen(text), offset), strlen(text));
	assert_string_equal(buf, text);
}

/* What the system finds in the file. */
static inline void real_expect_stored(struct real *r, const char *file, const char *text)
{
	char buf[256] = "";
	int fd = open(real_name(r, file), O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, buf, sizeof(buf) - 1), strlen(text));
	assert_string_equal(buf, text);
	close(fd);
}

/* Writes a file past this engine. */
static inline void real_store(struct real *r, const char *file, int flags, const char *text)
{
	int fd = open(real_name(r, file), O_WRONLY | O_CREAT | flags, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static inline u64 real_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	u64 n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

#endif
