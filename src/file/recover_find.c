// SPDX-License-Identifier: MIT
/*
 * Finding a file again that another process had open. In turn:
 *
 *	by its handle, which is the file's own name within its file system: renames do not change
 *	it, and a file that gets the same inode number later has another one. That needs the right
 *	to search everywhere (CAP_DAC_READ_SEARCH);
 *	by the path it was opened by;
 *	by its inode number in the folder where it was: renaming over another name there is what
 *	programs do.
 *
 * Whatever is found has to be the same file by device, inode number, and as far as the file system
 * tells by handle and time of birth.
 */
#include "file/recover.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOW (O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

static bool is_same(const struct persist_name *name, int fd)
{
	struct persist_name now = { 0 };
	struct stat st;

	if (fstat(fd, &st))
		return false;
	if (name->kind == PERSIST_BLOCK_DEVICE)
		return S_ISBLK(st.st_mode) && st.st_rdev == name->number;
	if (!S_ISREG(st.st_mode) || st.st_dev != name->device || st.st_ino != name->number)
		return false;
	persist_name_life(&now, fd);
	if (now.born_ns && name->born_ns && now.born_ns != name->born_ns)
		return false;
	return !now.handle_bytes || !name->handle_bytes ||
	       (now.handle_type == name->handle_type && now.handle_bytes == name->handle_bytes &&
		!memcmp(now.handle, name->handle, now.handle_bytes));
}

/* Takes fd if it is the file, and closes it if not. 0 or -ENOENT. */
static int take(const struct persist_name *name, int fd, int *out)
{
	if (!is_same(name, fd)) {
		close(fd);
		return -ENOENT;
	}
	*out = fd;
	return 0;
}

/* Opens the nearest folder above the path that is on the file's device; -EXDEV: none is. */
static int open_above(const struct persist_name *name)
{
	char path[PATH_MAX], *slash;
	struct stat st;

	snprintf(path, sizeof(path), "%s", name->path);
	while ((slash = strrchr(path, '/'))) {
		int fd;

		slash[slash == path] = 0;
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 && !fstat(fd, &st) && st.st_dev == name->device)
			return fd;
		if (fd >= 0)
			close(fd);
		if (!path[1])
			break;
	}
	return -EXDEV;
}

static int by_handle(const struct persist_name *name, int folder, int *out)
{
	union {
		struct file_handle head;
		char room[sizeof(struct file_handle) + sizeof(name->handle)];
	} handle = { .head.handle_bytes = name->handle_bytes,
		     .head.handle_type = name->handle_type };
	int fd;

	if (!name->handle_bytes || name->handle_bytes > sizeof(name->handle))
		return -ENOENT;
	memcpy(handle.head.f_handle, name->handle, name->handle_bytes);
	fd = open_by_handle_at(folder, &handle.head, HOW);
	if (fd < 0)
		return errno == ESTALE || errno == EPERM || errno == EOPNOTSUPP ? -ENOENT : -errno;
	return take(name, fd, out);
}

static int by_name(const struct persist_name *name, int folder, const char *path, int *out)
{
	int fd = openat(folder, path, HOW | O_NOFOLLOW);

	if (fd >= 0)
		return take(name, fd, out);
	/* whatever is there by now, it is not a file that we may not open */
	return errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EISDIR ||
			       errno == ENXIO
		       ? -ENOENT
		       : -errno;
}

static int in_its_folder(const struct persist_name *name, int *out)
{
	char path[PATH_MAX], *slash;
	struct dirent *entry;
	int rc = -ENOENT;
	DIR *folder;

	snprintf(path, sizeof(path), "%s", name->path);
	slash = strrchr(path, '/');
	if (!slash)
		return rc;
	slash[slash == path] = 0;
	folder = opendir(path);
	if (!folder)
		return rc;
	while (rc == -ENOENT && (entry = readdir(folder)))
		if (entry->d_ino == name->number &&
		    (entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN))
			rc = by_name(name, dirfd(folder), entry->d_name, out);
	closedir(folder);
	return rc;
}

/* Whether something else has its name, for people. */
static const char *why_not(const struct persist_name *name)
{
	struct stat st;

	return lstat(name->path, &st) ? "it is gone" : "another file has its name";
}

int recover_find(const struct persist_name *name, int *fd, const char **why)
{
	int folder, rc;

	if (name->kind == PERSIST_STORE) {
		*why = "only the program could find it";
		return -ENOENT;
	}
	if (name->kind == PERSIST_BLOCK_DEVICE) {
		rc = by_name(name, AT_FDCWD, name->path, fd);
		*why = rc == -ENOENT ? "it is not the same device any more" : NULL;
		return rc;
	}
	folder = open_above(name);
	rc = folder >= 0 ? by_handle(name, folder, fd) : -ENOENT;
	if (folder >= 0)
		close(folder);
	if (rc == -ENOENT)
		rc = by_name(name, AT_FDCWD, name->path, fd);
	if (rc == -ENOENT)
		rc = in_its_folder(name, fd);
	if (rc == -ENOENT && folder < 0) { /* so nobody knows whether it is gone */
		*why = "its file system is not mounted where it was";
		return -EXDEV;
	}
	if (rc == -ENOENT)
		*why = why_not(name);
	return rc;
}
