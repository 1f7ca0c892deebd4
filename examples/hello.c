// SPDX-License-Identifier: MIT
/*
 * A file behind the cache: written, made safe, read back, and what the cache says of it.
 *
 *	cc hello.c $(pkg-config --cflags --libs sluice) && ./a.out FILE
 */
#include <fcntl.h>
#include <sluice.h>
#include <stdio.h>
#include <string.h>

static int failed(const char *what, long rc)
{
	if (rc < 0)
		fprintf(stderr, "hello: %s: %s\n", what, strerror((int)-rc));
	return rc < 0;
}

static int hello(struct sluice *cache, const char *path)
{
	static const char text[] = "Hello, page cache.\n";
	struct sluice_stats before = { .size = sizeof(before) }, after = before;
	struct sluice_file *f;
	char back[sizeof(text)] = "";
	int bad;

	if (failed(path, sluice_open(cache, path, O_RDWR | O_CREAT | O_TRUNC, 0644, &f)))
		return 1;
	bad = failed("write", sluice_pwrite(f, text, strlen(text), 0, 0)) ||
	      failed("stats", sluice_stats(cache, &before)) || failed("fsync", sluice_fsync(f)) ||
	      failed("stats", sluice_stats(cache, &after)) ||
	      failed("read", sluice_pread(f, back, sizeof(back), 0, 0));
	if (!bad)
		printf("%sdebt: %llu bytes, after fsync %llu; written: %llu\n", back,
		       (unsigned long long)before.debt_bytes, (unsigned long long)after.debt_bytes,
		       (unsigned long long)after.written_bytes);
	return failed("close", sluice_close(f)) || bad;
}

int main(int argc, char **argv)
{
	const char *settings[] = { "memory=64M", "vm.dirty_expire_centisecs=500", NULL };
	char why[SLUICE_ERROR_MAX];
	struct sluice *cache;
	int bad;

	if (argc != 2 || sluice_create(settings, why, sizeof(why), &cache)) {
		fprintf(stderr, "hello: %s\n", argc != 2 ? "which file?" : why);
		return 1;
	}
	bad = hello(cache, argv[1]);
	return failed("destroy", sluice_destroy(cache, NULL, NULL)) || bad;
}
