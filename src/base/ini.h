/* SPDX-License-Identifier: MIT */
/*
 * Sluice's own INI files (experiments, machines), read whole into memory with
 * the line of each entry, so that every later complaint can name it. Parsing is
 * inih's. Sections keep their order and may repeat.
 */
#ifndef SLUICE_BASE_INI_H
#define SLUICE_BASE_INI_H

#include "base/err.h"

struct ini_entry {
	char *key, *value;
	int line;
	bool used; /* set by ini_get(): what nobody read is an unknown key */
};

struct ini_section {
	char *name;
	int line;
	struct ini_entry *entries;
	size_t entry_count;
};

struct ini {
	char *path;
	struct ini_section *sections;
	size_t section_count;
};

/* Reads `path`. 0, or a negative errno with `e` set. Free with ini_finish(). */
int ini_load(struct ini *ini, const char *path, struct err *e);
/* The same from text; `path` is only for messages. (inih owns the name ini_parse.) */
int ini_load_text(struct ini *ini, const char *path, const char *text, struct err *e);
void ini_finish(struct ini *ini);

/* The first section of that name, or NULL. */
struct ini_section *ini_section(struct ini *ini, const char *name);
/* The last entry of that key, marked used, or NULL. Earlier duplicates are marked used too. */
struct ini_entry *ini_get(struct ini_section *section, const char *key);
/* -EINVAL naming the first entry nobody read, and the nearest of the `known` keys. */
int ini_refuse_unused(const struct ini *ini, const struct ini_section *section,
		      const char *const *known, size_t known_count, struct err *e);

/* -EINVAL naming the first key that stands twice, with both lines; `repeatable` (or NULL) may. */
int ini_refuse_duplicates(const struct ini *ini, const struct ini_section *section,
			  const char *repeatable, struct err *e);

#endif
